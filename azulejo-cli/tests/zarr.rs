//! Zarr in: stores as zarr-python and xarray write them (`make_zarr.py`), and hostile ones.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use std::path::Path;
use support::Bench;

/// A folder with the stores in it.
fn stores() -> Bench {
    let bench = Bench::new();
    let packed = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zarr.tar.gz"));
    let packed = packed.unwrap();
    let unpacked = flate2::read::GzDecoder::new(&packed[..]);
    tar::Archive::new(unpacked).unpack(bench.path()).unwrap();
    bench
}

/// The numbers of an attribute, row by row.
fn numbers(bench: &Bench, uri: &str, range: &str) -> Vec<f64> {
    let said = bench.line(&format!("cat {uri} {range} --limit 100000 --json"));
    let rows = said.out.lines().map(|row| {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        let value = row
            .as_object()
            .unwrap()
            .values()
            .next_back()
            .unwrap()
            .as_f64();
        value.unwrap_or(f64::NAN)
    });
    rows.collect()
}

#[test]
fn every_codec_gives_the_same_cells() {
    let bench = stores();
    for (store, least) in [("v3", 25), ("v2", 11)] {
        bench.line(&format!("import {store}.zarr {store}"));
        let members: Vec<String> = std::fs::read_dir(bench.path().join(format!("{store}.zarr")))
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().path().is_dir())
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(members.len() >= least, "{members:?}");
        for name in members {
            let found = numbers(&bench, &format!("{store}/{name}"), "");
            let want = (0..2000).map(|at| match (name.as_str(), at) {
                ("byte", at) => f64::from(at / 3 % 100),
                ("holes", at) if at / 50 >= 16 || at % 50 >= 20 => 7.0,
                (_, at) => f64::from(at / 3),
            });
            assert_eq!(found, want.collect::<Vec<_>>(), "{store} {name}");
        }
    }
    assert_eq!(bench.line("meta v3 title").out.trim(), "codecs");
}

#[test]
fn datasets_are_laid_out_as_python_does() {
    let bench = stores();
    for store in ["ds2", "ds3"] {
        bench.line(&format!("import {store}.zarr {store}"));
        let schema = bench.json(&format!("schema {store}/t2m"));
        let dims: Vec<&str> = schema["dimensions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| d["name"].as_str().unwrap())
            .collect();
        assert_eq!(dims, ["time", "y", "x"]);
        let extents: Vec<u64> = schema["dimensions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| d["tile_extent"].as_u64().unwrap())
            .collect();
        assert_eq!(extents, [2, 3, 5]);
        assert_eq!(schema["attributes"][0]["datatype"], "INT16");
        assert_eq!(schema["attributes"][0]["fill_value"], -32768);
        let key = |uri: &str, key: &str| bench.line(&format!("meta {uri} {key}")).out;
        assert_eq!(
            key(&format!("{store}/t2m"), "__tiledb_attr.t2m.units").trim(),
            "K"
        );
        assert_eq!(
            key(&format!("{store}/t2m"), "__tiledb_attr.t2m._FillValue").trim(),
            "-32768"
        );
        assert_eq!(
            key(&format!("{store}/t2m"), "__tiledb_attr.t2m.coordinates").trim(),
            "lat"
        );
        assert_eq!(key(store, "version").trim(), "3");
        // A coordinate's attribute is named apart from its dimension.
        let time = bench.json(&format!("schema {store}/time"));
        assert_eq!(time["attributes"][0]["name"], "time_");
        assert_eq!(
            numbers(&bench, &format!("{store}/time"), ""),
            [0.0, 1.0, 2.0, 3.0]
        );
        assert_eq!(numbers(&bench, &format!("{store}/crs"), ""), [0.0]);
        assert_eq!(
            numbers(&bench, &format!("{store}/count"), "--range y=5"),
            [25.0, 26.0, 27.0, 28.0, 29.0]
        );
        let texts = bench.line(&format!("cat {store}/station")).out;
        assert!(texts.contains("eeeee") && texts.contains('é'), "{texts}");
        bench.line(&format!("check {store}/t2m --deep"));
    }
    let version = bench.line("--version").out;
    assert!(
        version.contains("c-codecs") && version.contains("object-store"),
        "{version}"
    );
    bench.fails("import ds3.zarr ds3", 2, "is there already");
    bench.fails("import ds3.zarr ds3 --append", 2, "--append-dim");
    bench.fails("import ds3.zarr other --dims y,x", 2, "--dims");
    let plan = bench.line("import ds3.zarr other --dry-run").out;
    assert!(plan.contains("time, y, x"), "{plan}");
    assert!(!bench.path().join("other").exists());
    // An array alone.
    bench.line("import v3.zarr/sharded alone");
    assert_eq!(bench.count("alone"), 2000);
}

#[test]
fn little_memory_is_enough() {
    let bench = stores();
    bench.line("--memory 96K import v3.zarr/zstd small");
    let cells: Vec<f64> = (0..2000).map(|at| f64::from(at / 3)).collect();
    assert_eq!(numbers(&bench, "small", ""), cells);
    bench.fails("--memory 4K import v3.zarr/zstd less", 1, "memory budget");
}

/// Of four thousand millions of chunks two, and one behind the array's end.
#[test]
fn few_chunks_of_an_enormous_array_are_found() {
    let bench = Bench::new();
    let store = |name: &str, json: &str, chunks: [&str; 3]| {
        let folder = bench.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let file = if name == "two" {
            ".zarray"
        } else {
            "zarr.json"
        };
        std::fs::write(folder.join(file), json).unwrap();
        for chunk in chunks {
            let path = folder.join(chunk);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, [7; 4096]).unwrap();
        }
    };
    let two = r#"{"zarr_format": 2, "shape": [8796093022208, 2], "chunks": [4096, 1], "dtype": "|i1",
        "compressor": null, "filters": null, "fill_value": 0, "order": "C"}"#;
    store("two", two, ["0.0", "2147483647.1", "2147483648.0"]);
    let three = r#"{"zarr_format": 3, "node_type": "array", "shape": [8796093022208, 2], "data_type": "int8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4096, 1]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": -128, "codecs": [{"name": "bytes"}], "attributes": {}}"#;
    store(
        "three",
        three,
        ["c/0/0", "c/2147483647/1", "c/2147483648/0"],
    );
    for (name, fill) in [("two", 0.0), ("three", -128.0)] {
        let array = format!("{name}.array");
        bench.line(&format!("import {name} {array} --memory 16MB"));
        let cells = |range: &str| numbers(&bench, &array, &format!("--range dim_0={range}"));
        assert_eq!(cells("4095:4096"), [7.0, fill, fill, fill]);
        let last = cells("8796093018111:8796093018112");
        assert_eq!(last, [fill, fill, fill, 7.0]);
        assert_eq!(cells("8796093022207:8796093022207"), [fill, 7.0]);
    }
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_kept() {
    let bench = stores();
    let read = |path: &str| std::fs::read(bench.path().join(path)).unwrap();
    let text = |path: &str| String::from_utf8(read(path)).unwrap();
    let refused = |store: &str, says: &str| {
        bench.fails(&format!("import {store} never"), 1, says);
        assert!(!bench.path().join("never").exists(), "{store}");
    };
    // Chunks that end early, and chunks of other bytes.
    for (array, says) in [
        ("gzip", "gzip"),
        ("zstd", "zstd"),
        ("raw", "bytes instead"),
        ("crc", "crc32c"),
        ("sharded", "shard"),
        ("blosc_lz4_shuffle", "blosc"),
    ] {
        let path = format!("v3.zarr/{array}/c/0/0");
        let whole = read(&path);
        bench.write(&path, &whole[..whole.len() / 2]);
        refused("v3.zarr", says);
        bench.write(&path, whole);
    }
    // Shapes, types and codecs that cannot be.
    let path = "v3.zarr/raw/zarr.json";
    let good = text(path);
    let compact = serde_json::from_str::<serde_json::Value>(&good).unwrap();
    let with = |key: &str, value: serde_json::Value, says: &str| {
        let mut json = compact.clone();
        json[key] = value;
        bench.write(path, json.to_string());
        refused("v3.zarr", says);
    };
    use serde_json::json;
    with(
        "shape",
        json!([1u64 << 40, 1u64 << 40]),
        "more cells than can be counted",
    );
    with("shape", json!([1u64 << 50, 50]), "would have to be written");
    with("data_type", json!("complex128"), "complex128");
    with(
        "codecs",
        json!([{"name": "bytes"}, {"name": "zfpy"}]),
        "zfpy",
    );
    with("chunk_grid", json!({"name": "rectilinear"}), "rectilinear");
    with(
        "chunk_grid",
        json!({"name": "regular", "configuration": {"chunk_shape": [1u64 << 30, 1u64 << 25]}}),
        "memory budget",
    );
    with("fill_value", json!("x"), "fill value");
    bench.write(path, &good[..good.len() / 2]);
    refused("v3.zarr", "zarr.json");
    bench.write(path, good);
    bench.line("import v3.zarr good");
}

#[test]
fn datasets_go_out_in_both_versions_and_come_back() {
    let bench = stores();
    bench.line("import ds2.zarr ds");
    bench.line("meta set ds/lat __tiledb_attr.lat._FillValue 1.5 --type FLOAT32");
    for (format, file) in [("zarr", "zarr.json"), ("zarr2", ".zarray")] {
        bench.line(&format!("export ds out-{format} --format {format}"));
        assert!(
            bench
                .path()
                .join(format!("out-{format}/t2m/{file}"))
                .is_file()
        );
        bench.line(&format!("import out-{format} back-{format}"));
        for variable in ["t2m", "count", "time", "x", "lat", "crs"] {
            let cells = |uri: &str| {
                bench
                    .line(&format!("cat {uri}/{variable} --limit 1000"))
                    .out
            };
            assert_eq!(
                cells("ds"),
                cells(&format!("back-{format}")),
                "{format} {variable}"
            );
        }
        let key = |key: &str| {
            bench
                .line(&format!("meta back-{format}/t2m __tiledb_attr.t2m.{key}"))
                .out
        };
        assert_eq!(
            (key("_FillValue").trim(), key("units").trim()),
            ("-32768", "K")
        );
        let fill = bench
            .line(&format!(
                "meta back-{format}/lat __tiledb_attr.lat._FillValue"
            ))
            .out;
        assert_eq!(fill.trim(), "1.5");
    }
}

#[test]
fn stores_are_appended_along_a_dimension() {
    let bench = stores();
    bench.line("import ds3.zarr ds3");
    let before = numbers(&bench, "ds3/t2m", "");
    let said = bench
        .line("import ds3.zarr ds3 --append --append-dim time")
        .err;
    assert!(said.contains("more"), "{said}");
    let twice = [before.clone(), before].concat();
    let found = numbers(&bench, "ds3/t2m", "");
    assert_eq!(found.len(), twice.len());
    let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
    assert!(found.iter().zip(&twice).all(same));
    assert_eq!(
        numbers(&bench, "ds3/time", ""),
        [0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0]
    );
    for (words, reason) in [
        ("ds3.zarr ds3 --append --append-dim y", "long"),
        ("ds3.zarr ds3 --append --append-dim nothing", "no variable"),
        ("v3.zarr ds3 --append --append-dim time", "no variable"),
        (
            "ds3.zarr ds3 --append --append-dim time --offset time=3",
            "--offset",
        ),
    ] {
        bench.fails(&format!("import {words}"), 2, reason);
    }
    assert_eq!(numbers(&bench, "ds3/time", "").len(), 8);
    // Numbers that mean something else are not put behind those that are there.
    let folder = bench.path().join("ds3.zarr/time/zarr.json");
    let metadata = std::fs::read_to_string(&folder).unwrap();
    let other = metadata.replace("days since", "hours since");
    assert_ne!(metadata, other);
    std::fs::write(&folder, other).unwrap();
    bench.fails("import ds3.zarr ds3 --append --append-dim time", 2, "units");
    // An array alone, behind its first dimension.
    bench.line("import v3.zarr/raw one");
    bench.line("import v3.zarr/raw one --append");
    let found = numbers(&bench, "one", "");
    assert_eq!(found.len(), 4000);
    assert!(
        found
            .iter()
            .enumerate()
            .all(|(at, n)| *n == f64::from(at as u32 % 2000 / 3))
    );
    bench.line("check one --deep");
}

#[test]
fn stores_that_are_appended_at_the_same_time_come_one_behind_the_other() {
    let bench = stores();
    bench.line("import ds3.zarr ds3");
    let before = numbers(&bench, "ds3/t2m", "").len();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2 {
                    bench.line("import ds3.zarr ds3 --append --append-dim time");
                }
            });
        }
    });
    let times = [0.0, 1.0, 2.0, 3.0].repeat(9);
    assert_eq!(numbers(&bench, "ds3/time", ""), times);
    assert_eq!(numbers(&bench, "ds3/t2m", "").len(), before * 9);
    bench.line("check ds3/t2m --deep");
}

#[test]
fn moments_say_in_both_versions_what_they_count() {
    let bench = Bench::new();
    std::fs::write(
        bench.path().join("moments.csv"),
        "x,seen,day,month\n1,2024-05-01T10:00:00.001,2024-05-01,2024-05\n2,,,\n",
    )
    .unwrap();
    bench.line(
        "import moments.csv moments --dims x --dense --type seen=DATETIME_MS --type day=DATETIME_DAY --type month=DATETIME_MONTH",
    );
    for (format, file) in [("zarr", "zarr.json"), ("zarr2", ".zattrs")] {
        bench.line(&format!("export moments out-{format} --format {format}"));
        let units = |name: &str| -> serde_json::Value {
            let path = bench.path().join(format!("out-{format}/{name}/{file}"));
            let json: serde_json::Value =
                serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            let attributes = if format == "zarr" {
                &json["attributes"]
            } else {
                &json
            };
            attributes["units"].clone()
        };
        assert_eq!(units("seen"), "milliseconds since 1970-01-01");
        assert_eq!(units("day"), "days since 1970-01-01");
        // Months are of different lengths.
        assert!(units("month").is_null());
    }
}

#[test]
fn an_export_replaces_stores_of_zarr_and_nothing_else() {
    let bench = Bench::new();
    bench.write("a.csv", "x,v\n0,1\n1,2\n");
    bench.line("import a.csv a --dims x --dense");
    bench.line("export a store --format zarr");
    bench.line("export a store --format zarr --force");
    std::fs::create_dir(bench.path().join("empty")).unwrap();
    bench.line("export a empty --format zarr --force");
    std::fs::create_dir(bench.path().join("mine")).unwrap();
    bench.write("mine/thesis.txt", "years of work");
    for place in ["a", "mine", "mine/thesis.txt"] {
        bench.fails(
            &format!("export a {place} --format zarr --force"),
            2,
            "no Zarr",
        );
    }
    assert_eq!(bench.count("a"), 2);
    assert!(bench.path().join("mine/thesis.txt").is_file());
}

//! `azulejo import --optimize`: filters chosen by the file's cells; the cells stay the same.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use serde_json::Value as Json;
use std::fmt::Write as _;
use support::{Bench, npy};

const GOALS: [&str; 3] = ["size", "balanced", "speed"];

/// Rows in no order: a time, a place, a level of few values, a text, a value that is often missing.
fn rows(n: u64) -> String {
    let mut text = String::from("time,x,level,place,value\n");
    for i in 0..n {
        let i = i * 7_919 % n.max(1);
        let value = if i.is_multiple_of(3) {
            String::new()
        } else {
            format!("{}.5", i * i % 1_000)
        };
        writeln!(
            text,
            "{i},{}.25,{},place {},{value}",
            i % 977,
            i % 4,
            i % 50
        )
        .unwrap();
    }
    text
}

fn filters(schema: &Json, name: &str) -> Json {
    let fields = ["dimensions", "attributes"]
        .iter()
        .flat_map(|kind| schema[kind].as_array().unwrap());
    fields
        .filter(|field| field["name"] == name)
        .map(|field| field["filters"]["filters"].clone())
        .next()
        .unwrap()
}

#[test]
fn cells_stay_the_same_whatever_is_chosen() {
    let bench = Bench::new();
    bench.write("rows.csv", rows(30_000));
    bench.line("import rows.csv plain --dims time,x --enumerate none");
    let read = |uri: &str| bench.line(&format!("export {uri} - --format csv")).out;
    for goal in GOALS {
        bench.line(&format!(
            "import rows.csv {goal} --dims time,x --enumerate none --optimize {goal}"
        ));
        assert_eq!(read(goal), read("plain"), "{goal}");
        let (chosen, plain) = (
            bench.json(&format!("schema {goal}")),
            bench.json("schema plain"),
        );
        let all = |schema: &Json| (schema["dimensions"].clone(), schema["attributes"].clone());
        let is_usual = goal == "balanced";
        assert_eq!(all(&chosen) == all(&plain), is_usual, "{goal}");
        // The same rows choose the same.
        let shown = bench.json(&format!(
            "import rows.csv other --dims time,x --enumerate none --optimize {goal} --dry-run"
        ));
        assert_eq!(
            filters(&shown, "value"),
            filters(&chosen, "value"),
            "{goal}"
        );
        assert_eq!(
            shown["offsets_filters"], chosen["offsets_filters"],
            "{goal}"
        );
    }
    let bytes = |goal: &str| {
        bench.json(&format!("fragments {goal}"))[0]["size"]
            .as_u64()
            .unwrap_or(0)
    };
    assert!(bytes("size") <= bytes("balanced") && bytes("size") <= bytes("speed"));
}

#[test]
fn texts_that_repeat_have_a_dictionary_unless_filters_are_named() {
    let bench = Bench::new();
    bench.write("rows.csv", rows(30_000));
    let uses = |uri: &str, options: &str| {
        let command = format!("import rows.csv {uri} --dims time,x {options}");
        let shown = filters(&bench.json(&format!("{command} --dry-run")), "place");
        bench.line(&command);
        let schema = bench.json(&format!("schema {uri}"));
        assert_eq!(filters(&schema, "place"), shown, "{options}");
        let value = filters(&schema, "value");
        assert_eq!(value[0]["filter"], "byteshuffle", "{options}");
        shown
    };
    let chosen = uses("a", "--enumerate none");
    assert_eq!(chosen[0]["filter"], "dictionary");
    assert_eq!(chosen[1]["filter"], "zstd");
    let named = uses("b", "--enumerate none --filter place=zstd:3");
    assert_eq!(named[0]["filter"], "zstd");
    let read = |uri: &str| bench.line(&format!("export {uri} - --format csv")).out;
    assert_eq!(read("a"), read("b"));
    // Labels are numbers.
    assert_eq!(uses("c", "")[0]["filter"], "zstd");
    // A schema says its filters.
    bench.write("b.json", bench.line("schema b --json").out);
    bench.line("import rows.csv d --schema b.json");
    let given = filters(&bench.json("schema d"), "place");
    assert_eq!(given[0]["filter"], "zstd");
}

#[test]
fn what_is_named_stays_as_named() {
    let bench = Bench::new();
    bench.write("rows.csv", rows(5_000));
    bench.line("import rows.csv a --dims time,x --optimize speed --filter time=gzip:3 --filter @validity=zstd:2 --filter value=none");
    let schema = bench.json("schema a");
    assert_eq!(filters(&schema, "time")[0]["filter"], "gzip");
    assert_eq!(schema["validity_filters"]["filters"][0]["filter"], "zstd");
    assert_eq!(filters(&schema, "value"), Json::Array(Vec::new()));
    bench.line("import rows.csv b --dims time,x --optimize speed --filter @coords=gzip:3");
    let schema = bench.json("schema b");
    assert_eq!(filters(&schema, "x"), Json::Array(Vec::new()));
    bench.fails(
        "import rows.csv a --append --optimize size",
        2,
        "--optimize",
    );
    bench.fails(
        "import rows.csv c --schema a.json --optimize size",
        2,
        "--optimize",
    );
    bench.fails("import rows.csv c --optimize fast", 2, "balanced");
}

#[test]
fn dense_files_too() {
    let bench = Bench::new();
    bench.write(
        "grid.npy",
        npy(&[300, 400], (0..120_000).map(|i| (i % 400) as f32)),
    );
    bench.write("rows.csv", rows(2_000));
    let mut grid = String::from("y,x,v\n");
    for i in (0..3_000).rev() {
        writeln!(grid, "{},{},{}", i / 60, i % 60, i % 7).unwrap();
    }
    bench.write("grid.csv", grid);
    for goal in GOALS {
        for (file, options) in [
            ("grid.npy", ""),
            ("rows.csv", ""),
            ("grid.csv", "--dims y,x --dense"),
        ] {
            let (plain, chosen) = (
                format!("plain-{goal}-{file}"),
                format!("chosen-{goal}-{file}"),
            );
            bench.line(&format!("import {file} {plain} {options}"));
            bench.line(&format!(
                "import {file} {chosen} {options} --optimize {goal}"
            ));
            let read = |uri: &str| bench.line(&format!("export {uri} - --format csv")).out;
            assert_eq!(read(&plain), read(&chosen), "{goal} {file}");
        }
    }
}

/// Unpacks an archive of the tests' data.
fn unpack(bench: &Bench, name: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let packed = std::fs::read(path.join("tests").join(name)).unwrap();
    let unpacked = flate2::read::GzDecoder::new(&packed[..]);
    tar::Archive::new(unpacked).unpack(bench.path()).unwrap();
}

/// The arrays of a group.
fn members(bench: &Bench, uri: &str) -> Vec<String> {
    let listed = bench.json(&format!("ls {uri}"));
    let names = listed.as_array().unwrap().iter();
    names
        .map(|member| member["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn datasets_too() {
    let bench = Bench::new();
    unpack(&bench, "zarr.tar.gz");
    unpack(&bench, "geotiff.tar.gz");
    let mut differ = 0;
    for (file, goal) in [
        ("ds3.zarr", "size"),
        ("ds2.zarr", "speed"),
        ("v3.zarr", "size"),
        ("float32-strips.tif", "size"),
        ("int16.tif", "speed"),
    ] {
        let plain = format!("plain-{file}");
        bench.line(&format!("import {file} {plain}"));
        let chosen = format!("chosen-{file}");
        bench.line(&format!("import {file} {chosen} --optimize {goal}"));
        let names = members(&bench, &plain);
        assert!(
            names.len() > 2 && names == members(&bench, &chosen),
            "{names:?}"
        );
        for name in names {
            let read = |uri: &str| {
                bench
                    .line(&format!("cat {uri}/{name} --limit 9999 --json"))
                    .out
            };
            assert_eq!(read(&plain), read(&chosen), "{goal} {file} {name}");
            let schema = |uri: &str| bench.json(&format!("schema {uri}/{name}"));
            let (plain, chosen) = (schema(&plain), schema(&chosen));
            differ += usize::from(plain["attributes"] != chosen["attributes"]);
        }
    }
    assert!(differ > 8, "{differ}");
}

#[test]
fn files_with_next_to_nothing_in_them() {
    let bench = Bench::new();
    let wide: Vec<String> = (0..300).map(|i| format!("c{i}")).collect();
    let files = [
        ("header.csv", "x,v\n".to_owned()),
        ("one.csv", "x,v\n7,3\n".to_owned()),
        (
            "constant.csv",
            format!(
                "x,v\n{}",
                (0..3_000).map(|i| format!("{i},5\n")).collect::<String>()
            ),
        ),
        (
            "nan.csv",
            format!(
                "x,v\n{}",
                (0..3_000).map(|i| format!("{i},nan\n")).collect::<String>()
            ),
        ),
        (
            "huge.csv",
            format!("x,v\n1,{}\n2,b\n", "long text ".repeat(300_000)),
        ),
        (
            "wide.csv",
            format!(
                "x,{}\n{}",
                wide.join(","),
                (0..40)
                    .map(|i| format!("{i}{}\n", ",1".repeat(300)))
                    .collect::<String>()
            ),
        ),
    ];
    for (name, text) in files {
        bench.write(name, text);
        for goal in GOALS {
            let (plain, chosen) = (
                format!("plain-{goal}-{name}"),
                format!("chosen-{goal}-{name}"),
            );
            bench.line(&format!("import {name} {plain} --dims x"));
            bench.line(&format!(
                "import {name} {chosen} --dims x --optimize {goal} --memory 64MB"
            ));
            let read = |uri: &str| bench.line(&format!("export {uri} - --format csv")).out;
            assert_eq!(read(&plain), read(&chosen), "{goal} {name}");
        }
    }
    bench.fails(
        "import empty.csv e --dims x --optimize size",
        1,
        "empty.csv",
    );
}

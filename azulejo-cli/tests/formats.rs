//! Import and export in their many forms: several files, comments, dates, JSON arrays, duplicates,
//! compressed output, damaged arrays.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use support::{Bench, npy};

#[test]
fn several_files_and_patterns_are_one_table() {
    let bench = Bench::new();
    bench.write("day1.csv", "id,q\n1,1\n2,2");
    bench.write("day2.csv", "id,q\n3,3.5\n");
    bench.line("import day1.csv day2.csv a --dims id");
    // The type fits all files.
    assert_eq!(bench.line("cat a").out, "id,q\n1,1.0\n2,2.0\n3,3.5\n");
    bench.line("import day*.csv b --dims id");
    assert_eq!(bench.line("cat b").out, bench.line("cat a").out);
    bench.fails("import night*.csv c --dims id", 2, "no file is called");
    bench.write("day3.csv", "id,p\n1,1\n");
    bench.fails("import day1.csv day3.csv c", 1, "day3.csv");
    bench.write("day4.csv", "id,q\n4,4\n5\n");
    bench.fails("import day1.csv day4.csv c", 1, "day4.csv, line 3");
    assert!(!bench.path().join("c").exists());
    // Files that state their types come one after the other.
    bench.line("export a x.parquet --where 'id < 3'");
    bench.line("export a y.parquet --where 'id = 3'");
    bench.line("import x.parquet y.parquet d --dims id");
    assert_eq!(bench.line("cat d").out, bench.line("cat a").out);
    bench.line("import day1.csv day2.csv a --append");
    assert_eq!(bench.count("a"), 6);
}

#[test]
fn lines_before_the_header_comments_and_own_dates() {
    let bench = Bench::new();
    bench.write(
        "a.csv",
        "made by a machine\n# a \"comment\nday,v\n01/02/2024,1\n# another, \"one\n03/02/2024,2\n",
    );
    bench.line("import a.csv a --dims day --skip 1 --comment # --date-format %d/%m/%Y");
    assert_eq!(
        bench.line("cat a").out,
        "day,v\n2024-02-01,1\n2024-02-03,2\n"
    );
    bench.write("b.csv", "# c\nt,v\n1/2/2024 10:30,1\n1/2/2024 bad,2\n");
    bench.write("c.csv", "# c\nid,v\n1,1\n2,2,2\n");
    bench.fails("import c.csv c --comment #", 1, "c.csv, line 4");
    bench.fails("import a.csv x --date-format %d", 2, "whole date");
}

#[test]
fn arrays_of_json_objects_are_tables() {
    let bench = Bench::new();
    let text = "[\n  {\"id\": 1, \"name\": \"a, [b]\"},\n  {\"id\": 2,\n   \"name\": \"c\"}\n]\n";
    bench.write("a.json", text);
    bench.line("import a.json a --dims id");
    assert_eq!(bench.line("cat a").out, "id,name\n1,\"a, [b]\"\n2,c\n");
    bench.write("b.json", "[{\"id\": 1}, {\"id\": oops}]");
    bench.fails("import b.json b", 1, "b.json, row 2");
    bench.write("c.json", "[{\"id\": 1}");
    bench.fails("import c.json c", 1, "not closed");
}

#[test]
fn rows_with_the_same_coordinates_are_chosen_among() {
    let bench = Bench::new();
    bench.write("a.csv", "y,x,v\n1,1,10\n2,1,20\n1,1,30\n2,2,40\n1,1,50\n");
    for kind in ["--unique", "--dense"] {
        let line = format!("import a.csv e --dims y,x {kind}");
        bench.fails(&line, 1, "line 2 and line 4 have the same coordinates");
        bench.line(&format!(
            "import a.csv first{kind} --dims y,x {kind} --on-duplicate first"
        ));
        bench.line(&format!(
            "import a.csv last{kind} --dims y,x {kind} --on-duplicate last"
        ));
        let value =
            |uri: &str| bench.json(&format!("agg {uri}{kind} sum:v --range y=1 --range x=1"));
        assert_eq!(value("first")["sum:v"], 10, "{kind}");
        assert_eq!(value("last")["sum:v"], 50, "{kind}");
    }
    assert_eq!(bench.count("first--unique"), 3);
    // What is said are the cells, and the rows that are none.
    let said = bench.line("import a.csv said --dims y,x --dense --on-duplicate last");
    assert!(said.err.contains("2 rows are left out"), "{}", said.err);
    let line = "import a.csv told --dims y,x --dense --on-duplicate last";
    assert_eq!(bench.json(line)["cells"], 3);
    bench.line("import a.csv both --dims y,x");
    assert_eq!(bench.count("both"), 5);
    bench.fails(
        "import a.csv both --append --on-duplicate last",
        2,
        "keeps all",
    );
}

/// Many more rows than cells: those that others have taken the place of are let go as they come.
#[test]
fn rows_of_few_cells_may_be_any_number() {
    let bench = Bench::new();
    let rows = (0..200_000).map(|i| match i % 3 {
        0 => format!("0,{i},t{i}\n"),
        1 => format!("1,{i},\n"),
        _ => format!("5,{i},\"\"\n"),
    });
    bench.write("a.csv", format!("x,v,s\n{}", rows.collect::<String>()));
    for (wish, cells) in [
        ("first", "x,v,s\n0,0,t0\n1,1,\n5,2,\"\"\n"),
        (
            "last",
            "x,v,s\n0,199998,t199998\n1,199999,\n5,199997,\"\"\n",
        ),
    ] {
        let line = format!("import a.csv {wish} --dims x --dense --on-duplicate {wish}");
        assert_eq!(bench.json(&line)["cells"], 3, "{wish}");
        let line = format!("cat {wish} --range x=0:1 --range x=5 --coords --format csv");
        assert_eq!(bench.line(&line).out, cells, "{wish}");
    }
    bench.fails(
        "import a.csv error --dims x --dense",
        1,
        "line 2 and line 5 have the same coordinates",
    );
}

#[test]
fn compressed_files_are_written() {
    let bench = Bench::new();
    bench.write("a.csv", "id,q\n1,1\n2,2\n");
    bench.line("import a.csv a --dims id");
    bench.line("export a out.csv.gz");
    bench.line("export a out.ndjson.zst");
    let file = std::fs::File::open(bench.path().join("out.csv.gz")).unwrap();
    let mut text = String::new();
    let mut gzip = flate2::read::GzDecoder::new(file);
    gzip.read_to_string(&mut text).unwrap();
    assert_eq!(text, "id,q\n1,1\n2,2\n");
    let file = std::fs::File::open(bench.path().join("out.ndjson.zst")).unwrap();
    let text = String::from_utf8(zstd::decode_all(file).unwrap()).unwrap();
    assert_eq!(text, "{\"id\":1,\"q\":1}\n{\"id\":2,\"q\":2}\n");
    bench.line("import out.csv.gz b --dims id");
    assert_eq!(bench.count("b"), 2);
}

#[test]
fn standard_output_is_a_stream() {
    let bench = Bench::new();
    let rows: String = (0..300_000).map(|i| format!("{i},{i}\n")).collect();
    bench.write("a.csv", format!("id,q\n{rows}"));
    bench.line("import a.csv a --dims id");
    // Who stops reading ends the export, at once and without an error.
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("azulejo"))
        .args(["export", "a", "-", "--format", "csv"])
        .current_dir(bench.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut head = [0; 10];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"id,q\n0,0\n1");
    drop(out);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    for format in ["parquet", "arrow", "ndjson"] {
        let said = assert_cmd::Command::cargo_bin("azulejo")
            .unwrap()
            .args(["export", "a", "-", "--format", format, "--range", "id=5:6"])
            .current_dir(bench.path())
            .output()
            .unwrap();
        bench.write("b", said.stdout);
        bench.line(&format!("import b b_{format} --format {format} --dims id"));
        assert_eq!(
            bench.line(&format!("cat b_{format}")).out,
            "id,q\n5,5\n6,6\n"
        );
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_links_stay_what_they_are() {
    use std::os::unix::fs::FileTypeExt;
    let bench = Bench::new();
    bench.write("a.csv", "id,q\n1,1\n2,2\n");
    bench.line("import a.csv a --dims id");
    let pipe = bench.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for force in ["", "--force"] {
        let mut export = bench.start(&format!("export a pipe --format csv {force}"));
        assert_eq!(std::fs::read_to_string(&pipe).unwrap(), "id,q\n1,1\n2,2\n");
        assert_eq!(export.wait().unwrap().code(), Some(0));
        assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }
    bench.write("file.csv", "old");
    std::os::unix::fs::symlink("file.csv", bench.path().join("link.csv")).unwrap();
    bench.fails("export a link.csv", 2, "link.csv exists");
    bench.line("export a link.csv --force");
    assert!(bench.path().join("link.csv").is_symlink());
    let file = std::fs::read_to_string(bench.path().join("file.csv")).unwrap();
    assert_eq!(file, "id,q\n1,1\n2,2\n");
    std::fs::create_dir(bench.path().join("folder.csv")).unwrap();
    bench.fails("export a folder.csv --force", 2, "is a folder");
}

#[test]
fn what_is_damaged_is_left_out() {
    let bench = Bench::new();
    bench.write("a.npy", npy(&[8, 4], (0..32).map(|i| i as f32)));
    bench.line("import a.npy a --tile dim_0=2 --filter value=none");
    bench.line("export a whole.csv --coords");
    bench.line("export a same.csv --skip-damaged");
    let read = |name: &str| std::fs::read_to_string(bench.path().join(name)).unwrap();
    assert_eq!(read("whole.csv"), read("same.csv"));
    // The second of four tiles: its chunk says that it is larger than it is.
    let fragments = std::fs::read_dir(bench.path().join("a/__fragments")).unwrap();
    let file = fragments
        .map(|e| e.unwrap().path())
        .next()
        .unwrap()
        .join("a0.tdb");
    let mut bytes = std::fs::read(&file).unwrap();
    let tile = bytes.len() / 4;
    bytes[tile + 8..tile + 16].fill(0xff);
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(bench.run(&["export", "a", "b.csv"]).code, Some(4));
    let said = bench.line("export a b.csv --skip-damaged");
    assert!(said.err.contains("left out: dim_0 2"), "{}", said.err);
    let whole = read("whole.csv");
    let kept: Vec<&str> = whole
        .lines()
        .filter(|line| !line.starts_with("2,") && !line.starts_with("3,"))
        .collect();
    assert_eq!(read("b.csv").lines().collect::<Vec<_>>(), kept);
    bench.fails("export a c.npy --skip-damaged", 2, "skip-damaged");
}

#[test]
fn files_come_from_web_servers() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let text = b"id,q\n1,1\n2,2\n";
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..read]).to_lowercase();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nConnection: close\r\n\r\n",
                text.len()
            );
            let _ = stream.write_all(head.as_bytes());
            if !request.starts_with("head") {
                let _ = stream.write_all(text);
            }
        }
    });
    bench.line(&format!("import http://{address}/a.csv a --dims id"));
    assert_eq!(bench.line("cat a").out, "id,q\n1,1\n2,2\n");
}

#[test]
fn real_dimensions_have_room_and_tiles() {
    let bench = Bench::new();
    let rows: String = (0..500)
        .map(|i| format!("{},{i},{i}\n", f64::from(i) * 0.1 - 10.0))
        .collect();
    bench.write("a.csv", format!("lat,id,v\n{rows}"));
    bench.line("import a.csv a --dims lat,id --capacity 50");
    let domain = &bench.json("schema a")["dimensions"][0];
    let low = domain["domain"][0].as_f64().unwrap();
    assert!((-1000.0..=-11.0).contains(&low), "{domain}");
    assert!(domain["tile_extent"].as_f64().unwrap() > 0.0, "{domain}");
    assert_eq!(bench.count("a"), 500);
}

#[test]
fn arrays_and_datasets_become_folders_of_zarr() {
    let bench = Bench::new();
    bench.write("a.npy", npy(&[3, 4], (0..12).map(|i| i as f32)));
    bench.line("import a.npy a --dims y,x --tile y=2 --tile x=2");
    bench.line("meta set a title 'a small grid'");
    bench.line("export a a.zarr");
    let json = |path: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(bench.path().join(path)).unwrap()).unwrap()
    };
    assert_eq!(
        json("a.zarr/zarr.json")["attributes"]["title"],
        "a small grid"
    );
    let array = json("a.zarr/value/zarr.json");
    assert_eq!(array["shape"], serde_json::json!([3, 4]));
    assert_eq!(array["dimension_names"], serde_json::json!(["y", "x"]));
    let chunk = std::fs::read(bench.path().join("a.zarr/value/c/0/1")).unwrap();
    let cells: Vec<f32> = chunk
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect();
    assert_eq!(cells, [2.0, 3.0, 6.0, 7.0]);
    bench.fails("export a a.zarr", 2, "--force");
    bench.line("export a a.zarr --force");
    // A group as xarray's datasets lie in it: variables with their attributes.
    bench.line("group create g");
    bench.line("meta set g history made");
    bench.line("import a.npy g/value --dims y,x --tile y=3 --tile x=4");
    bench.line("meta set g/value __tiledb_attr.value.units K");
    bench.line("group add g value --name value --relative");
    bench.line("export g g.zarr");
    assert_eq!(json("g.zarr/zarr.json")["attributes"]["history"], "made");
    let attributes = &json("g.zarr/value/zarr.json")["attributes"];
    assert_eq!(*attributes, serde_json::json!({ "units": "K" }));
    bench.fails("export a b.zarr --range y=0", 2, "no selection");
}

/// Sparse cells come once, however many ranges name them.
#[test]
fn cells_that_two_ranges_name_are_salvaged_once() {
    let bench = Bench::new();
    bench.write("a.csv", "x,y,v\n1,0,1\n2,0,2\n3,0,3\n4,0,4\n");
    bench.line("import a.csv a --dims x,y");
    let ranges = "--range x=1:3 --range x=2:4 --range y=0";
    bench.line(&format!("export a whole.csv {ranges}"));
    bench.line(&format!("export a same.csv {ranges} --skip-damaged"));
    let read = |name: &str| std::fs::read_to_string(bench.path().join(name)).unwrap();
    assert_eq!(read("same.csv"), read("whole.csv"));
    assert_eq!(read("same.csv").lines().count(), 5);
    // Ranges of a later side do not come one after another, but row by row.
    bench.write("g.csv", "y,x,v\n0,0,1\n0,3,2\n1,0,3\n1,3,4\n");
    for kind in ["--sparse", "--dense"] {
        bench.line(&format!("import g.csv g{kind} --dims y,x {kind}"));
        let line = format!("export g{kind} - --coords --order row --range x=2:3 --range x=0");
        let whole = bench.line(&format!("{line} --format csv")).out;
        let same = bench
            .line(&format!("{line} --format csv --skip-damaged"))
            .out;
        assert_eq!(same, whole, "{kind}");
    }
    bench.fails(
        "export a other.csv --skip-damaged --order col",
        2,
        "by rows",
    );
}

//! What scripts and people's eyes need: streams, keys, pictures, aggregates of dates, errors as
//! JSON.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use serde_json::Value as Json;
use std::io::Write;
use support::{Bench, npy, words};

#[test]
fn exports_go_to_standard_output() {
    let bench = Bench::new();
    bench.write("a.csv", "id,q\n1,1\n2,2\n");
    bench.line("import a.csv d --dims id");
    let said = bench.line("export d - --format csv");
    assert_eq!(said.out, "id,q\n1,1\n2,2\n");
    assert!(!bench.path().join("-").exists());
    bench.fails("export d -", 2, "names no format");
}

#[test]
fn compressed_files_are_imported() {
    let bench = Bench::new();
    let text = b"id,q\n1,1\n2,2\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text).unwrap();
    bench.write("a.csv.gz", gzip.finish().unwrap());
    bench.write("b.csv.zst", zstd::encode_all(&text[..], 3).unwrap());
    for (file, uri) in [("a.csv.gz", "a"), ("b.csv.zst", "b")] {
        bench.line(&format!("import {file} {uri} --dims id"));
        assert_eq!(bench.line(&format!("cat {uri}")).out.as_bytes(), text);
    }
    bench.write("c.csv.gz", "no gzip");
    bench.fails("import c.csv.gz c", 1, "c.csv.gz");
}

#[test]
fn keys_come_from_the_environment_and_from_commands() {
    let bench = Bench::new();
    let key = "0123456789abcdef0123456789abcdef";
    bench.write("key", key);
    bench.write("a.csv", "id,q\n1,1\n");
    bench.line("import a.csv d --dims id --key-file key");
    bench.fails("cat d", 5, "d");
    bench.fails(
        "cat d --key-env NO_SUCH_VARIABLE_HERE",
        2,
        "NO_SUCH_VARIABLE_HERE",
    );
    if cfg!(unix) {
        assert_eq!(
            bench.line("cat d --key-command 'cat key'").out,
            "id,q\n1,1\n"
        );
        bench.fails("cat d --key-command false", 2, "failed");
        bench.fails("cat d --key-command 'echo short'", 2, "32 bytes");
    }
    let mut command = assert_cmd::Command::cargo_bin("azulejo").unwrap();
    let command = command
        .args(words("cat d --key-env THE_KEY"))
        .env("THE_KEY", key);
    command
        .current_dir(bench.path())
        .assert()
        .success()
        .stdout("id,q\n1,1\n");
}

#[test]
fn errors_are_json_where_output_is() {
    let bench = Bench::new();
    let said = bench.run(&words("info nowhere --json"));
    let error: Json = serde_json::from_str(&said.err).unwrap();
    assert_eq!(error["error"]["exit_code"], 3);
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("nowhere")
    );
    assert_eq!((said.code, said.out.as_str()), (Some(3), ""));
}

#[test]
fn shells_and_man_are_served() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        assert!(
            bench
                .line(&format!("completions {shell}"))
                .out
                .contains("consolidate"),
            "{shell}"
        );
    }
    assert!(bench.line("man").out.contains(".TH azulejo"));
    bench.line("man pages");
    assert!(bench.path().join("pages/azulejo-import.1").exists());
    let version = bench.line("--version").out;
    assert!(
        version.contains("features: ") && version.contains("commit: "),
        "{version}"
    );
    assert!(
        bench
            .line("info --help --color always")
            .out
            .contains("Usage")
    );
}

#[test]
fn pictures_are_slices_in_colours() {
    let bench = Bench::new();
    bench.write("c.npy", npy(&[3, 4, 5], (0..60).map(|i| i as f32)));
    bench.line("import c.npy c");
    bench.fails("export c p.png", 2, "--range dim_0=0");
    bench.line("export c p.png --range dim_1=1 --colours viridis");
    bench.line("export c grey.png --range dim_0=2 --scale 40:60");
    let read = |name: &str| {
        let file = std::fs::File::open(bench.path().join(name)).unwrap();
        let mut reader = png::Decoder::new(std::io::BufReader::new(file))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        (info.width, info.height, info.color_type, pixels)
    };
    let (width, height, colour, pixels) = read("p.png");
    assert_eq!((width, height, colour), (5, 3, png::ColorType::Rgba));
    assert!(
        pixels[0].abs_diff(68) < 5 && pixels[pixels.len() - 4] > 240,
        "{pixels:?}"
    );
    let (width, height, colour, pixels) = read("grey.png");
    assert_eq!(
        (width, height, colour),
        (5, 4, png::ColorType::GrayscaleAlpha)
    );
    assert_eq!((pixels[0], pixels[20]), (0, 128), "{pixels:?}");
    bench.fails("export c q.png --range dim_0=0 --scale 5:1", 2, "not less");
}

#[test]
fn aggregates_of_dates_are_dates_and_labels_have_no_sum() {
    let bench = Bench::new();
    bench.write(
        "g.csv",
        "id,t,c\n1,2024-01-01T00:00:00,red\n2,2024-01-03T00:00:00,blue\n",
    );
    bench.line("import g.csv g --dims id --enumerate c");
    assert_eq!(bench.line("agg g mean:t").out.trim(), "2024-01-02T00:00:00");
    assert_eq!(bench.json("agg g mean:t")["mean:t"], "2024-01-02T00:00:00");
    bench.fails("agg g sum:t", 2, "no sum");
    bench.fails("agg g mean:c", 2, "labels");
    // In the order of the alphabet, whichever came first.
    assert_eq!(bench.line("agg g max:c").out.trim(), "red");
    assert_eq!(bench.json("agg g min:c max:c")["min:c"], "blue");
    let by = bench.line("agg g count max:c --by c").out;
    let rows: Vec<&str> = by
        .lines()
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(rows, ["c", "blue", "red"], "{by}");
}

#[test]
fn wide_real_domains_are_any() {
    let bench = Bench::new();
    bench.write("f.csv", "t,lat,v\n2024-01-01,1.5,1\n2024-01-02,2.5,2\n");
    bench.line("import f.csv f --dims t,lat");
    let schema = bench.line("schema f").out;
    assert!(schema.lines().all(|line| line.len() < 200), "{schema}");
}

#[test]
fn aggregates_of_groups() {
    let bench = Bench::new();
    bench.write(
        "w.csv",
        "id,t,station,v,n\n1,2024-01-01,a,1.0,1\n2,2024-01-20,a,3.0,\n3,2024-02-01,b,NaN,5\n4,2024-02-02,b,5.0,5\n",
    );
    bench.line("import w.csv w --dims id");
    let rows = bench.json("agg w count mean:v sum:n nulls:n max:t distinct:n --by station");
    assert_eq!(rows[0]["station"], "a");
    assert_eq!(
        (&rows[0]["count"], &rows[0]["mean:v"]),
        (&2.into(), &2.0.into())
    );
    assert_eq!(
        (&rows[0]["sum:n"], &rows[0]["nulls:n"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        (&rows[0]["max:t"], &rows[1]["distinct:n"]),
        (&"2024-01-20".into(), &1.into())
    );
    assert_eq!(rows[1]["mean:v"], "NaN");
    let rows = bench.json("agg w mean:v --by station --skip-nan");
    assert_eq!(rows[1]["mean:v"], 5.0);
    let rows = bench.json("agg w count --by t:month,station");
    assert_eq!(
        (&rows[0]["t:month"], &rows[0]["count"]),
        (&"2024-01".into(), &2.into())
    );
    assert_eq!(rows.as_array().unwrap().len(), 2);
    let one = bench.json("agg w stddev:v --where 'station = \"a\"'");
    assert!((one["stddev:v"].as_f64().unwrap() - 2f64.sqrt()).abs() < 1e-12);
    assert!(
        bench
            .line("agg w count --by station")
            .out
            .contains("station")
    );
    bench.fails("agg w mean:station --by id", 2, "no numbers");
    bench.fails("agg w count --by v:month", 2, "no dates");
    bench.fails("agg w middle:v --by id", 2, "stddev");
}

#[test]
fn every_array_of_a_folder_is_maintained() {
    let bench = Bench::new();
    bench.write("a.csv", "id,q\n1,1\n");
    std::fs::create_dir(bench.path().join("data")).unwrap();
    for name in ["data/x", "data/y"] {
        bench.line(&format!("import a.csv {name} --dims id"));
        bench.line(&format!("import a.csv {name} --append"));
    }
    let rows = bench.json("check data --recursive");
    assert_eq!(rows.as_array().unwrap().len(), 2);
    assert_eq!(rows[0]["uri"], "data/x");
    let said = bench.line("consolidate data -r --vacuum");
    assert_eq!(
        said.out.matches("2 fragments became 1").count(),
        2,
        "{}",
        said.out
    );
    assert!(bench.line("vacuum data --recursive").out.contains("data/y"));
    assert_eq!(bench.json("fragments data/x").as_array().unwrap().len(), 1);
    let fragment = std::fs::read_dir(bench.path().join("data/y/__fragments")).unwrap();
    let fragment = fragment.map(|entry| entry.unwrap().path()).next().unwrap();
    std::fs::remove_file(fragment.join("a0.tdb")).unwrap();
    bench.fails("check data --recursive", 4, "1 array of 2 not sound");
    bench.line("group create g");
    bench.line("group add g data/x --name x");
    assert_eq!(bench.json("check g -r").as_array().unwrap().len(), 1);
}

#[test]
fn narrow_terminals_lose_no_column() {
    let bench = Bench::new();
    bench.write("a.csv", "id,q\n1,1\n");
    bench.line("import a.csv d --dims id");
    let mut command = assert_cmd::Command::cargo_bin("azulejo").unwrap();
    let command = command.args(["fragments", "d"]).env("COLUMNS", "60");
    let output = command.current_dir(bench.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let name = bench.json("fragments d")[0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(text.contains(&name), "{text}");
}

#[test]
fn dates_are_whole_days_and_values_lie_between_others() {
    let bench = Bench::new();
    bench.write(
        "w.csv",
        "t,v\n2024-01-02T05:00:00,1\n2024-01-03T05:00:00,NaN\n2024-02-01T00:00:00,3\n",
    );
    bench.line("import w.csv w --dims t");
    let count = |condition: &str| {
        let said = bench.line(&format!("agg w count --where '{condition}'"));
        said.out.trim().parse::<u64>().unwrap()
    };
    for (condition, cells) in [
        ("t <= \"2024-01-02\"", 1),
        ("t < \"2024-01-02\"", 0),
        ("t > \"2024-01-02\"", 2),
        ("t >= \"2024-01-02\"", 3),
        ("t = \"2024-01-02\"", 1),
        ("t != \"2024-01\"", 1),
        ("t = \"2024-01\"", 2),
        ("t = \"2024\"", 3),
        ("t = \"2024-01-02T05:00:00\"", 1),
        ("\"2024-01-02\" < t", 2),
        ("t between \"2024-01-02\" and \"2024-01-03\"", 2),
        ("t not between \"2024-01-02\" and \"2024-01-03\"", 1),
        ("v between 1 and 2 or v = 3", 2),
        ("v is not nan", 2),
    ] {
        assert_eq!(count(condition), cells, "{condition}");
    }
    assert_eq!(
        bench.line("agg w mean:v --where 'v is not nan'").out.trim(),
        "2"
    );
}

#[test]
fn points_come_from_standard_input() {
    let bench = Bench::new();
    bench.write("a.csv", "id,q\n1,1\n2,2\n");
    bench.line("import a.csv d --dims id");
    let mut command = assert_cmd::Command::cargo_bin("azulejo").unwrap();
    let command = command
        .args(["cat", "d", "--points", "-"])
        .write_stdin("id\n2\n");
    command
        .current_dir(bench.path())
        .assert()
        .success()
        .stdout("id,q\n2,2\n");
}

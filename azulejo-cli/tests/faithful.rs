//! What goes in comes out as what it was, or not at all: moments that are none, numbers of other
//! types, rows of several files, names and nulls in Zarr.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use serde_json::{Value as Json, json};
use support::{Bench, words};

/// An `.npy` file of elements of eight bytes.
fn npy(descr: &str, shape: &str, values: &[i64]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let padded = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((padded.len() as u16).to_le_bytes());
    bytes.extend(padded.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

fn csv(bench: &Bench, uri: &str) -> String {
    bench.line(&format!("cat {uri} --format csv")).out
}

fn zarr_json(bench: &Bench, path: &str) -> Json {
    let text = std::fs::read_to_string(bench.path().join(path).join("zarr.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn no_time_is_nothing_in_text() {
    let bench = Bench::new();
    bench.write("a.csv", "v,t\n1,2024-01-01\n2,\n3,2024-01-03\n");
    for (unit, day) in [
        ("SEC", "2024-01-01T00:00:00"),
        ("MS", "2024-01-01T00:00:00"),
        ("US", "2024-01-01T00:00:00"),
        ("NS", "2024-01-01T00:00:00"),
    ] {
        let uri = format!("a_{unit}");
        bench.line(&format!(
            "import a.csv {uri} --required t --type t=DATETIME_{unit}"
        ));
        let text = csv(&bench, &uri);
        assert!(text.contains(&format!("{day}\n")), "{text}");
        assert!(text.lines().any(|line| line.ends_with("2,")), "{text}");
        let text = bench.line(&format!("cat {uri} --format ndjson")).out;
        let second: Json = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        assert_eq!(second["t"], Json::Null, "{text}");
        assert!(!text.contains("ERROR"), "{text}");
        // Neither is it the least of them, nor does it weigh in a mean.
        let of =
            |what: &str| bench.json(&format!("agg {uri} {what}:t"))[format!("{what}:t")].clone();
        for (what, day) in [
            ("min", "2024-01-01"),
            ("max", "2024-01-03"),
            ("mean", "2024-01-02"),
            ("median", "2024-01-02"),
        ] {
            let said = of(what);
            assert!(
                said.as_str().unwrap().starts_with(day),
                "{what} {unit}: {said}"
            );
        }
    }
    bench.write("far.csv", "v,t\n1,@9000000000000000\n");
    bench.line("import far.csv far --type t=DATETIME_SEC");
    for format in ["csv", "ndjson"] {
        let line = format!("cat far --format {format}");
        let said = bench.run(&words(&line));
        assert_ne!(said.code, Some(0), "{}", said.out);
        assert!(said.err.contains("calendar"), "{}", said.err);
        assert!(!said.out.contains("ERROR"), "{}", said.out);
    }
    bench.line("export far far.arrow");
}

#[test]
fn arrays_in_files_become_the_type_and_have_the_shape_of_the_array() {
    let bench = Bench::new();
    bench.write("ns.npy", npy("<M8[ns]", "1,", &[86_400_000_000_000]));
    bench.write("day.npy", npy("<M8[D]", "2,", &[2, i64::MIN]));
    bench.write("int.npy", npy("<i8", "3,", &[1, 2, 300]));
    bench.write("flat.npy", npy("<i8", "2,", &[1, 2]));
    bench.write("square.npy", npy("<i8", "2, 2,", &[1, 2, 3, 4]));
    bench.line("import ns.npy a --domain dim_0=0:9");
    bench.line("import day.npy a --append");
    assert_eq!(
        bench
            .line("cat a --range dim_0=0:2 --json")
            .out
            .matches("1970-01-0")
            .count(),
        2
    );
    assert!(
        bench
            .line("cat a --range dim_0=1:1 --json")
            .out
            .contains("1970-01-03")
    );
    bench.fails("import int.npy a --append", 2, "INT64");
    // Nanoseconds that are no whole day.
    bench.line("import day.npy d --domain dim_0=0:9");
    bench.write("odd.npy", npy("<M8[ns]", "1,", &[5]));
    let said = bench.run(&words("import odd.npy d --append"));
    assert_ne!(said.code, Some(0));
    assert!(
        said.err.contains("not a value of DATETIME_DAY"),
        "{}",
        said.err
    );
    // Shapes.
    bench.line("import flat.npy line --domain dim_0=0:99");
    bench.fails("import square.npy line --append", 2, "2 x 2");
    bench.fails(
        "import flat.npy line --append --offset dim_0=50 --type value=INT8",
        2,
        "",
    );
    bench.line("import square.npy plane");
    bench.fails(
        "import int.npy plane --append --overwrite",
        2,
        "2 dimensions",
    );
    // Types that are asked for.
    bench.line("import int.npy real --type value=FLOAT64");
    assert_eq!(bench.json("agg real sum:value")["sum:value"], json!(303.0));
    bench.line("import int.npy short --type value=INT16");
    assert_eq!(bench.json("agg short max:value")["max:value"], json!(300));
    let said = bench.run(&words("import int.npy byte --type value=INT8"));
    assert_ne!(said.code, Some(0));
    assert!(
        said.err.contains("row 3") && said.err.contains("300"),
        "{}",
        said.err
    );
    bench.line("import int.npy date --type value=DATETIME_DAY");
    assert!(bench.line("cat date --json").out.contains("1970-01-02"));
}

#[test]
fn dense_dimensions_of_another_unit_keep_their_rows() {
    let bench = Bench::new();
    bench.write("a.csv", "D,v\n2024-01-01,1\n2024-01-02,2\n2024-01-03,3\n");
    bench.line("import a.csv hours --dims D --dense --type D=DATETIME_HR");
    assert_eq!(bench.json("agg hours sum:v")["sum:v"], json!(6));
    bench.write("m.csv", "D,v\n2024-01-01,1\n2024-02-01,2\n");
    bench.line("import m.csv months --dims D --dense --type D=DATETIME_MONTH");
    assert_eq!(bench.json("agg months sum:v")["sum:v"], json!(3));
    bench.fails(
        "import a.csv none --dims D --dense --type D=DATETIME_MONTH",
        2,
        "2024-01-03 is not a value of DATETIME_MONTH",
    );
    // Four digits are a year where dates are asked for, and no tick: no row is lost.
    bench.write("y.csv", "D,v\n2019,1\n2020,2\n");
    let said = bench.run(&words(
        "import y.csv years --dims D --dense --type D=DATETIME_YEAR",
    ));
    let kept = said.code == Some(0) && bench.count("years") == 2;
    assert!(said.code != Some(0) || kept, "{}", said.err);
}

/// Two Parquet files that have a row with the same coordinate, and one that has two.
fn files_with_the_same_rows(bench: &Bench) {
    for (name, text) in [
        ("a", "x,v\n1,10\n2,20\n"),
        ("b", "x,v\n2,21\n3,30\n"),
        ("c", "x,v\n4,40\n"),
    ] {
        bench.write(&format!("{name}.csv"), text);
        bench.line(&format!("import {name}.csv of_{name}"));
        bench.line(&format!("export of_{name} {name}.parquet --attrs x,v"));
    }
}

#[test]
fn rows_of_several_files_are_the_same_row() {
    let bench = Bench::new();
    files_with_the_same_rows(&bench);
    let files = "a.parquet b.parquet c.parquet";
    for (wish, value) in [("first", 20), ("last", 21)] {
        bench.line(&format!(
            "import {files} {wish} --dims x --on-duplicate {wish} --at 2024-01-01 --columns x,v"
        ));
        assert_eq!(bench.count(wish), 4);
        let said = bench.line(&format!("cat {wish} --range x=2:2 --json")).out;
        assert!(said.contains(&format!("\"v\":{value}")), "{said}");
    }
    for wish in ["--unique", "--on-duplicate error"] {
        let said = bench.run(&words(&format!(
            "import {files} none --dims x {wish} --columns x,v"
        )));
        assert_ne!(said.code, Some(0), "{wish}");
        let named = said.err.contains("a.parquet, row 2") && said.err.contains("b.parquet, row 1");
        assert!(named, "{}", said.err);
        assert!(!bench.path().join("none").exists());
    }
    // Added to what is there, those of a budget that is too small are not looked for without end.
    bench.line("import c.parquet grown --dims x --unique --columns x,v");
    bench.line("import a.parquet b.parquet grown --append --on-duplicate last --columns x,v");
    assert_eq!(bench.count("grown"), 4);
}

#[test]
fn texts_and_integers_that_do_not_fit_are_errors() {
    let bench = Bench::new();
    bench.write(
        "a.csv",
        "t,n,ok\nyes,18446744073709551615,true\nmaybe,1,FALSE\nx,2,1\n",
    );
    bench.line("import a.csv a --type ok=STRING_ASCII --type t=STRING_ASCII --enumerate none");
    bench.line("export a a.parquet");
    let no = |line: &str, says: &str| {
        let said = bench.run(&words(line));
        assert_ne!(said.code, Some(0), "{line}");
        assert!(said.err.contains(says), "{line}: {}", said.err);
    };
    no("import a.parquet b --columns t --type t=BOOL", "yes");
    no(
        "import a.parquet b --columns n --type n=DATETIME_MS",
        "18446744073709551615",
    );
    bench.line("import a.parquet b --columns ok --type ok=BOOL");
    let said = csv(&bench, "b");
    let truths: Vec<&str> = said
        .lines()
        .skip(1)
        .map(|l| l.rsplit(',').next().unwrap())
        .collect();
    assert_eq!(truths, ["true", "false", "true"]);
}

#[test]
fn formats_with_flags_keep_the_time_of_day() {
    let bench = Bench::new();
    bench.write("a.csv", "t\n01.02.2024 3:04\n");
    bench.line("import a.csv a --date-format '%d.%m.%Y %-H:%M'");
    assert!(csv(&bench, "a").contains("2024-02-01T03:04:00"));
}

#[test]
fn a_group_that_cannot_be_looked_into_is_a_row_with_an_error() {
    let bench = Bench::new();
    bench.write("a.csv", "v\n1\n");
    bench.line("import a.csv a");
    bench.line("group create inner");
    bench.line("group create g");
    bench.line("group add g a --name a");
    bench.line("group add g inner --name inner");
    std::fs::remove_dir_all(bench.path().join("inner")).unwrap();
    for command in ["check", "vacuum"] {
        let said = bench.run(&words(&format!("{command} g --recursive --json")));
        assert_ne!(said.code, Some(0), "{command}: {}", said.out);
        let rows: Json = serde_json::from_str(&said.out).unwrap();
        let wrong = rows
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| !row["error"].is_null());
        assert_eq!(wrong.count(), 1, "{rows}");
    }
}

#[test]
fn an_open_quote_does_not_go_on_in_the_next_file() {
    let bench = Bench::new();
    bench.write("a.csv", "n,s\n1,x\n2,\"open\n");
    bench.write("b.csv", "n,s\n3,y\n4,\"closed\"\n5,z\n");
    let said = bench.run(&words("import a.csv b.csv ab"));
    assert_ne!(said.code, Some(0));
    let named = said.err.contains("a.csv, line 3") && said.err.contains("no closing quote");
    assert!(named, "{}", said.err);
    // Those that are closed go on over lines.
    bench.write("a.csv", "n,s\n1,x\n2,\"two\nlines\"");
    bench.line("import a.csv b.csv ok");
    assert_eq!(bench.count("ok"), 5);
}

#[test]
fn labels_may_look_like_numbers() {
    let bench = Bench::new();
    bench.write("a.csv", "s,v\none,1\ntwo,2\n");
    bench.line("import a.csv a --enumerate s");
    bench.write("b.csv", "s,v\n3,3\n2024-01-01,4\n");
    bench.write("c.csv", "s,v\n5,5\n6,6\n");
    bench.line("import b.csv a --append");
    bench.line("import c.csv a --append");
    let said = csv(&bench, "a");
    let labels: Vec<&str> = said
        .lines()
        .skip(1)
        .filter_map(|l| l.split(',').next())
        .collect();
    assert_eq!(labels, ["one", "two", "3", "2024-01-01", "5", "6"]);
}

#[test]
fn names_are_given_once_and_roundings_are_said() {
    let bench = Bench::new();
    bench.write("a.csv", "1,2,3\n");
    bench.fails("import a.csv a --no-header --names x,x,y", 2, "\"x\"");
    bench.write("r.csv", "n,m\n9007199254740993,1\n0.5,2.5\n");
    let said = bench.line("import r.csv r");
    assert!(
        said.err.contains("\"n\" holds integers beside reals"),
        "{}",
        said.err
    );
    assert!(!said.err.contains("\"m\" holds"), "{}", said.err);
}

#[test]
fn groups_become_folders_of_their_own() {
    let bench = Bench::new();
    for (name, value) in [("a", 1), ("b", 2)] {
        bench.write("x.csv", format!("v\n{value}\n{value}\n"));
        bench.line(&format!("import x.csv {name}"));
    }
    bench.line("group create g");
    bench.line("group add g a --name first");
    bench.line("group add g b --name second");
    bench.line("export g g.zarr");
    let there = |path: &str| bench.path().join(path).exists();
    assert!(there("g.zarr/first/zarr.json") && there("g.zarr/second/zarr.json"));
    assert!(!there("g.zarr/v"));
    bench.write("x.csv", "../../v\n1\n");
    bench.line("import x.csv out");
    bench.fails("export out out.zarr", 2, "../../v");
    assert!(!there("v") && !there("out.zarr"));
}

#[test]
fn nulls_and_labels_are_told_in_zarr() {
    let bench = Bench::new();
    bench.write("a.csv", "n,s,r\n1,one,0.5\n,two,\n3,one,1.5\n");
    bench.line("import a.csv a --enumerate s --nullable r");
    let said = bench.line("export a a.zarr");
    assert!(said.err.contains("flag_meanings"), "{}", said.err);
    assert!(!said.err.contains("stands for null"), "{}", said.err);
    let numbers = zarr_json(&bench, "a.zarr/n");
    assert_eq!(numbers["attributes"]["_FillValue"], numbers["fill_value"]);
    assert_eq!(numbers["fill_value"], json!(i64::MIN));
    assert!(zarr_json(&bench, "a.zarr/r")["attributes"]["_FillValue"].is_string());
    let labels = zarr_json(&bench, "a.zarr/s");
    assert_eq!(labels["attributes"]["flag_values"], json!([0, 1]));
    assert_eq!(labels["attributes"]["flag_meanings"], "one two");
    // A value that is the one for null.
    bench.write("b.csv", format!("n\n1\n{}\n\n", i64::MIN));
    bench.line("import b.csv b --nullable n");
    let said = bench.line("export b b.zarr");
    assert!(said.err.contains("stands for null"), "{}", said.err);
    // Members of groups, and version 2.
    bench.line("group create g");
    bench.line("group add g a --name a");
    bench.line("export g g.zarr");
    assert!(zarr_json(&bench, "g.zarr/n")["attributes"]["_FillValue"].is_number());
    bench.line("export a a2.zarr --format zarr2");
    let text = std::fs::read_to_string(bench.path().join("a2.zarr/n/.zarray")).unwrap();
    let old: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(old["fill_value"], json!(i64::MIN));
}

#[test]
fn ticks_of_fine_times_are_no_years() {
    let bench = Bench::new();
    bench.write("t.csv", "id,t\n1,1969\n2,1970\n3,2020\n");
    bench.line("import t.csv t --dims id --type t=DATETIME_PS");
    bench.line("export t back.csv");
    let back = std::fs::read_to_string(bench.path().join("back.csv")).unwrap();
    assert_eq!(back, "id,t\n1,1969\n2,1970\n3,2020\n");
    bench.line("import back.csv again --dims id --type t=DATETIME_PS");
    assert_eq!(bench.line("cat again").out, bench.line("cat t").out);
}

#[test]
fn both_zeros_are_one_coordinate() {
    let bench = Bench::new();
    bench.write("z.csv", "x,v\n0.0,1\n-0.0,2\n5.5,3\n");
    for (wish, v) in [("first", 1), ("last", 2)] {
        bench.line(&format!(
            "import z.csv {wish} --dims x --unique --on-duplicate {wish}"
        ));
        let rows = bench.line(&format!("cat {wish} --attrs v")).out;
        assert!(rows.contains(&format!("{v}\n")), "{rows}");
        assert_eq!(bench.count(wish), 2);
    }
}

/// The fill value of CHAR is no UTF-8, and lies under nulls and in cells that nobody wrote.
#[test]
fn text_is_bytes_only_where_somebody_wrote_bytes() {
    let bench = Bench::new();
    bench.write("a.csv", "x,c,n\n0,ab,ab\n9,c,c\n");
    bench.line("import a.csv a --dims x --dense --type c=CHAR --type n=CHAR --nullable n");
    for command in ["cat a --format csv", "export a - --format csv"] {
        let said = bench.line(&format!("{command} --range x=0:1 --coords"));
        assert_eq!(said.out, "x,c,n\n0,ab,ab\n1,,\n", "{command}");
        assert!(!said.err.contains("bytes"), "{}", said.err);
    }
    let text = bench.line("cat a --range x=0:1 --format ndjson").out;
    assert_eq!(
        text,
        "{\"c\":\"ab\",\"n\":\"ab\"}\n{\"c\":null,\"n\":null}\n"
    );
    bench.line("export a a.parquet --range x=0:1 --coords");
    bench.line("import a.parquet again --dims x");
    assert_eq!(csv(&bench, "again"), "x,c,n\n0,ab,ab\n1,,\n");
    // Where there are other bytes all of the column is bytes, of streams too.
    bench.write("b.csv", b"x,c\n0,\xff\n1,a\n5,b\n");
    bench.line("import b.csv b --dims x --dense --type c=CHAR");
    for command in ["cat b --format csv", "export b - --format csv"] {
        let said = bench.line(&format!("{command} --range x=0:2 --coords"));
        assert_eq!(said.out, "x,c\n0,ff\n1,61\n2,80\n", "{command}");
        assert!(said.err.contains("\"c\" holds text"), "{}", said.err);
    }
}

/// Text of a fixed length is filled up with zeros, which are none of it.
#[test]
fn text_of_fixed_length_ends_where_it_ends() {
    let bench = Bench::new();
    bench.write("f.csv", "c\nab\nabc\n\"\"\n");
    bench.line("import f.csv f --type c=CHAR[3]");
    assert_eq!(csv(&bench, "f"), "c\nab\nabc\n\"\"\n");
    assert_eq!(
        bench.line("cat f --format ndjson --limit 1").out,
        "{\"c\":\"ab\"}\n"
    );
    let table = bench.line("cat f --format table").out;
    assert!(table.contains("ab") && !table.contains("0x"), "{table}");
    let groups = bench.json("agg f count --by c");
    assert_eq!(groups[1]["c"], "ab");
    assert_eq!(
        bench.line("cat f --where 'c in (\"ab\")' --format csv").out,
        "c\nab\n\n\n"
    );
    bench.line("export f f.parquet");
    bench.line("import f.parquet again");
    let raw = |uri: &str| {
        bench
            .line(&format!("cat {uri} --raw --format csv --attrs c"))
            .out
    };
    assert_eq!(raw("again"), raw("f"));
}

#[test]
fn sums_of_groups_are_whole_as_those_of_all_cells() {
    let bench = Bench::new();
    bench.write("u.csv", "k,u\na,18446744073709551610\na,5\nb,1\n");
    bench.line("import u.csv u");
    let all = bench.json("agg u sum:u --range row=0:1");
    assert_eq!(all["sum:u"], json!(u64::MAX));
    let groups = bench.json("agg u sum:u --by k");
    assert_eq!(groups[0]["sum:u"], json!(u64::MAX));
    assert_eq!(groups[1]["sum:u"], 1);
}

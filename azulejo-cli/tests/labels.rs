//! Labels of dimensions: from files, in selections and as columns.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use support::{Bench, npy};

fn weather() -> Bench {
    let bench = Bench::new();
    bench.write("t.npy", npy(&[3, 4], (0..12).map(|i| i as f32)));
    bench.write("lat.npy", npy(&[3], [60.0, 50.0, 40.0].into_iter()));
    bench.write("lon.csv", "lon\n5.5\n6.5\n7.5\n8.5\n");
    bench.line("import t.npy t --dims y,x --label lat=lat.npy --label x:lon=lon.csv");
    bench
}

#[test]
fn selections_by_label_in_either_order() {
    let bench = weather();
    let cells = |options: &str| bench.line(&format!("cat t {options}")).out;
    // Descending labels: from 45 to 60 are the first two rows.
    assert_eq!(
        cells("--range lat=45:60 --range lon=:6"),
        "value\n0.0\n4.0\n"
    );
    assert_eq!(cells("--range lat=40 --range lon=8:9"), "value\n11.0\n");
    assert_eq!(
        cells("--nearest lat=48.7 --nearest lon=7.9"),
        "value\n6.0\n"
    );
    assert_eq!(
        cells("--nearest lat=-90 --nearest lon=100"),
        "value\n11.0\n"
    );
    bench.fails("cat t --nearest y=1", 2, "y");
    bench.fails("cat t --nearest lat=north", 2, "lat");
}

#[test]
fn labels_are_columns() {
    let bench = weather();
    let said = bench.line("cat t --labels --range y=1 --range x=2:3");
    assert_eq!(
        said.out,
        "y,lat,x,lon,value\n1,50.0,2,7.5,6.0\n1,50.0,3,8.5,7.0\n"
    );
    bench.line("export t out.ndjson --labels --range y=0 --range x=0");
    let text = std::fs::read_to_string(bench.path().join("out.ndjson")).unwrap();
    assert_eq!(
        text,
        "{\"y\":0,\"lat\":60.0,\"x\":0,\"lon\":5.5,\"value\":0.0}\n"
    );
    assert!(
        bench
            .line("cat t --labels --format table")
            .out
            .contains("lat")
    );
}

#[test]
fn labels_that_do_not_fit_leave_nothing() {
    let bench = weather();
    let import = "import t.npy u --dims y,x";
    bench.write("five.npy", npy(&[5], (0..5).map(|i| i as f32)));
    bench.fails(&format!("{import} --label a=five.npy"), 2, "5 values");
    bench.fails(
        &format!("{import} --label x:lat=lat.npy"),
        2,
        "4 coordinates",
    );
    bench.fails(&format!("{import} --label lat"), 2, "NAME=FILE");
    bench.write("two.csv", "a,b\n1,2\n");
    bench.fails(&format!("{import} --label a=two.csv"), 2, "2 columns");
    assert!(!bench.path().join("u").exists());
}

#[test]
fn a_label_is_added_to_an_array_that_is_there() {
    let bench = weather();
    bench.line("import t.npy u --dims y,x");
    bench.line("snapshot create u bare");
    let plan = bench.line("evolve u --add-label lat=lat.npy --dry-run").out;
    assert!(plan.contains("lat"), "{plan}");
    bench.fails("cat u --range lat=40", 2, "lat");
    bench.line("evolve u --add-label lat=lat.npy --add-label x:lon=lon.csv");
    for select in [
        "--range lat=45:60 --range lon=:6",
        "--nearest lat=48.7 --labels",
    ] {
        let of = |uri: &str| bench.line(&format!("cat {uri} {select}")).out;
        assert_eq!(of("u"), of("t"), "{select}");
    }
    // Not before.
    bench.fails("cat u@bare --range lat=40", 2, "lat");
    assert_eq!(bench.line("cat u@bare").out, bench.line("cat t").out);
    bench.line("check u --deep --fail-on warning");
    // What does not fit changes nothing.
    bench.write("five.npy", npy(&[5], (0..5).map(|i| i as f32)));
    bench.fails("evolve u --add-label a=five.npy", 2, "5 values");
    bench.fails("evolve u --add-label lat=lat.npy", 2, "named \"lat\"");
    bench.fails("evolve u --add-label y:x=lat.npy", 2, "named \"x\"");
    // Neither does what else is asked for at once.
    bench.fails(
        "evolve u --add-attr 'q UINT8' --add-label lat=lat.npy",
        2,
        "named \"lat\"",
    );
    assert!(!bench.line("schema u").out.contains("UINT8"));
    bench.fails(
        "evolve u --add-label b=lat.npy --add-label c=lat.npy --at 2999-01-01",
        2,
        "--at",
    );
    bench.line("check u --deep --fail-on warning");
    bench.line("import lon.csv points --dims lon");
    bench.fails("evolve points --add-label lon:a=lon.csv", 2, "a");
}

#[test]
fn labels_of_text_come_from_every_file() {
    let bench = Bench::new();
    bench.write("t.npy", npy(&[3], (0..3).map(|i| i as f32)));
    let header = |kind: &str| {
        let mut text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': (3,), }}");
        while (text.len() + 11) % 64 != 0 {
            text.push(' ');
        }
        text.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(u16::try_from(text.len()).unwrap().to_le_bytes());
        bytes.extend(text.bytes());
        bytes
    };
    let names = ["a", "bb", "c"];
    let padded = |name: &str| format!("{name:\0<2}");
    let bytes = names.iter().flat_map(|name| padded(name).into_bytes());
    bench.write("bytes.npy", [header("|S2"), bytes.collect()].concat());
    let points = names.iter().flat_map(|name| {
        let points: Vec<u32> = padded(name).chars().map(u32::from).collect();
        points.into_iter().flat_map(u32::to_le_bytes)
    });
    bench.write("text.npy", [header("<U2"), points.collect()].concat());
    bench.write("text.csv", "name\na\nbb\nc\n");
    for file in ["bytes.npy", "text.npy", "text.csv"] {
        bench.line(&format!(
            "import t.npy {file}.array --dims x --label name={file}"
        ));
        let cells = bench
            .line(&format!("cat {file}.array --labels --range name=b:c"))
            .out;
        assert_eq!(cells, "x,name,value\n1,bb,1.0\n2,c,2.0\n", "{file}");
        bench.line(&format!("import t.npy {file}.later --dims x"));
        bench.line(&format!("evolve {file}.later --add-label name={file}"));
        let later = bench
            .line(&format!("cat {file}.later --labels --range name=b:c"))
            .out;
        assert_eq!(later, cells, "{file}");
    }
}

#[test]
fn the_nearest_of_ticks_is_told_to_the_last() {
    let bench = Bench::new();
    bench.write("t.csv", "x,v\n0,1\n1,2\n2,3\n");
    let tick = |late: &str| format!("2024-05-01T10:00:00.000000{late}");
    let labels = ["000", "050", "100"].map(tick).join("\n");
    bench.write("when.csv", format!("when\n{labels}\n"));
    bench.line("import t.csv t --dims x --dense --label when=when.csv");
    for (late, v) in [("000", 1), ("050", 2), ("074", 2), ("075", 2), ("076", 3)] {
        let near = tick(late);
        let found = bench.line(&format!("cat t --nearest when={near}")).out;
        assert_eq!(found, format!("v\n{v}\n"), "{near}");
    }
}

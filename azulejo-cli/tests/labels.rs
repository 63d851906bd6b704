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

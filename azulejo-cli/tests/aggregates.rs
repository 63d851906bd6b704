//! Shares, histograms and groups by time.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use serde_json::Value as Json;
use support::Bench;

fn bench() -> Bench {
    let bench = Bench::new();
    let rows: String = (0..1000u32)
        .map(|i| {
            let v = i * 37 % 1000;
            let kind = if i % 2 == 0 { "even" } else { "odd" };
            format!(
                "{i},{v},{}.5,{kind},2024-01-01T{:02}:{:02}:00\n",
                v,
                i / 60,
                i % 60
            )
        })
        .collect();
    bench.write("a.csv", format!("id,v,r,kind,t\n{rows}"));
    bench.line("import a.csv a --dims id --enumerate kind");
    bench
}

#[test]
fn percentiles_lie_between_values() {
    let bench = bench();
    let found = bench.json("agg a median:v p0:v p25:v p100:v median:r p50:t");
    assert_eq!(found["median:v"], 499.5);
    assert_eq!(found["p0:v"], 0.0);
    assert_eq!(found["p25:v"], 249.75);
    assert_eq!(found["p100:v"], 999.0);
    assert_eq!(found["median:r"], 500.0);
    assert_eq!(found["p50:t"], "2024-01-01T08:19:30");
    let groups = bench.json("agg a count median:v --by kind");
    assert_eq!(groups.as_array().unwrap().len(), 2);
    bench.fails("agg a median:kind", 2, "no numbers");
    bench.fails("agg a stddev:t", 2, "no numbers");
    bench.fails("agg a p101:v", 2, "p95");
    let said = bench.run(&["agg", "a", "median:v", "distinct:v", "--memory", "64KiB"]);
    assert!(
        said.code != Some(0) && said.err.contains("memory"),
        "{}",
        said.err
    );
}

#[test]
fn histograms_are_drawn_and_told() {
    let bench = bench();
    let found = bench.json("agg a histogram:v --bins 4");
    let counts: Vec<u64> = found["histogram:v"]["counts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|count| count.as_u64().unwrap())
        .collect();
    assert_eq!(counts.len(), 4);
    assert_eq!(counts.iter().sum::<u64>(), 1000);
    assert_eq!(found["histogram:v"]["edges"][0], 0.0);
    let said = bench.line("agg a histogram:v --bins 4").out;
    assert_eq!(said.lines().count(), 4);
    assert!(said.lines().all(|line| line.contains('█')), "{said}");
    let said = bench.line("agg a count histogram:r --by kind --bins 8").out;
    assert!(said.contains("even") && said.contains('█'), "{said}");
    let dates = bench.json("agg a histogram:t --bins 2");
    assert_eq!(dates["histogram:t"]["edges"][0], "2024-01-01T00:00:00");
    assert!(
        bench
            .line("agg a histogram:v --where 'v > 5000'")
            .out
            .contains("no values")
    );
}

#[test]
fn cells_are_grouped_by_their_time() {
    let bench = bench();
    let hours = bench.json("agg a count min:v --by t:hour");
    let hours = hours.as_array().unwrap();
    assert_eq!(hours.len(), 17);
    assert_eq!(hours[0]["t:hour"], "2024-01-01T00");
    assert_eq!(
        (&hours[0]["count"], &hours[16]["count"]),
        (&60.into(), &40.into())
    );
    let minutes = bench.json("agg a count --by t:minute --where 't < 2024-01-01T00:03'");
    assert_eq!(minutes.as_array().unwrap().len(), 3);
}

/// What nobody has written is in no group and has no values, but `count` of all counts it, as without
/// groups; what equals the fill value and was written has one.
#[test]
fn groups_have_the_written_cells_of_a_dense_array() {
    let bench = Bench::new();
    let cells = "x,y,v,small\n0,0,-2147483648,1\n0,1,5,2\n1,0,7,255\n1,1,5,4\n";
    bench.write("d.csv", cells);
    bench.line(
        "import d.csv d --dims x,y --dense --domain x=0:9 --domain y=0:9 --type v=INT32 --type small=UINT8",
    );
    let schema = bench.json("schema d");
    let fill = &schema["attributes"][0]["fill_value"];
    assert_eq!(fill, -2_147_483_648_i64, "{schema}");
    let plain = bench.json("agg d count sum:v min:v max:small --range x=0:4");
    let read = bench.json("agg d count sum:v min:v max:small distinct:v --range x=0:4");
    // Along y as far as something was written.
    assert_eq!(plain["count"], 10);
    for name in ["count", "sum:v", "min:v", "max:small"] {
        assert_eq!(plain[name], read[name], "{name}");
    }
    assert_eq!(read["distinct:v"], 3);
    assert_eq!(
        (&read["min:v"], &read["max:small"]),
        (&(-2_147_483_648_i64).into(), &255.into())
    );
    let rows = bench.json("agg d count min:v sum:small --by x");
    let expected = serde_json::json!([
        {"x": "0", "count": 2, "min:v": -2_147_483_648_i64, "sum:small": 3},
        {"x": "1", "count": 2, "min:v": 5, "sum:small": 259},
    ]);
    assert_eq!(rows, expected);
    // Cells that do not meet a condition are in no group either.
    let fives = bench.json("agg d count sum:small --by v --where 'v > 0'");
    let expected = serde_json::json!([
        {"v": "5", "count": 2, "sum:small": 6},
        {"v": "7", "count": 1, "sum:small": 255},
    ]);
    assert_eq!(fives, expected);
    let some = bench.json("agg d count distinct:v --where 'v > 0'");
    assert_eq!(
        (&some["count"], &some["distinct:v"]),
        (&3.into(), &2.into())
    );
}

#[test]
fn groups_are_as_many_as_memory_has_room_for() {
    let bench = Bench::new();
    let rows: String = (0..20_000).map(|i| format!("{i},{i}\n")).collect();
    bench.write("many.csv", format!("id,v\n{rows}"));
    bench.line("import many.csv many --dims id");
    bench.fails("agg many count mean:v --by v --memory 1MiB", 2, "--by v");
    let all = bench.json("agg many count --by v --memory 64MiB");
    assert_eq!(all.as_array().unwrap().len(), 20_000);
}

#[test]
fn years_before_the_first_are_years() {
    let bench = Bench::new();
    bench.write(
        "old.csv",
        "t,v\n-0221-01-01,1\n-0221-07-01,2\n0099-01-01,3\n",
    );
    bench.line("import old.csv old --dims t --type t=DATETIME_DAY");
    let years = bench.json("agg old count --by t:year");
    let years: Vec<_> = years
        .as_array()
        .unwrap()
        .iter()
        .map(|year| {
            (
                year["t:year"].as_str().unwrap(),
                year["count"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(years, [("-0221", 2), ("0099", 1)]);
    let shown = bench.line("cat old --range t=-0221-07-01").out;
    assert!(shown.contains("-0221-07-01,2"), "{shown}");
}

#[test]
fn both_zeros_are_one_group() {
    let bench = Bench::new();
    bench.write("zeros.csv", "id,r\n1,0.0\n2,-0.0\n3,1.5\n");
    bench.line("import zeros.csv zeros --dims id");
    let groups = bench.json("agg zeros count --by r");
    assert_eq!(groups.as_array().unwrap().len(), 2);
    assert_eq!(bench.json("agg zeros distinct:r")["distinct:r"], 2);
}

#[test]
fn fields_may_have_colons_in_their_names() {
    let bench = Bench::new();
    bench.write(
        "a.csv",
        "lon:deg,t\n5,2024-01-01\n5,2024-02-01\n6,2025-01-01\n",
    );
    bench.line("import a.csv a");
    let groups = bench.json("agg a sum:lon:deg --by lon:deg");
    assert_eq!(groups[0]["sum:lon:deg"], 10);
    assert_eq!(bench.json("agg a count --by t:year")[0]["count"], 2);
    bench.fails("agg a count --by t:day:x", 2, "grouped by year");
}

/// Sums of no cells are alike, wherever there are none.
#[test]
fn the_sum_of_nothing_is_nought_or_null() {
    let bench = Bench::new();
    bench.write("a.csv", "x,v,n\n1,1,1\n");
    for dense in ["", "--dense --domain x=0:9"] {
        let schema = bench.json(&format!(
            "import a.csv a --dims x {dense} --type v=INT32 --type n=INT32 --nullable n --dry-run"
        ));
        bench.write("s.json", schema.to_string());
        let array = if dense.is_empty() { "sparse" } else { "dense" };
        bench.line(&format!("create --schema s.json {array}"));
        for flags in ["", " --skip-nan"] {
            let found = bench.json(&format!("agg {array} count sum:v sum:n min:v{flags}"));
            let expected = serde_json::json!({
                "count": 0, "sum:v": 0, "sum:n": null, "min:v": null,
            });
            assert_eq!(found, expected, "{dense}{flags}");
        }
    }
}

#[test]
fn a_group_of_nulls_is_null() {
    let bench = Bench::new();
    bench.write("a.csv", "s,v\nnull,1\n,2\nx,3\n");
    bench.line("import a.csv a");
    let groups = bench.json("agg a sum:v --by s");
    let keys: Vec<&Json> = groups.as_array().unwrap().iter().map(|g| &g["s"]).collect();
    assert_eq!(keys, [&Json::Null, &"null".into(), &"x".into()]);
}

//! Shares, histograms and groups by time.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

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

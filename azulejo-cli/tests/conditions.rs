//! Conditions as text: NaN, patterns, dates without quotes; deletes that can be stored.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use support::Bench;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write(
        "w.csv",
        "t,v,name,kind\n2024-01-02T05:00:00,1,apple,red\n2024-01-03T05:00:00,NaN,apricot,green\n2024-02-01T00:00:00,3,plum 100%,red\n",
    );
    bench.line("import w.csv w --dims t --enumerate kind");
    bench
}

#[test]
fn conditions_mean_what_they_say() {
    let bench = bench();
    for (condition, cells) in [
        ("v is nan", 1),
        ("not v is nan", 2),
        ("name like \"ap%\"", 2),
        ("name not like \"ap%\"", 1),
        ("name like \"%p%e\"", 1),
        ("name like \"%\\%\"", 1),
        ("name like \"%!%\" escape \"!\"", 1),
        ("name like \"_p%\"", 2),
        ("kind like \"r_d\"", 2),
        ("t = 2024-01-02", 1),
        ("t <= 2024-01", 2),
        ("t > 2024-01", 1),
        ("t between 2024-01-02 and 2024-01-03", 2),
        ("t in (2024-01-02, 2024-02)", 2),
        ("t = 2024", 3),
        ("t = 2024-01-02T05", 1),
        ("t >= 2024-01-03T05:00:00Z", 2),
    ] {
        let said = bench.line(&format!("agg w count --where '{condition}'"));
        assert_eq!(said.out.trim(), cells.to_string(), "{condition}");
    }
    bench.fails(
        "agg w count --where 'name = 2024-01-02'",
        2,
        "write it in quotes",
    );
    bench.fails("agg w count --where 'kind is nan'", 2, "null");
}

#[test]
fn dates_before_the_first_year_are_all_of_their_time_too() {
    let bench = Bench::new();
    bench.write(
        "w.csv",
        "t,v\n-0044-03-15T12:00:00,1\n-0044-12-31T23:59:59,2\n-0043-01-01T00:00:00,3\n2024-01-01T00:00:00,4\n",
    );
    bench.line("import w.csv w --dims t");
    for (condition, cells) in [
        ("t = -0044-03-15", 1),
        ("t = \"-0044-03-15\"", 1),
        ("t <= -0044-03", 1),
        ("t > -0044-12", 2),
        ("t = \"-0044\"", 2),
        ("t in (-0044-03-15, 2024)", 2),
        ("t >= -0044-12-31T23:59:59 and t < 2024-01-01", 2),
        ("-0043-01 < t", 1),
    ] {
        let said = bench.line(&format!("agg w count --where '{condition}'"));
        assert_eq!(said.out.trim(), cells.to_string(), "{condition}");
    }
}

#[test]
fn deletes_store_what_they_can_say() {
    let bench = bench();
    bench.fails("delete w --where 'v is nan'", 2, "comparisons only");
    bench.fails(
        "delete w --where 'name like \"%p%\"'",
        2,
        "comparisons only",
    );
    assert_eq!(bench.count("w"), 3);
    bench.line("delete w --where 'name like \"apr%\"'");
    assert_eq!(bench.count("w"), 2);
    bench.line("delete w --where 't = 2024-01-02'");
    assert_eq!(
        bench.line("cat w --attrs name").out,
        "t,name\n2024-02-01T00:00:00,plum 100%\n"
    );
}

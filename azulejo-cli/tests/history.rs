//! What was: history, restoring, copies of earlier times, named snapshots.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use support::{Bench, npy};

/// Three writes, a delete and an evolution, at the times 1 to 5.
fn sparse(bench: &Bench, flags: &str) {
    bench.write("a.csv", "id,q\n1,1\n2,2\n");
    bench.line(&format!("import a.csv d --dims id --at 1 {flags}"));
    bench.write("b.csv", "id,q\n2,20\n3,3\n");
    bench.line("import b.csv d --append --at 2");
    bench.line("meta set d unit mm");
    bench.line("delete d --where 'q = 3' --at 3");
    bench.line("evolve d --add-attr 'w INT32 nullable' --at 4");
    bench.write("c.csv", "id,q,w\n4,4,4\n");
    bench.line("import c.csv d --append --at 5");
}

#[test]
fn history_tells_all_in_order() {
    let bench = Bench::new();
    sparse(&bench, "--unique");
    let events = bench.json("history d");
    let what: Vec<&str> = events
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["what"].as_str().unwrap())
        .collect();
    assert_eq!(
        what,
        [
            "creation",
            "write",
            "write",
            "delete",
            "evolution",
            "write",
            "metadata"
        ]
    );
    assert_eq!(events[3]["detail"], "q = 3");
    assert_eq!(events[4]["detail"], "+attribute w");
    assert_eq!(events[2]["cells"], 2);
    bench.line("consolidate d");
    let text = bench.line("history d").out;
    assert!(
        text.contains("consolidation") && text.contains("write, replaced"),
        "{text}"
    );
}

/// A delete is told by the attributes of its time, whatever came in their place.
#[test]
fn deletes_are_told_as_they_were_meant() {
    let bench = Bench::new();
    bench.write("a.csv", "id,q,r\n1,0.25,5\n2,2.5,6\n");
    bench.line("import a.csv a --dims id --type q=FLOAT64 --type r=INT32 --at 1");
    bench.line("delete a --where 'q < 0.5 or r = 6' --at 2");
    bench.line("evolve a --drop-attr q --drop-attr r --add-attr 's INT8' --at 3");
    bench.line("evolve a --add-attr 'q STRING_UTF8 var' --at 4");
    let events = bench.json("history a");
    let mut events = events.as_array().unwrap().iter();
    let delete = events.find(|event| event["what"] == "delete").unwrap();
    let detail = delete["detail"].as_str().unwrap();
    assert!(
        detail.contains("q < 0.5") && detail.contains("r = 6"),
        "{detail}"
    );
}

#[test]
fn sparse_arrays_are_restored_as_a_new_change() {
    for flags in ["--unique", ""] {
        let bench = Bench::new();
        sparse(&bench, flags);
        // Cells of equal coordinates have no order.
        let at = |bench: &Bench, time: &str| -> Vec<String> {
            let text = bench.line(&format!("cat d --attrs id,q {time}")).out;
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let (then, now) = (at(&bench, "--at 2"), at(&bench, ""));
        assert_ne!(then, now);
        let dry = bench.line("restore d --at 2 --dry-run").out;
        assert!(dry.contains("would be as it was"), "{dry}");
        assert_eq!(at(&bench, ""), now);
        bench.line("restore d --at 2");
        assert_eq!(at(&bench, ""), then, "{flags}");
        // What was added since reads as nothing; the time before the restoration reads as before.
        assert_eq!(
            bench.line("agg d nulls:w").out.trim(),
            (then.len() - 1).to_string()
        );
        assert_eq!(at(&bench, "--at 5"), now);
        assert!(bench.line("check d --deep").out.contains("all is well"));
        // A restoration is undone by another.
        bench.line("restore d --at 5");
        assert_eq!(at(&bench, ""), now, "{flags}");
        // To nothing and back.
        bench.line("consolidate d");
        assert_eq!(at(&bench, ""), now, "{flags}");
    }
}

#[test]
fn dense_arrays_and_key_values_are_restored() {
    let bench = Bench::new();
    bench.write("a.npy", npy(&[3, 2], (0..6).map(|i| i as f32)));
    bench.line(
        "import a.npy a --at 1 --domain dim_0=0:9 --domain dim_1=0:9 --tile dim_0=4 --tile dim_1=4",
    );
    bench.line("meta set a unit mm");
    let first = bench.line("cat a --coords").out;
    bench.write("b.npy", npy(&[2, 3], (0..6).map(|i| 90.0 + i as f32)));
    bench.line("snapshot create a before");
    std::thread::sleep(std::time::Duration::from_millis(5));
    bench.line("import b.npy a --append --overwrite");
    bench.line("meta set a unit cm");
    bench.line("meta set a more yes");
    let second = bench.line("cat a --coords").out;
    // Not those of its domain, nor of its tiles.
    let planned = bench.json("restore a --at before --dry-run");
    assert_eq!(planned["cells"], 6, "{planned}");
    let said = bench.line("restore a --at before");
    assert!(said.out.ends_with(": 6 cells\n"), "{}", said.out);
    assert!(
        said.err.contains("more") && said.err.contains("unit"),
        "{}",
        said.err
    );
    assert_eq!(bench.line("meta a unit").out.trim(), "mm");
    assert_eq!(
        bench
            .line("cat a --coords --range dim_0=0:2 --range dim_1=0:1")
            .out,
        first
    );
    // What was not written then is not written now.
    let beyond = bench.line("cat a --range dim_0=0:1 --range dim_1=2").out;
    assert!(beyond.lines().skip(1).all(|cell| cell == "NaN"), "{beyond}");
    bench.line("copy a old --at before");
    assert_eq!(bench.line("cat old --coords").out, first);
    assert_eq!(bench.line("meta old unit").out.trim(), "mm");
    assert_ne!(first, second);
}

#[test]
fn copies_of_earlier_times_have_the_schema_of_then() {
    let bench = Bench::new();
    sparse(&bench, "--unique");
    bench.line("copy d old --at 2");
    assert_eq!(bench.line("cat old").out, bench.line("cat d --at 2").out);
    assert_eq!(
        bench.json("schema old")["attributes"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    bench.fails("copy d old --at 2", 1, "already exists");
    assert!(bench.line("check old --deep").out.contains("all is well"));
}

#[test]
fn names_of_moments_open_arrays_and_groups() {
    let bench = Bench::new();
    sparse(&bench, "--unique");
    let now = bench.line("cat d").out;
    bench.line("snapshot create d v1 --at 1");
    bench.line("snapshot create d v2");
    bench.fails("snapshot create d v2", 1, "already exists");
    bench.fails("snapshot create d 2024", 2, "a letter first");
    let names = bench.json("snapshot list d");
    assert_eq!(
        (&names[0]["name"], &names[0]["at"]),
        (&"v1".into(), &1.into())
    );
    assert_eq!(bench.line("cat d@v1").out, "id,q\n1,1\n2,2\n");
    assert_eq!(bench.line("cat d --at v1").out, "id,q\n1,1\n2,2\n");
    assert_eq!(bench.line("cat d@v2").out, now);
    // What is added to a moment would be of now.
    bench.write("late.csv", "id,q\n77,7\n");
    bench.fails("import late.csv d@v1 --append", 2, "named snapshot");
    assert_eq!(bench.line("cat d").out, now);
    bench.fails("cat d@v3", 3, "named snapshot");
    bench.fails("cat d --at v3", 3, "named snapshot");
    bench.fails("consolidate d --purge-deleted-cells", 2, "v1");
    assert!(bench.line("check d").out.contains("all is well"));
    bench.line("snapshot remove d v1");
    bench.fails("cat d@v1", 3, "named snapshot");
    // A group and its members at one moment.
    bench.line("group create g");
    bench.line("group add g d --name d");
    bench.line("snapshot create g all");
    assert_eq!(bench.line("cat d@all").out, now);
    bench.line("meta set g k late");
    bench.line("group rm g d");
    assert!(bench.line("info g@all").out.contains("1 member"));
    assert_eq!(bench.json("ls g@all").as_array().unwrap().len(), 1);
    assert_eq!(bench.json("ls g").as_array().unwrap().len(), 0);
    assert_eq!(bench.json("meta g@all"), serde_json::json!({}));
    assert_eq!(bench.line("meta g k").out, "late\n");
    bench.fails("info g@none", 3, "named snapshot");
    bench.line("group add g d --name d");
    let removed = bench.json("snapshot remove g all");
    assert_eq!(removed["removed_from"].as_array().unwrap().len(), 2);
}

#[test]
fn a_vacuum_leaves_what_a_snapshot_shows() {
    let bench = Bench::new();
    bench.write("a.npy", npy(&[2, 2], (0..4).map(|i| i as f32)));
    bench.line("import a.npy a --at 1");
    bench.line("snapshot create a first --at 1");
    bench.write("b.npy", npy(&[2, 2], (0..4).map(|i| 10.0 + i as f32)));
    bench.line("import b.npy a --append --overwrite --at 5");
    let (first, now) = (bench.line("cat a@first").out, bench.line("cat a").out);
    let said = bench.line("consolidate a --vacuum");
    assert!(
        said.err.contains("a named snapshot shows it"),
        "{}",
        said.err
    );
    assert_eq!(bench.line("cat a@first").out, first);
    assert_eq!(bench.line("cat a").out, now);
    bench.line("snapshot remove a first");
    bench.line("vacuum a");
    assert_eq!(bench.json("fragments a").as_array().unwrap().len(), 1);
    assert_eq!(bench.line("cat a").out, now);
}

#[test]
fn times_are_written_as_people_say_them() {
    let bench = Bench::new();
    bench.write("a.csv", "id,q\n1,1\n");
    bench.line("import a.csv d --dims id");
    assert_eq!(bench.line("agg d count --at now").out.trim(), "1");
    assert_eq!(bench.line("agg d count --at today").out.trim(), "1");
    assert_eq!(bench.line("agg d count --at -2h").out.trim(), "0");
    assert_eq!(bench.line("agg d count --from -1h").out.trim(), "1");
    bench.fails("agg d count --at -2y", 2, "not a time");
    // Commands that change something take them too, and conditions may begin with a sign.
    assert_eq!(bench.line("agg d count --where '-1 < id'").out.trim(), "1");
    bench.line("meta set d k v --at -1h");
    let plan = bench.line("delete d --from -1w --to -1d --dry-run").out;
    assert_eq!(plan.trim(), "would delete 0 fragments");
    let plan = bench
        .line("delete d --where '-1 < id' --at now --dry-run")
        .out;
    assert_eq!(plan.trim(), "would delete 1 cell");
    bench.write("b.csv", "id,q\n-999,2\n7,-999\n");
    bench.line("import b.csv early --dims id --at -1h --null none");
    assert_eq!(bench.line("agg early count --at -30m").out.trim(), "2");
    bench.line("import b.csv nulls --null -999");
    assert_eq!(bench.line("cat nulls --format csv").out, "id,q\n,2\n7,\n");
}

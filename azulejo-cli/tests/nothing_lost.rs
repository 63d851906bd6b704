//! Nothing is lost or changed without a word.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use azulejo::{Config, Context};
use serde_json::Value as Json;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};
use support::{Bench, npy, words};

#[test]
fn a_delete_takes_only_what_meets_its_condition() {
    let bench = Bench::new();
    bench.write("d.csv", "id,q\n1,0.5\n2,\n3,\n4,9\n");
    bench.line("import d.csv d --dims id");
    let dry = bench.line("delete d --where 'q < 1' --dry-run");
    assert_eq!(dry.out, "would delete 1 cell\n");
    assert!(
        dry.err.contains("2 cells where \"q\" is null"),
        "{}",
        dry.err
    );
    bench.fails("delete d --where 'q < 1'", 2, "(q < 1) or q is null");
    assert_eq!(bench.count("d"), 4);
    // As it is written there.
    let said = bench.line("delete d --where '(q < 1) or q is null'");
    assert_eq!(said.out, "deleted 3 cells\n");
    assert_eq!(bench.line("cat d").out, "id,q\n4,9.0\n");
    // No null is left to be taken along.
    assert_eq!(
        bench.line("delete d --where 'q > 8'").out,
        "deleted 1 cell\n"
    );
    assert_eq!(bench.count("d"), 0);
}

/// What a killed copy leaves is no array whose schema was lost.
#[test]
fn a_copy_that_was_cut_short_is_called_that() {
    let bench = Bench::new();
    bench.write("d.csv", "id,q\n1,1\n");
    bench.line("import d.csv d --dims id");
    bench.line("copy d e");
    let copy = bench.path().join("e");
    let source = bench.path().join("d").canonicalize().unwrap();
    let note = format!("file://{}", source.display());
    std::fs::write(copy.join("__azulejo_copy"), note).unwrap();
    std::fs::remove_dir_all(copy.join("__schema")).unwrap();
    for line in ["cat e", "schema e", "meta e"] {
        bench.fails(line, 3, "a copy is under way there, or was cut short");
    }
    bench.line("copy d e");
    assert_eq!(bench.line("cat e").out, bench.line("cat d").out);
}

/// Nor is what a killed deletion leaves, whose schema goes first.
#[test]
fn a_deletion_that_was_cut_short_is_called_that() {
    let bench = Bench::new();
    bench.write("d.csv", "id,q\n1,1\n");
    bench.line("import d.csv d --dims id");
    let array = bench.path().join("d");
    std::fs::create_dir(array.join("__azulejo_deleted")).unwrap();
    std::fs::rename(
        array.join("__schema"),
        array.join("__azulejo_deleted/__schema"),
    )
    .unwrap();
    for line in ["cat d", "schema d", "meta d"] {
        bench.fails(line, 3, "its deletion was cut short");
    }
    // What it has left is nothing that lies there.
    assert_eq!(bench.json("ls d"), serde_json::json!([]));
    // Another library has made one there since, and knows nothing of what is left.
    let hidden = array.join("__azulejo_deleted/__schema");
    std::fs::create_dir(array.join("__schema")).unwrap();
    for entry in std::fs::read_dir(hidden).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let name = path.file_name().unwrap();
            std::fs::copy(&path, array.join("__schema").join(name)).unwrap();
        }
    }
    bench.fails("restore d --at 1971", 3, "at that time");
    std::fs::remove_dir_all(array.join("__schema")).unwrap();
    bench.line("delete d --yes");
    assert!(!array.exists());
}

#[test]
fn cells_of_before_an_attribute_are_not_taken_along() {
    let bench = Bench::new();
    bench.write("d.csv", "id,q\n1,1\n2,2\n");
    bench.line("import d.csv d --dims id --at 1");
    bench.line("evolve d --add-attr 'w INT32' --at 2");
    bench.write("e.csv", "id,q,w\n3,3,3\n4,4,4\n");
    bench.line("import e.csv d --append --at 3");
    let said = bench.run(&words("delete d --where 'w > 3' --at 4"));
    let left = bench.line("cat d --attrs id,q").out;
    match said.code {
        Some(0) => assert_eq!(left, "id,q\n1,1\n2,2\n3,3\n"),
        _ => {
            assert!(said.err.contains("before the array had"), "{}", said.err);
            assert_eq!(left, "id,q\n1,1\n2,2\n3,3\n4,4\n");
        }
    }
}

#[test]
fn arrays_of_files_are_appended_and_nothing_is_overwritten_unasked() {
    let bench = Bench::new();
    bench.write("a.npy", npy(&[3, 2], (0..6).map(|i| i as f32)));
    bench.write("b.npy", npy(&[1, 2], [99.0, 98.0].into_iter()));
    bench.line("import a.npy a --dims time,x --domain time=0:1000 --domain x=0:9");
    bench.line("import b.npy a --append");
    let rows = bench.line("cat a --coords").out;
    assert!(
        rows.contains("\n0,0,0.0\n") && rows.contains("\n3,0,99.0\n"),
        "{rows}"
    );
    // Behind what is written along another dimension, from the start of the first.
    bench.line("import b.npy a --append --append-dim x");
    assert!(
        bench
            .line("cat a --coords --range time=0 --range x=2:3")
            .out
            .contains("0,3,98.0")
    );
    bench.fails(
        "import b.npy a --append --append-dim y",
        2,
        "no such dimension",
    );
    bench.line("import b.npy a --append --offset time=10 --offset x=4");
    assert!(
        bench
            .line("cat a --coords --range time=10 --range x=4:5")
            .out
            .contains("10,5,98.0")
    );
    bench.line("import b.npy a --append --overwrite");
    assert!(
        bench
            .line("cat a --coords --range time=0 --range x=0:1")
            .out
            .contains("0,0,99.0")
    );
    bench.write("c.csv", "time,x,value\n1,0,7\n1,1,8\n");
    bench.fails("import c.csv a --append", 2, "--overwrite allows it");
    bench.line("import c.csv a --append --overwrite");
    assert!(
        bench
            .line("cat a --coords --range time=1 --range x=0:1")
            .out
            .contains("1,1,8.0")
    );
}

#[test]
fn columns_and_labels_without_a_place_are_told() {
    let bench = Bench::new();
    bench.write("d.csv", "id,q,c\n1,1,red\n2,2,blue\n");
    bench.line("import d.csv d --dims id --enumerate c");
    bench.write("e.csv", "id,q,c,extra\n5,1,rde,LOST\n");
    bench.fails("import e.csv d --append --strict", 2, "column extra");
    assert_eq!(bench.count("d"), 2);
    let dry = bench.json("import e.csv d --append --dry-run");
    assert_eq!(dry["dropped_columns"][0], "extra");
    assert_eq!(dry["new_labels"][0]["labels"][0], "rde");
    assert_eq!(dry["columns"][0]["column"], "id");
    let said = bench.line("import e.csv d --append");
    assert!(
        said.err.contains("extra of the file goes nowhere"),
        "{}",
        said.err
    );
    assert!(said.err.contains("no labels rde"), "{}", said.err);
    bench.write(
        "f.ndjson",
        "{\"id\": 6, \"q\": 1, \"c\": \"red\", \"more\": 3}\n",
    );
    let said = bench.line("import f.ndjson d --append");
    assert!(said.err.contains("column more"), "{}", said.err);
    // What was left out on purpose is no news.
    bench.write("g.csv", "id,q,c,extra\n7,1,red,LOST\n");
    let said = bench.line("import g.csv d --append --columns id,q,c --strict");
    assert!(!said.err.contains("nowhere"), "{}", said.err);
}

#[test]
fn one_bad_value_is_named() {
    let bench = Bench::new();
    let mut text = "id,q\n".to_owned();
    for id in 0..100 {
        let value = if id == 41 {
            "1,x5".replace(',', "")
        } else {
            id.to_string()
        };
        text.push_str(&format!("{id},{value}\n"));
    }
    bench.write("d.csv", &text);
    let said = bench.line("import d.csv d --dims id");
    assert!(
        said.err.contains("because of \"1x5\" in line 43"),
        "{}",
        said.err
    );
    // The first of many, and one of three.
    text = text.replace("1x5", "41").replacen("0,0\n", "0,?\n", 1);
    bench.write("d.csv", &text);
    let said = bench.line("import d.csv first --dims id");
    assert!(
        said.err.contains("because of \"?\" in line 2"),
        "{}",
        said.err
    );
    bench.write("three.csv", "id,q\n1,1\n2,x\n3,3\n");
    let said = bench.line("import three.csv three --dims id");
    assert!(
        said.err.contains("because of \"x\" in line 3"),
        "{}",
        said.err
    );
    bench.write("names.csv", "id,q\n1,Anna\n2,7\n3,Bert\n");
    assert!(
        !bench
            .line("import names.csv n --dims id")
            .err
            .contains("because")
    );
}

#[test]
fn deleted_cells_of_a_single_fragment_can_be_erased() {
    let bench = Bench::new();
    bench.write("d.csv", "id,q\n1,1\n2,2\n3,3\n");
    bench.line("import d.csv d --dims id");
    bench.line("delete d --where 'q = 2'");
    let stored = |bench: &Bench| bench.json("info d")["fragment_cells"].as_u64().unwrap();
    assert_eq!(stored(&bench), 3);
    let said = bench.line("consolidate d --purge-deleted-cells --vacuum");
    assert!(
        said.out.contains("1 fragment became 1 fragment: 2 cells"),
        "{}",
        said.out
    );
    assert_eq!((stored(&bench), bench.count("d")), (2, 2));
    // Once is enough.
    let again = bench.line("consolidate d --purge-deleted-cells");
    assert!(
        again.err.contains("nothing to consolidate"),
        "{}",
        again.err
    );
    // Not a cell is left.
    bench.line("delete d --where 'q > 0'");
    bench.line("consolidate d --purge-deleted-cells --vacuum");
    assert_eq!((stored(&bench), bench.count("d")), (0, 0));
    assert!(bench.line("check d --deep").out.contains("all is well"));
}

#[test]
fn a_lost_commit_can_be_written_again() {
    let bench = Bench::new();
    bench.write("d.csv", "id,q\n1,1\n2,2\n");
    bench.line("import d.csv d --dims id");
    let commits = bench.path().join("d/__commits");
    for file in std::fs::read_dir(&commits).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    assert_eq!(bench.count("d"), 0);
    let found = bench.line("check d");
    assert!(
        found.out.contains("--adopt makes it count"),
        "{}",
        found.out
    );
    bench.fails("check d --fail-on warning", 4, "1 warning found");
    assert!(
        bench
            .line("check d --adopt --dry-run")
            .out
            .contains("would write")
    );
    assert_eq!(bench.count("d"), 0);
    bench.line("check d --adopt --fail-on warning");
    assert_eq!(bench.count("d"), 2);
    // A fragment that lacks a file is not made to count.
    bench.write("e.csv", "id,q\n3,3\n");
    bench.line("import e.csv e --dims id");
    for file in std::fs::read_dir(bench.path().join("e/__commits")).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    let fragment = std::fs::read_dir(bench.path().join("e/__fragments")).unwrap();
    let fragment = fragment.map(|entry| entry.unwrap().path()).next().unwrap();
    std::fs::remove_file(fragment.join("a0.tdb")).unwrap();
    assert!(
        bench
            .line("check e --adopt")
            .err
            .contains("nothing to adopt")
    );
    bench.line("check e --repair --fail-on warning");
    assert!(!fragment.exists());
}

#[test]
fn strangers_among_the_fragments_are_noted_and_counts_are_true() {
    let bench = Bench::new();
    bench.write("d.csv", "id,q\n1,1\n2,2\n");
    bench.line("import d.csv d --dims id");
    std::fs::create_dir(bench.path().join("d/__fragments/foo")).unwrap();
    bench.write("d/__fragments/junk", "x");
    let report = bench.json("check d");
    assert_eq!(report["findings"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(report["cells"], Json::Null);
    assert_eq!(bench.json("check d --deep")["cells"], 2);
}

#[test]
fn damage_has_one_exit_code() {
    let bench = Bench::new();
    bench.write("d.csv", "id,q\n1,1\n2,2\n");
    bench.line("import d.csv d --dims id");
    let fragment = std::fs::read_dir(bench.path().join("d/__fragments")).unwrap();
    let fragment = fragment.map(|entry| entry.unwrap().path()).next().unwrap();
    std::fs::remove_file(fragment.join("__fragment_metadata.tdb")).unwrap();
    for line in [
        "info d",
        "agg d count",
        "cat d",
        "fragments d",
        "export d x.csv",
        "consolidate d",
    ] {
        bench.fails(line, 4, "is missing");
    }
    assert!(!bench.path().join("x.csv").exists());
    bench.fails("info nowhere", 3, "not found");
    bench.fails("info d/nowhere", 3, "not found");
}

#[test]
fn an_array_that_has_lost_its_schema_is_damaged() {
    let bench = Bench::new();
    bench.write("d.csv", "id,q\n1,1\n2,2\n");
    bench.line("import d.csv d --dims id");
    std::fs::remove_dir_all(bench.path().join("d/__schema")).unwrap();
    let commands = [
        "info",
        "cat",
        "schema",
        "check",
        "consolidate",
        "vacuum",
        "history",
        "maintain",
    ];
    for command in commands {
        bench.fails(&format!("{command} d"), 4, "__schema is missing");
    }
    std::fs::create_dir(bench.path().join("d/__schema")).unwrap();
    for command in commands {
        bench.fails(&format!("{command} d"), 4, "__schema is missing");
    }
    bench.fails("consolidate . --recursive", 4, "__schema is missing");
    bench.fails("agg nowhere count", 3, "`azulejo ls`");
    bench.line("group create g");
    for command in ["consolidate", "vacuum", "cat"] {
        bench.fails(&format!("{command} g"), 3, "is a group, not an array");
        bench.fails(&format!("{command} g"), 3, "--recursive");
    }
    bench.fails("cat d@nix", 3, "`azulejo snapshot list");
}

#[test]
fn sizes_are_of_what_was_added() {
    let bench = Bench::new();
    let rows: String = (0..3000)
        .map(|i| format!("{i},{}\n", i * 7919 % 1013))
        .collect();
    bench.write("d.csv", format!("id,q\n{rows}"));
    bench.line("import d.csv d --dims id");
    bench.write("e.csv", "id,q\n1,1\n");
    let more = bench.json("import e.csv d --append")["bytes_stored"]
        .as_u64()
        .unwrap();
    let sizes = bench.json("fragments d");
    let sizes: Vec<u64> = sizes
        .as_array()
        .unwrap()
        .iter()
        .map(|fragment| fragment["bytes"].as_u64().unwrap())
        .collect();
    assert_eq!(more, sizes[1], "{sizes:?}");
    let merged = bench.json("consolidate d --vacuum");
    let after = bench.json("fragments d");
    assert_eq!(merged["rounds"][0]["bytes"], after[0]["bytes"]);
}

#[test]
fn every_control_character_goes_through_json() {
    let bench = Bench::new();
    bench.line("group create g");
    let all: String = (1..=0x9f).filter_map(char::from_u32).collect();
    bench.run(&["meta", "set", "g", "k", &all, "--type", "STRING_UTF8"]);
    let meta = bench.json("meta g");
    let text = meta.to_string();
    let found = meta["k"]["value"].as_str().or(meta[0]["value"].as_str());
    assert_eq!(found, Some(&*all), "{text}");
}

#[test]
fn a_member_that_is_gone_hides_no_other() {
    let bench = Bench::new();
    bench.line("group create g");
    bench.line("group create g/x");
    bench.line("group create g/y");
    bench.line("group add g x --relative --name first");
    bench.line("group add g y --relative");
    std::fs::remove_dir_all(bench.path().join("g/y")).unwrap();
    let rows = bench.json("ls g");
    assert_eq!(rows.as_array().unwrap().len(), 2, "{rows}");
    assert_eq!(
        (&rows[0]["name"], &rows[1]["name"]),
        (&"first".into(), &Json::Null)
    );
    assert!(bench.line("ls g").out.contains("g/y"));
}

#[cfg(unix)]
mod interrupted {
    use super::*;

    fn signal(child: &Child, name: &str) {
        let done = std::process::Command::new("kill")
            .args([name, &child.id().to_string()])
            .status();
        assert!(done.unwrap().success());
    }

    fn wait_until(what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// An array that takes a while to read.
    fn large(bench: &Bench) {
        bench.write(
            "big.npy",
            npy(
                &[3000, 1000],
                (0..3_000_000).map(|i| (i % 977) as f32 * 0.37),
            ),
        );
        bench.line("import big.npy big --tile dim_0=100 --tile dim_1=100");
    }

    #[test]
    fn imports_exports_and_copies_leave_nothing() {
        let bench = Bench::new();
        large(&bench);
        let before = names(bench.path());
        for name in ["-INT", "-TERM"] {
            let mut export = bench.start("export big x.csv");
            wait_until("the file begins", || {
                names(bench.path()).len() > before.len()
            });
            signal(&export, name);
            assert_eq!(export.wait().unwrap().code(), Some(130));
            assert_eq!(names(bench.path()), before);

            let mut import = bench.start("import big.npy other");
            wait_until("the array begins", || {
                bench.path().join("other/__schema").exists()
            });
            signal(&import, name);
            let code = import.wait().unwrap().code();
            match code {
                Some(130) => assert_eq!(names(bench.path()), before),
                // It was quicker.
                _ => std::fs::remove_dir_all(bench.path().join("other")).unwrap(),
            }
        }
    }

    #[test]
    fn two_at_once_do_not_take_each_other_for_dead() {
        let bench = Bench::new();
        large(&bench);
        let of = |line: &str| {
            let two = [bench.start(line), bench.start(line), bench.start(line)];
            let codes = two.map(|mut child| child.wait().unwrap().code());
            codes.iter().filter(|code| **code == Some(0)).count()
        };
        // Who comes later finds it made, or being made.
        assert_eq!(
            of("import big.npy other --tile dim_0=100 --tile dim_1=100"),
            1
        );
        assert_eq!(bench.count("other"), 3_000_000);
        assert!(of("copy big copied") > 0);
        assert!(
            bench
                .line("check copied --deep")
                .out
                .contains("all is well")
        );
        assert_eq!(of("move copied moved"), 1);
        assert_eq!(bench.count("moved"), 3_000_000);
    }

    /// Rows go behind the end that there is when it is their turn, not behind the one that was seen
    /// before others were waited for.
    #[test]
    fn rows_go_behind_those_of_whoever_came_first() {
        let bench = Bench::new();
        bench.write("a.csv", "q\n1\n2\n");
        bench.line("import a.csv d");
        let context = Context::new(Config::new(), None).unwrap();
        let path = bench.path().join("d");
        let array = context.array(path.to_str().unwrap());
        assert!(array.open().unwrap().schema().is_dense());

        let hold = array.hold().unwrap();
        let mut waiting: Vec<Child> = (0..3)
            .map(|_| bench.start("import a.csv d --append"))
            .collect();
        // Long enough for all to see the array as it is; who is later has nothing to mistake.
        std::thread::sleep(Duration::from_millis(700));
        assert!(
            waiting
                .iter_mut()
                .all(|child| child.try_wait().unwrap().is_none())
        );
        drop(hold);
        for child in &mut waiting {
            assert_eq!(child.wait().unwrap().code(), Some(0));
        }
        assert_eq!(
            bench.line("cat d --attrs q").out,
            "q\n1\n2\n1\n2\n1\n2\n1\n2\n"
        );
    }

    #[test]
    fn a_copy_that_was_killed_is_seen_deleted_or_gone_on_with() {
        let bench = Bench::new();
        bench.write("s.csv", "id,q\n1,1\n");
        bench.line("import s.csv many --dims id");
        for _ in 0..30 {
            bench.line("import s.csv many --append");
        }
        // As if killed after some files.
        let begin = || {
            let to = bench.path().join("many2");
            std::fs::create_dir_all(to.join("__fragments")).unwrap();
            let whole = std::fs::canonicalize(bench.path().join("many")).unwrap();
            std::fs::write(
                to.join("__azulejo_copy"),
                format!("file://{}", whole.display()),
            )
            .unwrap();
            let fragments = names(&bench.path().join("many/__fragments"));
            let from = bench.path().join("many/__fragments").join(&fragments[0]);
            let to = to.join("__fragments").join(&fragments[0]);
            std::fs::create_dir_all(&to).unwrap();
            std::fs::copy(from.join("a0.tdb"), to.join("a0.tdb")).unwrap();
            std::fs::write(to.join("half.tmp"), "x").unwrap();
        };
        begin();
        assert!(bench.line("ls .").out.contains("unfinished copy"));
        bench.fails("delete many2", 2, "unfinished copy");
        bench.line("delete many2 --yes");
        assert!(!bench.path().join("many2").exists());
        begin();
        bench.line("copy many many2");
        assert_eq!(bench.count("many2"), 31);
        assert!(bench.line("check many2 --deep").out.contains("all is well"));
        // All of it is there.
        bench.line("copy many many2");
        bench.line("meta set many2 k 1");
        bench.fails("copy many many2", 1, "already exists");
        bench.line("delete many2 --yes");
        begin();
        bench.line("import s.csv other --dims id");
        bench.fails("copy other many2", 1, "already exists");
        bench.line("move many many2");
        assert_eq!(bench.count("many2"), 31);
        assert!(!bench.path().join("many").exists());
    }
}

#[test]
fn an_import_that_was_cut_short_begins_again() {
    let bench = Bench::new();
    bench.write("d.csv", "id,q\n1,1\n2,2\n");
    bench.write("e.csv", "id,q\n3,3\n");
    bench.line("import d.csv d --dims id");
    assert!(!bench.path().join("d/__azulejo_unfinished").exists());
    bench.fails("import d.csv d --dims id", 2, "there already");
    bench.line("group create g");
    bench.fails(
        "import d.csv g --dims id",
        2,
        "is a group that is there already",
    );
    // As a process leaves it that was killed when it had written a part.
    let note = || {
        let schemas = std::fs::read_dir(bench.path().join("d/__schema")).unwrap();
        let mut names = schemas.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let time = names.find_map(|name| name.split('_').nth(2)?.parse::<u64>().ok());
        let text = format!("import of d.csv\nmade at {}", time.unwrap());
        bench.write("d/__azulejo_unfinished", text);
    };
    note();
    bench.fails("import e.csv d --dims id", 2, "cut short");
    // It would be gone with the rest.
    bench.fails("import e.csv d --append", 2, "cut short");
    // Whoever looks is told.
    assert_eq!(bench.json("check d")["worst"], "warning");
    let info = bench.json("info d");
    assert_eq!(info["unfinished"], "import of d.csv");
    assert!(bench.line("info d").out.contains("only a part of it"));
    assert_eq!(bench.count("d"), 2);
    bench.line("import d.csv d --dims id");
    assert_eq!(bench.line("cat d").out, "id,q\n1,1\n2,2\n");
    assert!(bench.line("check d --deep").out.contains("all is well"));
    note();
    bench.line("delete d --yes");
    assert!(!bench.path().join("d").exists());
    // What another library has made in its place is not what the import has begun.
    bench.line("import e.csv d --dims id");
    bench.write("d/__azulejo_unfinished", "import of d.csv\nmade at 1");
    bench.fails("import d.csv d --dims id", 2, "there already");
    bench.line("import d.csv d --append");
    assert_eq!(bench.count("d"), 3);
    // A group that has its members is whole: the import was killed before its note was gone.
    bench.line("group add g d");
    bench.write("g/__azulejo_unfinished", "import of d.tif");
    bench.fails("import d.csv g", 2, "is a group that is there already");
    assert!(!bench.path().join("g/__azulejo_unfinished").exists());
}

#[test]
fn an_array_written_over_a_larger_one_shows_its_domain() {
    let bench = Bench::new();
    for (name, cells, at) in [("old", 10usize, 1), ("new", 6, 2)] {
        let values = (0..cells).map(|cell| (cell * at) as f32);
        bench.write(&format!("{name}.npy"), npy(&[cells], values));
        bench.line(&format!("import {name}.npy {name} --dims x --at {at}"));
    }
    for folder in ["__schema", "__fragments", "__commits"] {
        copy(
            &bench.path().join("new").join(folder),
            &bench.path().join("old").join(folder),
        );
    }
    let said = bench.line("cat old --coords");
    assert_eq!(said.out.lines().count(), 7, "{}", said.out);
    assert!(said.out.ends_with("5,10.0\n"), "{}", said.out);
    assert_eq!(bench.count("old"), 6);
    let all = bench.json("agg old sum:value").to_string();
    assert!(all.contains("30"), "{all}");
}

/// Copies what lies in a folder into another one.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

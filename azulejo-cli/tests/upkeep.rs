//! Lost commits, named snapshots beside deletions, copies of earlier times, fleets, maintenance by a
//! policy, advice.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use support::{Bench, npy};

/// A sparse array of several writes, the first of which is at the time 1.
fn writes(bench: &Bench, uri: &str, number: usize) {
    for i in 0..number {
        bench.write("w.csv", format!("id,q\n{i},{i}\n{},1\n", i + 100));
        let how = if i == 0 { "--dims id" } else { "--append" };
        bench.line(&format!("import w.csv {uri} {how} --at {}", i + 1));
    }
}

/// The entries of a folder whose names end so.
fn ending(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.to_str().unwrap().ends_with(end))
        .collect();
    found.sort();
    found
}

/// Whether a fragment or a commit is of a consolidation.
fn is_merged(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    let times: Vec<&str> = name.split('_').filter(|part| !part.is_empty()).collect();
    times[0] != times[1]
}

#[test]
fn a_consolidation_whose_commit_was_lost_is_found_again() {
    let bench = Bench::new();
    writes(&bench, "d", 2);
    bench.line("consolidate d");
    let commits = bench.path().join("d/__commits");
    let lose = |bench: &Bench| {
        for commit in ending(&commits, ".wrt") {
            if is_merged(&commit) {
                std::fs::remove_file(commit).unwrap();
            }
        }
        assert_eq!(bench.count("d"), 0);
    };
    // Its vacuum file hides what it has replaced: it must have counted.
    lose(&bench);
    bench.fails("check d", 4, "1 error found");
    assert!(
        bench
            .line("check d --repair")
            .out
            .contains("repaired 1 finding")
    );
    assert_eq!(bench.count("d"), 4);
    // After a vacuum nothing says what it was, and nobody but its owner decides.
    bench.line("vacuum d");
    lose(&bench);
    let found = bench.run(&["check", "d", "--repair"]);
    assert_eq!(found.code, Some(4), "{}", found.err);
    assert!(found.out.contains("the only copy"), "{}", found.out);
    assert!(found.err.contains("nothing to repair"), "{}", found.err);
    assert!(
        bench
            .line("check d --adopt")
            .out
            .contains("adopted 1 fragment")
    );
    assert_eq!(bench.count("d"), 4);
    assert!(bench.line("check d --deep").out.contains("all is well"));
    lose(&bench);
    let said = bench.line("check d --discard");
    assert!(said.out.contains("discarded 1 fragment"), "{}", said.out);
    assert!(ending(&bench.path().join("d/__fragments"), "").is_empty());
    assert!(bench.line("check d").out.contains("all is well"));
}

#[test]
fn a_consolidation_that_never_counted_goes() {
    let bench = Bench::new();
    writes(&bench, "d", 2);
    bench.line("consolidate d");
    let commits = bench.path().join("d/__commits");
    for file in ending(&commits, "") {
        if is_merged(&file) {
            std::fs::remove_file(file).unwrap();
        }
    }
    assert_eq!(bench.count("d"), 4);
    assert!(
        bench
            .line("check d --adopt")
            .err
            .contains("nothing to adopt")
    );
    bench.line("check d --repair");
    assert_eq!(ending(&bench.path().join("d/__fragments"), "").len(), 2);
    assert_eq!(bench.count("d"), 4);
}

#[test]
fn a_vacuum_keeps_what_a_damaged_fragment_replaced() {
    for file in ["a0.tdb", "__fragment_metadata.tdb"] {
        let bench = Bench::new();
        writes(&bench, "d", 2);
        bench.line("consolidate d");
        let fragments = bench.path().join("d/__fragments");
        let merged = ending(&fragments, "").into_iter().find(|f| is_merged(f));
        std::fs::remove_file(merged.unwrap().join(file)).unwrap();
        bench.fails("vacuum d --dry-run", 4, file);
        bench.fails("vacuum d", 4, file);
        assert_eq!(ending(&fragments, "").len(), 3, "{file}");
    }
}

#[test]
fn snapshots_keep_their_fragments() {
    let bench = Bench::new();
    writes(&bench, "d", 3);
    bench.line("snapshot create d first --at 1");
    bench.line("snapshot create d second --at 2");
    let name = bench.json("fragments d")[0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    bench.fails(&format!("delete d --fragment {name}"), 2, "\"first\" shows");
    bench.fails("delete d --from 1 --to 2 --dry-run", 2, "\"first\" shows");
    bench.line("delete d --from 3 --to 3");
    assert_eq!(bench.count("d"), 4);
    // Sparse cells keep their times: a vacuum takes nothing from a snapshot.
    bench.line("consolidate d --vacuum");
    assert_eq!(bench.count("d@first"), 2);
    assert!(bench.line("check d").out.contains("all is well"));
    bench.line("snapshot remove d first");
    bench.line("snapshot remove d second");
    assert!(ending(&bench.path().join("d/__azulejo/shown"), "").is_empty());
}

#[test]
fn a_snapshot_whose_fragments_are_gone_is_an_error() {
    let bench = Bench::new();
    for (at, first) in [(1, 0.0), (5, 10.0)] {
        bench.write("a.npy", npy(&[2, 2], (0..4).map(|i| first + i as f32)));
        let how = if at == 1 { "" } else { "--append --overwrite" };
        bench.line(&format!("import a.npy a --at {at} {how}"));
    }
    bench.line("snapshot create a first --at 1");
    bench.line("snapshot create a both");
    assert!(bench.line("check a").out.contains("all is well"));
    bench.line("consolidate a");
    // As a program does that knows no snapshots.
    for commit in ending(&bench.path().join("a/__commits"), ".wrt") {
        if !is_merged(&commit) {
            std::fs::remove_file(commit).unwrap();
        }
    }
    for fragment in ending(&bench.path().join("a/__fragments"), "") {
        if !is_merged(&fragment) {
            std::fs::remove_dir_all(fragment).unwrap();
        }
    }
    let report = bench.run(&["check", "a", "--json"]);
    assert_eq!(report.code, Some(4));
    let report: Json = serde_json::from_str(&report.out).unwrap();
    let errors: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["severity"] == "error")
        .map(|finding| finding["what"].as_str().unwrap())
        .collect();
    assert_eq!(errors.len(), 1, "{report}");
    assert!(
        errors[0].contains("\"first\" shows what is gone"),
        "{errors:?}"
    );
}

#[test]
fn groups_are_copied_as_they_were() {
    let bench = Bench::new();
    for uri in ["g", "g/inner"] {
        bench.line(&format!("group create {uri}"));
    }
    writes(&bench, "g/d", 1);
    writes(&bench, "g/inner/e", 1);
    writes(&bench, "far", 1);
    bench.line("group add g d --relative --name data");
    bench.line("group add g inner --relative");
    bench.line("group add g/inner e --relative");
    bench.line("group add g far");
    bench.line("meta set g title before");
    bench.line("snapshot create g v1");
    std::thread::sleep(std::time::Duration::from_millis(5));
    bench.write("m.csv", "id,q\n7,7\n");
    bench.line("import m.csv g/d --append");
    bench.line("import m.csv g/inner/e --append");
    bench.line("meta set g title after");
    bench.line("group rm g data");
    let said = bench.line("copy g old --at v1");
    assert!(said.err.contains("lies outside the group"), "{}", said.err);
    let tree = bench.json("tree old");
    let names = |node: &Json| -> Vec<String> {
        let children = node["children"].as_array().unwrap().iter();
        let names = children.map(|child| child["name"].as_str().unwrap().to_owned());
        names.collect()
    };
    assert_eq!(names(&tree).len(), 3, "{tree}");
    assert!(names(&tree).contains(&"data".to_owned()), "{tree}");
    assert_eq!((bench.count("old/d"), bench.count("old/inner/e")), (2, 2));
    assert_eq!(bench.count("g/d"), 3);
    assert_eq!(bench.line("meta old title").out.trim(), "before");
    bench.fails("copy g old --at v1", 1, "already exists");
    // What a process that was killed has left is begun anew.
    std::fs::create_dir(bench.path().join("again")).unwrap();
    let at = bench.json("snapshot list g")[0]["at"].as_u64().unwrap();
    let whole = bench.path().canonicalize().unwrap().join("g");
    let note = format!("file://{} as of {at}", whole.display());
    bench.write("again/__azulejo_copy", note);
    bench.write("again/left", "over");
    bench.line(&format!("copy g again --at {at}"));
    assert!(!bench.path().join("again/left").exists());
    assert_eq!(bench.count("again/inner/e"), 2);
    bench.fails("copy g never --at 1970-01-01", 3, "at that time");
}

#[test]
fn nobody_goes_back_before_the_beginning() {
    let bench = Bench::new();
    bench.write("a.csv", "id,q\n1,1\n");
    bench.line("import a.csv d --dims id");
    bench.fails("restore d --at 1971", 3, "at that time");
    bench.fails("copy d e --at 1971", 3, "at that time");
    assert_eq!(bench.count("d"), 1);
    assert!(!bench.path().join("e").exists());
}

/// A folder with two arrays, one of which lies in a group.
fn fleet(bench: &Bench) {
    std::fs::create_dir(bench.path().join("data")).unwrap();
    writes(bench, "data/a", 3);
    bench.line("group create data/g");
    writes(bench, "data/g/b", 1);
    bench.line("group add data/g b --relative");
}

#[test]
fn manifests_and_upgrades_of_whole_folders() {
    let bench = Bench::new();
    fleet(&bench);
    bench.fails("manifest data", 3, "");
    let rows = bench.json("manifest data --recursive");
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(rows[0]["uri"], "data/a");
    let written = |row: &Json| row["manifests"]["written"].as_array().unwrap().len();
    assert_eq!((written(&rows[0]), written(&rows[1])), (1, 2));
    let checked = bench.line("manifest data --recursive --check").out;
    assert!(checked.contains("data/g/b"), "{checked}");
    bench.write("m.csv", "id,q\n7,7\n");
    bench.line("import m.csv data/g/b --append");
    std::fs::remove_dir_all(bench.path().join("data/a/__azulejo")).unwrap();
    bench.fails(
        "manifest data -r --check",
        1,
        "2 of 3 manifests are stale or missing",
    );
    let rows = bench.json("upgrade data --recursive");
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["upgrade"]["version"], 22);
    assert_eq!(rows[0]["upgrade"]["upgraded"], false);
    // One that cannot be read is told in its row; the others go on.
    for schema in ending(&bench.path().join("data/a/__schema"), "") {
        if schema.is_file() {
            std::fs::write(schema, "no schema").unwrap();
        }
    }
    let said = bench.run(&["upgrade", "data", "-r"]);
    assert_eq!(said.code, Some(4), "{}", said.err);
    assert!(said.out.contains("nothing to do"), "{}", said.out);
    assert!(said.out.contains("__schema"), "{}", said.out);
}

#[test]
fn maintenance_follows_a_policy() {
    let bench = Bench::new();
    fleet(&bench);
    let fragments = || bench.json("fragments data/a").as_array().unwrap().len();
    let idle = bench.json("maintain data --recursive");
    assert!(
        idle[0]["maintenance"]["steps"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    bench.write("policy.txt", "fragments 2\n");
    let planned = bench
        .line("maintain data/a --policy policy.txt --dry-run")
        .out;
    assert!(planned.contains("consolidate fragments"), "{planned}");
    assert!(planned.contains("3 fragments of"), "{planned}");
    assert_eq!(fragments(), 3);
    let cells = bench.count("data/a");
    let done = bench.json("maintain data -r --policy policy.txt");
    let step = &done[0]["maintenance"]["steps"][0];
    assert_eq!((&step["done"], fragments()), (&"3 became 1".into(), 1));
    // What was replaced goes in the next run.
    let stored = || ending(&bench.path().join("data/a/__fragments"), "").len();
    assert_eq!(stored(), 4);
    bench.line("maintain data -r --policy policy.txt");
    assert_eq!((stored(), bench.count("data/a")), (1, cells));
    assert_eq!(bench.count("data/a --at 1"), 2);
    assert!(
        bench
            .line("check data/a --deep")
            .out
            .contains("all is well")
    );
    // The policy is a file that it prints.
    let policy = bench.line("maintain --show-policy").out;
    bench.write("policy.txt", &policy);
    assert_eq!(
        bench.line("maintain --policy policy.txt --show-policy").out,
        policy
    );
    bench.write("policy.txt", "fragmets 2\n");
    bench.fails(
        "maintain data -r --policy policy.txt",
        2,
        "did you mean fragments?",
    );
    bench.fails("maintain data/g", 3, "not an array");
}

#[test]
fn maintenance_keeps_the_history_of_dense_arrays() {
    let bench = Bench::new();
    for (at, first) in [(1, 0.0), (5, 10.0)] {
        bench.write("a.npy", npy(&[2, 2], (0..4).map(|i| first + i as f32)));
        let how = if at == 1 { "" } else { "--append --overwrite" };
        bench.line(&format!("import a.npy a --at {at} {how}"));
    }
    let then = bench.line("cat a --at 1").out;
    bench.write("policy.txt", "fragments 1\nvacuum now\n");
    bench.line("maintain a --policy policy.txt");
    bench.line("maintain a --policy policy.txt");
    assert_eq!(bench.json("fragments a").as_array().unwrap().len(), 1);
    assert_eq!(bench.line("cat a --at 1").out, then);
    bench.write("policy.txt", "vacuum now\nhistory drop\n");
    bench.line("maintain a --policy policy.txt");
    assert_eq!(ending(&bench.path().join("a/__fragments"), "").len(), 1);
}

#[test]
fn many_small_fragments_are_worth_advice() {
    let bench = Bench::new();
    writes(&bench, "d", 110);
    let advice = "110 fragments of 2 cells: consolidate, and reads of all of it would be about";
    assert!(bench.line("info d").out.contains(advice));
    assert!(bench.line("check d").out.contains(advice));
    assert!(
        bench.json("info d")["advice"]
            .as_str()
            .unwrap()
            .contains(advice)
    );
    assert!(
        bench.json("check d")["advice"]
            .as_str()
            .unwrap()
            .contains(advice)
    );
    bench.line("consolidate d --vacuum");
    assert_eq!(bench.json("info d")["advice"], Json::Null);
    assert_eq!(bench.json("check d")["cells"], Json::Null);
    assert_eq!(bench.json("check d --deep")["cells"], 220);
}

#[test]
fn errors_are_json_where_json_is_asked_for() {
    let bench = Bench::new();
    for (words, code) in [
        (&["cat", "a", "--bogus", "--json"][..], 2),
        (&["--json", "cat"], 2),
        (&["info", "nothing", "--json"], 3),
    ] {
        let said = bench.run(words);
        assert_eq!(said.code, Some(code), "{}", said.err);
        let error: Json = serde_json::from_str(&said.err).unwrap();
        assert_eq!(error["error"]["exit_code"], code, "{error}");
        assert!(!error["error"]["message"].as_str().unwrap().is_empty());
    }
    assert!(
        bench
            .run(&["cat", "--help", "--json"])
            .out
            .contains("Usage")
    );
}

#[test]
fn settings_are_tiledbs() {
    let bench = Bench::new();
    writes(&bench, "d", 1);
    bench.fails(
        "info d --config vfs.s3.regoin=x",
        2,
        "did you mean \"vfs.s3.region\"?",
    );
    bench.fails("info d --config sm.no.such=x", 2, "no setting");
    let said = bench.line("info d --config sm.consolidation.buffer_size=5");
    assert!(said.err.contains("means nothing"), "{}", said.err);
    let said = bench.line("info d --config sm.consolidation.buffer_size=5 --quiet");
    assert_eq!(said.err, "");
}

#[test]
fn narrow_terminals_lose_no_column() {
    let bench = Bench::new();
    writes(&bench, "d", 2);
    let name = bench.json("fragments d")[0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    for command in ["fragments", "history"] {
        for columns in ["80", "120", "150"] {
            let said = bench.run_in(&[("COLUMNS", columns)], &[command, "d"]);
            assert!(said.out.contains(&name), "{columns}: {}", said.out);
        }
        let said = bench.run_in(&[("COLUMNS", "80")], &[command, "d"]);
        // Each line has something to say.
        let empty = said
            .out
            .lines()
            .filter(|line| line.trim_end() == "cells")
            .count();
        assert_eq!(empty, 0, "{}", said.out);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn programs_made_for_tiledb_are_given_this_library() {
    let bench = Bench::new();
    bench.write("library.so", "");
    let library = bench.path().join("library.so");
    let library = library.to_str().unwrap();
    let variables = [("AZULEJO_LIBRARY", library)];
    let script = "readlink ${LD_LIBRARY_PATH%%:*}/libtiledb.so.2.30; echo $LD_PRELOAD; exit 7";
    let said = bench.run_in(&variables, &["as-tiledb", "--", "sh", "-c", script]);
    assert_eq!(said.code, Some(7), "{}", said.err);
    let mut lines = said.out.lines();
    let linked = PathBuf::from(lines.next().unwrap());
    assert_eq!(linked, PathBuf::from(library).canonicalize().unwrap());
    assert_eq!(lines.next(), Some("libtiledb.so.2.30"));
    let said = bench.run(&["as-tiledb", "--library", "nowhere.so", "--", "true"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("nowhere.so"), "{}", said.err);
}

/// A server of buckets that has none; where it listens.
#[cfg(feature = "object-store")]
fn server_without_buckets() -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request: Vec<u8> = Vec::new();
            let mut bytes = [0; 4096];
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut bytes) {
                    Ok(0) | Err(_) => break,
                    Ok(n) => request.extend(&bytes[..n]),
                }
            }
            let body = "<Error><Code>NoSuchBucket</Code><Message>no such bucket</Message></Error>";
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 404 Not Found\r\nContent-Type: application/xml\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    place
}

#[test]
#[cfg(feature = "object-store")]
fn a_missing_bucket_is_one_line() {
    let bench = Bench::new();
    let place = server_without_buckets();
    let settings = [
        format!("endpoint_override={place}"),
        "scheme=http".to_owned(),
        "use_virtual_addressing=false".to_owned(),
        "region=us-east-1".to_owned(),
        "aws_access_key_id=a".to_owned(),
        "aws_secret_access_key=b".to_owned(),
    ];
    let settings: Vec<String> = settings.iter().map(|s| format!("vfs.s3.{s}")).collect();
    for command in ["info", "cat", "ls", "check", "maintain"] {
        let mut words = vec![command, "s3://nowhere/a"];
        for setting in &settings {
            words.extend(["--config", setting]);
        }
        let said = bench.run(&words);
        assert_eq!(said.code, Some(3), "{command}: {}", said.err);
        assert!(
            said.err.contains("the bucket does not exist"),
            "{}",
            said.err
        );
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
}

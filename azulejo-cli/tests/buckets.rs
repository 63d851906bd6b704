//! Commands on an object store, which this process serves: files go there and come from there, and
//! what is stopped leaves nothing.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]
#![cfg(feature = "object-store")]

mod support;

use std::time::Duration;
use support::bucket::Bucket;
use support::{Bench, Said, npy, words};

/// Runs a line of words on the bucket.
fn run(bench: &Bench, bucket: &Bucket, line: &str) -> Said {
    let variables = bucket.variables();
    let variables: Vec<_> = variables
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect();
    bench.run_in(&variables, &words(line))
}

fn line(bench: &Bench, bucket: &Bucket, line: &str) -> Said {
    let said = run(bench, bucket, line);
    assert_eq!(said.code, Some(0), "{line}: {}{}", said.out, said.err);
    said
}

#[test]
fn files_go_to_a_bucket_and_come_back() {
    let (bench, bucket) = (Bench::new(), Bucket::start(Duration::ZERO));
    let rows: String = (0..500)
        .map(|i| format!("{i},t{},{}.5\n", i % 7, i * 3))
        .collect();
    bench.write("a.csv", format!("id,town,v\n{rows}"));
    bench.line("import a.csv a --dims id");
    for file in ["a.csv", "a.csv.gz", "a.ndjson.zst", "a.parquet", "a.arrow"] {
        let uri = bucket.uri(&format!("out/{file}"));
        line(&bench, &bucket, &format!("export a {uri}"));
        assert!(bucket.object(&format!("out/{file}")).unwrap().len() > 1000);
        let refused = run(&bench, &bucket, &format!("export a {uri}"));
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        assert!(refused.err.contains("--force"), "{}", refused.err);
        line(&bench, &bucket, &format!("export a {uri} --force"));
        let array = bucket.uri(&format!("arrays/{file}"));
        line(&bench, &bucket, &format!("import {uri} {array} --dims id"));
        let cells = line(&bench, &bucket, &format!("cat {array}")).out;
        assert_eq!(cells, format!("id,town,v\n{rows}"), "{file}");
    }
    // Larger than a part of an upload.
    bench.write(
        "b.npy",
        npy(&[1000, 1500], (0..1_500_000).map(|i| i as f32)),
    );
    bench.line("import b.npy b");
    let uri = bucket.uri("b.npy");
    line(&bench, &bucket, &format!("export b {uri}"));
    // Behind the header.
    let sent = bucket.object("b.npy").unwrap();
    assert!(sent[128..] == std::fs::read(bench.path().join("b.npy")).unwrap()[128..]);
    line(
        &bench,
        &bucket,
        &format!("import {uri} {}", bucket.uri("arrays/b")),
    );
    let sum = |uri: &str| line(&bench, &bucket, &format!("agg {uri} count sum:value")).out;
    assert_eq!(sum(&bucket.uri("arrays/b")), sum("b"));
    assert_eq!(bucket.unfinished(), 0);
    let gone = run(
        &bench,
        &bucket,
        &format!("import {} c", bucket.uri("nothing.csv")),
    );
    assert_eq!(
        (gone.code, gone.err.lines().count()),
        (Some(3), 1),
        "{}",
        gone.err
    );
}

#[test]
fn arrays_of_a_bucket_are_kept_up() {
    let (bench, bucket) = (Bench::new(), Bucket::start(Duration::ZERO));
    let uri = bucket.uri("a");
    bench.write("a.csv", "id,v\n1,1\n2,2\n");
    line(&bench, &bucket, &format!("import a.csv {uri} --dims id"));
    for at in 3..8 {
        bench.write("b.csv", format!("id,v\n{at},{at}\n"));
        line(&bench, &bucket, &format!("import b.csv {uri} --append"));
    }
    line(&bench, &bucket, &format!("snapshot create {uri} before"));
    line(&bench, &bucket, &format!("delete {uri} --where 'v = 4'"));
    line(&bench, &bucket, &format!("consolidate {uri}"));
    let count = |uri: &str| line(&bench, &bucket, &format!("agg {uri} count")).out;
    assert_eq!(
        (count(&uri).trim(), count(&format!("{uri}@before")).trim()),
        ("6", "7")
    );
    line(&bench, &bucket, &format!("snapshot remove {uri} before"));
    line(&bench, &bucket, &format!("vacuum {uri}"));
    let there = line(&bench, &bucket, &format!("check {uri} --deep"));
    assert!(there.out.contains("all is well"), "{}", there.out);
    let copied = bucket.uri("copied");
    line(&bench, &bucket, &format!("copy {uri} {copied}"));
    let moved = bucket.uri("moved");
    line(&bench, &bucket, &format!("move {copied} {moved}"));
    assert!(!bucket.keys().iter().any(|key| key.starts_with("copied")));
    line(&bench, &bucket, &format!("copy {moved} here"));
    assert_eq!((count(&moved).trim(), count("here").trim()), ("6", "6"));
    line(&bench, &bucket, &format!("delete {moved} --yes"));
    assert!(!bucket.keys().iter().any(|key| key.starts_with("moved")));
}

#[cfg(unix)]
mod interrupted {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    /// Stops a command when the bucket has seen so many changes of it; whether it was in time.
    fn stopped(bench: &Bench, bucket: &Bucket, line: &str, after: usize) -> bool {
        let begun = bucket.changes();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("azulejo"));
        let command = command.args(words(line)).envs(bucket.variables());
        let command = command.current_dir(bench.path());
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while bucket.changes() < begun + after && child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < Duration::from_secs(120), "{line}");
            std::thread::sleep(Duration::from_millis(1));
        }
        let id = child.id().to_string();
        let _ = Command::new("kill")
            .args(["-INT", &id])
            .stderr(Stdio::null())
            .status();
        let code = child.wait().unwrap().code();
        assert!(matches!(code, Some(0 | 130)), "{line}: {code:?}");
        code == Some(130)
    }

    #[test]
    fn nothing_is_left_in_a_bucket() {
        let (bench, bucket) = (Bench::new(), Bucket::start(Duration::from_millis(30)));
        bench.write(
            "b.npy",
            npy(
                &[1500, 1500],
                (0..2_250_000i64).map(|i| (i * 7919 % 65_537) as f32),
            ),
        );
        bench.line("import b.npy b --tile dim_0=500 --tile dim_1=500 --filter value=none");
        let before = bucket.keys();
        let (export, import) = (bucket.uri("b.npy"), bucket.uri("new"));
        let mut in_time = 0;
        for after in 1..4 {
            if stopped(&bench, &bucket, &format!("export b {export}"), after) {
                in_time += 1;
                assert_eq!((bucket.keys(), bucket.unfinished()), (before.clone(), 0));
            }
            let line = format!("import b.npy {import} --filter value=none");
            if stopped(&bench, &bucket, &line, 2 * after) {
                in_time += 1;
                assert_eq!((bucket.keys(), bucket.unfinished()), (before.clone(), 0));
            }
        }
        assert!(in_time > 2, "{in_time}");
    }

    #[test]
    fn copies_and_consolidations_go_on_or_leave_nothing() {
        let (bench, bucket) = (Bench::new(), Bucket::start(Duration::from_millis(15)));
        bench.write("s.csv", "id,q\n1,1\n");
        bench.line("import s.csv s --dims id");
        for _ in 0..5 {
            bench.line("import s.csv s --append");
        }
        let uri = bucket.uri("s");
        // A copy is gone on with.
        assert!(stopped(&bench, &bucket, &format!("copy s {uri}"), 6));
        assert_eq!(bucket.unfinished(), 0);
        line(&bench, &bucket, &format!("copy s {uri}"));
        let count = || line(&bench, &bucket, &format!("agg {uri} count")).out;
        assert_eq!(count().trim(), "6");
        let before = bucket.keys();
        for after in 1..6 {
            if stopped(&bench, &bucket, &format!("consolidate {uri}"), after) {
                assert_eq!(count().trim(), "6");
                let deep = format!("check {uri} --deep --fail-on warning");
                line(&bench, &bucket, &deep);
            }
        }
        // But the claim of the copy, which later ones have followed.
        let after = bucket.keys();
        let gone = before.difference(&after);
        assert!(gone.into_iter().all(|key| key.contains("__azulejo_claim")));
        line(&bench, &bucket, &format!("delete {uri} --yes"));
        assert_eq!(bucket.keys().len(), 0);
    }
}

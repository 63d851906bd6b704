//! `azulejo worker` and `azulejo sql --workers`: processes that work together.
#![cfg(feature = "distributed")]

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

type TestResult<T = ()> = Result<T, Box<dyn Error>>;

/// A worker, which ends with the test.
struct Worker {
    process: Child,
    address: String,
}

impl Worker {
    fn start() -> TestResult<Self> {
        let mut process = Command::new(assert_cmd::cargo::cargo_bin("azulejo"))
            .args(["worker", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let said = process.stdout.take().ok_or("no standard output")?;
        BufReader::new(said).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on ");
        Ok(Self {
            address: address.ok_or(format!("it says {line:?}"))?.to_owned(),
            process,
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn azulejo(folder: &Path, args: &[&str]) -> TestResult<Output> {
    let program = assert_cmd::cargo::cargo_bin("azulejo");
    Ok(Command::new(program)
        .args(args)
        .current_dir(folder)
        .output()?)
}

#[test]
fn workers_answer_as_one_process_or_not_at_all() -> TestResult {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let mut rows = String::from("x,k,v\n");
    for x in 0..200_000 {
        rows.push_str(&format!("{x},{},{}\n", x % 10, (x * 7919) % 1000));
    }
    std::fs::write(folder.join("cells.csv"), rows)?;
    let made = azulejo(
        folder,
        &["import", "cells.csv", "cells", "--dims", "x", "--quiet"],
    )?;
    assert!(made.status.success(), "{made:?}");
    let mut workers = [Worker::start()?, Worker::start()?, Worker::start()?];
    let addresses = workers.each_ref().map(|worker| worker.address.clone());
    let addresses = addresses.join(",");
    // Workers need not stand in the same folder.
    let uri = folder.join("cells").display().to_string();
    let query = format!(
        "SELECT k, count(*) AS n, sum(v) AS s FROM '{uri}' WHERE v % 3 <> 1 GROUP BY k ORDER BY k"
    );
    let one = azulejo(folder, &["sql", &query])?;
    assert!(one.stdout.starts_with(b"k,n,s\n0,"), "{one:?}");
    let many = || {
        azulejo(
            folder,
            &["sql", &query, "--workers", &addresses, "--partitions", "1"],
        )
    };
    let found = many()?;
    let whole = one.stdout;
    assert_eq!(
        String::from_utf8_lossy(&found.stdout),
        String::from_utf8_lossy(&whole)
    );
    let explained = format!("EXPLAIN ANALYZE {query}");
    let explain = [
        "sql",
        &explained,
        "--workers",
        &addresses,
        "--partitions",
        "1",
    ];
    let plan = String::from_utf8(azulejo(folder, &explain)?.stdout)?;
    assert!(plan.contains("Distributed"), "{plan}");

    // The dead one may not have been needed: then the answer is whole.
    let kill = |worker: &mut Worker| worker.process.kill().and(worker.process.wait());
    kill(&mut workers[2])?;
    let after = many()?;
    if after.status.success() {
        assert_eq!(after.stdout, whole);
    } else {
        has_no_rows(&after);
    }
    kill(&mut workers[0])?;
    kill(&mut workers[1])?;
    let begun = Instant::now();
    let failed = many()?;
    assert!(!failed.status.success(), "{failed:?}");
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    has_no_rows(&failed);
    Ok(())
}

/// Nothing below the names of the columns.
fn has_no_rows(output: &Output) {
    assert!(
        output.stdout.is_empty() || output.stdout == b"k,n,s\n",
        "{output:?}"
    );
}

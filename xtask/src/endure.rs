//! `cargo xtask endure`: four processes change and read the same arrays, against a model of every
//! committed write.
//!
//! Two are ours, one goes through our C API, one is libtiledb, which writes, reads and deletes (its
//! consolidations and vacuums know nothing of our lock). Each knows its own cells, and checks all
//! others' for being whole. What they say when their time is over is compared with what either
//! engine reads then, once more after all was merged and vacuumed.

mod memory;
mod model;
mod worker;

use crate::{Outcome, capi, reference, root};
use azulejo::check::{CheckOptions, Severity};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::{Config, Context, TimeRange};
use model::{Blocks, Kind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What a process is.
const ROLES: [&str; 4] = ["engine", "engine", "C API", "libtiledb"];
/// A process that says nothing for so long hangs.
const SILENCE: Duration = Duration::from_secs(180);

/// Options: `--minutes N` (1), `--seconds N`, `--seed N` (the time), `--debug` (a debug build of the C
/// API), `--library FILE` (another one, which is not built).
pub fn run(options: &[&str]) -> Outcome {
    if let ["worker", rest @ ..] = options {
        return worker::run(rest);
    }
    let number = |text: &&str| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
    let (mut seconds, mut seed, mut debug, mut library) = (60, None, false, None);
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match (*word, words.clone().next()) {
            ("--debug", _) => debug = true,
            ("--minutes", Some(n)) => seconds = number(n)? * 60,
            ("--seconds", Some(n)) => seconds = number(n)?,
            ("--seed", Some(n)) => seed = Some(number(n)?),
            ("--library", Some(file)) => library = Some(PathBuf::from(file)),
            _ => return Err(format!("{word:?}: no such option, or it wants a value")),
        }
        if *word != "--debug" {
            words.next();
        }
    }
    let now = std::time::UNIX_EPOCH.elapsed();
    let seed = seed.unwrap_or_else(|| now.map_or(1, |since| since.as_secs()));
    let library = match library {
        Some(file) => file,
        None => capi::build(&root(), debug)?,
    };
    let folder = root().join(format!("target/endure-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    println!("endure: {seconds} s, seed {seed}, in {}", folder.display());
    let package = package_with(&library, &folder.join("python"))?;
    let outcome = endure(&folder, seconds, seed, &package);
    if outcome.is_ok() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    outcome
}

/// TileDB's Python package with our library in the place of its own.
fn package_with(library: &Path, folder: &Path) -> Result<PathBuf, String> {
    let python = reference::python()?;
    let script = root().join("xtask/python/swapped_package.py");
    reference::run(Command::new(python).arg(script).arg(library).arg(folder))?;
    Ok(folder.to_owned())
}

fn endure(folder: &Path, seconds: u64, seed: u64, package: &Path) -> Outcome {
    let place = folder.to_string_lossy().into_owned();
    let context = Context::new(Config::new(), None).map_err(|e| e.to_string())?;
    for kind in Kind::ALL {
        kind.create(&context, &place)?;
    }
    let reports = processes(&place, seconds, seed, package)?;
    let mut wanted: BTreeMap<Kind, Blocks> = BTreeMap::new();
    let mut growth = Ok(());
    for (role, report) in ROLES.iter().zip(&reports) {
        match memory::of(&report.kib) {
            Ok(said) => println!("{role}: {said}"),
            // Its memory is its own.
            Err(said) if *role == "libtiledb" => println!("{role}: {said}"),
            Err(said) => growth = Err(format!("{role}: {said}")),
        }
        for (what, count) in &report.counts {
            println!("  {count:>7} {what}");
        }
        for kind in Kind::ALL {
            let own = report.own.get(kind.name()).into_iter().flatten();
            wanted.entry(kind).or_default().extend(own);
        }
    }
    as_wanted(&context, &place, &wanted, "at the end")?;
    for kind in Kind::ALL {
        settle(&context, &kind.uri(&place)).map_err(|e| format!("{}: {e}", kind.name()))?;
    }
    as_wanted(&context, &place, &wanted, "after merging all")?;
    growth
}

/// What a process has said.
#[derive(Debug, Default)]
struct Report {
    own: BTreeMap<String, Blocks>,
    counts: BTreeMap<String, u64>,
    kib: Vec<u64>,
}

/// A process that is ended when this is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command of a process.
fn command(number: usize, package: &Path) -> Result<Command, String> {
    let python = |whose: &str| -> Result<Command, String> {
        let mut command = Command::new(reference::python()?);
        command
            .arg(root().join("xtask/python/endure.py"))
            .arg(whose);
        Ok(command)
    };
    match number {
        2 => {
            let mut command = python("ours")?;
            // Found before the package of the environment.
            command.env("PYTHONPATH", package);
            Ok(command)
        }
        3 => python("theirs"),
        _ => {
            let mut command = Command::new(std::env::current_exe().map_err(|e| e.to_string())?);
            command.args(["endure", "worker"]);
            Ok(command)
        }
    }
}

/// Runs all of them to their end; the first that fails ends all.
fn processes(folder: &str, seconds: u64, seed: u64, package: &Path) -> Result<Vec<Report>, String> {
    let (sender, lines) = mpsc::channel();
    let mut all = Vec::new();
    for number in 0..ROLES.len() {
        let mut command = command(number, package)?;
        command.args([&number.to_string(), &seconds.to_string(), &seed.to_string()]);
        let child = command.arg(folder).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|e| format!("cannot start {command:?}: {e}"))?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send((number, Some(line)));
            }
            let _ = sender.send((number, None));
        });
        all.push(Process(child));
    }
    let mut reports: Vec<Report> = ROLES.iter().map(|_| Report::default()).collect();
    let mut running = all.len();
    let mut said = vec![Instant::now(); all.len()];
    while running > 0 {
        let wait = lines.recv_timeout(Duration::from_secs(5));
        if let Ok((number, line)) = wait {
            said[number] = Instant::now();
            match line {
                Some(line) => reports[number].hear(&line)?,
                None => {
                    running -= 1;
                    said[number] += Duration::from_secs(86_400);
                    let status = all[number].0.wait().map_err(|e| e.to_string())?;
                    if !status.success() || reports[number].own.is_empty() {
                        return Err(format!("{} {number}: {status}", ROLES[number]));
                    }
                }
            }
        }
        if let Some(number) = said.iter().position(|said| said.elapsed() > SILENCE) {
            return Err(format!("{} {number} says nothing any more", ROLES[number]));
        }
    }
    Ok(reports)
}

impl Report {
    fn hear(&mut self, line: &str) -> Outcome {
        let wrong = |e: &dyn std::fmt::Display| format!("{line}: {e}");
        let said: Value = serde_json::from_str(line).map_err(|e| wrong(&e))?;
        if let Some(kib) = said["kib"].as_u64() {
            self.kib.push(kib);
        }
        if said.get("own").is_some() {
            self.own = own(&said)?;
            self.counts = serde_json::from_value(said["counts"].clone()).map_err(|e| wrong(&e))?;
        }
        Ok(())
    }
}

/// Blocks by array in what a process has said.
fn own(said: &Value) -> Result<BTreeMap<String, Blocks>, String> {
    serde_json::from_value(said["own"].clone()).map_err(|e| e.to_string())
}

/// Holds what both engines read, and a check, against what was written.
fn as_wanted(
    context: &Context,
    folder: &str,
    wanted: &BTreeMap<Kind, Blocks>,
    when: &str,
) -> Outcome {
    let mut theirs = command(3, Path::new(""))?;
    let output = theirs
        .args(["read", folder])
        .stderr(Stdio::inherit())
        .output();
    let output = output.map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let theirs = serde_json::from_str(&text)
        .map_err(|e| format!("libtiledb {when}: {text:?}: {e}"))
        .and_then(|said| own(&said))?;
    let mut wrong = Vec::new();
    for (kind, wanted) in wanted {
        let name = kind.name();
        let ours = model::read(context, folder, *kind)
            .map_err(|e| e.map_or_else(|cells| cells, |error| error.to_string()))
            .map_err(|e| format!("{name} {when}: {e}"))?;
        let nothing = Blocks::new();
        for (who, found) in [
            ("we", &ours),
            ("libtiledb", theirs.get(name).unwrap_or(&nothing)),
        ] {
            let differing = model::differences(found, wanted);
            wrong.extend(
                differing
                    .iter()
                    .map(|d| format!("{name} {when}, {who}: {d}")),
            );
        }
        let array = context.array(&kind.uri(folder));
        let report = array.check(CheckOptions::default());
        let report = report.map_err(|e| format!("{name} {when}: {e}"))?;
        let errors = report
            .findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error);
        wrong.extend(errors.map(|f| format!("{name} {when}, check: {f:?}")));
        println!(
            "{name} {when}: {} blocks, {} fragments",
            wanted.len(),
            report.fragments
        );
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

/// Merges and vacuums whatever can be.
fn settle(context: &Context, uri: &str) -> azulejo::Result<()> {
    let array = context.array(uri);
    array.consolidate(&FragmentOptions::new())?;
    array.consolidate_metadata(TimeRange::ALL)?;
    array.consolidate_commits()?;
    array.consolidate_fragment_metadata()?;
    for mode in [
        Mode::Fragments,
        Mode::Commits,
        Mode::FragmentMetadata,
        Mode::ArrayMetadata,
    ] {
        array.vacuum(mode, VacuumOptions::default())?;
    }
    Ok(())
}

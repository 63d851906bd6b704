//! `cargo xtask fuzz`: the fuzz targets under coverage guidance, and how much of the decoders they
//! reach.
//!
//! The fuzzer is libFuzzer, which the compiler's own coverage instrumentation guides: stable Rust
//! will do. The address sanitizer wants a nightly toolchain, the measuring of coverage LLVM's tools
//! of the compiler's version.

mod coverage;

use crate::cargo::{cargo, nightly};
use crate::{Outcome, reference, root};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What `cargo fuzz` builds with, too.
const GUIDANCE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";
/// A run that takes longer hangs.
const TIMEOUT_SECONDS: u32 = 30;
/// More memory than this is a leak, or an allocation that hostile bytes have asked for.
const MEMORY_MIB: u32 = 3072;
/// Inputs larger than this are not committed.
const LARGEST: u64 = 8 << 10;
/// How often each target ran, under guidance.
const TALLY: &str = "fuzz/tally.tsv";

/// What is built: a folder below `fuzz/target`, flags, and whether it takes a nightly toolchain.
struct Build {
    folder: &'static str,
    flags: String,
    nightly: bool,
}

/// Options: targets (all), `--seconds N` for each (60), `--address` (under the address sanitizer),
/// `--keep` (inputs that reach more go to `fuzz/corpus`); or `coverage`, with `--llvm FOLDER` where
/// the toolchain has none of LLVM's tools.
pub fn run(options: &[&str]) -> Outcome {
    let (mut seconds, mut address, mut keep, mut coverage) = (60u64, false, false, false);
    let (mut targets, mut llvm) = (Vec::new(), None);
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match *word {
            "--seconds" => {
                let n = words.next().ok_or("--seconds wants a number")?;
                seconds = n.parse().map_err(|e| format!("{n}: {e}"))?;
            }
            "--address" => address = true,
            "--keep" => keep = true,
            "coverage" => coverage = true,
            "--llvm" => llvm = Some(words.next().ok_or("--llvm wants a folder")?),
            target => targets.push(target.to_owned()),
        }
    }
    let all = names()?;
    if let Some(wrong) = targets.iter().find(|target| !all.contains(target)) {
        return Err(format!("no target {wrong:?}; there are {}", all.join(", ")));
    }
    if targets.is_empty() {
        targets = all;
    }
    if coverage {
        return coverage::measure(&targets, llvm.map(Path::new));
    }
    let program = build(&match address {
        true => Build {
            folder: "address",
            flags: format!("{GUIDANCE} -Zsanitizer=address"),
            nightly: true,
        },
        false => Build {
            folder: "guided",
            flags: GUIDANCE.to_owned(),
            nightly: false,
        },
    })?;
    let mut failed = Vec::new();
    for target in &targets {
        let (count, well) = fuzz(&program, target, seconds)?;
        add(target, count)?;
        println!("{target}: {count} executions");
        if !well {
            failed.push(target.as_str());
        }
        if keep && well {
            keep_found(&program, target)?;
        }
    }
    let sum: u64 = tally()?.values().sum();
    println!("{sum} executions in all, by {TALLY}");
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(format!(
            "failed: {}; the inputs lie in fuzz/target/crashes",
            failed.join(", ")
        )),
    }
}

/// The targets: each has a folder of inputs.
fn names() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/corpus");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<_> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// Builds the targets' program, and says where it lies.
fn build(build: &Build) -> Result<PathBuf, String> {
    let host = host()?;
    let folder = root().join("fuzz/target").join(build.folder);
    let mut command = match build.nightly {
        true => nightly(),
        false => cargo(),
    };
    command
        .args(["build", "--features", "libfuzzer,calls", "--target", &host])
        .arg("--manifest-path")
        .arg(root().join("fuzz/Cargo.toml"))
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", &build.flags);
    reference::run(&mut command)?;
    Ok(folder.join(host).join("debug/azulejo-fuzz"))
}

/// The platform, which flags for the program alone, and not for what is built to build it, want to
/// know.
pub fn host() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.map_err(|e| format!("cannot start rustc: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc -vV names no host")?.to_owned())
}

fn folder(kind: &str, target: &str) -> Result<PathBuf, String> {
    let folder = root().join("fuzz/target").join(kind).join(target);
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// The program, about to run one target.
fn program(program: &Path, target: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env("AZULEJO_FUZZ_TARGET", target)
        .env("ASAN_OPTIONS", "detect_odr_violation=0:detect_leaks=0");
    command
}

/// Runs a target; returns how often, and whether it went well.
fn fuzz(path: &Path, target: &str, seconds: u64) -> Result<(u64, bool), String> {
    let (found, crashes) = (folder("found", target)?, folder("crashes", target)?);
    let child = program(path, target)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={TIMEOUT_SECONDS}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-artifact_prefix={}/", crashes.display()))
        .arg("-print_final_stats=1")
        .arg(&found)
        .arg(root().join("fuzz/corpus").join(target))
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot start {}: {e}", path.display()))?;
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let last: Vec<&str> = said.lines().rev().take(60).collect();
        for line in last.iter().rev() {
            println!("  {line}");
        }
    }
    let count = said
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0);
    Ok((count, output.status.success()))
}

/// Copies inputs that reach code that none of the committed ones does: found ones, and those that
/// the example `seeds` has written.
fn keep_found(path: &Path, target: &str) -> Outcome {
    let small = folder("small", target)?;
    for kind in ["found", "seeds"] {
        let entries = std::fs::read_dir(folder(kind, target)?).map_err(|e| e.to_string())?;
        for entry in entries.flatten() {
            if entry.metadata().is_ok_and(|m| m.len() <= LARGEST) {
                let to = small.join(entry.file_name());
                std::fs::copy(entry.path(), to).map_err(|e| e.to_string())?;
            }
        }
    }
    let mut command = program(path, target);
    command
        // How often something is done, and what was compared, is for the fuzzer alone.
        .args(["-merge=1", "-use_counters=0", "-use_cmp=0"])
        .arg(root().join("fuzz/corpus").join(target))
        .arg(&small)
        .stderr(Stdio::null());
    reference::run(&mut command)
}

fn tally() -> Result<BTreeMap<String, u64>, String> {
    let text = std::fs::read_to_string(root().join(TALLY)).unwrap_or_default();
    let rows = text.lines().map(|line| {
        let (target, count) = line.split_once('\t').ok_or(format!("{TALLY}: {line:?}"))?;
        let count = count
            .parse()
            .map_err(|e| format!("{TALLY}: {line:?}: {e}"))?;
        Ok((target.to_owned(), count))
    });
    rows.collect()
}

/// Adds to how often a target ran.
fn add(target: &str, count: u64) -> Outcome {
    let mut all = tally()?;
    *all.entry(target.to_owned()).or_default() += count;
    let rows: String = all.iter().map(|(t, n)| format!("{t}\t{n}\n")).collect();
    std::fs::write(root().join(TALLY), rows).map_err(|e| format!("{TALLY}: {e}"))
}

//! `cargo xtask versus`: the reference beside us on the same files, in turn, and the ratio of the
//! times.
//!
//! Each side runs in a process of its own that times its phases and reports them with a checksum of
//! what it read; sides alternate round by round, and the median of the per-round ratios counts.
//! Times themselves are not worth quoting: machines are noisy.

mod ceilings;
mod library;
mod ours;
mod phases;
mod theirs;

use crate::{Outcome, reference, root};
use phases::{Engine, Phase};
use std::path::Path;
use std::process::Command;

/// One phase of one run: seconds, and what was read.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
struct Timing {
    seconds: f64,
    cells: u64,
    checksum: u64,
}

/// Timings by phase, and the peak memory of the process.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Run {
    phases: Vec<(String, Timing)>,
    peak_mb: u64,
}

impl Run {
    fn timing(&self, phase: &str) -> Option<Timing> {
        self.phases
            .iter()
            .find(|(name, _)| name == phase)
            .map(|(_, timing)| *timing)
    }
}

/// Where the reference's shared library lies.
pub fn reference_library() -> Result<std::path::PathBuf, String> {
    library::TileDb::path()
}

/// Options: `--quick` (smaller arrays, fewer rounds), `--rounds N`, `--only TEXT` (phases whose
/// `array/phase` holds it).
pub fn run(options: &[&str]) -> Outcome {
    if let ["one", side, array, only, repeats, dir] = options {
        let repeats = repeats.parse().map_err(|_| "how often?")?;
        return one(side, array, only, repeats, Path::new(dir));
    }
    if let ["ceilings"] = options {
        return ceilings::run();
    }
    let value = |name| {
        options
            .iter()
            .position(|o| *o == name)
            .and_then(|i| options.get(i + 1))
            .copied()
    };
    let only = value("--only").unwrap_or("");
    let quick = options.contains(&"--quick");
    let rounds: usize = match value("--rounds") {
        Some(n) => n.parse().map_err(|_| "--rounds wants a number")?,
        None if quick => 3,
        None => 5,
    };
    if cfg!(debug_assertions) {
        println!("an unoptimised build: the results are looked at, the ratios say nothing");
    }
    let python = reference::python()?;
    let dir = root()
        .join("target")
        .join(if quick { "versus-quick" } else { "versus" });
    if !dir.join("done").is_file() {
        println!("the reference writes the arrays ..");
        reference::run(
            Command::new(python)
                .arg(root().join("xtask/python/versus_data.py"))
                .arg(&dir)
                .args(quick.then_some("--quick")),
        )?;
    }
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let side = |side: &str, array: &str| -> Result<Run, String> {
        let out = Command::new(&exe)
            .args(["versus", "one", side, array, only, "3"])
            .arg(&dir)
            .output()
            .map_err(|e| e.to_string())?;
        if !out.status.success() {
            return Err(format!(
                "{side} {array}: {}",
                String::from_utf8_lossy(&out.stderr)
            ));
        }
        serde_json::from_slice(&out.stdout).map_err(|e| format!("{side} {array}: {e}"))
    };
    let (mut ratios, mut different) = (Vec::new(), 0);
    println!(
        "{:18} {:14} {:>9}  {:>11} {:>11}  peak MB ours/reference",
        "array", "phase", "ratio", "ours", "reference"
    );
    let scale = phases::Scale::read(&dir)?;
    for array in phases::ARRAYS {
        if !phases::of(array, scale)
            .iter()
            .any(|phase| is_wanted(array, phase, only))
        {
            continue;
        }
        let mut pairs = Vec::new();
        for _ in 0..rounds {
            pairs.push((side("ours", array)?, side("reference", array)?));
        }
        let Some((first, _)) = pairs.first() else {
            continue;
        };
        for (phase, _) in &first.phases {
            let timings: Vec<(Timing, Timing)> = pairs
                .iter()
                .filter_map(|(o, r)| Some((o.timing(phase)?, r.timing(phase)?)))
                .collect();
            let mut each: Vec<f64> = timings.iter().map(|(o, r)| r.seconds / o.seconds).collect();
            each.sort_by(f64::total_cmp);
            let Some(&ratio) = each.get(each.len() / 2) else {
                continue;
            };
            let same = timings
                .iter()
                .all(|(o, r)| o.cells == r.cells && o.checksum == r.checksum);
            different += usize::from(!same);
            let best = |f: fn(&(Timing, Timing)) -> f64| {
                timings.iter().map(f).fold(f64::INFINITY, f64::min)
            };
            let peak = |f: fn(&(Run, Run)) -> u64| pairs.iter().map(f).max().unwrap_or(0);
            println!(
                "{array:18} {phase:14} {ratio:8.2}x  {:9.2}ms {:9.2}ms  {}/{}{}",
                best(|(o, _)| o.seconds) * 1e3,
                best(|(_, r)| r.seconds) * 1e3,
                peak(|(o, _)| o.peak_mb),
                peak(|(_, r)| r.peak_mb),
                if same { "" } else { "  RESULTS DIFFER" }
            );
            ratios.push(ratio);
        }
    }
    let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp();
    println!(
        "geometric mean {mean:.2}x over {} phases; {} slower than the reference; {different} with different results",
        ratios.len(),
        ratios.iter().filter(|r| **r < 1.0).count()
    );
    if different == 0 {
        Ok(())
    } else {
        Err("results differ".into())
    }
}

fn is_wanted(array: &str, phase: &Phase, only: &str) -> bool {
    format!("{array}/{}", phase.name).contains(only)
}

/// Runs the phases of one array on one side and prints them as JSON.
fn one(side: &str, array: &str, only: &str, repeats: usize, dir: &Path) -> Outcome {
    let uri = dir.join(array).to_string_lossy().into_owned();
    let scale = phases::Scale::read(dir)?;
    let buffers = phases::buffers(array, scale);
    let mut engine: Box<dyn Engine> = match side {
        "ours" => Box::new(ours::Azulejo::new(array, &uri, buffers)?),
        _ => Box::new(theirs::Reference::new(array, &uri, buffers)?),
    };
    let mut timings = Vec::new();
    for phase in phases::of(array, scale) {
        if is_wanted(array, &phase, only) {
            timings.push((
                phase.name.to_owned(),
                time(engine.as_mut(), &phase, repeats)?,
            ));
        }
    }
    let run = Run {
        phases: timings,
        peak_mb: peak_mb(),
    };
    println!(
        "{}",
        serde_json::to_string(&run).map_err(|e| e.to_string())?
    );
    Ok(())
}

/// The best of some repeats.
fn time(engine: &mut dyn Engine, phase: &Phase, repeats: usize) -> Result<Timing, String> {
    let mut best: Option<Timing> = None;
    for _ in 0..repeats {
        let start = std::time::Instant::now();
        let (cells, checksum, summing) = engine.run(phase)?;
        let seconds = start.elapsed().as_secs_f64() - summing;
        if best.is_none_or(|b| seconds < b.seconds) {
            best = Some(Timing {
                seconds,
                cells,
                checksum,
            });
        }
    }
    best.ok_or_else(|| "no run".into())
}

/// Peak resident memory of this process; 0 where the system does not tell.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|l| l.starts_with("VmHWM:"))
        .unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|kb| kb.parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

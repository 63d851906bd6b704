//! `cargo xtask cloud bench`: us and the reference in turn, through the same S3 server with a
//! latency added to each request.

use super::cells;
use super::peer::Peer;
use super::proxy::Plan;
use super::requests::{self, Measured, PHASES, SIZES};
use super::{BUCKET, Stage, s3_uri};
use crate::Outcome;
use crate::folders::copy;
use serde_json::json;
use std::time::{Duration, Instant};

/// Added to each request.
const LATENCY: Duration = Duration::from_millis(20);
/// Fragments that are consolidated.
const CONSOLIDATED: i64 = 100;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What is measured, and how.
struct Options {
    rounds: usize,
    /// Threads of the reference for requests and for work, instead of one a core.
    threads: Option<u32>,
    /// The way of each answer of a consolidation is printed.
    log: bool,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self {
            rounds: 3,
            threads: None,
            log: words.contains(&"--log"),
        };
        let numbers: Vec<&str> = words
            .iter()
            .copied()
            .filter(|word| *word != "--log")
            .collect();
        for pair in numbers.chunks(2) {
            let number = pair.get(1).and_then(|n| n.parse().ok());
            match (pair.first().copied(), number) {
                (Some("--rounds"), Some(n)) if n > 0 => options.rounds = n as usize,
                (Some("--reference-threads"), Some(n)) => options.threads = Some(n),
                _ => {
                    return Err(
                        "cloud bench takes --rounds N, --reference-threads N and --log".into(),
                    );
                }
            }
        }
        Ok(options)
    }

    /// Opening thousands of fragments takes the reference minutes: once is enough for a ratio of a
    /// hundred.
    fn rounds_of(&self, fragments: i64) -> usize {
        if fragments > 100 { 1 } else { self.rounds }
    }
}

/// Options: `--rounds N`, `--reference-threads N`, `--log` for the way of each answer of a consolidation.
pub fn run(stage: &Stage, words: &[&str]) -> Outcome {
    let options = Options::parse(words)?;
    let mut peer = Peer::start(stage.proxy.address)?;
    if let Some(threads) = options.threads {
        let threads = threads.to_string();
        let levels = ["sm.io_concurrency_level", "sm.compute_concurrency_level"];
        let config: serde_json::Map<_, _> = levels
            .iter()
            .map(|name| ((*name).to_owned(), json!(threads)))
            .collect();
        peer.ask(&json!({ "do": "configure", "config": config }))?;
    }
    println!(
        "| fragments | work | ours, s | requests | bytes | reference, s | requests | bytes | time | requests | bytes |"
    );
    println!("|{}", "---|".repeat(11));
    let outcome = measure_all(stage, &mut peer, &options);
    // Who stops here must not leave the proxy slow.
    stage.proxy.plan(Plan::default());
    let cells = cells::MANY_CELLS;
    println!(
        "Medians of {} rounds ({} with thousands of fragments), {} ms a request, {cells} cells a fragment",
        options.rounds,
        options.rounds_of(i64::MAX),
        LATENCY.as_millis()
    );
    outcome
}

fn measure_all(stage: &Stage, peer: &mut Peer, options: &Options) -> Outcome {
    let slow = || {
        stage.proxy.plan(Plan {
            latency: LATENCY,
            noted: options.log,
            ..Plan::default()
        });
    };
    for fragments in SIZES {
        let mut runs: Vec<(Vec<Measured>, Vec<Measured>)> = Vec::new();
        let name = format!("requests/fragments-{fragments}");
        for _ in 0..options.rounds_of(fragments) {
            // Each round appends: it begins with a new array.
            let _ = std::fs::remove_dir_all(stage.root.join(BUCKET).join(&name));
            stage.proxy.plan(Plan::default());
            requests::make(stage, &name, fragments)?;
            slow();
            let ours = requests::ours(stage, fragments)?;
            runs.push((ours, requests::theirs(stage, peer, fragments)?));
        }
        for (i, phase) in PHASES.iter().enumerate() {
            let pairs: Vec<_> = runs
                .iter()
                .filter_map(|(ours, theirs)| Some((ours.get(i)?, theirs.get(i)?)))
                .collect();
            row(fragments, phase, &pairs);
        }
    }
    let mut runs = Vec::new();
    for round in 0..options.rounds {
        let names = ["ours", "theirs"].map(|side| format!("bench/{side}-{round}"));
        requests::make(stage, &names[0], CONSOLIDATED)?;
        let folder = stage.root.join(BUCKET);
        copy(&folder.join(&names[0]), &folder.join(&names[1])).map_err(|e| e.to_string())?;
        let [ours, theirs] = names.map(|name| s3_uri(&name));
        slow();
        let context = stage.context()?;
        let _ = stage.proxy.take_passed();
        let begun = Instant::now();
        let ours = requests::measure(stage, || {
            context
                .array(&ours)
                .consolidate(&Default::default())
                .map_err(|e| e.to_string())
        })?;
        if options.log {
            requests::print_passed(stage, begun);
        }
        peer.ask(&json!({ "do": "fresh" }))?;
        let command = json!({ "do": "consolidate", "uri": theirs, "mode": "fragments" });
        runs.push((ours.1, requests::measure(stage, || peer.ask(&command))?.1));
        stage.proxy.plan(Plan::default());
    }
    row(
        CONSOLIDATED,
        "consolidation",
        &runs.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>(),
    );
    Ok(())
}

fn row(fragments: i64, phase: &str, runs: &[(&Measured, &Measured)]) {
    let ours_s = median(runs.iter().map(|run| run.0.seconds).collect());
    let theirs_s = median(runs.iter().map(|run| run.1.seconds).collect());
    let ratio = median(
        runs.iter()
            .map(|(ours, theirs)| theirs.seconds / ours.seconds)
            .collect(),
    );
    let Some((ours, theirs)) = runs.first() else {
        return;
    };
    let bytes = |side: &Measured| side.counts.sent + side.counts.received;
    let (ours_n, theirs_n) = (ours.counts.total(), theirs.counts.total());
    let (ours_b, theirs_b) = (bytes(ours), bytes(theirs));
    let times = |theirs: u64, ours: u64| theirs as f64 / ours.max(1) as f64;
    println!(
        "| {fragments} | {phase} | {ours_s:.2} | {ours_n} | {ours_b} | {theirs_s:.2} | {theirs_n} | {theirs_b} | {ratio:.1} | {:.1} | {:.1} |",
        times(theirs_n, ours_n),
        times(theirs_b, ours_b)
    );
}

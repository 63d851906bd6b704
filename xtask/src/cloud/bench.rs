//! `cargo xtask cloud bench`: us and the reference in turn, through the same S3 server with a latency added to each request.

use super::cells;
use super::peer::Peer;
use super::proxy::Plan;
use super::requests::{self, Measured, PHASES, SIZES};
use super::{BUCKET, Stage, s3_uri};
use crate::Outcome;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Added to each request.
const LATENCY: Duration = Duration::from_millis(20);
/// Fragments that are consolidated.
const CONSOLIDATED: i64 = 100;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Options: `--rounds N`.
pub fn run(stage: &Stage, options: &[&str]) -> Outcome {
    let rounds = match options {
        ["--rounds", n] => n.parse().map_err(|_| "--rounds wants a number")?,
        [] => 3,
        _ => return Err("cloud bench takes --rounds N".into()),
    };
    let mut peer = Peer::start(stage.proxy.address)?;
    let slow = || stage.proxy.plan(Plan { latency: LATENCY, ..Plan::default() });
    println!(
        "| fragments | work | ours, s | requests | reference, s | requests | ratio |\n|---|---|---|---|---|---|---|"
    );
    for fragments in SIZES {
        let mut runs: Vec<(Vec<Measured>, Vec<Measured>)> = Vec::new();
        let name = format!("requests/fragments-{fragments}");
        for _ in 0..rounds {
            // Each round appends: it begins with a new array.
            let _ = std::fs::remove_dir_all(stage.root.join(BUCKET).join(&name));
            stage.proxy.plan(Plan::default());
            requests::make(stage, &name, fragments)?;
            slow();
            let ours = requests::ours(stage, fragments)?;
            runs.push((ours, requests::theirs(stage, &mut peer, fragments)?));
        }
        for (i, phase) in PHASES.iter().enumerate() {
            let pairs: Vec<_> = runs.iter().map(|(ours, theirs)| (&ours[i], &theirs[i])).collect();
            row(fragments, phase, &pairs);
        }
    }
    let mut runs = Vec::new();
    for round in 0..rounds {
        let names = ["ours", "theirs"].map(|side| format!("bench/{side}-{round}"));
        requests::make(stage, &names[0], CONSOLIDATED)?;
        let folder = stage.root.join(BUCKET);
        copy(&folder.join(&names[0]), &folder.join(&names[1])).map_err(|e| e.to_string())?;
        let [ours, theirs] = names.map(|name| s3_uri(&name));
        slow();
        let context = stage.context()?;
        let ours = requests::measure(stage, || {
            azulejo::consolidate::fragments(&context, &ours, &Default::default()).map_err(|e| e.to_string())
        })?;
        peer.ask(&json!({ "do": "fresh" }))?;
        let command = json!({ "do": "consolidate", "uri": theirs, "mode": "fragments" });
        runs.push((ours.1, requests::measure(stage, || peer.ask(&command))?.1));
        stage.proxy.plan(Plan::default());
    }
    row(CONSOLIDATED, "consolidation", &runs.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>());
    let cells = cells::MANY_CELLS;
    println!("{rounds} rounds, medians, {} ms a request, {cells} cells a fragment", LATENCY.as_millis());
    Ok(())
}

fn row(fragments: i64, phase: &str, runs: &[(&Measured, &Measured)]) {
    let ratio = median(runs.iter().map(|(ours, theirs)| theirs.seconds / ours.seconds).collect());
    let seconds = |of: fn(&(&Measured, &Measured)) -> f64| median(runs.iter().map(of).collect());
    let requests = runs.first().map(|(ours, theirs)| (ours.counts.total(), theirs.counts.total()));
    let (ours, theirs) = requests.unwrap_or_default();
    println!(
        "| {fragments} | {phase} | {:.2} | {ours} | {:.2} | {theirs} | {ratio:.1} |",
        seconds(|run| run.0.seconds),
        seconds(|run| run.1.seconds)
    );
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            std::fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

//! Two writers and a consolidator, processes of their own, on one array in one bucket: nothing is
//! lost.

use super::cells::{self, LAST};
use super::peer::Peer;
use super::proxy::{Fault, Plan};
use super::{Stage, Tally, s3_context, s3_uri};
use crate::Outcome;
use azulejo::consolidate::Mode;
use std::process::{Child, Command};

/// Fragments of each writer.
const WRITES: i64 = 14;
/// Rounds of the consolidator.
const ROUNDS: usize = 6;

/// The coordinates of a writer's fragment: those of the other writer lie between them.
fn part(writer: i64, i: i64) -> Vec<i64> {
    (0..10).map(|k| i * 20 + 2 * k + writer).collect()
}

/// A worker's process: `ADDRESS URI write WRITER` or `ADDRESS URI consolidate`.
pub fn work(options: &[&str]) -> Outcome {
    let [address, uri, what, rest @ ..] = options else {
        return Err("a worker wants more words".into());
    };
    let address = address.parse().map_err(|e| format!("{address}: {e}"))?;
    let context = s3_context(address, &[])?;
    match *what {
        "write" => {
            let writer: i64 = rest
                .first()
                .and_then(|n| n.parse().ok())
                .ok_or("which writer?")?;
            for i in 0..WRITES {
                cells::write_known(&context, uri, &part(writer, i), false, true)
                    .map_err(|e| e.to_string())?;
            }
            Ok(())
        }
        _ => {
            for _ in 0..ROUNDS {
                context
                    .array(uri)
                    .consolidate(&Default::default())
                    .map_err(|e| e.to_string())?;
                for mode in [Mode::Fragments, Mode::Commits] {
                    if mode == Mode::Commits {
                        context
                            .array(uri)
                            .consolidate_commits()
                            .map_err(|e| e.to_string())?;
                    }
                    context
                        .array(uri)
                        .vacuum(mode, Default::default())
                        .map_err(|e| e.to_string())?;
                }
            }
            Ok(())
        }
    }
}

struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs it, on a sound network and on one that is not.
pub fn run(stage: &mut Stage, tally: &mut Tally) -> Outcome {
    let faults = vec![
        Fault::Delay(40),
        Fault::CutBefore,
        Fault::Refuse(503),
        Fault::Truncate,
    ];
    let rough = Plan {
        faults,
        per_mille: 40,
        seed: 3,
        ..Plan::default()
    };
    for (name, plan) in [("sound", Plan::default()), ("rough", rough)] {
        tally.check(
            &format!("two writers and a consolidator, {name} network"),
            || {
                let uri = s3_uri(&format!("writers/{name}"));
                let sound = s3_context(stage.sound.address, &[])?;
                cells::create(&sound, &uri, false).map_err(|e| e.to_string())?;
                stage.proxy.plan(plan);
                let program = std::env::current_exe().map_err(|e| e.to_string())?;
                let start = |words: &[&str]| -> Result<Worker, String> {
                    let mut command = Command::new(&program);
                    command
                        .args(["cloud", "worker"])
                        .arg(stage.proxy.address.to_string())
                        .arg(&uri)
                        .args(words);
                    command.spawn().map(Worker).map_err(|e| e.to_string())
                };
                let mut workers = [
                    start(&["write", "0"])?,
                    start(&["write", "1"])?,
                    start(&["consolidate"])?,
                ];
                let mut outcome = Ok(());
                for (worker, name) in
                    workers
                        .iter_mut()
                        .zip(["first writer", "second writer", "consolidator"])
                {
                    let status = worker.0.wait().map_err(|e| e.to_string())?;
                    if !status.success() {
                        outcome = Err(format!("the {name}: {status}"));
                    }
                }
                stage.proxy.plan(Plan::default());
                outcome?;
                let all = (0..2).flat_map(|writer| (0..WRITES).flat_map(move |i| part(writer, i)));
                let expected = cells::expected(all);
                let found = cells::read(&sound, &uri, 0, LAST).map_err(|e| e.to_string())?;
                cells::compare(&found, &expected)?;
                let mut peer = Peer::start(stage.sound.address)?;
                cells::compare(&peer.read(&uri, 0, LAST)?, &expected)
                    .map_err(|e| format!("the reference: {e}"))?;
                match stage.proxy.open_uploads() {
                    0 => Ok(()),
                    n => Err(format!("{n} uploads were neither finished nor aborted")),
                }
            },
        );
    }
    Ok(())
}

//! Two writers and a consolidator, processes of their own, on one array in one bucket: nothing is
//! lost.

use super::cells::{self, LAST};
use super::peer::Peer;
use super::proxy::{Fault, Plan};
use super::{Stage, Tally, s3_context, s3_uri, sql};
use crate::Outcome;
use azulejo::Context;
use azulejo::consolidate::Mode;
use azulejo::format::{ArraySchema, Datatype};
use std::process::{Child, Command};
use std::time::Duration;

/// Fragments of each writer.
const WRITES: i64 = 14;
/// Rounds of the consolidator.
const ROUNDS: usize = 6;

/// The coordinates of a writer's fragment: those of the other writer lie between them.
fn part(writer: i64, i: i64) -> Vec<i64> {
    (0..10).map(|k| i * 20 + 2 * k + writer).collect()
}

/// A worker's process: `ADDRESS URI write WRITER`, `ADDRESS URI consolidate`, or what
/// [`sql::write`] says.
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
        "sql" => sql::write(&context, uri, rest),
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

fn create_with_duplicates(context: &Context, uri: &str) -> Outcome {
    let schema = ArraySchema::sparse()
        .dimension("x", 0..=LAST, 10)
        .attribute("a", Datatype::Int32)
        .var_attribute("s", Datatype::StringUtf8)
        .allows_duplicates(true);
    let schema = schema.build().map_err(|e| e.to_string())?;
    context.array(uri).create(schema).map_err(|e| e.to_string())
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
    for (name, plan, consolidators) in [
        ("sound", Plan::default(), 1),
        ("rough", rough, 1),
        // Each on a machine of its own, as far as they know: only their claims keep them apart.
        ("duplicates", Plan::default(), 3),
    ] {
        tally.check(
            &format!("two writers, consolidators: {consolidators}, {name}"),
            || {
                let uri = s3_uri(&format!("writers/{name}"));
                let sound = s3_context(stage.sound.address, &[])?;
                if consolidators == 1 {
                    cells::create(&sound, &uri, false).map_err(|e| e.to_string())?;
                } else {
                    create_with_duplicates(&sound, &uri)?;
                }
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
                let mut workers = vec![start(&["write", "0"])?, start(&["write", "1"])?];
                for _ in 0..consolidators {
                    workers.push(start(&["consolidate"])?);
                }
                // One that is killed, maybe with a claim, which another one takes over.
                let mut killed = (consolidators > 1)
                    .then(|| start(&["consolidate"]))
                    .transpose()?;
                if let Some(worker) = &mut killed {
                    std::thread::sleep(Duration::from_millis(700));
                    worker.0.kill().map_err(|e| e.to_string())?;
                }
                let mut outcome = Ok(());
                for (number, worker) in workers.iter_mut().enumerate() {
                    let status = worker.0.wait().map_err(|e| e.to_string())?;
                    if !status.success() {
                        let name = if number < 2 { "writer" } else { "consolidator" };
                        outcome = Err(format!("{name} {number}: {status}"));
                    }
                }
                stage.proxy.plan(Plan::default());
                outcome?;
                let all = (0..2).flat_map(|writer| (0..WRITES).flat_map(move |i| part(writer, i)));
                let expected = cells::expected(all);
                let found = cells::read(&sound, &uri, 0, LAST).map_err(|e| e.to_string())?;
                cells::compare(&found, &expected)?;
                let array = sound.array(&uri).open().map_err(|e| e.to_string())?;
                let (_, count) = cells::sum_of(&array, 0, LAST).map_err(|e| e.to_string())?;
                if count != expected.len() as u64 {
                    return Err(format!("{count} cells, not {}", expected.len()));
                }
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

//! Reads and writes through a proxy that misbehaves: they finish correctly or fail with a clear
//! error, and what has failed leaves nothing.

use super::cells::{self, LAST};
use super::proxy::{Fault, Plan};
use super::{Stage, Tally, s3_context, s3_uri};
use crate::Outcome;
use azulejo::Context;
use std::time::{Duration, Instant};

/// What can go wrong now and then.
const FAULTS: [(&str, &[Fault]); 8] = [
    (
        "delays",
        &[Fault::Delay(5), Fault::Delay(80), Fault::Delay(300)],
    ),
    ("connections cut before the request", &[Fault::CutBefore]),
    ("connections cut before the answer", &[Fault::CutAfter]),
    ("bodies cut short", &[Fault::Truncate]),
    ("429", &[Fault::Refuse(429)]),
    ("503", &[Fault::Refuse(503)]),
    ("500", &[Fault::Refuse(500)]),
    (
        "all of it",
        &[
            Fault::Delay(50),
            Fault::CutBefore,
            Fault::CutAfter,
            Fault::Truncate,
            Fault::Refuse(503),
        ],
    ),
];
/// What goes wrong always, and is told as an error.
const OUTAGES: [(&str, Fault); 3] = [
    ("refusal", Fault::Refuse(503)),
    ("closed connection", Fault::CutBefore),
    ("error 500", Fault::Refuse(500)),
];
/// An error must come by then, on the slowest machine: who tries for ever has none.
const ERROR_LIMIT: Duration = Duration::from_secs(600);

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn occasional(faults: &[Fault], seed: u64) -> Plan {
    Plan {
        faults: faults.to_vec(),
        per_mille: 120,
        seed,
        ..Plan::default()
    }
}

/// The parts of 20 coordinates each that arrays here are written in.
fn part(i: i64) -> Vec<i64> {
    (i * 20..(i + 1) * 20).collect()
}

fn reads(stage: &Stage, tally: &mut Tally) -> Outcome {
    let uri = s3_uri("faults/read");
    let context = stage.context()?;
    stage.proxy.plan(Plan::default());
    cells::create(&context, &uri, false).map_err(text)?;
    for i in 0..12 {
        cells::write_known(&context, &uri, &part(i), false, true).map_err(text)?;
    }
    let expected = cells::expected((0..12).flat_map(part));
    for (seed, (name, faults)) in FAULTS.into_iter().enumerate() {
        tally.check(&format!("read with {name}"), || {
            stage.proxy.plan(occasional(faults, seed as u64));
            let _ = stage.proxy.take();
            for _ in 0..3 {
                let context = stage.context()?;
                let found = cells::read(&context, &uri, 0, LAST).map_err(text)?;
                cells::compare(&found, &expected)?;
            }
            match stage.proxy.take().faults {
                0 => Err("no request met a fault: nothing was tested".into()),
                _ => Ok(()),
            }
        });
    }
    for (name, fault) in OUTAGES {
        tally.check(&format!("read with nothing but {name}"), || {
            let begun = Instant::now();
            stage.proxy.plan(Plan {
                faults: vec![fault],
                per_mille: 1000,
                ..Plan::default()
            });
            let context = s3_context(stage.proxy.address, &[("vfs.s3.connect_max_tries", "2")])?;
            match cells::read(&context, &uri, 0, LAST) {
                Ok(_) => Err("it was read all the same".into()),
                Err(error) => told(&error, "faults/read", begun),
            }
        });
    }
    stage.proxy.plan(Plan::default());
    Ok(())
}

/// A clear error names the object or folder and comes in time.
fn told(error: &azulejo::Error, name: &str, begun: Instant) -> Outcome {
    let text = error.to_string();
    if !text.contains(name) {
        return Err(format!("the error names no object: {text}"));
    }
    match begun.elapsed() {
        long if long > ERROR_LIMIT => Err(format!("the error took {long:?}: {text}")),
        _ => Ok(()),
    }
}

fn fragments(context: &Context, uri: &str) -> Result<usize, String> {
    Ok(context.array(uri).open().map_err(text)?.fragments().len())
}

fn writes(stage: &Stage, tally: &mut Tally) -> Outcome {
    for (seed, (name, faults)) in FAULTS.into_iter().enumerate() {
        tally.check(&format!("write with {name}"), || {
            let uri = s3_uri(&format!("faults/write-{seed}"));
            let sound = s3_context(stage.sound.address, &[])?;
            cells::create(&sound, &uri, false).map_err(text)?;
            stage.proxy.plan(occasional(faults, 100 + seed as u64));
            let _ = stage.proxy.take();
            let (mut written, mut failed) = (Vec::new(), 0);
            for i in 0..8 {
                match cells::write_known(&stage.context()?, &uri, &part(i), false, true) {
                    Ok(()) => written.extend(part(i)),
                    Err(error) => {
                        println!("    {name}: {error}");
                        failed += 1;
                    }
                }
                // Each write that was said to be done is there, and no other.
                cells::compare(
                    &cells::read(&sound, &uri, 0, LAST).map_err(text)?,
                    &cells::expected(written.iter().copied()),
                )?;
            }
            let met = stage.proxy.take().faults;
            stage.proxy.plan(Plan::default());
            if met == 0 {
                return Err("no request met a fault: nothing was tested".into());
            }
            if failed > 0 {
                return Err(format!("{failed} of 8 writes failed in spite of retries"));
            }
            nothing_left(stage)
        });
        large(stage, tally, name, faults, seed as u64);
    }
    Ok(())
}

/// A write whose files go up in several parts.
fn large(stage: &Stage, tally: &mut Tally, name: &str, faults: &[Fault], seed: u64) {
    tally.check(&format!("large write with {name}"), || {
        let uri = s3_uri(&format!("faults/large-{seed}"));
        let sound = s3_context(stage.sound.address, &[])?;
        cells::create_many(&sound, &uri).map_err(text)?;
        stage.proxy.plan(Plan {
            per_mille: 250,
            ..occasional(faults, 200 + seed)
        });
        let range: Vec<i64> = (0..3_000_000).collect();
        let wrote = cells::write_known(&stage.context()?, &uri, &range, true, false);
        let multipart = stage
            .proxy
            .take()
            .requests
            .get(&super::proxy::Kind::Multipart)
            .copied()
            .unwrap_or(0);
        stage.proxy.plan(Plan::default());
        wrote.map_err(text)?;
        if multipart == 0 {
            return Err("it was not written in parts: nothing was tested".into());
        }
        let array = sound.array(&uri).open().map_err(text)?;
        if cells::sum_of(&array, 0, 2_999_999).map_err(text)? != cells::expected_sum(0, 2_999_999) {
            return Err("other cells than were written".into());
        }
        nothing_left(stage)
    });
}

fn nothing_left(stage: &Stage) -> Outcome {
    match stage.proxy.open_uploads() {
        0 => Ok(()),
        n => Err(format!("{n} uploads were neither finished nor aborted")),
    }
}

fn outages(stage: &Stage, tally: &mut Tally) -> Outcome {
    for (name, fault) in OUTAGES {
        for (methods, when) in [(&["PUT", "POST"][..], "puts"), (&[][..], "requests")] {
            for is_large in [false, true] {
                let size = if is_large { "large " } else { "" };
                tally.check(&format!("{size}write, {name} of all {when}"), || {
                    let uri =
                        s3_uri(&format!("faults/{size}outage-{name}-{when}").replace(' ', "-"));
                    let sound = s3_context(stage.sound.address, &[])?;
                    cells::create_many(&sound, &uri).map_err(text)?;
                    let begun = Instant::now();
                    let plan = Plan {
                        faults: vec![fault],
                        per_mille: 1000,
                        ..Plan::default()
                    };
                    stage.proxy.plan(Plan {
                        methods: methods.to_vec(),
                        ..plan
                    });
                    let cells = if is_large { 2_000_000 } else { 100 };
                    let range: Vec<i64> = (0..cells).collect();
                    let context =
                        s3_context(stage.proxy.address, &[("vfs.s3.connect_max_tries", "2")])?;
                    let wrote = cells::write_known(&context, &uri, &range, true, false);
                    stage.proxy.plan(Plan::default());
                    match wrote {
                        Ok(()) => return Err("it was written all the same".into()),
                        Err(error) => told(&error, "faults/", begun)?,
                    }
                    match fragments(&sound, &uri)? {
                        0 => nothing_left(stage),
                        n => Err(format!("{n} fragments are visible")),
                    }
                });
            }
        }
    }
    // The commit alone fails: everything else is there, and does not count.
    tally.check("write, the upload breaks off in the middle", || {
        let uri = s3_uri("faults/middle");
        let sound = s3_context(stage.sound.address, &[])?;
        cells::create_many(&sound, &uri).map_err(text)?;
        let context = s3_context(stage.proxy.address, &[("vfs.s3.connect_max_tries", "1")])?;
        let range: Vec<i64> = (0..3_000_000).collect();
        let (mut failed, mut done) = (0, 0);
        for seed in 0..6 {
            let plan = Plan {
                faults: vec![Fault::CutBefore],
                per_mille: 200,
                seed,
                ..Plan::default()
            };
            stage.proxy.plan(Plan {
                methods: vec!["PUT", "POST"],
                ..plan
            });
            match cells::write_known(&context, &uri, &range, true, false) {
                Ok(()) => done += 1,
                Err(_) => failed += 1,
            }
            stage.proxy.plan(Plan::default());
            if fragments(&sound, &uri)? != done {
                return Err(format!(
                    "{done} writes were done, {} fragments are visible",
                    fragments(&sound, &uri)?
                ));
            }
            nothing_left(stage)?;
        }
        if failed == 0 {
            Err("no write failed: nothing was tested".into())
        } else {
            Ok(())
        }
    });
    Ok(())
}

/// Runs all of it.
pub fn run(stage: &mut Stage, tally: &mut Tally) -> Outcome {
    reads(stage, tally)?;
    writes(stage, tally)?;
    outages(stage, tally)
}

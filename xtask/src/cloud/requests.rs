//! How many requests a server sees, from us and from the reference, for the same work on the same
//! arrays.

use super::cells::{self, MANY_CELLS};
use super::peer::Peer;
use super::proxy::Counts;
use super::{BUCKET, Stage, Tally, s3_uri};
use crate::Outcome;
use azulejo::Context;
use serde_json::json;
use std::time::Instant;

/// Numbers of fragments.
pub const SIZES: [i64; 3] = [1, 100, 2_000];
/// What is done, in this order.
pub const PHASES: [&str; 4] = ["open", "small slice", "full read", "append"];

/// One phase: seconds, and what passed the proxy.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Time that it took.
    pub seconds: f64,
    /// Requests and bytes.
    pub counts: Counts,
}

/// The array with so many fragments.
pub fn uri(fragments: i64) -> String {
    s3_uri(&format!("requests/fragments-{fragments}"))
}

/// Makes an array of many fragments as files where the server keeps its objects: it sees them as if
/// they were written there.
pub fn make(stage: &Stage, name: &str, fragments: i64) -> Outcome {
    let context = Context::new(Default::default(), None).map_err(|e| e.to_string())?;
    let path = stage.root.join(BUCKET).join(name);
    let parent = path.parent().ok_or("no folder")?;
    std::fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
    let local = path.to_string_lossy();
    cells::create_many(&context, &local).map_err(|e| e.to_string())?;
    for fragment in 0..fragments {
        let range: Vec<i64> = (fragment * MANY_CELLS..(fragment + 1) * MANY_CELLS).collect();
        cells::write_known(&context, &local, &range, true, false).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// A few cells in the middle, of two fragments where there are so many.
fn slice(fragments: i64) -> (i64, i64) {
    let middle = fragments / 2 * MANY_CELLS;
    if fragments == 1 {
        (20, 60)
    } else {
        (middle - 30, middle + 30)
    }
}

/// Whether each read is by one who has not read before: with very many fragments what one read
/// leaves to the next does not matter, and opening takes the reference long.
fn opens_again(fragments: i64) -> bool {
    fragments <= 100
}

fn whole(fragments: i64) -> (i64, i64) {
    (0, fragments * MANY_CELLS - 1)
}

fn right(found: (i64, u64), (first, last): (i64, i64)) -> Outcome {
    let expected = cells::expected_sum(first, last);
    if found == expected {
        Ok(())
    } else {
        Err(format!("{found:?} instead of {expected:?}"))
    }
}

/// Times something and takes what has passed the proxy.
pub fn measure<T>(
    stage: &Stage,
    work: impl FnOnce() -> Result<T, String>,
) -> Result<(T, Measured), String> {
    let _ = stage.proxy.take();
    let begun = Instant::now();
    let result = work()?;
    Ok((
        result,
        Measured {
            seconds: begun.elapsed().as_secs_f64(),
            counts: stage.proxy.take(),
        },
    ))
}

/// When requests came, when their answers began and when they ended, in milliseconds.
pub fn print_passed(stage: &Stage, begun: Instant) {
    let mut passed = stage.proxy.take_passed();
    passed.sort_by_key(|one| one.moments);
    for one in passed {
        let at = one.moments.map(|at| {
            let since = at.saturating_duration_since(begun);
            format!("{:7.1}", since.as_secs_f64() * 1e3)
        });
        println!("{} {:10} {}", at.join(" "), one.bytes, one.request);
    }
    println!("{:7.1} done", begun.elapsed().as_secs_f64() * 1e3);
}

/// Each phase by us, with a client of its own.
pub fn ours(stage: &Stage, fragments: i64) -> Result<Vec<Measured>, String> {
    let (context, uri) = (stage.context()?, uri(fragments));
    let (array, opened) = measure(stage, || {
        context.array(&uri).open().map_err(|e| e.to_string())
    })?;
    let mut phases = vec![opened];
    let mut array = array;
    for (first, last) in [slice(fragments), whole(fragments)] {
        if opens_again(fragments) {
            array = stage
                .context()?
                .array(&uri)
                .open()
                .map_err(|e| e.to_string())?;
        }
        let read = || cells::sum_of(&array, first, last).map_err(|e| e.to_string());
        let (found, measured) = measure(stage, read)?;
        right(found, (first, last))?;
        phases.push(measured);
    }
    // A writer that comes later has not opened the array for reading.
    let (context, first) = (stage.context()?, fragments * MANY_CELLS);
    let range: Vec<i64> = (first..first + MANY_CELLS).collect();
    let write =
        || cells::write_known(&context, &uri, &range, true, false).map_err(|e| e.to_string());
    phases.push(measure(stage, write)?.1);
    Ok(phases)
}

/// Each phase by the reference.
pub fn theirs(stage: &Stage, peer: &mut Peer, fragments: i64) -> Result<Vec<Measured>, String> {
    let uri = uri(fragments);
    let mut phases = Vec::new();
    peer.ask(&json!({ "do": "fresh" }))?;
    phases.push(measure(stage, || peer.ask(&json!({ "do": "open", "uri": uri })))?.1);
    for (first, last) in [slice(fragments), whole(fragments)] {
        if opens_again(fragments) {
            peer.ask(&json!({ "do": "fresh" }))?;
            peer.ask(&json!({ "do": "open", "uri": uri }))?;
        }
        let (answer, measured) = measure(stage, || {
            peer.ask(&json!({ "do": "sum", "first": first, "last": last }))
        })?;
        let found = (
            answer["sum"].as_i64().unwrap_or(0),
            answer["cells"].as_u64().unwrap_or(0),
        );
        right(found, (first, last)).map_err(|e| format!("the reference: {e}"))?;
        phases.push(measured);
    }
    peer.ask(&json!({ "do": "close" }))?;
    peer.ask(&json!({ "do": "fresh" }))?;
    let first = (fragments + 1) * MANY_CELLS;
    let range: Vec<i64> = (first..first + MANY_CELLS).collect();
    phases.push(
        measure(stage, || {
            peer.ask(&json!({ "do": "write", "uri": uri, "xs": range }))
        })?
        .1,
    );
    Ok(phases)
}

/// Counts requests; ours must be fewer in every case.
pub fn run(stage: &mut Stage, tally: &mut Tally) -> Outcome {
    let mut peer = Peer::start(stage.proxy.address)?;
    let mut table = String::from(
        "| fragments | work | ours | bytes | reference | bytes |\n|---|---|---|---|---|---|\n",
    );
    for fragments in SIZES {
        make(stage, &format!("requests/fragments-{fragments}"), fragments)?;
        let ours = ours(stage, fragments)?;
        let theirs = theirs(stage, &mut peer, fragments)?;
        for ((phase, ours), theirs) in PHASES.iter().zip(&ours).zip(&theirs) {
            let bytes = |counts: &Counts| counts.sent + counts.received;
            table += &format!(
                "| {fragments} | {phase} | {} | {} | {} | {} |\n",
                ours.counts,
                bytes(&ours.counts),
                theirs.counts,
                bytes(&theirs.counts)
            );
            tally.check(&format!("{phase} with {fragments} fragments"), || {
                match ours.counts.total() < theirs.counts.total() {
                    true => Ok(()),
                    false => Err(format!(
                        "{} requests, the reference {}",
                        ours.counts, theirs.counts
                    )),
                }
            });
        }
    }
    println!("{table}");
    Ok(())
}

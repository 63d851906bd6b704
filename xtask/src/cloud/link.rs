//! `cargo xtask cloud link`: what of a slow link's speed reads and writes reach, beside one that opens
//! as many connections as it has and does nothing else.

use super::proxy::{Plan, Speed};
use super::requests::{Measured, measure};
use super::{Stage, s3_uri};
use crate::Outcome;
use azulejo::array::Array;
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::datatype::Datatype;
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::Attribute;
use azulejo::format::{ArraySchema, CellValNum, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::space::DimSelection;
use azulejo::{Context, Subarray, WriteOptions};
use std::time::Duration;

/// Added to each request.
const LATENCY: Duration = Duration::from_millis(20);
/// Bytes a second of a connection.
const CONNECTION: u64 = 100_000_000;
/// Rows and columns of the arrays of `float64`, and those of their tiles.
const SIDE: i64 = 4_000;
const TILE: i64 = 250;
/// Windows that are read in one call, and their sides.
const WINDOWS: i64 = 100;
const WINDOW: i64 = 40;

/// What is stored, and by which filters.
const KINDS: [(&str, &[Filter]); 2] = [
    ("raw", &[]),
    ("zstd", &[Filter::Byteshuffle, Filter::Zstd { level: 3 }]),
];

fn value(y: i64, x: i64) -> f64 {
    // Two of eight bytes hold noise: it shrinks, but not to nothing.
    f64::from(((y * 7_919 + x * 104_729) % 65_521) as i32) / 1_024.0
}

/// Options: `--rounds N`, `--link MB` a second in all (250).
pub fn run(stage: &Stage, words: &[&str]) -> Outcome {
    let number = |name: &str, usual: u64| {
        let at = words.iter().position(|word| *word == name);
        let word = at.and_then(|at| words.get(at + 1));
        word.map_or(Ok(usual), |word| {
            word.parse().map_err(|_| format!("{name} wants a number"))
        })
    };
    let (rounds, link) = (number("--rounds", 3)?, number("--link", 250)? * 1_000_000);
    println!(
        "{} ms a request, {} MB/s a connection, {} MB/s in all; the best of {rounds} rounds",
        LATENCY.as_millis(),
        CONNECTION / 1_000_000,
        link / 1_000_000
    );
    println!(
        "| array | work | s | requests | MB | MB/s | of the link |\n|---|---|---|---|---|---|---|"
    );
    let slow = Plan {
        latency: LATENCY,
        speed: Some(Speed {
            connection: CONNECTION,
            link,
        }),
        ..Plan::default()
    };
    for (name, filters) in KINDS {
        let mut best: Vec<(&str, Measured)> = Vec::new();
        for round in 0..rounds.max(1) {
            stage.proxy.plan(slow.clone());
            let uri = s3_uri(&format!("link/{name}-{round}"));
            let found = one(stage, &uri, filters);
            stage.proxy.plan(Plan::default());
            for (at, (work, measured)) in found?.into_iter().enumerate() {
                match best.get_mut(at) {
                    Some((_, least)) if least.seconds <= measured.seconds => {}
                    Some(place) => *place = (work, measured),
                    None => best.push((work, measured)),
                }
            }
        }
        for (work, measured) in best {
            let bytes = (measured.counts.sent + measured.counts.received) as f64;
            let rate = bytes / measured.seconds;
            println!(
                "| {name} | {work} | {:.3} | {} | {:.1} | {:.0} | {:.0} % |",
                measured.seconds,
                measured.counts,
                bytes / 1e6,
                rate / 1e6,
                rate / link as f64 * 100.0
            );
        }
    }
    Ok(())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Writes an array, opens it and reads it, each by one who has done nothing before.
fn one(
    stage: &Stage,
    uri: &str,
    filters: &[Filter],
) -> Result<Vec<(&'static str, Measured)>, String> {
    let mut attribute = Attribute::new("a", Datatype::Float64, CellValNum::ONE);
    attribute.filters = Pipeline {
        filters: filters.to_vec(),
        ..Pipeline::default()
    };
    let schema = ArraySchema::dense()
        .dimension("y", 0i64..=SIDE - 1, TILE)
        .dimension("x", 0i64..=SIDE - 1, TILE)
        .attribute_with(attribute)
        .build()
        .map_err(text)?;
    stage.context()?.array(uri).create(schema).map_err(text)?;
    let values: Vec<f64> = (0..SIDE * SIDE)
        .map(|i| value(i / SIDE, i % SIDE))
        .collect();
    let cells = ColumnSet::of([ColumnBuffers::of_values("a", values)]).map_err(text)?;
    let all = NdRectangle {
        ranges: vec![Range::of(0i64, SIDE - 1); 2],
    };
    let context = stage.context()?;
    let (_, write) = measure(stage, || {
        let mut writer = context
            .array(uri)
            .writer(WriteOptions::new().subarray(all))
            .map_err(text)?;
        writer.write(&cells).map_err(text)?;
        writer.finish().map_err(text)
    })?;
    let context = stage.context()?;
    let (_, open) = measure(stage, || opened(&context, uri))?;
    let context = stage.context()?;
    let array = opened(&context, uri)?;
    let (_, read) = measure(stage, || sum(&array, Subarray::all(), SIDE * SIDE, &cells))?;
    let context = stage.context()?;
    let array = opened(&context, uri)?;
    let starts: Vec<i64> = (0..WINDOWS / 10).map(|i| i * (SIDE / 10) + 17).collect();
    let ranges: Vec<Range> = starts
        .iter()
        .map(|at| Range::of(*at, at + WINDOW - 1))
        .collect();
    let windows = Subarray::Box(vec![
        DimSelection::Ranges(ranges.clone()),
        DimSelection::Ranges(ranges),
    ]);
    let count = WINDOWS * WINDOW * WINDOW;
    let (_, windows) = measure(stage, || sum(&array, windows, count, &cells))?;
    Ok(vec![
        ("write", write),
        ("open", open),
        ("full read", read),
        ("100 windows in one call", windows),
    ])
}

fn opened(context: &Context, uri: &str) -> Result<Array, String> {
    context.array(uri).open().map_err(text)
}

/// Reads cells and looks whether they are as many as they should be, all of them the same as were
/// written if these are all.
fn sum(array: &Array, cells: Subarray, count: i64, written: &ColumnSet) -> Outcome {
    let read = array
        .read(ReadOptions::new().subarray(cells))
        .map_err(text)?;
    let read = read.read_all().map_err(text)?;
    if i64::try_from(read.cell_num) != Ok(count) {
        return Err(format!("{} cells instead of {count}", read.cell_num));
    }
    let same = read.columns.first().map(|c| &c.data) == written.columns.first().map(|c| &c.data);
    if read.cell_num == written.cell_num && !same {
        return Err("other cells than were written".into());
    }
    Ok(())
}

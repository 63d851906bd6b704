//! `cargo xtask cloud link`: what of a slow link's speed reads and writes reach, beside one that opens
//! as many connections as it has and does nothing else.

use super::proxy::{Plan, Speed};
use super::requests::{Measured, measure, print_passed};
use super::{Stage, s3_uri};
use crate::Outcome;
use azulejo::array::Array;
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::datatype::Datatype;
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::Attribute;
use azulejo::format::{ArraySchema, CellValNum, NdRectangle, Range};
use azulejo::read::{ReadOptions, Reader};
use azulejo::space::DimSelection;
use azulejo::storage::{ReadRange, ReadRequest, Uri};
use azulejo::{Context, Subarray, WriteOptions};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

/// Requests in flight, and their bytes, of one who only reads.
const BARE: (u64, u64) = (16, 4 << 20);

/// What is stored, and by which filters.
const KINDS: [(&str, &[Filter]); 2] = [
    ("raw", &[]),
    ("zstd", &[Filter::Byteshuffle, Filter::Zstd { level: 3 }]),
];

fn value(y: i64, x: i64) -> f64 {
    // Two of eight bytes hold noise: it shrinks, but not to nothing.
    f64::from(((y * 7_919 + x * 104_729) % 65_521) as i32) / 1_024.0
}

/// Options: `--rounds N`, `--link MB` a second in all (250), `--log` for the way of each answer.
pub fn run(stage: &Stage, words: &[&str]) -> Outcome {
    let number = |name: &str, usual: u64| {
        let at = words.iter().position(|word| *word == name);
        let word = at.and_then(|at| words.get(at + 1));
        word.map_or(Ok(usual), |word| {
            word.parse().map_err(|_| format!("{name} wants a number"))
        })
    };
    let (rounds, link) = (number("--rounds", 3)?, number("--link", 250)? * 1_000_000);
    let log = words.contains(&"--log");
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
        noted: log,
        ..Plan::default()
    };
    for (name, filters) in KINDS {
        let mut best: Vec<(&str, Measured)> = Vec::new();
        for round in 0..rounds.max(1) {
            stage.proxy.plan(slow.clone());
            let uri = s3_uri(&format!("link/{name}-{round}"));
            let found = one(stage, &uri, filters, log);
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
    log: bool,
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
    let measured = |name: &str, work: &mut dyn FnMut() -> Outcome| {
        let _ = stage.proxy.take_passed();
        let begun = Instant::now();
        let (_, measured) = measure(stage, work)?;
        if log {
            println!("{uri} {name}");
            print_passed(stage, begun);
        }
        Ok::<_, String>(measured)
    };
    let context = stage.context()?;
    let write = measured("write", &mut || {
        let mut writer = context
            .array(uri)
            .writer(WriteOptions::new().subarray(all.clone()))
            .map_err(text)?;
        writer.write(&cells).map_err(text)?;
        writer.finish().map(drop).map_err(text)
    })?;
    let context = stage.context()?;
    let open = measured("open", &mut || opened(&context, uri).map(drop))?;
    let context = stage.context()?;
    let bare = bare(stage, &context, uri, &measured)?;
    let context = stage.context()?;
    let array = opened(&context, uri)?;
    let mut found = ColumnSet::default();
    let read = measured("full read", &mut || {
        found = read_of(&array, Subarray::all())?;
        Ok(())
    })?;
    check(&found, SIDE * SIDE, &cells)?;
    drop(std::mem::take(&mut found));
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
    let windows = measured("windows", &mut || {
        found = read_of(&array, windows.clone())?;
        Ok(())
    })?;
    check(&found, count, &cells)?;
    Ok(vec![
        ("write", write),
        ("open", open),
        ("its bytes and nothing else", bare),
        ("full read", read),
        ("100 windows in one call", windows),
    ])
}

/// What says how long work of a name took, and what it asked for.
type Meter<'a> = dyn Fn(&str, &mut dyn FnMut() -> Outcome) -> Result<Measured, String> + 'a;

/// Reads the largest file of an array by as many connections as help, for its bytes alone: what the
/// link, the server and this machine allow.
fn bare(
    stage: &Stage,
    context: &Context,
    uri: &str,
    measured: &Meter<'_>,
) -> Result<Measured, String> {
    let location = context
        .locate(&Uri::parse(uri).map_err(text)?)
        .map_err(text)?;
    let (root, storage) = (&location.path, &location.storage);
    let tree = storage.list_tree(root).map_err(text)?;
    let files = tree.iter().flat_map(|(folder, entries)| {
        entries
            .iter()
            .map(move |entry| (entry.size.unwrap_or(0), folder, &entry.name))
    });
    let (size, folder, name) = files.max().ok_or("an array without files")?;
    let path = root.join(folder).join(name);
    let _ = stage.proxy.take_passed();
    measured("bytes", &mut || {
        let next = AtomicU64::new(0);
        let read = || {
            loop {
                let start = next.fetch_add(BARE.1, Ordering::Relaxed);
                if start >= size {
                    return Ok(());
                }
                let range = ReadRange::Bytes(start..size.min(start + BARE.1));
                let path = path.clone();
                storage.read(&[ReadRequest { path, range }]).map_err(text)?;
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..BARE.0).map(|_| scope.spawn(read)).collect();
            let mut ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            ended.try_for_each(|thread| thread.map_err(|_| "a thread died".to_owned())?)
        })
    })
}

fn opened(context: &Context, uri: &str) -> Result<Array, String> {
    context.array(uri).open().map_err(text)
}

/// Reads cells.
fn read_of(array: &Array, cells: Subarray) -> Result<ColumnSet, String> {
    let read = array.read(ReadOptions::new().subarray(cells));
    read.and_then(Reader::read_all).map_err(text)
}

/// Looks whether cells are as many as they should be, all of them the same as were written if these
/// are all.
fn check(read: &ColumnSet, count: i64, written: &ColumnSet) -> Outcome {
    if i64::try_from(read.cell_num) != Ok(count) {
        return Err(format!("{} cells instead of {count}", read.cell_num));
    }
    let same = read.columns.first().map(|c| &c.data) == written.columns.first().map(|c| &c.data);
    if read.cell_num == written.cell_num && !same {
        return Err("other cells than were written".into());
    }
    Ok(())
}

//! Callers whose buffers take part of a result at a time: they get all of it, and the read holds
//! little of what is left.
//!
//! The allocator counts for the whole process, so all of it is one test.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "support/allocator.rs"]
mod allocator;

use azulejo::column::{ColumnBuffers, ColumnMut, ColumnSet};
use azulejo::format::Datatype;
use azulejo::format::schema::ArraySchema;
use azulejo::read::ReadOptions;
use azulejo::write::WriteOptions;
use azulejo::{Config, Context};

const CELLS: usize = 400_000;
/// Cells that the caller's buffers have room for.
const ROOMS: [usize; 4] = [1_000, 70_000, 3, 150_000];
/// Bytes that a read may hold beside the caller's buffers: the result and its tiles take twice as
/// many.
const MOST: usize = 24 << 20;

fn context() -> Context {
    Context::new(Config::new().threads(2), None).unwrap()
}

fn text(cell: usize) -> String {
    format!("{:034}", cell % 9973)
}

fn number(cell: usize) -> i64 {
    cell as i64 * 3
}

fn array(uri: &str, sparse: bool) {
    let schema = match sparse {
        true => ArraySchema::sparse()
            .dimension("x", 0i64..=CELLS as i64 * 3, 1_000)
            .capacity(5_000),
        false => ArraySchema::dense().dimension("x", 0i64..=CELLS as i64 - 1, 5_000),
    };
    let schema = schema
        .var_attribute("s", Datatype::StringAscii)
        .attribute("a", Datatype::Int64);
    context()
        .array(uri)
        .create(schema.build().unwrap())
        .unwrap();
    let mut columns = vec![
        ColumnBuffers::of_strings("s", (0..CELLS).map(text)),
        ColumnBuffers::of_values("a", (0..CELLS).map(number).collect::<Vec<i64>>()),
    ];
    if sparse {
        columns.push(ColumnBuffers::of_values(
            "x",
            (0..CELLS).map(number).collect::<Vec<i64>>(),
        ));
    }
    let mut writer = context().array(uri).writer(WriteOptions::new()).unwrap();
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    writer.finish().unwrap();
}

/// Reads with buffers of one size after the other; the most bytes held beside these.
fn read(uri: &str, fields: &[&str]) -> usize {
    let context = context();
    let most = ROOMS.into_iter().max().unwrap();
    let mut data: Vec<Vec<u8>> = fields
        .iter()
        .map(|name| vec![0; most * if *name == "s" { text(0).len() } else { 8 }])
        .collect();
    let mut offsets = vec![vec![0u64; most]; fields.len()];
    let before = allocator::reset();
    let array = context.array(uri).open().unwrap();
    let mut reader = array
        .read(ReadOptions::new().fields(fields.iter().copied()))
        .unwrap();
    let mut done = 0;
    for room in ROOMS.into_iter().cycle() {
        let mut columns: Vec<ColumnMut<'_>> = fields
            .iter()
            .zip(data.iter_mut().zip(&mut offsets))
            .map(|(name, (data, offsets))| {
                let is_text = *name == "s";
                let size = if is_text { text(0).len() } else { 8 };
                let offsets = is_text.then(|| &mut offsets[..room]);
                ColumnMut {
                    data: &mut data[..room * size],
                    offsets,
                    validity: None,
                }
            })
            .collect();
        let progress = reader.read_into(&mut columns);
        drop(columns);
        let progress = progress.unwrap();
        assert_eq!(
            progress.cells,
            room.min(CELLS - done),
            "{fields:?}: {done} cells are done"
        );
        for (name, (data, offsets)) in fields.iter().zip(data.iter().zip(&offsets)) {
            for cell in [0, progress.cells / 2, progress.cells.saturating_sub(1)] {
                if *name == "s" {
                    let start = offsets[cell] as usize;
                    let found = &data[start..start + text(0).len()];
                    assert_eq!(found, text(done + cell).as_bytes(), "cell {}", done + cell);
                } else {
                    let found = data.as_chunks::<8>().0[cell];
                    assert_eq!(
                        i64::from_le_bytes(found),
                        number(done + cell),
                        "cell {}",
                        done + cell
                    );
                }
            }
        }
        done += progress.cells;
        if progress.complete {
            break;
        }
    }
    assert_eq!(done, CELLS);
    allocator::peak() - before
}

#[test]
fn what_does_not_fit_a_callers_buffers_takes_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let uri = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    array(&uri("sparse"), true);
    array(&uri("dense"), false);
    for fields in [&["s"][..], &["a", "s"], &["a"]] {
        for name in ["sparse", "dense"] {
            let held = read(&uri(name), fields);
            assert!(held <= MOST, "{name} {fields:?}: {held} bytes");
        }
    }
    assert!(read(&uri("sparse"), &["x", "a"]) <= MOST);
}

//! A read holds no more than its memory budget and a little.
//!
//! The allocator counts for the whole process, so all of it is one test.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/allocator.rs"]
mod allocator;

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::{ArraySchema, Attribute};
use azulejo::format::{CellValNum, Datatype, Range};
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Layout, PointColumn, Points};
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, Subarray};

/// What a read may hold.
const BUDGET: u64 = 4 << 20;
/// What it holds besides, whatever the budget: the array's metadata, the plan, and what threads
/// keep for unfiltering.
const BESIDES: u64 = 2 << 20;

const SIDE: i32 = 640;

fn context() -> Context {
    Context::new(Config::new().memory_budget(BUDGET).threads(2), None).unwrap()
}

fn shuffled() -> Attribute {
    let filters = Pipeline {
        filters: vec![Filter::Byteshuffle],
        ..Pipeline::default()
    };
    Attribute::new("a", Datatype::Int64, CellValNum::ONE).filters(filters)
}

/// 5 MB of fixed-length cells and as many bytes of strings, and their offsets.
fn dense(context: &Context, uri: &str) {
    let schema = ArraySchema::dense()
        .dimension("y", 0..=SIDE - 1, 128)
        .dimension("x", 0..=SIDE - 1, 128)
        .attribute_with(shuffled())
        .attribute("b", Datatype::Int32)
        .var_attribute("s", Datatype::StringAscii)
        .build()
        .unwrap();
    context.array(uri).create(schema).unwrap();
    let cells = SIDE as usize * SIDE as usize;
    let number = |i: usize| i as i64 * 7919;
    let columns = ColumnSet::of([
        ColumnBuffers::of_values("a", (0..cells).map(number).collect::<Vec<i64>>()),
        ColumnBuffers::of_values("b", (0..cells as i32).collect::<Vec<i32>>()),
        ColumnBuffers::of_strings("s", (0..cells).map(|i| format!("{:012}", i % 9973))),
    ]);
    let options = WriteOptions::new().memory_budget(1 << 30);
    let mut writer = context.array(uri).writer(options).unwrap();
    writer.write(&columns.unwrap()).unwrap();
    writer.finish().unwrap();
}

/// 5 MB of cells in three fragments that overlap.
fn sparse(context: &Context, uri: &str) {
    let schema = ArraySchema::sparse()
        .dimension("y", 0i64..=9_999, 100)
        .dimension("x", 0i64..=9_999, 100)
        .attribute("a", Datatype::Float64)
        .attribute("b", Datatype::Int32)
        .capacity(1_000)
        .build()
        .unwrap();
    context.array(uri).create(schema).unwrap();
    for fragment in 0..3i64 {
        let cells: Vec<i64> = (0..60_000)
            .map(|i| (i * 7_919 + fragment) % 100_000_000 * 9 % 100_000_000)
            .collect();
        let columns = ColumnSet::of([
            ColumnBuffers::of_values("y", cells.iter().map(|c| c / 10_000).collect::<Vec<i64>>()),
            ColumnBuffers::of_values("x", cells.iter().map(|c| c % 10_000).collect::<Vec<i64>>()),
            ColumnBuffers::of_values("a", cells.iter().map(|c| *c as f64).collect::<Vec<f64>>()),
            ColumnBuffers::of_values("b", cells.iter().map(|c| *c as i32).collect::<Vec<i32>>()),
        ]);
        let options = WriteOptions::new().memory_budget(1 << 30);
        let mut writer = context.array(uri).writer(options).unwrap();
        writer.write(&columns.unwrap()).unwrap();
        writer.finish().unwrap();
    }
}

/// One cell of 64 KiB, and others of a byte.
fn one_long_text(context: &Context, uri: &str) {
    let schema = ArraySchema::dense()
        .dimension("x", 0i32..=9, 10)
        .var_attribute("s", Datatype::StringAscii)
        .build()
        .unwrap();
    context.array(uri).create(schema).unwrap();
    let text = |i: usize| "x".repeat(if i == 3 { 1 << 16 } else { 1 });
    let columns = ColumnSet::of([ColumnBuffers::of_strings("s", (0..10).map(text))]);
    let mut writer = context.array(uri).writer(WriteOptions::new()).unwrap();
    writer.write(&columns.unwrap()).unwrap();
    writer.finish().unwrap();
}

/// Reads batch after batch; the cells, and the most bytes held at a time.
fn read(uri: &str, options: ReadOptions) -> (usize, u64) {
    let context = context();
    let before = allocator::reset();
    let array = context.array(uri).open().unwrap();
    let mut cells = 0;
    for batch in array.read(options).unwrap() {
        cells += batch.unwrap().cell_num;
    }
    (cells, (allocator::peak() - before) as u64)
}

#[test]
fn reads_stay_within_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    let uri = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let context = context();
    dense(&context, &uri("dense"));
    sparse(&context, &uri("sparse"));

    let limit = BUDGET + BESIDES;
    let all = SIDE as usize * SIDE as usize;
    for layout in [Layout::RowMajor, Layout::ColMajor, Layout::Global] {
        for fields in [&["a", "b"][..], &["s"], &["a", "s", "b"]] {
            let (cells, held) = read(
                &uri("dense"),
                ReadOptions::new()
                    .layout(layout)
                    .fields(fields.iter().copied()),
            );
            assert_eq!(cells, all);
            assert!(held <= limit, "dense {layout:?} {fields:?}: {held} bytes");
        }
    }
    let every_third = DimSelection::Strided {
        range: Range::of(0i32, SIDE - 1),
        step: 3,
    };
    let thin = Subarray::Box(vec![every_third, DimSelection::All]);
    let (_, held) = read(&uri("dense"), ReadOptions::new().subarray(thin));
    assert!(held <= limit, "every third row: {held} bytes");

    // The same point over and over: 64 MB of text.
    one_long_text(&context, &uri("long"));
    let data = [3i32, 5].repeat(1_000);
    let data = data.iter().flat_map(|x| x.to_le_bytes()).collect();
    let coordinates = vec![PointColumn {
        data,
        offsets: None,
    }];
    let points = Subarray::Points(Points { coordinates });
    let (cells, held) = read(&uri("long"), ReadOptions::new().subarray(points));
    assert_eq!(cells, 2_000);
    assert!(held <= limit, "points that repeat: {held} bytes");

    // The same of ranges, among as many others.
    let schema = ArraySchema::sparse()
        .dimension("x", 0i32..=9_999, 100)
        .var_attribute("s", Datatype::StringAscii)
        .build()
        .unwrap();
    let ranged = context.array(&uri("ranged"));
    ranged.create(schema).unwrap();
    let text = |i: usize| "x".repeat(if i == 0 { 1 << 16 } else { 1 });
    let columns = ColumnSet::of([
        ColumnBuffers::of_values("x", (0..=1_000).collect::<Vec<i32>>()),
        ColumnBuffers::of_strings("s", (0..=1_000).map(text)),
    ]);
    let mut writer = ranged.writer(WriteOptions::new()).unwrap();
    writer.write(&columns.unwrap()).unwrap();
    writer.finish().unwrap();
    let places = (1..=1_000).rev().chain(std::iter::repeat_n(0, 1_000));
    let ranges = places.map(|x: i32| Range::of(x, x)).collect();
    let some = Subarray::Box(vec![DimSelection::Ranges(ranges)]);
    let (cells, held) = read(&uri("ranged"), ReadOptions::new().subarray(some));
    assert_eq!(cells, 2_000);
    assert!(held <= limit, "ranges that repeat: {held} bytes");

    for layout in [
        Layout::RowMajor,
        Layout::ColMajor,
        Layout::Global,
        Layout::Unordered,
    ] {
        let (cells, held) = read(&uri("sparse"), ReadOptions::new().layout(layout));
        assert!(cells > 100_000, "{cells}");
        assert!(held <= limit, "sparse {layout:?}: {held} bytes");
    }
}

//! Many ranges along the one dimension of a sparse array, in no order: the cells of range after range.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::{ArraySchema, Datatype, Range};
use azulejo::read::{ReadCounts, ReadOptions};
use azulejo::space::{DimSelection, Layout, Subarray};
use azulejo::write::Duplicates;
use azulejo::{Array, Config, Context, WriteOptions};
use support::random::Random;

/// Three fragments of cells that are there more than once, at whole numbers or at texts.
fn array(random: &mut Random, text: bool, duplicates: bool) -> Array {
    let context = Context::new(Config::default(), None).unwrap();
    let schema = match text {
        true => ArraySchema::sparse().string_dimension("x"),
        false => ArraySchema::sparse().dimension("x", 0i32..=999, 100),
    };
    let schema = schema
        .attribute("a", Datatype::Int32)
        .capacity(20)
        .allows_duplicates(duplicates)
        .build()
        .unwrap();
    context.array("mem://ranges").create(schema).unwrap();
    for fragment in 0..3 {
        let places: Vec<i32> = (0..300).map(|_| place(random)).collect();
        let values: Vec<i32> = (0..300).map(|cell| 1000 * fragment + cell).collect();
        let texts: Vec<String> = places.iter().map(|at| name(*at)).collect();
        let x = match text {
            true => ColumnBuffers::of_strings("x", texts.iter().map(String::as_str)),
            false => ColumnBuffers::of_values("x", places),
        };
        let options = match duplicates {
            true => WriteOptions::new(),
            false => WriteOptions::new().duplicates(Duplicates::Dedup),
        };
        let mut writer = context.array("mem://ranges").writer(options).unwrap();
        let columns = ColumnSet::of([x, ColumnBuffers::of_values("a", values)]);
        writer.write(&columns.unwrap()).unwrap();
        writer.finish().unwrap();
    }
    context.array("mem://ranges").open().unwrap()
}

fn place(random: &mut Random) -> i32 {
    i32::try_from(random.below(1000)).unwrap()
}

/// A text for a place: among them the empty one.
fn name(at: i32) -> String {
    match at {
        0 => String::new(),
        at => format!("{at:03}"),
    }
}

fn range(random: &mut Random, text: bool, most: usize) -> Range {
    let low = place(random);
    let high = (low + i32::try_from(random.below(most)).unwrap()).min(999);
    match text {
        true => Range::new(name(low).into_bytes(), name(high).into_bytes()),
        false => Range::of(low, high),
    }
}

fn read(array: &Array, options: &ReadOptions, ranges: &[Range]) -> ColumnSet {
    let selection = vec![DimSelection::Ranges(ranges.to_vec())];
    let options = options.clone().subarray(Subarray::Box(selection));
    array.read(options).unwrap().read_all().unwrap()
}

#[test]
fn cells_come_range_after_range() {
    let mut random = Random(11);
    for round in 0..12 {
        let (text, duplicates) = (round % 2 == 0, round % 4 < 2);
        let array = array(&mut random, text, duplicates);
        // Single places and short ranges, or some that share most of their cells.
        let most = [1, 4, 600][round % 3];
        let ranges: Vec<Range> = (0..60).map(|_| range(&mut random, text, most)).collect();
        for fields in [&["a"][..], &["a", "x"], &["x"]] {
            for layout in [Layout::RowMajor, Layout::ColMajor] {
                let options = ReadOptions::new()
                    .fields(fields.iter().copied())
                    .layout(layout);
                let each = ranges.chunks(1);
                let each: Vec<ColumnSet> = each.map(|one| read(&array, &options, one)).collect();
                let expected = ColumnSet::concat(&each).unwrap();
                let found = read(&array, &options, &ranges);
                assert!(found == expected, "{round} {fields:?} {layout:?}");
                let limit = expected.cell_num / 2;
                let found = read(&array, &options.clone().limit(limit as u64), &ranges);
                assert!(found == expected.slice(0..limit), "{round} {fields:?}");
                let tight = options.memory_budget(1 << 17);
                let found = read(&array, &tight, &ranges);
                assert!(found == expected, "{round} {fields:?} {layout:?}, tight");
            }
        }
    }
}

#[test]
fn tiles_are_looked_at_once_for_many_places() {
    let mut random = Random(3);
    let array = array(&mut random, false, false);
    let tiles: u64 = array.fragments().iter().map(|f| f.tile_num()).sum();
    let ranges: Vec<Range> = (0..1000).rev().map(|at| Range::of(at, at)).collect();
    let counts = ReadCounts::new();
    let options = ReadOptions::new().counted(&counts);
    let found = read(&array, &options, &ranges);
    let places = found.columns[0].values::<i32>().unwrap();
    assert!(places.is_sorted_by(|a, b| a > b));
    assert!(counts.tiles() <= 2 * tiles, "{}", counts.tiles());
}

/// Where the cells of all places are too many for a batch those of some are read together.
#[test]
fn small_batches_do_not_make_each_place_a_read() {
    let mut random = Random(5);
    let array = array(&mut random, false, false);
    let ranges: Vec<Range> = (0..1000).rev().map(|at| Range::of(at, at)).collect();
    let whole = read(&array, &ReadOptions::new(), &ranges);
    let counts = ReadCounts::new();
    let options = ReadOptions::new().counted(&counts).batch_bytes(16 << 10);
    assert!(read(&array, &options, &ranges) == whole);
    assert!(counts.tiles() < 1000, "{}", counts.tiles());
}

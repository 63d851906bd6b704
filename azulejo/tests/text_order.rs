//! Strings of dimensions that are not ASCII. libtiledb, as Azulejo to 0.1, stored them in the order of
//! signed bytes, while its boxes and ranges, and what reads of several fragments give, follow
//! unsigned ones: whatever the order in files, each cell is there once, and in its place.

mod support;

use azulejo::column::{ColumnBuilder, ColumnType};
use azulejo::condition::{Comparison, Condition};
use azulejo::format::{ArraySchema, CellValNum, Datatype, Range};
use azulejo::read::{ReadOptions, Reader};
use azulejo::space::Layout;
use azulejo::{
    Array, ColumnBuffers, ColumnSet, Config, Context, Subarray, TimeRange, WriteOptions,
};
use serde_json::Value;
use std::collections::BTreeMap;
use support::layouts::LAYOUTS;
use support::merged::merged;
use support::pack;

/// Coordinates, numbers as texts of the same order, and a value.
type Cell = (Vec<Vec<u8>>, i32);

fn number(value: i32) -> Vec<u8> {
    format!("{:04}", value + 1000).into_bytes()
}

fn expected(json: &[u8]) -> Vec<Cell> {
    let cells: Vec<Vec<Value>> = serde_json::from_slice(json).expect("JSON");
    let cells = cells.iter().map(|cell| {
        let (value, coordinates) = cell.split_last().expect("a value");
        let coordinates = coordinates.iter().map(|at| match at {
            Value::String(text) => text.as_bytes().to_vec(),
            at => number(at.as_i64().expect("a number") as i32),
        });
        (
            coordinates.collect(),
            value.as_i64().expect("a number") as i32,
        )
    });
    let mut cells: Vec<Cell> = cells.collect();
    cells.sort();
    cells
}

/// A column of coordinates.
fn texts<const N: usize>(words: [&str; N]) -> ColumnBuffers {
    let kind = ColumnType::new("k", Datatype::StringAscii).with_cell_val_num(CellValNum::Var);
    let mut keys = ColumnBuilder::new(kind);
    for word in words {
        keys.append_cell(word.as_bytes(), true);
    }
    keys.finish()
}

fn read(array: &Array, layout: Layout, memory: u64) -> Vec<Cell> {
    let dims = array.schema().domain.ndim();
    let options = ReadOptions::new().layout(layout).memory_budget(memory);
    let mut cells = Vec::new();
    for batch in array.read(options).expect("a read") {
        let batch = batch.expect("a batch");
        let columns: Vec<Vec<Vec<u8>>> = batch.columns[..dims]
            .iter()
            .map(|column| {
                let bytes = column.cells().map(|cell| cell.expect("no nulls"));
                match column.column_type.is_var() {
                    true => bytes.map(<[u8]>::to_vec).collect(),
                    false => bytes
                        .map(|b| number(i32::from_le_bytes(b.try_into().expect("4 bytes"))))
                        .collect(),
                }
            })
            .collect();
        let values = batch.columns[dims].values::<i32>().expect("numbers");
        for (i, value) in values.iter().enumerate() {
            cells.push((columns.iter().map(|c| c[i].clone()).collect(), *value));
        }
    }
    cells
}

/// Holds an array against its cells, in every order, with much memory and with little.
fn holds(array: &Array, expected: &[Cell], name: &str) {
    for layout in LAYOUTS {
        for memory in [1 << 30, 1 << 16] {
            let mut cells = read(array, layout, memory);
            let at = |cell: &Cell| match layout {
                Layout::ColMajor => cell.0.iter().rev().cloned().collect(),
                _ => cell.0.clone(),
            };
            if matches!(layout, Layout::RowMajor | Layout::ColMajor) {
                assert!(cells.is_sorted_by_key(at), "{name}: {layout:?}, {memory}");
            }
            cells.sort();
            assert_eq!(cells, expected, "{name}: {layout:?}, {memory}");
        }
    }
}

#[test]
fn strings_that_are_not_ascii_are_read_as_others_are() {
    let files = pack::unpack(include_bytes!("fixtures/text_order.tar.zst"));
    for name in ["one", "first", "last", "twice"] {
        let expected = expected(&files[&format!("{name}.json")]);
        let context = pack::context(Config::default(), None, pack::memory(&files, ""));
        let handle = context.array(&format!("mem://{name}"));
        holds(&handle.open().expect("an array"), &expected, name);
        // Merged, they are the same.
        holds(&merged(&handle), &expected, name);
    }
}

#[test]
fn strings_written_over_are_there_once() {
    let files = pack::unpack(include_bytes!("fixtures/text_order.tar.zst"));
    let context = pack::context(Config::default(), None, pack::memory(&files, ""));
    let handle = context.array("mem://one");
    let mut model: BTreeMap<Vec<Vec<u8>>, i32> = expected(&files["one.json"]).into_iter().collect();
    // One cell a write: each lies within what libtiledb wrote as one tile.
    for (i, word) in ["b", "é", "Kz", "Kö", "new", "ü"].into_iter().enumerate() {
        let value = 1000 + i as i32;
        let cells = ColumnSet::of([texts([word]), ColumnBuffers::of_values("a", vec![value])]);
        let mut writer = handle.writer(WriteOptions::new()).expect("a writer");
        writer.write(&cells.expect("columns")).expect("a write");
        writer.finish().expect("a fragment");
        model.insert(vec![word.as_bytes().to_vec()], value);
        let expected: Vec<Cell> = model.clone().into_iter().collect();
        holds(&handle.open().expect("an array"), &expected, word);
    }
}

#[test]
fn only_results_come_of_tiles_that_meet_no_other() {
    let schema = ArraySchema::sparse()
        .string_dimension("k")
        .attribute("a", Datatype::Int32)
        .capacity(2)
        .build()
        .expect("a schema");
    let context = Context::new(Config::new().threads(1), None).expect("a context");
    let handle = context.array("mem://results");
    handle.create_at(schema, 1).expect("an array");
    // The boxes of the fragments meet, none of their tiles do.
    let fragments = [["a", "b", "x", "y"], ["0", "1", "z0", "z1"]];
    for (words, values, time) in [
        (fragments[0], vec![1, 2, 3, 4], 10),
        (fragments[1], vec![5, 6, 7, 8], 20),
    ] {
        let columns = ColumnSet::of([texts(words), ColumnBuffers::of_values("a", values)]);
        let options = WriteOptions::new().timestamp(time);
        let mut writer = handle.writer(options).expect("a writer");
        writer.write(&columns.expect("columns")).expect("a write");
        writer.finish().expect("a fragment");
    }
    let greater = |value: i32| Condition::compare("a", Comparison::Gt, value.to_le_bytes());
    let read = |condition: Option<Condition>, range: bool, time: u64| {
        let array = handle.open_at(TimeRange::until(time)).expect("an array");
        LAYOUTS.map(|layout| {
            let mut options = ReadOptions::new().layout(layout);
            if let Some(condition) = &condition {
                options = options.condition(condition.clone());
            }
            if range {
                options = options.subarray(Subarray::ranges([Range {
                    start: b"a".to_vec(),
                    end: b"b".to_vec(),
                }]));
            }
            let cells = array
                .read(options)
                .and_then(Reader::read_all)
                .expect("cells");
            let values = cells.column("a").expect("a column").values::<i32>();
            let mut values = values.expect("numbers").to_vec();
            values.sort_unstable();
            values
        })
    };
    let every = |values: &[i32]| LAYOUTS.map(|_| values.to_vec());
    assert_eq!(read(Some(greater(1)), true, 30), every(&[2]));
    assert_eq!(read(Some(greater(9)), true, 30), every(&[]));
    assert_eq!(
        read(Some(greater(1)), false, 30),
        every(&[2, 3, 4, 5, 6, 7, 8])
    );
    let one = Condition::compare("a", Comparison::Eq, 1i32.to_le_bytes());
    handle.delete_cells(&one, Some(40)).expect("a delete");
    assert_eq!(read(None, true, 30), every(&[1, 2]));
    assert_eq!(read(None, true, 40), every(&[2]));
    assert_eq!(read(None, false, 40), every(&[2, 3, 4, 5, 6, 7, 8]));
}

//! Strings of dimensions that are not ASCII. libtiledb, as Azulejo to 0.1, stored them in the order of
//! signed bytes, while its boxes and ranges, and what reads of several fragments give, follow
//! unsigned ones: whatever the order in files, each cell is there once, and in its place.

mod support;

use azulejo::column::{ColumnBuilder, ColumnType};
use azulejo::format::{CellValNum, Datatype};
use azulejo::read::ReadOptions;
use azulejo::space::Layout;
use azulejo::{Array, ColumnBuffers, ColumnSet, Config, WriteOptions};
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
        let kind = ColumnType::new("k", Datatype::StringAscii).with_cell_val_num(CellValNum::Var);
        let mut keys = ColumnBuilder::new(kind);
        keys.append_cell(word.as_bytes(), true);
        let cells = ColumnSet::of([keys.finish(), ColumnBuffers::of_values("a", vec![value])]);
        let mut writer = handle.writer(WriteOptions::new()).expect("a writer");
        writer.write(&cells.expect("columns")).expect("a write");
        writer.finish().expect("a fragment");
        model.insert(vec![word.as_bytes().to_vec()], value);
        let expected: Vec<Cell> = model.clone().into_iter().collect();
        holds(&handle.open().expect("an array"), &expected, word);
    }
}

//! Real dimensions without an extent whose domain is longer than a real can say. libtiledb takes the
//! domain's length for the extent: its tiles are infinitely long, coordinates that are infinitely far
//! from the lower bound lie in tile 2^63, and cells in the order of these tiles. Such as have more than
//! 2^64 tiles: it takes those whose index is greater for tile 0.

mod support;

use azulejo::read::ReadOptions;
use azulejo::space::Layout;
use azulejo::{Array, ColumnBuffers, ColumnSet, Config, WriteOptions};
use std::collections::BTreeMap;
use support::layouts::LAYOUTS;
use support::merged::merged;
use support::pack;

/// The bits of the real coordinate, the whole one, and a value.
type Cell = (i64, u8, i32);

fn expected(json: &[u8]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = serde_json::from_slice(json).expect("JSON");
    cells.sort_unstable();
    cells
}

fn read(array: &Array, layout: Layout, memory: u64) -> Vec<Cell> {
    let options = ReadOptions::new()
        .layout(layout)
        .memory_budget(memory)
        .fields(["x", "y", "a"]);
    let mut cells = Vec::new();
    for batch in array.read(options).expect("a read") {
        let batch = batch.expect("a batch");
        let xs = batch.columns[0].values::<f64>().expect("reals");
        let ys = batch.columns[1].values::<u8>().expect("bytes");
        let values = batch.columns[2].values::<i32>().expect("numbers");
        let places = xs.iter().map(|x| x.to_bits().cast_signed()).zip(ys);
        cells.extend(places.zip(values).map(|((x, y), value)| (x, *y, *value)));
    }
    cells
}

/// Holds an array against its cells, in every order, with much memory and with little.
fn holds(array: &Array, expected: &[Cell], name: &str) {
    let x_is_first = &*array.schema().domain.dimensions[0].name == "x";
    for layout in LAYOUTS {
        for memory in [1 << 30, 1 << 16] {
            let mut cells = read(array, layout, memory);
            let x = |cell: &Cell| f64::from_bits(cell.0.cast_unsigned());
            let is_sorted = match (layout, x_is_first) {
                (Layout::RowMajor, true) | (Layout::ColMajor, false) => {
                    cells.is_sorted_by_key(|cell| (x(cell), cell.1))
                }
                (Layout::RowMajor, false) | (Layout::ColMajor, true) => {
                    cells.is_sorted_by_key(|cell| (cell.1, x(cell)))
                }
                _ => true,
            };
            assert!(is_sorted, "{name}: {layout:?}, {memory}");
            cells.sort_unstable();
            assert_eq!(cells, expected, "{name}: {layout:?}, {memory}");
        }
    }
}

#[test]
fn cells_of_infinite_tiles_are_there_once() {
    let files = pack::unpack(include_bytes!("fixtures/infinite_tiles.tar.zst"));
    let infinite = ["first", "first-col", "last", "last-col", "twice"];
    for name in infinite.into_iter().chain(["far", "far-last", "far-twice"]) {
        let mut cells = expected(&files[&format!("{name}.json")]);
        let context = pack::context(Config::default(), None, pack::memory(&files, ""));
        let handle = context.array(&format!("mem://{name}"));
        holds(&handle.open().expect("an array"), &cells, name);

        // Some are written over.
        let again: BTreeMap<(i64, u8), i32> = cells
            .iter()
            .step_by(3)
            .map(|(x, y, _)| ((*x, *y), 1000 + i32::from(*y)))
            .collect();
        let bits = |x: i64| f64::from_bits(x.cast_unsigned());
        let columns = ColumnSet::of([
            ColumnBuffers::of_values("x", again.keys().map(|at| bits(at.0)).collect::<Vec<_>>()),
            ColumnBuffers::of_values("y", again.keys().map(|at| at.1).collect::<Vec<_>>()),
            ColumnBuffers::of_values("a", again.values().copied().collect::<Vec<_>>()),
        ]);
        let mut writer = handle.writer(WriteOptions::new()).expect("a writer");
        writer.write(&columns.expect("columns")).expect("a write");
        writer.finish().expect("a fragment");
        let array = handle.open().expect("an array");
        if !array.schema().allows_dups {
            cells.retain(|(x, y, _)| !again.contains_key(&(*x, *y)));
        }
        cells.extend(again.iter().map(|(at, value)| (at.0, at.1, *value)));
        cells.sort_unstable();
        holds(&array, &cells, name);

        // Merged, they are the same.
        holds(&merged(&handle), &cells, name);
    }
}

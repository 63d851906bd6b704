//! Reads of arrays too many of whose tiles overlap for the memory that a read may hold: the same
//! cells in the same order, and each tile decoded a few times only.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::Datatype;
use azulejo::format::schema::ArraySchema;
use azulejo::read::{ReadCounts, ReadOptions};
use azulejo::space::Layout;
use azulejo::write::WriteOptions;
use azulejo::{Config, Context};

const FRAGMENTS: u64 = 40;
const CELLS: u64 = 1_000;
const SIDE: i64 = 10_000;

/// A coordinate that the cell's number decides, the same on every run.
fn coordinate(n: u64) -> i64 {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) as i64 % SIDE
}

/// Cells all over a square, in fragments that overlap in full. Of every fragment after the first
/// some cells lie where cells of the first do.
fn array(cell_order: Layout, duplicates: bool, uri: &str) -> Context {
    let context = Context::new(Config::new().threads(2), None).unwrap();
    let schema = ArraySchema::sparse()
        .dimension("y", 0..=SIDE - 1, 1_000)
        .dimension("x", 0..=SIDE - 1, 1_000)
        .attribute("v", Datatype::Int64)
        .var_attribute("s", Datatype::StringAscii)
        .cell_order(cell_order)
        .capacity(100)
        .allows_duplicates(duplicates)
        .build()
        .unwrap();
    context.array(uri).create(schema).unwrap();
    for fragment in 0..FRAGMENTS {
        let of_first = |i: u64| fragment > 0 && i.is_multiple_of(10);
        let cells = (0..CELLS).map(|i| if of_first(i) { i } else { fragment * CELLS + i });
        let cells: Vec<u64> = cells.collect();
        let along =
            |salt: u64| -> Vec<i64> { cells.iter().map(|n| coordinate(n * 2 + salt)).collect() };
        let texts = (0..CELLS).map(|i| "text".repeat((i % 7) as usize));
        let values: Vec<i64> = (0..CELLS).map(|i| (fragment * CELLS + i) as i64).collect();
        let columns = ColumnSet::of([
            ColumnBuffers::of_values("y", along(0)),
            ColumnBuffers::of_values("x", along(1)),
            ColumnBuffers::of_values("v", values),
            ColumnBuffers::of_strings("s", texts),
        ]);
        let options = WriteOptions::new().timestamp(fragment + 1);
        let mut writer = context.array(uri).writer(options).unwrap();
        writer.write(&columns.unwrap()).unwrap();
        writer.finish().unwrap();
    }
    context
}

/// All columns of a read, batch after batch, and the bytes that it fetched.
fn read(context: &Context, uri: &str, layout: Layout, budget: u64) -> (Vec<Vec<u8>>, u64) {
    let counts = ReadCounts::new();
    let options = ReadOptions::new().layout(layout).memory_budget(budget);
    let array = context.array(uri).open().unwrap();
    let mut all: Vec<Vec<u8>> = Vec::new();
    for batch in array.read(options.counted(&counts)).unwrap() {
        let batch = batch.unwrap();
        all.resize(batch.columns.len(), Vec::new());
        for (all, column) in all.iter_mut().zip(&batch.columns) {
            all.extend_from_slice(column.view().data);
        }
    }
    (all, counts.bytes())
}

#[test]
fn little_memory_gives_the_same_cells_in_the_same_order() {
    let orders = [
        (Layout::RowMajor, false),
        (Layout::ColMajor, true),
        (Layout::Hilbert, false),
    ];
    for (at, (cell_order, duplicates)) in orders.into_iter().enumerate() {
        let uri = format!("mem://overlapping-{at}");
        let context = array(cell_order, duplicates, &uri);
        for layout in [Layout::Global, Layout::RowMajor] {
            let (all, once) = read(&context, &uri, layout, 1 << 30);
            for (budget, times) in [(1 << 20, 3), (300_000, 6), (100_000, 14)] {
                let what = format!("{cell_order:?}, {duplicates}, {layout:?}, {budget}");
                let (some, bytes) = read(&context, &uri, layout, budget);
                assert!(some == all, "{what}");
                if layout == Layout::Global {
                    let most = times * once;
                    assert!(
                        bytes <= most,
                        "{what}: {bytes} bytes, {most} expected at most"
                    );
                }
            }
        }
    }
}

//! What writes hold beside the caller's columns, counted by the allocator.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::Attribute;
use azulejo::format::{ArraySchema, CellValNum, Datatype};
use azulejo::read::ReadOptions;
use azulejo::space::Layout;
use azulejo::write::{WriteLayout, WriteOptions};
use azulejo::{ColumnBuffers, ColumnSet, Config, Context};
use std::alloc::{self, GlobalAlloc, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counted;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "a global allocator cannot be written without")]
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: alloc::Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: alloc::Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Bytes that `work` held at its peak beside those held before.
fn peak(work: impl FnOnce()) -> usize {
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    work();
    PEAK.load(Ordering::Relaxed) - before
}

const MIB: usize = 1 << 20;

/// One test, as the counters are shared: a write of 32 MiB in row-major order, one in pieces of 1
/// MiB, one to be sorted.
#[test]
fn writes_hold_less_than_their_budget() {
    let folder = tempfile::tempdir().unwrap();
    let uri = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let budget = 16 * MIB;
    let config = Config::new().threads(2).memory_budget(budget as u64);
    let context = Context::new(config, None).unwrap();

    let new = ArraySchema::dense()
        .dimension("x", 0i32..=2047, 128)
        .dimension("y", 0i32..=2047, 128);
    context
        .array(&uri("dense"))
        .create(new.attribute("a", Datatype::Float64).build().unwrap())
        .unwrap();
    let values: Vec<f64> = (0..2048 * 2048u32)
        .map(|i| f64::from(i.wrapping_mul(0x9e37_79b9)))
        .collect();
    let cells = ColumnSet::of([ColumnBuffers::of_values("a", values)]).unwrap();
    let held = peak(|| {
        let mut writer = context
            .array(&uri("dense"))
            .writer(WriteOptions::new())
            .unwrap();
        writer.write(&cells).unwrap();
        writer.finish().unwrap();
    });
    assert!(held < budget, "a dense write of 32 MiB held {held} bytes");
    // Tiles of which few fit in the budget.
    let new = ArraySchema::dense()
        .dimension("x", 0i32..=2047, 320)
        .dimension("y", 0i32..=2047, 1024);
    let zstd = Pipeline {
        filters: vec![Filter::Zstd { level: 1 }],
        ..Pipeline::default()
    };
    let attribute = Attribute::new("a", Datatype::Float64, CellValNum::ONE).filters(zstd);
    context
        .array(&uri("large"))
        .create(new.attribute_with(attribute).build().unwrap())
        .unwrap();
    let held = peak(|| {
        let mut writer = context
            .array(&uri("large"))
            .writer(WriteOptions::new())
            .unwrap();
        writer.write(&cells).unwrap();
        writer.finish().unwrap();
    });
    assert!(
        held < budget,
        "a dense write of tiles of 2.5 MiB held {held} bytes"
    );
    let written = context
        .array(&uri("large"))
        .open()
        .unwrap()
        .read(ReadOptions::new())
        .unwrap();
    let written = written.read_all().unwrap();
    assert!(written.columns[0].values::<f64>() == cells.columns[0].values::<f64>());
    drop((cells, written));

    let schema = || {
        let new = ArraySchema::sparse()
            .dimension("x", 0i64..=1 << 40, 1 << 20)
            .capacity(10_000);
        new.attribute("a", Datatype::Int64).build().unwrap()
    };
    context.array(&uri("sparse")).create(schema()).unwrap();
    let held = peak(|| {
        let options = WriteOptions::new().layout(WriteLayout::Global);
        let mut writer = context.array(&uri("sparse")).writer(options).unwrap();
        for piece in 0..32i64 {
            let x: Vec<i64> = (0..65_536).map(|i| piece * 65_536 + i).collect();
            let cells = [
                ColumnBuffers::of_values("a", x.clone()),
                ColumnBuffers::of_values("x", x),
            ];
            writer.write(&ColumnSet::of(cells).unwrap()).unwrap();
        }
        assert_eq!(writer.finish().unwrap().len(), 1);
    });
    assert!(
        held < budget,
        "a sparse write of 32 MiB in pieces held {held} bytes"
    );

    // Sorting all of these at once would take 28 bytes a cell.
    let mixed = |i: i64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64) & ((1 << 40) - 1);
    let x: Vec<i64> = (0..1_200_000).map(mixed).collect();
    let cells = [
        ColumnBuffers::of_values("a", x.clone()),
        ColumnBuffers::of_values("x", x.clone()),
    ];
    let cells = ColumnSet::of(cells).unwrap();
    context.array(&uri("unordered")).create(schema()).unwrap();
    let held = peak(|| {
        let mut writer = context
            .array(&uri("unordered"))
            .writer(WriteOptions::new())
            .unwrap();
        writer.write(&cells).unwrap();
        assert_eq!(writer.finish().unwrap().len(), 1);
    });
    assert!(
        held < budget,
        "an unordered write of {} cells held {held} bytes",
        x.len()
    );
    let array = context.array(&uri("unordered")).open().unwrap();
    let read = array
        .read(ReadOptions::new().fields(["x", "a"]).layout(Layout::Global))
        .unwrap();
    let mut expected = x;
    expected.sort_unstable();
    let mut found = 0;
    for batch in read {
        let batch = batch.unwrap();
        let wanted = &expected[found..found + batch.cell_num];
        assert!(
            batch
                .columns
                .iter()
                .all(|column| column.values::<i64>() == Some(wanted))
        );
        found += batch.cell_num;
    }
    assert_eq!(found, expected.len());
}

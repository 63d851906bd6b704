//! What is cancelled ends with an error of its own, and harms nothing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::schema::ArraySchema;
use azulejo::format::{Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::write::{WriteLayout, WriteOptions};
use azulejo::{Array, Config, Context, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const URI: &str = "mem://array";
const CELLS: i64 = 10_000;

fn is_cancelled<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Cancelled))
}

fn columns(xs: impl Iterator<Item = i64> + Clone, dense: bool) -> ColumnSet {
    let mut columns = vec![ColumnBuffers::of_values("a", xs.clone().collect())];
    if !dense {
        columns.push(ColumnBuffers::of_values("x", xs.collect()));
    }
    ColumnSet::of(columns).unwrap()
}

fn array(dense: bool) -> Context {
    let context = Context::new(Config::new().threads(2), None).unwrap();
    let schema = if dense {
        ArraySchema::dense()
    } else {
        ArraySchema::sparse().capacity(100)
    };
    let schema = schema
        .dimension("x", 0..=99_999i64, 100)
        .attribute("a", Datatype::Int64)
        .build()
        .unwrap();
    context.array(URI).create(schema).unwrap();
    for fragment in 0..3 {
        let mut writer = context.array(URI).writer(options(fragment, dense)).unwrap();
        let first = fragment * CELLS;
        writer.write(&columns(first..first + CELLS, dense)).unwrap();
        writer.finish().unwrap();
    }
    context
}

fn options(fragment: i64, dense: bool) -> WriteOptions {
    let range = Range::of(fragment * CELLS, (fragment + 1) * CELLS - 1);
    let options = WriteOptions::new();
    if dense {
        options.subarray(NdRectangle {
            ranges: vec![range],
        })
    } else {
        options
    }
}

fn whole(array: &Array) -> Vec<i64> {
    let cells = array
        .read(ReadOptions::new().fields(["a"]))
        .unwrap()
        .read_all()
        .unwrap();
    let values = cells.column("a").unwrap().values::<i64>().unwrap();
    values
        .iter()
        .copied()
        .filter(|a| (0..3 * CELLS).contains(a))
        .collect()
}

#[test]
fn readers_end_and_their_array_is_read_on() {
    for dense in [false, true] {
        let context = array(dense);
        let array = context.array(URI).open().unwrap();
        let options = || ReadOptions::new().memory_budget(1 << 20);
        let mut reader = array.read(options()).unwrap();
        assert!(reader.next().unwrap().is_ok());
        let untouched = array.read(options()).unwrap();
        context
            .derive(Config::default(), None)
            .cancel_handle()
            .cancel();
        assert!(is_cancelled(&reader.next().unwrap()), "dense {dense}");
        assert!(reader.next().is_none(), "an error ends it");
        assert!(is_cancelled(&untouched.read_all()));
        assert_eq!(whole(&array), (0..3 * CELLS).collect::<Vec<_>>());
        assert_eq!(Error::Cancelled.to_string(), "cancelled");
    }
}

#[test]
fn a_write_that_is_cancelled_does_not_count_and_leaves_nothing() {
    for dense in [false, true] {
        let context = array(dense);
        let handle = context.cancel_handle();
        for after in [1, 2] {
            let mut writer = context
                .array(URI)
                .writer(options(4, dense).layout(WriteLayout::Global))
                .unwrap();
            let half = CELLS / 2;
            writer
                .write(&columns(4 * CELLS..4 * CELLS + half, dense))
                .unwrap();
            let written = if after == 1 {
                handle.cancel();
                writer
                    .write(&columns(4 * CELLS + half..5 * CELLS, dense))
                    .and_then(|()| writer.finish())
            } else {
                writer
                    .write(&columns(4 * CELLS + half..5 * CELLS, dense))
                    .unwrap();
                handle.cancel();
                writer.finish()
            };
            assert!(is_cancelled(&written), "dense {dense}: {written:?}");
        }
        let fragments = context.array(URI).open().unwrap().fragments().len();
        assert_eq!(fragments, 3);
        let location = context
            .locate(&azulejo::storage::Uri::parse(URI).unwrap())
            .unwrap();
        let left = location
            .storage
            .list(&location.path.join("__fragments"))
            .unwrap();
        assert_eq!(left.len(), 3, "no files of it stay: {left:?}");
        let mut writer = context.array(URI).writer(options(4, dense)).unwrap();
        writer.write(&columns(4 * CELLS..5 * CELLS, dense)).unwrap();
        assert_eq!(writer.finish().unwrap().len(), 1);
    }
}

#[test]
fn long_work_is_cancelled_from_its_progress() {
    for dense in [false, true] {
        let plain = array(dense);
        let told = Arc::new(AtomicUsize::new(0));
        let (handle, count) = (plain.cancel_handle(), Arc::clone(&told));
        let context = plain.observed(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            handle.cancel();
        });
        assert!(is_cancelled(
            &context.array(URI).consolidate(&Default::default())
        ));
        assert!(is_cancelled(&context.object(URI).copy_to("mem://copy")));
        let mut report = context.array(URI).check(Default::default());
        assert!(is_cancelled(&report));
        assert!(told.load(Ordering::Relaxed) >= 3);
        let array = plain.array(URI).open().unwrap();
        assert_eq!(
            (array.fragments().len(), whole(&array)),
            (3, (0..3 * CELLS).collect())
        );
        assert!(
            plain.array("mem://copy").open().is_err(),
            "half a copy is none"
        );
        report = plain.array(URI).check(Default::default());
        assert!(report.unwrap().findings.is_empty());
        plain.array(URI).consolidate(&Default::default()).unwrap();
        assert_eq!(plain.array(URI).open().unwrap().fragments().len(), 1);
    }
}

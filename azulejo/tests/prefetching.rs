//! Where reads take long to begin, what a query needs next is asked for before it is needed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::format::schema::ArraySchema;
use azulejo::format::{Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Layout};
use azulejo::storage::{
    LocalStorage, MemoryStorage, PendingRead, ReadInto, ReadRequest, Storage, StorageLayer,
    StorePath,
};
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context, Error, Result, Subarray};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const URI: &str = "mem://array";

/// What was asked of data files.
#[derive(Debug, Default)]
struct Counts {
    /// Reads that the caller waited for.
    waited: AtomicUsize,
    /// Reads that were begun ahead.
    started: AtomicUsize,
    /// Bytes of both.
    bytes: AtomicUsize,
    /// Reads ahead fail from this one on, counted down.
    failing: AtomicUsize,
}

/// Memory as far away as a bucket.
#[derive(Debug, Default)]
struct Distant {
    inner: MemoryStorage,
    counts: Arc<Counts>,
}

impl Distant {
    fn count<'p>(&self, ahead: bool, ranges: impl Iterator<Item = (&'p StorePath, u64)>) -> bool {
        let data = |path: &StorePath| {
            path.as_str().contains("__fragments")
                && !path.as_str().ends_with("__fragment_metadata.tdb")
        };
        let bytes: u64 = ranges
            .filter(|(path, _)| data(path))
            .map(|(_, len)| len)
            .sum();
        let counter = if ahead {
            &self.counts.started
        } else {
            &self.counts.waited
        };
        counter.fetch_add(usize::from(bytes > 0), Ordering::Relaxed);
        self.counts
            .bytes
            .fetch_add(bytes as usize, Ordering::Relaxed);
        bytes > 0
    }
}

fn len(request: &ReadRequest) -> u64 {
    match &request.range {
        azulejo::storage::ReadRange::Bytes(range) => range.end - range.start,
        _ => 1,
    }
}

impl StorageLayer for Distant {
    fn inner(&self) -> &dyn Storage {
        &self.inner
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        self.count(false, requests.iter().map(|r| (&r.path, len(r))));
        self.inner.read(requests)
    }

    fn read_into(&self, requests: &mut [ReadInto<'_>]) -> Result<()> {
        self.count(
            false,
            requests.iter().map(|r| (&r.path, r.out.len() as u64)),
        );
        self.inner.read_into(requests)
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        if self.count(true, requests.iter().map(|r| (&r.path, len(r))))
            && self.counts.failing.load(Ordering::Relaxed) > 0
            && self.counts.failing.fetch_sub(1, Ordering::Relaxed) == 1
        {
            let source = std::io::Error::other("the network is gone");
            let uri = requests[0].path.to_string();
            return PendingRead::ready(Err(Error::Storage {
                op: "read",
                uri,
                source,
            }));
        }
        PendingRead::ready(self.inner.read(&requests))
    }
}

/// An array of two fragments, cells of one between those of the other, with a string attribute.
fn distant(dense: bool) -> (Array, Arc<Counts>) {
    let storage = Distant::default();
    let counts = Arc::clone(&storage.counts);
    let config = Config::new().threads(2);
    let context = Context::with_storages(
        config,
        None,
        Arc::new(LocalStorage::new()),
        Arc::new(storage),
    )
    .unwrap();
    let schema = if dense {
        ArraySchema::dense()
    } else {
        ArraySchema::sparse().capacity(1000)
    };
    let schema = schema
        .dimension("x", 0..=99_999i64, 1000)
        .attribute("a", Datatype::Int32)
        .attribute("b", Datatype::Float64)
        .var_attribute("s", Datatype::StringUtf8)
        .build()
        .unwrap();
    context.array(URI).create(schema).unwrap();
    for fragment in 0..2i64 {
        let xs: Vec<i64> = match dense {
            true => (fragment * 10_000..(fragment + 1) * 10_000).collect(),
            false => (0..10_000).map(|i| 2 * i + fragment).collect(),
        };
        let mut columns = vec![
            ColumnBuffers::of_values("a", xs.iter().map(|x| *x as i32 * 3).collect()),
            ColumnBuffers::of_values("b", xs.iter().map(|x| *x as f64 / 2.0).collect()),
            ColumnBuffers::of_strings("s", xs.iter().map(|x| format!("cell {x}"))),
        ];
        let mut options = WriteOptions::new();
        if dense {
            options = options.subarray(NdRectangle {
                ranges: vec![Range::of(xs[0], xs[9_999])],
            });
        } else {
            columns.push(ColumnBuffers::of_values("x", xs));
        }
        let mut writer = context.array(URI).writer(options).unwrap();
        writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
        writer.finish().unwrap();
    }
    (context.array(URI).open().unwrap(), counts)
}

fn slice(first: i64, last: i64) -> ReadOptions {
    let range = DimSelection::Ranges(vec![Range::of(first, last)]);
    ReadOptions::new()
        .fields(["x", "a", "b", "s"])
        .subarray(Subarray::Box(vec![range]))
}

fn check(batches: &[ColumnSet], xs: impl Iterator<Item = i64>) {
    let all = ColumnSet::concat(batches).unwrap();
    let wanted: Vec<i64> = xs.collect();
    assert!(all.column("x").unwrap().values::<i64>().unwrap() == wanted);
    assert!(
        all.column("a")
            .unwrap()
            .values::<i32>()
            .unwrap()
            .iter()
            .zip(&wanted)
            .all(|(a, x)| i64::from(*a) == 3 * x)
    );
    let strings = all.column("s").unwrap().strings().zip(&wanted);
    assert!(
        strings
            .into_iter()
            .all(|(s, x)| s.unwrap().unwrap() == format!("cell {x}"))
    );
}

fn take(counts: &Counts) -> [usize; 3] {
    [&counts.waited, &counts.started, &counts.bytes].map(|n| n.swap(0, Ordering::Relaxed))
}

#[test]
fn a_full_read_waits_for_nothing_that_was_not_asked_for_before() {
    for dense in [false, true] {
        let (array, counts) = distant(dense);
        take(&counts);
        let whole = array.read(slice(0, 19_999)).unwrap().read_all().unwrap();
        check(&[whole], 0..20_000);
        let [waited, started, bytes] = take(&counts);
        // Fields of fixed length come together in a dense array.
        let each = if dense { 2 } else { 4 };
        assert!(
            waited == 0 && started >= each,
            "dense {dense}: {waited} {started}"
        );

        // Batch after batch: as many bytes, none twice.
        // Dense reads give little of a small budget to what is not needed yet.
        let mut reader = array.read(slice(0, 19_999).memory_budget(1 << 20)).unwrap();
        let mut batches = vec![reader.next().unwrap().unwrap()];
        let [waited, started, first] = take(&counts);
        assert!(
            (dense || waited == 0) && started >= 2 * each,
            "dense {dense}: the next batch is on its way: {waited} {started}"
        );
        batches.extend(reader.map(Result::unwrap));
        check(&batches, 0..20_000);
        let [waited, _, rest] = take(&counts);
        assert!(
            batches.len() > 1 && (dense || waited == 0),
            "dense {dense}: {} {waited}",
            batches.len()
        );
        assert!(
            first < bytes * 2 / 3 && first + rest == bytes,
            "dense {dense}: {first} + {rest}, {bytes}"
        );
    }
}

#[test]
fn a_slice_asks_for_the_tiles_that_hold_it_and_no_others() {
    let (array, counts) = distant(false);
    take(&counts);
    let set = array.read(slice(4_100, 4_200)).unwrap().read_all().unwrap();
    check(&[set], 4_100..4_201);
    let [waited, started, bytes] = take(&counts);
    assert!(
        waited == 0 && started == 4,
        "coordinates, then three attributes at once: {waited} {started}"
    );
    let whole = array.read(slice(0, 19_999)).unwrap().read_all().unwrap();
    check(&[whole], 0..20_000);
    let [_, _, all] = take(&counts);
    assert!(bytes < all / 5, "{bytes} of {all}");
    // Where a condition leaves nothing, the other fields are not asked for.
    let none = Condition::compare("a", Comparison::Eq, (-1i32).to_le_bytes());
    let set = array
        .read(slice(0, 19_999).condition(none))
        .unwrap()
        .read_all()
        .unwrap();
    let [_, _, read] = take(&counts);
    assert!(
        set.cell_num == 0 && read < all / 8,
        "coordinates, which may replace others: {read} of {all}"
    );
    let odd = Condition::compare("b", Comparison::Eq, 0.25f64.to_le_bytes());
    let set = array
        .read(slice(0, 19_999).condition(odd))
        .unwrap()
        .read_all()
        .unwrap();
    let [_, _, read] = take(&counts);
    assert!(
        set.cell_num == 0 && read > 0 && read < all / 8,
        "two tiles' coordinates and b: {read} of {all}"
    );
}

#[test]
fn batches_stopped_early_and_other_layouts_are_right() {
    for dense in [false, true] {
        let (array, _) = distant(dense);
        for layout in [
            Layout::RowMajor,
            Layout::ColMajor,
            Layout::Global,
            Layout::Unordered,
        ] {
            let options = || slice(500, 15_499).layout(layout).memory_budget(1 << 20);
            let mut reader = array.read(options()).unwrap();
            let begin = reader.next().unwrap().unwrap();
            drop(reader);
            let mut all: Vec<ColumnSet> =
                array.read(options()).unwrap().map(Result::unwrap).collect();
            assert_eq!(begin, all[0], "dense {dense} {layout:?}");
            if layout == Layout::Unordered {
                let xs = ColumnSet::concat(&all).unwrap();
                let mut xs = xs.column("x").unwrap().values::<i64>().unwrap().to_vec();
                xs.sort_unstable();
                assert!(xs.into_iter().eq(500..15_500), "dense {dense}");
                all.clear();
            } else {
                check(&all, 500..15_500);
            }
        }
    }
}

#[test]
fn what_fails_ahead_is_an_error_when_it_is_needed() {
    for dense in [false, true] {
        let (array, counts) = distant(dense);
        for failing in 1..12 {
            counts.failing.store(failing, Ordering::Relaxed);
            let mut reader = array.read(slice(0, 19_999).memory_budget(1 << 20)).unwrap();
            let failed = reader.by_ref().find_map(Result::err).unwrap();
            assert!(
                failed.to_string().contains("the network is gone"),
                "dense {dense}: {failed}"
            );
            assert!(reader.next().is_none());
        }
        counts.failing.store(0, Ordering::Relaxed);
        check(
            &[array.read(slice(0, 19_999)).unwrap().read_all().unwrap()],
            0..20_000,
        );
    }
}

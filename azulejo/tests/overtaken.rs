//! Readers that a vacuum overtakes: what they were opened with is gone before they read it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

use azulejo::column::{ColumnBuffers, ColumnMut, ColumnSet};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::NewArray;
use azulejo::format::{ArraySchema, Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::storage::{
    LocalStorage, MemoryStorage, PendingRead, ReadRequest, Storage, StorageLayer,
};
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context, Error, TimeRange};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const URI: &str = "mem://array";
/// Cells of each write.
const CELLS: i64 = 10;

fn context() -> Context {
    let config = Config::new().threads(1);
    let (local, memory) = (LocalStorage::new(), MemoryStorage::new());
    Context::with_storages(config, None, Arc::new(local), Arc::new(memory)).unwrap()
}

fn write(context: &Context, part: i64, dense: bool) {
    let x: Vec<i64> = (part * CELLS..(part + 1) * CELLS).collect();
    let mut options = WriteOptions::new();
    let mut columns = vec![ColumnBuffers::of_values("a", x.clone())];
    if dense {
        let ranges = vec![Range::of(x[0], x[9])];
        options = options.subarray(NdRectangle { ranges });
    } else {
        columns.push(ColumnBuffers::of_values("x", x));
    }
    let mut writer = context.array(URI).writer(options).unwrap();
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    writer.finish().unwrap();
}

/// An array of three fragments.
fn array(dense: bool) -> Context {
    let context = context();
    let schema = match dense {
        true => ArraySchema::dense(),
        false => ArraySchema::sparse().capacity(4),
    };
    let schema = schema.dimension("x", 0i64..=4 * CELLS - 1, 10);
    let schema = schema.attribute("a", Datatype::Int64).build();
    context.array(URI).create(schema.unwrap()).unwrap();
    (0..3).for_each(|part| write(&context, part, dense));
    context
}

/// A fourth fragment, then all of them are one, and the others gone.
fn overtake(context: &Context, dense: bool) {
    write(context, 3, dense);
    let array = context.array(URI);
    array.consolidate(&FragmentOptions::new()).unwrap();
    let removed = array.vacuum(Mode::Fragments, VacuumOptions::default());
    assert!(removed.unwrap().folders.len() >= 4);
}

fn all() -> Vec<i64> {
    (0..4 * CELLS).collect()
}

fn values(cells: &ColumnSet) -> Vec<i64> {
    cells.column("a").unwrap().values().unwrap().to_vec()
}

fn options() -> ReadOptions {
    ReadOptions::new().fields(["a"])
}

#[test]
fn a_read_that_is_overtaken_reads_what_there_is_then() {
    for dense in [false, true] {
        // Before it is planned, and after.
        let context = array(dense);
        let opened = context.array(URI).open().unwrap();
        overtake(&context, dense);
        let cells = opened.read(options()).unwrap().read_all().unwrap();
        assert_eq!(values(&cells), all(), "dense: {dense}");

        let context = array(dense);
        let reader = context.array(URI).open().unwrap().read(options()).unwrap();
        let cancel = reader.cancel_handle();
        overtake(&context, dense);
        assert_eq!(values(&reader.read_all().unwrap()), all(), "dense: {dense}");
        cancel.cancel();

        // Batch after batch: none of the first ones is given out twice.
        let context = array(dense);
        let reader = context.array(URI).open().unwrap().read(options()).unwrap();
        overtake(&context, dense);
        let batches = reader.map(|batch| values(&batch.unwrap()));
        assert_eq!(batches.flatten().collect::<Vec<_>>(), all());

        // Into memory of the caller's.
        let context = array(dense);
        let mut reader = context.array(URI).open().unwrap().read(options()).unwrap();
        overtake(&context, dense);
        let mut data = vec![0u8; 8 * all().len()];
        let columns = &mut [ColumnMut {
            data: &mut data,
            offsets: None,
            validity: None,
        }];
        let progress = reader.read_into(columns).unwrap();
        assert_eq!(progress.cells, all().len());
        let bytes: Vec<u8> = all().iter().flat_map(|a| a.to_le_bytes()).collect();
        assert!(data == bytes);
    }
}

/// Once cells were given out, what is gone behind them is an error that names it: no cell comes twice.
#[test]
fn a_read_that_is_overtaken_in_its_midst_gives_no_cell_twice() {
    const MANY: i64 = 10_000;
    let config = Config::new().threads(1).decoded_cache(0);
    let context = Context::new(config, None).unwrap();
    let schema = ArraySchema::sparse().capacity(100);
    let schema = schema.dimension("x", 0i64..=4 * MANY, 100);
    let schema = schema.attribute("a", Datatype::Int64).build().unwrap();
    context.array(URI).create(schema).unwrap();
    for part in 0..3 {
        let x: Vec<i64> = (part * MANY..(part + 1) * MANY).collect();
        let columns = ["a", "x"].map(|name| ColumnBuffers::of_values(name, x.clone()));
        let mut writer = context.array(URI).writer(WriteOptions::new()).unwrap();
        writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
        writer.finish().unwrap();
    }
    let array = context.array(URI).open().unwrap();
    let mut reader = array.read(options().memory_budget(1 << 20)).unwrap();
    let mut seen = values(&reader.next().unwrap().unwrap());
    overtake(&context, false);
    let error = loop {
        match reader.next() {
            Some(Ok(cells)) => seen.extend(values(&cells)),
            Some(Err(error)) => break Some(error),
            None => break None,
        }
    };
    assert!(matches!(error, Some(Error::NotFound { .. })), "{error:?}");
    assert!(seen.iter().copied().eq(0..seen.len() as i64));
    assert!(reader.next().is_none(), "an error ends it");
}

#[test]
fn a_read_that_was_cancelled_does_not_begin_anew() {
    let context = array(false);
    let reader = context.array(URI).open().unwrap().read(options()).unwrap();
    reader.cancel_handle().cancel();
    overtake(&context, false);
    assert!(matches!(reader.read_all(), Err(Error::Cancelled)));
}

/// What counts at a time that was asked for is what it was, or an error: never less.
#[test]
fn a_moment_that_is_gone_is_an_error() {
    for dense in [false, true] {
        let context = array(dense);
        let handle = context.array(URI);
        let time = handle.open().unwrap().time_range();
        let snapshot = handle.snapshot_at(time).unwrap();
        let opened = handle.open_at(time).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(3));
        overtake(&context, dense);
        let read = |array: &Array| {
            let cells = array.read(options())?.read_all()?;
            let written = values(&cells).into_iter().filter(|a| *a >= 0);
            Ok::<_, Error>(written.collect::<Vec<_>>())
        };
        let then: Vec<i64> = (0..3 * CELLS).collect();
        assert!(matches!(read(&opened), Err(Error::NotFound { .. })));
        let found = snapshot.array().and_then(|array| read(&array));
        match found {
            Ok(found) => assert_eq!(found, then),
            Err(error) => assert!(matches!(error, Error::NotFound { .. }), "{error}"),
        }
        assert_eq!(time.start, TimeRange::ALL.start);
    }
}

/// Shows less of some files than there is, a number of times: as they are seen while libtiledb
/// writes them.
#[derive(Debug)]
struct UnderWay {
    inner: MemoryStorage,
    /// What the files have in their paths.
    which: &'static str,
    /// Bytes that are there.
    len: usize,
    times: AtomicUsize,
}

impl UnderWay {
    fn shown(&self, request: &ReadRequest, body: Bytes) -> Bytes {
        let is_one = request.path.to_string().contains(self.which);
        let less = |times: usize| times.checked_sub(1);
        let order = Ordering::SeqCst;
        match is_one && self.times.fetch_update(order, order, less).is_ok() {
            true => body.slice(..self.len.min(body.len())),
            false => body,
        }
    }
}

impl StorageLayer for UnderWay {
    fn inner(&self) -> &dyn Storage {
        &self.inner
    }

    fn read(&self, requests: &[ReadRequest]) -> azulejo::Result<Vec<Bytes>> {
        let bodies = self.inner.read(requests)?;
        let shown = requests.iter().zip(bodies);
        Ok(shown
            .map(|(request, body)| self.shown(request, body))
            .collect())
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        PendingRead::ready(StorageLayer::read(self, &requests))
    }
}

/// Where somebody removes one delete after another: each time that they are read, another one has
/// just gone.
#[derive(Debug)]
struct SlowVacuum {
    inner: MemoryStorage,
    removes: AtomicBool,
}

impl StorageLayer for SlowVacuum {
    fn inner(&self) -> &dyn Storage {
        &self.inner
    }

    fn read(&self, requests: &[ReadRequest]) -> azulejo::Result<Vec<Bytes>> {
        let is_delete = |request: &&ReadRequest| request.path.to_string().ends_with(".del");
        let first = requests.iter().find(is_delete);
        if let Some(first) = first.filter(|_| self.removes.load(Ordering::SeqCst)) {
            self.inner.delete(std::slice::from_ref(&first.path))?;
        }
        self.inner.read(requests)
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        PendingRead::ready(StorageLayer::read(self, &requests))
    }
}

#[test]
fn a_vacuum_that_is_slow_is_waited_for() {
    let storage = Arc::new(SlowVacuum {
        inner: MemoryStorage::new(),
        removes: AtomicBool::new(false),
    });
    let config = Config::new().threads(1);
    let (local, memory) = (Arc::new(LocalStorage::new()), Arc::clone(&storage));
    let context = Context::with_storages(config, None, local, memory).unwrap();
    let array = context.array(URI);
    array.create(sparse_schema()).unwrap();
    write(&context, 0, false);
    for value in 0..7 {
        let opened = array.open().unwrap();
        let condition = opened.condition(&format!("a == {value}")).unwrap();
        array.delete_cells(&condition, None).unwrap();
    }
    array.consolidate_commits().unwrap().unwrap();

    storage.removes.store(true, Ordering::SeqCst);
    let opened = array.open().unwrap();
    let cells = opened.read(options()).unwrap().read_all().unwrap();
    assert_eq!(values(&cells), [7, 8, 9]);
}

fn sparse_schema() -> NewArray {
    let schema = ArraySchema::sparse().dimension("x", 0i64..=99, 10);
    let schema = schema.attribute("a", Datatype::Int64);
    schema.build().unwrap()
}

/// What is there of a file that is being written, and how often that is seen: nothing, a part of
/// the header, all but the end; and one that is damaged.
const PARTS: [(usize, usize); 4] = [(0, 1), (10, 3), (60, 2), (0, usize::MAX)];

/// A sparse array of one fragment, where files with `which` in their paths are shown in part.
fn written_in_place(which: &'static str, len: usize) -> (Context, Arc<UnderWay>) {
    let storage = Arc::new(UnderWay {
        inner: MemoryStorage::new(),
        which,
        len,
        times: AtomicUsize::new(0),
    });
    let config = Config::new().threads(1);
    let (local, memory) = (Arc::new(LocalStorage::new()), Arc::clone(&storage));
    let context = Context::with_storages(config, None, local, memory).unwrap();
    context.array(URI).create(sparse_schema()).unwrap();
    write(&context, 0, false);
    (context, storage)
}

/// libtiledb writes its deletes in place: opening looks again at one that is young and cut off, and
/// says soon that one is damaged.
#[test]
fn a_delete_that_is_being_written_is_waited_for() {
    for (len, times) in PARTS {
        let (context, storage) = written_in_place(".del", len);
        let array = context.array(URI);
        let condition = array.open().unwrap().condition("a < 5").unwrap();
        array.delete_cells(&condition, None).unwrap();
        storage.times.store(times, Ordering::SeqCst);
        match array.open() {
            Ok(opened) => {
                assert_ne!(times, usize::MAX);
                let cells = opened.read(options()).unwrap().read_all().unwrap();
                assert_eq!(values(&cells), [5, 6, 7, 8, 9]);
            }
            Err(error) => is_waited_for(times, Err(error)),
        }
    }
}

/// What is merged is whole: neither a delete nor a file of key-values is copied in part, and both
/// are waited for.
#[test]
fn consolidation_waits_for_what_is_being_written() {
    for (len, times) in PARTS {
        let (context, storage) = written_in_place(".del", len);
        let array = context.array(URI);
        let condition = array.open().unwrap().condition("a < 5").unwrap();
        array.delete_cells(&condition, None).unwrap();
        storage.times.store(times, Ordering::SeqCst);
        let merged = array.consolidate_commits();
        storage.times.store(0, Ordering::SeqCst);
        is_waited_for(times, merged.map(|path| assert!(path.is_some())));
        array
            .vacuum(Mode::Commits, VacuumOptions::default())
            .unwrap();
        let opened = array.open().unwrap();
        let cells = opened.read(options()).unwrap().read_all().unwrap();
        assert_eq!(values(&cells), [5, 6, 7, 8, 9]);
    }

    for (len, times) in PARTS {
        let (context, storage) = written_in_place("/__meta/", len);
        let array = context.array(URI);
        for value in [1i64, 2] {
            let value = MetadataValue::new(Datatype::Int64, value.to_le_bytes());
            let mut writer = array.change_metadata().unwrap();
            writer.put(format!("key {value:?}"), value).unwrap();
            writer.commit().unwrap();
        }
        storage.times.store(times, Ordering::SeqCst);
        let merged = array.consolidate_metadata(TimeRange::ALL);
        storage.times.store(0, Ordering::SeqCst);
        is_waited_for(times, merged.map(|path| assert!(path.is_some())));
        assert_eq!(array.open().unwrap().metadata().unwrap().len(), 2);
    }
}

/// What was seen in part a number of times is waited for; what stays so is damaged.
fn is_waited_for(times: usize, result: azulejo::Result<()>) {
    match result {
        Ok(()) => assert_ne!(times, usize::MAX),
        Err(error) => {
            assert_eq!(times, usize::MAX, "{error}");
            assert!(error.to_string().contains("cut off"), "{error}");
        }
    }
}

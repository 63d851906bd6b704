//! What is cancelled between its last look and its next request to an object store ends: that
//! request is not made. Each operation is cancelled right before each of its calls in turn.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::check::Severity;
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::error::Result;
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::ArraySchema;
use azulejo::format::{Datatype, NdRectangle, Range};
use azulejo::read::aggregate::Aggregate;
use azulejo::read::{ReadOptions, ReadStream};
use azulejo::storage::{
    Entry, ObjectStorage, Pending, PendingList, PendingRead, PendingTails, PutNew, ReadInto,
    ReadRequest, Storage, StorageLayer, StorePath, Tail, Upload, Uri,
};
use azulejo::write::{WriteLayout, WriteOptions};
use azulejo::{Array, CancelHandle, Config, Context, Error};
use bytes::Bytes;
use futures_core::Stream;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

const URI: &str = "s3://bucket/some/array";
/// Cells of a fragment.
const CELLS: i64 = 400;

/// A call behind the cancellation.
#[derive(Debug)]
struct Call {
    what: &'static str,
    on: String,
    is_ok: bool,
}

#[derive(Debug, Default)]
struct Watched {
    /// Who cancels, and before which call from now on: the first is 0.
    armed: Option<(CancelHandle, usize)>,
    cancelled: bool,
    behind: Vec<Call>,
}

/// A storage that cancels right before one of its calls.
#[derive(Debug, Clone)]
struct Watching {
    inner: ObjectStorage,
    watched: Arc<Mutex<Watched>>,
}

impl Watching {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap()
    }

    /// Cancels by `handle` before that call.
    fn arm(&self, handle: &CancelHandle, call: usize) {
        *self.watched() = Watched {
            armed: Some((handle.clone(), call)),
            ..Watched::default()
        };
    }

    /// Whether it has cancelled, and the calls from then on.
    fn disarm(&self) -> (bool, Vec<Call>) {
        let Watched {
            cancelled, behind, ..
        } = std::mem::take(&mut *self.watched());
        (cancelled, behind)
    }

    /// Comes before a call. Whether its outcome is of interest.
    fn step(&self) -> bool {
        let mut watched = self.watched();
        let due = watched.armed.take_if(|(_, left)| *left == 0);
        if let Some((_, left)) = &mut watched.armed {
            *left -= 1;
        }
        if let Some((handle, _)) = due {
            watched.cancelled = true;
            drop(watched);
            handle.cancel();
            return true;
        }
        watched.cancelled
    }

    fn ended<T>(&self, what: &'static str, on: String, result: Result<T>) -> Result<T> {
        self.watched().behind.push(Call {
            what,
            on,
            is_ok: result.is_ok(),
        });
        result
    }

    fn call<T>(
        &self,
        what: &'static str,
        on: &(impl ToString + ?Sized),
        call: impl FnOnce(&ObjectStorage) -> Result<T>,
    ) -> Result<T> {
        let (watch, on) = (self.step(), on.to_string());
        let result = call(&self.inner);
        match watch {
            true => self.ended(what, on, result),
            false => result,
        }
    }

    fn start<T: Send + 'static>(
        &self,
        what: &'static str,
        on: String,
        call: impl FnOnce(&ObjectStorage) -> Pending<T>,
    ) -> Pending<T> {
        let watch = self.step();
        let (this, pending) = (self.clone(), call(&self.inner));
        match watch {
            true => pending.then(move |result| this.ended(what, on, result)),
            false => pending,
        }
    }
}

fn names<'a>(paths: impl IntoIterator<Item = &'a StorePath>) -> String {
    let names: Vec<String> = paths.into_iter().map(StorePath::to_string).collect();
    names.join(" ")
}

fn read_names(requests: &[ReadRequest]) -> String {
    names(requests.iter().map(|request| &request.path))
}

impl StorageLayer for Watching {
    fn inner(&self) -> &dyn Storage {
        &self.inner
    }

    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        self.call("list", dir, |inner| inner.list(dir))
    }

    fn find(&self, dir: &StorePath, names: &[&str]) -> Result<Vec<Entry>> {
        self.call("list", dir, |inner| inner.find(dir, names))
    }

    fn list_all(&self, dirs: &[StorePath]) -> Result<Vec<Vec<Entry>>> {
        self.call("list", &names(dirs), |inner| inner.list_all(dirs))
    }

    fn list_tree(&self, dir: &StorePath) -> Result<Vec<(String, Vec<Entry>)>> {
        self.call("list", dir, |inner| inner.list_tree(dir))
    }

    fn size(&self, path: &StorePath) -> Result<u64> {
        self.call("size", path, |inner| inner.size(path))
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        self.call("read", &read_names(requests), |inner| inner.read(requests))
    }

    fn read_tails(&self, paths: &[StorePath], len: u64) -> Result<Vec<Tail>> {
        self.call("read", &names(paths), |inner| inner.read_tails(paths, len))
    }

    fn read_into(&self, requests: &mut [ReadInto<'_>]) -> Result<()> {
        let on = names(requests.iter().map(|request| &request.path));
        self.call("read", &on, |inner| inner.read_into(requests))
    }

    fn start_list(&self, dirs: Vec<StorePath>) -> PendingList {
        self.start("list", names(&dirs), |inner| inner.start_list(dirs))
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        let on = read_names(&requests);
        self.start("read", on, |inner| inner.start_read(requests))
    }

    fn start_read_tails(&self, paths: Vec<StorePath>, len: u64) -> PendingTails {
        let on = names(&paths);
        self.start("read", on, |inner| inner.start_read_tails(paths, len))
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.call("put", path, |inner| inner.put(path, body))
    }

    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        Ok(Box::new(WatchedUpload {
            inner: self.call("begin", path, |inner| inner.upload(path))?,
            storage: self.clone(),
            path: path.to_string(),
        }))
    }

    fn finish_all(&self, uploads: Vec<Box<dyn Upload>>) -> Result<()> {
        uploads.into_iter().try_for_each(Upload::finish)
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        self.call("delete", &names(paths), |inner| inner.delete(paths))
    }

    fn exclusive(&self) -> Option<&dyn PutNew> {
        Some(self)
    }
}

impl PutNew for Watching {
    fn put_new(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.call("put", path, |inner| inner.put_new(path, body))
    }
}

#[derive(Debug)]
struct WatchedUpload {
    inner: Box<dyn Upload>,
    storage: Watching,
    path: String,
}

impl Upload for WatchedUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.inner.write(bytes)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let (storage, path) = (self.storage.clone(), self.path.clone());
        storage.call("upload", &path, |_| self.inner.finish())
    }
}

/// A bucket with an array of two fragments.
struct Bucket {
    context: Context,
    watching: Watching,
    dense: bool,
}

fn columns(xs: std::ops::Range<i64>, dense: bool) -> ColumnSet {
    let mut columns = vec![ColumnBuffers::of_values("a", xs.clone().collect())];
    if !dense {
        columns.push(ColumnBuffers::of_values("x", xs.collect()));
    }
    ColumnSet::of(columns).unwrap()
}

impl Bucket {
    fn new(dense: bool) -> Self {
        let context = Context::new(Config::new().threads(2), None).unwrap();
        let inner = ObjectStorage::in_memory().cancelled_by(&context.cancel_handle());
        let watching = Watching {
            inner,
            watched: Arc::default(),
        };
        let root = Uri::parse("s3://bucket").unwrap();
        let context = context
            .with_storage_at(&root, Arc::new(watching.clone()))
            .unwrap();
        let schema = match dense {
            true => ArraySchema::dense(),
            false => ArraySchema::sparse().capacity(50),
        };
        let schema = schema
            .dimension("x", 0..=9_999i64, 50)
            .attribute("a", Datatype::Int64)
            .build()
            .unwrap();
        context.array(URI).create(schema).unwrap();
        let bucket = Self {
            context,
            watching,
            dense,
        };
        (0..2).for_each(|fragment| bucket.write(fragment).unwrap());
        bucket
    }

    /// Writes the cells of a fragment, in two halves.
    fn write(&self, fragment: i64) -> Result<()> {
        let (first, half) = (fragment * CELLS, CELLS / 2);
        let mut options = WriteOptions::new().layout(WriteLayout::Global);
        if self.dense {
            options = options.subarray(NdRectangle {
                ranges: vec![Range::of(first, first + CELLS - 1)],
            });
        }
        let mut writer = self.context.array(URI).writer(options)?;
        writer.write(&columns(first..first + half, self.dense))?;
        writer.write(&columns(first + half..first + CELLS, self.dense))?;
        writer.finish().map(drop)
    }

    fn open(&self) -> Result<Array> {
        self.context.array(URI).open()
    }

    /// How many of the cells are there: those of whole fragments.
    fn cells(&self) -> i64 {
        let array = self.open().unwrap();
        let cells = array.read(ReadOptions::new()).unwrap().read_all().unwrap();
        let values = cells.column("a").unwrap().values::<i64>().unwrap();
        let mut values: Vec<i64> = values.iter().copied().filter(|a| *a >= 0).collect();
        values.sort_unstable();
        assert!(values.iter().copied().eq(0..values.len() as i64));
        values.len() as i64
    }

    /// Names of the folders of fragments.
    fn folders(&self) -> Vec<String> {
        let place = Uri::parse(URI).unwrap().path().join("__fragments");
        let listed = self.watching.inner.list(&place).unwrap();
        listed.into_iter().map(|entry| entry.name).collect()
    }

    /// No errors, and nothing that nobody counts; fragments that were replaced are a note.
    fn is_clean(&self) -> bool {
        let report = self.context.array(URI).check(Default::default()).unwrap();
        report.worst() <= Some(Severity::Note)
    }
}

fn options() -> ReadOptions {
    // Some batches.
    ReadOptions::new().memory_budget(64 << 10)
}

/// Does `work` in new buckets, cancelled before each of its calls in turn by the handle that `by`
/// gives. `look` gets what came of it, and the calls behind the cancellation.
fn before_each_call<T>(
    dense: bool,
    by: impl Fn(&Bucket) -> CancelHandle,
    work: impl Fn(&Bucket) -> Result<T>,
    look: impl Fn(&Bucket, Result<T>, &[Call]),
) -> usize {
    for call in 0.. {
        let bucket = Bucket::new(dense);
        bucket.watching.arm(&by(&bucket), call);
        let outcome = work(&bucket);
        let (cancelled, behind) = bucket.watching.disarm();
        if !cancelled {
            assert!(outcome.is_ok(), "{:?}", outcome.err());
            return call;
        }
        look(&bucket, outcome, &behind);
    }
    0
}

fn whole_context(bucket: &Bucket) -> CancelHandle {
    bucket.context.cancel_handle()
}

/// It ended as cancelled, and behind that nothing was read.
fn ended_at_once<T>(bucket: &Bucket, outcome: Result<T>, behind: &[Call]) {
    assert!(
        matches!(outcome, Err(Error::Cancelled)),
        "{:?}, {behind:?}",
        outcome.err()
    );
    assert!(!behind.iter().any(|call| call.is_ok), "{behind:?}");
    assert_eq!(bucket.cells(), 2 * CELLS, "what begins later goes on");
}

fn read_all(array: &Array) -> Result<i64> {
    let mut cells = 0;
    for batch in array.read(options())? {
        cells += batch?.cell_num as i64;
    }
    Ok(cells)
}

fn stream_all(mut stream: ReadStream) -> Result<i64> {
    Pending::new(async move {
        let mut cells = 0;
        let mut batches = pin!(&mut stream);
        while let Some(batch) = poll_fn(|cx| batches.as_mut().poll_next(cx)).await {
            cells += batch?.cell_num as i64;
        }
        Ok(cells)
    })
    .wait()
}

#[test]
fn opening_ends_before_its_next_request() {
    for dense in [false, true] {
        let calls = before_each_call(dense, whole_context, Bucket::open, ended_at_once);
        assert!(calls >= 3, "{calls}");
        let polled = |bucket: &Bucket| {
            let context = bucket.context.clone();
            Pending::new(async move { context.array(URI).open_async().await }).wait()
        };
        let calls = before_each_call(dense, whole_context, polled, ended_at_once);
        assert!(calls >= 3, "{calls}");
    }
}

#[test]
fn reads_end_before_their_next_request() {
    for dense in [false, true] {
        let whole = |bucket: &Bucket| read_all(&bucket.open()?);
        let calls = before_each_call(dense, whole_context, whole, ended_at_once);
        let streamed = |bucket: &Bucket| stream_all(bucket.open()?.read_stream(options()));
        before_each_call(dense, whole_context, streamed, ended_at_once);
        let sum = |bucket: &Bucket| {
            let sum = [Aggregate::Sum("a".into())];
            bucket.open()?.aggregate(options(), &sum)
        };
        before_each_call(dense, whole_context, sum, ended_at_once);
        assert!(calls >= 6, "{calls}");
    }
}

/// One read, cancelled by its own handle; others of its array go on.
#[test]
fn a_read_that_is_cancelled_alone_ends_before_its_next_request() {
    for dense in [false, true] {
        for call in 0.. {
            let bucket = Bucket::new(dense);
            let array = bucket.open().unwrap();
            let (reader, other) = (array.read(options()), array.read(options()));
            let (mut reader, other) = (reader.unwrap(), other.unwrap());
            bucket.watching.arm(&reader.cancel_handle(), call);
            let outcome: Result<Vec<ColumnSet>> = reader.by_ref().collect();
            let (cancelled, behind) = bucket.watching.disarm();
            let others: usize = other.map(|batch| batch.unwrap().cell_num).sum();
            assert!(others as i64 >= 2 * CELLS);
            if !cancelled {
                assert!(outcome.is_ok() && call > 0);
                break;
            }
            ended_at_once(&bucket, outcome, &behind);
        }
    }
}

#[test]
fn what_else_is_cancelled_does_not_concern_it() {
    let another = |bucket: &Bucket| bucket.context.cancellable().cancel_handle();
    for dense in [false, true] {
        before_each_call(
            dense,
            another,
            |bucket| read_all(&bucket.open()?),
            |_, cells, _| assert!(cells.unwrap() >= 2 * CELLS),
        );
        before_each_call(
            dense,
            another,
            |bucket| bucket.write(2),
            |bucket, written, _| {
                written.unwrap();
                assert_eq!(bucket.cells(), 3 * CELLS);
            },
        );
        // The same array, by another handle of it.
        before_each_call(
            dense,
            |bucket| {
                bucket
                    .open()
                    .unwrap()
                    .cancellable()
                    .context()
                    .cancel_handle()
            },
            |bucket| read_all(&bucket.open()?),
            |_, cells, _| assert!(cells.unwrap() >= 2 * CELLS),
        );
    }
}

/// The commit is not interrupted: whoever cancels before its call finds the cells. Before that,
/// nothing is sent any more, and what was sent is removed.
#[test]
fn a_write_ends_before_its_next_request_and_leaves_nothing() {
    for dense in [false, true] {
        let look = |bucket: &Bucket, outcome: Result<()>, behind: &[Call]| {
            let commits = behind.iter().all(|call| call.on.contains("__commits"));
            match outcome {
                Ok(()) => assert!(commits && bucket.cells() == 3 * CELLS, "{behind:?}"),
                Err(Error::Cancelled) => {
                    let sent = |call: &&Call| call.is_ok && ["put", "upload"].contains(&call.what);
                    assert_eq!(behind.iter().find(sent).map(|call| &call.on), None);
                    assert!(
                        bucket.cells() == 2 * CELLS && bucket.is_clean(),
                        "{behind:?}"
                    );
                    assert_eq!(bucket.folders().len(), 2, "{behind:?}");
                }
                Err(error) => panic!("{error}"),
            }
            bucket.write(2).unwrap();
            assert_eq!(bucket.cells(), 3 * CELLS);
        };
        let calls = before_each_call(dense, whole_context, |bucket| bucket.write(2), look);
        assert!(calls >= 6, "{calls}");
    }
}

#[test]
fn a_consolidation_ends_before_its_next_read_of_cells_and_leaves_nothing() {
    for dense in [false, true] {
        let merge = |bucket: &Bucket| {
            let merged = bucket.context.array(URI).consolidate(&Default::default())?;
            assert_eq!(merged.len(), 1);
            Ok(())
        };
        let look = |bucket: &Bucket, outcome: Result<()>, behind: &[Call]| {
            assert_eq!(bucket.cells(), 2 * CELLS);
            let is_done = bucket.open().unwrap().fragments().len() == 1;
            match outcome {
                Ok(()) => assert!(is_done),
                // A round that was done by then stays done.
                Err(Error::Cancelled) if is_done => {}
                Err(Error::Cancelled) => {
                    // To begin an upload asks for nothing.
                    let of_fragment = |call: &&Call| {
                        let asks = !["begin", "delete"].contains(&call.what);
                        call.is_ok && asks && call.on.contains("__fragments")
                    };
                    let made = behind.iter().find(of_fragment);
                    assert!(made.is_none(), "{behind:?}");
                    assert_eq!(bucket.folders().len(), 2, "{behind:?}");
                }
                Err(error) => panic!("{error}: {behind:?}"),
            }
            assert!(bucket.is_clean(), "{behind:?}");
        };
        let calls = before_each_call(dense, whole_context, merge, look);
        assert!(calls >= 10, "{calls}");
    }
}

/// What is one object is there, or its error says that it is not.
#[test]
fn what_is_written_as_a_whole_is_there_or_not() {
    let put = |bucket: &Bucket| {
        let mut changes = bucket.open()?.change_metadata()?;
        changes.put("key", MetadataValue::new(Datatype::Int8, [1]))?;
        changes.commit()
    };
    let look = |bucket: &Bucket, outcome: Result<()>, behind: &[Call]| {
        let is_there = || {
            let array = bucket.open().unwrap();
            array.metadata().unwrap().get("key").is_some()
        };
        match outcome {
            Ok(()) => assert!(is_there(), "{behind:?}"),
            Err(Error::Cancelled) => assert!(!is_there(), "{behind:?}"),
            Err(error) => panic!("{error}: {behind:?}"),
        }
    };
    before_each_call(true, whole_context, put, look);
}

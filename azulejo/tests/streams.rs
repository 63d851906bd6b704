//! Streams of batches: the same cells as from a reader, by steps that an executor polls.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::format::schema::ArraySchema;
use azulejo::format::{Datatype, NdRectangle, Range};
use azulejo::read::{ReadOptions, ReadStream};
use azulejo::space::{DimSelection, Layout};
use azulejo::storage::{
    LocalStorage, MemoryStorage, Pending, PendingRead, PendingTails, ReadRequest, Request,
    RequestLogStorage, Storage, StorageLayer, StorePath,
};
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context, Error, Subarray};
use futures_core::Stream;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// An executor of one future: it sleeps until it is woken, and counts how often it was.
#[derive(Debug)]
struct Executor {
    thread: Thread,
    woken: AtomicUsize,
}

impl Wake for Executor {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl Executor {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            thread: thread::current(),
            woken: AtomicUsize::new(0),
        })
    }

    fn run<F: Future>(self: &Arc<Self>, future: F) -> F::Output {
        let mut future = pin!(future);
        let waker = Waker::from(Arc::clone(self));
        loop {
            let before = self.woken.load(Ordering::SeqCst);
            match future
                .as_mut()
                .poll(&mut std::task::Context::from_waker(&waker))
            {
                Poll::Ready(output) => return output,
                // What nobody wakes would sleep for ever: a test fails then.
                Poll::Pending => {
                    for _ in 0..1000 {
                        if self.woken.load(Ordering::SeqCst) > before {
                            break;
                        }
                        thread::park_timeout(Duration::from_millis(10));
                    }
                    let after = self.woken.load(Ordering::SeqCst);
                    assert!(after > before, "nobody woke the executor");
                }
            }
        }
    }
}

async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
}

async fn collect(mut stream: ReadStream) -> Result<Vec<ColumnSet>, Error> {
    let mut batches = Vec::new();
    while let Some(batch) = next(&mut stream).await {
        batches.push(batch?);
    }
    assert!(next(&mut stream).await.is_none(), "nothing follows the end");
    Ok(batches)
}

/// Memory whose answers come from another thread, after a while.
#[derive(Debug, Default)]
struct Distant {
    inner: Arc<MemoryStorage>,
    /// Whether answers are late, and blocking reads an error.
    is_distant: Arc<AtomicBool>,
    /// Milliseconds until an answer.
    delay: Arc<AtomicUsize>,
    /// Reads whose answers nobody wanted any more.
    dropped: Arc<AtomicUsize>,
}

impl Distant {
    fn answer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&MemoryStorage) -> azulejo::Result<T> + Send + 'static,
    ) -> Pending<T> {
        let (answer, pending) = Pending::channel();
        let (inner, dropped) = (Arc::clone(&self.inner), Arc::clone(&self.dropped));
        let delay = self.delay.load(Ordering::SeqCst) as u64;
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(delay));
            if answer.is_wanted() {
                answer.send(work(&inner));
            } else {
                dropped.fetch_add(1, Ordering::SeqCst);
            }
        });
        pending
    }
}

impl StorageLayer for Distant {
    fn inner(&self) -> &dyn Storage {
        &*self.inner
    }

    fn read(&self, requests: &[ReadRequest]) -> azulejo::Result<Vec<bytes::Bytes>> {
        assert!(
            !self.is_distant.load(Ordering::SeqCst),
            "a stream does not block"
        );
        self.inner.read(requests)
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        self.answer(move |inner| inner.read(&requests))
    }

    fn start_read_tails(&self, paths: Vec<StorePath>, len: u64) -> PendingTails {
        self.answer(move |inner| inner.read_tails(&paths, len))
    }
}

/// An array of three fragments that overlap, with a string attribute and nulls.
fn write(context: &Context, uri: &str, dense: bool) -> Array {
    let schema = match dense {
        true => ArraySchema::dense(),
        false => ArraySchema::sparse().capacity(100),
    };
    let schema = schema
        .dimension("x", 0..=9_999i64, 500)
        .attribute("a", Datatype::Int32)
        .var_attribute("s", Datatype::StringUtf8)
        .build()
        .unwrap();
    context.array(uri).create(schema).unwrap();
    for fragment in 0..3i64 {
        let xs: Vec<i64> = match dense {
            true => (fragment * 2000..fragment * 2000 + 4000).collect(),
            false => (0..3000).map(|i| 3 * i + fragment * (i % 2)).collect(),
        };
        let mut columns = vec![
            ColumnBuffers::of_values("a", xs.iter().map(|x| (x * 7 + fragment) as i32).collect()),
            ColumnBuffers::of_strings("s", xs.iter().map(|x| format!("{fragment}:{x}"))),
        ];
        let mut options = WriteOptions::new();
        if dense {
            options = options.subarray(NdRectangle {
                ranges: vec![Range::of(xs[0], xs[xs.len() - 1])],
            });
        } else {
            columns.push(ColumnBuffers::of_values("x", xs));
        }
        let mut writer = context.array(uri).writer(options).unwrap();
        writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
        writer.finish().unwrap();
    }
    context.array(uri).open().unwrap()
}

/// Reads of all kinds.
fn reads(dense: bool) -> Vec<ReadOptions> {
    let within = |first: i64, last: i64| {
        let range = DimSelection::Ranges(vec![Range::of(first, last)]);
        ReadOptions::new().subarray(Subarray::Box(vec![range]))
    };
    let few = Condition::compare("a", Comparison::Lt, 9_000i32.to_le_bytes());
    let layouts = [
        Layout::RowMajor,
        Layout::ColMajor,
        Layout::Global,
        Layout::Unordered,
    ];
    let mut reads: Vec<ReadOptions> = layouts
        .into_iter()
        .map(|layout| within(100, 7_777).fields(["x", "a", "s"]).layout(layout))
        .collect();
    reads.push(ReadOptions::new());
    reads.push(ReadOptions::new().limit(1_234));
    reads.push(within(3_000, 3_000));
    reads.push(within(0, 9_999).condition(few.clone()).fields(["s"]));
    reads.push(
        within(0, 9_999)
            .condition(few)
            .fields(["x", "a"])
            .matching_only(),
    );
    if !dense {
        reads.push(within(500, 600).fields(["x", "__timestamps"]));
    }
    reads
}

#[test]
fn a_stream_gives_the_batches_of_a_reader() {
    let executor = Executor::new();
    let mut several = 0;
    let dir = tempfile::tempdir().unwrap();
    for (dense, batched) in [(false, false), (false, true), (true, false), (true, true)] {
        let config = Config::new().batched_reads(batched).threads(2);
        let context = Context::new(config, None).unwrap();
        let local = dir.path().join(format!("{dense}-{batched}"));
        let memory = format!("mem://{dense}-{batched}");
        for uri in [local.to_str().unwrap(), &memory] {
            let array = write(&context, uri, dense);
            for options in reads(dense) {
                for budget in [1 << 30, 400_000] {
                    let options = options.clone().memory_budget(budget);
                    let reader = array.read(options.clone()).unwrap();
                    let expected: Vec<ColumnSet> = reader.map(Result::unwrap).collect();
                    let found = executor
                        .run(collect(array.read_stream(options.clone())))
                        .unwrap();
                    assert!(found == expected, "{uri} {options:?}");
                    several += usize::from(found.len() > 1);
                }
            }
        }
    }
    assert!(several > 20, "batches within small budgets: {several}");
}

/// An array in memory that is far away from now on; how far, and how many of its answers nobody
/// wanted.
fn distant(dense: bool) -> (Array, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let storage = Distant::default();
    let delay = Arc::clone(&storage.delay);
    delay.store(2, Ordering::SeqCst);
    let (is_distant, dropped) = (
        Arc::clone(&storage.is_distant),
        Arc::clone(&storage.dropped),
    );
    let local = Arc::new(LocalStorage::new());
    let config = Config::new().threads(2);
    let context = Context::with_storages(config, None, local, Arc::new(storage)).unwrap();
    let array = write(&context, "mem://array", dense);
    is_distant.store(true, Ordering::SeqCst);
    (array, delay, dropped)
}

#[test]
fn a_stream_asks_for_what_a_reader_asks_for() {
    let executor = Executor::new();
    for dense in [false, true] {
        let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let context = |storage| {
            let local = Arc::new(LocalStorage::new());
            Context::with_storages(Config::default(), None, local, storage).unwrap()
        };
        write(&context(Arc::clone(&memory)), "mem://array", dense);
        for options in reads(dense) {
            let options = options.memory_budget(400_000);
            // What is read of which files, opened anew, as metadata stays.
            let requests = |read: &dyn Fn(&Array)| {
                let logged = RequestLogStorage::new(Arc::clone(&memory));
                let log = logged.log();
                let array = context(Arc::new(logged))
                    .array("mem://array")
                    .open()
                    .unwrap();
                let _ = log.take();
                read(&array);
                let ranges = log.take().into_iter().map(|request| match request {
                    Request::Read { path, range, .. } => format!("{path} {range:?}"),
                    other => format!("{other:?}"),
                });
                let mut ranges: Vec<String> = ranges.collect();
                ranges.sort();
                ranges
            };
            let reader = requests(&|array| {
                let read = array.read(options.clone()).unwrap();
                read.map(Result::unwrap).for_each(drop);
            });
            let stream = requests(&|array| {
                executor
                    .run(collect(array.read_stream(options.clone())))
                    .unwrap();
            });
            assert!(!reader.is_empty());
            assert_eq!(stream, reader, "{options:?}");
        }
    }
}

#[test]
fn a_stream_waits_without_blocking() {
    for dense in [false, true] {
        for options in reads(dense) {
            let (array, delay, _) = distant(dense);
            // Long enough that no machine is so busy that all is there before it is asked for.
            delay.store(50, Ordering::SeqCst);
            let executor = Executor::new();
            let batches = executor
                .run(collect(array.read_stream(options.clone())))
                .unwrap();
            let cells: usize = batches.iter().map(|batch| batch.cell_num).sum();
            assert!(cells > 0, "{options:?}");
            let woken = executor.woken.load(Ordering::SeqCst);
            assert!(woken > 0, "{options:?}");
        }
    }
}

#[test]
fn a_stream_that_is_dropped_wants_nothing_any_more() {
    let (array, delay, dropped) = distant(false);
    let options = ReadOptions::new().memory_budget(400_000);
    let mut stream = array.read_stream(options);
    let executor = Executor::new();
    executor.run(next(&mut stream)).unwrap().unwrap();
    // What is asked for from now on is under way for long.
    delay.store(500, Ordering::SeqCst);
    let waker = Waker::from(executor);
    let polled = Pin::new(&mut stream).poll_next(&mut std::task::Context::from_waker(&waker));
    drop((polled, stream));
    for _ in 0..1000 {
        if dropped.load(Ordering::SeqCst) > 0 {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("reads went on for nobody");
}

#[test]
fn errors_end_a_stream() {
    let (array, ..) = distant(false);
    let executor = Executor::new();
    let mut stream = array.read_stream(ReadOptions::new().fields(["nothing"]));
    let error = executor.run(next(&mut stream)).unwrap().unwrap_err();
    assert!(matches!(error, Error::SchemaMismatch(_)), "{error}");
    assert!(executor.run(next(&mut stream)).is_none());
}

#[test]
fn streams_go_to_other_threads() {
    fn is_send<T: Send>(_: &T) {}
    let (array, ..) = distant(true);
    let stream = array.read_stream(ReadOptions::new());
    is_send(&stream);
    let batches = thread::spawn(|| Executor::new().run(collect(stream)).unwrap());
    assert!(!batches.join().unwrap().is_empty());
}

#[cfg(feature = "arrow")]
#[test]
fn a_stream_gives_record_batches() {
    use azulejo::arrow::ArrowOptions;
    let (array, ..) = distant(false);
    let options = ReadOptions::new().memory_budget(400_000);
    let mut batches = array
        .read_stream(options)
        .record_batches(ArrowOptions::default());
    let executor = Executor::new();
    let (mut rows, mut schema) = (0, None);
    while let Some(batch) = executor.run(next(&mut batches)) {
        let batch = batch.unwrap();
        assert_eq!(*schema.get_or_insert(batch.schema()), batch.schema());
        rows += batch.num_rows();
    }
    // The odd cells of three fragments differ, the even ones are the same.
    assert_eq!(rows, 1500 + 3 * 1500);
}

#[cfg(feature = "arrow")]
#[test]
fn nothing_follows_what_is_no_record_batch() {
    use azulejo::arrow::ArrowOptions;
    let context = Context::new(Config::default(), None).unwrap();
    let schema = ArraySchema::sparse()
        .capacity(100)
        .dimension("x", 0..=9_999i64, 500)
        .var_attribute("s", Datatype::StringUtf8);
    let uri = "mem://torn";
    context.array(uri).create(schema.build().unwrap()).unwrap();
    let text = |x: i64| match x {
        7 => vec![0xff],
        x => format!("{x:0>200}").into_bytes(),
    };
    let cells = ColumnSet::of([
        ColumnBuffers::of_strings("s", (0..5000).map(text)),
        ColumnBuffers::of_values("x", (0..5000).collect::<Vec<i64>>()),
    ]);
    let mut writer = context.array(uri).writer(WriteOptions::new()).unwrap();
    writer.write(&cells.unwrap()).unwrap();
    writer.finish().unwrap();
    let array = context.array(uri).open().unwrap();
    let options = || ReadOptions::new().memory_budget(400_000);
    assert!(array.read(options()).unwrap().count() > 2);

    let reader = array.read(options()).unwrap();
    let mut batches = reader.record_batches(ArrowOptions::default()).unwrap();
    assert!(batches.next().unwrap().is_err());
    assert!(batches.next().is_none());

    let stream = array.read_stream(options());
    let mut batches = stream.record_batches(ArrowOptions::default());
    let executor = Executor::new();
    assert!(executor.run(next(&mut batches)).unwrap().is_err());
    assert!(executor.run(next(&mut batches)).is_none());
}

#[test]
fn a_stream_that_finds_nothing_has_columns() {
    let (array, ..) = distant(false);
    let executor = Executor::new();
    let nothing = Condition::compare("a", Comparison::Lt, (-1i32).to_le_bytes());
    let options = ReadOptions::new().condition(nothing).fields(["x", "s"]);
    let mut stream = array.read_stream(options.clone());
    assert!(stream.empty().is_none());
    assert!(executor.run(next(&mut stream)).is_none());
    let empty = stream.empty().unwrap();
    assert_eq!(empty.cell_num, 0);
    let columns = empty.columns.iter();
    let names: Vec<&str> = columns.map(|c| &*c.column_type.name).collect();
    assert_eq!(names, ["x", "s"]);
    #[cfg(feature = "arrow")]
    {
        let stream = array.read_stream(options);
        let mut batches = stream.record_batches(azulejo::arrow::ArrowOptions::default());
        assert!(batches.schema().unwrap().is_none());
        assert!(executor.run(next(&mut batches)).is_none());
        let schema = batches.schema().unwrap().unwrap();
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        assert_eq!(names, ["x", "s"]);
    }
}

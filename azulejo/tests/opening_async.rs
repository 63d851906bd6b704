//! Opening for an executor: the array and the requests are those of a thread that waits.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::consolidate::FragmentOptions;
use azulejo::format::{ArraySchema, Datatype};
use azulejo::storage::{
    LocalStorage, MemoryStorage, Pending, Request, RequestLogStorage, Storage, Uri,
};
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context, Error, TimeRange};
use std::sync::Arc;

fn context(storage: Arc<dyn Storage>) -> Context {
    let config = Config::new().threads(1);
    Context::with_storages(config, None, Arc::clone(&storage), storage).unwrap()
}

fn write(context: &Context, uri: &str, x: i64) {
    let options = WriteOptions::new().timestamp(x.unsigned_abs() + 10);
    let mut writer = context.array(uri).writer(options).unwrap();
    let columns = [
        ColumnBuffers::of_values("x", vec![x]),
        ColumnBuffers::of_values("a", vec![7i32]),
    ];
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    writer.finish().unwrap();
}

/// What was asked for: kinds and paths. Lengths of prefetches are logged as asked, those of reads
/// as they came.
fn asked(requests: &[Request]) -> Vec<String> {
    let text = |request: &Request| match request {
        Request::Read { path, range, .. } => format!("read {path} {range:?}"),
        other => format!("{other:?}"),
    };
    let mut asked: Vec<String> = requests.iter().map(text).collect();
    asked.sort();
    asked
}

fn names(array: &Array) -> Vec<String> {
    let fragments = array.fragments().iter();
    fragments.map(|f| f.name().to_owned()).collect()
}

/// Runs on another thread than it is made on, as executors do.
fn opened(context: &Context, uri: &str, time: TimeRange) -> Result<Array, Error> {
    let handle = context.array(uri);
    let opening = Pending::new(async move { handle.open_at_async(time).await });
    std::thread::spawn(move || opening.wait()).join().unwrap()
}

fn check(inner: Arc<dyn Storage>, uri: &str) {
    let logged = RequestLogStorage::new(inner);
    let log = logged.log();
    let context = context(Arc::new(logged));
    let new = ArraySchema::sparse()
        .dimension("x", 0i64..=999, 10)
        .attribute("a", Datatype::Int32);
    let missing = opened(&context, uri, TimeRange::ALL);
    assert!(
        matches!(missing, Err(Error::NotFound { .. })),
        "{missing:?}"
    );
    context
        .array(uri)
        .create_at(new.build().unwrap(), 1)
        .unwrap();
    let compare = || {
        for time in [TimeRange::ALL, TimeRange::until(14)] {
            let _ = log.take();
            let waited = context.array(uri).open_at(time).unwrap();
            let by_thread = asked(&log.take());
            let polled = opened(&context, uri, time).unwrap();
            assert_eq!(asked(&log.take()), by_thread);
            assert_eq!(names(&polled), names(&waited));
            assert_eq!(polled.schema(), waited.schema());
        }
    };
    compare();
    (0..3).for_each(|x| write(&context, uri, x));
    compare();
    (3..100).for_each(|x| write(&context, uri, x));
    compare();
    let array = context.array(uri);
    array.consolidate_commits().unwrap();
    array.consolidate_fragment_metadata().unwrap();
    compare();
    array.consolidate(&FragmentOptions::default()).unwrap();
    compare();
}

#[test]
fn the_requests_are_the_same() {
    check(Arc::new(MemoryStorage::new()), "mem://array");
    let folder = tempfile::tempdir().unwrap();
    let uri = Uri::parse(folder.path().to_str().unwrap()).unwrap();
    check(
        Arc::new(LocalStorage::new()),
        &uri.path().join("array").to_string(),
    );
}

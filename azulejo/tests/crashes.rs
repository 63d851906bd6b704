//! Writes that stop in the middle: at every storage operation, by a crash or by one that fails.
//! Afterwards the array reads as before or as after, never otherwise.

mod support;

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::ArraySchema;
use azulejo::format::datatype::Datatype;
use azulejo::read::ReadOptions;
use azulejo::storage::{LocalStorage, MemoryStorage, Storage, StorePath};
use azulejo::write::WriteOptions;
use azulejo::{Config, Context};
use std::sync::Arc;
use support::failing::{FailingStorage, Failure};

const URI: &str = "mem://array";

fn context(memory: Arc<dyn Storage>) -> Context {
    Context::with_storages(
        Config::default(),
        None,
        Arc::new(LocalStorage::new()),
        memory,
    )
    .expect("a context")
}

fn cells(from: i64, count: i64, dense: bool) -> ColumnSet {
    let mut columns = vec![
        ColumnBuffers::of_values(
            "a",
            (from..from + count).map(|i| i as f64).collect::<Vec<_>>(),
        ),
        ColumnBuffers::of_values(
            "b",
            (from..from + count).map(|i| i as i32).collect::<Vec<_>>(),
        ),
    ];
    if !dense {
        // Other cells of other writes, and some of the same.
        columns.push(ColumnBuffers::of_values(
            "x",
            (from..from + count).map(|i| i % 100).collect::<Vec<i64>>(),
        ));
    }
    ColumnSet::of(columns).expect("columns of one length")
}

fn schema(dense: bool) -> ArraySchema {
    let builder = if dense {
        ArraySchema::dense()
    } else {
        ArraySchema::sparse()
    };
    let builder = builder.dimension("x", 0i64..=99, 10);
    builder
        .attribute("a", Datatype::Float64)
        .attribute("b", Datatype::Int32)
        .build()
        .expect("a schema")
        .schema
}

fn write(context: &Context, columns: &ColumnSet) -> azulejo::Result<()> {
    let mut writer = context.array(URI).writer(WriteOptions::new())?;
    writer.write(columns)?;
    writer.finish()?;
    Ok(())
}

fn read(memory: &Arc<MemoryStorage>) -> ColumnSet {
    let array = context(Arc::clone(memory) as Arc<dyn Storage>)
        .array(URI)
        .open()
        .expect("it opens");
    array
        .read(ReadOptions::new())
        .and_then(azulejo::Reader::read_all)
        .expect("it reads")
}

/// An array with one fragment.
fn array(dense: bool) -> Arc<MemoryStorage> {
    let memory = Arc::new(MemoryStorage::new());
    let context = context(Arc::clone(&memory) as Arc<dyn Storage>);
    context
        .array(URI)
        .create(schema(dense))
        .expect("it is made");
    write(&context, &cells(0, 100, dense)).expect("it is written");
    memory
}

fn fragment_folders(memory: &MemoryStorage) -> usize {
    memory
        .list(&StorePath::memory("array/__fragments"))
        .expect("a folder")
        .len()
}

fn stopped_everywhere(dense: bool, failure: Failure) {
    let before = read(&array(dense));
    let new = if dense {
        cells(1000, 100, dense)
    } else {
        cells(1020, 50, dense)
    };
    let mut stops = 0;
    for after in 0.. {
        let memory = array(dense);
        let storage = FailingStorage::new(Arc::clone(&memory) as Arc<dyn Storage>, after, failure);
        let result = write(&context(Arc::new(storage.clone())), &new);
        let found = read(&memory);
        if !storage.has_failed() {
            result.expect("nothing failed");
            assert!(found != before);
            break;
        }
        stops += 1;
        assert!(
            result.is_err(),
            "stopped at operation {after}, yet the write says it is done"
        );
        assert!(
            found == before,
            "stopped at operation {after}, and the array has changed"
        );
        if failure == Failure::Once {
            assert_eq!(
                fragment_folders(&memory),
                1,
                "operation {after} left something"
            );
        }
        // What is left is in nobody's way.
        write(&context(Arc::clone(&memory) as Arc<dyn Storage>), &new)
            .expect("the next write works");
        assert!(read(&memory) != before);
    }
    assert!(stops > 8, "only {stops} operations");
}

#[test]
fn a_sparse_write_that_crashes_leaves_the_array_as_it_was() {
    stopped_everywhere(false, Failure::Crash);
}

#[test]
fn a_dense_write_that_crashes_leaves_the_array_as_it_was() {
    stopped_everywhere(true, Failure::Crash);
}

#[test]
fn a_write_that_fails_takes_its_files_with_it() {
    stopped_everywhere(false, Failure::Once);
    stopped_everywhere(true, Failure::Once);
}

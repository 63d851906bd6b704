//! Snapshots: what an array is, short of its fragments, which are looked at when they are asked
//! for.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "support/pack.rs"]
mod pack;

use azulejo::array::{Snapshot, TimeRange};
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::CellValNum;
use azulejo::format::Datatype;
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{ArraySchema, Attribute, SchemaEvolution};
use azulejo::read::ReadOptions;
use azulejo::storage::{MemoryStorage, Request, RequestLog, RequestLogStorage, Storage, StorePath};
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context, Error};
use std::sync::Arc;

fn logged(memory: Arc<MemoryStorage>) -> (Context, RequestLog) {
    let storage = RequestLogStorage::new(memory as Arc<dyn Storage>);
    let log = storage.log();
    (
        pack::context(Config::default(), None, Arc::new(storage)),
        log,
    )
}

/// Metadata files of fragments that were read, one by one.
fn footers(log: &RequestLog) -> usize {
    let is_footer = |request: &Request| matches!(request, Request::Read { path, .. } if path.to_string().ends_with("__fragment_metadata.tdb"));
    log.requests().into_iter().filter(is_footer).count()
}

fn write(context: &Context, uri: &str, time: u64, cells: &[i64]) {
    let mut writer = context
        .array(uri)
        .writer(WriteOptions::new().timestamp(time))
        .unwrap();
    let values = ColumnBuffers::of_values("a", cells.iter().map(|x| x * 10).collect::<Vec<_>>());
    writer
        .write(&ColumnSet::of([ColumnBuffers::of_values("x", cells.to_vec()), values]).unwrap())
        .unwrap();
    writer.finish().unwrap();
}

/// An array of so many fragments that they are not read beside the schema, each with one cell.
fn many(context: &Context, uri: &str) {
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=999, 10)
        .attribute("a", Datatype::Int64);
    context
        .array(uri)
        .create_at(schema.build().unwrap(), 1)
        .unwrap();
    context
        .array(uri)
        .change_metadata()
        .unwrap()
        .put("unit", MetadataValue::new(Datatype::StringUtf8, "mm"))
        .unwrap()
        .commit()
        .unwrap();
    (0..20).for_each(|i| write(context, uri, 2 + i, &[i64::try_from(i).unwrap()]));
}

/// A snapshot of [`many`] fragments, and what it took.
fn opened() -> (Snapshot, RequestLog) {
    let (context, log) = logged(Arc::new(MemoryStorage::new()));
    many(&context, "mem://many");
    let _ = log.take();
    (context.array("mem://many").snapshot().unwrap(), log)
}

fn cells(array: &Array) -> Vec<i64> {
    let all = array
        .read(ReadOptions::new().fields(["a"]))
        .unwrap()
        .read_all()
        .unwrap();
    all.column("a").unwrap().values::<i64>().unwrap().to_vec()
}

#[test]
fn schemas_and_metadata_take_no_fragment() {
    let (snapshot, log) = opened();
    assert_eq!(snapshot.schema().domain.ndim(), 1);
    assert_eq!(snapshot.metadata().unwrap()["unit"].as_text(), Some("mm"));
    assert_eq!(footers(&log), 0);
    let array = snapshot.array().unwrap();
    assert_eq!((array.fragments().len(), footers(&log)), (20, 20));
    assert_eq!(array.schema(), snapshot.schema());
    // They are read once, whoever asks.
    let again = snapshot.clone().array().unwrap();
    assert_eq!((again.fragments().len(), footers(&log)), (20, 20));
    assert_eq!(cells(&again), (0..20).map(|x| x * 10).collect::<Vec<_>>());
}

#[test]
fn consolidated_metadata_of_fragments_counts_later_too() {
    let files = pack::files();
    let name = "made/feat/2.30.0/consolidate_vacuum";
    let (context, log) = logged(pack::memory(&files, &format!("{name}/")));
    let snapshot = context.array(&format!("mem://{name}")).snapshot().unwrap();
    // Of the fragment that is newer, beside the schema.
    assert_eq!(footers(&log), 1);
    let consolidated = |f: &azulejo::array::Fragment| f.has_consolidated_footer();
    let array = snapshot.array().unwrap();
    assert_eq!(
        array
            .fragments()
            .iter()
            .map(consolidated)
            .collect::<Vec<_>>(),
        [true, true, true, false]
    );
    assert_eq!(footers(&log), 1);
}

#[test]
fn threads_that_ask_at_once_read_footers_once() {
    let (snapshot, log) = opened();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(snapshot.array().unwrap().fragments().len(), 20));
        }
    });
    assert_eq!(footers(&log), 20);
}

#[test]
fn what_was_written_since_does_not_count() {
    let context = pack::context(Config::default(), None, Arc::new(MemoryStorage::new()));
    many(&context, "mem://many");
    let snapshot = context.array("mem://many").snapshot().unwrap();
    // At a time that the snapshot looks at, but not there when it was made.
    write(&context, "mem://many", 30, &[500]);
    assert_eq!(cells(&snapshot.array().unwrap()).len(), 20);
    assert_eq!(
        cells(&context.array("mem://many").open().unwrap()).len(),
        21
    );
}

#[test]
fn what_a_vacuum_took_meanwhile_is_found_in_what_replaced_it() {
    let context = pack::context(Config::default(), None, Arc::new(MemoryStorage::new()));
    many(&context, "mem://many");
    let (all, early) = (TimeRange::ALL, TimeRange::until(11));
    let open = |time| context.array("mem://many").snapshot_at(time).unwrap();
    let (now, then) = (open(all), open(early));
    context
        .array("mem://many")
        .consolidate(&FragmentOptions::default())
        .unwrap();
    context
        .array("mem://many")
        .vacuum(Mode::Fragments, VacuumOptions::default())
        .unwrap();
    let array = now.array().unwrap();
    assert_eq!(array.fragments().len(), 1);
    assert_eq!(cells(&array), (0..20).map(|x| x * 10).collect::<Vec<_>>());
    assert_eq!(
        cells(&then.array().unwrap()),
        (0..10).map(|x| x * 10).collect::<Vec<_>>()
    );
}

#[test]
fn to_write_the_latest_schema_counts_whatever_its_time() {
    let context = pack::context(Config::default(), None, Arc::new(MemoryStorage::new()));
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=999, 10)
        .attribute("a", Datatype::Int64);
    context
        .array("mem://many")
        .create(schema.build().unwrap())
        .unwrap();
    let ahead = azulejo::clock::now() + 86_400_000;
    let attribute = Attribute::new("b", Datatype::Int8, CellValNum::ONE);
    let evolution = SchemaEvolution {
        add_attributes: vec![attribute],
        ..SchemaEvolution::default()
    };
    context
        .array("mem://many")
        .evolve(&evolution, Some(ahead))
        .unwrap();
    let attributes = |snapshot: Snapshot| snapshot.schema().attributes.len();
    assert_eq!(
        attributes(context.array("mem://many").snapshot_to_write().unwrap()),
        2
    );
    assert_eq!(
        attributes(context.array("mem://many").snapshot().unwrap()),
        1
    );
}

#[test]
fn an_array_that_took_the_place_of_another_is_not_taken_for_it() {
    let context = pack::context(Config::default(), None, Arc::new(MemoryStorage::new()));
    many(&context, "mem://many");
    let snapshot = context.array("mem://many").snapshot().unwrap();
    context.object("mem://many").delete(true).unwrap();
    many(&context, "mem://many");
    assert!(matches!(snapshot.array(), Err(Error::NotFound { .. })));
    assert_eq!(
        context
            .array("mem://many")
            .open()
            .unwrap()
            .fragments()
            .len(),
        20
    );
}

#[test]
fn a_damaged_footer_is_an_error_of_the_fragments_alone() {
    let memory = Arc::new(MemoryStorage::new());
    let context = pack::context(
        Config::default(),
        None,
        Arc::clone(&memory) as Arc<dyn Storage>,
    );
    many(&context, "mem://many");
    let path = context.array("mem://many").open().unwrap().fragments()[7].metadata_path();
    memory.put(&path, vec![0xff; 100].into()).unwrap();
    let snapshot = context.array("mem://many").snapshot().unwrap();
    assert_eq!(snapshot.metadata().unwrap()["unit"].as_text(), Some("mm"));
    // It is no other at the second time.
    for _ in 0..2 {
        let error = snapshot.array().unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains(path.name()), "{error}");
    }
    let gone: Vec<StorePath> = vec![path];
    memory.delete(&gone).unwrap();
    for _ in 0..2 {
        assert!(matches!(snapshot.array(), Err(Error::NotFound { .. })));
    }
}

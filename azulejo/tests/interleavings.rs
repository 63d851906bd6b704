//! Two operations on one array at once: the first stands still before each of its storage calls in
//! turn, while the second runs from start to end.
//!
//! What comes out is what one after the other gives, in one of the two orders; or one of the two
//! says that it was too late, and only the other has happened.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

mod support;

use azulejo::array::FragmentSelection;
use azulejo::check::{CheckOptions, Severity};
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{Attribute, NewArray, SchemaEvolution};
use azulejo::format::{ArraySchema, CellValNum, Datatype};
use azulejo::read::ReadOptions;
use azulejo::storage::{LocalStorage, MemoryStorage, ReadRange, ReadRequest, Storage, StorePath};
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, Error, Result, TimeRange};
use std::collections::BTreeSet;
use std::sync::Arc;
use support::stepped::{Gate, Role, SteppedStorage};

const URI: &str = "mem://array";
const MOVED: &str = "mem://moved";

fn context(memory: Arc<dyn Storage>) -> Context {
    let config = Config::new().threads(1);
    Context::with_storages(config, None, Arc::new(LocalStorage::new()), memory).unwrap()
}

fn write(context: &Context, x: i64, time: Option<u64>) -> Result<()> {
    let mut options = WriteOptions::new();
    if let Some(time) = time {
        options = options.timestamp(time);
    }
    let mut writer = context.array(URI).writer(options)?;
    let columns = [
        ColumnBuffers::of_values("x", vec![x]),
        ColumnBuffers::of_values("a", vec![7i32]),
    ];
    writer.write(&ColumnSet::of(columns).unwrap())?;
    writer.finish().map(drop)
}

fn put(context: &Context, key: &str, time: Option<u64>) -> Result<()> {
    let mut writer = context.array(URI).change_metadata()?;
    if let Some(time) = time {
        writer = writer.at(time);
    }
    writer.put(key, MetadataValue::new(Datatype::Int8, [1]))?;
    writer.commit()
}

fn evolve(context: &Context, attribute: &str) -> Result<()> {
    let evolution = SchemaEvolution {
        add_attributes: vec![Attribute::new(attribute, Datatype::UInt8, CellValNum::ONE)],
        ..SchemaEvolution::default()
    };
    context.array(URI).evolve(&evolution, None)
}

fn vacuum(context: &Context, mode: Mode) -> Result<()> {
    let options = VacuumOptions::default();
    context.array(URI).vacuum(mode, options).map(drop)
}

fn delete_within(context: &Context, start: u64, end: u64) -> Result<()> {
    let within = FragmentSelection::Within(TimeRange { start, end });
    context.array(URI).delete_fragments(within).map(drop)
}

type Operation = (&'static str, fn(&Context) -> Result<()>);

const OPERATIONS: &[Operation] = &[
    ("append", |context| write(context, 50, None)),
    ("write at 15", |context| write(context, 1, Some(15))),
    ("delete cells", |context| {
        let condition = Condition::compare("x", Comparison::Lt, 2i64.to_le_bytes());
        context.array(URI).delete_cells(&condition, None).map(drop)
    }),
    ("delete fragments 0 to 15", |context| {
        delete_within(context, 0, 15)
    }),
    ("delete fragments 15 to 35", |context| {
        delete_within(context, 15, 35)
    }),
    ("evolve b", |context| evolve(context, "b")),
    ("evolve c", |context| evolve(context, "c")),
    ("metadata", |context| put(context, "new", None)),
    ("consolidate fragments", |context| {
        let options = FragmentOptions::default();
        context.array(URI).consolidate(&options).map(drop)
    }),
    ("consolidate commits", |context| {
        context.array(URI).consolidate_commits().map(drop)
    }),
    ("consolidate footers", |context| {
        context.array(URI).consolidate_fragment_metadata().map(drop)
    }),
    ("consolidate metadata", |context| {
        context
            .array(URI)
            .consolidate_metadata(TimeRange::ALL)
            .map(drop)
    }),
    ("vacuum fragments", |context| {
        vacuum(context, Mode::Fragments)
    }),
    ("vacuum commits", |context| vacuum(context, Mode::Commits)),
    ("vacuum footers", |context| {
        vacuum(context, Mode::FragmentMetadata)
    }),
    ("vacuum metadata", |context| {
        vacuum(context, Mode::ArrayMetadata)
    }),
    ("move", |context| context.object(URI).rename_to(MOVED)),
    ("delete array", |context| {
        context.object(URI).delete(false).map(drop)
    }),
];

/// What an array was like before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Plain,
    /// Fragments were merged, not vacuumed; one came afterwards.
    Merged,
    /// All commits are in one file, whose twins are there.
    OneCommit,
}

fn new_array(duplicates: bool) -> NewArray {
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=99, 10)
        .attribute("a", Datatype::Int32)
        .allows_duplicates(duplicates);
    schema.build().unwrap()
}

fn prepare(before: Before, duplicates: bool) -> MemoryStorage {
    let memory = MemoryStorage::new();
    let storage = Arc::new(memory);
    let context = context(Arc::clone(&storage) as Arc<dyn Storage>);
    let array = context.array(URI);
    array.create_at(new_array(duplicates), 1).unwrap();
    for (x, time) in [(1, 10), (2, 20), (3, 30)] {
        write(&context, x, Some(time)).unwrap();
        put(&context, &format!("k{x}"), Some(time)).unwrap();
    }
    match before {
        Before::Plain => {}
        Before::Merged => {
            array.consolidate(&FragmentOptions::default()).unwrap();
            array.consolidate_metadata(TimeRange::ALL).unwrap();
            write(&context, 4, Some(40)).unwrap();
        }
        Before::OneCommit => {
            array.consolidate_commits().unwrap();
            array.consolidate_fragment_metadata().unwrap();
        }
    }
    drop(context);
    copy_of(&*storage)
}

fn copy_of(storage: &dyn Storage) -> MemoryStorage {
    let copy = MemoryStorage::new();
    for (folder, entries) in storage.list_tree(&StorePath::memory("")).unwrap() {
        for entry in entries.iter().filter(|entry| !entry.is_dir) {
            let path = StorePath::memory(&folder).join(&entry.name);
            let request = ReadRequest {
                path: path.clone(),
                range: ReadRange::All,
            };
            let body = storage.read(&[request]).unwrap().remove(0);
            Storage::put(&copy, &path, body).unwrap();
        }
    }
    copy
}

/// What a user sees: cells at some times, schemas, keys; of what lies where the array was moved to
/// as well. Errors that a check finds are seen too.
fn look(context: &Context) -> Vec<String> {
    let mut seen = Vec::new();
    for uri in [URI, MOVED] {
        let array = context.array(uri);
        let now = match array.open() {
            Ok(now) => now,
            Err(Error::NotFound { .. }) => {
                seen.push(format!("{uri}: nothing, {}", left(context, uri)));
                continue;
            }
            Err(error) => {
                seen.push(format!("{uri}: {error}"));
                continue;
            }
        };
        let names = now.schema().attributes.iter().map(|a| a.name.as_str());
        let names: BTreeSet<&str> = names.collect();
        let keys: Vec<_> = now
            .metadata()
            .map(|all| all.keys().map(|k| k.to_owned()).collect())
            .unwrap_or_default();
        let keys: Vec<String> = keys;
        seen.push(format!("{uri}: {names:?} {keys:?}"));
        for time in [TimeRange::until(25), TimeRange::ALL] {
            let cells = array.open_at(time).and_then(|array| {
                let cells = array.read(ReadOptions::new().fields(["x"]))?.read_all()?;
                let mut cells = cells.column("x").unwrap().values::<i64>().unwrap().to_vec();
                cells.sort_unstable();
                Ok(cells)
            });
            seen.push(match cells {
                Ok(cells) => format!("{cells:?}"),
                Err(error) => format!("cannot be read: {error}"),
            });
        }
        let report = array.check(CheckOptions::default()).unwrap();
        let errors = report
            .findings
            .iter()
            .filter(|f| f.severity == Severity::Error);
        seen.extend(errors.map(|finding| format!("{}: {}", finding.path, finding.what)));
    }
    seen
}

/// What shows up in a new array that is made where none is any more.
fn left(context: &Context, uri: &str) -> String {
    let array = context.array(uri);
    array.create(new_array(false)).unwrap();
    let cells = array
        .open()
        .and_then(|array| array.read(ReadOptions::new())?.read_all())
        .map(|cells| cells.cell_num);
    let keys = array.open().and_then(|array| Ok(array.metadata()?.len()));
    format!("{cells:?} {keys:?}")
}

struct Outcome {
    seen: Vec<String>,
    /// Whether each of the two has succeeded.
    done: [bool; 2],
}

/// One after the other, those of them that are named.
fn in_order(base: &dyn Storage, operations: [&Operation; 2], order: &[usize]) -> Outcome {
    let context = context(Arc::new(copy_of(base)));
    let mut done = [false; 2];
    for &i in order {
        done[i] = operations[i].1(&context).is_ok();
    }
    Outcome {
        seen: look(&context),
        done,
    }
}

/// The first stopped before a call; `None` if it has not so many.
fn interleaved(
    base: &dyn Storage,
    operations: [&Operation; 2],
    stop_at: usize,
) -> Option<(Outcome, [Option<Error>; 2])> {
    let memory: Arc<dyn Storage> = Arc::new(copy_of(base));
    let gate = Gate::new(stop_at);
    let view = |role| {
        let storage = SteppedStorage::new(Arc::clone(&memory), &gate, role);
        context(Arc::new(storage))
    };
    let (first, second) = (view(Role::First), view(Role::Second));
    let results = std::thread::scope(|scope| {
        let run = || {
            let result = operations[0].1(&first);
            gate.end();
            result
        };
        let running = scope.spawn(run);
        if !gate.wait_until_stopped() {
            running.join().unwrap().ok();
            return None;
        }
        let second = operations[1].1(&second);
        gate.release();
        Some([running.join().unwrap().err(), second.err()])
    })?;
    let done = [results[0].is_none(), results[1].is_none()];
    let seen = look(&context(memory));
    Some((Outcome { seen, done }, results))
}

fn check_pairs(before: Before, duplicates: bool) {
    let base = prepare(before, duplicates);
    let mut wrong = Vec::new();
    let mut runs = 0;
    for first in OPERATIONS {
        for second in OPERATIONS {
            let pair = [first, second];
            let orders = [
                in_order(&base, pair, &[0, 1]),
                in_order(&base, pair, &[1, 0]),
            ];
            let alone = [in_order(&base, pair, &[0]), in_order(&base, pair, &[1])];
            for stop_at in 0.. {
                let Some((outcome, errors)) = interleaved(&base, pair, stop_at) else {
                    break;
                };
                runs += 1;
                let as_ordered = orders
                    .iter()
                    .any(|order| order.seen == outcome.seen && order.done == outcome.done);
                let as_alone = (0..2).any(|i| {
                    outcome.done[i] && !outcome.done[1 - i] && alone[i].seen == outcome.seen
                });
                if !as_ordered && !as_alone {
                    wrong.push(format!(
                        "{before:?}, duplicates {duplicates}: {} stopped at {stop_at}, {}:\n  {errors:?}\n  seen {:#?}\n  \
                         not {:#?}\n  nor {:#?}",
                        first.0, second.0, outcome.seen, orders[0].seen, orders[1].seen
                    ));
                }
            }
        }
    }
    assert!(runs > 1000, "{runs}");
    assert!(
        wrong.is_empty(),
        "{} of {runs}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn on_a_plain_array() {
    check_pairs(Before::Plain, false);
}

#[test]
fn on_an_array_with_duplicates() {
    check_pairs(Before::Plain, true);
}

#[test]
fn on_an_array_with_replaced_fragments() {
    check_pairs(Before::Merged, false);
}

#[test]
fn on_an_array_of_one_commits_file() {
    check_pairs(Before::OneCommit, false);
}

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

#[cfg(feature = "object-store")]
#[path = "interleavings/bucket.rs"]
mod bucket;
#[path = "interleavings/schedules.rs"]
mod schedules;
mod support;

use azulejo::array::FragmentSelection;
use azulejo::check::{CheckOptions, Severity};
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{Attribute, NewArray, SchemaEvolution};
use azulejo::format::{ArraySchema, CellValNum, Datatype};
use azulejo::group::{NewMember, ObjectType};
use azulejo::read::ReadOptions;
use azulejo::storage::{MemoryStorage, ReadRange, ReadRequest, Storage, StorePath};
use azulejo::write::WriteOptions;
use azulejo::{Context, Error, Result, TimeRange};
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use support::contexts::of_one_thread as context;
use support::often::every;
use support::stepped::{Gate, Role, SteppedStorage};

const URI: &str = "mem://array";
const MOVED: &str = "mem://moved";

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

fn write_dense(context: &Context, from: i32, time: Option<u64>) -> Result<()> {
    let mut options = WriteOptions::new();
    if let Some(time) = time {
        options = options.timestamp(time);
    }
    let mut writer = context.array(URI).writer(options)?;
    let cells: Vec<i32> = (from..from + 20).collect();
    writer.write(&ColumnSet::of([ColumnBuffers::of_values("a", cells)]).unwrap())?;
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
    ("write dense", |context| write_dense(context, 50, None)),
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

const GROUP_OPERATIONS: &[Operation] = &[
    ("add a", |context| add(context, "a")),
    ("add b", |context| add(context, "b")),
    ("remove z", |context| {
        let mut editor = context.group(URI).edit()?;
        editor.remove("z")?;
        editor.commit()
    }),
    ("put a key", |context| {
        let mut writer = context.group(URI).change_metadata()?;
        writer.put("k", MetadataValue::new(Datatype::Int8, [1]))?;
        writer.commit()
    }),
    ("consolidate metadata", |context| {
        context
            .group(URI)
            .consolidate_metadata(TimeRange::ALL)
            .map(drop)
    }),
    ("vacuum metadata", |context| {
        let options = VacuumOptions::default();
        context.group(URI).vacuum_metadata(options).map(drop)
    }),
    ("move", |context| context.object(URI).rename_to(MOVED)),
    ("delete", |context| {
        context.object(URI).delete(false).map(drop)
    }),
];

fn add(context: &Context, name: &str) -> Result<()> {
    let mut editor = context.group(URI).edit()?;
    let member = NewMember::at(format!("mem://elsewhere/{name}")).named(name);
    editor.add(member.typed(ObjectType::Array))?;
    editor.commit()
}

fn prepare_group() -> MemoryStorage {
    let storage = Arc::new(MemoryStorage::new());
    let context = context(Arc::clone(&storage) as Arc<dyn Storage>);
    context.group(URI).create().unwrap();
    add(&context, "z").unwrap();
    for (key, value) in [("k", 7), ("l", 8)] {
        let mut writer = context.group(URI).change_metadata().unwrap();
        writer
            .put(key, MetadataValue::new(Datatype::Int8, [value]))
            .unwrap();
        writer.commit().unwrap();
    }
    context
        .group(URI)
        .consolidate_metadata(TimeRange::ALL)
        .unwrap();
    copy_of(&*storage)
}

fn look_at_group(context: &Context) -> Vec<String> {
    let look = |uri: &str| match context.group(uri).open() {
        Ok(group) => {
            let mut members: Vec<_> = group.members().iter().map(|m| m.location.clone()).collect();
            members.sort();
            let keys = group.metadata().map(|all| {
                let all = all
                    .iter()
                    .map(|(key, value)| (key.to_owned(), value.data.clone()));
                all.collect::<Vec<_>>()
            });
            format!("{uri}: {members:?} {keys:?}")
        }
        Err(Error::NotFound { .. }) => {
            // What shows up in a new one is what somebody has left there.
            context.group(uri).create().unwrap();
            let group = context.group(uri).open().unwrap();
            format!(
                "{uri}: nothing, {:?}",
                (group.members().len(), group.metadata().unwrap().len())
            )
        }
        Err(error) => format!("{uri}: {error}"),
    };
    vec![look(URI), look(MOVED)]
}

/// What an array was like before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Plain,
    /// Fragments were merged, not vacuumed; one came afterwards.
    Merged,
    /// All commits are in one file, whose twins are there.
    OneCommit,
    /// Not sparse, as all others are.
    Dense,
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
    if before == Before::Dense {
        let schema = ArraySchema::dense()
            .dimension("x", 0i64..=19, 10)
            .attribute("a", Datatype::Int32);
        array.create_at(schema.build().unwrap(), 1).unwrap();
        for time in [10, 20, 30] {
            write_dense(&context, time, Some(time as u64)).unwrap();
        }
        return copy_of(&*storage);
    }
    array.create_at(new_array(duplicates), 1).unwrap();
    for (x, time) in [(1, 10), (2, 20), (3, 30)] {
        write(&context, x, Some(time)).unwrap();
        put(&context, &format!("k{x}"), Some(time)).unwrap();
    }
    match before {
        Before::Plain | Before::Dense => {}
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
    copy_to(storage, &copy);
    copy
}

fn copy_to(storage: &dyn Storage, copy: &dyn Storage) {
    for (folder, entries) in storage.list_tree(&StorePath::memory("")).unwrap() {
        for entry in entries.iter().filter(|entry| !entry.is_dir) {
            let path = StorePath::memory(&folder).join(&entry.name);
            let request = ReadRequest {
                path: path.clone(),
                range: ReadRange::All,
            };
            let body = storage.read(&[request]).unwrap().remove(0);
            copy.put(&path, body).unwrap();
        }
    }
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
        let field = if now.schema().is_dense() { "a" } else { "x" };
        for time in [TimeRange::until(25), TimeRange::ALL] {
            let cells = array.open_at(time).and_then(|array| {
                let cells = array.read(ReadOptions::new().fields([field]))?.read_all()?;
                let column = cells.column(field).unwrap();
                let mut cells: Vec<i64> = if field == "x" {
                    column.values::<i64>().unwrap().to_vec()
                } else {
                    let values = column.values::<i32>().unwrap();
                    values.iter().map(|value| i64::from(*value)).collect()
                };
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
    /// Whether each of them has succeeded.
    done: Vec<bool>,
}

/// What is tried in pairs, on what.
struct Matrix<'a> {
    name: String,
    base: MemoryStorage,
    operations: Vec<&'a Operation>,
    look: fn(&Context) -> Vec<String>,
    /// Whether there are no locks of folders.
    claims: bool,
    /// Where the objects lie.
    place: fn(&MemoryStorage) -> Ground,
    /// How many stops of each pair are one that is tried.
    every: usize,
    /// Whether two who do the same may both say that they have done it.
    may_agree: bool,
}

/// Gives each user of some objects a storage that holds them.
type Ground = Box<dyn Fn() -> Arc<dyn Storage>>;

fn in_memory(base: &MemoryStorage) -> Ground {
    let memory: Arc<dyn Storage> = Arc::new(base.duplicate());
    Box::new(move || Arc::clone(&memory))
}

/// Below the folder that the process is in; each user has a storage of its own.
#[cfg(unix)]
fn in_files(base: &MemoryStorage) -> Ground {
    for entry in std::fs::read_dir(".").unwrap() {
        std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
    copy_to(base, &azulejo::storage::LocalStorage::new());
    Box::new(|| Arc::new(azulejo::storage::LocalStorage::new()))
}

impl Matrix<'_> {
    /// The base once more, and nothing else.
    fn ground(&self) -> Ground {
        (self.place)(&self.base)
    }
}

/// One after the other, those of them that are named.
fn in_order(matrix: &Matrix<'_>, operations: &[&Operation], order: &[usize]) -> Outcome {
    let context = context(matrix.ground()());
    let mut done = vec![false; operations.len()];
    for &i in order {
        done[i] = operations[i].1(&context).is_ok();
    }
    Outcome {
        seen: (matrix.look)(&context),
        done,
    }
}

/// The first stopped before a call; `None` if it has not so many.
fn interleaved(
    matrix: &Matrix<'_>,
    operations: [&Operation; 2],
    stop_at: usize,
) -> Option<(Outcome, [Option<Error>; 2])> {
    let ground = matrix.ground();
    let gate = Gate::new(stop_at);
    let view = |role| {
        let storage = SteppedStorage::new(ground(), &gate, role);
        context(Arc::new(storage.with_claims(matrix.claims)))
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
    let done = results.iter().map(Option::is_none).collect();
    let seen = (matrix.look)(&context(ground()));
    Some((Outcome { seen, done }, results))
}

/// The arrays of a matrix: what was there before, and whether duplicates are allowed.
const KINDS: [(Before, bool); 5] = [
    (Before::Plain, false),
    (Before::Plain, true),
    (Before::Merged, false),
    (Before::OneCommit, false),
    (Before::Dense, false),
];

fn arrays<'a>(before: Before, duplicates: bool) -> Matrix<'a> {
    Matrix {
        name: format!("{before:?}, duplicates {duplicates}"),
        base: prepare(before, duplicates),
        operations: OPERATIONS.iter().collect(),
        look,
        claims: false,
        place: in_memory,
        every: every(7),
        may_agree: false,
    }
}

fn check_pairs(matrix: &Matrix<'_>) {
    let runs = check_all_pairs(matrix);
    assert!(runs > 300 / matrix.every.min(10), "{runs}");
}

/// How many runs there were.
fn check_all_pairs(matrix: &Matrix<'_>) -> usize {
    let mut wrong = Vec::new();
    let mut runs = 0;
    for &first in &matrix.operations {
        for &second in &matrix.operations {
            let pair = [first, second];
            // Only where a stop is tried: with files they cost more than the stops.
            let orders =
                LazyCell::new(|| [[0, 1], [1, 0]].map(|order| in_order(matrix, &pair, &order)));
            let alone = LazyCell::new(|| [0, 1].map(|only| in_order(matrix, &pair, &[only])));
            for stop_at in (runs % matrix.every..).step_by(matrix.every) {
                let Some((outcome, errors)) = interleaved(matrix, pair, stop_at) else {
                    break;
                };
                runs += 1;
                let as_ordered = orders
                    .iter()
                    .any(|order| order.seen == outcome.seen && order.done == outcome.done)
                    || matrix.may_agree && orders.iter().any(|order| order.seen == outcome.seen);
                let as_alone = (0..2).any(|i| {
                    outcome.done[i] && !outcome.done[1 - i] && alone[i].seen == outcome.seen
                });
                if !as_ordered && !as_alone {
                    wrong.push(format!(
                        "{}: {} stopped at {stop_at}, {}:\n  {errors:?}\n  seen {:#?}\n  \
                         not {:#?}\n  nor {:#?}",
                        matrix.name,
                        first.0,
                        second.0,
                        outcome.seen,
                        orders[0].seen,
                        orders[1].seen
                    ));
                }
            }
        }
    }
    eprintln!("{}: {runs} runs", matrix.name);
    assert!(
        wrong.is_empty(),
        "{} of {runs}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    runs
}

/// Those of a matrix that are named, at every stop: what the whole of it comes to late.
fn check_some(names: &[&str]) {
    let mut matrix = arrays(Before::Plain, false);
    matrix.operations.retain(|(name, _)| names.contains(name));
    assert_eq!(matrix.operations.len(), names.len());
    matrix.every = 1;
    let runs = check_all_pairs(&matrix);
    assert!(runs > 20, "{runs}");
}

#[test]
fn two_evolutions_at_every_stop() {
    check_some(&["evolve b", "evolve c"]);
}

#[test]
fn what_adds_beside_a_deletion_at_every_stop() {
    check_some(&["append", "delete cells", "metadata", "delete array"]);
}

#[test]
fn on_a_plain_array() {
    check_pairs(&arrays(Before::Plain, false));
}

#[test]
fn on_an_array_with_duplicates() {
    check_pairs(&arrays(Before::Plain, true));
}

#[test]
fn on_an_array_with_replaced_fragments() {
    check_pairs(&arrays(Before::Merged, false));
}

#[test]
fn on_an_array_of_one_commits_file() {
    check_pairs(&arrays(Before::OneCommit, false));
}

#[test]
fn on_a_dense_array() {
    check_pairs(&arrays(Before::Dense, false));
}

fn groups<'a>() -> Matrix<'a> {
    Matrix {
        name: "a group".to_owned(),
        base: prepare_group(),
        operations: GROUP_OPERATIONS.iter().collect(),
        look: look_at_group,
        claims: false,
        place: in_memory,
        every: every(1),
        may_agree: true,
    }
}

#[test]
fn on_a_group() {
    check_pairs(&groups());
}

/// Two who make something where nothing is.
fn makers<'a>(maker: &'a Operation, look: fn(&Context) -> Vec<String>) -> Matrix<'a> {
    Matrix {
        name: "nothing".to_owned(),
        base: MemoryStorage::new(),
        operations: vec![maker],
        look,
        claims: false,
        place: in_memory,
        every: 1,
        may_agree: false,
    }
}

const MAKE_GROUP: Operation = ("create", |context| context.group(URI).create());
const MAKE_ARRAY: Operation = ("create", |context| {
    context.array(URI).create_at(new_array(false), 1)
});

/// Every schema of an array that was made at some time.
fn look_at_schemas(context: &Context) -> Vec<String> {
    let array = context.array(URI).open().unwrap();
    let schemas = array.schemas().values();
    schemas.map(|schema| format!("{schema:?}")).collect()
}

/// Of two who make something where nothing is, one has made it, whatever the other has looked at
/// before.
fn check_one_makes_it(matrix: &Matrix<'_>) {
    let maker = matrix.operations[0];
    let mut stops = 0;
    while let Some((outcome, errors)) = interleaved(matrix, [maker, maker], stops) {
        let other = errors.iter().flatten().collect::<Vec<_>>();
        let one = matches!(other[..], [Error::AlreadyExists { uri }] if uri.as_str() == URI);
        assert!(one, "{}: {errors:?} at {stops}", matrix.name);
        let alone = in_order(matrix, &[maker, maker], &[0]);
        assert_eq!(outcome.seen, alone.seen, "{} at {stops}", matrix.name);
        stops += 1;
    }
    assert!(stops >= 2, "{stops}");
}

#[test]
fn one_makes_a_new_object() {
    for claims in [false, true] {
        for (maker, look) in [
            (&MAKE_GROUP, look_at_group as fn(&Context) -> Vec<String>),
            (&MAKE_ARRAY, look_at_schemas),
        ] {
            let matrix = makers(maker, look);
            check_one_makes_it(&Matrix { claims, ..matrix });
        }
    }
}

/// What lies there, by its marks: one of both is an array.
fn look_at_marks(context: &Context) -> Vec<String> {
    let location = context.locate(&URI.parse().unwrap()).unwrap();
    let marks = location.storage.list(&location.path).unwrap();
    let marks = marks.into_iter().map(|entry| entry.name);
    marks
        .filter(|name| ["__schema", "__tiledb_group.tdb"].contains(&name.as_str()))
        .collect()
}

/// An array and a group in one place: one of them is made, and the other one is refused.
#[test]
fn an_array_or_a_group_is_made() {
    for claims in [false, true] {
        for operations in [[&MAKE_ARRAY, &MAKE_GROUP], [&MAKE_GROUP, &MAKE_ARRAY]] {
            let matrix = Matrix {
                claims,
                ..makers(operations[0], look_at_marks)
            };
            let mut stops = 0;
            while let Some((outcome, errors)) = interleaved(&matrix, operations, stops) {
                let other = errors.iter().flatten().collect::<Vec<_>>();
                let one =
                    matches!(other[..], [Error::AlreadyExists { uri }] if uri.as_str() == URI);
                assert!(one, "claims {claims}: {errors:?} at {stops}");
                assert_eq!(outcome.seen.len(), 1, "{:?} at {stops}", outcome.seen);
                stops += 1;
            }
            assert!(stops >= 2, "{stops}");
        }
    }
}

/// Where folders have no locks: who maintains an array claims it by an object. Moving and deleting
/// the array takes many steps there, which a write beside them does not see: that is not promised.
fn with_claims(mut matrix: Matrix<'_>) -> Matrix<'_> {
    matrix.name.push_str(", claims");
    matrix.claims = true;
    let whole = ["move", "delete array", "delete"];
    matrix.operations.retain(|(name, _)| !whole.contains(name));
    matrix
}

#[test]
fn where_folders_have_no_locks() {
    check_pairs(&with_claims(arrays(Before::Plain, true)));
}

/// Real files, which two storages lock and change as two processes do.
#[cfg(unix)]
#[test]
fn on_files() {
    // Where nothing is synced, which is not what this is about.
    let quick = std::path::Path::new("/dev/shm");
    let folder = match quick.is_dir() {
        true => tempfile::tempdir_in(quick).unwrap(),
        false => tempfile::tempdir().unwrap(),
    };
    // Paths in memory are relative ones of files. No other test of this program has any.
    std::env::set_current_dir(folder.path()).unwrap();
    for (before, duplicates) in KINDS {
        let mut matrix = arrays(before, duplicates);
        matrix.name.push_str(", files");
        (matrix.place, matrix.every) = (in_files, every(23));
        check_pairs(&matrix);
    }
}

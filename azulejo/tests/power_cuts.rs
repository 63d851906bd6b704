//! Power failures: every change of files that an operation makes is recorded, and after each of them
//! all is rebuilt that the disk may have then, by the letter of POSIX (`support/disk.rs`).
//!
//! While an operation is under way everything is as before or as after it; once it has reported
//! that it is done, everything is as after it. Where all is as before, the same operation works.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]
#![expect(clippy::print_stdout, reason = "how much was looked at")]

mod support;

use azulejo::array::FragmentSelection;
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{Attribute, DataOrder, Enumeration, NewArray, SchemaEvolution};
use azulejo::format::{ArraySchema, CellValNum, Datatype};
use azulejo::group::{NewMember, ObjectType};
use azulejo::read::ReadOptions;
use azulejo::storage::{LocalStorage, MemoryStorage, Storage, StorePath};
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, Error, Result, TimeRange};
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use support::disk::{Disk, Files};

/// States of one moment that are looked at if there are more; `AZULEJO_POWER_STATES` says otherwise.
fn most_states() -> usize {
    let text = std::env::var("AZULEJO_POWER_STATES");
    text.ok().and_then(|text| text.parse().ok()).unwrap_or(24)
}

fn context(local: LocalStorage, memory: MemoryStorage) -> Context {
    let config = Config::new().threads(1);
    Context::with_storages(config, None, Arc::new(local), Arc::new(memory)).unwrap()
}

/// What an operation works on: a context, and what the names of its objects begin with.
struct Place<'a> {
    context: &'a Context,
    root: &'a str,
}

impl Place<'_> {
    fn at(&self, name: &str) -> String {
        format!("{}{name}", self.root)
    }

    fn write(&self, x: i64, time: u64) -> Result<()> {
        let array = self.context.array(&self.at("array"));
        let mut writer = array.writer(WriteOptions::new().timestamp(time))?;
        let columns = [
            ColumnBuffers::of_values("x", vec![x]),
            ColumnBuffers::of_values("a", vec![7i32]),
        ];
        writer.write(&ColumnSet::of(columns).unwrap())?;
        writer.finish().map(drop)
    }

    fn write_dense(&self, from: i32, time: u64) -> Result<()> {
        let array = self.context.array(&self.at("array"));
        let mut writer = array.writer(WriteOptions::new().timestamp(time))?;
        let columns = [ColumnBuffers::of_values(
            "a",
            (from..from + 20).collect::<Vec<i32>>(),
        )];
        writer.write(&ColumnSet::of(columns).unwrap())?;
        writer.finish().map(drop)
    }

    fn put(&self, key: &str, time: u64) -> Result<()> {
        let array = self.context.array(&self.at("array"));
        let mut writer = array.change_metadata()?.at(time);
        writer.put(key, MetadataValue::new(Datatype::Int8, [1]))?;
        writer.commit()
    }

    fn vacuum(&self, mode: Mode) -> Result<()> {
        let array = self.context.array(&self.at("array"));
        array.vacuum(mode, VacuumOptions::default()).map(drop)
    }
}

fn words() -> Enumeration {
    Enumeration::of_strings("words", Datatype::StringUtf8, true, ["a", "b"]).unwrap()
}

fn labelled() -> NewArray {
    ArraySchema::dense()
        .dimension("x", 0i32..=99, 10)
        .enumeration(words())
        .attribute_with(Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words"))
        .label(0, "name", DataOrder::Increasing, Datatype::Float64)
        .build()
        .unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Sparse,
    Duplicates,
    /// Fragments and key-values were merged, not vacuumed; a fragment came afterwards.
    Merged,
    /// All commits are in one file, whose twins are there.
    OneCommit,
    Dense,
    Group,
}

const ARRAYS: [Before; 5] = [
    Before::Sparse,
    Before::Duplicates,
    Before::Merged,
    Before::OneCommit,
    Before::Dense,
];

fn prepare(before: Before, place: &Place<'_>) {
    let array = place.context.array(&place.at("array"));
    match before {
        Before::Nothing => return,
        Before::Group => {
            place.context.group(&place.at("group")).create().unwrap();
            let mut editor = place.context.group(&place.at("group")).edit().unwrap();
            editor
                .add(NewMember::at("mem://z").named("z").typed(ObjectType::Array))
                .unwrap();
            return editor.commit().unwrap();
        }
        Before::Dense => {
            let schema = ArraySchema::dense()
                .dimension("x", 0i64..=19, 10)
                .attribute("a", Datatype::Int32);
            array.create_at(schema.build().unwrap(), 1).unwrap();
            for time in [10, 20] {
                place.write_dense(time, time as u64).unwrap();
            }
            return;
        }
        Before::Sparse | Before::Duplicates | Before::Merged | Before::OneCommit => {}
    }
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=99, 10)
        .attribute("a", Datatype::Int32)
        .allows_duplicates(before == Before::Duplicates);
    array.create_at(schema.build().unwrap(), 1).unwrap();
    for (x, time) in [(1, 10), (2, 20), (3, 30)] {
        place.write(x, time).unwrap();
        place.put(&format!("k{x}"), time).unwrap();
    }
    if before == Before::Merged {
        array.consolidate(&FragmentOptions::default()).unwrap();
        array.consolidate_metadata(TimeRange::ALL).unwrap();
        place.write(4, 40).unwrap();
    }
    if before == Before::OneCommit {
        array.consolidate_commits().unwrap();
        array.consolidate_fragment_metadata().unwrap();
    }
}

type Operation = (
    &'static str,
    &'static [Before],
    fn(&Place<'_>) -> Result<()>,
);

const SPARSE: &[Before] = &[
    Before::Sparse,
    Before::Duplicates,
    Before::Merged,
    Before::OneCommit,
];

const OPERATIONS: &[Operation] = &[
    ("create", &[Before::Nothing], |place| {
        let array = place.context.array(&place.at("new/deep/array"));
        array.create_at(labelled(), 1)
    }),
    ("create group", &[Before::Nothing], |place| {
        place.context.group(&place.at("group")).create()
    }),
    ("append", SPARSE, |place| place.write(50, 50)),
    ("write dense", &[Before::Dense], |place| {
        place.write_dense(50, 50)
    }),
    ("delete cells", SPARSE, |place| {
        let condition = Condition::compare("x", Comparison::Lt, 2i64.to_le_bytes());
        let array = place.context.array(&place.at("array"));
        array.delete_cells(&condition, Some(60)).map(drop)
    }),
    ("delete fragments", &ARRAYS, |place| {
        let within = FragmentSelection::Within(TimeRange { start: 15, end: 35 });
        let array = place.context.array(&place.at("array"));
        array.delete_fragments(within).map(drop)
    }),
    ("evolve", &ARRAYS, |place| {
        let evolution = SchemaEvolution {
            add_enumerations: vec![words()],
            add_attributes: vec![
                Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words"),
            ],
            ..SchemaEvolution::default()
        };
        let array = place.context.array(&place.at("array"));
        array.evolve(&evolution, Some(70))
    }),
    ("metadata", &ARRAYS, |place| place.put("new", 80)),
    ("consolidate fragments", &ARRAYS, |place| {
        let array = place.context.array(&place.at("array"));
        array.consolidate(&FragmentOptions::default()).map(drop)
    }),
    ("consolidate commits", &ARRAYS, |place| {
        let array = place.context.array(&place.at("array"));
        array.consolidate_commits().map(drop)
    }),
    ("consolidate footers", &ARRAYS, |place| {
        let array = place.context.array(&place.at("array"));
        array.consolidate_fragment_metadata().map(drop)
    }),
    ("consolidate metadata", SPARSE, |place| {
        let array = place.context.array(&place.at("array"));
        array.consolidate_metadata(TimeRange::ALL).map(drop)
    }),
    ("vacuum fragments", &ARRAYS, |place| {
        place.vacuum(Mode::Fragments)
    }),
    ("vacuum commits", &ARRAYS, |place| {
        place.vacuum(Mode::Commits)
    }),
    ("vacuum footers", &ARRAYS, |place| {
        place.vacuum(Mode::FragmentMetadata)
    }),
    ("vacuum metadata", &ARRAYS, |place| {
        place.vacuum(Mode::ArrayMetadata)
    }),
    ("move", &ARRAYS, |place| {
        let array = place.context.object(&place.at("array"));
        array.rename_to(&place.at("new/moved"))
    }),
    ("copy", &ARRAYS, |place| {
        let array = place.context.object(&place.at("array"));
        array.copy_to(&place.at("new/moved"))
    }),
    ("delete array", &ARRAYS, |place| {
        let array = place.context.object(&place.at("array"));
        array.delete(false).map(drop)
    }),
    ("edit group", &[Before::Group], |place| {
        let mut editor = place.context.group(&place.at("group")).edit()?;
        editor.add(NewMember::at("mem://a").named("a").typed(ObjectType::Array))?;
        editor.remove("z")?;
        editor.commit()
    }),
    ("delete group", &[Before::Group], |place| {
        let group = place.context.object(&place.at("group"));
        group.delete(false).map(drop)
    }),
];

/// What a user sees of all that there may be.
fn look(context: &Context) -> Vec<String> {
    let mut seen = Vec::new();
    for uri in ["mem://array", "mem://new/deep/array", "mem://new/moved"] {
        let array = context.array(uri);
        let now = match array.open() {
            Ok(now) => now,
            Err(Error::NotFound { .. }) => continue,
            Err(error) => {
                seen.push(format!("{uri}: {error}"));
                continue;
            }
        };
        let names = now.schema().attributes.iter().map(|a| a.name.as_str());
        let names: BTreeSet<&str> = names.collect();
        let keys = now
            .metadata()
            .map(|all| all.keys().map(|k| k.to_owned()).collect::<Vec<_>>());
        let labels = now.schema().dimension_labels.len();
        let words = now.enumerations().map(|all| all.len());
        seen.push(format!("{uri}: {names:?} {keys:?} {words:?}"));
        if labels > 0 {
            seen.push(format!("{:?}", now.open_label("name").map(drop)));
        }
        let field = if now.schema().is_dense() { "a" } else { "x" };
        if labels > 0 {
            continue;
        }
        for time in [TimeRange::until(25), TimeRange::ALL] {
            let cells = array.open_at(time).and_then(|array| {
                let cells = array.read(ReadOptions::new().fields([field]))?.read_all()?;
                let column = cells.column(field).unwrap();
                let cells = if field == "x" {
                    column.values::<i64>().unwrap().to_vec()
                } else {
                    column
                        .values::<i32>()
                        .unwrap()
                        .iter()
                        .map(|v| i64::from(*v))
                        .collect()
                };
                Ok(cells)
            });
            seen.push(match cells {
                Ok(mut cells) => {
                    cells.sort_unstable();
                    format!("{cells:?}")
                }
                Err(error) => format!("cannot be read: {error}"),
            });
        }
    }
    match context.group("mem://group").open() {
        Ok(group) => {
            let members = group.members().iter().map(|member| member.location.clone());
            seen.push(format!("group {:?}", members.collect::<Vec<_>>()));
        }
        Err(Error::NotFound { .. }) => {}
        Err(error) => seen.push(format!("group: {error}")),
    }
    seen
}

/// The files in memory. What one says of where they were is made to say where they are.
fn memory_of(files: &Files, root: &Path) -> Context {
    let memory = MemoryStorage::new();
    let root = format!("file://{}/", root.to_str().unwrap());
    for (path, bytes) in files {
        let mut bytes = bytes.clone();
        if path.ends_with("__azulejo_copy") {
            let text = String::from_utf8(bytes).unwrap();
            bytes = text.replace(&root, "mem://").into_bytes();
        }
        Storage::put(&memory, &StorePath::memory(path), bytes.into()).unwrap();
    }
    context(LocalStorage::new(), memory)
}

/// Everything that a disk has now.
fn all_of(root: &Path) -> Files {
    let (mut states, all) = Disk::of(root).states(1, 0);
    assert!(all && states.len() == 1);
    states.remove(0)
}

#[derive(Debug, Default)]
struct Count {
    states: usize,
    moments: usize,
    in_part: usize,
    wrong: Vec<String>,
}

fn cut_everywhere(operation: &Operation, before: Before, count: &mut Count) {
    let (name, _, run) = operation;
    let folder = tempfile::tempdir().unwrap();
    let root_text = format!("{}/", folder.path().to_str().unwrap());
    let plain = context(LocalStorage::new(), MemoryStorage::new());
    let place = |context| Place {
        context,
        root: &root_text,
    };
    prepare(before, &place(&plain));
    let mut disk = Disk::of(folder.path());
    let as_before = look(&memory_of(&all_of(folder.path()), folder.path()));

    let (storage, log) = LocalStorage::watched();
    let watched = context(storage, MemoryStorage::new());
    run(&place(&watched)).unwrap();
    drop(watched);
    let as_after = look(&memory_of(&all_of(folder.path()), folder.path()));
    let changes = log.lock().unwrap().clone();

    let mut looked_at = HashSet::new();
    for done in 0..=changes.len() {
        let all_done = done == changes.len();
        let (states, all) = disk.states(most_states(), done as u64);
        count.moments += 1;
        count.in_part += usize::from(!all);
        for files in states {
            let mut hasher = DefaultHasher::new();
            (&files, all_done).hash(&mut hasher);
            if !looked_at.insert(hasher.finish()) {
                continue;
            }
            count.states += 1;
            let context = memory_of(&files, folder.path());
            let seen = look(&context);
            let mut fault = None;
            if seen != as_after && (all_done || seen != as_before) {
                fault = Some(format!("seen {seen:#?}"));
            } else if seen != as_after {
                let memory = Place {
                    context: &context,
                    root: "mem://",
                };
                let again = run(&memory);
                let seen = look(&context);
                if again.is_err() || seen != as_after {
                    fault = Some(format!("made again: {again:?} {seen:#?}"));
                }
            }
            if let Some(fault) = fault {
                let names: Vec<&String> = files.keys().collect();
                count.wrong.push(format!(
                    "{name} on {before:?}, after {done} of {} changes, {:?}:\n  {fault}\n  not {as_before:#?}\n  \
                     nor {as_after:#?}\n  files {names:#?}",
                    changes.len(),
                    done.checked_sub(1).map(|i| &changes[i]),
                ));
                break;
            }
        }
        if let Some(change) = changes.get(done) {
            disk.apply(folder.path(), change);
        }
    }
}

fn check(of: impl Fn(Before) -> bool) {
    let mut count = Count::default();
    for operation in OPERATIONS {
        for before in operation.1.iter().filter(|before| of(**before)) {
            cut_everywhere(operation, *before, &mut count);
        }
    }
    let Count {
        states,
        moments,
        in_part,
        wrong,
    } = count;
    println!("{states} states of {moments} moments, of {in_part} not all that there are");
    assert!(states > 40, "{states}");
    assert!(
        wrong.is_empty(),
        "{} of {states}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn new_objects_and_groups() {
    check(|before| matches!(before, Before::Nothing | Before::Group));
}

#[test]
fn sparse_arrays() {
    check(|before| matches!(before, Before::Sparse | Before::Duplicates));
}

#[test]
fn arrays_with_replaced_fragments_and_with_one_commits_file() {
    check(|before| matches!(before, Before::Merged | Before::OneCommit));
}

#[test]
fn dense_arrays() {
    check(|before| before == Before::Dense);
}

/// What one process has written lasts before another can commit it.
#[test]
fn fragments_that_wait_for_their_commit() {
    let folder = tempfile::tempdir().unwrap();
    let root = format!("{}/", folder.path().to_str().unwrap());
    let plain = context(LocalStorage::new(), MemoryStorage::new());
    let before = Place {
        context: &plain,
        root: &root,
    };
    prepare(Before::Dense, &before);
    let mut disk = Disk::of(folder.path());

    let (storage, log) = LocalStorage::watched();
    let watched = context(storage, MemoryStorage::new());
    let array = watched.array(&before.at("array"));
    let options = WriteOptions::new().timestamp(50).uncommitted();
    let mut writer = array.writer(options).unwrap();
    let columns = [ColumnBuffers::of_values("a", vec![9i32; 20])];
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    let names = writer.finish().unwrap();

    let changes = log.lock().unwrap().clone();
    assert!(!changes.is_empty());
    for change in &changes {
        disk.apply(folder.path(), change);
    }
    let (states, all) = disk.states(most_states(), 0);
    assert!(all, "everything is settled, so there is one way only");
    for files in &states {
        let context = memory_of(files, folder.path());
        let array = context.array("mem://array");
        array.commit_fragments(&names).unwrap();
        let cells = array.open().unwrap().read(ReadOptions::new()).unwrap();
        let cells = cells.read_all().unwrap();
        assert_eq!(cells.column("a").unwrap().values::<i32>().unwrap(), [9; 20]);
    }
}

//! A full disk, a folder that may only be read, a file that has vanished: every change says which
//! object it is about and leaves the array as it was, and can be made again once the trouble is
//! over.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

mod support;

use azulejo::array::FragmentSelection;
use azulejo::check::{CheckOptions, Severity};
use azulejo::column::{ColumnBuffers, ColumnMut, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{self, FragmentOptions, Mode, VacuumOptions};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{Attribute, Enumeration, SchemaEvolution};
use azulejo::format::{ArraySchema, CellValNum, Datatype, NdRectangle, Range};
use azulejo::group::NewMember;
use azulejo::read::ReadOptions;
use azulejo::storage::{LocalStorage, MemoryStorage, Storage, StorePath};
use azulejo::write::{WriteLayout, WriteOptions};
use azulejo::{Config, Context, Error, Result, TimeRange};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use support::faulty::{Fault, FaultyStorage};

const URI: &str = "mem://array";

fn context(storage: Arc<dyn Storage>) -> Context {
    let config = Config::new().threads(2);
    Context::with_storages(config, None, Arc::new(LocalStorage::new()), storage).unwrap()
}

fn faulty(memory: &Arc<MemoryStorage>, fault: Fault) -> Context {
    context(Arc::new(FaultyStorage::new(
        Arc::clone(memory) as Arc<dyn Storage>,
        fault,
    )))
}

fn cells(first: i64, count: i64, dense: bool) -> ColumnSet {
    let a: Vec<i32> = (first..first + count)
        .map(|i| (i * 7919 % 1000) as i32)
        .collect();
    let mut columns = vec![ColumnBuffers::of_values("a", a)];
    if !dense {
        columns.push(ColumnBuffers::of_values(
            "x",
            (first..first + count).collect::<Vec<_>>(),
        ));
    }
    ColumnSet::of(columns).unwrap()
}

fn write(context: &Context, first: i64, dense: bool) -> Result<()> {
    let mut options = WriteOptions::new();
    if dense {
        options = options.subarray(NdRectangle {
            ranges: vec![Range::of(first, first + 99)],
        });
    }
    let mut writer = context.array(URI).writer(options)?;
    writer.write(&cells(first, 100, dense))?;
    writer.finish().map(drop)
}

/// In pieces, in the array's order.
fn stream(context: &Context, dense: bool) -> Result<()> {
    let mut options = WriteOptions::new().layout(WriteLayout::Global);
    if dense {
        options = options.subarray(NdRectangle {
            ranges: vec![Range::of(600i64, 799)],
        });
    }
    let mut writer = context.array(URI).writer(options)?;
    for piece in 0..4 {
        writer.write(&cells(600 + 50 * piece, 50, dense))?;
    }
    writer.finish().map(drop)
}

/// An array with three fragments, metadata and an enumeration, consolidated but not vacuumed where
/// asked for.
fn prepare(context: &Context, dense: bool, consolidated: bool) {
    let new = if dense {
        ArraySchema::dense()
    } else {
        ArraySchema::sparse()
    };
    let words = Enumeration::of_strings("words", Datatype::StringUtf8, true, ["a", "b"]).unwrap();
    let new = new
        .dimension("x", 0i64..=999, 10)
        .attribute("a", Datatype::Int32)
        .enumeration(words);
    context.array(URI).create(new.build().unwrap()).unwrap();
    for first in [0, 50, 300] {
        write(context, first, dense).unwrap();
        context
            .array(URI)
            .change_metadata()
            .unwrap()
            .put("key", MetadataValue::new(Datatype::Int8, [first as u8]))
            .unwrap()
            .commit()
            .unwrap();
    }
    if consolidated {
        context.array(URI).consolidate_commits().unwrap();
        context.array(URI).consolidate_fragment_metadata().unwrap();
        context
            .array(URI)
            .consolidate_metadata(TimeRange::ALL)
            .unwrap();
        let choice = consolidate::Choice::new().amplification(100.0);
        let options = FragmentOptions::new().choice(choice);
        assert_eq!(context.array(URI).consolidate(&options).unwrap().len(), 1);
    }
}

/// What a reader sees.
type Seen = (ColumnSet, Vec<Vec<u8>>, usize, Option<usize>, bool);

fn look(context: &Context) -> Seen {
    let array = context.array(URI).open().unwrap();
    let cells = array.read(ReadOptions::new()).unwrap().read_all().unwrap();
    let values = array
        .metadata()
        .unwrap()
        .values()
        .map(|value| value.data.to_vec())
        .collect();
    let members = context
        .group("mem://group")
        .open()
        .ok()
        .map(|group| group.members().len());
    let labels = array.enumerations().unwrap().iter().map(|e| e.len()).sum();
    (
        cells,
        values,
        labels,
        members,
        context.array("mem://copy").open().is_ok(),
    )
}

fn files(memory: &MemoryStorage) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![StorePath::memory("")];
    while let Some(folder) = folders.pop() {
        for entry in memory.list(&folder).unwrap() {
            let path = folder.join(&entry.name);
            found.push(format!("{path} {:?}", entry.size));
            if entry.is_dir {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

type Change = fn(&Context, bool) -> Result<()>;

/// Every change; whether it shows in what readers see, and whether there is something to do only
/// after consolidation.
const CHANGES: &[(&str, Change, bool, bool)] = &[
    ("write", |c, dense| write(c, 400, dense), true, false),
    ("stream", stream, true, false),
    (
        "metadata",
        |c, _| {
            c.array(URI)
                .change_metadata()?
                .put("other", MetadataValue::new(Datatype::Int8, [9; 40]))?
                .commit()
        },
        true,
        false,
    ),
    (
        "evolution",
        |c, _| {
            let words =
                Enumeration::of_strings("more", Datatype::StringUtf8, true, ["a", "b"]).unwrap();
            let attribute =
                Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("more");
            let evolution = SchemaEvolution {
                add_enumerations: vec![words],
                add_attributes: vec![attribute],
                ..SchemaEvolution::default()
            };
            c.array(URI).evolve(&evolution, None)
        },
        true,
        false,
    ),
    (
        "delete cells",
        |c, dense| match dense {
            true => write(c, 400, dense),
            false => {
                let condition = Condition::compare("x", Comparison::Lt, 20i64.to_le_bytes());
                c.array(URI).delete_cells(&condition, None).map(drop)
            }
        },
        true,
        false,
    ),
    (
        "consolidate",
        |c, _| {
            let choice = consolidate::Choice::new().amplification(100.0);
            let options = FragmentOptions::new().choice(choice);
            c.array(URI).consolidate(&options).map(drop)
        },
        false,
        false,
    ),
    (
        "consolidate commits",
        |c, _| c.array(URI).consolidate_commits().map(drop),
        false,
        false,
    ),
    (
        "consolidate footers",
        |c, _| c.array(URI).consolidate_fragment_metadata().map(drop),
        false,
        false,
    ),
    (
        "consolidate metadata",
        |c, _| c.array(URI).consolidate_metadata(TimeRange::ALL).map(drop),
        false,
        false,
    ),
    ("vacuum", |c, _| vacuum(c, Mode::Fragments), false, true),
    (
        "vacuum metadata",
        |c, _| vacuum(c, Mode::ArrayMetadata),
        false,
        true,
    ),
    (
        "delete fragments",
        |c, _| {
            let array = c.array(URI).open()?;
            let names: Vec<String> = array
                .fragments()
                .iter()
                .map(|f| f.name().to_owned())
                .collect();
            c.array(URI)
                .delete_fragments(FragmentSelection::Named(&names[..1]))
                .map(drop)
        },
        true,
        false,
    ),
    ("group", |c, _| c.group("mem://group").create(), true, false),
    (
        "copy",
        |c, _| c.object(URI).copy_to("mem://copy"),
        true,
        false,
    ),
];

fn vacuum(context: &Context, mode: Mode) -> Result<()> {
    context
        .array(URI)
        .vacuum(mode, VacuumOptions::default())
        .map(drop)
}

/// The kind of a storage's refusal, which names an object of the array.
fn kind(error: &Error) -> ErrorKind {
    let text = error.to_string();
    assert!(text.contains("mem://"), "{text}");
    match error {
        Error::Storage { source, .. } => source.kind(),
        other => panic!("another kind of error: {other:?}"),
    }
}

fn is_sound(context: &Context) {
    let report = context
        .array(URI)
        .check(CheckOptions::new().deep(true))
        .unwrap();
    assert!(
        report.worst() < Some(Severity::Error),
        "{:?}",
        report.findings
    );
}

#[test]
fn a_full_disk() {
    for (dense, consolidated) in [(false, false), (true, false), (false, true), (true, true)] {
        for &(name, change, shows, after) in CHANGES {
            if after && !consolidated {
                continue;
            }
            let array = || {
                let memory = Arc::new(MemoryStorage::new());
                let sound = context(Arc::clone(&memory) as Arc<dyn Storage>);
                prepare(&sound, dense, consolidated);
                (memory, sound)
            };
            let (memory, sound) = array();
            let before = look(&sound);
            let taken = Arc::new(AtomicU64::new(0));
            change(&faulty(&memory, Fault::None(Arc::clone(&taken))), dense).unwrap();
            let need = taken.load(Ordering::SeqCst);
            let steps = [
                0,
                1,
                2,
                need / 5,
                need / 3,
                need / 2,
                need * 2 / 3,
                need * 9 / 10,
            ];
            let mut rooms: Vec<u64> = steps
                .into_iter()
                .chain((1..6).map(|i| need.saturating_sub(i)))
                .collect();
            rooms.sort_unstable();
            rooms.dedup();
            for room in rooms
                .into_iter()
                .filter(|room| *room + 64 < need || *room == 0)
            {
                let (memory, sound) = array();
                let what = format!("{name}, dense {dense}, {room} of {need} bytes");
                match change(&faulty(&memory, Fault::full_after(room)), dense) {
                    Ok(()) => assert!(
                        need == 0 || (consolidated && need < 200),
                        "{what}: it needs no room"
                    ),
                    Err(error) => {
                        assert_eq!(kind(&error), ErrorKind::StorageFull, "{what}: {error}");
                        assert!(look(&sound) == before, "{what}: readers see something else");
                        is_sound(&sound);
                        change(&sound, dense).unwrap();
                    }
                }
                assert_eq!(look(&sound) != before, shows, "{what}: afterwards");
            }
        }
    }
}

/// There is no room for the folder to which folders are moved that are to be gone at once.
#[test]
fn an_array_can_be_deleted_and_moved_from_a_full_disk() {
    for dense in [false, true] {
        let memory = Arc::new(MemoryStorage::new());
        let sound = context(Arc::clone(&memory) as Arc<dyn Storage>);
        prepare(&sound, dense, false);
        let full = faulty(&memory, Fault::full_after(0));
        full.object(URI).delete(false).unwrap();
        assert_eq!(sound.object(URI).object_type().unwrap(), None);
        assert!(memory.is_empty(&StorePath::memory("array")).unwrap());
        // Nor is there when all is gone that can be spared.
        prepare(&sound, dense, false);
        let before = look(&sound);
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("array");
        let to = to.to_str().unwrap();
        full.object(URI).rename_to(to).unwrap();
        assert!(memory.is_empty(&StorePath::memory("array")).unwrap());
        sound.object(to).rename_to(URI).unwrap();
        assert!(look(&sound) == before);
    }
}

#[test]
fn a_folder_that_may_only_be_read() {
    for (dense, consolidated) in [(false, false), (true, false), (false, true), (true, true)] {
        for &(name, change, _, after) in CHANGES {
            if after && !consolidated {
                continue;
            }
            let memory = Arc::new(MemoryStorage::new());
            prepare(
                &context(Arc::clone(&memory) as Arc<dyn Storage>),
                dense,
                consolidated,
            );
            let before = files(&memory);
            match change(&faulty(&memory, Fault::ReadOnly), dense) {
                Ok(()) => assert!(consolidated && name.starts_with("consolidate"), "{name}"),
                Err(error) => {
                    assert_eq!(kind(&error), ErrorKind::PermissionDenied, "{name}: {error}");
                }
            }
            assert!(files(&memory) == before, "{name}: a file has changed");
        }
    }
}

#[test]
fn a_file_that_has_vanished() {
    let memory = Arc::new(MemoryStorage::new());
    let sound = context(Arc::clone(&memory) as Arc<dyn Storage>);
    prepare(&sound, false, false);
    let (before, listed) = (look(&sound), files(&memory));
    let fragment = sound.array(URI).open().unwrap().fragments()[1]
        .name()
        .to_owned();
    let path = format!("{fragment}/a0.tdb");
    let without = faulty(&memory, Fault::Vanished(path.clone()));
    let named = |error: &Error| {
        assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
        assert!(error.to_string().contains(&path), "{error}");
    };
    let array = without.array(URI).open().unwrap();
    named(
        &array
            .read(ReadOptions::new())
            .unwrap()
            .read_all()
            .unwrap_err(),
    );
    // What does not touch it can be read.
    let cells = array
        .read(ReadOptions::new().fields(["x"]))
        .unwrap()
        .read_all()
        .unwrap();
    assert_eq!(cells.cell_num, before.0.cell_num);
    named(
        &without
            .array(URI)
            .consolidate(&FragmentOptions::default())
            .unwrap_err(),
    );
    named(&without.object(URI).copy_to("mem://copy").unwrap_err());
    assert!(files(&memory) == listed, "something was left");
    let report = without
        .array(URI)
        .check(CheckOptions::new().deep(true))
        .unwrap();
    let errors = report
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    assert!(
        errors.clone().count() > 0
            && errors
                .clone()
                .all(|f| f.path.to_string().contains(&fragment))
    );
    // Neither is it in the way of what is written, nor does that hide the loss.
    write(&without, 700, false).unwrap();
    without
        .array(URI)
        .change_metadata()
        .unwrap()
        .put("other", MetadataValue::new(Datatype::Int8, [9]))
        .unwrap()
        .commit()
        .unwrap();
    let added = NewMember::at(URI).named("a");
    without.group("mem://group").create().unwrap();
    let mut editor = without.group("mem://group").edit().unwrap();
    editor.add(added).unwrap();
    editor.commit().unwrap();
    assert_eq!(look(&sound).0.cell_num, before.0.cell_num + 100);
}

#[test]
fn a_read_that_failed_is_not_complete() {
    let memory = Arc::new(MemoryStorage::new());
    prepare(
        &context(Arc::clone(&memory) as Arc<dyn Storage>),
        false,
        false,
    );
    let failing = faulty(&memory, Fault::Vanished("a0.tdb".to_owned()));
    let array = failing.array(URI).open().unwrap();
    let mut reader = array.read(ReadOptions::new().fields(["a"])).unwrap();
    for _ in 0..3 {
        let mut data = [0; 4000];
        let progress = reader.read_into(&mut [ColumnMut {
            data: &mut data,
            offsets: None,
            validity: None,
        }]);
        assert!(progress.is_err(), "{progress:?}");
    }
    assert!(reader.next().is_none(), "nothing follows an error");
}

#[test]
fn key_values_that_a_full_disk_refused_are_committed_again() {
    let memory = Arc::new(MemoryStorage::new());
    prepare(
        &context(Arc::clone(&memory) as Arc<dyn Storage>),
        false,
        false,
    );
    let left = Arc::new(AtomicU64::new(0));
    let full = faulty(&memory, Fault::Full(Arc::clone(&left)));
    let mut changes = full.array(URI).change_metadata().unwrap();
    let value = MetadataValue::new(Datatype::Int8, [42]);
    changes.put("late", value.clone()).unwrap();
    changes.commit().unwrap_err();
    left.store(1 << 20, Ordering::SeqCst);
    changes.commit().unwrap();
    let array = full.array(URI).open().unwrap();
    assert_eq!(array.metadata().unwrap()["late"], value);
}

//! Changes that stop in the middle, at every storage operation: afterwards everything is as before
//! or as after, and the change can be made again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

mod support;

use azulejo::array::{FragmentSelection, NewLabel};
use azulejo::check::{CheckOptions, Severity};
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::commit::VacuumList;
use azulejo::format::metadata::MetadataValue;
use azulejo::format::path::Suffix;
use azulejo::format::schema::{Attribute, DataOrder, Enumeration, NewArray, SchemaEvolution};
use azulejo::format::{ArraySchema, CellValNum, Datatype, FormatVersion, Range};
use azulejo::group::{NewMember, ObjectType};
use azulejo::read::ReadOptions;
use azulejo::space::DimSelection;
use azulejo::storage::{MemoryStorage, ReadRange, ReadRequest, Storage, StorePath};
use azulejo::write::WriteOptions;
use azulejo::{Context, Result, TimeRange};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use support::contexts::of_one_thread as context;
use support::failing::{FailingStorage, Failure};
use support::stepped::{Gate, Role, SteppedStorage};

const URI: &str = "mem://array";

/// Makes a change on a storage that stops at every operation in turn, then again on the sound one.
fn stopped_everywhere<S: PartialEq + Debug>(
    prepare: impl Fn(&Context),
    change: impl Fn(&Context) -> Result<()>,
    look: impl Fn(&Context) -> S,
    repeats: bool,
) -> usize {
    let mut stops = 0;
    for failure in [Failure::Crash, Failure::Once, Failure::Late] {
        for after in 0.. {
            let memory = Arc::new(MemoryStorage::new());
            let sound = context(Arc::clone(&memory) as Arc<dyn Storage>);
            prepare(&sound);
            let before = look(&sound);
            let storage =
                FailingStorage::new(Arc::clone(&memory) as Arc<dyn Storage>, after, failure);
            let result = change(&context(Arc::new(storage.clone())));
            let found = look(&sound);
            if !storage.has_failed() {
                result.unwrap();
                assert_ne!(found, before);
                break;
            }
            stops += 1;
            assert!(
                result.is_err(),
                "stopped at operation {after}, yet it says it is done"
            );
            if found == before {
                change(&sound).unwrap();
            } else {
                // Only what comes after the change is there can have failed, or that itself after
                // its work.
                let late = failure == Failure::Late;
                assert!(repeats || late, "stopped at operation {after}: {found:?}");
            }
            assert_ne!(look(&sound), before);
        }
    }
    stops
}

fn new_array(version: FormatVersion) -> NewArray {
    let plain = ArraySchema::sparse()
        .dimension("x", 0i64..=99, 10)
        .attribute("a", Datatype::Int32);
    plain.version(version).build().unwrap()
}

fn create(context: &Context) {
    context
        .array(URI)
        .create_at(new_array(FormatVersion::CURRENT), 1)
        .unwrap();
}

fn create_with(context: &Context, duplicates: bool) {
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=99, 10)
        .attribute("a", Datatype::Int32)
        .allows_duplicates(duplicates);
    let array = context.array(URI);
    array.create_at(schema.build().unwrap(), 1).unwrap();
}

fn write(context: &Context, x: i64, time: u64) {
    let mut writer = context
        .array(URI)
        .writer(WriteOptions::new().timestamp(time))
        .unwrap();
    let columns = [
        ColumnBuffers::of_values("x", vec![x]),
        ColumnBuffers::of_values("a", vec![7i32]),
    ];
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    writer.finish().unwrap();
}

fn coordinates(context: &Context) -> Vec<i64> {
    let array = context.array(URI).open().unwrap();
    let cells = array
        .read(ReadOptions::new().fields(["x"]))
        .unwrap()
        .read_all()
        .unwrap();
    cells.column("x").unwrap().values::<i64>().unwrap().to_vec()
}

#[test]
fn creation() {
    let words =
        || Enumeration::of_strings("words", Datatype::StringUtf8, true, ["a", "b"]).unwrap();
    let change = |context: &Context| {
        let new = ArraySchema::dense()
            .dimension("x", 0i32..=99, 10)
            .enumeration(words())
            .attribute_with(
                Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words"),
            )
            .label(0, "name", DataOrder::Increasing, Datatype::Float64)
            .build()
            .unwrap();
        context.array(URI).create(new)
    };
    let look = |context: &Context| {
        let array = context.array(URI).open().ok()?;
        array.enumerations().unwrap();
        array.open_label("name").unwrap();
        Some(array.schema().attributes.len())
    };
    assert!(stopped_everywhere(|_| (), change, look, false) > 20);
}

#[test]
fn a_label_added_later() {
    let heights = || (0..10).map(f64::from).collect::<Vec<f64>>();
    let create = |context: &Context| {
        let new = ArraySchema::dense().dimension("x", -3i32..=6, 4);
        let new = new.attribute("a", Datatype::Int32).build().unwrap();
        context.array(URI).create_at(new, 1).unwrap();
    };
    let change = |context: &Context| {
        let label = NewLabel {
            dimension: 0,
            order: DataOrder::Increasing,
            values: ColumnBuffers::of_values("h", heights()),
        };
        context.array(URI).add_label(&label, Some(2))
    };
    let look = |context: &Context| {
        let array = context.array(URI).open().unwrap();
        let label = array.label("h").ok()?;
        let cells = label.read(DimSelection::All).unwrap();
        assert_eq!(cells.columns[1].values::<f64>().unwrap(), heights());
        let places = label.ranges(&[Range::of(2.0, 3.5)]).unwrap();
        assert_eq!(places, [Range::of(-1i32, 0)]);
        let then = context.array(URI).open_at(TimeRange::until(1)).unwrap();
        assert!(then.label("h").is_err());
        Some(())
    };
    assert!(stopped_everywhere(create, change, look, false) > 10);
}

#[test]
fn evolution_and_upgrade() {
    let words =
        || Enumeration::of_strings("words", Datatype::StringUtf8, true, ["a", "b"]).unwrap();
    let evolve = |context: &Context| {
        let evolution = SchemaEvolution {
            add_enumerations: vec![words()],
            add_attributes: vec![
                Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words"),
            ],
            ..SchemaEvolution::default()
        };
        context.array(URI).evolve(&evolution, Some(2))
    };
    let look = |context: &Context| {
        let array = context.array(URI).open().unwrap();
        (
            array.schema().version,
            array.enumerations().unwrap().len(),
            array.schema().attributes.len(),
        )
    };
    stopped_everywhere(create, evolve, look, false);
    let old = |context: &Context| {
        context
            .array(URI)
            .create_at(new_array(FormatVersion::OLDEST_WRITABLE), 1)
            .unwrap();
    };
    stopped_everywhere(
        old,
        |context| context.array(URI).upgrade(Some(2)).map(drop),
        look,
        false,
    );
}

#[test]
fn metadata_and_deletes() {
    let put = |context: &Context| {
        let mut writer = context.array(URI).change_metadata()?;
        writer.put("a", MetadataValue::new(Datatype::Int8, [1]))?;
        writer.put("b", MetadataValue::new(Datatype::Int8, [2]))?;
        writer.commit()
    };
    let keys = |context: &Context| context.array(URI).open().unwrap().metadata().unwrap().len();
    stopped_everywhere(create, put, keys, false);
    let prepare = |context: &Context| {
        create(context);
        (0..4).for_each(|x| write(context, x, 10));
    };
    let delete = |context: &Context| {
        let condition = Condition::compare("x", Comparison::Lt, 2i64.to_le_bytes());
        context.array(URI).delete_cells(&condition, None).map(drop)
    };
    stopped_everywhere(prepare, delete, coordinates, false);
}

#[test]
fn all_that_a_restoration_changes_of_cells_changes_at_once() {
    for duplicates in [false, true] {
        let prepare = |context: &Context| {
            create_with(context, duplicates);
            write(context, 1, 10);
            write(context, 2, 20);
        };
        let restore = |context: &Context| context.array(URI).restore(15).map(drop);
        let look = |context: &Context| {
            let found = coordinates(context);
            assert!(found == [1, 2] || found == [1], "{found:?}");
            found
        };
        stopped_everywhere(prepare, restore, look, false);
    }
}

#[test]
fn fragments_go_together() {
    for consolidated in [false, true] {
        let prepare = |context: &Context| {
            create(context);
            [10, 20, 30]
                .into_iter()
                .for_each(|time| write(context, i64::try_from(time).unwrap(), time));
            if consolidated {
                context.array(URI).consolidate_commits().unwrap();
            }
        };
        let delete = |context: &Context| {
            let selection = FragmentSelection::Within(TimeRange { start: 15, end: 99 });
            context.array(URI).delete_fragments(selection).map(drop)
        };
        // Once they are gone, their folders may be left.
        let look = |context: &Context| {
            let found = coordinates(context);
            assert!(found == [10] || found == [10, 20, 30], "{found:?}");
            found
        };
        stopped_everywhere(prepare, delete, look, true);
    }
}

#[test]
fn deleting_what_a_cut_short_consolidation_shows_brings_nothing_back() {
    let mut new = 0;
    for after in 0.. {
        let memory = Arc::new(MemoryStorage::new());
        let sound = context(Arc::clone(&memory) as Arc<dyn Storage>);
        create_with(&sound, true);
        [10, 20].into_iter().for_each(|time| write(&sound, 1, time));
        let storage = FailingStorage::new(
            Arc::clone(&memory) as Arc<dyn Storage>,
            after,
            Failure::Crash,
        );
        let _ = context(Arc::new(storage.clone()))
            .array(URI)
            .consolidate(&FragmentOptions::default());
        assert_eq!(coordinates(&sound), [1, 1], "after {after}");
        let array = sound.array(URI).open().unwrap();
        let shown: Vec<String> = array
            .fragments()
            .iter()
            .map(|f| f.name().to_owned())
            .collect();
        new += usize::from(shown.len() == 1);
        sound
            .array(URI)
            .delete_fragments(FragmentSelection::Named(&shown))
            .unwrap();
        assert_eq!(coordinates(&sound), [0i64; 0], "after {after}");
        if !storage.has_failed() {
            break;
        }
    }
    assert!(new > 2, "{new}");
}

/// What the reference's vacuum does, which knows vacuum files and nothing else.
fn vacuum_by_lists(memory: &MemoryStorage) {
    let array = StorePath::memory("array");
    let commits = array.join("__commits");
    for entry in memory.list(&commits).unwrap() {
        let path = commits.join(&entry.name);
        if entry.name.ends_with(Suffix::Vacuum.text()) {
            let request = ReadRequest {
                path: path.clone(),
                range: ReadRange::All,
            };
            let bytes = memory.read(&[request]).unwrap().remove(0);
            for old in VacuumList::decode(&bytes).unwrap().uris {
                let name = old.rsplit('/').next().unwrap();
                let commit = commits.join(&format!("{name}.wrt"));
                let folder = array.join(old.trim_start_matches('/'));
                memory.delete(&[commit, folder]).unwrap();
            }
            memory.delete(&[path]).unwrap();
        } else if entry.name.ends_with(Suffix::Replacement.text()) {
            memory.delete(&[path]).unwrap();
        }
    }
}

/// Consolidates two fragments, stops, and vacuums as the reference does. Returns whether the
/// consolidation was done, and how many fragments are left.
fn vacuumed_after(
    duplicates: bool,
    claims: bool,
    (failure, after): (Failure, i64),
) -> (bool, usize) {
    let memory = Arc::new(MemoryStorage::new());
    let sound = context(Arc::clone(&memory) as Arc<dyn Storage>);
    create_with(&sound, duplicates);
    [(10, 10), (20, 20)]
        .into_iter()
        .for_each(|(x, time)| write(&sound, x, time));
    let shared = Arc::clone(&memory) as Arc<dyn Storage>;
    let storage = FailingStorage::new(shared, after, failure);
    let view = Arc::new(storage.clone());
    let view = SteppedStorage::new(view, &Gate::new(1 << 40), Role::First);
    let running = context(Arc::new(view.with_claims(claims)));
    let running = std::thread::spawn(move || {
        let array = running.array(URI);
        array.consolidate(&FragmentOptions::default()).is_ok()
    });
    // Who has crashed is not waited for: it may wait for its own claim.
    let crashed = || failure == Failure::Crash && storage.has_failed();
    while !running.is_finished() && !crashed() {
        std::thread::sleep(Duration::from_millis(1));
    }
    vacuum_by_lists(&memory);
    let mut found = coordinates(&sound);
    let fragments = sound.array(URI).open().unwrap().fragments().len();
    if duplicates && fragments == 3 {
        // Between the commit and the vacuum file, as docs/reliability.md says.
        found.dedup();
    }
    let at = format!("duplicates {duplicates}, claims {claims}: {failure:?} at {after}");
    assert_eq!(found, [10, 20], "{at}");
    (!storage.has_failed(), fragments)
}

#[test]
fn a_cut_short_consolidation_leaves_nothing_that_a_vacuum_of_the_reference_would_lose() {
    for (duplicates, claims) in [(false, false), (true, false), (false, true), (true, true)] {
        // A claim whose making fails after its work is waited for until it has expired.
        let failures: &[Failure] = match claims {
            true => &[Failure::Crash],
            false => &[Failure::Crash, Failure::Late],
        };
        for failure in failures {
            let runs = (0..).map(|after| vacuumed_after(duplicates, claims, (*failure, after)));
            let runs: Vec<_> = runs.take_while(|(done, _)| !done).collect();
            assert!(runs.len() > 10, "{}", runs.len());
            assert!(runs.iter().any(|(_, fragments)| *fragments != 2));
        }
    }
}

/// Two dense fragments, merged; the cells that are overwritten differ from time to time.
fn merged(context: &Context) {
    let schema = ArraySchema::dense()
        .dimension("x", 0i32..=3, 4)
        .attribute("a", Datatype::Int32);
    let array = context.array(URI);
    array.create_at(schema.build().unwrap(), 1).unwrap();
    for time in [10, 20] {
        let mut writer = array.writer(WriteOptions::new().timestamp(time)).unwrap();
        let cells = ColumnBuffers::of_values("a", vec![time as i32; 4]);
        writer.write(&ColumnSet::of([cells]).unwrap()).unwrap();
        writer.finish().unwrap();
    }
    array.consolidate(&FragmentOptions::default()).unwrap();
}

/// A vacuum file explains why fragments are gone, and hides those that are not: it goes last. A
/// commit without its fragment is an error at times before the vacuum file's: it goes first.
#[test]
fn a_vacuum_cut_short_shows_all_cells_and_opens_at_every_time() {
    let (mut stops, mut of_first) = (0, 0);
    for failure in [Failure::Crash, Failure::Once, Failure::Late] {
        for after in 0.. {
            let memory = Arc::new(MemoryStorage::new());
            let sound = context(Arc::clone(&memory) as Arc<dyn Storage>);
            merged(&sound);
            let shared = Arc::clone(&memory) as Arc<dyn Storage>;
            let storage = FailingStorage::new(shared, after, failure);
            let vacuum = |context: &Context| {
                let options = VacuumOptions::default();
                context.array(URI).vacuum(Mode::Fragments, options)
            };
            let result = vacuum(&context(Arc::new(storage.clone())));
            let cells = |until: u64| {
                let array = sound.array(URI).open_at(TimeRange::until(until)).unwrap();
                let cells = array.read(ReadOptions::new()).unwrap().read_all().unwrap();
                cells.column("a").unwrap().values::<i32>().unwrap().to_vec()
            };
            let at = format!("{failure:?} at {after}");
            let look = || {
                assert_eq!(cells(30), [20; 4], "{at}");
                // The cells of that time are there until its fragment goes.
                let then = cells(10);
                assert!(then == [10; 4] || then == [i32::MIN; 4], "{at}: {then:?}");
                let report = sound.array(URI).check(CheckOptions::default()).unwrap();
                let errors = report.findings.iter();
                let errors: Vec<_> = errors.filter(|f| f.severity == Severity::Error).collect();
                assert!(errors.is_empty(), "{at}: {errors:#?}");
                then == [10; 4]
            };
            of_first += usize::from(look());
            if !storage.has_failed() {
                result.unwrap();
                break;
            }
            stops += 1;
            vacuum(&sound).unwrap();
            assert!(!look());
            // Whatever was cut short, nothing is left of what was replaced.
            let fragments = memory.list(&StorePath::memory("array/__fragments"));
            assert_eq!(fragments.unwrap().len(), 1, "{at}");
        }
    }
    assert!(stops > 10 && of_first > 0, "{stops}, {of_first}");
}

#[test]
fn a_consolidation_that_is_done_leaves_no_replacement() {
    let memory = Arc::new(MemoryStorage::new());
    let sound = context(Arc::clone(&memory) as Arc<dyn Storage>);
    create_with(&sound, true);
    [10, 20].into_iter().for_each(|time| write(&sound, 1, time));
    let array = sound.array(URI);
    array.consolidate(&FragmentOptions::default()).unwrap();
    let commits = memory.list(&StorePath::memory("array/__commits")).unwrap();
    let count = |suffix: Suffix| {
        let named = commits
            .iter()
            .filter(|entry| entry.name.ends_with(suffix.text()));
        named.count()
    };
    assert_eq!((count(Suffix::Vacuum), count(Suffix::Replacement)), (1, 0));
}

#[test]
fn groups_and_copies() {
    let group = |context: &Context| context.group("mem://group").create().unwrap();
    let add = |context: &Context| {
        let mut editor = context.group("mem://group").edit()?;
        editor.add(NewMember::at("mem://a").named("a").typed(ObjectType::Array))?;
        editor.add(NewMember::at("mem://b").named("b").typed(ObjectType::Group))?;
        editor.commit()
    };
    let members = |context: &Context| context.group("mem://group").open().unwrap().members().len();
    stopped_everywhere(group, add, members, false);

    let prepare = |context: &Context| {
        create(context);
        write(context, 1, 10);
    };
    let copied = |context: &Context| {
        let array = context.array("mem://copy").open().ok()?;
        Some(
            array
                .read(ReadOptions::new())
                .unwrap()
                .read_all()
                .unwrap()
                .cell_num,
        )
    };
    // A crash can leave a part of the copy, with which the next goes on.
    let copy = |context: &Context| context.object(URI).copy_to("mem://copy");
    stopped_everywhere(prepare, copy, copied, true);
}

#[test]
fn what_a_crash_leaves_of_an_object_can_be_deleted() {
    for after in 0.. {
        let memory = Arc::new(MemoryStorage::new());
        let sound = context(Arc::clone(&memory) as Arc<dyn Storage>);
        create(&sound);
        write(&sound, 1, 10);
        let storage = FailingStorage::new(
            Arc::clone(&memory) as Arc<dyn Storage>,
            after,
            Failure::Crash,
        );
        let deleted = context(Arc::new(storage.clone())).object(URI).delete(false);
        if !storage.has_failed() {
            deleted.unwrap();
            assert!(memory.list(&StorePath::memory("array")).unwrap().is_empty());
            break;
        }
        if sound.array(URI).open().is_ok() {
            sound.object(URI).delete(false).unwrap();
        }
        create(&sound);
        assert_eq!(coordinates(&sound), [0i64; 0]);
    }
}

#[test]
fn many_fragments_are_committed_at_once_or_not_at_all() {
    let parts = |context: &Context| -> Vec<String> {
        let part = |x: i64| {
            let options = WriteOptions::new().timestamp(5).uncommitted();
            let mut writer = context.array(URI).writer(options).unwrap();
            let columns = [
                ColumnBuffers::of_values("x", vec![x]),
                ColumnBuffers::of_values("a", vec![7i32]),
            ];
            writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
            writer.finish().unwrap()
        };
        [3, 50, 20].into_iter().flat_map(part).collect()
    };
    let names = std::cell::RefCell::new(Vec::new());
    let prepare = |context: &Context| {
        create(context);
        *names.borrow_mut() = parts(context);
        assert!(coordinates(context).is_empty());
    };
    let change = |context: &Context| context.array(URI).commit_fragments(&names.borrow());
    let look = |context: &Context| {
        let found = coordinates(context);
        assert!(found.is_empty() || found == [3, 20, 50], "{found:?}");
        found
    };
    assert!(stopped_everywhere(prepare, change, look, true) > 1);
}

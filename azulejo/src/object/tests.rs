use super::*;
use crate::array::removal::UNFINISHED;
use crate::array::{Snapshot, TimeRange};
use crate::check::{CheckOptions, Fix, Severity};
use crate::column::{ColumnBuffers, ColumnSet};
use crate::condition::{Comparison, Condition};
use crate::config::Config;
use crate::consolidate::{FragmentOptions, Mode, VacuumOptions};
use crate::group::NewMember;
use crate::read::ReadOptions;
#[cfg(feature = "object-store")]
use crate::storage::IoOp;
use crate::storage::{Entry, LocalStorage, MemoryStorage, Storage, StorageLayer, StorePath};
use crate::write::{WriteLayout, WriteOptions};
use azulejo_format::metadata::MetadataValue;
use azulejo_format::schema::{Attribute, DataOrder, Enumeration, SchemaEvolution};
use azulejo_format::{ArraySchema, CellValNum, Datatype};
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

fn context() -> Context {
    Context::new(Config::default(), None).unwrap()
}

fn make_array(context: &Context, uri: &str) {
    let words = Enumeration::of_strings("words", Datatype::StringUtf8, true, ["a", "b"]).unwrap();
    let new = ArraySchema::dense()
        .dimension("x", 0i32..=99, 10)
        .enumeration(words)
        .attribute_with(Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words"))
        .label(0, "name", DataOrder::Increasing, Datatype::Float64)
        .build()
        .unwrap();
    context.array(uri).create(new).unwrap();
    context
        .array(uri)
        .change_metadata()
        .unwrap()
        .put("k", MetadataValue::new(Datatype::Int8, [7]))
        .unwrap()
        .commit()
        .unwrap();
}

fn make_group(context: &Context, uri: &str, members: &[NewMember]) {
    context.group(uri).create().unwrap();
    let mut editor = context.group(uri).edit().unwrap();
    for member in members {
        editor.add(member.clone()).unwrap();
    }
    editor.commit().unwrap();
}

fn put(context: &Context, uri: &str) {
    let location = context.locate(&Uri::parse(uri).unwrap()).unwrap();
    location
        .storage
        .put(&location.path, Bytes::from_static(b"mine"))
        .unwrap();
}

fn is_array(context: &Context, uri: &str) {
    let array = context.array(uri).open().unwrap();
    assert_eq!(array.metadata().unwrap()["k"].data, [7]);
    assert_eq!(array.enumeration("words").unwrap().len(), 2);
    assert!(array.open_label("name").unwrap().schema().is_dense());
}

fn places() -> (tempfile::TempDir, [String; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let local = folder.path().to_str().unwrap().to_owned();
    (folder, ["mem://t".to_owned(), local])
}

#[test]
fn copies_are_whole_and_apart() {
    let (_folder, places) = places();
    let context = context();
    for from in &places {
        make_array(&context, &format!("{from}/a"));
        put(&context, &format!("{from}/a/notes/mine.txt"));
        for to in &places {
            let to = format!("{to}/from-{}", from.len());
            context.object(&format!("{from}/a")).copy_to(&to).unwrap();
            is_array(&context, &to);
            let notes = context.locate(&Uri::parse(&to).unwrap()).unwrap();
            assert_eq!(
                notes
                    .storage
                    .size(&notes.path.join("notes/mine.txt"))
                    .unwrap(),
                4
            );
            context
                .array(&to)
                .change_metadata()
                .unwrap()
                .remove("k")
                .commit()
                .unwrap();
            is_array(&context, &format!("{from}/a"));
            let again = context
                .object(&format!("{from}/a"))
                .copy_to(&to)
                .unwrap_err();
            assert!(matches!(again, Error::AlreadyExists { .. }), "{again}");
            let inside = context.object(&to).copy_to(&format!("{to}/x")).unwrap_err();
            assert!(matches!(inside, Error::InvalidArgument(_)), "{inside}");
        }
    }
    let nothing = context
        .object("mem://nothing")
        .copy_to("mem://x")
        .unwrap_err();
    assert!(matches!(nothing, Error::NotFound { .. }), "{nothing}");
}

#[test]
fn empty_folders_are_copied_where_there_are_some() {
    let (folder, [_, local]) = places();
    let context = context();
    make_array(&context, "mem://m/a");
    make_array(&context, &format!("{local}/a"));
    context
        .object(&format!("{local}/a"))
        .copy_to(&format!("{local}/b"))
        .unwrap();
    assert!(folder.path().join("b/__fragments").is_dir());
    assert!(folder.path().join("b/__labels/l0/__commits").is_dir());
}

#[test]
fn what_is_moved_is_gone_from_where_it_was() {
    let (_folder, places) = places();
    let context = context();
    for from in &places {
        for to in &places {
            let (from, to) = (format!("{from}/a"), format!("{to}/b"));
            make_array(&context, &from);
            context.object(&from).rename_to(&to).unwrap();
            is_array(&context, &to);
            assert!(matches!(
                context.array(&from).open(),
                Err(Error::NotFound { .. })
            ));
            context.object(&to).delete(false).unwrap();
        }
    }
    make_array(&context, "mem://g/a");
    make_group(&context, "mem://g", &[NewMember::relative("a")]);
    context.object("mem://g").rename_to("mem://h").unwrap();
    let group = context.group("mem://h").open().unwrap();
    is_array(&context, &group.members()[0].location);
}

#[test]
fn deleting_leaves_what_is_not_the_formats() {
    let (folder, [_, local]) = places();
    let context = context();
    for root in ["mem://t", &local] {
        let (plain, noted) = (format!("{root}/plain"), format!("{root}/noted"));
        make_array(&context, &plain);
        make_array(&context, &noted);
        put(&context, &format!("{noted}/notes/mine.txt"));
        for uri in [&plain, &noted] {
            let plan = context.object(uri).plan_deletion(false).unwrap();
            assert_eq!(plan.len(), 1);
            is_array(&context, uri);
            assert_eq!(context.object(uri).delete(false).unwrap(), plan);
            assert!(matches!(
                context.array(uri).open(),
                Err(Error::NotFound { .. })
            ));
            assert!(matches!(
                context.object(uri).delete(false),
                Err(Error::NotFound { .. })
            ));
        }
        let notes = context.locate(&Uri::parse(&noted).unwrap()).unwrap();
        assert_eq!(notes.storage.list(&notes.path).unwrap().len(), 1);
    }
    assert!(!folder.path().join("plain").exists());
    assert!(folder.path().join("noted/notes/mine.txt").exists());
}

#[test]
fn groups_are_deleted_alone_or_with_their_members() {
    let context = context();
    let build = || {
        make_array(&context, "mem://g/sub/inner");
        make_array(&context, "mem://elsewhere");
        make_group(
            &context,
            "mem://g/sub",
            &[
                NewMember::relative("inner"),
                NewMember::at("mem://elsewhere"),
            ],
        );
        let gone = NewMember::at("mem://gone").typed(ObjectType::Array);
        make_group(&context, "mem://g", &[NewMember::relative("sub"), gone]);
        // Groups may name each other.
        let mut editor = context.group("mem://g/sub").edit().unwrap();
        editor.add(NewMember::at("mem://g").named("up")).unwrap();
        editor.commit().unwrap();
    };
    build();
    assert_eq!(context.object("mem://g").delete(false).unwrap().len(), 1);
    is_array(&context, "mem://g/sub/inner");
    assert_eq!(
        context.group("mem://g/sub").open().unwrap().members().len(),
        3
    );
    context.object("mem://g/sub").delete(true).unwrap();
    build();
    let deleted: Vec<String> = context
        .object("mem://g")
        .delete(true)
        .unwrap()
        .into_iter()
        .map(|object| object.uri)
        .collect();
    assert_eq!(deleted.last().map(String::as_str), Some("mem://g"));
    let mut sorted = deleted.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        [
            "mem://elsewhere",
            "mem://g",
            "mem://g/sub",
            "mem://g/sub/inner"
        ]
    );
    assert!(matches!(
        context.group("mem://g/sub").open(),
        Err(Error::NotFound { .. })
    ));
    assert!(matches!(
        context.array("mem://elsewhere").open(),
        Err(Error::NotFound { .. })
    ));
}

/// What happens beside another operation, once.
type Beside = Box<dyn FnOnce() + Send>;

/// Says behind which file something happens.
type When = fn(&StorePath, &[u8]) -> bool;

/// The note of a copy that is to be whole, or that begins.
const WHOLE: When = |path, body| path.name() == "__azulejo_copy" && body.ends_with(b"whole");
const BEGUN: When = |path, body| path.name() == "__azulejo_copy" && !body.ends_with(b"whole");

/// Does something when a file is written.
#[derive(Clone)]
struct Hooked<S> {
    inner: S,
    when: When,
    beside: Arc<Mutex<Option<Beside>>>,
}

impl<S> std::fmt::Debug for Hooked<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooked")
    }
}

impl<S: Storage> StorageLayer for Hooked<S> {
    fn inner(&self) -> &dyn Storage {
        &self.inner
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        let matches = (self.when)(path, &body);
        self.inner.put(path, body)?;
        let beside = self.beside.lock().unwrap().take_if(|_| matches);
        if let Some(beside) = beside {
            beside();
        }
        Ok(())
    }
}

/// A context in which something happens when a local file is written, and one beside it.
fn hooked(when: When, beside: impl FnOnce(&Context) + Send + 'static) -> (Context, Context) {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let with = |local: Arc<dyn Storage>| {
        Context::with_storages(Config::default(), None, local, Arc::clone(&memory)).unwrap()
    };
    let other = with(Arc::new(LocalStorage::new()));
    let inside = other.clone();
    let storage = Hooked {
        inner: LocalStorage::new(),
        when,
        beside: Arc::new(Mutex::new(Some(Box::new(move || beside(&inside))))),
    };
    (with(Arc::new(storage)), other)
}

fn put_key(context: &Context, uri: &str, key: &str) {
    let mut changes = context.array(uri).change_metadata().unwrap();
    changes
        .put(key, MetadataValue::new(Datatype::Int8, [1]))
        .unwrap();
    changes.commit().unwrap();
}

#[test]
fn a_move_that_was_done_deletes_nothing_that_was_made_in_its_place() {
    let (_folder, [_, local]) = places();
    let (context, to) = (context(), format!("{local}/b"));
    make_array(&context, "mem://a");
    context.object("mem://a").rename_to(&to).unwrap();
    // It was killed before its last step.
    let note = || {
        let target = context.locate(&Uri::parse(&to).unwrap()).unwrap();
        let body = Bytes::from_static(b"mem://a\nwhole");
        let path = target.path.join("__azulejo_copy");
        target.storage.put(&path, body).unwrap();
    };
    note();
    context.object("mem://a").rename_to(&to).unwrap();
    note();
    make_array(&context, "mem://a");
    let refused = context.object("mem://a").rename_to(&to).unwrap_err();
    assert!(matches!(refused, Error::AlreadyExists { .. }), "{refused}");
    is_array(&context, "mem://a");
    is_array(&context, &to);
    // Killed before the original was deleted, which has got more since.
    context.object(&to).delete(false).unwrap();
    context.object("mem://a").copy_to(&to).unwrap();
    put_key(&context, "mem://a", "late");
    note();
    context.object("mem://a").rename_to(&to).unwrap();
    assert!(context.array("mem://a").open().is_err());
    let moved = context.array(&to).open().unwrap();
    assert!(moved.metadata().unwrap().get("late").is_some());
}

/// Also what is written in the very millisecond.
#[test]
fn what_is_written_behind_the_name_of_a_moment_is_not_shown() {
    let context = context();
    make_array(&context, "mem://named");
    let object = context.object("mem://named");
    for i in 0..20 {
        let (name, key) = (format!("v{i}"), format!("k{i}"));
        // The clock of writes is not to be what made it a later millisecond.
        std::thread::sleep(std::time::Duration::from_millis(2));
        object.create_snapshot(&name, None).unwrap();
        put_key(&context, "mem://named", &key);
        let then = TimeRange::until(object.snapshot_time(&name).unwrap());
        let array = context.array("mem://named").open_at(then).unwrap();
        assert!(!array.metadata().unwrap().contains_key(&key), "{name}");
    }
}

#[test]
fn what_was_opened_by_the_name_of_a_moment_is_not_changed() {
    let context = context();
    make_array(&context, "mem://group/a");
    make_group(&context, "mem://group", &[NewMember::relative("a")]);
    context
        .object("mem://group")
        .create_snapshot("then", None)
        .unwrap();
    let is_refused = |error: Error| {
        let text = error.to_string();
        assert!(matches!(error, Error::InvalidArgument(_)), "{text}");
        assert!(text.contains("named snapshot"), "{text}");
    };
    let then = context.group("mem://group@then");
    is_refused(then.edit().unwrap_err());
    is_refused(then.change_metadata().unwrap_err());
    let mut editor = then.open().unwrap().into_editor(None);
    editor.remove("a").unwrap();
    is_refused(editor.clone().commit().unwrap_err());
    is_refused(editor.commit_alone().unwrap_err());
    let array = context.array("mem://group/a@then").open().unwrap();
    is_refused(array.change_metadata().unwrap_err());
    assert_eq!(
        context.group("mem://group").open().unwrap().members().len(),
        1
    );
}

#[test]
fn a_manifest_names_a_folder_and_an_object_of_one_name_once() {
    let context = context();
    make_array(&context, "mem://twice");
    put(&context, "mem://twice/odd");
    put(&context, "mem://twice/odd/inner");
    let object = context.object("mem://twice");
    object.write_manifests().unwrap();
    let state = object.manifest_state().unwrap().unwrap();
    assert_eq!(state.changes, []);
}

#[test]
fn what_is_added_while_an_array_is_moved_goes_along() {
    let (_folder, [_, local]) = places();
    let to = format!("{local}/b");
    let (context, other) = hooked(WHOLE, |context| put_key(context, "mem://a", "late"));
    make_array(&other, "mem://a");
    context.object("mem://a").rename_to(&to).unwrap();
    let moved = other.array(&to).open().unwrap();
    assert!(moved.metadata().unwrap().get("late").is_some());
    is_array(&other, &to);
}

#[test]
fn what_is_added_to_arrays_in_a_group_while_it_is_moved_goes_along() {
    let (_folder, [_, local]) = places();
    let to = format!("{local}/g");
    let (context, other) = hooked(WHOLE, |context| {
        put_key(context, "mem://g/sub/a", "late");
        let evolution = SchemaEvolution {
            add_attributes: vec![Attribute::new("v", Datatype::Int8, CellValNum::ONE)],
            ..SchemaEvolution::default()
        };
        context
            .array("mem://g/sub/a")
            .evolve(&evolution, None)
            .unwrap();
    });
    make_array(&other, "mem://g/sub/a");
    make_group(&other, "mem://g/sub", &[NewMember::relative("a")]);
    make_group(&other, "mem://g", &[NewMember::relative("sub")]);
    // Who has opened it before adds to nothing that is gone.
    let mut changes = other.array("mem://g/sub/a").change_metadata().unwrap();
    context.object("mem://g").rename_to(&to).unwrap();
    let moved = other.array(&format!("{to}/sub/a")).open().unwrap();
    assert!(moved.metadata().unwrap().get("late").is_some());
    assert_eq!(moved.schema().attributes.len(), 2);
    is_array(&other, &format!("{to}/sub/a"));
    assert!(other.group(&format!("{to}/sub")).open().is_ok());
    changes
        .put("k", MetadataValue::new(Datatype::Int8, [1]))
        .unwrap();
    let gone = changes.commit().unwrap_err();
    assert!(matches!(gone, Error::NotFound { .. }), "{gone}");
    assert_eq!(other.object("mem://g/sub/a").object_type().unwrap(), None);
}

/// An enumeration, which an evolution writes before its schema.
const ENUMERATION: When = |path, _| path.as_str().contains("__enumerations");
/// A schema, which it writes last.
const SCHEMA: When = |path, _| path.as_str().contains("/__schema/__1");

#[test]
fn an_evolution_in_a_group_that_is_moved_goes_along_or_is_refused() {
    for (when, goes_along) in [(ENUMERATION, false), (SCHEMA, true)] {
        let (_folder, [_, local]) = places();
        let (group, to) = (format!("{local}/g"), format!("{local}/moved"));
        let (from, place) = (group.clone(), to.clone());
        let (context, other) = hooked(when, move |context| {
            context.object(&from).rename_to(&place).unwrap();
        });
        make_array(&other, &format!("{group}/a"));
        make_group(&other, &group, &[NewMember::relative("a")]);
        let more = Enumeration::of_strings("more", Datatype::StringUtf8, true, ["c"]).unwrap();
        let evolution = SchemaEvolution {
            add_enumerations: vec![more],
            add_attributes: vec![
                Attribute::new("v", Datatype::UInt8, CellValNum::ONE).enumerated("more"),
            ],
            ..SchemaEvolution::default()
        };
        let evolved = context
            .array(&format!("{group}/a"))
            .evolve(&evolution, None);
        match goes_along {
            true => evolved.unwrap(),
            false => assert!(
                matches!(evolved, Err(Error::NotFound { .. })),
                "{evolved:?}"
            ),
        }
        let moved = other.array(&format!("{to}/a")).open().unwrap();
        assert_eq!(moved.schema().attributes.len(), 1 + usize::from(goes_along));
        is_array(&other, &format!("{to}/a"));
        assert!(!std::path::Path::new(&group).exists());
    }
}

#[test]
fn nothing_is_written_to_what_was_opened_by_the_name_of_a_moment() {
    let context = context();
    make_array(&context, "mem://a");
    context
        .object("mem://a")
        .create_snapshot("v1", None)
        .unwrap();
    let opened = [
        Snapshot::clone(&context.array("mem://a@v1").open().unwrap()),
        context.array("mem://a@v1").snapshot().unwrap(),
    ];
    for snapshot in opened {
        let refused = snapshot.writer(WriteOptions::new()).err();
        assert!(matches!(refused, Some(Error::InvalidArgument(_))));
        let refused = snapshot.change_metadata().err();
        assert!(matches!(refused, Some(Error::InvalidArgument(_))));
    }
    let now = context.array("mem://a").open().unwrap();
    assert!(now.change_metadata().is_ok());
}

#[test]
fn nothing_is_purged_that_a_moment_shows_which_got_its_name_meanwhile() {
    let (_folder, [_, local]) = places();
    let uri = format!("{local}/a");
    let make = ArraySchema::sparse()
        .dimension("x", 0i32..=99, 10)
        .attribute("a", Datatype::Int32)
        .build()
        .unwrap();
    let write = |context: &Context, time: u64| {
        let options = WriteOptions::new().timestamp(time);
        let mut writer = context.array(&uri).writer(options).unwrap();
        let columns = [
            ColumnBuffers::of_values("x", vec![time as i32]),
            ColumnBuffers::of_values("a", vec![7i32]),
        ];
        writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    };
    let plain = context();
    plain.array(&uri).create_at(make, 1).unwrap();
    write(&plain, 10);
    write(&plain, 20);
    let value = 10i32.to_le_bytes().to_vec();
    let condition = Condition::compare("x", Comparison::Eq, value);
    plain
        .array(&uri)
        .delete_cells(&condition, Some(30))
        .unwrap();
    let (place, other) = (uri.clone(), plain.clone());
    let named = std::sync::Once::new();
    let context = plain.observed(move |_| {
        named.call_once(|| {
            let object = other.object(&place);
            object.create_snapshot("then", Some(25)).unwrap();
        });
    });
    let options = FragmentOptions::new().purge_deleted_cells(true);
    let refused = context.array(&uri).consolidate(&options).unwrap_err();
    assert!(refused.to_string().contains("then"), "{refused}");
    let shown = plain.array(&format!("{uri}@then")).open().unwrap();
    assert_eq!(shown.fragments().len(), 2);
}

#[test]
fn a_copy_with_large_files_goes_on() {
    let (_folder, [_, local]) = places();
    let (from, to) = (format!("{local}/a"), format!("{local}/b"));
    let context = context();
    make_array(&context, &from);
    let large = vec![7; 9 << 20];
    std::fs::write(format!("{from}/large"), &large).unwrap();
    context.object(&from).copy_to(&to).unwrap();
    // It was killed while it wrote that file, and before its end.
    let source = Uri::parse(&from).unwrap().to_string();
    for len in [1 << 20, large.len()] {
        std::fs::write(format!("{to}/large"), &large[..len]).unwrap();
        std::fs::write(format!("{to}/__azulejo_copy"), &source).unwrap();
        context.object(&from).copy_to(&to).unwrap();
        is_array(&context, &to);
        assert!(
            std::fs::read(format!("{to}/large")).unwrap() == large,
            "{len}"
        );
        assert!(context.object(&to).unfinished_copy().unwrap().is_none());
    }
}

#[test]
fn nothing_is_made_in_the_place_of_a_copy_and_a_copy_takes_nothing_away() {
    let (_folder, [_, local]) = places();
    let to = format!("{local}/b");
    let place = to.clone();
    // What a killed copy has left is somebody else's until it is deleted, or the copy ends.
    let (context, other) = hooked(BEGUN, move |context| {
        let new = ArraySchema::sparse().dimension("x", 0i32..=9, 10);
        let made = context.array(&place).create(new.build().unwrap());
        assert!(matches!(made, Err(Error::AlreadyExists { .. })), "{made:?}");
        let made = context.group(&place).create();
        assert!(matches!(made, Err(Error::AlreadyExists { .. })), "{made:?}");
    });
    make_array(&other, "mem://a");
    let now = crate::clock::next_timestamp();
    context.object("mem://a").copy_at(now, &to).unwrap();
    is_array(&other, &to);
    // Something that has come in between stays.
    make_group(&other, &format!("{local}/c"), &[]);
    let copied = context
        .object("mem://a")
        .copy_at(now, &format!("{local}/c"));
    assert!(
        matches!(copied, Err(Error::AlreadyExists { .. })),
        "{copied:?}"
    );
    assert!(other.group(&format!("{local}/c")).open().is_ok());
}

#[test]
fn nothing_is_added_to_an_array_that_was_made_where_another_was() {
    let (_folder, [memory, local]) = places();
    for place in [memory, format!("{local}/a")] {
        let context = context();
        let uri = place.as_str();
        let make = || {
            let new = ArraySchema::sparse()
                .dimension("x", 0i32..=99, 10)
                .attribute("a", Datatype::Int32)
                .build()
                .unwrap();
            context.array(uri).create(new).unwrap();
        };
        make();
        let cells = |x: i32| {
            let (x, a) = (vec![x], vec![x]);
            ColumnSet::of([
                ColumnBuffers::of_values("x", x),
                ColumnBuffers::of_values("a", a),
            ])
            .unwrap()
        };
        let open = |options| context.array(uri).writer(options).unwrap();
        let mut unordered = open(WriteOptions::new());
        let mut uncommitted = open(WriteOptions::new().uncommitted());
        let mut global = open(WriteOptions::new().layout(WriteLayout::Global));
        global.write(&cells(1)).unwrap();
        let mut several = open(
            WriteOptions::new()
                .layout(WriteLayout::Global)
                .max_fragment_size(1),
        );
        several.write(&cells(2)).unwrap();
        let mut keys = context.array(uri).change_metadata().unwrap();
        context.object(uri).delete(false).unwrap();
        make();
        let refused = |result: Result<()>| {
            let error = result.expect_err("it is another array");
            assert!(matches!(error, Error::NotFound { .. }), "{error}");
        };
        refused(unordered.write(&cells(3)));
        refused(uncommitted.write(&cells(4)));
        refused(global.finish().map(drop));
        refused(several.finish().map(drop));
        keys.put("k", MetadataValue::new(Datatype::Int8, [1]))
            .unwrap();
        refused(keys.commit());
        let array = context.array(uri).open().unwrap();
        assert!(array.fragments().is_empty() && array.metadata().unwrap().is_empty());
        let Location { storage, path } = array.location();
        for folder in ["__commits", "__fragments", "__meta"] {
            assert!(
                storage.list(&path.join(folder)).unwrap().is_empty(),
                "{folder}"
            );
        }
    }
}

#[test]
fn a_copy_beside_a_vacuum_is_whole() {
    let (_folder, [_, local]) = places();
    let to = format!("{local}/b");
    let (context, other) = hooked(BEGUN, |context| {
        let array = context.array("mem://a");
        array.consolidate_metadata(TimeRange::ALL).unwrap();
        let options = VacuumOptions::default();
        array.vacuum(Mode::ArrayMetadata, options).unwrap();
    });
    make_array(&other, "mem://a");
    put_key(&other, "mem://a", "more");
    context.object("mem://a").copy_to(&to).unwrap();
    is_array(&other, &to);
    let metadata = other.array(&to).open().unwrap();
    assert!(metadata.metadata().unwrap().get("more").is_some());
}

#[test]
fn one_copy_to_a_place_waits_for_another() {
    let (_folder, [_, local]) = places();
    let to = format!("{local}/b");
    let (second, result) = std::sync::mpsc::channel();
    let place = to.clone();
    let (context, other) = hooked(BEGUN, move |context| {
        let context = context.clone();
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let copied = context.object("mem://a").copy_to(&place);
            // Nobody listens any more where the copy has waited, as it should.
            let _ = done.send(());
            second.send(copied).unwrap();
        });
        let early = is_done.recv_timeout(std::time::Duration::from_millis(500));
        assert!(early.is_err(), "two copies at once");
    });
    make_array(&other, "mem://a");
    context.object("mem://a").copy_to(&to).unwrap();
    result.recv().unwrap().unwrap();
    is_array(&other, &to);
}

/// Keeps one folder whatever is deleted, as stores do that list the mark of a folder and cannot
/// name it.
#[derive(Debug)]
struct Sticky(MemoryStorage);

impl StorageLayer for Sticky {
    fn inner(&self) -> &dyn Storage {
        &self.0
    }

    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        let mut entries = self.0.list(dir)?;
        if dir.name() == "a" && entries.iter().all(|entry| entry.name != "__meta") {
            entries.push(Entry {
                name: "__meta".into(),
                is_dir: true,
                size: Some(0),
            });
        }
        Ok(entries)
    }
}

/// Has no room for another folder before a file of cells is gone, or never.
#[derive(Debug)]
struct Full {
    inner: MemoryStorage,
    is_full: AtomicBool,
    stays_full: bool,
}

/// Written to an array while room is made.
const LATE: &str = "__meta/__9_9_0123456789abcdef0123456789abcdef";

impl StorageLayer for Full {
    fn inner(&self) -> &dyn Storage {
        &self.inner
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        if self.is_full.load(Ordering::SeqCst) {
            let late = StorePath::memory("g/a").join(LATE);
            self.inner.put(&late, Bytes::from_static(b"late"))?;
            return Err(Error::Storage {
                op: "rename",
                uri: to.to_string(),
                source: std::io::ErrorKind::StorageFull.into(),
            });
        }
        self.inner.rename(from, to)
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        let mut paths_of_cells = paths.iter().filter(|path| path.name() == "a0.tdb");
        if !self.stays_full && paths_of_cells.any(|path| self.inner.size(path).is_ok()) {
            self.is_full.store(false, Ordering::SeqCst);
        }
        self.inner.delete(paths)
    }
}

#[test]
fn what_lies_on_a_full_disk_can_be_moved_to_another() {
    for stays_full in [false, true] {
        let (_folder, [_, to]) = places();
        let full = Arc::new(Full {
            inner: MemoryStorage::new(),
            is_full: AtomicBool::new(false),
            stays_full,
        });
        let local: Arc<dyn Storage> = Arc::new(LocalStorage::new());
        let memory = Arc::clone(&full) as Arc<dyn Storage>;
        let context = Context::with_storages(Config::default(), None, local, memory).unwrap();
        let new = ArraySchema::sparse()
            .dimension("x", 0i32..=99, 10)
            .attribute("a", Datatype::Int32)
            .build()
            .unwrap();
        context.array("mem://g/a").create(new).unwrap();
        make_group(&context, "mem://g", &[NewMember::relative("a")]);
        let x: Vec<i32> = (0..100).collect();
        let cells = [
            ColumnBuffers::of_values("x", x.clone()),
            ColumnBuffers::of_values("a", x),
        ];
        let mut writer = context
            .array("mem://g/a")
            .writer(WriteOptions::new())
            .unwrap();
        writer.write(&ColumnSet::of(cells).unwrap()).unwrap();
        writer.finish().unwrap();
        full.is_full.store(true, Ordering::SeqCst);
        let to = format!("{to}/g");
        context.object("mem://g").rename_to(&to).unwrap();
        assert_eq!(context.object("mem://g").object_type().unwrap(), None);
        assert_eq!(context.group(&to).open().unwrap().members().len(), 1);
        let moved = context.array(&format!("{to}/a")).open().unwrap();
        let read = moved.read(ReadOptions::new()).unwrap().read_all().unwrap();
        assert_eq!(read.cell_num, 100);
        let late = context.locate(&Uri::parse(&to).unwrap()).unwrap();
        let late = late.storage.size(&late.path.join("a").join(LATE));
        assert_eq!(late.unwrap(), 4);
    }
}

/// Killed where room was made for what hides the original, to which somebody has added since.
#[test]
fn a_move_off_a_full_disk_goes_on_where_cells_are_gone() {
    let (_folder, [_, local]) = places();
    let (context, to) = (context(), format!("{local}/b"));
    let new = ArraySchema::sparse()
        .dimension("x", 0i32..=99, 10)
        .attribute("a", Datatype::Int32);
    context
        .array("mem://a")
        .create(new.build().unwrap())
        .unwrap();
    let x = vec![1, 2];
    let cells = [
        ColumnBuffers::of_values("x", x.clone()),
        ColumnBuffers::of_values("a", x),
    ];
    let mut writer = context
        .array("mem://a")
        .writer(WriteOptions::new())
        .unwrap();
    writer.write(&ColumnSet::of(cells).unwrap()).unwrap();
    let written = writer.finish().unwrap();
    context.object("mem://a").copy_to(&to).unwrap();
    let note = context.locate(&Uri::parse(&to).unwrap()).unwrap();
    let body = Bytes::from_static(b"mem://a\nwhole");
    let path = note.path.join("__azulejo_copy");
    note.storage.put(&path, body).unwrap();
    let place = context.locate(&Uri::parse("mem://a").unwrap()).unwrap();
    let [fragment] = written.as_slice() else {
        panic!("one fragment");
    };
    let file = place.path.join(&format!("__fragments/{fragment}/a0.tdb"));
    assert!(place.storage.size(&file).is_ok());
    place.storage.delete(&[file]).unwrap();
    put_key(&context, "mem://a", "late");
    context.object("mem://a").rename_to(&to).unwrap();
    assert_eq!(context.object("mem://a").object_type().unwrap(), None);
    let moved = context.array(&to).open().unwrap();
    assert!(moved.metadata().unwrap().get("late").is_some());
    let read = moved.read(ReadOptions::new()).unwrap().read_all().unwrap();
    assert_eq!(read.cell_num, 2);
}

/// Members may lie beside their group: in circles of paths that grow, and where a copy has others.
#[test]
fn members_beside_a_group_are_met_once_and_a_copy_leaves_what_lies_beside_it() {
    let (_folder, [_, local]) = places();
    let context = context();
    let place = |name: &str| format!("{local}/{name}");
    make_array(&context, &place("g/a"));
    let group = |path: &str| NewMember::relative(path).typed(ObjectType::Group);
    let array = |path: &str| NewMember::relative(path).typed(ObjectType::Array);
    make_group(&context, &place("x"), &[group("../g"), array("../g/a")]);
    make_group(
        &context,
        &place("g"),
        &[group("../x"), array("a"), array("../later")],
    );
    let g = context.object(&place("g"));
    let then = crate::clock::next_timestamp();
    assert_eq!(g.create_snapshot("now", None).unwrap().len(), 3);
    // Those of labels, too.
    let written = g.write_manifests().unwrap().written;
    let of_labels = written.iter().filter(|one| one.uri.contains("__labels"));
    assert_eq!(written.len() - of_labels.count(), 3);

    // It was not there then.
    make_array(&context, &place("later"));
    let copied = g.copy_at(then, &place("g/../b")).unwrap();
    assert_eq!((copied.objects, copied.elsewhere.len()), (2, 2));
    is_array(&context, &place("b/a"));
    is_array(&context, &place("later"));
    assert_eq!(
        context.group(&place("b")).open().unwrap().members().len(),
        3
    );
    let inside = g.copy_to(&place("x/../g/b")).unwrap_err();
    assert!(matches!(inside, Error::InvalidArgument(_)), "{inside}");

    assert_eq!(g.delete(true).unwrap().len(), 4);
    for name in ["g", "g/a", "x", "later"] {
        let found = context.object(&place(name)).object_type().unwrap();
        assert_eq!(found, None, "{name}");
    }
}

#[test]
fn what_cannot_be_deleted_is_an_error() {
    let local: Arc<dyn Storage> = Arc::new(LocalStorage::new());
    let memory: Arc<dyn Storage> = Arc::new(Sticky(MemoryStorage::new()));
    let context = Context::with_storages(Config::default(), None, local, memory).unwrap();
    make_array(&context, "mem://a");
    let error = context.object("mem://a").delete(false).unwrap_err();
    assert!(error.to_string().contains("__meta"), "{error}");
    assert!(context.array("mem://a").open().is_err());
}

#[test]
fn a_vacuum_waits_for_who_names_a_moment() {
    let (_folder, [_, local]) = places();
    let uri = format!("{local}/a");
    let (done, is_done) = std::sync::mpsc::channel();
    let place = uri.clone();
    // What the snapshot shows is written down; it is not named yet.
    let when: When = |path, _| path.as_str().contains("/shown/");
    let (context, other) = hooked(when, move |context| {
        let context = context.clone();
        let (sender, vacuumed) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let array = context.array(&place);
            let vacuumed = array.vacuum(Mode::Fragments, VacuumOptions::default());
            let _ = sender.send(());
            done.send(vacuumed.map(drop)).unwrap();
        });
        let early = vacuumed.recv_timeout(std::time::Duration::from_millis(500));
        assert!(early.is_err(), "a vacuum between the two");
    });
    make_array(&other, &uri);
    context.object(&uri).create_snapshot("now", None).unwrap();
    is_done.recv().unwrap().unwrap();
}

/// A bucket that stops at one of its changes, as seen by who is killed there. Claims are renewed
/// all the same: nobody has to wait until the dead are taken for that.
#[cfg(feature = "object-store")]
#[derive(Debug)]
struct Stopping {
    bucket: crate::storage::ObjectStorage,
    left: std::sync::atomic::AtomicI64,
}

#[cfg(feature = "object-store")]
impl Stopping {
    fn check(&self, path: &StorePath) -> Result<()> {
        let is_claim = path.name().starts_with("__azulejo_claim");
        match is_claim || self.left.fetch_sub(1, Ordering::SeqCst) > 0 {
            true => Ok(()),
            false => Err(Error::Internal("it was killed".into())),
        }
    }
}

#[cfg(feature = "object-store")]
impl StorageLayer for Stopping {
    fn inner(&self) -> &dyn Storage {
        &self.bucket
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.check(path)?;
        self.bucket.put(path, body)
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        paths.iter().try_for_each(|path| self.check(path))?;
        self.bucket.delete(paths)
    }

    fn copy_here(&self, from: &StorePath, to: &StorePath) -> Result<bool> {
        self.check(to)?;
        self.bucket.copy_here(from, to)
    }

    fn copy_all_here(&self, copies: &[(StorePath, StorePath)]) -> Result<bool> {
        for (from, to) in copies {
            if !StorageLayer::copy_here(self, from, to)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Many objects in another bucket, or one after another.
    fn rename(&self, _from: &StorePath, _to: &StorePath) -> Result<()> {
        Err(Error::Internal("nothing moves at once".into()))
    }
}

#[cfg(feature = "object-store")]
#[test]
fn a_move_in_an_object_store_can_be_gone_on_with() {
    let mut stops = 0;
    for after in 0.. {
        let bucket = crate::storage::ObjectStorage::in_memory();
        let with = |storage: Arc<dyn Storage>| context().with_scheme("bucket", storage).unwrap();
        let sound = with(Arc::new(bucket.clone()));
        make_array(&sound, "bucket://a");
        let stopping = with(Arc::new(Stopping {
            bucket,
            left: after.into(),
        }));
        let moved = stopping.object("bucket://a").rename_to("bucket://b");
        let again = sound.object("bucket://a").rename_to("bucket://b");
        match (&moved, again) {
            (_, Err(Error::NotFound { .. })) if moved.is_ok() => {}
            (_, again) => again.unwrap(),
        }
        is_array(&sound, "bucket://b");
        assert!(sound.array("bucket://a").open().is_err());
        if moved.is_ok() {
            break;
        }
        stops += 1;
    }
    assert!(stops > 5, "{stops}");
}

/// Many files at a time, and here only where nothing else can be.
#[cfg(feature = "object-store")]
#[test]
fn copies_in_and_between_object_stores_are_whole() {
    let (one, other) = (
        crate::storage::ObjectStorage::in_memory(),
        crate::storage::ObjectStorage::in_memory(),
    );
    let context = context()
        .with_scheme("one", Arc::new(one.clone()))
        .and_then(|context| context.with_scheme("other", Arc::new(other)))
        .unwrap();
    make_array(&context, "one://a");
    for i in 0..200 {
        put(&context, &format!("one://a/mine/{i}"));
    }
    // As a listing shows an object that stands for an empty folder.
    let mark = Uri::parse("one://a/__fragment_meta").unwrap();
    one.put(mark.path(), Bytes::new()).unwrap();
    for (from, to, reads) in [
        ("one://a", "one://b", false),
        ("one://b", "other://c", true),
        ("other://c", "mem://d", false),
        ("mem://d", "one://e", false),
    ] {
        let before = one.io_stats();
        context.object(from).copy_to(to).unwrap();
        is_array(&context, to);
        let gets = one.io_stats().since(&before).requests(IoOp::Get);
        assert_eq!(gets > 200, reads, "{from} to {to}: {gets}");
        let location = context.locate(&Uri::parse(to).unwrap()).unwrap();
        let mine = location.storage.list(&location.path.join("mine")).unwrap();
        assert_eq!(mine.len(), 200, "{to}");
        assert!(mine.iter().all(|entry| entry.size == Some(4)), "{to}");
        let copied = location.storage.list(&location.path).unwrap();
        let is_mark = |entry: &Entry| entry.name == "__fragment_meta";
        assert!(!copied.iter().any(is_mark), "{to}");
        // All of it is there already.
        context.object(from).copy_to(to).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn what_no_listing_shows_is_neither_lost_nor_left_out() {
    use std::os::unix::ffi::OsStrExt;
    let (folder, [_, local]) = places();
    let context = context();
    let unnamed = std::ffi::OsStr::from_bytes(b"caf\xe9");
    let put_link = |path: &std::path::Path| std::os::unix::fs::symlink("nowhere", path).unwrap();
    for (number, is_link) in [(0, true), (1, false)] {
        let uri = format!("{local}/{number}");
        make_array(&context, &uri);
        let native = folder.path().join(number.to_string());
        let hidden = if is_link {
            native.join("link")
        } else {
            native.join(unnamed)
        };
        match is_link {
            true => put_link(&hidden),
            false => std::fs::write(&hidden, "mine").unwrap(),
        }
        for to in ["mem://x".to_owned(), format!("{local}/x")] {
            let copied = context.object(&uri).copy_to(&to).unwrap_err();
            assert!(matches!(copied, Error::Unsupported(_)), "{copied}");
            let moved = context.object(&uri).rename_to(&to).unwrap_err();
            assert!(matches!(moved, Error::Unsupported(_)), "{moved}");
        }
        assert!(!folder.path().join("x").exists());
        is_array(&context, &uri);
        context.object(&uri).delete(false).unwrap();
        assert!(hidden.symlink_metadata().is_ok());
        // Nothing is made where it lies, and removed with it.
        make_array(&context, "mem://a");
        let past = context.object("mem://a").copy_at(u64::MAX >> 1, &uri);
        assert!(matches!(past, Err(Error::AlreadyExists { .. })), "{past:?}");
        let copied = context.object("mem://a").copy_to(&uri);
        assert!(
            matches!(copied, Err(Error::AlreadyExists { .. })),
            "{copied:?}"
        );
        assert!(hidden.symlink_metadata().is_ok());
        context.object("mem://a").delete(false).unwrap();
    }
}

/// What was killed while it made an array takes nothing for its own that somebody else made there.
#[test]
fn what_others_make_beside_a_note_stays() {
    let folder = tempfile::tempdir().unwrap();
    let context = context();
    for root in ["mem://notes", folder.path().to_str().unwrap()] {
        let uri = format!("{root}/array");
        let object = context.object(&uri);
        let schema = || {
            let schema = ArraySchema::sparse()
                .dimension("x", 0i32..=99, 10)
                .attribute("a", Datatype::Int8);
            schema.build().unwrap()
        };
        let make = |time: u64| {
            context.array(&uri).create_at(schema(), time).unwrap();
        };
        let told = || {
            let report = context.array(&uri).check(CheckOptions::default()).unwrap();
            let mut findings = report.findings.into_iter();
            let note = findings.find(|finding| finding.path.name() == UNFINISHED);
            note.map(|note| (note.severity, matches!(note.fix, Fix::Remove(_))))
        };
        // Killed before there was an array, and killed while it was written.
        object.begin_making("a file", Some(10)).unwrap();
        assert_eq!(object.unfinished().unwrap().as_deref(), Some("a file"));
        object.begin_making("a file", Some(20)).unwrap();
        // Killed before there was a schema: with an enumeration, which comes before it, in its folder.
        let place = context.locate(&Uri::parse(&uri).unwrap()).unwrap();
        let labels = place.path.join("__schema/__enumerations/__1_0");
        place
            .storage
            .put(&labels, Bytes::from_static(b"x"))
            .unwrap();
        assert_eq!(object.unfinished().unwrap().as_deref(), Some("a file"));
        object.begin_making("a file", Some(20)).unwrap();
        make(20);
        assert_eq!(object.unfinished().unwrap().as_deref(), Some("a file"));
        assert_eq!(told(), Some((Severity::Warning, false)));
        object.begin_making("a file", Some(30)).unwrap();
        assert_eq!(object.object_type().unwrap(), None);
        // Somebody else makes one, who knows nothing of notes.
        make(25);
        assert_eq!(object.unfinished().unwrap(), None);
        assert_eq!(told(), Some((Severity::Note, true)));
        let refused = object.begin_making("a file", Some(40)).unwrap_err();
        assert!(matches!(refused, Error::AlreadyExists { .. }), "{refused}");
        assert_eq!(object.object_type().unwrap(), Some(ObjectType::Array));
        let refused = object.begin_making("another", Some(40)).unwrap_err();
        assert!(matches!(refused, Error::AlreadyExists { .. }), "{refused}");
        context.array(&uri).open().unwrap();
        object.delete(false).unwrap();

        // Groups.
        let object = context.object(&format!("{root}/group"));
        object.begin_making("a dataset", None).unwrap();
        make_group(&context, &format!("{root}/group"), &[]);
        assert_eq!(object.unfinished().unwrap().as_deref(), Some("a dataset"));
        object.begin_making("a dataset", None).unwrap();
        assert_eq!(object.object_type().unwrap(), None);
        // Somebody else makes one there, or an array.
        let uri = format!("{root}/group");
        make_group(&context, &uri, &[]);
        make_group(&context, &format!("{uri}/inner"), &[]);
        let mut editor = context.group(&uri).edit().unwrap();
        editor.add(NewMember::relative("inner")).unwrap();
        editor.commit().unwrap();
        assert_eq!(object.unfinished().unwrap(), None);
        let refused = object.begin_making("a dataset", None).unwrap_err();
        assert!(matches!(refused, Error::AlreadyExists { .. }), "{refused}");
        assert_eq!(object.object_type().unwrap(), Some(ObjectType::Group));
        let uri = format!("{root}/instead");
        let object = context.object(&uri);
        object.begin_making("a dataset", None).unwrap();
        context.array(&uri).create(schema()).unwrap();
        assert_eq!(object.unfinished().unwrap(), None);
        let refused = object.begin_making("a dataset", None).unwrap_err();
        assert!(matches!(refused, Error::AlreadyExists { .. }), "{refused}");
    }
}

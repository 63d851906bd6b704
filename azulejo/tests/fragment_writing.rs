//! Fragments that the reference wrote, written again: the same bytes where they are determined, the
//! same cells always.

mod support;

use azulejo::column::FieldView;
use azulejo::context::Location;
use azulejo::format::datatype::Datatype;
use azulejo::format::fragment::FragmentMetadata;
use azulejo::format::path::FRAGMENT_METADATA_FILE;
use azulejo::format::timestamped_name::TimestampedName;
use azulejo::format::{ArraySchema, FormatVersion, NdRectangle, Range};
use azulejo::internal::{FragmentSink, FragmentSpec, TileView};
use azulejo::storage::{Entry, ReadRange, ReadRequest, Storage, StorePath, Uri};
use azulejo::{Array, Config, Context};
use serde_json::Value;
use std::sync::Arc;
use support::cells::{self, Cells};
use support::{check, pack, rewrite};

/// Calls `visit` with every readable array of the pack and what is to be read from it.
fn every_array(mut visit: impl FnMut(&str, &Array, &Value, Option<Vec<Cells>>)) {
    let files = pack::files();
    let memory = pack::memory(&files, "made/");
    let keys: Value = serde_json::from_slice(&files["keys.json"]).expect("keys");
    for (path, bytes) in &files {
        let Some(name) = path
            .strip_prefix("expected/")
            .and_then(|p| p.strip_suffix(".json"))
        else {
            continue;
        };
        let json: Value = serde_json::from_slice(bytes).expect("JSON");
        if json["kind"] == "group" || json["readable"] == false {
            continue;
        }
        let key = check::key_of(name, &keys).expect("a key");
        let context = pack::context(
            Config::default(),
            key,
            Arc::clone(&memory) as Arc<dyn Storage>,
        );
        let want = files
            .get(&format!("expected/{name}.cells"))
            .map(|bytes| cells::decode(bytes));
        visit(
            name,
            &context
                .array(&format!("mem://{name}"))
                .open()
                .expect("it opens"),
            &json,
            want,
        );
    }
}

#[test]
fn metadata_files_come_out_as_they_went_in() {
    let (mut same, mut odd, mut failures) = (0, 0, Vec::new());
    every_array(|name, array, _, _| {
        for fragment in array
            .fragments()
            .iter()
            .filter(|f| f.version().has_nullable())
        {
            match rewrite::metadata_round_trip(array, fragment) {
                Ok(true) => same += 1,
                Ok(false) => odd += 1,
                Err(text) => failures.push(format!("{name} {}: {text:.600}", fragment.name())),
            }
        }
    });
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        same,
        failures.join("\n")
    );
    assert!(
        same > 500 && odd < 20,
        "{same} files are the same, {odd} have other bytes between sections"
    );
}

/// Copies what is not in a fragment's folder: schemas, commits, deletes, metadata.
fn copy_rest(storage: &dyn Storage, from: &StorePath, to: &StorePath) {
    for Entry { name, is_dir, .. } in storage.list(from).expect("a folder") {
        let (from, to) = (from.join(&name), to.join(&name));
        let fragment = azulejo::format::path::fragment_entry(&name).is_some();
        if is_dir && !fragment {
            copy_rest(storage, &from, &to);
        } else if !is_dir && !name.ends_with(".meta") {
            let request = ReadRequest {
                path: from,
                range: ReadRange::All,
            };
            storage
                .put(&to, storage.read(&[request]).expect("a file").remove(0))
                .expect("memory takes it");
        }
    }
}

#[test]
fn copied_fragments_have_the_references_metadata_files_and_cells() {
    let (mut fragments, mut files, mut failures) = (0, 0, Vec::new());
    every_array(|name, array, json, want| {
        if !array.fragments().iter().all(|f| f.version().is_writable()) {
            return;
        }
        let from = array.location();
        let to = Location {
            storage: Arc::clone(&from.storage),
            path: StorePath::memory("copy").join(name),
        };
        copy_rest(&*from.storage, &from.path, &to.path);
        for (i, fragment) in array.fragments().iter().enumerate() {
            if let Err(text) = rewrite::copy_fragment(array, i, &to, 1 + fragments % 4) {
                return failures.push(format!("{name} {}: {text}", fragment.name()));
            }
            fragments += 1;
        }
        let uri = to.path.to_string();
        if let Err(text) = check::object(array.context(), &uri, json, want) {
            failures.push(format!("{name}: {text:.300}"));
        }
        let copy = match array.context().array(&uri).open() {
            Ok(copy) => copy,
            Err(e) => return failures.push(format!("{name}: {e}")),
        };
        for (fragment, copy) in array.fragments().iter().zip(copy.fragments()) {
            let mut note =
                |text: String| failures.push(format!("{name} {}: {text}", fragment.name()));
            match rewrite::differences(array, fragment, copy) {
                Ok(differences) => differences.into_iter().for_each(&mut note),
                Err(text) => note(text),
            }
            // Encoders of earlier releases left other bytes in their padding.
            if name.contains("/2.30.0/") {
                let (same, different) = rewrite::compare_files(array, fragment, copy);
                files += same;
                different
                    .into_iter()
                    .for_each(|file| note(format!("{file} has other bytes")));
            }
        }
    });
    assert!(
        failures.is_empty(),
        "{} of {fragments} fragments:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(
        fragments > 900 && files > 100,
        "{fragments} fragments, {files} files with the same bytes"
    );
}

/// A sink of sparse cells with one dimension and one attribute, in a memory storage of its own.
fn sink(version: u32, change: impl FnOnce(&mut FragmentSpec)) -> azulejo::Result<FragmentSink> {
    let context = Context::new(Config::default(), None).expect("a context");
    let mut schema = ArraySchema::sparse()
        .dimension("x", 0i64..=99, 10)
        .attribute("a", Datatype::Int32)
        .build()
        .expect("a schema")
        .schema;
    schema.capacity = 4;
    let location = context
        .locate(&Uri::parse("mem://sink").expect("a URI"))
        .expect("a place");
    let mut spec = FragmentSpec {
        location,
        schema: Arc::new(schema),
        schema_name: "__1_1_00".into(),
        name: TimestampedName::versioned(1, 1, version),
        dense_domain: None,
        timestamps: false,
        delete_metadata: false,
        processed_conditions: Vec::new(),
    };
    change(&mut spec);
    FragmentSink::new(&context, spec)
}

const CELLS: [u8; 64] = [7; 64];

/// A tile of cells of 4 and of 8 bytes.
fn tile(cell_num: usize) -> TileView<'static> {
    let field = |cell_size: usize| FieldView {
        cell_num,
        data: &CELLS[..cell_num * cell_size],
        offsets: None,
        validity: None,
        cell_size,
    };
    TileView {
        cell_num: cell_num as u64,
        fields: vec![field(4), field(8)],
        written: None,
    }
}

#[test]
fn fragments_that_cannot_be_are_refused() {
    let refused = |result: azulejo::Result<FragmentSink>| result.expect_err("refused").to_string();
    assert!(refused(sink(6, |_| ())).contains("upgrade"));
    assert!(refused(sink(24, |_| ())).contains("24"));
    assert!(refused(sink(13, |spec| spec.timestamps = true)).contains("timestamps"));
    assert!(refused(sink(14, |spec| spec.delete_metadata = true)).contains("delete metadata"));
    let domain = || NdRectangle {
        ranges: vec![Range::of(0i64, 9)],
    };
    assert!(refused(sink(22, |spec| spec.dense_domain = Some(domain()))).contains("sparse"));
    sink(14, |spec| spec.timestamps = true).expect("since v14");
}

#[test]
fn tiles_that_do_not_fit_are_refused() {
    let push = |tiles: &[TileView<'_>]| sink(22, |_| ()).expect("a sink").push(tiles);
    push(&[tile(4), tile(4), tile(1)]).expect("they fit");
    assert!(
        push(&[tile(3), tile(4)]).is_err(),
        "a tile behind one that is not full"
    );
    assert!(
        push(&[tile(0)]).is_err() && push(&[tile(5)]).is_err(),
        "0 or more than the capacity"
    );
    let few = TileView {
        fields: tile(4).fields[..1].to_vec(),
        ..tile(4)
    };
    assert!(push(&[few]).is_err(), "a field is missing");
    let mut short = tile(4);
    short.fields[1].data = &CELLS[..31];
    assert!(push(&[short]).is_err(), "data are missing");
    let unsorted = TileView {
        written: Some(vec![2..3, 0..1]),
        ..tile(4)
    };
    assert!(push(&[unsorted]).is_err(), "written cells in no order");

    let mut twice = sink(22, |_| ()).expect("a sink");
    twice.push(&[tile(2)]).expect("the last tile");
    assert!(twice.push(&[tile(2)]).is_err(), "a tile behind the last");
    assert!(
        sink(22, |_| ()).expect("a sink").finish().is_err(),
        "no tile at all"
    );
}

#[test]
fn a_dropped_or_discarded_fragment_leaves_nothing() {
    let mut dropped = sink(22, |_| ()).expect("a sink");
    dropped.push(&[tile(4)]).expect("it fits");
    assert!(dropped.stored_size() > 48);
    drop(dropped);
    let mut storage = None;
    let mut discarded = sink(22, |spec| storage = Some(spec.location.clone())).expect("a sink");
    discarded.push(&[tile(4)]).expect("it fits");
    let written = discarded.finish().expect("it is written");
    let Some(Location { storage, path }) = storage else {
        panic!("a sink has a place")
    };
    assert_eq!(
        storage
            .list(&path.join("__fragments"))
            .expect("a folder")
            .len(),
        1
    );
    let sizes = storage
        .list(written.folder())
        .expect("a folder")
        .iter()
        .map(|e| e.size.unwrap_or(0))
        .sum::<u64>();
    assert_eq!(written.stored_size(), sizes);
    written.discard().expect("it goes");
    assert!(
        storage
            .list(&path.join("__fragments"))
            .expect("a folder")
            .is_empty()
    );
}

#[test]
fn a_fragment_that_was_removed_is_not_committed() {
    let mut place = None;
    let mut removed = sink(22, |spec| place = Some(spec.location.clone())).expect("a sink");
    removed.push(&[tile(4)]).expect("it fits");
    let written = removed.finish().expect("it is written");
    let Some(Location { storage, path }) = place else {
        panic!("a sink has a place")
    };
    // As a repair beside it does.
    storage
        .delete(&[written.folder().clone()])
        .expect("it goes");
    let refused = written.commit().expect_err("it is gone").to_string();
    assert!(
        refused.contains("removed while it was written"),
        "{refused}"
    );
    let commits = storage.list(&path.join("__commits")).expect("a folder");
    assert!(commits.is_empty(), "{commits:?}");
}

#[test]
fn newer_fragments_say_which_cells_their_tiles_begin_and_end_with() {
    let newest = FormatVersion::NEWEST;
    let mut spec_of = None;
    let mut sink = sink(newest.number(), |spec| spec_of = Some(spec.clone())).expect("a sink");
    sink.push(&[tile(4), tile(2)]).expect("they fit");
    let written = sink.finish().expect("it is written");
    let spec = spec_of.expect("a spec");
    let path = written.folder().join(FRAGMENT_METADATA_FILE);
    let file = spec
        .location
        .storage
        .read(&[ReadRequest {
            path,
            range: ReadRange::All,
        }])
        .expect("a file");
    let metadata =
        FragmentMetadata::decode(&file[0], newest, &spec.schema, None, 1 << 20).expect("metadata");
    assert_eq!(metadata.global_order.len(), 1);
    let (firsts, lasts) = &metadata.global_order[0];
    assert_eq!((firsts.len(), lasts.get(1)), (2, Some(&CELLS[..8])));
}

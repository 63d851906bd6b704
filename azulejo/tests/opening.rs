//! Opening packed arrays of the reference: which requests it takes, what counts at a time, keys,
//! and what is no array.

#[path = "support/pack.rs"]
mod pack;

use azulejo::array::{Array, Fragment, TimeRange};
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::fragment::{ConsolidatedFragmentMetadata, Field, FilePart, Section};
use azulejo::format::tile::GenericTile;
use azulejo::format::{ArraySchema, Datatype};
use azulejo::group::{NewMember, ObjectType};
use azulejo::read::ReadOptions;
use azulejo::storage::{
    MemoryStorage, ReadRange, ReadRequest, Request, RequestLog, RequestLogStorage, Storage,
    StorePath,
};
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, Error};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An array of the pack in a memory storage whose requests are logged.
struct Opened {
    memory: Arc<MemoryStorage>,
    log: RequestLog,
    context: Context,
    uri: String,
}

fn logged(files: &BTreeMap<String, Bytes>, name: &str) -> Opened {
    let memory = pack::memory(files, &format!("{name}/"));
    let storage = RequestLogStorage::new(Arc::clone(&memory) as Arc<dyn Storage>);
    let log = storage.log();
    let context = pack::context(Config::default(), None, Arc::new(storage));
    Opened {
        memory,
        log,
        context,
        uri: format!("mem://{name}"),
    }
}

impl Opened {
    fn open(&self, time: TimeRange) -> Array {
        self.context
            .array(&self.uri)
            .open_at(time)
            .expect("it opens")
    }

    fn names(&self, time: TimeRange) -> Vec<String> {
        self.open(time)
            .fragments()
            .iter()
            .map(|f| f.name().to_owned())
            .collect()
    }

    fn path(&self, path: &str) -> StorePath {
        StorePath::memory(self.uri.strip_prefix("mem://").expect("a memory URI")).join(path)
    }

    /// Paths read, relative to the array, by batch.
    fn batches(&self) -> Vec<Vec<String>> {
        let root = self.path("");
        let mut batches: Vec<Vec<String>> = Vec::new();
        for request in self.log.requests() {
            if let Request::Read { path, batch, .. } = request {
                batches.resize(batches.len().max(batch + 1), Vec::new());
                batches[batch].push(path.relative_to(&root).expect("below the array").to_owned());
            }
        }
        batches
    }
}

fn between(start: u64, end: u64) -> TimeRange {
    TimeRange { start, end }
}

#[test]
fn opening_lists_the_folders_that_there_are_and_reads_two_batches() {
    let files = pack::files();
    let opened = logged(&files, "made/feat/2.30.0/consolidate_vacuum");
    let array = opened.open(TimeRange::ALL);
    // Three footers of four come from consolidated fragment metadata.
    let meta =
        "__fragment_meta/__1795209783007_1795209784118_0a2a2d90c139f07cf44302c88622dec4_22.meta";
    let schema = "__schema/__1795209782981_1795209782981_525ab25a7241fa0c27a8e6483ae9dc2a";
    let last = "__fragments/__1795209784171_1795209784171_365c81a36bd5bd17c3f0c7be61533fc3_22";
    // The newer footer is asked for beside the schema and what tells the others: neither waits.
    let newer = vec![format!("{last}/__fragment_metadata.tdb")];
    let others = vec![schema.to_owned(), meta.to_owned()];
    assert_eq!(opened.batches(), [newer, others]);
    assert_eq!(opened.log.list_num(), 4, "no __meta in the array's folder");
    assert!(
        opened.log.bytes_read() < 16 * 1024,
        "{} bytes",
        opened.log.bytes_read()
    );
    let consolidated: Vec<bool> = array
        .fragments()
        .iter()
        .map(Fragment::has_consolidated_footer)
        .collect();
    assert_eq!(consolidated, [true, true, true, false]);
    assert_eq!(
        array
            .fragments()
            .iter()
            .map(Fragment::cell_num)
            .collect::<Vec<_>>(),
        [48, 12, 12, 12]
    );
}

#[test]
fn opening_many_fragments_reads_the_end_of_each_once() {
    let files = pack::files();
    for name in [
        "made/rand/2.10.4/r102",
        "made/rand/2.11.3/r100",
        "made/rand/2.0.8/r101",
        "made/rand/1.7.0/r104",
    ] {
        let opened = logged(&files, name);
        let fragments = opened.open(TimeRange::ALL).fragments().len();
        assert!(fragments >= 2, "{name}");
        // Schemas and fragments are read side by side.
        let batches = opened.batches();
        assert_eq!(batches.len(), 2, "{name}: {batches:?}");
        let of_fragments = |path: &String| path.contains("fragment_metadata");
        let footers = batches
            .iter()
            .find(|batch| batch.iter().all(of_fragments))
            .map_or(0, Vec::len);
        assert_eq!(footers, fragments, "{name}: {batches:?}");
        assert!(
            !opened
                .log
                .requests()
                .iter()
                .any(|r| matches!(r, Request::Size(_))),
            "{name}"
        );
    }
}

#[test]
fn to_write_only_schemas_are_looked_at() {
    let files = pack::files();
    // Versions whose fragments lie below a folder of their own, and beside everything else.
    for name in [
        "made/feat/2.30.0/consolidate_vacuum",
        "made/rand/2.0.8/r101",
    ] {
        let opened = logged(&files, name);
        let array = opened
            .context
            .array(&opened.uri)
            .snapshot_to_write()
            .expect("it opens")
            .array()
            .expect("it opens");
        let batches = opened.batches();
        assert_eq!(
            (opened.log.list_num(), batches.len()),
            (2, 1),
            "{name}: {batches:?}"
        );
        assert!(
            batches[0].iter().all(|path| path.contains("schema")),
            "{name}: {batches:?}"
        );
        assert!(array.fragments().is_empty());
        assert_eq!(array.schema(), opened.open(TimeRange::ALL).schema());
    }
    let nothing = logged(&files, "made/none");
    assert!(matches!(
        nothing.context.array(&nothing.uri).snapshot_to_write(),
        Err(Error::NotFound { .. })
    ));
}

#[test]
fn sections_are_read_in_one_batch_and_once() {
    let files = pack::files();
    let opened = logged(&files, "made/feat/2.30.0/consolidate_vacuum");
    let array = opened.open(TimeRange::ALL);
    let _ = opened.log.take();
    let wanted: Vec<_> = (0..array.fragments().len())
        .flat_map(|i| {
            let field = Field::Attribute(0);
            [
                (i, Section::RTree),
                (i, Section::TileOffsets(field)),
                (i, Section::TileMins(field)),
                (i, Section::RTree),
            ]
        })
        .collect();
    array.preload(&wanted).expect("sections");
    // The last fragment's metadata came with its footer; the others' are three ranges each.
    assert_eq!((opened.log.batch_num(), opened.log.read_num()), (1, 9));
    array.preload(&wanted).expect("sections");
    for fragment in array.fragments() {
        assert_eq!(
            fragment.rtree().expect("an R-tree").tile_num() as u64,
            fragment.tile_num()
        );
        let mut end = 0;
        for tile in 0..fragment.tile_num() {
            let range = fragment
                .stored_tile_range(Field::Attribute(0), FilePart::Data, tile)
                .expect("a range");
            assert_eq!(range.start, end);
            end = range.end;
        }
        assert_eq!(fragment.footer().file_size(Field::Attribute(0)), Some(end));
        assert!(
            fragment
                .stored_tile_range(Field::Attribute(0), FilePart::Data, fragment.tile_num())
                .is_err()
        );
    }
    assert_eq!((opened.log.batch_num(), opened.log.read_num()), (1, 9));
}

#[test]
fn a_snapshot_counts_what_lies_in_its_time() {
    let files = pack::files();
    // Four writes, consolidated with a timestamp for each cell and vacuumed; three later writes.
    let opened = logged(&files, "made/feat/2.30.0/consolidate_vacuum");
    let name = |time: &str, id: &str| format!("__{time}_{id}_22");
    let both = name(
        "1795209783007_1795209783088",
        "1b6d9c61fe31321b2597811bb0403c41",
    );
    let later = name(
        "1795209784087_1795209784087",
        "40d8e50394d4b31005a013e6b5d174b2",
    );
    assert_eq!(
        opened.names(TimeRange::until(1_795_209_784_100)),
        [both.clone(), later.clone()]
    );
    assert_eq!(
        opened.names(TimeRange::until(1_795_209_783_020)),
        std::slice::from_ref(&both),
        "a part of it"
    );
    assert_eq!(
        opened.names(between(1_795_209_783_080, 1_795_209_784_086)),
        [both]
    );
    assert_eq!(
        opened.names(between(1_795_209_784_080, 1_795_209_784_100)),
        [later]
    );
    assert_eq!(opened.names(TimeRange::until(1_795_209_783_006)), [""; 0]);
    assert_eq!(opened.names(between(u64::MAX, 1_795_209_784_086)), [""; 0]);
}

#[test]
fn what_was_consolidated_without_timestamps_gives_way_to_its_parts() {
    let files = pack::files();
    // An array of v8 that still has its originals, whose vacuum file names them by another path.
    let opened = logged(&files, "made/mixed/2.2.9");
    let now = opened.open(TimeRange::ALL);
    assert_eq!(now.fragments().len(), 3);
    assert_eq!(now.fragments_to_vacuum().len(), 5);
    let first = now.fragments()[0].time_range();
    assert!(first.start < first.end);
    let parts = opened.names(TimeRange::until(first.end - 1));
    assert!(
        parts.len() == 4 && !parts.contains(&now.fragments()[0].name().to_owned()),
        "{parts:?}"
    );
    assert_eq!(
        opened.names(TimeRange::until(first.end)),
        [now.fragments()[0].name()]
    );
}

#[test]
fn commits_in_consolidated_files_count_unless_ignored() {
    let files = pack::files();
    let opened = logged(&files, "made/feat/2.30.0/commits_consolidated");
    assert_eq!(
        opened.names(TimeRange::ALL).len(),
        1,
        "five more are in the file and ignored"
    );
    let folder = opened.path("__commits");
    let listed = opened.memory.list(&folder).expect("a listing");
    let ignore = listed
        .iter()
        .find(|e| e.name.ends_with(".ign"))
        .expect("an ignore file");
    opened
        .memory
        .delete(&[folder.join(&ignore.name)])
        .expect("deleted");
    // Now the vacuumed fragments are committed again, but gone.
    let missing = opened
        .context
        .array(&opened.uri)
        .open()
        .expect_err("they are gone");
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
}

#[test]
fn deletes_are_found_wherever_they_are() {
    let files = pack::files();
    for name in [
        "made/feat/2.12.3/deletes_consolidated",
        "made/feat/2.30.0/deletes_consolidated",
    ] {
        let opened = logged(&files, name);
        let array = opened.open(TimeRange::ALL);
        let times: Vec<u64> = array.deletes().iter().map(|d| d.timestamp).collect();
        assert!(times.len() == 2 && times.is_sorted(), "{name}: {times:?}");
        // Two files, which a consolidated commits file holds as well: each counts once, and without
        // its file too.
        for delete in array.deletes() {
            assert!(
                delete.name.starts_with("__commits/") && delete.name.ends_with(".del"),
                "{}",
                delete.name
            );
            opened
                .memory
                .delete(&[opened.path(&delete.name)])
                .expect("deleted");
        }
        assert_eq!(
            opened.open(TimeRange::ALL).deletes(),
            array.deletes(),
            "{name}"
        );
        assert_eq!(
            opened.open(TimeRange::until(times[1] - 1)).deletes().len(),
            1,
            "{name}"
        );
        let processed = array.fragments()[0]
            .processed_conditions()
            .expect("conditions");
        let known = |name: &String| array.deletes().iter().any(|d| d.name == *name);
        assert!(
            !processed.is_empty() && processed.iter().all(known),
            "{name}: {processed:?}"
        );
    }
}

#[test]
fn strangers_in_the_folders_are_passed_by() {
    let files = pack::files();
    let opened = logged(&files, "made/feat/2.30.0/consolidate_vacuum");
    let names = opened.names(TimeRange::ALL);
    for path in [
        "x",
        "__schema/.DS_Store",
        "__meta/x",
        "__meta/__1_1_a.tmp",
        "__fragment_meta/x",
        "__commits/x.wrt",
    ] {
        opened
            .memory
            .put(&opened.path(path), Bytes::from_static(b"?"))
            .expect("put");
    }
    opened
        .memory
        .put(&opened.path("__fragments/__1_1_ab_22/a0.tdb"), Bytes::new())
        .expect("put");
    let array = opened.open(TimeRange::ALL);
    assert_eq!(
        array
            .fragments()
            .iter()
            .map(Fragment::name)
            .collect::<Vec<_>>(),
        names
    );
    assert!(array.metadata().is_ok());
}

#[test]
fn folders_below_v5_count_with_their_metadata() {
    let files = pack::files();
    for name in [
        "made/old/1.4.0/sparse1d_f64",
        "made/rand/1.4.0/r101",
        "made/rand/1.7.0/r104",
    ] {
        let opened = logged(&files, name);
        let before = opened.names(TimeRange::ALL);
        let folder = "__0123456789abcdef0123456789abcdef_1500000000000";
        opened
            .memory
            .put(&opened.path(&format!("{folder}/a.tdb")), Bytes::new())
            .expect("put");
        assert_eq!(
            opened.names(TimeRange::ALL),
            before,
            "{name}: a write that was broken off"
        );
    }
}

#[test]
fn keys_are_needed_where_they_are_needed() {
    let files = pack::files();
    let key = |text: &str| Some(text.parse().expect("32 bytes"));
    let (right, wrong) = (
        "0123456789abcdeF0123456789abcdeF",
        "0123456789abcdeF0123456789abcdeX",
    );
    for version in ["1.7.0", "2.3.3", "2.30.0"] {
        let (secret, open) = (
            format!("mem://made/old/{version}/dense2d_enc"),
            format!("mem://made/old/{version}/sparse1d_f64"),
        );
        let memory: Arc<dyn Storage> = pack::memory(&files, &format!("made/old/{version}/"));
        let with = |key| pack::context(Config::default(), key, Arc::clone(&memory));
        let array = with(key(right))
            .array(&secret)
            .open()
            .expect("the right key");
        assert!(
            array.fragments()[0]
                .stored_tile_range(Field::Attribute(0), FilePart::Data, 0)
                .is_ok()
        );
        let reason = |context: Context, uri: &str| match context.array(uri).open() {
            Err(Error::Encryption { uri: at, reason }) if at.starts_with(uri) => reason,
            other => panic!("{uri}: {other:?}"),
        };
        assert!(reason(with(None), &secret).contains("no key"), "{version}");
        assert!(
            reason(with(key(wrong)), &secret).contains("wrong"),
            "{version}"
        );
        assert!(
            reason(with(key(right)), &open).contains("not encrypted"),
            "{version}"
        );
    }
}

#[test]
fn what_is_no_array_is_named() {
    let files = pack::files();
    let memory = pack::memory(&files, "made/feat/2.30.0/group/");
    memory
        .put(&StorePath::memory("store/__kv_schema.tdb"), Bytes::new())
        .expect("put");
    let context = pack::context(Config::default(), None, memory);
    for (uri, text) in [
        ("mem://made/feat/2.30.0/group", "it is a group"),
        ("mem://made/feat/2.30.0", "there is no schema"),
        ("mem://nowhere", "no such folder"),
        ("mem://store", "key-value"),
    ] {
        let error = context.array(uri).open().expect_err("no array").to_string();
        assert!(error.contains(uri) && error.contains(text), "{error}");
    }
}

#[test]
fn metadata_and_enumerations_are_read_once() {
    let files = pack::files();
    let opened = logged(&files, "made/feat/2.29.2/enumerations");
    let array = opened.open(TimeRange::ALL);
    let _ = opened.log.take();
    let all = array.enumerations().expect("enumerations");
    assert!(!all.is_empty());
    assert_eq!(
        (opened.log.batch_num(), opened.log.read_num()),
        (1, all.len())
    );
    for enumeration in &all {
        assert!(Arc::ptr_eq(
            enumeration,
            &array.enumeration(&enumeration.name).expect("loaded")
        ));
    }
    assert!(matches!(
        array.enumeration("nothing"),
        Err(Error::SchemaMismatch(_))
    ));
    assert_eq!(opened.log.batch_num(), 1);

    let opened = logged(&files, "made/mixed/2.2.9");
    let array = opened.open(TimeRange::ALL);
    let _ = opened.log.take();
    let metadata = array.metadata().expect("metadata").clone();
    assert!(!metadata.is_empty());
    // The vacuum file, then the two of four files that it leaves.
    let sizes: Vec<usize> = opened.batches().iter().map(Vec::len).collect();
    assert_eq!(sizes, [1, 2]);
    assert_eq!(array.metadata().expect("metadata"), &metadata);
    assert_eq!(opened.log.batch_num(), 2);
}

#[test]
fn a_schema_that_is_gone_is_an_error() {
    let files = pack::files();
    let opened = logged(&files, "made/feat/2.30.0/schema_evolution/sparse");
    let array = opened.open(TimeRange::ALL);
    let oldest = array.fragments()[0]
        .footer()
        .schema_name
        .clone()
        .expect("v22 names its schema");
    assert!(array.schemas().len() > 1);
    opened
        .memory
        .delete(&[opened.path(&format!("__schema/{oldest}"))])
        .expect("deleted");
    let error = opened
        .context
        .array(&opened.uri)
        .open()
        .expect_err("its schema is gone");
    assert!(
        matches!(&error, Error::Corrupt { .. }) && error.to_string().contains(&oldest),
        "{error}"
    );
}

#[test]
fn a_misplaced_consolidated_footer_does_not_matter() {
    let files = pack::files();
    let opened = logged(&files, "made/feat/2.30.0/consolidate_vacuum");
    let path = opened.path(
        "__fragment_meta/__1795209783007_1795209784118_0a2a2d90c139f07cf44302c88622dec4_22.meta",
    );
    let request = ReadRequest {
        path: path.clone(),
        range: ReadRange::All,
    };
    let stored = opened.memory.read(&[request]).expect("the file").remove(0);
    let tile = GenericTile::decode(&stored, None, 1 << 20).expect("a tile");
    let mut consolidated = ConsolidatedFragmentMetadata::decode(&tile.data).expect("footers");
    assert_eq!(consolidated.footers.len(), 3);
    for footer in &mut consolidated.footers[1..] {
        footer.footer = &footer.footer[8..];
    }
    let moved =
        GenericTile::encode(&consolidated.encode(), tile.header.version, None).expect("a tile");
    let before = opened.open(TimeRange::ALL);
    opened.memory.put(&path, Bytes::from(moved)).expect("put");
    let array = opened.open(TimeRange::ALL);
    let consolidated: Vec<bool> = array
        .fragments()
        .iter()
        .map(Fragment::has_consolidated_footer)
        .collect();
    assert_eq!(consolidated, [true, false, false, false]);
    for (fragment, before) in array.fragments().iter().zip(before.fragments()) {
        assert_eq!(
            (fragment.name(), fragment.cell_num()),
            (before.name(), before.cell_num())
        );
        assert_eq!(fragment.footer().sections, before.footer().sections);
    }
}

#[test]
fn a_time_whose_end_comes_first_shows_nothing() {
    let context = Context::new(Config::default(), None).unwrap();
    let place = context.array("mem://array");
    let schema = ArraySchema::sparse().dimension("x", 0i32..=9, 5);
    let schema = schema.attribute("a", Datatype::Int32).build().unwrap();
    place.create_at(schema, 5).unwrap();
    let mut writer = place.writer(WriteOptions::new().timestamp(10)).unwrap();
    let cells = ["x", "a"].map(|name| ColumnBuffers::of_values(name, vec![3i32]));
    writer.write(&ColumnSet::of(cells).unwrap()).unwrap();
    writer.finish().unwrap();
    for (start, end) in [(1, 0), (11, 10), (30, 10), (u64::MAX, 0)] {
        let array = place.open_at(between(start, end)).unwrap();
        assert_eq!(array.time_range(), between(start, end));
        assert!(array.fragments().is_empty() && array.metadata().unwrap().is_empty());
        assert_eq!(array.non_empty_domain().unwrap(), None);
        let read = array.read(ReadOptions::new()).unwrap().read_all().unwrap();
        assert_eq!(read.cell_num, 0);
    }
    assert_eq!(place.open_at(between(10, 10)).unwrap().fragments().len(), 1);

    let group = context.group("mem://group");
    group.create().unwrap();
    let mut editor = group.edit().unwrap();
    editor
        .add(NewMember::at("mem://array").typed(ObjectType::Array))
        .unwrap();
    editor.commit().unwrap();
    assert_eq!(group.open().unwrap().members().len(), 1);
    assert!(group.open_at(between(30, 10)).unwrap().members().is_empty());
}

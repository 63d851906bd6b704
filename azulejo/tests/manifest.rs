//! Arrays and groups in storages that cannot list, read by their manifests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::config::ManifestUse;
use azulejo::format::schema::{DataOrder, NewArray};
use azulejo::format::{ArraySchema, Datatype};
use azulejo::group::{NewMember, ObjectType};
use azulejo::manifest::{MANIFEST_FILE, Manifest};
use azulejo::object::Change;
use azulejo::read::ReadOptions;
use azulejo::storage::{
    Entry, LocalStorage, MemoryStorage, ReadRequest, Request, RequestLogStorage, Storage,
    StorePath, Upload,
};
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context, Error, Result, consolidate};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

const URI: &str = "mem://array";
const LIMIT: u64 = 1 << 20;

/// A storage that is only read and does not list: as a web server, or as a bucket whose policy
/// forbids it.
#[derive(Debug)]
struct Unlisted {
    inner: Arc<dyn Storage>,
    forbidden: bool,
}

impl Unlisted {
    fn refusal<T>(&self, path: &StorePath) -> Result<T> {
        if !self.forbidden {
            return Err(Error::Unsupported(format!(
                "{path}: a web server has no listings"
            )));
        }
        let source = std::io::Error::new(std::io::ErrorKind::PermissionDenied, "403");
        Err(Error::Storage {
            op: "list",
            uri: path.to_string(),
            source,
        })
    }
}

impl Storage for Unlisted {
    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        self.refusal(dir)
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        self.inner.read(requests)
    }

    fn size(&self, path: &StorePath) -> Result<u64> {
        self.inner.size(path)
    }

    fn put(&self, path: &StorePath, _: Bytes) -> Result<()> {
        self.refusal(path)
    }

    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        self.refusal(path)
    }

    fn rename(&self, from: &StorePath, _: &StorePath) -> Result<()> {
        self.refusal(from)
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        paths.iter().try_for_each(|path| self.refusal(path))
    }
}

fn context(memory: Arc<dyn Storage>, manifest: ManifestUse) -> Context {
    let config = Config::new().manifest(manifest).threads(1);
    Context::with_storages(config, None, Arc::new(LocalStorage::new()), memory).unwrap()
}

/// A storage, and contexts for it: one that lists, one that cannot.
fn both(forbidden: bool) -> (Arc<dyn Storage>, Context, Context) {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let unlisted = Arc::new(Unlisted {
        inner: Arc::clone(&memory),
        forbidden,
    });
    let listing = context(Arc::clone(&memory), ManifestUse::Fallback);
    (memory, listing, context(unlisted, ManifestUse::Fallback))
}

fn new_array() -> NewArray {
    ArraySchema::sparse()
        .dimension("x", 0i64..=99, 10)
        .attribute("a", Datatype::Int32)
        .build()
        .unwrap()
}

fn write(context: &Context, uri: &str, x: i64) {
    let mut writer = context.array(uri).writer(WriteOptions::new()).unwrap();
    let columns = [
        ColumnBuffers::of_values("x", vec![x]),
        ColumnBuffers::of_values("a", vec![7i32]),
    ];
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    writer.finish().unwrap();
}

fn coordinates(array: &Array) -> Vec<i64> {
    let cells = array
        .read(ReadOptions::new().fields(["x"]))
        .unwrap()
        .read_all()
        .unwrap();
    cells.column("x").unwrap().values::<i64>().unwrap().to_vec()
}

#[test]
fn what_cannot_be_listed_is_read_by_its_manifest() {
    for forbidden in [false, true] {
        let (_, listing, blind) = both(forbidden);
        listing.array(URI).create(new_array()).unwrap();
        write(&listing, URI, 1);
        write(&listing, URI, 2);
        let without = blind.array(URI).open().unwrap_err();
        match without {
            Error::Unsupported(text) => assert!(text.contains(MANIFEST_FILE), "{text}"),
            Error::Storage { source, .. } => {
                assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied);
            }
            other => panic!("{other}"),
        }
        let before = azulejo::clock::now();
        let written = listing.object(URI).write_manifests().unwrap().written;
        assert_eq!((written.len(), written[0].uri.as_str()), (1, URI));
        assert_eq!(written[0].object_type, ObjectType::Array);

        let array = blind.array(URI).open().unwrap();
        assert_eq!(coordinates(&array), [1, 2]);
        assert_eq!(array.listed_at(), Some(written[0].made));
        assert!((before..=azulejo::clock::now()).contains(&written[0].made));
        assert_eq!(
            blind.object(URI).object_type().unwrap(),
            Some(ObjectType::Array)
        );
        let location = array.location();
        let is_folder = |path: &StorePath| location.storage.is_folder(path).unwrap();
        assert!(is_folder(&location.path));
        assert!(is_folder(&location.path.join("__schema")));
        assert!(!is_folder(&location.path.join("nothing")));
        // Where listing works the manifest does not count.
        assert_eq!(listing.array(URI).open().unwrap().listed_at(), None);
    }
}

#[test]
fn a_stale_manifest_is_detected_and_hides_nothing_where_listing_works() {
    let (memory, listing, blind) = both(false);
    listing.array(URI).create(new_array()).unwrap();
    write(&listing, URI, 1);
    assert_eq!(listing.object(URI).manifest_state().unwrap(), None);
    listing.object(URI).write_manifests().unwrap();
    assert_eq!(
        listing
            .object(URI)
            .manifest_state()
            .unwrap()
            .unwrap()
            .changes,
        []
    );

    write(&listing, URI, 2);
    let changes = listing
        .object(URI)
        .manifest_state()
        .unwrap()
        .unwrap()
        .changes;
    assert!(
        changes
            .iter()
            .any(|c| matches!(c, Change::Added(path) if path.ends_with(".wrt"))),
        "{changes:?}"
    );
    assert_eq!(coordinates(&listing.array(URI).open().unwrap()), [1, 2]);
    assert_eq!(coordinates(&blind.array(URI).open().unwrap()), [1]);
    // Asked for, it counts everywhere; those who change the array look for themselves all the same.
    let always = context(Arc::clone(&memory), ManifestUse::Always);
    let array = always.array(URI).open().unwrap();
    assert_eq!(
        (coordinates(&array), array.listed_at().is_some()),
        (vec![1], true)
    );
    write(&always, URI, 3);
    always.array(URI).consolidate(&Default::default()).unwrap();
    always
        .array(URI)
        .vacuum(consolidate::Mode::Fragments, Default::default())
        .unwrap();
    assert_eq!(coordinates(&listing.array(URI).open().unwrap()), [1, 2, 3]);
    // What the manifest names is gone now, and the error says so.
    let changes = listing
        .object(URI)
        .manifest_state()
        .unwrap()
        .unwrap()
        .changes;
    assert!(
        changes
            .iter()
            .any(|c| matches!(c, Change::Gone(path) if path.ends_with(".wrt"))),
        "{changes:?}"
    );
    for context in [&blind, &always] {
        // It opens by what the manifest holds, and then its cells are missing.
        let array = context.array(URI).open().unwrap();
        let read = array.read(ReadOptions::new()).unwrap().read_all();
        let error = read.unwrap_err();
        assert!(
            matches!(error, Error::NotFound { what, .. } if what.contains("stale")),
            "{error}"
        );
    }
    listing.object(URI).write_manifests().unwrap();
    assert_eq!(coordinates(&blind.array(URI).open().unwrap()), [1, 2, 3]);
    assert_eq!(
        listing
            .object(URI)
            .manifest_state()
            .unwrap()
            .unwrap()
            .changes,
        []
    );
}

#[test]
fn always_means_one_read_and_no_listing() {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let listing = context(Arc::clone(&memory), ManifestUse::Never);
    listing.array(URI).create(new_array()).unwrap();
    for x in 0..5 {
        write(&listing, URI, x);
    }
    listing.object(URI).write_manifests().unwrap();
    let logged = RequestLogStorage::new(memory);
    let log = logged.log();
    let always = context(Arc::new(logged), ManifestUse::Always);
    let array = always.array(URI).open().unwrap();
    let requests = log.take();
    let name = |r: &Request| {
        if let Request::Read { path, .. } = r {
            Some(path.name().to_owned())
        } else {
            None
        }
    };
    let names: Vec<String> = requests.iter().filter_map(name).collect();
    // It holds the schema and the footers.
    assert_eq!(
        (requests.len(), names.as_slice()),
        (1, &["manifest".to_owned()][..])
    );
    assert_eq!(coordinates(&array), [0, 1, 2, 3, 4]);
    assert_eq!(log.list_num(), 0);
}

#[test]
fn always_lists_where_there_is_no_manifest() {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let always = context(memory, ManifestUse::Always);
    always.array(URI).create(new_array()).unwrap();
    write(&always, URI, 1);
    let array = always.array(URI).open().unwrap();
    assert_eq!((coordinates(&array), array.listed_at()), (vec![1], None));
}

#[test]
fn groups_members_and_labels_have_manifests_too() {
    let (_, listing, blind) = both(false);
    let labelled = ArraySchema::dense()
        .dimension("x", 0i32..=99, 10)
        .attribute("a", Datatype::Int32)
        .label(0, "name", DataOrder::Increasing, Datatype::Float64)
        .build()
        .unwrap();
    listing.group("mem://g").create().unwrap();
    listing.group("mem://g/inner").create().unwrap();
    listing
        .array("mem://g/inner/labelled")
        .create(labelled)
        .unwrap();
    listing
        .array("mem://elsewhere")
        .create(new_array())
        .unwrap();
    write(&listing, "mem://elsewhere", 5);
    let mut editor = listing.group("mem://g").edit().unwrap();
    editor
        .add(NewMember::relative("inner").named("inner"))
        .unwrap();
    editor
        .add(NewMember::at("mem://elsewhere").named("far"))
        .unwrap();
    editor.commit().unwrap();
    let mut editor = listing.group("mem://g/inner").edit().unwrap();
    editor
        .add(NewMember::relative("labelled").named("l"))
        .unwrap();
    // A circle ends.
    editor.add(NewMember::at("mem://g").named("up")).unwrap();
    editor.commit().unwrap();

    let manifests = listing.object("mem://g").write_manifests().unwrap();
    assert!(manifests.skipped.is_empty());
    let mut uris: Vec<&str> = manifests.written.iter().map(|w| w.uri.as_str()).collect();
    uris.sort_unstable();
    assert_eq!(uris.len(), 5, "{uris:?}");
    assert_eq!(
        uris[..4],
        [
            "mem://elsewhere",
            "mem://g",
            "mem://g/inner",
            "mem://g/inner/labelled"
        ]
    );
    assert!(
        uris[4].starts_with("mem://g/inner/labelled/__labels/"),
        "{uris:?}"
    );

    let group = blind.group("mem://g").open().unwrap();
    assert_eq!(group.listed_at(), Some(manifests.written[0].made));
    assert_eq!(
        coordinates(
            &blind
                .array(&group.member("far").unwrap().location)
                .open()
                .unwrap()
        ),
        [5]
    );
    let array = blind.array("mem://g/inner/labelled").open().unwrap();
    assert!(array.open_label("name").unwrap().listed_at().is_some());
    let walk = |context: &Context| -> Vec<_> {
        context
            .object("mem://g")
            .walk(9)
            .unwrap()
            .map(|entry| entry.unwrap())
            .collect()
    };
    assert_eq!(walk(&blind), walk(&listing));
    assert_eq!(
        blind.object("mem://g").list().unwrap(),
        listing.object("mem://g").list().unwrap()
    );

    // A member that is gone is skipped, and named.
    listing.object("mem://elsewhere").delete(false).unwrap();
    let manifests = listing.object("mem://g").write_manifests().unwrap();
    assert_eq!(
        (manifests.written.len(), manifests.skipped[0].0.as_str()),
        (4, "mem://elsewhere")
    );
}

#[test]
fn what_cannot_be_listed_can_be_copied() {
    let (_, listing, blind) = both(true);
    listing.array(URI).create(new_array()).unwrap();
    write(&listing, URI, 1);
    listing.object(URI).write_manifests().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("copy").to_str().unwrap().to_owned();
    blind.object(URI).copy_to(&target).unwrap();
    assert_eq!(coordinates(&listing.array(&target).open().unwrap()), [1]);
    // Moving and deleting would have to list.
    assert!(
        blind
            .object(URI)
            .rename_to(&folder.path().join("moved").to_string_lossy())
            .is_err()
    );
    assert!(blind.object(URI).delete(false).is_err());
    assert!(blind.array(URI).writer(WriteOptions::new()).is_err());
}

#[test]
fn deletion_takes_the_manifest_along_and_check_knows_it() {
    let (memory, listing, _) = both(false);
    listing.array(URI).create(new_array()).unwrap();
    listing.object(URI).write_manifests().unwrap();
    let report = listing.array(URI).check(Default::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    listing.object(URI).delete(false).unwrap();
    assert_eq!(memory.list(&StorePath::memory("array")).unwrap(), []);
}

fn sample() -> Manifest {
    let entry = |name: &str, is_dir, size| Entry {
        name: name.into(),
        is_dir,
        size,
    };
    let folders = BTreeMap::from([
        (
            String::new(),
            vec![
                entry("__schema", true, Some(0)),
                entry("é.txt", false, None),
            ],
        ),
        (
            "__schema".into(),
            vec![
                entry("__1_1_ab", false, Some(u64::MAX)),
                entry("b", false, Some(0)),
            ],
        ),
    ]);
    Manifest {
        made: 1_700_000_000_000,
        folders,
        contents: BTreeMap::new(),
    }
}

#[test]
fn sidecars_hold_contents_of_files_that_they_name() {
    let mut manifest = sample();
    let bare = manifest.encode().unwrap();
    manifest.contents = BTreeMap::from([("__schema/b".into(), Bytes::new())]);
    manifest.folders.get_mut("__schema").unwrap()[0].size = Some(3);
    let name = "__schema/__1_1_ab";
    manifest
        .contents
        .insert(name.into(), Bytes::from_static(b"abc"));
    let bytes = manifest.encode().unwrap();
    assert_eq!(Manifest::decode(&bytes, LIMIT).unwrap(), manifest);
    // Of the first version, which held none.
    assert_eq!(Manifest::decode(&bare, LIMIT).unwrap(), sample());
    let version = |bytes: &[u8]| {
        let tile = azulejo::format::tile::GenericTile::decode(bytes, None, LIMIT).unwrap();
        tile.data[4]
    };
    assert_eq!((version(&bare), version(&bytes)), (1, 2));
    for (path, bytes) in [
        (name, "ab"),
        ("__schema/c", ""),
        ("__schema", ""),
        ("../x", ""),
    ] {
        let mut bad = manifest.clone();
        bad.contents
            .insert(path.into(), Bytes::from_static(bytes.as_bytes()));
        assert!(
            Manifest::decode(&bad.encode().unwrap(), LIMIT).is_err(),
            "{path}"
        );
    }
}

#[test]
fn opening_by_a_manifest_reads_nothing_else() {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let listing = context(Arc::clone(&memory), ManifestUse::Never);
    listing.array(URI).create(new_array()).unwrap();
    for x in 0..5 {
        write(&listing, URI, x);
    }
    listing.object(URI).create_snapshot("v1", Some(3)).unwrap();
    listing.object(URI).write_manifests().unwrap();
    let logged = RequestLogStorage::new(memory);
    let log = logged.log();
    let always = context(Arc::new(logged), ManifestUse::Always);
    let array = always.array(URI).open().unwrap();
    array.metadata().unwrap();
    let paths = |requests: Vec<Request>| -> Vec<String> {
        let path = |request: &Request| match request {
            Request::Read { path, .. } => path.name().to_owned(),
            other => format!("{other:?}"),
        };
        requests.iter().map(path).collect()
    };
    assert_eq!(paths(log.take()), ["manifest"]);
    assert_eq!(coordinates(&array), [0, 1, 2, 3, 4]);
    let data = paths(log.take());
    assert!(data.iter().all(|name| name == "d0.tdb"), "{data:?}");
    let named = always.object(URI).snapshots().unwrap();
    assert_eq!((named[0].name.as_str(), named[0].at), ("v1", 3));
    assert_eq!(paths(log.take()), ["manifest"]);
}

/// Listings of a disk tell no sizes.
#[test]
fn manifests_made_on_a_disk_hold_as_much() {
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("array").to_string_lossy().into_owned();
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let local = context(memory, ManifestUse::Never);
    local.array(&uri).create(new_array()).unwrap();
    (0..3).for_each(|x| write(&local, &uri, x));
    local.object(&uri).write_manifests().unwrap();
    let bytes = std::fs::read(folder.path().join("array").join(MANIFEST_FILE)).unwrap();
    let manifest = Manifest::decode(&bytes, LIMIT).unwrap();
    let held = |name: &str| {
        let names = manifest.contents.keys();
        names.filter(|path| path.contains(name)).count()
    };
    assert_eq!((held("__schema/"), held("__fragment_metadata")), (1, 3));
    let mut entries = manifest.folders.values().flatten();
    assert!(entries.all(|entry| entry.is_dir || entry.size.is_some()));
    let state = local.object(&uri).manifest_state().unwrap().unwrap();
    assert!(state.changes.is_empty(), "{:?}", state.changes);
}

#[test]
fn sidecars_come_back_and_damage_is_seen() {
    let manifest = sample();
    let bytes = manifest.encode().unwrap();
    assert_eq!(Manifest::decode(&bytes, LIMIT).unwrap(), manifest);
    assert_eq!(
        (
            manifest.size_of("__schema/b"),
            manifest.size_of("b"),
            manifest.file_num()
        ),
        (Some(0), None, 3)
    );
    for len in 0..bytes.len() {
        assert!(
            Manifest::decode(&bytes[..len], LIMIT).is_err(),
            "{len} bytes"
        );
    }
    // Some bits of the header mean nothing; all others are checked, or lie under the checksum.
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            if let Ok(found) = Manifest::decode(&damaged, LIMIT) {
                assert_eq!(found, manifest, "bit {bit} of byte {at}");
            }
        }
    }
    assert!(
        Manifest::decode(&bytes, 40).is_err(),
        "it is larger than its limit"
    );
}

#[test]
fn sidecars_lead_nowhere_else() {
    let entry = |name: &str| Entry {
        name: name.into(),
        is_dir: true,
        size: Some(0),
    };
    let with = |folder: &str, names: &[&str]| {
        let mut manifest = sample();
        manifest.folders.insert(
            folder.into(),
            names.iter().map(|name| entry(name)).collect(),
        );
        Manifest::decode(&manifest.encode().unwrap(), LIMIT)
    };
    assert!(with("x/y", &["a", "b"]).is_ok());
    for (folder, names) in [
        ("..", &["a"][..]),
        ("x/../y", &["a"]),
        ("/x", &["a"]),
        ("x/", &["a"]),
        ("x", &[".."]),
        ("x", &["a/b"]),
        ("x", &[""]),
        ("x", &["b", "a"]),
        ("x", &["a", "a"]),
    ] {
        assert!(with(folder, names).is_err(), "{folder:?} {names:?}");
    }
    let mut rootless = sample();
    rootless.folders.remove("");
    assert!(Manifest::decode(&rootless.encode().unwrap(), LIMIT).is_err());
}

#[test]
fn manifests_are_small() {
    let entry = |name: String| Entry {
        name,
        is_dir: false,
        size: Some(1000),
    };
    let mut manifest = sample();
    let mut state = 1u128;
    let names: Vec<String> = (0..2000)
        .map(|i| {
            state = state
                .wrapping_mul(0x2d99_787a_926d_46f4_6c3a_5b79_c1e5_2d1b)
                .wrapping_add(1);
            format!("__{t}_{t}_{state:032x}_22", t = 1_700_000_000_000u64 + i)
        })
        .collect();
    manifest.folders.insert(
        "__commits".into(),
        names.iter().map(|n| entry(format!("{n}.wrt"))).collect(),
    );
    for name in &names {
        let files = ["__fragment_metadata.tdb", "a0.tdb", "d0.tdb"].map(|n| entry(n.into()));
        manifest
            .folders
            .insert(format!("__fragments/{name}"), files.to_vec());
    }
    let bytes = manifest.encode().unwrap();
    assert_eq!(Manifest::decode(&bytes, LIMIT).unwrap(), manifest);
    assert!(bytes.len() < 2000 * 40, "{} bytes", bytes.len());
}

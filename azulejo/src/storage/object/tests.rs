//! Of the adapter: against memory, and in `faults` against servers that fail.

mod faults;

use super::*;
use crate::storage::{IoOp, Uri, conformance};
use std::sync::atomic::Ordering;

fn path(uri: &str) -> StorePath {
    Uri::parse(uri).unwrap().path().clone()
}

#[test]
fn meets_the_contract() {
    conformance::check(&ObjectStorage::in_memory(), &path("s3://bucket/root"));
    conformance::check(&ObjectStorage::in_memory(), &path("azure://bucket/a b/é+"));
    conformance::check_pages(
        &ObjectStorage::in_memory(),
        &path("gs://bucket/pages"),
        1_100,
    );
}

/// Runs the suite against a real store: `AZULEJO_TEST_STORE=s3://bucket/folder`, settings as
/// `AZULEJO_TEST_SETTINGS="name=value .."` or from the environment.
#[test]
fn a_real_store_meets_the_contract() {
    let Ok(uri) = std::env::var("AZULEJO_TEST_STORE") else {
        return;
    };
    let mut settings = StoreSettings::new();
    for setting in std::env::var("AZULEJO_TEST_SETTINGS")
        .unwrap_or_default()
        .split_whitespace()
    {
        let (name, value) = setting.split_once('=').unwrap();
        settings.set(name, value).unwrap();
    }
    let (root, stats) = (
        path(&uri).join(&uuid::Uuid::new_v4().to_string()),
        IoStats::new(),
    );
    let storage = ObjectStorage::connect(&root, &settings, &stats).unwrap();
    conformance::check(&storage, &root.join("suite"));
    conformance::check_pages(&storage, &root.join("pages"), 1_100);
    println!("{}", stats.counts());
}

#[test]
fn a_tree_is_one_listing_and_marks_of_folders_are_no_files() {
    let storage = ObjectStorage::in_memory();
    let root = path("s3://bucket/root");
    for (name, body) in [
        ("f/1/x", "x"),
        ("f/1", ""),
        ("f/2/y", "y"),
        ("f/2", "2"),
        ("e", ""),
    ] {
        storage
            .put(&root.join(name), Bytes::from_static(body.as_bytes()))
            .unwrap();
    }
    let before = storage.io_stats();
    let tree = storage.list_tree(&root).unwrap();
    assert_eq!(storage.io_stats().since(&before).total_requests(), 1);
    let shown = |entries: &[Entry]| -> Vec<String> {
        entries
            .iter()
            .map(|e| format!("{}{}", e.name, if e.is_dir { "/" } else { "" }))
            .collect()
    };
    let tree: Vec<_> = tree
        .iter()
        .map(|(folder, entries)| (folder.as_str(), shown(entries)))
        .collect();
    let list = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        tree,
        [
            ("", list(&["e", "f/"])),
            ("f", list(&["1/", "2", "2/"])),
            ("f/1", list(&["x"])),
            ("f/2", list(&["y"]))
        ]
    );
}

#[test]
fn a_bucket_is_known_to_be_empty_without_its_listing() {
    let storage = ObjectStorage::in_memory();
    let root = path("s3://bucket/x").parent().unwrap();
    assert!(storage.is_empty(&root).unwrap());
    for name in ["a", "b/c"] {
        let place = root.join(name);
        storage.put(&place, Bytes::from_static(b"1")).unwrap();
        assert!(!storage.is_empty(&root).unwrap());
        storage.delete(&[place]).unwrap();
        assert!(storage.is_empty(&root).unwrap());
    }
}

#[test]
fn a_copy_inside_a_bucket_does_not_come_here() {
    let storage = ObjectStorage::in_memory();
    let (x, y) = (path("s3://bucket/x"), path("s3://bucket/y"));
    storage.put(&x, Bytes::from_static(b"1")).unwrap();
    storage.put(&y, Bytes::from_static(b"other")).unwrap();
    let before = storage.io_stats();
    assert!(storage.copy_here(&x, &y).unwrap());
    assert_eq!(storage.io_stats().since(&before).requests(IoOp::Get), 0);
    assert_eq!(storage.size(&y).unwrap(), 1);
    let elsewhere = path("s3://other/y");
    assert!(!storage.copy_here(&x, &elsewhere).unwrap());
    let missing = storage.copy_here(&path("s3://bucket/z"), &y);
    assert!(
        matches!(missing, Err(Error::NotFound { .. })),
        "{missing:?}"
    );
}

#[test]
fn near_ranges_are_one_request_and_long_ones_several() {
    let storage = ObjectStorage::in_memory();
    let x = path("s3://bucket/x");
    storage.put(&x, Bytes::from(vec![7; 3 << 20])).unwrap();
    let range = |range| ReadRequest {
        path: x.clone(),
        range: ReadRange::Bytes(range),
    };
    let gets = |requests: &[ReadRequest]| {
        let before = storage.io_stats();
        storage.read(requests).unwrap();
        let io = storage.io_stats().since(&before);
        (io.requests(IoOp::Get), io.bytes(IoOp::Get))
    };
    assert_eq!(
        gets(&[range(0..10), range(1000..1010), range(5..20)]),
        (1, 1010)
    );
    assert_eq!(
        gets(&[range(0..10), range(2 << 20..(2 << 20) + 10)]),
        (2, 20)
    );
    assert_eq!(gets(&[range(3..3)]), (0, 0));
    // Together longer than what is joined.
    let limits = Limits {
        joined: 20,
        ..Limits::default()
    };
    let (whole, secrets) = (storage.shared(), Secrets::default());
    let store = Arc::clone(&whole.store);
    let shared = Shared::new(store, limits, whole.abilities, &whole.stats, secrets);
    let short = ObjectStorage::of(shared);
    let before = storage.io_stats();
    let read = short.read(&[range(0..10), range(10..20), range(20..50)]);
    let lengths: Vec<usize> = read.unwrap().iter().map(Bytes::len).collect();
    assert_eq!(lengths, [10, 10, 30]);
    assert_eq!(storage.io_stats().since(&before).requests(IoOp::Get), 2);
    // Longer than a request may be.
    let limits = Limits {
        piece: 1 << 20,
        ..Limits::default()
    };
    let (whole, secrets) = (storage.shared(), Secrets::default());
    let store = Arc::clone(&whole.store);
    let shared = Shared::new(store, limits, whole.abilities, &whole.stats, secrets);
    let pieces = ObjectStorage::of(shared);
    let before = storage.io_stats();
    assert_eq!(
        pieces.read(&[range(1..(2 << 20) + 2)]).unwrap()[0].len(),
        (2 << 20) + 1
    );
    assert_eq!(storage.io_stats().since(&before).requests(IoOp::Get), 3);
}

#[test]
fn what_is_wanted_is_divided_among_the_connections() {
    let whole = ObjectStorage::in_memory();
    let x = path("s3://bucket/x");
    let bytes: Vec<u8> = (0..40u32 << 20).map(|i| (i >> 12) as u8).collect();
    whole.put(&x, Bytes::from(bytes.clone())).unwrap();
    let tiles = |size: u64, number: u64| -> Vec<ReadRequest> {
        let ranges = (0..number).map(|i| i * size..(i + 1) * size);
        ranges
            .map(|range| ReadRequest {
                path: x.clone(),
                range: ReadRange::Bytes(range),
            })
            .collect()
    };
    let with = |parallel: usize| {
        let limits = Limits {
            parallel,
            ..Limits::default()
        };
        let shared = whole.shared();
        let store = Arc::clone(&shared.store);
        let secrets = Secrets::default();
        ObjectStorage::of(Shared::new(
            store,
            limits,
            shared.abilities,
            &shared.stats,
            secrets,
        ))
    };
    let gets = |storage: &ObjectStorage, requests: &[ReadRequest]| {
        let before = storage.io_stats();
        let read = storage.read(requests).unwrap();
        assert!(read.concat() == bytes[..read.iter().map(Bytes::len).sum::<usize>()]);
        storage.io_stats().since(&before).requests(IoOp::Get)
    };
    let many = with(64);
    assert_eq!(gets(&many, &tiles(1 << 20, 3)), 1, "too little to divide");
    assert_eq!(gets(&many, &tiles(1 << 20, 16)), 4);
    assert_eq!(gets(&many, &tiles(16 << 20, 1)), 4, "one tile as well");
    assert_eq!(gets(&many, &tiles(512 << 10, 80)), 10);
    // Few connections have long requests; all of them have something to do.
    assert_eq!(gets(&with(1), &tiles(1 << 20, 40)), 3);
    assert_eq!(gets(&with(4), &tiles(1 << 20, 40)), 4);
    assert_eq!(gets(&with(2), &tiles(1 << 20, 16)), 2);
    assert_eq!(many.shared().asked.load(Ordering::Relaxed), 0);
}

#[test]
fn a_damaged_length_costs_one_request_and_no_memory() {
    let storage = ObjectStorage::in_memory();
    let x = path("s3://bucket/x");
    storage.put(&x, Bytes::from_static(b"123")).unwrap();
    for range in [1..1 << 60, 2..u64::MAX, 1 << 60..1 << 61, 0..4] {
        let before = storage.io_stats();
        let error = storage
            .read(&[ReadRequest {
                path: x.clone(),
                range: ReadRange::Bytes(range),
            }])
            .unwrap_err();
        assert!(
            matches!(error, Error::Storage { op: "read", .. }),
            "{error}"
        );
        assert_eq!(storage.io_stats().since(&before).total_requests(), 1);
    }
}

#[test]
fn a_bucket_is_not_deleted_and_paths_stay_inside() {
    let storage = ObjectStorage::in_memory();
    assert!(matches!(
        storage.delete(&[path("s3://bucket")]),
        Err(Error::InvalidArgument(_))
    ));
    assert!(matches!(
        storage.put(&path("s3://bucket"), Bytes::new()),
        Err(Error::InvalidArgument(_))
    ));
    storage
        .put(&path("s3://bucket/g/../a"), Bytes::from_static(b"a"))
        .unwrap();
    assert_eq!(storage.size(&path("s3://bucket/a")).unwrap(), 1);
    for outside in ["s3://bucket/../b", "s3://bucket/a/../../b"] {
        assert!(
            matches!(storage.size(&path(outside)), Err(Error::InvalidArgument(_))),
            "{outside}"
        );
    }
    assert!(matches!(
        storage.delete(&[path("s3://bucket/a/..")]),
        Err(Error::InvalidArgument(_))
    ));
    assert!(storage.size(&StorePath::local("/x")).is_err());
}

#[test]
fn many_objects_are_deleted_at_once() {
    let storage = ObjectStorage::in_memory();
    let commits: Vec<_> = (0..50)
        .map(|i| path(&format!("s3://bucket/a/__commits/{i}.wrt")))
        .collect();
    let fragments: Vec<_> = (0..5)
        .map(|i| path(&format!("s3://bucket/a/__fragments/{i}")))
        .collect();
    commits
        .iter()
        .for_each(|commit| storage.put(commit, Bytes::new()).unwrap());
    for (fragment, file) in fragments.iter().flat_map(|f| [(f, "a.tdb"), (f, "b.tdb")]) {
        storage.put(&fragment.join(file), Bytes::new()).unwrap();
    }
    let before = storage.io_stats();
    storage.delete(&commits).unwrap();
    storage.delete(&fragments).unwrap();
    let io = storage.io_stats().since(&before);
    assert_eq!((io.requests(IoOp::List), io.requests(IoOp::Delete)), (5, 2));
    assert_eq!(storage.list(&path("s3://bucket/a")).unwrap(), []);
}

#[test]
fn works_inside_a_runtime_of_the_caller() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let storage = ObjectStorage::in_memory();
    let x = path("s3://bucket/x");
    runtime.block_on(async {
        storage.put(&x, Bytes::from_static(b"123")).unwrap();
        assert_eq!(storage.size(&x).unwrap(), 3);
    });
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let connect = |uri: &str, settings: &[(&str, &str)]| {
        let mut given = StoreSettings::new();
        settings
            .iter()
            .for_each(|(name, value)| given.set(name, value).unwrap());
        ObjectStorage::connect(&path(uri), &given, &IoStats::new())
    };
    let key = ("vfs.s3.aws_access_key_id", "KEYKEYKEY");
    let secret = ("vfs.s3.aws_secret_access_key", "HUSHHUSH");
    let storage = connect("s3://b/a", &[key, secret, ("vfs.s3.region", "r")]).unwrap();
    assert!(!format!("{storage:?}").contains("HUSH"));
    for (uri, settings, part) in [
        (
            "s3://b/a",
            vec![key, secret, ("vfs.s3.config_source", "magic")],
            "config_source",
        ),
        (
            "s3://b/a",
            vec![key, secret, ("vfs.s3.sse", "rot13")],
            "sse",
        ),
        (
            "s3://b/a",
            vec![key, secret, ("vfs.s3.ca_file", "/no/such/file")],
            "ca_file",
        ),
        (
            "s3://b/a",
            vec![("vfs.s3.profile", "nobody-has-this-one")],
            "nobody-has-this-one",
        ),
    ] {
        let error = connect(uri, &settings).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("HUSH"), "{error}");
    }
}

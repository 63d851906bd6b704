//! What every storage must do: one suite, run by each of them.

use super::{ReadInto, ReadRange, ReadRequest, Storage, StorePath};
use crate::error::Error;
use bytes::Bytes;

fn names(storage: &dyn Storage, dir: &StorePath) -> Vec<(String, bool)> {
    storage.list(dir).unwrap().into_iter().map(|e| (e.name, e.is_dir)).collect()
}

fn read(path: &StorePath, range: ReadRange) -> ReadRequest {
    ReadRequest { path: path.clone(), range }
}

/// Runs the suite below `root`, where nothing may lie yet.
pub(crate) fn check(storage: &dyn Storage, root: &StorePath) {
    listings(storage, &root.join("list"));
    reads(storage, &root.join("read"));
    big_batches(storage, &root.join("batch"));
    writes_and_deletes(storage, &root.join("write"));
    uploads(storage, &root.join("upload"));
    moves(storage, &root.join("move"));
}

fn listings(storage: &dyn Storage, root: &StorePath) {
    assert_eq!(storage.list(root).unwrap(), []);
    for name in ["b/z", "a", "b-c", "b/y/x", "c"] {
        storage.put(&root.join(name), Bytes::from_static(b"xy")).unwrap();
    }
    let listed = names(storage, root);
    let expected = [("a", false), ("b", true), ("b-c", false), ("c", false)];
    assert_eq!(listed, expected.map(|(name, dir)| (name.to_owned(), dir)));
    assert_eq!(names(storage, &root.join("b")), [("y".to_owned(), true), ("z".to_owned(), false)]);
    for entry in storage.list(root).unwrap() {
        assert!(matches!(entry.size, None | Some(2)) || entry.is_dir, "{entry:?}");
    }
    // A file has no children.
    assert_eq!(storage.list(&root.join("a")).unwrap(), []);
}

fn reads(storage: &dyn Storage, root: &StorePath) {
    let (path, other, empty) = (root.join("x"), root.join("y"), root.join("empty"));
    let body: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    storage.put(&path, Bytes::from(body.clone())).unwrap();
    storage.put(&other, Bytes::from_static(b"0123456789")).unwrap();
    storage.put(&empty, Bytes::new()).unwrap();
    assert_eq!(storage.size(&path).unwrap(), 300_000);
    assert_eq!(storage.size(&empty).unwrap(), 0);

    let requests = [
        read(&other, ReadRange::Bytes(8..10)),
        read(&path, ReadRange::Bytes(299_990..300_000)),
        read(&path, ReadRange::Bytes(5..9)),
        read(&other, ReadRange::All),
        read(&path, ReadRange::Bytes(7..12)),
        read(&empty, ReadRange::All),
        read(&path, ReadRange::Bytes(40..40)),
        read(&path, ReadRange::All),
    ];
    let expected: Vec<&[u8]> =
        vec![b"89", &body[299_990..], &body[5..9], b"0123456789", &body[7..12], b"", b"", &body];
    assert_eq!(storage.read(&requests).unwrap(), expected);
    assert_eq!(storage.start_read(requests.to_vec()).wait().unwrap(), expected);
    assert_eq!(storage.read(&[]).unwrap(), Vec::<Bytes>::new());

    let tails = storage.read_tails(&[path.clone(), other.clone(), empty], 12).unwrap();
    let tails: Vec<_> = tails.iter().map(|tail| (&tail.bytes[..], tail.object_size)).collect();
    assert_eq!(tails, [(&body[299_988..], 300_000), (b"0123456789".as_slice(), 10), (b"".as_slice(), 0)]);
    let tails = storage.read_tails(std::slice::from_ref(&path), 0).unwrap();
    assert_eq!((tails[0].bytes.len(), tails[0].object_size), (0, 300_000));

    let (mut a, mut b, mut c) = (vec![0; 5], vec![0; 2], vec![]);
    storage
        .read_into(&mut [
            ReadInto { path: path.clone(), offset: 100, out: &mut a },
            ReadInto { path: other.clone(), offset: 3, out: &mut b },
            ReadInto { path: path.clone(), offset: 0, out: &mut c },
        ])
        .unwrap();
    assert_eq!((a.as_slice(), b.as_slice()), (&body[100..105], b"34".as_slice()));

    let (reader, mut out) = (storage.open(&path).unwrap(), [0; 7]);
    reader.read_at(299_993, &mut out).unwrap();
    assert_eq!(out, body[299_993..]);
    assert!(reader.read_at(299_994, &mut out).is_err() && reader.read_at(u64::MAX, &mut out).is_err());

    for missing in [root.join("nothing"), other.join("below"), root.clone()] {
        for range in [ReadRange::All, ReadRange::Bytes(0..1)] {
            let error =
                storage.read(&[read(&path, ReadRange::All), read(&missing, range.clone())]).unwrap_err();
            let directory = missing == *root && matches!(error, Error::Storage { .. });
            assert!(matches!(error, Error::NotFound { .. }) || directory, "{missing} {range:?}: {error}");
            assert!(error.to_string().contains(&missing.to_string()), "{error}");
        }
        assert!(matches!(storage.size(&missing), Err(Error::NotFound { .. })), "{missing}");
        assert!(storage.read_tails(&[path.clone(), missing.clone()], 1).is_err(), "{missing}");
        assert!(storage.start_read(vec![read(&missing, ReadRange::All)]).wait().is_err());
    }
    let past = storage.read(&[read(&other, ReadRange::Bytes(5..11))]).unwrap_err();
    assert!(matches!(past, Error::Storage { op: "read", .. }), "{past}");
    let mut out = [0; 4];
    let past = storage.read_into(&mut [ReadInto { path: other, offset: 8, out: &mut out }]).unwrap_err();
    assert!(matches!(past, Error::Storage { op: "read", .. }), "{past}");
}

fn big_batches(storage: &dyn Storage, root: &StorePath) {
    let files: Vec<_> =
        (0..40u8).map(|i| (root.join(&format!("f{i}")), vec![i; 50_000 + usize::from(i)])).collect();
    for (path, body) in &files {
        storage.put(path, Bytes::from(body.clone())).unwrap();
    }
    let requests: Vec<_> = files.iter().rev().map(|(path, _)| read(path, ReadRange::All)).collect();
    let bodies: Vec<_> = files.iter().rev().map(|(_, body)| Bytes::from(body.clone())).collect();
    assert_eq!(storage.read(&requests).unwrap(), bodies);
    let pending: Vec<_> = (0..8).map(|_| storage.start_read(requests.clone())).collect();
    for read in pending {
        assert_eq!(read.wait().unwrap(), bodies);
    }
    let mut outs: Vec<_> = files.iter().map(|(_, body)| vec![0xff; body.len()]).collect();
    let mut into: Vec<_> = files
        .iter()
        .zip(&mut outs)
        .flat_map(|((path, _), out)| {
            let (head, tail) = out.split_at_mut(10_000);
            let offset = head.len() as u64;
            [
                ReadInto { path: path.clone(), offset, out: tail },
                ReadInto { path: path.clone(), offset: 0, out: head },
            ]
        })
        .collect();
    storage.read_into(&mut into).unwrap();
    let paths: Vec<_> = files.iter().map(|(path, _)| path.clone()).collect();
    for (tail, (_, body)) in storage.read_tails(&paths, 10).unwrap().iter().zip(&files) {
        assert_eq!((&tail.bytes[..], tail.object_size), (&body[body.len() - 10..], body.len() as u64));
    }
    assert!(files.iter().zip(&outs).all(|((_, body), out)| body == out));
}

fn writes_and_deletes(storage: &dyn Storage, root: &StorePath) {
    let path = root.join("d/x");
    storage.put(&path, Bytes::from_static(b"first")).unwrap();
    storage.put(&path, Bytes::from_static(b"2nd")).unwrap();
    assert_eq!(storage.read(&[read(&path, ReadRange::All)]).unwrap(), [Bytes::from_static(b"2nd")]);
    storage.put(&root.join("d/e/y"), Bytes::from_static(b"y")).unwrap();
    storage.put(&root.join("dd"), Bytes::from_static(b"dd")).unwrap();
    storage.delete(&[root.join("d/e"), root.join("nothing")]).unwrap();
    assert_eq!(names(storage, &root.join("d")), [("x".to_owned(), false)]);
    storage.delete(&[root.join("d"), path]).unwrap();
    assert_eq!(names(storage, root), [("dd".to_owned(), false)]);
}

fn uploads(storage: &dyn Storage, root: &StorePath) {
    let path = root.join("a/x");
    let mut upload = storage.upload(&path).unwrap();
    upload.write(b"one, ").unwrap();
    upload.write(b"").unwrap();
    upload.write(b"two").unwrap();
    upload.finish().unwrap();
    assert_eq!(storage.read(&[read(&path, ReadRange::All)]).unwrap(), [Bytes::from_static(b"one, two")]);
    assert!(matches!(storage.upload(&path), Err(Error::AlreadyExists { .. })));
    storage.upload(&root.join("a/empty")).unwrap().finish().unwrap();
    assert_eq!(storage.size(&root.join("a/empty")).unwrap(), 0);

    let mut dropped = storage.upload(&root.join("a/dropped")).unwrap();
    dropped.write(&[0; 100_000]).unwrap();
    drop(dropped);
    assert_eq!(names(storage, &root.join("a")), [("empty".to_owned(), false), ("x".to_owned(), false)]);

    storage.make_folder(&root.join("b/c")).unwrap();
    storage.make_folder(&root.join("b/c")).unwrap();
    assert_eq!(storage.list(&root.join("b/c")).unwrap(), []);
}

fn moves(storage: &dyn Storage, root: &StorePath) {
    for name in ["from/x", "from/d/y", "fromage"] {
        storage.put(&root.join(name), Bytes::from(name.to_owned())).unwrap();
    }
    storage.rename(&root.join("from"), &root.join("n/to")).unwrap();
    let dir = |name: &str| (name.to_owned(), true);
    let file = |name: &str| (name.to_owned(), false);
    assert_eq!(names(storage, root), [file("fromage"), dir("n")]);
    assert_eq!(names(storage, &root.join("n/to")), [dir("d"), file("x")]);
    let body = storage.read(&[read(&root.join("n/to/d/y"), ReadRange::All)]).unwrap();
    assert_eq!(body, [Bytes::from_static(b"from/d/y")]);
    storage.rename(&root.join("fromage"), &root.join("n/z")).unwrap();
    for (from, to) in [("n/z", "n/to"), ("n/z", "n/to/x"), ("n/to", "n/z")] {
        let error = storage.rename(&root.join(from), &root.join(to)).unwrap_err();
        assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    }
    let missing = storage.rename(&root.join("gone"), &root.join("anywhere")).unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
}

//! What every storage must do: one suite, run by each of them, and by tests of real servers.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use super::{ReadInto, ReadRange, ReadRequest, Storage, StorePath, Tails};
use crate::error::Error;
use bytes::Bytes;

fn names(storage: &dyn Storage, dir: &StorePath) -> Vec<(String, bool)> {
    storage
        .list(dir)
        .unwrap()
        .into_iter()
        .map(|e| (e.name, e.is_dir))
        .collect()
}

fn read(path: &StorePath, range: ReadRange) -> ReadRequest {
    ReadRequest {
        path: path.clone(),
        range,
    }
}

/// Runs the suite below `root`, where nothing may lie yet. Afterwards nothing lies there again.
pub fn check(storage: &dyn Storage, root: &StorePath) {
    listings(storage, &root.join("list"));
    reads(storage, &root.join("read"));
    big_batches(storage, &root.join("batch"));
    writes_and_deletes(storage, &root.join("write"));
    uploads(storage, &root.join("upload"));
    appends(storage, &root.join("append"));
    first_writers(storage, &root.join("new"));
    moves(storage, &root.join("move"));
    replaces(storage, &root.join("replace"));
    odd_names(storage, &root.join("names"));
    large_objects(storage, &root.join("large"));
    clean(storage, root);
}

/// Lists and deletes `number` objects in one folder: more than a server gives in one answer.
pub fn check_pages(storage: &dyn Storage, root: &StorePath, number: usize) {
    let name = |i: usize| format!("object-{i:05}");
    std::thread::scope(|scope| {
        for part in 0..8 {
            scope.spawn(move || {
                for i in (part..number).step_by(8) {
                    storage.put(&root.join(&name(i)), Bytes::new()).unwrap();
                }
            });
        }
    });
    storage
        .put(&root.join("below/x"), Bytes::from_static(b"x"))
        .unwrap();
    storage
        .put(&root.join("p/x"), Bytes::from_static(b"x"))
        .unwrap();
    let mut expected: Vec<_> = (0..number).map(|i| (name(i), false)).collect();
    expected.insert(0, ("below".to_owned(), true));
    expected.push(("p".to_owned(), true));
    assert_eq!(names(storage, root), expected);
    clean(storage, root);
}

fn clean(storage: &dyn Storage, root: &StorePath) {
    storage.delete(std::slice::from_ref(root)).unwrap();
    assert_eq!(storage.list(root).unwrap(), []);
}

/// Names that URLs, XML and shells take for something else.
fn odd_names(storage: &dyn Storage, root: &StorePath) {
    let mut odd = vec![
        "a b",
        "a%20b",
        "100%",
        "a+b",
        "x#y",
        "a&b;c",
        "é-ü-日本",
        "(x)",
        "~x",
        "=x=",
        "a'b",
        "@x,y!",
        "$x",
        "[x]",
        "__1_2_{x}",
    ];
    if !cfg!(windows) {
        odd.extend(["q?z", "a\"b", "<x>", "a|b", "x*y", "a:b"]);
    }
    for name in &odd {
        let path = root.join(&format!("in {name}")).join(name);
        storage.put(&path, Bytes::from((*name).to_owned())).unwrap();
        assert_eq!(
            storage.list(&root.join(&format!("in {name}"))).unwrap()[0].name,
            *name
        );
        let body = Bytes::from((*name).to_owned());
        assert_eq!(
            storage.read(&[read(&path, ReadRange::All)]).unwrap(),
            [body],
            "{name}"
        );
        assert_eq!(storage.size(&path).unwrap(), name.len() as u64, "{name}");
        let mut upload = storage.upload(&root.join(name)).unwrap();
        upload.write(b"up").unwrap();
        upload.finish().unwrap();
    }
    let mut expected: Vec<_> = odd
        .iter()
        .flat_map(|n| [((*n).to_owned(), false), (format!("in {n}"), true)])
        .collect();
    expected.sort();
    assert_eq!(names(storage, root), expected);
    let tree = storage.list_tree(root).unwrap();
    assert_eq!(tree.len(), odd.len() + 1);
    for (folder, entries) in tree {
        assert_eq!(
            entries,
            storage.list(&root.join(&folder)).unwrap(),
            "{folder}"
        );
    }
    storage
        .rename(&root.join("in a b"), &root.join("moved +%"))
        .unwrap();
    assert_eq!(
        names(storage, &root.join("moved +%")),
        [("a b".to_owned(), false)]
    );
    let all: Vec<_> = storage
        .list(root)
        .unwrap()
        .iter()
        .map(|entry| root.join(&entry.name))
        .collect();
    storage.delete(&all).unwrap();
    assert_eq!(storage.list(root).unwrap(), []);
}

/// Objects of several parts.
fn large_objects(storage: &dyn Storage, root: &StorePath) {
    let part: Vec<u8> = (0..1u32 << 18)
        .flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let path = root.join("x");
    let mut upload = storage.upload(&path).unwrap();
    for piece in 0..12u8 {
        upload.write(&[piece]).unwrap();
        upload.write(&part).unwrap();
    }
    upload.begin_finish().unwrap();
    upload.finish().unwrap();
    let stride = part.len() as u64 + 1;
    let size = 12 * stride;
    assert_eq!(storage.size(&path).unwrap(), size);
    let ranges = [
        0..size,
        size - 5..size,
        stride - 1..stride + 1,
        7 * stride..9 * stride,
        3..3,
    ];
    let requests: Vec<_> = ranges
        .iter()
        .map(|range| read(&path, ReadRange::Bytes(range.clone())))
        .collect();
    let bodies = storage.read(&requests).unwrap();
    for (body, range) in bodies.iter().zip(&ranges) {
        assert_eq!(body.len() as u64, range.end - range.start);
    }
    for piece in 0..12usize {
        let at = piece * stride as usize;
        assert_eq!(bodies[0][at], piece as u8);
        assert!(
            bodies[0][at + 1..at + 1 + part.len()] == part,
            "part {piece}"
        );
    }
    assert!(bodies[3][..] == bodies[0][7 * stride as usize..9 * stride as usize]);
    let mut out = vec![0; size as usize];
    storage
        .read_into(&mut [ReadInto {
            path: path.clone(),
            offset: 0,
            out: &mut out,
        }])
        .unwrap();
    assert!(out == bodies[0][..]);
    let whole = root.join("whole");
    storage.put(&whole, bodies[0].clone()).unwrap();
    assert!(storage.read(&[read(&whole, ReadRange::All)]).unwrap()[0] == bodies[0]);

    // Given up: in the middle, and after all was written.
    for (name, ended) in [("dropped", false), ("ended", true)] {
        let mut dropped = storage.upload(&root.join(name)).unwrap();
        for _ in 0..7 {
            dropped.write(&part).unwrap();
        }
        if ended {
            dropped.begin_finish().unwrap();
        }
        drop(dropped);
    }
    assert_eq!(
        names(storage, root),
        [("whole".to_owned(), false), ("x".to_owned(), false)]
    );
    // A prefetch that nobody waits for.
    drop(storage.start_read(requests));
    storage.delete(&[path, whole]).unwrap();

    // Several at once.
    let mut uploads: Vec<_> = (0..20)
        .map(|i| storage.upload(&root.join(&format!("u{i:02}"))).unwrap())
        .collect();
    for (i, upload) in uploads.iter_mut().enumerate() {
        upload.write(&[i as u8; 3]).unwrap();
    }
    storage.finish_all(uploads).unwrap();
    let listed = storage.list(root).unwrap();
    let paths: Vec<_> = listed
        .iter()
        .map(|entry| read(&root.join(&entry.name), ReadRange::All))
        .collect();
    let expected: Vec<_> = (0..20u8).map(|i| Bytes::from(vec![i; 3])).collect();
    assert_eq!(storage.read(&paths).unwrap(), expected);
}

fn listings(storage: &dyn Storage, root: &StorePath) {
    assert_eq!(storage.list(root).unwrap(), []);
    for name in ["b/z", "a", "b-c", "b/y/x", "c"] {
        storage
            .put(&root.join(name), Bytes::from_static(b"xy"))
            .unwrap();
    }
    let listed = names(storage, root);
    let expected = [("a", false), ("b", true), ("b-c", false), ("c", false)];
    assert_eq!(listed, expected.map(|(name, dir)| (name.to_owned(), dir)));
    assert_eq!(
        names(storage, &root.join("b")),
        [("y".to_owned(), true), ("z".to_owned(), false)]
    );
    let pending = storage.start_list(vec![root.join("b"), root.clone(), root.join("nothing")]);
    let all = pending.wait().unwrap();
    let one_by_one = [root.join("b"), root.clone(), root.join("nothing")];
    assert_eq!(all, one_by_one.map(|dir| storage.list(&dir).unwrap()));
    for entry in storage.list(root).unwrap() {
        assert!(
            matches!(entry.size, None | Some(2)) || entry.is_dir,
            "{entry:?}"
        );
    }
    let found = |dir: &StorePath, names: &[&str]| -> Vec<(String, bool)> {
        storage
            .find(dir, names)
            .unwrap()
            .into_iter()
            .map(|entry| (entry.name, entry.is_dir))
            .collect()
    };
    assert_eq!(
        found(root, &["c", "nothing", "b", "b-"]),
        [("b".to_owned(), true), ("c".to_owned(), false)]
    );
    let folders =
        ["b", "c", "nothing", "b-", "a"].map(|name| storage.is_folder(&root.join(name)).unwrap());
    assert_eq!(folders, [true, false, false, false, false]);
    assert!(storage.is_folder(root).unwrap());
    let empty = ["b", "nothing"].map(|name| storage.is_empty(&root.join(name)).unwrap());
    assert_eq!(empty, [false, true]);
    assert_eq!(found(root, &[]), []);
    assert_eq!(found(&root.join("nothing"), &["a"]), []);
    assert_eq!(found(&root.join("a"), &["a"]), []);
    let tree = |dir: &StorePath| {
        let mut tree = storage.list_tree(dir).unwrap();
        tree.sort_by(|a, b| a.0.cmp(&b.0));
        let names = |entries: Vec<super::Entry>| -> Vec<(String, bool)> {
            entries
                .into_iter()
                .map(|entry| (entry.name, entry.is_dir))
                .collect()
        };
        tree.into_iter()
            .map(|(folder, entries)| (folder, names(entries)))
            .collect::<Vec<_>>()
    };
    let below = |folder: &str| (folder.to_owned(), names(storage, &root.join(folder)));
    assert_eq!(tree(root), [below(""), below("b"), below("b/y")]);
    assert_eq!(
        tree(&root.join("b/y")),
        [(String::new(), vec![("x".to_owned(), false)])]
    );
    for nothing in ["nothing", "b-"] {
        assert_eq!(tree(&root.join(nothing)), [(String::new(), vec![])]);
    }
    // A file has no children.
    assert_eq!(tree(&root.join("a")), [(String::new(), vec![])]);
    assert_eq!(storage.list(&root.join("a")).unwrap(), []);
}

fn appends(storage: &dyn Storage, root: &StorePath) {
    let path = root.join("x");
    storage.put(&path, Bytes::from_static(b"some")).unwrap();
    let whole = || {
        storage
            .read(&[read(&path, ReadRange::All)])
            .unwrap()
            .remove(0)
    };
    let Some(appending) = storage.appending() else {
        return;
    };
    let mut upload = appending.append(&path).unwrap();
    upload.write(b" more").unwrap();
    upload.write_pieces(&[b" and", b" more"]).unwrap();
    upload.finish().unwrap();
    assert_eq!(whole(), "some more and more");
    let mut dropped = appending.append(&path).unwrap();
    dropped.write(b"!").unwrap();
    drop(dropped);
    assert_eq!(whole(), "some more and more!");
    assert!(matches!(
        appending.append(&root.join("nothing")),
        Err(Error::NotFound { .. })
    ));
}

/// Of many writers of one new object one is the first.
fn first_writers(storage: &dyn Storage, root: &StorePath) {
    let Some(exclusive) = storage.exclusive() else {
        return;
    };
    let path = root.join("x");
    let taken = |result: Result<(), Error>| match result {
        Ok(()) => false,
        Err(Error::AlreadyExists { .. }) => true,
        Err(error) => panic!("{error}"),
    };
    assert!(!taken(
        exclusive.put_new(&path, Bytes::from_static(b"first"))
    ));
    assert!(taken(
        exclusive.put_new(&path, Bytes::from_static(b"second"))
    ));
    let stored = storage.read(&[read(&path, ReadRange::All)]).unwrap();
    assert_eq!(stored, ["first"]);
    assert_eq!(names(storage, root), [("x".to_owned(), false)]);
    storage.delete(std::slice::from_ref(&path)).unwrap();
    let won = std::thread::scope(|scope| {
        let write = || {
            let exclusive = storage.exclusive().unwrap();
            !taken(exclusive.put_new(&path, Bytes::from_static(b"one of them")))
        };
        let writers: Vec<_> = (0..8).map(|_| scope.spawn(write)).collect();
        let won = writers.into_iter().map(|writer| writer.join().unwrap());
        won.filter(|won| *won).count()
    });
    assert_eq!(won, 1);
}

fn reads(storage: &dyn Storage, root: &StorePath) {
    let (path, other, empty) = (root.join("x"), root.join("y"), root.join("empty"));
    let body: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    storage.put(&path, Bytes::from(body.clone())).unwrap();
    storage
        .put(&other, Bytes::from_static(b"0123456789"))
        .unwrap();
    storage.put(&empty, Bytes::new()).unwrap();
    assert_eq!(storage.size(&path).unwrap(), 300_000);
    assert_eq!(storage.size(&empty).unwrap(), 0);

    let bounded = |limit| storage.read(&[read(&other, ReadRange::AtMost(limit))]);
    assert_eq!(bounded(10).unwrap(), ["0123456789"]);
    assert!(matches!(bounded(9), Err(Error::Budget { need: 10, .. })));

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
    let expected: Vec<&[u8]> = vec![
        b"89",
        &body[299_990..],
        &body[5..9],
        b"0123456789",
        &body[7..12],
        b"",
        b"",
        &body,
    ];
    assert_eq!(storage.read(&requests).unwrap(), expected);
    assert_eq!(
        storage.start_read(requests.to_vec()).wait().unwrap(),
        expected
    );
    assert_eq!(storage.read(&[]).unwrap(), Vec::<Bytes>::new());

    // As futures, polled from elsewhere than where they were started.
    let reading = storage.start_read(requests.to_vec());
    let awaited = std::thread::spawn(move || reading.wait()).join();
    assert_eq!(awaited.unwrap().unwrap(), expected);

    let paths = [path.clone(), other.clone(), empty];
    let tails = storage.read_tails(&paths, 12).unwrap();
    let pending = storage.start_read_tails(paths.to_vec(), 12);
    assert_eq!(pending.wait().unwrap(), tails);
    let tails: Vec<_> = tails
        .iter()
        .map(|tail| (&tail.bytes[..], tail.object_size))
        .collect();
    assert_eq!(
        tails,
        [
            (&body[299_988..], 300_000),
            (b"0123456789".as_slice(), 10),
            (b"".as_slice(), 0)
        ]
    );
    let tails = storage.read_tails(std::slice::from_ref(&path), 0).unwrap();
    assert_eq!((tails[0].bytes.len(), tails[0].object_size), (0, 300_000));
    // What is shown of an object is right; which ones are shown is the storage's affair.
    let append = |i: usize, text: &mut String| text.push_str(["y", "x", "missing", ""][i]);
    let tails = Tails {
        folder: root,
        count: 4,
        path: &append,
        len: 12,
    };
    let visit = |i: usize, tail: &[u8], size: u64| {
        assert_eq!((i, tail, size), (1, &body[299_988..], 300_000));
    };
    if let Some(access) = storage.random_access() {
        access.visit_tails(tails, &visit);
    }

    let (mut a, mut b, mut c) = (vec![0; 5], vec![0; 2], vec![]);
    storage
        .read_into(&mut [
            ReadInto {
                path: path.clone(),
                offset: 100,
                out: &mut a,
            },
            ReadInto {
                path: other.clone(),
                offset: 3,
                out: &mut b,
            },
            ReadInto {
                path: path.clone(),
                offset: 0,
                out: &mut c,
            },
        ])
        .unwrap();
    assert_eq!(
        (a.as_slice(), b.as_slice()),
        (&body[100..105], b"34".as_slice())
    );

    if let Some(access) = storage.random_access() {
        let (reader, mut out) = (access.open(&path).unwrap(), [0; 7]);
        reader.read_at(299_993, &mut out).unwrap();
        assert_eq!(out, body[299_993..]);
        let past = [299_994, u64::MAX].map(|offset| reader.read_at(offset, &mut out));
        assert!(past.iter().all(Result::is_err));
        assert!(access.open(&root.join("nothing")).is_err());
    }

    for missing in [root.join("nothing"), other.join("below"), root.clone()] {
        for range in [ReadRange::All, ReadRange::Bytes(0..1)] {
            let error = storage
                .read(&[read(&path, ReadRange::All), read(&missing, range.clone())])
                .unwrap_err();
            let directory = missing == *root && matches!(error, Error::Storage { .. });
            assert!(
                matches!(error, Error::NotFound { .. }) || directory,
                "{missing} {range:?}: {error}"
            );
            assert!(error.to_string().contains(&missing.to_string()), "{error}");
        }
        // Servers that keep objects as files may know folders as such.
        let folder = missing == *root && root.object_parts().is_some();
        assert!(
            folder || matches!(storage.size(&missing), Err(Error::NotFound { .. })),
            "{missing}"
        );
        assert!(
            storage
                .read_tails(&[path.clone(), missing.clone()], 1)
                .is_err(),
            "{missing}"
        );
        assert!(
            storage
                .start_read(vec![read(&missing, ReadRange::All)])
                .wait()
                .is_err()
        );
    }
    let past = storage
        .read(&[read(&other, ReadRange::Bytes(5..11))])
        .unwrap_err();
    assert!(matches!(past, Error::Storage { op: "read", .. }), "{past}");
    let mut out = [0; 4];
    let past = storage
        .read_into(&mut [ReadInto {
            path: other,
            offset: 8,
            out: &mut out,
        }])
        .unwrap_err();
    assert!(matches!(past, Error::Storage { op: "read", .. }), "{past}");
}

fn big_batches(storage: &dyn Storage, root: &StorePath) {
    let files: Vec<_> = (0..40u8)
        .map(|i| {
            (
                root.join(&format!("f{i}")),
                vec![i; 50_000 + usize::from(i)],
            )
        })
        .collect();
    for (path, body) in &files {
        storage.put(path, Bytes::from(body.clone())).unwrap();
    }
    let requests: Vec<_> = files
        .iter()
        .rev()
        .map(|(path, _)| read(path, ReadRange::All))
        .collect();
    let bodies: Vec<_> = files
        .iter()
        .rev()
        .map(|(_, body)| Bytes::from(body.clone()))
        .collect();
    assert_eq!(storage.read(&requests).unwrap(), bodies);
    let pending: Vec<_> = (0..8)
        .map(|_| storage.start_read(requests.clone()))
        .collect();
    for read in pending {
        assert_eq!(read.wait().unwrap(), bodies);
    }
    let mut outs: Vec<_> = files
        .iter()
        .map(|(_, body)| vec![0xff; body.len()])
        .collect();
    let mut into: Vec<_> = files
        .iter()
        .zip(&mut outs)
        .flat_map(|((path, _), out)| {
            let (head, tail) = out.split_at_mut(10_000);
            let offset = head.len() as u64;
            [
                ReadInto {
                    path: path.clone(),
                    offset,
                    out: tail,
                },
                ReadInto {
                    path: path.clone(),
                    offset: 0,
                    out: head,
                },
            ]
        })
        .collect();
    storage.read_into(&mut into).unwrap();
    let paths: Vec<_> = files.iter().map(|(path, _)| path.clone()).collect();
    for (tail, (_, body)) in storage.read_tails(&paths, 10).unwrap().iter().zip(&files) {
        assert_eq!(
            (&tail.bytes[..], tail.object_size),
            (&body[body.len() - 10..], body.len() as u64)
        );
    }
    assert!(files.iter().zip(&outs).all(|((_, body), out)| body == out));
}

fn writes_and_deletes(storage: &dyn Storage, root: &StorePath) {
    let path = root.join("d/x");
    storage.put(&path, Bytes::from_static(b"first")).unwrap();
    storage.put(&path, Bytes::from_static(b"2nd")).unwrap();
    assert_eq!(
        storage.read(&[read(&path, ReadRange::All)]).unwrap(),
        [Bytes::from_static(b"2nd")]
    );
    storage
        .put(&root.join("d/e/y"), Bytes::from_static(b"y"))
        .unwrap();
    storage
        .put(&root.join("dd"), Bytes::from_static(b"dd"))
        .unwrap();
    storage
        .delete(&[root.join("d/e"), root.join("nothing")])
        .unwrap();
    assert_eq!(names(storage, &root.join("d")), [("x".to_owned(), false)]);
    storage.delete(&[root.join("d"), path]).unwrap();
    assert_eq!(names(storage, root), [("dd".to_owned(), false)]);
}

fn uploads(storage: &dyn Storage, root: &StorePath) {
    let path = root.join("a/x");
    let mut upload = storage.upload(&path).unwrap();
    upload.write(b"one, ").unwrap();
    upload.write(b"").unwrap();
    upload.write_pieces(&[b"t", b"", b"wo"]).unwrap();
    upload.write_pieces(&[]).unwrap();
    upload.finish().unwrap();
    assert_eq!(
        storage.read(&[read(&path, ReadRange::All)]).unwrap(),
        [Bytes::from_static(b"one, two")]
    );
    // Where it costs no request, an object is not replaced; otherwise it is, and never before the
    // end.
    match storage.upload(&path) {
        Err(Error::AlreadyExists { .. }) => {}
        Err(other) => panic!("{other}"),
        Ok(mut again) => {
            again.write(b"another").unwrap();
            drop(again);
        }
    }
    assert_eq!(
        storage.read(&[read(&path, ReadRange::All)]).unwrap(),
        [Bytes::from_static(b"one, two")]
    );
    storage
        .upload(&root.join("a/empty"))
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(storage.size(&root.join("a/empty")).unwrap(), 0);

    let mut dropped = storage.upload(&root.join("a/dropped")).unwrap();
    dropped.write(&[0; 100_000]).unwrap();
    drop(dropped);
    assert_eq!(
        names(storage, &root.join("a")),
        [("empty".to_owned(), false), ("x".to_owned(), false)]
    );

    storage.make_folder(&root.join("b/c")).unwrap();
    storage.make_folder(&root.join("b/c")).unwrap();
    assert_eq!(storage.list(&root.join("b/c")).unwrap(), []);
}

fn moves(storage: &dyn Storage, root: &StorePath) {
    for name in ["from/x", "from/d/y", "fromage"] {
        storage
            .put(&root.join(name), Bytes::from(name.to_owned()))
            .unwrap();
    }
    storage
        .rename(&root.join("from"), &root.join("n/to"))
        .unwrap();
    let dir = |name: &str| (name.to_owned(), true);
    let file = |name: &str| (name.to_owned(), false);
    assert_eq!(names(storage, root), [file("fromage"), dir("n")]);
    assert_eq!(names(storage, &root.join("n/to")), [dir("d"), file("x")]);
    let body = storage
        .read(&[read(&root.join("n/to/d/y"), ReadRange::All)])
        .unwrap();
    assert_eq!(body, [Bytes::from_static(b"from/d/y")]);
    storage
        .rename(&root.join("fromage"), &root.join("n/z"))
        .unwrap();
    for (from, to) in [("n/z", "n/to"), ("n/z", "n/to/x"), ("n/to", "n/z")] {
        let error = storage
            .rename(&root.join(from), &root.join(to))
            .unwrap_err();
        assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    }
    let missing = storage
        .rename(&root.join("gone"), &root.join("anywhere"))
        .unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
}

fn replaces(storage: &dyn Storage, root: &StorePath) {
    let (new, old) = (root.join("new"), root.join("old"));
    for path in [&new, &old] {
        let body = Bytes::from(path.name().to_owned());
        storage.put(path, body).unwrap();
    }
    let body = |path: &StorePath| {
        let read = storage.read(&[read(path, ReadRange::All)]).unwrap();
        read[0].clone()
    };
    if !storage.replace(&new, &old).unwrap() {
        assert_eq!(
            (&body(&new)[..], &body(&old)[..]),
            (&b"new"[..], &b"old"[..])
        );
        return;
    }
    assert_eq!(body(&old), "new");
    // One name is two names of one object, and one that is free can be taken.
    for to in [&old, &new] {
        assert!(storage.replace(&old, to).unwrap());
        assert_eq!(body(to), "new");
    }
    let missing = storage.replace(&old, &new).unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
    assert_eq!(body(&new), "new");
}

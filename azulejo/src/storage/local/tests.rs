use super::*;
use crate::error::Error;
use crate::storage::{Uri, conformance};
use std::sync::atomic::Ordering;

fn scratch() -> (tempfile::TempDir, StorePath) {
    let dir = tempfile::tempdir().unwrap();
    let path = Uri::parse(dir.path().to_str().unwrap())
        .unwrap()
        .path()
        .clone();
    (dir, path)
}

#[test]
fn meets_the_contract() {
    let (_dir, root) = scratch();
    conformance::check(&LocalStorage::new(), &root.join("a b%é"));
    conformance::check_pages(&LocalStorage::new(), &root.join("pages"), 20);
}

#[test]
fn a_write_leaves_nothing_else_behind() {
    let (_dir, root) = scratch();
    let storage = LocalStorage::new();
    storage
        .put(&root.join("__schema/x"), Bytes::from_static(b"1"))
        .unwrap();
    storage
        .put(&root.join("y"), Bytes::from_static(b"2"))
        .unwrap();
    let names = |path: &StorePath| -> Vec<String> {
        storage
            .list(path)
            .unwrap()
            .into_iter()
            .map(|e| e.name)
            .collect()
    };
    assert_eq!(names(&root), ["__schema", "y"]);
    assert_eq!(names(&root.join("__schema")), ["x"]);
}

#[test]
fn what_is_not_done_lies_in_the_folder_of_its_array_where_a_check_finds_it() {
    let array = StorePath::memory("array");
    let of = |path: &StorePath| temporary_path(path).parent();
    for inside in [
        "x",
        "__schema/__enumerations/x",
        "__azulejo/manifest",
        "__azulejo/snapshots/first",
        "__azulejo/shown/first",
    ] {
        assert_eq!(of(&array.join(inside)), Some(array.clone()), "{inside}");
    }
    // The labels of a dimension are an array.
    let labels = array.join("__labels/l0");
    assert_eq!(of(&labels.join("__schema/x")), Some(labels));
}

#[test]
fn a_huge_range_is_an_error_before_it_is_an_allocation() {
    let (_dir, root) = scratch();
    let storage = LocalStorage::new();
    let path = root.join("x");
    storage.put(&path, Bytes::from_static(b"123")).unwrap();
    let request = ReadRequest {
        path,
        range: ReadRange::Bytes(1..1 << 60),
    };
    assert!(matches!(
        storage.read(&[request]),
        Err(Error::Storage { op: "read", .. })
    ));
}

#[test]
fn many_files_are_written_with_few_open() {
    let (_dir, root) = scratch();
    let storage = LocalStorage::new();
    let path = |i: usize| root.join(&format!("f{i}"));
    let mut uploads: Vec<_> = (0..2000)
        .map(|i| storage.upload(&path(i)).unwrap())
        .collect();
    for (i, upload) in uploads.iter_mut().enumerate() {
        upload.write(&[i as u8]).unwrap();
        upload.write(b"!").unwrap();
    }
    uploads.truncate(1900);
    uploads.drain(50..).for_each(drop);
    storage.finish_all(uploads).unwrap();
    assert_eq!(storage.list(&root).unwrap().len(), 50);
    let read = ReadRequest {
        path: path(49),
        range: ReadRange::All,
    };
    assert_eq!(storage.read(&[read]).unwrap()[0][..], [49, b'!']);
    assert_eq!(storage.open_uploads.load(Ordering::Relaxed), 0);
}

#[test]
fn long_uploads_are_flushed_on_the_way_and_come_out_whole() {
    let (_dir, root) = scratch();
    let storage = LocalStorage::new();
    let path = root.join("x");
    let piece = |i: u8| vec![i; (3 << 20) + usize::from(i)];
    let mut upload = storage.upload(&path).unwrap();
    (0..20).for_each(|i| upload.write(&piece(i)).unwrap());
    upload.finish().unwrap();
    let bytes = storage
        .read(&[ReadRequest {
            path,
            range: ReadRange::All,
        }])
        .unwrap()
        .remove(0);
    assert!(bytes[..] == (0..20).flat_map(piece).collect::<Vec<_>>());
    let mut dropped = storage.upload(&root.join("y")).unwrap();
    (0..20).for_each(|i| dropped.write(&piece(i)).unwrap());
    drop(dropped);
    assert_eq!(storage.list(&root).unwrap().len(), 1);
}

#[test]
#[cfg(unix)]
fn nothing_behind_a_link_inside_an_array_is_changed() {
    let (_dir, root) = scratch();
    let storage = LocalStorage::new();
    storage
        .put(&root.join("outside/x"), Bytes::from_static(b"1"))
        .unwrap();
    storage
        .put(&root.join("array/__schema/s"), Bytes::new())
        .unwrap();
    let link = |target: &str, name: &str| {
        let (target, name) = (root.join(target).to_native(), root.join(name).to_native());
        std::os::unix::fs::symlink(target, name).unwrap();
    };
    link("outside", "array/__commits");
    link("array", "linked");
    let inside = root.join("array/__commits/x");
    assert!(storage.put(&inside, Bytes::new()).is_err());
    assert!(storage.put_new(&inside, Bytes::new()).is_err());
    assert!(storage.upload(&inside.parent().unwrap().join("y")).is_err());
    assert!(storage.append(&inside).is_err());
    assert!(storage.delete(std::slice::from_ref(&inside)).is_err());
    assert_eq!(storage.size(&root.join("outside/x")).unwrap(), 1);
    assert_eq!(storage.list(&root.join("outside")).unwrap().len(), 1);
    // An array's own folder may be a link, and a link itself can be deleted.
    storage
        .put(&root.join("linked/__schema/t"), Bytes::new())
        .unwrap();
    assert_eq!(storage.list(&root.join("array/__schema")).unwrap().len(), 2);
    storage.delete(&[root.join("array/__commits")]).unwrap();
    assert_eq!(storage.size(&root.join("outside/x")).unwrap(), 1);
}

#[test]
#[cfg(unix)]
fn links_count_as_what_they_point_at() {
    let (_dir, root) = scratch();
    let storage = LocalStorage::new();
    storage
        .put(&root.join("real/x"), Bytes::from_static(b"1"))
        .unwrap();
    std::os::unix::fs::symlink(root.join("real").to_native(), root.join("link").to_native())
        .unwrap();
    std::os::unix::fs::symlink(root.join("gone").to_native(), root.join("lost").to_native())
        .unwrap();
    let entries = storage.list(&root).unwrap();
    let found: Vec<_> = entries
        .iter()
        .map(|e| (e.name.as_str(), e.is_dir))
        .collect();
    assert_eq!(found, [("link", true), ("real", true)]);
    // No walk goes through them: one may lead back.
    std::os::unix::fs::symlink(root.to_native(), root.join("real/back").to_native()).unwrap();
    let tree = storage.list_tree(&root).unwrap();
    let folders: Vec<_> = tree.iter().map(|(folder, _)| folder.as_str()).collect();
    assert_eq!(folders, ["", "real"]);
    // Deleting a link leaves what it points at.
    storage.delete(&[root.join("link")]).unwrap();
    assert_eq!(storage.list(&root.join("real")).unwrap().len(), 2);
}

#[test]
#[cfg(target_os = "linux")]
fn where_no_folder_can_be_made_is_an_error() {
    let place = Uri::parse("/proc/azulejo/a/b").unwrap().path().clone();
    let made = LocalStorage::new().make_folder(&place);
    assert!(matches!(made, Err(Error::Storage { .. })), "{made:?}");
    let put = LocalStorage::new().put(&place, Bytes::from_static(b"1"));
    assert!(matches!(put, Err(Error::Storage { .. })), "{put:?}");
}

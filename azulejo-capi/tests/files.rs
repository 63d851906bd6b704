//! Files and folders through the C API: moves between file systems and over other files, links.
#![allow(unsafe_code, clippy::unwrap_used, reason = "tests of a C API")]

mod capi;

use capi::{Ctx, Handle, close, fails, free, last_error, null, ok, open};
use std::ffi::{CStr, CString, c_char, c_void};

fn vfs(ctx: Handle) -> Handle {
    let mut vfs = null();
    ok!(tiledb_vfs_alloc, ctx, null(), &mut vfs);
    vfs
}

fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

fn size(ctx: Handle, vfs: Handle, uri: &CStr) -> u64 {
    let mut size = 0u64;
    ok!(tiledb_vfs_file_size, ctx, vfs, uri, &mut size);
    size
}

fn put(ctx: Handle, vfs: Handle, uri: &CStr, text: &CStr) {
    let mut file = null();
    ok!(tiledb_vfs_open, ctx, vfs, uri, 1, &mut file);
    ok!(
        tiledb_vfs_write,
        ctx,
        file,
        text,
        text.to_bytes().len() as u64
    );
    ok!(tiledb_vfs_close, ctx, file);
    free!(tiledb_vfs_fh_free, file);
}

#[test]
fn moves_between_file_systems_are_refused_and_lose_nothing() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let mut vfs = vfs(ctx);
    let disk = |name: &str| {
        c(&format!(
            "file://{}/{name}",
            folder.path().to_str().unwrap()
        ))
    };
    let memory = |name: &str| c(&format!("mem://files/{name}"));
    for uri in [disk("d/a"), disk("b"), memory("d/a"), memory("b")] {
        put(ctx, vfs, &uri, c"hello");
    }
    for (from, to) in [
        (disk("d/a"), memory("b")),
        (memory("d/a"), disk("b")),
        (disk("d/a"), memory("new")),
        (memory("d/a"), disk("new")),
        (disk("d/a"), c("s3://bucket/b")),
    ] {
        let message = fails!(tiledb_vfs_move_file, ctx, vfs, &from, &to);
        assert!(message.contains("another file system"), "{message}");
    }
    for (from, to) in [
        (disk("d"), memory("new")),
        (memory("d"), disk("new")),
        (disk("d"), c("s3://bucket/new")),
    ] {
        let message = fails!(tiledb_vfs_move_dir, ctx, vfs, &from, &to);
        assert!(message.contains("another file system"), "{message}");
    }
    for uri in [disk("d/a"), disk("b"), memory("d/a"), memory("b")] {
        assert_eq!(size(ctx, vfs, &uri), 5, "{uri:?}");
    }
    for uri in [disk("new"), memory("new")] {
        let (mut is_file, mut is_dir) = (9i32, 9i32);
        ok!(tiledb_vfs_is_file, ctx, vfs, &uri, &mut is_file);
        ok!(tiledb_vfs_is_dir, ctx, vfs, &uri, &mut is_dir);
        assert_eq!((is_file, is_dir), (0, 0), "{uri:?}");
    }
    // Copies go anywhere, and within one file system moves do too.
    ok!(tiledb_vfs_copy_dir, ctx, vfs, &disk("d"), &memory("copy"));
    ok!(
        tiledb_vfs_move_dir,
        ctx,
        vfs,
        &memory("d"),
        &memory("moved")
    );
    assert_eq!(size(ctx, vfs, &memory("copy/a")), 5);
    assert_eq!(size(ctx, vfs, &memory("moved/a")), 5);
    free!(tiledb_vfs_free, vfs);
}

/// What a listing has called back with, and after how many it is to stop.
#[derive(Default)]
struct Seen {
    names: Vec<(String, u64)>,
    /// Deletes these when it is called first.
    deletes: Vec<std::path::PathBuf>,
    most: Option<usize>,
}

extern "C" fn see(path: *const c_char, len: usize, size: u64, data: *mut c_void) -> i32 {
    // SAFETY: the listing passes a path of this length and what the test gave.
    let (path, seen) = unsafe {
        let bytes = std::slice::from_raw_parts(path.cast::<u8>(), len);
        (
            String::from_utf8_lossy(bytes).into_owned(),
            &mut *data.cast::<Seen>(),
        )
    };
    seen.names.push((path, size));
    for path in seen.deletes.drain(..) {
        std::fs::remove_file(path).unwrap();
    }
    i32::from(seen.most != Some(seen.names.len()))
}

type Callback = extern "C" fn(*const c_char, usize, u64, *mut c_void) -> i32;

fn walk(ctx: Handle, vfs: Handle, path: &CStr, seen: &mut Seen) -> i32 {
    let callback: Callback = see;
    capi::raw!(
        tiledb_vfs_ls_recursive,
        ctx,
        vfs,
        path,
        callback as *const c_void,
        std::ptr::from_mut(seen)
    )
}

#[cfg(unix)]
#[test]
fn links_to_folders_are_named_and_not_entered() {
    use std::os::unix::fs::symlink;
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path().join("root");
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::write(root.join("sub/file"), b"hello").unwrap();
    std::fs::write(other.path().join("large"), [0; 100]).unwrap();
    let mut vfs = vfs(ctx);
    let uri = |name: &str| c(folder.path().join(name).to_str().unwrap());
    ok!(tiledb_vfs_copy_dir, ctx, vfs, &uri("root"), &uri("before"));
    symlink(".", root.join("x")).unwrap();
    symlink(".", root.join("y")).unwrap();
    symlink(other.path(), root.join("z")).unwrap();
    symlink("sub/file", root.join("linked_file")).unwrap();

    let mut seen = Seen::default();
    assert_eq!(walk(ctx, vfs, &uri("root"), &mut seen), 0);
    let names = seen
        .names
        .iter()
        .map(|(path, size)| (path.split_once("/root/").unwrap().1.to_owned(), *size));
    let expected = [
        ("linked_file", 5),
        ("sub", 0),
        ("sub/file", 5),
        ("x", 0),
        ("y", 0),
        ("z", 0),
    ];
    assert_eq!(
        names.collect::<Vec<_>>(),
        expected.map(|(name, size)| (name.to_owned(), size))
    );
    let mut total = 0u64;
    ok!(tiledb_vfs_dir_size, ctx, vfs, &uri("root"), &mut total);
    assert_eq!(total, 10);
    // A copy without what is linked would look like all of it.
    let message = fails!(tiledb_vfs_copy_dir, ctx, vfs, &uri("root"), &uri("copy"));
    assert!(
        message.contains("links to folders are not copied"),
        "{message}"
    );
    assert!(!folder.path().join("copy").exists());
    assert_eq!(
        std::fs::read(folder.path().join("before/sub/file")).unwrap(),
        b"hello"
    );
    // A link may be where the listing begins.
    let mut seen = Seen::default();
    assert_eq!(walk(ctx, vfs, &uri("root/z"), &mut seen), 0);
    assert_eq!(seen.names.len(), 1);
    free!(tiledb_vfs_free, vfs);
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf_8_are_listed_and_not_lost() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let strange = root.join("sub").join(OsStr::from_bytes(b"d\xff"));
    std::fs::create_dir_all(&strange).unwrap();
    std::fs::write(strange.join("in"), b"hello").unwrap();
    std::fs::write(root.join(OsStr::from_bytes(b"caf\xe9")), b"abc").unwrap();
    std::fs::write(root.join("plain"), b"x").unwrap();
    let mut vfs = vfs(ctx);
    let uri = |name: &str| c(folder.path().join(name).to_str().unwrap());
    let mut seen = Seen::default();
    assert_eq!(walk(ctx, vfs, &uri("root"), &mut seen), 0);
    let mut names: Vec<_> = seen
        .names
        .iter()
        .map(|(path, size)| (path.split_once("/root/").unwrap().1, *size))
        .collect();
    names.sort_unstable();
    let expected = [
        ("caf\u{fffd}", 3),
        ("plain", 1),
        ("sub", 0),
        ("sub/d\u{fffd}", 0),
        ("sub/d\u{fffd}/in", 5),
    ];
    assert_eq!(names, expected);
    let mut total = 0u64;
    ok!(tiledb_vfs_dir_size, ctx, vfs, &uri("root"), &mut total);
    assert_eq!(total, 9);
    // Files hold nothing.
    let mut none = Vec::<String>::new();
    let callback: extern "C" fn(*const c_char, *mut c_void) -> i32 = see_name;
    ok!(
        tiledb_vfs_ls,
        ctx,
        vfs,
        &uri("root/plain"),
        callback as *const c_void,
        &mut none
    );
    assert!(none.is_empty());
    // A copy without these would look like all of it.
    let message = fails!(tiledb_vfs_copy_dir, ctx, vfs, &uri("root"), &uri("copy"));
    assert!(message.contains("not UTF-8"), "{message}");
    assert!(!folder.path().join("copy").exists());
    free!(tiledb_vfs_free, vfs);
}

#[test]
fn listings_call_back_while_they_walk() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let mut vfs = vfs(ctx);
    for name in ["a", "b", "c"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("file"), b"x").unwrap();
    }
    let root = c(folder.path().to_str().unwrap());
    // What goes before the walk comes to it is not there.
    let mut seen = Seen {
        deletes: vec![folder.path().join("c/file")],
        ..Seen::default()
    };
    assert_eq!(walk(ctx, vfs, &root, &mut seen), 0);
    assert_eq!(seen.names.len(), 5, "{:?}", seen.names);
    let mut seen = Seen {
        most: Some(2),
        ..Seen::default()
    };
    assert_eq!(walk(ctx, vfs, &root, &mut seen), 0);
    assert_eq!(seen.names.len(), 2);
    let mut seen = Seen::default();
    for missing in ["missing", "a/file"] {
        let path = c(folder.path().join(missing).to_str().unwrap());
        assert_eq!(walk(ctx, vfs, &path, &mut seen), -1);
        assert!(last_error(ctx).contains("no such folder"));
    }
    assert!(seen.names.is_empty());
    free!(tiledb_vfs_free, vfs);
}

#[test]
fn an_exported_file_never_takes_the_place_of_a_folder() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = |name: &str| c(folder.path().join(name).to_str().unwrap());
    let (array, mut schema) = (uri("array"), null());
    ok!(tiledb_filestore_schema_create, ctx, null(), &mut schema);
    ok!(tiledb_array_create, ctx, &array, schema);
    free!(tiledb_array_schema_free, schema);
    ok!(
        tiledb_filestore_buffer_import,
        ctx,
        &array,
        b"hello",
        5u64,
        0
    );
    let kept = folder.path().join("folder/x/kept");
    std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
    std::fs::write(&kept, b"1").unwrap();
    for to in [uri("folder"), array.clone()] {
        let message = fails!(tiledb_filestore_uri_export, ctx, &to, &array);
        assert!(message.contains("is a folder"), "{message}");
    }
    assert!(kept.exists());
    close(ctx, open(ctx, &array, 0));
    let file = folder.path().join("file");
    std::fs::write(&file, b"something longer").unwrap();
    ok!(tiledb_filestore_uri_export, ctx, &uri("file"), &array);
    assert_eq!(std::fs::read(&file).unwrap(), b"hello");
}

#[test]
fn bytes_that_are_imported_end_where_they_end() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let array = c(folder.path().join("array").to_str().unwrap());
    let mut schema = null();
    ok!(tiledb_filestore_schema_create, ctx, null(), &mut schema);
    ok!(tiledb_array_create, ctx, &array, schema);
    free!(tiledb_array_schema_free, schema);
    ok!(
        tiledb_filestore_buffer_import,
        ctx,
        &array,
        b"hello",
        5u64,
        0
    );
    let opened = open(ctx, &array, 0);
    let (mut domain, mut is_empty) = ([7u64; 2], 7i32);
    ok!(
        tiledb_array_get_non_empty_domain,
        ctx,
        opened,
        &mut domain[..],
        &mut is_empty
    );
    assert_eq!((domain, is_empty), ([0, 4], 0));
    close(ctx, opened);
    let mut size = 0u64;
    ok!(tiledb_filestore_size, ctx, &array, &mut size);
    let mut bytes = [0u8; 3];
    ok!(
        tiledb_filestore_buffer_export,
        ctx,
        &array,
        2u64,
        &mut bytes,
        3u64
    );
    assert_eq!((size, &bytes), (5, b"llo"));
}

#[test]
fn a_file_of_gigabytes_has_tiles_of_a_hundred_megabytes() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    for (size, extent) in [(1u64 << 30, 1u64 << 20), ((1 << 30) + 1, 100 << 20)] {
        // Nothing of it is written.
        let path = folder.path().join("file");
        std::fs::File::create(&path).unwrap().set_len(size).unwrap();
        let (mut schema, mut domain, mut dimension) = (null(), null(), null());
        let file = c(path.to_str().unwrap());
        ok!(tiledb_filestore_schema_create, ctx, &file, &mut schema);
        ok!(tiledb_array_schema_get_domain, ctx, schema, &mut domain);
        ok!(
            tiledb_domain_get_dimension_from_index,
            ctx,
            domain,
            0u32,
            &mut dimension
        );
        let mut found: *const u64 = std::ptr::null();
        ok!(tiledb_dimension_get_tile_extent, ctx, dimension, &mut found);
        // SAFETY: the extent lives as long as the dimension's handle.
        assert_eq!(unsafe { found.read_unaligned() }, extent);
        free!(tiledb_dimension_free, dimension; tiledb_domain_free, domain; tiledb_array_schema_free, schema);
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_is_moved_to_another_name_of_itself_stays() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let uri = |name: &str| c(path(name).to_str().unwrap());
    std::fs::create_dir(path("q")).unwrap();
    std::fs::write(path("f"), b"data").unwrap();
    std::os::unix::fs::symlink(".", path("linked")).unwrap();
    std::os::unix::fs::symlink("f", path("link")).unwrap();
    let mut vfs = vfs(ctx);
    for (from, to) in [
        ("f", "q/../f"),
        ("q/../f", "f"),
        ("linked/f", "f"),
        ("f", "linked/q/../f"),
        // It would lead to itself.
        ("link", "f"),
    ] {
        ok!(tiledb_vfs_move_file, ctx, vfs, &uri(from), &uri(to));
        assert_eq!(std::fs::read(path("f")).unwrap(), b"data", "{from} {to}");
    }
    // In the place of a link to it, as in that of any file.
    ok!(tiledb_vfs_move_file, ctx, vfs, &uri("f"), &uri("link"));
    assert!(path("link").symlink_metadata().unwrap().is_file());
    assert_eq!(std::fs::read(path("link")).unwrap(), b"data");
    assert!(!path("f").exists());
    free!(tiledb_vfs_free, vfs);
}

#[cfg(target_os = "linux")]
#[test]
fn a_move_that_fails_leaves_what_lies_at_its_target() {
    use std::os::unix::fs::MetadataExt;
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let device = |folder: &tempfile::TempDir| folder.path().metadata().unwrap().dev();
    if device(&folder) == device(&other) {
        return;
    }
    let (from, to) = (folder.path().join("f"), other.path().join("f"));
    std::fs::write(&from, b"new").unwrap();
    std::fs::write(&to, b"old").unwrap();
    let mut vfs = vfs(ctx);
    fails!(
        tiledb_vfs_move_file,
        ctx,
        vfs,
        &c(from.to_str().unwrap()),
        &c(to.to_str().unwrap())
    );
    assert_eq!(std::fs::read(&from).unwrap(), b"new");
    assert_eq!(std::fs::read(&to).unwrap(), b"old");
    free!(tiledb_vfs_free, vfs);
}

#[test]
fn closing_a_file_twice_and_touching_a_folder_are_errors() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = |name: &str| c(folder.path().join(name).to_str().unwrap());
    let (mut vfs, mut file) = (vfs(ctx), null());
    for mode in [1, 0] {
        ok!(tiledb_vfs_open, ctx, vfs, &uri("f"), mode, &mut file);
        ok!(tiledb_vfs_close, ctx, file);
        assert!(fails!(tiledb_vfs_close, ctx, file).contains("closed"));
        free!(tiledb_vfs_fh_free, file);
    }
    ok!(tiledb_vfs_touch, ctx, vfs, &uri("f"));
    assert!(fails!(tiledb_vfs_touch, ctx, vfs, &uri("")).contains("folder"));
    free!(tiledb_vfs_free, vfs);
}

#[test]
fn files_and_folders_that_are_moved_and_copied_to_their_own_place_stay() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let mut vfs = vfs(ctx);
    let folder = tempfile::tempdir().unwrap();
    let local = folder.path().to_str().unwrap().to_owned();
    for base in [local.as_str(), "mem://own"] {
        let uri = |name: &str| c(&format!("{base}/{name}"));
        ok!(tiledb_vfs_create_dir, ctx, vfs, &uri("f"));
        put(ctx, vfs, &uri("f/a"), c"abc");
        ok!(tiledb_vfs_copy_file, ctx, vfs, &uri("f/a"), &uri("f/a"));
        ok!(tiledb_vfs_move_file, ctx, vfs, &uri("f/a"), &uri("f/a"));
        ok!(tiledb_vfs_copy_dir, ctx, vfs, &uri("f"), &uri("f"));
        ok!(tiledb_vfs_move_dir, ctx, vfs, &uri("f"), &uri("f"));
        let message = fails!(tiledb_vfs_move_dir, ctx, vfs, &uri("f"), &uri("f/g"));
        assert!(message.contains("into itself"), "{message}");
        assert_eq!(size(ctx, vfs, &uri("f/a")), 3);
        for name in ["missing", "f/missing"] {
            fails!(tiledb_vfs_copy_file, ctx, vfs, &uri(name), &uri(name));
            fails!(tiledb_vfs_move_file, ctx, vfs, &uri(name), &uri(name));
            fails!(tiledb_vfs_copy_dir, ctx, vfs, &uri(name), &uri(name));
            fails!(tiledb_vfs_move_dir, ctx, vfs, &uri(name), &uri(name));
        }
    }
    free!(tiledb_vfs_free, vfs);
}

extern "C" fn see_name(path: *const c_char, data: *mut c_void) -> i32 {
    // SAFETY: the listing passes a text and what the test gave.
    let (path, names) = unsafe { (CStr::from_ptr(path), &mut *data.cast::<Vec<String>>()) };
    names.push(path.to_str().unwrap().to_owned());
    1
}

#[test]
fn what_is_listed_lies_in_the_storage_that_was_asked() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let mut vfs = vfs(ctx);
    put(ctx, vfs, c"mem://listed/a", c"hello");
    put(ctx, vfs, c"mem://listed/d/b", c"hello");
    let mut names: Vec<String> = Vec::new();
    let callback: extern "C" fn(*const c_char, *mut c_void) -> i32 = see_name;
    ok!(
        tiledb_vfs_ls,
        ctx,
        vfs,
        c"mem://listed",
        callback as *const c_void,
        &mut names
    );
    assert_eq!(names, ["mem://listed/a", "mem://listed/d"]);
    let mut seen = Seen::default();
    assert_eq!(walk(ctx, vfs, c"mem://listed", &mut seen), 0);
    let names: Vec<&str> = seen.names.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["mem://listed/a", "mem://listed/d", "mem://listed/d/b"]
    );
    free!(tiledb_vfs_free, vfs);
}

//! Deleting files and folders.

use super::changes::Changes;
use super::error::{is_missing, storage_error};
use super::side_by_side::{WAITING, busy, side_by_side};
use crate::error::Result;
use crate::storage::StorePath;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Deletes files, and folders with all that they hold; those that do not exist are no error.
///
/// Names are gone when this returns, through a power failure too: what is deleted next may be needed
/// as long as these are there. The space of large files may be given back a moment later.
///
/// The root of a file system is never deleted, whatever was made there: nobody means that.
pub(super) fn delete(paths: &[StorePath], changes: &Changes) -> Result<()> {
    if let Some(root) = paths.iter().find(|path| is_root(path.as_native())) {
        let refused = io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the root of a file system is not deleted",
        );
        return Err(storage_error("delete", root, refused));
    }
    let held = HeldFiles::default();
    // What a file system does to delete a file is work, most of it under locks.
    let result = side_by_side(paths.iter().collect(), busy(), |path| {
        delete_one(path, &held, changes)
    });
    held.release();
    result?;
    let parents: BTreeSet<StorePath> = paths.iter().filter_map(StorePath::parent).collect();
    side_by_side(parents.into_iter().collect(), WAITING, |parent| {
        let synced = changes.sync_folder(parent.as_native());
        synced.map_err(|source| storage_error("delete", &parent, source))
    })
}

/// Removes a folder if it is empty, by the word of the file system.
pub(super) fn delete_empty(path: &StorePath, changes: &Changes) -> Result<()> {
    let failed = |source| storage_error("delete", path, source);
    match changes.remove_empty_folder(path.as_native()) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty || is_missing(&e) => return Ok(()),
        Err(e) => return Err(failed(e)),
    }
    match path.parent() {
        Some(parent) => changes.sync_folder(parent.as_native()).map_err(failed),
        None => Ok(()),
    }
}

/// Whether a path names a file system's root.
fn is_root(path: &Path) -> bool {
    let depth = path.components().fold(0u32, |depth, part| match part {
        Component::Normal(_) => depth.saturating_add(1),
        Component::ParentDir => depth.saturating_sub(1),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => depth,
    });
    depth == 0
}

fn delete_one(path: &StorePath, held: &HeldFiles, changes: &Changes) -> Result<()> {
    let native = path.as_native();
    // Most are files, and systems refuse to delete a folder as one: only then it is asked what it
    // is.
    let result = match changes.remove_file(native) {
        Err(e) if !is_missing(&e) => match fs::symlink_metadata(native) {
            Ok(metadata) if metadata.is_dir() => delete_folder(native, held, changes),
            unknown => Err(unknown.err().unwrap_or(e)),
        },
        result => result,
    };
    match result {
        Err(e) if !is_missing(&e) => Err(storage_error("delete", path, e)),
        _ => Ok(()),
    }
}

fn delete_folder(folder: &Path, held: &HeldFiles, changes: &Changes) -> io::Result<()> {
    let mine = hold(folder);
    match changes.remove_folder(folder) {
        // Some file systems, those of networks above all, keep an open file under another name in
        // its folder; and a process may have too many files open.
        Err(_) if !mine.0.is_empty() => {
            drop(mine);
            held.close();
            changes.remove_folder(folder)
        }
        result => {
            held.keep(mine);
            result
        }
    }
}

/// Files that are held open at a time, of those that a process may have open; none where fewer
/// files may be open, or an open file cannot be deleted.
const MOST_HELD: Option<usize> = if cfg!(target_os = "linux") {
    Some(128)
} else {
    None
};

static HELD: AtomicUsize = AtomicUsize::new(0);

/// Open files: the last to close one that has no name any more gives its space back, which for
/// large files takes much longer than to take the name away, and often waits for the device.
#[derive(Default)]
struct OpenFiles(Vec<File>);

impl Drop for OpenFiles {
    fn drop(&mut self) {
        for file in self.0.drain(..) {
            drop(file);
            HELD.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Opens the files of a folder that is to be deleted, and itself, as far as this can be done.
fn hold(folder: &Path) -> OpenFiles {
    let mut files = OpenFiles::default();
    let Some(most) = MOST_HELD else { return files };
    let room = || {
        HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
            (n < most).then_some(n + 1)
        })
    };
    let mut open = |path: &Path| {
        if room().is_ok() {
            match File::open(path) {
                Ok(file) => files.0.push(file),
                Err(_) => _ = HELD.fetch_sub(1, Ordering::Relaxed),
            }
        }
    };
    if HELD.load(Ordering::Relaxed) < most
        && let Ok(children) = fs::read_dir(folder)
    {
        let children = children.flatten();
        // To open a pipe could wait for ever.
        let files = children.filter(|child| child.file_type().is_ok_and(|kind| kind.is_file()));
        files.for_each(|file| open(&file.path()));
        open(folder);
    }
    files
}

/// Files that are closed when all names are gone.
#[derive(Default)]
struct HeldFiles(Mutex<Vec<OpenFiles>>);

impl HeldFiles {
    fn keep(&self, files: OpenFiles) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(files);
    }

    fn close(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Closes the files in the background. A process that ends before does it in ending.
    fn release(self) {
        let files = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        if files.iter().any(|files| !files.0.is_empty()) {
            // Without a thread they are closed here: with the work that it would have done.
            let _ = thread::Builder::new()
                .name("azulejo-delete".into())
                .spawn(move || drop(files));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Uri;
    use std::time::Duration;

    #[test]
    fn folders_go_with_all_that_they_hold_and_files_are_closed_soon() {
        let dir = tempfile::tempdir().unwrap();
        let root = Uri::parse(dir.path().to_str().unwrap())
            .unwrap()
            .path()
            .clone();
        let folders: Vec<StorePath> = (0..60).map(|i| root.join(&format!("f{i}"))).collect();
        for folder in &folders {
            fs::create_dir_all(folder.join("inner").as_native()).unwrap();
            for file in ["a", "b", "c", "inner/d"] {
                fs::write(folder.join(file).as_native(), vec![1; 10_000]).unwrap();
            }
        }
        let mut paths = folders.clone();
        paths.push(root.join("missing"));
        delete(&paths, &Changes::default()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        // Other tests delete meanwhile. By the number of looks, not by a clock: the process may be
        // stopped for a while.
        let none_is_held = (0..60_000).any(|_| {
            thread::sleep(Duration::from_millis(1));
            HELD.load(Ordering::Relaxed) == 0
        });
        assert!(none_is_held, "files stay open");
    }

    #[test]
    fn the_root_of_a_file_system_stays() {
        for root in ["/", "/.", "//", "/..", "/a/..", "/a/../..", "/a/b/../../."] {
            assert!(is_root(Path::new(root)), "{root}");
        }
        for inside in ["/a", "/a/b/..", "/../a"] {
            assert!(!is_root(Path::new(inside)), "{inside}");
        }
        // A folder for itself and the root beside it: neither is touched.
        let dir = tempfile::tempdir().unwrap();
        let path = |text: &str| Uri::parse(text).unwrap().path().clone();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let paths = [path(inner.to_str().unwrap()), path("/no such folder/..")];
        if is_root(paths[1].as_native()) {
            let error = delete(&paths, &Changes::default()).unwrap_err();
            assert!(
                error.to_string().contains("root of a file system"),
                "{error}"
            );
            assert!(inner.is_dir());
        }
    }
}

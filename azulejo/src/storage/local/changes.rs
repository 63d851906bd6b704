//! Every change of the file system, and what makes it last.
//!
//! A file's bytes last once the file was synced, its name once the folder that has it was, and the
//! name of a new folder once the folder around that was. Names that nothing depends on yet are only
//! noted here; [`Changes::sync_for`] makes all of them last that a file needs which is about to
//! make them count.

use super::error::{is_missing, storage_error};
use super::side_by_side::{WAITING, side_by_side};
use crate::error::Result;
use crate::storage::StorePath;
use azulejo_format::path::MANIFEST_FOLDER;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often a folder is made anew whose parent somebody has removed meanwhile.
const FOLDER_ATTEMPTS: usize = 8;

/// One change, as tests see it that rebuild what a power failure leaves.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub enum FileChange {
    MakeFolder(PathBuf),
    /// A new file without bytes, or one that has lost its own.
    Create(PathBuf),
    /// Bytes behind those that a file has.
    Write(PathBuf, Vec<u8>),
    SyncFile(PathBuf),
    SyncFolder(PathBuf),
    Rename(PathBuf, PathBuf),
    Link(PathBuf, PathBuf),
    Remove(PathBuf),
    /// A folder with all that it holds.
    RemoveFolder(PathBuf),
}

/// Changes in their order, for tests.
#[doc(hidden)]
pub type ChangeLog = Arc<Mutex<Vec<FileChange>>>;

/// Changes the file system. Clones know of each other's new names.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    unsynced: Arc<Mutex<Unsynced>>,
    pub log: Option<ChangeLog>,
}

/// Folders with new names that may be lost, each with the number of its latest one.
#[derive(Debug, Default)]
struct Unsynced {
    folders: BTreeMap<PathBuf, u64>,
    names: u64,
}

impl Changes {
    /// Says what was changed, where somebody watches.
    fn log(&self, change: impl FnOnce() -> FileChange) {
        if let Some(log) = &self.log {
            log.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(change());
        }
    }

    fn unsynced(&self) -> MutexGuard<'_, Unsynced> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a name is new, or may be: whoever has made it may not have lived to make it last.
    fn note(&self, path: &Path) {
        // Elsewhere folders cannot be synced.
        if !cfg!(unix) {
            return;
        }
        if let Some(folder) = path.parent() {
            let mut unsynced = self.unsynced();
            unsynced.names += 1;
            let name = unsynced.names;
            unsynced.folders.insert(folder.to_owned(), name);
        }
    }

    /// Makes a folder and those that it lies in.
    pub fn make_folders(&self, path: &Path) -> io::Result<()> {
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let mut attempts = FOLDER_ATTEMPTS;
        loop {
            match (fs::create_dir(path), parent) {
                (Ok(()), _) => break self.log(|| FileChange::MakeFolder(path.to_owned())),
                // Not for ever: a file system such as /proc says so of every new name.
                (Err(e), Some(parent)) if e.kind() == ErrorKind::NotFound && attempts > 0 => {
                    self.make_folders(parent)?;
                    attempts -= 1;
                }
                (Err(_), _) if path.is_dir() => return Ok(()),
                (Err(e), _) => return Err(e),
            }
        }
        self.note(path);
        Ok(())
    }

    /// As [`Self::make_folders`], for a folder that may have been made by somebody who did not live
    /// to make its name last.
    pub fn make_known_folders(&self, path: &Path) -> io::Result<()> {
        self.make_folders(path)?;
        self.note(path);
        Ok(())
    }

    /// A new file, whose name lasts with the next [`Self::sync_for`] a file of the same array.
    pub fn create_new(&self, path: &Path) -> io::Result<File> {
        let file = self.create_temporary(path)?;
        self.note(path);
        Ok(file)
    }

    /// A new file whose name need not last.
    pub fn create_temporary(&self, path: &Path) -> io::Result<File> {
        let file = File::create_new(path)?;
        self.log(|| FileChange::Create(path.to_owned()));
        Ok(file)
    }

    /// A file without bytes, also in the place of another one; never through a link, which may
    /// lead anywhere.
    pub fn create_empty(&self, path: &Path) -> io::Result<()> {
        match File::create_new(path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                if !fs::symlink_metadata(path)?.is_file() {
                    return Err(io::Error::new(
                        ErrorKind::PermissionDenied,
                        "what lies there is no regular file",
                    ));
                }
                File::options().write(true).truncate(true).open(path)?;
            }
            created => _ = created?,
        }
        self.log(|| FileChange::Create(path.to_owned()));
        Ok(())
    }

    /// Says what was written.
    pub fn written(&self, path: &Path, pieces: &[&[u8]]) {
        self.log(|| FileChange::Write(path.to_owned(), pieces.concat()));
    }

    /// Makes a file's bytes last.
    pub fn sync_file(&self, path: &Path, file: &File) -> io::Result<()> {
        file.sync_all()?;
        self.log(|| FileChange::SyncFile(path.to_owned()));
        Ok(())
    }

    /// Gives a file or folder another name, in the place of a file that has it.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)?;
        self.log(|| FileChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    /// Gives a file a name more, which must be new.
    pub fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)?;
        self.log(|| FileChange::Link(from.to_owned(), to.to_owned()));
        Ok(())
    }

    pub fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)?;
        self.log(|| FileChange::Remove(path.to_owned()));
        Ok(())
    }

    /// Removes a folder with all that it holds.
    pub fn remove_folder(&self, path: &Path) -> io::Result<()> {
        // What is left after an error is gone in part.
        self.log(|| FileChange::RemoveFolder(path.to_owned()));
        let removed = fs::remove_dir_all(path);
        let mut unsynced = self.unsynced();
        unsynced
            .folders
            .retain(|folder, _| !folder.starts_with(path));
        removed
    }

    /// Removes a folder that holds nothing.
    pub fn remove_empty_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)?;
        self.log(|| FileChange::RemoveFolder(path.to_owned()));
        self.unsynced().folders.remove(path);
        Ok(())
    }

    /// Makes the names in a folder last. One that is not there any more has none.
    pub fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let name = self.unsynced().folders.get(folder).copied();
        match sync_folder(folder) {
            Err(e) if !is_missing(&e) => return Err(e),
            Ok(()) => {
                self.log(|| FileChange::SyncFolder(folder.to_owned()));
            }
            Err(_) => {}
        }
        // Only now: who looks meanwhile must not take it for done.
        let mut unsynced = self.unsynced();
        if unsynced.folders.get(folder).copied() == name {
            unsynced.folders.remove(folder);
        }
        Ok(())
    }

    /// Makes all that a file needs last before it is there: new names in its array or group, and of
    /// the folders that it lies in. `file` has its bytes, which are made to last beside them.
    pub fn sync_for(&self, path: &StorePath, file: Option<(&Path, &File)>) -> Result<()> {
        let root = root_of(path);
        let (root, native) = (root.as_native(), path.as_native());
        let needed = |folder: &&PathBuf| folder.starts_with(root) || native.starts_with(folder);
        let folders = self
            .unsynced()
            .folders
            .keys()
            .filter(needed)
            .cloned()
            .collect::<Vec<_>>();
        let folders = folders.into_iter().map(|folder| (folder, None));
        let file = file.map(|(name, file)| (name.to_owned(), Some(file)));
        let work = |(path, file): (PathBuf, Option<&File>)| match file {
            Some(file) => self.sync_file(&path, file),
            None => self.sync_folder(&path),
        };
        side_by_side(file.into_iter().chain(folders).collect(), WAITING, |one| {
            work(one).map_err(|source| storage_error("write", path, source))
        })
    }
}

/// The folder of the array or group that a file belongs to: the folders inside begin with `__`, or lie
/// among the manifests.
pub(super) fn root_of(path: &StorePath) -> StorePath {
    let is_manifests = |around: StorePath| around.name() == MANIFEST_FOLDER;
    let mut folder = path.parent();
    while let Some(inner) = folder.as_ref().filter(|folder| {
        folder.name().starts_with("__") || folder.parent().is_some_and(is_manifests)
    }) {
        folder = inner.parent();
    }
    folder.unwrap_or_else(|| path.clone())
}

/// Makes the names in a folder last through a power failure.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    // What lies there may be a pipe.
    super::files::open_file(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

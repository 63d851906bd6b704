//! Locks of folders.

use super::files::open_file;
use crate::storage::{FolderLock, StorePath};
use std::fs::File;

/// A locked folder.
#[derive(Debug)]
struct LocalLock(File);

impl FolderLock for LocalLock {}

impl Drop for LocalLock {
    fn drop(&mut self) {
        // Closing would not do where the process was forked meanwhile: the child has the folder
        // open too.
        let _ = self.0.unlock();
    }
}

/// Waits for the lock of a folder; `None` where there are no such locks.
pub(super) fn lock(folder: &StorePath) -> Option<Box<dyn FolderLock>> {
    // Not every file system has locks, nor every system those of folders.
    let folder = open_file(&folder.to_native()).ok()?;
    folder.lock().ok()?;
    Some(Box::new(LocalLock(folder)))
}

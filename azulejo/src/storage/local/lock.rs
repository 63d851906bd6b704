//! Locks of folders.

use super::error::io_error;
use super::files::open_file;
use crate::error::Result;
use crate::storage::{FolderLock, StorePath};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

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
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) if there is no such folder.
pub(super) fn lock(folder: &StorePath) -> Result<Option<Box<dyn FolderLock>>> {
    let failed = |source| io_error("lock", folder, source);
    let path = folder.to_native();
    loop {
        // Not every file system has locks, nor every system those of folders.
        let open = match open_file(&path) {
            Err(e) if is_without_locks(&e) => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        match open.lock() {
            // A signal came.
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if is_without_locks(&e) => return Ok(None),
            locked => locked.map_err(failed)?,
        }
        let lock = LocalLock(open);
        // Whoever had it before may have removed or moved the folder that was opened here: what
        // lies there now is another one, which others lock.
        if is_at(&lock.0, &path).map_err(failed)? {
            return Ok(Some(Box::new(lock)));
        }
    }
}

/// Whether an error says that there are no locks of folders here, rather than that this one cannot
/// be had now: whoever went on without it then would change what others have locked.
fn is_without_locks(error: &io::Error) -> bool {
    match error.kind() {
        ErrorKind::Unsupported => true,
        // Other systems do not open folders as files.
        ErrorKind::PermissionDenied | ErrorKind::IsADirectory => cfg!(not(unix)),
        _ => is_refusal(error),
    }
}

/// Without a server for locks (`ENOLCK`); network file systems that lock only what is open for
/// writing, which no folder is (`EBADF`); files of the kernel (`EINVAL`).
#[cfg(unix)]
fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOLCK | libc::EBADF | libc::EINVAL)
    )
}

#[cfg(not(unix))]
fn is_refusal(_: &io::Error) -> bool {
    false
}

/// Whether an open folder still has its name.
#[cfg(unix)]
fn is_at(open: &File, path: &Path) -> io::Result<bool> {
    use super::error::is_missing;
    use std::os::unix::fs::MetadataExt;
    let place = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match std::fs::metadata(path) {
        Ok(named) => Ok(place(named) == place(open.metadata()?)),
        Err(e) if is_missing(&e) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Whether an open folder still has its name: what is open cannot be removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::storage::Uri;
    use std::fs::{self, TryLockError};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn the_folder_that_is_there_is_locked() {
        let dir = tempfile::tempdir().unwrap();
        let native = dir.path().join("array");
        let path = Uri::parse(native.to_str().unwrap()).unwrap().path().clone();
        assert!(matches!(lock(&path), Err(Error::NotFound { .. })));
        fs::create_dir(&native).unwrap();
        let first = lock(&path).unwrap().unwrap();
        let (sender, locked) = channel();
        let place = path.clone();
        std::thread::spawn(move || sender.send(lock(&place).unwrap().unwrap()));
        // It waits, with the folder open.
        assert!(locked.recv_timeout(Duration::from_millis(300)).is_err());
        fs::rename(&native, dir.path().join("moved")).unwrap();
        fs::create_dir(&native).unwrap();
        drop(first);
        let second = locked.recv().unwrap();
        let third = File::open(&native).unwrap().try_lock();
        assert!(matches!(third, Err(TryLockError::WouldBlock)), "{third:?}");
        drop(second);
    }

    #[test]
    fn only_where_there_are_no_locks_there_is_none() {
        for code in [libc::ENOLCK, libc::EOPNOTSUPP, libc::ENOSYS] {
            assert!(
                is_without_locks(&io::Error::from_raw_os_error(code)),
                "{code}"
            );
        }
        for code in [
            libc::EINTR,
            libc::EIO,
            libc::EMFILE,
            libc::EACCES,
            libc::ENOMEM,
        ] {
            assert!(
                !is_without_locks(&io::Error::from_raw_os_error(code)),
                "{code}"
            );
        }
    }
}

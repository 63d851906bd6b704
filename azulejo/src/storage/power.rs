//! What only some storages can do.

use super::{ReadInto, Storage, StorePath, Upload};
use crate::error::{Error, Result};
use bytes::Bytes;
use std::fmt::Debug;
use std::io::{ErrorKind, IoSliceMut};
use std::sync::{Arc, OnceLock};

/// Small reads that cost little more than their bytes.
pub trait RandomAccess {
    /// Opens an object for many small reads.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) if there is none.
    fn open(&self, path: &StorePath) -> Result<Box<dyn ObjectReader>>;

    /// Shows the ends of many objects below a folder, on several threads, without keeping them.
    ///
    /// Only those that can be had more cheaply than by [`Storage::read_tails`] are shown, which may
    /// be none; of the others (missing and shorter ones, those that cannot be read) nothing is said
    /// here.
    fn visit_tails(&self, tails: Tails<'_>, visit: &TailVisitor<'_>) {
        let _ = (tails, visit);
    }
}

/// Objects that can grow.
pub trait Append {
    /// More bytes for an object that exists, behind those that it has. They are seen as they are
    /// written, and those written stay if the upload is dropped unfinished.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) if there is none.
    fn append(&self, path: &StorePath) -> Result<Box<dyn Upload>>;
}

/// Objects of which only one writer is the first.
pub trait PutNew {
    /// Writes a whole object where none is. Of several writers at once, in any process and on any
    /// machine, one succeeds.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`](crate::Error::AlreadyExists) if there is one.
    fn put_new(&self, path: &StorePath, body: Bytes) -> Result<()>;
}

/// Folders that can be locked.
pub trait LockFolder {
    /// Waits until nobody else has locked this folder, in this process or another one of the same
    /// machine, and locks it until what is returned is dropped: a crash unlocks it too. `None`, and
    /// nobody waits for anybody, where folders like this one cannot be locked.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) if there is no such folder; other errors where
    /// there are locks, and this one cannot be had.
    fn lock(&self, folder: &StorePath) -> Result<Option<Box<dyn FolderLock>>>;
}

/// A folder that nobody else has locked meanwhile.
pub trait FolderLock: Send + Debug {}

/// An open object, for many small reads from the caller's thread.
pub trait ObjectReader: Send + Sync + Debug {
    /// Fills `out` with the object's bytes from `offset` on; an error if the object ends before
    /// that.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()>;

    /// As [`Self::read_at`], to several places: fills `pieces` one after another. What they hold
    /// after an error, and whether they are as long as before, is unspecified.
    fn read_scattered_at(&mut self, offset: u64, pieces: &mut [IoSliceMut<'_>]) -> Result<()> {
        let mut bytes = vec![0; pieces.iter().map(|piece| piece.len()).sum()];
        self.read_at(offset, &mut bytes)?;
        let mut rest = bytes.as_slice();
        for piece in pieces {
            let (here, later) = rest.split_at(piece.len());
            piece.copy_from_slice(here);
            rest = later;
        }
        Ok(())
    }
}

/// Objects whose ends are to be shown.
#[derive(Clone, Copy)]
pub struct Tails<'a> {
    /// The folder that they lie below.
    pub folder: &'a StorePath,
    /// How many they are.
    pub count: usize,
    /// Appends the path of an object, relative to the folder, to a text. Objects go by their
    /// numbers, from 0 on.
    pub path: &'a (dyn Fn(usize, &mut String) + Sync),
    /// The last bytes of each that are wanted.
    pub len: u64,
}

impl Debug for Tails<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            folder, count, len, ..
        } = self;
        f.debug_struct("Tails")
            .field("folder", folder)
            .field("count", count)
            .field("len", len)
            .finish_non_exhaustive()
    }
}

/// Who is shown the ends of objects: their numbers, last bytes, and sizes in bytes.
pub type TailVisitor<'a> = dyn Fn(usize, &[u8], u64) + Sync + 'a;

/// Writes an object where none is. Of several writers at once one succeeds, if the storage can tell
/// who is the first.
///
/// # Errors
/// [`Error::AlreadyExists`] if there is one, and errors of the storage.
pub(crate) fn put_first(storage: &dyn Storage, path: &StorePath, body: Bytes) -> Result<()> {
    match storage.exclusive() {
        Some(exclusive) => match exclusive.put_new(path, body.clone()) {
            Err(error) if cannot_put_new(&error) => storage.put(path, body),
            written => written,
        },
        None => storage.put(path, body),
    }
}

/// Whether an error of [`PutNew::put_new`] says that it cannot be had here: some file systems cannot
/// tell who is the first.
pub(crate) fn cannot_put_new(error: &Error) -> bool {
    match error {
        Error::Unsupported(_) => true,
        Error::Storage { source, .. } => matches!(
            source.kind(),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::Unsupported
        ),
        _ => false,
    }
}

/// An object that is opened as the storage can: with reads of its own for those without
/// [`RandomAccess`].
pub(crate) fn open(storage: &Arc<dyn Storage>, path: &StorePath) -> Result<Box<dyn ObjectReader>> {
    match storage.random_access() {
        Some(access) => access.open(path),
        None => Ok(Box::new(Ranges {
            storage: Arc::clone(storage),
            path: path.clone(),
        })),
    }
}

/// An object of which every read is a request.
#[derive(Debug)]
struct Ranges {
    storage: Arc<dyn Storage>,
    path: StorePath,
}

impl ObjectReader for Ranges {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.storage.read_into(&mut [ReadInto {
            path: self.path.clone(),
            offset,
            out,
        }])
    }
}

/// What `look` makes of the ends of objects that [`RandomAccess::visit_tails`] shows, by their
/// numbers; `None` of others.
pub(crate) fn shown_tails<T: Send + Sync>(
    storage: &dyn Storage,
    tails: Tails<'_>,
    look: impl Fn(usize, &[u8], u64) -> Option<T> + Sync,
) -> Vec<Option<T>> {
    let found: Vec<OnceLock<T>> = (0..tails.count).map(|_| OnceLock::new()).collect();
    let shown = |i: usize, tail: &[u8], size: u64| {
        if let (Some(place), Some(seen)) = (found.get(i), look(i, tail, size)) {
            // Each object is shown once.
            let _ = place.set(seen);
        }
    };
    if let Some(access) = storage.random_access() {
        access.visit_tails(tails, &shown);
    }
    found.into_iter().map(OnceLock::into_inner).collect()
}

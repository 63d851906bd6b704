//! Where objects lie: the one seam through which the engine does IO.

mod block_on;
mod cache;
mod coalesce;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod conformance;
mod io_stats;
mod layer;
mod local;
mod memory;
#[cfg(feature = "object-store")]
mod object;
mod pending;
mod power;
mod refusal;
mod request;
mod request_log;
mod settings;
mod stores;
mod uri;
mod waiting;

pub(crate) use block_on::block_on;
pub use io_stats::{IoCounts, IoOp, IoStats};
pub use layer::StorageLayer;
pub use local::LocalStorage;
pub(crate) use local::is_temporary;
#[doc(hidden)]
pub use local::{ChangeLog, FileChange};
pub use memory::MemoryStorage;
#[cfg(feature = "object-store")]
pub use object::ObjectStorage;
pub use pending::{Answer, Pending, PendingList, PendingRead, PendingTails};
pub use power::{
    Append, FolderLock, LockFolder, ObjectReader, PutNew, RandomAccess, TailVisitor, Tails,
};
pub(crate) use power::{cannot_put_new, open, put_first, shown_tails};
pub use request::{Entry, ReadInto, ReadRange, ReadRequest, Tail};
pub use request_log::{Request, RequestLog, RequestLogStorage};
pub use settings::StoreSettings;
pub(crate) use stores::Stores;
pub use uri::{ObjectScheme, StorePath, Uri, with_home};
pub(crate) use waiting::Waiting;

use crate::error::Result;
use bytes::Bytes;
use std::fmt::Debug;

/// Whether object stores and web servers were built in (feature `object-store`).
pub const HAS_OBJECT_STORES: bool = cfg!(feature = "object-store");

/// An object being written front to back. Dropped unfinished, it leaves nothing.
pub trait Upload: Send + Debug {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Appends several pieces, one behind the other, as one write of them all where the storage
    /// can.
    fn write_pieces(&mut self, pieces: &[&[u8]]) -> Result<()> {
        pieces.iter().try_for_each(|piece| self.write(piece))
    }

    /// Begins to end the object in the background, where the storage can: several are ended side by
    /// side so. Nothing may be written afterwards, and [`Self::finish`] must still be called.
    fn begin_finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// Ends the object: it lasts from now on, through a power failure too.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// The path of what a folder has by a name, both paths relative to one place, whose own is empty.
pub(crate) fn path_in(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

/// [`Storage::list_tree`] as one listing a folder, level by level.
pub(crate) fn list_tree_by_folders(
    storage: &(impl Storage + ?Sized),
    dir: &StorePath,
) -> Result<Vec<(String, Vec<Entry>)>> {
    let (mut tree, mut pending) = (Vec::new(), vec![String::new()]);
    while !pending.is_empty() {
        let paths: Vec<StorePath> = pending.iter().map(|folder| dir.join(folder)).collect();
        let level: Vec<_> = pending.drain(..).zip(storage.list_all(&paths)?).collect();
        for (folder, entries) in &level {
            let folders = entries.iter().filter(|entry| entry.is_dir);
            pending.extend(folders.map(|entry| path_in(folder, &entry.name)));
        }
        tree.extend(level);
    }
    Ok(tree)
}

/// How long a storage takes to begin an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Latency {
    /// Microseconds: many small reads cost little more than their bytes.
    Low,
    /// Milliseconds, as over a network: few requests, in batches, asked for in advance.
    High,
}

impl Latency {
    /// Whether it is [`Latency::Low`].
    #[must_use]
    pub const fn is_low(self) -> bool {
        matches!(self, Self::Low)
    }
}

/// A place that keeps objects under paths.
///
/// A storage of your own needs the first seven methods; the others have defaults made of these,
/// which may be replaced where the storage knows a faster way. What only some storages can do lies
/// behind one accessor each, such as [`Storage::random_access`].
/// [`Context::with_scheme`](crate::Context::with_scheme) gives a storage a scheme, so that URIs
/// name what lies in it. A storage that passes most on to another one implements [`StorageLayer`]
/// instead.
///
/// Implementations are synchronous and may be used from many threads. Errors are
/// [`Error::NotFound`](crate::Error::NotFound) for a
/// missing object and [`Error::Storage`](crate::Error::Storage) otherwise.
pub trait Storage: Send + Sync + Debug {
    /// The direct children of a folder, sorted by name; an empty list if the folder does not exist
    /// or is an object.
    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>>;

    /// Reads ranges of many objects as one concurrent, coalesced batch; results in the order of the
    /// requests.
    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>>;

    /// The size of an object in bytes.
    fn size(&self, path: &StorePath) -> Result<u64>;

    /// Bytes that an object takes where it lies, which may be fewer than its [`Self::size`] where
    /// ranges that nobody wrote read as zeros; `None` where that cannot be, or is not known.
    fn stored_size(&self, path: &StorePath) -> Result<Option<u64>> {
        let _ = path;
        Ok(None)
    }

    /// Writes a whole object: afterwards all of it is visible, or nothing.
    fn put(&self, path: &StorePath, body: Bytes) -> Result<()>;

    /// Starts an object that is written piece by piece: it exists once [`Upload::finish`] has
    /// returned. One that exists already is [`Error::AlreadyExists`](crate::Error::AlreadyExists)
    /// where finding out costs no request of its own.
    ///
    /// Unlike [`Self::put`] an upload may be seen before, and a crash can leave a part of it: use
    /// it for what counts only when something that is written later says so.
    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>>;

    /// Moves an object, or a folder with all that it holds. `to` must not exist.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`](crate::Error::AlreadyExists) if something lies at `to`.
    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()>;

    /// Moves an object, in the place of one at `to`, where the storage can do so in one step: nobody
    /// ever finds nothing at `to`, and if it fails both stay. Of two names of one object nothing
    /// happens. `false`, and nothing happens, where it cannot.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) if no object lies at `from`; an error if a folder
    /// lies at `to`.
    fn replace(&self, from: &StorePath, to: &StorePath) -> Result<bool> {
        let _ = (from, to);
        Ok(false)
    }

    /// Copies an object, in the place of one at `to`, where the storage can do so without its bytes
    /// coming here; `false`, and nothing happens, where it cannot.
    fn copy_here(&self, from: &StorePath, to: &StorePath) -> Result<bool> {
        let _ = (from, to);
        Ok(false)
    }

    /// Copies several objects as [`Self::copy_here`] does, side by side where that is faster; `false`
    /// where the storage cannot, and some may have been copied. None is under way any more when this
    /// returns, not behind an error either.
    fn copy_all_here(&self, copies: &[(StorePath, StorePath)]) -> Result<bool> {
        for (from, to) in copies {
            if !self.copy_here(from, to)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Deletes objects, and folders with all that they hold; those that do not exist are no error.
    fn delete(&self, paths: &[StorePath]) -> Result<()>;

    /// How long answers take to begin.
    fn latency(&self) -> Latency {
        Latency::High
    }

    /// The moment that listings show, in milliseconds since 1970-01-01 UTC, where they are not of
    /// now.
    fn listed_at(&self) -> Option<u64> {
        None
    }

    /// Makes a folder and those that it lies in. Where folders exist only as parts of names,
    /// nothing happens.
    fn make_folder(&self, path: &StorePath) -> Result<()> {
        let _ = path;
        Ok(())
    }

    /// Removes a folder that holds nothing at all, not even what listings pass over; one that holds
    /// something stays, and one that is not there is no error. Where folders exist only as parts of
    /// names, nothing happens.
    fn remove_empty_folder(&self, path: &StorePath) -> Result<()> {
        let _ = path;
        Ok(())
    }

    /// Something right below a folder that listings pass over, as no path can name it or nothing can
    /// be read of it, if there is any: whoever takes a folder for empty, or for copied, asks.
    fn unlisted(&self, dir: &StorePath) -> Result<Option<String>> {
        let _ = dir;
        Ok(None)
    }

    /// Makes all that was written below a folder last through a failure of power, for others that
    /// will depend on it; what this storage itself makes depend on it needs no such call. Where
    /// everything lasts as soon as it is written, nothing happens.
    fn settle(&self, path: &StorePath) -> Result<()> {
        let _ = path;
        Ok(())
    }

    /// Small reads of one object after another, where the storage has a way for them.
    fn random_access(&self) -> Option<&dyn RandomAccess> {
        None
    }

    /// Objects that grow, where the storage has such.
    fn appending(&self) -> Option<&dyn Append> {
        None
    }

    /// Objects of which only one writer can be the first, where the storage can tell.
    fn exclusive(&self) -> Option<&dyn PutNew> {
        None
    }

    /// Locks of folders, where the storage has such.
    fn locking(&self) -> Option<&dyn LockFolder> {
        None
    }

    /// The direct children of a folder that have one of these names, sorted by name: what
    /// [`Self::list`] says of them.
    fn find(&self, dir: &StorePath, names: &[&str]) -> Result<Vec<Entry>> {
        let mut entries = self.list(dir)?;
        entries.retain(|entry| names.contains(&entry.name.as_str()));
        Ok(entries)
    }

    /// Whether there is a folder, without a look at all that lies beside it or in it where there may
    /// be much of that. A root is one.
    fn is_folder(&self, path: &StorePath) -> Result<bool> {
        let Some(parent) = path.parent() else {
            return Ok(true);
        };
        let found = self.find(&parent, &[path.name()])?;
        Ok(found.iter().any(|entry| entry.is_dir))
    }

    /// Whether nothing lies in a folder, without a listing of all that lies there where there may be
    /// much of that. A folder that does not exist is empty.
    fn is_empty(&self, dir: &StorePath) -> Result<bool> {
        Ok(self.list(dir)?.is_empty())
    }

    /// Lists several folders, side by side where that is faster; results in the order of the
    /// folders.
    fn list_all(&self, dirs: &[StorePath]) -> Result<Vec<Vec<Entry>>> {
        dirs.iter().map(|dir| self.list(dir)).collect()
    }

    /// A folder and all folders below it, by their paths relative to it (its own is empty), each
    /// with its direct children. Not a snapshot: what is written meanwhile may be in it or not.
    /// Where folders exist only as parts of names, empty ones are not in it.
    fn list_tree(&self, dir: &StorePath) -> Result<Vec<(String, Vec<Entry>)>> {
        list_tree_by_folders(self, dir)
    }

    /// Reads at most the last `len` bytes of each object (fewer where it is shorter) and its size,
    /// as one concurrent batch; results in the order of the paths.
    fn read_tails(&self, paths: &[StorePath], len: u64) -> Result<Vec<Tail>> {
        let sizes: Vec<u64> = paths
            .iter()
            .map(|path| self.size(path))
            .collect::<Result<_>>()?;
        let tail = |(path, size): (&StorePath, &u64)| ReadRequest {
            path: path.clone(),
            range: ReadRange::Bytes(size.saturating_sub(len)..*size),
        };
        let read = self.read(&paths.iter().zip(&sizes).map(tail).collect::<Vec<_>>())?;
        let tail = |(bytes, object_size)| Tail { bytes, object_size };
        Ok(read.into_iter().zip(sizes).map(tail).collect())
    }

    /// Reads ranges into the caller's memory, as one concurrent batch. The requests may change
    /// places.
    fn read_into(&self, requests: &mut [ReadInto<'_>]) -> Result<()> {
        let plain: Vec<_> = requests
            .iter()
            .map(|r| ReadRequest {
                path: r.path.clone(),
                range: ReadRange::Bytes(r.offset..r.offset.saturating_add(r.out.len() as u64)),
            })
            .collect();
        for (request, bytes) in requests.iter_mut().zip(self.read(&plain)?) {
            request.out.copy_from_slice(&bytes);
        }
        Ok(())
    }

    /// Starts [`Self::list_all`] in the background where the storage can.
    fn start_list(&self, dirs: Vec<StorePath>) -> PendingList {
        Pending::ready(self.list_all(&dirs))
    }

    /// Starts [`Self::read`] in the background where the storage can.
    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        Pending::ready(self.read(&requests))
    }

    /// Starts [`Self::read_tails`] in the background where the storage can.
    fn start_read_tails(&self, paths: Vec<StorePath>, len: u64) -> PendingTails {
        Pending::ready(self.read_tails(&paths, len))
    }

    /// Finishes several uploads, side by side where that is faster.
    fn finish_all(&self, uploads: Vec<Box<dyn Upload>>) -> Result<()> {
        uploads.into_iter().try_for_each(Upload::finish)
    }
}

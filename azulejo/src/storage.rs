//! Where objects lie: the one seam through which the engine does IO.

mod cache;
mod coalesce;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod conformance;
mod io_stats;
mod local;
mod memory;
#[cfg(feature = "object-store")]
mod object;
mod pending;
mod request_log;
mod settings;
mod stores;
mod uri;

pub use io_stats::{IoCounts, IoOp, IoStats};
pub use local::LocalStorage;
pub use memory::MemoryStorage;
#[cfg(feature = "object-store")]
pub use object::ObjectStorage;
pub use pending::{Answer, Pending, PendingList, PendingRead, PendingTails};
pub use request_log::{Request, RequestLog, RequestLogStorage};
pub use settings::StoreSettings;
pub(crate) use stores::Stores;
pub use uri::{ObjectScheme, StorePath, Uri};

use crate::error::Result;
use bytes::Bytes;
use std::fmt::Debug;
use std::io::IoSliceMut;
use std::ops::Range;
use std::sync::OnceLock;

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The entry's last path component.
    pub name: String,
    /// Whether it is a folder.
    pub is_dir: bool,
    /// Size in bytes of an object, 0 for a folder; `None` where a listing does not tell and asking
    /// would cost.
    pub size: Option<u64>,
}

/// A range of bytes of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRequest {
    /// The object.
    pub path: StorePath,
    /// Which bytes of it.
    pub range: ReadRange,
}

/// Which bytes of an object to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadRange {
    /// All of it.
    All,
    /// These bytes; it is an error if the object is shorter.
    Bytes(Range<u64>),
}

/// The end of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// The last bytes.
    pub bytes: Bytes,
    /// Size in bytes of the whole object.
    pub object_size: u64,
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

/// A range of bytes of one object, to be read into memory that the caller already has.
#[derive(Debug)]
pub struct ReadInto<'a> {
    /// The object.
    pub path: StorePath,
    /// Offset of the first byte.
    pub offset: u64,
    /// Where the bytes go; filled whole or an error is returned.
    pub out: &'a mut [u8],
}

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

/// A folder that nobody else holds meanwhile.
pub trait Hold: Send + Debug {}

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

/// What `look` makes of the ends of objects that [`Storage::visit_tails`] shows, by their numbers;
/// `None` of others.
pub(crate) fn shown_tails<T: Send + Sync>(
    storage: &dyn Storage,
    tails: Tails<'_>,
    look: impl Fn(usize, &[u8], u64) -> Option<T> + Sync,
) -> Vec<Option<T>> {
    let found: Vec<OnceLock<T>> = (0..tails.count).map(|_| OnceLock::new()).collect();
    storage.visit_tails(tails, &|i, tail, size| {
        if let (Some(place), Some(seen)) = (found.get(i), look(i, tail, size)) {
            // Each object is shown once.
            let _ = place.set(seen);
        }
    });
    found.into_iter().map(OnceLock::into_inner).collect()
}

/// A place that keeps objects under paths. Implementations are synchronous and may be used from
/// many threads.
///
/// Errors are [`Error::NotFound`](crate::Error::NotFound) for a missing object and
/// [`Error::Storage`](crate::Error::Storage) otherwise.
pub trait Storage: Send + Sync + Debug {
    /// The direct children of a folder, sorted by name; an empty list if the folder does not exist
    /// or is an object.
    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>>;

    /// The direct children of a folder that have one of these names, sorted by name: what
    /// [`Self::list`] says of them.
    fn find(&self, dir: &StorePath, names: &[&str]) -> Result<Vec<Entry>> {
        let mut entries = self.list(dir)?;
        entries.retain(|entry| names.contains(&entry.name.as_str()));
        Ok(entries)
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

    /// The moment that listings show, in milliseconds since 1970-01-01 UTC, where they are not of
    /// now.
    fn listed_at(&self) -> Option<u64> {
        None
    }

    /// Reads ranges of many objects as one concurrent, coalesced batch; results in the order of the
    /// requests.
    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>>;

    /// Reads at most the last `len` bytes of each object (fewer where it is shorter) and its size,
    /// as one concurrent batch; results in the order of the paths.
    fn read_tails(&self, paths: &[StorePath], len: u64) -> Result<Vec<Tail>>;

    /// Shows the ends of many objects below a folder, on several threads, without keeping them.
    ///
    /// Only those that can be had more cheaply than by [`Self::read_tails`] are shown, which may be
    /// none; of the others (missing and shorter ones, those that cannot be read) nothing is said
    /// here.
    fn visit_tails(&self, tails: Tails<'_>, visit: &TailVisitor<'_>) {
        let _ = (tails, visit);
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

    /// Whether many small reads of one object cost little more than their bytes. Where every
    /// request is dear, as over a network, batches are better.
    fn has_cheap_reads(&self) -> bool {
        false
    }

    /// Opens an object for many small reads, where these are cheap.
    fn open(&self, path: &StorePath) -> Result<Box<dyn ObjectReader>> {
        Err(crate::Error::Unsupported(format!(
            "{path}: small reads are dear here"
        )))
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

    /// The size of an object in bytes.
    fn size(&self, path: &StorePath) -> Result<u64>;

    /// Writes a whole object: afterwards all of it is visible, or nothing.
    fn put(&self, path: &StorePath, body: Bytes) -> Result<()>;

    /// Starts an object that is written piece by piece: it exists once [`Upload::finish`] has
    /// returned. One that exists already is [`Error::AlreadyExists`](crate::Error::AlreadyExists)
    /// where finding out costs no request of its own.
    ///
    /// Unlike [`Self::put`] an upload may be seen before, and a crash can leave a part of it: use
    /// it for what counts only when something that is written later says so.
    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>>;

    /// More bytes for an object that exists, behind those that it has; `None` where objects cannot
    /// grow. They are seen as they are written, and those written stay if the upload is dropped
    /// unfinished.
    fn append(&self, path: &StorePath) -> Result<Option<Box<dyn Upload>>> {
        let _ = path;
        Ok(None)
    }

    /// Finishes several uploads, side by side where that is faster.
    fn finish_all(&self, uploads: Vec<Box<dyn Upload>>) -> Result<()> {
        uploads.into_iter().try_for_each(Upload::finish)
    }

    /// Makes a folder and those that it lies in. Where folders exist only as parts of names,
    /// nothing happens.
    fn make_folder(&self, path: &StorePath) -> Result<()>;

    /// Moves an object, or a folder with all that it holds. `to` must not exist.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`](crate::Error::AlreadyExists) if something lies at `to`.
    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()>;

    /// Waits until nobody else holds this folder, in this process or another one of the same
    /// machine, and holds it until what is returned is dropped: a crash ends it too. `None`, and
    /// nobody waits for anybody, where folders cannot be held.
    fn hold(&self, folder: &StorePath) -> Option<Box<dyn Hold>> {
        let _ = folder;
        None
    }

    /// Deletes objects, and folders with all that they hold; those that do not exist are no error.
    fn delete(&self, paths: &[StorePath]) -> Result<()>;
}

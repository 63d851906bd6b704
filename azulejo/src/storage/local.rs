//! Local files: positioned reads, whole-file writes that appear at once.

mod changes;
mod delete;
mod error;
mod files;
mod listing;
mod lock;
mod names;
mod side_by_side;
mod upload;

use super::coalesce::{CoalescedRead, coalesce};
use super::refusal::{already_exists, not_found};
use super::{
    Append, Entry, FolderLock, Latency, LockFolder, ObjectReader, Pending, PendingList,
    PendingRead, PendingTails, PutNew, RandomAccess, ReadInto, ReadRange, ReadRequest, Storage,
    StorePath, Tail, TailVisitor, Tails, Upload,
};
use crate::error::Result;
use crate::per_process::PerProcess;
use crate::platform::{HAS_THREADS, read_exact_at};
use bytes::Bytes;
use changes::Changes;
#[doc(hidden)]
pub use changes::{ChangeLog, FileChange};
use error::{io_error, storage_error};
use files::{OpenFile, file_size, open, open_file, read_range};
pub(crate) use names::is_temporary;
use names::{parent_of, refuse_links, temporary_path};
use rayon::prelude::*;
use side_by_side::{WAITING, side_by_side};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use upload::LocalUpload;

/// Two requests of one file closer than this are read together: from the page cache a gap of this
/// size costs about as much as another system call, from a disk less.
const DEFAULT_GAP: u64 = 64 * 1024;
/// Reads are joined up to this size, so that slices of a result do not keep much more memory alive
/// than they need.
const MAX_MERGED: u64 = 16 << 20;
/// Batches below both limits are read on the caller's thread.
const PARALLEL_FILES: usize = 8;
const PARALLEL_BYTES: u64 = 1 << 20;
/// A longer read into the caller's memory is cut into pieces of this size.
const PIECE: usize = 2 << 20;
/// Ends of files that are only shown are not longer.
const MAX_VISITED: usize = 64 * 1024;
/// Files that one task of a parallel batch reads at least.
const FILES_PER_TASK: usize = 4;

/// Files below the local file system's root. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LocalStorage {
    gap: u64,
    pool: Arc<OnceLock<PerProcess<Option<rayon::ThreadPool>>>>,
    /// Files being written.
    open_uploads: Arc<AtomicUsize>,
    changes: Changes,
}

impl Default for LocalStorage {
    fn default() -> Self {
        Self::new()
    }
}

impl LocalStorage {
    /// Local files, read with the default coalescing gap.
    #[must_use]
    pub fn new() -> Self {
        Self::with_gap(DEFAULT_GAP)
    }

    /// Local files, where two ranges of one file at most `gap` bytes apart are read as one.
    #[must_use]
    pub fn with_gap(gap: u64) -> Self {
        Self {
            gap,
            pool: Arc::default(),
            open_uploads: Arc::default(),
            changes: Changes::default(),
        }
    }

    /// Local files of which every change is noted, for tests of what a power failure leaves.
    #[doc(hidden)]
    #[must_use]
    pub fn watched() -> (Self, ChangeLog) {
        let mut storage = Self::new();
        let log = ChangeLog::default();
        storage.changes.log = Some(Arc::clone(&log));
        (storage, log)
    }

    /// Threads that only read: a caller may wait for them from any thread, also one of its compute
    /// pool.
    fn pool(&self) -> Option<&rayon::ThreadPool> {
        let start = || {
            if !HAS_THREADS {
                return None;
            }
            let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
            let builder = rayon::ThreadPoolBuilder::new().num_threads(cores.clamp(2, 8));
            builder
                .thread_name(|i| format!("azulejo-io-{i}"))
                .build()
                .ok()
        };
        let pool = self.pool.get_or_init(|| PerProcess::new(start()));
        pool.get(|_| start())?.as_ref()
    }

    /// The pool, if a batch is worth handing over.
    fn pool_for(&self, files: usize, bytes: u64) -> Option<&rayon::ThreadPool> {
        let worthwhile = files >= PARALLEL_FILES || bytes >= PARALLEL_BYTES;
        if worthwhile { self.pool() } else { None }
    }

    /// Does something on the threads that read, unless nobody wants it any more.
    fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        let Some(pool) = self.pool() else {
            return Pending::ready(work(self));
        };
        let (answer, pending) = Pending::channel();
        let storage = self.clone();
        pool.spawn(move || {
            if answer.is_wanted() {
                answer.send(work(&storage));
            }
        });
        pending
    }

    fn new_upload(&self, path: &StorePath, file: File) -> LocalUpload {
        LocalUpload::new(path, file, self.changes.clone(), &self.open_uploads)
    }

    /// Writes bytes under a name that they lose at once, and makes last what the file needs.
    fn write_temporary(&self, path: &StorePath, temporary: &Path, body: &[u8]) -> Result<()> {
        let write = || -> io::Result<File> {
            let mut file = self.changes.create_temporary(temporary)?;
            file.write_all(body)?;
            self.changes.written(temporary, &[body]);
            Ok(file)
        };
        let file = write().map_err(|source| storage_error("write", path, source))?;
        self.changes.sync_for(path, Some((temporary, &file)))
    }

    /// Reads ranges of one file; the results are in their order.
    fn read_file(&self, path: &StorePath, ranges: &[&ReadRange]) -> Result<Vec<Bytes>> {
        let file = open(path)?;
        let asked = |range: &&ReadRange| match range {
            ReadRange::Bytes(range) => range.end.saturating_sub(range.start),
            // Only the file knows.
            ReadRange::All | ReadRange::AtMost(_) => PARALLEL_BYTES,
        };
        // The size is asked for where it is needed, and where a wrong range could make us allocate
        // much.
        let needs_size = ranges.iter().map(asked).fold(0, u64::saturating_add) >= PARALLEL_BYTES;
        let size = if needs_size {
            Some(file_size(path, &file)?)
        } else {
            None
        };
        let mut spans = Vec::with_capacity(ranges.len());
        for range in ranges {
            spans.push(match (range, size) {
                (ReadRange::Bytes(range), _) if range.is_empty() => 0..0,
                (ReadRange::Bytes(range), None) => range.clone(),
                (range, size) => range.within(path, size.unwrap_or(0))?,
            });
        }
        if let [span] = spans.as_slice() {
            return Ok(vec![read_range(path, &file, span.clone())?]);
        }
        let merged = coalesce(&spans, self.gap, MAX_MERGED);
        let bytes: u64 = merged.iter().map(|m| m.range.end - m.range.start).sum();
        let read = |m: &CoalescedRead| read_range(path, &file, m.range.clone());
        let read: Result<Vec<Bytes>> = match self.pool_for(1, bytes) {
            Some(pool) => pool.install(|| merged.par_iter().map(read).collect()),
            None => merged.iter().map(read).collect(),
        };
        let mut results = vec![Bytes::new(); spans.len()];
        for (merged, bytes) in merged.into_iter().zip(read?) {
            for member in merged.members {
                let start = (spans[member].start - merged.range.start) as usize;
                let end = (spans[member].end - merged.range.start) as usize;
                results[member] = bytes.slice(start..end);
            }
        }
        Ok(results)
    }

    /// Gives a file or folder another name, which lasts when this returns; `over`: also that of
    /// another file, whose place it takes.
    fn give_name(&self, from: &StorePath, to: &StorePath, over: bool) -> Result<()> {
        let failed = |source| io_error("move", from, source);
        [from, to]
            .into_iter()
            .try_for_each(|path| refuse_links("move", path))?;
        let (old_parent, new_parent) = (parent_of(from)?, parent_of(to)?);
        let changes = &self.changes;
        changes
            .make_folders(new_parent.as_native())
            .map_err(failed)?;
        if !over && fs::symlink_metadata(to.as_native()).is_ok() {
            return Err(already_exists(to));
        }
        // Where it goes must last before it is there.
        changes.sync_for(to, None)?;
        changes
            .rename(from.as_native(), to.as_native())
            .map_err(failed)?;
        changes
            .sync_folder(new_parent.as_native())
            .map_err(failed)?;
        if old_parent == new_parent {
            Ok(())
        } else {
            changes.sync_folder(old_parent.as_native()).map_err(failed)
        }
    }
}

impl Storage for LocalStorage {
    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        let entries = listing::children(dir)?.into_iter();
        Ok(entries.map(|(entry, _)| entry).collect())
    }

    fn list_all(&self, dirs: &[StorePath]) -> Result<Vec<Vec<Entry>>> {
        let list = |dir: &StorePath| self.list(dir);
        match self.pool_for(dirs.len(), 0) {
            Some(pool) => {
                let dirs = dirs.par_iter().with_min_len(FILES_PER_TASK);
                pool.install(|| dirs.map(list).collect())
            }
            None => dirs.iter().map(list).collect(),
        }
    }

    fn list_tree(&self, dir: &StorePath) -> Result<Vec<(String, Vec<Entry>)>> {
        listing::list_tree(dir)
    }

    fn find(&self, dir: &StorePath, names: &[&str]) -> Result<Vec<Entry>> {
        listing::find(dir, names)
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        if let [request] = requests {
            return self.read_file(&request.path, &[&request.range]);
        }
        let mut files: Vec<(&StorePath, Vec<usize>)> = Vec::new();
        let mut places: HashMap<&StorePath, usize> = HashMap::new();
        let mut bytes = 0u64;
        for (i, request) in requests.iter().enumerate() {
            if let ReadRange::Bytes(range) = &request.range {
                bytes = bytes.saturating_add(range.end.saturating_sub(range.start));
            }
            let place = *places.entry(&request.path).or_insert_with(|| {
                files.push((&request.path, Vec::new()));
                files.len() - 1
            });
            files[place].1.push(i);
        }
        let read = |(path, indices): &(&StorePath, Vec<usize>)| {
            let ranges: Vec<&ReadRange> = indices.iter().map(|&i| &requests[i].range).collect();
            self.read_file(path, &ranges)
        };
        let results: Result<Vec<Vec<Bytes>>> = match self.pool_for(files.len(), bytes) {
            Some(pool) => pool.install(|| {
                files
                    .par_iter()
                    .with_min_len(FILES_PER_TASK)
                    .map(read)
                    .collect()
            }),
            None => files.iter().map(read).collect(),
        };
        let mut sorted = vec![Bytes::new(); requests.len()];
        for ((_, indices), results) in files.iter().zip(results?) {
            for (i, result) in indices.iter().zip(results) {
                sorted[*i] = result;
            }
        }
        Ok(sorted)
    }

    fn read_tails(&self, paths: &[StorePath], len: u64) -> Result<Vec<Tail>> {
        let read = |path: &StorePath| {
            let file = open(path)?;
            let object_size = file_size(path, &file)?;
            let bytes = read_range(path, &file, object_size - object_size.min(len)..object_size)?;
            Ok(Tail { bytes, object_size })
        };
        match self.pool_for(paths.len(), len.saturating_mul(paths.len() as u64)) {
            Some(pool) => pool.install(|| {
                paths
                    .par_iter()
                    .with_min_len(FILES_PER_TASK)
                    .map(read)
                    .collect()
            }),
            None => paths.iter().map(read).collect(),
        }
    }

    fn read_into(&self, requests: &mut [ReadInto<'_>]) -> Result<()> {
        requests.sort_by(|a, b| (&a.path, a.offset).cmp(&(&b.path, b.offset)));
        let bytes: usize = requests.iter().map(|r| r.out.len()).sum();
        let read_run = |run: &mut [(&StorePath, u64, &mut [u8])]| {
            let Some(path) = run.first().map(|piece| piece.0) else {
                return Ok(());
            };
            let file = open(path)?;
            for (_, offset, out) in run {
                read_exact_at(&file, out, *offset)
                    .map_err(|source| storage_error("read", path, source))?;
            }
            Ok(())
        };
        let pool = if bytes as u64 >= PARALLEL_BYTES {
            self.pool()
        } else {
            None
        };
        // Pieces, so that all threads have a part of one long read: fresh memory costs more than
        // the file.
        let piece = if pool.is_some() { PIECE } else { usize::MAX };
        let mut pieces: Vec<(&StorePath, u64, &mut [u8])> = Vec::with_capacity(requests.len());
        for ReadInto { path, offset, out } in requests {
            let mut offset = *offset;
            for part in out.chunks_mut(piece) {
                let len = part.len() as u64;
                pieces.push((&*path, offset, part));
                offset = offset.saturating_add(len);
            }
        }
        match pool {
            Some(pool) => {
                let part = pieces.len().div_ceil(pool.current_num_threads() * 2).max(1);
                let runs: Vec<_> = pieces
                    .chunk_by_mut(|a, b| a.0 == b.0)
                    .flat_map(|run| run.chunks_mut(part))
                    .collect();
                pool.install(|| runs.into_par_iter().try_for_each(read_run))
            }
            None => pieces
                .chunk_by_mut(|a, b| a.0 == b.0)
                .try_for_each(read_run),
        }
    }

    fn start_list(&self, dirs: Vec<StorePath>) -> PendingList {
        self.start(move |storage| storage.list_all(&dirs))
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        self.start(move |storage| storage.read(&requests))
    }

    fn start_read_tails(&self, paths: Vec<StorePath>, len: u64) -> PendingTails {
        self.start(move |storage| storage.read_tails(&paths, len))
    }

    fn size(&self, path: &StorePath) -> Result<u64> {
        match fs::metadata(path.as_native()) {
            Ok(metadata) if metadata.is_file() => Ok(metadata.len()),
            Ok(_) => Err(not_found(path)),
            Err(e) => Err(io_error("read", path, e)),
        }
    }

    #[cfg(unix)]
    fn stored_size(&self, path: &StorePath) -> Result<Option<u64>> {
        use std::os::unix::fs::MetadataExt;
        match fs::metadata(path.as_native()) {
            // Blocks of 512 bytes, whatever those of the file system are.
            Ok(metadata) => Ok(Some(metadata.blocks().saturating_mul(512))),
            Err(e) => Err(io_error("read", path, e)),
        }
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        let failed = |source| storage_error("write", path, source);
        refuse_links("write", path)?;
        let (changes, native) = (&self.changes, path.as_native());
        let parent = parent_of(path)?;
        changes.make_folders(parent.as_native()).map_err(failed)?;
        if body.is_empty() {
            // An empty file is whole as soon as it is there: commits, which are written often.
            changes.sync_for(path, None)?;
            changes.create_empty(native).map_err(failed)?;
            return changes.sync_folder(parent.as_native()).map_err(failed);
        }
        let temporary = temporary_path(path).to_native();
        let written = self
            .write_temporary(path, &temporary, &body)
            .and_then(|()| {
                changes.rename(&temporary, native).map_err(failed)?;
                changes.sync_folder(parent.as_native()).map_err(failed)
            });
        written.inspect_err(|_| {
            // What is left of a failed write is of no use; that it cannot be removed changes
            // nothing.
            let _ = changes.remove_file(&temporary);
        })
    }

    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        let failed = |source| storage_error("write", path, source);
        refuse_links("write", path)?;
        let parent = parent_of(path)?;
        let native = path.as_native();
        let file = match self.changes.create_new(native) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                self.changes
                    .make_folders(parent.as_native())
                    .map_err(failed)?;
                self.changes.create_new(native)
            }
            other => other,
        };
        match file {
            Ok(file) => Ok(Box::new(self.new_upload(path, file))),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(already_exists(path)),
            Err(e) => Err(failed(e)),
        }
    }

    fn finish_all(&self, uploads: Vec<Box<dyn Upload>>) -> Result<()> {
        side_by_side(uploads, WAITING, Upload::finish)
    }

    fn make_folder(&self, path: &StorePath) -> Result<()> {
        refuse_links("make", path)?;
        let made = self.changes.make_known_folders(path.as_native());
        made.map_err(|source| storage_error("write", path, source))
    }

    fn remove_empty_folder(&self, path: &StorePath) -> Result<()> {
        refuse_links("delete", path)?;
        delete::delete_empty(path, &self.changes)
    }

    fn unlisted(&self, dir: &StorePath) -> Result<Option<String>> {
        listing::unlisted(dir)
    }

    fn settle(&self, path: &StorePath) -> Result<()> {
        self.changes.sync_for(&path.join("any"), None)
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        self.give_name(from, to, false)
    }

    fn replace(&self, from: &StorePath, to: &StorePath) -> Result<bool> {
        self.size(from)?;
        // A link that takes the place of what it leads to would lead to itself.
        let place = |path: &StorePath| fs::canonicalize(path.as_native()).ok();
        let is_link = fs::symlink_metadata(from.as_native()).is_ok_and(|found| found.is_symlink());
        if !is_link || place(from) != place(to) {
            self.give_name(from, to, true)?;
        }
        Ok(true)
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        paths
            .iter()
            .try_for_each(|path| refuse_links("delete", path))?;
        delete::delete(paths, &self.changes)
    }

    fn latency(&self) -> Latency {
        Latency::Low
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        Some(self)
    }

    fn appending(&self) -> Option<&dyn Append> {
        Some(self)
    }

    fn exclusive(&self) -> Option<&dyn PutNew> {
        Some(self)
    }

    fn locking(&self) -> Option<&dyn LockFolder> {
        Some(self)
    }
}

impl RandomAccess for LocalStorage {
    fn open(&self, path: &StorePath) -> Result<Box<dyn ObjectReader>> {
        Ok(Box::new(OpenFile {
            path: path.clone(),
            file: open(path)?,
        }))
    }

    fn visit_tails(&self, tails: Tails<'_>, visit: &TailVisitor<'_>) {
        let Tails {
            folder,
            count,
            path,
            len,
        } = tails;
        let (Some(pool), Ok(back), Ok(len)) =
            (self.pool(), i64::try_from(len), usize::try_from(len))
        else {
            return;
        };
        if len > MAX_VISITED {
            return;
        }
        let folder = format!("{}/", folder.as_str().trim_end_matches('/'));
        // Seeking from the end tells the size, for less than asking what else the system knows of
        // the file.
        let read = |(name, tail): &mut (String, Vec<u8>), i: usize| -> io::Result<()> {
            name.truncate(folder.len());
            path(i, name);
            let mut file = open_file(Path::new(&*name))?;
            let start = file.seek(SeekFrom::End(-back))?;
            file.read_exact(tail)?;
            visit(i, tail, start + len as u64);
            Ok(())
        };
        let files = (0..count).into_par_iter().with_min_len(FILES_PER_TASK);
        let init = || (folder.clone(), vec![0; len]);
        // What has failed is passed by, as promised.
        pool.install(|| files.for_each_init(init, |memory, i| read(memory, i).unwrap_or_default()));
    }
}

impl Append for LocalStorage {
    fn append(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        refuse_links("write", path)?;
        let native = path.to_native();
        // To open a pipe would wait for who reads from it.
        let file = match fs::metadata(&native) {
            Ok(found) if !found.is_file() => Err(ErrorKind::NotSeekable.into()),
            _ => File::options().append(true).open(&native),
        };
        let file = file.map_err(|source| io_error("write", path, source))?;
        Ok(Box::new(self.new_upload(path, file).of_old_file()))
    }
}

impl PutNew for LocalStorage {
    fn put_new(&self, path: &StorePath, body: Bytes) -> Result<()> {
        let failed = |source| storage_error("write", path, source);
        refuse_links("write", path)?;
        let changes = &self.changes;
        let parent = parent_of(path)?;
        changes.make_folders(parent.as_native()).map_err(failed)?;
        if body.is_empty() {
            changes.sync_for(path, None)?;
            match changes.create_temporary(path.as_native()) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => return Err(already_exists(path)),
                created => created.map_err(failed)?,
            };
            return changes.sync_folder(parent.as_native()).map_err(failed);
        }
        let temporary = temporary_path(path).to_native();
        let written = self
            .write_temporary(path, &temporary, &body)
            .and_then(|()| {
                // Unlike a rename this fails where the name is taken.
                match changes.link(&temporary, path.as_native()) {
                    Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                        return Err(already_exists(path));
                    }
                    linked => linked.map_err(failed)?,
                }
                changes.sync_folder(parent.as_native()).map_err(failed)
            });
        // It is of no use any more; that it cannot be removed changes nothing.
        let _ = changes.remove_file(&temporary);
        written
    }
}

impl LockFolder for LocalStorage {
    fn lock(&self, folder: &StorePath) -> Result<Option<Box<dyn FolderLock>>> {
        lock::lock(folder)
    }
}

#[cfg(test)]
mod tests;

//! A storage that writes down what is asked of another: the IO plan of a query as a test sees it.

use super::{
    Append, Entry, ObjectReader, PendingList, PendingRead, PendingTails, PutNew, RandomAccess,
    ReadInto, ReadRange, ReadRequest, Storage, StorageLayer, StorePath, Tail, TailVisitor, Tails,
    Upload,
};
use crate::error::{Error, Result};
use bytes::Bytes;
use std::io::IoSliceMut;
use std::sync::{Arc, Mutex, PoisonError};

/// What was asked of a [`RequestLogStorage`], in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A folder was listed.
    List(StorePath),
    /// Bytes of an object were read.
    Read {
        /// The object.
        path: StorePath,
        /// What was asked for; `None` for the end of an object.
        range: Option<ReadRange>,
        /// How many bytes came.
        bytes: u64,
        /// Which batch it was part of, counted from 0.
        batch: usize,
    },
    /// The size of an object.
    Size(StorePath),
    /// An object was written.
    Put(StorePath),
    /// An object was begun that is written piece by piece.
    Upload(StorePath),
    /// A folder was made.
    MakeFolder(StorePath),
    /// An object or folder was moved.
    Rename {
        /// Where it was.
        from: StorePath,
        /// Where it is.
        to: StorePath,
    },
    /// Objects or folders were deleted.
    Delete(StorePath),
}

#[derive(Debug, Default)]
struct Log {
    requests: Vec<Request>,
    batches: usize,
}

/// The requests that reached a [`RequestLogStorage`]; clones share one log.
#[derive(Debug, Clone, Default)]
pub struct RequestLog {
    log: Arc<Mutex<Log>>,
}

impl RequestLog {
    /// Everything asked for since the log was made or cleared.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.lock(|log| log.requests.clone())
    }

    /// Takes everything out of the log.
    #[must_use]
    pub fn take(&self) -> Vec<Request> {
        self.lock(|log| {
            log.batches = 0;
            std::mem::take(&mut log.requests)
        })
    }

    /// Number of ranges read.
    #[must_use]
    pub fn read_num(&self) -> usize {
        self.lock(|log| {
            log.requests
                .iter()
                .filter(|r| matches!(r, Request::Read { .. }))
                .count()
        })
    }

    /// Number of batches that reads came in.
    #[must_use]
    pub fn batch_num(&self) -> usize {
        self.lock(|log| log.batches)
    }

    /// Number of folders listed.
    #[must_use]
    pub fn list_num(&self) -> usize {
        self.lock(|log| {
            log.requests
                .iter()
                .filter(|r| matches!(r, Request::List(_)))
                .count()
        })
    }

    /// Number of bytes read.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.lock(|log| {
            let bytes = |r: &Request| {
                if let Request::Read { bytes, .. } = r {
                    *bytes
                } else {
                    0
                }
            };
            log.requests.iter().map(bytes).sum()
        })
    }

    fn push(&self, request: Request) {
        self.lock(|log| log.requests.push(request));
    }

    fn push_batch(&self, reads: impl IntoIterator<Item = (StorePath, Option<ReadRange>, u64)>) {
        self.lock(|log| {
            let batch = log.batches;
            log.batches += 1;
            let reads = reads.into_iter();
            log.requests
                .extend(reads.map(|(path, range, bytes)| Request::Read {
                    path,
                    range,
                    bytes,
                    batch,
                }));
        });
    }

    fn lock<R>(&self, work: impl FnOnce(&mut Log) -> R) -> R {
        work(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Passes everything on to another storage and logs it. Failed reads are logged with the bytes
/// asked for as 0.
#[derive(Debug, Clone)]
pub struct RequestLogStorage {
    inner: Arc<dyn Storage>,
    log: RequestLog,
}

impl RequestLogStorage {
    /// Wraps a storage.
    #[must_use]
    pub fn new(inner: Arc<dyn Storage>) -> Self {
        Self {
            inner,
            log: RequestLog::default(),
        }
    }

    /// The log that it writes.
    #[must_use]
    pub fn log(&self) -> RequestLog {
        self.log.clone()
    }

    fn log_reads(&self, requests: &[ReadRequest], result: &Result<Vec<Bytes>>) {
        let sizes = result
            .as_deref()
            .unwrap_or(&[])
            .iter()
            .map(|b| b.len() as u64);
        let sizes = sizes.chain(std::iter::repeat(0));
        self.log.push_batch(
            requests
                .iter()
                .zip(sizes)
                .map(|(r, n)| (r.path.clone(), Some(r.range.clone()), n)),
        );
    }
}

/// An open object whose reads are logged, each as a batch of its own.
#[derive(Debug)]
struct LoggedReader {
    path: StorePath,
    inner: Box<dyn ObjectReader>,
    log: RequestLog,
}

impl LoggedReader {
    fn log(&self, offset: u64, len: u64) {
        let range = ReadRange::Bytes(offset..offset.saturating_add(len));
        self.log.push_batch([(self.path.clone(), Some(range), len)]);
    }
}

impl ObjectReader for LoggedReader {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.log(offset, out.len() as u64);
        self.inner.read_at(offset, out)
    }

    fn read_scattered_at(&mut self, offset: u64, pieces: &mut [IoSliceMut<'_>]) -> Result<()> {
        self.log(offset, pieces.iter().map(|piece| piece.len() as u64).sum());
        self.inner.read_scattered_at(offset, pieces)
    }
}

impl StorageLayer for RequestLogStorage {
    fn inner(&self) -> &dyn Storage {
        &*self.inner
    }

    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        self.log.push(Request::List(dir.clone()));
        self.inner.list(dir)
    }

    fn list_all(&self, dirs: &[StorePath]) -> Result<Vec<Vec<Entry>>> {
        dirs.iter()
            .for_each(|dir| self.log.push(Request::List(dir.clone())));
        self.inner.list_all(dirs)
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        let result = self.inner.read(requests);
        self.log_reads(requests, &result);
        result
    }

    fn read_tails(&self, paths: &[StorePath], len: u64) -> Result<Vec<Tail>> {
        let result = self.inner.read_tails(paths, len);
        let sizes = result
            .as_deref()
            .unwrap_or(&[])
            .iter()
            .map(|tail| tail.bytes.len() as u64);
        let sizes = sizes.chain(std::iter::repeat(0));
        self.log.push_batch(
            paths
                .iter()
                .zip(sizes)
                .map(|(path, n)| (path.clone(), None, n)),
        );
        result
    }

    fn read_into(&self, requests: &mut [ReadInto<'_>]) -> Result<()> {
        let whole = |r: &ReadInto<'_>| {
            let len = r.out.len() as u64;
            (
                r.path.clone(),
                Some(ReadRange::Bytes(r.offset..r.offset.saturating_add(len))),
                len,
            )
        };
        let reads: Vec<_> = requests.iter().map(whole).collect();
        self.log.push_batch(reads);
        self.inner.read_into(requests)
    }

    fn find(&self, dir: &StorePath, names: &[&str]) -> Result<Vec<Entry>> {
        self.log.push(Request::List(dir.clone()));
        self.inner.find(dir, names)
    }

    fn is_folder(&self, path: &StorePath) -> Result<bool> {
        self.log.push(Request::List(path.clone()));
        self.inner.is_folder(path)
    }

    fn is_empty(&self, dir: &StorePath) -> Result<bool> {
        self.log.push(Request::List(dir.clone()));
        self.inner.is_empty(dir)
    }

    fn list_tree(&self, dir: &StorePath) -> Result<Vec<(String, Vec<Entry>)>> {
        let tree = self.inner.list_tree(dir)?;
        tree.iter()
            .for_each(|(folder, _)| self.log.push(Request::List(dir.join(folder))));
        Ok(tree)
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        self.inner
            .random_access()
            .map(|_| self as &dyn RandomAccess)
    }

    fn appending(&self) -> Option<&dyn Append> {
        self.inner.appending().map(|_| self as &dyn Append)
    }

    fn exclusive(&self) -> Option<&dyn PutNew> {
        self.inner.exclusive().map(|_| self as &dyn PutNew)
    }

    fn start_list(&self, dirs: Vec<StorePath>) -> PendingList {
        dirs.iter()
            .for_each(|dir| self.log.push(Request::List(dir.clone())));
        self.inner.start_list(dirs)
    }

    fn start_read_tails(&self, paths: Vec<StorePath>, len: u64) -> PendingTails {
        self.log
            .push_batch(paths.iter().map(|path| (path.clone(), None, len)));
        self.inner.start_read_tails(paths, len)
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        // Sizes are logged when the read starts, so that the order of the log does not depend on
        // threads.
        self.log.push_batch(
            requests
                .iter()
                .map(|r| (r.path.clone(), Some(r.range.clone()), r.range.known_len())),
        );
        self.inner.start_read(requests)
    }

    fn size(&self, path: &StorePath) -> Result<u64> {
        self.log.push(Request::Size(path.clone()));
        self.inner.size(path)
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.log.push(Request::Put(path.clone()));
        self.inner.put(path, body)
    }

    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        self.log.push(Request::Upload(path.clone()));
        self.inner.upload(path)
    }

    fn make_folder(&self, path: &StorePath) -> Result<()> {
        self.log.push(Request::MakeFolder(path.clone()));
        self.inner.make_folder(path)
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        self.log.push(Request::Rename {
            from: from.clone(),
            to: to.clone(),
        });
        self.inner.rename(from, to)
    }

    fn replace(&self, from: &StorePath, to: &StorePath) -> Result<bool> {
        let moved = self.inner.replace(from, to)?;
        if moved {
            self.log.push(Request::Rename {
                from: from.clone(),
                to: to.clone(),
            });
        }
        Ok(moved)
    }

    fn copy_here(&self, from: &StorePath, to: &StorePath) -> Result<bool> {
        let copied = self.inner.copy_here(from, to)?;
        if copied {
            self.log.push(Request::Put(to.clone()));
        }
        Ok(copied)
    }

    fn copy_all_here(&self, copies: &[(StorePath, StorePath)]) -> Result<bool> {
        let copied = self.inner.copy_all_here(copies)?;
        if copied {
            let puts = copies.iter().map(|(_, to)| Request::Put(to.clone()));
            puts.for_each(|put| self.log.push(put));
        }
        Ok(copied)
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        for path in paths {
            self.log.push(Request::Delete(path.clone()));
        }
        self.inner.delete(paths)
    }
}

impl RequestLogStorage {
    fn cannot(path: &StorePath) -> Error {
        Error::Unsupported(format!("{path}: the storage behind the log cannot do this"))
    }
}

impl RandomAccess for RequestLogStorage {
    fn open(&self, path: &StorePath) -> Result<Box<dyn ObjectReader>> {
        let access = self.inner.random_access();
        let inner = access.ok_or_else(|| Self::cannot(path))?.open(path)?;
        Ok(Box::new(LoggedReader {
            path: path.clone(),
            inner,
            log: self.log.clone(),
        }))
    }

    fn visit_tails(&self, tails: Tails<'_>, visit: &TailVisitor<'_>) {
        let Some(access) = self.inner.random_access() else {
            return;
        };
        let name = |i: usize| {
            let mut name = String::new();
            (tails.path)(i, &mut name);
            tails.folder.join(&name)
        };
        let shown = Mutex::new(Vec::new());
        access.visit_tails(tails, &|i, tail, size| {
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            shown.push((i, tail.len() as u64));
            drop(shown);
            visit(i, tail, size);
        });
        let mut shown = shown.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !shown.is_empty() {
            shown.sort_unstable();
            let reads = shown.into_iter().map(|(i, len)| (name(i), None, len));
            self.log.push_batch(reads);
        }
    }
}

impl Append for RequestLogStorage {
    fn append(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        self.log.push(Request::Upload(path.clone()));
        let appending = self.inner.appending();
        appending.ok_or_else(|| Self::cannot(path))?.append(path)
    }
}

impl PutNew for RequestLogStorage {
    fn put_new(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.log.push(Request::Put(path.clone()));
        let exclusive = self.inner.exclusive();
        exclusive
            .ok_or_else(|| Self::cannot(path))?
            .put_new(path, body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{MemoryStorage, conformance};

    #[test]
    fn meets_the_contract() {
        let storage = RequestLogStorage::new(Arc::new(MemoryStorage::new()));
        conformance::check(&storage, &StorePath::memory("root"));
    }

    #[test]
    fn requests_are_logged_in_batches() {
        let logged = RequestLogStorage::new(Arc::new(MemoryStorage::new()));
        let storage: &dyn Storage = &logged;
        let log = logged.log();
        let path = StorePath::memory("x");
        storage.put(&path, Bytes::from_static(b"12345")).unwrap();
        let _ = log.take();
        let read = |range| ReadRequest {
            path: path.clone(),
            range,
        };
        storage
            .read(&[read(ReadRange::Bytes(1..3)), read(ReadRange::All)])
            .unwrap();
        storage.read_tails(std::slice::from_ref(&path), 4).unwrap();
        storage
            .start_read(vec![read(ReadRange::Bytes(0..1))])
            .wait()
            .unwrap();
        assert_eq!(
            (
                log.read_num(),
                log.batch_num(),
                log.bytes_read(),
                log.list_num()
            ),
            (4, 3, 12, 0)
        );
        let range = Some(ReadRange::Bytes(1..3));
        assert_eq!(
            log.take()[0],
            Request::Read {
                path: path.clone(),
                range,
                bytes: 2,
                batch: 0
            }
        );
        assert!(log.requests().is_empty());
    }
}

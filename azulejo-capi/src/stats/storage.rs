//! A storage that counts requests and bytes on their way to another.

use super::Stats;
use azulejo::storage::{
    Append, Entry, ObjectReader, PendingList, PendingRead, PendingTails, RandomAccess, ReadInto,
    ReadRequest, Storage, StorageLayer, StorePath, Tail, TailVisitor, Tails, Upload,
};
use azulejo::{Error, Result};
use bytes::Bytes;
use std::io::IoSliceMut;
use std::sync::Arc;

/// Passes everything on and counts it.
#[derive(Debug)]
pub struct CountingStorage {
    inner: Arc<dyn Storage>,
    stats: Arc<Stats>,
}

impl CountingStorage {
    /// Wraps a storage; `stats` gets the counts.
    pub fn new(inner: Arc<dyn Storage>, stats: Arc<Stats>) -> Self {
        Self { inner, stats }
    }

    fn reads(&self, requests: usize, bytes: u64) {
        self.stats.count("VFS.read_ops_num", requests as u64);
        self.stats.count("VFS.read_byte_num", bytes);
    }
}

#[derive(Debug)]
struct CountingUpload {
    inner: Box<dyn Upload>,
    stats: Arc<Stats>,
}

impl Upload for CountingUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stats.count("VFS.write_ops_num", 1);
        self.stats.count("VFS.write_byte_num", bytes.len() as u64);
        self.inner.write(bytes)
    }

    fn write_pieces(&mut self, pieces: &[&[u8]]) -> Result<()> {
        self.stats.count("VFS.write_ops_num", 1);
        self.stats.count(
            "VFS.write_byte_num",
            pieces.iter().map(|piece| piece.len() as u64).sum(),
        );
        self.inner.write_pieces(pieces)
    }

    fn begin_finish(&mut self) -> Result<()> {
        self.inner.begin_finish()
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.inner.finish()
    }
}

#[derive(Debug)]
struct CountingReader {
    inner: Box<dyn ObjectReader>,
    stats: Arc<Stats>,
}

impl ObjectReader for CountingReader {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.stats.count("VFS.read_ops_num", 1);
        self.stats.count("VFS.read_byte_num", out.len() as u64);
        self.inner.read_at(offset, out)
    }

    fn read_scattered_at(&mut self, offset: u64, pieces: &mut [IoSliceMut<'_>]) -> Result<()> {
        self.stats.count("VFS.read_ops_num", 1);
        self.stats.count(
            "VFS.read_byte_num",
            pieces.iter().map(|piece| piece.len() as u64).sum(),
        );
        self.inner.read_scattered_at(offset, pieces)
    }
}

impl StorageLayer for CountingStorage {
    fn inner(&self) -> &dyn Storage {
        &*self.inner
    }

    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        self.stats.count("VFS.ls_num", 1);
        self.inner.list(dir)
    }

    fn find(&self, dir: &StorePath, names: &[&str]) -> Result<Vec<Entry>> {
        self.stats.count("VFS.ls_num", 1);
        self.inner.find(dir, names)
    }

    fn is_folder(&self, path: &StorePath) -> Result<bool> {
        self.stats.count("VFS.ls_num", 1);
        self.inner.is_folder(path)
    }

    fn is_empty(&self, dir: &StorePath) -> Result<bool> {
        self.stats.count("VFS.ls_num", 1);
        self.inner.is_empty(dir)
    }

    fn list_all(&self, dirs: &[StorePath]) -> Result<Vec<Vec<Entry>>> {
        self.stats.count("VFS.ls_num", dirs.len() as u64);
        self.inner.list_all(dirs)
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        let read = self.inner.read(requests)?;
        self.reads(
            requests.len(),
            read.iter().map(|bytes| bytes.len() as u64).sum(),
        );
        Ok(read)
    }

    fn read_tails(&self, paths: &[StorePath], len: u64) -> Result<Vec<Tail>> {
        let read = self.inner.read_tails(paths, len)?;
        self.reads(
            paths.len(),
            read.iter().map(|tail| tail.bytes.len() as u64).sum(),
        );
        Ok(read)
    }

    fn read_into(&self, requests: &mut [ReadInto<'_>]) -> Result<()> {
        self.reads(
            requests.len(),
            requests
                .iter()
                .map(|request| request.out.len() as u64)
                .sum(),
        );
        self.inner.read_into(requests)
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        let access = self.inner.random_access()?;
        Some(if super::is_enabled() { self } else { access })
    }

    fn appending(&self) -> Option<&dyn Append> {
        let appending = self.inner.appending()?;
        Some(if super::is_enabled() { self } else { appending })
    }

    fn start_list(&self, dirs: Vec<StorePath>) -> PendingList {
        self.stats.count("VFS.ls_num", dirs.len() as u64);
        self.inner.start_list(dirs)
    }

    fn start_read_tails(&self, paths: Vec<StorePath>, len: u64) -> PendingTails {
        self.reads(paths.len(), len.saturating_mul(paths.len() as u64));
        self.inner.start_read_tails(paths, len)
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        let asked = |request: &ReadRequest| request.range.known_len();
        self.reads(requests.len(), requests.iter().map(asked).sum());
        self.inner.start_read(requests)
    }

    fn size(&self, path: &StorePath) -> Result<u64> {
        self.stats.count("VFS.file_size_num", 1);
        self.inner.size(path)
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.stats.count("VFS.write_ops_num", 1);
        self.stats.count("VFS.write_byte_num", body.len() as u64);
        self.inner.put(path, body)
    }

    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        let inner = self.inner.upload(path)?;
        if !super::is_enabled() {
            return Ok(inner);
        }
        Ok(Box::new(CountingUpload {
            inner,
            stats: Arc::clone(&self.stats),
        }))
    }
}

fn cannot(path: &StorePath) -> Error {
    Error::Unsupported(format!(
        "{path}: the storage that is counted cannot do this"
    ))
}

impl RandomAccess for CountingStorage {
    fn open(&self, path: &StorePath) -> Result<Box<dyn ObjectReader>> {
        let access = self.inner.random_access();
        Ok(Box::new(CountingReader {
            inner: access.ok_or_else(|| cannot(path))?.open(path)?,
            stats: Arc::clone(&self.stats),
        }))
    }

    fn visit_tails(&self, tails: Tails<'_>, visit: &TailVisitor<'_>) {
        let shown = |i: usize, tail: &[u8], size: u64| {
            self.reads(1, tail.len() as u64);
            visit(i, tail, size);
        };
        if let Some(access) = self.inner.random_access() {
            access.visit_tails(tails, &shown);
        }
    }
}

impl Append for CountingStorage {
    fn append(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        let appending = self.inner.appending();
        Ok(Box::new(CountingUpload {
            inner: appending.ok_or_else(|| cannot(path))?.append(path)?,
            stats: Arc::clone(&self.stats),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo::storage::{LocalStorage, MemoryStorage, Uri, conformance};

    #[test]
    fn counted_storages_meet_the_contract() {
        let counting = |inner| CountingStorage::new(inner, Arc::new(Stats::default()));
        let memory = counting(Arc::new(MemoryStorage::new()));
        conformance::check(&memory, &StorePath::memory("root"));
        let folder = tempfile::tempdir().unwrap();
        let root = Uri::parse(folder.path().to_str().unwrap()).unwrap();
        let local = counting(Arc::new(LocalStorage::new()));
        conformance::check(&local, &root.path().join("root"));
    }
}

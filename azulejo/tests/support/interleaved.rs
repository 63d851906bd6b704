//! A storage before each call of which something may come between: others who use the same objects.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::error::Result;
use azulejo::format::path::CLAIM;
use azulejo::storage::{
    Append, Entry, FolderLock, LockFolder, PendingList, PendingRead, PendingTails, PutNew,
    RandomAccess, ReadInto, ReadRequest, Storage, StorageLayer, StorePath, Tail, Upload,
};
use bytes::Bytes;
use std::fmt::Debug;
use std::sync::Arc;

/// What comes between the calls of one operation.
pub trait Between: Debug + Send + Sync {
    /// Comes before a call.
    fn step(&self);

    /// The claim that was just read is held: lets others go on until it is not, if it is they who
    /// hold it. Whether it did.
    fn wait_for_claim(&self, is_held: &dyn Fn() -> bool) -> bool;

    /// Locks a folder of the storage below.
    fn lock(&self, inner: &dyn Storage, folder: &StorePath) -> Result<Option<Box<dyn FolderLock>>>;
}

/// One operation's view of the objects.
#[derive(Debug, Clone)]
pub struct Interleaved<B> {
    inner: Arc<dyn Storage>,
    between: B,
    /// Whether folders have no locks, as on object stores.
    claims: bool,
}

impl<B: Between> Interleaved<B> {
    pub fn with(inner: Arc<dyn Storage>, between: B) -> Self {
        Self {
            inner,
            between,
            claims: false,
        }
    }

    /// The same; with `claims` as an object store, without locks of folders.
    pub fn with_claims(self, claims: bool) -> Self {
        Self { claims, ..self }
    }

    fn step(&self) -> &dyn Storage {
        self.between.step();
        &*self.inner
    }

    /// Whether a claim that is asked for is the one with the largest number.
    fn is_largest(&self, requests: &[ReadRequest]) -> bool {
        let number = |name: &str| name.strip_prefix(CLAIM)?.parse::<u64>().ok();
        requests.iter().any(|request| {
            let folder = request.path.parent().unwrap();
            let entries = self.inner.list(&folder).unwrap_or_default();
            let largest = entries.iter().filter_map(|entry| number(&entry.name)).max();
            largest == number(request.path.name())
        })
    }
}

impl<B: Between> StorageLayer for Interleaved<B> {
    fn inner(&self) -> &dyn Storage {
        &*self.inner
    }

    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        self.step().list(dir)
    }

    fn find(&self, dir: &StorePath, names: &[&str]) -> Result<Vec<Entry>> {
        self.step().find(dir, names)
    }

    fn list_all(&self, dirs: &[StorePath]) -> Result<Vec<Vec<Entry>>> {
        // Folder by folder: something can come between any two.
        dirs.iter().map(|dir| self.step().list(dir)).collect()
    }

    fn list_tree(&self, dir: &StorePath) -> Result<Vec<(String, Vec<Entry>)>> {
        self.step().list_tree(dir)
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        let read = self.step().read(requests)?;
        if self.claims && is_held_claim(requests, &read) {
            let again = || self.inner.read(requests);
            // Who came too late leaves one for a moment that counts for nobody: the largest does.
            let is_held = || {
                self.is_largest(requests)
                    && again().is_ok_and(|read| is_held_claim(requests, &read))
            };
            if self.between.wait_for_claim(&is_held) {
                return again();
            }
        }
        Ok(read)
    }

    fn read_tails(&self, paths: &[StorePath], len: u64) -> Result<Vec<Tail>> {
        self.step().read_tails(paths, len)
    }

    fn read_into(&self, requests: &mut [ReadInto<'_>]) -> Result<()> {
        self.step().read_into(requests)
    }

    fn start_list(&self, dirs: Vec<StorePath>) -> PendingList {
        self.step().start_list(dirs)
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        self.step().start_read(requests)
    }

    fn start_read_tails(&self, paths: Vec<StorePath>, len: u64) -> PendingTails {
        self.step().start_read_tails(paths, len)
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        None
    }

    fn appending(&self) -> Option<&dyn Append> {
        None
    }

    fn exclusive(&self) -> Option<&dyn PutNew> {
        self.inner.exclusive().map(|_| self as &dyn PutNew)
    }

    fn locking(&self) -> Option<&dyn LockFolder> {
        let locking = self.inner.locking().filter(|_| !self.claims);
        locking.map(|_| self as &dyn LockFolder)
    }

    fn size(&self, path: &StorePath) -> Result<u64> {
        self.step().size(path)
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.step().put(path, body)
    }

    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        self.step().upload(path)
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        self.step().rename(from, to)
    }

    fn copy_here(&self, from: &StorePath, to: &StorePath) -> Result<bool> {
        self.step().copy_here(from, to)
    }

    fn copy_all_here(&self, copies: &[(StorePath, StorePath)]) -> Result<bool> {
        for (from, to) in copies {
            if !StorageLayer::copy_here(self, from, to)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn remove_empty_folder(&self, path: &StorePath) -> Result<()> {
        self.step().remove_empty_folder(path)
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        // One by one: something can come between any two.
        for path in paths {
            self.step().delete(std::slice::from_ref(path))?;
        }
        Ok(())
    }
}

impl<B: Between> LockFolder for Interleaved<B> {
    fn lock(&self, folder: &StorePath) -> Result<Option<Box<dyn FolderLock>>> {
        self.between.lock(&*self.inner, folder)
    }
}

impl<B: Between> PutNew for Interleaved<B> {
    fn put_new(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.step().exclusive().unwrap().put_new(path, body)
    }
}

/// Whether somebody has the claim that was read.
fn is_held_claim(requests: &[ReadRequest], read: &[Bytes]) -> bool {
    let is_claim = |request: &ReadRequest| request.path.name().starts_with(CLAIM);
    let is_held = |body: &Bytes| body.split(|byte| *byte == b'\n').nth(2) == Some(b"held");
    requests.iter().any(is_claim) && read.iter().any(is_held)
}

//! A storage before each call of which, and behind it, others may run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::stepped::is_held_claim;
use super::turns::Turns;
use azulejo::error::Result;
use azulejo::storage::{
    Append, Entry, FolderLock, LockFolder, PendingList, PendingRead, PendingTails, PutNew,
    RandomAccess, ReadInto, ReadRequest, Storage, StorageLayer, StorePath, Tail, Upload,
};
use bytes::Bytes;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

/// Folders that somebody has locked.
pub type Locks = Arc<Mutex<HashSet<StorePath>>>;

/// One operation's view of the objects.
#[derive(Debug, Clone)]
pub struct Scheduled {
    inner: Arc<dyn Storage>,
    turns: Arc<Turns>,
    locks: Locks,
    /// Whether folders have no locks, as on object stores.
    claims: bool,
}

impl Scheduled {
    pub fn new(inner: Arc<dyn Storage>, turns: &Arc<Turns>, locks: &Locks, claims: bool) -> Self {
        Self {
            inner,
            turns: Arc::clone(turns),
            locks: Arc::clone(locks),
            claims,
        }
    }

    fn step(&self) -> &dyn Storage {
        self.turns.step();
        &*self.inner
    }
}

impl StorageLayer for Scheduled {
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
            // Nobody sleeps here: the others go on until it is given back, or has moved on.
            let again = || self.inner.read(requests);
            let is_held = || again().is_ok_and(|read| is_held_claim(requests, &read));
            self.turns.wait_until(|| !is_held());
            return again();
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

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        // One by one: something can come between any two.
        for path in paths {
            self.step().delete(std::slice::from_ref(path))?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Locked(StorePath, Locks);

impl FolderLock for Locked {}

impl Drop for Locked {
    fn drop(&mut self) {
        self.1.lock().unwrap().remove(&self.0);
    }
}

impl LockFolder for Scheduled {
    /// One of the test's own: who waits lets others run.
    fn lock(&self, folder: &StorePath) -> Option<Box<dyn FolderLock>> {
        self.turns.step();
        let free = || !self.locks.lock().unwrap().contains(folder);
        self.turns.wait_until(free);
        self.locks.lock().unwrap().insert(folder.clone());
        Some(Box::new(Locked(folder.clone(), Arc::clone(&self.locks))))
    }
}

impl PutNew for Scheduled {
    fn put_new(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.step().exclusive().unwrap().put_new(path, body)
    }
}

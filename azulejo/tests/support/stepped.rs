//! A storage that stands still before one of its calls, while another user of the same objects runs
//! from start to end: two operations interleaved, the same way each time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::error::Result;
use azulejo::storage::{
    Append, Entry, FolderLock, LockFolder, PendingList, PendingRead, PendingTails, PutNew,
    RandomAccess, ReadInto, ReadRequest, Storage, StorageLayer, StorePath, Tail, Upload,
};
use bytes::Bytes;
use std::sync::{Arc, Condvar, Mutex};

/// Where the first of two operations is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Running,
    /// Before the call at which it stops.
    Stopped,
    /// Behind it.
    Released,
    Ended,
}

#[derive(Debug)]
struct State {
    place: Place,
    calls: usize,
    /// Folders that the first operation has locked.
    locked: Vec<StorePath>,
}

/// Stops the first operation and lets it go.
#[derive(Debug)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    stop_at: usize,
}

impl Gate {
    /// A gate before the call of this number, counted from 0.
    pub fn new(stop_at: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                place: Place::Running,
                calls: 0,
                locked: Vec::new(),
            }),
            changed: Condvar::new(),
            stop_at,
        })
    }

    fn set(&self, place: Place) {
        self.state.lock().unwrap().place = place;
        self.changed.notify_all();
    }

    fn wait_for(&self, is_there: impl Fn(&State) -> bool) -> Place {
        let state = self.state.lock().unwrap();
        let state = self.changed.wait_while(state, |state| !is_there(state));
        state.unwrap().place
    }

    /// Waits until the first operation stands still or has ended; whether it stands.
    pub fn wait_until_stopped(&self) -> bool {
        self.wait_for(|state| matches!(state.place, Place::Stopped | Place::Ended))
            == Place::Stopped
    }

    /// Lets the first operation go on.
    pub fn release(&self) {
        let mut state = self.state.lock().unwrap();
        if state.place == Place::Stopped {
            state.place = Place::Released;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Says that the first operation has ended.
    pub fn end(&self) {
        self.set(Place::Ended);
    }

    fn call(&self) {
        let mut state = self.state.lock().unwrap();
        state.calls += 1;
        if state.calls == self.stop_at + 1 {
            state.place = Place::Stopped;
            self.changed.notify_all();
            let go_on = |state: &mut State| state.place == Place::Stopped;
            drop(self.changed.wait_while(state, go_on).unwrap());
        }
    }
}

/// Which of two operations a storage serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one that stops.
    First,
    /// The one that runs while the other stands. If it needs a lock that the other has, the other
    /// goes on, to its end.
    Second,
}

/// One operation's view of the objects.
#[derive(Debug, Clone)]
pub struct SteppedStorage {
    inner: Arc<dyn Storage>,
    gate: Arc<Gate>,
    role: Role,
    /// Whether folders have no locks, as on object stores.
    claims: bool,
}

impl SteppedStorage {
    pub fn new(inner: Arc<dyn Storage>, gate: &Arc<Gate>, role: Role) -> Self {
        Self {
            inner,
            gate: Arc::clone(gate),
            role,
            claims: false,
        }
    }

    /// The same, as an object store: without locks of folders.
    pub fn with_claims(self) -> Self {
        Self {
            claims: true,
            ..self
        }
    }

    fn step(&self) -> &dyn Storage {
        if self.role == Role::First {
            self.gate.call();
        }
        &*self.inner
    }
}

impl StorageLayer for SteppedStorage {
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
        if self.role == Role::Second && self.claims && is_held_claim(requests, &read) {
            // The other has it, and gives it back in its own time.
            self.gate.release();
            self.gate.wait_for(|state| state.place == Place::Ended);
            return self.inner.read(requests);
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
struct SteppedLock {
    _inner: Box<dyn FolderLock>,
    gate: Option<(Arc<Gate>, StorePath)>,
}

impl FolderLock for SteppedLock {}

impl Drop for SteppedLock {
    fn drop(&mut self) {
        if let Some((gate, folder)) = &self.gate {
            gate.state
                .lock()
                .unwrap()
                .locked
                .retain(|path| path != folder);
        }
    }
}

impl LockFolder for SteppedStorage {
    fn lock(&self, folder: &StorePath) -> Option<Box<dyn FolderLock>> {
        let locking = self.inner.locking()?;
        if self.role == Role::First {
            self.gate.call();
            let inner = locking.lock(folder)?;
            self.gate.state.lock().unwrap().locked.push(folder.clone());
            return Some(Box::new(SteppedLock {
                _inner: inner,
                gate: Some((Arc::clone(&self.gate), folder.clone())),
            }));
        }
        if self.gate.state.lock().unwrap().locked.contains(folder) {
            self.gate.release();
            self.gate.wait_for(|state| state.place == Place::Ended);
        }
        Some(Box::new(SteppedLock {
            _inner: locking.lock(folder)?,
            gate: None,
        }))
    }
}

impl PutNew for SteppedStorage {
    fn put_new(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.step().exclusive().unwrap().put_new(path, body)
    }
}

/// Whether somebody has the claim that was read.
pub fn is_held_claim(requests: &[ReadRequest], read: &[Bytes]) -> bool {
    let is_claim = |request: &ReadRequest| request.path.name().starts_with("__azulejo_claim.");
    let is_held = |body: &Bytes| body.split(|byte| *byte == b'\n').nth(2) == Some(b"held");
    requests.iter().any(is_claim) && read.iter().any(is_held)
}

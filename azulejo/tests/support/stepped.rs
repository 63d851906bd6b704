//! A storage that stands still before one of its calls, while another user of the same objects runs
//! from start to end: two operations interleaved, the same way each time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::interleaved::{Between, Interleaved};
use azulejo::error::Result;
use azulejo::storage::{FolderLock, Storage, StorePath};
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

/// What stops an operation, or is let go by it.
#[derive(Debug, Clone)]
pub struct AtGate {
    gate: Arc<Gate>,
    role: Role,
}

/// One of two operations' view of the objects.
pub type SteppedStorage = Interleaved<AtGate>;

impl SteppedStorage {
    pub fn new(inner: Arc<dyn Storage>, gate: &Arc<Gate>, role: Role) -> Self {
        let gate = Arc::clone(gate);
        Self::with(inner, AtGate { gate, role })
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

impl Between for AtGate {
    fn step(&self) {
        if self.role == Role::First {
            self.gate.call();
        }
    }

    fn wait_for_claim(&self, _is_held: &dyn Fn() -> bool) -> bool {
        if self.role == Role::First {
            return false;
        }
        // The other has it, and gives it back in its own time.
        self.gate.release();
        self.gate.wait_for(|state| state.place == Place::Ended);
        true
    }

    fn lock(&self, inner: &dyn Storage, folder: &StorePath) -> Result<Option<Box<dyn FolderLock>>> {
        let Some(locking) = inner.locking() else {
            return Ok(None);
        };
        if self.role == Role::First {
            self.gate.call();
            let Some(inner) = locking.lock(folder)? else {
                return Ok(None);
            };
            self.gate.state.lock().unwrap().locked.push(folder.clone());
            return Ok(Some(Box::new(SteppedLock {
                _inner: inner,
                gate: Some((Arc::clone(&self.gate), folder.clone())),
            })));
        }
        if self.gate.state.lock().unwrap().locked.contains(folder) {
            self.gate.release();
            self.gate.wait_for(|state| state.place == Place::Ended);
        }
        let inner = locking.lock(folder)?;
        Ok(inner.map(|inner| {
            let lock = SteppedLock {
                _inner: inner,
                gate: None,
            };
            Box::new(lock) as Box<dyn FolderLock>
        }))
    }
}

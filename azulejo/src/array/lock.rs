//! One change at a time of what an array consists of.
//!
//! What only adds to an array (cells, key-values, deletes by a condition) needs no lock: each is
//! one file with a name of its own. Whoever takes something away, or writes what is true only as
//! long as nothing else changes (a new schema made of the latest, a list of all commits), holds the
//! array's lock from its first look at the array to its last change of it.

use crate::context::Location;
use crate::storage::FolderLock;
use std::collections::HashSet;
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};

/// Keeps others from changing what an array consists of, until it is dropped.
///
/// Where the storage has locks of folders, others are all processes of the machine (and those of
/// other machines, on network file systems that share such locks). Elsewhere they are the threads
/// of this process.
#[derive(Debug)]
#[must_use]
pub(crate) struct ArrayLock {
    _lock: Lock,
}

#[derive(Debug)]
enum Lock {
    Folder { _lock: Box<dyn FolderLock> },
    Process { _turn: Turn },
}

impl ArrayLock {
    /// Waits until nobody else holds the lock of the array or group at a location. Whoever holds it
    /// already must not ask for it again.
    pub fn wait(location: &Location) -> Self {
        let locking = location.storage.locking();
        let folder = locking.and_then(|locking| locking.lock(&location.path));
        let lock = match folder {
            Some(lock) => Lock::Folder { _lock: lock },
            None => Lock::Process {
                _turn: Turn::wait(location.path.to_string()),
            },
        };
        Self { _lock: lock }
    }
}

/// What threads of this process have locked.
static LOCKED: LazyLock<(Mutex<HashSet<String>>, Condvar)> = LazyLock::new(Default::default);

/// A name that only one thread has at a time.
#[derive(Debug)]
struct Turn {
    name: String,
}

impl Turn {
    fn wait(name: String) -> Self {
        let (locked, changed) = &*LOCKED;
        let locked = locked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut locked = changed
            .wait_while(locked, |locked| locked.contains(&name))
            .unwrap_or_else(PoisonError::into_inner);
        locked.insert(name.clone());
        Self { name }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (locked, changed) = &*LOCKED;
        let mut locked = locked.lock().unwrap_or_else(PoisonError::into_inner);
        locked.remove(&self.name);
        changed.notify_all();
    }
}

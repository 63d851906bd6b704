//! One change at a time of what an array consists of.
//!
//! What only adds to an array (cells, key-values, deletes by a condition) needs no lock: each is
//! one file with a name of its own. Whoever takes something away, or writes what is true only as
//! long as nothing else changes (a new schema made of the latest, a list of all commits), holds the
//! array's lock from its first look at the array to its last change of it.

mod claim;
mod replacing;

use crate::context::Location;
use crate::error::{Error, Result};
use crate::storage::{FolderLock, LockFolder};
use azulejo_format::timestamped_name::TimestampedName;
use claim::{Claim, Lease};
pub(crate) use claim::{is_claim, remove_claims};
pub(crate) use replacing::{finish_replacement, path_of as replacement_path};
use std::collections::HashSet;
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};

/// Keeps others from changing what an array consists of, until it is dropped.
///
/// Where the storage has locks of folders, others are all processes of the machine (and those of
/// other machines, on network file systems that share such locks). Where it has none but can tell
/// who is the first to write an object, as object stores can, others are all who can write there.
/// Elsewhere they are the threads of this process.
#[derive(Debug)]
#[must_use]
pub(crate) struct ArrayLock {
    lock: Lock,
}

#[derive(Debug)]
enum Lock {
    Folder {
        _lock: Box<dyn FolderLock>,
    },
    /// The threads of a process take turns; the claim is given back first.
    Claim {
        claim: Option<Claim>,
        _turn: Turn,
    },
}

impl ArrayLock {
    /// Waits until nobody else holds the lock of the array or group at a location. Whoever holds it
    /// already must not ask for it again.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn wait(location: &Location) -> Result<Self> {
        Self::taken(location, false)
    }

    /// Waits until nobody else makes an array at a location where there is none. The folder is made,
    /// if there are folders: it is what is locked, or holds the claim, which stays there.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn wait_to_make(location: &Location) -> Result<Self> {
        if location.storage.locking().is_some() {
            location.storage.make_folder(&location.path)?;
        }
        Self::taken(location, true)
    }

    fn taken(location: &Location, to_make: bool) -> Result<Self> {
        let locking = location.storage.locking();
        if let Some(locking) = locking
            && let Some(lock) = Self::of_folder(locking, location, to_make)?
        {
            let lock = Lock::Folder { _lock: lock };
            return Ok(Self { lock });
        }
        // Those who share a storage do not wait for each other over the network.
        let of_storage = match location.storage.exclusive() {
            Some(_) => Arc::as_ptr(&location.storage).addr(),
            None => 0,
        };
        let turn = Turn::wait(format!("{of_storage} {}", location.path));
        // A claim would make the folder.
        let has_folders = locking.is_some();
        let is_missing =
            !to_make && has_folders && location.storage.list(&location.path)?.is_empty();
        let claim = match is_missing {
            true => None,
            false => Claim::wait(location, Lease::USUAL)?,
        };
        let decided = claim.as_ref().map(Claim::decided).transpose()?.flatten();
        let lock = Lock::Claim { claim, _turn: turn };
        match decided {
            Some(name) => Self { lock }.carry_out(location, &name),
            None => Ok(Self { lock }),
        }
    }

    /// The lock of a folder, if it is there and can be locked. One that is to be made is made anew
    /// if somebody has removed it before it was locked.
    fn of_folder(
        locking: &dyn LockFolder,
        location: &Location,
        to_make: bool,
    ) -> Result<Option<Box<dyn FolderLock>>> {
        loop {
            match locking.lock(&location.path) {
                Err(Error::NotFound { .. }) if !to_make => return Ok(None),
                Err(Error::NotFound { .. }) => location.storage.make_folder(&location.path)?,
                locked => return locked,
            }
        }
    }

    /// Whether it is a claim: its owner may be taken for dead and overtaken, though alive.
    pub fn is_claim(&self) -> bool {
        matches!(&self.lock, Lock::Claim { claim: Some(_), .. })
    }

    /// Whether it is still held, as far as this process knows: one that stood still for long may
    /// have been taken for dead.
    pub fn is_held(&self) -> bool {
        match &self.lock {
            Lock::Claim { claim: Some(c), .. } => c.is_held(),
            _ => true,
        }
    }

    /// An error if it is not held any more, by the word of the storage: who was overtaken is told
    /// so whatever was delayed until now.
    ///
    /// # Errors
    /// [`Error::Storage`], also of the storage.
    pub fn confirm(&self, location: &Location) -> Result<()> {
        match self.decide(None)? {
            true => Ok(()),
            false => Err(Error::Storage {
                op: "change",
                uri: location.path.to_string(),
                source: std::io::Error::other(
                    "this process stood still for so long that another one has taken its place; nothing was changed, try again",
                ),
            }),
        }
    }

    /// Decides that a replacement counts, whose file is there, if one is given: `true`, and it is
    /// this lock's holder who carries it out, or whoever holds the lock next. `false`, or an error:
    /// it may be so; whoever gets the lock anew finds the file gone then, or else may give it up.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn decide(&self, replacement: Option<&TimestampedName>) -> Result<bool> {
        match &self.lock {
            Lock::Claim { claim: Some(c), .. } => c.decide(replacement),
            _ => Ok(true),
        }
    }

    /// Carries out what was decided. If that took so long that others have done it meanwhile, the
    /// lock is waited for anew.
    ///
    /// # Errors
    /// Those of the storage; whoever holds the lock next carries it out then.
    pub fn carry_out(self, location: &Location, replacement: &TimestampedName) -> Result<Self> {
        let done = replacing::carry_out(location, replacement)?;
        if let Lock::Claim { claim: Some(c), .. } = &self.lock {
            if !c.is_latest()? {
                drop(self);
                let anew = Self::wait(location)?;
                done.take_back_late(location)?;
                return Ok(anew);
            }
            c.settle();
        }
        Ok(self)
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

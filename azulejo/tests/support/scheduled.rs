//! A storage before each call of which, and behind it, others may run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::interleaved::{Between, Interleaved};
use super::turns::Turns;
use azulejo::error::Result;
use azulejo::storage::{FolderLock, Storage, StorePath};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

/// Folders that somebody has locked.
pub type Locks = Arc<Mutex<HashSet<StorePath>>>;

/// What lets others run.
#[derive(Debug, Clone)]
pub struct InTurn {
    /// Which of the operations this is.
    number: usize,
    turns: Arc<Turns>,
    locks: Locks,
}

/// One of some operations' view of the objects.
pub type Scheduled = Interleaved<InTurn>;

impl Scheduled {
    /// That of the operation of this number.
    pub fn new(inner: Arc<dyn Storage>, turns: &Arc<Turns>, number: usize, locks: &Locks) -> Self {
        let between = InTurn {
            number,
            turns: Arc::clone(turns),
            locks: Arc::clone(locks),
        };
        Self::with(inner, between)
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

impl Between for InTurn {
    fn step(&self) {
        // Who renews a claim, after seconds, is in nobody's turn.
        if std::thread::current().name() != Some("azulejo-claim") {
            self.turns.step(self.number);
        }
    }

    fn wait_for_claim(&self, is_held: &dyn Fn() -> bool) -> bool {
        // Nobody sleeps here: the others go on until it is given back, or has moved on.
        self.turns.wait_until(self.number, || !is_held());
        true
    }

    /// One of the test's own: who waits lets others run.
    fn lock(
        &self,
        _inner: &dyn Storage,
        folder: &StorePath,
    ) -> Result<Option<Box<dyn FolderLock>>> {
        self.turns.step(self.number);
        let free = || !self.locks.lock().unwrap().contains(folder);
        self.turns.wait_until(self.number, free);
        self.locks.lock().unwrap().insert(folder.clone());
        Ok(Some(Box::new(Locked(
            folder.clone(),
            Arc::clone(&self.locks),
        ))))
    }
}

//! Claims: who may change an array, where folders have no locks but only one can be the first to
//! write an object.
//!
//! Claims are small objects in the array's folder, `__azulejo_claim.NUMBER`, each written only where
//! none is. The one of the largest number says who may change the array, or that nobody does; who
//! wants to is the first to write the next one. Its owner changes it every few seconds. Who finds one
//! that is held waits until it is free, or until it has not changed for longer than any owner lets
//! pass: then its owner is taken for dead, and overtaken. Time is measured between two looks, by the
//! clock of who waits: no two clocks need to agree.
//!
//! What holds, whatever is delayed for how long:
//!
//! - The largest number never becomes smaller while the array is there: smaller ones are removed,
//!   the largest stays, free. So a file that comes late is never the largest, and counts for nobody.
//! - A number has one owner, ever: who begins anew (where an array was deleted) comes to other
//!   numbers, as steps between them are random and stand in the files. An owner changes and removes
//!   files of its own number, and smaller ones. So nobody who was overtaken can harm a successor.
//! - Who was overtaken cannot decide ([`Claim::decide`]): that takes the next number, which the
//!   successor has. What was decided is carried out by the successor, before anything else.
//!
//! Stores show to whoever looks what was written before.

mod beats;
mod file;
mod protocol;

use crate::context::Location;
use crate::error::{Error, Result};
use crate::platform::{HAS_THREADS, Stopwatch, pause};
use azulejo_format::timestamped_name::TimestampedName;
use beats::Beats;
pub(super) use protocol::Lease;
use protocol::{Clock, Contender, Look, Owner};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Who waits looks so often: more seldom each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Whether something in an array's folder is a claim.
pub(crate) fn is_claim(name: &str) -> bool {
    file::number_of(name).is_some()
}

impl Clock for Stopwatch {
    fn now(&self) -> Duration {
        self.elapsed()
    }
}

/// A claim that is held, until this is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    held: Arc<Held>,
    beats: Option<Beats>,
}

#[derive(Debug)]
struct Held {
    /// `None` when it has ended.
    owner: Mutex<Option<Owner>>,
    clock: Stopwatch,
}

impl Claim {
    /// Waits for the claim of an array; `None`, and nobody waits, where it cannot be made: by who
    /// may only read, and in stores that cannot tell who is the first.
    pub fn wait(location: &Location, lease: Lease) -> Result<Option<Self>> {
        let clock = Stopwatch::start();
        let mut contender = Contender::new(location, lease);
        let mut time = FIRST_PAUSE;
        loop {
            match contender.look(&clock)? {
                Look::Mine { owner, after } => {
                    let claim = Self::hold(owner, clock, lease);
                    pause(after.saturating_sub(clock.now()));
                    return Ok(Some(claim));
                }
                Look::Impossible => return Ok(None),
                Look::Again => {}
                Look::Wait => {
                    pause(time);
                    time = (time * 2).min(LONGEST_PAUSE).min(lease.beat);
                }
            }
        }
    }

    fn hold(owner: Owner, clock: Stopwatch, lease: Lease) -> Self {
        let held = Arc::new(Held {
            owner: Mutex::new(Some(owner)),
            clock,
        });
        let beating = Arc::clone(&held);
        // Without a thread it lasts as long as a claim that nobody renews.
        let beats = HAS_THREADS.then(|| Beats::start(lease.beat, move || beating.beat()));
        Self { held, beats }
    }

    /// The replacement, by the name of its file, that somebody who had the claim before has decided
    /// and maybe not carried out.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it has no such name.
    pub fn decided(&self) -> Result<Option<TimestampedName>> {
        match &*self.held.owner() {
            Some(owner) => owner.decided().map(|name| {
                let failed = |e| Error::decode(owner.path().to_string(), e);
                TimestampedName::parse(name).map_err(failed)
            }),
            None => None,
        }
        .transpose()
    }

    /// See [`Owner::decide`].
    pub fn decide(&self, replacement: Option<&TimestampedName>) -> Result<bool> {
        let name = replacement.map(ToString::to_string);
        match &mut *self.held.owner() {
            Some(owner) if owner.is_held(self.held.clock.now()) => {
                owner.decide(name.as_deref(), &self.held.clock)
            }
            _ => Ok(false),
        }
    }

    /// Says that what was decided is carried out.
    pub fn settle(&self) {
        if let Some(owner) = &mut *self.held.owner() {
            owner.settle();
        }
    }

    /// Whether the storage shows nobody who has taken it over.
    pub fn is_latest(&self) -> Result<bool> {
        match &*self.held.owner() {
            Some(owner) => owner.is_latest(),
            None => Ok(false),
        }
    }

    /// Whether nobody can have taken it over.
    pub fn is_held(&self) -> bool {
        let owner = self.held.owner();
        owner
            .as_ref()
            .is_some_and(|owner| owner.is_held(self.held.clock.now()))
    }
}

impl Held {
    fn owner(&self) -> MutexGuard<'_, Option<Owner>> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn beat(&self) {
        if let Some(owner) = &mut *self.owner() {
            owner.beat(&self.clock);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        drop(self.beats.take());
        let owner = self.held.owner().take();
        if let Some(owner) = owner {
            owner.end();
        }
    }
}

/// Removes claims that came along with a moved object.
pub(crate) fn remove_claims(location: &Location) -> Result<()> {
    let (numbers, _) = file::claims(location)?;
    file::delete(location, &numbers)
}

#[cfg(test)]
mod tests;

//! Claims: who may change an array, where folders have no locks but only one can be the first to
//! write an object.
//!
//! A claim is a small object in the array's folder, `__azulejo_claim.N`, written only where none is,
//! and changed by its owner every few seconds. Who finds one waits until it is gone, or until it
//! has not changed for longer than any owner lets pass: then its owner is dead, and one of those who
//! wait takes it over by being the first to write the next number. Time is measured between two looks,
//! by the clock of who waits: no two clocks need to agree.
//!
//! Two who look at once never both believe that it is theirs: each writes first and looks
//! afterwards, and stores show to whoever looks what was written before.

use crate::context::Location;
use crate::error::{Error, Result};
use crate::platform::{HAS_THREADS, Stopwatch};
use crate::storage::{ReadRange, ReadRequest, Storage, StorePath};
use bytes::Bytes;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const CLAIM: &str = "__azulejo_claim.";
/// More bytes than a claim has.
const MAX_CLAIM: u64 = 4096;
/// Who waits looks so often: more seldom each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Whether something in an array's folder is a claim.
pub(crate) fn is_claim(name: &str) -> bool {
    number_of(name).is_some()
}

fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix(CLAIM)?.parse().ok()
}

/// How long claims last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    /// How often an owner says that it lives.
    pub beat: Duration,
    /// Who has not said so for so long is dead.
    pub expiry: Duration,
}

impl Lease {
    pub const USUAL: Self = Self {
        beat: Duration::from_secs(5),
        expiry: Duration::from_secs(40),
    };
}

/// A claim that is held, until this is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    held: Arc<Held>,
    beats: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Held {
    location: Location,
    number: u64,
    owner: String,
    lease: Lease,
    /// The latest sign of life.
    beaten: Mutex<Stopwatch>,
    is_lost: AtomicBool,
    ended: Mutex<bool>,
    end: Condvar,
}

impl Claim {
    /// Waits for the claim of an array; `None`, and nobody waits, where it cannot be made: by who
    /// may only read, and in stores that cannot tell who is the first.
    pub fn wait(location: &Location, lease: Lease) -> Result<Option<Self>> {
        let storage = &location.storage;
        let Some(exclusive) = storage.exclusive() else {
            return Ok(None);
        };
        let owner = uuid::Uuid::new_v4().simple().to_string();
        let mut stale: Option<(u64, Bytes, Stopwatch)> = None;
        let mut next = Some(1);
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(number) = next {
                let path = path_of(location, number);
                match exclusive.put_new(&path, body_of(&owner, 0)) {
                    Ok(()) if is_alone(location, number, stale.as_ref())? => {
                        return Ok(Some(Self::hold(location, number, owner, lease)));
                    }
                    // Of two who are the first at once, both may have to step back.
                    Ok(()) => storage.delete(&[path])?,
                    Err(Error::AlreadyExists { .. }) => {}
                    Err(error) if cannot_claim(&error) => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
            next = match claims(location)?.last() {
                None => Some(1),
                Some(&number) => {
                    let Some(body) = read(&**storage, &path_of(location, number))? else {
                        continue;
                    };
                    match &stale {
                        Some((known, then, since)) if (*known, then) == (number, &body) => {
                            (since.elapsed() >= lease.expiry).then(|| number.saturating_add(1))
                        }
                        _ => {
                            stale = Some((number, body, Stopwatch::start()));
                            None
                        }
                    }
                }
            };
            if next.is_none() {
                thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE).min(lease.beat);
            }
        }
    }

    fn hold(location: &Location, number: u64, owner: String, lease: Lease) -> Self {
        let held = Arc::new(Held {
            location: location.clone(),
            number,
            owner,
            lease,
            beaten: Mutex::new(Stopwatch::start()),
            is_lost: AtomicBool::new(false),
            ended: Mutex::new(false),
            end: Condvar::new(),
        });
        let beating = Arc::clone(&held);
        // Without a thread it lasts as long as a claim that nobody renews.
        let beats = HAS_THREADS.then(|| {
            let builder = thread::Builder::new().name("azulejo-claim".into());
            builder.spawn(move || beating.beat()).ok()
        });
        let beats = beats.flatten();
        Self { held, beats }
    }

    /// Whether nobody can have taken it over.
    pub fn is_held(&self) -> bool {
        let beaten = self.held.beaten.lock();
        let since = beaten.unwrap_or_else(PoisonError::into_inner).elapsed();
        !self.held.is_lost.load(Ordering::Relaxed) && since < self.held.lease.expiry
    }
}

impl Held {
    fn beat(&self) {
        for count in 1u64.. {
            let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            let wait = self
                .end
                .wait_timeout_while(ended, self.lease.beat, |ended| !*ended);
            if *wait.unwrap_or_else(PoisonError::into_inner).0 {
                return;
            }
            let next = Stopwatch::start();
            match claims(&self.location) {
                // Another one took this process for dead.
                Ok(there) if there.last() != Some(&self.number) => {
                    self.is_lost.store(true, Ordering::Relaxed);
                    return;
                }
                Ok(_) => {}
                // The next beat tells more.
                Err(_) => continue,
            }
            let path = path_of(&self.location, self.number);
            let body = body_of(&self.owner, count);
            if self.location.storage.put(&path, body).is_ok() {
                *self.beaten.lock().unwrap_or_else(PoisonError::into_inner) = next;
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        *self
            .held
            .ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.held.end.notify_all();
        if let Some(beats) = self.beats.take() {
            let _ = beats.join();
        }
        // One that stays is taken over in a while.
        let location = &self.held.location;
        let _ = location
            .storage
            .delete(&[path_of(location, self.held.number)]);
    }
}

/// Whether nobody else has a claim, after one's own was written. `stale` is one that was taken over,
/// and is removed.
fn is_alone(
    location: &Location,
    number: u64,
    stale: Option<&(u64, Bytes, Stopwatch)>,
) -> Result<bool> {
    let others: Vec<u64> = claims(location)?
        .into_iter()
        .filter(|n| *n != number)
        .collect();
    let storage = &*location.storage;
    match (&others[..], stale) {
        ([], _) => Ok(true),
        // Those below it were taken over before it was.
        ([.., last], Some((known, body, _))) if last == known && *last < number => {
            let path = path_of(location, *last);
            if read(storage, &path)?.is_some_and(|now| now != body) {
                return Ok(false);
            }
            let old = others.iter().map(|number| path_of(location, *number));
            storage.delete(&old.collect::<Vec<_>>())?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// The numbers of the claims that there are, in their order.
fn claims(location: &Location) -> Result<Vec<u64>> {
    let entries = location.storage.list(&location.path)?;
    let mut numbers: Vec<u64> = entries.iter().filter_map(|e| number_of(&e.name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn read(storage: &dyn Storage, path: &StorePath) -> Result<Option<Bytes>> {
    let request = ReadRequest {
        path: path.clone(),
        range: ReadRange::AtMost(MAX_CLAIM),
    };
    match storage.read(&[request]) {
        Ok(mut read) => Ok(read.pop()),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn path_of(location: &Location, number: u64) -> StorePath {
    location.path.join(&format!("{CLAIM}{number}"))
}

fn body_of(owner: &str, count: u64) -> Bytes {
    format!("{owner}\n{count}\n").into()
}

/// Removes claims that came along with a moved object.
pub(crate) fn remove_claims(location: &Location) -> Result<()> {
    let numbers = claims(location)?.into_iter();
    let paths: Vec<StorePath> = numbers.map(|number| path_of(location, number)).collect();
    location.storage.delete(&paths)
}

/// Whether an error says that claims cannot be made here.
fn cannot_claim(error: &Error) -> bool {
    match error {
        Error::Unsupported(_) => true,
        Error::Storage { source, .. } => matches!(
            source.kind(),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::Unsupported
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::MemoryStorage;
    use std::sync::atomic::AtomicUsize;

    const SHORT: Lease = Lease {
        beat: Duration::from_millis(40),
        expiry: Duration::from_millis(600),
    };

    fn place() -> Location {
        Location {
            storage: Arc::new(MemoryStorage::new()),
            path: StorePath::memory("array"),
        }
    }

    fn wait(location: &Location) -> Claim {
        Claim::wait(location, SHORT).unwrap().unwrap()
    }

    #[test]
    fn one_at_a_time_and_nothing_is_left() {
        let location = place();
        let (inside, most, done) = <(AtomicUsize, AtomicUsize, AtomicUsize)>::default();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let claim = wait(&location);
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        assert!(claim.is_held());
                        inside.fetch_sub(1, Ordering::SeqCst);
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!((most.into_inner(), done.into_inner()), (1, 80));
        assert_eq!(location.storage.list(&location.path).unwrap(), []);
    }

    #[test]
    fn the_dead_are_taken_over_by_one_and_the_living_are_not() {
        let location = place();
        // A process that was killed renews nothing and deletes nothing.
        let dead = path_of(&location, 1);
        location.storage.put(&dead, body_of("dead", 3)).unwrap();
        let inside = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let claim = wait(&location);
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    // Longer than a claim lasts that is not renewed.
                    thread::sleep(SHORT.expiry * 2);
                    assert!(claim.is_held());
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(location.storage.list(&location.path).unwrap(), []);
    }

    #[test]
    fn who_was_taken_for_dead_finds_out() {
        let location = place();
        let claim = wait(&location);
        let next = path_of(&location, 2);
        location.storage.put(&next, body_of("other", 0)).unwrap();
        let lost = (0..200).any(|_| {
            thread::sleep(SHORT.beat);
            !claim.is_held()
        });
        assert!(lost);
        drop(claim);
        assert_eq!(claims(&location).unwrap(), [2]);
    }
}

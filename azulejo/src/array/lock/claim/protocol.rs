//! How a claim is got, kept, used and given back: steps, between which anything may happen. They
//! wait for nothing, and have the time from outside.

use super::file::{Body, claims, delete, path_of, read};
use crate::context::Location;
use crate::error::{Error, Result};
use crate::storage::{PutNew, StorePath, cannot_put_new};
use bytes::Bytes;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// How long claims last.
#[derive(Debug, Clone, Copy)]
pub(in crate::array::lock) struct Lease {
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

/// A clock of one process, which runs as fast as those of others and agrees with none.
pub(super) trait Clock: Send + Sync + Debug {
    /// The time since whenever.
    fn now(&self) -> Duration;
}

/// Who wants the claim.
#[derive(Debug)]
pub(super) struct Contender {
    location: Location,
    lease: Lease,
    owner: String,
    watched: Option<Watched>,
}

/// A claim that is looked at until it expires.
#[derive(Debug)]
struct Watched {
    number: u64,
    bytes: Bytes,
    /// When it was first seen so.
    since: Duration,
}

/// What a contender has found.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and the large one is taken apart at once"
)]
pub(super) enum Look {
    /// The claim is theirs, from `after` on: who held it before them may believe until then that
    /// they still do.
    Mine { owner: Owner, after: Duration },
    /// Somebody else has it.
    Wait,
    /// It has just changed.
    Again,
    /// There are no claims here.
    Impossible,
}

impl Contender {
    pub fn new(location: &Location, lease: Lease) -> Self {
        Self {
            location: location.clone(),
            lease,
            owner: uuid::Uuid::new_v4().simple().to_string(),
            watched: None,
        }
    }

    /// Looks at who has the claim, and takes it where nobody has.
    pub fn look(&mut self, clock: &dyn Clock) -> Result<Look> {
        let storage = Arc::clone(&self.location.storage);
        let Some(exclusive) = storage.exclusive() else {
            return Ok(Look::Impossible);
        };
        let Some(&number) = claims(&self.location)?.0.last() else {
            return self.begin(exclusive);
        };
        let Some(bytes) = read(&self.location, number)? else {
            return Ok(Look::Again);
        };
        let before = Body::decode(&bytes);
        if !before.is_free && !self.has_expired(number, &bytes, clock.now()) {
            return Ok(Look::Wait);
        }
        let next = before.successor_of(&self.location, number)?;
        // What is decided and maybe not carried out goes along until it is.
        let body = Body {
            decided: before.decided,
            ..Body::new(&self.owner)
        };
        let begun = clock.now();
        match put_new(&self.location, exclusive, next, &body) {
            Ok(true) => {}
            Ok(false) => return Ok(Look::Again),
            Err(error) if cannot_put_new(&error) => return Ok(Look::Impossible),
            Err(error) => return Err(error),
        }
        // Who was dead when they were looked at may have lived when they were overtaken.
        let lives = !before.is_free
            && read(&self.location, number)?
                .is_some_and(|now| now != bytes && !Body::decode(&now).is_free);
        let now = clock.now();
        let (numbers, _) = claims(&self.location)?;
        if numbers.last() != Some(&next) {
            // Others went on from here long ago: this file came too late, and counts for nobody.
            delete(&self.location, &[next])?;
            return Ok(Look::Again);
        }
        let older: Vec<u64> = numbers.into_iter().filter(|n| *n != next).collect();
        delete(&self.location, &older)?;
        let owner = Owner {
            location: self.location.clone(),
            lease: self.lease,
            number: next,
            next: body.successor_of(&self.location, next)?,
            body,
            renewed: begun,
            is_lost: false,
        };
        let after = if lives { now + self.lease.expiry } else { now };
        Ok(Look::Mine { owner, after })
    }

    /// The first file there is. Nobody ever owns it, so nobody ever changes it.
    fn begin(&self, exclusive: &dyn PutNew) -> Result<Look> {
        let body = Body {
            is_free: true,
            ..Body::new(&self.owner)
        };
        match put_new(&self.location, exclusive, 0, &body) {
            Ok(_) => Ok(Look::Again),
            Err(error) if cannot_put_new(&error) => Ok(Look::Impossible),
            Err(error) => Err(error),
        }
    }

    fn has_expired(&mut self, number: u64, bytes: &Bytes, now: Duration) -> bool {
        match &self.watched {
            Some(seen) if seen.number == number && seen.bytes == bytes => {
                now.saturating_sub(seen.since) >= self.lease.expiry
            }
            _ => {
                self.watched = Some(Watched {
                    number,
                    bytes: bytes.clone(),
                    since: now,
                });
                false
            }
        }
    }
}

/// Who has the claim, or had it: what they believe is right as long as [`Self::is_held`].
#[derive(Debug)]
pub(super) struct Owner {
    location: Location,
    lease: Lease,
    number: u64,
    /// The number after it.
    next: u64,
    body: Body,
    /// Before the latest sign of life was given, behind which nobody else had the claim.
    renewed: Duration,
    is_lost: bool,
}

impl Owner {
    /// Whether nobody can have taken it over.
    pub fn is_held(&self, now: Duration) -> bool {
        !self.is_lost && now < self.held_until()
    }

    /// Until when it believes so, if nothing tells it otherwise.
    pub fn held_until(&self) -> Duration {
        self.renewed + self.lease.expiry
    }

    /// Whether nobody has gone on to another number.
    pub fn is_latest(&self) -> Result<bool> {
        Ok(!self.is_lost && claims(&self.location)?.0.last() == Some(&self.number))
    }

    /// Its file.
    pub fn path(&self) -> StorePath {
        path_of(&self.location, self.number)
    }

    /// The replacement that was decided and is maybe not carried out.
    pub fn decided(&self) -> Option<&str> {
        self.body.decided.as_deref()
    }

    /// A sign of life. It counts from before it was given, and only where somebody who looks
    /// behind it finds no successor.
    pub fn beat(&mut self, clock: &dyn Clock) {
        if self.is_lost {
            return;
        }
        let begun = clock.now();
        self.body.count += 1;
        let path = path_of(&self.location, self.number);
        let put = self.location.storage.put(&path, self.body.encode());
        // The next beat tells more.
        if put.is_ok()
            && let Ok((numbers, _)) = claims(&self.location)
        {
            if numbers.last() == Some(&self.number) {
                self.renewed = begun;
            } else {
                self.is_lost = true;
            }
        }
    }

    /// Goes on to the next number, which nobody can who was overtaken. With `decided`, a
    /// replacement whose file is there: from that moment on it is carried out, by the caller or by
    /// whoever has the claim next.
    ///
    /// `true`: so it is, and the claim is still held. `false`, or an error: nobody can say; who
    /// gets the claim anew finds out.
    pub fn decide(&mut self, decided: Option<&str>, clock: &dyn Clock) -> Result<bool> {
        if self.is_lost {
            return Ok(false);
        }
        // Whatever comes now, this claim's end is not to say that the decision was carried out.
        self.is_lost = true;
        let storage = &*self.location.storage;
        let Some(exclusive) = storage.exclusive() else {
            return Ok(false);
        };
        let body = Body {
            decided: decided.map(String::from),
            ..Body::new(&self.body.owner)
        };
        let begun = clock.now();
        if !put_new(&self.location, exclusive, self.next, &body)? {
            return Ok(false);
        }
        let after = body.successor_of(&self.location, self.next)?;
        let (numbers, _) = claims(&self.location)?;
        // Without its own one it is another array that lies there now.
        if numbers.last() != Some(&self.next) || !numbers.contains(&self.number) {
            return Ok(false);
        }
        let old = self.number;
        (self.number, self.next, self.body) = (self.next, after, body);
        (self.renewed, self.is_lost) = (begun, false);
        // Else the next owner removes it.
        let _ = delete(&self.location, &[old]);
        Ok(true)
    }

    /// Says that what was decided is carried out.
    pub fn settle(&mut self) {
        self.body.decided = None;
    }

    /// Gives it back. One that cannot be given back expires.
    pub fn end(mut self) {
        let Ok((numbers, others)) = claims(&self.location) else {
            return;
        };
        let location = &self.location;
        let _ = match numbers.last() {
            // The array is gone.
            Some(&last) if last == self.number && !others => delete(location, &numbers),
            Some(&last) if last == self.number => {
                self.body.is_free = true;
                let path = path_of(location, self.number);
                location.storage.put(&path, self.body.encode())
            }
            // Maybe it is there again, for nobody: the last sign of life came late.
            Some(&last) if last > self.number => delete(location, &[self.number]),
            _ => Ok(()),
        };
    }
}

/// Whether the file of that number is this one: written by this call, or though it was said that it
/// could not be.
fn put_new(location: &Location, exclusive: &dyn PutNew, number: u64, body: &Body) -> Result<bool> {
    let bytes = body.encode();
    match exclusive.put_new(&path_of(location, number), bytes.clone()) {
        Ok(()) => Ok(true),
        Err(error) if cannot_put_new(&error) => Err(error),
        Err(Error::AlreadyExists { .. }) => Ok(read(location, number)? == Some(bytes)),
        Err(error) => match read(location, number) {
            Ok(Some(now)) => Ok(now == bytes),
            _ => Err(error),
        },
    }
}

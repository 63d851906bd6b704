//! Beginning again: what readers do where files are gone that a listing has named, because
//! consolidations and vacuums go on beside them; or where files are not all there yet, because
//! libtiledb writes them in place.
//!
//! There is one rule. Whoever has listed folders and reads what they name counts [`Attempts`], and
//! lists again when something is not there any more: opening, commits, key-values, members of
//! groups. Whoever reads what an array was opened with, as long as nothing was given out, opens it
//! again ([`Reopening`]): cells, aggregates, divisions. Where a time was asked for, what is there
//! now must hold all that counted then; else the error that names the file is the answer.

use super::directory::DetailFiles;
use super::schemas::SCHEMA_OF_A_FRAGMENT;
use super::{Array, TimeRange};
use crate::error::{Error, Result};
use crate::platform;
use crate::storage::Waiting;
use azulejo_format::timestamped_name::TimestampedName;
use azulejo_format::{ArraySchema, DecodeError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often something is begun where the same thing is not there.
const ATTEMPTS: usize = 5;

/// How long a file may be under way.
const YOUNG: Duration = Duration::from_secs(2);

/// Before what others are writing or removing is looked at once more; each pause is twice the one
/// before, half a second in all: they may have to wait for a processor.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const PAUSES: u32 = 8;

/// Counts how often something was begun.
#[derive(Debug)]
pub(crate) struct Attempts {
    left: usize,
    pauses: u32,
    /// What was not there last.
    gone: Option<String>,
}

impl Attempts {
    /// Before the first.
    pub fn new() -> Self {
        Self {
            left: ATTEMPTS - 1,
            pauses: PAUSES,
            gone: None,
        }
    }

    /// The only one.
    pub fn one() -> Self {
        Self {
            left: 0,
            pauses: 0,
            gone: None,
        }
    }

    /// Whether there is another one, which is then used up.
    pub fn another(&mut self) -> bool {
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }

    /// Whether a listing was overtaken, and there is another attempt to find what is there now.
    pub fn again<T>(&mut self, result: &Result<T>) -> bool {
        match result {
            Err(error) => self.after(error),
            Ok(_) => false,
        }
    }

    /// As [`Self::again`], after an error.
    fn after(&mut self, error: &Error) -> bool {
        if is_under_way(error) {
            return self.pause();
        }
        if !is_overtaken(error) {
            return false;
        }

        // Where each time something else is gone, somebody is removing one file after another.
        let gone = error.to_string();
        match self.gone.replace(gone.clone()) {
            Some(before) if before != gone => self.pause(),
            _ => self.another(),
        }
    }

    /// Waits before another attempt, if there may be one.
    fn pause(&mut self) -> bool {
        let is_left = self.pauses > 0;
        if is_left {
            platform::pause(FIRST_PAUSE * (1 << (PAUSES - self.pauses)));
            self.pauses -= 1;
        }
        is_left
    }
}

/// Whether a file is cut off whose name is so young that it may be written at this moment. What is
/// damaged stays so, and is told soon.
fn is_under_way(error: &Error) -> bool {
    let Error::Corrupt { uri, source } = error else {
        return false;
    };
    let name = uri.rsplit('/').next().unwrap_or(uri);
    let name = name.split('.').next().unwrap_or(name);
    let now = platform::since_epoch().as_millis();
    matches!(source, DecodeError::Truncated { .. })
        && TimestampedName::parse(name)
            .is_ok_and(|name| now.abs_diff(u128::from(name.t_end)) < YOUNG.as_millis())
}

/// Whether a file was gone, or a fragment names a schema that came after schemas were listed and
/// before commits were.
pub(super) fn is_overtaken(error: &Error) -> bool {
    match error {
        Error::NotFound { .. } => true,
        Error::Corrupt { source, .. } => {
            matches!(source, DecodeError::Invalid { what, .. } if *what == SCHEMA_OF_A_FRAGMENT)
        }
        _ => false,
    }
}

/// An array that is read, opened again where files are gone that it had when it was opened.
#[derive(Debug)]
pub(crate) struct Reopening {
    first: Array,
    array: Array,
    attempts: Attempts,
}

impl Reopening {
    pub fn of(array: &Array) -> Self {
        Self {
            first: array.clone(),
            array: array.clone(),
            attempts: Attempts::new(),
        }
    }

    /// The array as it was opened last.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// What was read of the array; `None` if that is to be read again, as something was gone and the
    /// array could be opened again.
    pub async fn settled<T>(&mut self, read: Result<T>, waiting: Waiting) -> Option<Result<T>> {
        match read {
            Err(error) if self.again(&error, waiting).await => None,
            read => Some(read),
        }
    }

    /// Whether something was gone, and the array could be opened again as it is now, with the
    /// schema that it had. Not for an array of another time, or of chosen fragments.
    pub async fn again(&mut self, error: &Error, waiting: Waiting) -> bool {
        if !self.attempts.after(error) {
            return false;
        }
        match self.first.reopened(waiting).await {
            Some(Ok(array)) => {
                self.array = array;
                true
            }
            _ => false,
        }
    }
}

/// Whether a schema is among these, and the attributes that it has were neither changed nor dropped
/// since: what is written and merged by then can be read with it.
pub(super) fn is_outlived_by(
    name: &str,
    schema: &ArraySchema,
    all: &BTreeMap<String, Arc<ArraySchema>>,
) -> bool {
    let Ok(since) = TimestampedName::parse(name) else {
        return all.len() == 1 && all.contains_key(name);
    };
    let later = all.iter().filter(|(name, _)| {
        TimestampedName::parse(name).is_ok_and(|name| name.cmp_by_time(&since).is_gt())
    });
    let keeps = |other: &ArraySchema| {
        let mut attributes = schema.attributes.iter();
        attributes.all(|attribute| other.attributes.contains(attribute))
    };
    all.contains_key(name) && later.into_iter().all(|(_, later)| keeps(later))
}

/// Whether details that were listed again hold all that counted at the time asked for: none was
/// merged with what came before or after it.
pub(crate) fn holds_all_of(asked: TimeRange, files: &DetailFiles) -> bool {
    let in_part = |name: &TimestampedName| asked.overlaps(name) && !asked.contains(name);
    asked.end == u64::MAX || !files.files.iter().any(|entry| in_part(&entry.name))
}

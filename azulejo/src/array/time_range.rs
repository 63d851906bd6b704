//! Spans of time.

use crate::clock;
use crate::error::{Error, Result};

/// A span of time in milliseconds since 1970-01-01 UTC, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimeRange {
    /// First millisecond.
    pub start: u64,
    /// Last millisecond; `u64::MAX` stands for the time of opening.
    pub end: u64,
}

impl TimeRange {
    /// Everything until now.
    pub const ALL: Self = Self {
        start: 0,
        end: u64::MAX,
    };

    /// Everything up to and including a millisecond.
    #[must_use]
    pub const fn until(end: u64) -> Self {
        Self { start: 0, end }
    }

    /// What of it is not behind a moment.
    pub(crate) fn cut_at(self, end: u64) -> Self {
        Self {
            end: self.end.min(end),
            ..self
        }
    }

    /// This range, whose end must not be before its start.
    pub(super) fn not_empty(self) -> Result<Self> {
        let Self { start, end } = self.resolved();
        if start > end {
            return Err(Error::InvalidArgument(format!(
                "a time range from {start} to {end} is empty"
            )));
        }
        Ok(self)
    }

    /// With a fixed end: what carries a time in the future does not count yet.
    pub(crate) fn resolved(self) -> Self {
        Self {
            end: if self.end == u64::MAX {
                clock::now()
            } else {
                self.end
            },
            ..self
        }
    }
}

impl Default for TimeRange {
    fn default() -> Self {
        Self::ALL
    }
}

//! Spans of time.

use crate::clock;

/// A span of time in milliseconds since 1970-01-01 UTC, both ends included. Where the last comes
/// before the first, nothing is of that time: an array or group opens, and shows nothing.
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

//! What filters are chosen for.

use std::fmt;
use std::str::FromStr;

/// What filters are chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The fewest bytes, whatever it takes to write and to read them.
    Size,
    /// Bytes that reads bring from a fast disk or over a network, and the time to undo filters.
    Balanced,
    /// Reads of what lies in memory already, or nearly so.
    Speed,
}

impl Goal {
    /// All goals, by the names that [`FromStr`] reads.
    pub const ALL: [Self; 3] = [Self::Size, Self::Balanced, Self::Speed];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Balanced => "balanced",
            Self::Speed => "speed",
        }
    }

    /// Nanoseconds of a thread that a stored byte is worth.
    pub(super) fn byte_price(self) -> f64 {
        match self {
            // Decoding decides among what has nearly the same size.
            Self::Size => 100.0,
            // 400 MB a second: what a good disk or a fast network brings a thread.
            Self::Balanced => 2.5,
            // 4 GB a second: the page cache, and what else a byte costs on its way.
            Self::Speed => 0.25,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|goal| goal.name() == text)
            .ok_or_else(|| format!("{text:?} is not a goal: size, balanced or speed"))
    }
}

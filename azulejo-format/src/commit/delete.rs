//! Delete commits (`.del`). Page: *Delete Commit File*.

use crate::condition::Condition;
use crate::error::Result;

/// Deletes the cells that were written before it and meet its condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    /// The condition.
    pub condition: Condition,
}

impl Delete {
    /// Decodes the unfiltered payload of the file's generic tile.
    pub fn decode(payload: &[u8]) -> Result<Self> {
        Ok(Self { condition: Condition::decode(payload)? })
    }

    /// Encodes the payload, unfiltered.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.condition.encode()
    }
}

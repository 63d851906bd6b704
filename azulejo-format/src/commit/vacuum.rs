//! Vacuum files (`.vac`). Page: *Vacuum File*.

use super::{join_lines, last_component, lines};
use crate::error::Result;

/// What a consolidation has made superfluous.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VacuumList {
    /// As written down: relative to the array since v19, absolute URIs of that time before.
    pub uris: Vec<String>,
}

impl VacuumList {
    /// Decodes the file.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Ok(Self {
            uris: lines(bytes, "vacuum file")?,
        })
    }

    /// Encodes the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        join_lines(&self.uris)
    }

    /// The names of the fragments or files, without the paths before them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.uris.iter().map(|uri| last_component(uri))
    }
}

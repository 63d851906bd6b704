//! Ignore files (`.ign`). Page: *Ignore File*.

use super::{join_lines, lines};
use crate::error::Result;

/// Commits in consolidated commits files that are to be left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IgnoreList {
    /// Their URIs relative to the array, such as `__commits/__1_1_ab..cd_22.wrt`.
    pub uris: Vec<String>,
}

impl IgnoreList {
    /// Decodes the file.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Ok(Self {
            uris: lines(bytes, "ignore file")?,
        })
    }

    /// Encodes the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        join_lines(&self.uris)
    }
}

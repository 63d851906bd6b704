//! Consolidated commits files (`.con`). Page: *Consolidated Commits File*.

use super::last_component;
use crate::error::{DecodeError, Result};
use crate::wire::{ByteReader, ByteWriter};

/// One commit in a consolidated commits file; its URI is relative to the array, or just a name in
/// some writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsolidatedCommit<'a> {
    /// A `.wrt` or `.ok`: the fragment exists.
    Fragment {
        /// The commit's URI.
        uri: &'a str,
    },
    /// A `.del`.
    Delete {
        /// The commit's URI.
        uri: &'a str,
        /// The generic tile of the condition, filtered.
        tile: &'a [u8],
    },
    /// A `.upd`.
    Update {
        /// The commit's URI.
        uri: &'a str,
        /// The generic tile of the condition and values, filtered.
        tile: &'a [u8],
    },
}

impl<'a> ConsolidatedCommit<'a> {
    /// The URI as written down.
    #[must_use]
    pub const fn uri(&self) -> &'a str {
        match self {
            Self::Fragment { uri } | Self::Delete { uri, .. } | Self::Update { uri, .. } => uri,
        }
    }

    /// The commit's name with its ending, such as `__1_1_ab..cd_22.wrt`.
    #[must_use]
    pub fn name(&self) -> &'a str {
        last_component(self.uri())
    }
}

/// The commits in one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConsolidatedCommits<'a> {
    /// In stored order.
    pub commits: Vec<ConsolidatedCommit<'a>>,
}

impl<'a> ConsolidatedCommits<'a> {
    /// Decodes the file.
    pub fn decode(bytes: &'a [u8]) -> Result<Self> {
        const WHAT: &str = "consolidated commits";
        let mut r = ByteReader::new(bytes);
        let mut commits = Vec::new();
        while !r.is_empty() {
            let at = r.offset();
            let Some(len) = r.rest().iter().position(|byte| *byte == b'\n') else {
                return Err(r.invalid(WHAT, "the last URI is cut off"));
            };
            let uri = std::str::from_utf8(r.bytes(len, WHAT)?)
                .map_err(|_| DecodeError::invalid(WHAT, at, "a URI is not UTF-8"))?;
            r.u8(WHAT)?;
            let ending = uri.rsplit_once('.').map(|(_, ending)| ending);
            commits.push(match ending {
                Some("wrt" | "ok") => ConsolidatedCommit::Fragment { uri },
                Some("del") => ConsolidatedCommit::Delete {
                    uri,
                    tile: read_tile(&mut r)?,
                },
                Some("upd") => ConsolidatedCommit::Update {
                    uri,
                    tile: read_tile(&mut r)?,
                },
                _ => {
                    return Err(DecodeError::invalid(
                        WHAT,
                        at,
                        format!("{uri:?} is no commit"),
                    ));
                }
            });
        }
        Ok(Self { commits })
    }

    /// Encodes the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = ByteWriter::new();
        for commit in &self.commits {
            w.bytes(commit.uri().as_bytes());
            w.u8(b'\n');
            match commit {
                ConsolidatedCommit::Fragment { .. } => {}
                ConsolidatedCommit::Delete { tile, .. }
                | ConsolidatedCommit::Update { tile, .. } => {
                    w.u64(tile.len() as u64);
                    w.bytes(tile);
                }
            }
        }
        w.into_bytes()
    }
}

fn read_tile<'a>(r: &mut ByteReader<'a>) -> Result<&'a [u8]> {
    let len = r.u64("consolidated commit length")?;
    r.bytes_u64(len, "consolidated commit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_damage() {
        let commits = ConsolidatedCommits {
            commits: vec![
                ConsolidatedCommit::Fragment {
                    uri: "__commits/__1_1_ab_22.wrt",
                },
                ConsolidatedCommit::Delete {
                    uri: "__commits/__2_2_cd_22.del",
                    tile: b"a\nb",
                },
                ConsolidatedCommit::Fragment {
                    uri: "__3_3_ef_9.ok",
                },
                ConsolidatedCommit::Update {
                    uri: "__commits/__4_4_01_22.upd",
                    tile: b"",
                },
            ],
        };
        let bytes = commits.encode();
        assert_eq!(ConsolidatedCommits::decode(&bytes).unwrap(), commits);
        assert_eq!(commits.commits[1].name(), "__2_2_cd_22.del");
        let mut boundaries = 0;
        for len in 0..bytes.len() {
            boundaries += usize::from(ConsolidatedCommits::decode(&bytes[..len]).is_ok());
        }
        assert_eq!(boundaries, 4, "only whole commits are accepted");
        let mut changed = bytes.clone();
        for i in 0..bytes.len() {
            for bits in [0xff, 0x80, 0x01] {
                changed[i] ^= bits;
                let _ = ConsolidatedCommits::decode(&changed);
                changed[i] = bytes[i];
            }
        }
    }

    #[test]
    fn what_is_no_commit_is_refused() {
        assert!(ConsolidatedCommits::decode(b"__1_1_ab_22.tdb\n").is_err());
        assert!(ConsolidatedCommits::decode(b"\n").is_err());
        assert!(ConsolidatedCommits::decode(b"__1_1_\xff_22.wrt\n").is_err());
        assert!(ConsolidatedCommits::decode(b"").unwrap().commits.is_empty());
    }
}

//! Consolidated fragment metadata (`.meta`): the footers of many fragments in one file.
//!
//! Page: *Consolidated Fragment Metadata File*, which leaves out the number of fragments at the
//! beginning.

use crate::error::{DecodeError, Result};
use crate::wire::{ByteReader, ByteWriter};

/// The footer of one fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsolidatedFooter<'a> {
    /// The fragment as it is written down: its name since v9, before that its absolute URI at that
    /// time.
    pub fragment: &'a str,
    /// The bytes of its footer, without length.
    pub footer: &'a [u8],
}

impl<'a> ConsolidatedFooter<'a> {
    /// The fragment's name, whether it is written down with a path before it or not: arrays move.
    #[must_use]
    pub fn name(&self) -> &'a str {
        last_component(self.fragment)
    }
}

/// The footers in one consolidated fragment metadata file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConsolidatedFragmentMetadata<'a> {
    /// In stored order.
    pub footers: Vec<ConsolidatedFooter<'a>>,
}

impl<'a> ConsolidatedFragmentMetadata<'a> {
    /// Decodes the unfiltered generic tile that the file consists of.
    ///
    /// Footers are not looked into. Should one not decode, take the fragment's own: the reference
    /// misplaces footers behind one of v11, which it writes 8 bytes longer than it reads it.
    pub fn decode(payload: &'a [u8]) -> Result<Self> {
        let mut r = ByteReader::new(payload);
        let num = r.u32("number of consolidated fragments")?;
        let num = r.check_count(num.into(), 16, "consolidated fragments")?;
        let mut entries: Vec<(&str, u64)> = Vec::with_capacity(num);
        for _ in 0..num {
            let len = r.u64("fragment name length")?;
            let at = r.offset();
            let name = std::str::from_utf8(r.bytes_u64(len, "fragment name")?)
                .map_err(|_| DecodeError::invalid("fragment name", at, "not UTF-8"))?;
            entries.push((name, r.u64("footer offset")?));
        }
        let mut starts: Vec<u64> = entries.iter().map(|(_, offset)| *offset).collect();
        starts.sort_unstable();
        let mut footers = Vec::with_capacity(entries.len());
        for (fragment, start) in entries {
            let next = starts.partition_point(|other| *other <= start);
            let end = starts.get(next).copied().unwrap_or(payload.len() as u64);
            let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            let footer = range
                .and_then(|(start, end)| payload.get(start..end))
                .ok_or_else(|| {
                    DecodeError::invalid("footer offset", 0, format!("{start} lies behind the end"))
                })?;
            footers.push(ConsolidatedFooter { fragment, footer });
        }
        Ok(Self { footers })
    }

    /// Encodes the generic tile's payload, unfiltered.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let table: usize = self.footers.iter().map(|f| 16 + f.fragment.len()).sum();
        let mut offset = 4 + table as u64;
        let mut w = ByteWriter::new();
        w.u32(u32::try_from(self.footers.len()).unwrap_or(u32::MAX));
        for footer in &self.footers {
            w.text64(footer.fragment);
            w.u64(offset);
            offset += footer.footer.len() as u64;
        }
        for footer in &self.footers {
            w.bytes(footer.footer);
        }
        w.into_bytes()
    }
}

/// What follows the last `/` of a URI (a `/` at its end apart).
pub(crate) fn last_component(uri: &str) -> &str {
    let uri = uri.trim_end_matches('/');
    uri.rsplit(['/', '\\']).next().unwrap_or(uri)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::sample::damage;

    #[test]
    fn round_trip_and_damage() {
        let metadata = ConsolidatedFragmentMetadata {
            footers: vec![
                ConsolidatedFooter {
                    fragment: "file:///old/place/__1_2_ab",
                    footer: b"first",
                },
                ConsolidatedFooter {
                    fragment: "__3_4_cd_22",
                    footer: b"the second",
                },
            ],
        };
        let bytes = metadata.encode();
        assert_eq!(
            ConsolidatedFragmentMetadata::decode(&bytes).unwrap(),
            metadata
        );
        let names: Vec<&str> = metadata
            .footers
            .iter()
            .map(ConsolidatedFooter::name)
            .collect();
        assert_eq!(names, ["__1_2_ab", "__3_4_cd_22"]);
        // The last footer has no length of its own, so cutting it short shows only in the footer.
        let table = bytes.len() - b"the second".len();
        damage(&bytes[..table], |bytes| {
            ConsolidatedFragmentMetadata::decode(bytes).map(|_| ())
        });
        let none = ConsolidatedFragmentMetadata::default().encode();
        assert!(
            ConsolidatedFragmentMetadata::decode(&none)
                .unwrap()
                .footers
                .is_empty()
        );
    }
}

//! The list of parts that compressors and encryption keep as metadata. Page: *Tile*.
//!
//! Both replace the metadata of the filters before them by a list: how many metadata parts and data
//! parts there were, and for each part its length before and after (and more, for encryption).

use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;

/// Lengths of one part, and what follows them in its entry.
pub(super) struct FilterPart<'a> {
    pub(super) original_len: usize,
    pub(super) encoded_len: usize,
    pub(super) rest: &'a [u8],
}

/// The entries of a part list, borrowed.
#[derive(Clone, Copy)]
pub(super) struct PartList<'a> {
    metadata: &'a [u8],
    data: &'a [u8],
    entry_len: usize,
}

impl<'a> PartList<'a> {
    /// Reads a list whose entries are `entry_len` (at least 8) bytes long.
    pub(super) fn read(metadata: &mut ByteReader<'a>, entry_len: usize) -> Result<Self> {
        let num_metadata = u64::from(metadata.u32("number of metadata parts")?);
        let num_data = u64::from(metadata.u32("number of data parts")?);
        let len = entry_len.max(8) as u64;
        Ok(Self {
            metadata: metadata.bytes_u64(num_metadata.saturating_mul(len), "metadata parts")?,
            data: metadata.bytes_u64(num_data.saturating_mul(len), "data parts")?,
            entry_len: entry_len.max(8),
        })
    }

    /// The parts of the metadata of earlier filters.
    pub(super) fn metadata(self) -> impl Iterator<Item = FilterPart<'a>> {
        self.entries(self.metadata)
    }

    /// The parts of the data.
    pub(super) fn data(self) -> impl Iterator<Item = FilterPart<'a>> {
        self.entries(self.data)
    }

    fn entries(self, bytes: &'a [u8]) -> impl Iterator<Item = FilterPart<'a>> {
        bytes.chunks_exact(self.entry_len).map(|entry| {
            let mut r = ByteReader::new(entry);
            // An entry is at least 8 bytes long, so that the reads cannot fail.
            let original_len = r.u32("part").unwrap_or(0) as usize;
            let encoded_len = r.u32("part").unwrap_or(0) as usize;
            FilterPart {
                original_len,
                encoded_len,
                rest: r.rest(),
            }
        })
    }
}

/// Bytes of all parts before encoding.
pub(super) fn original_len<'a>(parts: impl Iterator<Item = FilterPart<'a>>) -> u64 {
    parts.map(|part| part.original_len as u64).sum()
}

/// Calls `decode(encoded, original, entry)` for parts that lie one behind the other in `input` and
/// belong so in `out`, which they must fill. Returns the rest of `input`.
pub(super) fn decode_each<'i, 'p>(
    filter: &'static str,
    parts: impl Iterator<Item = FilterPart<'p>>,
    mut input: &'i [u8],
    mut out: &mut [u8],
    mut decode: impl FnMut(&'i [u8], &mut [u8], &'p [u8]) -> Result<()>,
) -> Result<&'i [u8]> {
    for part in parts {
        let Some((encoded, rest)) = input.split_at_checked(part.encoded_len) else {
            let reason = format!("a part of {} bytes, {} left", part.encoded_len, input.len());
            return Err(DecodeError::filter(filter, reason));
        };
        let Some((place, later)) = out.split_at_mut_checked(part.original_len) else {
            return Err(DecodeError::filter(filter, "parts longer than their sum"));
        };
        decode(encoded, place, part.rest)?;
        input = rest;
        out = later;
    }
    if out.is_empty() {
        Ok(input)
    } else {
        Err(DecodeError::filter(filter, "parts shorter than their sum"))
    }
}

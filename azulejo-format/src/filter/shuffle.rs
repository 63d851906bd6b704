//! Metadata of the filters that keep lengths: a number of parts (`u32`) and the length of each
//! (`u32`).

use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;

/// Lengths of parts that add up to the filtered data.
#[derive(Clone, Copy)]
pub(super) struct PartLens<'a>(&'a [[u8; 4]]);

/// Reads lengths of parts, which must add up to `total` bytes.
pub(super) fn part_lens<'a>(
    filter: &'static str,
    metadata: &mut ByteReader<'a>,
    total: usize,
) -> Result<PartLens<'a>> {
    let count = metadata.u32("number of parts")?;
    let bytes = metadata.bytes_u64(u64::from(count) * 4, "lengths of parts")?;
    let lens = PartLens(bytes.as_chunks::<4>().0);
    let sum: u64 = lens.iter().map(|len| len as u64).sum();
    if sum != total as u64 {
        return Err(DecodeError::filter(
            filter,
            format!("parts of {sum} bytes in data of {total}"),
        ));
    }
    Ok(lens)
}

impl PartLens<'_> {
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|len| u32::from_le_bytes(*len) as usize)
    }

    /// Calls `f` with each part of `input` and its place in `out`, which is as long.
    pub(super) fn for_each(
        self,
        mut input: &[u8],
        mut out: &mut [u8],
        mut f: impl FnMut(&[u8], &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        for len in self.iter() {
            let (Some((part, rest)), Some((place, later))) =
                (input.split_at_checked(len), out.split_at_mut_checked(len))
            else {
                // The lengths were summed when they were read.
                return Err(DecodeError::invalid(
                    "lengths of parts",
                    0,
                    "longer than the data",
                ));
            };
            f(part, place)?;
            input = rest;
            out = later;
        }
        Ok(())
    }
}

/// Appends the metadata of a single part.
pub(super) fn push_one_part(len: usize, metadata: &mut Vec<u8>) {
    metadata.extend(1u32.to_le_bytes());
    // Chunks are shorter than 4 GiB.
    metadata.extend((len as u32).to_le_bytes());
}

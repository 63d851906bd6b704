//! Where the tiles of a field lie in its data files, and how large var tiles are unfiltered.
//!
//! Pages: *Fragment, Tile Offsets* and *Tile Sizes*.

use crate::error::{DecodeError, Result};
use crate::wire::{ByteReader, ByteWriter};
use std::ops::Range;

/// Byte offsets of the tiles in one data file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TileOffsets {
    /// Where each tile starts, never decreasing.
    offsets: Vec<u64>,
    /// Where the last one ends: the size of the file.
    file_size: u64,
}

impl TileOffsets {
    /// Takes offsets in hand; they must not decrease, nor exceed `file_size`.
    pub fn new(offsets: Vec<u64>, file_size: u64) -> Result<Self> {
        let ends = offsets.iter().skip(1).chain([&file_size]);
        if let Some(tile) = offsets
            .iter()
            .zip(ends)
            .position(|(start, end)| start > end)
        {
            return Err(DecodeError::invalid(
                "tile offsets",
                8 + 8 * tile,
                format!("tile {tile} ends before it starts"),
            ));
        }
        Ok(Self { offsets, file_size })
    }

    /// Decodes the unfiltered section of a data file of `file_size` bytes (from the footer).
    pub fn decode(payload: &[u8], file_size: u64) -> Result<Self> {
        Self::new(decode_u64s(payload, "tile offsets")?, file_size)
    }

    /// Encodes the section, unfiltered.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode_u64s(&self.offsets)
    }

    /// How many tiles there are; callers check it against the fragment's.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// The bytes of a tile in the file.
    #[must_use]
    pub fn range(&self, tile: usize) -> Option<Range<u64>> {
        let start = *self.offsets.get(tile)?;
        Some(
            start
                ..self
                    .offsets
                    .get(tile + 1)
                    .copied()
                    .unwrap_or(self.file_size),
        )
    }
}

/// Unfiltered sizes in bytes of the tiles of a var file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TileSizes {
    /// By tile.
    pub sizes: Vec<u64>,
}

impl TileSizes {
    /// Decodes the unfiltered section.
    pub fn decode(payload: &[u8]) -> Result<Self> {
        Ok(Self {
            sizes: decode_u64s(payload, "tile sizes")?,
        })
    }

    /// Encodes the section, unfiltered.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode_u64s(&self.sizes)
    }
}

pub(super) fn decode_u64s(payload: &[u8], what: &'static str) -> Result<Vec<u64>> {
    let mut r = ByteReader::new(payload);
    let num = r.u64(what)?;
    let values = r.u64s(num, what)?;
    r.finish(what)?;
    Ok(values)
}

pub(super) fn encode_u64s(values: &[u64]) -> Vec<u8> {
    let mut w = ByteWriter::new();
    w.u64(values.len() as u64);
    w.u64s(values);
    w.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::sample::damage;

    #[test]
    fn offsets_round_trip_and_damage() {
        let offsets = TileOffsets::new(vec![0, 10, 10, 500], 777).unwrap();
        let bytes = offsets.encode();
        assert_eq!(TileOffsets::decode(&bytes, 777).unwrap(), offsets);
        assert_eq!(offsets.range(0), Some(0..10));
        assert_eq!(offsets.range(1), Some(10..10));
        assert_eq!(offsets.range(3), Some(500..777));
        assert_eq!(offsets.range(4), None);
        damage(&bytes, |bytes| TileOffsets::decode(bytes, 777));
    }

    #[test]
    fn offsets_that_decrease_or_leave_the_file_are_refused() {
        assert!(TileOffsets::new(vec![0, 10, 9], 10).is_err());
        assert!(TileOffsets::new(vec![0, 10, 11], 10).is_err());
        assert!(TileOffsets::new(vec![1], 0).is_err());
        assert!(TileOffsets::new(vec![], 0).unwrap().is_empty());
    }

    #[test]
    fn sizes_round_trip_and_damage() {
        let sizes = TileSizes {
            sizes: vec![3, u64::MAX, 0],
        };
        let bytes = sizes.encode();
        assert_eq!(TileSizes::decode(&bytes).unwrap(), sizes);
        damage(&bytes, TileSizes::decode);
    }
}

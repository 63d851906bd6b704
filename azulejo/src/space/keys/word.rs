//! Integers that keys are packed in.

use super::row_selection::{KeyTile, RowSelection};

/// An unsigned integer that keys are packed in.
pub(crate) trait Word:
    Copy + Ord + Send + Sync + Default + std::fmt::Debug + 'static
{
    /// Its width.
    const BITS: u32;
    /// `self` with `bits` bits more at the bottom, which hold `value`; the top bits that fall out
    /// are 0.
    fn append(self, bits: u32, value: u64) -> Self;
    /// The value without its last `bits` bits.
    fn drop_low(self, bits: u32) -> Self;
    /// The last `bits` bits, at most 64.
    fn low(self, bits: u32) -> u64;
    /// How many low bits to drop such that `bits` bits remain below those that both words share.
    fn common_shift(self, other: Self, bits: u32) -> u32;
}

impl Word for u64 {
    const BITS: u32 = 64;
    #[inline]
    fn append(self, bits: u32, value: u64) -> Self {
        if bits >= 64 {
            value
        } else {
            self << bits | value
        }
    }
    #[inline]
    fn drop_low(self, bits: u32) -> Self {
        if bits >= 64 { 0 } else { self >> bits }
    }
    #[inline]
    fn low(self, bits: u32) -> u64 {
        if bits >= 64 {
            self
        } else {
            self & ((1 << bits) - 1)
        }
    }
    #[inline]
    fn common_shift(self, other: Self, bits: u32) -> u32 {
        (Self::BITS - (self ^ other).leading_zeros()).saturating_sub(bits)
    }
}

impl Word for u128 {
    const BITS: u32 = 128;
    #[inline]
    fn append(self, bits: u32, value: u64) -> Self {
        self << bits | Self::from(value)
    }
    #[inline]
    fn drop_low(self, bits: u32) -> Self {
        self >> bits
    }
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
    fn low(self, bits: u32) -> u64 {
        (self as u64).low(bits)
    }
    #[inline]
    fn common_shift(self, other: Self, bits: u32) -> u32 {
        (Self::BITS - (self ^ other).leading_zeros()).saturating_sub(bits)
    }
}

/// How cells are written in the low bits of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellBits {
    /// Bits of the slot.
    pub(crate) slot: u32,
    /// Bits of the place in the tile.
    pub(crate) place: u32,
}

impl CellBits {
    /// Enough for these tiles.
    pub(super) fn of(tiles: &[KeyTile<'_>]) -> Self {
        let slots = tiles.iter().map(|t| u64::from(t.slot)).max().unwrap_or(0);
        let places = tiles.iter().map(|t| match t.rows {
            RowSelection::All(n) => u64::from(n.saturating_sub(1)),
            RowSelection::List(list) => list.last().map_or(0, |&last| u64::from(last)),
        });
        Self {
            slot: width(slots),
            place: width(places.max().unwrap_or(0)),
        }
    }

    /// All low bits.
    pub(crate) const fn total(self) -> u32 {
        self.slot + self.place
    }

    /// Slot and place of a key.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "both were u32 when they were packed"
    )]
    pub(crate) fn cell<W: Word>(self, key: W) -> (u32, u32) {
        (
            key.drop_low(self.place).low(self.slot) as u32,
            key.low(self.place) as u32,
        )
    }
}

/// Bits that a number takes.
pub(super) fn width(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

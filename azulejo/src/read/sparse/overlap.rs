//! How much memory it takes to hold a tile of each fragment.

use super::plan::PlannedTile;
use crate::space::cell_bound::CellBound;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Tiles that may hold cells of one place in the order.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Overlap {
    /// Bytes of their cells, decoded.
    pub bytes: u64,
    /// How many they are.
    tiles: usize,
}

impl Overlap {
    /// The place where tiles, which ascend by their lower bounds, take the most.
    ///
    /// For example tiles of one byte from 0 to 9, 5 to 14, 9 to 19 and 20 to 29: three at 9.
    pub fn of(tiles: &[PlannedTile]) -> Self {
        let mut most = Self::default();
        let mut now = Self::default();
        let mut ends: BinaryHeap<Reverse<(&CellBound, u64)>> = BinaryHeap::new();
        for tile in tiles {
            while let Some(Reverse((upper, bytes))) = ends.peek()
                && *upper < &tile.lower
            {
                now.bytes -= bytes;
                now.tiles -= 1;
                ends.pop();
            }
            ends.push(Reverse((&tile.upper, tile.decoded)));
            now.bytes += tile.decoded;
            now.tiles += 1;
            most = most.max(now);
        }
        most
    }

    /// Of how many of so many fragments the tiles take no more than that. Neighbours in a fragment
    /// may overlap too.
    pub fn within(self, bytes: u64, fragments: usize) -> usize {
        let all = self.tiles.min(fragments) as u128;
        let some = all * u128::from(bytes) / u128::from(self.bytes.max(1));
        usize::try_from(some).unwrap_or(usize::MAX)
    }
}

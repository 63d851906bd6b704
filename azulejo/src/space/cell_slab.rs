//! Runs of consecutive cells: what a merge produces and a gather consumes.

/// Consecutive cells of one tile of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CellSlab {
    /// Index of the tile in the batch's list of tiles.
    pub tile: u32,
    /// Number of cells; longer runs are several slabs.
    pub len: u32,
    /// First cell, counted from the start of the tile.
    pub start: u64,
}

impl CellSlab {
    /// `len` cells of the batch's tile `tile`, from `start` on.
    #[must_use]
    #[cfg(test)]
    pub const fn new(tile: u32, start: u64, len: u32) -> Self {
        Self { tile, len, start }
    }

    /// Appends cells to `slabs`, lengthening the last slab where they follow it.
    pub fn push_onto(slabs: &mut Vec<Self>, tile: u32, start: u64, len: u32) {
        if let Some(last) = slabs.last_mut()
            && last.tile == tile
            && last.start + u64::from(last.len) == start
            && let Some(sum) = last.len.checked_add(len)
        {
            last.len = sum;
            return;
        }
        slabs.push(Self { tile, len, start });
    }

    /// The number of cells in all of `slabs`.
    #[must_use]
    pub fn total(slabs: &[Self]) -> u64 {
        slabs.iter().map(|s| u64::from(s.len)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_grow_together() {
        let mut slabs = Vec::new();
        for (tile, start, len) in [(0, 5, 2), (0, 7, 1), (0, 9, 1), (1, 10, 1)] {
            CellSlab::push_onto(&mut slabs, tile, start, len);
        }
        assert_eq!(
            slabs,
            [
                CellSlab::new(0, 5, 3),
                CellSlab::new(0, 9, 1),
                CellSlab::new(1, 10, 1)
            ]
        );
        assert_eq!(CellSlab::total(&slabs), 5);
        let mut slabs = vec![CellSlab::new(0, 0, u32::MAX)];
        CellSlab::push_onto(&mut slabs, 0, u64::from(u32::MAX), 1);
        assert_eq!(
            slabs.len(),
            2,
            "a slab that would overflow is followed by another"
        );
    }
}

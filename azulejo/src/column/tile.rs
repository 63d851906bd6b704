//! The cells of one field of one tile.

use super::FieldView;
use crate::buffer_pool::PoolBuffer;

/// The cells of one field of one tile.
#[derive(Debug)]
pub struct Tile {
    /// The values' bytes. Where only some cells were asked for, the bytes of other cells are
    /// unspecified.
    pub data: PoolBuffer,
    /// Var-length: `cell_num + 1` byte offsets into `data`, never decreasing, the last at most
    /// `data.len()`.
    pub offsets: Option<Vec<u64>>,
    /// Nullable: one byte a cell, 0 for null.
    pub validity: Option<PoolBuffer>,
    /// Number of cells.
    pub cell_num: usize,
    /// Bytes of a fixed-length cell; 0 for var-length ones.
    pub cell_size: usize,
}

impl Tile {
    /// The cells, borrowed.
    #[must_use]
    pub fn view(&self) -> FieldView<'_> {
        FieldView {
            cell_num: self.cell_num,
            data: &self.data,
            offsets: self.offsets.as_deref(),
            validity: self.validity.as_deref(),
            cell_size: self.cell_size,
        }
    }

    /// Bytes of memory that the tile holds.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.data.len()
            + self.offsets.as_ref().map_or(0, |o| o.len() * 8)
            + self.validity.as_ref().map_or(0, |v| v.len())
    }

    /// Bytes of memory that are bound by the tile, which may be more than its cells take.
    pub(crate) fn reserved(&self) -> usize {
        self.data.capacity()
            + self.offsets.as_ref().map_or(0, |o| o.len() * 8)
            + self.validity.as_ref().map_or(0, PoolBuffer::capacity)
    }
}

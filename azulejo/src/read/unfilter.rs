//! From stored tiles to cells: decoded in parallel over tiles and chunks, straight into their place.

use super::pool::{BufferPool, PoolBuffer};
use crate::array::Array;
use crate::column::FieldView;
use crate::error::{Error, Result};
use azulejo_format::fragment::Field;
use std::ops::Range;
use std::sync::Arc;

/// The cells of one field of one tile.
#[derive(Debug)]
pub struct Tile {
    /// The values' bytes. Where only some cells were asked for, the bytes of other cells are unspecified.
    pub data: PoolBuffer,
    /// Var-length: `cell_num + 1` byte offsets into `data`, never decreasing, the last at most `data.len()`.
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
}

/// Which cells of a tile are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cells {
    /// All of them.
    All,
    /// Those in these ranges, ascending and disjoint; only the chunks that hold them are decoded.
    Spans(Vec<Range<u64>>),
}

/// One field of one tile of one fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileRequest {
    /// Index of the fragment in [`Array::fragments`].
    pub fragment: usize,
    /// The field. Dimensions of fragments with zipped coordinates are split out of these.
    pub field: Field,
    /// Index of the tile in the fragment.
    pub tile: u64,
    /// Which cells of it.
    pub cells: Cells,
}

/// Reads the stored tiles as one batch and decodes them in parallel; results in the order of the requests.
///
/// Errors with [`Error::Corrupt`] naming the file if sizes disagree with the fragment's metadata.
pub fn load_tiles(array: &Array, requests: &[TileRequest], pool: &BufferPool) -> Result<Vec<Arc<Tile>>> {
    let _ = (array, requests, pool);
    Err(Error::Unsupported("tiles are not decoded yet".into()))
}

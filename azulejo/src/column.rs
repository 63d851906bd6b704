//! Columns in TileDB's own layout: data, offsets, validity.

#[cfg(feature = "arrow")]
pub mod arrow;
mod fill;

use arrow_buffer::{Buffer, MutableBuffer};
use azulejo_format::{CellValNum, Datatype};
use std::sync::Arc;

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnType {
    /// Name of the attribute or dimension.
    pub name: Arc<str>,
    /// Type of the values.
    pub datatype: Datatype,
    /// Values in a cell.
    pub cell_val_num: CellValNum,
    /// Whether cells can be null.
    pub nullable: bool,
    /// The enumeration whose entries the values index, if any.
    pub enumeration: Option<Arc<azulejo_format::schema::Enumeration>>,
}

/// The cells of one field, in aligned memory that moves to Arrow without a copy.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnBuffers {
    /// What the column holds.
    pub column_type: ColumnType,
    /// Number of cells.
    pub cell_num: usize,
    /// The values' bytes, little-endian, cell after cell.
    pub data: Buffer,
    /// Var-length: start of each cell in `data` in bytes and, as one entry more, the end: `cell_num + 1` `u64`s.
    pub offsets: Option<Buffer>,
    /// Nullable: one byte a cell, 0 for null.
    pub validity: Option<Buffer>,
}

/// Columns of equal length: one batch of results.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ColumnSet {
    /// Number of cells.
    pub cell_num: usize,
    /// The columns, in the order asked for.
    pub columns: Vec<ColumnBuffers>,
}

impl ColumnSet {
    /// The column of a field.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&ColumnBuffers> {
        self.columns.iter().find(|c| &*c.column_type.name == name)
    }
}

/// Cells of one field as borrowed slices: of a decoded tile or of a column. What conditions and aggregates look at.
#[derive(Debug, Clone, Copy)]
pub struct FieldView<'a> {
    /// Number of cells.
    pub cell_num: usize,
    /// The values' bytes.
    pub data: &'a [u8],
    /// Var-length: `cell_num + 1` byte offsets into `data`, never decreasing, the last at most `data.len()`.
    pub offsets: Option<&'a [u64]>,
    /// Nullable: one byte a cell, 0 for null.
    pub validity: Option<&'a [u8]>,
    /// Bytes of a fixed-length cell; 0 for var-length ones.
    pub cell_size: usize,
}

impl<'a> FieldView<'a> {
    /// The bytes of one cell; empty if `cell` is out of bounds.
    #[must_use]
    pub fn cell(&self, cell: usize) -> &'a [u8] {
        let (start, end) = match self.offsets {
            Some(offsets) => match offsets.get(cell..cell + 2) {
                Some(&[start, end]) => (start as usize, end as usize),
                _ => return &[],
            },
            None => (cell * self.cell_size, (cell + 1) * self.cell_size),
        };
        self.data.get(start..end).unwrap_or(&[])
    }

    /// Whether a cell is not null.
    #[must_use]
    pub fn is_valid(&self, cell: usize) -> bool {
        self.validity.is_none_or(|v| v.get(cell).is_some_and(|&b| b != 0))
    }
}

/// A caller's own memory for the cells of one field. See [`crate::read::Reader::read_into`].
#[derive(Debug)]
pub struct ColumnMut<'a> {
    /// Takes the values' bytes.
    pub data: &'a mut [u8],
    /// Var-length: takes the start of each cell in bytes.
    pub offsets: Option<&'a mut [u64]>,
    /// Nullable: takes one byte a cell.
    pub validity: Option<&'a mut [u8]>,
}

/// A growing column.
#[derive(Debug)]
pub struct ColumnBuilder {
    /// What the column holds.
    pub column_type: ColumnType,
    /// The values' bytes.
    pub data: MutableBuffer,
    /// Var-length: as in [`ColumnBuffers::offsets`]; starts with one 0.
    pub offsets: Option<MutableBuffer>,
    /// Nullable: one byte a cell.
    pub validity: Option<MutableBuffer>,
    /// Number of cells.
    pub cell_num: usize,
}

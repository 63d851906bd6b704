//! Columns in TileDB's own layout: data, offsets, validity.

#[cfg(feature = "arrow")]
pub(crate) mod arrow;
mod batch;
mod build;
mod builder;
pub mod datetime;
mod fill;
#[cfg(feature = "ndarray")]
mod ndarray;
mod set;
pub(crate) mod tile;
mod view;

pub(crate) use batch::{BatchColumn, BatchColumns, WordColumn};
pub use builder::ColumnBuilder;
pub(crate) use fill::repeat_cell;
pub use set::ColumnSet;
pub(crate) use set::runs;
pub(crate) use tile::Tile;
pub use view::{ColumnView, FieldView};

use crate::error::{Error, Result};
use arrow_buffer::{ArrowNativeType, Buffer};
use azulejo_format::datatype::Native;
use azulejo_format::{CellValNum, Datatype};
use std::ops::Range;
use std::str::Utf8Error;
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
    /// Var-length: start of each cell in `data` in bytes and, as one entry more, the end: `cell_num
    /// + 1` `u64`s.
    pub offsets: Option<Buffer>,
    /// Nullable: one byte a cell, 0 for null.
    pub validity: Option<Buffer>,
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

impl ColumnType {
    /// A field with one value a cell that cannot be null.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, datatype: Datatype) -> Self {
        Self {
            name: name.into(),
            datatype,
            cell_val_num: CellValNum::ONE,
            nullable: false,
            enumeration: None,
        }
    }

    /// The same with another number of values a cell.
    #[must_use]
    pub fn with_cell_val_num(mut self, cell_val_num: CellValNum) -> Self {
        self.cell_val_num = cell_val_num;
        self
    }

    /// The same, nullable.
    #[must_use]
    pub fn with_nulls(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// Bytes of a fixed-length cell; 0 for var-length ones.
    #[must_use]
    pub fn cell_size(&self) -> usize {
        self.cell_val_num.cell_size(self.datatype).unwrap_or(0)
    }

    /// Whether cells vary in length.
    #[must_use]
    pub fn is_var(&self) -> bool {
        self.cell_val_num.is_var()
    }
}

impl ColumnBuffers {
    /// Checks that the buffers have the lengths that `cell_num` and the type ask for and that
    /// offsets are in order.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the field and what does not fit.
    pub fn validate(&self) -> Result<()> {
        if self.offsets.is_some() && self.offsets_slice().is_none() {
            let name = &self.column_type.name;
            return Err(Error::InvalidArgument(format!(
                "column {name}: the offsets are not aligned"
            )));
        }
        self.as_view().validate()
    }

    /// The offsets as numbers: `cell_num + 1` of them, in bytes.
    #[must_use]
    pub fn offsets_slice(&self) -> Option<&[u64]> {
        self.offsets.as_ref().and_then(typed::<u64>)
    }

    /// All values of all cells as `T`; `None` if `T` is not the datatype's physical type.
    ///
    /// ```
    /// # use azulejo::column::{ColumnBuilder, ColumnType};
    /// # use azulejo::format::{CellValNum, Datatype};
    /// let mut column = ColumnBuilder::new(ColumnType::new("a", Datatype::Int32));
    /// column.append_cell(&7i32.to_le_bytes(), true);
    /// assert_eq!(column.finish().values::<i32>(), Some(&[7][..]));
    /// ```
    #[must_use]
    pub fn values<T: Native + ArrowNativeType>(&self) -> Option<&[T]> {
        if T::PHYSICAL != self.column_type.datatype.physical() {
            return None;
        }
        typed::<T>(&self.data)
    }

    /// The cells' bytes, `None` for null cells.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = Option<&[u8]>> {
        let view = self.view();
        (0..self.cell_num).map(move |i| view.is_valid(i).then(|| view.cell(i)))
    }

    /// The cells as text, `None` for null cells; an error where the bytes are not UTF-8.
    pub fn strings(&self) -> impl ExactSizeIterator<Item = Option<Result<&str, Utf8Error>>> {
        self.cells().map(|cell| cell.map(std::str::from_utf8))
    }

    /// Bytes that the cells take.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        let part = |b: &Option<Buffer>| b.as_ref().map_or(0, Buffer::len);
        self.data.len() + part(&self.offsets) + part(&self.validity)
    }

    /// The cells `cells`, cut to those that there are. Values and validity are shared, not copied;
    /// offsets are copied if they would not start at 0.
    #[must_use]
    pub fn slice(&self, cells: Range<usize>) -> Self {
        let end = cells.end.min(self.cell_num);
        let start = cells.start.min(end);
        let count = end - start;
        let (data, offsets) = match self.offsets_slice().and_then(|o| o.get(start..=end)) {
            Some(offsets) => {
                let (first, last) = (offsets[0], offsets[count]);
                let buffer = match (&self.offsets, first) {
                    (Some(buffer), 0) => buffer.slice_with_length(start * 8, (count + 1) * 8),
                    _ => Buffer::from_vec(offsets.iter().map(|o| o - first).collect::<Vec<u64>>()),
                };
                (
                    part(
                        &self.data,
                        first as usize,
                        last.saturating_sub(first) as usize,
                    ),
                    Some(buffer),
                )
            }
            None => {
                let size = self.column_type.cell_size();
                (part(&self.data, start * size, count * size), None)
            }
        };
        let validity = self.validity.as_ref().map(|v| part(v, start, count));
        Self {
            column_type: self.column_type.clone(),
            cell_num: count,
            data,
            offsets,
            validity,
        }
    }
}

/// A part of a buffer, cut to what there is.
fn part(buffer: &Buffer, start: usize, len: usize) -> Buffer {
    let start = start.min(buffer.len());
    buffer.slice_with_length(start, len.min(buffer.len() - start))
}

/// A buffer as numbers; `None` if it is not aligned for them or its length is odd.
fn typed<T: ArrowNativeType>(buffer: &Buffer) -> Option<&[T]> {
    let size = size_of::<T>();
    let fits =
        buffer.as_ptr().addr().is_multiple_of(align_of::<T>()) && buffer.len().is_multiple_of(size);
    fits.then(|| buffer.typed_data())
}

#[cfg(test)]
mod tests;

//! Memory for cells of fixed length: of ours, or the caller's.

use crate::buffer_pool::{BufferPool, PoolBuffer};
use crate::column::{ColumnBuffers, ColumnMut, FieldView};
use crate::error::{Error, Result};
use crate::read::{BoundField, PartBytes};
use std::ops::Range;

/// Memory for the cells of a fixed-length field.
pub(in crate::read) struct FixedOut<'o> {
    pub field: &'o BoundField,
    pub data: &'o mut [u8],
    pub validity: Option<&'o mut [u8]>,
}

impl<'o> FixedOut<'o> {
    /// The memory of the cells at `places` in a caller's buffer.
    pub fn in_column(
        field: &'o BoundField,
        column: &'o mut ColumnMut<'_>,
        places: Range<usize>,
        written: &mut PartBytes,
    ) -> Result<Self> {
        let size = field.column_type.cell_size();
        let data = column
            .data
            .get_mut(places.start * size..places.end * size)
            .ok_or_else(short)?;
        written.data += data.len();
        let validity = validity(field, &mut column.validity, places, written)?;
        Ok(Self {
            field,
            data,
            validity,
        })
    }

    /// The cells, once they are filled.
    pub fn view(&self, cell_num: usize) -> FieldView<'_> {
        FieldView {
            cell_num,
            data: self.data,
            offsets: None,
            validity: self.validity.as_deref(),
            cell_size: self.field.column_type.cell_size(),
        }
    }
}

/// A buffer of the caller's is shorter than was counted on.
pub(in crate::read) fn short() -> Error {
    Error::Internal("a buffer is shorter than its room".into())
}

/// The validity of the cells at `places` in a caller's buffer, if the field is nullable.
pub(in crate::read) fn validity<'o>(
    field: &BoundField,
    buffer: &'o mut Option<&mut [u8]>,
    places: Range<usize>,
    written: &mut PartBytes,
) -> Result<Option<&'o mut [u8]>> {
    match buffer {
        Some(buffer) if field.column_type.nullable => {
            written.validity += places.len();
            buffer.get_mut(places).ok_or_else(short).map(Some)
        }
        _ => Ok(None),
    }
}

/// Memory of ours for the cells of a fixed-length field; none for others.
pub(in crate::read) struct FixedBuffer {
    data: PoolBuffer,
    validity: Option<PoolBuffer>,
}

impl FixedBuffer {
    /// Memory for `cells` cells of a field.
    pub fn new(field: &BoundField, cells: usize, pool: &BufferPool) -> Result<Self> {
        let kind = &field.column_type;
        let cells = if kind.is_var() { 0 } else { cells };
        let bytes = cells.checked_mul(kind.cell_size());
        let beyond = || Error::Internal("a column beyond the address space".into());
        Ok(Self {
            data: pool.take(bytes.ok_or_else(beyond)?),
            validity: (kind.nullable && !kind.is_var()).then(|| pool.take(cells)),
        })
    }

    /// The memory, to be filled.
    pub fn out<'o>(&'o mut self, field: &'o BoundField) -> FixedOut<'o> {
        FixedOut {
            field,
            data: &mut self.data,
            validity: self.validity.as_deref_mut(),
        }
    }

    /// The filled memory as a column.
    pub fn into_column(self, field: &BoundField, cell_num: usize) -> ColumnBuffers {
        ColumnBuffers {
            column_type: field.column_type.clone(),
            cell_num,
            data: self.data.into(),
            offsets: None,
            validity: self.validity.map(Into::into),
        }
    }
}

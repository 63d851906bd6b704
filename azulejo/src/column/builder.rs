//! Columns that grow.

use super::{ColumnBuffers, ColumnType, FieldView, repeat_cell};
use crate::error::{Error, Result};
use arrow_buffer::MutableBuffer;
use std::ops::Range;

/// A growing column.
///
/// The buffers are open to stages that write into them in bulk; they keep these lengths in step:
/// `data` holds `cell_num` cells (or as many bytes as the last offset says), `offsets` `cell_num +
/// 1` `u64`s, `validity` `cell_num` bytes.
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

impl ColumnBuilder {
    /// An empty column.
    #[must_use]
    pub fn new(column_type: ColumnType) -> Self {
        Self::with_capacity(column_type, 0, 0)
    }

    /// An empty column with room for `cells` cells and, if they vary in length, `var_bytes` bytes
    /// of values.
    #[must_use]
    pub fn with_capacity(column_type: ColumnType, cells: usize, var_bytes: usize) -> Self {
        let var = column_type.is_var();
        let data = if var {
            var_bytes
        } else {
            cells.saturating_mul(column_type.cell_size())
        };
        let offsets = var.then(|| {
            let mut offsets = MutableBuffer::with_capacity((cells + 1).saturating_mul(8));
            offsets.push(0u64);
            offsets
        });
        let validity = column_type
            .nullable
            .then(|| MutableBuffer::with_capacity(cells));
        Self {
            column_type,
            data: MutableBuffer::with_capacity(data),
            offsets,
            validity,
            cell_num: 0,
        }
    }

    /// Appends one cell. Fixed-length cells must have the column's cell size: others are cut or
    /// padded with 0. `valid` matters to nullable columns only.
    pub fn append_cell(&mut self, cell: &[u8], valid: bool) {
        if let Some(offsets) = &mut self.offsets {
            self.data.extend_from_slice(cell);
            offsets.push(self.data.len() as u64);
        } else {
            let size = self.column_type.cell_size();
            let cell = cell.get(..size).unwrap_or(cell);
            self.data.extend_from_slice(cell);
            self.data.extend_zeros(size - cell.len());
        }
        if let Some(validity) = &mut self.validity {
            validity.push(u8::from(valid));
        }
        self.cell_num += 1;
    }

    /// Appends `count` equal cells.
    pub fn append_repeated(&mut self, cell: &[u8], valid: bool, count: usize) {
        if let Some(offsets) = &mut self.offsets {
            let mut end = self.data.len() as u64;
            offsets.reserve(count.saturating_mul(8));
            for _ in 0..count {
                end += cell.len() as u64;
                offsets.push(end);
            }
        }
        let cell_len = if self.offsets.is_some() {
            cell.len()
        } else {
            self.column_type.cell_size()
        };
        let start = self.data.len();
        self.data.resize(start + cell_len.saturating_mul(count), 0);
        if cell.len() >= cell_len {
            repeat_cell(&mut self.data.as_slice_mut()[start..], &cell[..cell_len]);
        }
        if let Some(validity) = &mut self.validity {
            validity.resize(self.cell_num + count, u8::from(valid));
        }
        self.cell_num += count;
    }

    /// Appends the cells `cells` of a view of the same type.
    ///
    /// # Errors
    /// [`Error::Internal`] if the view has not these cells or another shape.
    pub fn append_view(&mut self, view: &FieldView<'_>, cells: Range<usize>) -> Result<()> {
        let lacking = || {
            Error::Internal(format!(
                "column {}: a view lacks cells",
                self.column_type.name
            ))
        };
        let count = cells.len();
        let size = self.column_type.cell_size();
        let added = match (&self.offsets, view.offsets) {
            (Some(_), Some(offsets)) => {
                let offsets = offsets.get(cells.start..=cells.end).ok_or_else(lacking)?;
                let (first, last) = (offsets[0], offsets[count]);
                let data = view
                    .data
                    .get(first as usize..last as usize)
                    .ok_or_else(lacking)?;
                Some((data, first, &offsets[1..]))
            }
            (None, None) => {
                let (start, end) = (cells.start.checked_mul(size), cells.end.checked_mul(size));
                let (Some(start), Some(end)) = (start, end) else {
                    return Err(lacking());
                };
                Some((view.data.get(start..end).ok_or_else(lacking)?, 0, &[][..]))
            }
            _ => None,
        };
        let Some((data, first, ends)) = added else {
            return Err(lacking());
        };
        let valid = match (&self.validity, view.validity) {
            (Some(_), Some(v)) => Some(v.get(cells).ok_or_else(lacking)?),
            _ => None,
        };
        if let Some(offsets) = &mut self.offsets {
            let base = self.data.len() as u64;
            offsets.reserve(count * 8);
            for end in ends {
                offsets.push(base + (end - first));
            }
        }
        self.data.extend_from_slice(data);
        if let Some(validity) = &mut self.validity {
            match valid {
                Some(bytes) => validity.extend_from_slice(bytes),
                None => validity.resize(self.cell_num + count, 1),
            }
        }
        self.cell_num += count;
        Ok(())
    }

    /// The finished column; nothing is copied.
    #[must_use]
    pub fn finish(self) -> ColumnBuffers {
        ColumnBuffers {
            column_type: self.column_type,
            cell_num: self.cell_num,
            data: self.data.into(),
            offsets: self.offsets.map(Into::into),
            validity: self.validity.map(Into::into),
        }
    }
}

impl ColumnBuffers {
    /// A column without cells.
    #[must_use]
    pub fn empty(column_type: ColumnType) -> Self {
        ColumnBuilder::new(column_type).finish()
    }

    /// One column of the cells of several with one type. A single column is shared, not copied.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if there is no column or their types differ.
    pub fn concat(columns: &[&Self]) -> Result<Self> {
        let Some((&first, others)) = columns.split_first() else {
            return Err(Error::InvalidArgument("no columns to join".into()));
        };
        if others.is_empty() {
            return Ok(first.clone());
        }
        let cells = columns.iter().map(|c| c.cell_num).sum();
        let bytes = columns.iter().map(|c| c.data.len()).sum();
        let mut joined = ColumnBuilder::with_capacity(first.column_type.clone(), cells, bytes);
        for column in columns {
            if column.column_type != first.column_type {
                return Err(Error::InvalidArgument(format!(
                    "columns {} and {} cannot be joined: their types differ",
                    first.column_type.name, column.column_type.name
                )));
            }
            joined.append_view(&column.view(), 0..column.cell_num)?;
        }
        Ok(joined.finish())
    }
}

//! Columns in TileDB's own layout: data, offsets, validity.

#[cfg(feature = "arrow")]
pub(crate) mod arrow;
mod build;
pub mod datetime;
mod fill;
#[cfg(feature = "ndarray")]
mod ndarray;
pub(crate) mod tile;

pub(crate) use fill::repeat_cell;
pub(crate) use tile::Tile;

use crate::error::{Error, Result};
use arrow_buffer::{ArrowNativeType, Buffer, MutableBuffer};
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

/// Columns of equal length: one batch of results.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ColumnSet {
    /// Number of cells.
    pub cell_num: usize,
    /// The columns, in the order asked for.
    pub columns: Vec<ColumnBuffers>,
}

impl ColumnSet {
    /// Bytes that the columns take.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        self.columns.iter().map(ColumnBuffers::memory_size).sum()
    }

    /// The cells `cells` of every column, cut to those that there are; see
    /// [`ColumnBuffers::slice`].
    #[must_use]
    pub fn slice(&self, cells: Range<usize>) -> Self {
        let end = cells.end.min(self.cell_num);
        let start = cells.start.min(end);
        let columns = self.columns.iter().map(|c| c.slice(start..end)).collect();
        Self {
            cell_num: end - start,
            columns,
        }
    }

    /// One set of the cells of several batches of one query.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if their columns differ.
    pub fn concat(batches: &[Self]) -> Result<Self> {
        let Some(first) = batches.first() else {
            return Ok(Self::default());
        };
        let columns = (0..first.columns.len())
            .map(|i| {
                let parts: Option<Vec<_>> = batches.iter().map(|b| b.columns.get(i)).collect();
                let parts = parts.ok_or_else(|| {
                    Error::InvalidArgument("batches with different columns cannot be joined".into())
                })?;
                ColumnBuffers::concat(&parts)
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            cell_num: batches.iter().map(|b| b.cell_num).sum(),
            columns,
        })
    }

    /// As [`Self::concat`], of batches that are let go a column at a time: beside the result there is
    /// one more column in memory at most.
    ///
    /// # Errors
    /// As [`Self::concat`].
    pub(crate) fn joined(mut batches: Vec<Self>) -> Result<Self> {
        let cell_num = batches.iter().map(|b| b.cell_num).sum();
        let count = batches.first().map_or(0, |first| first.columns.len());
        let mut columns = Vec::with_capacity(count);
        for _ in 0..count {
            // The last one of each, so that none of those before it moves.
            let parts: Option<Vec<_>> = batches.iter_mut().map(|b| b.columns.pop()).collect();
            let parts = parts.ok_or_else(|| {
                Error::InvalidArgument("batches with different columns cannot be joined".into())
            })?;
            columns.push(ColumnBuffers::concat(&parts.iter().collect::<Vec<_>>())?);
        }
        columns.reverse();
        Ok(Self { cell_num, columns })
    }

    /// The cells whose byte of the mask, one for each cell, is not 0.
    pub(crate) fn compact(&self, mask: &[u8]) -> Result<Self> {
        let runs: Vec<Range<usize>> = runs(mask)
            .filter_map(|(kept, cells)| kept.then_some(cells))
            .collect();
        let columns = self.columns.iter().map(|column| {
            let mut kept = ColumnBuilder::new(column.column_type.clone());
            let view = column.view();
            runs.iter()
                .try_for_each(|cells| kept.append_view(&view, cells.clone()))?;
            Ok(kept.finish())
        });
        Ok(Self {
            cell_num: runs.iter().map(Range::len).sum(),
            columns: columns.collect::<Result<_>>()?,
        })
    }

    /// The cells at these places, in their order.
    pub(crate) fn pick(&self, places: &[usize]) -> Result<Self> {
        let columns = self.columns.iter().map(|column| {
            let mut picked = ColumnBuilder::new(column.column_type.clone());
            let view = column.view();
            places
                .iter()
                .try_for_each(|&cell| picked.append_view(&view, cell..cell + 1))?;
            Ok(picked.finish())
        });
        Ok(Self {
            cell_num: places.len(),
            columns: columns.collect::<Result<_>>()?,
        })
    }

    /// The column of a field.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&ColumnBuffers> {
        self.columns.iter().find(|c| &*c.column_type.name == name)
    }
}

/// The runs of equal cells of a mask, one byte a cell: whether they are marked (not 0), and which
/// cells they are.
pub(crate) fn runs(mask: &[u8]) -> impl Iterator<Item = (bool, Range<usize>)> {
    mask.chunk_by(|a, b| (*a == 0) == (*b == 0))
        .scan(0, |start, run| {
            let cells = *start..*start + run.len();
            *start = cells.end;
            Some((run.first() != Some(&0), cells))
        })
}

/// Cells of one field as borrowed slices: of a decoded tile or of a column. What conditions and
/// aggregates look at.
#[derive(Debug, Clone, Copy)]
pub struct FieldView<'a> {
    /// Number of cells.
    pub cell_num: usize,
    /// The values' bytes.
    pub data: &'a [u8],
    /// Var-length: `cell_num + 1` byte offsets into `data`, never decreasing, the last at most
    /// `data.len()`.
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

    /// The values of variable length, from the first offset to the last; nothing if these are no
    /// range of the data.
    pub(crate) fn var_data(&self) -> &'a [u8] {
        let bounds = self
            .offsets
            .and_then(|offsets| Some((*offsets.first()?, *offsets.last()?)));
        bounds
            .and_then(|(start, end)| self.data.get(start as usize..end as usize))
            .unwrap_or_default()
    }

    /// Bytes of the cells before filters, offsets and validity included.
    pub(crate) fn byte_len(&self) -> usize {
        let values = match self.offsets {
            Some(_) => self.var_data().len() + self.cell_num * 8,
            None => self.cell_num * self.cell_size,
        };
        values + self.validity.map_or(0, <[u8]>::len)
    }

    /// The cells `cells`; `None` if there are not so many.
    #[must_use]
    pub fn slice(&self, cells: Range<usize>) -> Option<Self> {
        let cell_num = cells
            .end
            .checked_sub(cells.start)
            .filter(|_| cells.end <= self.cell_num)?;
        let (data, offsets) = match self.offsets {
            Some(offsets) => (self.data, Some(offsets.get(cells.start..=cells.end)?)),
            None => {
                let start = cells.start.checked_mul(self.cell_size)?;
                (
                    self.data
                        .get(start..cells.end.checked_mul(self.cell_size)?)?,
                    None,
                )
            }
        };
        let validity = match self.validity {
            Some(validity) => Some(validity.get(cells)?),
            None => None,
        };
        Some(Self {
            cell_num,
            data,
            offsets,
            validity,
            cell_size: self.cell_size,
        })
    }

    /// Whether a cell is not null.
    #[must_use]
    pub fn is_valid(&self, cell: usize) -> bool {
        self.validity
            .is_none_or(|v| v.get(cell).is_some_and(|&b| b != 0))
    }
}

/// Cells of one field in memory of the caller's: what a write can take without a copy.
#[derive(Debug, Clone)]
pub struct ColumnView<'a> {
    /// What the column holds.
    pub column_type: ColumnType,
    /// The cells.
    pub cells: FieldView<'a>,
}

impl<'a> ColumnView<'a> {
    /// Cells in slices: the values' bytes, for var-length cells one offset in bytes more than
    /// cells, for nullable ones a validity byte each.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for slices that do not fit the type or each other.
    pub fn new(
        column_type: ColumnType,
        data: &'a [u8],
        offsets: Option<&'a [u64]>,
        validity: Option<&'a [u8]>,
    ) -> Result<Self> {
        let cell_size = column_type.cell_size();
        let cell_num = match offsets {
            Some(offsets) => offsets.len().saturating_sub(1),
            None => data.len().checked_div(cell_size).unwrap_or(0),
        };
        let column = Self {
            column_type,
            cells: FieldView {
                cell_num,
                data,
                offsets,
                validity,
                cell_size,
            },
        };
        column.validate()?;
        Ok(column)
    }

    /// Checks that the slices fit the type and each other.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] saying what is wrong.
    pub fn validate(&self) -> Result<()> {
        let Self { column_type, cells } = self;
        let wrong = |what: &str| {
            Err(Error::InvalidArgument(format!(
                "column {}: {what}",
                column_type.name
            )))
        };
        match cells.offsets {
            Some(_) if !column_type.is_var() => return wrong("offsets for fixed-length cells"),
            Some(offsets) => {
                if offsets.len() != cells.cell_num + 1 {
                    return wrong("the offsets do not match the number of cells");
                }
                let end = offsets.last().copied().unwrap_or(0);
                if !offsets.is_sorted() || end > cells.data.len() as u64 {
                    return wrong("the offsets are not in order or pass the end of the data");
                }
            }
            None if column_type.is_var() => return wrong("var-length cells need offsets"),
            None => {
                if Some(cells.data.len()) != cells.cell_num.checked_mul(column_type.cell_size()) {
                    return wrong("the data does not match the number of cells");
                }
            }
        }
        match cells.validity {
            Some(_) if !column_type.nullable => wrong("validity for a field that cannot be null"),
            Some(v) if v.len() != cells.cell_num => {
                wrong("the validity does not match the number of cells")
            }
            None if column_type.nullable => wrong("a nullable field needs validity"),
            _ => Ok(()),
        }
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

    /// The column as borrowed memory.
    #[must_use]
    pub fn as_view(&self) -> ColumnView<'_> {
        ColumnView {
            column_type: self.column_type.clone(),
            cells: self.view(),
        }
    }

    /// The cells as slices; offsets that are not aligned `u64`s count as absent.
    #[must_use]
    pub fn view(&self) -> FieldView<'_> {
        FieldView {
            cell_num: self.cell_num,
            data: self.data.as_slice(),
            offsets: self.offsets_slice(),
            validity: self.validity.as_deref(),
            cell_size: self.column_type.cell_size(),
        }
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind(var: bool, nullable: bool) -> ColumnType {
        let cells = if var {
            CellValNum::Var
        } else {
            CellValNum::Fixed(3)
        };
        let kind = ColumnType::new("a", Datatype::UInt8).with_cell_val_num(cells);
        if nullable { kind.with_nulls() } else { kind }
    }

    fn column(kind: ColumnType, cells: &[Option<Vec<u8>>]) -> ColumnBuffers {
        let mut column = ColumnBuilder::new(kind);
        for cell in cells {
            column.append_cell(cell.as_deref().unwrap_or(&[0; 3]), cell.is_some());
        }
        column.finish()
    }

    fn owned(column: &ColumnBuffers) -> Vec<Option<Vec<u8>>> {
        column.cells().map(|c| c.map(<[u8]>::to_vec)).collect()
    }

    proptest! {
        #[test]
        fn cells_go_in_and_come_out(
            var in any::<bool>(),
            nullable in any::<bool>(),
            mut cells in proptest::collection::vec(
                proptest::option::of(proptest::collection::vec(any::<u8>(), 0..5)), 0..20),
            cut in (0usize..22, 0usize..22),
        ) {
            for cell in &mut cells {
                match cell {
                    None if !nullable => *cell = Some(vec![1; 3]),
                    Some(bytes) if !var => bytes.resize(3, 9),
                    _ => {}
                }
            }
            let kind = kind(var, nullable);
            let whole = column(kind.clone(), &cells);
            whole.validate().unwrap();
            prop_assert_eq!(owned(&whole), cells.clone());
            // Slices, and slices of slices.
            let (start, end) = (cut.0.min(cut.1), cut.0.max(cut.1));
            let slice = whole.slice(start..end);
            slice.validate().unwrap();
            let expected = cells.get(start.min(cells.len())..end.min(cells.len())).unwrap();
            prop_assert_eq!(owned(&slice), expected);
            prop_assert_eq!(owned(&slice.slice(1..3)), expected.get(1.min(expected.len())..3.min(expected.len())).unwrap());
            // Joined again.
            let parts = [whole.slice(0..start), slice, whole.slice(end..usize::MAX)];
            let joined = ColumnBuffers::concat(&parts.iter().collect::<Vec<_>>()).unwrap();
            joined.validate().unwrap();
            prop_assert_eq!(owned(&joined), cells.clone());
            prop_assert_eq!(joined.memory_size(), whole.memory_size());
            // Runs of equal cells.
            let mut builder = ColumnBuilder::new(kind);
            builder.append_view(&whole.view(), 0..cells.len()).unwrap();
            builder.append_repeated(&[7; 3], true, 4);
            let longer = builder.finish();
            longer.validate().unwrap();
            prop_assert_eq!(owned(&longer)[cells.len()..].to_vec(), vec![Some(vec![7; 3]); 4]);
        }
    }

    #[test]
    fn typed_access_asks_for_the_right_type() {
        let mut column = ColumnBuilder::new(ColumnType::new("a", Datatype::DateTimeDay));
        column.append_cell(&5i64.to_le_bytes(), true);
        let column = column.finish();
        assert_eq!(column.values::<i64>(), Some(&[5][..]));
        assert_eq!(column.values::<u64>(), None);
        assert_eq!(column.values::<i32>(), None);
    }

    #[test]
    fn views_that_lack_cells_are_refused() {
        let view = FieldView {
            cell_num: 2,
            data: &[1, 2, 3],
            offsets: None,
            validity: None,
            cell_size: 3,
        };
        let mut builder = ColumnBuilder::new(kind(false, false));
        assert!(builder.append_view(&view, 0..2).is_err());
        assert!(builder.append_view(&view, 0..1).is_ok());
        let offsets = [0, 9];
        let view = FieldView {
            offsets: Some(&offsets),
            ..view
        };
        assert!(
            ColumnBuilder::new(kind(true, false))
                .append_view(&view, 0..1)
                .is_err()
        );
        let backwards = [2, 1];
        let view = FieldView {
            offsets: Some(&backwards),
            ..view
        };
        assert!(
            ColumnBuilder::new(kind(true, false))
                .append_view(&view, 0..1)
                .is_err()
        );
        assert!(builder.append_view(&view, 0..1).is_err());
    }
}

//! Cells of a field as borrowed slices.

use super::{ColumnBuffers, ColumnType};
use crate::error::{Error, Result};
use std::ops::Range;

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

impl ColumnBuffers {
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
}

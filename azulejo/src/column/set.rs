//! Columns of equal length.

use super::ColumnBuffers;
use crate::error::{Error, Result};
use std::ops::Range;

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

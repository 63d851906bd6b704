//! The columns of a batch on its way to Arrow, where texts may still be words.

use super::{ColumnBuffers, ColumnSet, ColumnType};
use crate::error::{Error, Result};
use azulejo_format::filter::StringWords;
use std::ops::Range;

/// Columns of equal length, not all of them in TileDB's layout.
#[derive(Debug, Clone)]
pub(crate) struct BatchColumns {
    pub cell_num: usize,
    pub columns: Vec<BatchColumn>,
}

/// A column in one of two layouts.
#[derive(Debug, Clone)]
pub(crate) enum BatchColumn {
    /// TileDB's.
    Cells(ColumnBuffers),
    /// Each text that differs once, about, and which of them each cell is.
    Words(WordColumn),
}

/// Texts as words: they are written out nowhere. Only Arrow's conversion takes these.
#[derive(Debug, Clone)]
pub(crate) struct WordColumn {
    /// What the column holds: strings of varying length.
    pub column_type: ColumnType,
    /// For each cell the index of its word, of `u32`, and its validity.
    pub ids: ColumnBuffers,
    /// The words of tiles, whose indices count on from one tile to the next.
    #[cfg_attr(
        not(feature = "arrow"),
        expect(dead_code, reason = "nobody asks for words without it")
    )]
    pub words: Vec<StringWords>,
}

impl BatchColumns {
    /// The cells `cells`, cut to those that there are.
    pub fn slice(self, cells: Range<usize>) -> Self {
        let end = cells.end.min(self.cell_num);
        let start = cells.start.min(end);
        let columns = self.columns.into_iter().map(|column| match column {
            BatchColumn::Cells(column) => BatchColumn::Cells(column.slice(start..end)),
            BatchColumn::Words(column) => BatchColumn::Words(WordColumn {
                ids: column.ids.slice(start..end),
                ..column
            }),
        });
        Self {
            cell_num: end - start,
            columns: columns.collect(),
        }
    }

    /// The columns of a read that was not to give words.
    pub fn into_cells(self) -> Result<ColumnSet> {
        let columns = self.columns.into_iter().map(|column| match column {
            BatchColumn::Cells(column) => Ok(column),
            BatchColumn::Words(column) => Err(Error::Internal(format!(
                "column {} came as words",
                column.column_type.name
            ))),
        });
        Ok(ColumnSet {
            cell_num: self.cell_num,
            columns: columns.collect::<Result<_>>()?,
        })
    }
}

#[cfg(all(feature = "arrow", feature = "stream"))]
impl BatchColumn {
    /// What it holds.
    pub fn column_type(&self) -> &ColumnType {
        match self {
            Self::Cells(column) => &column.column_type,
            Self::Words(column) => &column.column_type,
        }
    }
}

impl From<ColumnSet> for BatchColumns {
    fn from(set: ColumnSet) -> Self {
        Self {
            cell_num: set.cell_num,
            columns: set.columns.into_iter().map(BatchColumn::Cells).collect(),
        }
    }
}

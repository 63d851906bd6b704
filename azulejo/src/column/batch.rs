//! The columns of a batch on its way to Arrow, where texts may still be words.

use super::{ColumnBuffers, ColumnBuilder, ColumnSet, ColumnType, runs};
use crate::error::{Error, Result};
use azulejo_format::Datatype;
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

impl WordColumn {
    /// What the indices of the words of a column of texts are.
    pub fn id_type(texts: &ColumnType) -> ColumnType {
        ColumnType {
            nullable: texts.nullable,
            ..ColumnType::new(texts.name.clone(), Datatype::UInt32)
        }
    }
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

    /// The cells whose byte of the mask, one for each cell, is not 0.
    pub fn compact(self, mask: &[u8]) -> Result<Self> {
        if !mask.contains(&0) {
            return Ok(self);
        }
        let kept: Vec<Range<usize>> = runs(mask)
            .filter_map(|(kept, cells)| kept.then_some(cells))
            .collect();
        self.gather(&kept)
    }

    /// The cells at these places, in their order.
    pub fn pick(self, places: &[usize]) -> Result<Self> {
        let cells: Vec<Range<usize>> = places.iter().map(|&cell| cell..cell + 1).collect();
        self.gather(&cells)
    }

    /// The cells of these ranges, one behind another.
    pub fn gather(self, ranges: &[Range<usize>]) -> Result<Self> {
        let cell_num = ranges.iter().map(Range::len).sum();
        let gathered = |column: &ColumnBuffers| {
            let mut some = ColumnBuilder::with_capacity(column.column_type.clone(), cell_num, 0);
            let view = column.view();
            let mut ranges = ranges.iter();
            ranges.try_for_each(|cells| some.append_view(&view, cells.clone()))?;
            Ok::<_, Error>(some.finish())
        };
        let columns = self.columns.into_iter().map(|column| {
            Ok(match column {
                BatchColumn::Cells(column) => BatchColumn::Cells(gathered(&column)?),
                BatchColumn::Words(column) => BatchColumn::Words(WordColumn {
                    ids: gathered(&column.ids)?,
                    ..column
                }),
            })
        });
        Ok(Self {
            cell_num,
            columns: columns.collect::<Result<_>>()?,
        })
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

//! Columns of texts as words: which word each cell is goes to its place, as a number would.

use super::assemble::{DenseQuery, Unmatched};
use super::plan::BatchPlan;
use crate::column::{ColumnBuffers, WordColumn, repeat_cell};
use crate::error::Result;
use crate::read::BoundField;
use crate::read::decode::{Cells, WORD_ID, holds_words};
use crate::read::output::words::{count_on, first_words, too_many};
use crate::read::parallel::{each, split};
use crate::space::copy::copy_cells;
use azulejo_format::filter::StringWords;
use std::ops::Range;

impl DenseQuery {
    /// Whether the cells of a field can come as words: texts of which all tiles of the batch hold
    /// words, and which nobody looks at here.
    pub fn as_words(&self, batch: &BatchPlan, field: &BoundField, unmatched: Unmatched) -> bool {
        let holds_words = |index: usize, of| {
            let fragment = self.array.fragments().get(index);
            fragment.is_some_and(|fragment| holds_words(&self.array, fragment, of))
        };
        let is_looked_at = || {
            self.condition.as_ref().is_some_and(|condition| {
                let mut tested = condition.condition.fields().iter();
                unmatched == Unmatched::Fill || tested.any(|name| *name == field.column_type.name)
            })
        };
        let tasks = batch.tasks.iter();
        let mut tiles = tasks.filter_map(|task| task.request(&self.array, field, Cells::All));
        field.column_type.is_var()
            && !is_looked_at()
            && tiles.all(|tile| holds_words(tile.fragment, tile.field))
    }

    /// Makes a column of words.
    ///
    /// For example two tiles of 3 and of 5 words, and cells that no fragment has: the words of the
    /// first are 0 to 2, those of the second 3 to 7, and the fill value is 8.
    pub async fn word_column(&self, batch: &BatchPlan, field: &BoundField) -> Result<WordColumn> {
        // 1. The tiles, whose words count on from one to the next.
        let mut words = Vec::new();
        let mut cells = self.var_cells(batch, field, Some(&mut words)).await?;
        let (firsts, count) = first_words(&words)?;
        for ((_, tile), first) in cells.tiles.iter_mut().zip(firsts) {
            if first > 0 {
                count_on(tile.data.as_chunks_mut().0, first);
            }
        }

        // 2. The fill value, where a cell has none of them.
        let len = batch.cells.checked_mul(WORD_ID).ok_or_else(too_many)?;
        let mut ids = self.fetcher.pool().take(len);
        if cells.has_fills() {
            let fill = field.fill.bytes.clone();
            let len = u32::try_from(fill.len()).map_err(|_| too_many())?;
            words.push(StringWords {
                bytes: fill,
                places: vec![(0, len)],
            });
            repeat_cell(&mut ids, &count.to_le_bytes());
        }

        // 3. Each cell's place.
        let bytes = cells.bands.iter().map(|band| band.len() * WORD_ID);
        let pieces = split(&mut ids, bytes);
        let work: Vec<(&Range<usize>, &mut [u8])> = cells.bands.iter().zip(pieces).collect();
        each(self.array.context(), work, |(band, out)| {
            for (task, tile) in &cells.tiles {
                let copies = cells.copies(task);
                copy_cells(&batch.copies, copies, &tile.data, out, band, WORD_ID)?;
            }
            Ok(())
        })?;
        Ok(WordColumn {
            column_type: field.column_type.clone(),
            ids: ColumnBuffers {
                column_type: WordColumn::id_type(&field.column_type),
                cell_num: batch.cells,
                data: ids.into(),
                offsets: None,
                validity: cells.validity()?,
            },
            words,
        })
    }
}

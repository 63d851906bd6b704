//! Reading a selection batch by batch: limit, progress, and a memory budget that suits both.

use crate::error::Result;
use crate::interrupt;
use crate::progress::Progress;
use crate::selection::Selection;
use azulejo::{Array, ColumnSet, Reader};

/// The budget of reads that stop after a few cells: what is beyond the limit would be read for
/// nothing.
const PREVIEW_BUDGET: u64 = 64 << 20;
/// Limits up to this many cells are previews.
const PREVIEW_CELLS: u64 = 10_000;

/// A read under way, its first batch read already: what is wrong with a selection shows before any
/// output.
#[derive(Debug)]
pub struct Cells {
    reader: Option<Reader>,
    first: Option<ColumnSet>,
    limit: u64,
}

impl Cells {
    /// Begins to read a selection.
    pub fn new(array: &Array, selection: &Selection) -> Result<Self> {
        let limit = selection.limit.unwrap_or(u64::MAX);
        let options = selection.options.clone().filter(|_| limit > 0);
        let Some(mut options) = options else {
            return Ok(Self {
                reader: None,
                first: None,
                limit,
            });
        };
        if limit <= PREVIEW_CELLS {
            let budget = array.context().config().memory_budget.min(PREVIEW_BUDGET);
            options = options.memory_budget(budget);
        }
        let mut reader = array.read(options)?;
        let first = reader.next().transpose()?;
        Ok(Self {
            reader: Some(reader),
            first,
            limit,
        })
    }

    /// The first batch, if there is any cell.
    pub fn first(&self) -> Option<&ColumnSet> {
        self.first.as_ref()
    }

    /// Gives every batch to `take`; returns the number of cells.
    pub fn for_each(
        self,
        progress: &Progress,
        mut take: impl FnMut(ColumnSet) -> Result<()>,
    ) -> Result<u64> {
        let mut cells = 0;
        for batch in self
            .first
            .map(Ok)
            .into_iter()
            .chain(self.reader.into_iter().flatten())
        {
            let mut batch = batch?;
            let left = self.limit - cells;
            if batch.cell_num as u64 > left {
                batch = batch.slice(0..usize::try_from(left).unwrap_or(usize::MAX));
            }
            cells += batch.cell_num as u64;
            let bytes = batch.memory_size() as u64;
            interrupt::check()?;
            take(batch)?;
            progress.add(cells, bytes);
            if cells >= self.limit {
                break;
            }
        }
        Ok(cells)
    }
}

/// Gives every batch of the selection to `take`; returns the number of cells.
pub fn each_batch(
    array: &Array,
    selection: &Selection,
    progress: &Progress,
    take: impl FnMut(ColumnSet) -> Result<()>,
) -> Result<u64> {
    Cells::new(array, selection)?.for_each(progress, take)
}

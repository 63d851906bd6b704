//! Reading a selection batch by batch: limit, progress, and a memory budget that suits both.

use crate::error::Result;
use crate::progress::Progress;
use crate::selection::Selection;
use azulejo::{Array, ColumnSet, Reader};

/// The budget of reads that stop after a few cells: what is beyond the limit would be read for nothing.
const PREVIEW_BUDGET: u64 = 64 << 20;
/// Limits up to this many cells are previews.
const PREVIEW_CELLS: u64 = 10_000;

/// Gives every batch of the selection to `take`; returns the number of cells.
pub fn each_batch(
    array: &Array,
    selection: &Selection,
    progress: &Progress,
    mut take: impl FnMut(ColumnSet) -> Result<()>,
) -> Result<u64> {
    let Some(options) = selection.options.clone() else { return Ok(0) };
    let limit = selection.limit.unwrap_or(u64::MAX);
    if limit == 0 {
        return Ok(0);
    }
    let options = if limit <= PREVIEW_CELLS {
        let budget = array.context().config().memory_budget.min(PREVIEW_BUDGET);
        options.memory_budget(budget)
    } else {
        options
    };
    let mut cells = 0;
    for batch in Reader::new(array, options)? {
        let mut batch = batch?;
        let left = limit - cells;
        if batch.cell_num as u64 > left {
            batch = batch.slice(0..left as usize);
        }
        cells += batch.cell_num as u64;
        let bytes = batch.memory_size() as u64;
        take(batch)?;
        progress.add(cells, bytes);
        if cells >= limit {
            break;
        }
    }
    Ok(cells)
}

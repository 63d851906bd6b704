//! The way of a dense read through its selection: which cells the next batch has.

use super::cost::BatchCosts;
use super::cut::Cutter;
use super::plan::{BatchPlan, DensePlan, PositionBox};
use super::points::point_batch;
use crate::error::Result;
use crate::read::budget::Budget;
use crate::space::{Points, first_where};
use std::ops::Range;

/// What is left to read.
#[derive(Debug, Clone)]
pub(super) enum SelectionWalk {
    /// One box in row-major or column-major order.
    Box(Cutter),
    /// Tile after tile: the tile at hand, and where the next one begins.
    Tiles {
        cutter: Cutter,
        next: Option<Vec<u64>>,
    },
    /// Point after point.
    Points {
        points: Points,
        next: usize,
        len: usize,
    },
}

/// Where a small batch would cut tiles, it may be so many times as large.
const SMALL_BATCH_SCALES: [u64; 3] = [1, 2, 4];

/// Enough cells for a batch in global order: more would not be read faster.
const GLOBAL_BATCH_CELLS: u64 = 1 << 24;

/// Points that one batch takes, at most.
const POINTS: usize = 1 << 16;

impl SelectionWalk {
    /// Whether everything has been planned.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Box(cutter) => cutter.is_done(),
            Self::Tiles { cutter, next } => cutter.is_done() && next.is_none(),
            Self::Points { next, len, .. } => next >= len,
        }
    }

    /// Plans the next batch: of at most `max_cells` cells, within the budget; a small one, if that
    /// cuts no tiles and is wanted.
    ///
    /// `None` at the end; [`Error::Budget`](crate::Error::Budget) if not even one cell fits.
    pub fn next(
        &mut self,
        costs: &BatchCosts<'_>,
        max_cells: u64,
        small: bool,
    ) -> Result<Option<BatchPlan>> {
        if self.is_done() {
            return Ok(None);
        }
        let max_cells = max_cells.min(costs.max_cells());
        match self {
            Self::Box(cutter) => next_box(cutter, costs, max_cells, small),
            Self::Tiles { cutter, next } => next_tiles(cutter, next, costs, max_cells, small),
            Self::Points { points, next, len } => {
                let most = usize::try_from(max_cells).unwrap_or(usize::MAX);
                let mut count = (*len - *next).min(most).min(POINTS);
                while count > 0 {
                    let range = *next..*next + count;
                    let batch = point_batch(costs.query, points, range)?;
                    if costs.of(&batch)? <= costs.budget.total {
                        *next += count;
                        return Ok(Some(batch));
                    }
                    count /= 2;
                }
                Err(costs.too_small())
            }
        }
    }
}

/// The next part of a box.
fn next_box(
    cutter: &mut Cutter,
    costs: &BatchCosts<'_>,
    max_cells: u64,
    small: bool,
) -> Result<Option<BatchPlan>> {
    let plan = &costs.query.plan;
    let cut = |costs: &BatchCosts<'_>, cutter: &mut Cutter| {
        let mut fits = |piece: &PositionBox| costs.plan(piece, 0, 0);
        let max_cells = max_cells.min(costs.max_cells());
        cutter.next(max_cells, &mut fits, &|d, r| align(plan, d, r))
    };
    for scale in SMALL_BATCH_SCALES.into_iter().filter(|_| small) {
        let bytes = (scale * costs.budget.small_batch()).min(costs.budget.total);
        let costs = BatchCosts {
            budget: Budget::dense(bytes, None),
            query: costs.query,
        };
        let mut probe = cutter.clone();
        if let Some((piece, (batch, _))) = cut(&costs, &mut probe)?
            && cuts_no_tile(plan, &piece)
        {
            *cutter = probe;
            return Ok(Some(batch));
        }
    }
    match cut(costs, cutter)? {
        Some((_, (batch, _))) => Ok(Some(batch)),
        None => Err(costs.too_small()),
    }
}

/// As many of the next tiles as fit.
fn next_tiles(
    cutter: &mut Cutter,
    next: &mut Option<Vec<u64>>,
    costs: &BatchCosts<'_>,
    max_cells: u64,
    small: bool,
) -> Result<Option<BatchPlan>> {
    let mut batch = BatchPlan::default();
    let mut spent = 0;
    loop {
        if cutter.is_done() {
            let Some(at) = next.take() else { break };
            let (tile, after) = tile_box(&costs.query.plan, &at);
            *cutter = Cutter::new(tile, &costs.query.order);
            *next = after;
        }
        let room = max_cells.saturating_sub(batch.cells as u64);
        let start = batch.cells;
        let mut fits = |piece: &PositionBox| costs.plan(piece, start, spent);
        // A tile is cut only where it does not fit a batch of its own.
        let may_cut = batch.cells == 0;
        let mut probe = cutter.clone();
        match probe.next(room, &mut fits, &|_, r| r.end)? {
            Some((_, (more, cost))) if may_cut || probe.is_done() => {
                batch.append(more);
                spent += cost;
                *cutter = probe;
            }
            None if may_cut => return Err(costs.too_small()),
            _ => break,
        }
        let enough = small && spent >= costs.budget.small_batch();
        if !cutter.is_done() || enough || batch.cells as u64 >= GLOBAL_BATCH_CELLS {
            break;
        }
    }
    Ok((batch.cells > 0).then_some(batch))
}

/// Where to end a box along a dimension instead of within a tile.
fn align(plan: &DensePlan, d: usize, positions: Range<u64>) -> u64 {
    let tile = |position: u64| plan.tile_at(d, position);
    let last = tile(positions.end - 1);
    if tile(positions.end) != last {
        return positions.end;
    }
    // The first position of the last tile, if the selection ascends; anything in between is as good
    // otherwise.
    first_where(positions.start..positions.end - 1, |at| tile(at) >= last)
}

/// Whether a box begins and ends between tiles along every dimension, or where the selection does.
fn cuts_no_tile(plan: &DensePlan, piece: &PositionBox) -> bool {
    piece.iter().enumerate().all(|(d, positions)| {
        let (tile, len) = (|at: u64| plan.tile_at(d, at), plan.selection[d].len());
        let between = |at: u64| at == 0 || at >= len || tile(at) != tile(at - 1);
        between(positions.start) && between(positions.end)
    })
}

/// The selected box of the tile that the positions `at` lie in, and where the next tile begins.
fn tile_box(plan: &DensePlan, at: &[u64]) -> (PositionBox, Option<Vec<u64>>) {
    let end = |d: usize| {
        let tile = plan.tile_at(d, at[d]);
        // There are at most so many positions in a tile.
        let last = at[d].saturating_add(plan.grid.extents()[d]);
        let last = plan.selection[d].len().min(last);
        first_where(at[d]..last, |at| plan.tile_at(d, at) > tile)
    };
    let tile: PositionBox = (0..at.len()).map(|d| at[d]..end(d)).collect();
    let mut next = at.to_vec();
    for &d in plan.grid.tile_order().iter().rev() {
        next[d] = tile[d].end;
        if next[d] < plan.selection[d].len() {
            return (tile, Some(next));
        }
        next[d] = 0;
    }
    (tile, None)
}

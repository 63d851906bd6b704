//! What a sparse read does next: as many clusters of its plan as the budget allows, or a part of
//! one. Steps are values: whoever takes them does the IO.

use super::plan::{CellBounds, Cluster, PlannedTile, Portion, SparsePlan, cost_of};
use super::query::SparseQuery;
use super::reach::next_bound;
use super::tiles;
use super::window;
use crate::read::budget::WantedBatch;
use crate::space::cell_bound::CellBound;

/// Cells in one batch, however small they are.
const MAX_CELLS: u64 = 1 << 30;

/// Parts of long clusters cost about this.
const PART_BYTES: u64 = 32 << 20;

/// One tile in so many may be needed by two parts; more where these are small, as they stay in
/// memory between.
const PART_SHARE: usize = 10;
const PART_SHARE_CACHED: usize = 5;

/// Where parts would share too many tiles, they may be so many times as large.
const PART_SCALES: [u64; 3] = [1, 2, 4];

/// A place in a plan.
#[derive(Debug, Clone, Default)]
pub(super) struct Position {
    /// The next cluster.
    pub cluster: usize,
    /// Where to continue in that cluster, if not at its begin.
    pub from: Option<CellBound>,
}

impl Position {
    /// Further on in the same cluster, or, without a bound, behind it.
    pub fn behind(&self, bound: Option<CellBound>) -> Self {
        Self {
            cluster: self.cluster + usize::from(bound.is_none()),
            from: bound,
        }
    }
}

/// What comes next.
pub(super) enum SparseStep<'a> {
    /// A batch of tiles.
    Batch(BatchStep<'a>),
    /// Tiles of which too many overlap for the budget: a window on them.
    Window {
        portion: Portion<'a>,
        /// Behind all of its cells.
        next: Position,
    },
    /// As many tiles overlap as far as is known, more than the budget allows, and there is no way
    /// to look at fewer at a time.
    TooMany {
        tiles: usize,
        /// Bytes that they take.
        need: u64,
    },
    /// Nothing is left.
    Done,
}

/// One batch.
pub(super) struct BatchStep<'a> {
    pub portions: Vec<Portion<'a>>,
    /// Behind it.
    pub next: Position,
    /// Bytes that the tiles take.
    pub cost: u64,
    /// Cells that the tiles hold.
    pub cells: u64,
}

impl<'a> BatchStep<'a> {
    /// A part of a cluster.
    fn of_part(
        tiles: Vec<&'a PlannedTile>,
        keyed: bool,
        bounds: CellBounds,
        next: Position,
    ) -> Self {
        Self {
            next,
            cost: cost_of(&tiles),
            cells: cells_of(&tiles),
            portions: vec![Portion {
                tiles,
                keyed,
                bounds,
            }],
        }
    }
}

/// Cuts steps out of a plan.
#[derive(Clone, Copy)]
pub(super) struct SparseSteps<'a> {
    pub query: &'a SparseQuery,
    pub plan: &'a SparsePlan,
    pub wanted: WantedBatch,
}

impl<'a> SparseSteps<'a> {
    /// The step from a position on. Batches with more than `most` cells are small if they can be;
    /// those with `enough` cells are not made larger.
    ///
    /// For example clusters of 3, 5 and 9 MiB and batches of 10 MiB: the first step takes two
    /// clusters, the second one. Had the last 90 MiB, a part of it would be taken; were that more
    /// than all of the budget, and all of its tiles overlapped, they would be looked at some at a
    /// time.
    pub fn step(&self, mut at: Position, most: u64, enough: u64) -> SparseStep<'a> {
        let mut portions: Vec<Portion<'_>> = Vec::new();
        let (mut cost, mut cells) = (0u64, 0u64);
        let budget = &self.query.budget;
        let batch_bytes = budget.batch_of(self.wanted).min(budget.result);
        while let Some(cluster) = self.plan.clusters.get(at.cluster) {
            if cells >= enough && !portions.is_empty() {
                break;
            }
            let tiles = self.plan.remaining(cluster, at.from.as_ref());
            let more = cost_of(&tiles);
            let more_cells = cells_of(&tiles);
            let sum = cost.saturating_add(more);
            if sum > budget.total || cells + more_cells > MAX_CELLS {
                if portions.is_empty() {
                    return self.split(cluster, at, enough);
                }
                break;
            }
            // Tiles that the last batch has taken in part have fewer cells left than they say: they
            // do not count here.
            let from = at.from.as_ref();
            let whole = tiles
                .iter()
                .filter(|tile| from.is_none_or(|from| tile.lower >= *from));
            let whole_cells: u64 = whole.map(|tile| u64::from(tile.cell_num)).sum();
            let is_small = cells + whole_cells > most;
            // A long cluster is cut where that costs little, as its tiles are sorted faster in
            // parts that fit a cache.
            if portions.is_empty()
                && sum / 2 > self.part_bytes(is_small)
                && let Some(step) = self.cut(cluster, &at, is_small)
            {
                return SparseStep::Batch(step);
            }
            if (sum > batch_bytes || (is_small && sum > budget.small_batch()))
                && !portions.is_empty()
            {
                break;
            }
            cost += more;
            cells += more_cells;
            match portions.last_mut() {
                Some(last)
                    if last.keyed == cluster.keyed
                        && last.bounds == (None, None)
                        && at.from.is_none() =>
                {
                    last.tiles.extend(tiles);
                }
                _ => portions.push(Portion {
                    tiles,
                    keyed: cluster.keyed,
                    bounds: (at.from.take(), None),
                }),
            }
            at = at.behind(None);
        }
        if portions.is_empty() {
            return SparseStep::Done;
        }
        SparseStep::Batch(BatchStep {
            portions,
            next: at,
            cost,
            cells,
        })
    }

    /// What a part of a long cluster costs.
    fn part_bytes(&self, is_small: bool) -> u64 {
        let budget = &self.query.budget;
        match self.wanted.few_batches {
            true => u64::MAX,
            false if is_small => budget.small_batch().min(budget.part),
            false => PART_BYTES.min(budget.part),
        }
    }

    /// The first tiles of a cluster, and of their cells those below all others, if few of these
    /// tiles are needed again.
    ///
    /// For example tiles from 0 to 9, 5 to 14, 12 to 19 and 20 to 29. Cut before the second or the
    /// third, one tile would be needed again; cut before the last, at 20, none.
    fn cut(&self, cluster: &Cluster, at: &Position, is_small: bool) -> Option<BatchStep<'a>> {
        let order = &self.query.order;
        if !(cluster.keyed && order.curve().is_none() && self.query.fetcher.streams()) {
            return None;
        }
        let from = at.from.as_ref();
        let remaining = self.plan.remaining(cluster, from);
        // By number of tiles taken: how many of them are needed again, and the bound of the others.
        let again = |taken: usize| {
            let to = &remaining.get(taken)?.lower;
            let tiles = remaining.get(..taken)?;
            let progress = from.is_none_or(|from| from < to);
            progress.then(|| (tiles.iter().filter(|tile| tile.upper >= *to).count(), to))
        };
        let share = match tiles::is_small_tile(self.query, remaining.first()?) {
            true => PART_SHARE_CACHED,
            false => PART_SHARE,
        };
        let places = |bytes: u64| {
            let most = bytes.min(self.query.budget.part);
            let mut cost = 0u64;
            let fits = |tile: &&&PlannedTile| {
                cost = cost.saturating_add(tile.cost);
                cost <= most
            };
            let most = remaining.iter().take_while(fits).count();
            let places = (most / 2..=most).rev().step_by((most / 32).max(1));
            let places = places.filter(|taken| *taken > 0);
            let found = places.filter_map(|taken| Some((again(taken)?, taken)));
            let least = found.min_by_key(|((again, _), _)| *again);
            least.filter(|((again, _), taken)| again * share <= *taken)
        };
        let usual = PART_SCALES.map(|scale| self.part_bytes(false).saturating_mul(scale));
        let small = is_small.then(|| self.part_bytes(true));
        let ((_, to), taken) = small.into_iter().chain(usual).find_map(places)?;
        let bounds = (from.cloned(), Some(to.clone()));
        let tiles = remaining.get(..taken)?.to_vec();
        let next = at.behind(Some(to.clone()));
        Some(BatchStep::of_part(tiles, true, bounds, next))
    }

    /// The first part of a cluster that does not fit in the budget: the tiles with the lowest
    /// bounds, and of their cells those below all other tiles; a window, if most of these tiles
    /// would be needed again.
    fn split(&self, cluster: &Cluster, at: Position, enough: u64) -> SparseStep<'a> {
        let (mut need, mut cells) = (0u64, 0u64);
        let (mut taken, mut to) = (Vec::new(), None);
        for tile in self.plan.remaining(cluster, at.from.as_ref()) {
            need = need.saturating_add(tile.cost);
            cells += u64::from(tile.cell_num);
            if need > self.query.budget.total || cells > MAX_CELLS {
                to = Some(tile.lower.clone());
                break;
            }
            taken.push(tile);
        }
        // What begins at the bound too is taken with it later.
        let progress = to.as_ref().is_none_or(|to| match &at.from {
            Some(from) => to > from,
            None => taken.iter().any(|tile| tile.lower < *to),
        });
        let again = taken.iter().filter(|tile| {
            let to = to.as_ref();
            to.is_some_and(|to| tile.upper >= *to)
        });
        let possible = progress && !taken.is_empty();
        if !possible || again.count() > taken.len() / 2 {
            let tiles = taken.len() + 1;
            match self.window(cluster, &at, enough) {
                Some(window) => return window,
                None if !possible => return SparseStep::TooMany { tiles, need },
                None => {}
            }
        }
        let next = at.behind(to.clone());
        let bounds = (at.from, to);
        SparseStep::Batch(BatchStep::of_part(taken, cluster.keyed, bounds, next))
    }

    /// The next part of a cluster too many of whose tiles overlap; `None` if one of them alone is
    /// too large.
    fn window(&self, cluster: &Cluster, at: &Position, enough: u64) -> Option<SparseStep<'a>> {
        if !cluster.keyed {
            return None;
        }
        let from = at.from.as_ref();
        let mut remaining = self.plan.remaining(cluster, from);
        let (_, window) = window::room(self.query, &remaining)?;
        let bytes = remaining.iter().map(|tile| tile.decoded);
        let cell = bytes.sum::<u64>() / cells_of(&remaining).max(1);
        // Little more than is wanted, though all tiles have to be looked at for it; and no more than
        // makes a difference: twice what overlaps, so that most tiles are decoded once or twice.
        let overlap = overlap_at(&remaining).saturating_mul(2);
        let target = enough.saturating_mul(cell.max(1)).min(overlap);
        let target = target.clamp(window / 16, window / 16 * 15);
        // Where the tiles' bounds do not tell how far to go, the cells do.
        let to = reach(&remaining, from, target);
        if let Some(to) = &to {
            remaining.retain(|tile| tile.lower < *to);
        }
        let mut tiles = self.plan.tiles_of(cluster).iter();
        let goes_on = |to: &CellBound| tiles.any(|tile| tile.upper >= *to);
        let next = at.behind(to.clone().filter(goes_on));
        let portion = Portion {
            tiles: remaining,
            keyed: true,
            bounds: (from.cloned(), to),
        };
        Some(SparseStep::Window { portion, next })
    }
}

/// Bytes of the tiles that overlap where the first of tiles ends.
fn overlap_at(tiles: &[&PlannedTile]) -> u64 {
    let end = tiles.iter().map(|tile| &tile.upper).min();
    let begun = tiles
        .iter()
        .filter(|tile| end.is_none_or(|end| tile.lower <= *end));
    begun.map(|tile| tile.decoded).fold(0, u64::saturating_add)
}

/// As [`next_bound`] of tiles that ascend by their lower bounds: as many of the first of them are
/// looked at as can matter.
fn reach(tiles: &[&PlannedTile], from: Option<&CellBound>, target: u64) -> Option<CellBound> {
    let mut bytes = 0u64;
    let fits = |tile: &&&PlannedTile| {
        bytes = bytes.saturating_add(tile.decoded);
        bytes <= target.saturating_mul(2)
    };
    let mut some = tiles.iter().take_while(fits).count().max(1);
    loop {
        let bound = next_bound(tiles.get(..some).unwrap_or(tiles), from, target)?;
        match tiles.get(some) {
            Some(later) if bound > later.lower => some *= 2,
            _ => return Some(bound),
        }
    }
}

/// Cells that tiles hold.
fn cells_of(tiles: &[&PlannedTile]) -> u64 {
    tiles.iter().map(|tile| u64::from(tile.cell_num)).sum()
}

//! Reading sparse arrays: plan, then batch after batch within the memory budget.

mod batch;
mod columns;
mod external_merge;
mod history;
mod merge;
mod plan;
mod query;
mod selection;
mod tiles;

use super::{BoundOptions, BufferPool, CALLER_BATCH_BYTES, Progress};
use crate::array::{Array, Fragment};
use crate::column::{ColumnMut, ColumnSet};
use crate::error::{Error, Result};
use crate::space::cell_order::{CellBound, DimensionOrder};
use batch::Portion;
pub(crate) use columns::Batch;
use columns::Output;
use plan::{Cluster, PlannedTile, SparsePlan};
use query::{FragmentQuery, SparseQuery};

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

/// Parts smaller than this many bytes are not cut again.
const MIN_PART_BYTES: u64 = 1024;

/// A sparse read under way.
#[derive(Debug)]
pub(crate) struct SparseReader {
    query: SparseQuery,
    plan: SparsePlan,
    pool: BufferPool,
    /// The next cluster.
    next: usize,
    /// Where to continue in that cluster.
    from: Option<CellBound>,
    /// Bytes of cells to sift out of tiles at a time.
    part_target: u64,
    /// A batch takes no more tiles than cost this, unless one cluster needs them.
    batch_bytes: u64,
}

impl SparseReader {
    /// Plans the read of a sparse array; reads nothing but metadata.
    pub(crate) fn new(array: &Array, options: &BoundOptions) -> Result<Self> {
        let query = SparseQuery::new(array, options)?;
        let plan = SparsePlan::new(&query)?;
        let pool = array.context().buffers().with_load_limit(query.budget);
        let part_target = query.budget / 4;
        Ok(Self {
            query,
            plan,
            pool,
            next: 0,
            from: None,
            part_target,
            batch_bytes: super::BATCH_BYTES,
        })
    }

    /// Lets batches be as large as the budget allows, for a caller who wants all cells in one
    /// piece.
    pub(crate) fn prefer_few_batches(&mut self) {
        self.batch_bytes = u64::MAX;
    }

    /// Lets batches be small, for a caller who is done with one before the next; where reads are
    /// cheap.
    pub(crate) fn prefer_small_batches(&mut self) {
        if self.query.prefetch.is_none() {
            self.batch_bytes = CALLER_BATCH_BYTES;
        }
    }

    /// The next cells, at least one; `None` at the end.
    pub(crate) fn next_batch(&mut self) -> Result<Option<ColumnSet>> {
        match self.next_into(&mut [], 0, &mut Progress::default())? {
            Some(Batch::Columns(columns)) => Ok(Some(columns)),
            Some(Batch::Placed) => Err(Error::Internal("a batch went astray".into())),
            None => Ok(None),
        }
    }

    /// The next cells: in the caller's `columns`, one for each field, behind those that `progress`
    /// counts, if they have room for `room` cells and their values, and that is enough.
    pub(crate) fn next_into(
        &mut self,
        columns: &mut [ColumnMut<'_>],
        room: usize,
        progress: &mut Progress,
    ) -> Result<Option<Batch>> {
        while self.next < self.plan.clusters.len() {
            self.query.operation.check()?;
            let first = self.next == 0 && self.from.is_none();
            // Cells that the next batch may have where it is not a small one.
            let most = if columns.is_empty() || self.query.prefetch.is_some() {
                u64::MAX
            } else if self
                .query
                .fields
                .iter()
                .any(|field| field.column_type.is_var())
            {
                // How many bytes they have is not known before.
                0
            } else {
                room.saturating_sub(progress.cells) as u64
            };
            let step = || self.step(self.next, self.from.clone(), most);
            let bounded =
                self.query.order.curve().is_none() || !matches!(step(), Err(Error::Budget { .. }));
            if !bounded && self.plan.refine(&self.query, &self.pool, self.next)? {
                continue;
            }
            let step = self.step(self.next, self.from.clone(), most)?;
            let ahead = self.room(&step);
            self.start_reads(&step, ahead);
            let several = !first || step.next < self.plan.clusters.len();
            let read = match step.portions.as_slice() {
                [portion] if step.sift => external_merge::read(&self.query, &self.pool, portion)
                    .map(|(set, cut)| (set.map(Batch::Columns), cut)),
                portions => {
                    let output = match room {
                        0 => Output::Own,
                        room => Output::Given {
                            columns: &mut *columns,
                            room,
                            progress: &mut *progress,
                        },
                    };
                    let bounds = (several, ahead);
                    batch::read(&self.query, &self.pool, portions, bounds, output)
                        .map(|cells| (cells, None))
                }
            };
            let (cells, cut) = match read {
                // The bounds of tiles promised fewer cells than there are: try a smaller part.
                Err(Error::Budget { .. }) if step.sift && self.part_target > MIN_PART_BYTES => {
                    self.part_target /= 4;
                    continue;
                }
                read => read?,
            };
            let (next, from) = match cut {
                Some(bound) => (self.next, Some(bound)),
                None => (step.next, step.from),
            };
            self.next = next;
            self.from = from;
            if cells.is_some() {
                return Ok(cells);
            }
        }
        Ok(None)
    }

    /// The tiles all of whose cells are results, by metadata alone, as index of the fragment and of
    /// the tile: nothing in them is replaced, deleted, tested or left out.
    pub(crate) fn whole_tiles(&self) -> Vec<(usize, usize)> {
        let clusters = self.plan.clusters.iter();
        clusters
            .filter_map(|cluster| self.whole_tile(cluster))
            .map(|(of, tile)| (of.index, tile.tile))
            .collect()
    }

    /// Offers these tiles, as fragment, index and number of cells, and leaves out of the read those
    /// that are taken.
    pub(crate) fn take_whole_tiles(
        &mut self,
        take: &mut dyn FnMut(&Fragment, usize, u64) -> Result<bool>,
    ) -> Result<()> {
        let mut left = Vec::with_capacity(self.plan.clusters.len());
        for cluster in &self.plan.clusters {
            let taken = match self.whole_tile(cluster) {
                Some((of, tile)) => {
                    take(self.query.fragment(of)?, tile.tile, tile.cell_num.into())?
                }
                None => false,
            };
            if !taken {
                left.push(cluster.clone());
            }
        }
        self.plan.clusters = left;
        Ok(())
    }

    fn whole_tile(&self, cluster: &Cluster) -> Option<(&FragmentQuery, &PlannedTile)> {
        let Some([tile]) = self.plan.tiles.get(cluster.start..cluster.end) else {
            return None;
        };
        let of = self.query.fragments.get(tile.part)?;
        let untouched = tile.dimensions.is_empty()
            && tile.tests.is_empty()
            && !tile.no_results
            && of.within.is_none()
            && of.deleted_until.is_none();
        // A tile alone in its cluster needs keys for its order only, unless cells have versions.
        let single = !cluster.keyed
            || self.query.allows_dups
            || !self.query.fragment(of).ok()?.has_timestamps();
        (untouched && single).then_some((of, tile))
    }

    /// Bytes that may be read ahead of their use while a step is taken.
    fn room(&self, step: &SparseStep<'_>) -> u64 {
        if step.sift {
            0
        } else {
            self.query
                .budget
                .saturating_sub(step.cost)
                .min(self.query.budget / 4)
        }
    }

    /// Asks for what a step needs, and then for what the one after it needs.
    fn start_reads(&self, step: &SparseStep<'_>, room: u64) {
        if self.query.prefetch.is_none() || step.sift {
            return;
        }
        batch::start(&self.query, &step.portions, room);
        // Along a Hilbert curve the plan may be refined before that.
        if step.next < self.plan.clusters.len()
            && self.query.order.curve().is_none()
            && let Ok(later) = self.step(step.next, step.from.clone(), u64::MAX)
            && !later.sift
        {
            batch::start(&self.query, &later.portions, room);
        }
    }

    /// Cuts a batch out of the plan, from a cluster on and a place in it: as many clusters as the
    /// budget allows, or a part of one. Batches with more than `most` cells are small if they can
    /// be.
    fn step(
        &self,
        mut next: usize,
        mut from: Option<CellBound>,
        most: u64,
    ) -> Result<SparseStep<'_>> {
        let mut portions: Vec<Portion<'_>> = Vec::new();
        let (mut cost, mut cells) = (0u64, 0u64);
        // What is read ahead takes its part.
        let batch_bytes = match self.query.prefetch {
            Some(_) => self
                .batch_bytes
                .min(self.query.budget - self.query.budget / 4),
            None => self.batch_bytes,
        };
        while let Some(cluster) = self.plan.clusters.get(next) {
            let tiles = self
                .plan
                .tiles
                .get(cluster.start..cluster.end)
                .unwrap_or_default();
            let remaining =
                |tile: &&PlannedTile| from.as_ref().is_none_or(|from| tile.upper >= *from);
            let more = tiles
                .iter()
                .filter(remaining)
                .fold(0u64, |sum, tile| sum.saturating_add(tile.cost));
            let more_cells: u64 = tiles
                .iter()
                .filter(remaining)
                .map(|tile| u64::from(tile.cell_num))
                .sum();
            let sum = cost.saturating_add(more);
            if sum > self.query.budget || cells + more_cells > MAX_CELLS {
                if portions.is_empty() {
                    return self.split(cluster, next, from);
                }
                break;
            }
            // Tiles that the last batch has taken in part have fewer cells left than they say: they
            // do not count here.
            let whole = |tile: &&PlannedTile| from.as_ref().is_none_or(|from| tile.lower >= *from);
            let whole_cells: u64 = tiles
                .iter()
                .filter(whole)
                .map(|tile| u64::from(tile.cell_num))
                .sum();
            let held = cells + whole_cells > most;
            // A long cluster is cut where that costs little, as its tiles are sorted faster in
            // parts that fit a cache.
            if portions.is_empty()
                && sum / 2 > self.part_bytes(held)
                && let Some(step) = self.cut(cluster, next, from.as_ref(), held)
            {
                return Ok(step);
            }
            if (sum > batch_bytes || (held && sum > CALLER_BATCH_BYTES)) && !portions.is_empty() {
                break;
            }
            cost += more;
            cells += more_cells;
            let selected = tiles.iter().filter(remaining);
            match portions.last_mut() {
                Some(last)
                    if last.keyed == cluster.keyed
                        && last.bounds == (None, None)
                        && from.is_none() =>
                {
                    last.tiles.extend(selected);
                }
                _ => portions.push(Portion {
                    tiles: selected.collect(),
                    keyed: cluster.keyed,
                    bounds: (from.clone(), None),
                }),
            }
            from = None;
            next += 1;
        }
        Ok(SparseStep {
            portions,
            next,
            from,
            sift: false,
            cost,
        })
    }

    /// What a part of a long cluster costs.
    fn part_bytes(&self, held: bool) -> u64 {
        match self.batch_bytes {
            u64::MAX => u64::MAX,
            _ if held => CALLER_BATCH_BYTES.min(self.query.budget / 8).max(1),
            _ => PART_BYTES.min(self.query.budget / 8).max(1),
        }
    }

    /// The first tiles of a cluster, and of their cells those below all others, if few of these
    /// tiles are needed again.
    fn cut(
        &self,
        cluster: &Cluster,
        next: usize,
        from: Option<&CellBound>,
        held: bool,
    ) -> Option<SparseStep<'_>> {
        let order = &self.query.order;
        // Strings that are not ASCII have no place among bounds: one batch takes them all, if it
        // can.
        let bounded =
            order.curve().is_none() && !order.dimensions().iter().any(DimensionOrder::is_string);
        if !(cluster.keyed && bounded && self.query.prefetch.is_none()) {
            return None;
        }
        let tiles = self.plan.tiles.get(cluster.start..cluster.end)?;
        let remaining: Vec<&PlannedTile> = tiles
            .iter()
            .filter(|tile| from.is_none_or(|from| tile.upper >= *from))
            .collect();
        // By number of tiles taken: how many of them are needed again, and the bound of the others.
        let again = |taken: usize| {
            let to = &remaining.get(taken)?.lower;
            let tiles = remaining.get(..taken)?;
            let progress = from.is_none_or(|from| from < to);
            progress.then(|| (tiles.iter().filter(|tile| tile.upper >= *to).count(), to))
        };
        let share = if tiles::is_small_tile(&self.query, remaining.first()?) {
            PART_SHARE_CACHED
        } else {
            PART_SHARE
        };
        let places = |bytes: u64| {
            let most = bytes.min(self.query.budget / 8);
            let mut cost = 0u64;
            let fits = |tile: &&&PlannedTile| {
                cost = cost.saturating_add(tile.cost);
                cost <= most
            };
            let most = remaining.iter().take_while(fits).count();
            let places = (most / 2..=most)
                .rev()
                .step_by((most / 32).max(1))
                .filter(|taken| *taken > 0);
            let found = places.filter_map(|taken| Some((again(taken)?, taken)));
            found
                .min_by_key(|((again, _), _)| *again)
                .filter(|((again, _), taken)| again * share <= *taken)
        };
        let usual = PART_SCALES.map(|scale| self.part_bytes(false).saturating_mul(scale));
        let small = held.then(|| self.part_bytes(true));
        let ((_, to), taken) = small.into_iter().chain(usual).find_map(places)?;
        let bounds = (from.cloned(), Some(to.clone()));
        let tiles = remaining.get(..taken)?.to_vec();
        let cost = tiles
            .iter()
            .fold(0u64, |sum, tile| sum.saturating_add(tile.cost));
        let portions = vec![Portion {
            tiles,
            keyed: true,
            bounds,
        }];
        Some(SparseStep {
            portions,
            next,
            from: Some(to.clone()),
            sift: false,
            cost,
        })
    }

    /// The first part of a cluster that does not fit in the budget: the tiles with the lowest
    /// bounds, and of their cells those below all other tiles.
    fn split(
        &self,
        cluster: &Cluster,
        next: usize,
        from: Option<CellBound>,
    ) -> Result<SparseStep<'_>> {
        let tiles = self
            .plan
            .tiles
            .get(cluster.start..cluster.end)
            .unwrap_or_default();
        let remaining = tiles
            .iter()
            .filter(|tile| from.as_ref().is_none_or(|from| tile.upper >= *from));
        let (mut cost, mut cells) = (0u64, 0u64);
        let (mut taken, mut taken_cost) = (Vec::new(), 0);
        let mut to = None;
        for tile in remaining {
            cost = cost.saturating_add(tile.cost);
            cells += u64::from(tile.cell_num);
            if cost > self.query.budget || cells > MAX_CELLS {
                to = Some(tile.lower.clone());
                break;
            }
            taken_cost = cost;
            taken.push(tile);
        }
        // What begins at the bound too is taken with it later.
        let progress = to.as_ref().is_none_or(|to| match &from {
            Some(from) => to > from,
            None => taken.iter().any(|tile| tile.lower < *to),
        });
        if taken.is_empty() || !progress {
            if let Some(step) = self.sift(cluster, next, from.as_ref()) {
                return Ok(step);
            }
            let what = format!(
                "{} overlapping tiles of {}",
                taken.len() + 1,
                self.query.array.uri()
            );
            return Err(Error::Budget {
                what,
                need: cost,
                budget: self.query.budget,
            });
        }
        let portions = vec![Portion {
            tiles: taken,
            keyed: cluster.keyed,
            bounds: (from, to.clone()),
        }];
        let next = if to.is_some() { next } else { next + 1 };
        Ok(SparseStep {
            portions,
            next,
            from: to,
            sift: false,
            cost: taken_cost,
        })
    }

    /// The next part of a cluster too many of whose tiles overlap.
    fn sift(
        &self,
        cluster: &Cluster,
        next: usize,
        from: Option<&CellBound>,
    ) -> Option<SparseStep<'_>> {
        let tiles = self
            .plan
            .tiles
            .get(cluster.start..cluster.end)
            .filter(|_| cluster.keyed)?;
        let remaining: Vec<&PlannedTile> = tiles
            .iter()
            .filter(|tile| from.is_none_or(|from| tile.upper >= *from))
            .collect();
        if remaining.iter().any(|tile| tile.cost > self.query.budget) {
            return None;
        }
        // Where the tiles' bounds do not tell how far to go, the cells do.
        let Some(to) = external_merge::next_bound(&self.query, &remaining, from, self.part_target)
        else {
            let portion = Portion {
                tiles: remaining,
                keyed: true,
                bounds: (from.cloned(), None),
            };
            return Some(SparseStep {
                portions: vec![portion],
                next: next + 1,
                from: None,
                sift: true,
                cost: 0,
            });
        };
        let tiles: Vec<&PlannedTile> = remaining
            .into_iter()
            .filter(|tile| tile.lower < to)
            .collect();
        let portion = Portion {
            tiles,
            keyed: true,
            bounds: (from.cloned(), Some(to.clone())),
        };
        let done = self
            .plan
            .tiles
            .get(cluster.start..cluster.end)?
            .iter()
            .all(|tile| tile.upper < to);
        let (next, from) = if done {
            (next + 1, None)
        } else {
            (next, Some(to))
        };
        Some(SparseStep {
            portions: vec![portion],
            next,
            from,
            sift: true,
            cost: 0,
        })
    }
}

/// One batch, and where the next begins.
struct SparseStep<'a> {
    portions: Vec<Portion<'a>>,
    next: usize,
    from: Option<CellBound>,
    /// Whether the tiles do not fit in memory at a time.
    sift: bool,
    /// Bytes that the tiles take, unless they are sifted.
    cost: u64,
}

//! Reading sparse arrays: plan, then batch after batch within the memory budget.

mod batch;
mod columns;
mod history;
mod merge;
mod overlap;
mod plan;
mod query;
mod range_sequence;
mod reach;
mod selection;
mod steps;
mod tile;
mod tile_cells;
mod tiles;
mod window;

use super::BoundOptions;
use super::budget::WantedBatch;
use super::output::{Batch, Output};
use super::whole_tiles::{WholeTile, WholeTiles, offer};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::read::fetch::Waiting;
use overlap::Overlap;
use plan::{Cluster, SparsePlan, cost_of};
use query::SparseQuery;
pub(super) use range_sequence::RangeSequence;
pub(super) use selection::{DimensionFilter, is_endless};
use std::collections::BTreeSet;
use steps::{BatchStep, Position, SparseStep, SparseSteps};
use window::CellWindow;

/// Where each tile is decoded more often than this, some fragments are better merged first.
const DECODED_AT_MOST: u64 = 8;

/// A sparse read under way.
#[derive(Debug)]
pub(super) struct SparseReader {
    query: SparseQuery,
    plan: SparsePlan,
    position: Position,
    /// Cells in front of the position, of which batches are made first.
    window: Option<CellWindow>,
    /// Cells that its batches have looked at. Where it ends after some cells, the next batch looks at
    /// as many as are still wanted, or, where a condition leaves most of them out, as many as all
    /// before it: so nothing much is read in vain, and nothing for long a little at a time.
    looked_at: u64,
}

impl SparseReader {
    /// Plans the read of a sparse array; reads nothing but metadata.
    pub async fn new(array: &Array, options: &BoundOptions, waiting: Waiting) -> Result<Self> {
        let query = SparseQuery::new(array, options, waiting).await?;
        let plan = SparsePlan::new(&query).await?;
        Ok(Self {
            query,
            plan,
            position: Position::default(),
            window: None,
            looked_at: 0,
        })
    }

    /// The next cells, at least one; `None` at the end.
    pub async fn next(&mut self, mut output: Output<'_, '_>) -> Result<Option<Batch>> {
        let wanted = output.wanted;
        loop {
            self.query.operation.check()?;
            if let Some(window) = &mut self.window {
                match window.next(&self.query, output.again()).await? {
                    Some(batch) => return Ok(Some(batch)),
                    None => self.window = None,
                }
            }
            let few = self.most_cells(&output).min(wanted.most);
            let enough = wanted.most.max(self.looked_at);
            let cluster = self.position.cluster;
            match self.steps(wanted).step(self.position.clone(), few, enough) {
                SparseStep::Done => return Ok(None),
                SparseStep::Batch(step) => {
                    // Bytes that may be under way before they are needed, while the batch is read.
                    let budget = &self.query.budget;
                    let room = budget.total.saturating_sub(step.cost).min(budget.prefetch);
                    self.prefetch(&step, room, wanted);
                    let to = output.again();
                    let cells = batch::read(&self.query, &step.portions, room, to).await?;
                    let (next, looked_at) = (step.next, step.cells);
                    self.position = next;
                    self.looked_at += looked_at;
                    if cells.is_some() {
                        return Ok(cells);
                    }
                }
                // What is known of tiles' places then may tell that fewer of them overlap.
                SparseStep::Window { .. } | SparseStep::TooMany { .. }
                    if self.plan.may_be_refined(&self.query, cluster) =>
                {
                    self.plan.refine(&self.query, cluster).await?;
                }
                SparseStep::Window { portion, next } => {
                    let (window, lowered) = window::open(&self.query, &portion, wanted).await?;
                    self.position = match lowered {
                        Some(_) => self.position.behind(lowered),
                        None => next,
                    };
                    self.looked_at += window.cells();
                    self.window = Some(window);
                }
                SparseStep::TooMany { tiles, need } => {
                    let uri = self.query.array.uri();
                    return Err(Error::Budget {
                        what: format!("{tiles} overlapping tiles of {uri}"),
                        need,
                        budget: self.query.budget.total,
                    });
                }
            }
        }
    }

    /// How many of the fragments can be merged at a time without decoding each of their tiles too
    /// often; `None`: all of them.
    pub async fn merged_at_once(&mut self) -> Result<Option<usize>> {
        let room = self.query.budget.tiles.saturating_mul(DECODED_AT_MOST - 1);
        let mut deepest = Overlap::default();
        let mut cluster = 0;
        while let Some(next) = self.plan.clusters.get(cluster) {
            let cost = cost_of(&self.plan.remaining(next, None));
            if next.keyed && cost > self.query.budget.total {
                // It may fall into several.
                if self.plan.may_be_refined(&self.query, cluster) {
                    self.plan.refine(&self.query, cluster).await?;
                    continue;
                }
                if let Some(next) = self.plan.clusters.get(cluster) {
                    let overlap = Overlap::of(self.plan.tiles_of(next));
                    deepest = deepest.max(overlap);
                }
            }
            cluster += 1;
        }
        let all = self.query.fragments.len();
        // A part that was merged may be a little larger than was thought: then it is no more work.
        let is_far = deepest.bytes > room.saturating_add(room / 4);
        Ok(is_far.then(|| deepest.within(room, all)))
    }

    fn steps(&self, wanted: WantedBatch) -> SparseSteps<'_> {
        SparseSteps {
            wanted,
            query: &self.query,
            plan: &self.plan,
        }
    }

    /// Cells that the next batch may have where it is not a small one.
    fn most_cells(&self, output: &Output<'_, '_>) -> u64 {
        let fields = &self.query.fields;
        match output.room().filter(|_| self.query.fetcher.streams()) {
            None => u64::MAX,
            // How many bytes they have is not known before.
            Some(_) if fields.iter().any(|field| field.column_type.is_var()) => 0,
            Some(room) => room as u64,
        }
    }

    /// Asks for what a batch needs, and then for what the one after it needs.
    fn prefetch(&self, step: &BatchStep<'_>, room: u64, wanted: WantedBatch) {
        if self.query.fetcher.streams() {
            return;
        }
        batch::prefetch(&self.query, &step.portions, room);
        // Along a Hilbert curve the plan may be refined before that; and of few cells this batch
        // may have enough.
        if self.query.order.curve().is_none()
            && wanted.most == u64::MAX
            && let SparseStep::Batch(later) =
                self.steps(wanted)
                    .step(step.next.clone(), u64::MAX, u64::MAX)
        {
            batch::prefetch(&self.query, &later.portions, room);
        }
    }

    /// Offers the tiles all of whose cells are results, by metadata alone: nothing in them is
    /// replaced, deleted, tested or left out. Those that are taken are not read.
    pub async fn take_whole(&mut self, whole: &mut dyn WholeTiles) -> Result<()> {
        let clusters = self.plan.clusters.iter();
        let tiles: Vec<Option<WholeTile>> = clusters.map(|c| self.whole_tile(c)).collect();
        let mut takes = offer(&self.query.fetcher, whole, &tiles).await?.into_iter();
        let clusters = &mut self.plan.clusters;
        clusters.retain(|_| takes.next() != Some(true));
        Ok(())
    }

    /// Leaves nothing to be read but whole tiles, by fragment and index.
    pub fn keep_only(&mut self, tiles: &BTreeSet<(usize, usize)>) {
        let mut clusters = std::mem::take(&mut self.plan.clusters);
        clusters.retain(|cluster| {
            let tile = self.whole_tile(cluster);
            tile.is_some_and(|tile| tiles.contains(&(tile.fragment, tile.tile)))
        });
        self.plan.clusters = clusters;
    }

    /// The tile of a cluster, if it is one tile all of whose cells are results.
    fn whole_tile(&self, cluster: &Cluster) -> Option<WholeTile> {
        let [tile] = self.plan.tiles_of(cluster) else {
            return None;
        };
        let of = self.query.fragments.get(tile.part)?;
        let untouched = tile.dimensions.is_empty()
            && tile.tests.is_empty()
            && !tile.no_results
            && of.within.is_none()
            && of.deleted_until.is_none();
        // A tile alone in its cluster needs keys for its order only, unless cells have versions.
        let single = !cluster.keyed || !of.repeats;
        (untouched && single).then(|| WholeTile {
            fragment: of.index,
            tile: tile.tile,
            cell_num: tile.cell_num.into(),
        })
    }
}

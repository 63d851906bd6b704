//! Reading dense arrays: batch after batch, each a contiguous piece of the result.

mod assemble;
mod bands;
mod condition;
mod cost;
mod cut;
mod mask_fill;
mod matching;
mod overlay;
mod plan;
mod points;
mod scatter;
mod stored;
mod var_column;
mod walk;
mod word_column;

use super::budget::{Budget, WantedBatch};
use super::decode::{Cells, TileRequest};
use super::fetch::Fetcher;
use super::load::load;
use super::output::{Batch, CallerMemory, Output, OutputMemory, batch_columns};
use super::whole_tiles::{WholeTile, WholeTiles, offer};
use super::{BoundOptions, bind};
use crate::array::Array;
use crate::column::{BatchColumns, ColumnSet};
use crate::condition::BoundCondition;
use crate::error::{Error, Result};
use crate::read::fetch::Waiting;
use crate::read::stored_tile::fragment_of;
use crate::space::copy::fill_cells;
use crate::space::{
    AxisSelection, FragmentGrid, Layout, Subarray, TileGrid, dimension_order, same_types,
    tiled_alike,
};
use assemble::{DenseQuery, Unmatched};
use azulejo_format::DecodeError;
use azulejo_format::fragment::{Field, Section};
use condition::DenseCondition;
use cut::Cutter;
use overlay::{Coordinates, OverlaidFragment, Overlay, OwnGrid};
use plan::{BatchPlan, DenseFragment, DensePlan, TileTask, field_in};
use std::ops::Range;
use walk::SelectionWalk;

/// A dense read under way.
#[derive(Debug)]
pub(super) struct DenseReader {
    query: DenseQuery,
    /// Whether cells that do not match, or that nobody wrote, are left out.
    matching_only: bool,
    walk: SelectionWalk,
    /// Cells that its batches have looked at. Where it ends after some cells, the next batch looks at
    /// as many as are still wanted, or, where a condition leaves most of them out, as many as all
    /// before it: so nothing much is read in vain, and nothing for long a little at a time.
    looked_at: u64,
}

impl DenseReader {
    /// Plans the read of a dense array; reads nothing but metadata.
    pub async fn new(array: &Array, options: &BoundOptions, waiting: Waiting) -> Result<Self> {
        let schema = array.schema();
        let grid = TileGrid::new(schema)?;
        let selection = selection(array, &grid, options)?;
        let mut fields = options.fields.clone();
        let asked = fields.len();
        let condition = options.bound_condition(array)?;
        let mut plan = DensePlan {
            grid,
            selection,
            sources: Vec::new(),
        };
        let overlaid = add_fragments(array, &mut plan)?;
        // Where no fragment lacks a field, nobody looks at one that is tested for what all its cells meet.
        let dense = plan.sources.iter().map(|source| source.fragment);
        let used = dense.chain(overlaid.iter().map(|source| source.fragment));
        let used: Vec<usize> = used.collect();
        let condition = condition.map(|bound| {
            let fits = used.iter().all(|index| {
                let fragment = array.fragments().get(*index);
                fragment.is_none_or(|f| bound.fits(f.schema(), f.relabelled()))
            });
            match fits {
                true => bound.for_fragment(schema, &[]),
                false => bound,
            }
        });
        for name in condition.iter().flat_map(BoundCondition::fields) {
            if !fields.iter().any(|f| f.column_type.name == *name) {
                fields.push(bind::field(array, name)?);
            }
        }
        let ascending = plan.is_ascending();
        // Where cells that nobody wrote are no results, nobody walks through what lies between
        // fragments: that may be nearly all of a domain.
        if options.matching_only && matches!(options.subarray, Subarray::Box(_)) {
            keep_written(&mut plan, &overlaid)?;
        }
        let budget = Budget::dense(options.memory_budget, options.batch_bytes);
        let pool = array.context().buffers().with_load_limit(budget.total);
        let fetcher = Fetcher::new(array, waiting, pool).counted(&options.counts);

        // What planning and decoding will look at.
        let mut indices = Vec::new();
        for index in used {
            let found = fields.iter().filter_map(|of| field_in(array, index, of));
            indices.extend(found.map(|field| (index, field)));
        }
        let stored = |source: &&OverlaidFragment| matches!(source.coordinates, Coordinates::Stored);
        let stored = || overlaid.iter().filter(stored);
        for source in stored() {
            indices.extend((0..plan.grid.ndim()).map(|d| (source.fragment, Field::Dimension(d))));
        }
        let mut sections = fetcher.offset_sections(indices)?;
        let condition = condition.map(|bound| {
            let dense = plan.sources.iter().map(|source| source.fragment);
            let (condition, stats) = DenseCondition::new(array, bound, dense);
            sections.extend(stats);
            condition
        });
        sections.extend(stored().map(|s| (s.fragment, Section::RTree)));
        fetcher.metadata(&sections).await?;

        let order = match options.layout {
            Layout::Global | Layout::Unordered => plan.grid.cell_order().to_vec(),
            layout => dimension_order(layout, plan.grid.ndim()),
        };
        let walk = match &options.subarray {
            Subarray::Points(points) => SelectionWalk::Points {
                points: points.clone(),
                next: 0,
                len: points.len(schema),
            },
            Subarray::Box(_)
                if options.layout == Layout::Global
                    || options.layout == Layout::Unordered && ascending =>
            {
                if !ascending {
                    return Err(Error::InvalidArgument(
                        "global order needs ranges that ascend and do not overlap; ask for row-major order"
                            .into(),
                    ));
                }
                let empty = plan.selection.iter().any(|s| s.len() == 0);
                let next = (!empty).then(|| vec![0; plan.grid.ndim()]);
                SelectionWalk::Tiles {
                    cutter: Cutter::default(),
                    next,
                }
            }
            Subarray::Box(_) => SelectionWalk::Box(Cutter::new(plan.everything(), &order)),
        };
        let query = DenseQuery {
            array: array.clone(),
            plan,
            overlaid,
            fields,
            asked,
            condition,
            order,
            budget,
            fetcher,
            operation: array.context().begin(),
        };
        Ok(Self {
            query,
            matching_only: options.matching_only,
            walk,
            looked_at: 0,
        })
    }

    /// The next cells, at least one; `None` at the end.
    pub async fn next(&mut self, output: Output<'_, '_>) -> Result<Option<Batch>> {
        self.query.operation.check()?;
        if self.matching_only {
            return Ok(self.next_matching(&output).await?.map(Batch::Own));
        }
        let wanted = output.wanted;
        let is_direct = self.is_direct();
        if is_direct && output.is_full() && !self.walk.is_done() {
            return Ok(Some(Batch::NoRoom));
        }

        // 1. The plan, and the prefetch of what it needs.
        let room = output.room().filter(|room| is_direct && *room > 0);
        let small = output.caller.is_some();
        let plan = match room {
            Some(room) => self.next_plan(room as u64, false).await?,
            None => {
                let most = self.batch_cells(wanted).min(wanted.most);
                self.next_plan(most, small).await?
            }
        };
        let Some(plan) = plan else { return Ok(None) };
        if room.is_none() {
            self.prefetch(&plan, wanted)?;
        }

        // 2. The cells.
        let caller = output.caller.filter(|_| room.is_some());
        let filling = self.cells(&plan, caller, Unmatched::Fill, wanted.words);
        Ok(Some(filling.await?.0))
    }

    /// The cells of a plan in their order, and which cells of the plan match the condition, if there is
    /// one.
    async fn cells(
        &self,
        plan: &BatchPlan,
        caller: Option<CallerMemory<'_, '_>>,
        unmatched: Unmatched,
        words: bool,
    ) -> Result<(Batch, Option<Vec<u8>>)> {
        let fields = self.query.fields.get(..self.query.asked).unwrap_or(&[]);
        let mut memory = match caller {
            Some(memory) => OutputMemory::Caller(memory),
            None => OutputMemory::own(fields, &[], (plan.cells, 0), self.query.fetcher.pool())?,
        };
        let outs = memory.outs(fields, plan.cells)?;
        let (made, matching) = self.query.cells(plan, outs, unmatched, words).await?;
        let batch = match (memory.finish(fields, plan.cells, &[], made)?, &plan.order) {
            (Batch::Own(cells), Some(order)) => Batch::Own(cells.pick(order)?),
            (batch, _) => batch,
        };
        Ok((batch, matching))
    }

    /// The next cells that some fragment has and that match the condition.
    async fn next_matching(&mut self, output: &Output<'_, '_>) -> Result<Option<BatchColumns>> {
        let wanted = output.wanted;
        let small = output.caller.is_some();
        // A tile is decoded for one of its cells as for all of them.
        let least = match self.query.condition {
            Some(_) => self.query.plan.grid.tile_cells(),
            None => 1,
        };
        // Where reads have a high latency, the tiles of a batch travel together: the more the better.
        let largest = match self.query.fetcher.streams() {
            true => self
                .batch_cells(wanted)
                .max(self.query.plan.grid.tile_cells()),
            false => u64::MAX,
        };
        loop {
            let cells = wanted.most.max(self.looked_at).max(least).min(largest);
            let next = self.next_cells(cells, small, wanted.words, None);
            let Some((columns, mask, _)) = next.await? else {
                return Ok(None);
            };
            // Nothing of a batch is read all of whose tiles were left out.
            self.looked_at = self.looked_at.saturating_add(match mask.len() {
                0 => cells,
                read => read as u64,
            });
            if mask.contains(&1) {
                return columns.compact(&mask).map(Some);
            }
        }
    }

    /// The next cells as they are, at most so many, and for each whether some fragment has it and it
    /// matches the condition. Then how many cells that was: none of them comes where no fragment has
    /// one.
    ///
    /// `whole` is offered every tile that the batch needs all cells of, each once. Those that it
    /// takes are not read, and count as cells that no fragment has.
    pub async fn next_cells(
        &mut self,
        most: u64,
        small: bool,
        words: bool,
        whole: Option<&mut dyn WholeTiles>,
    ) -> Result<Option<(BatchColumns, Vec<u8>, u64)>> {
        let Some(mut batch) = self.next_plan(most, small).await? else {
            return Ok(None);
        };
        let walked = batch.cells as u64;
        // Points and overlapping ranges may take one cell twice and leave out another.
        let in_order = !matches!(self.walk, SelectionWalk::Points { .. });
        let once = in_order && self.query.plan.is_ascending();
        let taken = match whole {
            Some(whole) if once && self.query.condition.is_none() => {
                self.take_whole(&mut batch, whole).await?
            }
            _ => Vec::new(),
        };
        if batch.tasks.is_empty() {
            return Ok(Some((ColumnSet::default().into(), Vec::new(), walked)));
        }
        let mut mask = vec![1; batch.cells];
        let all = 0..batch.cells;
        for copies in taken {
            let copies = batch.copies.get(copies);
            fill_cells(&batch.copies, copies, &[0], &mut mask, &all)?;
        }
        fill_cells(&batch.fills, batch.fills.all(), &[0], &mut mask, &all)?;

        let filling = self.cells(&batch, None, Unmatched::Stay, words);
        let (cells, matching) = filling.await?;
        for (mask, matches) in mask.iter_mut().zip(matching.into_iter().flatten()) {
            *mask &= matches;
        }
        if let Some(order) = &batch.order {
            let of = |cell: &usize| mask.get(*cell).copied().unwrap_or(0);
            mask = order.iter().map(of).collect();
        }
        Ok(Some((batch_columns(cells)?, mask, walked)))
    }

    /// Offers the tiles that a batch needs all cells of; gives back the copies of those taken.
    async fn take_whole(
        &self,
        batch: &mut BatchPlan,
        whole: &mut dyn WholeTiles,
    ) -> Result<Vec<Range<usize>>> {
        let whole_tile = |task: &TileTask| {
            let fragment = self.query.array.fragments().get(task.fragment);
            let cell_num = fragment.filter(|f| f.is_dense())?.tile_cell_num(task.tile);
            let tile = usize::try_from(task.tile).ok()?;
            (batch.cells_of(task) == cell_num).then_some(WholeTile {
                fragment: task.fragment,
                tile,
                cell_num,
            })
        };
        let tiles: Vec<Option<WholeTile>> = batch.tasks.iter().map(whole_tile).collect();
        let takes = offer(&self.query.fetcher, whole, &tiles).await?;
        let tasks = std::mem::take(&mut batch.tasks).into_iter().zip(takes);
        let (taken, left): (Vec<_>, Vec<_>) = tasks.partition(|(_, takes)| *takes);
        batch.tasks = left.into_iter().map(|(task, _)| task).collect();
        Ok(taken.into_iter().map(|(task, _)| task.copies).collect())
    }

    /// Whether cells can go straight to a caller's memory: they come in the order of the result,
    /// and no tiles are fetched again for every few cells.
    fn is_direct(&self) -> bool {
        let in_order = !matches!(self.walk, SelectionWalk::Points { .. });
        let once = self.query.condition.is_none() || self.query.fetcher.streams();
        in_order && once && !self.query.fields.iter().any(|f| f.column_type.is_var())
    }

    /// Cells of a batch for the caller to keep.
    fn batch_cells(&self, wanted: WantedBatch) -> u64 {
        let fields = self.query.fields.iter();
        let cell = fields.fold(1, |sum, f| sum + f.column_type.cell_size().max(8) as u64);
        (self.query.budget.batch_of(wanted) / cell).max(1)
    }

    /// Asks for the tiles of a batch, and then for those of the one after it.
    fn prefetch(&self, plan: &BatchPlan, wanted: WantedBatch) -> Result<()> {
        // Which cells are overlaid is looked at when a batch is planned.
        if self.query.fetcher.streams() || !self.query.overlaid.is_empty() {
            return Ok(());
        }
        self.query.prefetch(plan)?;
        let left = wanted.most.saturating_sub(plan.cells as u64);
        if matches!(self.walk, SelectionWalk::Points { .. }) || left == 0 {
            return Ok(());
        }
        let most = self.batch_cells(wanted).min(left);
        let later = self.walk.clone().next(&self.query.costs(), most, false);
        // Who comes to it is told what is wrong with it.
        if let Ok(Some(mut later)) = later {
            self.prune(&mut later);
            self.query.prefetch(&later)?;
        }
        Ok(())
    }

    /// Plans the next batch of at most `max_cells` cells; a small one, if that is wanted and threads
    /// read what they decode: it is looked at, or copied to memory that may have no room for all of
    /// it, while it is in a cache.
    async fn next_plan(&mut self, max_cells: u64, small: bool) -> Result<Option<BatchPlan>> {
        self.query.operation.check()?;
        let (costs, small) = (self.query.costs(), small && self.query.fetcher.streams());
        let Some(mut batch) = self.walk.next(&costs, max_cells, small)? else {
            return Ok(None);
        };
        if !self.query.overlaid.is_empty() {
            batch = self.overlay(batch).await?;
        }
        self.prune(&mut batch);
        let counts = self.query.fetcher.counts();
        counts.add_tiles(batch.tasks.len());
        counts.add_pruned(batch.pruned);
        Ok(Some(batch))
    }

    /// Leaves out the tiles of which no cell can match the condition.
    fn prune(&self, batch: &mut BatchPlan) {
        if let Some(condition) = &self.query.condition {
            condition.prune(&self.query.array, batch);
        }
    }

    /// The plan with the cells of overlaid fragments in it, each where no later fragment has a
    /// cell.
    async fn overlay(&self, batch: BatchPlan) -> Result<BatchPlan> {
        let mut overlay = Overlay::new(&self.query.plan, batch)?;
        for source in &self.query.overlaid {
            if !overlay.touches(source) {
                continue;
            }
            if let Coordinates::Computed(own) = &source.coordinates {
                overlay.add_computed(source.fragment, own)?;
                continue;
            }
            for tile in 0..fragment_of(&self.query.array, source.fragment)?.tile_num() {
                let dimensions = self.query.plan.grid.ndim();
                let requests =
                    TileRequest::coordinates(source.fragment, tile, dimensions, &Cells::All);
                let requests: Vec<_> = requests.collect();
                let coordinates = load(&self.query.fetcher, &requests, Vec::new()).await?;
                overlay.add_stored(source, tile, &coordinates)?;
            }
        }
        Ok(overlay.finish())
    }
}

/// Spans of offsets along a dimension that a selection is cut to.
const MOST_SPANS: usize = 256;

/// Leaves out of a selection, along each dimension, the offsets at which no fragment has cells.
fn keep_written(plan: &mut DensePlan, overlaid: &[OverlaidFragment]) -> Result<()> {
    for d in 0..plan.grid.ndim() {
        let dense = plan.sources.iter();
        let dense = dense.filter_map(|source| source.grid.bounds().get(d).copied());
        let others = overlaid.iter();
        let others = others.filter_map(|source| source.bounds.get(d).copied());
        let mut bounds: Vec<(u64, u64)> = dense.chain(others).collect();
        bounds.sort_unstable();
        let mut spans = joined(&bounds, 1);
        if spans.len() > MOST_SPANS {
            // The widest gaps stay.
            let gaps = spans.iter().zip(spans.iter().skip(1));
            let mut gaps: Vec<u64> = gaps.map(|(a, b)| b.0 - a.1).collect();
            gaps.sort_unstable_by(|a, b| b.cmp(a));
            let near = gaps.get(MOST_SPANS - 1).copied().unwrap_or(1);
            spans = joined(&spans, near);
        }
        plan.selection[d] = plan.selection[d].within(&spans)?;
    }
    Ok(())
}

/// Spans, which ascend by where they begin, as fewer: one where the next begins no more than `near`
/// behind the end of those before.
fn joined(spans: &[(u64, u64)], near: u64) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for &(low, high) in spans {
        match joined.last_mut() {
            Some(last) if low.saturating_sub(last.1) <= near => last.1 = last.1.max(high),
            _ => joined.push((low, high)),
        }
    }
    joined
}

/// What is selected along each dimension: within the current domain, unless every cell that is stored
/// is asked for.
fn selection(array: &Array, grid: &TileGrid, options: &BoundOptions) -> Result<Vec<AxisSelection>> {
    let schema = array.schema();
    match &options.subarray {
        Subarray::Box(selections) => {
            let current = schema.current_domain.ranges().filter(|_| !options.versions);
            let within = |d: usize| current.and_then(|ranges| ranges.get(d));
            let dimensions = schema.domain.dimensions.iter().zip(grid.axes());
            let axes = dimensions.zip(selections).enumerate();
            let axes = axes.map(|(d, ((dimension, axis), selection))| {
                AxisSelection::resolve(dimension, axis, selection, within(d))
            });
            axes.collect()
        }
        Subarray::Points(_) => grid.axes().iter().map(AxisSelection::whole).collect(),
    }
}

/// Adds the dense fragments that hold selected cells to a plan; those that have to be laid over it
/// are the result.
fn add_fragments(array: &Array, plan: &mut DensePlan) -> Result<Vec<OverlaidFragment>> {
    let schema = array.schema();
    let mut overlaid = Vec::new();
    for (index, fragment) in array.fragments().iter().enumerate() {
        let Some(rectangle) = &fragment.footer().non_empty_domain else {
            continue;
        };
        let damaged = |reason: &str| {
            let source = DecodeError::invalid("non-empty domain", 0, reason);
            Error::decode(fragment.name(), source)
        };
        if !same_types(fragment.schema(), schema) {
            return Err(Error::SchemaMismatch(format!(
                "fragment {} has dimensions of other types than the array",
                fragment.name()
            )));
        }
        // What lies outside the domain, as where a smaller array was written over this one,
        // cannot be selected.
        let Some(bounds) = plan.grid.offsets_within(rectangle) else {
            continue;
        };
        let apart =
            |(selection, (low, high)): (&AxisSelection, &(u64, u64))| match selection.bounds() {
                Some((first, last)) => first > *high || last < *low,
                None => true,
            };
        if plan.selection.iter().zip(&bounds).any(apart) {
            continue;
        }
        let too_many = || damaged("it has too many tiles");
        let grid = if !fragment.is_dense() {
            Err(Coordinates::Stored)
        } else if tiled_alike(fragment.schema(), schema) {
            Ok(FragmentGrid::new(&plan.grid, bounds.clone()).ok_or_else(too_many)?)
        } else {
            let own = TileGrid::new(fragment.schema())?;
            let outside = || damaged("it leaves the domain of its schema");
            let tiles = own.offsets_of(rectangle).ok_or_else(outside)?;
            let tiles = FragmentGrid::new(&own, tiles).ok_or_else(too_many)?;
            let seen = tiles.seen_from(&plan.grid, &own, bounds.clone());
            seen.ok_or_else(|| Coordinates::Computed(Box::new(OwnGrid { grid: own, tiles })))
        };
        let fragment = index;
        match grid {
            Ok(grid) => plan.sources.push(DenseFragment { fragment, grid }),
            Err(coordinates) => overlaid.push(OverlaidFragment {
                fragment,
                bounds,
                coordinates,
            }),
        }
    }
    Ok(overlaid)
}

//! Reading dense arrays: batch after batch, each a contiguous piece of the result.

mod assemble;
mod bands;
mod cut;
mod mask;
mod overlay;
mod plan;
mod points;
mod scatter;
mod stored;

use super::fetch::preload_indices;
use super::output::var::FieldOut;
use super::prefetch::Prefetch;
use super::tile_statistics::field_stats;
use super::{BoundField, BoundOptions, CALLER_BATCH_BYTES, Progress, bind};
use crate::array::{Array, Fragment};
use crate::buffer_pool::BufferPool;
use crate::cancel::Operation;
use crate::column::{ColumnMut, ColumnSet};
use crate::condition::{BoundCondition, Tri};
use crate::error::{Error, Result};
use crate::space::copy::fill_cells;
use crate::space::{
    AxisSelection, FragmentGrid, Layout, Points, Subarray, TileGrid, dimension_order, same_types,
    tiled_alike,
};
use assemble::Assembler;
use azulejo_format::DecodeError;
use azulejo_format::fragment::{Field, Section};
use cut::Cutter;
use overlay::{Coordinates, OverlaidFragment, OwnGrid, overlay};
use plan::{BatchPlan, DenseFragment, DensePlan, PositionBox};
use points::point_batch;
use std::collections::HashMap;
use std::ops::Range;

/// A condition that cells must meet, others read as fill values.
#[derive(Debug)]
pub(super) struct DenseCondition {
    pub condition: BoundCondition,
    /// What it means in each dense fragment that has all its fields, which are attributes: held
    /// against the statistics of tiles.
    tests: HashMap<usize, (BoundCondition, Vec<Field>)>,
}

impl DenseCondition {
    /// Prepares to hold the condition against the tiles of fragments.
    fn prepare(&mut self, array: &Array, fragments: impl Iterator<Item = usize>) -> Result<()> {
        let mut sections = Vec::new();
        for index in fragments {
            let Some(fragment) = array.fragments().get(index) else {
                continue;
            };
            let condition = self.condition.for_fragment(fragment.schema());
            let fields = condition.fields().iter().map(|name| fragment.field(name));
            let attribute =
                |field: Option<Field>| field.filter(|f| matches!(f, Field::Attribute(_)));
            let Some(fields) = fields.map(attribute).collect::<Option<Vec<Field>>>() else {
                continue;
            };
            for field in &fields {
                let stats: [fn(Field) -> Section; 4] = [
                    Section::TileMins,
                    Section::TileMaxs,
                    Section::TileSums,
                    Section::TileNullCounts,
                ];
                sections.extend(stats.map(|section| (index, section(*field))));
            }
            self.tests.insert(index, (condition, fields));
        }
        array.preload(&sections)
    }

    /// Makes cells of tiles of which none can meet the condition into cells that no fragment has:
    /// they read the same, and the tiles are not read.
    fn prune(&self, array: &Array, batch: &mut BatchPlan) -> Result<()> {
        let mut left = Vec::with_capacity(batch.tasks.len());
        for task in std::mem::take(&mut batch.tasks) {
            if self.excludes(array, task.fragment, task.tile)? {
                batch.fills.append(&batch.copies, task.copies);
            } else {
                left.push(task);
            }
        }
        batch.tasks = left;
        Ok(())
    }

    fn excludes(&self, array: &Array, index: usize, tile: u64) -> Result<bool> {
        let (Some((condition, fields)), Some(fragment)) =
            (self.tests.get(&index), array.fragments().get(index))
        else {
            return Ok(false);
        };
        let Ok(place) = usize::try_from(tile) else {
            return Ok(false);
        };
        let stats = fields
            .iter()
            .map(|field| field_stats(fragment, *field, place, fragment.tile_cell_num(tile)));
        let stats = stats.collect::<Result<Vec<_>>>()?;
        Ok(condition.prune(&|i| stats.get(i).copied().flatten()) == Tri::AllFalse)
    }
}

/// A dense read under way.
#[derive(Debug)]
pub(crate) struct DenseReader {
    array: Array,
    /// The columns asked for, then those that only the condition needs.
    fields: Vec<BoundField>,
    /// How many were asked for.
    asked: usize,
    condition: Option<DenseCondition>,
    plan: DensePlan,
    /// Fragments whose tiles are not those of the grid, oldest first.
    overlaid: Vec<OverlaidFragment>,
    walk: Walk,
    /// Dimensions from slowest to fastest, in the result (in a tile, for global order).
    order: Vec<usize>,
    pool: BufferPool,
    budget: u64,
    /// A batch for the caller to keep takes no more than this.
    batch_bytes: u64,
    /// Whether batches are copied to the caller's memory, who may not have room for all of their
    /// cells: then they are small where that costs nothing.
    held: bool,
    /// Tiles that were asked for before they are needed.
    prefetch: Option<Prefetch>,
    /// The read, which can be cancelled.
    operation: Operation,
    /// The next batch, if its tiles were asked for already, and what was left to read before it was
    /// planned.
    planned: Option<(Result<BatchPlan>, Walk)>,
}

/// What is left to read.
#[derive(Debug, Clone)]
enum Walk {
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

impl DenseReader {
    /// Plans the read of a dense array; reads nothing but metadata.
    pub(crate) fn new(array: &Array, options: &BoundOptions) -> Result<Self> {
        let schema = array.schema();
        let grid = TileGrid::new(schema)?;
        let selection = match &options.subarray {
            Subarray::Box(selections) => {
                let current = schema.current_domain.ranges();
                let within = |d: usize| current.and_then(|ranges| ranges.get(d));
                let axes = schema
                    .domain
                    .dimensions
                    .iter()
                    .zip(grid.axes())
                    .zip(selections)
                    .enumerate();
                axes.map(|(d, ((dimension, axis), s))| {
                    AxisSelection::resolve(dimension, axis, s, within(d))
                })
                .collect::<Result<Vec<_>>>()?
            }
            Subarray::Points(_) => grid
                .axes()
                .iter()
                .map(AxisSelection::whole)
                .collect::<Result<_>>()?,
        };
        let mut fields = options.fields.clone();
        let asked = fields.len();
        let mut condition = match &options.condition {
            Some(condition) => {
                let bound =
                    BoundCondition::bind(condition, schema, &|name| array.enumeration(name))?;
                for name in bound.fields() {
                    if !fields.iter().any(|f| f.column_type.name == *name) {
                        fields.push(bind::field(array, name)?);
                    }
                }
                Some(DenseCondition {
                    condition: bound,
                    tests: HashMap::new(),
                })
            }
            None => None,
        };

        let mut plan = DensePlan {
            grid,
            selection,
            sources: Vec::new(),
        };
        let mut overlaid = Vec::new();
        for (index, fragment) in array.fragments().iter().enumerate() {
            let Some(rectangle) = &fragment.footer().non_empty_domain else {
                continue;
            };
            let damaged = |reason: &str| {
                let reason = reason.to_owned();
                Error::decode(
                    fragment.name(),
                    DecodeError::invalid("non-empty domain", 0, reason),
                )
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
            let apart = |(selection, (low, high)): (&AxisSelection, &(u64, u64))| match selection
                .bounds()
            {
                Some((first, last)) => first > *high || last < *low,
                None => true,
            };
            if plan.selection.iter().zip(&bounds).any(apart) {
                continue;
            }
            if !fragment.is_dense() {
                overlaid.push(OverlaidFragment {
                    fragment: index,
                    bounds,
                    coordinates: Coordinates::Stored,
                });
                continue;
            }
            if tiled_alike(fragment.schema(), schema) {
                let grid = FragmentGrid::new(&plan.grid, bounds)
                    .ok_or_else(|| damaged("it has too many tiles"))?;
                plan.sources.push(DenseFragment {
                    fragment: index,
                    grid,
                });
                continue;
            }
            let own = TileGrid::new(fragment.schema())?;
            let tiles = own
                .offsets_of(rectangle)
                .ok_or_else(|| damaged("it leaves the domain of its schema"))
                .map(|bounds| FragmentGrid::new(&own, bounds))?
                .ok_or_else(|| damaged("it has too many tiles"))?;
            if let Some(grid) = tiles.seen_from(&plan.grid, &own, bounds.clone()) {
                plan.sources.push(DenseFragment {
                    fragment: index,
                    grid,
                });
            } else {
                overlaid.push(OverlaidFragment {
                    fragment: index,
                    bounds,
                    coordinates: Coordinates::Computed(Box::new(OwnGrid { grid: own, tiles })),
                });
            }
        }
        let mut indices = Vec::new();
        let fragments = plan
            .sources
            .iter()
            .map(|s| s.fragment)
            .chain(overlaid.iter().map(|s| s.fragment));
        for index in fragments {
            for bound in &fields {
                if let Some(field) = field_in(array, index, bound) {
                    indices.push((index, field));
                }
            }
        }
        let stored = || overlaid.iter().filter(|s| s.coordinates.are_stored());
        for source in stored() {
            indices.extend((0..plan.grid.ndim()).map(|d| (source.fragment, Field::Dimension(d))));
        }
        preload_indices(array, &indices)?;
        if let Some(condition) = &mut condition {
            condition.prepare(array, plan.sources.iter().map(|s| s.fragment))?;
        }
        let trees: Vec<_> = stored().map(|s| (s.fragment, Section::RTree)).collect();
        array.preload(&trees)?;

        let order = match options.layout {
            Layout::Global | Layout::Unordered => plan.grid.cell_order().to_vec(),
            layout => dimension_order(layout, plan.grid.ndim()),
        };
        let ascending = plan.selection.iter().all(AxisSelection::is_ascending);
        let walk = match &options.subarray {
            Subarray::Points(points) => Walk::Points {
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
                Walk::Tiles {
                    cutter: Cutter::finished(),
                    next,
                }
            }
            Subarray::Box(_) => Walk::Box(Cutter::new(plan.everything(), &order)),
        };
        let budget = options.memory_budget;
        let pool = array.context().buffers().with_load_limit(budget);
        let batch_bytes = super::BATCH_BYTES;
        Ok(Self {
            array: array.clone(),
            fields,
            asked,
            condition,
            plan,
            overlaid,
            walk,
            order,
            pool,
            budget,
            batch_bytes,
            held: false,
            prefetch: Prefetch::of(array),
            operation: array.context().begin(),
            planned: None,
        })
    }

    /// Lets batches be as large as the budget allows, for a caller who wants all cells in one
    /// piece.
    pub(crate) fn prefer_few_batches(&mut self) {
        self.batch_bytes = u64::MAX;
    }

    /// Lets batches be small, for a caller who copies them to where there may be little room.
    pub(crate) fn prefer_small_batches(&mut self) {
        self.held = self.prefetch.is_none();
    }

    /// Cells of a batch for the caller to keep.
    fn batch_cells(&self) -> u64 {
        let cell = self
            .fields
            .iter()
            .fold(1, |sum, f| sum + f.column_type.cell_size().max(8) as u64);
        (self.batch_bytes / cell).max(1)
    }

    /// The next cells, at least one; `None` at the end.
    pub(crate) fn next_batch(&mut self) -> Result<Option<ColumnSet>> {
        self.operation.check()?;
        let plan = match self.planned.take() {
            Some((plan, _)) => plan?,
            None => match self.next_plan(self.batch_cells())? {
                Some(plan) => plan,
                None => return Ok(None),
            },
        };
        self.start_reads(&plan)?;
        self.assembler().columns(&plan).map(Some)
    }

    /// Asks for the tiles of a batch, and then for those of the one after it.
    fn start_reads(&mut self, plan: &BatchPlan) -> Result<()> {
        // Which cells are overlaid is looked at when a batch is planned.
        if self.prefetch.is_none() || !self.overlaid.is_empty() {
            return Ok(());
        }
        self.assembler().start(plan)?;
        if matches!(self.walk, Walk::Points { .. }) || self.is_done() {
            return Ok(());
        }
        let before = self.walk.clone();
        if let Some(later) = self.next_plan(self.batch_cells()).transpose() {
            if let Ok(later) = &later {
                self.assembler().start(later)?;
            }
            self.planned = Some((later, before));
        }
        Ok(())
    }

    /// For aggregates: the next cells as they are, and for each whether some fragment has it and it
    /// meets the condition.
    ///
    /// `take` is offered every tile that the batch needs all cells of, each once, as fragment,
    /// index and number of cells. Those that it takes are not read, and count as cells that no
    /// fragment has.
    pub(crate) fn next_written(
        &mut self,
        take: &mut dyn FnMut(&Fragment, usize, u64) -> Result<bool>,
    ) -> Result<Option<(ColumnSet, Vec<u8>)>> {
        let Some(mut batch) = self.next_plan(u64::MAX)? else {
            return Ok(None);
        };
        // Points and overlapping ranges may take one cell twice and leave out another.
        let once = !matches!(self.walk, Walk::Points { .. })
            && self.plan.selection.iter().all(AxisSelection::is_ascending);
        let mut taken = Vec::new();
        if once && self.condition.is_none() {
            let mut left = Vec::with_capacity(batch.tasks.len());
            for task in std::mem::take(&mut batch.tasks) {
                let copies = batch.copies.get(task.copies.clone());
                let cells: usize = copies.iter().map(|copy| batch.copies.cells(copy)).sum();
                let whole = self
                    .array
                    .fragments()
                    .get(task.fragment)
                    .filter(|f| f.is_dense());
                let takes = match (whole, usize::try_from(task.tile)) {
                    (Some(fragment), Ok(tile))
                        if cells as u64 == fragment.tile_cell_num(task.tile) =>
                    {
                        take(fragment, tile, cells as u64)?
                    }
                    _ => false,
                };
                if takes {
                    taken.push(task.copies);
                } else {
                    left.push(task);
                }
            }
            batch.tasks = left;
        }
        if batch.tasks.is_empty() {
            return Ok(Some((ColumnSet::default(), Vec::new())));
        }
        let mut mask = vec![1; batch.cells];
        let all = 0..batch.cells;
        for copies in taken {
            fill_cells(
                &batch.copies,
                batch.copies.get(copies),
                &[0],
                &mut mask,
                &all,
            )?;
        }
        fill_cells(&batch.fills, batch.fills.all(), &[0], &mut mask, &all)?;
        let (columns, matching) = self.assembler().unmasked(&batch)?;
        for (mask, matches) in mask.iter_mut().zip(matching.into_iter().flatten()) {
            *mask &= matches;
        }
        if let Some(order) = &batch.order {
            let mask = order
                .iter()
                .map(|&cell| mask.get(cell).copied().unwrap_or(0))
                .collect();
            return Ok(Some((columns.pick(order)?, mask)));
        }
        Ok(Some((columns, mask)))
    }

    /// The next cells that some fragment has and that meet the condition.
    pub(crate) fn next_matching(&mut self) -> Result<Option<ColumnSet>> {
        while let Some((mut columns, mask)) = self.next_written(&mut |_, _, _| Ok(false))? {
            columns.columns.truncate(self.asked);
            if mask.contains(&1) {
                return columns.keep(&mask).map(Some);
            }
        }
        Ok(None)
    }

    /// Whether everything has been read.
    pub(crate) fn is_done(&self) -> bool {
        if self.planned.is_some() {
            return false;
        }
        match &self.walk {
            Walk::Box(cutter) => cutter.is_done(),
            Walk::Tiles { cutter, next } => cutter.is_done() && next.is_none(),
            Walk::Points { next, len, .. } => next >= len,
        }
    }

    /// Whether [`Self::read_fixed`] can serve the query.
    pub(crate) fn is_fixed(&self) -> bool {
        // Points are read in another order. Where reads are dear, tiles are not read again for
        // every few cells.
        let in_order = !matches!(self.walk, Walk::Points { .. });
        let plain = self.condition.is_none() || self.array.location().storage.latency().is_low();
        in_order && plain && !self.fields.iter().any(|f| f.column_type.is_var())
    }

    /// Reads the next cells straight into buffers that have room for `room` cells, behind those
    /// that `progress` counts.
    pub(crate) fn read_fixed(
        &mut self,
        columns: &mut [ColumnMut<'_>],
        room: usize,
        progress: &mut Progress,
    ) -> Result<()> {
        let Some(plan) = self.next_plan((room - progress.cells) as u64)? else {
            return Ok(());
        };
        let outs = FieldOut::in_columns(&self.fields, columns, plan.cells, progress)?;
        self.assembler().refilled_fixed(
            &plan,
            outs.into_iter().filter_map(FieldOut::fixed).collect(),
        )
    }

    fn assembler(&self) -> Assembler<'_> {
        Assembler {
            array: &self.array,
            plan: &self.plan,
            fields: &self.fields,
            asked: self.asked,
            condition: self.condition.as_ref(),
            pool: &self.pool,
            tile_bytes: self.budget / 4,
            prefetch: self.prefetch.as_ref(),
            operation: &self.operation,
        }
    }

    /// Plans the next batch of at most `max_cells` cells.
    fn next_plan(&mut self, max_cells: u64) -> Result<Option<BatchPlan>> {
        self.operation.check()?;
        if let Some((_, before)) = self.planned.take() {
            self.walk = before;
        }
        let Self {
            array,
            fields,
            condition,
            plan,
            overlaid,
            walk,
            order,
            budget,
            held,
            ..
        } = self;
        let costs = BatchCosts {
            array,
            fields,
            plan,
            budget: *budget,
            overlaid: !overlaid.is_empty(),
            masked: condition.is_some(),
        };
        let max_cells = max_cells.min(costs.max_cells());
        let mut batch = match walk {
            Walk::Box(cutter) => {
                if cutter.is_done() {
                    return Ok(None);
                }
                let cut = |costs: &BatchCosts<'_>, cutter: &mut Cutter| {
                    let mut fits = |piece: &PositionBox| costs.plan(piece, order, 0, 0);
                    cutter.next(max_cells.min(costs.max_cells()), &mut fits, &|d, r| {
                        align(plan, d, r)
                    })
                };
                let mut small = None;
                for budget in CALLER_BATCH_SCALES
                    .map(|scale| scale * CALLER_BATCH_BYTES)
                    .into_iter()
                    .filter(|_| *held)
                {
                    let costs = BatchCosts {
                        budget: budget.min(costs.budget),
                        ..costs
                    };
                    let mut probe = cutter.clone();
                    if let Some((piece, (batch, _))) = cut(&costs, &mut probe)?
                        && cuts_no_tile(plan, &piece)
                    {
                        *cutter = probe;
                        small = Some(batch);
                        break;
                    }
                }
                match small {
                    Some(batch) => batch,
                    None => match cut(&costs, cutter)? {
                        Some((_, (batch, _))) => batch,
                        None => return Err(costs.too_small()),
                    },
                }
            }
            Walk::Tiles { cutter, next } => {
                let mut batch = BatchPlan::default();
                let mut spent = 0;
                loop {
                    if cutter.is_done() {
                        let Some(at) = next.take() else { break };
                        let (tile, after) = tile_at(plan, &at);
                        *cutter = Cutter::new(tile, order);
                        *next = after;
                    }
                    let room = max_cells.saturating_sub(batch.cells as u64);
                    let start = batch.cells;
                    let mut fits = |piece: &PositionBox| costs.plan(piece, order, start, spent);
                    // A tile is cut only where it does not fit a batch of its own.
                    let whole_tile = batch.cells == 0;
                    let mut probe = cutter.clone();
                    match probe.next(room, &mut fits, &|_, r| r.end)? {
                        Some((_, (more, cost))) if whole_tile || probe.is_done() => {
                            batch.append(more);
                            spent += cost;
                            *cutter = probe;
                        }
                        None if whole_tile => return Err(costs.too_small()),
                        _ => break,
                    }
                    let enough = *held && spent >= CALLER_BATCH_BYTES;
                    if !cutter.is_done() || enough || batch.cells as u64 >= GLOBAL_BATCH_CELLS {
                        break;
                    }
                }
                if batch.cells == 0 {
                    return Ok(None);
                }
                batch
            }
            Walk::Points { points, next, len } => {
                if next >= len {
                    return Ok(None);
                }
                let mut count = (*len - *next)
                    .min(usize::try_from(max_cells).unwrap_or(usize::MAX))
                    .min(1 << 16);
                loop {
                    let batch = point_batch(array, plan, points, *next..*next + count, order)?;
                    if costs.of(&batch)? <= *budget {
                        *next += count;
                        break batch;
                    }
                    count /= 2;
                    if count == 0 {
                        return Err(costs.too_small());
                    }
                }
            }
        };
        if !overlaid.is_empty() {
            batch = overlay(array, plan, overlaid, batch, &self.pool)?;
        }
        if let Some(condition) = condition {
            condition.prune(array, &mut batch)?;
        }
        Ok(Some(batch))
    }
}

/// Where a small batch would cut tiles, it may be so many times as large.
const CALLER_BATCH_SCALES: [u64; 3] = [1, 2, 4];

/// Enough cells for a batch in global order: more would not be read faster.
const GLOBAL_BATCH_CELLS: u64 = 1 << 24;

/// The field of a fragment that holds the cells of a column; `None` if it has none of the same
/// type.
pub(super) fn field_in(array: &Array, fragment: usize, bound: &BoundField) -> Option<Field> {
    let Field::Attribute(_) = bound.field else {
        return None;
    };
    let fragment = array.fragments().get(fragment)?;
    let field = fragment.field(&bound.column_type.name)?;
    let same = field.layout(fragment.schema())
        == Some((bound.column_type.datatype, bound.column_type.cell_val_num))
        && field.is_nullable(fragment.schema()) == bound.column_type.nullable;
    same.then_some(field)
}

/// Where to end a box along a dimension instead of within a tile.
fn align(plan: &DensePlan, dimension: usize, positions: Range<u64>) -> u64 {
    let (Some(selection), Some(extent)) = (
        plan.selection.get(dimension),
        plan.grid.extents().get(dimension),
    ) else {
        return positions.end;
    };
    let tile = |position: u64| selection.offset_at(position) / extent;
    let last = tile(positions.end - 1);
    if tile(positions.end) != last {
        return positions.end;
    }
    // The first position of the last tile, if the selection ascends; anything in between is as good
    // otherwise.
    let (mut low, mut high) = (positions.start, positions.end - 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if tile(middle) < last {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Whether a box begins and ends between tiles along every dimension, or where the selection does.
fn cuts_no_tile(plan: &DensePlan, piece: &PositionBox) -> bool {
    let axes = plan.selection.iter().zip(plan.grid.extents()).zip(piece);
    axes.into_iter().all(|((selection, extent), positions)| {
        let tile = |position: u64| selection.offset_at(position) / extent;
        let between = |at: u64| at == 0 || at >= selection.len() || tile(at) != tile(at - 1);
        between(positions.start) && between(positions.end)
    })
}

/// The selected box of the tile that the positions `at` lie in, and where the next tile begins.
fn tile_at(plan: &DensePlan, at: &[u64]) -> (PositionBox, Option<Vec<u64>>) {
    let end = |d: usize| {
        let (selection, extent) = (&plan.selection[d], plan.grid.extents()[d]);
        let tile = selection.offset_at(at[d]) / extent;
        let (mut low, mut high) = (at[d], selection.len());
        // The first position behind the tile; there are at most `extent` positions in it.
        high = high.min(at[d].saturating_add(extent));
        while low < high {
            let middle = low + (high - low) / 2;
            if selection.offset_at(middle) / extent <= tile {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
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

/// What batches cost in memory.
#[derive(Clone, Copy)]
struct BatchCosts<'a> {
    array: &'a Array,
    fields: &'a [BoundField],
    plan: &'a DensePlan,
    budget: u64,
    /// Whether cells are laid over a plan one by one.
    overlaid: bool,
    /// Whether there is a condition.
    masked: bool,
}

impl BatchCosts<'_> {
    /// Bytes of a result's cell, values of var-length cells apart.
    fn cell_bytes(&self) -> u64 {
        let overlaid = if self.overlaid { 32 } else { 0 };
        self.fields
            .iter()
            .fold(overlaid + u64::from(self.masked), |sum, f| {
                let fixed = if f.column_type.is_var() {
                    8
                } else {
                    f.column_type.cell_size() as u64
                };
                sum.saturating_add(fixed)
                    .saturating_add(u64::from(f.column_type.nullable))
            })
    }

    /// Cells that leave a quarter of the budget for tiles.
    fn max_cells(&self) -> u64 {
        (self.budget - self.budget / 4) / self.cell_bytes().max(1)
    }

    fn too_small(&self) -> Error {
        let what = format!(
            "one cell of {} and the tile that holds it",
            self.array.uri()
        );
        let tile = self
            .fields
            .iter()
            .map(|f| f.column_type.cell_size() as u64)
            .max()
            .unwrap_or(0);
        let need = tile
            .saturating_mul(self.plan.grid.tile_cells())
            .saturating_add(self.cell_bytes());
        Error::Budget {
            what,
            need: need.max(self.budget.saturating_add(1)),
            budget: self.budget,
        }
    }

    /// The plan of a box that follows `start` other cells, and its cost, if that fits in the budget
    /// after `spent` bytes.
    fn plan(
        &self,
        piece: &PositionBox,
        order: &[usize],
        start: usize,
        spent: u64,
    ) -> Result<Option<(BatchPlan, u64)>> {
        // A plan itself takes memory: about 200 bytes a tile.
        let tiles = piece
            .iter()
            .enumerate()
            .map(|(d, r)| self.plan.tiles_along(d, r));
        let tiles = tiles.fold(1u64, u64::saturating_mul);
        if tiles.saturating_mul(200) > self.budget / 4 && tiles > 1 {
            return Ok(None);
        }
        let plan = self.plan.batch(piece.clone(), order, start)?;
        let cost = self.of(&plan)?;
        Ok((spent.saturating_add(cost) <= self.budget).then_some((plan, cost)))
    }

    /// An upper bound of the bytes that a batch holds at a time.
    fn of(&self, batch: &BatchPlan) -> Result<u64> {
        let cells = (batch.cells - batch.start) as u64;
        let mut cost = cells
            .saturating_mul(self.cell_bytes())
            .saturating_add(batch.memory());
        let mut most = 0u64;
        // Of fixed-length fields at least one tile is at hand at a time.
        for field in self.fields.iter().filter(|f| !f.column_type.is_var()) {
            for task in &batch.tasks {
                most = most.max(task.load_cost(self.array, field)?);
            }
        }
        let repeats = !self.plan.selection.iter().all(AxisSelection::is_ascending);
        for field in self.fields.iter().filter(|f| f.column_type.is_var()) {
            let mut loaded = 0u64;
            let fill = field.fill.bytes.len() as u64;
            cost = cost.saturating_add(fill.saturating_mul(cells));
            for task in &batch.tasks {
                loaded = loaded.saturating_add(task.load_cost(self.array, field)?);
                let Some(found) = field_in(self.array, task.fragment, field) else {
                    continue;
                };
                let Some(fragment) = self.array.fragments().get(task.fragment) else {
                    continue;
                };
                let times = if repeats { task.copies.len() as u64 } else { 1 };
                let bytes = fragment.var_tile_size(found, task.tile)?;
                cost = cost.saturating_add(bytes.saturating_mul(times));
            }
            most = most.max(loaded);
        }
        Ok(cost.saturating_add(most))
    }
}

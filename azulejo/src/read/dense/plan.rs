//! The plan of a dense read: which cells of which tiles go where. Pure arithmetic.
//!
//! A *position* counts selected offsets along a dimension; a box of positions is a piece of the
//! result. Within each tile that a box touches, fragments are visited from the newest to the
//! oldest: each takes what it has of the cells that are left, so that tiles which later fragments
//! hide are never read. What is left at the end is fill values.

use crate::array::Array;
use crate::error::{Error, Result};
use crate::read::BoundField;
use crate::read::bind::same_field;
use crate::read::decode::{Cells, TileRequest, load_cost};
use crate::space::copy::{Axis, Copy, CopyList};
use crate::space::{AxisSelection, FragmentGrid, Span, TileGrid};
use azulejo_format::fragment::Field;
use std::ops::Range;

/// A dense fragment that may have cells of the selection.
#[derive(Debug, Clone)]
pub(super) struct DenseFragment {
    /// Index in the array's fragments.
    pub fragment: usize,
    pub grid: FragmentGrid,
}

/// A box of positions, first and behind the last along each dimension.
pub(super) type PositionBox = Vec<Range<u64>>;

/// A tile that cells are copied from, and the copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TileTask {
    /// Index in the array's fragments.
    pub fragment: usize,
    /// Index of the tile in the fragment.
    pub tile: u64,
    /// The copies, in [`BatchPlan::copies`].
    pub copies: Range<usize>,
}

/// A box of positions and where its cells lie in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlacedBox {
    pub positions: PositionBox,
    /// Cells in front of it.
    pub base: usize,
    /// Number of its cells.
    pub cells: usize,
    /// Cells between neighbours along each dimension.
    pub strides: Vec<usize>,
}

/// What a batch of results is made of.
#[derive(Debug, Clone, Default)]
pub(super) struct BatchPlan {
    pub boxes: Vec<PlacedBox>,
    /// Number of cells, those in front included where the plan is to be appended to another.
    pub cells: usize,
    /// The tiles to read, in the order of the fragments' files as far as possible.
    pub tasks: Vec<TileTask>,
    pub copies: CopyList,
    /// Cells that no fragment has; `src` means nothing.
    pub fills: CopyList,
    /// The cells in the order of the result, where they are read in another.
    pub order: Option<Vec<usize>>,
    /// Tiles that need not be read: no cell of theirs meets the condition.
    pub pruned: usize,
}

impl BatchPlan {
    /// Bytes of memory that the plan takes.
    pub fn memory(&self) -> u64 {
        let tasks = self.tasks.len() * size_of::<TileTask>();
        let order = self.order.as_deref().map_or(0, size_of_val);
        (tasks + self.copies.memory() + self.fills.memory() + self.boxes.len() * 96 + order) as u64
    }

    /// The copies of one of the tasks.
    pub fn copies_of(&self, task: &TileTask) -> &[Copy] {
        self.copies.get(task.copies.clone())
    }

    /// How many cells are copied for one of the tasks.
    pub fn cells_of(&self, task: &TileTask) -> u64 {
        let cells = self.copies_of(task).iter().map(|c| self.copies.cells(c));
        cells.sum::<usize>() as u64
    }

    /// How many times a task takes the cell that it takes most often. For example the points 7, 9, 7
    /// and 7 of a tile: three times.
    pub fn most_taken(&self, task: &TileTask) -> Result<u64> {
        let mut cells: Vec<usize> = Vec::new();
        for copy in self.copies_of(task) {
            self.copies.rows(copy, &(0..self.cells), &mut |row| {
                cells.extend((0..row.axis.count).map(|i| row.src + i * row.axis.src));
                Ok(())
            })?;
        }
        cells.sort_unstable();
        let times = cells.chunk_by(|a, b| a == b).map(<[usize]>::len);
        Ok(times.max().unwrap_or(0) as u64)
    }

    /// Joins tasks of the same tile, which several boxes may have brought, and sorts them by tile.
    pub fn join_tasks(&mut self) {
        let mut tasks = std::mem::take(&mut self.tasks);
        tasks.sort_by_key(|s| (s.fragment, s.tile));
        let mut copies = CopyList::default();
        for task in tasks {
            let task = task.moved(&self.copies, &mut copies);
            match self.tasks.last_mut() {
                Some(last) if (last.fragment, last.tile) == (task.fragment, task.tile) => {
                    last.copies.end = task.copies.end;
                }
                _ => self.tasks.push(task),
            }
        }
        self.copies = copies;
    }

    /// Appends a plan that starts where this one ends.
    pub fn append(&mut self, mut other: Self) {
        for task in other.tasks {
            let task = task.moved(&other.copies, &mut self.copies);
            self.tasks.push(task);
        }
        self.fills.append(&other.fills, 0..other.fills.len());
        self.boxes.append(&mut other.boxes);
        self.cells = other.cells;
    }
}

impl TileTask {
    /// The task with its copies behind those of another list.
    fn moved(self, from: &CopyList, to: &mut CopyList) -> Self {
        let start = to.len();
        to.append(from, self.copies);
        let copies = start..to.len();
        Self { copies, ..self }
    }

    /// What loads cells of a field of the tile; `None` if its fragment has no such field.
    pub fn request(&self, array: &Array, field: &BoundField, cells: Cells) -> Option<TileRequest> {
        Some(TileRequest {
            fragment: self.fragment,
            field: field_in(array, self.fragment, field)?,
            tile: self.tile,
            cells,
        })
    }

    /// Bytes that loading the tile of a field takes, stored and decoded.
    pub fn load_cost(&self, array: &Array, field: &BoundField) -> Result<u64> {
        let request = self.request(array, field, Cells::All);
        request.map_or(Ok(0), |request| load_cost(array, &request))
    }
}

/// A dense selection and the fragments that it may touch.
#[derive(Debug, Clone)]
pub(super) struct DensePlan {
    pub grid: TileGrid,
    /// By dimension.
    pub selection: Vec<AxisSelection>,
    /// Oldest first.
    pub sources: Vec<DenseFragment>,
}

impl DensePlan {
    /// Whether no cell is selected more than once, and all in the order of their offsets.
    pub fn is_ascending(&self) -> bool {
        self.selection.iter().all(AxisSelection::is_ascending)
    }

    /// The whole selection.
    pub fn everything(&self) -> PositionBox {
        self.selection.iter().map(|s| 0..s.len()).collect()
    }

    /// Number of tiles that a box touches along each dimension.
    pub fn tiles_along(&self, d: usize, positions: &Range<u64>) -> u64 {
        let extent = self.grid.extents()[d];
        self.selection[d].runs().iter().fold(0u64, |sum, run| {
            let from = positions.start.max(run.position);
            let to = positions.end.min(run.position.saturating_add(run.count));
            if from >= to {
                return sum;
            }
            let first = (run.start + (from - run.position) * run.step) / extent;
            let last = (run.start + (to - 1 - run.position) * run.step) / extent;
            sum.saturating_add((last - first).saturating_add(1).min(to - from))
        })
    }

    /// The index, along a dimension, of the tile that a position lies in.
    pub fn tile_at(&self, d: usize, position: u64) -> u64 {
        self.selection[d].offset_at(position) / self.grid.extents()[d]
    }

    /// Plans a batch of one box in the order given (dimensions from slowest to fastest), to follow
    /// `start` other cells.
    pub fn batch(
        &self,
        positions: PositionBox,
        order: &[usize],
        start: usize,
    ) -> Result<BatchPlan> {
        let mut batch = BatchPlan {
            cells: start,
            ..BatchPlan::default()
        };
        self.add_box(&mut batch, positions, order)?;
        Ok(batch)
    }

    /// Appends a box to a batch.
    ///
    /// For example one dimension, a fragment with the offsets 0 to 9, and a later one with 4 to 6.
    /// The box 2..8 becomes two tasks: the later fragment's with a copy of 4..7, and the older
    /// one's with copies of 2..4 and 7..8.
    pub fn add_box(
        &self,
        batch: &mut BatchPlan,
        positions: PositionBox,
        order: &[usize],
    ) -> Result<()> {
        let placed = place(positions, order, batch.cells)?;
        if placed.cells == 0 {
            return Ok(());
        }
        let mut remaining = Boxes::new(placed.positions.len());
        self.each_tile(&placed, |tile, sources, parts| {
            let whole: usize = parts.iter().map(|p| p.len()).product();
            // Copies of one task must be neighbours: a task for each fragment, filled span by span.
            // Each piece is beside the number of its combination of spans.
            let mut taken: Vec<(usize, Vec<(usize, PositionBox)>)> = Vec::new();
            for combination in 0..whole {
                let spans = pick(parts, combination);
                remaining.ranges.clear();
                remaining.ranges.extend(spans.iter().map(|s| 0..s.count));
                for &source in sources.iter().rev() {
                    if remaining.ranges.is_empty() {
                        break;
                    }
                    let Some(bounds) = self.sources.get(source as usize).map(|s| s.grid.bounds())
                    else {
                        continue;
                    };
                    let window: Option<Vec<_>> = spans
                        .iter()
                        .zip(bounds)
                        .map(|(span, bounds)| indices_within(span, *bounds))
                        .collect();
                    let Some(window) = window else { continue };
                    let cut = remaining.take(&window);
                    if cut.ranges.is_empty() {
                        continue;
                    }
                    let pieces = cut.iter().map(|piece| (combination, piece.to_vec()));
                    match taken.iter_mut().find(|(s, _)| *s == source as usize) {
                        Some((_, list)) => list.extend(pieces),
                        None => taken.push((source as usize, pieces.collect())),
                    }
                }
                for piece in remaining.iter() {
                    self.push_copy(&mut batch.fills, &placed, order, &spans, piece, tile);
                }
            }
            for (source, pieces) in taken {
                let Some(DenseFragment { fragment, grid }) = self.sources.get(source) else {
                    continue;
                };
                let from = batch.copies.len();
                for (combination, piece) in &pieces {
                    let spans = pick(parts, *combination);
                    self.push_copy(&mut batch.copies, &placed, order, &spans, piece, tile);
                }
                let copies = from..batch.copies.len();
                batch.tasks.push(TileTask {
                    fragment: *fragment,
                    tile: grid.tile_index(tile),
                    copies,
                });
            }
        });
        batch.cells += placed.cells;
        batch.boxes.push(placed);
        Ok(())
    }

    /// Calls `each` for every tile that a box touches, in tile order, with the sources (ascending)
    /// whose non-empty domain may meet its selected cells, and its spans along each dimension.
    pub fn each_tile(&self, placed: &PlacedBox, mut each: impl FnMut(&[u64], &[u32], &[&[Span]])) {
        let ndim = self.grid.ndim();
        let axes = self.selection.iter().zip(&placed.positions);
        let spans = axes.zip(self.grid.extents());
        let spans: Vec<Vec<Span>> = spans
            .map(|((selection, r), extent)| selection.spans(r.start, r.end, *extent))
            .collect();
        let groups: Vec<Vec<&[Span]>> = spans
            .iter()
            .map(|spans| spans.chunk_by(|a, b| a.tile == b.tile).collect())
            .collect();
        let all = (0..self.sources.len())
            .filter_map(|i| u32::try_from(i).ok())
            .collect();
        let mut walk = TileWalk {
            plan: self,
            groups: &groups,
            tile: vec![0; ndim],
            parts: vec![&[]; ndim],
            candidates: vec![Vec::new(); ndim + 1],
        };
        walk.candidates[0] = all;
        walk.descend(0, &mut each);
    }

    /// Adds the copy of a piece (indices into `spans`) of a tile.
    fn push_copy(
        &self,
        list: &mut CopyList,
        placed: &PlacedBox,
        order: &[usize],
        spans: &[Span],
        piece: &[Range<u64>],
        tile: &[u64],
    ) {
        let (mut out, mut src) = (placed.base, 0usize);
        let strides = self.grid.cell_strides();
        for d in 0..spans.len() {
            let (span, piece) = (&spans[d], &piece[d]);
            out += (span.position + piece.start) as usize * placed.strides[d];
            let local = span.start + piece.start * span.step - tile[d] * self.grid.extents()[d];
            src += (local * strides[d]) as usize;
        }
        let axes = order.iter().map(|&d| Axis {
            count: (piece[d].end - piece[d].start) as usize,
            out: placed.strides[d],
            src: spans[d].step.saturating_mul(strides[d]) as usize,
        });
        list.push(out, src, axes);
    }
}

/// The strides of a box in a batch.
fn place(positions: PositionBox, order: &[usize], base: usize) -> Result<PlacedBox> {
    let too_many =
        || Error::InvalidArgument("more cells are selected than can be addressed".into());
    let mut strides = vec![0; positions.len()];
    let mut cells = 1usize;
    for &d in order.iter().rev() {
        strides[d] = cells;
        let count =
            usize::try_from(positions[d].end - positions[d].start).map_err(|_| too_many())?;
        cells = cells.checked_mul(count).ok_or_else(too_many)?;
    }
    Ok(PlacedBox {
        positions,
        base,
        cells,
        strides,
    })
}

/// One span along each dimension: the `combination`-th choice.
fn pick(parts: &[&[Span]], mut combination: usize) -> Vec<Span> {
    let choose = |part: &&[Span]| {
        let i = combination % part.len();
        combination /= part.len();
        part[i]
    };
    parts.iter().map(choose).collect()
}

/// The indices into a span whose offsets lie within bounds (both inclusive); `None` if there are
/// none.
fn indices_within(span: &Span, (low, high): (u64, u64)) -> Option<Range<u64>> {
    let first = low.saturating_sub(span.start).div_ceil(span.step);
    let end = (high.checked_sub(span.start)? / span.step)
        .saturating_add(1)
        .min(span.count);
    (first < end).then_some(first..end)
}

/// A walk over the tiles of a box that narrows the candidate fragments dimension by dimension.
struct TileWalk<'a> {
    plan: &'a DensePlan,
    /// By dimension: the spans that lie in each tile.
    groups: &'a [Vec<&'a [Span]>],
    tile: Vec<u64>,
    parts: Vec<&'a [Span]>,
    /// By depth: the sources that meet the tile along the dimensions chosen so far.
    candidates: Vec<Vec<u32>>,
}

impl TileWalk<'_> {
    fn descend(&mut self, depth: usize, each: &mut impl FnMut(&[u64], &[u32], &[&[Span]])) {
        let Some(&d) = self.plan.grid.tile_order().get(depth) else {
            let sources = self.candidates.last().map_or(&[][..], Vec::as_slice);
            each(&self.tile, sources, &self.parts);
            return;
        };
        for part in &self.groups[d] {
            self.tile[d] = part[0].tile;
            self.parts[d] = part;
            let first = part.iter().map(|s| s.start).min().unwrap_or(0);
            let ends = part.iter().map(|s| s.start + (s.count - 1) * s.step);
            let last = ends.max().unwrap_or(0);
            let (known, next) = self.candidates.split_at_mut(depth + 1);
            next[0].clear();
            next[0].extend(known[depth].iter().copied().filter(|&source| {
                let source = self.plan.sources.get(source as usize);
                let bounds = source.and_then(|s| s.grid.bounds().get(d));
                bounds.is_some_and(|(low, high)| *low <= last && *high >= first)
            }));
            self.descend(depth + 1, each);
        }
    }
}

/// Boxes of indices, in one piece of memory.
struct Boxes {
    ndim: usize,
    ranges: Vec<Range<u64>>,
}

impl Boxes {
    fn new(ndim: usize) -> Self {
        Self {
            ndim,
            ranges: Vec::new(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &[Range<u64>]> {
        self.ranges.chunks_exact(self.ndim)
    }

    /// Removes what lies in `window` and returns it.
    ///
    /// For example the window 1..3 by 1..9 takes 1..3 by 1..4 of the box 0..4 by 0..4, and leaves
    /// 0..1 by 0..4, 3..4 by 0..4 and 1..3 by 0..1.
    fn take(&mut self, window: &[Range<u64>]) -> Boxes {
        let mut taken = Boxes::new(self.ndim);
        let mut left = Boxes::new(self.ndim);
        for piece in self.iter() {
            let common =
                |(a, b): (&Range<u64>, &Range<u64>)| a.start.max(b.start)..a.end.min(b.end);
            let cut: Vec<Range<u64>> = piece.iter().zip(window).map(common).collect();
            if cut.iter().any(Range::is_empty) {
                left.ranges.extend_from_slice(piece);
                continue;
            }
            // What sticks out on either side, dimension by dimension; the rest shrinks to the cut.
            let mut rest = piece.to_vec();
            for d in 0..self.ndim {
                for side in [rest[d].start..cut[d].start, cut[d].end..rest[d].end] {
                    if !side.is_empty() {
                        let first = left.ranges.len();
                        left.ranges.extend_from_slice(&rest);
                        left.ranges[first + d] = side;
                    }
                }
                rest[d] = cut[d].clone();
            }
            taken.ranges.extend(cut);
        }
        *self = left;
        taken
    }
}

/// The field of a fragment that holds the cells of a column; `None` if it has none of the same
/// type.
pub(super) fn field_in(array: &Array, fragment: usize, bound: &BoundField) -> Option<Field> {
    match bound.field {
        Field::Attribute(_) => same_field(array.fragments().get(fragment)?, &bound.column_type),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

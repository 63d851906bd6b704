//! Dense writes in row-major and column-major order: the box's cells go to their places in space
//! tiles, a band of tiles at a time.
//!
//! A tile that reaches past the box is filled as the reference fills it: fixed-length cells and
//! validity with zero bytes, var-length cells with one value of zero bytes. Such cells exist in the
//! file only; readers never take them.

use super::TileView;
use super::buffer::FieldBuffer;
use super::fragments::{DensePart, Fragments};
use super::input::{FieldShape, Input};
use super::sparse::band_tiles;
use super::validate::{Bounds, OUTSIDE_CURRENT_DOMAIN};
use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::space::copy::{Axis, CopyList, copy_cells, copy_lengths, copy_var};
use crate::space::{FragmentGrid, Layout, TileGrid, dimension_order};
use azulejo_format::{ArraySchema, NdRectangle, Range as DimRange};
use rayon::prelude::*;
use std::collections::VecDeque;
use std::ops::Range;

/// A box of a dense array as a write sees it.
#[derive(Debug)]
pub(super) struct DenseBox {
    pub grid: TileGrid,
    /// First and last offset along each dimension.
    pub bounds: Vec<(u64, u64)>,
    pub tile_cells: usize,
    /// Cells of the box.
    pub cells: u64,
    /// Tiles that the box touches.
    pub tiles: u64,
}

/// Checks that a box lies in the current domain.
fn check_current_domain(schema: &ArraySchema, subarray: &NdRectangle) -> Result<()> {
    let Some(current) = schema.current_domain.ranges() else {
        return Ok(());
    };
    let ranges = schema
        .domain
        .dimensions
        .iter()
        .zip(subarray.ranges.iter().zip(current));
    for (dimension, (range, within)) in ranges {
        let fits = [&range.start, &range.end]
            .iter()
            .all(|bound| Some(bound.len()) == dimension.coord_size());
        if fits && !within.as_ref().contains(range.as_ref(), dimension.datatype) {
            return Err(Error::InvalidArgument(format!(
                "{OUTSIDE_CURRENT_DOMAIN}The box leaves it along dimension {:?}",
                dimension.name
            )));
        }
    }
    Ok(())
}

impl DenseBox {
    /// The box that `subarray` names; without one the current domain or the domain.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a box that leaves the domain or what else bounds it.
    pub fn new(
        schema: &ArraySchema,
        within: Bounds,
        subarray: Option<&NdRectangle>,
    ) -> Result<Self> {
        let grid = TileGrid::new(schema)?;
        let dimensions = &schema.domain.dimensions;
        if let Some(subarray) = subarray {
            let selection = crate::space::Subarray::ranges(subarray.ranges.iter().cloned());
            if within == Bounds::CurrentDomain {
                check_current_domain(schema, subarray)?;
                selection.bind(schema)?;
            } else {
                selection.bind_to_domain(schema)?;
            }
        }
        let current = schema.current_domain.ranges();
        let mut ranges = subarray.map(|s| s.ranges.clone()).unwrap_or_default();
        for (d, dimension) in dimensions.iter().enumerate().skip(ranges.len()) {
            let whole = current
                .and_then(|current| current.get(d))
                .or(dimension.domain.as_ref());
            ranges.extend(whole.cloned());
        }
        let rectangle = NdRectangle { ranges };
        let bounds = grid.offsets_of(&rectangle).ok_or_else(|| {
            Error::InvalidArgument("the box to write is empty or leaves the domain".into())
        })?;
        let too_large =
            || Error::Unsupported("a box of 2^64 cells or more cannot be written at once".into());
        let count = |(first, last): &(u64, u64)| (last - first).checked_add(1);
        let cells = bounds
            .iter()
            .map(count)
            .try_fold(1u64, |n, c| n.checked_mul(c?))
            .ok_or_else(too_large)?;
        let tiles = FragmentGrid::new(&grid, bounds.clone())
            .ok_or_else(too_large)?
            .tile_num();
        let tile_cells = usize::try_from(grid.tile_cells()).map_err(|_| too_large())?;
        Ok(Self {
            grid,
            bounds,
            tile_cells,
            cells,
            tiles,
        })
    }

    /// Whether the box consists of whole tiles.
    pub fn is_whole(&self) -> bool {
        Some(self.cells) == self.tiles.checked_mul(self.tile_cells as u64)
    }

    /// First and last tile along a dimension.
    fn tile_bounds(&self, d: usize) -> (u64, u64) {
        match (self.grid.axes().get(d), self.bounds.get(d)) {
            (Some(axis), Some((first, last))) => (axis.tile_of(*first), axis.tile_of(*last)),
            _ => (0, 0),
        }
    }

    /// The box cut into fragments of at most `limit` bytes before filters, along the dimension that
    /// tiles vary slowest along (`cell_bytes` is an average). A part has at least one row of tiles.
    pub fn parts(&self, limit: Option<u64>, cell_bytes: usize) -> VecDeque<DensePart> {
        let rectangle =
            |d: usize, bounds: (u64, u64)| {
                let ranges = self.grid.axes().iter().zip(&self.bounds).enumerate().map(
                    |(i, (axis, whole))| {
                        let (first, last) = if i == d { bounds } else { *whole };
                        DimRange::new(axis.coordinate(first), axis.coordinate(last))
                    },
                );
                NdRectangle {
                    ranges: ranges.collect(),
                }
            };
        let slowest = self.grid.tile_order().first().copied().unwrap_or(0);
        let (first_row, last_row) = self.tile_bounds(slowest);
        let rows = (last_row - first_row).saturating_add(1);
        let row_tiles = self.tiles / rows;
        let row_bytes = row_tiles
            .saturating_mul(self.tile_cells as u64)
            .saturating_mul(cell_bytes as u64);
        let step = limit.map_or(rows, |limit| (limit / row_bytes.max(1)).clamp(1, rows));
        let (Some(axis), Some(&(first, last))) =
            (self.grid.axes().get(slowest), self.bounds.get(slowest))
        else {
            return VecDeque::new();
        };
        let mut parts = VecDeque::new();
        let mut row = first_row;
        loop {
            let end = last_row.min(row.saturating_add(step - 1));
            let start = axis.tile_start(row).unwrap_or(first).max(first);
            let stop = axis.tile_end(end).unwrap_or(last).min(last);
            let tiles = (end - row + 1) * row_tiles;
            parts.push_back(DensePart {
                domain: rectangle(slowest, (start, stop)),
                tiles,
            });
            if end == last_row {
                return parts;
            }
            row = end + 1;
        }
    }

    /// The first tile.
    fn first_tile(&self) -> Vec<u64> {
        (0..self.grid.ndim())
            .map(|d| self.tile_bounds(d).0)
            .collect()
    }

    /// Steps to the next tile in tile order; false after the last.
    fn next_tile(&self, tile: &mut [u64]) -> bool {
        for &d in self.grid.tile_order().iter().rev() {
            let (first, last) = self.tile_bounds(d);
            let Some(t) = tile.get_mut(d) else { continue };
            if *t < last {
                *t += 1;
                return true;
            }
            *t = first;
        }
        false
    }
}

/// How the caller's cells get into one tile.
#[derive(Debug)]
struct TilePlan {
    /// One copy: its output is the tile, its source the caller's column.
    list: CopyList,
    /// The caller's cells that are the tile as they stand.
    slice: Option<Range<usize>>,
    written: Option<Vec<Range<u64>>>,
}

/// Cells between neighbours of the box along each dimension, in the caller's order.
fn input_strides(space: &DenseBox, layout: Layout) -> Vec<usize> {
    let mut strides = vec![1; space.bounds.len()];
    let mut stride = 1usize;
    for &d in dimension_order(layout, space.bounds.len()).iter().rev() {
        if let (Some(out), Some((first, last))) = (strides.get_mut(d), space.bounds.get(d)) {
            *out = stride;
            stride = stride.saturating_mul(
                usize::try_from(last - first)
                    .unwrap_or(usize::MAX)
                    .saturating_add(1),
            );
        }
    }
    strides
}

fn plan_tile(space: &DenseBox, strides: &[usize], tile: &[u64]) -> Result<TilePlan> {
    let beyond = || Error::Internal("a tile lies outside its box".into());
    let (mut out, mut src, mut count) = (0usize, 0usize, 1usize);
    let mut axes = Vec::with_capacity(tile.len());
    for &d in space.grid.cell_order() {
        let (axis, &(first, last)) = space
            .grid
            .axes()
            .get(d)
            .zip(space.bounds.get(d))
            .ok_or_else(beyond)?;
        let start = tile
            .get(d)
            .and_then(|&t| axis.tile_start(t))
            .ok_or_else(beyond)?;
        let end = tile
            .get(d)
            .and_then(|&t| axis.tile_end(t))
            .ok_or_else(beyond)?;
        let (low, high) = (first.max(start), last.min(end));
        let cells = high
            .checked_sub(low)
            .and_then(|n| usize::try_from(n).ok())
            .ok_or_else(beyond)?
            + 1;
        let tile_stride = space.grid.cell_strides().get(d).copied().unwrap_or(1) as usize;
        let stride = strides.get(d).copied().unwrap_or(1);
        out += (low - start) as usize * tile_stride;
        src += (low - first) as usize * stride;
        count *= cells;
        axes.push(Axis {
            count: cells,
            out: tile_stride,
            src: stride,
        });
    }
    let whole = count == space.tile_cells;
    let written = if whole {
        None
    } else {
        Some(written_ranges(out, &axes))
    };
    let mut list = CopyList::default();
    list.push(out, src, axes.into_iter());
    let run = list.all().first().and_then(|copy| list.as_run(copy));
    let slice = (whole && run == Some(count)).then(|| src..src + count);
    Ok(TilePlan {
        list,
        slice,
        written,
    })
}

/// The cells of a tile that a box in it takes: `axes` run from the slowest to the fastest.
fn written_ranges(start: usize, axes: &[Axis]) -> Vec<Range<u64>> {
    // Axes that the box takes whole join the run of the next faster one.
    let mut run = 1usize;
    let mut outer = axes.len();
    while let Some(axis) = outer.checked_sub(1).and_then(|i| axes.get(i)) {
        if axis.out != run {
            break;
        }
        run *= axis.count;
        outer -= 1;
    }
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut places = vec![0usize; outer];
    loop {
        let at: usize = places
            .iter()
            .zip(axes)
            .map(|(place, axis)| place * axis.out)
            .sum();
        let range = (start + at) as u64..(start + at + run) as u64;
        match ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => ranges.push(range),
        }
        let stepped = places.iter_mut().zip(axes).rev().any(|(place, axis)| {
            *place += 1;
            let more = *place < axis.count;
            if !more {
                *place = 0;
            }
            more
        });
        if !stepped {
            return ranges;
        }
    }
}

/// Writes a box in row-major or column-major order. `band_bytes` bounds what is held at a time,
/// tiles apart that are larger.
///
/// # Errors
/// [`Error::InvalidArgument`] if there are not as many cells as the box has, [`Error::Budget`] if
/// not even a tile fits `budget`.
pub(super) fn write_ordered(
    space: &DenseBox,
    shapes: &[FieldShape],
    input: &Input<'_>,
    layout: Layout,
    (band_bytes, budget): (usize, u64),
    fragments: &mut Fragments,
) -> Result<()> {
    if input.cell_num as u64 != space.cells {
        return Err(other_count(space, input));
    }
    // A tile has no more of the caller's cells than there are, which may be few and large.
    let cells = space.cells.min(space.tile_cells as u64);
    let filling: usize = shapes.iter().map(FieldShape::filling_size).sum();
    let need = cells
        .saturating_mul(input.bytes_per_cell() as u64)
        .saturating_add((space.tile_cells as u64 - cells).saturating_mul(filling as u64));
    if need > budget {
        return Err(Error::Budget {
            what: "one space tile".into(),
            need,
            budget,
        });
    }
    let strides = input_strides(space, layout);
    // Two bands share what one may take: while one is stored, the next is filled.
    let at_once = band_tiles(space.tile_cells, input.bytes_per_cell(), band_bytes / 2);
    let mut tile = Some(space.first_tile());
    let mut plan = || -> Result<Vec<TilePlan>> {
        let mut plans = Vec::new();
        while let Some(place) = tile.as_mut().filter(|_| plans.len() < at_once) {
            plans.push(plan_tile(space, &strides, place)?);
            if !space.next_tile(place) {
                tile = None;
            }
        }
        Ok(plans)
    };
    let source = TileSource {
        space,
        shapes,
        input,
    };
    let (mut band, mut next) = (Band::default(), Band::default());
    band.plans = plan()?;
    band.fill(&source)?;
    while !band.plans.is_empty() {
        next.plans = plan()?;
        // Tiles of which two, and what they are filtered to, may exceed the budget are made one
        // after another.
        if next.plans.is_empty() || need.saturating_mul(4) > budget {
            fragments.push(&band.views(&source)?)?;
            std::mem::swap(&mut band.plans, &mut next.plans);
            band.fill(&source)?;
            continue;
        }
        let (pushed, filled) = rayon::join(
            || fragments.push(&band.views(&source)?),
            || next.fill(&source),
        );
        pushed?;
        filled?;
        std::mem::swap(&mut band, &mut next);
    }
    Ok(())
}

/// Some of the whole tiles of a box, at even distances, as [`write_ordered`] would make them: of
/// each, all fields. None where the box cuts every tile.
pub(super) fn some_tiles(
    space: &DenseBox,
    shapes: &[FieldShape],
    input: &Input<'_>,
    layout: Layout,
    most: usize,
) -> Result<Vec<Vec<FieldBuffer>>> {
    if input.cell_num as u64 != space.cells {
        return Err(other_count(space, input));
    }
    let strides = input_strides(space, layout);
    let step = space.tiles.div_ceil(most.max(1) as u64).max(1);
    let mut place = space.first_tile();
    let mut tiles = Vec::new();
    for number in 0.. {
        // Counting is nothing beside the tiles that a box in memory has.
        if number % step == 0 {
            let plan = plan_tile(space, &strides, &place)?;
            if plan.written.is_none() {
                let fields = shapes.iter().zip(&input.fields);
                let made = fields.map(|(shape, view)| {
                    let mut buffer = FieldBuffer::default();
                    match &plan.slice {
                        Some(cells) => buffer.append(view, cells.clone())?,
                        None => scatter(&plan, shape, view, space.tile_cells, &mut buffer)?,
                    }
                    Ok(buffer)
                });
                tiles.push(made.collect::<Result<Vec<_>>>()?);
            }
        }
        if !space.next_tile(&mut place) {
            break;
        }
    }
    Ok(tiles)
}

fn other_count(space: &DenseBox, input: &Input<'_>) -> Error {
    Error::InvalidArgument(format!(
        "the box to write has {} cells, but {} were given",
        space.cells, input.cell_num
    ))
}

/// What the tiles of a write are made of.
struct TileSource<'a> {
    space: &'a DenseBox,
    shapes: &'a [FieldShape],
    input: &'a Input<'a>,
}

/// Tiles that are made at a time.
#[derive(Debug, Default)]
struct Band {
    plans: Vec<TilePlan>,
    /// All fields of the first tile, then those of the next; kept from band to band.
    buffers: Vec<FieldBuffer>,
}

impl Band {
    /// Puts the cells of the planned tiles into their places.
    fn fill(&mut self, source: &TileSource<'_>) -> Result<()> {
        let Self { plans, buffers } = self;
        let TileSource {
            space,
            shapes,
            input,
        } = *source;
        buffers.resize_with(plans.len() * shapes.len(), FieldBuffer::default);
        buffers
            .par_iter_mut()
            .enumerate()
            .try_for_each(|(i, buffer)| {
                let (tile, field) = (i / shapes.len(), i % shapes.len());
                match (plans.get(tile), input.fields.get(field), shapes.get(field)) {
                    (Some(plan), Some(view), Some(shape)) if plan.slice.is_none() => {
                        scatter(plan, shape, view, space.tile_cells, buffer)
                    }
                    _ => Ok(()),
                }
            })
    }

    /// The tiles, once they are filled.
    fn views<'a>(&'a self, source: &TileSource<'a>) -> Result<Vec<TileView<'a>>> {
        let TileSource {
            space,
            shapes,
            input,
        } = *source;
        let view = |(plan, buffers): (&TilePlan, &'a [FieldBuffer])| {
            let fields: Option<Vec<FieldView<'_>>> = match &plan.slice {
                Some(cells) => input
                    .fields
                    .iter()
                    .map(|view| view.slice(cells.clone()))
                    .collect(),
                None => {
                    let fields = shapes.iter().zip(buffers);
                    Some(
                        fields
                            .map(|(shape, buffer)| buffer.view(shape, space.tile_cells))
                            .collect(),
                    )
                }
            };
            let cell_num = space.tile_cells as u64;
            Some(TileView {
                cell_num,
                fields: fields?,
                written: plan.written.clone(),
            })
        };
        let views: Option<Vec<_>> = self
            .plans
            .iter()
            .zip(self.buffers.chunks(shapes.len()))
            .map(view)
            .collect();
        views.ok_or_else(|| Error::Internal("a column lacks cells".into()))
    }
}

/// Fills one field of one tile.
fn scatter(
    plan: &TilePlan,
    shape: &FieldShape,
    view: &FieldView<'_>,
    tile_cells: usize,
    buffer: &mut FieldBuffer,
) -> Result<()> {
    let (list, all) = (&plan.list, 0..tile_cells);
    let copies = list.all();
    let partial = plan.written.is_some();
    // What is overwritten whole need not be cleared.
    let ready = |bytes: &mut Vec<u8>, len: usize| {
        if partial {
            bytes.clear();
        }
        bytes.resize(len, 0);
    };
    match view.offsets {
        Some(offsets) => {
            buffer.offsets.clear();
            buffer
                .offsets
                .resize(tile_cells + 1, shape.datatype.size() as u64);
            let lengths = buffer.offsets.get_mut(1..).unwrap_or_default();
            copy_lengths(list, copies, offsets, lengths, &all)?;
            let mut end = 0;
            if let Some(first) = buffer.offsets.first_mut() {
                *first = 0;
            }
            for offset in &mut buffer.offsets {
                end += *offset;
                *offset = end;
            }
            let total = buffer.offsets.last().copied().unwrap_or(0) as usize;
            ready(&mut buffer.data, total);
            copy_var(
                list,
                copies,
                (view.data, offsets),
                (&mut buffer.data, &buffer.offsets),
                &all,
            )?;
        }
        None => {
            ready(&mut buffer.data, tile_cells * view.cell_size);
            copy_cells(
                list,
                copies,
                view.data,
                &mut buffer.data,
                &all,
                view.cell_size,
            )?;
        }
    }
    if let Some(validity) = view.validity {
        ready(&mut buffer.validity, tile_cells);
        copy_cells(list, copies, validity, &mut buffer.validity, &all, 1)?;
    }
    Ok(())
}

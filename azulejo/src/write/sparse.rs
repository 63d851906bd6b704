//! Unordered writes: cells are sorted and gathered, a band of tiles at a time.

use super::TileView;
use super::buffer::FieldBuffer;
use super::external_sort::{ExternalSort, sort_bytes};
use super::fragments::Fragments;
use super::input::dimensions_of;
use super::input::{FieldShape, Input};
use super::sort::{CHECKED, CellSequence, DuplicateRule, RUN, disorders, sort_cells};
use crate::error::{Error, Result};
use crate::space::Layout;
use crate::space::cell_order::CellOrder;
use azulejo_format::ArraySchema;
use rayon::prelude::*;

/// Writes cells in any order. Of `memory`, the first bounds what is gathered at a time, the second
/// all that is held beside the caller's columns; where sorting all cells at once would take more,
/// they are sorted in parts.
pub(super) fn write_unordered(
    schema: &ArraySchema,
    shapes: &[FieldShape],
    input: &Input<'_>,
    rule: DuplicateRule,
    memory: (usize, u64),
    fragments: &mut Fragments,
) -> Result<()> {
    if u32::try_from(input.cell_num).is_err() {
        return Err(Error::InvalidArgument(format!(
            "{} cells are too many to sort in one write; write at most 2^32 at a time",
            input.cell_num
        )));
    }
    let (band_bytes, budget) = memory;
    let order = CellOrder::new(schema, Layout::Global);
    let dimensions = dimensions_of(shapes, input);
    let cells = Unordered {
        shapes,
        input,
        capacity: capacity(schema),
        band_bytes,
    };
    let duplicates = rule != DuplicateRule::Allowed;
    // Where the first cells are in order all may be. A few runs at a time tell, without the keys of
    // all cells.
    let some = RUN * (2 * rayon::current_num_threads()).max(4);
    let sort_bytes = sort_bytes(&order);
    if input.cell_num > some && sort_bytes.saturating_mul(some as u64) <= budget / 4 {
        let in_order = |cells: usize| {
            disorders(&order, &dimensions, cells, duplicates, some)
                .map(|disorders| disorders.is_empty())
        };
        if in_order(RUN)? && in_order(input.cell_num)? {
            return cells.push_as_given(fragments);
        }
    }
    let all = sort_bytes.saturating_mul(input.cell_num as u64);
    if all <= budget / 4 * 3 || input.cell_num <= RUN {
        return match sort_cells(schema, &order, &dimensions, input.cell_num, rule)? {
            CellSequence::AsGiven => cells.push_as_given(fragments),
            CellSequence::Sorted(sorted) => cells.push(&sorted, fragments),
        };
    }
    let part = usize::try_from(budget / 2 / sort_bytes).unwrap_or(usize::MAX);
    if disorders(
        &order,
        &dimensions,
        input.cell_num,
        duplicates,
        part.min(CHECKED),
    )?
    .is_empty()
    {
        return cells.push_as_given(fragments);
    }
    let mut external = ExternalSort::new(schema, &order, &dimensions, input.cell_num, rule, part);
    // Cells that do not fill a tile wait for those of the next part.
    let mut tail: Vec<u32> = Vec::new();
    while let Some(sorted) = external.next()? {
        tail.extend(sorted);
        let whole = tail.len() / cells.capacity * cells.capacity;
        let rest = tail.split_off(whole);
        cells.push(&tail, fragments)?;
        tail = rest;
    }
    cells.push(&tail, fragments)
}

/// Cells of a tile.
fn capacity(schema: &ArraySchema) -> usize {
    usize::try_from(schema.capacity)
        .unwrap_or(usize::MAX)
        .max(1)
}

/// The cells of a write, and how many go to a tile and are gathered at a time.
struct Unordered<'a> {
    shapes: &'a [FieldShape],
    input: &'a Input<'a>,
    capacity: usize,
    band_bytes: usize,
}

impl Unordered<'_> {
    fn tiles_at_once(&self) -> usize {
        let tile_cells = self.capacity.min(self.input.cell_num);
        band_tiles(tile_cells, self.input.bytes_per_cell(), self.band_bytes)
    }

    /// All cells, which are in order.
    fn push_as_given(&self, fragments: &mut Fragments) -> Result<()> {
        let (capacity, at_once) = (self.capacity, self.tiles_at_once());
        push_slices(
            self.input,
            0..self.input.cell_num,
            capacity,
            at_once,
            fragments,
        )
    }

    /// Some cells, gathered in this order; the last tile alone may not be full.
    fn push(&self, cells: &[u32], fragments: &mut Fragments) -> Result<()> {
        let (shapes, capacity) = (self.shapes, self.capacity);
        let mut buffers: Vec<FieldBuffer> = Vec::new();
        for band in cells.chunks(capacity.saturating_mul(self.tiles_at_once())) {
            let tiles: Vec<&[u32]> = band.chunks(capacity).collect();
            buffers.resize_with(tiles.len() * shapes.len(), FieldBuffer::default);
            buffers
                .par_iter_mut()
                .enumerate()
                .try_for_each(|(i, buffer)| {
                    let (tile, field) = (i / shapes.len(), i % shapes.len());
                    match (tiles.get(tile), self.input.fields.get(field)) {
                        (Some(cells), Some(view)) => buffer.gather(view, cells),
                        _ => Ok(()),
                    }
                })?;
            let views: Vec<TileView<'_>> = tiles
                .iter()
                .zip(buffers.chunks(shapes.len()))
                .map(|(cells, buffers)| {
                    let fields = shapes.iter().zip(buffers);
                    TileView {
                        cell_num: cells.len() as u64,
                        fields: fields
                            .map(|(shape, buffer)| buffer.view(shape, cells.len()))
                            .collect(),
                        written: None,
                    }
                })
                .collect();
            fragments.push(&views)?;
        }
        Ok(())
    }
}

/// Tiles that are worked on at a time: as many as fit, and never less than there are threads as
/// long as four times the memory suffices for them.
pub(super) fn band_tiles(tile_cells: usize, cell_bytes: usize, band_bytes: usize) -> usize {
    let tile_bytes = tile_cells.saturating_mul(cell_bytes).max(1);
    let threads = rayon::current_num_threads();
    (band_bytes / tile_bytes)
        .max(threads.min(band_bytes.saturating_mul(4) / tile_bytes))
        .max(1)
}

/// Writes whole tiles, the last one apart, of cells that are in order, straight from the caller's
/// columns.
pub(super) fn push_slices(
    input: &Input<'_>,
    cells: std::ops::Range<usize>,
    tile_cells: usize,
    tiles_at_once: usize,
    fragments: &mut Fragments,
) -> Result<()> {
    let mut start = cells.start;
    while start < cells.end {
        let mut tiles = Vec::new();
        while start < cells.end && tiles.len() < tiles_at_once {
            let end = cells.end.min(start.saturating_add(tile_cells));
            let fields: Option<Vec<_>> = input
                .fields
                .iter()
                .map(|view| view.slice(start..end))
                .collect();
            let fields = fields.ok_or_else(|| Error::Internal("a column lacks cells".into()))?;
            tiles.push(TileView {
                cell_num: (end - start) as u64,
                fields,
                written: None,
            });
            start = end;
        }
        fragments.push(&tiles)?;
    }
    Ok(())
}

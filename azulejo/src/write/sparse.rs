//! Unordered writes: cells are sorted and gathered, a band of tiles at a time.

use super::arrange::{Arrangement, DuplicateRule, arrange};
use super::buffer::FieldBuffer;
use super::fragments::Fragments;
use super::input::{FieldShape, Input};
use super::{TileView, dimensions_of};
use crate::error::{Error, Result};
use crate::space::Layout;
use crate::space::cell_order::CellOrder;
use azulejo_format::ArraySchema;
use rayon::prelude::*;

/// Writes cells in any order. `band_bytes` bounds what is gathered at a time.
pub(super) fn write_unordered(
    schema: &ArraySchema,
    shapes: &[FieldShape],
    input: &Input<'_>,
    rule: DuplicateRule,
    band_bytes: usize,
    fragments: &mut Fragments,
) -> Result<()> {
    if u32::try_from(input.cell_num).is_err() {
        return Err(Error::InvalidArgument(format!(
            "{} cells are too many to sort in one write; write at most 2^32 at a time",
            input.cell_num
        )));
    }
    let order = CellOrder::new(schema, Layout::Global);
    let dimensions = dimensions_of(shapes, input);
    let capacity = usize::try_from(schema.capacity).unwrap_or(usize::MAX).max(1);
    let tiles_at_once = band_tiles(capacity.min(input.cell_num), input.bytes_per_cell(), band_bytes);
    match arrange(schema, &order, &dimensions, input.cell_num, rule)? {
        Arrangement::AsGiven => push_slices(input, 0..input.cell_num, capacity, tiles_at_once, fragments),
        Arrangement::Sorted(cells) => {
            let mut buffers: Vec<FieldBuffer> = Vec::new();
            for band in cells.chunks(capacity.saturating_mul(tiles_at_once)) {
                let tiles: Vec<&[u32]> = band.chunks(capacity).collect();
                buffers.resize_with(tiles.len() * shapes.len(), FieldBuffer::default);
                buffers.par_iter_mut().enumerate().try_for_each(|(i, buffer)| {
                    let (tile, field) = (i / shapes.len(), i % shapes.len());
                    match (tiles.get(tile), input.fields.get(field)) {
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
                            fields: fields.map(|(shape, buffer)| buffer.view(shape, cells.len())).collect(),
                            written: None,
                        }
                    })
                    .collect();
                fragments.push(&views)?;
            }
            Ok(())
        }
    }
}

/// Tiles that are worked on at a time: as many as fit, and never less than there are threads as long as four times the
/// memory suffices for them.
pub(super) fn band_tiles(tile_cells: usize, cell_bytes: usize, band_bytes: usize) -> usize {
    let tile_bytes = tile_cells.saturating_mul(cell_bytes).max(1);
    let threads = rayon::current_num_threads();
    (band_bytes / tile_bytes).max(threads.min(band_bytes.saturating_mul(4) / tile_bytes)).max(1)
}

/// Writes whole tiles, the last one apart, of cells that are in order, straight from the caller's columns.
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
            let fields: Option<Vec<_>> = input.fields.iter().map(|view| view.slice(start..end)).collect();
            let fields = fields.ok_or_else(|| Error::Internal("a column lacks cells".into()))?;
            tiles.push(TileView { cell_num: (end - start) as u64, fields, written: None });
            start = end;
        }
        fragments.push(&tiles)?;
    }
    Ok(())
}

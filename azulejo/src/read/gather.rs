//! From tiles and slabs to columns: copies of whole runs, parallel over disjoint parts of the
//! output.

use super::BoundField;
use super::decode::PARALLEL_BYTES;
use super::output::VarOut;
use super::parallel::{each, split};
use crate::column::{ColumnBuffers, FieldView, Tile, repeat_cell};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::space::CellSlab;
use crate::space::keys::RowSelection;
use arrow_buffer::Buffer;
use std::sync::Arc;

/// Makes a column of the cells that slabs name, in their order; the field is var-length.
///
/// `tiles[slab.tile]` is the field's tile; `None` where the fragment has no such field, whose cells
/// then read as the fill value.
pub(super) fn gather_column(
    context: &Context,
    bands: &SlabBands<'_>,
    tiles: &[Option<Arc<Tile>>],
    field: &BoundField,
) -> Result<ColumnBuffers> {
    let source = VarSource::new(tiles, field);
    let column_type = &field.column_type;
    let beyond = || Error::Internal("a column beyond the address space".into());
    let cell_num = bands.cells;
    let bands = &bands.bands;
    let mut validity = column_type
        .nullable
        .then(|| context.buffers().take(cell_num));
    if let Some(out) = &mut validity {
        FixedSource::validity(tiles, &[], field).bands(context, bands, out)?;
    }
    let sums = source.var_sums(context, bands)?;
    let total = sums.iter().try_fold(0u64, |sum, n| sum.checked_add(*n));
    let total = total.ok_or_else(beyond)?;
    let mut offsets = vec![0u64; cell_num + 1];
    let len = usize::try_from(total).map_err(|_| beyond())?;
    let mut data = context.buffers().take(len);
    source.var_bands(context, bands, &sums, (&mut data, &mut offsets, 0))?;
    if let Some(end) = offsets.last_mut() {
        *end = total;
    }
    Ok(ColumnBuffers {
        column_type: column_type.clone(),
        cell_num,
        data: data.into(),
        offsets: Some(Buffer::from_vec(offsets)),
        validity: validity.map(Into::into),
    })
}

/// As [`gather_column`], into a caller's memory.
pub(super) fn gather_var(
    context: &Context,
    bands: &SlabBands<'_>,
    tiles: &[Option<Arc<Tile>>],
    field: &BoundField,
    out: VarOut<'_>,
) -> Result<()> {
    let source = VarSource::new(tiles, field);
    let bands = &bands.bands;
    if let Some(out) = out.validity {
        FixedSource::validity(tiles, &[], field).bands(context, bands, out)?;
    }
    let sums = source.var_sums(context, bands)?;
    let base = *out.written as u64;
    source.var_bands(context, bands, &sums, (out.data, out.starts, base))?;
    *out.written += sums.iter().fold(0, |sum, bytes| sum + *bytes as usize);
    Ok(())
}

/// Writes the cells that `slabs` name to a column's memory, but for those of tiles that are
/// `placed` there already.
///
/// `tiles` and `placed` are by [`CellSlab::tile`], as in [`gather_column`], and so are those of
/// `bands`; `data` and `validity` have room for all cells.
pub(super) fn gather_fixed(
    context: &Context,
    bands: &SlabBands<'_>,
    (tiles, placed): (&[Option<Arc<Tile>>], &[bool]),
    field: &BoundField,
    (data, validity): (&mut [u8], Option<&mut [u8]>),
) -> Result<()> {
    let mut used = bands.used.iter().enumerate();
    if used.all(|(slot, used)| used.cells == 0 || placed.get(slot) == Some(&true)) {
        return Ok(());
    }
    let bands = &bands.bands;
    if let Some(out) = validity {
        FixedSource::validity(tiles, placed, field).bands(context, bands, out)?;
    }
    FixedSource::values(tiles, placed, field).bands(context, bands, data)
}

/// Slabs whose cells one thread writes.
struct SlabBand<'a> {
    slabs: &'a [CellSlab],
    cells: usize,
}

/// What a batch needs of one of its tiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Used {
    /// How many cells.
    pub cells: u64,
    /// In how many slabs.
    pub slabs: u32,
}

impl Used {
    /// All cells that are selected, wherever they go.
    pub fn of(rows: &RowSelection) -> Self {
        Self {
            cells: rows.len() as u64,
            slabs: 0,
        }
    }

    /// Adds what slabs need of each tile; returns how many cells they have.
    pub fn add(used: &mut [Self], slabs: &[CellSlab]) -> u64 {
        let mut cells = 0u64;
        for slab in slabs {
            cells += u64::from(slab.len);
            if let Some(used) = used.get_mut(slab.tile as usize) {
                used.cells += u64::from(slab.len);
                used.slabs += 1;
            }
        }
        cells
    }
}

/// The slabs of a batch, divided among threads once for all columns, and what they need of its
/// tiles.
pub(super) struct SlabBands<'a> {
    bands: Vec<SlabBand<'a>>,
    /// The number of cells.
    pub cells: usize,
    /// By tile.
    pub used: Vec<Used>,
}

impl<'a> SlabBands<'a> {
    /// Slabs that one thread looks at as fast as several would.
    const FEW_SLABS: usize = 16 * 1024;
    /// From so many slabs on bands have equally many: on the whole they hold as many cells.
    const MANY_SLABS: usize = 512 * 1024;
    /// A slab costs as much as copying so many cells.
    const SLAB_CELLS: u64 = 16;

    /// Looks at slabs of `tiles` tiles once, on all threads if they are many.
    pub fn new(context: &Context, slabs: &'a [CellSlab], tiles: usize) -> Result<Self> {
        let beyond = || Error::Internal("a column beyond the address space".into());
        let chunks = Self::cut(slabs);
        let count = |slabs: &'a [CellSlab], used: &mut [Used]| {
            let cells = Used::add(used, slabs);
            Ok(SlabBand {
                slabs,
                cells: usize::try_from(cells).map_err(|_| beyond())?,
            })
        };
        let mut used = vec![Used::default(); tiles];
        // Each thread counts for itself, unless that took more memory than the slabs.
        let apart =
            slabs.len() >= Self::FEW_SLABS && tiles.saturating_mul(chunks.len()) <= slabs.len();
        let bands = if apart {
            let counted = each(context, chunks, |slabs| {
                let mut used = vec![Used::default(); tiles];
                Ok((count(slabs, &mut used)?, used))
            })?;
            let add = |(band, more): (SlabBand<'a>, Vec<Used>)| {
                for (sum, more) in used.iter_mut().zip(more) {
                    sum.cells += more.cells;
                    sum.slabs += more.slabs;
                }
                band
            };
            counted.into_iter().map(add).collect()
        } else {
            chunks
                .into_iter()
                .map(|slabs| count(slabs, &mut used))
                .collect::<Result<Vec<_>>>()?
        };
        let cells = bands
            .iter()
            .try_fold(0usize, |sum, band| sum.checked_add(band.cells));
        Ok(Self {
            bands,
            cells: cells.ok_or_else(beyond)?,
            used,
        })
    }

    /// Cuts slabs into those of each band: as much work each.
    ///
    /// For example a slab of a million cells is a band alone, and slabs of one cell share a band by
    /// tens of thousands: each of these counts as 17 cells.
    fn cut(slabs: &[CellSlab]) -> Vec<&[CellSlab]> {
        let total = CellSlab::total(slabs);
        if slabs.len() < Self::FEW_SLABS && total < (PARALLEL_BYTES / 16) as u64 {
            return vec![slabs];
        }
        let parts = (slabs.len() / Self::FEW_SLABS).clamp(8, 64);
        if slabs.len() >= Self::MANY_SLABS {
            return slabs.chunks(slabs.len().div_ceil(parts)).collect();
        }
        let work = total.saturating_add(slabs.len() as u64 * Self::SLAB_CELLS);
        let (each, mut done) = (work.div_ceil(parts as u64).max(1), 0u64);
        // Every slab but the last is looked at once, in order.
        let shares_band = |slab: &CellSlab, _: &CellSlab| {
            let band = done / each;
            done = done.saturating_add(u64::from(slab.len) + Self::SLAB_CELLS);
            done / each == band
        };
        slabs.chunk_by(shares_band).collect()
    }
}

/// Cells of fixed length that slabs point to: the values of a field, or their validity.
struct FixedSource<'a> {
    /// By slot: the cells of the tile, or that of which all are the same.
    tiles: Vec<SlotCells<'a>>,
    /// Tiles whose cells are in place.
    placed: &'a [bool],
    cell_size: usize,
}

enum SlotCells<'a> {
    Stored(&'a [u8]),
    Same(&'a [u8]),
}

fn lacking() -> Error {
    Error::Internal("a slab names cells that its tile has not".into())
}

impl<'a> FixedSource<'a> {
    fn values(tiles: &'a [Option<Arc<Tile>>], placed: &'a [bool], field: &'a BoundField) -> Self {
        let cells = |tile: &'a Option<Arc<Tile>>| match tile {
            Some(tile) => SlotCells::Stored(&tile.data),
            None => SlotCells::Same(&field.fill.bytes),
        };
        Self {
            tiles: tiles.iter().map(cells).collect(),
            placed,
            cell_size: field.column_type.cell_size(),
        }
    }

    fn validity(tiles: &'a [Option<Arc<Tile>>], placed: &'a [bool], field: &'a BoundField) -> Self {
        let cells = |tile: &'a Option<Arc<Tile>>| match tile.as_ref().map(|tile| &tile.validity) {
            Some(Some(validity)) => SlotCells::Stored(validity),
            None if !field.fill.valid => SlotCells::Same(&[0]),
            Some(None) | None => SlotCells::Same(&[1]),
        };
        Self {
            tiles: tiles.iter().map(cells).collect(),
            placed,
            cell_size: 1,
        }
    }

    /// Writes the cells of bands.
    fn bands(&self, context: &Context, bands: &[SlabBand<'_>], out: &mut [u8]) -> Result<()> {
        let pieces = split(out, bands.iter().map(|band| band.cells * self.cell_size));
        let work = bands.iter().zip(pieces).collect();
        let write = |(band, out): (&SlabBand<'_>, _)| match self.cell_size {
            1 => self.cells::<1>(band.slabs, out),
            2 => self.cells::<2>(band.slabs, out),
            4 => self.cells::<4>(band.slabs, out),
            8 => self.cells::<8>(band.slabs, out),
            _ => self.cells::<0>(band.slabs, out),
        };
        each(context, work, write).map(drop)
    }

    /// `N` is the cell size, 0 if it is not known to the compiler.
    fn cells<const N: usize>(&self, slabs: &[CellSlab], mut out: &mut [u8]) -> Result<()> {
        let size = if N == 0 { self.cell_size } else { N };
        for slab in slabs {
            let place = out.split_off_mut(..slab.len as usize * size);
            let place = place.ok_or_else(lacking)?;
            if self.placed.get(slab.tile as usize) == Some(&true) {
                continue;
            }
            match self.tiles.get(slab.tile as usize).ok_or_else(lacking)? {
                SlotCells::Stored(cells) => {
                    let start = slab.start as usize * size;
                    let cells = cells.get(start..start + place.len());
                    let cells = cells.ok_or_else(lacking)?;
                    // Single cells are the rule where sparse fragments interleave: a fixed-size
                    // move, not a call.
                    match (place.first_chunk_mut::<N>(), cells.first_chunk::<N>()) {
                        (Some(place), Some(cell)) if N > 0 && slab.len == 1 => *place = *cell,
                        _ => place.copy_from_slice(cells),
                    }
                }
                SlotCells::Same(cell) => repeat_cell(place, cell),
            }
        }
        Ok(())
    }
}

/// Cells of any length that slabs point to.
struct VarSource<'a> {
    /// By slot; `None`: fill values.
    views: Vec<Option<FieldView<'a>>>,
    fill: &'a [u8],
}

impl<'a> VarSource<'a> {
    fn new(tiles: &'a [Option<Arc<Tile>>], field: &'a BoundField) -> Self {
        let view = |tile: &'a Option<Arc<Tile>>| tile.as_ref().map(|tile| tile.view());
        Self {
            views: tiles.iter().map(view).collect(),
            fill: &field.fill.bytes,
        }
    }

    /// The tile of a slab; `None` for fill values.
    fn view(&self, slab: &CellSlab) -> Result<Option<&FieldView<'a>>> {
        let view = self.views.get(slab.tile as usize).map(Option::as_ref);
        view.ok_or_else(lacking)
    }

    /// The start of each of a slab's cells in the tile's data, and the end of the last.
    fn offsets(view: &FieldView<'a>, slab: &CellSlab) -> Result<&'a [u64]> {
        let start = slab.start as usize;
        let offsets = view.offsets.ok_or_else(lacking)?;
        offsets
            .get(start..start + slab.len as usize + 1)
            .ok_or_else(lacking)
    }

    /// Bytes of the values of each band.
    fn var_sums(&self, context: &Context, bands: &[SlabBand<'_>]) -> Result<Vec<u64>> {
        each(context, bands.iter().collect(), |band| {
            self.var_bytes(band.slabs)
        })
    }

    /// Writes the values of bands, which have so many bytes each, to `data`, and where each cell
    /// starts to `starts`; the first does at `base`.
    fn var_bands(
        &self,
        context: &Context,
        bands: &[SlabBand<'_>],
        sums: &[u64],
        (data, starts, mut base): (&mut [u8], &mut [u64], u64),
    ) -> Result<()> {
        let start_pieces = split(starts, bands.iter().map(|b| b.cells));
        let data_pieces = split(data, sums.iter().map(|&n| n as usize));
        let mut work = Vec::with_capacity(bands.len());
        let pieces = bands.iter().zip(start_pieces).zip(data_pieces);
        for (((band, starts), data), sum) in pieces.zip(sums) {
            work.push((band, starts, data, base));
            base += sum;
        }
        each(context, work, |(band, starts, data, base)| {
            self.var(band.slabs, starts, data, base)
        })
        .map(drop)
    }

    fn var_bytes(&self, slabs: &[CellSlab]) -> Result<u64> {
        let mut sum = 0u64;
        for slab in slabs {
            let bytes = match self.view(slab)? {
                Some(view) => match Self::offsets(view, slab)? {
                    [first, .., last] => last - first,
                    _ => 0,
                },
                None => u64::from(slab.len) * self.fill.len() as u64,
            };
            sum = sum.checked_add(bytes).ok_or_else(lacking)?;
        }
        Ok(sum)
    }

    /// Writes the cells to `out` and where they start, counted from `next`, to `starts`.
    fn var(
        &self,
        slabs: &[CellSlab],
        mut starts: &mut [u64],
        mut out: &mut [u8],
        mut next: u64,
    ) -> Result<()> {
        for slab in slabs {
            let places = starts.split_off_mut(..slab.len as usize);
            let places = places.ok_or_else(lacking)?;
            if let Some(view) = self.view(slab)? {
                let offsets = Self::offsets(view, slab)?;
                let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
                    continue;
                };
                for (place, offset) in places.iter_mut().zip(offsets) {
                    *place = next + (offset - first);
                }
                let bytes = view.data.get(first as usize..last as usize);
                let bytes = bytes.ok_or_else(lacking)?;
                let place = out.split_off_mut(..bytes.len()).ok_or_else(lacking)?;
                place.copy_from_slice(bytes);
                next += last - first;
            } else {
                let size = self.fill.len();
                for place in places.iter_mut() {
                    *place = next;
                    next += size as u64;
                }
                let place = out.split_off_mut(..size * places.len());
                let place = place.ok_or_else(lacking)?;
                repeat_cell(place, self.fill);
            }
        }
        Ok(())
    }
}

//! Columns of var-length cells: lengths first, which say where each cell goes, then values.

use super::assemble::DenseQuery;
use super::plan::{BatchPlan, TileTask};
use crate::column::{ColumnBuffers, Tile};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::read::BoundField;
use crate::read::decode::{DecodeTarget, PARALLEL_BYTES};
use crate::read::load::load;
use crate::read::parallel::{each, split};
use crate::space::copy::{Copy, Row, copy_cells, copy_lengths, copy_var, fill_cells};
use arrow_buffer::{Buffer, MutableBuffer};
use azulejo_format::filter::StringWords;
use std::ops::Range;

fn beyond() -> Error {
    Error::Internal("a batch beyond the address space".into())
}

impl DenseQuery {
    /// Makes a column of var-length cells.
    pub async fn var_column(&self, batch: &BatchPlan, field: &BoundField) -> Result<ColumnBuffers> {
        let cells = self.var_cells(batch, field, None).await?;
        let offsets = cells.offsets(self.array.context())?;
        let data = cells.values(self.array.context(), offsets.typed_data())?;
        Ok(ColumnBuffers {
            column_type: field.column_type.clone(),
            cell_num: batch.cells,
            data: data.into(),
            offsets: Some(offsets.into()),
            validity: cells.validity()?,
        })
    }

    /// Loads the cells of a var-length column: as words, if there is a place for those of each tile.
    pub(super) async fn var_cells<'v>(
        &self,
        batch: &'v BatchPlan,
        field: &'v BoundField,
        words: Option<&mut Vec<StringWords>>,
    ) -> Result<VarCells<'v>> {
        let (mut requests, mut loaded, mut lacking) = (Vec::new(), Vec::new(), Vec::new());
        for task in &batch.tasks {
            match task.request(&self.array, field, self.wanted(batch, task, 8)) {
                Some(request) => {
                    loaded.push(task);
                    requests.push(request);
                }
                None => lacking.push(task),
            }
        }
        let targets = words.map(|words| {
            words.resize_with(requests.len(), StringWords::default);
            let target = |words| DecodeTarget {
                words: Some(words),
                ..DecodeTarget::default()
            };
            words.iter_mut().map(target).collect()
        });
        let tiles = load(&self.fetcher, &requests, targets.unwrap_or_default()).await?;
        for (tile, task) in tiles.iter().zip(&loaded) {
            self.check(task, tile.cell_num)?;
        }
        let is_small = batch.cells.saturating_mul(16) < PARALLEL_BYTES;
        let band = batch.cells.div_ceil(if is_small { 1 } else { 4 }).max(1);
        let starts = (0..batch.cells).step_by(band);
        Ok(VarCells {
            batch,
            field,
            tiles: loaded.into_iter().zip(tiles).collect(),
            lacking,
            bands: starts
                .map(|start| start..(start + band).min(batch.cells))
                .collect(),
        })
    }
}

/// The cells of a column, and the bands of it that threads fill.
pub(super) struct VarCells<'v> {
    batch: &'v BatchPlan,
    field: &'v BoundField,
    pub tiles: Vec<(&'v TileTask, Tile)>,
    /// What fragments have that lack the field.
    lacking: Vec<&'v TileTask>,
    pub bands: Vec<Range<usize>>,
}

impl<'v> VarCells<'v> {
    pub fn copies(&self, task: &TileTask) -> &'v [Copy] {
        self.batch.copies_of(task)
    }

    /// Whether some cells read as the fill value.
    pub fn has_fills(&self) -> bool {
        !(self.batch.fills.is_empty() && self.lacking.is_empty())
    }

    /// Where each cell starts, and the last one ends.
    fn offsets(&self, context: &Context) -> Result<MutableBuffer> {
        let len = (self.batch.cells + 1).checked_mul(8).ok_or_else(beyond)?;
        let mut offsets = MutableBuffer::from_len_zeroed(len);
        let placed = offsets.typed_data_mut::<u64>();
        let lens = placed.get_mut(1..).unwrap_or(&mut []);
        let fill_len = self.field.fill.bytes.len() as u64;
        if fill_len > 0 && self.has_fills() {
            lens.fill(fill_len);
        }
        let pieces = split(lens, self.bands.iter().map(Range::len));
        let work = self.bands.iter().zip(pieces).collect();
        each(context, work, |(band, lens)| {
            for (task, tile) in &self.tiles {
                let offsets = tile.offsets.as_deref().unwrap_or(&[]);
                copy_lengths(&self.batch.copies, self.copies(task), offsets, lens, band)?;
            }
            Ok(())
        })?;
        let mut sum = 0u64;
        for end in placed.iter_mut() {
            sum = sum.checked_add(*end).ok_or_else(beyond)?;
            *end = sum;
        }
        Ok(offsets)
    }

    /// The values, which begin at `offsets`.
    fn values(&self, context: &Context, offsets: &[u64]) -> Result<MutableBuffer> {
        let len = offsets.last().copied().unwrap_or(0);
        let len = usize::try_from(len).map_err(|_| beyond())?;
        let mut data = MutableBuffer::from_len_zeroed(len);
        let bytes = |band: &Range<usize>| (offsets[band.end] - offsets[band.start]) as usize;
        let pieces = split(data.as_slice_mut(), self.bands.iter().map(bytes));
        let work = self.bands.iter().zip(pieces).collect();
        each(context, work, |(band, out)| {
            let offsets = offsets.get(band.start..=band.end).unwrap_or(&[]);
            for (task, tile) in &self.tiles {
                let source = (&*tile.data, tile.offsets.as_deref().unwrap_or(&[]));
                let to = (&mut *out, offsets);
                copy_var(&self.batch.copies, self.copies(task), source, to, band)?;
            }
            self.fill_values(band, offsets, out)
        })?;
        Ok(data)
    }

    /// Writes the fill value to the cells of a band that have none.
    fn fill_values(&self, band: &Range<usize>, offsets: &[u64], out: &mut [u8]) -> Result<()> {
        let fill = self.field.fill.bytes.as_slice();
        if fill.is_empty() {
            return Ok(());
        }
        let base = offsets.first().copied().unwrap_or(0);
        let mut write = |row: Row| {
            for i in 0..row.axis.count {
                let at = row.out - band.start + i * row.axis.out;
                let start = (offsets.get(at).ok_or_else(beyond)? - base) as usize;
                let place = out.get_mut(start..start + fill.len()).ok_or_else(beyond)?;
                place.copy_from_slice(fill);
            }
            Ok(())
        };
        for copy in self.batch.fills.all() {
            self.batch.fills.rows(copy, band, &mut write)?;
        }
        for copy in self.lacking.iter().flat_map(|task| self.copies(task)) {
            self.batch.copies.rows(copy, band, &mut write)?;
        }
        Ok(())
    }

    /// The validity, if the field is nullable.
    pub fn validity(&self) -> Result<Option<Buffer>> {
        if !self.field.column_type.nullable {
            return Ok(None);
        }
        let (batch, all) = (self.batch, 0..self.batch.cells);
        let mut validity = MutableBuffer::from_len_zeroed(batch.cells);
        let out = validity.as_slice_mut();
        let filled = [u8::from(self.field.fill.valid)];
        fill_cells(&batch.fills, batch.fills.all(), &filled, out, &all)?;
        for task in &self.lacking {
            fill_cells(&batch.copies, self.copies(task), &filled, out, &all)?;
        }
        for (task, tile) in &self.tiles {
            match &tile.validity {
                Some(bytes) => copy_cells(&batch.copies, self.copies(task), bytes, out, &all, 1)?,
                None => fill_cells(&batch.copies, self.copies(task), &[1], out, &all)?,
            }
        }
        Ok(Some(validity.into()))
    }
}

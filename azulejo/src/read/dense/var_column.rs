//! Columns of var-length cells.

use super::assemble::Assembler;
use super::plan::{BatchPlan, TileTask, field_in};
use crate::column::{ColumnBuffers, Tile};
use crate::error::{Error, Result};
use crate::read::BoundField;
use crate::read::decode::{PARALLEL_BYTES, TileRequest};
use crate::read::load::load;
use crate::read::parallel::{each, split};
use crate::space::copy::{Row, copy_cells, copy_lengths, copy_var, fill_cells};
use arrow_buffer::MutableBuffer;
use std::ops::Range;

fn beyond() -> Error {
    Error::Internal("a batch beyond the address space".into())
}

impl Assembler<'_> {
    /// Makes a column of var-length cells.
    pub async fn var_column(&self, batch: &BatchPlan, field: &BoundField) -> Result<ColumnBuffers> {
        let mut requests = Vec::new();
        let mut loaded = Vec::new();
        let mut lacking = Vec::new();
        for task in &batch.tasks {
            match field_in(self.array, task.fragment, field) {
                Some(found) => {
                    let cells = self.wanted(batch, task, 8);
                    requests.push(TileRequest {
                        fragment: task.fragment,
                        field: found,
                        tile: task.tile,
                        cells,
                    });
                    loaded.push(task);
                }
                None => lacking.push(task),
            }
        }
        let tiles = load(self.fetcher, &requests, Vec::new()).await?;
        for (tile, task) in tiles.iter().zip(&loaded) {
            self.check(task, tile.cell_num)?;
        }
        let tiles: Vec<(&TileTask, &Tile)> = loaded.into_iter().zip(&tiles).collect();
        let context = self.array.context();
        let parts = if batch.cells.saturating_mul(16) < PARALLEL_BYTES {
            1
        } else {
            4
        };
        let bands = bands(&(0..batch.cells), parts);

        let mut offsets =
            MutableBuffer::from_len_zeroed((batch.cells + 1).checked_mul(8).ok_or_else(beyond)?);
        let placed = offsets.typed_data_mut::<u64>();
        let ends = placed.get_mut(1..).unwrap_or(&mut []);
        let fill_len = field.fill.bytes.len() as u64;
        if fill_len > 0 && !(batch.fills.is_empty() && lacking.is_empty()) {
            ends.fill(fill_len);
        }
        let pieces = split(ends, bands.iter().map(Range::len));
        each(
            context,
            bands.iter().zip(pieces).collect(),
            |(band, lens)| {
                for (task, tile) in &tiles {
                    let copies = batch.copies.get(task.copies.clone());
                    copy_lengths(
                        &batch.copies,
                        copies,
                        tile.offsets.as_deref().unwrap_or(&[]),
                        lens,
                        band,
                    )?;
                }
                Ok(())
            },
        )?;
        let mut sum = 0u64;
        for end in placed.iter_mut() {
            sum = sum.checked_add(*end).ok_or_else(beyond)?;
            *end = sum;
        }

        let mut data = MutableBuffer::from_len_zeroed(usize::try_from(sum).map_err(|_| beyond())?);
        let placed: &[u64] = placed;
        let bytes = |band: &Range<usize>| (placed[band.end] - placed[band.start]) as usize;
        let pieces = split(data.as_slice_mut(), bands.iter().map(bytes));
        each(
            context,
            bands.iter().zip(pieces).collect(),
            |(band, out)| {
                let placed = placed.get(band.start..=band.end).unwrap_or(&[]);
                for (task, tile) in &tiles {
                    let copies = batch.copies.get(task.copies.clone());
                    let source = (&*tile.data, tile.offsets.as_deref().unwrap_or(&[]));
                    copy_var(&batch.copies, copies, source, (&mut *out, placed), band)?;
                }
                if fill_len == 0 {
                    return Ok(());
                }
                let base = placed.first().copied().unwrap_or(0);
                let mut fill = |row: Row| {
                    for i in 0..row.axis.count {
                        let at = row.out - band.start + i * row.axis.out;
                        let start = (placed.get(at).ok_or_else(beyond)? - base) as usize;
                        let place = out
                            .get_mut(start..start + field.fill.bytes.len())
                            .ok_or_else(beyond)?;
                        place.copy_from_slice(&field.fill.bytes);
                    }
                    Ok(())
                };
                for copy in batch.fills.all() {
                    batch.fills.rows(copy, band, &mut fill)?;
                }
                for task in &lacking {
                    for copy in batch.copies.get(task.copies.clone()) {
                        batch.copies.rows(copy, band, &mut fill)?;
                    }
                }
                Ok(())
            },
        )?;

        let validity = if field.column_type.nullable {
            let mut validity = MutableBuffer::from_len_zeroed(batch.cells);
            let all = 0..batch.cells;
            let out = validity.as_slice_mut();
            let filled = [u8::from(field.fill.valid)];
            fill_cells(&batch.fills, batch.fills.all(), &filled, out, &all)?;
            for task in &lacking {
                fill_cells(
                    &batch.copies,
                    batch.copies.get(task.copies.clone()),
                    &filled,
                    out,
                    &all,
                )?;
            }
            for (task, tile) in &tiles {
                let copies = batch.copies.get(task.copies.clone());
                match &tile.validity {
                    Some(bytes) => copy_cells(&batch.copies, copies, bytes, out, &all, 1)?,
                    None => fill_cells(&batch.copies, copies, &[1], out, &all)?,
                }
            }
            Some(validity.into())
        } else {
            None
        };
        Ok(ColumnBuffers {
            column_type: field.column_type.clone(),
            cell_num: batch.cells,
            data: data.into(),
            offsets: Some(offsets.into()),
            validity,
        })
    }
}

/// Cuts a range into at most `parts` of equal length.
fn bands(whole: &Range<usize>, parts: usize) -> Vec<Range<usize>> {
    let each = whole.len().div_ceil(parts).max(1);
    let starts = whole.clone().step_by(each);
    starts
        .map(|start| start..(start + each).min(whole.end))
        .collect()
}

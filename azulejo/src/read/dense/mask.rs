//! Cells of dense reads that do not meet a condition: found on all cores, piece by piece, and made
//! to read as fill values.

use super::assemble::Assembler;
use super::plan::BatchPlan;
use crate::column::{ColumnBuffers, ColumnBuilder, FieldView, repeat_cell, runs};
use crate::condition::BoundCondition;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::read::parallel::each;
use crate::read::{BoundField, FillCell};
use azulejo_format::ArraySchema;
use std::collections::HashMap;
use std::sync::Arc;

/// Cells that are looked at at a time: their columns stay in a cache.
const PIECE: usize = 1 << 15;

/// Which of `cells` cells meet the condition, one byte each. `views` are the cells of its fields.
fn matching(
    context: &Context,
    condition: &BoundCondition,
    views: &[FieldView<'_>],
    cells: usize,
) -> Result<Vec<u8>> {
    let mut mask = vec![1; cells];
    let short = || Error::Internal("a column of a condition is shorter than the others".into());
    each(
        context,
        mask.chunks_mut(PIECE).enumerate().collect(),
        |(i, mask)| {
            let cells = i * PIECE..i * PIECE + mask.len();
            let views: Option<Vec<_>> =
                views.iter().map(|view| view.slice(cells.clone())).collect();
            condition.evaluate(&views.ok_or_else(short)?, mask)
        },
    )?;
    Ok(mask)
}

impl Assembler<'_> {
    /// Which cells meet the condition, one byte each; `views` are the cells of all fields, in their
    /// order.
    pub fn mask(&self, batch: &BatchPlan, views: &[FieldView<'_>]) -> Result<Option<Vec<u8>>> {
        let Some(condition) = self.condition else {
            return Ok(None);
        };
        let evaluate = |condition: &BoundCondition| -> Result<Vec<u8>> {
            let view = |name: &Arc<str>| {
                let place = self
                    .fields
                    .iter()
                    .position(|field| field.column_type.name == *name);
                let view = place.and_then(|place| views.get(place));
                view.copied()
                    .ok_or_else(|| Error::Internal(format!("no column {name}")))
            };
            let views = condition
                .fields()
                .iter()
                .map(view)
                .collect::<Result<Vec<_>>>()?;
            matching(self.array.context(), condition, &views, batch.cells)
        };
        let mut mask = evaluate(&condition.condition)?;
        // Cells of fragments that lack an attribute do not read as its fill value: tests of it are
        // false for them.
        let mut others: HashMap<*const ArraySchema, Vec<u8>> = HashMap::new();
        for task in &batch.tasks {
            let Some(fragment) = self.array.fragments().get(task.fragment) else {
                continue;
            };
            let lacks = |name: &Arc<str>| fragment.field(name).is_none();
            if !condition.condition.fields().iter().any(lacks) {
                continue;
            }
            if let std::collections::hash_map::Entry::Vacant(entry) =
                others.entry(Arc::as_ptr(fragment.schema()))
            {
                entry.insert(evaluate(
                    &condition.condition.for_fragment(fragment.schema()),
                )?);
            }
            let Some(other) = others.get(&Arc::as_ptr(fragment.schema())) else {
                continue;
            };
            for copy in batch.copies.get(task.copies.clone()) {
                batch.copies.rows(copy, &(0..batch.cells), &mut |row| {
                    for i in 0..row.axis.count {
                        let at = row.out + i * row.axis.out;
                        if let (Some(to), Some(from)) = (mask.get_mut(at), other.get(at)) {
                            *to = *from;
                        }
                    }
                    Ok(())
                })?;
            }
        }
        Ok(Some(mask))
    }
}

/// Makes fixed-length cells whose mask is 0 read as the fill value.
pub(super) fn fill_masked(
    context: &Context,
    mask: &[u8],
    fill: &FillCell,
    data: &mut [u8],
    validity: Option<&mut [u8]>,
) -> Result<()> {
    let size = fill.bytes.len();
    if size > 0 {
        let work = mask
            .chunks(PIECE)
            .zip(data.chunks_mut(PIECE * size))
            .collect();
        each(context, work, |(mask, cells)| {
            fill_piece(mask, &fill.bytes, cells);
            Ok(())
        })?;
    }
    if let Some(validity) = validity {
        fill_piece(mask, &[u8::from(fill.valid)], validity);
    }
    Ok(())
}

fn fill_piece(mask: &[u8], fill: &[u8], cells: &mut [u8]) {
    fn of_size<const N: usize>(mask: &[u8], fill: [u8; N], cells: &mut [u8]) {
        for (cell, matches) in cells.as_chunks_mut().0.iter_mut().zip(mask) {
            *cell = if *matches == 0 { fill } else { *cell };
        }
    }
    match *fill {
        [a] => of_size(mask, [a], cells),
        [a, b] => of_size(mask, [a, b], cells),
        [a, b, c, d] => of_size(mask, [a, b, c, d], cells),
        [a, b, c, d, e, f, g, h] => of_size(mask, [a, b, c, d, e, f, g, h], cells),
        _ => {
            for (matches, run) in runs(mask) {
                let bytes = run.start * fill.len()..run.end * fill.len();
                if let Some(cells) = cells.get_mut(bytes).filter(|_| !matches) {
                    repeat_cell(cells, fill);
                }
            }
        }
    }
}

/// A column of var-length cells that read as the fill value where the mask is 0.
pub(super) fn refilled(
    column: &ColumnBuffers,
    field: &BoundField,
    mask: &[u8],
) -> Result<ColumnBuffers> {
    let view = column.view();
    let mut builder = ColumnBuilder::with_capacity(
        column.column_type.clone(),
        column.cell_num,
        column.data.len(),
    );
    for (matches, cells) in runs(mask) {
        if matches {
            builder.append_view(&view, cells)?;
        } else {
            builder.append_repeated(&field.fill.bytes, field.fill.valid, cells.len());
        }
    }
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_any_size_are_filled_where_the_mask_is_0() {
        let context = Context::new(crate::Config::default(), None).unwrap();
        for size in [1, 2, 3, 4, 8, 12] {
            let count = PIECE + 7;
            let mask: Vec<u8> = (0..count)
                .map(|i| u8::from(i % 3 == 0 || i % 1000 > 900))
                .collect();
            let before: Vec<u8> = (0..count * size).map(|i| (i % 251) as u8).collect();
            let fill = FillCell {
                bytes: (0..size).map(|i| 200 + i as u8).collect(),
                valid: false,
            };
            let (mut data, mut validity) = (before.clone(), vec![1; count]);
            fill_masked(&context, &mask, &fill, &mut data, Some(&mut validity)).unwrap();
            assert_eq!(validity, mask);
            for (i, cell) in data.chunks(size).enumerate() {
                let expected = if mask[i] == 0 {
                    &fill.bytes
                } else {
                    &before[i * size..(i + 1) * size]
                };
                assert_eq!(cell, expected, "{size} {i}");
            }
        }
    }
}

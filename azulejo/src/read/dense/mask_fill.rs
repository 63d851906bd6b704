//! Mask fill: cells of dense reads that do not match a condition read as fill values.

use crate::column::{ColumnBuffers, ColumnBuilder, repeat_cell, runs};
use crate::context::Context;
use crate::error::Result;
use crate::read::parallel::each;
use crate::read::{BoundField, FillCell};

/// Cells that one task fills.
const PIECE: usize = 1 << 15;

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

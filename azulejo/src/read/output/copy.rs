//! As many whole cells of a batch as a caller's own buffers have room for.

use crate::column::{ColumnBuffers, ColumnMut, ColumnSet};
use crate::context::Context;
use crate::error::Error;
use crate::read::{BoundField, FillProgress};
use rayon::prelude::*;
use std::ops::Range;

/// Bytes that are copied in one go.
const PIECE: usize = 256 * 1024;

/// So few bytes are copied before another thread wakes.
const FEW_BYTES: usize = 8 * PIECE;

/// Copies some memory to a caller's.
type CopyPiece<'a> = Box<dyn FnOnce() + Send + 'a>;

fn cut_bytes<'a>(place: &'a mut [u8], bytes: &'a [u8], pieces: &mut Vec<CopyPiece<'a>>) {
    for (place, bytes) in place.chunks_mut(PIECE).zip(bytes.chunks(PIECE)) {
        pieces.push(Box::new(move || place.copy_from_slice(bytes)));
    }
}

/// Copies the cells from `done` on behind those that `progress` counts: how many, and which buffer was
/// the first without room.
pub(in crate::read) fn copy(
    context: &Context,
    batch: &ColumnSet,
    done: usize,
    out: &mut [ColumnMut<'_>],
    progress: &mut FillProgress,
) -> (usize, Option<Error>) {
    let mut cells = batch.cell_num - done;
    let mut too_small = None;
    let columns = batch.columns.iter().zip(out.iter());
    for ((column, buffers), written) in columns.zip(&progress.written) {
        let (fit, error) = room(column, done, cells, buffers, written.data, progress.cells);
        if fit < cells {
            (cells, too_small) = (fit, error);
        }
    }
    let (mut pieces, mut sum): (Vec<CopyPiece<'_>>, usize) = (Vec::new(), 0);
    let columns = batch.columns.iter().zip(out.iter_mut());
    for ((column, buffers), written) in columns.zip(&mut progress.written) {
        let bytes = byte_range(column, done, cells);
        let (from, to) = (bytes.start as u64, written.data as u64);
        let place = written.data..written.data + bytes.len();
        written.data = place.end;
        sum += bytes.len();
        cut_bytes(&mut buffers.data[place], &column.data[bytes], &mut pieces);
        if let (Some(places), Some(offsets)) = (&mut buffers.offsets, column.offsets.as_ref()) {
            let offsets = &offsets.typed_data::<u64>()[done..done + cells];
            let places = &mut places[progress.cells..progress.cells + cells];
            // They counted from `from`, and will from `to`.
            for (places, offsets) in places.chunks_mut(PIECE / 8).zip(offsets.chunks(PIECE / 8)) {
                pieces.push(Box::new(move || {
                    for (place, offset) in places.iter_mut().zip(offsets) {
                        *place = to + (offset - from);
                    }
                }));
            }
            sum += cells * 8;
            written.offsets += cells * 8;
        }
        if let (Some(places), Some(validity)) = (&mut buffers.validity, column.validity.as_ref()) {
            let places = &mut places[progress.cells..progress.cells + cells];
            cut_bytes(places, &validity[done..done + cells], &mut pieces);
            written.validity += cells;
            sum += cells;
        }
    }
    if sum < FEW_BYTES {
        pieces.into_iter().for_each(|copy| copy());
    } else {
        context.install(|| pieces.into_par_iter().for_each(|copy| copy()));
    }
    progress.cells += cells;
    (cells, too_small)
}

/// Cells that all buffers have room for, the bytes of var-length values aside.
pub(in crate::read) fn room_of(fields: &[BoundField], out: &[ColumnMut<'_>]) -> usize {
    let rooms = fields.iter().zip(out).map(|(field, out)| {
        let data = match field.column_type.is_var() {
            true => out.offsets.as_ref().map_or(0, |offsets| offsets.len()),
            false => out
                .data
                .len()
                .checked_div(field.column_type.cell_size())
                .unwrap_or(usize::MAX),
        };
        let validity = out.validity.as_ref().map_or(0, |v| v.len());
        match field.column_type.nullable {
            true => data.min(validity),
            false => data,
        }
    });
    rooms.min().unwrap_or(usize::MAX)
}

/// Where the values of `cells` cells from `first` on lie in a column, in bytes.
fn byte_range(column: &ColumnBuffers, first: usize, cells: usize) -> Range<usize> {
    match &column.offsets {
        Some(offsets) => {
            let offsets = offsets.typed_data::<u64>();
            offsets[first] as usize..offsets[first + cells] as usize
        }
        None => {
            let size = column.column_type.cell_size();
            first * size..(first + cells) * size
        }
    }
}

/// How many of `cells` cells fit behind what is written, and what the next one would need.
fn room(
    column: &ColumnBuffers,
    done: usize,
    cells: usize,
    out: &ColumnMut<'_>,
    written: usize,
    cells_written: usize,
) -> (usize, Option<Error>) {
    let field = &column.column_type.name;
    let too_small = |part, need: usize, have: usize| {
        Some(Error::BufferTooSmall {
            field: field.to_string(),
            part,
            need: need as u64,
            have: have as u64,
        })
    };
    let mut fit = cells;
    let mut error = None;
    let data = out.data.len() - written;
    let in_data = match &column.offsets {
        Some(offsets) => {
            let offsets = &offsets.typed_data::<u64>()[done..=done + cells];
            let first = offsets[0];
            offsets[1..].partition_point(|end| end - first <= data as u64)
        }
        None => data
            .checked_div(column.column_type.cell_size())
            .unwrap_or(cells),
    };
    if in_data < fit {
        let need = byte_range(column, done + in_data, 1).len();
        (fit, error) = (in_data, too_small("data", need, data));
    }
    // A cell has one of each.
    let offsets = out.offsets.as_ref().map_or(0, |o| o.len());
    let validity = out.validity.as_ref().map_or(0, |v| v.len());
    for (part, is_there, have, bytes) in [
        ("offsets", column.offsets.is_some(), offsets, 8),
        ("validity", column.validity.is_some(), validity, 1),
    ] {
        if is_there && have.saturating_sub(cells_written) < fit {
            fit = have.saturating_sub(cells_written);
            error = too_small(part, bytes, have * bytes);
        }
    }
    (fit, error)
}

//! Some cells of a tile: as ranges to be decoded, or cut out of what was decoded.

use crate::read::{Cells, PoolBuffer, Tile};
use std::ops::Range;

/// Ascending ranges, those that touch joined.
pub(super) fn runs(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match runs.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => runs.push(range),
        }
    }
    runs
}

/// What is worth decoding of a tile of `cell_num` cells for some of them: all, unless they are few.
pub(super) fn around(cells: &[u32], cell_num: u32) -> Cells {
    match cells.len() < cell_num as usize / 4 {
        true => Cells::Spans(single(cells)),
        false => Cells::All,
    }
}

/// Cells in any order as ascending runs of one each, those that touch joined.
fn single(cells: &[u32]) -> Vec<Range<u64>> {
    let joined = |cells: &[u32]| {
        let cells = cells.iter().map(|&cell| u64::from(cell));
        runs(cells.map(|cell| cell..cell + 1))
    };
    if cells.is_sorted() {
        return joined(cells);
    }
    let mut ascending = cells.to_vec();
    ascending.sort_unstable();
    joined(&ascending)
}

/// The cells of a tile at `places` as a tile.
pub(super) fn cut(tile: &Tile, places: &[u32]) -> Tile {
    let view = tile.view();
    let mut data = Vec::with_capacity(places.len() * tile.cell_size);
    let mut offsets = tile.offsets.as_ref().map(|_| vec![0u64]);
    match (&mut offsets, tile.cell_size) {
        (None, 8) => cells::<8>(&tile.data, places, &mut data),
        (None, 4) => cells::<4>(&tile.data, places, &mut data),
        (offsets, _) => {
            for place in places {
                data.extend_from_slice(view.cell(*place as usize));
                if let Some(offsets) = offsets {
                    offsets.push(data.len() as u64);
                }
            }
        }
    }
    let valid = |place: &u32| u8::from(view.is_valid(*place as usize));
    Tile {
        data: PoolBuffer::from(data),
        offsets,
        validity: tile
            .validity
            .as_ref()
            .map(|_| PoolBuffer::from(places.iter().map(valid).collect::<Vec<_>>())),
        cell_num: places.len(),
        cell_size: tile.cell_size,
    }
}

/// Appends the cells of `N` bytes at `places`.
fn cells<const N: usize>(from: &[u8], places: &[u32], out: &mut Vec<u8>) {
    let from = from.as_chunks::<N>().0;
    let cell = |place: &u32| from.get(*place as usize).copied().unwrap_or([0; N]);
    out.extend(places.iter().flat_map(cell));
}

//! Ranks of strings.

use super::KeyTile;
use rayon::prelude::*;
use std::cmp::Ordering;

/// The first bytes of a string, such that unequal prefixes decide and equal ones do unless both strings are longer than
/// fifteen bytes: bytes with their sign bit flipped, then the length up to 16.
fn prefix(text: &[u8]) -> u128 {
    let mut bytes = [0u8; 16];
    for (out, byte) in bytes.iter_mut().zip(text).take(15) {
        *out = byte ^ 0x80;
    }
    bytes.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte)) | text.len().min(16) as u128
}

/// Compares strings as arrays of signed `char`.
fn compare_text(a: &[u8], b: &[u8]) -> Ordering {
    match a.iter().zip(b).position(|(a, b)| a != b) {
        Some(i) => a.get(i).map(|b| b ^ 0x80).cmp(&b.get(i).map(|b| b ^ 0x80)),
        None => a.len().cmp(&b.len()),
    }
}

/// Ranks by tile and cell, and the distinct strings in order, each by tile and cell.
pub(super) type Ranks = (Vec<Vec<u32>>, Vec<(u32, u32)>);

/// Ranks the strings of a dimension. Runs of equal strings, as sorted fragments have them, are looked at once.
#[expect(clippy::cast_possible_truncation, reason = "tiles and their cells are counted in u32 here")]
pub(super) fn rank_strings(dimension: usize, tiles: &[KeyTile<'_>], non_ascii: &mut bool) -> Ranks {
    let text = |(tile, cell): (u32, u32)| -> &[u8] {
        tiles
            .get(tile as usize)
            .and_then(|t| t.coordinates.get(dimension))
            .map_or(&[], |view| view.cell(cell as usize))
    };
    /// Prefix, tile and cell of the first of each run, where each starts in the output, and whether one is not ASCII.
    type Runs = (Vec<(u128, u32, u32)>, Vec<u32>, bool);
    let runs: Vec<Runs> = tiles
        .par_iter()
        .enumerate()
        .map(|(t, tile)| {
            let Some(view) = tile.coordinates.get(dimension) else { return (Vec::new(), Vec::new(), false) };
            let (mut runs, mut starts) = (Vec::new(), Vec::new());
            let (mut last, mut foreign): (Option<&[u8]>, bool) = (None, false);
            tile.picked.for_each(|i, cell| {
                let text = view.cell(cell);
                if last != Some(text) {
                    runs.push((prefix(text), t as u32, cell as u32));
                    starts.push(i as u32);
                    foreign |= !text.is_ascii();
                    last = Some(text);
                }
            });
            (runs, starts, foreign)
        })
        .collect();
    *non_ascii |= runs.iter().any(|(.., foreign)| *foreign);
    // What was a run in its tile is found again by the run's number, kept where the cell was.
    let mut sorted: Vec<(u128, u32, u32)> = Vec::new();
    for (t, (runs, ..)) in runs.iter().enumerate() {
        sorted.extend(runs.iter().enumerate().map(|(r, (prefix, ..))| (*prefix, t as u32, r as u32)));
    }
    let cell_of = |t: u32, r: u32| -> (u32, u32) {
        runs.get(t as usize)
            .and_then(|(runs, ..)| runs.get(r as usize))
            .map_or((t, 0), |&(_, t, cell)| (t, cell))
    };
    let compare = |a: &(u128, u32, u32), b: &(u128, u32, u32)| {
        a.0.cmp(&b.0).then_with(|| {
            if a.0 & 0xff < 16 {
                Ordering::Equal
            } else {
                compare_text(text(cell_of(a.1, a.2)), text(cell_of(b.1, b.2)))
            }
        })
    };
    sorted.par_sort_unstable_by(compare);
    let mut by_run: Vec<Vec<u32>> = runs.iter().map(|(runs, ..)| vec![0; runs.len()]).collect();
    let mut distinct = Vec::new();
    let mut previous: Option<&(u128, u32, u32)> = None;
    for entry in &sorted {
        if previous.is_none_or(|previous| compare(previous, entry) != Ordering::Equal) {
            distinct.push(cell_of(entry.1, entry.2));
        }
        previous = Some(entry);
        if let Some(rank) = by_run.get_mut(entry.1 as usize).and_then(|ranks| ranks.get_mut(entry.2 as usize))
        {
            *rank = distinct.len() as u32 - 1;
        }
    }
    let ranks = tiles
        .par_iter()
        .zip(&runs)
        .zip(&by_run)
        .map(|((tile, (_, starts, _)), ranks)| {
            let len = tile.picked.len();
            let mut out = Vec::with_capacity(len);
            for (i, rank) in ranks.iter().enumerate() {
                out.resize(starts.get(i + 1).map_or(len, |&next| next as usize), *rank);
            }
            out
        })
        .collect();
    (ranks, distinct)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn text_compares_as_signed_chars(
            mut a in proptest::collection::vec(any::<u8>(), 0..20),
            mut b in proptest::collection::vec(any::<u8>(), 0..20),
            common in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            a.splice(0..0, common.iter().copied());
            b.splice(0..0, common);
            let signed = |t: &[u8]| t.iter().map(|b| b.cast_signed()).collect::<Vec<_>>();
            prop_assert_eq!(compare_text(&a, &b), signed(&a).cmp(&signed(&b)));
            let (x, y) = (prefix(&a), prefix(&b));
            prop_assert!(x == y || x.cmp(&y) == compare_text(&a, &b));
            prop_assert!(x != y || x & 0xff == 16 || a == b);
        }
    }
}

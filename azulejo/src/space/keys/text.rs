//! Ranks of strings.

use super::row_selection::KeyTile;
use rayon::prelude::*;
use std::cmp::Ordering;

/// The first bytes of a string, such that unequal prefixes decide and equal ones do unless both
/// strings are longer than fifteen bytes: bytes, then the length up to 16.
fn prefix(text: &[u8]) -> u128 {
    let mut bytes = [0u8; 16];
    for (out, byte) in bytes.iter_mut().zip(text).take(15) {
        *out = *byte;
    }
    bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | u128::from(*byte))
        | text.len().min(16) as u128
}

/// Ranks by tile and cell, and the distinct strings in order, each by tile and cell.
pub(super) type Ranks = (Vec<Vec<u32>>, Vec<(u32, u32)>);

/// The strings of one tile.
struct Ranked {
    /// Of each cell that takes part, by their order in the tile.
    ranks: Vec<u32>,
    /// The distinct strings in order: cells that have them.
    distinct: Vec<u32>,
    /// Whether one is not ASCII.
    foreign: bool,
}

/// Compares two strings of known prefixes.
fn compare<'a>(
    a: (u128, impl FnOnce() -> &'a [u8]),
    b: (u128, impl FnOnce() -> &'a [u8]),
) -> Ordering {
    a.0.cmp(&b.0).then_with(|| {
        if a.0 & 0xff < 16 {
            Ordering::Equal
        } else {
            a.1().cmp(b.1())
        }
    })
}

impl Ranked {
    /// Runs of equal strings, as sorted fragments have them, are looked at once.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the cells of a tile are counted in u32 here"
    )]
    fn of(dimension: usize, tile: &KeyTile<'_>) -> Self {
        let len = tile.rows.len();
        let Some(view) = tile.coordinates.get(dimension) else {
            return Self {
                ranks: vec![0; len],
                distinct: Vec::new(),
                foreign: false,
            };
        };
        // Prefix, a cell, and the run.
        let mut runs: Vec<(u128, u32, u32)> = Vec::new();
        let mut starts: Vec<u32> = Vec::new();
        let (mut last, mut foreign): (Option<&[u8]>, bool) = (None, false);
        tile.rows.for_each(|i, cell| {
            let text = view.cell(cell);
            if last != Some(text) {
                runs.push((prefix(text), cell as u32, starts.len() as u32));
                starts.push(i as u32);
                foreign |= !text.is_ascii();
                last = Some(text);
            }
        });
        let text = |cell: u32| move || view.cell(cell as usize);
        runs.sort_unstable_by(|a, b| compare((a.0, text(a.1)), (b.0, text(b.1))));
        let mut distinct: Vec<u32> = Vec::new();
        let mut by_run = vec![0u32; runs.len()];
        let mut previous: Option<(u128, u32)> = None;
        for (prefix, cell, run) in runs {
            let known = previous.is_some_and(|(last, of)| {
                compare((last, text(of)), (prefix, text(cell))) == Ordering::Equal
            });
            if !known {
                distinct.push(cell);
                previous = Some((prefix, cell));
            }
            if let Some(rank) = by_run.get_mut(run as usize) {
                *rank = distinct.len() as u32 - 1;
            }
        }
        let mut ranks = Vec::with_capacity(len);
        for (run, rank) in by_run.into_iter().enumerate() {
            ranks.resize(starts.get(run + 1).map_or(len, |&next| next as usize), rank);
        }
        Self {
            ranks,
            distinct,
            foreign,
        }
    }
}

/// A string that is distinct in its tile. Its prefix is kept in halves, as a number of 16 bytes
/// would leave eight unused.
#[derive(Debug, Clone, Copy, Default)]
struct DistinctText {
    prefix: [u64; 2],
    tile: u32,
    /// Its rank in the tile.
    rank: u32,
}

impl DistinctText {
    #[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
    fn new(prefix: u128, tile: u32, rank: u32) -> Self {
        Self {
            prefix: [(prefix >> 64) as u64, prefix as u64],
            tile,
            rank,
        }
    }

    #[inline]
    fn prefix(&self) -> u128 {
        u128::from(self.prefix[0]) << 64 | u128::from(self.prefix[1])
    }
}

/// Ranks the strings of a dimension: within each tile, where few may be distinct, then those among
/// each other.
#[expect(
    clippy::cast_possible_truncation,
    reason = "tiles and their cells are counted in u32 here"
)]
pub(super) fn rank_strings(dimension: usize, tiles: &[KeyTile<'_>], non_ascii: &mut bool) -> Ranks {
    let ranked: Vec<Ranked> = tiles
        .par_iter()
        .map(|tile| Ranked::of(dimension, tile))
        .collect();
    *non_ascii |= ranked.iter().any(|tile| tile.foreign);
    let count = ranked.iter().map(|tile| tile.distinct.len()).sum();
    let mut sorted = vec![DistinctText::default(); count];
    let mut rest = sorted.as_mut_slice();
    let mut work = Vec::with_capacity(tiles.len());
    for ((t, tile), ranked) in (0u32..).zip(tiles).zip(&ranked) {
        let (entries, later) = rest.split_at_mut(ranked.distinct.len().min(rest.len()));
        rest = later;
        work.push((
            t,
            tile.coordinates.get(dimension),
            &ranked.distinct,
            entries,
        ));
    }
    work.into_par_iter()
        .for_each(|(tile, view, cells, entries)| {
            for ((rank, cell), entry) in (0u32..).zip(cells).zip(entries) {
                let text = view.map_or(&[][..], |view| view.cell(*cell as usize));
                *entry = DistinctText::new(prefix(text), tile, rank);
            }
        });
    let (mut ranks, cells): (Vec<Vec<u32>>, Vec<Vec<u32>>) = ranked
        .into_iter()
        .map(|tile| (tile.ranks, tile.distinct))
        .unzip();
    let cell_of = |t: u32, rank: u32| -> u32 {
        cells
            .get(t as usize)
            .and_then(|cells| cells.get(rank as usize))
            .copied()
            .unwrap_or(0)
    };
    let text = |t: u32, rank: u32| {
        move || -> &[u8] {
            let view = tiles
                .get(t as usize)
                .and_then(|tile| tile.coordinates.get(dimension));
            view.map_or(&[], |view| view.cell(cell_of(t, rank) as usize))
        }
    };
    sorted.par_sort_unstable_by(|a, b| {
        compare(
            (a.prefix(), text(a.tile, a.rank)),
            (b.prefix(), text(b.tile, b.rank)),
        )
    });
    let mut global: Vec<Vec<u32>> = cells.iter().map(|cells| vec![0; cells.len()]).collect();
    let mut distinct: Vec<(u32, u32)> = Vec::new();
    let mut previous: Option<DistinctText> = None;
    for entry in sorted {
        let DistinctText { tile: t, rank, .. } = entry;
        let known = previous.is_some_and(|last| {
            let last = (last.prefix(), text(last.tile, last.rank));
            compare(last, (entry.prefix(), text(t, rank))) == Ordering::Equal
        });
        if !known {
            distinct.push((t, cell_of(t, rank)));
        }
        previous = Some(entry);
        if let Some(global) = global
            .get_mut(t as usize)
            .and_then(|ranks| ranks.get_mut(rank as usize))
        {
            *global = distinct.len() as u32 - 1;
        }
    }
    ranks
        .par_iter_mut()
        .zip(&global)
        .for_each(|(ranks, global)| {
            for rank in ranks {
                *rank = global.get(*rank as usize).copied().unwrap_or(0);
            }
        });
    (ranks, distinct)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn strings_of_several_tiles_are_ranked(
            tiles in proptest::collection::vec(proptest::collection::vec("[ab]{0,2}|[ab]{14,18}|\\PC{0,3}", 0..20), 1..5),
            skip in 1usize..4,
        ) {
            use super::super::RowSelection;
            use crate::column::FieldView;
            let bytes: Vec<(Vec<u8>, Vec<u64>)> = tiles
                .iter()
                .map(|texts| {
                    let ends = texts.iter().scan(0u64, |at, text| {
                        *at += text.len() as u64;
                        Some(*at)
                    });
                    let ends = std::iter::once(0).chain(ends);
                    (texts.concat().into_bytes(), ends.collect())
                })
                .collect();
            let rows: Vec<RowSelection> =
                tiles.iter().map(|t| RowSelection::List((0..t.len() as u32).step_by(skip).collect())).collect();
            let views: Vec<KeyTile<'_>> = bytes
                .iter()
                .zip(&tiles)
                .zip(&rows)
                .enumerate()
                .map(|(t, (((data, offsets), texts), rows))| KeyTile {
                    coordinates: vec![FieldView { cell_num: texts.len(), data, offsets: Some(offsets), validity: None, cell_size: 1 }],
                    rows,
                    slot: t as u32,
                })
                .collect();
            let mut non_ascii = false;
            let (ranks, distinct) = rank_strings(0, &views, &mut non_ascii);
            let of = |t: usize| tiles[t].iter().step_by(skip);
            let mut expected: Vec<&String> = (0..tiles.len()).flat_map(of).collect();
            prop_assert_eq!(non_ascii, expected.iter().any(|text| !text.is_ascii()));
            expected.sort();
            expected.dedup();
            let found: Vec<&String> = distinct.iter().map(|&(t, cell)| &tiles[t as usize][cell as usize]).collect();
            prop_assert_eq!(&found, &expected);
            for (t, ranks) in ranks.iter().enumerate() {
                let texts: Vec<&String> = ranks.iter().map(|rank| expected[*rank as usize]).collect();
                prop_assert_eq!(texts, of(t).collect::<Vec<_>>());
            }
        }

        #[test]
        fn prefixes_compare_as_texts_do(
            mut a in proptest::collection::vec(any::<u8>(), 0..20),
            mut b in proptest::collection::vec(any::<u8>(), 0..20),
            common in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            a.splice(0..0, common.iter().copied());
            b.splice(0..0, common);
            let (x, y) = (prefix(&a), prefix(&b));
            prop_assert!(x == y || x.cmp(&y) == a.cmp(&b));
            prop_assert!(x != y || x & 0xff == 16 || a == b);
        }
    }
}

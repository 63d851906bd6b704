//! From keys to slabs: the cells of a batch in order, without those that later writes replaced.
//!
//! Tiles whose key ranges do not meet are independent of each other; only groups of tiles that
//! interleave are sorted together. Keys hold their cells in the low bits, so sorting moves nothing
//! but integers. Few long runs are merged as they are; many keys in disorder are partitioned by
//! their highest bits first, and the parts sorted on all threads.

use crate::space::CellSlab;
use crate::space::keys::{CellBits, KeySet, Keys, Word};
use rayon::prelude::*;

/// Lists up to this long are sorted in one piece.
const ONE_PIECE: usize = if cfg!(test) { 16 } else { 32 * 1024 };

/// Bits that keys are partitioned by.
const PARTITION_BITS: u32 = 9;

/// What decides among cells of equal coordinates.
#[derive(Clone, Copy)]
pub(crate) enum MergeRule<'a> {
    /// All of them stay, in the order of their slots.
    Keep,
    /// The one with the least slot stays.
    First,
    /// The one with the latest timestamp stays, among those the one with the least slot. The
    /// function is given slot and place in the tile.
    Latest(&'a (dyn Fn(u32, u32) -> u64 + Sync)),
    /// Of every timestamp one stays, that with the least slot; the latest comes first. What is
    /// older than a cell that is no result is none either. The function is as for `Latest`.
    Versions(&'a (dyn Fn(u32, u32) -> u64 + Sync)),
}

/// Puts the cells of a batch in order. `results` says, by slot, which cells of a tile are results
/// (one byte a cell; `None`: all); it is asked after duplicates are gone, so that a cell that is no
/// result still replaces older ones.
pub(crate) fn merge(
    set: KeySet,
    duplicates: MergeRule<'_>,
    results: &[Option<&[u8]>],
) -> Vec<CellSlab> {
    let rules = Rules {
        bits: set.cell_bits,
        duplicates,
        results,
    };
    match set.keys {
        Keys::Narrow(keys) => rules.merge(keys),
        Keys::Wide(keys) => rules.merge(keys),
    }
}

/// Which cells stay, and how keys name them.
#[derive(Clone, Copy)]
struct Rules<'a> {
    bits: CellBits,
    duplicates: MergeRule<'a>,
    results: &'a [Option<&'a [u8]>],
}

impl Rules<'_> {
    /// The cells of tiles' keys in order.
    fn merge<W: Word>(self, mut runs: Vec<Vec<W>>) -> Vec<CellSlab> {
        runs.retain(|run| !run.is_empty());
        let mut groups = group(runs, self.bits);
        let slabs: Vec<Vec<CellSlab>> = match groups.as_mut_slice() {
            [group] => vec![self.merge_group(std::mem::take(group))],
            _ => groups
                .into_par_iter()
                .map(|group| self.merge_group(group))
                .collect(),
        };
        let mut slabs = slabs.into_iter();
        let mut all = slabs.next().unwrap_or_default();
        for more in slabs {
            all.extend(more);
        }
        all
    }

    fn merge_group<W: Word>(self, group: Vec<Vec<W>>) -> Vec<CellSlab> {
        let total: usize = group.iter().map(Vec::len).sum();
        let runs_of = |list: &Vec<W>| if list.is_sorted() { 1 } else { list.len() };
        let runs: usize = group.iter().map(runs_of).sum();
        if total > ONE_PIECE && runs > 4 {
            let shift = partition_shift(&group, self.bits);
            // What lies above is the same for all keys of a part.
            return match shift <= u64::BITS {
                true => self.sort_partitions(group, shift, |key| key.low(u64::BITS)),
                false => self.sort_partitions(group, shift, |key| key),
            };
        }
        let mut lists = group.into_iter();
        let mut keys = lists.next().unwrap_or_default();
        keys.reserve_exact(total - keys.len());
        for list in lists {
            keys.extend(list);
        }
        if !keys.is_sorted() {
            // Stable sorts merge the runs that are there; every key is unique.
            keys.sort();
        }
        self.emit(keys)
    }

    /// Partitions keys by the bits above `shift`, as what `short` makes of them, and sorts the
    /// parts; their cells in order.
    fn sort_partitions<W: Word, V: Word>(
        self,
        group: Vec<Vec<W>>,
        shift: u32,
        short: impl Fn(W) -> V + Send + Sync,
    ) -> Vec<CellSlab> {
        let some = group.len().div_ceil(rayon::current_num_threads()).max(1);
        let partitions: Vec<Vec<Vec<V>>> = group
            .par_chunks(some)
            .map(|lists| partition(lists, shift, &short))
            .collect();
        drop(group);
        let sort = |part: usize| {
            let pieces = || partitions.iter().filter_map(|parts| parts.get(part));
            let mut keys = Vec::with_capacity(pieces().map(Vec::len).sum());
            pieces().for_each(|piece| keys.extend_from_slice(piece));
            keys.sort_unstable();
            self.emit(keys)
        };
        let parts = (0..1usize << PARTITION_BITS).into_par_iter();
        parts.map(sort).collect::<Vec<_>>().concat()
    }

    /// The cells of sorted keys that stay.
    ///
    /// For example cells at 3 in the slots 0 and 1, and one at 5 in slot 1, where the first slot
    /// stays: 3 of slot 0 and 5 of slot 1. If that cell at 3 is no result, none at 3 is: it has
    /// replaced the other.
    fn emit<W: Word>(self, keys: Vec<W>) -> Vec<CellSlab> {
        let bits = self.bits;
        let is_result = |slot: u32, place: u32| {
            let mask = self.results.get(slot as usize).copied().flatten();
            mask.is_none_or(|mask| mask.get(place as usize) == Some(&1))
        };
        let mut slabs = Vec::new();
        let mut push = |key: W| {
            let (slot, place) = bits.cell(key);
            if is_result(slot, place) {
                CellSlab::push_onto(&mut slabs, slot, place.into(), 1);
            }
        };
        let time = |timestamp: &(dyn Fn(u32, u32) -> u64 + Sync), key: &W| {
            let (slot, place) = bits.cell(*key);
            timestamp(slot, place)
        };
        let low = bits.total();
        let same = |a: &W, b: &W| a.drop_low(low) == b.drop_low(low);
        match self.duplicates {
            MergeRule::Keep => keys.into_iter().for_each(push),
            MergeRule::First => {
                let mut previous: Option<W> = None;
                for key in keys {
                    if previous.is_none_or(|previous| !same(&previous, &key)) {
                        push(key);
                    }
                    previous = Some(key);
                }
            }
            MergeRule::Latest(timestamp) => {
                for cells in keys.chunk_by(same) {
                    let winner = match cells {
                        [only] => Some(*only),
                        // Of equal timestamps `max_by_key` gives the last, so it looks from behind.
                        _ => cells
                            .iter()
                            .rev()
                            .max_by_key(|key| time(timestamp, key))
                            .copied(),
                    };
                    winner.into_iter().for_each(&mut push);
                }
            }
            MergeRule::Versions(timestamp) => {
                let mut versions: Vec<(u64, W)> = Vec::new();
                for cells in keys.chunk_by(same) {
                    if let [only] = cells {
                        push(*only);
                        continue;
                    }
                    versions.clear();
                    versions.extend(cells.iter().map(|key| (time(timestamp, key), *key)));
                    versions.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
                    versions.dedup_by_key(|(time, _)| *time);
                    for (_, key) in &versions {
                        let (slot, place) = bits.cell(*key);
                        if !is_result(slot, place) {
                            break;
                        }
                        push(*key);
                    }
                }
            }
        }
        slabs
    }
}

/// Lists of keys that do not share coordinates with, nor lie between, those of another group; in
/// order.
fn group<W: Word>(runs: Vec<Vec<W>>, bits: CellBits) -> Vec<Vec<Vec<W>>> {
    let low = bits.total();
    let mut ranges: Vec<(W, W, Vec<W>)> = runs
        .into_par_iter()
        .map(|run| {
            let sorted = run.is_sorted();
            let (least, most) = match (run.first(), run.last()) {
                (Some(&first), Some(&last)) if sorted => (first, last),
                _ => (
                    run.iter().min().copied().unwrap_or_default(),
                    run.iter().max().copied().unwrap_or_default(),
                ),
            };
            (least, most, run)
        })
        .collect();
    ranges.sort_unstable_by_key(|(least, ..)| *least);
    let mut groups: Vec<Vec<Vec<W>>> = Vec::new();
    let mut reach: Option<W> = None;
    for (least, most, run) in ranges {
        match (groups.last_mut(), reach) {
            (Some(group), Some(far)) if least.drop_low(low) <= far.drop_low(low) => {
                group.push(run);
                reach = Some(far.max(most));
            }
            _ => {
                groups.push(vec![run]);
                reach = Some(most);
            }
        }
    }
    groups
}

/// The place in keys of the highest bits in which they differ, the cell's bits apart:
/// [`PARTITION_BITS`] from there on.
fn partition_shift<W: Word>(group: &[Vec<W>], bits: CellBits) -> u32 {
    let bounds = group.par_iter().filter_map(|list| {
        let (first, rest) = list.split_first()?;
        let wider = |(least, most): (W, W), key: &W| (least.min(*key), most.max(*key));
        Some(rest.iter().fold((*first, *first), wider))
    });
    let bounds = bounds.reduce_with(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let (least, most) = bounds.unwrap_or_default();
    least.common_shift(most, PARTITION_BITS).max(bits.total())
}

/// Parts in order, unsorted within.
fn partition<W: Word, V: Word>(
    lists: &[Vec<W>],
    shift: u32,
    short: impl Fn(W) -> V,
) -> Vec<Vec<V>> {
    let parts = 1usize << PARTITION_BITS;
    let part = |key: W| usize::try_from(key.drop_low(shift).low(PARTITION_BITS)).unwrap_or(0);
    let mut counts = vec![0; parts];
    for key in lists.iter().flatten() {
        if let Some(count) = counts.get_mut(part(*key)) {
            *count += 1;
        }
    }
    let mut partitions: Vec<Vec<V>> = counts.into_iter().map(Vec::with_capacity).collect();
    for key in lists.iter().flatten() {
        if let Some(partitions) = partitions.get_mut(part(*key)) {
            partitions.push(short(*key));
        }
    }
    partitions
}

#[cfg(test)]
mod tests;

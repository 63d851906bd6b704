//! From cells in any order to the array's order.

use super::validate::describe_cell;
use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::space::cell_bound::CellBound;
use crate::space::cell_order::CellOrder;
use crate::space::keys::{self, CellBits, KeyTile, Keys, RowSelection, Word};
use azulejo_format::ArraySchema;
use rayon::prelude::*;
use std::ops::Range;

/// What becomes of cells with equal coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DuplicateRule {
    /// The array allows them.
    Allowed,
    /// They are an error.
    Refused,
    /// The first one given stays.
    FirstStays,
}

/// Where cells go.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CellSequence {
    /// They are in order as given.
    AsGiven,
    /// The cells to store, in order.
    Sorted(Vec<u32>),
}

/// Bits of a cell's place in its run of cells that get keys together, one run a task.
pub(super) const RUN_BITS: u32 = 16;
/// Cells of such a run.
pub(super) const RUN: usize = 1 << RUN_BITS;

/// Brings cells into the order of an array. `dimensions` holds one view a dimension, of at most
/// 2^32 cells each.
///
/// # Errors
/// [`Error::InvalidArgument`] naming two cells of equal coordinates, if the rule refuses them.
pub(super) fn sort_cells(
    schema: &ArraySchema,
    order: &CellOrder,
    dimensions: &[FieldView<'_>],
    cell_num: usize,
    rule: DuplicateRule,
) -> Result<CellSequence> {
    KeyedCells::of(order, dimensions, 0..cell_num)?.sort(schema, dimensions, rule)
}

/// The error of two cells with equal coordinates.
fn duplicate(
    schema: &ArraySchema,
    dimensions: &[FieldView<'_>],
    first: usize,
    second: usize,
) -> Error {
    Error::InvalidArgument(format!(
        "Duplicate coordinates {} are not allowed: cells {first} and {second} have them; drop one of them or ask for \
         duplicates to be dropped",
        describe_cell(schema, dimensions, second)
    ))
}

/// Keys of cells, by run. The slot of a run counts from the first cell of the range they were
/// taken from.
pub(super) struct KeyedCells {
    keys: Keys,
    bits: CellBits,
}

impl KeyedCells {
    /// All cells of a range.
    fn of(order: &CellOrder, dimensions: &[FieldView<'_>], cells: Range<usize>) -> Result<Self> {
        Self::within(order, dimensions, cells, None, None)
    }

    /// Those cells of a range that are neither before `from` nor at or behind `to`.
    pub(super) fn within(
        order: &CellOrder,
        dimensions: &[FieldView<'_>],
        cells: Range<usize>,
        from: Option<&CellBound>,
        to: Option<&CellBound>,
    ) -> Result<Self> {
        let all = runs_of(&cells)
            .map(|run| RowSelection::All(u32::try_from(run.len()).unwrap_or(u32::MAX)));
        let all: Vec<RowSelection> = all.collect();
        Self::build(order, dimensions, runs_of(&cells).zip(&all), from, to)
    }

    /// The cells of each run of [`RUN`] that a list names, by run.
    pub(super) fn selected(
        order: &CellOrder,
        dimensions: &[FieldView<'_>],
        rows: &[RowSelection],
    ) -> Result<Self> {
        let cell_num = dimensions.first().map_or(0, |view| view.cell_num);
        Self::build(
            order,
            dimensions,
            runs_of(&(0..cell_num)).zip(rows),
            None,
            None,
        )
    }

    fn build<'a>(
        order: &CellOrder,
        dimensions: &[FieldView<'_>],
        runs: impl Iterator<Item = (Range<usize>, &'a RowSelection)>,
        from: Option<&CellBound>,
        to: Option<&CellBound>,
    ) -> Result<Self> {
        let mut tiles = Vec::new();
        for (slot, (cells, rows)) in runs.enumerate() {
            if rows.len() == 0 {
                continue;
            }
            let coordinates: Option<Vec<_>> = dimensions
                .iter()
                .map(|view| view.slice(cells.clone()))
                .collect();
            let coordinates =
                coordinates.ok_or_else(|| Error::Internal("coordinates are missing".into()))?;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "2^32 cells in runs of 2^16"
            )]
            tiles.push(KeyTile {
                coordinates,
                rows,
                slot: slot as u32,
            });
        }
        let set = keys::build(order, &tiles, from, to)?;
        Ok(Self {
            keys: set.keys,
            bits: set.cell_bits,
        })
    }

    /// Brings the cells in order. [`CellSequence::AsGiven`] means as they were taken.
    ///
    /// # Errors
    /// As [`sort_cells`].
    pub(super) fn sort(
        self,
        schema: &ArraySchema,
        dimensions: &[FieldView<'_>],
        rule: DuplicateRule,
    ) -> Result<CellSequence> {
        let sorted = match self.keys {
            Keys::Narrow(runs) => sort(runs, self.bits, rule),
            Keys::Wide(runs) => sort(runs, self.bits, rule),
        };
        sorted.map_err(|(first, second)| duplicate(schema, dimensions, first, second))
    }

    /// The cells, ascending, as they are counted in the range they were taken from.
    pub(super) fn cells(&self) -> Vec<u32> {
        fn of<W: Word>(runs: &[Vec<W>], bits: CellBits) -> Vec<u32> {
            runs.iter()
                .flatten()
                .map(|key| cell_of(*key, bits))
                .collect()
        }
        match &self.keys {
            Keys::Narrow(runs) => of(runs, self.bits),
            Keys::Wide(runs) => of(runs, self.bits),
        }
    }
}

/// The runs of a range of cells.
fn runs_of(cells: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = cells.end;
    cells
        .clone()
        .step_by(RUN)
        .map(move |start| start..end.min(start + RUN))
}

/// The index of a key's cell.
#[inline]
fn cell_of<W: Word>(key: W, bits: CellBits) -> u32 {
    let (slot, place) = bits.cell(key);
    slot << RUN_BITS | place
}

/// Whether keys, which hold the places of their cells in their low bits, are in order over all
/// runs.
fn in_order<W: Word>(runs: &[Vec<W>]) -> bool {
    let joints = runs.windows(2).all(|pair| match pair {
        [a, b] => a.last().zip(b.first()).is_none_or(|(a, b)| a <= b),
        _ => true,
    });
    joints && runs.par_iter().all(|run| run.is_sorted())
}

/// Sorts keys; an error is a pair of cells with equal coordinates.
fn sort<W: Word>(
    runs: Vec<Vec<W>>,
    bits: CellBits,
    rule: DuplicateRule,
) -> Result<CellSequence, (usize, usize)> {
    let equal = |a: W, b: W| {
        rule != DuplicateRule::Allowed && a.drop_low(bits.total()) == b.drop_low(bits.total())
    };
    if in_order(&runs) {
        let lasts: Vec<Option<W>> = std::iter::once(None)
            .chain(runs.iter().map(|run| run.last().copied()))
            .collect();
        let distinct = runs.par_iter().zip(&lasts).all(|(run, last)| {
            let joint = last.zip(run.first().copied());
            joint.is_none_or(|(a, b)| !equal(a, b)) && run.windows(2).all(|w| !equal(w[0], w[1]))
        });
        if distinct {
            return Ok(CellSequence::AsGiven);
        }
    }
    let buckets: Vec<Bucket<W>> = sorted_buckets(runs, |keys| Bucket::of(keys, bits, rule, equal))
        .into_iter()
        .collect::<Result<_, _>>()?;
    let mut cells = Vec::with_capacity(buckets.iter().map(|bucket| bucket.cells.len()).sum());
    let mut last = None;
    for bucket in buckets {
        let Some((first, end)) = bucket.ends else {
            continue;
        };
        // Equal coordinates may be in neighbouring buckets.
        let repeated = last.filter(|last| equal(*last, first));
        match repeated {
            Some(last) if rule == DuplicateRule::Refused => {
                return Err((cell_of(last, bits) as usize, cell_of(first, bits) as usize));
            }
            _ => cells.extend(bucket.cells.iter().skip(usize::from(repeated.is_some()))),
        }
        last = Some(end);
    }
    Ok(CellSequence::Sorted(cells))
}

/// The cells of sorted keys.
struct Bucket<W> {
    cells: Vec<u32>,
    /// First and last key.
    ends: Option<(W, W)>,
}

impl<W: Word> Bucket<W> {
    fn of(
        mut keys: Vec<W>,
        bits: CellBits,
        rule: DuplicateRule,
        equal: impl Fn(W, W) -> bool,
    ) -> Result<Self, (usize, usize)> {
        match rule {
            DuplicateRule::Allowed => {}
            DuplicateRule::Refused => {
                if let Some([a, b]) = keys.array_windows::<2>().find(|[a, b]| equal(*a, *b)) {
                    return Err((cell_of(*a, bits) as usize, cell_of(*b, bits) as usize));
                }
            }
            DuplicateRule::FirstStays => keys.dedup_by(|b, a| equal(*a, *b)),
        }
        let ends = keys.first().copied().zip(keys.last().copied());
        Ok(Self {
            cells: keys.iter().map(|&key| cell_of(key, bits)).collect(),
            ends,
        })
    }
}

/// Keys are partitioned into this many buckets by the bits that distinguish them.
const BUCKET_BITS: u32 = 8;
const BUCKETS: usize = 1 << BUCKET_BITS;
/// Fewer keys are sorted at once.
const FEW: usize = 4 * RUN;

/// Sorts keys in parallel and gives them to `each` piece by piece, in order.
///
/// Each run is partitioned where it lies in the caches; a bucket then gathers its part of
/// every run, and is small enough to be sorted in the caches too.
fn sorted_buckets<W: Word, R: Send>(
    runs: Vec<Vec<W>>,
    each: impl Fn(Vec<W>) -> R + Sync,
) -> Vec<R> {
    let ends = |run: &Vec<W>| run.iter().copied().min().zip(run.iter().copied().max());
    let ends = runs
        .par_iter()
        .filter_map(ends)
        .reduce_with(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let Some((least, most)) = ends else {
        return Vec::new();
    };
    if runs.iter().map(Vec::len).sum::<usize>() <= FEW {
        let mut keys = runs.concat();
        keys.par_sort_unstable();
        return vec![each(keys)];
    }
    // Above these bits all keys are the same.
    let shift = most.common_shift(least, BUCKET_BITS);
    let digit = |key: W| key.drop_low(shift).low(BUCKET_BITS) as usize;
    let partitioned: Vec<(Vec<W>, Vec<u32>)> = runs
        .into_par_iter()
        .map(|run| partition(&run, digit))
        .collect();
    (0..BUCKETS)
        .into_par_iter()
        .map(|bucket| {
            let parts = partitioned.iter().filter_map(|(keys, starts)| {
                let (start, end) = (*starts.get(bucket)?, *starts.get(bucket + 1)?);
                keys.get(start as usize..end as usize)
            });
            let parts: Vec<&[W]> = parts.collect();
            let mut keys = parts.concat();
            // Where the keys crowd in one bucket, no other thread has anything to do.
            if keys.len() > FEW {
                keys.par_sort_unstable();
            } else {
                keys.sort_unstable();
            }
            each(keys)
        })
        .collect()
}

/// Orders a run by a digit: the keys, and where each digit's begin.
fn partition<W: Word>(run: &[W], digit: impl Fn(W) -> usize) -> (Vec<W>, Vec<u32>) {
    let mut starts = vec![0u32; BUCKETS + 1];
    for &key in run {
        if let Some(count) = starts.get_mut(digit(key) + 1) {
            *count += 1;
        }
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    let mut next = starts.clone();
    let mut keys = vec![W::default(); run.len()];
    for &key in run {
        if let Some(place) = next.get_mut(digit(key)) {
            if let Some(out) = keys.get_mut(*place as usize) {
                *out = key;
            }
            *place += 1;
        }
    }
    (keys, starts)
}

/// A place where cells that should be in order are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disorder {
    /// The cell comes before the one given before it.
    Before(usize),
    /// The cell has the coordinates of the one given before it.
    Equal(usize),
}

/// Cells whose order is checked at a time, unless memory is short.
pub(super) const CHECKED: usize = 1 << 20;

/// Finds the first cell that comes before the one given before it and, if `duplicates` are looked
/// for, every cell with the coordinates of the one before it; `at_once` cells at a time.
pub(super) fn disorders(
    order: &CellOrder,
    dimensions: &[FieldView<'_>],
    cell_num: usize,
    duplicates: bool,
    at_once: usize,
) -> Result<Vec<Disorder>> {
    fn look<W: Word>(runs: &[Vec<W>], bits: u32, duplicates: bool) -> Vec<Disorder> {
        let checked = |before: Option<W>, cell: usize, key: W| {
            let (before, key) = (before?.drop_low(bits), key.drop_low(bits));
            if before > key {
                Some(Disorder::Before(cell))
            } else {
                (duplicates && before == key).then_some(Disorder::Equal(cell))
            }
        };
        let lasts: Vec<Option<W>> = std::iter::once(None)
            .chain(runs.iter().map(|run| run.last().copied()))
            .collect();
        let found = runs
            .par_iter()
            .zip(&lasts)
            .enumerate()
            .map(|(r, (run, &last))| {
                let mut before = last;
                let mut found = Vec::new();
                for (i, &key) in run.iter().enumerate() {
                    found.extend(checked(before, r * RUN + i, key));
                    before = Some(key);
                }
                found
            });
        found.flatten_iter().collect()
    }
    let mut all = Vec::new();
    let mut start = 0usize;
    while start < cell_num {
        // The last cell of the piece before is looked at again, as the one before the first.
        let first = start.saturating_sub(1);
        let end = cell_num.min(start + at_once.max(1));
        let keyed = KeyedCells::of(order, dimensions, first..end)?;
        let bits = keyed.bits.total();
        let found = match &keyed.keys {
            Keys::Narrow(runs) => look(runs, bits, duplicates),
            Keys::Wide(runs) => look(runs, bits, duplicates),
        };
        all.extend(found.into_iter().map(|disorder| match disorder {
            Disorder::Before(cell) => Disorder::Before(first + cell),
            Disorder::Equal(cell) => Disorder::Equal(first + cell),
        }));
        if let Some(Disorder::Before(_)) = all.iter().find(|d| matches!(d, Disorder::Before(_))) {
            break;
        }
        start = end;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn runs(keys: &[u64]) -> Vec<Vec<u64>> {
        keys.chunks(RUN).map(<[u64]>::to_vec).collect()
    }

    #[test]
    fn buckets_hold_the_keys_in_order() {
        let mut state = 7u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 20
        };
        for range in [u64::MAX, 1000, 1, 1 << 40] {
            let keys: Vec<u64> = (0..5 * RUN + 3).map(|_| 17 + random() % range).collect();
            let found: Vec<u64> = sorted_buckets(runs(&keys), |keys| keys).concat();
            let mut expected = keys;
            expected.sort_unstable();
            assert!(found == expected, "range {range}");
        }
        // One key far from the rest: all others crowd in one bucket.
        let mut keys: Vec<u64> = (0..6 * RUN as u64).rev().collect();
        keys.push(u64::MAX);
        let found: Vec<u64> = sorted_buckets(runs(&keys), |keys| keys).concat();
        assert!(found.is_sorted() && found.len() == keys.len());
    }

    #[test]
    fn cells_follow_the_curve_whether_positions_tell_them_apart_or_not() {
        use crate::space::{Layout, hilbert::HilbertCurve};
        for (high, x_high) in [(999i32, 999i32), (i32::MAX, 999), (999, 5000)] {
            let new = ArraySchema::sparse()
                .dimension("x", 0i32..=high, 7)
                .dimension("y", -5i32..=7, 3);
            let new = new
                .attribute("a", azulejo_format::Datatype::Int32)
                .allows_duplicates(true);
            let schema = new.cell_order(Layout::Hilbert).build().unwrap().schema;
            let order = CellOrder::new(&schema, Layout::Global);
            let cells: Vec<[i32; 2]> = (0..3000i32)
                .map(|i| [i * 7919 % (x_high + 1), i * 31 % 13 - 5])
                .collect();
            let columns = [0, 1].map(|d| {
                cells
                    .iter()
                    .flat_map(|cell| cell[d].to_le_bytes())
                    .collect::<Vec<u8>>()
            });
            let views = columns.each_ref().map(|data| FieldView {
                cell_num: cells.len(),
                data,
                offsets: None,
                validity: None,
                cell_size: 4,
            });
            let found =
                sort_cells(&schema, &order, &views, cells.len(), DuplicateRule::Allowed).unwrap();
            let curve = HilbertCurve::new(2).unwrap();
            let bucket = |cell: &[i32; 2]| {
                [
                    curve.number_bucket(cell[0], (0, high)),
                    curve.number_bucket(cell[1], (-5, 7)),
                ]
            };
            let mut expected: Vec<u32> = (0..3000).collect();
            expected.sort_by_key(|i| {
                let cell = &cells[*i as usize];
                (curve.position(&mut bucket(cell)), *cell, *i)
            });
            assert!(found == CellSequence::Sorted(expected), "{high} {x_high}");
        }
    }

    #[test]
    fn equal_coordinates_in_neighbouring_buckets_are_one() {
        let bits = CellBits {
            slot: 3,
            place: RUN_BITS,
        };
        let keys: Vec<u64> = (0..5 * RUN as u64)
            .map(|i| ((i % 3) << bits.total()) | i)
            .collect();
        let found = sort(runs(&keys), bits, DuplicateRule::FirstStays);
        assert_eq!(found, Ok(CellSequence::Sorted(vec![0, 1, 2])));
        assert_eq!(sort(runs(&keys), bits, DuplicateRule::Refused), Err((0, 3)));
    }

    proptest! {
        #[test]
        fn duplicates_are_found_across_buckets(values in proptest::collection::vec(0u64..50, 1..60)) {
            let place = u64::BITS - (values.len() as u64 - 1).leading_zeros();
            let bits = CellBits { slot: 0, place };
            let keys: Vec<u64> = values.iter().zip(0..).map(|(value, i)| (value << place) | i).collect();
            let mut first: Vec<u32> = (0..values.len() as u32).collect();
            first.sort_by_key(|i| (values[*i as usize], *i));
            let all = if first.is_sorted() { CellSequence::AsGiven } else { CellSequence::Sorted(first.clone()) };
            prop_assert_eq!(sort(vec![keys.clone()], bits, DuplicateRule::Allowed), Ok(all));
            let before = first.len();
            first.dedup_by_key(|i| values[*i as usize]);
            let distinct = first.len() == before;
            prop_assert_eq!(sort(vec![keys.clone()], bits, DuplicateRule::Refused).is_ok(), distinct);
            let kept = if distinct && first.is_sorted() { CellSequence::AsGiven } else { CellSequence::Sorted(first) };
            prop_assert_eq!(sort(vec![keys], bits, DuplicateRule::FirstStays), Ok(kept));
        }
    }
}

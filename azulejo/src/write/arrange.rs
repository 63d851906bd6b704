//! From cells in any order to the array's order.

use super::validate::describe_cell;
use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::space::cell_order::CellOrder;
use crate::space::keys::{self, CellBits, KeyTile, Keys, Picked, Word};
use azulejo_format::ArraySchema;
use rayon::prelude::*;

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
pub(super) enum Arrangement {
    /// They are in order as given.
    AsGiven,
    /// The cells to store, in order.
    Sorted(Vec<u32>),
}

/// Bits of a cell's place in its run of cells that get keys together, one run a task.
const RUN_BITS: u32 = 16;
/// Cells of such a run.
const RUN: usize = 1 << RUN_BITS;

/// Brings cells into the order of an array. `dimensions` holds one view a dimension, of at most 2^32 cells each.
///
/// # Errors
/// [`Error::InvalidArgument`] naming two cells of equal coordinates, if the rule refuses them.
pub(super) fn arrange(
    schema: &ArraySchema,
    order: &CellOrder,
    dimensions: &[FieldView<'_>],
    cell_num: usize,
    rule: DuplicateRule,
) -> Result<Arrangement> {
    let keys = KeyedCells::of(order, dimensions, 0..cell_num)?;
    let arranged = match keys.keys {
        Keys::Narrow(runs) => sort(runs, keys.bits, rule),
        Keys::Wide(runs) => sort(runs, keys.bits, rule),
    };
    arranged.map_err(|(first, second)| duplicate(schema, dimensions, first, second))
}

/// The error of two cells with equal coordinates.
fn duplicate(schema: &ArraySchema, dimensions: &[FieldView<'_>], first: usize, second: usize) -> Error {
    Error::InvalidArgument(format!(
        "Duplicate coordinates {} are not allowed: cells {first} and {second} have them; drop one of them or ask for \
         duplicates to be dropped",
        describe_cell(schema, dimensions, second)
    ))
}

/// Keys of cells that lie one behind the other.
struct KeyedCells {
    keys: Keys,
    bits: CellBits,
}

impl KeyedCells {
    fn of(order: &CellOrder, dimensions: &[FieldView<'_>], cells: std::ops::Range<usize>) -> Result<Self> {
        let starts: Vec<usize> = cells.clone().step_by(RUN).collect();
        let lens: Vec<usize> = starts.iter().map(|start| RUN.min(cells.end - start)).collect();
        #[expect(clippy::cast_possible_truncation, reason = "a run has 2^16 cells")]
        let picked: Vec<Picked> = lens.iter().map(|&len| Picked::All(len as u32)).collect();
        let mut tiles = Vec::with_capacity(starts.len());
        for (slot, ((&start, len), picked)) in starts.iter().zip(lens).zip(&picked).enumerate() {
            let coordinates: Option<Vec<_>> =
                dimensions.iter().map(|view| view.slice(start..start + len)).collect();
            let coordinates = coordinates.ok_or_else(|| Error::Internal("coordinates are missing".into()))?;
            #[expect(clippy::cast_possible_truncation, reason = "2^32 cells in runs of 2^16")]
            tiles.push(KeyTile { coordinates, picked, slot: slot as u32 });
        }
        let set = keys::build(order, &tiles, None, None)?;
        Ok(Self { keys: set.keys, bits: set.cell_bits })
    }
}

/// The index of a key's cell.
#[inline]
fn cell_of<W: Word>(key: W, bits: CellBits) -> u32 {
    let (slot, place) = bits.cell(key);
    slot << RUN_BITS | place
}

/// Whether keys, which hold the places of their cells in their low bits, are in order over all runs.
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
) -> Result<Arrangement, (usize, usize)> {
    let given = in_order(&runs);
    let mut keys: Vec<W> = runs.concat();
    drop(runs);
    if !given {
        keys.par_sort_unstable();
    }
    let equal = |pair: &[W]| matches!(pair, [a, b] if a.drop_low(bits.total()) == b.drop_low(bits.total()));
    let duplicates = match rule {
        DuplicateRule::Allowed => false,
        _ => match keys.par_windows(2).find_first(|pair| equal(pair)) {
            Some(&[a, b]) if rule == DuplicateRule::Refused => {
                return Err((cell_of(a, bits) as usize, cell_of(b, bits) as usize));
            }
            found => found.is_some(),
        },
    };
    if given && !duplicates {
        return Ok(Arrangement::AsGiven);
    }
    if duplicates {
        keys.dedup_by_key(|key| key.drop_low(bits.total()));
    }
    Ok(Arrangement::Sorted(keys.par_iter().map(|&key| cell_of(key, bits)).collect()))
}

/// A place where cells that should be in order are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disorder {
    /// The cell comes before the one given before it.
    Before(usize),
    /// The cell has the coordinates of the one given before it.
    Equal(usize),
}

/// Cells whose order is checked at a time.
const CHECKED: usize = 1 << 20;

/// Finds the first cell that comes before the one given before it and, if `duplicates` are looked for, every cell with
/// the coordinates of the one before it.
pub(super) fn disorders(
    order: &CellOrder,
    dimensions: &[FieldView<'_>],
    cell_num: usize,
    duplicates: bool,
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
        let lasts: Vec<Option<W>> =
            std::iter::once(None).chain(runs.iter().map(|run| run.last().copied())).collect();
        let found = runs.par_iter().zip(&lasts).enumerate().map(|(r, (run, &last))| {
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
        let end = cell_num.min(start + CHECKED);
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

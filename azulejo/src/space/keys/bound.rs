//! Bounds between batches as keys.

use super::columns::{KeyColumn, KeyInput, KeySource};
use super::row_selection::KeyTile;
use super::word::Word;
use crate::space::cell_bound::{BoundPart, CellBound};

/// The least combination of the columns' numbers that is not below a bound: as the leading bits of
/// keys, and the numbers of the columns that these do not hold as a whole.
pub(super) struct Limit<'a, W> {
    lead: W,
    rest: &'a [KeyColumn],
    numbers: Vec<u64>,
    /// Every cell of the batch is below the bound.
    above_all: bool,
}

impl<'a, W: Word> Limit<'a, W> {
    /// A bound beside keys that hold the first `prefix` bits of the columns.
    pub(super) fn new(batch: &KeyInput<'a>, bound: &CellBound, prefix: u32) -> Self {
        let (numbers, above_all) = match least_not_below(batch.tiles, batch.columns, bound) {
            Some(numbers) => (numbers, false),
            None => (Vec::new(), true),
        };
        let (mut lead, mut left) = (W::default(), prefix);
        for (column, number) in batch.columns.iter().zip(&numbers) {
            let taken = column.bits.min(left);
            left -= taken;
            if taken > 0 {
                lead = lead.append(taken, number >> (column.bits - taken));
            }
        }
        let whole = batch.whole_columns(prefix);
        Self {
            lead,
            rest: batch.columns.get(whole..).unwrap_or_default(),
            numbers: numbers.get(whole..).unwrap_or_default().to_vec(),
            above_all,
        }
    }

    /// Whether the bound is above a cell, given by the leading bits of its key, its tile and its
    /// place among the selected cells there.
    #[inline]
    pub(super) fn is_above(&self, batch: &KeyInput<'_>, lead: W, cell: (usize, usize)) -> bool {
        let rest = || {
            let numbers = self.rest.iter().map(|column| batch.number(column, cell));
            numbers.lt(self.numbers.iter().copied())
        };
        self.above_all || lead < self.lead || (lead == self.lead && rest())
    }
}

/// The least combination of numbers that is not below a bound; `None` if all are below it.
fn least_not_below(
    tiles: &[KeyTile<'_>],
    columns: &[KeyColumn],
    bound: &CellBound,
) -> Option<Vec<u64>> {
    let mut parts = bound.parts();
    let mut numbers = Vec::with_capacity(columns.len());
    for column in columns {
        match place(tiles, column, parts.next().as_ref()) {
            ValuePlace::At(number) if number <= most(column) => numbers.push(number),
            // The columns behind may be anything.
            ValuePlace::Before(number) if number <= most(column) => {
                numbers.push(number);
                break;
            }
            // All that agree so far are below the bound: the next prefix is not.
            ValuePlace::At(_) | ValuePlace::Before(_) | ValuePlace::Above => {
                increment(columns, &mut numbers)?;
                break;
            }
        }
    }
    numbers.resize(columns.len(), 0);
    Some(numbers)
}

/// The highest number of a column.
fn most(column: &KeyColumn) -> u64 {
    match column.bits {
        0 => 0,
        bits => u64::MAX >> (64 - bits),
    }
}

/// The next combination of leading columns; `None` behind the last one.
fn increment(columns: &[KeyColumn], numbers: &mut [u64]) -> Option<()> {
    for (column, number) in columns.iter().zip(numbers).rev() {
        if *number < most(column) {
            *number += 1;
            return Some(());
        }
        *number = 0;
    }
    None
}

/// Where a part of a bound lies among the numbers of a column.
fn place(tiles: &[KeyTile<'_>], column: &KeyColumn, part: Option<&BoundPart>) -> ValuePlace {
    match (part, &column.source) {
        (None, _) => ValuePlace::Before(0),
        (Some(BoundPart::Infinity), _) => ValuePlace::Above,
        (
            Some(BoundPart::Number(n)),
            KeySource::Ordinal { base, .. }
            | KeySource::TileIndex { base, .. }
            | KeySource::Hilbert { base, .. },
        ) => n
            .checked_sub(*base)
            .map_or(ValuePlace::Before(0), ValuePlace::At),
        (Some(BoundPart::Number(n)), KeySource::Place { split, .. }) => {
            ValuePlace::At(split.place(*n))
        }
        // The bound is that of a cell, which has these coordinates if it is at this position.
        (Some(BoundPart::Number(_)), KeySource::Implied) => ValuePlace::At(0),
        (
            Some(BoundPart::Text(bound)),
            KeySource::Text {
                dimension,
                distinct,
                ..
            },
        ) => {
            let text = |&(tile, cell): &(u32, u32)| {
                let view = tiles
                    .get(tile as usize)
                    .and_then(|t| t.coordinates.get(*dimension));
                view.map_or(&[][..], |view| view.cell(cell as usize))
            };
            let rank = distinct.partition_point(|at| text(at) < bound.as_slice());
            match distinct.get(rank) {
                Some(at) if text(at) == bound.as_slice() => ValuePlace::At(rank as u64),
                Some(_) => ValuePlace::Before(rank as u64),
                None => ValuePlace::Above,
            }
        }
        (Some(_), _) => ValuePlace::Before(0),
    }
}

/// Where a bound lies among the values of a column.
enum ValuePlace {
    /// At this value.
    At(u64),
    /// Below this value and above the one before.
    Before(u64),
    /// Above all values.
    Above,
}

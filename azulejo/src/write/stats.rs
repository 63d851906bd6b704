//! Statistics of tiles: what readers skip tiles by. Computed as the reference computes them,
//! oddities included where readers lean on them (see `docs/differences.md` for where not).
//!
//! | cells | min and max | sum |
//! |---|---|---|
//! | one number, date, time or boolean | the least and the greatest non-null | of the non-null; stops at the type's limits |
//! | `CHAR`, `STRING_ASCII` | as C strings compare: up to the first zero byte | of a single `CHAR` |
//! | others | none | none |
//!
//! Of numbers the last of equals is taken (which tells -0.0 from 0.0), and a NaN stands until the
//! next number. Dimensions have a box (MBR) instead of a min and a max; there the first of equals
//! is taken, and of NaN nothing unless there is nothing else.

mod reals;

use crate::column::FieldView;
use crate::error::{Error, Result};
use azulejo_format::datatype::{Native, Physical};
use azulejo_format::dispatch;
use azulejo_format::fragment::{Field, SumKind, TileSum, has_min_max};
use azulejo_format::{ArraySchema, CellValNum, Datatype};
use reals::Folded;
use std::cmp::Ordering;
use std::ops::Range;

/// Which statistics the tiles of a field have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatsKind {
    pub datatype: Datatype,
    /// Bytes of a cell; `None` where cells vary.
    pub cell_size: Option<usize>,
    pub nullable: bool,
    /// Box and first and last cell instead of a min and a max.
    pub is_dimension: bool,
    pub min_max: bool,
    pub sum: Option<SumKind>,
}

impl StatsKind {
    /// The statistics of a field of `schema`.
    pub fn of(field: Field, schema: &ArraySchema) -> Self {
        let (datatype, cell_val_num) = field
            .layout(schema)
            .unwrap_or((Datatype::Any, CellValNum::Var));
        let is_dimension = matches!(field, Field::Dimension(_));
        let cells = Self::of_cells(datatype, cell_val_num);
        Self {
            nullable: field.is_nullable(schema),
            is_dimension,
            min_max: cells.min_max && !is_dimension,
            ..cells
        }
    }

    /// The statistics of an attribute without nulls.
    pub fn of_cells(datatype: Datatype, cell_val_num: CellValNum) -> Self {
        Self {
            datatype,
            cell_size: cell_val_num.cell_size(datatype),
            nullable: false,
            is_dimension: false,
            min_max: has_min_max(datatype, cell_val_num),
            sum: SumKind::of(datatype, cell_val_num),
        }
    }

    /// Whether values are compared as C strings.
    pub const fn is_text(&self) -> bool {
        matches!(self.datatype, Datatype::Char | Datatype::StringAscii)
    }
}

/// What one tile of a field holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct TileSummary {
    /// The least value; of a dimension the lower bound of the box.
    pub min: Vec<u8>,
    /// The greatest value; of a dimension the upper bound of the box.
    pub max: Vec<u8>,
    /// See [`SumKind::sum`].
    pub sum_bits: u64,
    pub null_count: u64,
}

/// Statistics of the cells `written` (ascending) of a tile. `view` was checked for its shape, not
/// for its offsets.
pub(crate) fn summarize(
    kind: &StatsKind,
    view: &FieldView<'_>,
    written: &[Range<usize>],
) -> Result<TileSummary> {
    if let Some(offsets) = view.offsets {
        check_offsets(offsets, view.data.len())?;
    }
    let mut summary = TileSummary::default();
    if let Some(validity) = view.validity {
        let nulls = |range: &Range<usize>| {
            validity
                .get(range.clone())
                .unwrap_or_default()
                .iter()
                .map(|v| u64::from(*v == 0))
                .sum::<u64>()
        };
        summary.null_count = written.iter().map(nulls).sum();
    }
    match (
        kind.min_max || kind.is_dimension,
        kind.is_text(),
        kind.cell_size,
    ) {
        (true, false, Some(_)) => {
            dispatch!(kind.datatype.physical(), T => numbers::<T>(kind, view, written, &mut summary));
        }
        (true, true, Some(size)) => {
            let compare = |a: &[u8], b: &[u8]| c_compare(a, b);
            text(view, written, compare, &mut summary);
            // A tile of only nulls has the value of none.
            summary.min.resize(size, 0);
            summary.max.resize(size, 0);
            if kind.sum.is_some() {
                sum_only::<i8>(view, written, &mut summary);
            }
        }
        (true, _, None) if kind.is_dimension => text(view, written, |a, b| a.cmp(b), &mut summary),
        (true, _, None) => text(view, written, c_compare_var, &mut summary),
        _ => {}
    }
    Ok(summary)
}

/// Offsets must be in order and within the data: nothing that is written may be unreadable.
fn check_offsets(offsets: &[u64], data_len: usize) -> Result<()> {
    // One pass without branches, so that it runs at the speed of memory.
    let decreases = offsets
        .iter()
        .zip(offsets.iter().skip(1))
        .fold(0u8, |bad, (a, b)| bad | u8::from(a > b));
    if decreases == 0 && offsets.last().is_some_and(|end| *end <= data_len as u64) {
        return Ok(());
    }
    Err(Error::InvalidArgument(
        "the offsets of a tile are not in order or pass the end of its data".into(),
    ))
}

/// Compares two cells of one size as C strings: what is behind a zero byte does not count.
pub(super) fn c_compare(a: &[u8], b: &[u8]) -> Ordering {
    for (x, y) in a.iter().zip(b) {
        match x.cmp(y) {
            Ordering::Equal if *x == 0 => return Ordering::Equal,
            Ordering::Equal => {}
            other => return other,
        }
    }
    Ordering::Equal
}

/// Compares two cells of any size as the reference does: as C strings, and where those are equal,
/// by size.
pub(super) fn c_compare_var(a: &[u8], b: &[u8]) -> Ordering {
    c_compare(a, b).then(a.len().cmp(&b.len()))
}

/// Min and max of texts; of equals the first.
fn text(
    view: &FieldView<'_>,
    written: &[Range<usize>],
    compare: impl Fn(&[u8], &[u8]) -> Ordering,
    summary: &mut TileSummary,
) {
    let mut bounds: Option<(&[u8], &[u8])> = None;
    for cell in written.iter().cloned().flatten() {
        if !view.is_valid(cell) {
            continue;
        }
        let value = view.cell(cell);
        bounds = Some(match bounds {
            None => (value, value),
            Some((min, max)) => (
                if compare(value, min) == Ordering::Less {
                    value
                } else {
                    min
                },
                if compare(value, max) == Ordering::Greater {
                    value
                } else {
                    max
                },
            ),
        });
    }
    if let Some((min, max)) = bounds {
        summary.min = min.to_vec();
        summary.max = max.to_vec();
    }
}

/// Numbers that have statistics.
trait Statistic: Native {
    /// Adds up a run of values, as far as the sum in `bits` does not leave its type.
    fn add(bits: u64, values: impl Iterator<Item = Self> + Clone) -> u64;

    /// The least (last of equals), the greatest (last of equals) and, where all of it stays in the
    /// type, the sum.
    fn fold(
        values: impl Iterator<Item = Self> + Clone,
        min: Self,
        max: Self,
        bits: u64,
    ) -> (Self, Self, u64);

    /// As [`Self::fold`], of all cells that `bytes` hold.
    fn fold_all(bytes: &[u8], min: Self, max: Self, bits: u64) -> (Self, Self, u64) {
        Self::fold(values(bytes), min, max, bits)
    }
}

/// As the reference adds: at the first sum that leaves the type the run ends, at the type's limit.
macro_rules! integers {
    ($($t:ident => $wide:ident, $limit:expr;)*) => {$(
        impl Statistic for $t {
            fn add(bits: u64, values: impl Iterator<Item = Self> + Clone) -> u64 {
                #[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "one macro serves all types")]
                let sum = {
                    let mut sum = bits as $wide;
                    for value in values {
                        match sum.checked_add(value as $wide) {
                            Some(next) => sum = next,
                            None => {
                                sum = $limit(value);
                                break;
                            }
                        }
                    }
                    sum
                };
                sum as u64
            }

            #[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "one macro serves all types")]
            fn fold(
                values: impl Iterator<Item = Self> + Clone,
                mut min: Self,
                mut max: Self,
                bits: u64,
            ) -> (Self, Self, u64) {
                // Without branches, so that it is vectorised; whether the sum can have left its
                // type is seen afterwards.
                let (mut sum, mut count) = (0 as $wide, 0u64);
                for value in values.clone() {
                    min = if min < value { min } else { value };
                    max = if max > value { max } else { value };
                    sum = sum.wrapping_add(value as $wide);
                    count += 1;
                }
                let (start, count) = (i128::from(bits as $wide), i128::from(count));
                let (low, high) = (i128::from(min).min(0), i128::from(max).max(0));
                let fits = |total: i128| $wide::try_from(total).is_ok();
                let bits = if fits(start + low * count) && fits(start + high * count) {
                    (bits as $wide).wrapping_add(sum) as u64
                } else {
                    Self::add(bits, values)
                };
                (min, max, bits)
            }
        }
    )*};
}

integers! {
    i8 => i64, |v| if v < 0 { i64::MIN } else { i64::MAX };
    i16 => i64, |v| if v < 0 { i64::MIN } else { i64::MAX };
    i32 => i64, |v| if v < 0 { i64::MIN } else { i64::MAX };
    i64 => i64, |v| if v < 0 { i64::MIN } else { i64::MAX };
    u8 => u64, |_| u64::MAX;
    u16 => u64, |_| u64::MAX;
    u32 => u64, |_| u64::MAX;
    u64 => u64, |_| u64::MAX;
}

/// Adds a real number; `Err` with the limit where the sum would pass it.
fn add_real(sum: f64, value: f64) -> std::result::Result<f64, f64> {
    if (sum < 0.0) == (value < 0.0) && sum.abs() > f64::MAX - value.abs() {
        return Err(if sum < 0.0 { f64::MIN } else { f64::MAX });
    }
    Ok(sum + value)
}

macro_rules! reals {
    ($($t:ident)*) => {$(
        impl Statistic for $t {
            fn add(bits: u64, values: impl Iterator<Item = Self> + Clone) -> u64 {
                let mut sum = f64::from_bits(bits);
                for value in values {
                    match add_real(sum, f64::from(value)) {
                        Ok(next) => sum = next,
                        Err(limit) => {
                            sum = limit;
                            break;
                        }
                    }
                }
                sum.to_bits()
            }

            fn fold(
                values: impl Iterator<Item = Self> + Clone,
                min: Self,
                max: Self,
                bits: u64,
            ) -> (Self, Self, u64) {
                // One after the other; minimum, maximum and sum run side by side in the processor.
                let mut folded = Folded::new(min, max, bits);
                values.clone().for_each(|value| folded.take_one(value));
                found(folded, bits, values)
            }

            fn fold_all(bytes: &[u8], min: Self, max: Self, bits: u64) -> (Self, Self, u64) {
                let mut folded = Folded::new(min, max, bits);
                folded.take(bytes);
                found(folded, bits, values(bytes))
            }
        }
    )*};
}

reals! { f32 f64 }

/// Least, greatest and sum of `values`, which were added to `bits`: a sum that has left its type
/// ends at the type's limit.
fn found<T: Statistic>(
    folded: Folded<T>,
    bits: u64,
    values: impl Iterator<Item = T> + Clone,
) -> (T, T, u64) {
    (
        folded.min,
        folded.max,
        if folded.over {
            T::add(bits, values)
        } else {
            folded.sum.to_bits()
        },
    )
}

/// Statistics of cells of one number.
fn numbers<T: Statistic>(
    kind: &StatsKind,
    view: &FieldView<'_>,
    written: &[Range<usize>],
    summary: &mut TileSummary,
) {
    let (mut min, mut max) = (T::HIGHEST, T::LOWEST);
    for range in written {
        let bytes = cells::<T>(view, range);
        (min, max, summary.sum_bits) = match view.validity.and_then(|v| v.get(range.clone())) {
            Some(validity) if summary.null_count > 0 => {
                let values = values(bytes).zip(validity);
                let valid = values
                    .filter(|(_, valid)| **valid != 0)
                    .map(|(value, _)| value);
                T::fold(valid, min, max, summary.sum_bits)
            }
            _ => T::fold_all(bytes, min, max, summary.sum_bits),
        };
    }
    if kind.is_dimension {
        let all = || {
            let ranges = written.iter();
            ranges.flat_map(|range| values(cells::<T>(view, range)))
        };
        // NaN bounds nothing. libtiledb passes over it, too, unless a tile begins with it.
        let is_number = |value: &T| value.partial_cmp(value).is_some();
        if !T::PHYSICAL.is_integer() && !all().all(|value| is_number(&value)) {
            let numbers = || all().filter(is_number);
            if let (Some(least), Some(most)) = (
                numbers().min_by(T::total_order),
                numbers().max_by(T::total_order),
            ) {
                (min, max) = (least, most);
            }
        }
        // Where bounds may be -0.0 or 0.0, the first of them counts.
        let first = |wanted: T| all().find(|value| *value == wanted).unwrap_or(wanted);
        if !T::PHYSICAL.is_integer() && min == T::default() {
            min = first(min);
        }
        if !T::PHYSICAL.is_integer() && max == T::default() {
            max = first(max);
        }
    }
    summary.min = bytes_of(min);
    summary.max = bytes_of(max);
}

/// The sum of cells that are compared as text.
fn sum_only<T: Statistic>(
    view: &FieldView<'_>,
    written: &[Range<usize>],
    summary: &mut TileSummary,
) {
    for range in written {
        let valid = range
            .clone()
            .filter(|cell| view.is_valid(*cell))
            .map(|cell| T::read(view.cell(cell)));
        summary.sum_bits = T::add(summary.sum_bits, valid);
    }
}

/// The bytes of cells of one number.
fn cells<'a, T: Native>(view: &FieldView<'a>, range: &Range<usize>) -> &'a [u8] {
    view.data
        .get(range.start * T::SIZE..range.end * T::SIZE)
        .unwrap_or_default()
}

fn values<T: Native>(bytes: &[u8]) -> impl Iterator<Item = T> + Clone {
    bytes.chunks_exact(T::SIZE).map(T::read)
}

fn bytes_of<T: Native>(value: T) -> Vec<u8> {
    let mut bytes = vec![0; T::SIZE];
    value.write(&mut bytes);
    bytes
}

/// Statistics of a field over a fragment, from those of its tiles.
#[derive(Debug, Clone)]
pub(super) struct FragmentSummary {
    min: Option<Vec<u8>>,
    max: Option<Vec<u8>>,
    sum_bits: u64,
    /// The sum has left its type.
    stopped: bool,
    null_count: u64,
}

impl FragmentSummary {
    pub const fn new() -> Self {
        Self {
            min: None,
            max: None,
            sum_bits: 0,
            stopped: false,
            null_count: 0,
        }
    }

    /// Adds a tile of `cell_num` cells.
    pub fn add(&mut self, kind: &StatsKind, tile: &TileSummary, cell_num: u64) {
        self.null_count += tile.null_count;
        if kind.nullable && tile.null_count == cell_num {
            return;
        }
        if kind.min_max {
            self.min = Some(pick(kind, self.min.take(), &tile.min, Ordering::Less));
            self.max = Some(pick(kind, self.max.take(), &tile.max, Ordering::Greater));
        }
        // Sums of single characters are kept by tile only.
        if let (Some(sum), false, false) = (kind.sum, self.stopped, kind.is_text()) {
            let (bits, stopped) = add_sums(sum.sum(self.sum_bits), sum.sum(tile.sum_bits));
            (self.sum_bits, self.stopped) = (bits, stopped);
        }
    }

    /// What is stored; `kind` as in [`Self::add`].
    pub fn finish(self, kind: &StatsKind) -> azulejo_format::fragment::FieldStats {
        let nothing = |of: fn(Physical) -> Vec<u8>| {
            let number = kind.min_max && !kind.is_text();
            if number {
                of(kind.datatype.physical())
            } else {
                Vec::new()
            }
        };
        azulejo_format::fragment::FieldStats {
            min: self.min.unwrap_or_else(|| {
                nothing(|p| dispatch!(p, T => bytes_of(<T as Native>::HIGHEST)))
            }),
            max: self
                .max
                .unwrap_or_else(|| nothing(|p| dispatch!(p, T => bytes_of(<T as Native>::LOWEST)))),
            sum_bits: self.sum_bits,
            null_count: self.null_count,
        }
    }
}

/// The value that stays: of numbers the last of equals, of texts the first.
fn pick(kind: &StatsKind, held: Option<Vec<u8>>, value: &[u8], wanted: Ordering) -> Vec<u8> {
    fn stays<T: Native>(held: &[u8], value: &[u8], wanted: Ordering) -> bool {
        T::read(held).partial_cmp(&T::read(value)) == Some(wanted)
    }
    let Some(held) = held else {
        return value.to_vec();
    };
    let stays = match (kind.is_text(), kind.cell_size) {
        (true, Some(_)) => c_compare(value, &held) != wanted,
        (true, None) => c_compare_var(value, &held) != wanted,
        _ => dispatch!(kind.datatype.physical(), T => stays::<T>(&held, value, wanted)),
    };
    if stays { held } else { value.to_vec() }
}

/// The sum of two, and whether it has left its type.
fn add_sums(a: TileSum, b: TileSum) -> (u64, bool) {
    match (a, b) {
        (TileSum::Signed(a), TileSum::Signed(b)) => match a.checked_add(b) {
            Some(sum) => (sum.cast_unsigned(), false),
            None => (
                if b < 0 { i64::MIN } else { i64::MAX }.cast_unsigned(),
                true,
            ),
        },
        (TileSum::Unsigned(a), TileSum::Unsigned(b)) => match a.checked_add(b) {
            Some(sum) => (sum, false),
            None => (u64::MAX, true),
        },
        (TileSum::Real(a), TileSum::Real(b)) => match add_real(a, b) {
            Ok(sum) => (sum.to_bits(), false),
            Err(limit) => (limit.to_bits(), true),
        },
        (a, _) => (a.bits(), false),
    }
}

#[cfg(test)]
mod tests;

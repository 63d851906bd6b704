//! Aggregates: count, sum, min, max, mean and null count, over cells or over what is known of whole
//! tiles.
//!
//! Cells that count are those that exist, are selected and meet the condition. Null cells count for
//! `count` and the null count only. The cells of a dense array that were never written count for
//! `count` alone: their fill values are not data. With a limit the first of the cells that count are
//! taken, so many, in the order asked for.
//!
//! - Sums of integers are exact inside; one that does not fit its type (64 bits) comes out as
//!   that type's limit.
//! - `mean` is the sum over the number of values, exact but for one rounding (integers).
//! - NaN is neither least nor greatest, unless there is nothing else; it does make sums and means
//!   NaN.
//! - What is no time (NaT) is the least tick, and counts as such. Who does not want it leaves it out
//!   by a condition: `t > 'NaT'`.
//! - Strings compare byte by byte.
//! - Without a value to look at, `min`, `max` and `mean` are null, and so is the `sum` of a
//!   nullable field; that of another is 0.

mod accumulate;
mod run;
mod tile_facts;

use crate::column::{ColumnType, FieldView};
use crate::error::{Error, Result};
use accumulate::{Number, Sum, bounds};
use azulejo_format::datatype::dispatch;
use azulejo_format::fragment::{SumKind, TileSum};
use azulejo_format::{CellValNum, Datatype, Physical};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// What to compute.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Aggregate {
    /// The number of cells, null or not.
    Count,
    /// The sum of a field's values.
    Sum(String),
    /// The least value of a field.
    Min(String),
    /// The greatest value of a field.
    Max(String),
    /// The mean of a field's values.
    Mean(String),
    /// The number of a field's cells that are null.
    NullCount(String),
}

impl Aggregate {
    /// The field that it looks at.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Count => None,
            Self::Sum(f) | Self::Min(f) | Self::Max(f) | Self::Mean(f) | Self::NullCount(f) => {
                Some(f)
            }
        }
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("count"),
            Self::Sum(field) => write!(f, "sum:{field}"),
            Self::Min(field) => write!(f, "min:{field}"),
            Self::Max(field) => write!(f, "max:{field}"),
            Self::Mean(field) => write!(f, "mean:{field}"),
            Self::NullCount(field) => write!(f, "nulls:{field}"),
        }
    }
}

impl FromStr for Aggregate {
    type Err = Error;

    /// Reads `count`, `sum:a`, `min:a`, `max:a`, `mean:a`, `nulls:a`.
    fn from_str(text: &str) -> Result<Self> {
        let (name, field) = text
            .split_once(':')
            .map_or((text, None), |(name, field)| (name, Some(field)));
        let of: fn(String) -> Self = match name {
            // A field makes no difference to the number of cells.
            "count" => return Ok(Self::Count),
            "sum" => Self::Sum,
            "min" => Self::Min,
            "max" => Self::Max,
            "mean" => Self::Mean,
            "nulls" | "null_count" => Self::NullCount,
            _ => {
                return Err(Error::InvalidArgument(format!(
                    "{text:?} is no aggregate: there are count, sum:A, min:A, max:A, mean:A and nulls:A"
                )));
            }
        };
        let what = || Error::InvalidArgument(format!("{name} of what? Write {name}:FIELD"));
        field.map(str::to_owned).map(of).ok_or_else(what)
    }
}

/// What was computed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AggregateValue {
    /// There was nothing to compute it from.
    Null,
    /// A count, or the sum of unsigned integers.
    Unsigned(u64),
    /// The sum of signed integers, datetimes or times.
    Signed(i64),
    /// A mean, or the sum of reals.
    Real(f64),
    /// The least or the greatest cell.
    Cell {
        /// Its type.
        datatype: Datatype,
        /// Its bytes: one value, or a string.
        bytes: Vec<u8>,
    },
}

/// Statistics of the cells of one field in a whole tile, as far as they are known and exact.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct TileFacts<'a> {
    /// Cells in the tile.
    pub cell_num: u64,
    /// The sum of the values; only if it did not overflow.
    pub sum: Option<TileSum>,
    /// The least value that is not null.
    pub min: Option<&'a [u8]>,
    /// The greatest value that is not null.
    pub max: Option<&'a [u8]>,
    /// What that begins with, up to its first zero byte, where only this is known.
    pub max_up_to_zero: Option<&'a [u8]>,
    /// The number of nulls.
    pub null_count: Option<u64>,
}

/// What is wanted of one field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Wanted {
    sum: bool,
    min: bool,
    max: bool,
}

/// Running aggregates of one field.
#[derive(Debug, Clone)]
pub(crate) struct Aggregator {
    column_type: ColumnType,
    wanted: Wanted,
    found: Found,
}

/// What the cells taken in come to.
#[derive(Debug, Clone, Default)]
struct Found {
    /// Values: cells that are not null.
    values: u64,
    nulls: u64,
    integer: i128,
    real: f64,
    min: Option<Vec<u8>>,
    max: Option<Vec<u8>>,
}

impl Aggregator {
    /// Aggregates of a field, which must be [`Aggregate::field`] of them all.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] for aggregates that the type does not have: sums of strings,
    /// anything but the null count of cells with several values.
    pub fn new<'a>(
        column_type: ColumnType,
        aggregates: impl IntoIterator<Item = &'a Aggregate>,
    ) -> Result<Self> {
        let mut wanted = Wanted::default();
        let datatype = column_type.datatype;
        let is_text = datatype.is_text();
        let sums = !is_text && SumKind::of(datatype, column_type.cell_val_num).is_some();
        let bounds = sums || is_text;
        for aggregate in aggregates {
            let (possible, what) = match aggregate {
                Aggregate::Count => (true, "count"),
                Aggregate::NullCount(_) => (true, "null count"),
                Aggregate::Sum(_) | Aggregate::Mean(_) => {
                    wanted.sum = true;
                    (sums, "sum or mean")
                }
                Aggregate::Min(_) => {
                    wanted.min = true;
                    (bounds, "minimum")
                }
                Aggregate::Max(_) => {
                    wanted.max = true;
                    (bounds, "maximum")
                }
            };
            if !possible {
                let several = match column_type.cell_val_num != CellValNum::ONE && !is_text {
                    true => ", several values a cell",
                    false => "",
                };
                return Err(Error::SchemaMismatch(format!(
                    "{} ({datatype}{several}) has no {what}",
                    column_type.name
                )));
            }
        }
        Ok(Self {
            column_type,
            wanted,
            found: Found::default(),
        })
    }

    /// What a tile's greatest value begins with, if the greatest is wanted.
    pub(crate) fn beginning_of_max<'a>(&self, facts: &TileFacts<'a>) -> Option<&'a [u8]> {
        // Bounds of nothing but nulls mean nothing.
        let nulls = self.nulls_of(facts)?;
        let known = nulls < facts.cell_num && self.wanted.max;
        facts.max_up_to_zero.filter(|_| known)
    }

    /// Whether values are looked at, and not only validity.
    pub(crate) fn wants_values(&self) -> bool {
        self.wanted.sum || self.wanted.min || self.wanted.max
    }

    /// The same aggregates without any cells, to be filled elsewhere and [merged](Self::merge).
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            column_type: self.column_type.clone(),
            wanted: self.wanted,
            found: Found::default(),
        }
    }

    /// Takes in cells: those for which `mask` is not 0, or all.
    ///
    /// # Errors
    /// Cells that do not fit the field or the mask.
    pub fn update(&mut self, view: &FieldView<'_>, mask: Option<&[u8]>) -> Result<()> {
        let fits = match view.offsets {
            Some(offsets) => self.column_type.is_var() && offsets.len() == view.cell_num + 1,
            None => {
                let size = self.column_type.cell_size();
                view.cell_size == size
                    && size > 0
                    && view
                        .cell_num
                        .checked_mul(size)
                        .is_some_and(|need| view.data.len() >= need)
            }
        };
        let is_short = |cells: &[u8]| cells.len() != view.cell_num;
        if !fits || mask.is_some_and(is_short) || view.validity.is_some_and(is_short) {
            let name = &self.column_type.name;
            return Err(Error::Internal(format!(
                "cells do not fit the aggregates of {name}"
            )));
        }
        let combined: Vec<u8>;
        let counted = match (mask, view.validity) {
            (None, None) => None,
            (Some(counted), None) | (None, Some(counted)) => Some(counted),
            (Some(mask), Some(validity)) => {
                combined = mask
                    .iter()
                    .zip(validity)
                    .map(|(m, v)| u8::from(*m != 0) & u8::from(*v != 0))
                    .collect();
                Some(&combined[..])
            }
        };
        let selected = mask.map_or(view.cell_num as u64, count);
        let values = counted.map_or(view.cell_num as u64, count);
        self.found.values += values;
        self.found.nulls += selected - values;
        if values == 0 {
            return Ok(());
        }
        if self.column_type.datatype.is_text() {
            self.update_text(view, counted);
        } else if self.wants_values() {
            let physical = self.column_type.datatype.physical();
            let data = view
                .data
                .get(..view.cell_num * view.cell_size)
                .unwrap_or(view.data);
            dispatch!(physical, T => self.update_numbers::<T>(data, counted));
        }
        Ok(())
    }

    fn update_numbers<T: Number>(&mut self, data: &[u8], counted: Option<&[u8]>) {
        if self.wanted.sum {
            match T::sum(data, counted) {
                Sum::Integer(sum) => self.found.integer += sum,
                Sum::Real(sum) => self.found.real += sum,
            }
        }
        if (self.wanted.min || self.wanted.max)
            && let Some((min, max)) = bounds::<T>(data, counted)
        {
            let bytes = |value: T| {
                let mut bytes = vec![0; T::SIZE];
                value.write(&mut bytes);
                bytes
            };
            self.lower(&bytes(min));
            self.raise(&bytes(max));
        }
    }

    fn update_text(&mut self, view: &FieldView<'_>, counted: Option<&[u8]>) {
        let cells = (0..view.cell_num)
            .filter(|i| counted.is_none_or(|k| k[*i] != 0))
            .map(|i| view.cell(i));
        let (mut min, mut max): (Option<&[u8]>, Option<&[u8]>) = (None, None);
        for cell in cells {
            if self.wanted.min && min.is_none_or(|min| cell < min) {
                min = Some(cell);
            }
            if self.wanted.max && max.is_none_or(|max| cell > max) {
                max = Some(cell);
            }
        }
        min.into_iter().for_each(|min| self.lower(min));
        max.into_iter().for_each(|max| self.raise(max));
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        fn numbers<T: Number>(a: &[u8], b: &[u8]) -> Ordering {
            T::read(a).total_order(&T::read(b))
        }
        if self.column_type.datatype.is_text() {
            return a.cmp(b);
        }
        dispatch!(self.column_type.datatype.physical(), T => numbers::<T>(a, b))
    }

    fn lower(&mut self, min: &[u8]) {
        let old = self.found.min.as_ref();
        if self.wanted.min && old.is_none_or(|old| self.compare(min, old).is_lt()) {
            self.found.min = Some(min.to_vec());
        }
    }

    fn raise(&mut self, max: &[u8]) {
        let old = self.found.max.as_ref();
        if self.wanted.max && old.is_none_or(|old| self.compare(max, old).is_gt()) {
            self.found.max = Some(max.to_vec());
        }
    }

    /// Whether what is known of a tile is enough to [take it in](Self::update_from_stats) without
    /// looking at its cells.
    #[must_use]
    pub fn can_use(&self, facts: &TileFacts<'_>) -> bool {
        let Some(nulls) = self.nulls_of(facts) else {
            return false;
        };
        let fits = |bytes: Option<&[u8]>| {
            bytes.is_some_and(|b| {
                self.column_type.is_var() || b.len() == self.column_type.cell_size()
            })
        };
        let wanted = self.wanted;
        nulls == facts.cell_num
            || (!wanted.sum || facts.sum.is_some_and(|sum| !sum.may_have_overflowed()))
                && (!wanted.min || fits(facts.min))
                && (!wanted.max || fits(facts.max))
    }

    fn nulls_of(&self, facts: &TileFacts<'_>) -> Option<u64> {
        let nulls = if self.column_type.nullable {
            facts.null_count
        } else {
            Some(0)
        };
        nulls.filter(|n| *n <= facts.cell_num)
    }

    /// Takes in all cells of a tile by what is known of them. `false`, and nothing is taken in, if
    /// that is not enough: then the cells have to be looked at.
    pub fn update_from_stats(&mut self, facts: &TileFacts<'_>) -> bool {
        let Some(nulls) = self.nulls_of(facts).filter(|_| self.can_use(facts)) else {
            return false;
        };
        let values = facts.cell_num - nulls;
        self.found.values += values;
        self.found.nulls += nulls;
        // Statistics of nulls mean nothing.
        if values == 0 {
            return true;
        }
        if let Some(sum) = facts.sum.filter(|_| self.wanted.sum) {
            match sum {
                TileSum::Signed(sum) => self.found.integer += i128::from(sum),
                TileSum::Unsigned(sum) => self.found.integer += i128::from(sum),
                TileSum::Real(sum) => self.found.real += sum,
            }
        }
        facts.min.into_iter().for_each(|min| self.lower(min));
        facts.max.into_iter().for_each(|max| self.raise(max));
        true
    }

    /// Adds what another aggregator of the same field found.
    pub fn merge(&mut self, other: Self) {
        self.found.values += other.found.values;
        self.found.nulls += other.found.nulls;
        self.found.integer += other.found.integer;
        self.found.real += other.found.real;
        other.found.min.into_iter().for_each(|min| self.lower(&min));
        other.found.max.into_iter().for_each(|max| self.raise(&max));
    }

    /// The result of one of the aggregates asked for; counts are those of the cells taken in.
    #[must_use]
    pub fn finish(&self, aggregate: &Aggregate) -> AggregateValue {
        let datatype = self.column_type.datatype;
        let (sum, values) = (self.found.integer, self.found.values);
        let bound = |bytes: &Option<Vec<u8>>| {
            let nan = || (values > 0).then(|| nan(datatype));
            match bytes.clone().or_else(nan) {
                Some(bytes) => AggregateValue::Cell { datatype, bytes },
                None => AggregateValue::Null,
            }
        };
        let kind = SumKind::of(datatype, self.column_type.cell_val_num);
        match aggregate {
            Aggregate::Count => AggregateValue::Unsigned(values + self.found.nulls),
            Aggregate::NullCount(_) => AggregateValue::Unsigned(self.found.nulls),
            Aggregate::Min(_) => bound(&self.found.min),
            Aggregate::Max(_) => bound(&self.found.max),
            Aggregate::Sum(_) if values == 0 && self.column_type.nullable => AggregateValue::Null,
            Aggregate::Sum(_) => match kind {
                Some(SumKind::Real) => AggregateValue::Real(self.found.real),
                Some(SumKind::Unsigned) => {
                    AggregateValue::Unsigned(u64::try_from(sum).unwrap_or(u64::MAX))
                }
                _ => {
                    let limit = if sum < 0 { i64::MIN } else { i64::MAX };
                    AggregateValue::Signed(i64::try_from(sum).unwrap_or(limit))
                }
            },
            Aggregate::Mean(_) if values == 0 => AggregateValue::Null,
            Aggregate::Mean(_) => AggregateValue::Real(match kind {
                Some(SumKind::Real) => self.found.real / values as f64,
                _ => integer_mean(sum, values),
            }),
        }
    }
}

/// The quotient, rounded as little as possible: whole part and remainder apart, as the sum may need
/// more bits than a double has.
fn integer_mean(sum: i128, count: u64) -> f64 {
    if sum.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS {
        return sum as f64 / count as f64;
    }
    let count = i128::from(count);
    (sum / count) as f64 + (sum % count) as f64 / count as f64
}

/// Where all values are NaN, so are the least and the greatest.
fn nan(datatype: Datatype) -> Vec<u8> {
    match datatype.physical() {
        Physical::F32 => f32::NAN.to_le_bytes().to_vec(),
        _ => f64::NAN.to_le_bytes().to_vec(),
    }
}

fn count(mask: &[u8]) -> u64 {
    // In blocks whose counts fit 32 bits: such sums vectorise well.
    mask.chunks(1 << 30)
        .map(|block| u64::from(block.iter().map(|m| u32::from(*m != 0)).sum::<u32>()))
        .sum()
}

#[cfg(test)]
mod tests;

//! What is known of the values of a field in a group, as its cells come.

use super::measure::{Measure, What};
use super::quantile::{self, Histogram};
use crate::error::{CliError, Result};
use crate::value;
use azulejo::ColumnBuffers;
use azulejo::column::ColumnType;
use azulejo::format::Datatype;
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::range;
use azulejo::json::float_json;
use serde_json::{Value as Json, json};
use std::cmp::Ordering;
use std::collections::HashSet;

/// Bytes that a different value takes in a set, besides its own.
const OF_A_SET: u64 = 48;

/// The memory that values which must be kept may take.
#[derive(Debug)]
pub struct Room(u64);

impl Room {
    /// So many bytes.
    pub fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Takes bytes for what `text` asks for.
    pub fn take(&mut self, bytes: u64, text: &str) -> Result<()> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(|| {
            CliError::usage(format!(
                "{text}: its values take more memory than there is; give more with --memory, or select fewer cells"
            ))
        })?;
        Ok(())
    }
}

/// What is known of some values.
#[derive(Debug, Clone, Default)]
pub struct Values {
    nulls: u64,
    count: u64,
    integers: i128,
    /// A sum of reals, and what rounding took from it (Neumaier).
    reals: (f64, f64),
    /// Mean and sum of squared distances from it, as far as they were seen (Welford).
    mean: f64,
    squares: f64,
    bound: Option<Vec<u8>>,
    distinct: HashSet<Box<[u8]>>,
    /// Values as keys that have their order.
    keys: Vec<u64>,
}

impl Values {
    /// Takes a cell.
    pub fn add(
        &mut self,
        measure: &Measure,
        column: &ColumnBuffers,
        cell: usize,
        skip_nan: bool,
        room: &mut Room,
    ) -> Result<()> {
        let view = column.view();
        if !view.is_valid(cell) {
            self.nulls += 1;
            return Ok(());
        }
        let bytes = view.cell(cell);
        let datatype = column.column_type.datatype;
        let fixed = bytes.len() == datatype.size() && !column.column_type.is_var();
        let number = match fixed {
            true => dispatch!(datatype.physical(), T => T::read(bytes).as_f64()),
            false => 0.0,
        };
        if number.is_nan() && skip_nan {
            return Ok(());
        }
        // No time has no place among times; only as a different value it counts.
        if value::is_no_time(datatype, bytes)
            && (skip_nan || !matches!(measure.what, What::Distinct))
        {
            return Ok(());
        }
        self.count += 1;
        match measure.what {
            What::Sum | What::Mean if datatype.is_real() => {
                let (sum, lost) = self.reals;
                let next = sum + number;
                let rounded = match sum.abs() >= number.abs() {
                    true => (sum - next) + number,
                    false => (number - next) + sum,
                };
                // Infinities have no rest.
                let rounded = if rounded.is_finite() { rounded } else { 0.0 };
                self.reals = (next, lost + rounded);
            }
            What::Sum | What::Mean => self.integers += quantile::integer(datatype, bytes),
            What::Stddev => {
                let away = number - self.mean;
                self.mean += away / self.count as f64;
                self.squares += away * (number - self.mean);
            }
            What::Min | What::Max => {
                if number.is_nan() && fixed && datatype.is_real() {
                    return Ok(());
                }
                let wins = match measure.what {
                    What::Min => Ordering::Less,
                    _ => Ordering::Greater,
                };
                match &mut self.bound {
                    Some(kept) if compare(&column.column_type, bytes, kept) != wins => {}
                    Some(kept) => bytes.clone_into(kept),
                    none => *none = Some(bytes.to_vec()),
                }
            }
            What::Distinct => {
                let bytes = value::told_apart(datatype, bytes);
                if !self.distinct.contains(bytes) {
                    room.take(OF_A_SET + bytes.len() as u64, &measure.text)?;
                    self.distinct.insert(bytes.into());
                }
            }
            What::Quantile(_) | What::Histogram => {
                if self.keys.len() == self.keys.capacity() {
                    let more = self.keys.len().max(64);
                    // The old ones are there until they are copied.
                    room.take(8 * (2 * more) as u64, &measure.text)?;
                    self.keys.reserve_exact(more);
                }
                self.keys.push(quantile::key(datatype, bytes));
            }
            What::Count | What::Nulls => {}
        }
        Ok(())
    }

    /// Sorts what must be in order for [`Self::json`].
    pub fn settle(&mut self) {
        self.keys.sort_unstable();
    }

    /// The histogram of its values, if there is any finite one.
    pub fn histogram(&self, column: &ColumnType, bins: usize) -> Option<Histogram> {
        Histogram::of(&self.keys, column.datatype, bins)
    }

    /// The answer in a group of so many cells.
    pub fn json(
        &self,
        measure: &Measure,
        cells: u64,
        column: Option<&ColumnType>,
        bins: usize,
    ) -> Json {
        match (measure.what, column) {
            (What::Count, _) => cells.into(),
            (What::Nulls, _) => self.nulls.into(),
            (What::Distinct, _) => self.distinct.len().into(),
            (What::Histogram, Some(column)) => match self.histogram(column, bins) {
                Some(histogram) => histogram.json(),
                None => json!({ "edges": [], "counts": [] }),
            },
            (_, None) => Json::Null,
            // As for the engine: only where all could be null there is no sum. Durations that are none
            // have none either.
            (What::Sum, Some(column))
                if self.count == 0 && !column.nullable && !column.datatype.is_time() =>
            {
                self.total(measure.what, column.datatype)
            }
            _ if self.count == 0 => Json::Null,
            (What::Sum | What::Mean, Some(column)) => self.total(measure.what, column.datatype),
            (What::Stddev, _) if self.count < 2 => Json::Null,
            (What::Stddev, _) => float_json((self.squares / (self.count - 1) as f64).sqrt()),
            (What::Quantile(share), Some(column)) => {
                quantile::quantile(&self.keys, share, column.datatype)
            }
            (What::Min | What::Max, Some(column)) => match &self.bound {
                Some(bytes) => shown(bytes, column),
                None => Json::Null,
            },
        }
    }

    fn total(&self, what: What, of: Datatype) -> Json {
        let real = self.reals.0 + self.reals.1;
        match what {
            What::Sum if of.is_real() => float_json(real),
            What::Sum if of.is_time() => quantile::moment_json(of, self.integers),
            What::Sum => match (i64::try_from(self.integers), u64::try_from(self.integers)) {
                (Ok(sum), _) => sum.into(),
                (_, Ok(sum)) => Json::from(sum),
                _ => float_json(self.integers as f64),
            },
            _ if of.is_datetime() || of.is_time() => {
                quantile::moment_json(of, self.integers / i128::from(self.count))
            }
            _ if of.is_real() => float_json(real / self.count as f64),
            _ => float_json(self.integers as f64 / self.count as f64),
        }
    }
}

/// The order of two values: that of their labels, unless these have been given an order of their
/// own.
pub fn compare(column: &ColumnType, a: &[u8], b: &[u8]) -> Ordering {
    let labels = column.enumeration.as_ref().filter(|e| !e.ordered);
    let label = |of: &[u8]| labels.and_then(|labels| labels.value(value::index(of)?));
    match (labels, label(a), label(b)) {
        (Some(labels), Some(a), Some(b)) => range::compare(labels.datatype, a, b),
        _ => range::compare(column.datatype, a, b),
    }
}

/// A value as it is shown: a number, a date, a label.
fn shown(bytes: &[u8], column: &ColumnType) -> Json {
    if let Some(enumeration) = &column.enumeration {
        let entry = value::index(bytes).and_then(|at| enumeration.value(at));
        return entry.map_or(Json::Null, |entry| {
            value::text(enumeration.datatype, entry).into()
        });
    }
    let datatype = column.datatype;
    let number = datatype.is_integer() || datatype.is_real();
    match number && bytes.len() == datatype.size() {
        true => azulejo::json::number_json(datatype.physical(), bytes),
        false => value::text(datatype, bytes).into(),
    }
}

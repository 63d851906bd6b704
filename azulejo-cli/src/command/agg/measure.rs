//! What `agg` is asked for: measures of fields, and fields to group by.

use crate::error::{CliError, Result};
use crate::moment::{self, Moment};
use crate::value;
use azulejo::ColumnBuffers;
use azulejo::column::ColumnType;
use azulejo::format::Datatype;
use azulejo::format::datatype::Native;
use std::collections::BTreeMap;

/// What to compute of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum What {
    /// Cells.
    Count,
    /// Values added up.
    Sum,
    /// Their mean.
    Mean,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// Null cells.
    Nulls,
    /// The standard deviation of a sample.
    Stddev,
    /// Different values.
    Distinct,
    /// The value that this share of values, 0 to 1, lies below.
    Quantile(f64),
    /// How many values lie in each of some equal parts of their span.
    Histogram,
}

/// `mean:temperature`.
#[derive(Debug, Clone)]
pub struct Measure {
    /// As written.
    pub text: String,
    /// What to compute.
    pub what: What,
    /// Of which field; a count has none.
    pub field: Option<String>,
}

impl Measure {
    /// Reads `count` or `WHAT:FIELD`.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, field) = match text.split_once(':') {
            Some((what, field)) => (what, Some(field.to_owned())),
            None => (text, None),
        };
        let what = match name {
            "count" => What::Count,
            "sum" => What::Sum,
            "mean" => What::Mean,
            "min" => What::Min,
            "max" => What::Max,
            "nulls" => What::Nulls,
            "stddev" => What::Stddev,
            "distinct" => What::Distinct,
            "median" => What::Quantile(0.5),
            "histogram" => What::Histogram,
            _ => What::Quantile(percentile(name).ok_or_else(|| {
                CliError::usage(format!(
                    "{text:?}: write count, or one of sum, mean, min, max, nulls, stddev, distinct, median, p95 (any \
                     percentile), histogram with a field: mean:a"
                ))
            })?),
        };
        if (what == What::Count) == field.is_some() {
            return Err(CliError::usage(format!(
                "{text:?}: count takes no field, all others one"
            )));
        }
        Ok(Self {
            text: text.to_owned(),
            what,
            field,
        })
    }

    /// Whether the engine has it.
    pub fn is_plain(&self) -> bool {
        !matches!(
            self.what,
            What::Stddev | What::Distinct | What::Quantile(_) | What::Histogram
        )
    }

    /// Refuses what a field has not: numbers to add up, an order to take shares of.
    pub fn check(&self, column: &ColumnType) -> Result<()> {
        let of = column.datatype;
        let time = of.is_datetime() || of.is_time();
        let number = (of.is_integer() || of.is_real() || time)
            && !column.is_var()
            && column.cell_size() == of.size()
            && column.enumeration.is_none();
        let lacks = match self.what {
            What::Sum | What::Stddev if !number || of.is_datetime() => "numbers to add up",
            What::Mean if !number => "numbers to add up",
            What::Quantile(_) | What::Histogram if !number => {
                "numbers; `count --by` counts each of its values"
            }
            _ => return Ok(()),
        };
        Err(CliError::usage(format!(
            "{}: {:?} holds no {lacks}",
            self.text, column.name
        )))
    }
}

/// `p95`, `p99.9`: a share of 1.
fn percentile(name: &str) -> Option<f64> {
    let number: f64 = name.strip_prefix('p')?.parse().ok()?;
    (0.0..=100.0).contains(&number).then_some(number / 100.0)
}

/// A field by which cells are grouped: `station`, `time:month`.
#[derive(Debug, Clone)]
pub struct By {
    /// As written.
    pub text: String,
    /// The field.
    pub field: String,
    /// Characters of a date that count.
    digits: Option<usize>,
    /// The periods met so far: first tick, last tick and name.
    periods: BTreeMap<i64, (i64, String)>,
}

impl By {
    /// A field by its values.
    pub fn field(name: &str) -> Self {
        Self {
            text: name.to_owned(),
            field: name.to_owned(),
            digits: None,
            periods: BTreeMap::new(),
        }
    }

    /// Reads `FIELD` or `FIELD:UNIT`.
    pub fn parse(text: &str) -> Result<Self> {
        let (field, unit) = match text.rsplit_once(':') {
            Some((field, unit)) => (field, Some(unit)),
            None => (text, None),
        };
        let digits = match unit {
            None => None,
            Some("year") => Some(4),
            Some("month") => Some(7),
            Some("day") => Some(10),
            Some("hour") => Some(13),
            Some("minute") => Some(16),
            Some(_) => {
                return Err(CliError::usage(format!(
                    "--by {text}: a time is grouped by year, month, day, hour or minute"
                )));
            }
        };
        Ok(Self {
            text: text.to_owned(),
            field: field.to_owned(),
            digits,
            periods: BTreeMap::new(),
        })
    }

    /// Refuses units of fields that hold no dates.
    pub fn check(&self, column: &ColumnType) -> Result<()> {
        match self.digits.is_none() || column.datatype.is_datetime() {
            true => Ok(()),
            false => Err(CliError::usage(format!(
                "--by {}: {:?} holds no dates",
                self.text, self.field
            ))),
        }
    }

    /// Whether keys are names of periods rather than values.
    pub fn is_period(&self) -> bool {
        self.digits.is_some()
    }

    /// What a cell is grouped by: its bytes, or the name of its period; `None` for null.
    pub fn key<'a>(&'a mut self, column: &'a ColumnBuffers, cell: usize) -> Option<&'a [u8]> {
        let view = column.view();
        if !view.is_valid(cell) {
            return None;
        }
        let bytes = view.cell(cell);
        let Some(digits) = self.digits else {
            return Some(value::told_apart(column.column_type.datatype, bytes));
        };
        let tick = i64::read(bytes);
        let known = self.periods.range(..=tick).next_back();
        let first = match known {
            Some((first, (last, _))) if *last >= tick => *first,
            _ => {
                let (first, last, name) = period(column.column_type.datatype, tick, digits);
                self.periods.insert(first, (last, name));
                first
            }
        };
        self.periods.get(&first).map(|(_, name)| name.as_bytes())
    }
}

/// The period that a tick lies in: its first and last tick, and its name.
fn period(datatype: Datatype, tick: i64, digits: usize) -> (i64, i64, String) {
    let unit = value::unit(datatype).unwrap_or_default();
    let text = value::tick_text(datatype, tick);
    // Before the year 0 there is a sign.
    let digits = digits + usize::from(text.starts_with('-'));
    let name: String = text.chars().take(digits).collect();
    let bounds = Moment::parse(&name).and_then(|moment| {
        let tick = |instant| moment::tick_of(unit, instant);
        Some((tick(moment.first)?, tick(moment.last)?))
    });
    match bounds {
        Some((first, last)) if text.len() >= digits && first <= tick && tick <= last => {
            (first, last, name)
        }
        // No time at all, one beyond the calendar, or one that is told less exactly.
        _ => (tick, tick, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_read() {
        let what = |text: &str| Measure::parse(text).map(|measure| measure.what).ok();
        assert_eq!(what("count"), Some(What::Count));
        assert_eq!(what("median:a"), Some(What::Quantile(0.5)));
        assert_eq!(what("p12.5:a"), Some(What::Quantile(0.125)));
        for wrong in ["mean", "count:a", "p101:a", "p:a", "q5:a"] {
            assert_eq!(what(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn periods_hold_their_ticks() {
        let second = Datatype::DateTimeSecond;
        let tick = |text: &str| azulejo::column::datetime::parse_ticks(text, second).unwrap();
        let at = tick("2024-02-10T11:12:13");
        assert_eq!(
            period(second, at, 7),
            (
                tick("2024-02-01"),
                tick("2024-02-29T23:59:59"),
                "2024-02".into()
            )
        );
        assert_eq!(period(second, at, 13).2, "2024-02-10T11");
        assert_eq!(period(second, i64::MIN, 7).2, "NaT");
        assert_eq!(period(Datatype::DateTimeDay, 3, 13).2, "1970-01-04");
    }
}

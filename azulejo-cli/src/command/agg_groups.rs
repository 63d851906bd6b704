//! Aggregates of groups of cells, and those that the engine does not have: cells are read and
//! counted here.

use super::cat::cell_text;
use super::schema::print;
use crate::args::{AggArgs, OrderArg, SelectionArgs};
use crate::cells::each_batch;
use crate::columns::Columns;
use crate::error::{CliError, Result};
use crate::moment;
use crate::output::table::{Align, Table};
use crate::selection::{Coordinates, select};
use crate::session::Session;
use crate::value;
use azulejo::Array;
use azulejo::column::{ColumnBuffers, ColumnType};
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::range::compare;
use azulejo::json::float_json;
use serde_json::{Map, Value as Json};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// What to compute of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Count,
    Sum,
    Mean,
    Min,
    Max,
    Nulls,
    Stddev,
    Distinct,
}

/// `mean:temperature`.
#[derive(Debug, Clone)]
struct Measure {
    text: String,
    what: What,
    field: Option<String>,
}

impl Measure {
    fn parse(text: &str) -> Result<Self> {
        let (what, field) = match text.split_once(':') {
            Some((what, field)) => (what, Some(field.to_owned())),
            None => (text, None),
        };
        let what = match what {
            "count" => What::Count,
            "sum" => What::Sum,
            "mean" => What::Mean,
            "min" => What::Min,
            "max" => What::Max,
            "nulls" => What::Nulls,
            "stddev" => What::Stddev,
            "distinct" => What::Distinct,
            _ => {
                return Err(CliError::usage(format!(
                    "{text:?}: write count, or one of sum, mean, min, max, nulls, stddev, distinct with a field: mean:a"
                )));
            }
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

    /// Whether values are added up.
    fn adds(&self) -> bool {
        matches!(self.what, What::Sum | What::Mean | What::Stddev)
    }
}

/// Whether the engine alone can answer.
pub fn is_plain(args: &AggArgs) -> bool {
    let own = |text: &String| text.starts_with("stddev:") || text.starts_with("distinct:");
    args.by.is_empty() && !args.skip_nan && !args.aggregates.iter().any(own)
}

/// A field by which cells are grouped: `station`, `time:month`.
#[derive(Debug, Clone)]
struct By {
    text: String,
    field: String,
    /// Characters of a date that count.
    digits: Option<usize>,
}

impl By {
    fn parse(text: &str) -> Result<Self> {
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
            Some(_) => {
                return Err(CliError::usage(format!(
                    "--by {text}: a time is grouped by year, month, day or hour"
                )));
            }
        };
        Ok(Self {
            text: text.to_owned(),
            field: field.to_owned(),
            digits,
        })
    }
}

/// What is known of the values of a field in a group.
#[derive(Debug, Clone, Default)]
struct Values {
    nulls: u64,
    count: u64,
    integers: i128,
    /// Mean and sum of squared distances from it, as far as they were seen (Welford).
    mean: f64,
    squares: f64,
    least: Option<Vec<u8>>,
    greatest: Option<Vec<u8>>,
    distinct: HashSet<Vec<u8>>,
}

/// A group of cells.
#[derive(Debug, Clone)]
struct Group {
    shown: Vec<String>,
    cells: u64,
    values: Vec<Values>,
}

/// Runs `agg`.
pub fn run(session: &mut Session, array: &Array, args: &AggArgs) -> Result<()> {
    let measures = args.aggregates.iter().map(|text| Measure::parse(text));
    let measures = measures.collect::<Result<Vec<_>>>()?;
    let by = args.by.iter().map(|text| By::parse(text));
    let by = by.collect::<Result<Vec<_>>>()?;
    let mut fields: Vec<String> = Vec::new();
    let wanted = by.iter().map(|by| &by.field);
    for field in wanted.chain(measures.iter().filter_map(|m| m.field.as_ref())) {
        if !fields.contains(field) {
            fields.push(field.clone());
        }
    }
    if fields.is_empty() {
        fields.extend(array.schema().attributes.first().map(|a| a.name.clone()));
    }
    let cells = SelectionArgs {
        attrs: Some(fields.clone()),
        cells: args.selection.clone(),
        order: match array.schema().is_dense() {
            true => OrderArg::Row,
            false => OrderArg::Unordered,
        },
        ..SelectionArgs::default()
    };
    let selection = select(array, &cells, Coordinates::Never)?;
    let labels = Columns::new(array, &selection.fields, false)?;
    let at = |field: &str| -> Result<usize> {
        let mut names = selection.fields.iter();
        names.position(|name| name == field).ok_or_else(|| {
            CliError::usage(format!("{field:?} was not read; name it by its own name"))
        })
    };
    let by_at = by
        .iter()
        .map(|by| at(&by.field))
        .collect::<Result<Vec<_>>>()?;
    let of = measures
        .iter()
        .map(|m| m.field.as_deref().map(at).transpose())
        .collect::<Result<Vec<_>>>()?;
    for (measure, at) in measures.iter().zip(&of) {
        let (Some(at), true) = (at, measure.adds()) else {
            continue;
        };
        check_number(measure, &labels.types()[*at])?;
    }
    for (by, at) in by.iter().zip(&by_at) {
        if by.digits.is_some() && !labels.types()[*at].datatype.is_datetime() {
            return Err(CliError::usage(format!(
                "--by {}: {:?} holds no dates",
                by.text, by.field
            )));
        }
    }
    let fills: Vec<Vec<u8>> = fields.iter().map(|name| fill_of(array, name)).collect();
    let mut groups: HashMap<Vec<Option<Vec<u8>>>, Group> = HashMap::new();
    let progress = session.progress(selection.cell_num());
    each_batch(array, &selection, &progress, |set| {
        for cell in 0..set.cell_num {
            let key: Vec<Option<Vec<u8>>> = by
                .iter()
                .zip(&by_at)
                .map(|(by, at)| key_of(by, &set.columns[*at], cell))
                .collect();
            let group = groups.entry(key).or_insert_with(|| Group {
                shown: by
                    .iter()
                    .zip(&by_at)
                    .map(|(by, at)| {
                        let text = cell_text(&set.columns[*at], &labels.types()[*at], cell);
                        match by.digits {
                            Some(digits) => text.chars().take(digits).collect(),
                            None => text,
                        }
                    })
                    .collect(),
                cells: 0,
                values: vec![Values::default(); measures.len()],
            });
            group.cells += 1;
            for ((values, measure), at) in group.values.iter_mut().zip(&measures).zip(&of) {
                if let Some(at) = at {
                    let column = &set.columns[*at];
                    values.add(measure, column, cell, &fills[*at], args.skip_nan);
                }
            }
        }
        Ok(())
    })?;
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|(a, _), (b, _)| {
        let parts = a.iter().zip(b).zip(by.iter().zip(&by_at));
        parts
            .map(|((a, b), (by, at))| match (a, b, by.digits) {
                (Some(a), Some(b), None) => compare(labels.types()[*at].datatype, a, b),
                (a, b, _) => a.cmp(b),
            })
            .find(|order| *order != Ordering::Equal)
            .unwrap_or(Ordering::Equal)
    });
    if by.is_empty() && groups.is_empty() {
        let none = Group {
            shown: Vec::new(),
            cells: 0,
            values: vec![Values::default(); measures.len()],
        };
        groups.push((Vec::new(), none));
    }
    let type_of = |at: &Option<usize>| at.map(|at| &labels.types()[at]);
    if session.output.json {
        let rows = groups.iter().map(|(_, group)| {
            let mut row = Map::new();
            for (by, shown) in by.iter().zip(&group.shown) {
                row.insert(by.text.clone(), shown.clone().into());
            }
            for ((measure, values), at) in measures.iter().zip(&group.values).zip(&of) {
                row.insert(
                    measure.text.clone(),
                    values.json(measure, group, type_of(at)),
                );
            }
            Json::Object(row)
        });
        let mut rows: Vec<Json> = rows.collect();
        let json = match (by.is_empty(), rows.pop()) {
            (true, Some(only)) => only,
            (false, last) => {
                rows.extend(last);
                Json::Array(rows)
            }
            (true, None) => Json::Null,
        };
        return session.output.write_json(&json);
    }
    let names = by.iter().map(|by| (by.text.clone(), Align::Left));
    let names = names.chain(measures.iter().map(|m| (m.text.clone(), Align::Right)));
    let mut table = Table::new(names);
    for (_, group) in &groups {
        let values = measures.iter().zip(&group.values).zip(&of);
        let values = values
            .map(|((measure, values), at)| text_of(&values.json(measure, group, type_of(at))));
        table.row(group.shown.iter().cloned().chain(values));
    }
    print(&mut session.output, &table)
}

fn text_of(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn check_number(measure: &Measure, column: &ColumnType) -> Result<()> {
    let number = (column.datatype.is_integer() || column.datatype.is_real())
        && !column.is_var()
        && column.cell_size() == column.datatype.size();
    let dates = column.datatype.is_datetime() && measure.what == What::Mean;
    if column.enumeration.is_some() || !(number || dates || column.datatype.is_time()) {
        return Err(CliError::usage(format!(
            "{}: {:?} holds no numbers to add up",
            measure.text, column.name
        )));
    }
    Ok(())
}

/// What cells of a dense array hold that nobody has written, where it cannot be mistaken for data.
fn fill_of(array: &Array, name: &str) -> Vec<u8> {
    let schema = array.schema();
    let mut attributes = schema.attributes.iter();
    match attributes.find(|a| a.name == *name) {
        Some(a) if schema.is_dense() && a.datatype.size() > 1 => a.fill_value.clone(),
        _ => Vec::new(),
    }
}

fn key_of(by: &By, column: &ColumnBuffers, cell: usize) -> Option<Vec<u8>> {
    let view = column.view();
    if !view.is_valid(cell) {
        return None;
    }
    let bytes = view.cell(cell);
    let Some(digits) = by.digits else {
        return Some(bytes.to_vec());
    };
    let datatype = column.column_type.datatype;
    let unit = value::unit(datatype).unwrap_or_default();
    let text = moment::tick_text(unit, i64::read(bytes)).unwrap_or_default();
    Some(text.into_bytes().into_iter().take(digits).collect())
}

impl Values {
    fn add(
        &mut self,
        measure: &Measure,
        column: &ColumnBuffers,
        cell: usize,
        fill: &[u8],
        skip_nan: bool,
    ) {
        let view = column.view();
        if !view.is_valid(cell) {
            self.nulls += 1;
            return;
        }
        let bytes = view.cell(cell);
        if !fill.is_empty() && bytes == fill {
            return;
        }
        let datatype = column.column_type.datatype;
        let fixed = bytes.len() == datatype.size();
        let number = match fixed {
            true => dispatch!(datatype.physical(), T => T::read(bytes).as_f64()),
            false => 0.0,
        };
        if number.is_nan() && skip_nan {
            return;
        }
        self.count += 1;
        match measure.what {
            What::Sum | What::Mean | What::Stddev => {
                if !datatype.is_real() {
                    self.integers += integer(datatype, bytes);
                }
                let away = number - self.mean;
                self.mean += away / self.count as f64;
                self.squares += away * (number - self.mean);
            }
            What::Min | What::Max => {
                if number.is_nan() && fixed && datatype.is_real() {
                    return;
                }
                let (kept, wins) = match measure.what {
                    What::Min => (&mut self.least, Ordering::Less),
                    _ => (&mut self.greatest, Ordering::Greater),
                };
                if kept
                    .as_ref()
                    .is_none_or(|kept| compare(datatype, bytes, kept) == wins)
                {
                    *kept = Some(bytes.to_vec());
                }
            }
            What::Distinct if !self.distinct.contains(bytes) => {
                self.distinct.insert(bytes.to_vec());
            }
            What::Distinct | What::Count | What::Nulls => {}
        }
    }

    fn json(&self, measure: &Measure, group: &Group, column: Option<&ColumnType>) -> Json {
        let datatype = column.map(|column| column.datatype);
        let real = datatype.is_some_and(azulejo::format::Datatype::is_real);
        match measure.what {
            What::Count => group.cells.into(),
            What::Nulls => self.nulls.into(),
            What::Distinct => self.distinct.len().into(),
            _ if self.count == 0 => Json::Null,
            What::Sum if real => float_json(self.mean * self.count as f64),
            What::Sum => match i64::try_from(self.integers) {
                Ok(sum) => sum.into(),
                Err(_) => float_json(self.integers as f64),
            },
            What::Mean => match datatype {
                Some(of) if of.is_datetime() || of.is_time() => {
                    let mean = self.integers / i128::from(self.count);
                    value::tick_text(of, i64::try_from(mean).unwrap_or(i64::MIN)).into()
                }
                Some(of) if !of.is_real() => float_json(self.integers as f64 / self.count as f64),
                _ => float_json(self.mean),
            },
            What::Stddev if self.count < 2 => Json::Null,
            What::Stddev => float_json((self.squares / (self.count - 1) as f64).sqrt()),
            What::Min | What::Max => {
                let kept = match measure.what {
                    What::Min => &self.least,
                    _ => &self.greatest,
                };
                match (kept, column) {
                    (Some(bytes), Some(column)) => shown(bytes, column),
                    _ => Json::Null,
                }
            }
        }
    }
}

fn integer(datatype: azulejo::format::Datatype, bytes: &[u8]) -> i128 {
    use azulejo::format::Physical;
    match datatype.physical() {
        Physical::I8 => i8::read(bytes).into(),
        Physical::I16 => i16::read(bytes).into(),
        Physical::I32 => i32::read(bytes).into(),
        Physical::I64 => i64::read(bytes).into(),
        Physical::U8 => u8::read(bytes).into(),
        Physical::U16 => u16::read(bytes).into(),
        Physical::U32 => u32::read(bytes).into(),
        Physical::U64 => u64::read(bytes).into(),
        Physical::F32 | Physical::F64 => 0,
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
    match (datatype.is_integer() || datatype.is_real()) && bytes.len() == datatype.size() {
        true => azulejo::json::number_json(datatype.physical(), bytes),
        false => value::text(datatype, bytes).into(),
    }
}

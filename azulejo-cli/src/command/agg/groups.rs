//! Aggregates of groups of cells, and those that the engine does not have: cells are read and
//! counted here.

use super::measure::{By, Measure, What};
use super::values::{Room, Values, compare};
use crate::args::{AggArgs, OrderArg, SelectionArgs};
use crate::cells::each_batch;
use crate::columns::Columns;
use crate::command::cat::cell_text;
use crate::command::schema::print;
use crate::error::{CliError, Result};
use crate::interrupt;
use crate::output::table::{Align, Table};
use crate::selection::{Coordinates, names_among, select};
use crate::session::Session;
use azulejo::column::ColumnType;
use azulejo::read::ReadOptions;
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use azulejo::{Array, ColumnSet};
use serde_json::{Map, Value as Json};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::Write;

/// Cells between two looks at whether the user wants an end.
const BETWEEN_LOOKS: usize = 1 << 14;
/// Characters of a drawing where no terminal says how many there are.
const USUAL_WIDTH: usize = 80;

/// Bytes of a group beside its key, what is shown of it and its values, and of its place among
/// others: twice what they need, as lists and tables grow by doubling.
const OF_A_GROUP: usize = 2 * (size_of::<Group>() + size_of::<(Vec<u8>, usize)>());

/// A group of cells.
#[derive(Debug)]
struct Group {
    key: Vec<Option<Vec<u8>>>,
    shown: Vec<String>,
    cells: u64,
    /// For each measure.
    values: Vec<Values>,
}

/// The cells of a selection, counted in groups.
struct Counting<'a> {
    by: &'a mut [By],
    /// Which columns they are.
    by_at: Vec<usize>,
    measures: &'a [Measure],
    /// Which columns they look at.
    of: Vec<Option<usize>>,
    types: &'a [ColumnType],
    skip_nan: bool,
    room: Room,
    groups: Vec<Group>,
    places: HashMap<Vec<u8>, usize>,
}

impl Counting<'_> {
    fn take(&mut self, set: &ColumnSet) -> Result<()> {
        let (mut key, mut before) = (Vec::new(), Vec::new());
        let mut last = None;
        for cell in 0..set.cell_num {
            if cell.is_multiple_of(BETWEEN_LOOKS) {
                interrupt::check()?;
            }
            std::mem::swap(&mut key, &mut before);
            key.clear();
            for (by, at) in self.by.iter_mut().zip(&self.by_at) {
                match by.key(&set.columns[*at], cell) {
                    Some(bytes) => {
                        key.push(1);
                        key.extend((bytes.len() as u64).to_le_bytes());
                        key.extend(bytes);
                    }
                    None => key.push(0),
                }
            }
            // Neighbours are often of one group.
            let at = match last.filter(|_| key == before) {
                Some(at) => at,
                None => match self.places.get(&key).copied() {
                    Some(at) => at,
                    None => self.begin(&key, set, cell)?,
                },
            };
            last = Some(at);
            let group = &mut self.groups[at];
            group.cells += 1;
            for ((values, measure), at) in group.values.iter_mut().zip(self.measures).zip(&self.of)
            {
                let Some(at) = *at else { continue };
                values.add(
                    measure,
                    &set.columns[at],
                    cell,
                    self.skip_nan,
                    &mut self.room,
                )?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, key: &[u8], set: &ColumnSet, cell: usize) -> Result<usize> {
        let mut group = Group {
            key: Vec::new(),
            shown: Vec::new(),
            cells: 0,
            values: vec![Values::default(); self.measures.len()],
        };
        for (by, at) in self.by.iter_mut().zip(&self.by_at) {
            let column = &set.columns[*at];
            let period = by.is_period();
            let part = by.key(column, cell).map(<[u8]>::to_vec);
            group.shown.push(match &part {
                Some(name) if period => String::from_utf8_lossy(name).into_owned(),
                _ => cell_text(column, &self.types[*at], cell),
            });
            group.key.push(part);
        }
        let shown: usize = group.shown.iter().map(String::len).sum();
        let values = size_of_val(&group.values[..]);
        let bytes = OF_A_GROUP + 2 * key.len() + shown + values;
        if let Some(by) = self.by.first() {
            let text = format!("--by {}", by.text);
            self.room.take(bytes as u64, &text)?;
        }
        self.groups.push(group);
        self.places.insert(key.to_vec(), self.groups.len() - 1);
        Ok(self.groups.len() - 1)
    }

    /// The groups in the order of what they are grouped by.
    fn finish(mut self) -> Vec<Group> {
        if self.by.is_empty() && self.groups.is_empty() {
            self.groups.push(Group {
                key: Vec::new(),
                shown: Vec::new(),
                cells: 0,
                values: vec![Values::default(); self.measures.len()],
            });
        }
        for values in self.groups.iter_mut().flat_map(|group| &mut group.values) {
            values.settle();
        }
        let (by, by_at, types) = (&*self.by, &self.by_at, self.types);
        self.groups.sort_by(|a, b| {
            let parts = a.key.iter().zip(&b.key).zip(by.iter().zip(by_at));
            parts
                .map(|((a, b), (by, at))| match (a, b) {
                    (Some(a), Some(b)) if !by.is_period() => compare(&types[*at], a, b),
                    (a, b) => a.cmp(b),
                })
                .find(|order| *order != Ordering::Equal)
                .unwrap_or(Ordering::Equal)
        });
        self.groups
    }
}

/// Runs `agg` by looking at cells.
pub fn run(
    session: &mut Session,
    array: &Array,
    args: &AggArgs,
    measures: &[Measure],
) -> Result<()> {
    // Names may have colons themselves, and commas.
    let names = names_among(&args.by, |text| {
        let by = By::parse(text).map(|by| by.field);
        let fields = [Some(text.to_owned()), by.ok()];
        let mut fields = fields.iter().flatten();
        fields.any(|name| array.schema().field(name).is_some())
    });
    let by = names.iter().map(|text| match array.schema().field(text) {
        Some(_) => Ok(By::field(text)),
        None => By::parse(text),
    });
    let mut by = by.collect::<Result<Vec<_>>>()?;
    let fields = fields(array, &by, measures);
    let cells = SelectionArgs {
        attrs: Some(fields.clone()),
        cells: args.selection.clone(),
        order: match array.schema().is_dense() {
            true => Some(OrderArg::Row),
            false => Some(OrderArg::Unordered),
        },
        ..SelectionArgs::default()
    };
    let mut selection = select(array, &cells, Coordinates::Never)?;
    let mut all = None;
    if array.schema().is_dense() {
        if by.is_empty() && args.selection.condition.is_none() {
            all = selection.options.clone();
        }
        // Neither what nobody wrote nor what does not meet the condition is in a group.
        selection.options = selection.options.map(ReadOptions::matching_only);
    }
    let columns = Columns::new(array, &selection.fields, false)?;
    let types = columns.types();
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
        at.map_or(Ok(()), |at| measure.check(&types[at]))?;
    }
    for (by, at) in by.iter().zip(&by_at) {
        by.check(&types[*at])?;
    }
    let mut counting = Counting {
        by: &mut by,
        by_at,
        measures,
        of: of.clone(),
        types,
        skip_nan: args.skip_nan,
        room: Room::new(session.context.config().memory_budget / 2),
        groups: Vec::new(),
        places: HashMap::new(),
    };
    let progress = session.progress(selection.cell_num());
    each_batch(array, &selection, &progress, |set| counting.take(&set))?;
    let mut groups = counting.finish();
    if let ([group], Some(all)) = (&mut groups[..], all) {
        group.cells = all_cells(array, all)?;
    }
    let type_of = |at: &Option<usize>| at.map(|at| &types[at]);
    let answers: Vec<Vec<Json>> = groups
        .iter()
        .map(|group| {
            let values = measures.iter().zip(&group.values).zip(&of);
            let answer = |((measure, values), at): ((&Measure, &Values), _)| {
                values.json(measure, group.cells, type_of(at), args.bins)
            };
            values.map(answer).collect()
        })
        .collect();
    if session.output.json {
        return write_json(session, &by, measures, &groups, answers);
    }
    if let ([measure], [answers], true) = (measures, &answers[..], by.is_empty())
        && measure.what != What::Histogram
    {
        let answer = answers.first().map_or_else(String::new, text_of);
        return Ok(writeln!(session.output, "{answer}")?);
    }
    let drawn = |measure: &Measure| by.is_empty() && measure.what == What::Histogram;
    if !measures.iter().all(drawn) {
        let names = by.iter().map(|by| (by.text.clone(), Align::Left));
        let shown = measures.iter().filter(|measure| !drawn(measure));
        let names = names.chain(shown.map(|m| {
            let left = m.what == What::Histogram;
            (
                m.text.clone(),
                if left { Align::Left } else { Align::Right },
            )
        }));
        let mut table = Table::new(names);
        for (group, answers) in groups.iter().zip(&answers) {
            let cells = measures.iter().zip(&group.values).zip(&of).zip(answers);
            let cells = cells.filter(|(((measure, _), _), _)| !drawn(measure));
            let cells = cells.map(|(((measure, values), at), answer)| match measure.what {
                What::Histogram => type_of(at)
                    .and_then(|column| values.histogram(column, args.bins))
                    .map_or_else(String::new, |histogram| histogram.line()),
                _ => text_of(answer),
            });
            table.row(group.shown.iter().cloned().chain(cells));
        }
        print(&mut session.output, &table)?;
    }
    let width = session.output.width().unwrap_or(USUAL_WIDTH);
    for group in groups.iter().filter(|_| by.is_empty()) {
        for ((measure, values), at) in measures.iter().zip(&group.values).zip(&of) {
            if measure.what != What::Histogram {
                continue;
            }
            if measures.len() > 1 {
                writeln!(session.output, "\n{}", measure.text)?;
            }
            let histogram = type_of(at).and_then(|column| values.histogram(column, args.bins));
            match histogram {
                Some(histogram) => write!(session.output, "{}", histogram.draw(width))?,
                None => writeln!(session.output, "no values")?,
            }
        }
    }
    Ok(())
}

/// The number of selected cells of a dense array, which `count` is where there is one group: what
/// nobody wrote is among them, as for the engine.
fn all_cells(array: &Array, all: ReadOptions) -> Result<u64> {
    match array.aggregate(all, &[Aggregate::Count])?.first() {
        Some(AggregateValue::Unsigned(cells)) => Ok(*cells),
        other => Err(azulejo::Error::Internal(format!("a count that is {other:?}")).into()),
    }
}

/// The fields to read.
fn fields(array: &Array, by: &[By], measures: &[Measure]) -> Vec<String> {
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
    fields
}

fn write_json(
    session: &mut Session,
    by: &[By],
    measures: &[Measure],
    groups: &[Group],
    answers: Vec<Vec<Json>>,
) -> Result<()> {
    let rows = groups.iter().zip(answers).map(|(group, answers)| {
        let mut row = Map::new();
        for ((by, shown), key) in by.iter().zip(&group.shown).zip(&group.key) {
            // A text may say `null` too.
            let shown = key.as_ref().map_or(Json::Null, |_| shown.clone().into());
            row.insert(by.text.clone(), shown);
        }
        for (measure, answer) in measures.iter().zip(answers) {
            row.insert(measure.text.clone(), answer);
        }
        Json::Object(row)
    });
    let mut rows: Vec<Json> = rows.collect();
    let json = match by.is_empty() {
        true => rows.pop().unwrap_or(Json::Null),
        false => Json::Array(rows),
    };
    session.output.write_json(&json)
}

fn text_of(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

//! `azulejo agg`: aggregates.

mod groups;
mod measure;
mod quantile;
mod values;

use super::schema::print;
use crate::args::{AggArgs, OrderArg, SelectionArgs};
use crate::error::{CliError, Result};
use crate::output::table::{Align, Table};
use crate::selection::{Coordinates, select};
use crate::session::Session;
use crate::value;
use azulejo::Array;
use azulejo::format::{CellValNum, Datatype};
use azulejo::json::{float_json, value_json};
use azulejo::read::ReadOptions;
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use measure::{Measure, What};
use serde_json::Value as Json;
use std::io::Write;

/// Runs the command.
pub fn run(session: &mut Session, args: &AggArgs) -> Result<()> {
    let array = session.open(&args.uri, &args.time)?;
    let measures = args.aggregates.iter().map(|text| Measure::parse(text));
    let measures = measures.collect::<Result<Vec<_>>>()?;
    // The engine answers from statistics where it can.
    let plain = |measure: &Measure| measure.is_plain() && !is_of_text(&array, measure);
    let plain = args.by.is_empty() && !args.skip_nan && measures.iter().all(plain);
    if !plain {
        return groups::run(session, &array, args, &measures);
    }
    let wanted = args
        .aggregates
        .iter()
        .map(|text| Ok(text.parse()?))
        .collect::<Result<Vec<Aggregate>>>()?;
    wanted
        .iter()
        .try_for_each(|what| makes_sense(&array, what))?;
    let cells = SelectionArgs {
        cells: args.selection.clone(),
        order: Some(OrderArg::Unordered),
        ..SelectionArgs::default()
    };
    let selection = select(&array, &cells, Coordinates::Never)?;
    let values = match selection.options {
        Some(options) => {
            let least = least_ticks(&array, &wanted);
            let asked: Vec<Aggregate> = wanted.iter().cloned().chain(least).collect();
            let mut values = array.aggregate(options, &asked)?;
            // What is no time is the least tick, which the engine takes for one.
            if values.split_off(wanted.len()).iter().any(is_no_time) {
                return groups::run(session, &array, args, &measures);
            }
            values
        }
        // Nothing was written: what comes of no cells, of every field as where cells are sparse.
        None => array.aggregate(ReadOptions::new().limit(0), &wanted)?,
    };
    if session.output.json {
        let fields = wanted.iter().zip(&values);
        let fields = fields.map(|(what, value)| Ok((what.to_string(), json(&array, what, value)?)));
        let fields = fields.collect::<Result<_>>()?;
        return session.output.write_json(&Json::Object(fields));
    }
    if let ([what], [value]) = (&wanted[..], &values[..]) {
        let text = text(&array, what, value)?;
        return Ok(writeln!(session.output, "{text}")?);
    }
    let mut table = Table::new([("aggregate", Align::Left), ("value", Align::Right)]);
    for (what, value) in wanted.iter().zip(&values) {
        table.row([what.to_string(), text(&array, what, value)?]);
    }
    print(&mut session.output, &table)
}

/// The least values of the fields of moments and durations that are summed up or compared.
fn least_ticks(array: &Array, wanted: &[Aggregate]) -> Vec<Aggregate> {
    let of_time = |what: &&Aggregate| {
        let datatype = type_of(array, what);
        datatype.is_some_and(|datatype| datatype.is_datetime() || datatype.is_time())
    };
    let weighed = wanted.iter().filter(|what| {
        use Aggregate as A;
        matches!(what, A::Sum(_) | A::Mean(_) | A::Min(_) | A::Max(_))
    });
    let names = weighed.filter(of_time).filter_map(Aggregate::field);
    names.map(|name| Aggregate::Min(name.to_owned())).collect()
}

/// Whether a least value is that of no time.
fn is_no_time(least: &AggregateValue) -> bool {
    match least {
        AggregateValue::Cell { datatype, bytes } => value::is_no_time(*datatype, bytes),
        _ => false,
    }
}

/// The type of an aggregate's field.
fn type_of(array: &Array, what: &Aggregate) -> Option<Datatype> {
    let field = array.schema().field(what.field()?)?;
    array.schema().type_of(field).map(|(datatype, _)| datatype)
}

/// Whether a least or greatest label is that in the order of texts: statistics have the order in
/// which labels were added.
fn is_of_text(array: &Array, measure: &Measure) -> bool {
    let mut attributes = array.schema().attributes.iter();
    let attribute = attributes.find(|a| Some(&a.name) == measure.field.as_ref());
    let labels = attribute.and_then(|a| array.enumeration(a.enumeration.as_deref()?).ok());
    matches!(measure.what, What::Min | What::Max) && labels.is_some_and(|labels| !labels.ordered)
}

/// Refuses sums of what cannot be added up.
fn makes_sense(array: &Array, what: &Aggregate) -> Result<()> {
    let (Aggregate::Sum(name) | Aggregate::Mean(name)) = what else {
        return Ok(());
    };
    let mut attributes = array.schema().attributes.iter();
    if attributes.any(|a| a.name == *name && a.enumeration.is_some()) {
        return Err(CliError::usage(format!(
            "{what}: {name:?} holds labels, which have no sum"
        )));
    }
    let dates = type_of(array, what).is_some_and(Datatype::is_datetime);
    match what {
        Aggregate::Sum(_) if dates => Err(CliError::usage(format!(
            "{what}: {name:?} holds dates, which have no sum"
        ))),
        _ => Ok(()),
    }
}

/// A mean of dates as a date, of durations as a duration.
fn moment(array: &Array, what: &Aggregate, mean: f64) -> Option<String> {
    let datatype = type_of(array, what)?;
    let of_time = datatype.is_datetime() || datatype.is_time();
    (of_time && mean.is_finite()).then(|| value::tick_text(datatype, mean.round() as i64))
}

/// The label that a least or greatest index stands for, of an enumerated attribute.
fn label(array: &Array, what: &Aggregate, index: &[u8]) -> Result<Option<String>> {
    let attribute = array
        .schema()
        .attributes
        .iter()
        .find(|a| Some(a.name.as_str()) == what.field());
    let Some(name) = attribute.and_then(|attribute| attribute.enumeration.as_deref()) else {
        return Ok(None);
    };
    let enumeration = array.enumeration(name)?;
    let entry = value::index(index).and_then(|at| enumeration.value(at));
    Ok(entry.map(|entry| value::text(enumeration.datatype, entry)))
}

fn text(array: &Array, what: &Aggregate, value: &AggregateValue) -> Result<String> {
    Ok(match value {
        AggregateValue::Null => "null".to_owned(),
        AggregateValue::Unsigned(number) => number.to_string(),
        AggregateValue::Signed(number) => number.to_string(),
        AggregateValue::Real(number) => {
            moment(array, what, *number).unwrap_or_else(|| number.to_string())
        }
        AggregateValue::Cell { datatype, bytes } => match label(array, what, bytes)? {
            Some(label) => label,
            None => value::text(*datatype, bytes),
        },
        other => format!("{other:?}"),
    })
}

fn json(array: &Array, what: &Aggregate, value: &AggregateValue) -> Result<Json> {
    Ok(match value {
        AggregateValue::Null => Json::Null,
        AggregateValue::Unsigned(number) => (*number).into(),
        AggregateValue::Signed(number) => (*number).into(),
        AggregateValue::Real(number) => match moment(array, what, *number) {
            Some(moment) => moment.into(),
            None => float_json(*number),
        },
        AggregateValue::Cell { datatype, bytes } => match label(array, what, bytes)? {
            Some(label) => label.into(),
            // A date as people write it: its ticks would need the unit.
            None if datatype.is_datetime() || datatype.is_time() => {
                value::text(*datatype, bytes).into()
            }
            None => value_json(*datatype, CellValNum::ONE, bytes),
        },
        other => format!("{other:?}").into(),
    })
}

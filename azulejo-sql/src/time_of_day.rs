//! Times of day, which arrays hold as spans since midnight, as tables show that are declared with them.

use crate::columns::{Stored, TableColumn};
use crate::error::Result;
use azulejo::condition::{Comparison, Condition};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CaseExpr, CastExpr, lit};
use std::sync::Arc;

/// Seconds of a day.
const A_DAY: i64 = 86_400;

/// What a span is shown as where it is declared to be a time of day: that of its own unit.
pub fn shown_as(declared: &DataType, span: &DataType) -> Option<DataType> {
    match (declared, span) {
        (DataType::Time32(_) | DataType::Time64(_), DataType::Duration(unit)) => Some(match unit {
            TimeUnit::Second | TimeUnit::Millisecond => DataType::Time32(*unit),
            TimeUnit::Microsecond | TimeUnit::Nanosecond => DataType::Time64(*unit),
        }),
        _ => None,
    }
}

/// What an array holds of a type: spans for times of day.
pub fn stored_as(shown: &DataType) -> DataType {
    match shown {
        DataType::Time32(unit) | DataType::Time64(unit) => DataType::Duration(*unit),
        other => other.clone(),
    }
}

fn ticks_a_day(time: &DataType) -> i64 {
    match time {
        DataType::Time32(TimeUnit::Second) => A_DAY,
        DataType::Time32(TimeUnit::Millisecond) => A_DAY * 1_000,
        DataType::Time64(TimeUnit::Microsecond) => A_DAY * 1_000_000,
        _ => A_DAY * 1_000_000_000,
    }
}

fn cast(expr: Arc<dyn PhysicalExpr>, to: DataType) -> Arc<dyn PhysicalExpr> {
    Arc::new(CastExpr::new(expr, to, None))
}

/// A span as a time of day; null where it is none.
///
/// # Errors
/// Those of planning.
pub fn of_span(span: Arc<dyn PhysicalExpr>, time: &DataType) -> Result<Arc<dyn PhysicalExpr>> {
    let ticks = cast(span, DataType::Int64);
    let is = |op, tick: i64| -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(Arc::clone(&ticks), op, lit(tick)))
    };
    let (start, end) = (is(Operator::GtEq, 0), is(Operator::Lt, ticks_a_day(time)));
    let within: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(start, Operator::And, end));
    let ticks = match time {
        DataType::Time32(_) => cast(ticks, DataType::Int32),
        _ => Arc::clone(&ticks),
    };
    let time = cast(ticks, time.clone());
    Ok(Arc::new(CaseExpr::try_new(
        None,
        vec![(within, time)],
        None,
    )?))
}

/// A time of day as a span.
pub fn to_span(time: Arc<dyn PhysicalExpr>, of: &DataType) -> Arc<dyn PhysicalExpr> {
    let ticks = match of {
        DataType::Time32(_) => cast(cast(time, DataType::Int32), DataType::Int64),
        _ => cast(time, DataType::Int64),
    };
    cast(ticks, stored_as(of))
}

/// A span that is a default as a time of day, if it is one.
pub fn of_default(default: Expr, time: &DataType) -> Expr {
    let of_span = |span: &ScalarValue| {
        let ticks = span.cast_to(&DataType::Int64).ok()?;
        let ticks = match time {
            DataType::Time32(_) => ticks.cast_to(&DataType::Int32).ok()?,
            _ => ticks,
        };
        ticks.cast_to(time).ok()
    };
    let told = match &default {
        Expr::Literal(span, _) if matches!(span.data_type(), DataType::Duration(_)) => {
            of_span(span)
        }
        _ => None,
    };
    told.map_or(default, |time| Expr::Literal(time, None))
}

/// The cells of a column whose spans are no times of day.
pub fn beyond_a_day(column: &TableColumn, shown: &DataType) -> Condition {
    let end = match column.stored {
        // Of such ticks as many seconds are one.
        Stored::Ticks { scale, .. } => A_DAY / scale,
        _ => ticks_a_day(shown),
    };
    let is = |op, tick: i64| Condition::compare(column.name(), op, tick.to_le_bytes());
    // The least tick is no time.
    let before = is(Comparison::Lt, 0).and(is(Comparison::Ne, i64::MIN));
    before.or(is(Comparison::Ge, end))
}

//! Comparisons of times with moments of finer units.
//!
//! Plans compare in the finer unit: `CAST(second AS Timestamp(ns)) < moment`. DataFusion then takes the
//! cast away and cuts the moment to the column's unit, which is another comparison: half past a second
//! is none of that second, nor before it. Days it casts row by row, which fails where one of them has
//! no nanoseconds. Here both become comparisons of columns as they are, before DataFusion sees them.
//!
//! And it asks for a year by the moments at its ends, which for years that nanoseconds do not reach are
//! null to it: `extract(year FROM t) < 3000` held for no row. Of such years those of days are asked for.
//! Moments that nanoseconds do not reach see [`far`].

mod coarse;
pub mod far;

use self::coarse::{Beside, Coarse, Moment, ratio, told};
use crate::error::Result;
use crate::expressions::tell_where_asked;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Between, BinaryExpr, Cast, InList, ScalarFunction};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use std::cell::LazyCell;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Compares times with moments between two of their ticks as what these are.
#[derive(Debug, Default)]
pub struct TimeRule;

impl AnalyzerRule for TimeRule {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let simplifier = LazyCell::new(|| {
            let context = SimplifyContext::builder()
                .with_config_options(Arc::new(config.clone()))
                .with_current_time()
                .build();
            ExprSimplifier::new(context)
        });
        let asked = |expr: &Expr| widened(expr).is_some() || of_date(expr).is_some();
        tell_where_asked(plan, asked, columns_of, |expr, schema| {
            let comparisons = Comparisons {
                schema,
                simplifier: &simplifier,
            };
            let told = match &expr {
                Expr::InList(list) => comparisons.listed(list),
                _ => told(&comparisons, &expr),
            };
            let told = told.or_else(|| comparisons.of_far_years(&expr));
            Ok(told.map_or_else(|| Transformed::no(expr), Transformed::yes))
        })
    }

    fn name(&self) -> &str {
        "moments_between_ticks"
    }
}

/// The columns that the expressions of a node may name.
fn columns_of(plan: &LogicalPlan) -> DFSchema {
    merge_schema(&plan.inputs())
}

/// What an expression shows as a timestamp, and in which unit.
fn widened(expr: &Expr) -> Option<(&Expr, TimeUnit)> {
    let Expr::Cast(Cast { expr, field }) = expr else {
        return None;
    };
    match field.data_type() {
        DataType::Timestamp(unit, zone) if is_utc(zone.as_deref()) => Some((expr.as_ref(), *unit)),
        _ => None,
    }
}

/// Whether moments of a zone have the ticks of those without one, which are shown in it.
fn is_utc(zone: Option<&str>) -> bool {
    zone.is_none_or(|zone| matches!(zone, "+00:00" | "+00" | "+0000" | "Z" | "UTC" | "Etc/UTC"))
}

/// The part of a date that an expression is, and of what.
fn of_date(expr: &Expr) -> Option<(&ScalarFunction, &str, &Expr)> {
    match expr {
        // Numbers are compared as the widest of both sides.
        Expr::Cast(Cast { expr, .. }) => of_date(expr),
        Expr::ScalarFunction(call) if call.func.name() == "date_part" => {
            let [Expr::Literal(part, _), time] = call.args.as_slice() else {
                return None;
            };
            Some((call, part.try_as_str()??, time))
        }
        _ => None,
    }
}

/// Years of which all moments have nanoseconds.
const NANOSECOND_YEARS: RangeInclusive<i64> = 1678..=2261;

/// Looks for comparisons in the expressions of a plan.
struct Comparisons<'s> {
    /// The columns that there are.
    schema: &'s DFSchema,
    simplifier: &'s ExprSimplifier,
}

impl Comparisons<'_> {
    /// A comparison of nanoseconds' years with some that they do not reach, as one of days' years.
    fn of_far_years(&self, expr: &Expr) -> Option<Expr> {
        let boxed = |expr: Option<Expr>| expr.map(Box::new);
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (left, right) = match self.year_of_day(left, [right.as_ref()]) {
                    Some(year) => (Box::new(year), right.clone()),
                    None => (
                        left.clone(),
                        boxed(self.year_of_day(right, [left.as_ref()]))?,
                    ),
                };
                Some(Expr::BinaryExpr(BinaryExpr::new(left, *op, right)))
            }
            Expr::Between(Between {
                expr,
                negated,
                low,
                high,
            }) => {
                let year = boxed(self.year_of_day(expr, [low.as_ref(), high.as_ref()]))?;
                let (low, high) = (low.clone(), high.clone());
                Some(Expr::Between(Between::new(year, *negated, low, high)))
            }
            Expr::InList(InList {
                expr,
                list,
                negated,
            }) => {
                let year = boxed(self.year_of_day(expr, list))?;
                Some(Expr::InList(InList::new(year, list.clone(), *negated)))
            }
            _ => None,
        }
    }

    /// The year of a moment in nanoseconds as that of its day, if it is compared with a year that these
    /// do not reach.
    fn year_of_day<'a>(
        &self,
        expr: &Expr,
        others: impl IntoIterator<Item = &'a Expr>,
    ) -> Option<Expr> {
        let (call, part, time) = of_date(expr)?;
        let part = part.trim_matches(['\'', '"']).to_ascii_lowercase();
        let is_year = matches!(part.as_str(), "y" | "yr" | "yrs" | "year" | "years");
        let kind = time.get_type(self.schema).ok()?;
        if !is_year || !matches!(kind, DataType::Timestamp(TimeUnit::Nanosecond, _)) {
            return None;
        }
        let is_far = |other: &Expr| {
            let year = self.literal(other).and_then(|year| {
                let year = year.cast_to(&DataType::Int64).ok()?;
                match year {
                    ScalarValue::Int64(year) => year,
                    _ => None,
                }
            });
            year.is_some_and(|year| !NANOSECOND_YEARS.contains(&year))
        };
        if !others.into_iter().any(is_far) {
            return None;
        }
        let day = Expr::Cast(Cast::new(Box::new(time.clone()), DataType::Date32));
        let mut args = call.args.clone();
        *args.last_mut()? = day;
        let year = ScalarFunction::new_udf(Arc::clone(&call.func), args);
        let year = Expr::ScalarFunction(year);
        Some(match expr {
            Expr::Cast(Cast { field, .. }) => {
                Expr::Cast(Cast::new(Box::new(year), field.data_type().clone()))
            }
            _ => year,
        })
    }

    fn listed(&self, list: &InList) -> Option<Expr> {
        let time = self.coarse(&list.expr)?;
        let (mut items, mut none) = (Vec::new(), None);
        for item in &list.list {
            let value = self.literal(item)?;
            if value.is_null() {
                items.push(lit(ScalarValue::try_from(&time.kind).ok()?));
                continue;
            }
            match time.moment(ticks_of(&value)?) {
                Moment::At(tick) => items.push(time.tick(tick)?),
                moment @ Moment::Behind(_) => none = Some(moment),
            }
        }
        if items.is_empty() {
            // A list of moments that it never is.
            let op = match list.negated {
                true => Operator::NotEq,
                false => Operator::Eq,
            };
            return time.compared(op, &none?);
        }
        let expr = Box::new(time.expr.clone());
        Some(Expr::InList(InList::new(expr, items, list.negated)))
    }

    /// The value of an expression without columns.
    fn literal(&self, expr: &Expr) -> Option<ScalarValue> {
        if let Expr::Literal(value, _) = expr {
            return Some(value.clone());
        }
        if expr.any_column_refs() {
            return None;
        }
        match self.simplifier.simplify(expr.clone()) {
            Ok(Expr::Literal(value, _)) => Some(value),
            _ => None,
        }
    }
}

impl Beside for Comparisons<'_> {
    /// A time that an expression shows in a finer unit.
    fn coarse<'a>(&self, expr: &'a Expr) -> Option<Coarse<'a>> {
        let (expr, unit) = widened(expr)?;
        let kind = expr.get_type(self.schema).ok()?;
        let ratio = ratio(&kind, unit)?;
        (ratio > 1).then_some(Coarse { expr, kind, ratio })
    }

    fn ticks(&self, _time: &Coarse<'_>, other: &Expr) -> Option<i128> {
        ticks_of(&self.literal(other)?)
    }
}

/// The ticks of a timestamp: both sides of a comparison have its unit.
fn ticks_of(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::TimestampSecond(ticks, zone)
        | ScalarValue::TimestampMillisecond(ticks, zone)
        | ScalarValue::TimestampMicrosecond(ticks, zone)
        | ScalarValue::TimestampNanosecond(ticks, zone)
            if is_utc(zone.as_deref()) =>
        {
            ticks.map(i128::from)
        }
        _ => None,
    }
}

//! Comparisons with moments that nanoseconds do not reach.
//!
//! Plans take text beside times, and `TIMESTAMP '..'`, for nanoseconds, of which there are those from
//! 1677 to 2262: `t < '9999-12-31'` was an error, whatever the unit of `t`. Here such moments become
//! ticks of the time that they are compared with, before types are made alike.

use super::coarse::{Beside, Coarse, ratio, told};
use super::columns_of;
use crate::error::Result;
use crate::expressions::tell_where_asked;
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::compute::kernels::cast_utils::string_to_datetime;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::{Cast, InList};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;

/// Compares times with moments that nanoseconds do not reach.
#[derive(Debug, Default)]
pub struct FarTimeRule;

impl AnalyzerRule for FarTimeRule {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let asked = |expr: &Expr| far(expr).is_some();
        tell_where_asked(plan, asked, columns_of, |expr, schema| {
            let told = match &expr {
                Expr::InList(list) => listed(&Far(schema), list),
                _ => told(&Far(schema), &expr),
            };
            Ok(told.map_or_else(|| Transformed::no(expr), Transformed::yes))
        })
    }

    fn name(&self) -> &str {
        "moments_beyond_nanoseconds"
    }
}

/// A moment that nanoseconds do not reach: what it is said to be, and its nanoseconds since 1970.
fn far(expr: &Expr) -> Option<(DataType, i128)> {
    let (text, kind) = match expr {
        Expr::Literal(text, _) => (text, DataType::Utf8),
        Expr::Cast(Cast { expr, field }) => match expr.as_ref() {
            Expr::Literal(text, _) => (text, field.data_type().clone()),
            _ => return None,
        },
        _ => return None,
    };
    // How fine moments of this type are, in nanoseconds.
    let unit = match &kind {
        DataType::Utf8 => 1,
        kind => ratio(kind, TimeUnit::Nanosecond)?,
    };
    let utc: Tz = "+00:00".parse().ok()?;
    let moment = string_to_datetime(&utc, text.try_as_str()??).ok()?;
    let seconds = i128::from(moment.timestamp()) * 1_000_000_000;
    let nanoseconds = seconds + i128::from(moment.timestamp_subsec_nanos());
    let moment = nanoseconds.div_euclid(unit.into()) * i128::from(unit);
    i64::try_from(moment).is_err().then_some((kind, moment))
}

/// Tells such moments, where these are the columns that there are.
struct Far<'s>(&'s DFSchema);

impl Beside for Far<'_> {
    fn coarse<'a>(&self, expr: &'a Expr) -> Option<Coarse<'a>> {
        let kind = expr.get_type(self.0).ok()?;
        let ratio = ratio(&kind, TimeUnit::Nanosecond)?;
        Some(Coarse { expr, kind, ratio })
    }

    fn ticks(&self, time: &Coarse<'_>, other: &Expr) -> Option<i128> {
        let (kind, moment) = far(other)?;
        // Days are compared with days, and with text as days.
        let reached = time.kind == DataType::Date32 && !matches!(kind, DataType::Timestamp(..));
        (!reached).then_some(moment)
    }
}

/// A list with such moments: one of the others, or of these.
fn listed(beside: &Far<'_>, list: &InList) -> Option<Expr> {
    let time = beside.coarse(&list.expr)?;
    let op = match list.negated {
        true => Operator::NotEq,
        false => Operator::Eq,
    };
    let (mut others, mut parts) = (Vec::new(), Vec::new());
    for item in &list.list {
        match beside.ticks(&time, item) {
            Some(ticks) => parts.push(time.compared(op, &time.moment(ticks))?),
            None => others.push(item.clone()),
        }
    }
    if parts.is_empty() {
        return None;
    }
    if !others.is_empty() {
        let others = InList::new(list.expr.clone(), others, list.negated);
        parts.push(Expr::InList(others));
    }
    parts.into_iter().reduce(|one, other| match list.negated {
        true => one.and(other),
        false => one.or(other),
    })
}

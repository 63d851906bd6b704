//! Comparisons with moments that plans would take for others, or for none.
//!
//! Plans take text beside times, and `TIMESTAMP '..'`, for nanoseconds, of which there are those from
//! 1677 to 2262: `t < '9999-12-31'` was an error, whatever the unit of `t`. Text beside days they take
//! for a day, and cut off what it says of the time: `d < '2024-05-01 12:00:00'` was false on that day.
//! And they know no time of day without seconds. Here such moments become ticks of the time that they
//! are compared with, before types are made alike.

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

/// Compares times with moments that nanoseconds do not reach, and days with times of day.
#[derive(Debug, Default)]
pub struct FarTimeRule;

impl AnalyzerRule for FarTimeRule {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let asked = |expr: &Expr| Said::of(expr).is_some_and(|said| said.is_lost());
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

/// Nanoseconds of a day.
const A_DAY: i128 = 86_400_000_000_000;

/// A moment that an expression says.
struct Said {
    /// As what: text, days, or a timestamp.
    kind: DataType,
    /// Nanoseconds since 1970.
    moment: i128,
    /// Whether plans can read it.
    read: bool,
}

impl Said {
    fn of(expr: &Expr) -> Option<Self> {
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
            kind => i128::from(ratio(kind, TimeUnit::Nanosecond)?),
        };
        let utc: Tz = "+00:00".parse().ok()?;
        let text = text.try_as_str()??;
        let (moment, read) = match string_to_datetime(&utc, text) {
            Ok(moment) => (moment, true),
            Err(_) if kind == DataType::Utf8 => {
                let whole = with_seconds(text)?;
                (string_to_datetime(&utc, &whole).ok()?, false)
            }
            Err(_) => return None,
        };
        let seconds = i128::from(moment.timestamp()) * 1_000_000_000;
        let nanoseconds = seconds + i128::from(moment.timestamp_subsec_nanos());
        let moment = nanoseconds.div_euclid(unit) * unit;
        Some(Self { kind, moment, read })
    }

    /// Whether nanoseconds do not reach it.
    fn is_far(&self) -> bool {
        i64::try_from(self.moment).is_err()
    }

    /// Whether it is text that a day is not all of.
    fn has_time_of_day(&self) -> bool {
        self.kind == DataType::Utf8 && self.moment.rem_euclid(A_DAY) != 0
    }

    /// Whether it may be lost on its way through plans.
    fn is_lost(&self) -> bool {
        self.is_far() || !self.read || self.has_time_of_day()
    }
}

/// A day and a time of day without seconds (`2024-05-01 12:00`), with these.
pub fn with_seconds(text: &str) -> Option<String> {
    let (_, time) = text.split_once([' ', 'T'])?;
    let (hours, minutes) = time.split_once(':')?;
    let digits = |of: &str| of.len() == 2 && of.bytes().all(|byte| byte.is_ascii_digit());
    (digits(hours) && digits(minutes)).then(|| format!("{text}:00"))
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
        let said = Said::of(other)?;
        let lost = match (&time.kind, &said.kind) {
            (DataType::Date32, DataType::Timestamp(..)) => said.is_far(),
            // Days are compared with days, and with text as days.
            (DataType::Date32, DataType::Utf8) => said.has_time_of_day() || !said.read,
            (DataType::Date32, _) => false,
            _ => said.is_far() || !said.read,
        };
        lost.then_some(said.moment)
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

//! Comparisons of times with moments of finer units.
//!
//! Plans compare in the finer unit: `CAST(second AS Timestamp(ns)) < moment`. DataFusion then takes the
//! cast away and cuts the moment to the column's unit, which is another comparison: half past a second
//! is none of that second, nor before it. Days it casts row by row, which fails where one of them has
//! no nanoseconds. Here both become comparisons of columns as they are, before DataFusion sees them.

use crate::error::Result;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Between, BinaryExpr, Cast, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use std::sync::Arc;

/// Compares times with moments between two of their ticks as what these are.
#[derive(Debug, Default)]
pub struct TimeRule;

impl AnalyzerRule for TimeRule {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            let mut asked = false;
            plan.apply_expressions(|expr| {
                asked |= expr.exists(|expr| Ok(widened(expr).is_some()))?;
                Ok(TreeNodeRecursion::Continue)
            })?;
            if !asked {
                return Ok(Transformed::no(plan));
            }
            let context = SimplifyContext::builder()
                .with_config_options(Arc::new(config.clone()))
                .with_current_time()
                .build();
            let comparisons = Comparisons {
                schema: merge_schema(&plan.inputs()),
                simplifier: ExprSimplifier::new(context),
            };
            let names = NamePreserver::new(&plan);
            let changed = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let told = expr.transform_up(|expr| {
                    Ok(match comparisons.told(&expr) {
                        Some(told) => Transformed::yes(told),
                        None => Transformed::no(expr),
                    })
                })?;
                Ok(told.update_data(|expr| name.restore(expr)))
            })?;
            match changed.transformed {
                true => changed.map_data(LogicalPlan::recompute_schema),
                false => Ok(changed),
            }
        })
        .data()
    }

    fn name(&self) -> &str {
        "moments_between_ticks"
    }
}

/// What an expression shows as a timestamp, and in which unit.
fn widened(expr: &Expr) -> Option<(&Expr, TimeUnit)> {
    let Expr::Cast(Cast { expr, field }) = expr else {
        return None;
    };
    match field.data_type() {
        DataType::Timestamp(unit, None) => Some((expr.as_ref(), *unit)),
        _ => None,
    }
}

fn ticks_a_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// A time that is compared in a finer unit than its own.
struct Coarse<'a> {
    expr: &'a Expr,
    /// Its type.
    kind: DataType,
    /// The unit of what it is compared with.
    unit: TimeUnit,
    /// How many ticks of that unit one of its own has.
    ratio: i64,
}

/// What a time is compared with.
enum Moment {
    /// One of its ticks.
    At(i64),
    /// What lies between a tick and the next.
    Behind(i64),
}

impl Coarse<'_> {
    /// A tick as a value; none beyond the type.
    fn tick(&self, tick: i64) -> Option<Expr> {
        Some(lit(match &self.kind {
            DataType::Date32 => ScalarValue::Date32(Some(i32::try_from(tick).ok()?)),
            DataType::Timestamp(TimeUnit::Second, None) => {
                ScalarValue::TimestampSecond(Some(tick), None)
            }
            DataType::Timestamp(TimeUnit::Millisecond, None) => {
                ScalarValue::TimestampMillisecond(Some(tick), None)
            }
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                ScalarValue::TimestampMicrosecond(Some(tick), None)
            }
            _ => return None,
        }))
    }

    /// What a value of the finer unit is on the scale of this time.
    fn moment(&self, value: &ScalarValue) -> Option<Moment> {
        let ticks = match (self.unit, value) {
            (TimeUnit::Second, ScalarValue::TimestampSecond(Some(ticks), None))
            | (TimeUnit::Millisecond, ScalarValue::TimestampMillisecond(Some(ticks), None))
            | (TimeUnit::Microsecond, ScalarValue::TimestampMicrosecond(Some(ticks), None))
            | (TimeUnit::Nanosecond, ScalarValue::TimestampNanosecond(Some(ticks), None)) => *ticks,
            _ => return None,
        };
        let tick = ticks.div_euclid(self.ratio);
        Some(match ticks.rem_euclid(self.ratio) {
            0 => Moment::At(tick),
            _ => Moment::Behind(tick),
        })
    }

    /// The comparison with a moment.
    fn compared(&self, op: Operator, moment: &Moment) -> Option<Expr> {
        let with = |op, tick| Some(binary_expr(self.expr.clone(), op, self.tick(tick)?));
        let tick = match moment {
            Moment::At(tick) => return with(op, *tick),
            Moment::Behind(tick) => *tick,
        };
        let before = || with(Operator::LtEq, tick);
        let after = || with(Operator::GtEq, tick + 1);
        Some(match op {
            Operator::Lt | Operator::LtEq => before()?,
            Operator::Gt | Operator::GtEq => after()?,
            // Null where the time is.
            Operator::Eq => before()?.and(after()?),
            Operator::NotEq => before()?.or(after()?),
            Operator::IsDistinctFrom => lit(true),
            Operator::IsNotDistinctFrom => lit(false),
            _ => return None,
        })
    }
}

/// Looks for comparisons in the expressions of a plan.
struct Comparisons {
    /// The columns that there are.
    schema: DFSchema,
    simplifier: ExprSimplifier,
}

impl Comparisons {
    /// What a comparison becomes, if it is one of those.
    fn told(&self, expr: &Expr) -> Option<Expr> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let compares = matches!(
                    op,
                    Operator::Eq
                        | Operator::NotEq
                        | Operator::Lt
                        | Operator::LtEq
                        | Operator::Gt
                        | Operator::GtEq
                        | Operator::IsDistinctFrom
                        | Operator::IsNotDistinctFrom
                );
                if !compares {
                    return None;
                }
                match self.coarse(left) {
                    Some(time) => self.compared(&time, *op, right),
                    None => self.compared(&self.coarse(right)?, op.swap()?, left),
                }
            }
            Expr::Between(Between {
                expr,
                negated,
                low,
                high,
            }) => {
                let time = self.coarse(expr)?;
                let ends = [(Operator::GtEq, low), (Operator::LtEq, high)];
                let [low, high] = ends.map(|(op, end)| {
                    let as_it_is = || binary_expr(expr.as_ref().clone(), op, end.as_ref().clone());
                    self.compared(&time, op, end).unwrap_or_else(as_it_is)
                });
                let within = low.and(high);
                Some(if *negated { !within } else { within })
            }
            Expr::InList(list) => self.listed(list),
            _ => None,
        }
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
            match time.moment(&value)? {
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

    fn compared(&self, time: &Coarse<'_>, op: Operator, other: &Expr) -> Option<Expr> {
        time.compared(op, &time.moment(&self.literal(other)?)?)
    }

    /// A time that an expression shows in a finer unit.
    fn coarse<'a>(&self, expr: &'a Expr) -> Option<Coarse<'a>> {
        let (expr, unit) = widened(expr)?;
        let kind = expr.get_type(&self.schema).ok()?;
        let ratio = match &kind {
            DataType::Date32 => 86_400 * ticks_a_second(unit),
            // None where it is not finer.
            DataType::Timestamp(own, None) => ticks_a_second(unit) / ticks_a_second(*own),
            _ => return None,
        };
        (ratio > 1).then_some(Coarse {
            expr,
            kind,
            unit,
            ratio,
        })
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

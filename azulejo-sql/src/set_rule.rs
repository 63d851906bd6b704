//! `x > ANY (SELECT x FROM t)`, and `ALL`.
//!
//! DataFusion 55 compares each row with each. Instead the query is asked for its least and its greatest value,
//! and whether a null is among them: `x > ALL (..)` is `x` beyond the greatest one, or that there is none, and
//! null instead of true beside a null. `= ANY` is `IN` and `<> ALL` is `NOT IN`, for which there are joins.
//! An aggregate gives one row, also of none: what is compared with is its value.
//!
//! What is left becomes a filter, in which a column of the subquery and one of the query around it are the
//! same if they are called alike: `x > x`. So what such a subquery gives gets a name that nothing else has.

use crate::error::Result;
use crate::expressions::tell_where_asked;
use crate::extremes::{max, min};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Cast, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, binary_expr, lit,
    when,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// What a subquery gives is called so.
const NAME: &str = "__compared_with";

/// Says what `ANY` and `ALL` compare with.
#[derive(Debug, Default)]
pub struct SetRule;

impl AnalyzerRule for SetRule {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        // Only filters become joins.
        tell_where_asked(
            plan,
            |expr| matches!(expr, Expr::SetComparison(_)),
            |plan| matches!(plan, LogicalPlan::Filter(_)),
            |expr, joins| told(expr, *joins),
        )
    }

    fn name(&self) -> &str {
        "sets_compared"
    }
}

fn told(expr: Expr, joins: bool) -> Result<Transformed<Expr>> {
    let Expr::SetComparison(compared) = expr else {
        return Ok(Transformed::no(expr));
    };
    if gives_one_row(&compared.subquery.subquery) {
        let value = Expr::ScalarSubquery(compared.subquery);
        let told = binary_expr(*compared.expr, compared.op, value);
        return Ok(Transformed::yes(told));
    }
    let negated = match (compared.op, &compared.quantifier) {
        (Operator::Eq, SetQuantifier::Any) => Some(false),
        (Operator::NotEq, SetQuantifier::All) => Some(true),
        _ => None,
    };
    if joins && let Some(negated) = negated {
        let is_in = InSubquery::new(compared.expr, compared.subquery, negated);
        return Ok(Transformed::yes(Expr::InSubquery(is_in)));
    }
    if let Some(told) = by_extremes(&compared)? {
        return Ok(Transformed::yes(told));
    }
    let SetComparison {
        expr,
        mut subquery,
        op,
        quantifier,
    } = compared;
    // By an alias of the whole, columns that the query looks at the row around it by would be lost.
    let given = Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0)));
    let named = LogicalPlanBuilder::new_from_arc(subquery.subquery);
    subquery.subquery = Arc::new(named.project(vec![given.alias(NAME)])?.build()?);
    let named = SetComparison::new(expr, subquery, op, quantifier);
    Ok(Transformed::yes(Expr::SetComparison(named)))
}

/// Whether a query gives one row, whatever there is.
fn gives_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(made) => gives_one_row(&made.input),
        LogicalPlan::SubqueryAlias(named) => gives_one_row(&named.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// The comparison with the extremes of what a query gives, if they tell.
fn by_extremes(compared: &SetComparison) -> Result<Option<Expr>> {
    let query = &compared.subquery;
    let given = query.subquery.schema();
    let tells = given.fields().len() == 1
        && is_ordered(given.field(0).data_type())
        && !compared.expr.is_volatile()
        && !is_volatile(&query.subquery)?
        && is_looked_up(&query.subquery)?;
    if !tells {
        return Ok(None);
    }
    let value = Expr::Column(Column::from(given.qualified_field(0)));
    let rows = || LogicalPlanBuilder::new_from_arc(Arc::clone(&query.subquery));
    let least = one_of(query, rows(), min(value.clone()))?;
    let greatest = one_of(query, rows(), max(value.clone()))?;
    let with = |extreme: &Expr| {
        let expr = compared.expr.as_ref().clone();
        binary_expr(expr, compared.op, extreme.clone())
    };
    let all = matches!(compared.quantifier, SetQuantifier::All);
    let (extreme, holds) = match (compared.op, all) {
        (Operator::Lt | Operator::LtEq, true) | (Operator::Gt | Operator::GtEq, false) => {
            (&least, with(&least))
        }
        (Operator::Gt | Operator::GtEq, true) | (Operator::Lt | Operator::LtEq, false) => {
            (&greatest, with(&greatest))
        }
        (Operator::Eq, true) => (&least, with(&least).and(with(&greatest))),
        (Operator::NotEq, false) => (&least, with(&least).or(with(&greatest))),
        _ => return Ok(None),
    };
    // There is no extreme of no values.
    let holds = match all {
        true => holds.or(extreme.clone().is_null()),
        false => holds.and(extreme.clone().is_not_null()),
    };
    if !given.field(0).is_nullable() {
        return Ok(Some(holds));
    }
    let mut nulls = rows().filter(value.is_null())?;
    if query.outer_ref_columns.is_empty() {
        nulls = nulls.limit(0, Some(1))?;
    }
    let nulls = one_of(query, nulls, max(lit(1)))?;
    let beside_null =
        when(nulls.is_not_null(), lit(ScalarValue::Boolean(None))).otherwise(lit(all))?;
    Ok(Some(match all {
        true => holds.and(beside_null),
        false => holds.or(beside_null),
    }))
}

/// What an aggregate makes of rows that are made of a query's.
fn one_of(query: &Subquery, rows: LogicalPlanBuilder, aggregate: Expr) -> Result<Expr> {
    let made = rows
        .aggregate(Vec::<Expr>::new(), vec![aggregate])?
        .build()?;
    Ok(Expr::ScalarSubquery(Subquery {
        subquery: Arc::new(made),
        outer_ref_columns: query.outer_ref_columns.clone(),
        spans: query.spans.clone(),
    }))
}

/// Whether values of a type are compared as their extremes are found.
fn is_ordered(kind: &DataType) -> bool {
    let is_text = matches!(
        kind,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    );
    // Of months and days none is the greater one.
    let is_time = kind.is_temporal() && !matches!(kind, DataType::Interval(_));
    is_text || is_time || kind.is_numeric() || *kind == DataType::Boolean
}

/// Whether a query that looks at the row around it finds its rows by what is equal there: aggregates of
/// others have no plan.
fn is_looked_up(plan: &LogicalPlan) -> Result<bool> {
    let mut only_equal = true;
    plan.apply(|plan| {
        let is_filter = matches!(plan, LogicalPlan::Filter(_));
        plan.apply_expressions(|expr| {
            let mut parts = split_conjunction(expr).into_iter();
            only_equal &= parts
                .all(|part| !part.contains_outer() || is_filter && finds_rows(part, plan.schema()));
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(only_equal)
}

/// Whether a condition is that a column is what the row around it says.
fn finds_rows(condition: &Expr, schema: &DFSchema) -> bool {
    let Expr::BinaryExpr(pair) = condition else {
        return false;
    };
    let finds = |column: &Expr, said: &Expr| is_key(column, schema) && !said.any_column_refs();
    let (left, right) = (&pair.left, &pair.right);
    pair.op == Operator::Eq && (finds(left, right) || finds(right, left))
}

/// Whether an expression is a column, or tells apart what a column does: its values are grouped by, and a
/// row that several groups belong to would come as often.
fn is_key(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Cast(Cast { expr, field }) => {
            let to = field.data_type();
            let alike = |from: DataType| {
                from.is_integer() && to.is_integer() || from.is_string() && to.is_string()
            };
            matches!(**expr, Expr::Column(_)) && expr.get_type(schema).is_ok_and(alike)
        }
        _ => false,
    }
}

/// Whether a plan may give something else whenever it runs.
fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            found |= expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

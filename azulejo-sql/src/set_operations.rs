//! `EXCEPT ALL` and `INTERSECT ALL`: equal rows count as often as they come.
//!
//! DataFusion plans both as joins that keep all rows that have an equal one on the other side, or none of
//! them. Here equal rows are numbered on each side, and their numbers are compared too: of five rows beside
//! two that are equal to them, `INTERSECT ALL` keeps two, and `EXCEPT ALL` the other three.

use crate::error::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinConstraint, JoinType, NullEquality, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, lit, when,
};
use datafusion::sql::parser::Statement;
use std::sync::Arc;

/// The plan of a statement, in whose set operations equal rows count.
///
/// They are told from other joins as they are planned: once plans have been optimized, joins of other
/// kinds look like them.
///
/// # Errors
/// Those of planning.
pub async fn plan(state: &SessionState, statement: Statement) -> Result<LogicalPlan> {
    let plan = state.statement_to_plan(statement).await?;
    let planned = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Join(join) if counts_rows(&join) => numbered(join).map(Transformed::yes),
        plan => Ok(Transformed::no(plan)),
    });
    Ok(planned?.data)
}

/// Whether a join is a set operation in which equal rows count: only in these null is equal to null, and
/// in the others each row of the left side comes once.
fn counts_rows(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftAnti | JoinType::LeftSemi)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && !matches!(*join.left, LogicalPlan::Distinct(_))
}

fn numbered(join: Join) -> Result<LogicalPlan> {
    let kept = join.left.schema().columns();
    let (left_keys, right_keys): (Vec<Expr>, Vec<Expr>) = join.on.into_iter().unzip();
    let (left, left_number) = with_number(&join.left, &left_keys)?;
    let (right, right_number) = with_number(&join.right, &right_keys)?;
    let keys = left_keys.into_iter().zip(right_keys);
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        keys.chain([(left_number, right_number)]).collect(),
        None,
        join.join_type,
        JoinConstraint::On,
        NullEquality::NullEqualsNull,
        false,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(join))
        .project(kept.into_iter().map(Expr::Column))?
        .build()
}

/// A key as joins compare it: to windows -0.0 is another number than 0.0.
fn compared(key: &Expr, side: &LogicalPlan) -> Result<Expr> {
    let kind = key.get_type(side.schema())?;
    if !kind.is_floating() {
        return Ok(key.clone());
    }
    let zero = lit(ScalarValue::new_zero(&kind)?);
    when(key.clone().eq(zero.clone()), zero).otherwise(key.clone())
}

/// The rows of one side, and which of those that are equal to it each is.
fn with_number(side: &LogicalPlan, keys: &[Expr]) -> Result<(LogicalPlan, Expr)> {
    let equal = keys.iter().map(|key| compared(key, side));
    let equal = equal.collect::<Result<Vec<_>>>()?;
    let number = row_number().partition_by(equal).build()?;
    let plan = LogicalPlanBuilder::from(side.clone()).window([number])?;
    let plan = plan.build()?;
    // A window's columns come behind those of its rows.
    let number = plan.schema().columns().pop().map(Expr::Column);
    number
        .map(|number| (plan, number))
        .ok_or_else(|| datafusion::common::internal_datafusion_err!("a window without a column"))
}

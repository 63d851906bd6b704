//! `x > ANY (SELECT x FROM t)`, and `ALL`.
//!
//! DataFusion 55 makes a filter of the comparison, in which a column of the subquery and one of the
//! query around it are the same if they are called alike: `x > x`. So what a subquery gives gets a name
//! that nothing else has. `= ANY` is `IN` and `<> ALL` is `NOT IN`, for which there are better joins: the others
//! compare each row with each.

use crate::error::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::{InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, SubqueryAlias};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// What a subquery gives is called so.
const NAME: &str = "__compared_with";

/// Tells apart what `ANY` and `ALL` compare.
#[derive(Debug, Default)]
pub struct SetRule;

impl AnalyzerRule for SetRule {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let planned = plan.transform_down_with_subqueries(|plan| {
            // Only filters become joins.
            let joins = matches!(plan, LogicalPlan::Filter(_));
            plan.map_expressions(|expr| expr.transform_up(|expr| named_apart(expr, joins)))
        });
        Ok(planned?.data)
    }

    fn name(&self) -> &str {
        "sets_compared"
    }
}

fn named_apart(expr: Expr, joins: bool) -> Result<Transformed<Expr>> {
    let Expr::SetComparison(SetComparison {
        expr,
        mut subquery,
        op,
        quantifier,
    }) = expr
    else {
        return Ok(Transformed::no(expr));
    };
    let negated = match (op, &quantifier) {
        (Operator::Eq, SetQuantifier::Any) => Some(false),
        (Operator::NotEq, SetQuantifier::All) => Some(true),
        _ => None,
    };
    if joins && let Some(negated) = negated {
        let is_in = InSubquery::new(expr, subquery, negated);
        return Ok(Transformed::yes(Expr::InSubquery(is_in)));
    }
    let named = SubqueryAlias::try_new(subquery.subquery, NAME)?;
    subquery.subquery = Arc::new(LogicalPlan::SubqueryAlias(named));
    let named = SetComparison::new(expr, subquery, op, quantifier);
    Ok(Transformed::yes(Expr::SetComparison(named)))
}

//! Goes through the expressions of plans.

use crate::error::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Puts what is told of expressions in their place, in the nodes of a plan where one of them is asked
/// for; `known` is what there is to know of such a node. Results keep their names.
pub fn tell_where_asked<K>(
    plan: LogicalPlan,
    asked: impl Fn(&Expr) -> bool,
    known: impl Fn(&LogicalPlan) -> K,
    told: impl Fn(Expr, &K) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let mut found = false;
        plan.apply_expressions(|expr| {
            found |= expr.exists(|expr| Ok(asked(expr)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !found {
            return Ok(Transformed::no(plan));
        }
        let known = known(&plan);
        let names = NamePreserver::new(&plan);
        let changed = plan.map_expressions(|expr| {
            named(expr, &names, &|expr| {
                expr.transform_up(|expr| told(expr, &known))
            })
        })?;
        match changed.transformed {
            true => changed.map_data(LogicalPlan::recompute_schema),
            false => Ok(changed),
        }
    })
    .data()
}

/// What is told of an expression, under the name that it had.
fn named(
    expr: Expr,
    names: &NamePreserver,
    told: &impl Fn(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<Expr>> {
    // Sets of groups have no names, what they group by does.
    if matches!(expr, Expr::GroupingSet(_)) {
        return expr.map_children(|expr| named(expr, names, told));
    }
    let name = names.save(&expr);
    Ok(told(expr)?.update_data(|expr| name.restore(expr)))
}

//! `x NOT IN (SELECT ..)` where something is null.
//!
//! `x IN (..)` is null where `x` is, or where it is none of what a query gives and that has a null. Where
//! all that counts is whether it is true DataFusion knows that; within `OR`, `CASE`, `IS NULL` and `NOT`, and
//! for queries that look at the row around them, it takes null for false (so that `NOT` makes it true), or
//! refuses the query. There null is said: by looking for what makes it so.

use crate::error::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::{BinaryExpr, Case, Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, lit,
};
use datafusion::optimizer::AnalyzerRule;
use std::cell::Cell;
use std::sync::Arc;

/// Nodes of plans that are looked at once more, at most: queries within queries within queries are looked
/// at ever more often.
const MOST_NODES: usize = 10_000;

/// Says where `IN` is null.
#[derive(Debug, Default)]
pub struct MembershipRule;

impl AnalyzerRule for MembershipRule {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let nodes = Cell::new(0);
        let planned = plan.transform_up_with_subqueries(|plan| {
            let filter = match plan {
                LogicalPlan::Filter(filter) if asks(&filter.predicate)? => filter,
                plan => return Ok(Transformed::no(plan)),
            };
            let rows = Rows {
                schema: filter.input.schema(),
                nodes: &nodes,
            };
            let parts = split_conjunction_owned(filter.predicate).into_iter();
            let parts = parts.map(|part| rows.alone(part));
            let parts = parts.collect::<Result<Vec<_>>>()?;
            let predicate = conjunction(parts).unwrap_or_else(|| lit(true));
            let filter = Filter::try_new(predicate, Arc::clone(&filter.input))?;
            Ok(Transformed::yes(LogicalPlan::Filter(filter)))
        });
        Ok(planned?.data)
    }

    fn name(&self) -> &str {
        "membership_of_null"
    }
}

/// Whether an expression asks for what a query gives.
fn asks(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| Ok(matches!(expr, Expr::InSubquery(_))))
}

/// The rows that a filter looks at.
struct Rows<'a> {
    schema: &'a DFSchema,
    nodes: &'a Cell<usize>,
}

impl Rows<'_> {
    /// A condition that stands alone.
    fn alone(&self, expr: Expr) -> Result<Expr> {
        let (asked, negated) = match expr {
            Expr::InSubquery(asked) => (asked, false),
            Expr::Not(inner) => match *inner {
                Expr::InSubquery(asked) => (asked, true),
                inner => return self.within(Expr::Not(Box::new(inner))),
            },
            expr => return self.within(expr),
        };
        // Joins for these know of nulls, but only of one column.
        let is_out = asked.negated != negated;
        if is_out && !asked.subquery.outer_ref_columns.is_empty() {
            let InSubquery { expr, subquery, .. } = asked;
            return self.told(&InSubquery::new(expr, subquery, true));
        }
        let asked = Expr::InSubquery(asked);
        Ok(match negated {
            true => Expr::Not(Box::new(asked)),
            false => asked,
        })
    }

    /// A condition of which a part asks.
    fn within(&self, expr: Expr) -> Result<Expr> {
        match expr {
            // What is not true does not count, be it false or null.
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if matches!(op, Operator::And | Operator::Or) =>
            {
                let (left, right) = (self.within(*left)?, self.within(*right)?);
                let both = BinaryExpr::new(Box::new(left), op, Box::new(right));
                Ok(Expr::BinaryExpr(both))
            }
            Expr::InSubquery(asked) if !asked.negated => Ok(Expr::InSubquery(asked)),
            expr => {
                let told = expr.transform_up(|expr| match expr {
                    Expr::InSubquery(asked) if self.may_be_null(&asked)? => {
                        Ok(Transformed::yes(self.told(&asked)?))
                    }
                    expr => Ok(Transformed::no(expr)),
                });
                Ok(told?.data)
            }
        }
    }

    fn may_be_null(&self, asked: &InSubquery) -> Result<bool> {
        let given = asked.subquery.subquery.schema();
        Ok(asked.expr.nullable(self.schema)? || given.fields().iter().any(|f| f.is_nullable()))
    }

    /// The condition with all three that it may be.
    fn told(&self, asked: &InSubquery) -> Result<Expr> {
        let query = &asked.subquery;
        let mut nodes = self.nodes.get();
        query.subquery.apply_with_subqueries(|_| {
            nodes += 1;
            Ok(TreeNodeRecursion::Continue)
        })?;
        self.nodes.set(nodes);
        if nodes > MOST_NODES {
            return Err(DataFusionError::Plan(
                "too many queries within each other behind NOT IN".into(),
            ));
        }
        let null = || Box::new(lit(ScalarValue::Boolean(None)));
        let is_in = InSubquery::new(asked.expr.clone(), query.clone(), false);
        let found = Box::new(lit(!asked.negated));
        let mut cases = vec![(Box::new(Expr::InSubquery(is_in)), found)];
        let given = query.subquery.schema();
        if given.fields().iter().any(|field| field.is_nullable()) {
            let column = Expr::Column(Column::from(given.qualified_field(0)));
            let nulls = LogicalPlanBuilder::new_from_arc(Arc::clone(&query.subquery));
            let nulls = nulls.filter(column.is_null())?;
            cases.push((Box::new(exists(query, nulls)?), null()));
        }
        if asked.expr.nullable(self.schema)? {
            let any = LogicalPlanBuilder::new_from_arc(Arc::clone(&query.subquery));
            let is_null = asked.expr.as_ref().clone().is_null();
            cases.push((Box::new(is_null.and(exists(query, any)?)), null()));
        }
        let otherwise = Box::new(lit(asked.negated));
        Ok(Expr::Case(Case::new(None, cases, Some(otherwise))))
    }
}

/// Whether a query, made of another one, gives rows.
fn exists(of: &Subquery, rows: LogicalPlanBuilder) -> Result<Expr> {
    // Of the same rows for all one is enough.
    let rows = match of.outer_ref_columns.is_empty() {
        true => rows.limit(0, Some(1))?,
        false => rows,
    };
    let subquery = Subquery {
        subquery: Arc::new(rows.build()?),
        outer_ref_columns: of.outer_ref_columns.clone(),
        spans: of.spans.clone(),
    };
    Ok(Expr::Exists(Exists::new(subquery, false)))
}

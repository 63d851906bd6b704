//! Clauses that are read, and then forgotten.
//!
//! The dialect reads what many databases have. DataFusion plans queries without some of it in silence:
//! a sample would be all rows. What chooses or adds rows is refused.
//!
//! So are subqueries that planning would not be done with: each within another one takes it twice as
//! long.

use crate::error::Result;
use datafusion::error::DataFusionError;
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Select, TableFactor, Visit, Visitor};
use std::ops::ControlFlow;

/// What planning subqueries may take, where one costs 1 and each twice what the one around it does: some
/// tenths of a second.
const MOST_PLANNING: u64 = 1 << 17;

/// Refuses a statement of which plans would forget a part.
///
/// # Errors
/// That it has such a part.
pub fn refuse(statement: &Statement) -> Result<()> {
    let found = match statement {
        Statement::Statement(statement) => statement.visit(&mut Forgotten::default()),
        Statement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => query.visit(&mut Forgotten::default()),
            CopyToSource::Relation(_) => return Ok(()),
        },
        Statement::Explain(explain) => return refuse(&explain.statement),
        Statement::CreateExternalTable(_) | Statement::Reset(_) => return Ok(()),
    };
    match found {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(what) => Err(DataFusionError::NotImplemented(what)),
    }
}

/// Looks for them.
#[derive(Default)]
struct Forgotten {
    /// Subqueries around what is looked at.
    around: u32,
    /// What planning those until here takes.
    planning: u64,
}

/// Whether an expression is a query of its own.
fn is_subquery(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. }
    )
}

impl Visitor for Forgotten {
    type Break = String;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        if is_subquery(expr) {
            self.planning += 1_u64.checked_shl(self.around).unwrap_or(MOST_PLANNING);
            self.around += 1;
        }
        match self.planning <= MOST_PLANNING {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(
                "subqueries within each other are planned 17 deep, and less deep where there are many: name them by WITH, or join".into(),
            ),
        }
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        if is_subquery(expr) {
            self.around -= 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<String> {
        let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) =
            &select.group_by;
        if let Some(modifier) = modifiers.first() {
            return ControlFlow::Break(format!(
                "GROUP BY .. {modifier}: write GROUP BY ROLLUP (..), CUBE (..) or GROUPING SETS (..)"
            ));
        }
        if select.prewhere.is_some() {
            return ControlFlow::Break("PREWHERE: write WHERE".into());
        }
        if !select.connect_by.is_empty() {
            return ControlFlow::Break("CONNECT BY: write WITH RECURSIVE".into());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<String> {
        if let TableFactor::Table {
            sample: Some(_), ..
        }
        | TableFactor::Derived {
            sample: Some(_), ..
        } = table
        {
            return ControlFlow::Break("a sample of rows: write WHERE random() < 0.1".into());
        }
        if let TableFactor::Table { partitions, .. } = table
            && !partitions.is_empty()
        {
            return ControlFlow::Break("PARTITION: write WHERE and what its rows have".into());
        }
        ControlFlow::Continue(())
    }
}

//! Clauses that are read, and then forgotten.
//!
//! The dialect reads what many databases have. DataFusion plans queries without some of it in silence:
//! a sample would be all rows. What chooses or adds rows is refused.

use crate::error::Result;
use datafusion::error::DataFusionError;
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{GroupByExpr, Select, TableFactor, Visit, Visitor};
use std::ops::ControlFlow;

/// Refuses a statement of which plans would forget a part.
///
/// # Errors
/// That it has such a part.
pub fn refuse(statement: &Statement) -> Result<()> {
    let found = match statement {
        Statement::Statement(statement) => statement.visit(&mut Forgotten),
        Statement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => query.visit(&mut Forgotten),
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
struct Forgotten;

impl Visitor for Forgotten {
    type Break = String;

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

//! `DELETE FROM t AS u WHERE u.x = 1`: DataFusion forgets that the table has another name.
//!
//! In queries it does not. So the rows that go are planned as those of a query.

use crate::dialect::ArrayDialect;
use crate::error::Result;
use crate::table::ArrayTable;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{DmlStatement, LogicalPlan, Projection, WriteOp};
use datafusion::sql::sqlparser::ast::{
    Delete, FromTable, SetExpr, Statement as SqlStatement, TableFactor, TableWithJoins,
};
use datafusion::sql::sqlparser::parser::Parser;
use std::sync::Arc;

/// What becomes the query for the rows that go.
const QUERY: &str = "SELECT * FROM t";

/// Makes such a statement the query for the rows that go; whether it is one.
///
/// # Errors
/// None of a statement that has been read.
pub fn as_query(statement: &mut SqlStatement) -> Result<bool> {
    let SqlStatement::Delete(delete) = &*statement else {
        return Ok(false);
    };
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    if !has_other_name(from) || has_more(delete) {
        return Ok(false);
    }
    let dialect = ArrayDialect::of(QUERY);
    let mut query = Parser::new(&dialect).try_with_sql(QUERY)?.parse_query()?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from.clone_from(from);
        select.selection.clone_from(&delete.selection);
    }
    *statement = SqlStatement::Query(query);
    Ok(true)
}

/// The delete whose rows are those of a query, wherever it stands in a plan.
///
/// # Errors
/// Targets that are no arrays.
pub fn of_query(plan: LogicalPlan) -> Result<LogicalPlan> {
    let planned = plan.transform_down(|plan| {
        let LogicalPlan::Projection(rows) = plan else {
            return Ok(Transformed::no(plan));
        };
        let delete = LogicalPlan::Dml(delete_of(&rows)?);
        Ok(Transformed::new(delete, true, TreeNodeRecursion::Jump))
    });
    Ok(planned?.data)
}

/// Whether a table is called by another name.
fn has_other_name(from: &[TableWithJoins]) -> bool {
    let [table] = from else {
        return false;
    };
    let alias = match &table.relation {
        TableFactor::Table { alias, .. } => alias.as_ref(),
        _ => None,
    };
    table.joins.is_empty() && alias.is_some_and(|alias| alias.columns.is_empty())
}

/// Whether there is more than a condition, which queries have no place for.
fn has_more(delete: &Delete) -> bool {
    !delete.tables.is_empty()
        || delete.using.is_some()
        || delete.returning.is_some()
        || delete.output.is_some()
        || delete.limit.is_some()
        || !delete.order_by.is_empty()
        || !delete.optimizer_hints.is_empty()
}

fn delete_of(rows: &Projection) -> Result<DmlStatement> {
    let named = match rows.input.as_ref() {
        LogicalPlan::Filter(filter) => filter.input.as_ref(),
        other => other,
    };
    let scan = match named {
        LogicalPlan::SubqueryAlias(named) => match named.input.as_ref() {
            LogicalPlan::TableScan(scan) => Some(scan),
            _ => None,
        },
        _ => None,
    };
    let scan = scan.ok_or_else(|| DataFusionError::Plan("DELETE FROM what is no table".into()))?;
    // Of others DataFusion plans the change, and would miss conditions.
    let provider = source_as_provider(&scan.source)?;
    if provider.downcast_ref::<ArrayTable>().is_none() {
        return Err(DataFusionError::NotImplemented(format!(
            "DELETE FROM {} by another name: it is no array",
            scan.table_name
        )));
    }
    Ok(DmlStatement::new(
        scan.table_name.clone(),
        Arc::clone(&scan.source),
        WriteOp::Delete,
        Arc::clone(&rows.input),
    ))
}

//! `UPDATE` and `DELETE` of the judge's tables: on the arrays behind them, whose rows have numbers.

use crate::tables::{ROW, Rows};
use datafusion::catalog::TableProvider;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::{
    DmlStatement, Expr, LogicalPlan, Projection, TableScan, TableScanBuilder, TableSource, WriteOp,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// Puts the array in the place of the table, before the engine's own rule plans the change.
#[derive(Debug)]
pub struct ChangesOfArrays;

impl AnalyzerRule for ChangesOfArrays {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let LogicalPlan::Dml(statement) = &plan else {
            return Ok(plan);
        };
        let changes = matches!(
            statement.op,
            WriteOp::Update | WriteOp::Delete | WriteOp::Truncate
        );
        let (true, Some(target)) = (changes, array_of(&statement.target)?) else {
            return Ok(plan);
        };
        let input = Arc::unwrap_or_clone(Arc::clone(&statement.input));
        let input = input.transform_up(|plan| {
            let changed = match plan {
                LogicalPlan::TableScan(scan) => numbered(scan)?,
                // What an update makes: the row's number stays.
                LogicalPlan::Projection(projection) => {
                    let schema = projection.input.schema();
                    let (qualifier, _) = schema.qualified_field_with_unqualified_name(ROW)?;
                    let row = Expr::Column(Column::new(qualifier.cloned(), ROW));
                    let all = std::iter::once(row).chain(projection.expr).collect();
                    LogicalPlan::Projection(Projection::try_new(all, projection.input)?)
                }
                other => other.recompute_schema()?,
            };
            Ok(Transformed::yes(changed))
        })?;
        Ok(LogicalPlan::Dml(DmlStatement::new(
            statement.table_name.clone(),
            target,
            statement.op.clone(),
            Arc::new(input.data),
        )))
    }

    fn name(&self) -> &str {
        "changes_of_arrays"
    }
}

/// The array of one of the judge's tables, with the dimension that it hides.
fn array_of(source: &Arc<dyn TableSource>) -> Result<Option<Arc<dyn TableSource>>> {
    let table = source_as_provider(source)?;
    let rows = table.downcast_ref::<Rows>();
    Ok(rows.map(|rows| provider_as_source(rows.array() as Arc<dyn TableProvider>)))
}

fn numbered(scan: TableScan) -> Result<LogicalPlan> {
    let Some(array) = array_of(&scan.source)? else {
        return Ok(LogicalPlan::TableScan(scan));
    };
    TableScanBuilder::new(scan.table_name, array)
        .with_filters(scan.filters)
        .with_fetch(scan.fetch)
        .build()
        .map(LogicalPlan::TableScan)
}

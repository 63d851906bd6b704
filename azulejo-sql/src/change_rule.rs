//! `UPDATE` and `DELETE`, before DataFusion plans them.
//!
//! It looks for their conditions in the optimized plan, where it misses those that have become
//! something else: `WHERE false` an empty relation, `IN (SELECT ..)` a join, a limit. What it misses
//! would change all rows. Here the rows that an update makes are inserted, which is all that an
//! update of an array is, and a delete gets its condition as it stands.

use crate::error::Result;
use crate::table::ArrayTable;
use async_trait::async_trait;
use azulejo::format::schema::Dimension;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef, TableReference};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, Projection, TableType, WriteOp};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::sqlparser::ast::{AssignmentTarget, Statement as SqlStatement};
use std::collections::HashSet;
use std::sync::Arc;

/// Plans `UPDATE` and `DELETE` of arrays.
#[derive(Debug, Default)]
pub struct ChangeRule;

impl AnalyzerRule for ChangeRule {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let planned = plan.transform_down(|plan| {
            let LogicalPlan::Dml(statement) = plan else {
                return Ok(Transformed::no(plan));
            };
            let provider = source_as_provider(&statement.target)?;
            let Some(table) = provider.downcast_ref::<ArrayTable>() else {
                return Ok(Transformed::no(LogicalPlan::Dml(statement)));
            };
            let planned = match statement.op {
                WriteOp::Update => update(&statement, table, Arc::clone(&provider))?,
                WriteOp::Delete => {
                    let dimensions = &table.array().schema().domain.dimensions;
                    delete(&statement, Arc::clone(&provider), dimensions, config)?
                }
                _ => return Ok(Transformed::no(LogicalPlan::Dml(statement))),
            };
            let planned = LogicalPlan::Dml(planned);
            Ok(Transformed::new(planned, true, TreeNodeRecursion::Jump))
        });
        Ok(planned?.data)
    }

    fn name(&self) -> &str {
        "array_changes"
    }
}

/// That an update sets each column once: of several values DataFusion would take one.
///
/// # Errors
/// Columns that are set twice.
pub fn refuse_twice(statement: &SqlStatement) -> Result<()> {
    let SqlStatement::Update(update) = statement else {
        return Ok(());
    };
    let mut names = HashSet::new();
    for set in &update.assignments {
        if let Some(column) = column_of(&set.target)
            && !names.insert(column)
        {
            return Err(DataFusionError::Plan(format!(
                "UPDATE: {column} is set twice"
            )));
        }
    }
    Ok(())
}

/// The column that is set.
pub fn column_of(target: &AssignmentTarget) -> Option<&str> {
    match target {
        AssignmentTarget::ColumnName(name) => Some(name.0.last()?.as_ident()?.value.as_str()),
        AssignmentTarget::Tuple(_) => None,
    }
}

/// An update: the new rows go where the old ones lie, and hide them.
fn update(
    statement: &DmlStatement,
    table: &ArrayTable,
    provider: Arc<dyn TableProvider>,
) -> Result<DmlStatement> {
    let name = &statement.table_name;
    let (schema, shown) = (table.array().schema(), table.schema());
    if schema.allows_dups {
        return Err(DataFusionError::NotImplemented(format!(
            "UPDATE {name}: a cell of an array with duplicates cannot be replaced; an array that keeps one cell for each coordinate is made by `azulejo import --dims .. --unique`, or by CREATE TABLE .. AS SELECT without 'duplicates'"
        )));
    }
    let LogicalPlan::Projection(projection) = statement.input.as_ref() else {
        return Err(DataFusionError::Internal("an update without rows".into()));
    };
    let called = called(projection, name);
    let stays = |field: &str| {
        let index = shown.index_of(field).ok();
        let expr = index.and_then(|index| projection.expr.get(index));
        match expr.cloned().map(Expr::unalias) {
            Some(Expr::Column(column)) => {
                let target = column.relation.as_ref().is_none_or(|r| r == called);
                target && column.name == field
            }
            _ => false,
        }
    };
    for dimension in &schema.domain.dimensions {
        if !stays(&dimension.name) {
            return Err(DataFusionError::Plan(format!(
                "UPDATE {name}: {} is a dimension, which says where a row lies; INSERT it elsewhere and DELETE it",
                dimension.name
            )));
        }
    }
    let names = schema.attributes.iter().map(|attribute| &attribute.name);
    let kept = names.filter(|name| stays(name)).cloned().collect();
    let target = ChangedTable {
        table: provider,
        rows: Rows::Made(kept),
    };
    Ok(DmlStatement::new(
        name.clone(),
        provider_as_source(Arc::new(target)),
        WriteOp::Insert(InsertOp::Append),
        Arc::clone(&statement.input),
    ))
}

/// What the target of an update is called in it. It is the first of the relations that an update
/// looks at; others may be the same table under other names.
fn called<'a>(projection: &'a Projection, target: &'a TableReference) -> &'a TableReference {
    let mut plan = projection.input.as_ref();
    loop {
        if let LogicalPlan::SubqueryAlias(alias) = plan {
            return &alias.alias;
        }
        match plan.inputs().first() {
            Some(input) => plan = input,
            None => return target,
        }
    }
}

/// A delete: its condition goes with its target, and so do the coordinates of the rows that go,
/// which are asked for where an array cannot keep the condition.
fn delete(
    statement: &DmlStatement,
    table: Arc<dyn TableProvider>,
    dimensions: &[Dimension],
    config: &ConfigOptions,
) -> Result<DmlStatement> {
    let rows = match statement.input.as_ref() {
        LogicalPlan::Filter(filter) if is_all(&filter.input) => {
            let schema = Arc::clone(filter.input.schema());
            Rows::Of(simplified(filter.predicate.clone(), schema, config)?)
        }
        input if is_all(input) => Rows::All,
        _ => Rows::Found,
    };
    let name = &statement.table_name;
    let qualifier = statement
        .input
        .schema()
        .iter()
        .find_map(|(qualifier, _)| qualifier);
    let qualifier = qualifier.unwrap_or(name);
    let coordinates = dimensions.iter().map(|dimension| {
        let name = dimension.name.as_str();
        Expr::Column(Column::new(Some(qualifier.clone()), name))
    });
    let going = Projection::try_new(coordinates.collect(), Arc::clone(&statement.input))?;
    let target = provider_as_source(Arc::new(ChangedTable { table, rows }));
    Ok(DmlStatement::new(
        name.clone(),
        target,
        WriteOp::Insert(InsertOp::Append),
        Arc::new(LogicalPlan::Projection(going)),
    ))
}

/// Whether a plan gives all rows of its table, by whatever name.
fn is_all(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => scan.filters.is_empty() && scan.fetch.is_none(),
        LogicalPlan::SubqueryAlias(named) => is_all(&named.input),
        _ => false,
    }
}

/// An expression as filters see it: literals computed, and of the columns' types.
fn simplified(expr: Expr, schema: DFSchemaRef, config: &ConfigOptions) -> Result<Expr> {
    let context = SimplifyContext::builder()
        .with_schema(schema)
        .with_config_options(Arc::new(config.clone()))
        .with_current_time()
        .build();
    ExprSimplifier::new(context).simplify(expr)
}

/// The target of a change.
#[derive(Debug)]
struct ChangedTable {
    table: Arc<dyn TableProvider>,
    rows: Rows,
}

/// The rows that an update makes, or which a delete takes.
#[derive(Debug)]
enum Rows {
    /// Those of its input, in which some attributes keep their values.
    Made(Vec<String>),
    All,
    /// Those for which an expression is true.
    Of(Expr),
    /// Those that its input finds.
    Found,
}

#[async_trait]
impl TableProvider for ChangedTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.table.scan(state, projection, filters, limit).await
    }

    async fn insert_into(
        &self,
        state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        _op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(table) = self.table.downcast_ref::<ArrayTable>() else {
            return Err(DataFusionError::Internal("a change of no array".into()));
        };
        match &self.rows {
            Rows::Made(kept) => table.update(state, input, kept).await,
            Rows::All => table.delete("DELETE FROM", &[], None).await,
            Rows::Of(filter) => {
                let filters = std::slice::from_ref(filter);
                table.delete("DELETE FROM", filters, Some(input)).await
            }
            Rows::Found => table.delete_found("DELETE FROM", input),
        }
    }
}

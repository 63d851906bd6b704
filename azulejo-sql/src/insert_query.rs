//! `INSERT INTO t SELECT .. FROM (VALUES ..)`: DataFusion takes all rows of values in the query for rows of
//! the target, and casts them to the types of its columns, or refuses them if they are not as many.
//!
//! So such a query is planned by itself, and takes the place of one that DataFusion has planned instead.

use crate::dialect::ArrayDialect;
use crate::error::Result;
use crate::innermost::innermost;
use crate::set_operations;
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{
    DmlStatement, Expr, ExprSchemable, LogicalPlan, Projection, Statement as PlanStatement, WriteOp,
};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Query, SetExpr, Statement as SqlStatement, Visit, Visitor};
use datafusion::sql::sqlparser::parser::Parser;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The query of an `INSERT`, if there are rows of values within it; the statement is left without it.
pub fn apart(statement: &mut Statement) -> Option<Query> {
    let SqlStatement::Insert(insert) = innermost(statement)? else {
        return None;
    };
    let query = insert.source.as_ref()?;
    let has_values = query.visit(&mut RowsOfValues).is_break();
    if matches!(query.body.as_ref(), SetExpr::Values(_)) || !has_values {
        return None;
    }
    insert.source.take().map(|query| *query)
}

/// Looks for rows of values.
struct RowsOfValues;

impl Visitor for RowsOfValues {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        match has_values(&query.body) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

fn has_values(body: &SetExpr) -> bool {
    match body {
        SetExpr::Values(_) => true,
        SetExpr::SetOperation { left, right, .. } => has_values(left) || has_values(right),
        _ => false,
    }
}

/// The plan of an `INSERT` and its query.
///
/// # Errors
/// Those of planning.
pub async fn plan(
    state: &SessionState,
    mut statement: Statement,
    query: Query,
) -> Result<LogicalPlan> {
    let query = with_parameters(SqlStatement::Query(Box::new(query)), &statement);
    let query = Statement::Statement(Box::new(query));
    let (rows, fields) = match set_operations::plan(state, query).await? {
        LogicalPlan::Statement(PlanStatement::Prepare(query)) => (query.input, query.fields),
        rows => (Arc::new(rows), Vec::new()),
    };
    let instead = nothing(rows.schema().fields().len())?;
    if let Some(SqlStatement::Insert(insert)) = innermost(&mut statement) {
        insert.source = Some(instead);
    }
    let plan = set_operations::plan(state, statement).await?;
    let planned = plan.transform_down(|plan| match plan {
        LogicalPlan::Statement(PlanStatement::Prepare(mut prepare)) => {
            prepare.fields.clone_from(&fields);
            let prepare = LogicalPlan::Statement(PlanStatement::Prepare(prepare));
            Ok(Transformed::yes(prepare))
        }
        LogicalPlan::Dml(change) => {
            let change = LogicalPlan::Dml(with_rows(change, &rows)?);
            Ok(Transformed::new(change, true, TreeNodeRecursion::Jump))
        }
        plan => Ok(Transformed::no(plan)),
    });
    Ok(planned?.data)
}

/// A query with the parameters of a statement that is prepared.
fn with_parameters(query: SqlStatement, of: &Statement) -> SqlStatement {
    match of {
        Statement::Statement(of) => match of.as_ref() {
            SqlStatement::Prepare {
                name, data_types, ..
            } => SqlStatement::Prepare {
                name: name.clone(),
                data_types: data_types.clone(),
                statement: Box::new(query),
            },
            _ => query,
        },
        _ => query,
    }
}

/// A query of so many columns.
fn nothing(columns: usize) -> Result<Box<Query>> {
    let columns = (0..columns).map(|place| format!("NULL AS {}", name_of(place)));
    let text = format!("SELECT {}", columns.collect::<Vec<_>>().join(", "));
    let dialect = ArrayDialect::of(&text);
    Ok(Parser::new(&dialect).try_with_sql(&text)?.parse_query()?)
}

/// What a column is called in the query that is planned instead.
fn name_of(place: usize) -> String {
    format!("\"column {place} of an insert\"")
}

/// A change with other rows: their columns have the places of those that it has.
fn with_rows(change: DmlStatement, rows: &Arc<LogicalPlan>) -> Result<DmlStatement> {
    let wrong = || DataFusionError::Internal("an INSERT that is none".into());
    let (LogicalPlan::Projection(instead), WriteOp::Insert(_)) =
        (change.input.as_ref(), &change.op)
    else {
        return Err(wrong());
    };
    let names = 0..rows.schema().fields().len();
    let names: Vec<String> = names
        .map(|place| name_of(place).trim_matches('"').to_owned())
        .collect();
    let kinds = change.target.schema();
    let exprs = instead.expr.iter().zip(kinds.fields());
    let exprs = exprs.map(|(expr, target)| {
        let mut named = expr.clone().unalias();
        if let Expr::Cast(cast) = named {
            named = *cast.expr;
        }
        let place = match &named {
            Expr::Column(column) => names.iter().position(|name| *name == column.name),
            _ => None,
        };
        let Some(place) = place else {
            // A default.
            return Ok(expr.clone());
        };
        let column = Column::from(rows.schema().qualified_field(place));
        let value = Expr::Column(column).cast_to(target.data_type(), rows.schema())?;
        Ok(value.alias(target.name()))
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    let input = Projection::try_new(exprs, Arc::clone(rows))?;
    let input = Arc::new(LogicalPlan::Projection(input));
    Ok(DmlStatement::new(
        change.table_name,
        change.target,
        change.op,
        input,
    ))
}

//! `DEFAULT` among the values of an `INSERT` or `UPDATE`, and what it is where no statement says so.
//!
//! DataFusion takes it for the name of a column. What an `INSERT` does not name gets its default, so
//! rows that have it at the same places are planned together, without these columns; then all of them
//! are one `INSERT` again.
//!
//! All changes are planned here, so that what DataFusion plans wrongly of them is put right on the way:
//! see [`aliased_delete`], [`insert_query`] and [`stored`].

use crate::aliased_delete;
use crate::change_rule::{column_of, refuse_twice};
use crate::columns::TableColumns;
use crate::create_table::reference_of;
use crate::dialect::ArrayDialect;
use crate::error::Result;
use crate::innermost::innermost;
use crate::insert_query;
use crate::set_operations;
use crate::stored;
use azulejo::column::{ColumnBuilder, ColumnType};
use azulejo::format::schema::Attribute;
use azulejo::{Array, ColumnSet};
use datafusion::catalog::TableProvider;
use datafusion::common::{ScalarValue, TableReference};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DmlStatement, Expr as PlannedExpr, LogicalPlan, Union};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Ident, Insert, ObjectName, Parens, Query, SetExpr,
    Statement as SqlStatement, TableFactor, TableObject, Value, Values,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::unparser::expr_to_sql;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What attributes have where nothing is said: the fill value of those that have one of their own. Of
/// others it stands for nothing (the least integer, NaN): they have no default, and if they cannot be
/// null either, rows have to name them.
pub fn of_fills(array: &Array, columns: &TableColumns) -> HashMap<String, PlannedExpr> {
    let attributes = array.schema().attributes.iter();
    let default = |attribute: &Attribute| {
        let usual = Attribute::new("", attribute.datatype, attribute.cell_val_num).fill_value;
        let has_own = match attribute.nullable {
            true => attribute.fill_validity,
            false => attribute.fill_value != usual,
        };
        let column = columns.get(columns.index_of(&attribute.name)?)?;
        let value =
            has_own.then(|| shown(columns, &column.column_type, &attribute.fill_value))??;
        Some((attribute.name.clone(), PlannedExpr::Literal(value, None)))
    };
    attributes.filter_map(default).collect()
}

/// A cell as SQL shows it; `None` of what it cannot show.
fn shown(columns: &TableColumns, column_type: &ColumnType, cell: &[u8]) -> Option<ScalarValue> {
    let mut cells = ColumnBuilder::new(column_type.clone());
    cells.append_cell(cell, true);
    let cells = ColumnSet::of([cells.finish()]).ok()?;
    let rows = cells.to_record_batch(columns.arrow_options()).ok()?;
    let value = ScalarValue::try_from_array(rows.columns().first()?, 0).ok()?;
    (!value.is_null()).then_some(value)
}

/// The plan of a statement, whose rows may have `DEFAULT` among their values.
///
/// # Errors
/// Those of planning; rows of nothing but defaults; columns that an update sets twice.
pub async fn plan(state: &SessionState, mut statement: Statement) -> Result<LogicalPlan> {
    if let Some(inner) = innermost(&mut statement) {
        refuse_twice(inner)?;
        stored::keep_casts(inner);
        if aliased_delete::as_query(inner)? {
            return aliased_delete::of_query(set_operations::plan(state, statement).await?);
        }
    }
    let mut statement = with_named(state, statement).await?;
    if let Some(query) = insert_query::apart(&mut statement) {
        let plan = insert_query::plan(state, statement, query).await?;
        return stored::as_they_are(plan);
    }
    let Some(rows) = Rows::of(&statement) else {
        return stored::as_they_are(set_operations::plan(state, statement).await?);
    };
    let columns = rows.columns(state).await?;
    let mut changes: Vec<DmlStatement> = Vec::new();
    for part in rows.apart(&columns)? {
        match stored::as_they_are(set_operations::plan(state, part).await?)? {
            LogicalPlan::Dml(change) => changes.push(change),
            _ => return Err(DataFusionError::Internal("an INSERT that is none".into())),
        }
    }
    let mut inputs: Vec<Arc<LogicalPlan>> = Vec::new();
    inputs.extend(changes.iter().map(|change| Arc::clone(&change.input)));
    let Some(change) = changes.pop() else {
        return Err(DataFusionError::Internal("an INSERT of no rows".into()));
    };
    if inputs.len() < 2 {
        return Ok(LogicalPlan::Dml(change));
    }
    let input = Arc::new(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?));
    let (name, target, op) = (change.table_name, change.target, change.op);
    Ok(LogicalPlan::Dml(DmlStatement::new(name, target, op, input)))
}

/// An `UPDATE` that says what the defaults are which it sets, and what the columns are which it does not
/// set, where DataFusion would take another name of the table for one in small letters.
async fn with_named(state: &SessionState, mut statement: Statement) -> Result<Statement> {
    if let Some(SqlStatement::Update(update)) = innermost(&mut statement)
        && let TableFactor::Table {
            name,
            alias: Some(alias),
            ..
        } = &update.table.relation
        && TableReference::from(alias.name.value.as_str())
            != TableReference::bare(alias.name.value.as_str())
    {
        let table = table_of(state, name).await?;
        let alias = Ident::with_quote('"', alias.name.value.as_str());
        for field in table.schema().fields() {
            let mut set = update.assignments.iter().map(|set| column_of(&set.target));
            if set.any(|column| column == Some(field.name())) {
                continue;
            }
            let column = Ident::with_quote('"', field.name().as_str());
            update.assignments.push(Assignment {
                target: AssignmentTarget::ColumnName(ObjectName::from(vec![column.clone()])),
                value: Expr::CompoundIdentifier(vec![alias.clone(), column]),
            });
        }
    }
    if let Some(SqlStatement::Update(update)) = innermost(&mut statement)
        && update.assignments.iter().any(|set| is_default(&set.value))
        && let TableFactor::Table { name, .. } = &update.table.relation
    {
        let table = table_of(state, name).await?;
        for set in &mut update.assignments {
            if !is_default(&set.value) {
                continue;
            }
            let column = column_of(&set.target);
            let default = column.and_then(|column| table.get_column_default(column));
            set.value = match default {
                Some(default) => text_of(default)?,
                None => Expr::value(Value::Null),
            };
        }
    }
    Ok(statement)
}

/// A default as an expression of a statement. DataFusion writes no spans.
fn text_of(default: &PlannedExpr) -> Result<Expr> {
    let PlannedExpr::Literal(value, _) = default else {
        return expr_to_sql(default);
    };
    let (ticks, unit) = match value {
        ScalarValue::DurationSecond(Some(ticks)) => (ticks, "Second"),
        ScalarValue::DurationMillisecond(Some(ticks)) => (ticks, "Millisecond"),
        ScalarValue::DurationMicrosecond(Some(ticks)) => (ticks, "Microsecond"),
        ScalarValue::DurationNanosecond(Some(ticks)) => (ticks, "Nanosecond"),
        _ => return expr_to_sql(default),
    };
    let text = format!("arrow_cast({ticks}, 'Duration({unit})')");
    let dialect = ArrayDialect::of(&text);
    Ok(Parser::new(&dialect).try_with_sql(&text)?.parse_expr()?)
}

/// The table of a name.
async fn table_of(state: &SessionState, name: &ObjectName) -> Result<Arc<dyn TableProvider>> {
    let reference = reference_of(name)?;
    let table = reference.table().to_owned();
    let table = state.schema_for_ref(reference)?.table(&table).await?;
    table.ok_or_else(|| DataFusionError::Plan(format!("there is no table {name}")))
}

/// Whether a value is `DEFAULT`.
fn is_default(value: &Expr) -> bool {
    match value {
        Expr::Identifier(name) => {
            name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default")
        }
        _ => false,
    }
}

/// The rows of an `INSERT`, of which some have `DEFAULT` among their values.
struct Rows<'a> {
    insert: &'a Insert,
    query: &'a Query,
    values: &'a Values,
}

impl<'a> Rows<'a> {
    fn of(statement: &'a Statement) -> Option<Self> {
        let Statement::Statement(statement) = statement else {
            return None;
        };
        let SqlStatement::Insert(insert) = statement.as_ref() else {
            return None;
        };
        let query = insert.source.as_deref()?;
        let SetExpr::Values(values) = query.body.as_ref() else {
            return None;
        };
        // What counts rows would count them apart.
        let all = query.with.is_none()
            && query.order_by.is_none()
            && query.limit_clause.is_none()
            && query.fetch.is_none();
        let mut all_values = values.rows.iter().flat_map(|row| &row.content);
        (all && all_values.any(is_default)).then_some(Self {
            insert,
            query,
            values,
        })
    }

    /// The columns that values are for: those of the table, if the statement names none.
    async fn columns(&self, state: &SessionState) -> Result<Vec<ObjectName>> {
        if !self.insert.columns.is_empty() {
            return Ok(self.insert.columns.clone());
        }
        let TableObject::TableName(name) = &self.insert.table else {
            return Err(DataFusionError::NotImplemented(
                "DEFAULT in rows for what is no table".into(),
            ));
        };
        let schema = table_of(state, name).await?.schema();
        let names = schema.fields().iter();
        let names = names.map(|field| vec![Ident::with_quote('"', field.name().as_str())]);
        Ok(names.map(ObjectName::from).collect())
    }

    /// Statements for the rows that have it at the same places, which leave these out.
    fn apart(&self, columns: &[ObjectName]) -> Result<Vec<Statement>> {
        let mut alike: BTreeMap<Vec<bool>, Vec<Parens<Vec<Expr>>>> = BTreeMap::new();
        for row in &self.values.rows {
            let values = row.content.len();
            if values != columns.len() {
                return Err(DataFusionError::Plan(format!(
                    "a row has {values} values for {} columns",
                    columns.len()
                )));
            }
            let named: Vec<bool> = row.content.iter().map(|value| !is_default(value)).collect();
            let mut kept = row.clone();
            kept.content.retain(|value| !is_default(value));
            if kept.content.is_empty() {
                return Err(DataFusionError::NotImplemented(
                    "a row of nothing but DEFAULT".into(),
                ));
            }
            alike.entry(named).or_default().push(kept);
        }
        let statement = |(named, rows): (Vec<bool>, Vec<Parens<Vec<Expr>>>)| {
            let named = columns.iter().zip(named).filter(|(_, named)| *named);
            let values = Values {
                explicit_row: self.values.explicit_row,
                value_keyword: self.values.value_keyword,
                rows,
            };
            let mut insert = self.insert.clone();
            insert.columns = named.map(|(column, _)| column.clone()).collect();
            insert.source = Some(Box::new(Query {
                body: Box::new(SetExpr::Values(values)),
                ..self.query.clone()
            }));
            Statement::Statement(Box::new(SqlStatement::Insert(insert)))
        };
        Ok(alike.into_iter().map(statement).collect())
    }
}

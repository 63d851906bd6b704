//! Targets of `INSERT`, `UPDATE`, `DELETE` and `DESCRIBE` that are URIs in quotes, as relations of queries
//! may be.
//!
//! DataFusion looks for targets among the tables that have names, and nowhere else.

use crate::error::Result;
use crate::table::{ArrayTable, TableOptions, blocking};
use async_trait::async_trait;
use azulejo::Context;
use datafusion::catalog::{DynamicFileCatalog, TableProvider, UrlTableFactory};
use datafusion::common::TableReference;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Delete, FromTable, Insert, ObjectName, Statement as SqlStatement, TableFactor, TableObject,
    TableWithJoins, Update,
};
use std::sync::Arc;

/// Marks a session whose statements name no URIs.
#[derive(Debug)]
pub struct TablesOnly;

/// The only table that a statement adds to those with names.
#[derive(Debug)]
struct Target {
    name: String,
    table: Arc<ArrayTable>,
}

#[async_trait]
impl UrlTableFactory for Target {
    async fn try_new(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let table = || Arc::clone(&self.table) as Arc<dyn TableProvider>;
        Ok((name == self.name).then(table))
    }
}

/// The array that text in single quotes names, if there is one; none where statements name no URIs.
///
/// # Errors
/// Those of opening the array; text that a table and an array are called by.
pub async fn array_at(state: &SessionState, uri: &str) -> Result<Option<ArrayTable>> {
    let config = state.config();
    let (None, Some(context)) = (
        config.get_extension::<TablesOnly>(),
        config.get_extension::<Context>(),
    ) else {
        return Ok(None);
    };
    let place = context.array(uri);
    let table = blocking(move || match place.snapshot() {
        Ok(_) => Ok(Some(ArrayTable::open(place, TableOptions::new()))),
        // A file of another kind, which others may know.
        Err(azulejo::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    });
    let Some(table) = table.await?.transpose()? else {
        return Ok(None);
    };
    // Queries would read the array, and DataFusion write to the table.
    let named = state.schema_for_ref(TableReference::bare(uri));
    if named.is_ok_and(|schema| schema.table_exist(uri)) {
        return Err(DataFusionError::Plan(format!(
            "{uri} is a table, and an array besides: name the table without quotes, or the array by its whole path"
        )));
    }
    Ok(Some(table))
}

/// The state in which a statement's target is found: where it names an array by its URI, the array is
/// a table there.
///
/// # Errors
/// Those of [`array_at`].
pub async fn with_target(mut state: SessionState, statement: &Statement) -> Result<SessionState> {
    let Some(uri) = target_of(statement) else {
        return Ok(state);
    };
    let Some(table) = array_at(&state, uri).await? else {
        return Ok(state);
    };
    let target = Target {
        name: uri.to_owned(),
        table: Arc::new(table),
    };
    let known = Arc::clone(state.catalog_list());
    state.register_catalog_list(Arc::new(DynamicFileCatalog::new(known, Arc::new(target))));
    Ok(state)
}

/// The target of a statement where it is text in single quotes.
fn target_of(statement: &Statement) -> Option<&str> {
    let statement = match statement {
        Statement::Explain(explain) => return target_of(&explain.statement),
        Statement::Statement(statement) => statement.as_ref(),
        _ => return None,
    };
    let name = match statement {
        SqlStatement::Insert(Insert {
            table: TableObject::TableName(name),
            ..
        }) => name,
        SqlStatement::Update(Update { table, .. }) => name_of(table)?,
        SqlStatement::Delete(Delete { from, .. }) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
            match from.as_slice() {
                [table] => name_of(table)?,
                _ => return None,
            }
        }
        SqlStatement::ExplainTable { table_name, .. } => table_name,
        _ => return None,
    };
    match name.0.as_slice() {
        [part] => part
            .as_ident()
            .filter(|ident| ident.quote_style == Some('\''))
            .map(|ident| ident.value.as_str()),
        _ => None,
    }
}

fn name_of(table: &TableWithJoins) -> Option<&ObjectName> {
    match &table.relation {
        TableFactor::Table { name, .. } => Some(name),
        _ => None,
    }
}

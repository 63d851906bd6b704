//! `CREATE EXTERNAL TABLE t STORED AS AZULEJO LOCATION 'uri'`: an array that is there, or, with
//! columns and a primary key, a new one.

use crate::create_table::storable;
use crate::error::Result;
use crate::new_array::Options;
use crate::table::{ArrayTable, blocking};
use async_trait::async_trait;
use azulejo::Context;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{Constraint, Constraints};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::CreateExternalTable;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::DataType as SqlType;
use std::sync::Arc;

/// The name behind `STORED AS`.
pub const FILE_TYPE: &str = "AZULEJO";

/// Opens and creates the arrays of external tables.
#[derive(Debug)]
pub struct ArrayTableFactory {
    context: Context,
}

impl ArrayTableFactory {
    /// A factory that opens arrays through a context.
    pub fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
        }
    }
}

#[async_trait]
impl TableProviderFactory for ArrayTableFactory {
    async fn create(
        &self,
        _state: &dyn Session,
        command: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        let [uri] = command.locations.as_slice() else {
            return Err(DataFusionError::Plan(
                "an array lies at one location".into(),
            ));
        };
        refuse_clauses(command)?;
        let mut options = Options::new(&command.options);
        let table = options.table()?;
        let place = options.context(&self.context)?.array(uri);
        let columns = command.schema.as_arrow();
        let new = match columns.fields().is_empty() {
            true => None,
            false => {
                let key = primary_key(&command.constraints).ok_or_else(|| {
                    DataFusionError::Plan("a new array needs a PRIMARY KEY: its dimensions".into())
                })?;
                Some(options.schema(&storable(columns), &key)?)
            }
        };
        options.finish()?;
        let table = blocking(move || {
            match (place.snapshot(), new) {
                (Err(azulejo::Error::NotFound { .. }), Some(new)) => place.create(new)?,
                (Err(error), _) => return Err(error),
                (Ok(_), _) => {}
            }
            Ok(ArrayTable::open(place, table))
        });
        let table = table.await??.showing_first(columns)?;
        let there = table.schema();
        for field in columns.fields() {
            let fits = there
                .field_with_name(field.name())
                .is_ok_and(|own| is_alike(own.data_type(), field.data_type()));
            if !fits {
                return Err(DataFusionError::Plan(format!(
                    "{uri}: the array there has no column {} of type {}, but {}",
                    field.name(),
                    field.data_type(),
                    columns_of(&there)
                )));
            }
        }
        // Of a key some columns may be declared, as of others, but none that belongs to no key.
        let dimensions = &table.array().schema().domain.dimensions;
        for index in primary_key(&command.constraints).iter().flatten() {
            let name = columns.field(*index).name();
            if !dimensions.iter().any(|dimension| dimension.name == *name) {
                let key: Vec<&str> = dimensions.iter().map(|d| d.name.as_str()).collect();
                return Err(DataFusionError::Plan(format!(
                    "{uri}: the array there has the key ({}), to which {name} does not belong",
                    key.join(", ")
                )));
            }
        }
        let table = table.with_defaults(command.column_defaults.clone())?;
        Ok(Arc::new(table))
    }
}

/// A statement whose timestamps have units of arrays: for two digits of a second these are milliseconds.
/// DataFusion knows no others either.
pub fn with_units(mut statement: Statement) -> Statement {
    if let Statement::CreateExternalTable(create) = &mut statement
        && create.file_type.eq_ignore_ascii_case(FILE_TYPE)
    {
        for column in &mut create.columns {
            // Beyond nine digits there is no unit.
            if let SqlType::Timestamp(Some(digits @ 0..=9), _) = &mut column.data_type {
                *digits = digits.next_multiple_of(3);
            }
        }
    }
    statement
}

/// What other tables have: an array would be another one than was asked for.
fn refuse_clauses(command: &CreateExternalTable) -> Result<()> {
    let clauses = [
        (!command.table_partition_cols.is_empty(), "PARTITIONED BY"),
        (!command.order_exprs.is_empty(), "WITH ORDER"),
        (command.unbounded, "UNBOUNDED"),
    ];
    match clauses.iter().find(|(is_there, _)| *is_there) {
        Some((_, clause)) => Err(DataFusionError::Plan(format!(
            "an array has no {clause}: it is sorted and divided by its dimensions"
        ))),
        None => Ok(()),
    }
}

/// Whether a column may be declared to be of a type: text is text, with labels or without, bytes are
/// bytes, which arrays show as views, and times of day have the unit of the array.
fn is_alike(own: &DataType, declared: &DataType) -> bool {
    let plain = |of: &DataType| match of {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        of => of.clone(),
    };
    let (own, declared) = (plain(own), plain(declared));
    let is_time = |of: &DataType| matches!(of, DataType::Time32(_) | DataType::Time64(_));
    own == declared
        || (is_time(&own) && is_time(&declared))
        || (own.is_string() && declared.is_string())
        || (own.is_binary() && declared.is_binary())
}

/// Columns and their types, to be read.
fn columns_of(schema: &Schema) -> String {
    let columns = schema.fields().iter();
    let columns = columns.map(|field| format!("{} {}", field.name(), field.data_type()));
    columns.collect::<Vec<_>>().join(", ")
}

/// The columns of a primary key, by their indices.
fn primary_key(constraints: &Constraints) -> Option<Vec<usize>> {
    constraints.iter().find_map(|constraint| match constraint {
        Constraint::PrimaryKey(columns) => Some(columns.clone()),
        Constraint::Unique(_) => None,
    })
}

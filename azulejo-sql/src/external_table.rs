//! `CREATE EXTERNAL TABLE t STORED AS AZULEJO LOCATION 'uri'`: an array that is there, or, with
//! columns and a primary key, a new one.

use crate::create_table::{remove_empty, storable};
use crate::error::Result;
use crate::new_array::Options;
use crate::table::{ArrayTable, TableOptions, blocking};
use async_trait::async_trait;
use azulejo::{ArrayHandle, Context};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{Constraint, Constraints};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::CreateExternalTable;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{ColumnOption, DataType as SqlType};
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
        refuse_unique(&command.constraints)?;
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
        let to_make = place.clone();
        let made = blocking(move || match (to_make.snapshot(), new) {
            (Err(azulejo::Error::NotFound { .. }), Some(new)) => {
                to_make.create(new)?;
                Ok(true)
            }
            (Err(error), _) => Err(error),
            (Ok(_), _) => Ok(false),
        });
        let made = made.await?;
        let declared = Self::declared(place.clone(), table, command).await;
        // What could not be declared so was not to be made either.
        if made && declared.is_err() {
            blocking(move || remove_empty(&place)).await?;
        }
        Ok(Arc::new(declared?))
    }
}

impl ArrayTableFactory {
    /// The table of the array that is there, as a statement declares it.
    async fn declared(
        place: ArrayHandle,
        options: TableOptions,
        command: &CreateExternalTable,
    ) -> Result<ArrayTable> {
        let uri = place.uri().to_owned();
        let columns = command.schema.as_arrow();
        let table = blocking(move || Ok(ArrayTable::open(place, options)));
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
        table.with_defaults(command.column_defaults.clone())
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

/// What columns of other tables may have beside a type: nothing of an array would see to it.
///
/// # Errors
/// Columns that are declared with something else than whether they are null, a default, the key, or a comment.
pub fn refuse_column_options(statement: &Statement) -> Result<()> {
    let Statement::CreateExternalTable(create) = statement else {
        return Ok(());
    };
    if !create.file_type.eq_ignore_ascii_case(FILE_TYPE) {
        return Ok(());
    }
    let kept = |option: &ColumnOption| {
        matches!(
            option,
            ColumnOption::Null
                | ColumnOption::NotNull
                | ColumnOption::Default(_)
                | ColumnOption::PrimaryKey(_)
                | ColumnOption::Comment(_)
        )
    };
    for column in &create.columns {
        if let Some(other) = column.options.iter().find(|o| !kept(&o.option)) {
            return Err(DataFusionError::Plan(format!(
                "{}: an array has no {other}",
                column.name
            )));
        }
    }
    Ok(())
}

/// An array tells rows apart by its dimensions, and looks at nothing else.
fn refuse_unique(constraints: &Constraints) -> Result<()> {
    match constraints
        .iter()
        .any(|c| matches!(c, Constraint::Unique(_)))
    {
        true => Err(DataFusionError::Plan(
            "an array has no UNIQUE: its rows are told apart by the PRIMARY KEY".into(),
        )),
        false => Ok(()),
    }
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
/// bytes, which arrays show as views, times of day have the unit of the array, and lists are lists.
fn is_alike(own: &DataType, declared: &DataType) -> bool {
    let plain = |of: &DataType| match of {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        of => of.clone(),
    };
    let (own, declared) = (plain(own), plain(declared));
    let is_time = |of: &DataType| matches!(of, DataType::Time32(_) | DataType::Time64(_));
    if let (Some(own), Some(declared)) = (item_of(&own), item_of(&declared)) {
        return is_alike(own, declared);
    }
    own == declared
        || (is_time(&own) && is_time(&declared))
        || (own.is_string() && declared.is_string())
        || (own.is_binary() && declared.is_binary())
}

/// What a list is of.
fn item_of(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item.data_type())
        }
        _ => None,
    }
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

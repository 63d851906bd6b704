//! `CREATE EXTERNAL TABLE t STORED AS AZULEJO LOCATION 'uri'`: an array that is there, or, with
//! columns and a primary key, a new one.

use crate::error::Result;
use crate::new_array::Options;
use crate::table::{ArrayTable, blocking};
use async_trait::async_trait;
use azulejo::Context;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{Constraint, Constraints};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::CreateExternalTable;
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
        let mut options = Options::new(&command.options);
        let table = options.table()?;
        let place = self.context.array(uri);
        let columns = command.schema.as_arrow();
        let new = match columns.fields().is_empty() {
            true => None,
            false => {
                let key = primary_key(&command.constraints).ok_or_else(|| {
                    DataFusionError::Plan("a new array needs a PRIMARY KEY: its dimensions".into())
                })?;
                Some(options.schema(columns, &key)?)
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
        let table = table.await??;
        let declared = columns.fields();
        let fits = declared
            .iter()
            .all(|field| table.schema().field_with_name(field.name()).is_ok());
        if !fits {
            return Err(DataFusionError::Plan(format!(
                "{uri}: the array there has other columns: {}",
                table.schema()
            )));
        }
        Ok(Arc::new(table))
    }
}

/// The columns of a primary key, by their indices.
fn primary_key(constraints: &Constraints) -> Option<Vec<usize>> {
    constraints.iter().find_map(|constraint| match constraint {
        Constraint::PrimaryKey(columns) => Some(columns.clone()),
        Constraint::Unique(_) => None,
    })
}

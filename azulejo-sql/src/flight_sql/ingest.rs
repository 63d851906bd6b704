//! Rows that a client sends for a table that is there: bulk ingestion.

use super::running::status;
use crate::error::Result as SqlResult;
use crate::stored;
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::sql::server::PeekableFlightDataStream;
use arrow_flight::sql::{CommandStatementIngest, TableExistsOption, TableNotExistOption};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::{ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, ident, lit};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::SessionContext;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tonic::{Request, Status};

/// The plan that writes what a client sends, as one `INSERT`. Columns go by their names; those that
/// are not sent have their defaults, or are null.
pub async fn plan(
    session: &SessionContext,
    command: &CommandStatementIngest,
    request: Request<PeekableFlightDataStream>,
) -> Result<LogicalPlan, Status> {
    if command.temporary {
        return Err(Status::unimplemented("there are no temporary tables"));
    }
    if command.transaction_id.is_some() {
        return Err(Status::unimplemented("there are no transactions"));
    }
    let name = name_of(session, command);
    let target = session.table_provider(name.clone()).await;
    let options = command.table_definition_options.unwrap_or_default();
    let target = match (target, options.if_not_exist(), options.if_exists()) {
        (Ok(_), _, TableExistsOption::Fail) => {
            return Err(Status::already_exists(format!(
                "{name} is there: rows are appended to it if that is asked for"
            )));
        }
        (Ok(_), _, TableExistsOption::Replace) => {
            return Err(Status::unimplemented(format!(
                "{name}: tables are not replaced here; rows can be appended, after a TRUNCATE"
            )));
        }
        (Ok(table), ..) => table,
        (Err(_), TableNotExistOption::Create, _) => {
            return Err(Status::unimplemented(format!(
                "{name}: tables are not made here; rows can be appended to one that is there"
            )));
        }
        (Err(error), ..) => return Err(status(&error)),
    };
    let sent = SentRows::begin(request).await?;
    let schema = Arc::clone(&sent.schema);
    let plan = || -> SqlResult<LogicalPlan> {
        let rows = StreamingTable::try_new(Arc::clone(&schema), vec![Arc::new(sent)])?;
        let rows = provider_as_source(Arc::new(rows));
        let rows = LogicalPlanBuilder::scan("sent", rows, None)?;
        let columns = columns(&schema, &target.schema(), |column| {
            target.get_column_default(column).cloned()
        })?;
        let columns = columns.into_iter().map(|(name, value, kind)| {
            let value = stored::as_it_is(value, &kind, rows.schema(), &name)?;
            Ok(value.alias(name))
        });
        let rows = rows
            .clone()
            .project(columns.collect::<SqlResult<Vec<_>>>()?)?;
        let target = provider_as_source(target);
        LogicalPlanBuilder::insert_into(rows.build()?, name, target, InsertOp::Append)?.build()
    };
    plan().map_err(|error| status(&error))
}

/// The table that is meant: where nothing else is said, in the default catalog or schema.
fn name_of(session: &SessionContext, command: &CommandStatementIngest) -> TableReference {
    let state = session.state();
    let known = &state.config_options().catalog;
    let given = |name: &Option<String>, default: &str| {
        let name = name.as_deref().filter(|name| !name.is_empty());
        name.unwrap_or(default).to_owned()
    };
    TableReference::full(
        given(&command.catalog, &known.default_catalog),
        given(&command.schema, &known.default_schema),
        command.table.as_str(),
    )
}

/// What each column of a table gets, and its type.
fn columns(
    sent: &Schema,
    table: &Schema,
    default: impl Fn(&str) -> Option<Expr>,
) -> SqlResult<Vec<(String, Expr, DataType)>> {
    let refused = |text: String| Err(DataFusionError::Plan(text));
    let mut names = HashSet::new();
    for field in sent.fields() {
        let name = field.name();
        if table.field_with_name(name).is_err() {
            return refused(format!("the table has no column {name}"));
        }
        if !names.insert(name.as_str()) {
            return refused(format!("the column {name} is sent twice"));
        }
    }
    let mut columns = Vec::new();
    for field in table.fields() {
        let name = field.name();
        let value = match names.contains(name.as_str()) {
            true => ident(name),
            false => match default(name) {
                Some(value) => value,
                None if field.is_nullable() => lit(ScalarValue::Null),
                None => return refused(format!("there are no values for the column {name}")),
            },
        };
        columns.push((name.clone(), value, field.data_type().clone()));
    }
    Ok(columns)
}

/// Rows as they arrive, which can be read once.
struct SentRows {
    schema: SchemaRef,
    batches: Mutex<Option<BoxStream<'static, SqlResult<RecordBatch>>>>,
}

impl SentRows {
    /// Waits for the schema.
    async fn begin(request: Request<PeekableFlightDataStream>) -> Result<Self, Status> {
        // The first message may be the command and nothing else.
        let messages = request.into_inner().try_filter(|message| {
            let is_arrow = !message.data_header.is_empty();
            std::future::ready(is_arrow)
        });
        let mut decoder = FlightDataDecoder::new(messages.map_err(FlightError::from));
        let schema = loop {
            let message = decoder.next().await.transpose().map_err(Status::from)?;
            match message.map(|message| message.payload) {
                Some(DecodedPayload::Schema(schema)) => break schema,
                Some(DecodedPayload::None) => {}
                Some(DecodedPayload::RecordBatch(_)) | None => {
                    return Err(Status::invalid_argument("rows without a schema"));
                }
            }
        };
        let batches = decoder.filter_map(|message| async move {
            match message {
                Ok(message) => match message.payload {
                    DecodedPayload::RecordBatch(batch) => Some(Ok(batch)),
                    DecodedPayload::None => None,
                    DecodedPayload::Schema(_) => Some(Err(DataFusionError::Plan(
                        "a second schema among the rows".into(),
                    ))),
                },
                Err(error) => Some(Err(DataFusionError::External(Box::new(error)))),
            }
        });
        Ok(Self {
            schema,
            batches: Mutex::new(Some(batches.boxed())),
        })
    }
}

impl fmt::Debug for SentRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentRows")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl PartitionStream for SentRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let batches = batches.take().unwrap_or_else(|| {
            let twice = DataFusionError::Internal("rows that were sent are read twice".into());
            futures_util::stream::iter([Err(twice)]).boxed()
        });
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            batches,
        ))
    }
}

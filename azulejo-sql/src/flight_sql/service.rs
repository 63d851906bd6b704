//! The protocol: each request becomes a plan, or a table of metadata, and rows go out.

use super::Limits;
use super::ingest;
use super::metadata::{self, Metadata};
use super::running::{End, Running};
use super::session::{SharedSession, shared};
use super::statement::{Bound, Statements, parameters};
use crate::error::Result as SqlResult;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::server::{DoPutError, FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult, CommandGetCatalogs, CommandGetCrossReference,
    CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys, CommandGetPrimaryKeys,
    CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo,
    CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementIngest,
    CommandStatementQuery, CommandStatementUpdate, DoPutPreparedStatementResult, DoPutUpdateResult,
    ProstMessageExt, SqlInfo, TicketStatementQuery,
};
use arrow_flight::{
    Action, FlightDescriptor, FlightEndpoint, FlightInfo, IpcMessage, PutResult, SchemaAsIpc,
    Ticket,
};
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::IpcWriteOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use prost::Message;
use prost::bytes::Bytes;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Bytes of parameters that are taken at once.
const MOST_PARAMETER_BYTES: usize = 64 << 20;

/// What answers requests.
#[derive(Clone)]
pub struct Service {
    session: SharedSession,
    statements: Statements,
    running: Running,
    metadata: Arc<Metadata>,
}

type Answer<T> = Result<Response<T>, Status>;
type Rows = <Service as FlightService>::DoGetStream;

impl Service {
    pub fn new(session: SessionContext, writable: bool, limits: Limits) -> SqlResult<Self> {
        let session = shared(session);
        Ok(Self {
            session: session.clone(),
            statements: Statements::new(session.clone(), writable, limits.statement),
            running: Running::new(session.clone(), limits),
            metadata: Arc::new(Metadata::new(session, writable, limits)?),
        })
    }

    /// How to get the rows of a plan, which a ticket stands for.
    fn info_of(
        plan: &LogicalPlan,
        bound: &Bound,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let ticket = TicketStatementQuery {
            statement_handle: bound.encode()?.into(),
        };
        info(&sent_schema(plan.schema().inner()), &ticket, request)
    }

    /// The plan of a query.
    async fn plan_of(&self, bound: &Bound, end: End) -> Result<LogicalPlan, Status> {
        let (statements, bound) = (self.statements.clone(), bound.clone());
        let plan = self.running.planned(end, move |asked| async move {
            statements.plan_of(&bound, &asked).await
        });
        plan.await
    }

    /// What a query will give, and how to get it.
    async fn info_of_query(
        &self,
        bound: &Bound,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let plan = self.plan_of(bound, self.running.end()).await?;
        Self::info_of(&plan, bound, request)
    }

    async fn query(&self, bound: &Bound) -> Answer<Rows> {
        let end = self.running.end();
        let plan = self.plan_of(bound, end).await?;
        let schema = Arc::clone(plan.schema().inner());
        Ok(encoded(&schema, self.running.rows(plan, end)))
    }

    /// Makes a statement's changes, one plan after the other.
    async fn change(&self, bound: &Bound) -> Result<i64, Status> {
        let end = self.running.end();
        let (statements, bound) = (self.statements.clone(), bound.clone());
        let plans = self.running.planned(end, move |asked| async move {
            statements.changes_of(&bound, &asked).await
        });
        let mut changed = 0;
        for plan in plans.await? {
            changed += self.running.change(plan, end).await?;
        }
        Ok(changed)
    }
}

/// How to get a table: a ticket that asks for it again.
fn info(
    schema: &Schema,
    ticket: &impl ProstMessageExt,
    request: Request<FlightDescriptor>,
) -> Answer<FlightInfo> {
    let ticket = Ticket::new(ticket.as_any().encode_to_vec());
    let info = FlightInfo::new().try_with_schema(schema).map_err(failed)?;
    let info = info.with_endpoint(FlightEndpoint::new().with_ticket(ticket));
    Ok(Response::new(info.with_descriptor(request.into_inner())))
}

fn failed(error: ArrowError) -> Status {
    Status::from(FlightError::from(error))
}

/// A schema as it is sent: views as what they show, and dictionaries as their values, which all
/// clients understand.
fn sent_schema(schema: &SchemaRef) -> SchemaRef {
    let schema = without_views(schema);
    let encoder = FlightDataEncoderBuilder::new().with_schema(Arc::clone(&schema));
    let known = encoder.build(stream::empty()).known_schema();
    known.unwrap_or(schema)
}

/// A schema whose columns of views hold their texts and bytes themselves.
fn without_views(schema: &SchemaRef) -> SchemaRef {
    let plain = |field: &Arc<Field>| {
        let plain = match field.data_type() {
            DataType::Utf8View => DataType::LargeUtf8,
            DataType::BinaryView => DataType::LargeBinary,
            _ => return Arc::clone(field),
        };
        Arc::new(field.as_ref().clone().with_data_type(plain))
    };
    let fields: Vec<_> = schema.fields().iter().map(plain).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Rows on their way: with the very schema that was announced, which clients insist on.
fn encoded(
    schema: &SchemaRef,
    rows: impl Stream<Item = Result<RecordBatch, Status>> + Send + 'static,
) -> Response<Rows> {
    let schema = without_views(schema);
    let declared = Arc::clone(&schema);
    let rows = rows.map(move |batch| {
        let batch = batch?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().iter().zip(declared.fields());
        let columns = columns.map(|(column, field)| match column.data_type() {
            DataType::Utf8View | DataType::BinaryView => cast(column, field.data_type()),
            _ => Ok(Arc::clone(column)),
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
        let schema = Arc::clone(&declared);
        Ok::<_, FlightError>(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    });
    let encoder = FlightDataEncoderBuilder::new()
        .with_schema(schema)
        .build(rows);
    Response::new(Box::pin(encoder.map_err(Status::from)))
}

fn one(batch: RecordBatch) -> Answer<Rows> {
    Ok(encoded(&batch.schema(), stream::iter([Ok(batch)])))
}

/// A schema as a message of its own.
fn message_of(schema: &Schema) -> Result<Bytes, Status> {
    let options = IpcWriteOptions::default();
    let message = IpcMessage::try_from(SchemaAsIpc::new(schema, &options));
    message.map(|message| message.0).map_err(failed)
}

/// The rows of parameters that a client sends, if it sends any.
async fn rows_of(
    request: Request<PeekableFlightDataStream>,
) -> Result<Option<RecordBatch>, Status> {
    // The first message may be the command and nothing else.
    let messages = request.into_inner().try_filter(|message| {
        let is_arrow = !message.data_header.is_empty();
        std::future::ready(is_arrow)
    });
    let messages = messages.map_err(FlightError::from);
    let mut stream = FlightRecordBatchStream::new_from_flight_data(messages);
    let (mut batches, mut bytes) = (Vec::new(), 0);
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(Status::from)?;
        bytes += batch.get_array_memory_size();
        if bytes > MOST_PARAMETER_BYTES {
            return Err(Status::invalid_argument(format!(
                "more than {MOST_PARAMETER_BYTES} bytes of parameters"
            )));
        }
        batches.push(batch);
    }
    let Some(first) = batches.first() else {
        return Ok(None);
    };
    let rows = concat_batches(&first.schema(), &batches).map_err(failed)?;
    // Without columns, or without rows, nothing is bound.
    Ok((rows.num_columns() > 0 && rows.num_rows() > 0).then_some(rows))
}

#[tonic::async_trait]
impl FlightSqlService for Service {
    type FlightService = Self;

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        self.info_of_query(&Bound::new(&query.query), request).await
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        self.query(&Bound::decode(&ticket.statement_handle)?).await
    }

    async fn do_put_statement_update(
        &self,
        update: CommandStatementUpdate,
        _request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        self.change(&Bound::new(&update.query)).await
    }

    /// ADBC sends nothing at all, not even the command, where it is to write no batches: of such a
    /// request no rows have changed.
    async fn do_put_error_callback(
        &self,
        _request: Request<PeekableFlightDataStream>,
        error: DoPutError,
    ) -> Answer<<Self as FlightService>::DoPutStream> {
        match error {
            DoPutError::MissingCommand => {
                let nothing = PutResult {
                    app_metadata: DoPutUpdateResult::default().encode_to_vec().into(),
                };
                Ok(Response::new(Box::pin(stream::iter([Ok(nothing)]))))
            }
            DoPutError::MissingFlightDescriptor => Err(Status::invalid_argument(error.to_string())),
        }
    }

    /// All rows become one fragment, or nothing of them is seen.
    async fn do_put_statement_ingest(
        &self,
        command: CommandStatementIngest,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        self.statements.allow_changes()?;
        let end = self.running.end();
        let plan = end.before(ingest::plan(&self.session, &command, request));
        self.running.change(plan.await?, end).await
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        _request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let (statements, text) = (self.statements.clone(), query.query.clone());
        let plan = self
            .running
            .planned(self.running.end(), move |asked| async move {
                statements.plan(&text, &asked).await
            });
        let plan = plan.await?;
        // A change has no rows to describe, by which clients know it.
        let dataset_schema = match &plan {
            LogicalPlan::Dml(_) => Bytes::new(),
            plan => message_of(&sent_schema(plan.schema().inner()))?,
        };
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: Bound::new(&query.query).encode()?.into(),
            dataset_schema,
            parameter_schema: message_of(&parameters(&plan)?)?,
        })
    }

    async fn do_action_close_prepared_statement(
        &self,
        _query: ActionClosePreparedStatementRequest,
        _request: Request<Action>,
    ) -> Result<(), Status> {
        Ok(())
    }

    /// Binds parameters: the statement goes on under a handle that holds them.
    async fn do_put_prepared_statement_query(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let mut bound = Bound::decode(&query.prepared_statement_handle)?;
        bound.parameters = rows_of(request).await?;
        Ok(DoPutPreparedStatementResult {
            prepared_statement_handle: Some(bound.encode()?.into()),
        })
    }

    async fn do_put_prepared_statement_update(
        &self,
        update: CommandPreparedStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let mut bound = Bound::decode(&update.prepared_statement_handle)?;
        if let Some(rows) = rows_of(request).await? {
            bound.parameters = Some(rows);
        }
        self.change(&bound).await
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let bound = Bound::decode(&query.prepared_statement_handle)?;
        self.info_of_query(&bound, request).await
    }

    async fn do_get_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        self.query(&Bound::decode(&query.prepared_statement_handle)?)
            .await
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&query.into_builder().schema(), &query, request)
    }

    async fn do_get_catalogs(
        &self,
        query: CommandGetCatalogs,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        one(self.metadata.catalogs(query)?)
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&query.clone().into_builder().schema(), &query, request)
    }

    async fn do_get_schemas(
        &self,
        query: CommandGetDbSchemas,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        one(self.metadata.schemas(query)?)
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&query.clone().into_builder().schema(), &query, request)
    }

    async fn do_get_tables(
        &self,
        query: CommandGetTables,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        let tables = self.metadata.tables(query, &sent_schema);
        one(self.running.end().before(tables).await?)
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&query.into_builder().schema(), &query, request)
    }

    async fn do_get_table_types(
        &self,
        query: CommandGetTableTypes,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        let mut types = query.into_builder();
        types.append(metadata::TABLE);
        one(types.build()?)
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&self.metadata.info.schema(), &query, request)
    }

    async fn do_get_sql_info(
        &self,
        query: CommandGetSqlInfo,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        one(query.into_builder(&self.metadata.info).build()?)
    }

    async fn get_flight_info_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&metadata::primary_key_schema(), &query, request)
    }

    async fn do_get_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        let keys = self.metadata.primary_keys(query);
        one(self.running.end().before(keys).await?)
    }

    async fn get_flight_info_exported_keys(
        &self,
        query: CommandGetExportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&metadata::foreign_key_schema(), &query, request)
    }

    async fn do_get_exported_keys(
        &self,
        _query: CommandGetExportedKeys,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        one(metadata::foreign_keys())
    }

    async fn get_flight_info_imported_keys(
        &self,
        query: CommandGetImportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&metadata::foreign_key_schema(), &query, request)
    }

    async fn do_get_imported_keys(
        &self,
        _query: CommandGetImportedKeys,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        one(metadata::foreign_keys())
    }

    async fn get_flight_info_cross_reference(
        &self,
        query: CommandGetCrossReference,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&metadata::foreign_key_schema(), &query, request)
    }

    async fn do_get_cross_reference(
        &self,
        _query: CommandGetCrossReference,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        one(metadata::foreign_keys())
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&self.metadata.types.schema(), &query, request)
    }

    async fn do_get_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        one(query.into_builder(&self.metadata.types).build()?)
    }

    async fn register_sql_info(&self, _id: i32, _result: &SqlInfo) {}
}

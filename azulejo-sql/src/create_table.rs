//! `CREATE TABLE t WITH (location = 'uri', ..) AS SELECT ..` and
//! `COPY .. TO 'uri' STORED AS AZULEJO`: arrays made of rows.

use crate::error::{Result, external};
use crate::external_table::FILE_TYPE;
use crate::new_array::{Optimized, Options};
use crate::set_operations;
use crate::table::{ArrayTable, TableOptions, blocking};
use crate::time_of_day::stored_as;
use crate::write::{ArraySink, bytes_of};
use async_trait::async_trait;
use azulejo::array::NewArray;
use azulejo::arrow::{ArrowConverter, ArrowImporter, ArrowOptions};
use azulejo::write::column_types;
use azulejo::write::optimize::{SampleCells, choose_filters, sample_bytes};
use azulejo::{ArrayHandle, ColumnSet, Context};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::TableReference;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::provider_as_source;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, TableType, WriteOp,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{CopyToSource, CopyToStatement, Statement};
use datafusion::sql::sqlparser::ast::{
    CreateTable, CreateTableOptions, Expr as SqlExpr, ObjectName, SqlOption,
    Statement as SqlStatement, Value,
};
use futures_util::StreamExt;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A statement that makes an array of rows.
#[derive(Debug)]
pub struct NewArrayOfRows {
    /// The statement that gives the rows.
    rows: Statement,
    uri: String,
    options: Options,
    /// The table that the array becomes, if it becomes one.
    table: Option<NewTable>,
}

#[derive(Debug)]
struct NewTable {
    name: ObjectName,
    if_not_exists: bool,
}

impl NewArrayOfRows {
    /// The statement, of which [`makes_array`] is true.
    ///
    /// # Errors
    /// What arrays have not.
    pub fn of(statement: Statement) -> Result<Self> {
        let other = || DataFusionError::Internal("a statement that makes no array".into());
        match statement {
            Statement::CopyTo(copy) => Self::of_copy(copy),
            Statement::Statement(statement) => match *statement {
                SqlStatement::CreateTable(create) => Self::of_create(create),
                _ => Err(other()),
            },
            _ => Err(other()),
        }
    }

    fn of_copy(copy: CopyToStatement) -> Result<Self> {
        let rows = match copy.source {
            CopyToSource::Query(query) => SqlStatement::Query(query),
            CopyToSource::Relation(name) => {
                // Names were parsed before, and print as they were written.
                let text = format!("SELECT * FROM {name}");
                let mut parsed = crate::session::statements(&text)?;
                match parsed.pop_front() {
                    Some(Statement::Statement(statement)) => *statement,
                    _ => return Err(DataFusionError::Plan(format!("{name} is no table"))),
                }
            }
        };
        if !copy.partitioned_by.is_empty() {
            return Err(DataFusionError::Plan(
                "an array has tiles, no PARTITIONED BY: write 'tile.COLUMN' 'EXTENT'".into(),
            ));
        }
        let mut options = HashMap::new();
        for (key, value) in copy.options {
            let value = text_of(&key, &value)?;
            options.insert(key, value);
        }
        Ok(Self {
            rows: Statement::Statement(Box::new(rows)),
            uri: copy.target,
            options: Options::new(&options),
            table: None,
        })
    }

    fn of_create(create: CreateTable) -> Result<Self> {
        let mut options = HashMap::new();
        for option in with(&create) {
            let SqlOption::KeyValue { key, value } = option else {
                return Err(DataFusionError::Plan(format!(
                    "{option}: write NAME = 'VALUE'"
                )));
            };
            // What stands there may be a key.
            let SqlExpr::Value(value) = value else {
                return Err(DataFusionError::Plan(format!(
                    "{key}: write NAME = 'VALUE'"
                )));
            };
            options.insert(key.value.clone(), text_of(&key.value, &value.value)?);
        }
        let mut options = Options::new(&options);
        let uri = options.take("location").unwrap_or_default();
        let Some(query) = create.query else {
            return Err(DataFusionError::Plan(
                "an array without rows is made by CREATE EXTERNAL TABLE .. STORED AS AZULEJO"
                    .into(),
            ));
        };
        if create.or_replace || create.temporary || !create.columns.is_empty() {
            return Err(DataFusionError::NotImplemented(
                "CREATE TABLE with a location takes names and types from its query, and replaces nothing".into(),
            ));
        }
        Ok(Self {
            rows: Statement::Statement(Box::new(SqlStatement::Query(query))),
            uri,
            options,
            table: Some(NewTable {
                name: create.name,
                if_not_exists: create.if_not_exists,
            }),
        })
    }

    /// Plans the statement; a table is made at once.
    pub async fn plan(self, session: &SessionContext) -> Result<DataFrame> {
        let context = session.state().config().get_extension::<Context>();
        let context = context.ok_or_else(|| {
            DataFusionError::Plan("this session does not know arrays: azulejo_sql::session".into())
        })?;
        let mut options = self.options;
        let place = options.context(&context)?.array(&self.uri);
        let reference = match &self.table {
            Some(table) => {
                let reference = reference_of(&table.name)?;
                if session.table_exist(reference.clone())? {
                    return match table.if_not_exists {
                        true => nothing(session),
                        false => Err(DataFusionError::Plan(format!(
                            "there is a table {reference} already"
                        ))),
                    };
                }
                Some(reference)
            }
            None => None,
        };
        let rows = set_operations::plan(&session.state(), self.rows).await?;
        let columns = Arc::clone(rows.schema().inner());
        let key = options.dimensions(&columns)?;
        let optimized = options.optimized()?;
        let new = options.schema(&storable(&columns), &key)?;
        options.finish()?;
        let target = Target {
            place: place.clone(),
            new,
            optimized,
            columns: Arc::clone(&columns),
        };
        let plan = LogicalPlan::Dml(DmlStatement::new(
            reference
                .clone()
                .unwrap_or_else(|| TableReference::bare(self.uri.as_str())),
            provider_as_source(Arc::new(target)),
            WriteOp::Insert(InsertOp::Append),
            Arc::new(rows),
        ));
        let frame = session.execute_logical_plan(plan).await?;
        let Some(reference) = reference else {
            return Ok(frame);
        };
        frame.collect().await?;
        let table = blocking(move || Ok(ArrayTable::open(place, TableOptions::new()))).await??;
        let table = table.showing_first(&columns)?;
        session.register_table(reference, Arc::new(table))?;
        nothing(session)
    }
}

/// Whether a statement makes an array of rows.
pub fn makes_array(statement: &Statement) -> bool {
    match statement {
        Statement::CopyTo(copy) => is_array(copy),
        Statement::Statement(statement) => match &**statement {
            SqlStatement::CreateTable(create) => has_location(create),
            _ => false,
        },
        _ => false,
    }
}

/// A name of one, two or three parts, as it stands.
///
/// # Errors
/// Other names.
pub fn reference_of(name: &ObjectName) -> Result<TableReference> {
    let parts = name.0.iter().map(|part| part.as_ident());
    let parts = parts.collect::<Option<Vec<_>>>().unwrap_or_default();
    match parts.as_slice() {
        [table] => Ok(TableReference::bare(table.value.as_str())),
        [schema, table] => Ok(TableReference::partial(
            schema.value.as_str(),
            table.value.as_str(),
        )),
        [catalog, schema, table] => Ok(TableReference::full(
            catalog.value.as_str(),
            schema.value.as_str(),
            table.value.as_str(),
        )),
        _ => Err(DataFusionError::Plan(format!(
            "{name} is no name of a table"
        ))),
    }
}

/// No rows.
pub fn nothing(session: &SessionContext) -> Result<DataFrame> {
    let plan = LogicalPlanBuilder::empty(false).build()?;
    Ok(DataFrame::new(session.state(), plan))
}

fn is_array(copy: &CopyToStatement) -> bool {
    let stored = copy.stored_as.as_deref();
    stored.is_some_and(|stored| stored.eq_ignore_ascii_case(FILE_TYPE))
}

fn with(create: &CreateTable) -> &[SqlOption] {
    match &create.table_options {
        CreateTableOptions::With(options) => options,
        _ => &[],
    }
}

fn has_location(create: &CreateTable) -> bool {
    with(create).iter().any(|option| match option {
        SqlOption::KeyValue { key, .. } => key.value.eq_ignore_ascii_case("location"),
        _ => false,
    })
}

/// The text of a literal.
fn text_of(key: &str, value: &Value) -> Result<String> {
    Ok(match value {
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => text.clone(),
        Value::Number(number, _) => number.clone(),
        Value::Boolean(truth) => truth.to_string(),
        _ => {
            return Err(DataFusionError::Plan(format!(
                "{key}: what stands there is no value of an option"
            )));
        }
    })
}

/// An array that is made when its rows come.
#[derive(Debug)]
struct Target {
    place: ArrayHandle,
    new: NewArray,
    optimized: Option<Optimized>,
    /// The columns of the rows.
    columns: SchemaRef,
}

#[async_trait]
impl TableProvider for Target {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.columns)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Err(DataFusionError::Internal(
            "an array that is not yet made".into(),
        ))
    }

    async fn insert_into(
        &self,
        _state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        _op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sink = NewArraySink {
            place: self.place.clone(),
            new: self.new.clone(),
            optimized: self.optimized.clone(),
            columns: Arc::clone(&self.columns),
        };
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None)))
    }
}

/// Makes an array and writes its first fragment. If that fails there is no array.
#[derive(Debug)]
struct NewArraySink {
    place: ArrayHandle,
    new: NewArray,
    optimized: Option<Optimized>,
    columns: SchemaRef,
}

impl NewArraySink {
    /// The array with filters that the first rows suggest, and these rows.
    async fn chosen(
        &self,
        optimized: Optimized,
        rows: &mut SendableRecordBatchStream,
    ) -> Result<(NewArray, Vec<RecordBatch>)> {
        let most = usize::try_from(sample_bytes(self.place.context())).unwrap_or(usize::MAX);
        let (mut first, mut bytes) = (Vec::new(), 0);
        while bytes < most
            && let Some(batch) = rows.next().await.transpose()?
        {
            bytes += bytes_of(&batch);
            first.push(batch);
        }
        let (context, new) = (self.place.context().clone(), self.new.clone());
        if first.is_empty() {
            return Ok((new, first));
        }
        let looked_at = first.clone();
        let chosen = blocking(move || Ok(choose(&context, new, &optimized, &looked_at)));
        Ok((chosen.await??, first))
    }
}

/// Chooses an array's filters by some of its rows.
fn choose(
    context: &Context,
    mut new: NewArray,
    optimized: &Optimized,
    rows: &[RecordBatch],
) -> Result<NewArray> {
    let labels: Vec<_> = new.enumerations.iter().cloned().map(Arc::new).collect();
    let types = column_types(&new.schema, &labels);
    let converter = ArrowConverter::new(&types, ArrowOptions::default()).map_err(external)?;
    let schema = converter.schema();
    let importer = ArrowImporter::new(types);
    let set = |batch: &RecordBatch| importer.convert(&shaped(batch, &schema)?).map_err(external);
    let sets = rows.iter().map(set).collect::<Result<Vec<_>>>()?;
    let cells = ColumnSet::concat(&sets).map_err(external)?;
    let keeps = |name: &str| optimized.keeps(name);
    let cells = SampleCells::of(&cells);
    choose_filters(context, &mut new, &cells, optimized.goal, &keeps).map_err(external)?;
    Ok(new)
}

impl DisplayAs for NewArraySink {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewArraySink(array={})", self.place.uri())
    }
}

#[async_trait]
impl DataSink for NewArraySink {
    fn schema(&self) -> &SchemaRef {
        &self.columns
    }

    async fn write_all(
        &self,
        mut data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let (new, first) = match &self.optimized {
            Some(optimized) => self.chosen(optimized.clone(), &mut data).await?,
            None => (self.new.clone(), Vec::new()),
        };
        let data = futures_util::stream::iter(first.into_iter().map(Ok)).chain(data);
        let place = self.place.clone();
        blocking(move || place.create(new)).await?;
        // A query that is given up must not leave an array either.
        let made = Unfinished(Some(self.place.clone()));
        let place = self.place.clone();
        let table = blocking(move || Ok(ArrayTable::open(place, TableOptions::new()))).await??;
        let schema = table.schema();
        let shaped = {
            let schema = Arc::clone(&schema);
            data.map(move |batch| shaped(&batch?, &schema))
        };
        let shaped = Box::pin(RecordBatchStreamAdapter::new(schema, shaped));
        let written = ArraySink::new(&table).write_all(shaped, context).await;
        match written {
            Ok(rows) => {
                made.keep();
                Ok(rows)
            }
            Err(error) => {
                blocking(move || made.remove()).await?;
                Err(error)
            }
        }
    }
}

/// Columns as arrays have them: times of day are spans since midnight.
pub fn storable(columns: &Schema) -> Schema {
    let field = |field: &Arc<Field>| {
        let stored = stored_as(field.data_type());
        field.as_ref().clone().with_data_type(stored)
    };
    Schema::new(columns.fields().iter().map(field).collect::<Vec<_>>())
}

/// Rows with the columns of an array, in its order and of its types.
pub fn shaped(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let column = |field: &Arc<Field>| {
        let index = batch.schema().index_of(field.name())?;
        let column = batch.column(index);
        // Spans of the same unit are as many ticks.
        let column = match column.data_type() {
            DataType::Time32(_) => cast(&cast(column, &DataType::Int32)?, &DataType::Int64)?,
            DataType::Time64(_) => cast(column, &DataType::Int64)?,
            _ => Arc::clone(column),
        };
        Ok(cast(&column, field.data_type())?)
    };
    let columns = schema.fields().iter().map(column);
    Ok(RecordBatch::try_new(
        Arc::clone(schema),
        columns.collect::<Result<_>>()?,
    )?)
}

/// An array whose rows are not yet written: it goes with whoever makes it, unless others have put
/// something into it meanwhile.
struct Unfinished(Option<ArrayHandle>);

impl Unfinished {
    fn keep(mut self) {
        self.0 = None;
    }

    fn remove(mut self) -> azulejo::Result<()> {
        self.0.take().map_or(Ok(()), |place| remove_empty(&place))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(place) = self.0.take() {
            // There is nobody left to tell.
            drop(std::thread::spawn(move || remove_empty(&place)));
        }
    }
}

/// Removes an array in which nothing counts.
///
/// # Errors
/// Those of opening and deleting it.
pub fn remove_empty(place: &ArrayHandle) -> azulejo::Result<()> {
    let array = place.open()?;
    let is_empty =
        array.fragments().is_empty() && array.deletes().is_empty() && array.metadata()?.is_empty();
    match is_empty {
        true => place.delete(),
        false => Ok(()),
    }
}

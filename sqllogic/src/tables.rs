//! What becomes of `CREATE TABLE`: an array, if its types allow.

use async_trait::async_trait;
use azulejo::arrow::ArrowFields;
use azulejo::format::ArraySchema;
use azulejo::{Context, WriteOptions};
use azulejo_sql::{ArrayTable, TableOptions};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{MemTable, SchemaProvider, Session, TableProvider};
use datafusion::common::{Constraints, DataFusionError, Result};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures_util::StreamExt;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The dimension that numbers the rows, and that nobody sees.
pub const ROW: &str = "__row";

/// How often a table that is an array was looked up, by any query.
pub static LOOKED_UP: AtomicU64 = AtomicU64::new(0);

/// Tables that became arrays.
pub static MADE: AtomicU64 = AtomicU64::new(0);

/// Tables whose types arrays do not have.
pub static KEPT: AtomicU64 = AtomicU64::new(0);

/// A schema that turns tables in memory into arrays.
#[derive(Debug)]
pub struct ArraysForTables {
    inner: Arc<dyn SchemaProvider>,
    context: Context,
    made: AtomicU64,
}

impl ArraysForTables {
    /// A schema around another one, which keeps the names.
    pub fn new(inner: Arc<dyn SchemaProvider>, context: &Context) -> Self {
        Self {
            inner,
            context: context.clone(),
            made: AtomicU64::new(0),
        }
    }
}

#[async_trait]
impl SchemaProvider for ArraysForTables {
    fn table_names(&self) -> Vec<String> {
        self.inner.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let table = self.inner.table(name).await?;
        if table.as_ref().is_some_and(|table| table.is::<Rows>()) {
            LOOKED_UP.fetch_add(1, Ordering::Relaxed);
        }
        Ok(table)
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(memory) = table.downcast_ref::<MemTable>() else {
            return self.inner.register_table(name, table);
        };
        let uri = format!("mem://{}", self.made.fetch_add(1, Ordering::Relaxed));
        let table: Arc<dyn TableProvider> = match Rows::of(&table, memory, &self.context, &uri) {
            Ok(rows) => {
                MADE.fetch_add(1, Ordering::Relaxed);
                Arc::new(rows)
            }
            Err(_) => {
                KEPT.fetch_add(1, Ordering::Relaxed);
                table
            }
        };
        self.inner.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.inner.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.inner.table_exist(name)
    }
}

/// An array whose cells are the rows of a table: one dimension numbers them.
#[derive(Debug)]
pub struct Rows {
    array: Arc<ArrayTable>,
    schema: SchemaRef,
    constraints: Constraints,
    /// The table that was asked for, which knows what columns are where nothing is said.
    declared: Arc<dyn TableProvider>,
    next: Arc<AtomicI64>,
}

fn external(error: azulejo::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl Rows {
    /// The array, with the dimension that is not shown.
    pub fn array(&self) -> Arc<ArrayTable> {
        Arc::clone(&self.array)
    }

    fn of(
        table: &Arc<dyn TableProvider>,
        memory: &MemTable,
        context: &Context,
        uri: &str,
    ) -> Result<Self> {
        let declared = memory.schema();
        let place = context.array(uri);
        // Tiles of few cells: there is something to leave out.
        let new = ArraySchema::sparse()
            .dimension(ROW, 0i64..=1 << 40, 1 << 20)
            .capacity(4)
            .arrow_fields(&declared)
            .map_err(external)?
            .build()
            .map_err(|error| DataFusionError::NotImplemented(error.to_string()))?;
        place.create(new).map_err(external)?;
        let array = Arc::new(ArrayTable::open(place, TableOptions::new())?);
        let all = array.schema();
        let shown: Vec<usize> = (1..all.fields().len()).collect();
        let schema = Arc::new(all.project(&shown)?);
        // What comes back must be what was given, in a type of the same kind.
        for (ours, theirs) in schema.fields().iter().zip(declared.fields()) {
            let alike = ours.data_type() == theirs.data_type()
                || (ours.data_type().is_string() && theirs.data_type().is_string());
            if !alike || ours.is_nullable() != theirs.is_nullable() {
                return Err(DataFusionError::NotImplemented(theirs.to_string()));
            }
        }
        let rows = Self {
            array,
            schema,
            constraints: memory.constraints().cloned().unwrap_or_default(),
            declared: Arc::clone(table),
            next: Arc::default(),
        };
        let mut batches = Vec::new();
        for partition in &memory.batches {
            let of = partition.try_read().map_err(|_| {
                DataFusionError::Internal("a table that is written to already".into())
            })?;
            batches.extend(of.iter().cloned());
        }
        rows.sink().write(&batches)?;
        Ok(rows)
    }

    fn sink(&self) -> RowSink {
        RowSink {
            place: self.array.place().clone(),
            schema: Arc::clone(&self.schema),
            next: Arc::clone(&self.next),
        }
    }
}

#[async_trait]
impl TableProvider for Rows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.declared.get_column_default(column)
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.array.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns: Vec<usize> = match projection {
            Some(columns) => columns.iter().map(|column| column + 1).collect(),
            None => (1..=self.schema.fields().len()).collect(),
        };
        self.array.scan(state, Some(&columns), filters, limit).await
    }

    async fn insert_into(
        &self,
        _state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        _op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(DataSinkExec::new(
            input,
            Arc::new(self.sink()),
            None,
        )))
    }
}

/// Writes rows under the next numbers, as one fragment.
#[derive(Debug)]
struct RowSink {
    place: azulejo::ArrayHandle,
    schema: SchemaRef,
    next: Arc<AtomicI64>,
}

impl RowSink {
    fn write(&self, batches: &[RecordBatch]) -> Result<u64> {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if rows == 0 {
            return Ok(0);
        }
        let mut writer = self.place.writer(WriteOptions::new()).map_err(external)?;
        let importer = writer.importer().map_err(external)?;
        for batch in batches {
            let len = batch.num_rows() as i64;
            let first = self.next.fetch_add(len, Ordering::Relaxed);
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + len));
            let numbered = [(ROW, numbers)].into_iter();
            let named = self
                .schema
                .fields()
                .iter()
                .map(|field| field.name().as_str());
            let all = numbered.chain(named.zip(batch.columns().iter().cloned()));
            let fields = all.clone().map(|(name, column)| {
                datafusion::arrow::datatypes::Field::new(name, column.data_type().clone(), true)
            });
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let batch = RecordBatch::try_new(schema, all.map(|(_, column)| column).collect())?;
            let cells = importer.convert(&batch).map_err(external)?;
            writer.write(&cells).map_err(external)?;
        }
        writer.finish().map_err(external)?;
        Ok(rows as u64)
    }
}

impl DisplayAs for RowSink {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowSink")
    }
}

#[async_trait]
impl DataSink for RowSink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        mut data: SendableRecordBatchStream,
        _context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let mut batches = Vec::new();
        while let Some(batch) = data.next().await {
            batches.push(batch?);
        }
        self.write(&batches)
    }
}

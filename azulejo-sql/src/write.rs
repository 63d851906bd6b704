//! Writing rows to arrays: each statement is one fragment (or some, where there is too much for the
//! memory) whose commit comes last, visible at once or not at all.

use crate::error::{Result, external};
use crate::giving_up::{StillWanted, until_given_up};
use crate::table::ArrayTable;
use crate::write_dense::write_boxes;
use async_trait::async_trait;
use azulejo::arrow::ArrowOptions;
use azulejo::{ArrayHandle, WriteOptions};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::datasource::sink::DataSink;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use futures_util::StreamExt;
use std::fmt;
use std::sync::Arc;

/// Batches between the plan that makes rows and the thread that writes them.
const BATCHES_AHEAD: usize = 4;

/// Bytes that are gathered for a fragment at most: the offsets of text have 32 bits.
const MOST_BYTES: usize = 512 << 20;

/// What takes the rows of a statement.
#[derive(Debug)]
pub struct ArraySink {
    place: ArrayHandle,
    columns: SchemaRef,
    /// The same columns, as rows may have them that are still to be looked at.
    schema: SchemaRef,
    arrow: ArrowOptions,
    dense: bool,
    dimensions: usize,
}

impl ArraySink {
    /// The sink of a table.
    pub fn new(table: &ArrayTable) -> Self {
        let schema = table.array().schema();
        let columns = table.columns().schema();
        let fields = columns.fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        Self {
            place: table.place().clone(),
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            columns: Arc::clone(columns),
            arrow: table.columns().arrow_options(),
            dense: schema.is_dense(),
            dimensions: schema.domain.ndim(),
        }
    }

    /// The rows, if none is null where the array has no nulls.
    fn complete(&self, rows: RecordBatch) -> Result<RecordBatch> {
        let mut columns = self.columns.fields().iter().zip(rows.columns());
        let null =
            columns.find(|(field, column)| !field.is_nullable() && column.logical_null_count() > 0);
        match null {
            None => Ok(rows),
            Some((field, _)) => Err(DataFusionError::Execution(format!(
                "{}: {} cannot be null, and has no DEFAULT: a row gives it no value",
                self.place.uri(),
                field.name()
            ))),
        }
    }
}

impl DisplayAs for ArraySink {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArraySink(array={})", self.place.uri())
    }
}

#[async_trait]
impl DataSink for ArraySink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        mut data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let (send, receive) = tokio::sync::mpsc::channel(BATCHES_AHEAD);
        let own = self.place.context().cancellable();
        let place = own.array(self.place.uri());
        let (dimensions, dense, arrow) = (self.dimensions, self.dense, self.arrow);
        let schema = Arc::clone(&self.columns);
        let held = MemoryConsumer::new(format!("rows for {}", self.place.uri()));
        let held = held.register(context.memory_pool());
        let writing = until_given_up(own, move |wanted| match dense {
            true => {
                let columns = (&schema, arrow);
                write_boxes(&place, columns, dimensions, receive, wanted, &held)
            }
            false => write_cells(&place, receive, wanted),
        });
        while let Some(batch) = data.next().await {
            let batch = batch.and_then(|rows| self.complete(rows));
            // Whoever writes has stopped at an error of its own, which it tells.
            if send.send(Some(batch)).await.is_err() {
                break;
            }
        }
        // Without this word nothing is committed: a query that is given up leaves nothing behind.
        let _ = send.send(None).await;
        writing.await
    }
}

/// Batches on their way to a writer, then `None`.
pub type Batches = tokio::sync::mpsc::Receiver<Option<Result<RecordBatch>>>;

/// The next batch; `None` behind the last one. That the query was given up is an error.
pub fn receive(batches: &mut Batches) -> Result<Option<RecordBatch>> {
    match batches.blocking_recv() {
        Some(batch) => batch.transpose(),
        None => Err(external(azulejo::Error::Cancelled)),
    }
}

/// Writes the cells of a sparse array as they come: one fragment as long as they fit in a quarter of
/// the memory that a write may take, else several, which count together. Whatever goes wrong,
/// nothing is seen of them.
fn write_cells(place: &ArrayHandle, mut batches: Batches, wanted: &StillWanted) -> Result<u64> {
    let most = most_bytes(place);
    let mut rows = 0;
    let mut writer = None;
    loop {
        let (mut gathered, mut bytes, mut more) = (Vec::new(), 0, true);
        while bytes < most && more {
            match receive(&mut batches)? {
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => {
                    bytes += bytes_of(&batch);
                    gathered.push(batch);
                }
                None => more = false,
            }
        }
        if let Some(first) = gathered.first() {
            let (writer, importer) = match &mut writer {
                Some(known) => known,
                none => {
                    let new = place.writer(WriteOptions::new()).map_err(external)?;
                    let importer = new.importer().map_err(external)?;
                    none.insert((new, importer))
                }
            };
            let batch = concat_batches(&first.schema(), &gathered)?;
            drop(gathered);
            let cells = importer.convert(&batch).map_err(external)?;
            writer.write(&cells).map_err(external)?;
            rows += batch.num_rows() as u64;
        }
        if !more {
            break;
        }
    }
    wanted.check().map_err(external)?;
    if let Some((writer, _)) = writer {
        writer.finish().map_err(external)?;
    }
    Ok(rows)
}

/// Bytes of rows that are held at a time: a quarter of what a write may take, and no more than
/// offsets of text can count.
pub fn most_bytes(place: &ArrayHandle) -> usize {
    let most = place.context().config().memory_budget / 4;
    usize::try_from(most).unwrap_or(MOST_BYTES).min(MOST_BYTES)
}

/// What a batch holds: of columns that are pieces of larger ones, the pieces, and of views the texts
/// and bytes that they show.
pub fn bytes_of(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter();
    let bytes = columns.map(|column| {
        if let Some(bytes) = written_out(column) {
            return bytes;
        }
        let piece = column.to_data().get_slice_memory_size();
        piece.unwrap_or_else(|_| column.get_array_memory_size())
    });
    bytes.sum()
}

/// Bytes of a column of views were its texts or bytes written out; `None` of other columns.
fn written_out(column: &ArrayRef) -> Option<usize> {
    let bytes = match column.data_type() {
        DataType::Utf8View => column.as_string_view().total_bytes_len(),
        DataType::BinaryView => column.as_binary_view().total_bytes_len(),
        _ => return None,
    };
    let views = column.len().saturating_mul(size_of::<u128>());
    Some(views.saturating_add(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::StringViewArray;

    #[test]
    fn views_count_what_they_show() {
        let long = "a text that is too long for a view ".repeat(10);
        let apart: StringViewArray = (0..1000).map(|i| Some(format!("{i} {long}"))).collect();
        let one = StringViewArray::from(vec![long.as_str()]);
        let same = StringViewArray::try_new(
            vec![one.views()[0]; 1000].into(),
            one.data_buffers().to_vec(),
            None,
        );
        for whole in [apart, same.unwrap()] {
            let bytes: usize = whole.iter().flatten().map(str::len).sum();
            let whole: ArrayRef = Arc::new(whole);
            assert_eq!(written_out(&whole), Some(1000 * 16 + bytes));
        }
    }
}

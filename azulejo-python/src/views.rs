//! Text and bytes as views, which engines that work on Arrow's newer layout take as they are.

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryViewArray, RecordBatch, RecordBatchReader, StringViewArray};
use azulejo::arrow::arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use std::sync::Arc;

/// Record batches whose columns of text and bytes are views of the same memory.
#[derive(Debug)]
pub struct Views<R> {
    batches: R,
    schema: SchemaRef,
}

impl<R: RecordBatchReader> Views<R> {
    /// Takes batches as they come.
    pub fn of(batches: R) -> Self {
        let before = batches.schema();
        let field = |field: &Arc<Field>| match view_of(field.data_type()) {
            Some(view) => Arc::new(field.as_ref().clone().with_data_type(view)),
            None => Arc::clone(field),
        };
        let fields: Vec<_> = before.fields().iter().map(field).collect();
        let schema = Schema::new_with_metadata(fields, before.metadata().clone());
        Self {
            batches,
            schema: Arc::new(schema),
        }
    }
}

fn view_of(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 => Some(DataType::Utf8View),
        DataType::Binary | DataType::LargeBinary => Some(DataType::BinaryView),
        _ => None,
    }
}

fn viewed(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Utf8 => Arc::new(StringViewArray::from(column.as_string::<i32>())),
        DataType::LargeUtf8 => Arc::new(StringViewArray::from(column.as_string::<i64>())),
        DataType::Binary => Arc::new(BinaryViewArray::from(column.as_binary::<i32>())),
        DataType::LargeBinary => Arc::new(BinaryViewArray::from(column.as_binary::<i64>())),
        _ => Arc::clone(column),
    }
}

impl<R: RecordBatchReader> Iterator for Views<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match self.batches.next()? {
            Ok(batch) => batch,
            Err(error) => return Some(Err(error)),
        };
        let columns = batch.columns().iter().map(viewed).collect();
        Some(RecordBatch::try_new(Arc::clone(&self.schema), columns))
    }
}

impl<R: RecordBatchReader> RecordBatchReader for Views<R> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

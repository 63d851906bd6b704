//! A read as Arrow record batches.

use super::Reader;
use crate::column::arrow::{ArrowConverter, ArrowOptions, Pieces};
use crate::error::{Error, Result};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

/// The batches of a [`Reader`] as Arrow record batches, all of one schema: what
/// [`Reader::record_batches`] gives, and what Arrow's writers, DataFusion and the C stream
/// interface take.
#[derive(Debug)]
pub struct RecordBatches {
    reader: Reader,
    converter: ArrowConverter,
    /// What is left of the reader's last batch.
    pieces: Option<Pieces>,
    /// Whether an error came, behind which nothing follows.
    failed: bool,
}

impl Reader {
    /// What is left to read as Arrow record batches; see [`crate::arrow`] for their types.
    ///
    /// ```
    /// # use azulejo::arrow::ArrowOptions;
    /// # use azulejo::column::{ColumnBuffers, ColumnSet};
    /// # use azulejo::format::{ArraySchema, Datatype};
    /// # use azulejo::read::ReadOptions;
    /// # use azulejo::{Config, Context, WriteOptions};
    /// # let context = Context::new(Config::default(), None)?;
    /// # let schema = ArraySchema::sparse().dimension("x", 0i64..=9, 10)
    /// #     .attribute("a", Datatype::Float64).build()?;
    /// # context.array("mem://cells").create(schema)?;
    /// # let mut writer = context.array("mem://cells").writer(WriteOptions::new())?;
    /// # writer.write(&ColumnSet::of([
    /// #     ColumnBuffers::of_values("x", vec![7i64, 3]),
    /// #     ColumnBuffers::of_values("a", vec![0.7, 0.3]),
    /// # ])?)?;
    /// # writer.finish()?;
    /// let array = context.array("mem://cells").open()?;
    /// let batches = array.read(ReadOptions::new())?.record_batches(ArrowOptions::default())?;
    /// let rows: Result<usize, _> = batches.map(|batch| Ok::<_, azulejo::arrow::arrow_schema::ArrowError>(batch?.num_rows())).sum();
    /// assert_eq!(rows?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`ArrowConverter::new`].
    pub fn record_batches(mut self, options: ArrowOptions) -> Result<RecordBatches> {
        // Only `next_batch` takes batches then.
        self.source.wanted.words = options.views;
        let converter = ArrowConverter::new(self.column_types(), options)?;
        Ok(RecordBatches {
            reader: self,
            converter,
            pieces: None,
            failed: false,
        })
    }
}

impl RecordBatches {
    fn read(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(piece) = Pieces::next_of(&mut self.pieces, &self.converter) {
                return piece.map(Some);
            }
            let Some(columns) = self.reader.next_batch()? else {
                return Ok(None);
            };
            self.pieces = Some(Pieces::of(columns, &self.converter)?);
        }
    }
}

impl Iterator for RecordBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = self.read();
        self.failed = batch.is_err();
        batch.map_err(ArrowError::from).transpose()
    }
}

impl RecordBatchReader for RecordBatches {
    fn schema(&self) -> SchemaRef {
        self.converter.schema()
    }
}

impl From<Error> for ArrowError {
    fn from(error: Error) -> Self {
        Self::ExternalError(Box::new(error))
    }
}

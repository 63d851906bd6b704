//! Reads that an executor polls.

use super::{ArrayReader, Beginning};
use crate::array::Array;
use crate::column::{BatchColumns, ColumnSet};
use crate::error::Result;
use crate::read::BoundOptions;
use crate::read::ReadOptions;
use crate::read::bind::bind;
use crate::read::fetch::Waiting;
use crate::read::output::batch_columns;
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

/// A query under way, as a stream of batches: those of a [`Reader`](crate::read::Reader), by the
/// same steps.
///
/// What is read from storage is awaited, on whatever executor polls the stream; cells are decoded
/// and merged on the threads of the array's context, while the call of `poll_next` waits. The tiles
/// of the next batch travel while a batch is with the caller. Of local files tiles are read by
/// those threads too, unless [`Config::batched_reads`](crate::Config::batched_reads) is set.
/// Dropping the stream cancels what is under way.
///
/// ```
/// # use azulejo::{Config, Context};
/// # use azulejo::read::ReadOptions;
/// # async fn cells(context: Context) -> azulejo::Result<usize> {
/// use std::pin::pin;
/// let array = context.array("s3://bucket/array").open()?;
/// let mut batches = pin!(array.read_stream(ReadOptions::new()));
/// let mut cells = 0;
/// // With `futures::StreamExt`: `while let Some(batch) = batches.next().await`.
/// while let Some(batch) =
///     std::future::poll_fn(|cx| futures_core::Stream::poll_next(batches.as_mut(), cx)).await
/// {
///     cells += batch?.cell_num;
/// }
/// # Ok(cells)
/// # }
/// ```
pub struct ReadStream {
    state: StreamState,
    /// What is asked for, once the read has begun.
    bound: Arc<OnceLock<BoundOptions>>,
    /// Whether texts may come as words: then only [`Self::poll_batch`] takes batches.
    words: bool,
}

/// How far a stream is.
enum StreamState {
    /// Nobody has polled it.
    Begins(Array, Box<ReadOptions>),
    /// A batch was given out.
    Goes(Box<ArrayReader>),
    /// The next one is under way.
    Reads(NextBatch),
    Ended,
}

/// The next batch, and what reads those behind it.
type NextBatch = Pin<Box<dyn Future<Output = Result<Option<(BatchColumns, ArrayReader)>>> + Send>>;

impl fmt::Debug for ReadStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadStream").finish_non_exhaustive()
    }
}

impl Array {
    /// Starts a read that an executor polls. Nothing happens before it does; errors of
    /// [`Array::read`] are the stream's first item.
    #[must_use]
    pub fn read_stream(&self, options: ReadOptions) -> ReadStream {
        ReadStream {
            state: StreamState::Begins(self.clone(), Box::new(options)),
            bound: Arc::default(),
            words: false,
        }
    }
}

async fn first(
    array: Array,
    options: ReadOptions,
    bound: Arc<OnceLock<BoundOptions>>,
    words: bool,
) -> Result<Option<(BatchColumns, ArrayReader)>> {
    let options = bind(&array, &options, Waiting::Polls).await?;
    let options = bound.get_or_init(|| options);
    let mut beginning = Beginning::of(&array);
    let mut reader = beginning.reader(options, Waiting::Polls).await?;
    loop {
        let error = match next(reader, words).await {
            Ok(batch) => return Ok(batch),
            Err(error) => error,
        };
        match beginning.anew(&error, options, Waiting::Polls).await {
            Some(again) => reader = again,
            None => return Err(error),
        }
    }
}

async fn next(mut reader: ArrayReader, words: bool) -> Result<Option<(BatchColumns, ArrayReader)>> {
    reader.wanted.words = words;
    match reader.next(None).await? {
        Some(batch) => Ok(Some((batch_columns(batch)?, reader))),
        None => Ok(None),
    }
}

impl ReadStream {
    /// The result's columns without cells, once the stream has been polled to its first item or its
    /// end: what a query that finds nothing has.
    #[must_use]
    pub fn empty(&self) -> Option<ColumnSet> {
        self.bound.get().map(BoundOptions::empty)
    }

    /// The next cells.
    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<BatchColumns>>> {
        let mut running: NextBatch = match std::mem::replace(&mut self.state, StreamState::Ended) {
            StreamState::Begins(array, options) => {
                let bound = Arc::clone(&self.bound);
                Box::pin(first(array, *options, bound, self.words))
            }
            StreamState::Goes(reader) => Box::pin(next(*reader, self.words)),
            StreamState::Reads(running) => running,
            StreamState::Ended => return Poll::Ready(None),
        };
        match running.as_mut().poll(cx) {
            Poll::Pending => {
                self.state = StreamState::Reads(running);
                Poll::Pending
            }
            Poll::Ready(Ok(Some((cells, reader)))) => {
                self.state = StreamState::Goes(Box::new(reader));
                Poll::Ready(Some(Ok(cells)))
            }
            Poll::Ready(Ok(None)) => Poll::Ready(None),
            Poll::Ready(Err(error)) => Poll::Ready(Some(Err(error))),
        }
    }
}

impl Stream for ReadStream {
    type Item = Result<ColumnSet>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let batch = ready!(self.poll_batch(cx));
        Poll::Ready(batch.map(|batch| batch.and_then(BatchColumns::into_cells)))
    }
}

#[cfg(feature = "arrow")]
mod record_batches {
    use super::{BoundOptions, Context, Pin, Poll, ReadStream, Result, Stream, StreamState, ready};
    use crate::column::BatchColumn;
    use crate::column::arrow::{ArrowConverter, ArrowOptions, Pieces};
    use arrow_array::RecordBatch;
    use arrow_schema::SchemaRef;

    /// A [`ReadStream`] as Arrow record batches, all of one schema.
    #[derive(Debug)]
    pub struct RecordBatchStream {
        cells: ReadStream,
        options: ArrowOptions,
        /// Made for the first batch.
        converter: Option<ArrowConverter>,
        /// What is left of the last batch of cells.
        pieces: Option<Pieces>,
    }

    impl ReadStream {
        /// The batches as Arrow record batches; see [`crate::arrow`] for the types.
        #[must_use]
        pub fn record_batches(mut self, options: ArrowOptions) -> RecordBatchStream {
            self.words = options.views;
            RecordBatchStream {
                cells: self,
                options,
                converter: None,
                pieces: None,
            }
        }
    }

    impl RecordBatchStream {
        /// Bytes of cells that are here until the last of them is given out, which
        /// [`ArrowOptions::rows`] makes record batches of.
        #[must_use]
        pub fn bytes_held(&self) -> usize {
            self.pieces.as_ref().map_or(0, Pieces::memory_size)
        }

        /// The batches' schema, once the stream has been polled to its first item or its end: a query
        /// that finds nothing has one too.
        ///
        /// # Errors
        /// Those of [`ArrowConverter::new`].
        pub fn schema(&self) -> Result<Option<SchemaRef>> {
            let types = |bound: &BoundOptions| {
                let types = bound.fields.iter().map(|field| &field.column_type);
                ArrowConverter::new(types, self.options).map(|converter| converter.schema())
            };
            match &self.converter {
                Some(converter) => Ok(Some(converter.schema())),
                None => self.cells.bound.get().map(types).transpose(),
            }
        }

        fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<RecordBatch>>> {
            loop {
                // The next rows of the cells that are here.
                if let Some(converter) = &self.converter
                    && let Some(piece) = Pieces::next_of(&mut self.pieces, converter)
                {
                    return Poll::Ready(piece.map(Some));
                }
                let Some(cells) = ready!(self.cells.poll_batch(cx)).transpose()? else {
                    return Poll::Ready(Ok(None));
                };
                let converter = match &mut self.converter {
                    Some(converter) => converter,
                    none => {
                        let types = cells.columns.iter().map(BatchColumn::column_type);
                        none.insert(ArrowConverter::new(types, self.options)?)
                    }
                };
                self.pieces = Some(Pieces::of(cells, converter)?);
            }
        }
    }

    impl Stream for RecordBatchStream {
        type Item = Result<RecordBatch>;

        fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            let batch = ready!(self.poll_read(cx));
            if batch.is_err() {
                // Nothing follows an error, whoever asks.
                self.pieces = None;
                self.cells.state = StreamState::Ended;
            }
            Poll::Ready(batch.transpose())
        }
    }
}

#[cfg(feature = "arrow")]
pub use record_batches::RecordBatchStream;

//! Who drives a read: takes its steps, one after another, and waits for what they need. All stages
//! below are the same for a thread that blocks and for an executor that polls.

#[cfg(feature = "arrow")]
pub(super) mod record_batches;
#[cfg(feature = "stream")]
pub(super) mod stream;

use super::bind;
use super::dense::DenseReader;
use super::fetch::{FetchStrategy, Fetcher, Waiting, block_on};
use super::output::{Batch, Output, copy, own_columns};
use super::sparse::RangeSequence;
use super::split;
use super::{BoundOptions, FillProgress, PartBytes, ReadOptions};
use crate::array::Array;
use crate::cancel::CancelHandle;
use crate::column::{ColumnMut, ColumnSet, ColumnType};
use crate::condition::Meaning;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::space::{Layout, Subarray};
use azulejo_format::fragment::Field;

/// A read of an array, whoever drives it.
#[derive(Debug)]
struct ArrayReader {
    plan: PlannedReader,
    /// Cells that may still come, if not all.
    left: Option<u64>,
}

/// The two ways to plan and to merge.
#[derive(Debug)]
enum PlannedReader {
    Dense(Box<DenseReader>),
    Sparse(Box<RangeSequence>),
    /// An error came: nothing follows it.
    Ended,
}

impl ArrayReader {
    /// Plans; reads nothing but metadata.
    async fn new(array: &Array, options: &BoundOptions, waiting: Waiting) -> Result<Self> {
        let plan = if array.schema().is_dense() {
            let reader = DenseReader::new(array, options, waiting).await?;
            PlannedReader::Dense(Box::new(reader))
        } else {
            let reader = RangeSequence::new(array, options, waiting).await?;
            PlannedReader::Sparse(Box::new(reader))
        };
        Ok(Self {
            plan,
            left: options.limit,
        })
    }

    /// Lets batches be as large as the budget allows.
    fn prefer_few_batches(&mut self) {
        match &mut self.plan {
            PlannedReader::Dense(reader) => reader.prefer_few_batches(),
            PlannedReader::Sparse(reader) => reader.prefer_few_batches(),
            PlannedReader::Ended => {}
        }
    }

    /// What cancels this read alone.
    fn cancel_handle(&self) -> CancelHandle {
        match &self.plan {
            PlannedReader::Dense(reader) => reader.operation().handle(),
            PlannedReader::Sparse(reader) => reader.operation().handle(),
            PlannedReader::Ended => CancelHandle::default(),
        }
    }

    /// The next cells; errors end the query.
    async fn next(&mut self, mut output: Output<'_, '_>) -> Result<Option<Batch>> {
        let most = self.left.unwrap_or(u64::MAX);
        if most == 0 {
            return Ok(None);
        }
        output.limit(most);
        let before = output.cells();
        let batch = match &mut self.plan {
            PlannedReader::Dense(reader) => reader.next(output.again(), most).await,
            PlannedReader::Sparse(reader) => reader.next(output.again(), most).await,
            PlannedReader::Ended => Ok(None),
        };
        let batch = match batch {
            Ok(Some(Batch::Own(cells))) => {
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                let cells = match cells.cell_num > most {
                    true => cells.slice(0..most),
                    false => cells,
                };
                self.took(cells.cell_num);
                Some(Batch::Own(cells))
            }
            Ok(batch) => {
                self.took(output.cells() - before);
                batch
            }
            Err(error) => {
                self.plan = PlannedReader::Ended;
                return Err(error);
            }
        };
        Ok(batch)
    }

    fn took(&mut self, cells: usize) {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(cells as u64);
        }
    }
}

/// A query under way: an iterator of batches, each within the memory budget, in the order asked
/// for.
#[derive(Debug)]
pub struct Reader {
    context: Context,
    options: BoundOptions,
    source: ArrayReader,
    /// Cells that a caller's buffers had no room for, and how many of them are done.
    rest: Option<(ColumnSet, usize)>,
}

impl Reader {
    fn of_bound(array: &Array, options: BoundOptions) -> Result<Self> {
        Ok(Self {
            context: array.context().clone(),
            source: block_on(ArrayReader::new(array, &options, Waiting::Blocks))?,
            options,
            rest: None,
        })
    }

    /// Reads fields as they are stored, in global order, for consolidation. Of a sparse array that
    /// does not allow duplicates [`Field::Timestamps`] brings every version of a cell, the latest
    /// first; [`Field::DeleteTimestamps`] brings deleted cells too. [`Field::DeleteConditions`] are
    /// indices into [`Array::deletes`].
    pub(crate) fn stored(
        array: &Array,
        fields: &[Field],
        subarray: &Subarray,
        memory_budget: u64,
    ) -> Result<Self> {
        let fields = fields
            .iter()
            .map(|field| bind::stored_field(array, *field))
            .collect::<Result<_>>()?;
        let subarray = subarray.bind(array.schema())?;
        let options = BoundOptions {
            subarray,
            fields,
            condition: None,
            meaning: Meaning::TileDb,
            layout: Layout::Global,
            memory_budget,
            limit: None,
            strategy: FetchStrategy::of(array),
            versions: true,
            matching_only: false,
        };
        Self::of_bound(array, options)
    }

    /// The types of the result's columns, in their order.
    pub fn column_types(&self) -> impl ExactSizeIterator<Item = &ColumnType> {
        self.options.fields.iter().map(|field| &field.column_type)
    }

    /// Cancels this read and no other, from any thread: its next step is
    /// [`Error::Cancelled`]. A request that is under way comes to its end first;
    /// [`Context::cancel_handle`] ends these too.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        self.source.cancel_handle()
    }

    /// All that is left, in one piece. Besides the result it holds what one batch needs.
    pub fn read_all(mut self) -> Result<ColumnSet> {
        self.source.prefer_few_batches();
        let mut batches = Vec::new();
        while let Some(batch) = self.next_batch()? {
            batches.push(batch);
        }
        match batches.len() {
            0 => Ok(self.options.empty()),
            1 => Ok(batches.swap_remove(0)),
            _ => ColumnSet::joined(batches),
        }
    }

    /// Fills the caller's buffers, one for each field asked for, with as many whole cells as fit;
    /// call again for more.
    ///
    /// Errors with [`Error::BufferTooSmall`] if not one cell fits; nothing is lost then.
    pub fn read_into(&mut self, columns: &mut [ColumnMut<'_>]) -> Result<FillProgress> {
        if columns.len() != self.options.fields.len() {
            let (given, wanted) = (columns.len(), self.options.fields.len());
            return Err(Error::InvalidArgument(format!(
                "{given} buffers for {wanted} fields"
            )));
        }
        let mut progress = FillProgress {
            written: vec![PartBytes::default(); columns.len()],
            ..FillProgress::default()
        };
        loop {
            let (batch, done) = match self.rest.take() {
                Some(rest) => rest,
                None => {
                    let output = Output::Caller {
                        room: copy::room_of(&self.options.fields, columns),
                        columns: &mut *columns,
                        progress: &mut progress,
                    };
                    match block_on(self.source.next(output))? {
                        Some(Batch::Own(batch)) => (batch, 0),
                        Some(Batch::Placed) => continue,
                        Some(Batch::NoRoom) => return Ok(progress),
                        None => {
                            progress.complete = true;
                            return Ok(progress);
                        }
                    }
                }
            };
            let copied = copy::copy(&self.context, &batch, done, columns, &mut progress);
            let left = done + copied.cells < batch.cell_num;
            if left {
                self.rest = Some((batch, done + copied.cells));
                return match copied.too_small {
                    Some(error) if progress.cells == 0 => Err(error),
                    _ => Ok(progress),
                };
            }
        }
    }

    /// The next cells that no caller has seen; errors end the query.
    fn next_batch(&mut self) -> Result<Option<ColumnSet>> {
        if let Some((batch, done)) = self.rest.take() {
            return Ok(Some(batch.slice(done..batch.cell_num)));
        }
        let batch = block_on(self.source.next(Output::Own))?;
        batch.map(own_columns).transpose()
    }
}

impl Array {
    /// Starts a read: checks the options and plans, for which it reads metadata alone.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] and [`Error::SchemaMismatch`] for options that do not suit the
    /// array, [`Error::Budget`] if they cannot be read within the memory allowed, and errors of
    /// reading metadata.
    pub fn read(&self, options: ReadOptions) -> Result<Reader> {
        Reader::of_bound(self, options.bind(self)?)
    }

    /// Divides a selection into at most `parts` disjoint ones with about as many stored cells each,
    /// ascending along the dimension that they are cut along. Together they select the same cells.
    ///
    /// There are fewer parts where there are too few tiles, or where tiles overlap so much that
    /// several readers would read most of them more than once. Looks at metadata alone.
    ///
    /// ```
    /// # use azulejo::format::{ArraySchema, Datatype};
    /// # use azulejo::{Config, Context, Subarray};
    /// # let context = Context::new(Config::default(), None)?;
    /// let schema = ArraySchema::dense().dimension("x", 0i32..=99, 10)
    ///     .attribute("a", Datatype::Float64).build()?;
    /// context.array("mem://line").create(schema)?;
    /// let parts = context.array("mem://line").open()?.split(&Subarray::all(), 4)?;
    /// assert_eq!(parts.len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Subarray::bind`], and of reading metadata.
    pub fn split(&self, subarray: &Subarray, parts: usize) -> Result<Vec<Subarray>> {
        let selection = subarray.bind(self.schema())?;
        let fetcher = Fetcher::new(self, FetchStrategy::of(self), Waiting::Blocks, 0);
        block_on(fetcher.metadata(&split::needs(self, &selection, parts)))?;
        split::divide(self, selection, parts)
    }
}

impl Iterator for Reader {
    type Item = Result<ColumnSet>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

//! Who drives a read: takes its steps, one after another, and waits for what they need. All stages
//! below are the same for a thread that blocks and for an executor that polls.

#[cfg(feature = "arrow")]
pub(super) mod record_batches;
#[cfg(feature = "stream")]
pub(super) mod stream;

use super::bind;
use super::budget::WantedBatch;
use super::dense::DenseReader;
use super::fetch::{Fetcher, Waiting, block_on};
use super::output::{Batch, CallerMemory, Output, batch_columns, copy, own_columns};
use super::sparse::RangeSequence;
use super::split;
use super::{BoundOptions, FillProgress, PartBytes, ReadCounts, ReadOptions};
use crate::array::{Array, Reopening};
use crate::cancel::{CancelHandle, Operation};
use crate::column::{BatchColumns, ColumnMut, ColumnSet, ColumnType};
use crate::condition::Meaning;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::space::{Layout, Subarray};
use azulejo_format::fragment::Field;

/// A read of an array, whoever drives it.
#[derive(Debug)]
struct ArrayReader {
    plan: PlannedReader,
    /// The read, which can be cancelled.
    operation: Operation,
    wanted: WantedBatch,
}

/// The two ways to plan and to merge.
#[derive(Debug)]
enum PlannedReader {
    Dense(Box<DenseReader>),
    Sparse(Box<RangeSequence>),
    /// An error came: nothing follows it.
    Ended,
}

impl PlannedReader {
    async fn next(&mut self, output: Output<'_, '_>) -> Result<Option<Batch>> {
        match self {
            Self::Dense(reader) => reader.next(output).await,
            Self::Sparse(reader) => reader.next(output).await,
            Self::Ended => Ok(None),
        }
    }
}

impl ArrayReader {
    /// Plans; reads nothing but metadata.
    async fn new(array: &Array, options: &BoundOptions, waiting: Waiting) -> Result<Self> {
        let operation = array.context().begin();
        let planning = async {
            Ok(if array.schema().is_dense() {
                let reader = DenseReader::new(array, options, waiting).await?;
                PlannedReader::Dense(Box::new(reader))
            } else {
                let reader = RangeSequence::new(array, options, waiting).await?;
                PlannedReader::Sparse(Box::new(reader))
            })
        };
        Ok(Self {
            plan: operation.drives(planning).await?,
            operation,
            wanted: Output::own(options.limit.unwrap_or(u64::MAX)).wanted,
        })
    }

    /// The next cells; errors end the query.
    async fn next(&mut self, caller: Option<CallerMemory<'_, '_>>) -> Result<Option<Batch>> {
        let (wanted, most) = (self.wanted, self.wanted.most);
        if most == 0 {
            return Ok(None);
        }
        let mut output = Output { caller, wanted };
        let before = output.cells();
        let reading = self.plan.next(output.again());
        let batch = self.operation.drives(reading).await;
        let batch = match batch.inspect_err(|_| self.plan = PlannedReader::Ended)? {
            Some(Batch::Own(cells)) if cells.cell_num as u64 > most => {
                Some(Batch::Own(cells.slice(0..most as usize)))
            }
            batch => batch,
        };
        let took = match &batch {
            Some(Batch::Own(cells)) => cells.cell_num,
            _ => output.cells() - before,
        };
        if most < u64::MAX {
            self.wanted.most = most.saturating_sub(took as u64);
        }
        Ok(batch)
    }
}

/// What begins a read, and begins it anew where files are gone that the array had when it was
/// opened: consolidations and vacuums go on beside readers. There is one for as long as nothing was
/// given out.
#[derive(Debug)]
struct Beginning {
    opened: Reopening,
    /// That of all readers: whoever can cancel the first can cancel those that take its place.
    operation: Operation,
}

impl Beginning {
    fn of(array: &Array) -> Self {
        Self {
            opened: Reopening::of(array),
            operation: array.context().begin(),
        }
    }

    /// The read, planned.
    async fn reader(&mut self, options: &BoundOptions, waiting: Waiting) -> Result<ArrayReader> {
        let operation = self.operation.clone();
        let planning = async {
            loop {
                let reader = ArrayReader::new(self.opened.array(), options, waiting).await;
                if let Some(reader) = self.opened.settled(reader, waiting).await {
                    return reader;
                }
            }
        };
        operation.drives(planning).await
    }

    /// The read from its beginning, if an error says that something was gone.
    async fn anew(
        &mut self,
        error: &Error,
        options: &BoundOptions,
        waiting: Waiting,
    ) -> Option<ArrayReader> {
        let operation = self.operation.clone();
        let reopening = self.opened.again(error, waiting);
        if operation.check().is_err() || !operation.drives(reopening).await {
            return None;
        }
        self.reader(options, waiting).await.ok()
    }
}

/// A query under way: an iterator of batches, each within the memory budget, in the order asked
/// for.
#[derive(Debug)]
pub struct Reader {
    context: Context,
    options: BoundOptions,
    source: ArrayReader,
    /// Until cells were given out.
    beginning: Option<Beginning>,
    /// Cells that a caller's buffers had no room for, and how many of them are done.
    rest: Option<(ColumnSet, usize)>,
}

impl Reader {
    /// Whether the read begins anew after an error, because nothing was given out.
    fn begins_anew(&mut self, error: &Error) -> bool {
        let Some(beginning) = &mut self.beginning else {
            return false;
        };
        let anew = block_on(beginning.anew(error, &self.options, Waiting::Blocks));
        let Some(mut reader) = anew else {
            return false;
        };
        reader.wanted = WantedBatch {
            most: reader.wanted.most,
            ..self.source.wanted
        };
        self.source = reader;
        true
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
        let subarray = subarray.bind_to_domain(array.schema())?;
        let options = BoundOptions {
            subarray,
            fields,
            condition: None,
            meaning: Meaning::TileDb,
            layout: Layout::Global,
            memory_budget,
            limit: None,
            versions: true,
            matching_only: false,
            batch_bytes: None,
            counts: ReadCounts::default(),
        };
        Ok(Self {
            context: array.context().clone(),
            source: block_on(ArrayReader::new(array, &options, Waiting::Blocks))?,
            options,
            // What is merged is what was chosen, or nothing.
            beginning: None,
            rest: None,
        })
    }

    /// As [`SparseReader::merged_at_once`](super::sparse::SparseReader::merged_at_once).
    pub(crate) fn merged_at_once(&mut self) -> Result<Option<usize>> {
        let PlannedReader::Sparse(reader) = &mut self.source.plan else {
            return Ok(None);
        };
        block_on(self.source.operation.drives(reader.merged_at_once()))
    }

    /// The types of the result's columns, in their order.
    pub fn column_types(&self) -> impl ExactSizeIterator<Item = &ColumnType> {
        self.options.fields.iter().map(|field| &field.column_type)
    }

    /// Cancels this read and no other, from any thread: its next step, or the one that waits for
    /// an object store, ends with [`Error::Cancelled`].
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        self.source.operation.handle()
    }

    /// All that is left, in one piece. Besides the result it holds what one batch needs.
    pub fn read_all(mut self) -> Result<ColumnSet> {
        self.source.wanted.few_batches = true;
        let mut batches = Vec::new();
        loop {
            match self.step() {
                Ok(Some(batch)) => batches.push(batch.into_cells()?),
                Ok(None) => break,
                // Nothing is given out before the last batch is there.
                Err(error) if self.begins_anew(&error) => batches.clear(),
                Err(error) => return Err(error),
            }
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
    /// Errors with [`Error::BufferTooSmall`] if not one cell fits; nothing is lost then. Any other
    /// error ends the query, and calls behind it are errors too: what came before is not all.
    pub fn read_into(&mut self, columns: &mut [ColumnMut<'_>]) -> Result<FillProgress> {
        if columns.len() != self.options.fields.len() {
            let (given, wanted) = (columns.len(), self.options.fields.len());
            return Err(Error::InvalidArgument(format!(
                "{given} buffers for {wanted} fields"
            )));
        }
        if matches!(self.source.plan, PlannedReader::Ended) {
            return Err(Error::InvalidArgument(
                "an error has ended this read before: begin another one".to_owned(),
            ));
        }
        let mut progress = nothing(columns.len());
        loop {
            let (batch, done) = match self.rest.take() {
                Some(rest) => rest,
                None => {
                    let memory = CallerMemory {
                        room: copy::room_of(&self.options.fields, columns),
                        columns: &mut *columns,
                        progress: &mut progress,
                    };
                    match block_on(self.source.next(Some(memory))) {
                        Err(error) if self.begins_anew(&error) => {
                            progress = nothing(columns.len());
                            continue;
                        }
                        Err(error) => return Err(error),
                        Ok(Some(batch @ Batch::Own(_))) => (own_columns(batch)?, 0),
                        Ok(Some(Batch::Placed)) => continue,
                        Ok(Some(Batch::NoRoom)) => {
                            self.gave_out(&progress);
                            return Ok(progress);
                        }
                        Ok(None) => {
                            self.gave_out(&progress);
                            progress.complete = true;
                            return Ok(progress);
                        }
                    }
                }
            };
            let (copied, too_small) =
                copy::copy(&self.context, &batch, done, columns, &mut progress);
            let done = done + copied;
            if done < batch.cell_num {
                self.gave_out(&progress);
                self.rest = Some((batch, done));
                return match too_small {
                    Some(error) if progress.cells == 0 => Err(error),
                    _ => Ok(progress),
                };
            }
        }
    }

    /// Something reached the caller: the read cannot begin anew any more.
    fn gave_out(&mut self, progress: &FillProgress) {
        if progress.cells > 0 {
            self.beginning = None;
        }
    }

    /// The next cells that no caller has seen; errors end the query.
    fn next_batch(&mut self) -> Result<Option<BatchColumns>> {
        loop {
            match self.step() {
                Err(error) if self.begins_anew(&error) => {}
                batch => {
                    self.beginning = None;
                    return batch;
                }
            }
        }
    }

    /// The next cells, or an error that the read may survive.
    fn step(&mut self) -> Result<Option<BatchColumns>> {
        if let Some((batch, done)) = self.rest.take() {
            return Ok(Some(batch.slice(done..batch.cell_num).into()));
        }
        let batch = block_on(self.source.next(None))?;
        batch.map(batch_columns).transpose()
    }
}

/// What was done before anything was.
fn nothing(fields: usize) -> FillProgress {
    FillProgress {
        written: vec![PartBytes::default(); fields],
        ..FillProgress::default()
    }
}

impl Array {
    /// Starts a read: checks the options and plans, for which it reads metadata alone.
    ///
    /// Where a vacuum beside it removes what the array was opened with, and no time was asked for,
    /// the read begins anew on the array as it is then, by itself, as long as none of its cells were
    /// given out.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] and [`Error::SchemaMismatch`] for options that do not suit the
    /// array, [`Error::Budget`] if they cannot be read within the memory allowed, and errors of
    /// reading metadata.
    pub fn read(&self, options: ReadOptions) -> Result<Reader> {
        let options = options.bind(self)?;
        let mut beginning = Beginning::of(self);
        Ok(Reader {
            context: self.context().clone(),
            source: block_on(beginning.reader(&options, Waiting::Blocks))?,
            options,
            beginning: Some(beginning),
            rest: None,
        })
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
        self.context().begin().runs(|| {
            let mut opened = Reopening::of(self);
            loop {
                let array = opened.array();
                let pool = array.context().buffers().clone();
                let fetcher = Fetcher::new(array, Waiting::Blocks, pool);
                let needs = split::needs(array, &selection, parts);
                let found = block_on(fetcher.metadata(&needs));
                if let Some(found) = block_on(opened.settled(found, Waiting::Blocks)) {
                    found?;
                    return split::divide(opened.array(), selection, parts);
                }
            }
        })
    }
}

impl Iterator for Reader {
    type Item = Result<ColumnSet>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_batch().transpose()?;
        Some(batch.and_then(BatchColumns::into_cells))
    }
}

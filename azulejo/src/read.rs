//! Reading: from a selection to batches of cells.

pub mod aggregate;
mod bind;
mod decode;
mod dense;
mod fetch;
mod gather;
mod output;
mod prefetch;
#[cfg(feature = "arrow")]
mod record_batches;
mod sparse;
mod tile_statistics;

pub use crate::buffer_pool::{BufferPool, PoolBuffer};
pub use crate::column::Tile;
pub use decode::{Cells, TileRequest, load_tiles};
pub use gather::FillCell;
pub(crate) use gather::gather_slabs;
#[cfg(feature = "arrow")]
pub use record_batches::RecordBatches;

use crate::array::Array;
use crate::column::{ColumnMut, ColumnSet, ColumnType};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::space::{Layout, Subarray};
use azulejo_format::condition::Condition;
use azulejo_format::fragment::Field;
use dense::DenseReader;
use sparse::{Batch, SparseReader};

/// Batches take about this much memory, tiles included, unless all cells are wanted in one piece:
/// enough to keep all threads busy, and little enough that the next batch reuses memory which is
/// warm.
const BATCH_BYTES: u64 = 64 << 20;

/// Batches of which a caller's buffers may not take all at once cost about this, where reads are
/// cheap: what does not fit is held until the caller has room again, and what fits is copied while
/// it is in a cache.
const CALLER_BATCH_BYTES: u64 = 16 << 20;

/// What to read.
///
/// ```
/// use azulejo::read::ReadOptions;
/// let options = ReadOptions::new().fields(["a", "b"]).memory_budget(64 << 20);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Which cells.
    pub subarray: Subarray,
    /// Names of attributes and dimensions, in the order of the result's columns; empty: all (dims
    /// then attributes for sparse arrays, attributes for dense ones).
    pub fields: Vec<String>,
    /// Only cells that meet it (dense arrays: others read as fill values).
    pub condition: Option<Condition>,
    /// Order of the result.
    pub layout: Layout,
    /// Bytes that the query may hold; `None`: the context's.
    pub memory_budget: Option<u64>,
    /// Whether cells of a dense array that do not meet the condition, or that nobody wrote, are
    /// left out.
    pub matching_only: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl ReadOptions {
    /// Everything, in row-major order.
    #[must_use]
    pub fn new() -> Self {
        Self {
            subarray: Subarray::all(),
            fields: Vec::new(),
            condition: None,
            layout: Layout::RowMajor,
            memory_budget: None,
            matching_only: false,
        }
    }

    /// Selects cells.
    #[must_use]
    pub fn subarray(mut self, subarray: Subarray) -> Self {
        self.subarray = subarray;
        self
    }

    /// Chooses the columns; those of a sparse array may include `__timestamps`: when each cell was
    /// written, in ms since 1970.
    #[must_use]
    pub fn fields<S: Into<String>>(mut self, fields: impl IntoIterator<Item = S>) -> Self {
        self.fields = fields.into_iter().map(Into::into).collect();
        self
    }

    /// Only cells that meet a condition.
    #[must_use]
    pub fn condition(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }

    /// Leaves out the cells of a dense array that do not meet the condition, or that nobody wrote,
    /// instead of giving fill values: with dimensions among the fields the result says where the
    /// others are. Sparse reads are so always.
    #[must_use]
    pub fn matching_only(mut self) -> Self {
        self.matching_only = true;
        self
    }

    /// The order of the result.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// The bytes that the query may hold.
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = Some(bytes);
        self
    }
}

/// One column of a query, found in the array's latest schema.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundField {
    /// Name, type and shape.
    pub column_type: ColumnType,
    /// Which attribute or dimension of the latest schema it is. Fragments may number attributes
    /// otherwise: look the name up with `Fragment::field`.
    pub field: Field,
    /// What missing cells read as.
    pub fill: FillCell,
}

/// Options checked against an array: the subarray has a selection per dimension (or points) of the
/// right types with `start <= end`; fields exist; the layout suits the array.
#[derive(Debug, Clone)]
pub struct BoundOptions {
    /// Which cells; validated.
    pub subarray: Subarray,
    /// The columns asked for, in order.
    pub fields: Vec<BoundField>,
    /// As given.
    pub condition: Option<Condition>,
    /// Order of the result.
    pub layout: Layout,
    /// Bytes that the query may hold.
    pub memory_budget: u64,
    /// Whether every version of a cell is a result, the latest first.
    pub(crate) versions: bool,
    /// Whether cells of a dense array that do not meet the condition are left out.
    pub(crate) matching_only: bool,
}

/// What one call of [`Reader::read_into`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Cells written to every buffer.
    pub cells: usize,
    /// Bytes written, for each field.
    pub written: Vec<PartBytes>,
    /// Whether the query is done; otherwise call again.
    pub complete: bool,
}

/// Bytes written to the three buffers of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartBytes {
    /// Bytes of values.
    pub data: usize,
    /// Bytes of offsets: 8 a cell.
    pub offsets: usize,
    /// Bytes of validity: 1 a cell.
    pub validity: usize,
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

/// The two ways to plan and to merge.
#[derive(Debug)]
enum ArrayReader {
    Dense(Box<DenseReader>),
    Sparse(Box<SparseReader>),
    /// An error came: nothing follows it.
    Ended,
}

impl Reader {
    fn of_bound(array: &Array, options: BoundOptions) -> Result<Self> {
        let source = if array.schema().is_dense() {
            ArrayReader::Dense(Box::new(DenseReader::new(array, &options)?))
        } else {
            ArrayReader::Sparse(Box::new(SparseReader::new(array, &options)?))
        };
        Ok(Self {
            context: array.context().clone(),
            options,
            source,
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
            layout: Layout::Global,
            memory_budget,
            versions: true,
            matching_only: false,
        };
        Self::of_bound(array, options)
    }

    /// What is read.
    #[must_use]
    pub fn options(&self) -> &BoundOptions {
        &self.options
    }

    /// All that is left, in one piece. Besides the result it holds what one batch needs.
    pub fn read_all(mut self) -> Result<ColumnSet> {
        match &mut self.source {
            ArrayReader::Dense(reader) => reader.prefer_few_batches(),
            ArrayReader::Sparse(reader) => reader.prefer_few_batches(),
            ArrayReader::Ended => {}
        }
        let mut batches = Vec::new();
        while let Some(batch) = self.next_batch()? {
            batches.push(batch);
        }
        match batches.len() {
            0 => Ok(self.options.empty()),
            1 => Ok(batches.swap_remove(0)),
            _ => ColumnSet::concat(&batches),
        }
    }

    /// Fills the caller's buffers, one for each field asked for, with as many whole cells as fit;
    /// call again for more.
    ///
    /// Errors with [`Error::BufferTooSmall`] if not one cell fits; nothing is lost then.
    pub fn read_into(&mut self, columns: &mut [ColumnMut<'_>]) -> Result<Progress> {
        if columns.len() != self.options.fields.len() {
            let (given, wanted) = (columns.len(), self.options.fields.len());
            return Err(Error::InvalidArgument(format!(
                "{given} buffers for {wanted} fields"
            )));
        }
        let mut progress = Progress {
            written: vec![PartBytes::default(); columns.len()],
            ..Progress::default()
        };
        loop {
            if self.rest.is_none()
                && !self.options.matching_only
                && let ArrayReader::Dense(reader) = &mut self.source
                && reader.is_fixed()
            {
                let room = output::copy::room_of(&self.options.fields, columns);
                if reader.is_done() || (room <= progress.cells && progress.cells > 0) {
                    progress.complete = reader.is_done();
                    return Ok(progress);
                }
                if room > progress.cells {
                    if let Err(error) = reader.read_fixed(columns, room, &mut progress) {
                        self.source = ArrayReader::Ended;
                        return Err(error);
                    }
                    continue;
                }
            }
            let (batch, done) = match self.rest.take() {
                Some(rest) => rest,
                None => match self.next_into(columns, &mut progress)? {
                    Some(Batch::Columns(batch)) => (batch, 0),
                    Some(Batch::Placed) => continue,
                    None => {
                        progress.complete = true;
                        return Ok(progress);
                    }
                },
            };
            let copied = output::copy::copy(&self.context, &batch, done, columns, &mut progress);
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

    /// The next cells, in the caller's buffers if these have room for all of them.
    fn next_into(
        &mut self,
        columns: &mut [ColumnMut<'_>],
        progress: &mut Progress,
    ) -> Result<Option<Batch>> {
        let reader = match &mut self.source {
            ArrayReader::Sparse(reader) => reader,
            ArrayReader::Dense(reader) => {
                reader.prefer_small_batches();
                return Ok(self.next_batch()?.map(Batch::Columns));
            }
            ArrayReader::Ended => return Ok(None),
        };
        let room = output::copy::room_of(&self.options.fields, columns);
        let batch = reader.next_into(columns, room, progress);
        if batch.is_err() {
            self.source = ArrayReader::Ended;
        }
        batch
    }

    /// The next cells that no caller has seen; errors end the query.
    fn next_batch(&mut self) -> Result<Option<ColumnSet>> {
        if let Some((batch, done)) = self.rest.take() {
            return Ok(Some(batch.slice(done..batch.cell_num)));
        }
        let batch = match &mut self.source {
            ArrayReader::Dense(reader) if self.options.matching_only => reader.next_matching(),
            ArrayReader::Dense(reader) => reader.next_batch(),
            ArrayReader::Sparse(reader) => reader.next_batch(),
            ArrayReader::Ended => Ok(None),
        };
        if batch.is_err() {
            self.source = ArrayReader::Ended;
        }
        batch
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
}

impl Iterator for Reader {
    type Item = Result<ColumnSet>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

//! Reading: from a selection to batches of cells.

pub mod aggregate;
mod bind;
mod budget;
mod counts;
pub(crate) mod decode;
mod dense;
mod driver;
mod fetch;
mod gather;
pub(crate) mod load;
mod output;
mod parallel;
mod prefetch;
mod sparse;
mod split;
mod stored_tile;
mod tile_statistics;
mod whole_tiles;

pub(crate) use crate::buffer_pool::{BufferPool, PoolBuffer};
pub(crate) use crate::column::Tile;
pub(crate) use bind::FillCell;
pub use counts::ReadCounts;
pub(crate) use decode::{Cells, TileRequest};
pub use driver::Reader;
#[cfg(feature = "arrow")]
pub use driver::record_batches::RecordBatches;
#[cfg(feature = "stream")]
pub use driver::stream::ReadStream;
#[cfg(all(feature = "stream", feature = "arrow"))]
pub use driver::stream::RecordBatchStream;

use crate::column::ColumnType;
use crate::condition::Meaning;
use crate::space::{Layout, Subarray};
use azulejo_format::condition::Condition;
use azulejo_format::fragment::Field;
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
    /// What the condition means where engines differ.
    pub meaning: Meaning,
    /// Order of the result.
    pub layout: Layout,
    /// Bytes that the query may hold; `None`: the context's.
    pub memory_budget: Option<u64>,
    /// Whether cells of a dense array that do not meet the condition, or that nobody wrote, are
    /// left out.
    pub matching_only: bool,
    /// Cells after which the result ends; `None`: all.
    pub limit: Option<u64>,
    /// Bytes that a batch costs, about, where batches are not all wanted at once; `None`: 64 MB.
    pub batch_bytes: Option<u64>,
    /// What counts what the read does, if somebody wants to know.
    pub counts: Option<ReadCounts>,
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
            meaning: Meaning::TileDb,
            layout: Layout::RowMajor,
            memory_budget: None,
            matching_only: false,
            limit: None,
            batch_bytes: None,
            counts: None,
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

    /// Gives the condition the meaning that SQL engines give theirs: see [`Meaning`].
    #[must_use]
    pub fn meaning(mut self, meaning: Meaning) -> Self {
        self.meaning = meaning;
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

    /// Ends the result after so many cells: the first in its order, or any where that does not
    /// matter.
    #[must_use]
    pub fn limit(mut self, cells: u64) -> Self {
        self.limit = Some(cells);
        self
    }

    /// The order of the result.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// About what a batch costs, tiles included: small ones stay in a cache on their way. Of storage
    /// with a high latency batches are as large as without.
    #[must_use]
    pub fn batch_bytes(mut self, bytes: u64) -> Self {
        self.batch_bytes = Some(bytes);
        self
    }

    /// Counts what the read does.
    #[must_use]
    pub fn counted(mut self, counts: &ReadCounts) -> Self {
        self.counts = Some(counts.clone());
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
pub(crate) struct BoundField {
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
pub(crate) struct BoundOptions {
    /// Which cells; validated.
    pub subarray: Subarray,
    /// The columns asked for, in order.
    pub fields: Vec<BoundField>,
    /// As given.
    pub condition: Option<Condition>,
    /// As given.
    pub(crate) meaning: Meaning,
    /// Order of the result.
    pub layout: Layout,
    /// Bytes that the query may hold.
    pub memory_budget: u64,
    /// Cells after which the result ends.
    pub(crate) limit: Option<u64>,
    /// Whether every version of a cell is a result, the latest first.
    pub(crate) versions: bool,
    /// Whether cells of a dense array that do not meet the condition are left out.
    pub(crate) matching_only: bool,
    /// As given.
    pub(crate) batch_bytes: Option<u64>,
    /// What counts what the query does.
    pub(crate) counts: ReadCounts,
}

/// What one call of [`Reader::read_into`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FillProgress {
    /// Cells written to every buffer.
    pub cells: usize,
    /// Bytes written, for each field.
    pub written: Vec<PartBytes>,
    /// Whether the query is done; otherwise call again.
    pub complete: bool,
}

/// Bytes written to the three buffers of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PartBytes {
    /// Bytes of values.
    pub data: usize,
    /// Bytes of offsets: 8 a cell.
    pub offsets: usize,
    /// Bytes of validity: 1 a cell.
    pub validity: usize,
}

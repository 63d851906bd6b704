//! What a writer is told.

use azulejo_format::NdRectangle;

/// The order in which a caller gives cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriteLayout {
    /// Dense: the box's cells with the last dimension varying fastest.
    Row,
    /// Dense: the box's cells with the first dimension varying fastest.
    Col,
    /// The order in which the array stores cells, in as many calls as one likes. Dense: whole space
    /// tiles in tile order, each in cell order. Sparse: cells in the array's order.
    Global,
    /// Sparse: any order; cells are sorted.
    Unordered,
}

/// What to do with cells of equal coordinates in a sparse array that does not allow them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Duplicates {
    /// Refuse the write, naming the cell.
    #[default]
    Refuse,
    /// Keep the first one given and drop the others.
    Dedup,
    /// Do not look: all are written, and readers choose among them.
    Unchecked,
}

/// How to write.
///
/// ```
/// use azulejo::write::{Duplicates, WriteLayout, WriteOptions};
/// let options = WriteOptions::new().layout(WriteLayout::Unordered).duplicates(Duplicates::Dedup).timestamp(7);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The order of the cells; `None`: [`WriteLayout::Row`] for dense arrays,
    /// [`WriteLayout::Unordered`] for sparse ones.
    pub layout: Option<WriteLayout>,
    /// Dense: the box to write; `None`: the current domain, or all of the domain where none is set.
    pub subarray: Option<NdRectangle>,
    /// First and last millisecond since 1970 of the write, which is also the time that the schema
    /// is looked up at; `None`: now, later than every earlier write of this process.
    pub timestamps: Option<(u64, u64)>,
    /// What to do with cells of equal coordinates.
    pub duplicates: Duplicates,
    /// A write whose data files exceed this many bytes becomes several fragments, which then count
    /// at once. A tile is never split, whatever its size. Dense fragments are cut along the slowest
    /// dimension of the tile order, by their size before filters.
    pub max_fragment_size: Option<u64>,
    /// Bytes that a call may hold beside the caller's columns; `None`: the context's. Sorting an
    /// unordered write takes 12 to 28 bytes a cell, up to 90 where a dimension has strings; where
    /// that is more than the budget, cells are sorted in parts of 65,536 cells or more, which takes
    /// longer. Cells of one coordinate are sorted together, however many they are.
    pub memory_budget: Option<u64>,
    /// Fragments are written whole but do not count until
    /// [`commit_fragments`](crate::array::ArrayHandle::commit_fragments) names them. Their cells
    /// may lie beyond the current domain, which can grow before or after that.
    pub uncommitted: bool,
    /// Attributes' var-length cells may end within a value: what libtiledb lets its callers write.
    pub torn_values: bool,
}

impl WriteOptions {
    /// Everything as the array has it: row-major or unordered, now, one fragment.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the order of the cells.
    #[must_use]
    pub fn layout(mut self, layout: WriteLayout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// Sets the box of a dense write.
    #[must_use]
    pub fn subarray(mut self, subarray: NdRectangle) -> Self {
        self.subarray = Some(subarray);
        self
    }

    /// Sets the time of the write, in milliseconds since 1970. Of two writes of one process with
    /// the same time, the later wins.
    #[must_use]
    pub fn timestamp(self, timestamp: u64) -> Self {
        self.timestamps(timestamp, timestamp)
    }

    /// Sets the times that the write covers, in milliseconds since 1970.
    #[must_use]
    pub fn timestamps(mut self, first: u64, last: u64) -> Self {
        self.timestamps = Some((first, last));
        self
    }

    /// Sets what to do with cells of equal coordinates.
    #[must_use]
    pub fn duplicates(mut self, duplicates: Duplicates) -> Self {
        self.duplicates = duplicates;
        self
    }

    /// Sets the size at which a write becomes several fragments.
    #[must_use]
    pub fn max_fragment_size(mut self, bytes: u64) -> Self {
        self.max_fragment_size = Some(bytes);
        self
    }

    /// Sets the bytes that a call may hold.
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = Some(bytes);
        self
    }

    /// Lets attributes' var-length cells end within a value.
    #[must_use]
    pub fn torn_values(mut self) -> Self {
        self.torn_values = true;
        self
    }

    /// Leaves the fragments to be made part of the array later, together with those of others.
    #[must_use]
    pub fn uncommitted(mut self) -> Self {
        self.uncommitted = true;
        self
    }
}

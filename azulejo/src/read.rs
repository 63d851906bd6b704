//! Reading: from a selection to batches of cells.

use crate::array::Array;
use crate::column::{ColumnMut, ColumnSet};
use crate::error::Result;
use crate::space::{Layout, Subarray};
use azulejo_format::condition::Condition;

/// What to read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Which cells.
    pub subarray: Subarray,
    /// Names of attributes and dimensions, in the order of the result's columns; empty: all (dims then attributes for
    /// sparse arrays, attributes for dense ones).
    pub fields: Vec<String>,
    /// Only cells that meet it (dense arrays: others read as fill values).
    pub condition: Option<Condition>,
    /// Order of the result.
    pub layout: Layout,
    /// Bytes that the query may hold; `None`: the context's.
    pub memory_budget: Option<u64>,
}

/// A query under way: an iterator of batches, each within the memory budget, in the order asked for.
#[derive(Debug)]
pub struct Reader {}

//! Reading sparse arrays.

pub(crate) mod keys;

use super::BoundOptions;
use crate::array::Array;
use crate::column::ColumnSet;
use crate::error::{Error, Result};

/// A sparse read under way.
#[derive(Debug)]
pub(crate) struct SparseReader {}

impl SparseReader {
    /// Plans the read of a sparse array; reads nothing but metadata.
    pub(crate) fn new(_array: &Array, _options: &BoundOptions) -> Result<Self> {
        Err(Error::Unsupported("sparse reads are not there yet".into()))
    }

    /// The next cells, at least one; `None` at the end.
    pub(crate) fn next_batch(&mut self) -> Result<Option<ColumnSet>> {
        Ok(None)
    }
}

//! Reading dense arrays.

use super::BoundOptions;
use crate::array::Array;
use crate::column::ColumnSet;
use crate::error::{Error, Result};

/// A dense read under way.
#[derive(Debug)]
pub(crate) struct DenseReader {}

impl DenseReader {
    /// Plans the read of a dense array.
    pub(crate) fn new(_array: &Array, _options: &BoundOptions) -> Result<Self> {
        Err(Error::Unsupported("dense reads are not there yet".into()))
    }

    /// The next cells, in order; `None` at the end.
    pub(crate) fn next_batch(&mut self) -> Result<Option<ColumnSet>> {
        Ok(None)
    }
}

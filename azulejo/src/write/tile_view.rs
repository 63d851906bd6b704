//! The cells of a tile, as they go to a fragment.

use crate::column::FieldView;
use std::ops::Range;

/// The cells of one tile.
#[derive(Debug, Clone)]
pub struct TileView<'a> {
    /// Number of cells. A dense tile has those of a space tile, a sparse one the schema's capacity
    /// but for the last.
    pub cell_num: u64,
    /// One view a field, in the order of [`FragmentSink::fields`](super::FragmentSink::fields).
    pub fields: Vec<FieldView<'a>>,
    /// Dense: which cells were written, ascending and disjoint; the others hold filling and count
    /// in no statistics. `None` if all were.
    pub written: Option<Vec<Range<u64>>>,
}

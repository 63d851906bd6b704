//! A dimension. Page: *Array Schema, Dimension*.

use crate::datatype::{CellValNum, Datatype};
use crate::filter::Pipeline;
use crate::range::Range;

/// One dimension of a domain.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    /// The name; empty for an anonymous dimension.
    pub name: String,
    /// The type of its coordinates.
    pub datatype: Datatype,
    /// 1, or var for strings.
    pub cell_val_num: CellValNum,
    /// Filters of its coordinates; empty means the schema's `coords_filters`.
    pub filters: Pipeline,
    /// The inclusive domain; `None` for string dimensions.
    pub domain: Option<Range>,
    /// The tile extent's bytes, if there is one.
    pub tile_extent: Option<Vec<u8>>,
}

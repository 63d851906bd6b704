//! A dimension label: a small array that maps label values to indices of a dimension.
//!
//! Page: *Array Schema, Dimension Label*.

use super::DataOrder;
use crate::datatype::{CellValNum, Datatype};
use crate::range::Range;

/// One dimension label.
#[derive(Debug, Clone, PartialEq)]
pub struct DimensionLabel {
    /// Index of the dimension it labels.
    pub dimension: u32,
    /// Order of the label values.
    pub order: DataOrder,
    /// The label's name.
    pub name: String,
    /// Whether `uri` is relative to the array.
    pub relative: bool,
    /// Where the label's array lies.
    pub uri: String,
    /// The attribute of that array that holds the label values.
    pub attribute: String,
    /// Type of the label values.
    pub datatype: Datatype,
    /// Values in a label.
    pub cell_val_num: CellValNum,
    /// The label's domain as stored; `None` if empty.
    pub domain: Option<Range>,
    /// Whether the label's array lies outside this array.
    pub external: bool,
}

//! An attribute. Page: *Array Schema, Attribute*.

use crate::datatype::{CellValNum, Datatype};
use crate::filter::Pipeline;

/// Whether an attribute's values are known to be sorted (used by dimension labels).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DataOrder {
    /// No order.
    Unordered = 0,
    /// Increasing along the dimension.
    Increasing = 1,
    /// Decreasing along the dimension.
    Decreasing = 2,
}

/// One attribute of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// The name; empty for an anonymous attribute.
    pub name: String,
    /// The type of its values.
    pub datatype: Datatype,
    /// Values in a cell.
    pub cell_val_num: CellValNum,
    /// Whether cells can be null.
    pub nullable: bool,
    /// Filters of its data.
    pub filters: Pipeline,
    /// What unwritten cells read as: one whole cell (fixed), or any number of values (var).
    pub fill_value: Vec<u8>,
    /// Whether unwritten cells of a nullable attribute are valid.
    pub fill_validity: bool,
    /// The order of the data.
    pub order: DataOrder,
    /// Name of the enumeration that its values index.
    pub enumeration: Option<String>,
}

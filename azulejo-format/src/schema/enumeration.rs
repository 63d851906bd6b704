//! An enumeration: the values that an attribute's integers stand for. Page: *Enumerations*.

use crate::datatype::{CellValNum, Datatype};

/// One enumeration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enumeration {
    /// Its name.
    pub name: String,
    /// File name in `__schema/__enumerations` (stored as the enumeration's path name).
    pub file_name: String,
    /// Type of the values.
    pub datatype: Datatype,
    /// Values in an entry.
    pub cell_val_num: CellValNum,
    /// Whether the order of the entries means something.
    pub ordered: bool,
    /// The values' bytes, one after another.
    pub data: Vec<u8>,
    /// Start of each entry in `data`, for var-length entries; empty otherwise.
    pub offsets: Vec<u64>,
}

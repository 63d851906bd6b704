//! The errors of cells that Arrow does not take.

use crate::column::ColumnType;
use crate::error::Error;

/// Cells of more bytes than Arrow counts.
pub(super) fn too_long(column: &ColumnType) -> Error {
    Error::Unsupported(format!("cells of {} are too long for Arrow", column.name))
}

/// A cell whose bytes are no text.
pub(super) fn no_text(column: &ColumnType, cell: usize) -> Error {
    Error::InvalidArgument(format!(
        "column {}: cell {cell} is not UTF-8; ask for raw values to get its bytes",
        column.name
    ))
}

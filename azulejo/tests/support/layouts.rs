//! The orders in which cells can be read.

use azulejo::space::Layout;

/// All of them.
pub const LAYOUTS: [Layout; 4] = [
    Layout::RowMajor,
    Layout::ColMajor,
    Layout::Global,
    Layout::Unordered,
];

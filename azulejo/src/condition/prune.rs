//! What a tile's statistics say about a condition.

use super::bind::Node;

/// An answer that may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tri {
    /// Every cell meets the condition.
    AllTrue,
    /// No cell meets it.
    AllFalse,
    /// The cells must be looked at.
    Unknown,
}

/// Trusted statistics of one field over one tile.
#[derive(Debug, Clone, Copy, Default)]
pub struct FieldStats<'a> {
    /// Cells in the tile.
    pub cell_num: u64,
    /// Smallest value that is not null (and not NaN), as bytes of the field; `None` if unknown.
    pub min: Option<&'a [u8]>,
    /// Largest value that is not null (and not NaN); `None` if unknown.
    pub max: Option<&'a [u8]>,
    /// Number of null cells; 0 for fields that cannot be null; `None` if unknown.
    pub null_count: Option<u64>,
}

pub(super) fn prune<'a>(_root: &Node, _stats: &dyn Fn(usize) -> Option<FieldStats<'a>>) -> Tri {
    Tri::Unknown
}

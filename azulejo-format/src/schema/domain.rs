//! The domain. Page: *Array Schema, Domain*.

use super::Dimension;

/// The dimensions of an array, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Domain {
    /// The dimensions.
    pub dimensions: Vec<Dimension>,
}

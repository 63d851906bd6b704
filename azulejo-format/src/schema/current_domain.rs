//! The current domain: the part of the domain in use. Page: *Array Schema, Current Domain*.

use crate::range::NdRectangle;

/// The current domain of an array.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CurrentDomain {
    /// None is set: all of the domain counts.
    #[default]
    Empty,
    /// A hyperrectangle, one range a dimension.
    NdRectangle(NdRectangle),
}

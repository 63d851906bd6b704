//! What part of the domain a query selects.

use azulejo_format::Range;

/// What is selected along one dimension.
#[derive(Debug, Clone, PartialEq)]
pub enum DimSelection {
    /// The whole domain (dense: restricted by the current domain; sparse: everything).
    All,
    /// The union of inclusive ranges, in the order given. Dense results repeat what overlapping ranges repeat.
    Ranges(Vec<Range>),
    /// Every `step`-th coordinate of an inclusive range, beginning with its start (integer dimensions).
    Strided {
        /// The range.
        range: Range,
        /// At least 1.
        step: u64,
    },
}

/// A list of full coordinates.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Points {
    /// For each dimension, the coordinate of each point.
    pub coordinates: Vec<PointColumn>,
}

/// The coordinates of all points along one dimension.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PointColumn {
    /// Values, one after another.
    pub data: Vec<u8>,
    /// String dimensions: `points + 1` byte offsets.
    pub offsets: Option<Vec<u64>>,
}

/// The selected part of a domain: a selection per dimension, or a list of points.
#[derive(Debug, Clone, PartialEq)]
pub enum Subarray {
    /// The cross product of what is selected along each dimension; missing dimensions are selected whole.
    Box(Vec<DimSelection>),
    /// Exactly these cells.
    Points(Points),
}

impl Subarray {
    /// Everything.
    #[must_use]
    pub const fn all() -> Self {
        Self::Box(Vec::new())
    }

    /// One inclusive range a dimension.
    pub fn ranges(ranges: impl IntoIterator<Item = Range>) -> Self {
        Self::Box(ranges.into_iter().map(|r| DimSelection::Ranges(vec![r])).collect())
    }
}

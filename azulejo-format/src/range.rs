//! Ranges of one dimension and hyperrectangles: domains, MBRs, non-empty domains, current domains.
//!
//! Values are raw little-endian bytes of the dimension's datatype; for string dimensions they are
//! the strings. Page: *Fragment, MBR*.

use crate::datatype::{Datatype, Native, Physical, dispatch};
use std::cmp::Ordering;

/// An inclusive range of one dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Range {
    /// The lower bound's bytes; empty for a string range without a lower bound.
    pub start: Vec<u8>,
    /// The upper bound's bytes; empty for a string range without an upper bound, where the schema's
    /// domain is meant.
    pub end: Vec<u8>,
}

impl Range {
    /// A range from raw bounds.
    #[must_use]
    pub fn new(start: impl Into<Vec<u8>>, end: impl Into<Vec<u8>>) -> Self {
        Self {
            start: start.into(),
            end: end.into(),
        }
    }

    /// A range of numbers.
    pub fn of<T: Native>(start: T, end: T) -> Self {
        let mut range = Self {
            start: vec![0; T::SIZE],
            end: vec![0; T::SIZE],
        };
        start.write(&mut range.start);
        end.write(&mut range.end);
        range
    }

    /// What holds every real number, NaN too.
    pub(crate) fn of_everything(datatype: Datatype) -> Self {
        match datatype.physical() == Physical::F32 {
            true => Self::of(f32::NEG_INFINITY, f32::NAN),
            false => Self::of(f64::NEG_INFINITY, f64::NAN),
        }
    }

    /// The bounds as numbers of type `T` (the caller knows the datatype).
    pub fn bounds<T: Native>(&self) -> (T, T) {
        (T::read(&self.start), T::read(&self.end))
    }

    /// The range, borrowed.
    #[must_use]
    pub fn as_ref(&self) -> RangeRef<'_> {
        RangeRef {
            start: &self.start,
            end: &self.end,
        }
    }
}

/// A borrowed [`Range`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeRef<'a> {
    /// The lower bound's bytes.
    pub start: &'a [u8],
    /// The upper bound's bytes.
    pub end: &'a [u8],
}

impl RangeRef<'_> {
    /// The range, owned.
    #[must_use]
    pub fn to_owned(self) -> Range {
        Range::new(self.start, self.end)
    }

    /// Whether a bound is no number.
    #[must_use]
    pub fn has_nan(self, datatype: Datatype) -> bool {
        let is_nan = |bytes: &[u8]| {
            dispatch!(datatype.physical(), T => {
                bytes.len() == T::SIZE && T::read(bytes).as_f64().is_nan()
            })
        };
        datatype.is_real() && (is_nan(self.start) || is_nan(self.end))
    }

    /// Whether two ranges of `datatype` share a value.
    #[must_use]
    pub fn overlaps(self, other: RangeRef<'_>, datatype: Datatype) -> bool {
        compare(datatype, self.start, other.end) != Ordering::Greater
            && compare(datatype, other.start, self.end) != Ordering::Greater
    }

    /// Whether `other` lies inside this range.
    #[must_use]
    pub fn contains(self, other: RangeRef<'_>, datatype: Datatype) -> bool {
        compare(datatype, self.start, other.start) != Ordering::Greater
            && compare(datatype, other.end, self.end) != Ordering::Greater
    }
}

/// One range a dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NdRectangle {
    /// The ranges, in the order of the dimensions.
    pub ranges: Vec<Range>,
}

/// Compares two coordinate values of `datatype`: strings byte by byte, numbers by value.
#[must_use]
pub fn compare(datatype: Datatype, a: &[u8], b: &[u8]) -> Ordering {
    fn numbers<T: Native>(a: &[u8], b: &[u8]) -> Ordering {
        T::read(a).total_order(&T::read(b))
    }
    if datatype.is_string() {
        return a.cmp(b);
    }
    dispatch!(datatype.physical(), T => numbers::<T>(a, b))
}

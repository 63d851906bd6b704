//! Bisection of ranges of whole numbers.

use std::convert::Infallible;
use std::ops::Range;

/// The first number of a range that `holds` is true of, where it is true of all behind that one
/// too; the range's end if there is none.
pub(crate) fn first_where(range: Range<u64>, holds: impl Fn(u64) -> bool) -> u64 {
    let Ok(first) = try_first_where(range, |n| Ok::<_, Infallible>(holds(n)));
    first
}

/// As [`first_where`], of what may fail to be told.
pub(crate) fn try_first_where<E>(
    range: Range<u64>,
    holds: impl Fn(u64) -> Result<bool, E>,
) -> Result<u64, E> {
    let (mut low, mut high) = (range.start, range.end.max(range.start));
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_where_it_begins_to_hold() {
        for end in 0..20u64 {
            for at in 3..=20 {
                assert_eq!(first_where(3..end, |n| n >= at), at.min(end.max(3)));
            }
        }
        assert_eq!(first_where(0..u64::MAX, |n| n > u64::MAX - 3), u64::MAX - 2);
    }
}

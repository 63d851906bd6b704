//! Finding a range of ordered labels by halving. Pure but for the labels that it asks for.

use crate::error::Result;
use azulejo_format::Range;
use std::cmp::Ordering;

/// The order of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Increasing,
    Decreasing,
}

impl Direction {
    /// A comparison of two labels as seen along the dimension.
    pub(super) fn of(self, order: Ordering) -> Ordering {
        match self {
            Self::Increasing => order,
            Self::Decreasing => order.reverse(),
        }
    }
}

/// First and last offset to search.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchBounds {
    pub(super) low: u64,
    pub(super) high: u64,
}

/// The first and the last offset whose labels lie in `range`; `None` if none do. Asks for the
/// labels of about `2 * log2(offsets)` offsets.
pub(super) fn find(
    bounds: SearchBounds,
    direction: Direction,
    range: &Range,
    compare: &dyn Fn(&[u8], &[u8]) -> Ordering,
    value: &mut dyn FnMut(u64) -> Result<Vec<u8>>,
) -> Result<Option<(u64, u64)>> {
    let (near, far) = match direction {
        Direction::Increasing => (&range.start, &range.end),
        Direction::Decreasing => (&range.end, &range.start),
    };
    let mut count_before = |bound: &[u8], with_equal: bool| -> Result<u128> {
        // One past the highest offset may be 2^64.
        let (mut left, mut right) = (u128::from(bounds.low), u128::from(bounds.high) + 1);
        while left < right {
            let middle = left + (right - left) / 2;
            let label = value(u64::try_from(middle).unwrap_or(bounds.high))?;
            let before = match direction.of(compare(&label, bound)) {
                Ordering::Less => true,
                Ordering::Equal => with_equal,
                Ordering::Greater => false,
            };
            if before {
                left = middle + 1;
            } else {
                right = middle;
            }
        }
        Ok(left)
    };
    let first = count_before(near, false)?;
    let end = count_before(far, true)?;
    let span = (first < end).then(|| (u64::try_from(first).ok(), u64::try_from(end - 1).ok()));
    Ok(span.and_then(|(first, last)| first.zip(last)))
}

/// The offsets after which a fragment ends or another begins, ascending, given the spans of all
/// fragments in ascending order; `None` if the spans leave a gap.
pub(super) fn seams(spans: &[(u64, u64)]) -> Option<Vec<u64>> {
    let mut reached: Option<u64> = None;
    for (start, end) in spans {
        if reached.is_some_and(|last| last.checked_add(1).is_some_and(|next| next < *start)) {
            return None;
        }
        reached = reached.max(Some(*end));
    }
    let (Some((first, _)), Some(last)) = (spans.first(), reached) else {
        return Some(Vec::new());
    };
    let begins = spans
        .iter()
        .filter(|(start, _)| start > first)
        .map(|(start, _)| start - 1);
    let ends = spans.iter().map(|(_, end)| *end).filter(|end| *end < last);
    let mut seams: Vec<u64> = begins.chain(ends).collect();
    seams.sort_unstable();
    Some(seams)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(labels: &[i32], direction: Direction, from: i32, to: i32) -> Option<(u64, u64)> {
        let compare = |a: &[u8], b: &[u8]| {
            i32::from_le_bytes(a.try_into().unwrap())
                .cmp(&i32::from_le_bytes(b.try_into().unwrap()))
        };
        let bounds = SearchBounds {
            low: 5,
            high: 4 + labels.len() as u64,
        };
        let mut asked = 0;
        let found = find(
            bounds,
            direction,
            &Range::of(from, to),
            &compare,
            &mut |offset| {
                asked += 1;
                Ok(labels[usize::try_from(offset).unwrap() - 5]
                    .to_le_bytes()
                    .to_vec())
            },
        );
        assert!(
            asked <= 2 * (labels.len().ilog2() + 1),
            "{asked} labels asked for"
        );
        found.unwrap()
    }

    #[test]
    fn every_range_finds_what_looking_at_all_labels_finds() {
        for len in 1..12i32 {
            for shape in 0..3 {
                // Without equals, with equals, all equal.
                let mut labels: Vec<i32> = (0..len).map(|i| [2 * i, i / 2 * 2, 4][shape]).collect();
                for direction in [Direction::Increasing, Direction::Decreasing] {
                    for from in -1..2 * len + 1 {
                        for to in from..2 * len + 1 {
                            let inside = |label: &i32| (from..=to).contains(label);
                            let first = labels.iter().position(inside);
                            let last = labels.iter().rposition(inside);
                            let expected =
                                first.zip(last).map(|(a, b)| (a as u64 + 5, b as u64 + 5));
                            let found = search(&labels, direction, from, to);
                            assert_eq!(found, expected, "{labels:?} {from}..={to}");
                        }
                    }
                    labels.reverse();
                }
            }
        }
    }

    #[test]
    fn a_search_spans_the_largest_domain() {
        let bounds = SearchBounds {
            low: 0,
            high: u64::MAX,
        };
        let compare = |a: &[u8], b: &[u8]| {
            u64::from_le_bytes(a.try_into().unwrap())
                .cmp(&u64::from_le_bytes(b.try_into().unwrap()))
        };
        let mut value = |offset: u64| Ok(offset.to_le_bytes().to_vec());
        for (from, to) in [(0, 0), (7, u64::MAX), (u64::MAX, u64::MAX), (0, u64::MAX)] {
            let found = find(
                bounds,
                Direction::Increasing,
                &Range::of(from, to),
                &compare,
                &mut value,
            )
            .unwrap();
            assert_eq!(found, Some((from, to)));
        }
    }

    #[test]
    fn seams_lie_where_fragments_end_or_begin() {
        assert_eq!(seams(&[]), Some(vec![]));
        assert_eq!(seams(&[(3, 9)]), Some(vec![]));
        assert_eq!(seams(&[(0, 4), (5, 9)]), Some(vec![4, 4]));
        assert_eq!(seams(&[(0, 9), (3, 5)]), Some(vec![2, 5]));
        assert_eq!(seams(&[(0, 5), (0, 9), (4, 9)]), Some(vec![3, 5]));
        assert_eq!(seams(&[(0, 3), (5, 9)]), None);
        assert_eq!(seams(&[(0, u64::MAX), (7, u64::MAX)]), Some(vec![6]));
    }
}

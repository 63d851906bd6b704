//! Which byte ranges of one object are read together. Pure.

use std::ops::Range;

/// A read that serves several requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CoalescedRead {
    /// The bytes to read.
    pub range: Range<u64>,
    /// Indices of the requests that lie inside, by their start.
    pub members: Vec<usize>,
}

/// Joins ranges that overlap or lie at most `gap` bytes apart, as long as the joined read has at
/// most `max` bytes. A range longer than that is read alone, as it is. Empty ranges cost no read
/// and are in no result.
pub(super) fn coalesce(ranges: &[Range<u64>], gap: u64, max: u64) -> Vec<CoalescedRead> {
    let mut order: Vec<usize> = (0..ranges.len())
        .filter(|&i| !ranges[i].is_empty())
        .collect();
    order.sort_unstable_by_key(|&i| (ranges[i].start, ranges[i].end));
    let mut merged: Vec<CoalescedRead> = Vec::new();
    for i in order {
        let range = ranges[i].clone();
        if let Some(last) = merged.last_mut() {
            let end = last.range.end.max(range.end);
            let near = range.start <= last.range.end.saturating_add(gap);
            if near && (end - last.range.start <= max || end == last.range.end) {
                last.range.end = end;
                last.members.push(i);
                continue;
            }
        }
        merged.push(CoalescedRead {
            range,
            members: vec![i],
        });
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn merged(ranges: &[Range<u64>], gap: u64, max: u64) -> Vec<(Range<u64>, Vec<usize>)> {
        coalesce(ranges, gap, max)
            .into_iter()
            .map(|m| (m.range, m.members))
            .collect()
    }

    #[test]
    fn near_ranges_are_one_read() {
        assert_eq!(
            merged(&[10..20, 0..5, 5..8], 2, 100),
            [(0..20, vec![1, 2, 0])]
        );
        assert_eq!(
            merged(&[10..20, 0..5, 5..8], 1, 100),
            [(0..8, vec![1, 2]), (10..20, vec![0])]
        );
        assert_eq!(merged(&[0..10, 2..4], 0, 1), [(0..10, vec![0, 1])]);
        assert_eq!(
            merged(&[0..10, 10..20], 0, 15),
            [(0..10, vec![0]), (10..20, vec![1])]
        );
        assert_eq!(merged(&[3..3, 0..0], 9, 9), []);
        assert_eq!(
            merged(&[0..1, u64::MAX - 1..u64::MAX], u64::MAX, u64::MAX),
            [(0..u64::MAX, vec![0, 1])]
        );
    }

    proptest! {
        #[test]
        fn every_request_lies_in_one_read_and_limits_hold(
            ranges in proptest::collection::vec((0u64..200, 0u64..30).prop_map(|(s, n)| s..s + n), 0..30),
            gap in 0u64..10,
            max in 1u64..60,
        ) {
            let reads = coalesce(&ranges, gap, max);
            for (i, range) in ranges.iter().enumerate() {
                let holders: Vec<_> = reads.iter().filter(|m| m.members.contains(&i)).collect();
                prop_assert_eq!(holders.len(), usize::from(!range.is_empty()));
                for m in holders {
                    prop_assert!(m.range.start <= range.start && range.end <= m.range.end);
                    let longest = m.members.iter().map(|&i| ranges[i].end - ranges[i].start).max().unwrap_or(0);
                    prop_assert!(m.range.end - m.range.start <= max.max(longest));
                }
            }
        }
    }
}

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

/// The same, in as many reads or fewer, which are about equally long where several follow one
/// another: those that travel side by side end together then.
#[cfg(feature = "object-store")]
pub(super) fn coalesce_evenly(ranges: &[Range<u64>], gap: u64, max: u64) -> Vec<CoalescedRead> {
    let reads = coalesce(ranges, gap, max);
    let is_near =
        |a: &CoalescedRead, b: &CoalescedRead| b.range.start <= a.range.end.saturating_add(gap);
    let mut even = Vec::with_capacity(reads.len());
    for chain in reads.chunk_by(is_near) {
        even.extend(evened(ranges, gap, max, chain));
    }
    even
}

/// Reads that follow one another, cut at other ends of their ranges.
#[cfg(feature = "object-store")]
fn evened(
    ranges: &[Range<u64>],
    gap: u64,
    max: u64,
    chain: &[CoalescedRead],
) -> Vec<CoalescedRead> {
    let mut best = chain.to_vec();
    let len = |read: &CoalescedRead| read.range.end - read.range.start;
    let (Some(longest), [_, _, ..]) = (chain.iter().map(len).max(), chain) else {
        return best;
    };
    let members: Vec<usize> = chain.iter().flat_map(|read| read.members.clone()).collect();
    let wanted: Vec<Range<u64>> = members.iter().map(|&i| ranges[i].clone()).collect();
    let sum = chain.iter().map(len).fold(0, u64::saturating_add);
    // So long that no read has to be longer; closer than this it does not matter.
    let mut high = longest.min(max);
    let mut low = high.min(sum / chain.len() as u64);
    while high - low > longest / 64 {
        let middle = low + (high - low) / 2;
        let reads = coalesce(&wanted, gap, middle);
        if reads.len() <= chain.len() {
            (best, high) = (reads, middle);
            for member in best.iter_mut().flat_map(|read| &mut read.members) {
                *member = members[*member];
            }
        } else {
            low = middle;
        }
        if high - low <= 1 {
            break;
        }
    }
    best
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

    #[cfg(feature = "object-store")]
    #[test]
    fn reads_side_by_side_are_equally_long() {
        let tiles: Vec<Range<u64>> = (0..67).map(|i| i * 500..(i + 1) * 500).collect();
        let lens = |reads: Vec<CoalescedRead>| -> Vec<u64> {
            reads
                .iter()
                .map(|read| read.range.end - read.range.start)
                .collect()
        };
        assert_eq!(lens(coalesce(&tiles, 0, 16_500)), [16_500, 16_500, 500]);
        let even = lens(coalesce_evenly(&tiles, 0, 16_500));
        assert_eq!(even.iter().sum::<u64>(), 67 * 500);
        assert!(even.len() == 3 && even.iter().all(|len| (10_500..=11_500).contains(len)));
        // What lies apart has no part in it.
        let apart = [0..500, 500..1_000, 1_000..1_500, 9_000..9_100];
        assert_eq!(lens(coalesce_evenly(&apart, 0, 1_000)).len(), 3);
        assert_eq!(
            coalesce_evenly(&apart, 0, 2_000),
            coalesce(&apart, 0, 2_000)
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
            #[cfg(feature = "object-store")]
            let even = coalesce_evenly(&ranges, gap, max);
            #[cfg(not(feature = "object-store"))]
            let even = reads.clone();
            prop_assert!(even.len() <= reads.len());
            for (reads, (i, range)) in [&reads, &even].into_iter().flat_map(|reads| {
                std::iter::repeat(reads).zip(ranges.iter().enumerate())
            }) {
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

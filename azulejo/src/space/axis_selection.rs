//! What is selected along one integer dimension, in offsets from the start of its domain.

use crate::error::{Error, Result};
use crate::space::DimSelection;
use azulejo_format::Range;
use azulejo_format::schema::{Dimension, TileAxis};

/// Evenly spaced offsets, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// First offset.
    pub start: u64,
    /// Distance between neighbours; at least 1.
    pub step: u64,
    /// Number of offsets; at least 1.
    pub count: u64,
    /// Position of the first among all selected.
    pub position: u64,
}

impl Run {
    /// The last offset.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.start + (self.count - 1) * self.step
    }
}

/// The part of a run that lies in one tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The tile's coordinate.
    pub tile: u64,
    /// First offset, counted from the start of the domain.
    pub start: u64,
    /// Distance between neighbours; at least 1.
    pub step: u64,
    /// Number of offsets; at least 1.
    pub count: u64,
    /// Position of the first, counted from the start of the positions asked for.
    pub position: u64,
}

/// The offsets selected along one dimension, in the order of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisSelection {
    runs: Vec<Run>,
    len: u64,
}

impl AxisSelection {
    /// What `selection` means along `dimension`. Unless everything is selected, all of it must lie
    /// in the domain (and in the current domain, `within`, if there is one).
    pub fn resolve(
        dimension: &Dimension,
        axis: &TileAxis,
        selection: &DimSelection,
        within: Option<&Range>,
    ) -> Result<Self> {
        let outside = |range: &Range| {
            Error::InvalidArgument(format!(
                "a range of dimension {:?} is empty or leaves its domain: {range:?}",
                dimension.name
            ))
        };
        let limits = match within {
            Some(range) => axis.offsets_of(range).ok_or_else(|| outside(range))?,
            None => (0, axis.last_offset()),
        };
        let bounds = |range: &Range| {
            let (first, last) = axis
                .offset_of(&range.start)
                .zip(axis.offset_of(&range.end))?;
            (first <= last && first >= limits.0 && last <= limits.1).then_some((first, last))
        };
        let mut selected = Self {
            runs: Vec::new(),
            len: 0,
        };
        match selection {
            DimSelection::All => selected.push(limits.0, limits.1, 1)?,
            DimSelection::Ranges(ranges) => {
                for range in ranges {
                    let (first, last) = bounds(range).ok_or_else(|| outside(range))?;
                    selected.push(first, last, 1)?;
                }
            }
            DimSelection::Strided { range, step } => {
                let (first, last) = bounds(range).ok_or_else(|| outside(range))?;
                selected.push(first, last, (*step).max(1))?;
            }
        }
        Ok(selected)
    }

    /// Those offsets that lie in some spans (first and last offset each), which ascend and are apart.
    ///
    /// For example every third offset from 0 to 30 within 2 to 4 and 20 to 26: 3, and 21 and 24.
    pub fn within(&self, spans: &[(u64, u64)]) -> Result<Self> {
        let mut selected = Self {
            runs: Vec::new(),
            len: 0,
        };
        for run in &self.runs {
            let before = spans.partition_point(|(_, high)| *high < run.start);
            let behind = spans.get(before..).unwrap_or_default();
            for &(low, high) in behind.iter().take_while(|(low, _)| *low <= run.last()) {
                let skipped = low.saturating_sub(run.start).div_ceil(run.step);
                let first = skipped.checked_mul(run.step);
                let first = first.and_then(|distance| run.start.checked_add(distance));
                let last = high.min(run.last());
                if let Some(first) = first.filter(|first| *first <= last) {
                    selected.push(first, last, run.step)?;
                }
            }
        }
        Ok(selected)
    }

    /// All offsets of a domain, so that positions are offsets.
    pub fn whole(axis: &TileAxis) -> Result<Self> {
        let mut selected = Self {
            runs: Vec::new(),
            len: 0,
        };
        selected.push(0, axis.last_offset(), 1)?;
        Ok(selected)
    }

    /// Appends the offsets `first..=last` that are `step` apart. Ranges that continue the last run
    /// become part of it: one that begins where it ends, and single offsets at even distances.
    fn push(&mut self, first: u64, last: u64, step: u64) -> Result<()> {
        let too_many =
            || Error::InvalidArgument("2^64 cells or more are selected along a dimension".into());
        let count = ((last - first) / step)
            .checked_add(1)
            .ok_or_else(too_many)?;
        let position = self.len;
        self.len = self.len.checked_add(count).ok_or_else(too_many)?;
        match self.runs.last_mut() {
            Some(run) if (run.step, step) == (1, 1) && run.last().checked_add(1) == Some(first) => {
                run.count += count;
            }
            Some(run) if (run.count, count) == (1, 1) && run.start < first => {
                (run.step, run.count) = (first - run.start, 2);
            }
            Some(run) if count == 1 && run.last().checked_add(run.step) == Some(first) => {
                run.count += 1;
            }
            _ => self.runs.push(Run {
                start: first,
                step,
                count,
                position,
            }),
        }
        Ok(())
    }

    /// Number of offsets, repetitions counted.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// The runs, in the order of the result.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The smallest and the largest offset; `None` if nothing is selected.
    #[must_use]
    pub fn bounds(&self) -> Option<(u64, u64)> {
        let first = self.runs.iter().map(|r| r.start).min()?;
        Some((first, self.runs.iter().map(Run::last).max()?))
    }

    /// Whether offsets never repeat nor go back.
    #[must_use]
    pub fn is_ascending(&self) -> bool {
        self.runs
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if a.last() < b.start))
    }

    /// The offset at a position; 0 behind the end.
    #[must_use]
    pub fn offset_at(&self, position: u64) -> u64 {
        let run = self.runs.partition_point(|r| r.position <= position);
        match run.checked_sub(1).and_then(|i| self.runs.get(i)) {
            Some(run) => run.start + (position - run.position).min(run.count - 1) * run.step,
            None => 0,
        }
    }

    /// Calls `each` with every position (within `from..to`, counted from `from`) at which `offset`
    /// is selected.
    pub fn positions_of(&self, offset: u64, from: u64, to: u64, mut each: impl FnMut(u64)) {
        let first = self
            .runs
            .partition_point(|r| r.position + (r.count - 1) < from);
        for run in self.runs.get(first..).unwrap_or(&[]) {
            if run.position >= to {
                break;
            }
            let Some(distance) = offset.checked_sub(run.start) else {
                continue;
            };
            if distance.is_multiple_of(run.step) && distance / run.step < run.count {
                let position = run.position + distance / run.step;
                if (from..to).contains(&position) {
                    each(position - from);
                }
            }
        }
    }

    /// The positions `from..to`, cut where tiles of `extent` end, sorted by tile; several spans of
    /// one tile keep the order of the result.
    #[must_use]
    pub fn spans(&self, from: u64, to: u64, extent: u64) -> Vec<Span> {
        let mut spans = Vec::new();
        let first = self
            .runs
            .partition_point(|r| r.position + (r.count - 1) < from);
        for run in self.runs.get(first..).unwrap_or(&[]) {
            if run.position >= to {
                break;
            }
            let end = (to - run.position).min(run.count);
            let mut i = from.saturating_sub(run.position);
            while i < end {
                let start = run.start + i * run.step;
                let tile = start / extent;
                let tile_last = tile.saturating_mul(extent).saturating_add(extent - 1);
                let count = ((tile_last - start) / run.step + 1).min(end - i);
                spans.push(Span {
                    tile,
                    start,
                    step: run.step,
                    count,
                    position: run.position + i - from,
                });
                i += count;
            }
        }
        if !spans.is_sorted_by_key(|s| s.tile) {
            spans.sort_by_key(|s| s.tile);
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::tile_grid::tests::dimension;
    use azulejo_format::Datatype;
    use proptest::prelude::*;

    fn resolve(selection: &DimSelection) -> Result<AxisSelection> {
        let d = dimension(Datatype::Int8, -100i8, 100, 7);
        AxisSelection::resolve(&d, &d.axis().unwrap(), selection, None)
    }

    #[test]
    fn neighbouring_ranges_become_one_run() {
        let ranges = vec![Range::of(-5i8, 3), Range::of(4i8, 9), Range::of(-5i8, -5)];
        let selected = resolve(&DimSelection::Ranges(ranges)).unwrap();
        assert_eq!(selected.runs().len(), 2);
        assert_eq!((selected.len(), selected.bounds()), (16, Some((95, 109))));
        assert!(!selected.is_ascending());
        assert!(resolve(&DimSelection::Ranges(vec![Range::of(5i8, 4)])).is_err());
        assert!(resolve(&DimSelection::Ranges(vec![Range::of(5i8, 101)])).is_err());
        assert_eq!(resolve(&DimSelection::All).unwrap().len(), 201);
        assert_eq!(resolve(&DimSelection::Ranges(vec![])).unwrap().len(), 0);
    }

    #[test]
    fn single_offsets_at_even_distances_become_one_run() {
        let single = |at: i8| Range::of(at, at);
        let ranges = [0, 10, 20, 30, 31, 32, 5, 4].map(single).to_vec();
        let selected = resolve(&DimSelection::Ranges(ranges)).unwrap();
        let runs: Vec<_> = selected
            .runs()
            .iter()
            .map(|r| (r.start, r.step, r.count, r.position))
            .collect();
        assert_eq!(
            runs,
            [
                (100, 10, 4, 0),
                (131, 1, 2, 4),
                (105, 1, 1, 6),
                (104, 1, 1, 7)
            ]
        );
    }

    #[test]
    fn the_current_domain_bounds_what_is_selected() {
        let d = dimension(Datatype::Int8, -100i8, 100, 7);
        let axis = d.axis().unwrap();
        let within = Range::of(-10i8, 10);
        let all = AxisSelection::resolve(&d, &axis, &DimSelection::All, Some(&within)).unwrap();
        assert_eq!((all.len(), all.bounds()), (21, Some((90, 110))));
        let beyond = DimSelection::Ranges(vec![Range::of(0i8, 11)]);
        assert!(AxisSelection::resolve(&d, &axis, &beyond, Some(&within)).is_err());
    }

    #[test]
    fn the_widest_domains_work() {
        let d = dimension(Datatype::UInt64, 0u64, u64::MAX, 1 << 40);
        let axis = d.axis().unwrap();
        assert!(AxisSelection::resolve(&d, &axis, &DimSelection::All, None).is_err());
        let range = Range::of(u64::MAX - 10, u64::MAX);
        let selected =
            AxisSelection::resolve(&d, &axis, &DimSelection::Strided { range, step: 4 }, None)
                .unwrap();
        assert_eq!(
            selected.spans(0, 3, 1 << 40),
            [Span {
                tile: (1 << 24) - 1,
                start: u64::MAX - 10,
                step: 4,
                count: 3,
                position: 0
            }]
        );
    }

    fn selections() -> impl Strategy<Value = DimSelection> {
        let range = (-100i8..=100, -100i8..=100).prop_map(|(a, b)| Range::of(a.min(b), a.max(b)));
        prop_oneof![
            Just(DimSelection::All),
            proptest::collection::vec(range.clone(), 0..5).prop_map(DimSelection::Ranges),
            proptest::collection::vec((-3i8..4, 0i8..2), 0..12).prop_map(|cells| {
                DimSelection::Ranges(
                    cells
                        .into_iter()
                        .map(|(at, more)| Range::of(at * 3, at * 3 + more))
                        .collect(),
                )
            }),
            (range, 1u64..30).prop_map(|(range, step)| DimSelection::Strided { range, step }),
        ]
    }

    #[test]
    fn spans_within_the_widest_domain() {
        let d = dimension(Datatype::UInt64, 0u64, u64::MAX, 1 << 40);
        let range = Range::of(0u64, u64::MAX);
        let strided = DimSelection::Strided { range, step: 10 };
        let all = AxisSelection::resolve(&d, &d.axis().unwrap(), &strided, None).unwrap();
        let within = all.within(&[(5, 25), (u64::MAX - 12, u64::MAX)]).unwrap();
        let offsets: Vec<u64> = (0..within.len()).map(|at| within.offset_at(at)).collect();
        assert_eq!(offsets, [10, 20, u64::MAX - 5]);
        assert_eq!(all.within(&[]).unwrap().len(), 0);
    }

    proptest! {
        #[test]
        fn what_lies_within_spans_keeps_its_order(
            selection in selections(),
            gaps in proptest::collection::vec((2u64..20, 0u64..20), 0..6),
        ) {
            let selected = resolve(&selection).unwrap();
            let spans: Vec<(u64, u64)> = gaps.iter().scan(0, |at, (gap, len)| {
                let span = (*at + gap, *at + gap + len);
                *at = span.1;
                Some(span)
            }).collect();
            let within = selected.within(&spans).unwrap();
            let offsets = |of: &AxisSelection| (0..of.len()).map(|at| of.offset_at(at)).collect::<Vec<u64>>();
            let mut expected = offsets(&selected);
            expected.retain(|offset| spans.iter().any(|(low, high)| low <= offset && offset <= high));
            prop_assert_eq!(offsets(&within), expected);
        }

        #[test]
        fn spans_cover_every_position_once(selection in selections(), a in 0u64..500, b in 0u64..500, extent in 1u64..40) {
            let selected = resolve(&selection).unwrap();
            let naive: Vec<u64> = match &selection {
                DimSelection::All => (0..=200).collect(),
                DimSelection::Ranges(ranges) => ranges.iter().flat_map(|r| {
                    let (lo, hi) = r.bounds::<i8>();
                    (lo..=hi).map(|c| (i64::from(c) + 100) as u64)
                }).collect(),
                DimSelection::Strided { range, step } => {
                    let (lo, hi) = range.bounds::<i8>();
                    (lo..=hi).step_by(*step as usize).map(|c| (i64::from(c) + 100) as u64).collect()
                }
            };
            prop_assert_eq!(selected.len(), naive.len() as u64);
            let (from, to) = (a.min(b).min(selected.len()), a.max(b).min(selected.len()));
            let mut seen = vec![None; (to - from) as usize];
            let spans = selected.spans(from, to, extent);
            prop_assert!(spans.is_sorted_by_key(|s| s.tile));
            for span in spans {
                for i in 0..span.count {
                    let offset = span.start + i * span.step;
                    prop_assert_eq!(offset / extent, span.tile);
                    prop_assert_eq!(seen[(span.position + i) as usize].replace(offset), None);
                }
            }
            for (position, offset) in seen.iter().enumerate() {
                let wanted = naive[from as usize + position];
                prop_assert_eq!(*offset, Some(wanted));
                prop_assert_eq!(selected.offset_at(from + position as u64), wanted);
            }
            for offset in 0..=200 {
                let mut positions = Vec::new();
                selected.positions_of(offset, from, to, |p| positions.push(p));
                let wanted: Vec<u64> = (from..to).filter(|&p| naive[p as usize] == offset).map(|p| p - from).collect();
                prop_assert_eq!(positions, wanted);
            }
        }
    }
}

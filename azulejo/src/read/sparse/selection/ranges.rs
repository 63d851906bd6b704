//! Ranges along one dimension.

use crate::column::FieldView;
use crate::space::DimSelection;
use crate::space::keys::RowSelection;
use crate::space::ordinal::Ordinal;
use azulejo_format::datatype::{Datatype, Physical};
use azulejo_format::range::RangeRef;
use azulejo_format::{Range, dispatch};

/// What is selected along one dimension.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DimensionFilter {
    /// Everything.
    All,
    /// Ordinals within disjoint, ascending, inclusive ranges.
    Numbers {
        /// The type of coordinates.
        physical: Physical,
        /// The ranges.
        ranges: Vec<(u64, u64)>,
    },
    /// Every `step`-th ordinal of a span.
    Strided {
        /// The type of coordinates.
        physical: Physical,
        /// The first, and an upper bound.
        span: (u64, u64),
        /// At least 1.
        step: u64,
    },
    /// Strings within disjoint, ascending, inclusive ranges; `None` is no upper bound. Bytes
    /// compare unsigned.
    Strings(Vec<(Vec<u8>, Option<Vec<u8>>)>),
}

impl DimensionFilter {
    /// Prepares a selection.
    pub(crate) fn new(selection: &DimSelection, datatype: Datatype) -> Self {
        let physical = datatype.physical();
        match selection {
            DimSelection::All => Self::All,
            DimSelection::Ranges(ranges) => Self::of_ranges(ranges, datatype, is_endless),
            DimSelection::Strided { range, step } => Self::Strided {
                physical,
                span: ordinal_range(physical, range.as_ref()),
                step: (*step).max(1),
            },
        }
    }

    /// Ranges whose bounds are all meant as they are: an empty upper bound is the empty string.
    pub(crate) fn exact(ranges: &[Range], datatype: Datatype) -> Self {
        Self::of_ranges(ranges, datatype, |_, _| false)
    }

    fn of_ranges(
        ranges: &[Range],
        datatype: Datatype,
        is_endless: impl Fn(Datatype, &Range) -> bool,
    ) -> Self {
        let ranges = ranges.iter();
        if datatype.is_string() {
            let end = |r: &Range| (!is_endless(datatype, r)).then(|| r.end.clone());
            let mut ranges: Vec<_> = ranges.map(|r| (r.start.clone(), end(r))).collect();
            ranges.retain(|(low, high)| high.as_ref().is_none_or(|high| low <= high));
            ranges.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            ranges.dedup_by(|(low, high), (_, last)| {
                let joins = last.as_ref().is_none_or(|last| *low <= *last);
                if joins {
                    *last = last.take().zip(high.take()).map(|(old, new)| old.max(new));
                }
                joins
            });
            return Self::Strings(ranges);
        }
        let physical = datatype.physical();
        let ranges = ranges.map(|r| ordinal_range(physical, r.as_ref()));
        let mut ranges: Vec<_> = ranges.filter(|(low, high)| low <= high).collect();
        ranges.sort_unstable();
        ranges.dedup_by(|(low, high), (_, last)| {
            let joins = *low <= last.saturating_add(1);
            if joins {
                *last = (*last).max(*high);
            }
            joins
        });
        Self::Numbers { physical, ranges }
    }

    /// Whether a range of coordinates holds selected ones (for strides: may hold).
    pub(crate) fn meets(&self, range: RangeRef<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Numbers { physical, ranges } => {
                let (low, high) = ordinal_range(*physical, range);
                last_where(ranges, |r| r.0 <= high).is_some_and(|r| r.1 >= low)
            }
            Self::Strided { physical, span, .. } => {
                let (low, high) = ordinal_range(*physical, range);
                low <= span.1 && high >= span.0
            }
            Self::Strings(ranges) => {
                let near = last_where(ranges, |(start, _)| start.as_slice() <= range.end);
                near.is_some_and(|near| reaches(near, range.start))
            }
        }
    }

    /// Whether all coordinates of a range are selected.
    pub(crate) fn covers(&self, range: RangeRef<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Numbers { physical, ranges } => {
                let (low, high) = ordinal_range(*physical, range);
                last_where(ranges, |r| r.0 <= low).is_some_and(|r| r.1 >= high)
            }
            Self::Strided {
                physical,
                span,
                step,
            } => {
                let (low, high) = ordinal_range(*physical, range);
                *step == 1 && low >= span.0 && high <= span.1
            }
            Self::Strings(ranges) => {
                let near = last_where(ranges, |(start, _)| start.as_slice() <= range.start);
                near.is_some_and(|near| reaches(near, range.end))
            }
        }
    }

    /// About what share of a range of numbers is selected.
    pub(crate) fn share(&self, range: RangeRef<'_>) -> Option<f64> {
        let Self::Numbers { physical, ranges } = self else {
            return None;
        };
        let (low, high) = ordinal_range(*physical, range);
        let first = ranges.partition_point(|r| r.1 < low);
        let common = ranges.get(first..)?.iter().take_while(|r| r.0 <= high);
        let inside = common.map(|r| (r.1.min(high) - r.0.max(low)) as f64 + 1.0);
        Some(inside.sum::<f64>() / (high.checked_sub(low)? as f64 + 1.0))
    }

    /// Those of the selected cells that are selected.
    pub(crate) fn select(&self, view: FieldView<'_>, selected: RowSelection) -> RowSelection {
        match self {
            Self::All => selected,
            Self::Numbers { physical, ranges } if ranges.len() == 1 => {
                let range = ranges.first().copied().unwrap_or_default();
                dispatch!(*physical, T => pick_numbers::<T>(range, view, selected))
            }
            _ => {
                let mut mask = selected.mask(view.cell_num);
                self.apply(view, &mut mask);
                RowSelection::of_mask(&mask)
            }
        }
    }

    /// Clears the mask (one byte a cell, 0 or 1) of cells that are not selected.
    fn apply(&self, view: FieldView<'_>, mask: &mut [u8]) {
        match self {
            Self::All => {}
            Self::Numbers { physical, ranges } => {
                dispatch!(*physical, T => apply_numbers::<T>(ranges, view, mask));
            }
            Self::Strided {
                physical,
                span,
                step,
            } => {
                dispatch!(*physical, T => apply_stride::<T>(*span, *step, view, mask));
            }
            Self::Strings(ranges) => apply_strings(ranges, view, mask),
        }
    }
}

/// Whether a range goes on for ever, as one of strings without an end does; without either bound it is
/// the empty string.
pub(crate) fn is_endless(datatype: Datatype, range: &Range) -> bool {
    datatype.is_string() && range.end.is_empty() && !range.start.is_empty()
}

/// The ordinal of a number's bytes.
pub(crate) fn ordinal(physical: Physical, bytes: &[u8]) -> u64 {
    fn of<T: Ordinal>(bytes: &[u8]) -> u64 {
        T::read(bytes).ordinal()
    }
    dispatch!(physical, T => of::<T>(bytes))
}

/// The ordinals of a range's bounds.
pub(crate) fn ordinal_range(physical: Physical, range: RangeRef<'_>) -> (u64, u64) {
    (ordinal(physical, range.start), ordinal(physical, range.end))
}

/// The last range for which something is true, as it is for all before it and none behind it.
fn last_where<R>(ranges: &[R], holds: impl FnMut(&R) -> bool) -> Option<&R> {
    let behind = ranges.partition_point(holds);
    behind.checked_sub(1).and_then(|i| ranges.get(i))
}

/// Whether a range of strings goes on up to one.
fn reaches((_, end): &(Vec<u8>, Option<Vec<u8>>), text: &[u8]) -> bool {
    end.as_ref().is_none_or(|end| end.as_slice() >= text)
}

fn pick_numbers<T: Ordinal>(
    (low, high): (u64, u64),
    view: FieldView<'_>,
    selected: RowSelection,
) -> RowSelection {
    let inside = |value: &[u8]| T::read(value).ordinal().wrapping_sub(low) <= high - low;
    match selected {
        RowSelection::All(_) => RowSelection::flagged(view.data.chunks_exact(T::SIZE).map(inside)),
        RowSelection::List(mut list) => {
            list.retain(|&cell| inside(view.cell(cell as usize)));
            RowSelection::List(list)
        }
    }
}

fn apply_numbers<T: Ordinal>(ranges: &[(u64, u64)], view: FieldView<'_>, mask: &mut [u8]) {
    let values = view
        .data
        .chunks_exact(T::SIZE)
        .map(|v| T::read(v).ordinal());
    // Neighbours in a sorted tile usually fall into the same range, or into the same gap.
    let mut near = 0..=0;
    let mut inside = false;
    let mut known = false;
    for (m, value) in mask.iter_mut().zip(values) {
        if *m == 0 {
            continue;
        }
        if !(known && near.contains(&value)) {
            let after = ranges.partition_point(|r| r.0 <= value);
            let before = after.checked_sub(1).and_then(|i| ranges.get(i));
            inside = before.is_some_and(|r| r.1 >= value);
            near = match before {
                Some(&(low, high)) if inside => low..=high,
                _ => {
                    let low = before.map_or(0, |r| r.1.saturating_add(1));
                    low..=ranges.get(after).map_or(u64::MAX, |r| r.0 - 1)
                }
            };
            known = true;
        }
        *m = u8::from(inside);
    }
}

fn apply_stride<T: Ordinal>(
    (low, high): (u64, u64),
    step: u64,
    view: FieldView<'_>,
    mask: &mut [u8],
) {
    for (m, value) in mask.iter_mut().zip(view.data.chunks_exact(T::SIZE)) {
        let value = T::read(value).ordinal();
        *m &= u8::from(value >= low && value <= high && value.wrapping_sub(low) % step == 0);
    }
}

fn apply_strings(ranges: &[(Vec<u8>, Option<Vec<u8>>)], view: FieldView<'_>, mask: &mut [u8]) {
    let start = |at: usize| ranges.get(at).map(|range| range.0.as_slice());
    // Neighbours in a sorted tile are often equal, and usually lie between the same two starts of
    // ranges.
    let mut last: Option<(&[u8], u8)> = None;
    let mut after = 0;
    for (cell, m) in mask.iter_mut().enumerate() {
        if *m == 0 {
            continue;
        }
        let text = view.cell(cell);
        *m = match last {
            Some((same, answer)) if same == text => answer,
            _ => {
                let near = start(after).is_none_or(|next| text < next)
                    && after
                        .checked_sub(1)
                        .and_then(start)
                        .is_none_or(|before| before <= text);
                if !near {
                    after = ranges.partition_point(|range| range.0.as_slice() <= text);
                }
                let before = after.checked_sub(1).and_then(|at| ranges.get(at));
                u8::from(before.is_some_and(|before| reaches(before, text)))
            }
        };
        last = Some((text, *m));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn view<'a>(data: &'a [u8], size: usize) -> FieldView<'a> {
        FieldView {
            cell_num: data.len() / size,
            data,
            offsets: None,
            validity: None,
            cell_size: size,
        }
    }

    proptest! {
        #[test]
        fn ranges_select_what_lies_in_one(
            ranges in prop::collection::vec((-50i16..50, 0i16..20), 0..12),
            cells in prop::collection::vec(-80i16..80, 0..200),
        ) {
            let ranges: Vec<(i16, i16)> = ranges.into_iter().map(|(a, n)| (a, a + n)).collect();
            let selection = DimSelection::Ranges(ranges.iter().map(|&(a, b)| Range::of(a, b)).collect());
            let filter = DimensionFilter::new(&selection, Datatype::Int16);
            let data: Vec<u8> = cells.iter().flat_map(|c| c.to_le_bytes()).collect();
            let mut mask = vec![1; cells.len()];
            filter.apply(view(&data, 2), &mut mask);
            for (cell, m) in cells.iter().zip(&mask) {
                prop_assert_eq!(*m == 1, ranges.iter().any(|(a, b)| a <= cell && cell <= b));
            }
            for (a, b) in [(-80i16, -51), (-50, 0), (3, 3), (7, 30)] {
                let range = Range::of(a, b);
                let count = (a..=b).filter(|c| ranges.iter().any(|(x, y)| x <= c && c <= y)).count();
                prop_assert_eq!(filter.meets(range.as_ref()), count > 0);
                prop_assert_eq!(filter.covers(range.as_ref()), count == (a..=b).count());
            }
        }

        #[test]
        fn string_ranges_select_what_lies_in_one(
            ranges in prop::collection::vec(("[a-c]{0,3}", "[a-c]{0,3}"), 0..6),
            cells in prop::collection::vec("[a-d]{0,3}", 0..50),
        ) {
            let ranges: Vec<Range> = ranges.iter().filter(|(a, b)| b.is_empty() || a <= b)
                .map(|(a, b)| Range::new(a.as_bytes(), b.as_bytes())).collect();
            let filter = DimensionFilter::new(&DimSelection::Ranges(ranges.clone()), Datatype::StringAscii);
            let data: Vec<u8> = cells.iter().flat_map(|c| c.bytes()).collect();
            let mut offsets = vec![0u64];
            for cell in &cells {
                offsets.push(offsets.last().unwrap() + cell.len() as u64);
            }
            let view = FieldView { cell_num: cells.len(), data: &data, offsets: Some(&offsets), validity: None, cell_size: 0 };
            let mut mask = vec![1; cells.len()];
            filter.apply(view, &mut mask);
            for (cell, m) in cells.iter().zip(&mask) {
                let inside = ranges.iter().any(|r| {
                    let open = r.end.is_empty() && !r.start.is_empty();
                    r.start.as_slice() <= cell.as_bytes() && (open || cell.as_bytes() <= r.end.as_slice())
                });
                prop_assert_eq!(*m == 1, inside);
            }
        }
    }

    #[test]
    fn strides_and_floats() {
        let stride = DimSelection::Strided {
            range: Range::of(-3i32, 9),
            step: 4,
        };
        let filter = DimensionFilter::new(&stride, Datatype::Int32);
        let data: Vec<u8> = (-5..12i32).flat_map(i32::to_le_bytes).collect();
        let mut mask = vec![1; 17];
        filter.apply(view(&data, 4), &mut mask);
        let hits: Vec<i32> = (-5..12)
            .zip(&mask)
            .filter(|(_, m)| **m == 1)
            .map(|(c, _)| c)
            .collect();
        assert_eq!(hits, [-3, 1, 5, 9]);
        let filter = DimensionFilter::new(
            &DimSelection::Ranges(vec![Range::of(0.0f64, 1.0)]),
            Datatype::Float64,
        );
        let data: Vec<u8> = [-0.0f64, 1.0, 1.1, f64::NAN, -1e-300]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        let mut mask = vec![1; 5];
        filter.apply(view(&data, 8), &mut mask);
        assert_eq!(mask, [1, 1, 0, 0, 0]);
    }
}

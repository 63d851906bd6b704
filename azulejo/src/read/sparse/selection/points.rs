//! Lists of points.
//!
//! Each dimension's distinct coordinates are numbered in order; a point is the tuple of its
//! numbers. A cell is selected if all its coordinates have numbers and their tuple is a point.

use super::ranges::{ordinal, ordinal_range};
use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::space::ordinal::Ordinal;
use crate::space::{PointColumn, Points};
use azulejo_format::datatype::{Datatype, Physical};
use azulejo_format::range::RangeRef;
use azulejo_format::{Range, dispatch};
use std::collections::HashSet;
use std::ops::Range as Span;

/// The distinct coordinates of the points along one dimension, ascending.
#[derive(Debug)]
enum Distinct {
    Numbers {
        physical: Physical,
        ordinals: Vec<u64>,
        bytes: Vec<Vec<u8>>,
    },
    Strings(Vec<Vec<u8>>),
}

impl Distinct {
    /// The numbers of the coordinates that lie in a range.
    fn span(&self, range: RangeRef<'_>) -> Span<u32> {
        let (from, to) = match self {
            Self::Numbers {
                physical, ordinals, ..
            } => {
                let (low, high) = ordinal_range(*physical, range);
                (
                    ordinals.partition_point(|o| *o < low),
                    ordinals.partition_point(|o| *o <= high),
                )
            }
            Self::Strings(strings) => (
                strings.partition_point(|s| s.as_slice() < range.start),
                strings.partition_point(|s| s.as_slice() <= range.end),
            ),
        };
        number(from)..number(to)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a filter has fewer than 2^32 points"
)]
const fn number(index: usize) -> u32 {
    index as u32
}

/// A set of points.
#[derive(Debug)]
pub(crate) struct PointFilter {
    distinct: Vec<Distinct>,
    /// Each point once, sorted: its numbers, dimension by dimension.
    tuples: Vec<Vec<u32>>,
    set: HashSet<Vec<u32>>,
}

impl PointFilter {
    /// Prepares points, whose coordinates have the given types.
    pub(crate) fn new(points: &Points, datatypes: &[Datatype]) -> Result<Self> {
        let mut len = None;
        let mut distinct = Vec::with_capacity(datatypes.len());
        let mut numbers = Vec::with_capacity(datatypes.len());
        for (column, datatype) in points.coordinates.iter().zip(datatypes) {
            let values = values(column, *datatype)?;
            if *len.get_or_insert(values.len()) != values.len()
                || u32::try_from(values.len()).is_err()
            {
                return Err(Error::InvalidArgument(
                    "the points' coordinates differ in number".into(),
                ));
            }
            let (of, column) = index(&values, *datatype);
            distinct.push(of);
            numbers.push(column);
        }
        let tuple = |i: usize| -> Vec<u32> {
            let columns = numbers.iter();
            let numbers = columns.filter_map(|column: &Vec<u32>| column.get(i).copied());
            numbers.collect()
        };
        let mut tuples: Vec<Vec<u32>> = (0..len.unwrap_or(0)).map(tuple).collect();
        tuples.sort_unstable();
        tuples.dedup();
        let set = tuples.iter().cloned().collect();
        Ok(Self {
            distinct,
            tuples,
            set,
        })
    }

    /// For each dimension, its coordinates as ranges of one value.
    pub(crate) fn coordinate_ranges(&self) -> Vec<Vec<Range>> {
        let ranges = self.distinct.iter().map(|distinct| {
            let (Distinct::Numbers { bytes: values, .. } | Distinct::Strings(values)) = distinct;
            let ranges = values.iter().map(|v| Range::new(v.clone(), v.clone()));
            ranges.collect()
        });
        ranges.collect()
    }

    /// The numbers of coordinates that lie in a box.
    fn spans<'a>(&self, bounds: &dyn Fn(usize) -> Option<RangeRef<'a>>) -> Vec<Span<u32>> {
        let whole =
            |(Distinct::Numbers { bytes: values, .. } | Distinct::Strings(values)): &Distinct| {
                0..number(values.len())
            };
        let spans = self.distinct.iter().enumerate();
        let spans = spans.map(|(d, of)| bounds(d).map_or_else(|| whole(of), |r| of.span(r)));
        spans.collect()
    }

    /// Whether a point lies in a box.
    pub(crate) fn meets<'a>(&self, bounds: &dyn Fn(usize) -> Option<RangeRef<'a>>) -> bool {
        let spans = self.spans(bounds);
        let Some(first) = spans.first() else {
            return false;
        };
        let below = |t: &Vec<u32>, end: u32| t.first().is_some_and(|n| *n < end);
        let from = self.tuples.partition_point(|t| below(t, first.start));
        let near = self.tuples.iter().skip(from);
        let mut near = near.take_while(|t| below(t, first.end));
        near.any(|t| t.iter().zip(&spans).all(|(n, span)| span.contains(n)))
    }

    /// Clears the mask of cells that are no points. `bounds` is a box around the cells.
    pub(crate) fn apply<'a>(
        &self,
        coordinates: &[FieldView<'_>],
        bounds: &dyn Fn(usize) -> Option<RangeRef<'a>>,
        mask: &mut [u8],
    ) {
        fn look_up<T: Ordinal>(
            ordinals: &[u64],
            offset: u32,
            view: FieldView<'_>,
            mask: &mut [u8],
            out: &mut [u32],
        ) {
            for ((m, out), value) in mask
                .iter_mut()
                .zip(out)
                .zip(view.data.chunks_exact(T::SIZE))
            {
                match ordinals.binary_search(&T::read(value).ordinal()) {
                    Ok(i) if *m != 0 => *out = offset + number(i),
                    _ => *m = 0,
                }
            }
        }
        let spans = self.spans(bounds);
        let mut numbers: Vec<Vec<u32>> = Vec::with_capacity(self.distinct.len());
        for ((distinct, view), span) in self.distinct.iter().zip(coordinates).zip(&spans) {
            let mut out = vec![0; mask.len()];
            let range = span.start as usize..span.end as usize;
            match distinct {
                Distinct::Numbers {
                    physical, ordinals, ..
                } => {
                    let near = ordinals.get(range).unwrap_or(&[]);
                    dispatch!(*physical, T => look_up::<T>(near, span.start, *view, mask, &mut out));
                }
                Distinct::Strings(strings) => {
                    let near = strings.get(range).unwrap_or(&[]);
                    for (cell, (m, out)) in mask.iter_mut().zip(&mut out).enumerate() {
                        match near.binary_search_by(|s| s.as_slice().cmp(view.cell(cell))) {
                            Ok(i) if *m != 0 => *out = span.start + number(i),
                            _ => *m = 0,
                        }
                    }
                }
            }
            numbers.push(out);
        }
        let mut tuple = Vec::with_capacity(numbers.len());
        for (cell, m) in mask.iter_mut().enumerate() {
            if *m != 0 {
                tuple.clear();
                let numbers = numbers.iter();
                tuple.extend(numbers.filter_map(|column| column.get(cell).copied()));
                *m = u8::from(self.set.contains(&tuple));
            }
        }
    }
}

/// The values of a column of points.
fn values(column: &PointColumn, datatype: Datatype) -> Result<Vec<&[u8]>> {
    let bad = || {
        Error::InvalidArgument(
            "a point's coordinate does not have the size of its dimension".into(),
        )
    };
    match &column.offsets {
        None if datatype.is_string() => Err(Error::InvalidArgument(
            "points need offsets along string dimensions".into(),
        )),
        None if !column.data.len().is_multiple_of(datatype.size()) => Err(bad()),
        None => Ok(column.data.chunks_exact(datatype.size()).collect()),
        Some(offsets) => offsets
            .windows(2)
            .map(|w| {
                let at = |i: usize| usize::try_from(*w.get(i)?).ok();
                let range = at(0).zip(at(1)).map(|(start, end)| start..end);
                range
                    .and_then(|range| column.data.get(range))
                    .ok_or_else(bad)
            })
            .collect(),
    }
}

/// The distinct values in order, and each value's number among them.
fn index(values: &[&[u8]], datatype: Datatype) -> (Distinct, Vec<u32>) {
    if datatype.is_string() {
        let mut strings: Vec<Vec<u8>> = values.iter().map(|v| v.to_vec()).collect();
        strings.sort_unstable();
        strings.dedup();
        let numbers = values
            .iter()
            .map(|v| number(strings.partition_point(|s| s.as_slice() < *v)))
            .collect();
        return (Distinct::Strings(strings), numbers);
    }
    let physical = datatype.physical();
    let mut sorted: Vec<(u64, &[u8])> = values.iter().map(|v| (ordinal(physical, v), *v)).collect();
    sorted.sort_unstable_by_key(|(ordinal, _)| *ordinal);
    sorted.dedup_by_key(|(ordinal, _)| *ordinal);
    let ordinals: Vec<u64> = sorted.iter().map(|(ordinal, _)| *ordinal).collect();
    let bytes = sorted.iter().map(|(_, bytes)| bytes.to_vec()).collect();
    let numbers = values
        .iter()
        .map(|v| number(ordinals.partition_point(|o| *o < ordinal(physical, v))))
        .collect();
    (
        Distinct::Numbers {
            physical,
            ordinals,
            bytes,
        },
        numbers,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text_column(strings: &[String]) -> (Vec<u8>, Vec<u64>) {
        let mut offsets = vec![0];
        let mut data = Vec::new();
        for s in strings {
            data.extend_from_slice(s.as_bytes());
            offsets.push(data.len() as u64);
        }
        (data, offsets)
    }

    proptest! {
        #[test]
        fn points_select_themselves(
            points in prop::collection::vec((-5i32..5, "[ab]{0,2}"), 0..20),
            cells in prop::collection::vec((-6i32..6, "[ab]{0,2}"), 0..60),
        ) {
            let column = |cells: &[(i32, String)]| {
                let numbers: Vec<u8> = cells.iter().flat_map(|c| c.0.to_le_bytes()).collect();
                let strings: Vec<String> = cells.iter().map(|c| c.1.clone()).collect();
                (numbers, text_column(&strings))
            };
            let (numbers, (data, offsets)) = column(&points);
            let list = Points { coordinates: vec![
                PointColumn { data: numbers, offsets: None },
                PointColumn { data, offsets: Some(offsets) },
            ] };
            let filter = PointFilter::new(&list, &[Datatype::Int32, Datatype::StringAscii]).unwrap();
            let (numbers, (data, offsets)) = column(&cells);
            let views = [
                FieldView { cell_num: cells.len(), data: &numbers, offsets: None, validity: None, cell_size: 4 },
                FieldView { cell_num: cells.len(), data: &data, offsets: Some(&offsets), validity: None, cell_size: 0 },
            ];
            let mut mask = vec![1; cells.len()];
            filter.apply(&views, &|_| None, &mut mask);
            for (cell, m) in cells.iter().zip(&mask) {
                prop_assert_eq!(*m == 1, points.contains(cell));
            }
            let first = [Range::of(-2i32, 1), Range::new(*b"a", *b"b")];
            let inside = points.iter().any(|p| (-2..=1).contains(&p.0) && p.1.as_str() >= "a" && p.1.as_str() <= "b");
            prop_assert_eq!(filter.meets(&|d| first.get(d).map(Range::as_ref)), inside);
        }
    }

    #[test]
    fn ragged_points_are_refused() {
        let column = |n: usize| PointColumn {
            data: vec![0; n],
            offsets: None,
        };
        let types = [Datatype::Int32, Datatype::Int32];
        assert!(
            PointFilter::new(
                &Points {
                    coordinates: vec![column(8), column(4)]
                },
                &types
            )
            .is_err()
        );
        assert!(
            PointFilter::new(
                &Points {
                    coordinates: vec![column(8), column(7)]
                },
                &types
            )
            .is_err()
        );
        let strings = PointColumn {
            data: vec![0; 3],
            offsets: Some(vec![0, 4]),
        };
        assert!(
            PointFilter::new(
                &Points {
                    coordinates: vec![strings]
                },
                &[Datatype::StringAscii]
            )
            .is_err()
        );
    }
}

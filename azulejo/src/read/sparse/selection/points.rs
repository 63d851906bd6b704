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
struct Distinct {
    values: Vec<Vec<u8>>,
    /// Their ordinals, if they are numbers.
    ordinals: Option<(Physical, Vec<u64>)>,
}

impl Distinct {
    /// The distinct ones of values, and each value's number among them.
    fn of(values: &[&[u8]], datatype: Datatype) -> (Self, Vec<u32>) {
        fn sorted<'v, K: Ord>(
            values: &[&'v [u8]],
            key: impl Fn(&'v [u8]) -> K,
        ) -> (Vec<K>, Vec<Vec<u8>>, Vec<u32>) {
            let mut sorted: Vec<(K, &[u8])> = values.iter().map(|&v| (key(v), v)).collect();
            sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            sorted.dedup_by(|a, b| a.0 == b.0);
            let place = |&v: &&'v [u8]| {
                let key = key(v);
                number(sorted.partition_point(|(other, _)| *other < key))
            };
            let numbers = values.iter().map(place).collect();
            let (keys, values): (_, Vec<&[u8]>) = sorted.into_iter().unzip();
            (
                keys,
                values.into_iter().map(<[u8]>::to_vec).collect(),
                numbers,
            )
        }

        if datatype.is_string() {
            let (_, values, numbers) = sorted(values, |v| v);
            let ordinals = None;
            return (Self { values, ordinals }, numbers);
        }
        let physical = datatype.physical();
        let (ordinals, values, numbers) = sorted(values, |v| ordinal(physical, v));
        let ordinals = Some((physical, ordinals));
        (Self { values, ordinals }, numbers)
    }

    /// The numbers of the coordinates that lie in a range.
    fn span(&self, range: RangeRef<'_>) -> Span<u32> {
        let (from, to) = match &self.ordinals {
            Some((physical, ordinals)) => {
                let (low, high) = ordinal_range(*physical, range);
                (
                    ordinals.partition_point(|o| *o < low),
                    ordinals.partition_point(|o| *o <= high),
                )
            }
            None => (
                self.values.partition_point(|s| s.as_slice() < range.start),
                self.values.partition_point(|s| s.as_slice() <= range.end),
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
            let (of, column) = Distinct::of(&values, *datatype);
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
        let one = |value: &Vec<u8>| Range::new(value.clone(), value.clone());
        let ranges = self.distinct.iter();
        let ranges = ranges.map(|distinct| distinct.values.iter().map(one).collect());
        ranges.collect()
    }

    /// The numbers of coordinates that lie in a box.
    fn spans<'a>(&self, bounds: &dyn Fn(usize) -> Option<RangeRef<'a>>) -> Vec<Span<u32>> {
        let spans = self.distinct.iter().enumerate();
        let spans = spans.map(|(d, of)| match bounds(d) {
            Some(range) => of.span(range),
            None => 0..number(of.values.len()),
        });
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
            match &distinct.ordinals {
                Some((physical, ordinals)) => {
                    let near = ordinals.get(range).unwrap_or(&[]);
                    dispatch!(*physical, T => look_up::<T>(near, span.start, *view, mask, &mut out));
                }
                None => {
                    let near = distinct.values.get(range).unwrap_or(&[]);
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
    let size = datatype.size();
    if column.offsets.is_none() && datatype.is_string() {
        return Err(Error::InvalidArgument(
            "points need offsets along string dimensions".into(),
        ));
    }
    if column.offsets.is_none() && !column.data.len().is_multiple_of(size) {
        return Err(bad());
    }
    let values = (0..column.len(size)).map(|point| column.get(point, size).ok_or_else(bad));
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Point = (i32, String);

    fn columns(points: &[Point]) -> Vec<PointColumn> {
        let numbers = points.iter().flat_map(|point| point.0.to_le_bytes());
        let mut texts = (Vec::new(), vec![0]);
        for (_, text) in points {
            texts.0.extend_from_slice(text.as_bytes());
            texts.1.push(texts.0.len() as u64);
        }
        vec![
            PointColumn {
                data: numbers.collect(),
                offsets: None,
            },
            PointColumn {
                data: texts.0,
                offsets: Some(texts.1),
            },
        ]
    }

    proptest! {
        #[test]
        fn points_select_themselves(
            points in prop::collection::vec((-5i32..5, "[ab]{0,2}"), 0..20),
            cells in prop::collection::vec((-6i32..6, "[ab]{0,2}"), 0..60),
        ) {
            let coordinates = columns(&points);
            let types = [Datatype::Int32, Datatype::StringAscii];
            let filter = PointFilter::new(&Points { coordinates }, &types).unwrap();
            let of_cells = columns(&cells);
            let views: Vec<FieldView<'_>> = of_cells.iter().map(|column| FieldView {
                cell_num: cells.len(),
                data: &column.data,
                offsets: column.offsets.as_deref(),
                validity: None,
                cell_size: if column.offsets.is_some() { 0 } else { 4 },
            }).collect();
            let mut mask = vec![1; cells.len()];
            filter.apply(&views, &|_| None, &mut mask);
            for (cell, m) in cells.iter().zip(&mask) {
                prop_assert_eq!(*m == 1, points.contains(cell));
            }
            let bounds = [Range::of(-2i32, 1), Range::new(*b"a", *b"b")];
            let inside = |p: &Point| (-2..=1).contains(&p.0) && ("a"..="b").contains(&p.1.as_str());
            let meets = filter.meets(&|d| bounds.get(d).map(Range::as_ref));
            prop_assert_eq!(meets, points.iter().any(inside));
        }
    }
}

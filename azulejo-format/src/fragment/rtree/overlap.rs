//! Which tiles meet a set of ranges: one walk down the tree, a level at a time, a dimension at a
//! time.

use super::{Bounds, RTree};
use crate::datatype::{Datatype, Native, dispatch};
use crate::range::Range;
use std::cmp::Ordering;

/// The ranges that a query selects in one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DimensionRanges<'a> {
    /// All of it.
    All,
    /// The union of these; in any order, they may overlap. An empty upper bound of a string range
    /// means no bound.
    Ranges(&'a [Range]),
}

/// A tile that may hold selected cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TileOverlap {
    /// Index of the tile.
    pub tile: usize,
    /// Whether all its cells are selected.
    pub covered: bool,
}

impl RTree {
    /// The tiles whose boxes meet the ranges, one [`DimensionRanges`] a dimension, in increasing
    /// order. Missing dimensions count as [`DimensionRanges::All`].
    #[must_use]
    pub fn overlapping_tiles(&self, ranges: &[DimensionRanges<'_>]) -> Vec<TileOverlap> {
        let Some(root) = self.levels.first() else {
            return Vec::new();
        };
        let tests: Vec<(usize, RangeSet)> = self
            .datatypes
            .iter()
            .zip(ranges)
            .enumerate()
            .filter_map(|(d, (datatype, ranges))| match ranges {
                DimensionRanges::All => None,
                DimensionRanges::Ranges(ranges) => Some((d, RangeSet::new(*datatype, ranges))),
            })
            .collect();
        let mut found: Vec<TileOverlap> = (0..root.len)
            .map(|tile| TileOverlap {
                tile,
                covered: tests.is_empty(),
            })
            .collect();
        let fanout = self.fanout as usize;
        for (depth, level) in self.levels.iter().enumerate() {
            if depth > 0 {
                found = found
                    .iter()
                    .flat_map(|parent| {
                        let first = parent.tile.saturating_mul(fanout);
                        (first..first.saturating_add(fanout).min(level.len)).map(|tile| {
                            TileOverlap {
                                tile,
                                covered: parent.covered,
                            }
                        })
                    })
                    .collect();
            }
            let mut relations: Vec<Relation> = found
                .iter()
                .map(|node| {
                    if node.covered {
                        Relation::Decided
                    } else {
                        Relation::Covered
                    }
                })
                .collect();
            for (dimension, set) in &tests {
                if let Some(bounds) = level.bounds.get(*dimension) {
                    set.narrow(bounds, &found, &mut relations);
                }
            }
            let mut relation = relations.iter();
            found.retain_mut(|node| {
                let relation = relation.next().copied().unwrap_or(Relation::Overlaps);
                node.covered = matches!(relation, Relation::Decided | Relation::Covered);
                relation != Relation::Disjoint
            });
        }
        found
    }
}

/// How a box relates to the selection, as far as it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// Inside a covered box.
    Decided,
    /// Inside the ranges of every dimension so far.
    Covered,
    Overlaps,
    Disjoint,
}

/// Ranges of one dimension, sorted by lower bound, each with the greatest upper bound up to it: the
/// ranges that start at or before a value reach to that bound, so one binary search answers both
/// questions.
enum RangeSet {
    Numbers(NumberRanges),
    Strings(Vec<(Vec<u8>, Option<Vec<u8>>)>),
}

/// [`RangeSet`] of a fixed-size dimension, bounds as raw values.
struct NumberRanges {
    datatype: Datatype,
    bytes: Vec<u8>,
}

impl RangeSet {
    fn new(datatype: Datatype, ranges: &[Range]) -> Self {
        if datatype.is_string() {
            let mut sorted: Vec<(Vec<u8>, Option<Vec<u8>>)> = ranges
                .iter()
                .map(|r| (r.start.clone(), (!r.end.is_empty()).then(|| r.end.clone())))
                .collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            let mut reach: Option<Option<Vec<u8>>> = None;
            for (_, end) in &mut sorted {
                match &reach {
                    Some(None) => *end = None,
                    Some(Some(far)) if end.as_ref().is_some_and(|end| end < far) => {
                        *end = Some(far.clone());
                    }
                    Some(Some(_)) | None => {}
                }
                reach = Some(end.clone());
            }
            return Self::Strings(sorted);
        }
        fn sort<T: Native>(ranges: &[Range]) -> Vec<u8> {
            let mut sorted: Vec<(T, T)> = ranges.iter().map(Range::bounds::<T>).collect();
            sorted.sort_by(|a, b| a.0.total_order(&b.0));
            let mut bytes = Vec::with_capacity(2 * T::SIZE * sorted.len());
            let mut reach: Option<T> = None;
            for (start, end) in sorted {
                let far = reach.map_or(end, |far| {
                    if far.total_order(&end) == Ordering::Greater {
                        far
                    } else {
                        end
                    }
                });
                reach = Some(far);
                let pair = Range::of(start, far);
                bytes.extend_from_slice(&pair.start);
                bytes.extend_from_slice(&pair.end);
            }
            bytes
        }
        let bytes = dispatch!(datatype.physical(), T => sort::<T>(ranges));
        Self::Numbers(NumberRanges { datatype, bytes })
    }

    /// Takes this dimension into account for the boxes in `nodes`.
    fn narrow(&self, bounds: &Bounds, nodes: &[TileOverlap], relations: &mut [Relation]) {
        match (self, bounds) {
            (Self::Numbers(set), Bounds::Fixed { bytes, .. }) => {
                dispatch!(set.datatype.physical(), T => narrow_numbers::<T>(&set.bytes, bytes, nodes, relations));
            }
            (Self::Strings(set), _) => {
                for (node, relation) in undecided(nodes, relations) {
                    let Some(mbr) = bounds.get(node.tile) else {
                        continue;
                    };
                    // The farthest reach of the ranges that start at or before a value.
                    let reaches = |from: &[u8], to: &[u8]| {
                        let upto = set.partition_point(|(start, _)| start.as_slice() <= from);
                        let far = upto.checked_sub(1).and_then(|i| set.get(i));
                        far.is_some_and(|(_, end)| {
                            end.as_ref().is_none_or(|end| end.as_slice() >= to)
                        })
                    };
                    *relation =
                        relation.and(reaches(mbr.end, mbr.start), || reaches(mbr.start, mbr.end));
                }
            }
            (Self::Numbers(_), Bounds::Var { .. }) => {}
        }
    }
}

impl Relation {
    fn and(self, overlaps: bool, covers: impl FnOnce() -> bool) -> Self {
        match (overlaps, self) {
            (false, _) => Self::Disjoint,
            (true, Self::Covered) if covers() => Self::Covered,
            (true, _) => Self::Overlaps,
        }
    }
}

fn undecided<'a>(
    nodes: &'a [TileOverlap],
    relations: &'a mut [Relation],
) -> impl Iterator<Item = (&'a TileOverlap, &'a mut Relation)> {
    nodes
        .iter()
        .zip(relations)
        .filter(|(_, r)| !matches!(r, Relation::Decided | Relation::Disjoint))
}

fn narrow_numbers<T: Native>(
    set: &[u8],
    bounds: &[u8],
    nodes: &[TileOverlap],
    relations: &mut [Relation],
) {
    let pair = |bytes: &[u8], i: usize| -> Option<(T, T)> {
        let (start, end) = bytes.get(2 * T::SIZE * i..)?.split_at_checked(T::SIZE)?;
        (end.len() >= T::SIZE).then(|| (T::read(start), T::read(end)))
    };
    let set: Vec<(T, T)> = (0..set.len() / (2 * T::SIZE))
        .filter_map(|i| pair(set, i))
        .collect();
    let reaches = |from: &T, to: &T| {
        let upto = set.partition_point(|(start, _)| start.total_order(from) != Ordering::Greater);
        let far = upto.checked_sub(1).and_then(|i| set.get(i));
        far.is_some_and(|(_, end)| end.total_order(to) != Ordering::Less)
    };
    for (node, relation) in undecided(nodes, relations) {
        let Some((start, end)) = pair(bounds, node.tile) else {
            continue;
        };
        *relation = relation.and(reaches(&end, &start), || reaches(&start, &end));
    }
}

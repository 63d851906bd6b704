//! The plan of a list of points: in the order of their tiles, so that each tile is unfiltered once
//! and neighbours are one copy.

use super::assemble::DenseQuery;
use super::plan::{BatchPlan, PositionBox};
use crate::error::{Error, Result};
use crate::space::Points;
use std::ops::Range;

/// Plans the points `range` of a list; [`BatchPlan::order`] says where each belongs.
///
/// # Errors
/// [`Error::InvalidArgument`] names a point that lies outside the domain, or the current domain if
/// there is one.
///
/// For example the points 7, 22 and 8 in tiles of ten: by tile they are 7, 8 and 22, of which 7 and
/// 8 are one copy, and the order of the result is [0, 2, 1].
pub(super) fn point_batch(
    query: &DenseQuery,
    points: &Points,
    range: Range<usize>,
) -> Result<BatchPlan> {
    let (plan, order) = (&query.plan, &query.order);
    let ndim = plan.grid.ndim();
    // Of each point its tile's coordinates in tile order, and then its own in the order of the
    // result: a key that sorts.
    let mut keys = Vec::with_capacity(range.len() * 2 * ndim);
    let mut offsets = vec![0; ndim];
    for point in range.clone() {
        locate(query, points, point, &mut offsets)?;
        let tile = plan.grid.tile_order().iter();
        keys.extend(tile.map(|&d| offsets[d] / plan.grid.extents()[d]));
        keys.extend(order.iter().map(|&d| offsets[d]));
    }
    let key = |point: usize| {
        keys.get(point * 2 * ndim..(point + 1) * 2 * ndim)
            .unwrap_or_default()
    };
    let mut sorted: Vec<usize> = (0..range.len()).collect();
    sorted.sort_unstable_by(|a, b| key(*a).cmp(key(*b)));

    let mut batch = BatchPlan::default();
    let follows = |a: &usize, b: &usize| match (key(*a).split_last(), key(*b).split_last()) {
        (Some((last, rest)), Some((next, same))) => {
            rest == same && last.checked_add(1) == Some(*next)
        }
        _ => false,
    };
    for neighbours in sorted.chunk_by(follows) {
        let first = neighbours.first().map(|point| key(*point));
        let Some((_, first)) = first.and_then(|key| key.split_at_checked(ndim)) else {
            continue;
        };
        let mut positions: PositionBox = vec![0..0; ndim];
        for (&d, &offset) in order.iter().zip(first) {
            positions[d] = offset..offset + 1;
        }
        if let Some(&fastest) = order.last() {
            positions[fastest].end += neighbours.len() as u64 - 1;
        }
        plan.add_box(&mut batch, positions, order)?;
    }
    batch.join_tasks();
    let mut places = vec![0; sorted.len()];
    for (cell, &point) in sorted.iter().enumerate() {
        places[point] = cell;
    }
    batch.order = Some(places);
    Ok(batch)
}

/// The offsets of a point from the start of the domain, which are its positions where everything is
/// selected.
fn locate(query: &DenseQuery, points: &Points, point: usize, offsets: &mut [u64]) -> Result<()> {
    let schema = query.array.schema();
    let current = schema.current_domain.ranges();
    let axes = query.plan.grid.axes();
    for (d, (axis, column)) in axes.iter().zip(&points.coordinates).enumerate() {
        let dimension = schema.dimension(d);
        let size = dimension.map_or(1, |dimension| dimension.datatype.size());
        let current = current.and_then(|ranges| ranges.get(d));
        let within = current.and_then(|range| axis.offsets_of(range));
        let is_inside =
            |offset: &u64| within.is_none_or(|(low, high)| (low..=high).contains(offset));
        let offset = column
            .get(point, size)
            .and_then(|bytes| axis.offset_of(bytes));
        let outside = || Error::InvalidArgument(format!("point {point} lies outside the domain"));
        offsets[d] = offset.filter(is_inside).ok_or_else(outside)?;
    }
    Ok(())
}

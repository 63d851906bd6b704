//! Dividing a selection among several readers.
//!
//! A selection is cut along one dimension, between coordinates: no cell lies in two parts, and all
//! versions of a cell lie in one. Dense arrays are cut between tiles, sparse ones where tiles of
//! about the same number of cells end and few others go on.

use super::sparse::{DimensionFilter, is_endless};
use crate::array::Array;
use crate::error::Result;
use crate::space::{DimSelection, PointColumn, Points, Subarray, TileGrid};
use azulejo_format::fragment::Section;
use azulejo_format::range::compare;
use azulejo_format::schema::{Dimension, TileAxis};
use azulejo_format::{Physical, Range};

/// Of more tiles than this only some are looked at.
const MANY_TILES: usize = 1 << 16;

/// The metadata that dividing a selection looks at, by index of the fragment.
pub(super) fn needs(array: &Array, selection: &Subarray, parts: usize) -> Vec<(usize, Section)> {
    let fragments = match selection {
        Subarray::Box(_) if parts >= 2 && !array.schema().is_dense() => array.fragments().len(),
        _ => 0,
    };
    (0..fragments).map(|i| (i, Section::RTree)).collect()
}

/// Divides a bound selection into at most `parts` disjoint ones; what [`needs`] names is loaded.
pub(super) fn divide(array: &Array, selection: Subarray, parts: usize) -> Result<Vec<Subarray>> {
    if parts < 2 {
        return Ok(vec![selection]);
    }
    let selections = match selection {
        Subarray::Box(selections) => selections,
        // A sparse read brings a cell once, however often it is asked for.
        Subarray::Points(points) if array.schema().is_dense() => {
            return Ok(split_points(&points, array, parts));
        }
        points @ Subarray::Points(_) => return Ok(vec![points]),
    };
    let boxes = if array.schema().is_dense() {
        let grid = TileGrid::new(array.schema())?;
        split_dense(array, selections, grid.tile_order(), parts)?
    } else {
        split_sparse(array, selections, parts)?
    };
    Ok(boxes.into_iter().map(Subarray::Box).collect())
}

/// Cuts a list of points into pieces.
fn split_points(points: &Points, array: &Array, parts: usize) -> Vec<Subarray> {
    let len = points.len(array.schema());
    let dimensions = &array.schema().domain.dimensions;
    let piece = len.div_ceil(parts).max(1);
    let part = |start: usize| {
        let cut = |(column, dimension): (&PointColumn, &Dimension)| {
            let size = dimension.datatype.size();
            let range = start * size..(start + piece).min(len) * size;
            PointColumn {
                data: column.data.get(range).unwrap_or_default().to_vec(),
                offsets: None,
            }
        };
        let coordinates = points.coordinates.iter().zip(dimensions).map(cut).collect();
        Subarray::Points(Points { coordinates })
    };
    match len {
        0 => vec![Subarray::Points(points.clone())],
        _ => (0..len).step_by(piece).map(part).collect(),
    }
}

/// Cuts a box between the tiles of one of some dimensions, slowest first; then its parts between
/// those of another, until there are enough.
fn split_dense(
    array: &Array,
    selections: Vec<DimSelection>,
    dimensions: &[usize],
    parts: usize,
) -> Result<Vec<Vec<DimSelection>>> {
    let Some((d, ends)) = dense_ends(array, &selections, dimensions, parts)? else {
        return Ok(vec![selections]);
    };
    let boxes = cut(array, &selections, d, &ends);
    let more = parts / boxes.len().max(1);
    if more < 2 {
        return Ok(boxes);
    }
    let others: Vec<usize> = dimensions.iter().copied().filter(|of| *of != d).collect();
    let mut smaller = Vec::new();
    for part in boxes {
        smaller.extend(split_dense(array, part, &others, more)?);
    }
    Ok(smaller)
}

/// Offsets along a dimension, both ends inside.
type OffsetSpan = (u64, u64);

/// The dimension to cut along, the first with enough tiles, else the one with most, and where to end
/// all parts but the last; `None` where all cells lie in one tile.
fn dense_ends(
    array: &Array,
    selections: &[DimSelection],
    dimensions: &[usize],
    parts: usize,
) -> Result<Option<(usize, Vec<Vec<u8>>)>> {
    let written = array.non_empty_domain()?;
    let current = array.schema().current_domain.ranges();
    let mut best: Option<(u64, usize, TileAxis, Vec<OffsetSpan>)> = None;
    for &d in dimensions {
        let dimension = array.schema().dimension(d);
        let (Some(axis), Some(selection)) =
            (dimension.and_then(Dimension::axis), selections.get(d))
        else {
            continue;
        };
        let written = written.as_ref().and_then(|domain| domain.ranges.get(d));
        let current = current.and_then(|ranges| ranges.get(d));
        let bounds = written.or(current).and_then(|r| axis.offsets_of(r));
        let bounds = bounds.unwrap_or_else(|| (0, axis.last_offset()));
        let chosen = match selection {
            DimSelection::All => vec![bounds],
            DimSelection::Ranges(ranges) => {
                ranges.iter().filter_map(|r| axis.offsets_of(r)).collect()
            }
            DimSelection::Strided { range, .. } => axis.offsets_of(range).into_iter().collect(),
        };
        let within = |(start, end): OffsetSpan| (start.max(bounds.0), end.min(bounds.1));
        let mut spans: Vec<OffsetSpan> = chosen.into_iter().map(within).collect();
        spans.retain(|(start, end)| start <= end);
        spans.sort_unstable();
        let (Some(first), Some(last)) = (spans.first(), spans.iter().map(|s| s.1).max()) else {
            continue;
        };
        let tiles = axis.tile_of(last) - axis.tile_of(first.0);
        if best.as_ref().is_none_or(|(most, ..)| tiles > *most) {
            best = Some((tiles, d, axis, spans));
        }
        if tiles >= parts as u64 - 1 {
            break;
        }
    }
    let best = best.filter(|(tiles, ..)| *tiles > 0);
    Ok(best.map(|(_, d, axis, spans)| (d, ends_of(&axis, &spans, parts))))
}

/// The last coordinates of all parts but the last, of what is selected along a dimension of the cells
/// that were written: spans of offsets, ascending.
fn ends_of(axis: &TileAxis, spans: &[OffsetSpan], parts: usize) -> Vec<Vec<u8>> {
    let len = |(start, end): &OffsetSpan| u128::from(end - start) + 1;
    let total: u128 = spans.iter().map(len).sum();
    let first = spans.first().map_or(0, |span| span.0);
    let last = spans.iter().map(|span| span.1).max().unwrap_or(0);
    let mut ends: Vec<u64> = Vec::new();
    for part in 1..parts as u128 {
        let mut left = total * part / parts as u128;
        let span = spans.iter().find(|span| {
            let is_here = left < len(span);
            left -= if is_here { 0 } else { len(span) };
            is_here
        });
        let Some(span) = span else { continue };
        // The cut nearest to the offset: before or behind its tile.
        let offset = u64::try_from(left).unwrap_or(u64::MAX);
        let offset = span.0.saturating_add(offset);
        let tile = axis.tile_of(offset);
        let (Some(start), Some(end)) = (axis.tile_start(tile), axis.tile_end(tile)) else {
            continue;
        };
        let end = match start.checked_sub(1) {
            Some(before) if offset - start <= end - offset => before,
            _ => end,
        };
        if (first..last).contains(&end) && ends.last().is_none_or(|before| *before < end) {
            ends.push(end);
        }
    }
    ends.into_iter().map(|end| axis.coordinate(end)).collect()
}

/// Cuts a box along the dimension where this leaves the fewest tiles in several parts.
fn split_sparse(
    array: &Array,
    selections: Vec<DimSelection>,
    parts: usize,
) -> Result<Vec<Vec<DimSelection>>> {
    let fragments = array.fragments();
    let tiles: u64 = fragments.iter().map(|f| f.tile_num()).sum();
    let step = usize::try_from(tiles).unwrap_or(usize::MAX) / MANY_TILES + 1;
    let dimensions = &array.schema().domain.dimensions;
    let filters = dimensions.iter().zip(&selections);
    let filters = filters.map(|(of, selection)| DimensionFilter::new(selection, of.datatype));
    let filters: Vec<DimensionFilter> = filters.collect();
    let mut best: Option<(u64, usize, Vec<Vec<u8>>)> = None;
    for (d, dimension) in dimensions.iter().enumerate() {
        let mut spans = Vec::new();
        for fragment in fragments.iter().filter(|f| !f.is_dense()) {
            let tree = fragment.loaded().rtree()?;
            for tile in (0..tree.tile_num()).step_by(step) {
                let mut chosen = filters.iter().enumerate();
                let meets = |(other, filter): (usize, &DimensionFilter)| {
                    let range = tree.tile_range(tile, other);
                    range.is_some_and(|range| filter.meets(range))
                };
                if let Some(range) = tree.tile_range(tile, d)
                    && chosen.all(meets)
                {
                    spans.push((range.start, range.end, fragment.tile_cell_num(tile as u64)));
                }
            }
        }
        // Where too many tiles go on behind the cuts, fewer and larger parts may do.
        let mut fewer = parts.min(spans.len().max(1));
        let mut found = quantiles(&spans, dimension, fewer);
        while found.0.is_empty() && fewer > 2 {
            fewer /= 2;
            found = quantiles(&spans, dimension, fewer);
        }
        let (ends, cost) = found;
        let better = |(least, _, cuts): &(u64, usize, Vec<Vec<u8>>)| {
            ends.len() > cuts.len() || (ends.len() == cuts.len() && cost < *least)
        };
        if !ends.is_empty() && best.as_ref().is_none_or(better) {
            best = Some((cost, d, ends));
        }
    }
    Ok(match best {
        Some((_, d, ends)) => cut(array, &selections, d, &ends),
        None => vec![selections],
    })
}

/// Where to end all parts but the last, and the cells of tiles that go on behind these ends. A cut
/// through more cells than half a part has is not made.
fn quantiles(
    spans: &[(&[u8], &[u8], u64)],
    dimension: &Dimension,
    parts: usize,
) -> (Vec<Vec<u8>>, u64) {
    let order = |a: &[u8], b: &[u8]| compare(dimension.datatype, a, b);
    let total: u64 = spans.iter().map(|span| span.2).fold(0, u64::saturating_add);
    let mut by_start: Vec<(&[u8], u64)> = spans.iter().map(|s| (s.0, s.2)).collect();
    let mut by_end: Vec<(&[u8], u64)> = spans.iter().map(|s| (s.1, s.2)).collect();
    for list in [&mut by_start, &mut by_end] {
        list.sort_by(|a, b| order(a.0, b.0));
        let mut sum = 0u64;
        for (_, cells) in list {
            sum = sum.saturating_add(*cells);
            *cells = sum;
        }
    }
    // Cells of tiles that begin, or end, at a coordinate or before it.
    let until = |list: &[(&[u8], u64)], at: &[u8]| {
        let behind = list.partition_point(|(bound, _)| order(bound, at).is_le());
        let last = behind.checked_sub(1).and_then(|i| list.get(i));
        last.map_or(0, |(_, sum)| *sum)
    };
    let share = (total / parts as u64).max(1);
    let (mut ends, mut cost): (Vec<Vec<u8>>, u64) = (Vec::new(), 0);
    let last = by_end.last().map(|(end, _)| *end);
    for part in 1..parts as u64 {
        let near = |far: u64| share * part - share / 4 + far;
        let from = by_end.partition_point(|(_, sum)| *sum < near(0));
        let to = by_end.partition_point(|(_, sum)| *sum < near(share / 2)) + 1;
        let candidates = by_end.get(from..to.min(by_end.len())).unwrap_or_default();
        let through = |end: &[u8]| until(&by_start, end).saturating_sub(until(&by_end, end));
        let candidates = candidates.iter().step_by(candidates.len() / 32 + 1);
        let best = candidates
            .filter(|(end, _)| Some(*end) != last && !end.is_empty())
            .map(|(end, _)| (through(end), *end))
            .min_by_key(|(cells, _)| *cells);
        let Some((cells, end)) = best else { continue };
        let ascends = ends.last().is_none_or(|before| order(before, end).is_lt());
        if ascends && cells <= share / 2 {
            ends.push(end.to_vec());
            cost = cost.saturating_add(cells);
        }
    }
    (ends, cost)
}

/// The parts of a box along a dimension, the first up to the first end, and so on.
fn cut(
    array: &Array,
    selections: &[DimSelection],
    d: usize,
    ends: &[Vec<u8>],
) -> Vec<Vec<DimSelection>> {
    let dimension = array.schema().dimension(d);
    let (Some(dimension), Some(selection)) = (dimension, selections.get(d)) else {
        return vec![selections.to_vec()];
    };
    let current = array.schema().current_domain.ranges();
    let current = current.and_then(|ranges| ranges.get(d));
    let open = Range::default();
    let domain = current.or(dimension.domain.as_ref()).unwrap_or(&open);
    let mut parts = Vec::new();
    let mut start: Option<Vec<u8>> = None;
    for end in ends.iter().map(Some).chain([None]) {
        let (low, high) = (start.as_deref(), end.map(Vec::as_slice));
        if let Some(part) = within(selection, dimension, domain, low, high) {
            let mut of = selections.to_vec();
            of[d] = part;
            parts.push(of);
        }
        start = end.and_then(|end| successor(dimension, end));
        if start.is_none() {
            break;
        }
    }
    parts
}

/// What of a selection lies between two coordinates; `None` is no bound. Nothing if nothing does.
fn within(
    selection: &DimSelection,
    dimension: &Dimension,
    domain: &Range,
    low: Option<&[u8]>,
    high: Option<&[u8]>,
) -> Option<DimSelection> {
    let less = |a: &[u8], b: &[u8]| compare(dimension.datatype, a, b).is_lt();
    let clip = |range: &Range, endless: bool| {
        let start = low.filter(|low| less(&range.start, low));
        let start = start.unwrap_or(&range.start);
        let end = high.filter(|high| endless || less(high, &range.end));
        let end = end.unwrap_or(&range.end);
        let empty = less(end, start) && !(endless && high.is_none());
        (!empty).then(|| Range::new(start, end))
    };
    match selection {
        DimSelection::All => {
            let endless = dimension.is_var() && domain.end.is_empty();
            clip(domain, endless).map(|range| DimSelection::Ranges(vec![range]))
        }
        DimSelection::Ranges(ranges) => {
            let ranges = ranges.iter();
            let ranges = ranges.filter_map(|r| clip(r, is_endless(dimension.datatype, r)));
            let ranges: Vec<Range> = ranges.collect();
            (!ranges.is_empty()).then_some(DimSelection::Ranges(ranges))
        }
        DimSelection::Strided { range, step } => {
            let axis = dimension.axis()?;
            let clipped = clip(range, false)?;
            let (first, _) = axis.offsets_of(range)?;
            let (start, last) = axis.offsets_of(&clipped)?;
            let steps = (start - first).div_ceil((*step).max(1));
            let start = first.checked_add(steps.checked_mul(*step)?)?;
            (start <= last).then(|| DimSelection::Strided {
                range: Range::new(axis.coordinate(start), clipped.end),
                step: *step,
            })
        }
    }
}

/// The next coordinate; `None` behind the last one of the type.
fn successor(dimension: &Dimension, coordinate: &[u8]) -> Option<Vec<u8>> {
    if dimension.is_var() {
        return Some([coordinate, &[0]].concat());
    }
    match dimension.datatype.physical() {
        // -0.0 and 0.0 are one coordinate.
        Physical::F64 => {
            let value = f64::from_le_bytes(*coordinate.first_chunk()?);
            Some((value + 0.0).next_up().to_le_bytes().to_vec())
        }
        Physical::F32 => {
            let value = f32::from_le_bytes(*coordinate.first_chunk()?);
            Some((value + 0.0).next_up().to_le_bytes().to_vec())
        }
        _ => {
            let axis = dimension.axis()?;
            let next = axis.offset_of(coordinate)?.checked_add(1)?;
            (next <= axis.last_offset()).then(|| axis.coordinate(next))
        }
    }
}

//! Estimated result sizes, as the reference reckons them: of each tile as much as the selection takes
//! of its bounds.

mod boxes;
mod overlap;

use super::{State, zipped};
use crate::array::OpenArray;
use crate::error::{Failure, Result};
use azulejo::array::Fragment;
use azulejo::internal::{FragmentGrid, TileGrid};
use azulejo::space::{DimSelection, Subarray};
use azulejo_format::Datatype;
use azulejo_format::range::compare;
use azulejo_format::schema::{ArraySchema, Dimension, FieldIndex};
use azulejo_format::{NdRectangle, Range};
use std::cmp::Ordering;

/// Bytes of values, offsets and validity that a read of a field is estimated to give.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sizes {
    /// Values.
    pub data: u64,
    /// Offsets; 0 for fixed-length cells.
    pub offsets: u64,
    /// Validity; 0 for fields that cannot be null.
    pub validity: u64,
}

/// Estimates a field, which must be of the shape that the function is for.
pub fn sizes(
    state: &State,
    open: &OpenArray,
    name: &str,
    var: bool,
    nullable: bool,
) -> Result<Sizes> {
    let schema = open.snapshot().schema();
    if let (zipped::NAME, true, Some(dimension)) =
        (name, zipped::possible(schema), schema.dimension(0))
    {
        let mut sizes = sizes(state, open, &dimension.name, var, nullable)?;
        sizes.data = sizes
            .data
            .saturating_mul(schema.domain.dimensions.len() as u64);
        return Ok(sizes);
    }
    let field = schema.field(name);
    let field = field.ok_or_else(|| {
        Failure::new(format!(
            "Cannot get estimated result size; there is no field '{name}'"
        ))
    })?;
    let is = |yes: bool, what: &'static str| {
        if yes {
            what.to_owned()
        } else {
            format!("not {what}")
        }
    };
    for (wanted, found, what) in [
        (var, schema.is_var(field), "var-sized"),
        (nullable, schema.is_nullable(field), "nullable"),
    ] {
        if wanted != found {
            return Err(Failure::new(format!(
                "Cannot get estimated result size; field '{name}' is {}",
                is(found, what)
            )));
        }
    }
    if let Some(told) = state.estimates.get(name) {
        return Ok(*told);
    }
    let subarray = match &state.subarray {
        Some(ranges) => ranges.subarray()?,
        None => Subarray::all(),
    };
    let array = open.array()?;
    if let Some(sizes) = boxes::sizes(&array, schema, field, name, &subarray)? {
        return Ok(sizes);
    }
    let selected: Vec<(&Fragment, Vec<Share>)> = array
        .fragments()
        .iter()
        .map(|fragment| Ok((fragment, selected_tiles(schema, fragment, &subarray)?)))
        .collect::<Result<_>>()?;
    let cells = if schema.is_dense() {
        let cells = subarray
            .cell_num(schema)
            .and_then(|cells| u64::try_from(cells).ok());
        cells.ok_or_else(|| Failure::new("more cells than fit memory are selected"))?
    } else {
        let tiles = selected
            .iter()
            .flat_map(|(fragment, tiles)| tiles.iter().map(|(t, _)| fragment.tile_cell_num(*t)));
        tiles.fold(0, u64::saturating_add)
    };
    let mut sizes = Sizes::default();
    match schema.cell_size(field) {
        Some(size) => sizes.data = cells.saturating_mul(size as u64),
        None => {
            sizes.offsets = cells.saturating_mul(8);
            let mut bytes = 0.0;
            for (fragment, tiles) in &selected {
                let Some(own) = fragment.field(name) else {
                    continue;
                };
                for (tile, share) in tiles {
                    bytes += fragment.var_tile_size(own, *tile)? as f64 * share;
                }
            }
            sizes.data = bytes.ceil() as u64;
            if let (true, FieldIndex::Attribute(index)) = (schema.is_dense(), field) {
                // Cells that nobody wrote are results too.
                let fill = schema
                    .attribute(index)
                    .map_or(0, |a| a.fill_value.len() as u64);
                sizes.data = sizes.data.max(cells.saturating_mul(fill));
            }
        }
    }
    if schema.is_nullable(field) {
        sizes.validity = cells;
    }
    Ok(sizes)
}

/// How many fragments have a non-empty domain that meets the selection along every dimension. The
/// reference knows once it has estimated sizes or read a selection, and says 0 before.
pub fn relevant_fragments(state: &State, open: &OpenArray) -> Result<u64> {
    let array = open.array()?;
    let subarray = match &state.subarray {
        Some(ranges) => ranges.subarray()?,
        None => Subarray::all(),
    };
    let Subarray::Box(selections) = subarray else {
        return Ok(array.fragments().len() as u64);
    };
    let meets = |fragment: &&Fragment| {
        let Some(written) = &fragment.footer().non_empty_domain else {
            return true;
        };
        let dimensions = &fragment.schema().domain.dimensions;
        let mut along = selections.iter().zip(&written.ranges).zip(dimensions);
        along.all(|((selection, written), dimension)| meets_along(dimension, selection, written))
    };
    Ok(array.fragments().iter().filter(meets).count() as u64)
}

/// Whether some range along a dimension meets another one.
fn meets_along(dimension: &Dimension, selection: &DimSelection, written: &Range) -> bool {
    let less = |a: &[u8], b: &[u8]| compare(dimension.datatype, a, b) == Ordering::Less;
    match selection {
        DimSelection::Ranges(ranges) => ranges
            .iter()
            .any(|range| !less(&range.end, &written.start) && !less(&written.end, &range.start)),
        _ => true,
    }
}

/// A tile, and which share of its cells is thought to be selected.
pub type Share = (u64, f64);

/// The tiles of a dense fragment in the box around a selection; `None` if that is not a box of the
/// domain.
fn touched(fragment: &Fragment, selections: &[DimSelection]) -> Result<Option<Vec<Share>>> {
    let Some(written) = fragment.footer().non_empty_domain.as_ref() else {
        return Ok(Some(Vec::new()));
    };
    let hull = selections
        .iter()
        .zip(&written.ranges)
        .zip(&fragment.schema().domain.dimensions);
    let hull = hull.map(|((selection, written), dimension)| match selection {
        DimSelection::Ranges(ranges) => hull_of(dimension.datatype, ranges),
        _ => Some(written.clone()),
    });
    match hull.collect::<Option<Vec<Range>>>() {
        Some(ranges) => tiles_of_box(fragment, &NdRectangle { ranges }),
        None => Ok(None),
    }
}

/// The tiles of a dense fragment in a box, those included of which the fragment has other cells;
/// `None` if its cells cannot be counted.
pub fn tiles_of_box(fragment: &Fragment, bounds: &NdRectangle) -> Result<Option<Vec<Share>>> {
    let Some(written) = fragment.footer().non_empty_domain.as_ref() else {
        return Ok(Some(Vec::new()));
    };
    // The fragment's own grid: the array may have been written over an older one.
    let grid = TileGrid::new(fragment.schema())?;
    let Some(selected) = grid.offsets_within(bounds) else {
        return Ok(Some(Vec::new()));
    };
    let Some(bounds) = grid.offsets_of(written) else {
        return Ok(None);
    };
    // In arrays with a current domain the reference takes the fragment to end with the cells that
    // were written, and counts its tiles from the first of these.
    let bounded = fragment.schema().current_domain.ranges().is_some();
    if bounded
        && selected
            .iter()
            .zip(&bounds)
            .any(|(s, w)| s.0 > w.1 || s.1 < w.0)
    {
        return Ok(Some(Vec::new()));
    }
    // The coordinates from which offsets are counted.
    let dimensions = &fragment.schema().domain.dimensions;
    let begins = dimensions.iter().zip(&bounds).map(|(dimension, written)| {
        let domain = dimension.domain.as_ref();
        let first = domain.map_or(0, |d| overlap::whole(dimension.datatype, &d.start));
        first + i128::from(if bounded { written.0 } else { 0 })
    });
    let begins: Vec<i128> = begins.collect();
    let shift = |(low, high): (u64, u64), written: (u64, u64)| {
        let from = if bounded { written.0 } else { 0 };
        (low.saturating_sub(from), high.saturating_sub(from))
    };
    let pairs = selected.iter().zip(&bounds);
    let (selected, bounds): (Vec<_>, Vec<_>) = pairs
        .map(|(selected, written)| (shift(*selected, *written), shift(*written, *written)))
        .unzip();
    // Otherwise whole tiles are there, whatever was written of them.
    let both = grid
        .axes()
        .iter()
        .zip(grid.extents())
        .zip(&selected)
        .zip(&bounds);
    let both = both.map(|(((axis, extent), selected), written)| {
        if bounded {
            return (selected.0.max(written.0), selected.1.min(written.1));
        }
        let start = axis.tile_of(written.0).saturating_mul(*extent);
        let end = axis.tile_of(written.1).saturating_mul(*extent);
        (
            selected.0.max(start),
            selected.1.min(end.saturating_add(extent - 1)),
        )
    });
    let both: Vec<(u64, u64)> = both.collect();
    if both.iter().any(|(first, last)| first > last) {
        return Ok(Some(Vec::new()));
    }
    let Some(tiles) = FragmentGrid::new(&grid, bounds) else {
        return Ok(None);
    };
    let (first, last): (Vec<u64>, Vec<u64>) = grid
        .axes()
        .iter()
        .zip(&both)
        .map(|(axis, (first, last))| (axis.tile_of(*first), axis.tile_of(*last)))
        .unzip();
    // As the reference, by how much of each tile the box takes. Its lengths are differences of reals,
    // which do not tell near coordinates of 64 bits apart.
    let share = |at: &[u64]| -> f64 {
        let along = at.iter().zip(grid.extents()).zip(&selected).zip(&begins);
        along
            .map(|(((tile, extent), (low, high)), begin)| {
                let start = tile.saturating_mul(*extent);
                let end = start.saturating_add(extent - 1);
                let real = |offset: u64| (*begin + i128::from(offset)) as f64;
                let length = |first: u64, last: u64| real(last) - real(first) + 1.0;
                length(start.max(*low), end.min(*high)) / length(start, end)
            })
            .product()
    };
    let (mut at, mut found) = (first.clone(), Vec::new());
    loop {
        found.push((tiles.tile_index(&at), share(&at)));
        let step = at.iter().zip(&last).rposition(|(at, last)| at < last);
        let Some(step) = step else {
            return Ok(Some(in_order(found)));
        };
        for (i, (at, first)) in at.iter_mut().zip(&first).enumerate().skip(step) {
            *at = if i == step { *at + 1 } else { *first };
        }
    }
}

/// Tiles in the order in which the reference adds them up, which tells where sums are rounded: those
/// that are taken whole and follow each other, then the others.
fn in_order(mut found: Vec<Share>) -> Vec<Share> {
    found.sort_unstable_by_key(|(tile, _)| *tile);
    let mut runs = Vec::with_capacity(found.len());
    let mut others = Vec::new();
    let follow = |a: &Share, b: &Share| a.1 == 1.0 && b.1 == 1.0 && a.0 + 1 == b.0;
    for run in found.chunk_by(follow) {
        let to = if run.len() > 1 {
            &mut runs
        } else {
            &mut others
        };
        to.extend_from_slice(run);
    }
    runs.append(&mut others);
    runs
}

/// The range from the first to the last of ranges.
fn hull_of(datatype: Datatype, ranges: &[Range]) -> Option<Range> {
    let less = |a: &[u8], b: &[u8]| compare(datatype, a, b) == Ordering::Less;
    let mut all = ranges.first()?.clone();
    for range in ranges {
        if less(&range.start, &all.start) {
            all.start.clone_from(&range.start);
        }
        if less(&all.end, &range.end) {
            all.end.clone_from(&range.end);
        }
    }
    Some(all)
}

/// More ranges than this along a dimension count as one from the first to the last.
const MAX_RANGES: usize = 64;

/// The tiles of a fragment that may hold selected cells: of sparse ones those whose bounds meet the
/// selection, of dense ones those in the box around it.
fn selected_tiles(
    schema: &ArraySchema,
    fragment: &Fragment,
    subarray: &Subarray,
) -> Result<Vec<Share>> {
    let whole = |tile: u64| (tile, 1.0);
    let Subarray::Box(selections) = subarray else {
        return Ok((0..fragment.tile_num()).map(whole).collect());
    };
    if fragment.is_dense() {
        let all = || (0..fragment.tile_num()).map(whole).collect();
        return Ok(touched(fragment, selections)?.unwrap_or_else(all));
    }
    let mut tiles: Vec<u64> = (0..fragment.tile_num()).collect();
    if selections.iter().all(|s| matches!(s, DimSelection::All)) {
        return Ok(tiles.into_iter().map(whole).collect());
    }
    let tree = fragment.rtree()?;
    for (index, selection) in selections.iter().enumerate() {
        let (DimSelection::Ranges(ranges), Some(dimension)) = (selection, schema.dimension(index))
        else {
            continue;
        };
        let less = |a: &[u8], b: &[u8]| compare(dimension.datatype, a, b) == Ordering::Less;
        let ranges = match ranges.len() {
            0..=MAX_RANGES => ranges.clone(),
            _ => hull_of(dimension.datatype, ranges).into_iter().collect(),
        };
        tiles.retain(|tile| {
            let bounds = usize::try_from(*tile)
                .ok()
                .and_then(|tile| tree.tile_range(tile, index));
            bounds.is_none_or(|bounds| {
                // A string range without an end goes on for ever.
                let open = |r: &Range| dimension.is_var() && r.end.is_empty();
                ranges.iter().any(|r| {
                    (open(r) || !less(&r.end, bounds.start)) && !less(bounds.end, &r.start)
                })
            })
        });
    }
    Ok(tiles.into_iter().map(whole).collect())
}

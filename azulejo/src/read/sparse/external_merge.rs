//! Batches out of more tiles than the memory budget can hold at a time.
//!
//! Where the order asked for has little to do with the stored one, as in a row-major read of an
//! array along a Hilbert curve, the next cells of the result may lie in any tile. Then all tiles
//! are looked at, some at a time, and of each only the cells that come next stay. Every batch
//! decodes coordinates anew: slow, but within the budget.

use super::batch::{examine, keys_of, ordered, slots_of};
use super::columns::{ColumnTiles, cells_of};
use super::plan::Portion;
use super::query::SparseQuery;
use super::tile::BatchTile;
use crate::column::ColumnSet;
use crate::error::{Error, Result};
use crate::read::gather::{Used, gather_slabs};
use crate::read::{Cells, Tile};
use crate::space::cell_order::CellBound;
use crate::space::keys::{CellBits, KeySet, Keys, Word};
use azulejo_format::fragment::Field;
use std::ops::Range;
use std::sync::Arc;

/// What was read of a portion.
pub(super) enum Extracted {
    /// Its cells, `None` if there are none. Where they were too many, the upper bound was lowered:
    /// to where the next read begins.
    Cells(Option<ColumnSet>, Option<CellBound>),
    /// Even the cells of one place are too many: bytes that they take.
    TooMany(u64),
}

/// Reads the cells within a portion's bounds.
pub(super) async fn read(query: &SparseQuery, portion: &Portion<'_>) -> Result<Extracted> {
    let from = portion.bounds.0.as_ref();
    let mut to = portion.bounds.1.clone();
    let mut lowered = None;
    let mut slots = slots_of(query, portion)?;

    // 1. Of some tiles after others the cells that come next; fewer, where these are too many.
    let budget = &query.budget;
    let largest = slots.iter().map(|slot| slot.tile.cost).max().unwrap_or(0);
    // One for each of two threads, where there is room.
    let two = largest.saturating_mul(2).min(budget.tiles);
    let under_way = (budget.total - budget.extracted).max(two);
    let most = budget.total.saturating_sub(under_way.max(largest));
    let most = most.max(budget.tiles);
    let mut bytes = 0u64;
    for group in groups(&slots, under_way) {
        let end = group.end;
        let members = slots.get_mut(group).unwrap_or_default();
        examine(query, members).await?;
        let set = keys_of(query, members, from, to.as_ref(), true)?;
        bytes += compact(query, members, set);
        while bytes > most {
            let members = slots.get_mut(..end).unwrap_or_default();
            let Some(bound) = middle(query, members, from, to.as_ref())? else {
                return Ok(Extracted::TooMany(bytes));
            };
            let set = keys_of(query, members, from, Some(&bound), true)?;
            bytes = compact(query, members, set);
            to = Some(bound.clone());
            lowered = Some(bound);
        }
    }

    // 2. Their order.
    let mut slabs = Vec::new();
    ordered(query, 0, &slots, &(None, None), true, &mut slabs)?;
    if slabs.is_empty() {
        return Ok(Extracted::Cells(None, lowered));
    }

    // 3. Their columns.
    let cell_num = cells_of(&slabs)?;
    let mut columns = Vec::with_capacity(query.fields.len());
    for (i, bound) in query.fields.iter().enumerate() {
        let tiles = column_tiles(query, &slots, i, under_way).await?;
        let context = query.array.context();
        let kind = &bound.column_type;
        columns.push(gather_slabs(context, &slabs, &tiles, kind, &bound.fill)?);
    }
    let cells = ColumnSet { cell_num, columns };
    Ok(Extracted::Cells(Some(cells), lowered))
}

/// A bound with about half of the cells below it, at least one; `None` if all cells have the same
/// coordinates.
///
/// For example cells at 1, 1, 1, 4 and 9: the bound is 4, below which there are three.
fn middle(
    query: &SparseQuery,
    members: &[BatchTile<'_>],
    from: Option<&CellBound>,
    to: Option<&CellBound>,
) -> Result<Option<CellBound>> {
    fn cell_at<W: Word>(keys: Vec<Vec<W>>, bits: CellBits) -> Option<(u32, u32)> {
        let mut keys: Vec<W> = keys.into_iter().flatten().collect();
        keys.sort_unstable();
        let low = bits.total();
        let half = keys.get(keys.len() / 2)?.drop_low(low);
        let mut at = keys.partition_point(|key| key.drop_low(low) < half);
        if at == 0 {
            at = keys.partition_point(|key| key.drop_low(low) <= half);
        }
        keys.get(at).map(|key| bits.cell(*key))
    }
    let set = keys_of(query, members, from, to, true)?;
    let cell = match set.keys {
        Keys::Narrow(keys) => cell_at(keys, set.cell_bits),
        Keys::Wide(keys) => cell_at(keys, set.cell_bits),
    };
    let Some((slot, place)) = cell else {
        return Ok(None);
    };
    let lost = || Error::Internal("coordinates were dropped".into());
    let slot = members.get(slot as usize).ok_or_else(lost)?;
    let coordinates: Vec<&[u8]> = (0..query.order.dimensions().len())
        .map(|d| {
            slot.view(Field::Dimension(d))
                .map(|view| view.cell(place as usize))
                .ok_or_else(lost)
        })
        .collect::<Result<_>>()?;
    Ok(Some(query.order.cell_bound(&coordinates)))
}

/// Cuts slots where the next would exceed the budget.
fn groups(slots: &[BatchTile<'_>], budget: u64) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut cost = 0u64;
    for (i, slot) in slots.iter().enumerate() {
        cost = cost.saturating_add(slot.tile.cost);
        match groups.last_mut() {
            Some(group) if cost <= budget => group.end = i + 1,
            _ => {
                groups.push(i..i + 1);
                cost = slot.tile.cost;
            }
        }
    }
    groups
}

/// The cells that keys stand for, ascending, by slot.
fn cells_by_slot(set: KeySet, slot_num: usize) -> Vec<Vec<u32>> {
    let mut cells: Vec<Vec<u32>> = vec![Vec::new(); slot_num];
    let mut push = |(slot, place): (u32, u32)| {
        if let Some(cells) = cells.get_mut(slot as usize) {
            cells.push(place);
        }
    };
    let bits = set.cell_bits;
    match set.keys {
        Keys::Narrow(keys) => keys.iter().flatten().for_each(|key| push(bits.cell(*key))),
        Keys::Wide(keys) => keys.iter().flatten().for_each(|key| push(bits.cell(*key))),
    }
    cells
}

/// Drops everything of slots but the cells that keys stand for; returns what these will have cost.
fn compact(query: &SparseQuery, members: &mut [BatchTile<'_>], keys: KeySet) -> u64 {
    let cells = cells_by_slot(keys, members.len());
    let slots = members.iter_mut().zip(cells);
    let bytes = slots.map(|(slot, places)| {
        let cell = slot.tile.cost / u64::from(slot.tile.cell_num).max(1);
        let cells = places.len() as u64;
        slot.compact(query, places) + cell * cells
    });
    bytes.sum()
}

/// The tiles of one column, cut down to the cells that the slots hold; tiles of so many bytes are
/// read at a time.
async fn column_tiles(
    query: &SparseQuery,
    slots: &[BatchTile<'_>],
    column: usize,
    under_way: u64,
) -> Result<Vec<Option<Arc<Tile>>>> {
    let used: Vec<Used> = slots.iter().map(|slot| Used::of(&slot.selected)).collect();
    let spans = vec![Cells::All; slots.len()];
    let mut tiles = Vec::with_capacity(slots.len());
    for group in groups(slots, under_way) {
        let some = (
            slots.get(group.clone()),
            used.get(group.clone()),
            spans.get(group),
        );
        let (Some(slots), Some(used), Some(spans)) = some else {
            break;
        };
        let (loaded, _) = ColumnTiles::new(query, slots, used, spans, column)?
            .load(query)
            .await?;
        tiles.extend(loaded);
    }
    Ok(tiles)
}

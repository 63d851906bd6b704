//! Batches out of more tiles than the memory budget can hold at a time.
//!
//! Where too many tiles overlap, or the order asked for has little to do with the stored one, as in
//! a row-major read of an array along a Hilbert curve, the next cells of the result may lie in any
//! tile. Then all tiles are looked at, some at a time, and of each the cells that come next stay,
//! packed and in order: a *window* onto the result. Batches are made out of it until nothing is
//! left; then the tiles are decoded again, for the next window. For example tiles of 100 MB that
//! overlap in full, and windows of 25 MB: each tile is decoded five times.

use super::batch::{self, examine, keys_of, ordered, slots_of};
use super::columns::ColumnTiles;
use super::plan::{PlannedTile, Portion};
use super::query::SparseQuery;
use super::tile::BatchTile;
use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::read::budget::WantedBatch;
use crate::read::gather::Used;
use crate::read::output::{Batch, Output};
use crate::read::{Cells, Tile};
use crate::space::cell_bound::CellBound;
use crate::space::keys::{CellBits, KeySet, Keys, RowSelection, Word};
use crate::space::try_first_where;
use azulejo_format::fragment::Field;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Cells that are looked at to tell where a batch ends.
const SAMPLES: u64 = 32;

/// The cells that come next.
#[derive(Debug)]
pub(super) struct CellWindow {
    /// In the order of cells of equal coordinates.
    pieces: Vec<WindowPiece>,
    /// Where batches end, that of the next one last; the last batch takes all that is left.
    ends: Vec<CellBound>,
    done: bool,
}

/// The cells of a tile that lie in a window, in order.
#[derive(Debug)]
struct WindowPiece {
    tile: PlannedTile,
    loaded: BTreeMap<Field, Arc<Tile>>,
    /// As [`BatchTile::results`].
    results: Option<Vec<u8>>,
    cells: u32,
    /// How many of them batches have taken.
    taken: u32,
}

/// Bytes that the tiles under way may take while a window is filled, and the window itself.
///
/// One tile for each of two threads, where there is room; else one.
pub(super) fn room(query: &SparseQuery, tiles: &[&PlannedTile]) -> Option<(u64, u64)> {
    let costs = tiles.iter().map(|tile| under_way_cost(query, tile));
    let largest = costs.max().unwrap_or(0);
    let budget = &query.budget;
    let two = largest.saturating_mul(2).min(budget.tiles);
    let under_way = (budget.total / 4).max(two).max(largest);
    // Where one tile is nearly all of the budget, each window would be a few cells.
    let window = budget.total.checked_sub(under_way)?.min(budget.tiles);
    (window >= budget.total / 4).then_some((under_way, window))
}

/// What a tile takes while it is looked at. Cells that are not stored in the order asked for get
/// keys.
fn under_way_cost(query: &SparseQuery, tile: &PlannedTile) -> u64 {
    match query.as_stored {
        true => tile.decoded,
        false => tile.cost,
    }
}

/// Reads the cells within a portion's bounds, as many as a window has room for. Where they are too
/// many, the upper bound is lowered: to where the next window begins.
pub(super) async fn open(
    query: &SparseQuery,
    portion: &Portion<'_>,
    wanted: WantedBatch,
) -> Result<(CellWindow, Option<CellBound>)> {
    let too_many = |need| Error::Budget {
        what: "cells of one place".to_owned(),
        need,
        budget: query.budget.total,
    };
    let from = portion.bounds.0.as_ref();
    let mut to = portion.bounds.1.clone();
    let mut lowered = None;
    let mut slots = slots_of(query, portion)?;
    // A tile is decoded for every window; none of it is worth a place in the cache.
    slots.iter_mut().for_each(|slot| slot.shared = false);
    let Some((under_way, most)) = room(query, &portion.tiles) else {
        return Err(too_many(query.budget.total));
    };

    // 1. Of some tiles after others the cells that come next, in order.
    let (mut looked_at, mut held) = (0, 0u64);
    while looked_at < slots.len() {
        let group = group(query, &slots, looked_at, under_way);
        looked_at = group.end;
        let members = slots.get_mut(group).unwrap_or_default();
        examine(query, members).await?;
        pick(query, members, from, to.as_ref())?;
        held += held_by(members);
        while held > most {
            let share = most as f64 / held as f64 * 0.9;
            let members = slots.get_mut(..looked_at).unwrap_or_default();
            let Some(bound) = bound_at(query, members, share.max(0.5))? else {
                return Err(too_many(held));
            };
            cut_off(query, members, &bound)?;
            held = held_by(members);
            // What lies behind needs no look.
            let mut at = 0;
            slots.retain(|slot| {
                at += 1;
                at <= looked_at || slot.tile.lower < bound
            });
            to = Some(bound.clone());
            lowered = Some(bound);
        }
    }

    // 2. Their columns.
    slots.retain(|slot| slot.selected.len() > 0);
    for column in 0..query.fields.len() {
        query.operation.check()?;
        load_column(query, &mut slots, column, under_way).await?;
        // Values may be longer than those of a tile are on the whole.
        while held_by(&slots) > most {
            let Some(bound) = bound_at(query, &slots, 0.75)? else {
                return Err(too_many(held_by(&slots)));
            };
            cut_off(query, &mut slots, &bound)?;
            slots.retain(|slot| slot.selected.len() > 0);
            lowered = Some(bound);
        }
    }
    let ends = ends(query, &slots, wanted)?;
    let pieces = slots.into_iter().map(|slot| WindowPiece {
        cells: u32::try_from(slot.selected.len()).unwrap_or(u32::MAX),
        tile: slot.tile.clone(),
        loaded: slot.loaded,
        results: slot.results,
        taken: 0,
    });
    let window = CellWindow {
        pieces: pieces.collect(),
        ends,
        done: false,
    };
    Ok((window, lowered))
}

impl CellWindow {
    /// How many cells it holds.
    pub fn cells(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.cells)).sum()
    }

    /// The next cells, at least one; `None` at the end.
    pub async fn next(
        &mut self,
        query: &SparseQuery,
        mut output: Output<'_, '_>,
    ) -> Result<Option<Batch>> {
        while !self.done {
            query.operation.check()?;
            let end = self.ends.pop();
            self.done = end.is_none();
            let mut slots = Vec::with_capacity(self.pieces.len());
            for piece in &mut self.pieces {
                if let Some(slot) = piece.take(query, end.as_ref())? {
                    slots.push(slot);
                }
            }
            let mut slabs = Vec::new();
            ordered(query, 0, &slots, &(None, None), &mut slabs)?;
            let batch = batch::columns_of(query, slots, &slabs, 0, output.again()).await?;
            if batch.is_some() {
                return Ok(batch);
            }
        }
        Ok(None)
    }
}

impl WindowPiece {
    /// The next cells, those below a bound if there is one; `None` if there are none.
    fn take<'a>(
        &'a mut self,
        query: &'a SparseQuery,
        end: Option<&CellBound>,
    ) -> Result<Option<BatchTile<'a>>> {
        let first = self.taken;
        if first == self.cells {
            return Ok(None);
        }
        let mut slot = BatchTile::new(query, &self.tile, true, false)?;
        slot.loaded.clone_from(&self.loaded);
        slot.selected = RowSelection::All(self.cells);
        let last = match end {
            Some(end) => first_that(query, &slot, first, |cell| cell >= end)?,
            None => self.cells,
        };
        self.taken = last;
        if first == last {
            return Ok(None);
        }
        slot.selected = RowSelection::List((first..last).collect());
        slot.results.clone_from(&self.results);
        // All its fields are loaded: no cell is looked for in the tile any more.
        slot.places = Some(Vec::new());
        Ok(Some(slot))
    }
}

/// The slots from `start` on that are looked at together.
fn group(
    query: &SparseQuery,
    slots: &[BatchTile<'_>],
    start: usize,
    under_way: u64,
) -> Range<usize> {
    let mut cost = 0u64;
    let fits = |slot: &&BatchTile<'_>| {
        cost = cost.saturating_add(under_way_cost(query, slot.tile));
        cost <= under_way
    };
    let rest = slots.iter().skip(start);
    start..start + rest.take_while(fits).count().max(1)
}

/// Drops everything of slots but the cells within `[from, to)`, and puts these in order.
fn pick(
    query: &SparseQuery,
    members: &mut [BatchTile<'_>],
    from: Option<&CellBound>,
    to: Option<&CellBound>,
) -> Result<()> {
    // Where libtiledb has stored NaN, cells may lie in no order at all.
    if !query.as_stored || members.iter().any(|slot| slot.has_nan(query)) {
        let set = keys_of(query, members, from, to)?;
        let cells = in_order(set, members.len());
        for (slot, places) in members.iter_mut().zip(cells) {
            slot.compact(query, places);
        }
        return Ok(());
    }
    for slot in members.iter_mut().filter(|slot| slot.selected.len() > 0) {
        let len = u32::try_from(slot.selected.len()).unwrap_or(u32::MAX);
        let place = |bound: Option<&CellBound>, none: u32| match bound {
            Some(bound) => first_that(query, slot, 0, |cell| cell >= bound),
            None => Ok(none),
        };
        let (first, last) = (place(from, 0)?, place(to, len)?);
        let rows = match &slot.selected {
            RowSelection::All(_) => (first..last).collect(),
            RowSelection::List(list) => {
                let rows = list.get(first as usize..last as usize);
                rows.unwrap_or_default().to_vec()
            }
        };
        slot.compact(query, rows);
    }
    Ok(())
}

/// Drops the cells of slots, which are in order, from a bound on.
fn cut_off(query: &SparseQuery, slots: &mut [BatchTile<'_>], bound: &CellBound) -> Result<()> {
    for slot in slots.iter_mut().filter(|slot| slot.selected.len() > 0) {
        let end = first_that(query, slot, 0, |cell| cell >= bound)?;
        if (end as usize) < slot.selected.len() {
            slot.compact(query, (0..end).collect());
        }
    }
    Ok(())
}

/// The places of the cells that keys stand for, in their order, by slot.
fn in_order(set: KeySet, slot_num: usize) -> Vec<Vec<u32>> {
    fn by_slot<W: Word>(keys: Vec<Vec<W>>, bits: CellBits, slot_num: usize) -> Vec<Vec<u32>> {
        let mut cells: Vec<Vec<u32>> = vec![Vec::new(); slot_num];
        for mut list in keys {
            if !list.is_sorted() {
                list.sort_unstable();
            }
            let slot = list.first().map(|key| bits.cell(*key).0);
            if let Some(cells) = slot.and_then(|slot| cells.get_mut(slot as usize)) {
                *cells = list.into_iter().map(|key| bits.cell(key).1).collect();
            }
        }
        cells
    }
    match set.keys {
        Keys::Narrow(keys) => by_slot(keys, set.cell_bits, slot_num),
        Keys::Wide(keys) => by_slot(keys, set.cell_bits, slot_num),
    }
}

/// Bytes of the cells that slots hold, with what is not loaded of them yet.
fn held_by(slots: &[BatchTile<'_>]) -> u64 {
    let bytes = slots.iter().map(|slot| {
        let cells = slot.selected.len() as u64;
        let loaded: usize = slot.loaded.values().map(|tile| tile.memory()).sum();
        let expected =
            slot.tile.decoded.saturating_mul(cells) / u64::from(slot.tile.cell_num.max(1));
        let places = 4 * cells;
        let results = slot.results.as_ref().map_or(0, Vec::len);
        expected.max(loaded as u64) + places + results as u64
    });
    bytes.sum()
}

/// The bound at one of a slot's selected cells, within those of its tile.
fn cell_at(query: &SparseQuery, slot: &BatchTile<'_>, at: u32) -> Result<CellBound> {
    let lost = || Error::Internal("coordinates were dropped".into());
    let place = match &slot.selected {
        RowSelection::All(_) => at,
        RowSelection::List(list) => list.get(at as usize).copied().ok_or_else(lost)?,
    };
    let view = |d| {
        slot.view(Field::Dimension(d))
            .map(|view: FieldView<'_>| view.cell(place as usize))
    };
    let dimensions = 0..query.order.dimensions().len();
    let coordinates: Option<Vec<&[u8]>> = dimensions.map(view).collect();
    let bound = query.order.cell_bound(&coordinates.ok_or_else(lost)?);
    Ok(slot.place_of(bound))
}

/// The first of a slot's selected cells, which are in order, from which on something is true of all;
/// it is known not to lie before `start`.
fn first_that(
    query: &SparseQuery,
    slot: &BatchTile<'_>,
    start: u32,
    holds: impl Fn(&CellBound) -> bool,
) -> Result<u32> {
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let first = try_first_where(u64::from(start)..slot.selected.len() as u64, |at| {
        Ok::<_, Error>(holds(&cell_at(query, slot, narrow(at))?))
    })?;
    Ok(narrow(first))
}

/// The bounds at `num` cells of slots at even distances, ascending.
fn samples(query: &SparseQuery, slots: &[BatchTile<'_>], num: u64) -> Result<Vec<CellBound>> {
    let total: u64 = slots.iter().map(|slot| slot.selected.len() as u64).sum();
    let step = total.div_ceil(num.max(1)).max(1);
    let mut samples = Vec::new();
    // The next one's place in the slot.
    let mut at = step / 2;
    for slot in slots {
        let cells = slot.selected.len() as u64;
        while at < cells {
            let place = u32::try_from(at).unwrap_or(u32::MAX);
            samples.push(cell_at(query, slot, place)?);
            at += step;
        }
        at -= cells;
    }
    samples.sort_unstable();
    Ok(samples)
}

/// A bound with about a share of the cells below it, at least one; `None` if all cells have the same
/// coordinates.
///
/// For example cells at 1, 1, 1, 4 and 9: the bound for a half is 4, as there is none below 1.
fn bound_at(query: &SparseQuery, slots: &[BatchTile<'_>], share: f64) -> Result<Option<CellBound>> {
    let samples = samples(query, slots, 8 * SAMPLES)?;
    let firsts = slots.iter().filter(|slot| slot.selected.len() > 0);
    let firsts = firsts.map(|slot| cell_at(query, slot, 0));
    let Some(least) = firsts.collect::<Result<Vec<_>>>()?.into_iter().min() else {
        return Ok(None);
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a few hundred"
    )]
    let at = (samples.len() as f64 * share) as usize;
    if let Some(bound) = samples.into_iter().nth(at).filter(|bound| *bound > least) {
        return Ok(Some(bound));
    }
    // The least of the cells behind those.
    let behind = slots.iter().map(|slot| {
        let first = first_that(query, slot, 0, |cell| *cell > least)?;
        let is_there = (first as usize) < slot.selected.len();
        is_there.then(|| cell_at(query, slot, first)).transpose()
    });
    let behind = behind.collect::<Result<Vec<_>>>()?;
    Ok(behind.into_iter().flatten().min())
}

/// Where the batches of a window end but the last one, that of the first one last.
fn ends(
    query: &SparseQuery,
    slots: &[BatchTile<'_>],
    wanted: WantedBatch,
) -> Result<Vec<CellBound>> {
    // Keys, what sorting them takes, and the columns.
    let need = slots.iter().map(|slot| {
        let beside = slot.tile.cost - slot.tile.decoded;
        beside.saturating_mul(slot.selected.len() as u64) / u64::from(slot.tile.cell_num.max(1))
    });
    let need = need.fold(0, u64::saturating_add);
    let budget = &query.budget;
    let batch = (budget.total / 4).min(budget.batch_of(wanted)).max(1);
    let batches = need.div_ceil(batch);
    if batches < 2 {
        return Ok(Vec::new());
    }
    let samples = samples(query, slots, batches * SAMPLES)?;
    let every = (SAMPLES as usize).min(samples.len().max(1));
    let mut ends: Vec<CellBound> = samples.into_iter().step_by(every).skip(1).collect();
    ends.dedup();
    ends.reverse();
    Ok(ends)
}

/// Loads a field of the cells that slots hold; tiles of so many bytes are read at a time.
async fn load_column(
    query: &SparseQuery,
    slots: &mut [BatchTile<'_>],
    column: usize,
    under_way: u64,
) -> Result<()> {
    let mut start = 0;
    while start < slots.len() {
        let group = group(query, slots, start, under_way);
        start = group.end;
        let slots = slots.get_mut(group).unwrap_or_default();
        let used: Vec<Used> = slots.iter().map(|slot| Used::of(&slot.selected)).collect();
        let spans = vec![Cells::All; slots.len()];
        let columns = ColumnTiles::new(query, slots, &used, &spans, column)?;
        let (tiles, _) = columns.load(query).await?;
        for (slot, tile) in slots.iter_mut().zip(tiles) {
            if let (Some(field), Some(tile)) = (slot.field(column), tile) {
                slot.loaded.insert(field, tile);
            }
        }
    }
    Ok(())
}

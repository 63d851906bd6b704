//! One batch: key fields first, then masks, order, and the other fields of what is left.

use super::columns;
use super::merge::{MergeRule, merge};
use super::plan::{CellBounds, Portion};
use super::query::SparseQuery;
use super::tile::BatchTile;
use super::tiles::{self, WantedTile};
use crate::error::{Error, Result};
use crate::read::Cells;
use crate::read::decode::stored_tiles;
use crate::read::fetch::block_on;
use crate::read::output::{Batch, Output, OutputMemory};
use crate::read::parallel::each;
use crate::read::stored_tile::StoredTile;
use crate::space::CellSlab;
use crate::space::cell_bound::CellBound;
use crate::space::keys::{self, KeySet, KeyTile, RowSelection};
use azulejo_format::fragment::Field;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Prefetching: asks for what portions surely need, in the order in which it is needed. That is
/// what their first step looks at, and where that decides nothing, all else. `room`: bytes that may
/// be under way.
pub(super) fn prefetch(query: &SparseQuery, portions: &[Portion<'_>], room: u64) {
    let (mut keys, mut tests, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for portion in portions {
        for slot in slots_of(query, portion).unwrap_or_default() {
            let add = |field: Field, stored: &mut Vec<StoredTile>| {
                if slot.fragment.stores(slot.fragment.stored_field(field)) {
                    // Who needs the tile is told what is wrong with it.
                    let _ = stored_tiles(&query.array, &slot.request(field, Cells::All), stored);
                }
            };
            if let Some(dimension) = slot.selective_dimension(query) {
                add(Field::Dimension(dimension), &mut keys);
                continue;
            }
            for field in slot.key_fields(query) {
                add(field, &mut keys);
            }
            if slot.tile.no_results || !slot.tile.dimensions.is_empty() || slot.of.within.is_some()
            {
                continue;
            }
            for field in slot.test_fields(query) {
                add(field, &mut tests);
            }
            if slot.tile.tests.is_empty() && slot.of.deleted_until.is_none() {
                for field in slot.of.fields.iter().flatten() {
                    add(*field, &mut values);
                }
            }
        }
    }
    // One read each: who waits for keys does not wait for the rest.
    query.fetcher.prefetch(&keys, room);
    query.fetcher.prefetch(&tests, room);
    values.sort_by_key(|tile| tile.field);
    for tiles in values.chunk_by(|a, b| a.field == b.field) {
        query.fetcher.prefetch(tiles, room);
    }
}

/// Reads a batch; `None` if no cell of it is a result. `prefetch_room` says how many bytes may be
/// under way.
pub(super) async fn read(
    query: &SparseQuery,
    portions: &[Portion<'_>],
    prefetch_room: u64,
    output: Output<'_, '_>,
) -> Result<Option<Batch>> {
    // 1. Which cells are results.
    let mut slots: Vec<BatchTile<'_>> = Vec::new();
    for portion in portions {
        slots.extend(slots_of(query, portion)?);
    }
    examine(query, &mut slots).await?;

    // 2. Their order.
    let mut slabs: Vec<CellSlab> = Vec::new();
    let mut start = 0;
    for portion in portions {
        let end = start + portion.tiles.len();
        let members = slots.get(start..end).unwrap_or_default();
        if portion.keyed && !lies_in_order(query, members, &portion.bounds) {
            ordered(query, start, members, &portion.bounds, &mut slabs)?;
        } else {
            stored(start, members, &mut slabs);
        }
        start = end;
    }

    // 3. Their columns.
    columns_of(query, slots, &slabs, prefetch_room, output).await
}

/// The columns of cells in their order; `None` if there are none.
pub(super) async fn columns_of(
    query: &SparseQuery,
    slots: Vec<BatchTile<'_>>,
    slabs: &[CellSlab],
    prefetch_room: u64,
    output: Output<'_, '_>,
) -> Result<Option<Batch>> {
    if slabs.is_empty() {
        return Ok(None);
    }
    columns::prefetch(query, &slots, slabs, prefetch_room);
    let cells = columns::cells_of(slabs)?;
    let (room, words) = (output.room().unwrap_or(0), output.wanted.words);
    let mut memory = match output.caller {
        Some(memory) if cells <= room && columns::have_room(query, &slots, &memory)? => {
            OutputMemory::Caller(memory)
        }
        _ => {
            let as_words = columns::as_words(query, &slots, words);
            let of = (cells, slots.len());
            OutputMemory::own(&query.fields, &as_words, of, query.fetcher.pool())?
        }
    };
    let outs = memory.outs(&query.fields, cells)?;
    let filled = columns::fill(query, slots, slabs, outs).await?;
    memory.finish(&query.fields, cells, slabs, filled).map(Some)
}

/// The tiles of a portion in the order of their slots, which is that of cells of equal coordinates.
pub(super) fn slots_of<'a>(
    query: &'a SparseQuery,
    portion: &Portion<'a>,
) -> Result<Vec<BatchTile<'a>>> {
    let (from, to) = &portion.bounds;
    let slots = portion.tiles.iter().map(|tile| {
        let is_shared = from.as_ref().is_some_and(|from| tile.lower < *from)
            || to.as_ref().is_some_and(|to| tile.upper >= *to);
        BatchTile::new(query, tile, portion.keyed, is_shared)
    });
    let mut slots = slots.collect::<Result<Vec<_>>>()?;
    if portion.keyed && query.latest_first {
        slots.sort_by_key(|slot| (Reverse(slot.tile.part), slot.tile.tile));
    } else if portion.keyed {
        slots.sort_by_key(|slot| (slot.tile.part, slot.tile.tile));
    }
    Ok(slots)
}

/// Loads what says which cells are results, and finds these. Threads that stream take some tiles
/// each from the first coordinate to the last test, and compact tiles with few results to these;
/// else what a step needs of all tiles is one batch of IO.
pub(super) async fn examine(query: &SparseQuery, slots: &mut [BatchTile<'_>]) -> Result<()> {
    if !query.fetcher.streams() {
        return examine_together(query, slots).await;
    }
    let some = tiles::tiles_per_task(query, slots.len());
    let examine = |slots: &mut [BatchTile<'_>]| {
        block_on(examine_together(query, slots))?;
        for slot in slots {
            if let RowSelection::List(list) = &mut slot.selected
                && list.len() < slot.tile.cell_num as usize / 2
            {
                let list = std::mem::take(list);
                slot.compact(query, list);
            }
        }
        Ok(())
    };
    let work = slots.chunks_mut(some).collect();
    each(query.array.context(), work, examine).map(drop)
}

/// Works on each slot: on all threads if there are several, as waking one takes long for a tile.
fn each_slot<'s>(
    query: &SparseQuery,
    slots: &mut [BatchTile<'s>],
    work: impl Fn(usize, &mut BatchTile<'s>) -> Result<()> + Send + Sync,
) -> Result<()> {
    let slots = slots.iter_mut().enumerate().collect();
    each(query.array.context(), slots, |(at, slot)| work(at, slot)).map(drop)
}

async fn examine_together(query: &SparseQuery, slots: &mut [BatchTile<'_>]) -> Result<()> {
    // 1. The coordinates that leave few cells, where there are such.
    let selective = slots.iter().map(|slot| slot.selective_dimension(query));
    let selective: Vec<Option<usize>> = selective.collect();
    if selective.iter().any(Option::is_some) {
        let dimension = |at: usize| selective.get(at).copied().flatten();
        let field = |at, _: &BatchTile<'_>| Vec::from_iter(dimension(at).map(Field::Dimension));
        load(query, slots, field, |_| Cells::All).await?;
        each_slot(query, slots, |at, slot| match dimension(at) {
            Some(dimension) => slot.select_along(query, &[dimension]),
            None => Ok(()),
        })?;
    }

    // 2. All keys: which cells exist and are selected.
    let keys = |_, slot: &BatchTile<'_>| slot.key_fields(query);
    load(query, slots, keys, |slot| slot.candidates()).await?;
    each_slot(query, slots, |_, slot| slot.select(query))?;
    query.operation.check()?;

    // 3. Conditions and deletes: which of them are results.
    let tests = |_, slot: &BatchTile<'_>| slot.test_fields(query);
    load(query, slots, tests, |_| Cells::All).await?;
    each_slot(query, slots, |_, slot| {
        if slot.selected.len() == 0 {
            return Ok(());
        }
        if query.times {
            slot.add_times()?;
        }
        if query.deletions {
            slot.add_deletions(query)
        } else {
            slot.test()
        }
    })
}

/// Loads the given fields of slots with cells that are not loaded yet, as one batch of IO; of
/// dimensions only the given cells.
async fn load(
    query: &SparseQuery,
    slots: &mut [BatchTile<'_>],
    fields: impl Fn(usize, &BatchTile<'_>) -> Vec<Field>,
    cells: impl Fn(&BatchTile<'_>) -> Cells,
) -> Result<()> {
    let (mut places, mut wanted) = (Vec::new(), Vec::new());
    let some = slots.iter().enumerate();
    for (at, slot) in some.filter(|(_, slot)| slot.selected.len() > 0) {
        let missing = fields(at, slot).into_iter();
        let missing = missing.filter(|f| !slot.loaded.contains_key(f));
        let missing: BTreeSet<Field> = missing.collect();
        if missing.is_empty() {
            continue;
        }
        let cells = cells(slot);
        for field in missing {
            places.push((at, field));
            let cells = match field {
                Field::Dimension(_) => cells.clone(),
                _ => Cells::All,
            };
            wanted.push(WantedTile {
                request: slot.request(field, cells),
                may_be_cached: slot.is_partial(),
                places: None,
                target: Default::default(),
            });
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let tiles = tiles::load(query, wanted).await?;
    for ((at, field), tile) in places.into_iter().zip(tiles) {
        if let Some(slot) = slots.get_mut(at) {
            if tile.cell_num != slot.tile.cell_num as usize {
                return Err(Error::Internal(format!(
                    "a tile of {} cells, {} expected",
                    tile.cell_num, slot.tile.cell_num
                )));
            }
            slot.loaded.insert(field, tile);
        }
    }
    Ok(())
}

/// The number of a slot.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a batch has fewer than 2^32 tiles"
)]
const fn number(slot: usize) -> u32 {
    slot as u32
}

/// The selected cells of slots in the order in which they are stored: those of slots whose tests have
/// no outcome apart from that.
fn stored(start: usize, members: &[BatchTile<'_>], slabs: &mut Vec<CellSlab>) {
    for (i, slot) in members.iter().enumerate() {
        let at = number(start + i);
        match &slot.selected {
            RowSelection::All(0) => {}
            RowSelection::All(n) => CellSlab::push_onto(slabs, at, 0, *n),
            RowSelection::List(list) => {
                list.iter()
                    .for_each(|&cell| CellSlab::push_onto(slabs, at, cell.into(), 1));
            }
        }
    }
}

/// Whether a tile that meets no other has its results in the order asked for after all: of strings
/// that are ASCII there is one order only. Keys would cost twice what reading does. A tile of a
/// fragment that meets others has tests of its own for merging, which order its cells too.
fn lies_in_order(query: &SparseQuery, members: &[BatchTile<'_>], bounds: &CellBounds) -> bool {
    let ([slot], (None, None)) = (members, bounds) else {
        return false;
    };
    let order = &query.order;
    let mut dimensions = order.dimensions().iter().enumerate();
    let is_ascii = |d| {
        let view = slot.view(Field::Dimension(d));
        view.is_some_and(|view| view.data.is_ascii())
    };
    *order == query.stored_order
        && order.compares_text()
        && !order.is_stored_anyhow()
        && !slot.of.repeats
        && slot.results.is_none()
        && dimensions.all(|(d, dimension)| !dimension.is_string() || is_ascii(d))
}

/// The keys of the cells that slots have selected, those within `[from, to)` if bounds are given. Cells
/// outside the bounds of their tile lie at its ends, as in [`BatchTile::place_of`].
pub(super) fn keys_of(
    query: &SparseQuery,
    members: &[BatchTile<'_>],
    from: Option<&CellBound>,
    to: Option<&CellBound>,
) -> Result<KeySet> {
    let missing = || Error::Internal("coordinates were not loaded".into());
    let mut tiles = Vec::with_capacity(members.len());
    let some = members.iter().enumerate();
    for (i, slot) in some.filter(|(_, slot)| slot.selected.len() > 0) {
        let views = 0..query.order.dimensions().len();
        let views = views.map(|d| slot.view(Field::Dimension(d)).ok_or_else(missing));
        tiles.push(KeyTile {
            coordinates: views.collect::<Result<_>>()?,
            rows: &slot.selected,
            slot: number(i),
        });
    }
    let context = query.array.context();
    let cut = members.iter().map(|slot| {
        let below = from.is_some_and(|from| slot.tile.lower < *from);
        let above = to.is_some_and(|to| slot.tile.upper >= *to);
        [below, above]
    });
    let cut: Vec<[bool; 2]> = cut.collect();
    let cuts = |slot: u32| cut.get(slot as usize).copied().unwrap_or([true; 2]);
    context.install(|| keys::build_within(&query.order, &tiles, from, to, &cuts))
}

/// The cells of slots in the order asked for.
pub(super) fn ordered(
    query: &SparseQuery,
    start: usize,
    members: &[BatchTile<'_>],
    (from, to): &CellBounds,
    slabs: &mut Vec<CellSlab>,
) -> Result<()> {
    let set = keys_of(query, members, from.as_ref(), to.as_ref())?;
    let times = members.iter();
    let times = times.map(|slot| match slot.loaded.get(&Field::Timestamps) {
        Some(tile) => Ok(tile.data.as_chunks::<8>().0),
        None => Err(slot.fragment.time_range().start),
    });
    let times: Vec<Result<&[[u8; 8]], u64>> = times.collect();
    let latest = |slot: u32, cell: u32| match times.get(slot as usize) {
        Some(Ok(times)) => {
            let time = times.get(cell as usize);
            time.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        }
        Some(Err(start)) => *start,
        None => 0,
    };
    let allows_dups = query.array.schema().allows_dups;
    let duplicates = if allows_dups || !members.iter().any(|slot| slot.of.merges) {
        MergeRule::Keep
    } else if query.versions {
        MergeRule::Versions(&latest)
    } else if times.iter().any(Result::is_ok) {
        MergeRule::Latest(&latest)
    } else {
        MergeRule::First
    };
    let results: Vec<Option<&[u8]>> = members.iter().map(|slot| slot.results.as_deref()).collect();
    let context = query.array.context();
    let merged = context.install(|| merge(set, duplicates, &results));
    if start == 0 && slabs.is_empty() {
        *slabs = merged;
    } else {
        slabs.extend(merged.into_iter().map(|slab| CellSlab {
            tile: slab.tile + number(start),
            ..slab
        }));
    }
    Ok(())
}

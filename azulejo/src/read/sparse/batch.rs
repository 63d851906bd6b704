//! One batch: key fields first, then masks, order, and the other fields of what is left.

use super::columns::{self, Batch, Output, cells_of};
use super::merge::{Duplicates, merge};
use super::plan::PlannedTile;
use super::query::{FragmentQuery, SparseQuery};
use super::tiles;
use crate::array::Fragment;
use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::read::decode::stored_tiles;
use crate::read::fetch::StoredTile;
use crate::read::{BufferPool, Cells, PoolBuffer, Tile, TileRequest};
use crate::space::CellSlab;
use crate::space::cell_order::CellBound;
use crate::space::keys::{self, KeySet, KeyTile, RowSelection};
use azulejo_format::fragment::{Field, RTree};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Tiles of one batch that follow others in the result.
#[derive(Debug, Clone)]
pub(super) struct Portion<'a> {
    /// The tiles; in the order of the result where they are not keyed.
    pub(super) tiles: Vec<&'a PlannedTile>,
    /// Whether cells have to be brought in order.
    pub(super) keyed: bool,
    /// Only cells from this bound on, and below that one.
    pub(super) bounds: (Option<CellBound>, Option<CellBound>),
}

/// A tile of a batch and what is known of its cells. Its place in the batch is its *slot*.
pub(super) struct BatchTile<'a> {
    pub(super) tile: &'a PlannedTile,
    pub(super) of: &'a FragmentQuery,
    pub(super) fragment: &'a Fragment,
    tree: &'a RTree,
    keyed: bool,
    /// Whether another batch needs some of its cells.
    pub(super) shared: bool,
    /// Decoded so far.
    pub(super) loaded: BTreeMap<Field, Arc<Tile>>,
    /// The cells that exist and are selected, before duplicates are gone.
    pub(super) selected: RowSelection,
    /// Which of them are results once duplicates are gone; `None`: all.
    pub(super) results: Option<Vec<u8>>,
    /// The places in the tile of the cells that are still held, if not all are: then cells are
    /// counted among these.
    pub(super) places: Option<Vec<u32>>,
}

impl<'a> BatchTile<'a> {
    fn new(query: &'a SparseQuery, tile: &'a PlannedTile, portion: &Portion<'a>) -> Result<Self> {
        let (from, to) = &portion.bounds;
        let shared = from.as_ref().is_some_and(|from| tile.lower < *from)
            || to.as_ref().is_some_and(|to| tile.upper >= *to);
        let of = query
            .fragments
            .get(tile.part)
            .ok_or_else(|| Error::Internal("a tile of no fragment".into()))?;
        let fragment = query.fragment(of)?;
        Ok(Self {
            tile,
            of,
            fragment,
            tree: fragment.rtree()?,
            keyed: portion.keyed,
            shared,
            loaded: BTreeMap::new(),
            selected: RowSelection::All(tile.cell_num),
            results: None,
            places: None,
        })
    }

    pub(super) fn request(&self, field: Field, cells: Cells) -> TileRequest {
        TileRequest {
            fragment: self.of.index,
            field,
            tile: self.tile.tile as u64,
            cells,
        }
    }

    /// Whether the query selects only some of the tile's cells, or another batch needs them too.
    pub(super) fn is_partial(&self) -> bool {
        !self.tile.dimensions.is_empty() || self.shared
    }

    pub(super) fn view(&self, field: Field) -> Option<FieldView<'_>> {
        self.loaded.get(&field).map(|tile| tile.view())
    }

    /// Fields that say which cells exist and are selected, and in which order.
    pub(super) fn key_fields(&self, query: &SparseQuery) -> Vec<Field> {
        let mut fields: Vec<Field> = if self.keyed {
            (0..query.order.dimensions().len())
                .map(Field::Dimension)
                .collect()
        } else {
            self.tile
                .dimensions
                .iter()
                .copied()
                .map(Field::Dimension)
                .collect()
        };
        let decides = self.keyed && !query.allows_dups;
        if self.fragment.has_timestamps() && (decides || self.of.tests_timestamps() || query.times)
        {
            fields.push(Field::Timestamps);
        }
        fields
    }

    /// Fields that are not decoded again: besides the key fields those that
    /// [`history`](super::history) has made.
    pub(super) fn decoded_fields(&self, query: &SparseQuery) -> Vec<Field> {
        let mut fields = self.key_fields(query);
        fields.extend(query.times.then_some(Field::Timestamps));
        if query.deletions {
            fields.extend([Field::DeleteTimestamps, Field::DeleteConditions]);
        }
        fields
    }

    /// Fields that say which cells are results.
    fn test_fields(&self, query: &SparseQuery) -> Vec<Field> {
        let tests = self
            .tile
            .tests
            .iter()
            .filter_map(|test| self.of.tests.get(*test));
        let tested = tests
            .flat_map(|test| &test.fields)
            .filter_map(|at| self.of.test_fields.get(*at))
            .copied();
        let deleted = self
            .of
            .deleted_until
            .filter(|_| !self.tile.no_results)
            .map(|_| Field::DeleteTimestamps);
        let stored = [Field::DeleteTimestamps, Field::DeleteConditions]
            .into_iter()
            .filter(|field| query.deletions && self.fragment.stores(*field));
        tested.chain(deleted).chain(stored).collect()
    }

    /// The dimension whose coordinates leave few of the tile's cells, if there is one: it is looked
    /// at before the others are read.
    fn selective_dimension(&self, query: &SparseQuery) -> Option<usize> {
        if self.key_fields(query).len() < 2 {
            return None;
        }
        let share = |d: usize| {
            query
                .selection
                .share(d, self.tree.tile_range(self.tile.tile, d)?)
        };
        let shares = self
            .tile
            .dimensions
            .iter()
            .filter_map(|&d| Some((share(d)?, d)));
        shares
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .filter(|(share, _)| *share < FEW)
            .map(|(_, d)| d)
    }

    /// The cells whose other coordinates are worth a look.
    fn candidates(&self) -> Cells {
        match &self.selected {
            RowSelection::List(list) if list.len() < self.tile.cell_num as usize / 4 => {
                Cells::Spans(single(list))
            }
            _ => Cells::All,
        }
    }

    /// One byte a cell: whether it is selected.
    fn selected_mask(&self) -> Vec<u8> {
        self.selected.mask(self.tile.cell_num as usize)
    }

    /// Picks the cells that are selected along `dimensions`.
    fn select_along(&mut self, query: &SparseQuery, dimensions: &[usize]) -> Result<()> {
        let selected = std::mem::replace(&mut self.selected, RowSelection::All(0));
        self.selected = query.selection.select(
            dimensions,
            &|d| self.view(Field::Dimension(d)),
            &|d| self.tree.tile_range(self.tile.tile, d),
            selected,
        )?;
        Ok(())
    }

    /// Picks the cells that are selected and were written while the array was open.
    fn select(&mut self, query: &SparseQuery) -> Result<()> {
        if self.selected.len() == 0 {
            return Ok(());
        }
        self.select_along(query, &self.tile.dimensions)?;
        if let Some(within) = self.of.within {
            let mut mask = self.selected_mask();
            for (m, time) in mask.iter_mut().zip(self.times(Field::Timestamps)?) {
                *m &= u8::from(within.start <= time && time <= within.end);
            }
            self.selected = RowSelection::of_mask(&mask);
        }
        Ok(())
    }

    /// The values of a field of timestamps.
    pub(super) fn times(&self, field: Field) -> Result<impl Iterator<Item = u64> + '_> {
        let view = self
            .view(field)
            .ok_or_else(|| Error::Internal("timestamps were not loaded".into()))?;
        Ok(view
            .data
            .as_chunks::<8>()
            .0
            .iter()
            .map(|bytes| u64::from_le_bytes(*bytes)))
    }

    /// Finds the cells that are no results though they exist: deleted, or failing the query's
    /// condition.
    fn test(&mut self, query: &SparseQuery) -> Result<()> {
        let cells = self.tile.cell_num as usize;
        if self.tile.no_results {
            if self.keyed {
                self.results = Some(vec![0; cells]);
            } else {
                self.selected = RowSelection::List(Vec::new());
            }
            return Ok(());
        }
        if self.tile.tests.is_empty() && self.of.deleted_until.is_none() {
            return Ok(());
        }
        let mut mask = self.selected_mask();
        if let Some(until) = self.of.deleted_until {
            for (m, time) in mask.iter_mut().zip(self.times(Field::DeleteTimestamps)?) {
                *m &= u8::from(time > until || time == u64::MAX);
            }
        }
        for test in self
            .tile
            .tests
            .iter()
            .filter_map(|test| self.of.tests.get(*test))
        {
            let views = test
                .fields
                .iter()
                .filter_map(|at| self.of.test_fields.get(*at))
                .map(|field| {
                    self.view(*field)
                        .ok_or_else(|| Error::Internal("a condition's field was not loaded".into()))
                });
            let views = views.collect::<Result<Vec<_>>>()?;
            match test.until {
                None => test.condition.evaluate(&views, &mut mask)?,
                Some(until) => {
                    let mut matching = mask.clone();
                    test.condition.evaluate(&views, &mut matching)?;
                    for ((m, matches), time) in mask
                        .iter_mut()
                        .zip(matching)
                        .zip(self.times(Field::Timestamps)?)
                    {
                        *m &= u8::from(matches != 0 || time > until);
                    }
                }
            }
        }
        if self.of.merges && self.keyed && !query.allows_dups {
            self.results = Some(mask);
        } else {
            self.selected = RowSelection::of_mask(&mask);
        }
        Ok(())
    }
}

impl BatchTile<'_> {
    /// Drops everything of the tile but the selected cells, which are at `places` among those held,
    /// and what is not needed of them; returns the bytes that remain.
    pub(super) fn compact(&mut self, query: &SparseQuery, places: Vec<u32>) -> u64 {
        let needed = self.decoded_fields(query);
        let wanted =
            |field: &Field| needed.contains(field) || self.of.fields.contains(&Some(*field));
        self.loaded
            .retain(|field, _| wanted(field) && !places.is_empty());
        let mut bytes = 8 * places.len() as u64;
        for tile in self.loaded.values_mut() {
            let small = cut(tile, &places);
            bytes += small.memory() as u64;
            *tile = Arc::new(small);
        }
        if let Some(results) = &mut self.results {
            *results = places
                .iter()
                .map(|place| results.get(*place as usize).copied().unwrap_or(0))
                .collect();
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "fewer than the tile's cells"
        )]
        let all = RowSelection::All(places.len() as u32);
        self.selected = all;
        self.places = Some(match &self.places {
            None => places,
            Some(held) => places
                .iter()
                .filter_map(|at| held.get(*at as usize).copied())
                .collect(),
        });
        bytes
    }
}

/// The cells of a tile at `places` as a tile.
pub(super) fn cut(tile: &Tile, places: &[u32]) -> Tile {
    let view = tile.view();
    let mut data = Vec::with_capacity(places.len() * tile.cell_size);
    let mut offsets = tile.offsets.as_ref().map(|_| vec![0u64]);
    match (&mut offsets, tile.cell_size) {
        (None, 8) => cells::<8>(&tile.data, places, &mut data),
        (None, 4) => cells::<4>(&tile.data, places, &mut data),
        (offsets, _) => {
            for place in places {
                data.extend_from_slice(view.cell(*place as usize));
                if let Some(offsets) = offsets {
                    offsets.push(data.len() as u64);
                }
            }
        }
    }
    let valid = |place: &u32| u8::from(view.is_valid(*place as usize));
    Tile {
        data: PoolBuffer::from(data),
        offsets,
        validity: tile
            .validity
            .as_ref()
            .map(|_| PoolBuffer::from(places.iter().map(valid).collect::<Vec<_>>())),
        cell_num: places.len(),
        cell_size: tile.cell_size,
    }
}

/// Appends the cells of `N` bytes at `places`.
fn cells<const N: usize>(from: &[u8], places: &[u32], out: &mut Vec<u8>) {
    let from = from.as_chunks::<N>().0;
    out.extend(
        places
            .iter()
            .flat_map(|place| from.get(*place as usize).copied().unwrap_or([0; N])),
    );
}

/// Asks for what portions surely need, in the order in which it is needed: what their first step
/// looks at, and where that decides nothing, all else. `room`: bytes that may be under way.
pub(super) fn start(query: &SparseQuery, portions: &[Portion<'_>], room: u64) {
    let Some(prefetch) = &query.prefetch else {
        return;
    };
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
            slot.key_fields(query)
                .into_iter()
                .for_each(|field| add(field, &mut keys));
            if slot.tile.no_results || !slot.tile.dimensions.is_empty() || slot.of.within.is_some()
            {
                continue;
            }
            slot.test_fields(query)
                .into_iter()
                .for_each(|field| add(field, &mut tests));
            if slot.tile.tests.is_empty() && slot.of.deleted_until.is_none() {
                slot.of
                    .fields
                    .iter()
                    .flatten()
                    .for_each(|field| add(*field, &mut values));
            }
        }
    }
    // One read each: who waits for keys does not wait for the rest.
    [keys, tests]
        .iter()
        .for_each(|tiles| prefetch.start(&query.array, tiles, room));
    values.sort_by_key(|tile| tile.field);
    values
        .chunk_by(|a, b| a.field == b.field)
        .for_each(|tiles| prefetch.start(&query.array, tiles, room));
}

/// A share of a tile's cells that are few: their other coordinates are worth reading apart.
const FEW: f64 = 0.25;

/// Ascending ranges, those that touch joined.
pub(super) fn runs(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match runs.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => runs.push(range),
        }
    }
    runs
}

/// Cells as runs of one each, those that touch joined.
pub(super) fn single(cells: &[u32]) -> Vec<Range<u64>> {
    runs(
        cells
            .iter()
            .map(|&cell| u64::from(cell)..u64::from(cell) + 1),
    )
}

/// Reads a batch; `None` if no cell of it is a result. `several` says that there are other batches,
/// so that the bounds between them must hold; `room`, how many bytes may be under way ahead of
/// their use.
pub(super) fn read(
    query: &SparseQuery,
    pool: &BufferPool,
    portions: &[Portion<'_>],
    (several, room): (bool, u64),
    output: Output<'_, '_>,
) -> Result<Option<Batch>> {
    let mut slots: Vec<BatchTile<'_>> = Vec::new();
    for portion in portions {
        slots.extend(slots_of(query, portion)?);
    }
    examine(query, pool, &mut slots)?;
    let mut slabs: Vec<CellSlab> = Vec::new();
    let mut start = 0;
    for portion in portions {
        let end = start + portion.tiles.len();
        let members = slots.get(start..end).unwrap_or_default();
        if portion.keyed {
            ordered(query, start, members, &portion.bounds, several, &mut slabs)?;
        } else {
            stored(start, members, &mut slabs);
        }
        start = end;
    }
    if slabs.is_empty() {
        return Ok(None);
    }
    columns::start(query, &slots, &slabs, room);
    let cells = cells_of(&slabs)?;
    match output {
        Output::Given {
            columns,
            room,
            progress,
        } if cells <= room - progress.cells.min(room)
            && columns::have_room(query, &slots, columns, progress)? =>
        {
            columns::place(query, pool, slots, (&slabs, cells), columns, progress)?;
            Ok(Some(Batch::Placed))
        }
        Output::Own | Output::Given { .. } => columns::columns(query, pool, slots, (&slabs, cells))
            .map(|set| Some(Batch::Columns(set))),
    }
}

/// The tiles of a portion in the order of their slots, which is that of cells of equal coordinates.
pub(super) fn slots_of<'a>(
    query: &'a SparseQuery,
    portion: &Portion<'a>,
) -> Result<Vec<BatchTile<'a>>> {
    let slots = portion
        .tiles
        .iter()
        .map(|tile| BatchTile::new(query, tile, portion));
    let mut slots = slots.collect::<Result<Vec<_>>>()?;
    if portion.keyed && query.latest_first {
        slots.sort_by(|a, b| {
            b.tile
                .part
                .cmp(&a.tile.part)
                .then(a.tile.tile.cmp(&b.tile.tile))
        });
    } else if portion.keyed {
        slots.sort_by_key(|slot| (slot.tile.part, slot.tile.tile));
    }
    Ok(slots)
}

/// Loads what says which cells are results, and finds these. Where reads are cheap, threads take
/// some tiles each from the first coordinate to the last test, and keep of tiles with few results
/// no more than these; elsewhere what a step needs of all tiles is one batch of IO.
pub(super) fn examine(
    query: &SparseQuery,
    pool: &BufferPool,
    slots: &mut [BatchTile<'_>],
) -> Result<()> {
    if !query.array.location().storage.latency().is_low() {
        return examine_together(query, pool, slots);
    }
    let some = tiles_per_task(query, slots.len());
    let examine = |slots: &mut [BatchTile<'_>]| {
        examine_together(query, pool, slots)?;
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
    if slots.len() <= some {
        return examine(slots);
    }
    query
        .array
        .context()
        .install(|| slots.par_chunks_mut(some).try_for_each(examine))
}

/// Works on each slot: on all threads if there are several, as waking one takes long for a tile.
fn each_slot<'s>(
    query: &SparseQuery,
    slots: &mut [BatchTile<'s>],
    work: impl Fn(usize, &mut BatchTile<'s>) -> Result<()> + Send + Sync,
) -> Result<()> {
    if slots.len() < 2 {
        return slots
            .iter_mut()
            .enumerate()
            .try_for_each(|(at, slot)| work(at, slot));
    }
    let each = || {
        slots
            .par_iter_mut()
            .enumerate()
            .try_for_each(|(at, slot)| work(at, slot))
    };
    query.array.context().install(each)
}

/// Tiles that one task takes through all steps: few enough for a cache, more than one to open their
/// files once.
pub(super) fn tiles_per_task(query: &SparseQuery, tiles: usize) -> usize {
    (tiles / (query.array.context().threads() * 4)).clamp(1, 4)
}

fn examine_together(
    query: &SparseQuery,
    pool: &BufferPool,
    slots: &mut [BatchTile<'_>],
) -> Result<()> {
    let selective: Vec<Option<usize>> = slots
        .iter()
        .map(|slot| slot.selective_dimension(query))
        .collect();
    if selective.iter().any(Option::is_some) {
        let first = |at: usize, _: &BatchTile<'_>| {
            selective.get(at).copied().flatten().map(Field::Dimension)
        };
        load(
            query,
            pool,
            slots,
            |at, slot| first(at, slot).into_iter().collect(),
            |_| Cells::All,
        )?;
        each_slot(query, slots, |at, slot| {
            match selective.get(at).copied().flatten() {
                Some(dimension) => slot.select_along(query, &[dimension]),
                None => Ok(()),
            }
        })?;
    }
    let keys = |_, slot: &BatchTile<'_>| {
        if slot.selected.len() == 0 {
            Vec::new()
        } else {
            slot.key_fields(query)
        }
    };
    load(query, pool, slots, keys, |slot| slot.candidates())?;
    each_slot(query, slots, |_, slot| slot.select(query))?;
    query.operation.check()?;
    let tests = |_, slot: &BatchTile<'_>| {
        if slot.selected.len() == 0 {
            Vec::new()
        } else {
            slot.test_fields(query)
        }
    };
    load(query, pool, slots, tests, |_| Cells::All)?;
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
            slot.test(query)
        }
    })
}

/// Loads fields of slots, as one batch of IO; of dimensions only the given cells.
fn load(
    query: &SparseQuery,
    pool: &BufferPool,
    slots: &mut [BatchTile<'_>],
    fields: impl Fn(usize, &BatchTile<'_>) -> Vec<Field>,
    cells: impl Fn(&BatchTile<'_>) -> Cells,
) -> Result<()> {
    let mut wanted: Vec<(usize, Field)> = Vec::new();
    let (mut requests, mut partial) = (Vec::new(), Vec::new());
    for (at, slot) in slots.iter().enumerate() {
        let missing: BTreeSet<Field> = fields(at, slot)
            .into_iter()
            .filter(|f| !slot.loaded.contains_key(f))
            .collect();
        if missing.is_empty() {
            continue;
        }
        let cells = cells(slot);
        for field in missing {
            wanted.push((at, field));
            let is_coordinate = matches!(field, Field::Dimension(_));
            requests.push(slot.request(
                field,
                if is_coordinate {
                    cells.clone()
                } else {
                    Cells::All
                },
            ));
            partial.push(slot.is_partial());
        }
    }
    if requests.is_empty() {
        return Ok(());
    }
    let tiles = tiles::load(query, pool, requests, &partial)?;
    for ((at, field), tile) in wanted.into_iter().zip(tiles) {
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

/// The cells of slots in the order in which they are stored.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a batch has fewer than 2^32 tiles"
)]
fn stored(start: usize, members: &[BatchTile<'_>], slabs: &mut Vec<CellSlab>) {
    for (i, slot) in members.iter().enumerate() {
        let at = (start + i) as u32;
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

/// The keys of the cells that slots have selected, those within `[from, to)` if bounds are given.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a batch has fewer than 2^32 tiles"
)]
pub(super) fn keys_of(
    query: &SparseQuery,
    members: &[BatchTile<'_>],
    from: Option<&CellBound>,
    to: Option<&CellBound>,
    several: bool,
) -> Result<KeySet> {
    let mut tiles = Vec::with_capacity(members.len());
    for (i, slot) in members
        .iter()
        .enumerate()
        .filter(|(_, slot)| slot.selected.len() > 0)
    {
        let view = |d| {
            slot.view(Field::Dimension(d))
                .ok_or_else(|| Error::Internal("coordinates were not loaded".into()))
        };
        let coordinates = (0..query.order.dimensions().len())
            .map(view)
            .collect::<Result<Vec<_>>>()?;
        tiles.push(KeyTile {
            coordinates,
            rows: &slot.selected,
            slot: i as u32,
        });
    }
    let set = query
        .array
        .context()
        .install(|| keys::build(&query.order, &tiles, from, to))?;
    if set.non_ascii && several {
        return Err(Error::Unsupported(
            "strings that are not ASCII lie along a dimension; raise the memory budget so that one batch takes all".into(),
        ));
    }
    Ok(set)
}

/// The cells of slots in the order asked for.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a batch has fewer than 2^32 tiles"
)]
pub(super) fn ordered(
    query: &SparseQuery,
    start: usize,
    members: &[BatchTile<'_>],
    (from, to): &(Option<CellBound>, Option<CellBound>),
    several: bool,
    slabs: &mut Vec<CellSlab>,
) -> Result<()> {
    let set = keys_of(query, members, from.as_ref(), to.as_ref(), several)?;
    let times: Vec<Result<&[[u8; 8]], u64>> = members
        .iter()
        .map(|slot| match slot.loaded.get(&Field::Timestamps) {
            Some(tile) => Ok(tile.data.as_chunks::<8>().0),
            None => Err(slot.fragment.time_range().start),
        })
        .collect();
    let latest = |slot: u32, cell: u32| match times.get(slot as usize) {
        Some(Ok(times)) => times
            .get(cell as usize)
            .map_or(0, |bytes| u64::from_le_bytes(*bytes)),
        Some(Err(start)) => *start,
        None => 0,
    };
    let duplicates = if query.allows_dups || !members.iter().any(|slot| slot.of.merges) {
        Duplicates::Keep
    } else if query.versions {
        Duplicates::Versions(&latest)
    } else if times.iter().any(Result::is_ok) {
        Duplicates::Latest(&latest)
    } else {
        Duplicates::First
    };
    let results: Vec<Option<&[u8]>> = members.iter().map(|slot| slot.results.as_deref()).collect();
    let merged = query
        .array
        .context()
        .install(|| merge(set, duplicates, &results));
    if start == 0 && slabs.is_empty() {
        *slabs = merged;
    } else {
        slabs.extend(merged.into_iter().map(|slab| CellSlab {
            tile: slab.tile + start as u32,
            ..slab
        }));
    }
    Ok(())
}

//! The columns of a batch: loaded, and gathered into memory of their own or the caller's.
//!
//! A tile all of whose cells follow one another in the result is unfiltered where it belongs.

use super::query::SparseQuery;
use super::tile::BatchTile;
use super::tile_cells::{around, runs};
use super::tiles::{self, WantedTile};
use crate::column::BatchColumn;
use crate::error::{Error, Result};
use crate::read::decode::{DecodeTarget, holds_words, stored_tiles};
use crate::read::gather::{SlabBands, Used, gather_column, gather_fixed, gather_var};
use crate::read::output::{CallerMemory, FieldOut, FixedOut, WordsOut};
use crate::read::parallel::UnusedBytes;
use crate::read::{BoundField, Cells, Tile};
use crate::space::CellSlab;
use azulejo_format::filter::StringWords;
use std::ops::Range;
use std::sync::Arc;

pub(super) fn cells_of(slabs: &[CellSlab]) -> Result<usize> {
    usize::try_from(CellSlab::total(slabs)).map_err(|_| Error::Internal("too many cells".into()))
}

/// Whether a caller's buffers, one for each field, have room for the values of all cells of slots
/// behind those that are there. What the metadata says of the tiles is enough, as decoded
/// tiles are as long as it says.
pub(super) fn have_room(
    query: &SparseQuery,
    slots: &[BatchTile<'_>],
    memory: &CallerMemory<'_, '_>,
) -> Result<bool> {
    let memory = memory.columns.iter().zip(&memory.progress.written);
    for (i, (bound, (column, written))) in query.fields.iter().zip(memory).enumerate() {
        if !bound.column_type.is_var() {
            continue;
        }
        let mut need = 0u64;
        for slot in slots.iter().filter(|slot| slot.selected.len() > 0) {
            let metadata = slot.fragment.loaded();
            let bytes = match slot.field(i) {
                Some(field) if !field.is_var(slot.fragment.schema()) => return Ok(false),
                Some(field) if slot.places.is_none() || !slot.loaded.contains_key(&field) => {
                    metadata.var_tile_size(field, slot.tile.tile as u64)?
                }
                Some(field) => slot.view(field).map_or(0, |view| view.data.len() as u64),
                None => (bound.fill.bytes.len() as u64).saturating_mul(slot.tile.cell_num.into()),
            };
            need = need.saturating_add(bytes);
        }
        if need > column.data.len().saturating_sub(written.data) as u64 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Prefetching: asks for the tiles of all fields that [`fill`] will load, so that those of the
/// later ones travel while the first are decoded. `room`: bytes that may be under way.
pub(super) fn prefetch(
    query: &SparseQuery,
    slots: &[BatchTile<'_>],
    slabs: &[CellSlab],
    room: u64,
) {
    if query.fetcher.streams() {
        return;
    }
    let mut used = vec![Used::default(); slots.len()];
    Used::add(&mut used, slabs);
    for i in 0..query.fields.len() {
        let mut stored = Vec::new();
        for (slot, _) in slots.iter().zip(&used).filter(|(_, used)| used.cells > 0) {
            let field = slot.field(i);
            if let Some(field) = field.filter(|field| !slot.loaded.contains_key(field)) {
                // Who needs the tile is told what is wrong with it.
                let _ = stored_tiles(&query.array, &slot.request(field, Cells::All), &mut stored);
            }
        }
        query.fetcher.prefetch(&stored, room);
    }
}

/// Loads the fields of the cells in `slabs` into `outs`, one a field, column by column; columns of
/// their own are made of some fields.
pub(super) async fn fill(
    query: &SparseQuery,
    mut slots: Vec<BatchTile<'_>>,
    slabs: &[CellSlab],
    outs: Vec<FieldOut<'_>>,
) -> Result<Vec<Option<BatchColumn>>> {
    let context = query.array.context();
    let bands = SlabBands::new(context, slabs, slots.len())?;
    let used = bands.used.as_slice();
    // Coordinates that only decided the order are not needed any more.
    for slot in &mut slots {
        let wanted = &slot.of.fields;
        slot.loaded
            .retain(|field, _| wanted.contains(&Some(*field)));
        slot.results = None;
    }
    let spans = spans(&slots, slabs, used);
    let whole = whole(&slots, slabs, used);
    let mut all = Vec::with_capacity(query.fields.len());
    for (i, (bound, out)) in query.fields.iter().zip(outs).enumerate() {
        query.operation.check()?;
        let mut column = ColumnTiles::new(query, &slots, used, &spans, i)?;
        all.push(match out {
            FieldOut::Own => {
                let (tiles, _) = column.load(query).await?;
                let column = gather_column(context, &bands, &tiles, bound)?;
                Some(BatchColumn::Cells(column))
            }
            FieldOut::Var(out) => {
                let (tiles, _) = column.load(query).await?;
                gather_var(context, &bands, &tiles, bound, out)?;
                None
            }
            FieldOut::Fixed(out) => place(query, column, &slots, &bands, &whole, out).await?,
            FieldOut::Words(WordsOut { ids, words }) => {
                column.ask_for_words(words);
                place(query, column, &slots, &bands, &whole, ids).await?
            }
        });
        for slot in &mut slots {
            // No other column is of this field.
            if let Some(field) = slot.field(i) {
                slot.loaded.remove(&field);
            }
        }
    }
    Ok(all)
}

/// Loads the tiles of a column into memory for cells of fixed length.
async fn place<'w>(
    query: &SparseQuery,
    mut column: ColumnTiles<'w>,
    slots: &[BatchTile<'_>],
    bands: &SlabBands<'_>,
    whole: &[Option<usize>],
    out: FixedOut<'w>,
) -> Result<Option<BatchColumn>> {
    let FixedOut {
        field,
        data,
        mut validity,
    } = out;
    column.place_whole(slots, whole, field, &mut *data, validity.as_deref_mut());
    let (tiles, placed) = column.load(query).await?;
    let source = (tiles.as_slice(), placed.as_slice());
    let context = query.array.context();
    gather_fixed(context, bands, source, field, (data, validity))?;
    Ok(None)
}

/// For each field whether its cells come as words: texts, if they are `wanted` so, where all tiles of the
/// batch hold words and none of them is decoded already, or to be cut down to some cells.
pub(super) fn as_words(query: &SparseQuery, slots: &[BatchTile<'_>], wanted: bool) -> Vec<bool> {
    let holds_words = |column: usize| {
        let mut needed = slots.iter().filter(|slot| slot.selected.len() > 0);
        needed.all(|slot| {
            let field = slot.field(column).filter(|_| slot.places.is_none());
            field.is_some_and(|field| {
                let is_loaded = slot.loaded.contains_key(&field);
                !is_loaded && holds_words(&query.array, slot.fragment, field)
            })
        })
    };
    let fields = query.fields.iter().enumerate();
    fields
        .map(|(i, bound)| wanted && bound.column_type.is_var() && holds_words(i))
        .collect()
}

/// The tiles of one column, by slot.
pub(super) struct ColumnTiles<'w> {
    tiles: Vec<Option<Arc<Tile>>>,
    /// Slots whose cells are unfiltered where they belong.
    placed: Vec<bool>,
    /// What has to be loaded, and for which slot; slots ascend.
    wanted: Vec<(usize, WantedTile<'w>)>,
}

impl<'w> ColumnTiles<'w> {
    pub(super) fn new(
        query: &SparseQuery,
        slots: &'w [BatchTile<'_>],
        used: &[Used],
        spans: &[Cells],
        column: usize,
    ) -> Result<Self> {
        let mut tiles = Self {
            tiles: vec![None; slots.len()],
            placed: vec![false; slots.len()],
            wanted: Vec::new(),
        };
        let needed = slots.iter().zip(used).zip(spans).enumerate();
        for (at, ((slot, _), cells)) in needed.filter(|(_, ((_, used), _))| used.cells > 0) {
            let Some(field) = slot.field(column) else {
                continue;
            };
            if let Some(tile) = slot.loaded.get(&field) {
                tiles.tiles[at] = Some(Arc::clone(tile));
                continue;
            }
            let whole = slot.request(field, Cells::All);
            let may_be_cached =
                slot.places.is_some() || (slot.shared && tiles::stays(query, &whole)?);
            let cells = match &slot.places {
                Some(places) => around(places, slot.tile.cell_num),
                None if may_be_cached => Cells::All,
                None => cells.clone(),
            };
            let wanted = WantedTile {
                request: slot.request(field, cells),
                may_be_cached: may_be_cached && slot.is_partial(),
                places: slot.places.as_deref(),
                target: DecodeTarget::default(),
            };
            tiles.wanted.push((at, wanted));
        }
        Ok(tiles)
    }

    /// Has the tiles decoded to words, which go to `words`, by slot. What is cached of them are
    /// texts.
    fn ask_for_words(&mut self, words: &'w mut [StringWords]) {
        let mut words = words.iter_mut().enumerate();
        for (at, wanted) in &mut self.wanted {
            wanted.may_be_cached = false;
            wanted.target.words = words.find(|(slot, _)| slot == at).map(|(_, words)| words);
        }
    }

    /// Has tiles of the column's type unfiltered in the result where their cells begin at the
    /// places `whole`.
    fn place_whole(
        &mut self,
        slots: &[BatchTile<'_>],
        whole: &[Option<usize>],
        bound: &BoundField,
        data: &'w mut [u8],
        validity: Option<&'w mut [u8]>,
    ) {
        let direct = self.wanted.iter_mut();
        let direct = direct.filter(|(_, wanted)| !wanted.may_be_cached);
        let direct = direct.filter_map(|(at, wanted)| Some((whole[*at]?, *at, wanted)));
        let mut direct: Vec<(usize, usize, &mut WantedTile<'w>)> = direct.collect();
        direct.sort_by_key(|(start, ..)| *start);
        let size = bound.column_type.cell_size();
        let mut data = UnusedBytes::new(data);
        let mut validity = validity.map(UnusedBytes::new);
        for (start, at, wanted) in direct {
            let cells = slots[at].tile.cell_num as usize;
            wanted.target.data = data.take(start * size, cells * size);
            wanted.target.validity = validity.as_mut().and_then(|v| v.take(start, cells));
            self.placed[at] = wanted.target.data.is_some();
        }
    }

    /// Loads what is wanted: the tiles, and which slots are placed, by slot.
    pub(super) async fn load(
        self,
        query: &SparseQuery,
    ) -> Result<(Vec<Option<Arc<Tile>>>, Vec<bool>)> {
        let mut tiles = self.tiles;
        let (slots, wanted): (Vec<usize>, Vec<_>) = self.wanted.into_iter().unzip();
        let loaded = tiles::load_on_threads(query, wanted).await?;
        for (at, tile) in slots.into_iter().zip(loaded) {
            tiles[at] = Some(tile);
        }
        Ok((tiles, self.placed))
    }
}

/// Which cells of each slot are needed: all where most are.
fn spans(slots: &[BatchTile<'_>], slabs: &[CellSlab], used: &[Used]) -> Vec<Cells> {
    // Of compacted tiles the cells that are left are loaded.
    let is_sparse = |(slot, used): (&BatchTile<'_>, &Used)| {
        slot.places.is_none() && used.cells > 0 && used.cells < u64::from(slot.tile.cell_num) / 4
    };
    let few: Vec<bool> = slots.iter().zip(used).map(is_sparse).collect();
    if !few.contains(&true) {
        return vec![Cells::All; slots.len()];
    }
    let sparse = |at: usize| few.get(at) == Some(&true);
    let mut lists: Vec<Vec<Range<u64>>> = vec![Vec::new(); slots.len()];
    for slab in slabs.iter().filter(|slab| sparse(slab.tile as usize)) {
        if let Some(list) = lists.get_mut(slab.tile as usize) {
            list.push(slab.start..slab.start + u64::from(slab.len));
        }
    }
    let cells = lists.into_iter().map(|mut list| {
        if list.is_empty() {
            return Cells::All;
        }
        list.sort_unstable_by_key(|span| span.start);
        Cells::Spans(runs(list.into_iter()))
    });
    cells.collect()
}

/// By slot, where its cells begin in the result, if all of them follow one another there.
fn whole(slots: &[BatchTile<'_>], slabs: &[CellSlab], used: &[Used]) -> Vec<Option<usize>> {
    let all = |(slot, used): (&BatchTile<'_>, &Used)| {
        slot.places.is_none() && used.slabs == 1 && used.cells == u64::from(slot.tile.cell_num)
    };
    let all: Vec<bool> = slots.iter().zip(used).map(all).collect();
    let mut whole = vec![None; slots.len()];
    if !all.contains(&true) {
        return whole;
    }
    let mut at = 0;
    for slab in slabs {
        let slot = slab.tile as usize;
        if let (Some(true), Some(place)) = (all.get(slot), whole.get_mut(slot)) {
            *place = Some(at);
        }
        at += slab.len as usize;
    }
    whole
}

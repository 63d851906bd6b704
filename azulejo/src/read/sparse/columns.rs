//! The columns of a batch: loaded, and gathered into memory of their own or the caller's.
//!
//! A tile all of whose cells follow one another in the result is unfiltered where it belongs.

use super::batch::{BatchTile, cut, runs, single, tiles_per_task};
use super::query::SparseQuery;
use super::tiles;
use crate::column::{ColumnBuffers, ColumnMut, ColumnSet};
use crate::error::{Error, Result};
use crate::read::decode::{DecodeTarget, load_into, stored_tiles};
use crate::read::gather::{SlabBands, Used, each, gather_bands, gather_fixed, gather_var};
use crate::read::output::fixed::{FixedBuffer, FixedOut};
use crate::read::output::var::FieldOut;
use crate::read::{BoundField, BufferPool, Cells, Progress, Tile, TileRequest};
use crate::space::CellSlab;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Where a batch goes: memory of its own, or the caller's as long as it has room for all of it.
pub(super) enum Output<'c, 'o> {
    Own,
    Given {
        /// A buffer for every field.
        columns: &'c mut [ColumnMut<'o>],
        /// Cells that the buffers have room for, the bytes of var-length values aside.
        room: usize,
        /// What lies in them already.
        progress: &'c mut Progress,
    },
}

/// A batch that was read.
#[derive(Debug)]
pub(crate) enum Batch {
    /// In memory of its own.
    Columns(ColumnSet),
    /// In the caller's memory.
    Placed,
}

pub(super) fn cells_of(slabs: &[CellSlab]) -> Result<usize> {
    usize::try_from(CellSlab::total(slabs)).map_err(|_| Error::Internal("too many cells".into()))
}

/// The columns of the cells in `slabs`.
pub(super) fn columns(
    query: &SparseQuery,
    pool: &BufferPool,
    slots: Vec<BatchTile<'_>>,
    (slabs, cell_num): (&[CellSlab], usize),
) -> Result<ColumnSet> {
    let mut memory = FixedBuffer::of(&query.fields, cell_num, pool)?;
    let mut outs = Vec::with_capacity(memory.len());
    for (field, buffer) in query.fields.iter().zip(&mut memory) {
        outs.push(match field.column_type.is_var() {
            true => FieldOut::Own,
            false => FieldOut::Fixed(buffer.out(field)),
        });
    }
    let filled = fill_columns(query, pool, slots, slabs, outs)?;
    let columns = query.fields.iter().zip(memory).zip(filled);
    let columns = columns.map(|((field, buffer), filled)| match filled {
        Filled::Own(column) => column,
        Filled::Placed { .. } => buffer.into_column(field, cell_num),
    });
    Ok(ColumnSet {
        cell_num,
        columns: columns.collect(),
    })
}

/// Whether a caller's buffers, one for each field, have room for the values of all cells of slots
/// behind those that `progress` counts. What the metadata says of the tiles is enough, as decoded
/// tiles are as long as it says.
pub(super) fn have_room(
    query: &SparseQuery,
    slots: &[BatchTile<'_>],
    columns: &[ColumnMut<'_>],
    progress: &Progress,
) -> Result<bool> {
    for (i, (bound, (column, written))) in query
        .fields
        .iter()
        .zip(columns.iter().zip(&progress.written))
        .enumerate()
    {
        if !bound.column_type.is_var() {
            continue;
        }
        let mut need = 0u64;
        for slot in slots.iter().filter(|slot| slot.selected.len() > 0) {
            let bytes = match slot.of.fields.get(i).copied().flatten() {
                Some(field) if !field.is_var(slot.fragment.schema()) => return Ok(false),
                Some(field) if slot.places.is_none() || !slot.loaded.contains_key(&field) => {
                    slot.fragment.var_tile_size(field, slot.tile.tile as u64)?
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

/// Writes the cells in `slabs` to a caller's memory, which [has room](have_room), behind those that
/// `progress` counts.
pub(super) fn place(
    query: &SparseQuery,
    pool: &BufferPool,
    slots: Vec<BatchTile<'_>>,
    (slabs, cells): (&[CellSlab], usize),
    columns: &mut [ColumnMut<'_>],
    progress: &mut Progress,
) -> Result<()> {
    let outs = FieldOut::in_columns(&query.fields, columns, cells, progress)?;
    let filled = fill_columns(query, pool, slots, slabs, outs)?;
    for (written, filled) in progress.written.iter_mut().zip(filled) {
        if let Filled::Placed { values } = filled {
            written.data += values;
        }
    }
    Ok(())
}

/// What became of a field's cells.
enum Filled {
    /// They are where they belong.
    Placed {
        /// Bytes of the values, if these are var-length.
        values: usize,
    },
    /// They are a column of their own.
    Own(ColumnBuffers),
}

/// Loads the fields of the cells in `slabs` into `outs`, one a field; tells what became of each.
/// Where reads are cheap and tiles follow one another in the result, threads take some tiles each
/// from the first field to the last.
fn fill_columns(
    query: &SparseQuery,
    pool: &BufferPool,
    mut slots: Vec<BatchTile<'_>>,
    slabs: &[CellSlab],
    outs: Vec<FieldOut<'_>>,
) -> Result<Vec<Filled>> {
    let cheap = query.array.location().storage.latency().is_low();
    let fixed = outs.iter().all(|out| matches!(out, FieldOut::Fixed(_)));
    if !(cheap && fixed && slabs.is_sorted_by_key(|slab| slab.tile)) {
        return fill_together(query, pool, &mut slots, slabs, outs);
    }
    let mut outs: Vec<FixedOut<'_>> = outs.into_iter().filter_map(FieldOut::fixed).collect();
    let some = tiles_per_task(query, slots.len());
    let mut work = Vec::with_capacity(slots.len().div_ceil(some));
    let mut rest = slabs;
    let mut first = 0;
    for members in slots.chunks_mut(some) {
        let next = first + u32::try_from(members.len()).unwrap_or(u32::MAX);
        let (here, later) = rest.split_at(rest.partition_point(|slab| slab.tile < next));
        let here: Vec<CellSlab> = here
            .iter()
            .map(|slab| CellSlab {
                tile: slab.tile - first,
                ..*slab
            })
            .collect();
        let cells = cells_of(&here)?;
        let outs = outs
            .iter_mut()
            .map(|out| FieldOut::Fixed(out.take_first(cells)))
            .collect();
        (rest, first) = (later, next);
        if cells > 0 {
            work.push((members, here, outs));
        }
    }
    let fill =
        |(members, slabs, outs): (&mut [BatchTile<'_>], Vec<CellSlab>, Vec<FieldOut<'_>>)| {
            fill_together(query, pool, members, &slabs, outs).map(drop)
        };
    if work.len() < 2 {
        work.into_iter().try_for_each(fill)?;
    } else {
        query
            .array
            .context()
            .install(|| work.into_par_iter().with_max_len(1).try_for_each(fill))?;
    }
    Ok(query
        .fields
        .iter()
        .map(|_| Filled::Placed { values: 0 })
        .collect())
}

/// As [`fill_columns`], column by column.
fn fill_together(
    query: &SparseQuery,
    pool: &BufferPool,
    slots: &mut [BatchTile<'_>],
    slabs: &[CellSlab],
    outs: Vec<FieldOut<'_>>,
) -> Result<Vec<Filled>> {
    let bands = SlabBands::new(query.array.context(), slabs, slots.len())?;
    let used = bands.used.as_slice();
    // Coordinates that only decided the order are not needed any more.
    for slot in slots.iter_mut() {
        let wanted = &slot.of.fields;
        slot.loaded
            .retain(|field, _| wanted.contains(&Some(*field)));
        slot.results = None;
    }
    let some = tiles_per_task(query, slots.len());
    if slots.len() <= some {
        load_compacted(query, pool, slots, used)?;
    } else {
        let load = |(slots, used): (&mut [BatchTile<'_>], &[Used])| {
            load_compacted(query, pool, slots, used)
        };
        let context = query.array.context();
        context.install(|| {
            slots
                .par_chunks_mut(some)
                .zip(used.par_chunks(some))
                .try_for_each(load)
        })?;
    }
    let slots = &mut *slots;
    let spans = spans(slots, slabs, used);
    let whole = whole(slots, slabs, used);
    let mut all = Vec::with_capacity(query.fields.len());
    for (i, (bound, out)) in query.fields.iter().zip(outs).enumerate() {
        query.operation.check()?;
        let mut tiles: Vec<Option<Arc<Tile>>> = vec![None; slots.len()];
        let mut requests = Vec::new();
        let mut places = Vec::new();
        for (at, ((slot, used), cells)) in slots.iter().zip(used).zip(&spans).enumerate() {
            let Some(field) = slot
                .of
                .fields
                .get(i)
                .copied()
                .flatten()
                .filter(|_| used.cells > 0)
            else {
                continue;
            };
            match slot.loaded.get(&field) {
                Some(tile) => {
                    if let Some(place) = tiles.get_mut(at) {
                        *place = Some(Arc::clone(tile));
                    }
                }
                None => {
                    requests.push(slot.request(field, cells.clone()));
                    places.push(at);
                }
            }
        }
        let mut take = |targets, requests: &[TileRequest]| -> Result<()> {
            for (at, tile) in places
                .iter()
                .zip(load_some(query, pool, requests, targets)?)
            {
                if let Some(place) = tiles.get_mut(*at) {
                    *place = Some(Arc::new(tile));
                }
            }
            Ok(())
        };
        let context = query.array.context();
        let filled = match out {
            FieldOut::Own => {
                take(Vec::new(), &requests)?;
                Filled::Own(gather_bands(
                    context,
                    &bands,
                    &tiles,
                    &bound.column_type,
                    &bound.fill,
                )?)
            }
            FieldOut::Var(out) => {
                take(Vec::new(), &requests)?;
                Filled::Placed {
                    values: gather_var(context, &bands, &tiles, &bound.fill, out)?,
                }
            }
            FieldOut::Fixed(FixedOut {
                data, mut validity, ..
            }) => {
                let direct = direct(bound, slots, &whole, &places, i);
                let mut placed = vec![false; slots.len()];
                for (_, request) in &direct {
                    if let Some(placed) = places.get(*request).and_then(|at| placed.get_mut(*at)) {
                        *placed = true;
                    }
                }
                let targets = targets(
                    bound,
                    slots,
                    &places,
                    &direct,
                    data,
                    validity.as_deref_mut(),
                );
                take(targets, &requests)?;
                let source = (tiles.as_slice(), placed.as_slice());
                let cells = (&bound.column_type, &bound.fill);
                gather_fixed(context, &bands, source, cells, (data, validity))?;
                Filled::Placed { values: 0 }
            }
        };
        all.push(filled);
        for slot in slots.iter_mut() {
            if let Some(Some(field)) = slot.of.fields.get(i) {
                let again = slot
                    .of
                    .fields
                    .iter()
                    .skip(i + 1)
                    .any(|later| later.as_ref() == Some(field));
                if !again {
                    slot.loaded.remove(field);
                }
            }
        }
    }
    Ok(all)
}

/// Loads tiles: where reads are cheap, threads take some each from reading to the last check.
fn load_some(
    query: &SparseQuery,
    pool: &BufferPool,
    requests: &[TileRequest],
    mut targets: Vec<DecodeTarget<'_>>,
) -> Result<Vec<Tile>> {
    let load = |requests: &[TileRequest], targets| {
        load_into(
            &query.array,
            requests,
            targets,
            pool,
            query.prefetch.as_ref(),
        )
    };
    let some = tiles_per_task(query, requests.len());
    if requests.len() <= some || !query.array.location().storage.latency().is_low() {
        return load(requests, targets);
    }
    targets.resize_with(requests.len(), DecodeTarget::default);
    let mut work = Vec::with_capacity(requests.len().div_ceil(some));
    let mut targets = targets.into_iter();
    for requests in requests.chunks(some) {
        work.push((
            requests,
            targets.by_ref().take(requests.len()).collect::<Vec<_>>(),
        ));
    }
    let loaded = each(query.array.context(), work, |(requests, targets)| {
        load(requests, targets)
    })?;
    Ok(loaded.into_iter().flatten().collect())
}

/// Loads what is missing of slots that hold only some cells of their tiles, and small tiles that
/// another batch needs too.
fn load_compacted(
    query: &SparseQuery,
    pool: &BufferPool,
    slots: &mut [BatchTile<'_>],
    used: &[Used],
) -> Result<()> {
    for i in 0..query.fields.len() {
        let (mut requests, mut partial, mut at) = (Vec::new(), Vec::new(), Vec::new());
        for (n, (slot, _)) in slots
            .iter()
            .zip(used)
            .enumerate()
            .filter(|(_, (_, used))| used.cells > 0)
        {
            let Some(Some(field)) = slot.of.fields.get(i) else {
                continue;
            };
            if slot.loaded.contains_key(field) {
                continue;
            }
            let whole = slot.places.is_none();
            if whole && !(slot.shared && tiles::keeps(query, &slot.request(*field, Cells::All))?) {
                continue;
            }
            let few = |places: &Vec<u32>| places.len() < slot.tile.cell_num as usize / 4;
            let spans = slot
                .places
                .as_ref()
                .filter(|places| few(places))
                .map(|places| single(places));
            requests.push(slot.request(*field, spans.map_or(Cells::All, Cells::Spans)));
            partial.push(slot.is_partial());
            at.push((n, *field));
        }
        if requests.is_empty() {
            continue;
        }
        let tiles = tiles::load(query, pool, requests, &partial)?;
        for ((n, field), tile) in at.into_iter().zip(tiles) {
            if let Some(slot) = slots.get_mut(n) {
                let held = slot
                    .places
                    .as_ref()
                    .map(|places| Arc::new(cut(&tile, places)));
                slot.loaded.insert(field, held.unwrap_or(tile));
            }
        }
    }
    Ok(())
}

/// Asks for the tiles of all fields that [`fill_columns`] will load, so that those of the later
/// ones travel while the first are decoded. `room`: bytes that may be under way.
pub(super) fn start(query: &SparseQuery, slots: &[BatchTile<'_>], slabs: &[CellSlab], room: u64) {
    let Some(prefetch) = &query.prefetch else {
        return;
    };
    let mut used = vec![Used::default(); slots.len()];
    Used::add(&mut used, slabs);
    for i in 0..query.fields.len() {
        let mut stored = Vec::new();
        for (slot, _) in slots.iter().zip(&used).filter(|(_, used)| used.cells > 0) {
            let field = slot.of.fields.get(i).copied().flatten();
            if let Some(field) = field.filter(|field| !slot.loaded.contains_key(field)) {
                // Who needs the tile is told what is wrong with it.
                let _ = stored_tiles(&query.array, &slot.request(field, Cells::All), &mut stored);
            }
        }
        prefetch.start(&query.array, &stored, room);
    }
}

/// Which cells of each slot are needed: all where most are.
fn spans(slots: &[BatchTile<'_>], slabs: &[CellSlab], used: &[Used]) -> Vec<Cells> {
    // What is held only in part is loaded already.
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
    lists
        .into_iter()
        .map(|mut list| {
            if list.is_empty() {
                return Cells::All;
            }
            list.sort_unstable_by_key(|span| span.start);
            Cells::Spans(runs(list.into_iter()))
        })
        .collect()
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

/// The requests (whose slots are `places`) that can be unfiltered into the result: where their
/// cells begin there, ascending, and index.
fn direct(
    bound: &BoundField,
    slots: &[BatchTile<'_>],
    whole: &[Option<usize>],
    places: &[usize],
    column: usize,
) -> Vec<(usize, usize)> {
    let kind = &bound.column_type;
    let same = |slot: &BatchTile<'_>| {
        let field = slot.of.fields.get(column).copied().flatten();
        let schema = slot.fragment.schema();
        field.is_some_and(|field| {
            field.layout(schema) == Some((kind.datatype, kind.cell_val_num))
                && field.is_nullable(schema) == kind.nullable
        })
    };
    let start = |slot: &usize| {
        slots
            .get(*slot)
            .filter(|slot| same(slot))
            .and(*whole.get(*slot)?)
    };
    let found = places
        .iter()
        .enumerate()
        .filter_map(|(request, slot)| Some((start(slot)?, request)));
    let mut direct: Vec<(usize, usize)> = found.collect();
    direct.sort_unstable();
    direct
}

/// The targets of requests: the parts of the result that are theirs.
fn targets<'o>(
    bound: &BoundField,
    slots: &[BatchTile<'_>],
    places: &[usize],
    direct: &[(usize, usize)],
    mut data: &'o mut [u8],
    mut validity: Option<&'o mut [u8]>,
) -> Vec<DecodeTarget<'o>> {
    let size = bound.column_type.cell_size();
    let mut targets: Vec<DecodeTarget<'o>> = Vec::new();
    targets.resize_with(places.len(), DecodeTarget::default);
    let mut done = 0;
    for &(start, request) in direct {
        let slot = places.get(request).and_then(|slot| slots.get(*slot));
        let (Some(slot), Some(target)) = (slot, targets.get_mut(request)) else {
            continue;
        };
        let cells = slot.tile.cell_num as usize;
        let next = |rest: &mut &'o mut [u8], size: usize| {
            let skipped = ((start - done) * size).min(rest.len());
            let (_, later) = std::mem::take(rest).split_at_mut(skipped);
            let (piece, later) = later.split_at_mut((cells * size).min(later.len()));
            *rest = later;
            piece
        };
        *target = DecodeTarget {
            data: Some(next(&mut data, size)),
            validity: validity.as_mut().map(|v| next(v, 1)),
        };
        done = start + cells;
    }
    targets
}

//! Loading the tiles of a batch: those that the array's tile cache has need not be read, and what
//! is not needed of others does not stay.
//!
//! Of tiles of which queries need some cells small ones stay in the cache, decoded as a whole,
//! where storage is local. Where some chunks would be enough, that is from the second time on.

use super::plan::PlannedTile;
use super::query::SparseQuery;
use super::tile_cells::cut;
use crate::error::Result;
use crate::read::decode::{DecodeTarget, pipeline_of};
use crate::read::fetch::block_on;
use crate::read::load;
use crate::read::parallel::each;
use crate::read::stored_tile::fragment_of;
use crate::read::{Cells, Tile, TileRequest};
use crate::tile_cache::TileKey;
use std::ops::Range;
use std::sync::Arc;

/// Larger tiles are not worth decoding for a few of their cells. This is two chunks.
const SMALL: u64 = 128 * 1024;

/// A tile that a batch needs.
pub(super) struct WantedTile<'w> {
    pub request: TileRequest,
    /// Whether the query needs only some of its cells: then it is looked for in the cache.
    pub may_be_cached: bool,
    /// Of which cells a tile is made, if not of all.
    pub places: Option<&'w [u32]>,
    /// Where the cells go, if not to a tile.
    pub target: DecodeTarget<'w>,
}

/// Tiles that one task takes through all steps: few enough for a cache, more than one to open their
/// files once.
pub(super) fn tiles_per_task(query: &SparseQuery, tiles: usize) -> usize {
    (tiles / (query.array.context().threads() * 4)).clamp(1, 4)
}

/// Loads tiles as one batch, in the order given.
pub(super) async fn load(
    query: &SparseQuery,
    mut wanted: Vec<WantedTile<'_>>,
) -> Result<Vec<Arc<Tile>>> {
    let cache = query.array.tiles();
    let mut tiles: Vec<Option<Arc<Tile>>> = Vec::with_capacity(wanted.len());
    let mut keys = Vec::with_capacity(wanted.len());
    let (mut requests, mut targets) = (Vec::new(), Vec::new());
    for wanted in &mut wanted {
        let request = &wanted.request;
        let cached = wanted.may_be_cached && stays(query, request)?;
        let key = cached.then_some((request.fragment, request.field, request.tile));
        let tile = key.as_ref().and_then(|key| cache.get(key));
        let first =
            |key: &TileKey| tile.is_none() && skips_chunks(query, request) && cache.touch(*key);
        let key = key.filter(|key| !first(key));
        if tile.is_none() {
            let cells = match key {
                Some(_) => Cells::All,
                None => request.cells.clone(),
            };
            requests.push(TileRequest { cells, ..*request });
            targets.push(std::mem::take(&mut wanted.target));
        }
        tiles.push(tile);
        keys.push(key);
    }
    let mut loaded = load::load(&query.fetcher, &requests, targets)
        .await?
        .into_iter();
    let missing = tiles.iter_mut().zip(keys);
    for (tile, key) in missing.filter(|(tile, _)| tile.is_none()) {
        let Some(decoded) = loaded.next().map(Arc::new) else {
            break;
        };
        if let Some(key) = key {
            cache.put(key, &decoded, query.budget.cache);
        }
        *tile = Some(decoded);
    }
    let tiles = tiles.into_iter().flatten().zip(&wanted);
    let tiles = tiles.map(|(tile, wanted)| match wanted.places {
        Some(places) => Arc::new(cut(&tile, places)),
        None => tile,
    });
    Ok(tiles.collect())
}

/// As [`load`]; threads that stream take some tiles each from reading to the last check.
pub(super) async fn load_on_threads(
    query: &SparseQuery,
    wanted: Vec<WantedTile<'_>>,
) -> Result<Vec<Arc<Tile>>> {
    let some = tiles_per_task(query, wanted.len());
    if wanted.len() <= some || !query.fetcher.streams() {
        return load(query, wanted).await;
    }
    let mut work = Vec::with_capacity(wanted.len().div_ceil(some));
    let mut wanted = wanted.into_iter();
    while wanted.len() > 0 {
        work.push(wanted.by_ref().take(some).collect::<Vec<_>>());
    }
    let context = query.array.context();
    let loaded = each(context, work, |wanted| block_on(load(query, wanted)))?;
    Ok(loaded.into_iter().flatten().collect())
}

/// Whether some chunks of a tile are not needed.
fn skips_chunks(query: &SparseQuery, request: &TileRequest) -> bool {
    let fragment = query.array.fragments().get(request.fragment);
    let (Cells::Spans(spans), Some(fragment)) = (&request.cells, fragment) else {
        return false;
    };
    let (schema, field) = (fragment.schema(), request.field);
    let size = field.layout(schema);
    let Some(size) = size.and_then(|(datatype, cell_val_num)| cell_val_num.cell_size(datatype))
    else {
        return true;
    };
    let filters = pipeline_of(schema, field);
    let cell = (size as u64).max(1);
    let chunk = (u64::from(filters.max_chunk_size) / cell).max(1);
    skips(spans, chunk, fragment.tile_cell_num(request.tile))
}

/// Whether ascending spans leave out a chunk of a tile: `chunk` cells each, `cells` in all.
fn skips(spans: &[Range<u64>], chunk: u64, cells: u64) -> bool {
    // The first chunk behind all spans so far.
    let mut next = 0;
    for span in spans.iter().filter(|span| span.start < span.end) {
        if span.start / chunk > next {
            return true;
        }
        next = (span.end - 1) / chunk + 1;
    }
    next.saturating_mul(chunk) < cells
}

/// Whether all dimensions of a tile may stay in the cache.
pub(super) fn is_small_tile(query: &SparseQuery, tile: &PlannedTile) -> bool {
    let dims = query.order.dimensions().len();
    let tile = (query.index_of(tile.part), tile.tile as u64);
    let mut requests = TileRequest::coordinates(tile.0, tile.1, dims, &Cells::All);
    requests.all(|request| stays(query, &request).unwrap_or(false))
}

/// Whether a tile that is needed again stays in the cache, if there is room.
pub(super) fn stays(query: &SparseQuery, request: &TileRequest) -> Result<bool> {
    let (field, tile) = (request.field, request.tile);
    let fragment = fragment_of(&query.array, request.fragment)?;
    let layout = field.layout(fragment.schema());
    let Some((datatype, cell_val_num)) = layout.filter(|_| query.budget.cache > 0) else {
        return Ok(false);
    };
    let values = match cell_val_num.is_var() {
        true => fragment.loaded().var_tile_size(field, tile)?,
        false => 0,
    };
    let cells = fragment.tile_cell_num(tile);
    let fixed = cells.saturating_mul(cell_val_num.cell_size(datatype).unwrap_or(8) as u64);
    Ok(fixed.saturating_add(values) <= SMALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_without_a_span_is_left_out() {
        for (chunk, cells) in [(4u64, 10u64), (4, 8), (4, 3), (1, 5), (100, 10)] {
            for mask in 0u32..1 << cells {
                let wanted = |cell: u64| mask >> cell & 1 == 1;
                let spans: Vec<_> = (0..cells)
                    .filter(|c| wanted(*c))
                    .map(|c| c..c + 1)
                    .collect();
                let spans = super::super::tile_cells::runs(spans.into_iter());
                let left_out = (0..cells.div_ceil(chunk))
                    .any(|n| !(n * chunk..((n + 1) * chunk).min(cells)).any(wanted));
                assert_eq!(
                    skips(&spans, chunk, cells),
                    left_out,
                    "{spans:?}, {chunk} of {cells}"
                );
            }
        }
    }
}

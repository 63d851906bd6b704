//! Loading tiles of which queries need some cells: where storage is local, small ones stay in
//! memory for the array's next queries, decoded as a whole. Where some chunks would be enough, that
//! is from the second time on.

use super::plan::PlannedTile;
use super::query::SparseQuery;
use crate::error::Result;
use crate::read::decode::load_into;
use crate::read::{BufferPool, Cells, Tile, TileRequest};
use crate::tile_cache::TileKey;
use azulejo_format::CellValNum;
use azulejo_format::fragment::Field;
use azulejo_format::schema::FieldIndex;
use std::ops::Range;
use std::sync::Arc;

/// Larger tiles are not worth decoding for a few of their cells. This is two chunks.
const SMALL: u64 = 128 * 1024;

/// Loads tiles as one batch, in the order of the requests. Of those marked `partial` the query
/// needs some cells only: they are looked for among the tiles kept.
pub(super) fn load(
    query: &SparseQuery,
    pool: &BufferPool,
    mut requests: Vec<TileRequest>,
    partial: &[bool],
) -> Result<Vec<Arc<Tile>>> {
    let cache = query.array.tiles();
    let mut tiles: Vec<Option<Arc<Tile>>> = Vec::with_capacity(requests.len());
    let mut keep = Vec::with_capacity(requests.len());
    for (request, partial) in requests.iter_mut().zip(partial) {
        let kept = if *partial && keeps(query, request)? {
            Some(key(request))
        } else {
            None
        };
        let tile = kept.as_ref().and_then(|key| cache.get(key));
        let first =
            |key: &TileKey| tile.is_none() && skips_chunks(query, request) && cache.touch(*key);
        let kept = kept.filter(|key| !first(key));
        if kept.is_some() {
            request.cells = Cells::All;
        }
        tiles.push(tile);
        keep.push(kept);
    }
    let mut found = tiles.iter().map(Option::is_some);
    requests.retain(|_| found.next() == Some(false));
    let mut loaded = load_into(
        &query.array,
        &requests,
        Vec::new(),
        pool,
        query.prefetch.as_ref(),
    )?
    .into_iter();
    let missing = tiles
        .iter_mut()
        .zip(keep)
        .filter(|(tile, _)| tile.is_none());
    for ((place, keep), tile) in missing.zip(&mut loaded) {
        let tile = Arc::new(tile);
        if let Some(key) = keep {
            cache.put(key, &tile, query.cache_bytes);
        }
        *place = Some(tile);
    }
    Ok(tiles.into_iter().flatten().collect())
}

fn key(request: &TileRequest) -> TileKey {
    (request.fragment, request.field, request.tile)
}

/// Whether some chunks of a tile are not needed.
fn skips_chunks(query: &SparseQuery, request: &TileRequest) -> bool {
    let (Cells::Spans(spans), Some(fragment)) = (
        &request.cells,
        query.array.fragments().get(request.fragment),
    ) else {
        return false;
    };
    let Some((datatype, CellValNum::Fixed(n))) = request.field.layout(fragment.schema()) else {
        return true;
    };
    let filters = match request.field {
        Field::Attribute(i) => fragment.schema().filters_of(FieldIndex::Attribute(i)),
        Field::Dimension(i) => fragment.schema().filters_of(FieldIndex::Dimension(i)),
        _ => &fragment.schema().coords_filters,
    };
    let cell = (u64::from(n) * datatype.size() as u64).max(1);
    let chunk = (u64::from(filters.max_chunk_size) / cell).max(1);
    skips(spans, chunk, fragment.tile_cell_num(request.tile))
}

/// Whether ascending spans leave out a chunk of a tile: `chunk` cells each, `cells` in all.
fn skips(spans: &[Range<u64>], chunk: u64, cells: u64) -> bool {
    // The first chunk that no span before has met.
    let mut next = 0;
    for span in spans.iter().filter(|span| span.start < span.end) {
        if span.start / chunk > next {
            return true;
        }
        next = (span.end - 1) / chunk + 1;
    }
    next.saturating_mul(chunk) < cells
}

/// Whether all dimensions of a tile may be kept.
pub(super) fn is_small_tile(query: &SparseQuery, tile: &PlannedTile) -> bool {
    let fragment = query
        .fragments
        .get(tile.part)
        .map_or(usize::MAX, |of| of.index);
    let dims = query.order.dimensions().len();
    let mut requests = (0..dims).map(|d| TileRequest {
        fragment,
        field: Field::Dimension(d),
        tile: tile.tile as u64,
        cells: Cells::All,
    });
    requests.all(|request| keeps(query, &request).unwrap_or(false))
}

/// Whether a tile that is needed again is kept, if there is room.
pub(super) fn keeps(query: &SparseQuery, request: &TileRequest) -> Result<bool> {
    Ok(query.cache_bytes > 0 && is_small(query, request)?)
}

fn is_small(query: &SparseQuery, request: &TileRequest) -> Result<bool> {
    let Some(fragment) = query.array.fragments().get(request.fragment) else {
        return Ok(false);
    };
    let cells = fragment.tile_cell_num(request.tile);
    let bytes = match request.field.layout(fragment.schema()) {
        Some((datatype, CellValNum::Fixed(n))) => {
            cells.saturating_mul(u64::from(n).saturating_mul(datatype.size() as u64))
        }
        Some((_, CellValNum::Var)) => cells
            .saturating_mul(8)
            .saturating_add(fragment.var_tile_size(request.field, request.tile)?),
        None => return Ok(false),
    };
    Ok(bytes <= SMALL)
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
                let spans = super::super::batch::runs(spans.into_iter());
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

//! Loading: stored tiles are fetched, and decoded.

use super::decode::{DecodeTarget, TileBatch, TileRequest};
use super::fetch::{Fetcher, Waiting, block_on};
use crate::array::Array;
use crate::buffer_pool::BufferPool;
use crate::column::Tile;
use crate::error::Result;
use std::sync::Arc;

/// Reads the stored tiles as one batch and decodes them in parallel; results in the order of the
/// requests.
///
/// Errors with [`Error::Corrupt`](crate::Error::Corrupt) naming file and tile if sizes disagree
/// with the fragment's metadata, and with [`Error::Budget`](crate::Error::Budget) if stored and
/// decoded tiles together exceed the pool's load limit.
pub fn load_tiles(
    array: &Array,
    requests: &[TileRequest],
    pool: &BufferPool,
) -> Result<Vec<Arc<Tile>>> {
    let fetcher = Fetcher::new(array, Waiting::Blocks, pool.clone());
    let fields = requests.iter().map(|r| (r.fragment, r.field));
    let tiles = block_on(async {
        fetcher.tile_offsets(fields).await?;
        load(&fetcher, requests, Vec::new()).await
    })?;
    Ok(tiles.into_iter().map(Arc::new).collect())
}

/// As [`load_tiles`], of fragments that say already where their tiles lie; `targets` are as in
/// [`TileBatch::decode`].
pub(super) async fn load(
    fetcher: &Fetcher,
    requests: &[TileRequest],
    targets: Vec<DecodeTarget<'_>>,
) -> Result<Vec<Tile>> {
    let batch = TileBatch::new(fetcher.array(), requests)?;
    batch.check(fetcher.pool().load_limit())?;
    let bytes = fetcher.fetch(batch.needs()).await?;
    batch.decode(&bytes, targets, fetcher.pool())
}

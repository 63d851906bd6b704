//! Stored tiles from storage: every range that a step needs, as one batch, into reused memory.

use super::prefetch::Prefetch;
use crate::array::{Array, short_read_is_corrupt};
use crate::buffer_pool::{BufferPool, PoolBuffer};
use crate::error::Result;
use crate::storage::{ReadInto, StorePath};
use azulejo_format::fragment::{Field, FilePart, Section};
use bytes::Bytes;
use std::ops::Deref;

/// A stored tile: the filtered bytes of one part of one tile of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StoredTile {
    /// Index of the fragment in the array.
    pub fragment: usize,
    /// The field, as the fragment stores it.
    pub field: Field,
    /// Which of the field's files.
    pub part: FilePart,
    /// Index of the tile in the fragment.
    pub tile: u64,
}

/// A stored tile's bytes and the file that they come from.
#[derive(Debug)]
pub(super) struct Fetched {
    pub path: StorePath,
    pub bytes: FetchedBytes,
}

/// The bytes of a stored tile.
#[derive(Debug)]
pub(super) enum FetchedBytes {
    /// Read when they were needed.
    Pool(PoolBuffer),
    /// Prefetched.
    Shared(Bytes),
}

impl Deref for FetchedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Pool(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// Bytes that a stored tile takes in its file.
pub(super) fn stored_len(array: &Array, tile: &StoredTile) -> Result<u64> {
    let Some(fragment) = array.fragments().get(tile.fragment) else {
        return Ok(0);
    };
    let range = fragment.stored_tile_range(tile.field, tile.part, tile.tile)?;
    Ok(range.end.saturating_sub(range.start))
}

/// Reads stored tiles as one batch, in the order given; those that were prefetched are there
/// already. The caller has checked their lengths against its budget.
pub(super) fn fetch(
    array: &Array,
    tiles: &[StoredTile],
    pool: &BufferPool,
    prefetch: Option<&Prefetch>,
) -> Result<Vec<Fetched>> {
    let mut fetched = Vec::with_capacity(tiles.len());
    let mut offsets = Vec::with_capacity(tiles.len());
    let mut early: Vec<usize> = Vec::new();
    for (i, tile) in tiles.iter().enumerate() {
        let Some(fragment) = array.fragments().get(tile.fragment) else {
            return Err(crate::Error::Internal(format!(
                "no fragment {}",
                tile.fragment
            )));
        };
        let range = fragment.stored_tile_range(tile.field, tile.part, tile.tile)?;
        let len = range.end.saturating_sub(range.start);
        let len = usize::try_from(len)
            .map_err(|_| crate::Error::Internal("a tile beyond memory".into()))?;
        let path = fragment.data_path(tile.field, tile.part)?;
        let bytes = if prefetch.is_some_and(|prefetch| prefetch.has(tile)) {
            early.push(i);
            FetchedBytes::Shared(Bytes::new())
        } else {
            FetchedBytes::Pool(pool.take(len))
        };
        fetched.push(Fetched { path, bytes });
        offsets.push(range.start);
    }
    let mut requests: Vec<ReadInto<'_>> = Vec::new();
    for (Fetched { path, bytes }, offset) in fetched.iter_mut().zip(offsets) {
        if let FetchedBytes::Pool(out) = bytes
            && !out.is_empty()
        {
            requests.push(ReadInto {
                path: path.clone(),
                offset,
                out,
            });
        }
    }
    if !requests.is_empty() {
        array
            .location()
            .storage
            .read_into(&mut requests)
            .map_err(short_read_is_corrupt)?;
    }
    for i in early {
        if let (Some(prefetch), Some(tile), Some(fetched)) =
            (prefetch, tiles.get(i), fetched.get_mut(i))
        {
            fetched.bytes = FetchedBytes::Shared(prefetch.take(tile)?);
        }
    }
    Ok(fetched)
}

/// Loads where the tiles of fields lie, for all fragments given, as one batch.
pub(super) fn preload_indices(array: &Array, fields: &[(usize, Field)]) -> Result<()> {
    let mut sections = Vec::with_capacity(fields.len());
    for &(index, field) in fields {
        let Some(fragment) = array.fragments().get(index) else {
            continue;
        };
        let field = stored_field(array, index, field);
        sections.push((index, Section::TileOffsets(field)));
        if field.is_var(fragment.schema()) {
            sections.push((index, Section::TileVarOffsets(field)));
            sections.push((index, Section::TileVarSizes(field)));
        }
        if field.is_nullable(fragment.schema()) {
            sections.push((index, Section::TileValidityOffsets(field)));
        }
    }
    array.preload(&sections)
}

/// The field that holds the cells of `field` in a fragment: zipped coordinates stand for dimensions
/// in old ones.
pub(super) fn stored_field(array: &Array, fragment: usize, field: Field) -> Field {
    let zipped = |f: &crate::array::Fragment| !f.footer().version.has_separate_dimensions();
    match field {
        Field::Dimension(_) if array.fragments().get(fragment).is_some_and(zipped) => {
            Field::ZippedCoords
        }
        other => other,
    }
}

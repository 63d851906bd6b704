//! Objects that consist of one generic tile: schemas, enumerations, metadata, group details, delete
//! conditions.

use super::open::{decode_at, generic_tile, read_objects};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use azulejo_format::FormatVersion;
use azulejo_format::tile::GenericTile;
use bytes::Bytes;

/// Writes `payload` as the object at `path` below `location`, encrypted if the context has a key.
pub(crate) fn put_tile(
    context: &Context,
    location: &Location,
    path: &str,
    payload: &[u8],
) -> Result<()> {
    // The header tells how the filters were written, whatever the version of the array.
    let tile = GenericTile::encode(payload, FormatVersion::CURRENT, context.key());
    let tile = decode_at(location, path, tile)?;
    location
        .storage
        .put(&location.path.join(path), Bytes::from(tile))
}

/// Reads the payload of the object at `path` below `location`.
pub(super) fn read_tile(context: &Context, location: &Location, path: &str) -> Result<Vec<u8>> {
    let bytes = read_objects(location, [path])?.pop();
    let bytes = bytes.ok_or_else(|| Error::Internal(format!("{path} was not read")))?;
    generic_tile(context, location, path, &bytes)
}

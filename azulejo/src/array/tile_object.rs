//! Objects that consist of one generic tile: schemas, enumerations, metadata, group details, delete conditions.

use crate::context::{Context, Location};
use crate::error::{Error, Result};
use azulejo_format::FormatVersion;
use azulejo_format::tile::GenericTile;
use bytes::Bytes;

/// Writes `payload` as the object at `path` below `location`, encrypted if the context has a key.
pub(crate) fn put_tile(context: &Context, location: &Location, path: &str, payload: &[u8]) -> Result<()> {
    // The header tells how the filters were written, whatever the version of the array.
    let tile = GenericTile::encode(payload, FormatVersion::CURRENT, context.key());
    let path = location.path.join(path);
    let tile = tile.map_err(|source| Error::decode(path.to_string(), source))?;
    location.storage.put(&path, Bytes::from(tile))
}

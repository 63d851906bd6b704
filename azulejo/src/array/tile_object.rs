//! Objects that consist of one generic tile: schemas, enumerations, metadata, group details, delete
//! conditions.

use super::objects::{decode_at, generic_tile, read_objects};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::object_type::ObjectType;
use crate::storage::{Storage, StorePath};
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
    let tile = encode(context, location, path, payload)?;
    location.storage.put(&location.path.join(path), tile)
}

/// As [`put_tile`], for what is added to an array or group: see [`put_if_there`].
pub(crate) fn put_tile_if_there(
    context: &Context,
    location: &Location,
    path: &str,
    payload: &[u8],
) -> Result<()> {
    put_if_there(location, path, encode(context, location, path, payload)?)
}

fn encode(context: &Context, location: &Location, path: &str, payload: &[u8]) -> Result<Bytes> {
    // The header tells how the filters were written, whatever the version of the array.
    let tile = GenericTile::encode(payload, FormatVersion::CURRENT, context.key());
    decode_at(location, path, tile).map(Bytes::from)
}

/// Adds a file, which counts as soon as it is there, to an array or group.
///
/// # Errors
/// [`Error::NotFound`] if the array or group was deleted or moved meanwhile: the file would lie
/// where nobody looks, or in another array that is made there later. Where folders are but parts of
/// names, which no storage with locks of folders is, nothing moves at once, and nobody looks.
pub(crate) fn put_if_there(location: &Location, path: &str, body: Bytes) -> Result<()> {
    let Location {
        storage,
        path: folder,
    } = location;
    let file = folder.join(path);
    storage.put(&file, body)?;
    if storage.locking().is_none() || ObjectType::at(location)?.is_some() {
        return Ok(());
    }
    if let Err(Error::NotFound { .. }) = storage.size(&file) {
        // It went with the rest: first it was added, then all of it was moved or deleted.
        return Ok(());
    }
    storage.delete(std::slice::from_ref(&file))?;
    Err(Error::NotFound {
        uri: folder.to_string(),
        what: "an array or group: it was deleted or moved while it was written to",
    })
}

/// Reads the payload of the object at `path` below `location`.
pub(super) fn read_tile(context: &Context, location: &Location, path: &str) -> Result<Vec<u8>> {
    let bytes = read_objects(context, location, [path])?.pop();
    let bytes = bytes.ok_or_else(|| Error::Internal(format!("{path} was not read")))?;
    generic_tile(context, location, path, &bytes)
}

/// Removes the parts of something that was to become visible by `whole`, after an error: of no use
/// without it, and of all use with it.
///
/// An error does not say that an object is not there: a device may have refused to make it last
/// after it had got its name. Parts go only where the storage says that `whole` is missing;
/// whatever cannot be removed is an orphan that readers pass by. The error that led here is the one
/// to report.
pub(crate) fn clean_up_unseen(storage: &dyn Storage, whole: &StorePath, parts: &[StorePath]) {
    if matches!(storage.size(whole), Err(Error::NotFound { .. })) {
        let _ = storage.delete(parts);
    }
}

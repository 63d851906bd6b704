//! Objects that consist of one generic tile: schemas, enumerations, metadata, group details, delete
//! conditions.

use super::objects::{decode_at, generic_tile, read_objects};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::object_type::ObjectType;
use crate::storage::{Storage, StorePath};
use azulejo_format::FormatVersion;
use azulejo_format::path::{LEGACY_SCHEMA_FILE, SCHEMA_FOLDER};
use azulejo_format::tile::GenericTile;
use bytes::Bytes;
use std::io::ErrorKind;

/// Writes `payload` as the object at `path` below `location`, encrypted if the context has a key.
pub(crate) fn put_tile(
    context: &Context,
    location: &Location,
    path: &str,
    payload: &[u8],
) -> Result<()> {
    let tile = encode_tile(context, location, path, payload)?;
    location.storage.put(&location.path.join(path), tile)
}

/// As [`put_tile`], for what is added to an array or group: see [`put_if_there`].
pub(crate) fn put_tile_if_there(
    context: &Context,
    location: &Location,
    schema: Option<&str>,
    path: &str,
    payload: &[u8],
) -> Result<()> {
    put_if_there(
        location,
        schema,
        path,
        encode_tile(context, location, path, payload)?,
    )
}

/// The bytes of the object at `path` below `location` whose payload this is.
pub(crate) fn encode_tile(
    context: &Context,
    location: &Location,
    path: &str,
    payload: &[u8],
) -> Result<Bytes> {
    // The header tells how the filters were written, whatever the version of the array.
    let tile = GenericTile::encode(payload, FormatVersion::CURRENT, context.key());
    decode_at(location, path, tile).map(Bytes::from)
}

/// Adds a file, which counts as soon as it is there, to an array or group. `schema` is the file name
/// of a schema that the array has which is meant: no other one ever has it.
///
/// # Errors
/// [`Error::NotFound`] if the array or group was deleted or moved meanwhile, or another array was
/// made in its place: the file would lie where nobody looks, or be taken for one of the other array.
/// Where folders are but parts of names, which no storage with locks of folders is, nothing moves at
/// once, and nobody looks.
pub(crate) fn put_if_there(
    location: &Location,
    schema: Option<&str>,
    path: &str,
    body: Bytes,
) -> Result<()> {
    let Location {
        storage,
        path: folder,
    } = location;
    let file = folder.join(path);
    // Another array is not to have the file even for a moment.
    if schema.is_some() {
        check_still_there(location, schema)?;
    }
    storage.put(&file, body)?;
    if is_still_there(location, schema)? {
        return Ok(());
    }
    if let Err(Error::NotFound { .. }) = storage.size(&file) {
        // It went with the rest: first it was added, then all of it was moved or deleted.
        return Ok(());
    }
    storage.delete(std::slice::from_ref(&file))?;
    Err(gone(location))
}

/// Whether an array that has a schema of this file name lies there, or without a name any array or
/// group: see [`put_if_there`].
pub(crate) fn is_still_there(location: &Location, schema: Option<&str>) -> Result<bool> {
    let Location { storage, path } = location;
    if storage.locking().is_none() {
        return Ok(true);
    }
    let schema = match schema {
        None => return Ok(ObjectType::at(location)?.is_some()),
        Some(LEGACY_SCHEMA_FILE) => path.join(LEGACY_SCHEMA_FILE),
        Some(name) => path.join(SCHEMA_FOLDER).join(name),
    };
    match storage.size(&schema) {
        Ok(_) => Ok(true),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// As [`is_still_there`], as an error.
///
/// # Errors
/// [`Error::NotFound`], and errors of the storage.
pub(crate) fn check_still_there(location: &Location, schema: Option<&str>) -> Result<()> {
    match is_still_there(location, schema)? {
        true => Ok(()),
        false => Err(gone(location)),
    }
}

/// The error of who would change an array or group that is there no more.
pub(crate) fn gone(location: &Location) -> Error {
    Error::NotFound {
        uri: location.path.to_string(),
        what: "an array or group: it was deleted or moved while it was written to",
    }
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
/// to report. Over a network it also does not say that `whole` will never be there: what was sent
/// may come late. There parts go only if it was refused, or not asked for.
pub(crate) fn clean_up_unseen(
    storage: &dyn Storage,
    whole: &StorePath,
    parts: &[StorePath],
    error: &Error,
) {
    if storage.locking().is_none() && may_come_late(whole, error) {
        return;
    }
    if matches!(storage.size(whole), Err(Error::NotFound { .. })) {
        let _ = storage.delete(parts);
    }
}

/// Whether an error leaves open if an object is still to be written: one about the object, and no
/// refusal of it.
pub(crate) fn may_come_late(object: &StorePath, error: &Error) -> bool {
    match error {
        // Of a large object the last request may be under way.
        Error::Cancelled => true,
        Error::Storage { uri, source, .. } if *uri == object.to_string() => !matches!(
            source.kind(),
            ErrorKind::PermissionDenied
                | ErrorKind::InvalidInput
                | ErrorKind::NotFound
                | ErrorKind::StorageFull
                | ErrorKind::Unsupported
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{LockFolder, MemoryStorage, StorageLayer};

    /// Folders have no locks, as on object stores.
    #[derive(Debug)]
    struct Far(MemoryStorage);

    impl StorageLayer for Far {
        fn inner(&self) -> &dyn Storage {
            &self.0
        }

        fn locking(&self) -> Option<&dyn LockFolder> {
            None
        }
    }

    #[test]
    fn what_may_come_late_keeps_its_parts() {
        let (whole, part) = (StorePath::memory("a/whole"), StorePath::memory("a/part"));
        let stays = |storage: &dyn Storage, path: &StorePath, kind: ErrorKind| {
            storage.put(&part, Bytes::from_static(b"1")).unwrap();
            let error = Error::Storage {
                op: "write",
                uri: path.to_string(),
                source: kind.into(),
            };
            clean_up_unseen(storage, &whole, std::slice::from_ref(&part), &error);
            storage.size(&part).is_ok()
        };
        let (far, near) = (Far(MemoryStorage::new()), MemoryStorage::new());
        for kind in [
            ErrorKind::TimedOut,
            ErrorKind::Other,
            ErrorKind::ResourceBusy,
        ] {
            assert!(stays(&far, &whole, kind), "{kind}");
            assert!(!stays(&far, &part, kind), "{kind}");
            assert!(!stays(&near, &whole, kind), "{kind}");
        }
        assert!(!stays(&far, &whole, ErrorKind::PermissionDenied));
    }
}

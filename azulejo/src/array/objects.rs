//! Whole objects of an array: read in one batch, decoded under their names.

use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::{ReadRange, ReadRequest, Storage, StorePath, Waiting, block_on};
use azulejo_format::DecodeError;
use azulejo_format::tile::GenericTile;
use bytes::Bytes;

/// Objects of schemas, commits and key-values of this size are read whatever the memory budget.
const SMALL_METADATA: u64 = 16 << 20;

/// Reads whole objects in one batch.
///
/// # Errors
/// [`Error::Budget`] if they are larger together than the memory that the context may take.
pub(crate) fn read_objects<'a>(
    context: &Context,
    location: &Location,
    paths: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<Bytes>> {
    block_on(read_objects_as(context, location, paths, Waiting::Blocks))
}

/// As [`read_objects`], by whoever waits.
pub(crate) async fn read_objects_as<'a>(
    context: &Context,
    location: &Location,
    paths: impl IntoIterator<Item = &'a str>,
    waiting: Waiting,
) -> Result<Vec<Bytes>> {
    // Small arrays are looked at with the smallest of budgets too.
    let limit = context.config().memory_budget.max(SMALL_METADATA);
    let paths: Vec<StorePath> = paths.into_iter().map(|p| location.path.join(p)).collect();
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let storage = &*location.storage;
    let read = |limits: Vec<u64>| {
        let requests = paths.iter().zip(limits).map(|(path, limit)| ReadRequest {
            path: path.clone(),
            range: ReadRange::AtMost(limit),
        });
        waiting.read(storage, requests.collect())
    };
    // Each within its share are all within the limit, and nobody has to ask how large they are:
    // that would be a request for each.
    let share = limit / paths.len() as u64;
    let read = match read(vec![share; paths.len()]).await {
        Err(Error::Budget { .. }) if paths.len() > 1 => {
            read(sizes_within(storage, &paths, limit)?).await
        }
        read => read,
    };
    read.map_err(short_read_is_corrupt)
}

/// The sizes of objects that memory can hold all at once.
fn sizes_within(storage: &dyn Storage, paths: &[StorePath], limit: u64) -> Result<Vec<u64>> {
    let mut sum = 0u64;
    let sizes = paths.iter().map(|path| {
        let size = storage.size(path)?;
        sum = sum.saturating_add(size);
        match sum <= limit {
            true => Ok(size),
            false => Err(Error::Budget {
                what: format!("metadata up to {path}"),
                need: sum,
                budget: limit,
            }),
        }
    });
    sizes.collect()
}

/// The payload of a generic tile.
pub(crate) fn generic_tile(
    context: &Context,
    location: &Location,
    path: &str,
    bytes: &[u8],
) -> Result<Vec<u8>> {
    let tile = GenericTile::decode(bytes, context.key(), context.config().memory_budget);
    Ok(decode_at(location, path, tile)?.data)
}

/// Says which object an error is about.
pub(crate) fn decode_at<T>(
    location: &Location,
    path: &str,
    decoded: Result<T, DecodeError>,
) -> Result<T> {
    decoded.map_err(|source| Error::decode(location.path.join(path).to_string(), source))
}

/// A file that is shorter than another of the array says is damaged, or the other one is.
pub(crate) fn short_read_is_corrupt(error: Error) -> Error {
    match error {
        Error::Storage {
            op: "read",
            uri,
            source,
        } if source.kind() == std::io::ErrorKind::UnexpectedEof => {
            let source = DecodeError::invalid("file", 0, "it is shorter than the metadata says");
            Error::Corrupt { uri, source }
        }
        other => other,
    }
}

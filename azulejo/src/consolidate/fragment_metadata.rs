//! The footers of all fragments in one file, so that opening an array reads one file instead of one a fragment.

use super::Turn;
use crate::array::{Array, Fragment};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::storage::{ReadRange, ReadRequest, StorePath, Uri};
use azulejo_format::fragment::{ConsolidatedFooter, ConsolidatedFragmentMetadata, Footer, LocatedFooter};
use azulejo_format::path::{FRAGMENT_META_FOLDER, LEGACY_SCHEMA_FILE, Suffix};
use azulejo_format::tile::GenericTile;
use azulejo_format::timestamped_name::TimestampedName;
use bytes::Bytes;

/// Bytes read from the end of each metadata file at first.
const TAIL_LEN: u64 = 8192;

/// Writes one file with the footers of all current fragments. Returns it, or `None` if there are fewer than two (those
/// below v3 have no footer and do not count).
///
/// # Errors
/// [`Error::Unsupported`] for an array of a version that is not written: upgrade it first.
pub fn fragment_metadata(context: &Context, uri: &str) -> Result<Option<StorePath>> {
    let context = &crate::manifest::without(context);
    let location = context.locate(&Uri::parse(uri)?)?;
    let _turn = Turn::wait(&location);
    let array = Array::open(context, uri)?;
    let version = array.schema().version;
    if !version.can_be_written() {
        return Err(Error::Unsupported(format!(
            "{}: fragment metadata of arrays of format version {version} cannot be consolidated; upgrade the array first",
            location.path
        )));
    }
    let fragments: Vec<&Fragment> = array.fragments().iter().filter(|f| f.version().has_footer()).collect();
    if fragments.len() < 2 {
        return Ok(None);
    }
    let footers = footers(&array, &fragments)?;
    // Arrays move: their URIs, as versions of old wrote them down, are found by the name at their end.
    let uris: Vec<String> = fragments
        .iter()
        .map(|fragment| match version.has_relative_fragment_names() {
            true => fragment.name().to_owned(),
            false => fragment.location().path.to_string(),
        })
        .collect();
    let file = ConsolidatedFragmentMetadata {
        footers: uris
            .iter()
            .zip(&footers)
            .map(|(fragment, footer)| ConsolidatedFooter { fragment, footer })
            .collect(),
    };
    let times = fragments.iter().map(|fragment| fragment.time_range());
    let start = times.clone().map(|time| time.start).min().unwrap_or(0);
    let end = times.map(|time| time.end).max().unwrap_or(0);
    let name = TimestampedName::versioned(start, end, version.number());
    let tile = GenericTile::encode(&file.encode(), version, context.key())
        .map_err(|e| Error::decode(name.to_string(), e))?;
    let file_name = format!("{name}{}", Suffix::FragmentMetadata.text());
    let path = match version.has_subdirectories() {
        true => location.path.join(FRAGMENT_META_FOLDER).join(&file_name),
        false => location.path.join(&file_name),
    };
    location.storage.put(&path, tile.into())?;
    Ok(Some(path))
}

/// The bytes of the footers as the fragments' own files hold them.
fn footers(array: &Array, fragments: &[&Fragment]) -> Result<Vec<Bytes>> {
    let storage = &array.location().storage;
    let paths: Vec<StorePath> = fragments.iter().map(|fragment| fragment.metadata_path()).collect();
    let legacy = array.schemas().get(LEGACY_SCHEMA_FILE).map(|schema| &**schema);
    let mut footers = Vec::with_capacity(fragments.len());
    for ((fragment, path), tail) in fragments.iter().zip(&paths).zip(storage.read_tails(&paths, TAIL_LEN)?) {
        let size = tail.object_size;
        let mut bytes = tail.bytes;
        let wrong = |e| Error::decode(path.to_string(), e);
        let found = Footer::locate(&bytes, size, fragment.version(), legacy).map_err(wrong)?;
        let found = match found {
            LocatedFooter::NeedMore(len) => {
                let range = ReadRange::Bytes(size.saturating_sub(len)..size);
                let read = storage.read(&[ReadRequest { path: path.clone(), range }])?;
                bytes = read.into_iter().next().unwrap_or_default();
                Footer::locate(&bytes, size, fragment.version(), legacy).map_err(wrong)?
            }
            found @ LocatedFooter::Found { .. } => found,
        };
        let LocatedFooter::Found { bytes: footer, .. } = found else {
            return Err(Error::Internal(format!("{path}: the footer cannot be found")));
        };
        footers.push(Bytes::copy_from_slice(footer));
    }
    Ok(footers)
}

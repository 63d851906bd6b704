//! The footers of all fragments in one file, so that opening an array reads one file instead of one
//! a fragment.

use crate::array::directory::Directory;
use crate::array::{
    Array, ArrayHandle, ArrayLock, Fragment, generic_tile, legacy_schema, list, read_objects,
};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::{ReadRange, ReadRequest, StorePath, Tails, Uri, shown_tails};
use azulejo_format::fragment::{
    ConsolidatedFooter, ConsolidatedFragmentMetadata, Footer, LocatedFooter,
};
use azulejo_format::path::{FRAGMENT_META_FOLDER, Suffix};
use azulejo_format::tile::GenericTile;
use azulejo_format::timestamped_name::TimestampedName;
use bytes::Bytes;

/// Bytes read from the end of each metadata file at first.
const TAIL_LEN: u64 = 8192;

impl ArrayHandle {
    /// Writes one file with the footers of all current fragments. Returns it, or `None` if there
    /// are fewer than two (those below v3 have no footer and do not count), or the newest such file
    /// holds just these already.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for an array of a version that is not written: upgrade it first.
    pub fn consolidate_fragment_metadata(&self) -> Result<Option<StorePath>> {
        let Self { context, uri } = self;

        let context = &crate::manifest::without(context);
        let location = context.locate(&Uri::parse(uri)?)?;
        let _lock = ArrayLock::wait(&location)?;
        let array = context.array(uri).open()?;
        let version = array.schema().version;
        if !version.is_writable() {
            return Err(Error::Unsupported(format!(
                "{}: fragment metadata of arrays of format version {version} cannot be consolidated; upgrade the array first",
                location.path
            )));
        }
        let fragments: Vec<&Fragment> = array
            .fragments()
            .iter()
            .filter(|f| f.version().has_footer())
            .collect();
        if fragments.len() < 2 {
            return Ok(None);
        }
        let footers = footers(&array, &fragments)?;
        // Arrays move: their URIs, as versions of old wrote them down, are found by the name at
        // their end.
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
        let payload = file.encode();
        let may_be_there = fragments.iter().all(|f| f.has_consolidated_footer());
        if may_be_there && newest_payload(context, &location)?.as_deref() == Some(&*payload) {
            return Ok(None);
        }
        let times = fragments.iter().map(|fragment| fragment.time_range());
        let start = times.clone().map(|time| time.start).min().unwrap_or(0);
        let end = times.map(|time| time.end).max().unwrap_or(0);
        let name = TimestampedName::versioned(start, end, version.number());
        let tile = GenericTile::encode(&payload, version, context.key())
            .map_err(|e| Error::decode(name.to_string(), e))?;
        let file_name = format!("{name}{}", Suffix::FragmentMetadata.text());
        let path = match version.has_subdirectories() {
            true => location.path.join(FRAGMENT_META_FOLDER).join(&file_name),
            false => location.path.join(&file_name),
        };
        location.storage.put(&path, tile.into())?;
        Ok(Some(path))
    }
}

/// What the newest file of this kind holds, which is the one that a vacuum keeps; `None` if there is
/// none.
fn newest_payload(context: &Context, location: &Location) -> Result<Option<Vec<u8>>> {
    let files = Directory::parse(&list(location)?).fragment_meta;
    let Some(newest) = files.first() else {
        return Ok(None);
    };
    let path = newest.path.as_str();
    let read = read_objects(context, location, std::iter::once(path))?;
    read.first()
        .map(|bytes| generic_tile(context, location, path, bytes))
        .transpose()
}

/// The bytes of the footers as the fragments' own files hold them.
fn footers(array: &Array, fragments: &[&Fragment]) -> Result<Vec<Bytes>> {
    let mut footers = shown_footers(array, fragments);
    let left: Vec<usize> = (0..fragments.len())
        .filter(|i| footers[*i].is_none())
        .collect();
    let storage = &array.location().storage;
    let paths: Vec<StorePath> = left.iter().map(|i| fragments[*i].metadata_path()).collect();
    let legacy = legacy_schema(array.schemas());
    let tails = if paths.is_empty() {
        Vec::new()
    } else {
        storage.read_tails(&paths, TAIL_LEN)?
    };
    for ((i, path), tail) in left.into_iter().zip(&paths).zip(tails) {
        let size = tail.object_size;
        let mut bytes = tail.bytes;
        let version = fragments[i].version();
        let wrong = |e| Error::decode(path.to_string(), e);
        let found = Footer::locate(&bytes, size, version, legacy).map_err(wrong)?;
        let found = match found {
            LocatedFooter::NeedMore(len) => {
                let range = ReadRange::Bytes(size.saturating_sub(len)..size);
                let read = storage.read(&[ReadRequest {
                    path: path.clone(),
                    range,
                }])?;
                bytes = read.into_iter().next().unwrap_or_default();
                Footer::locate(&bytes, size, version, legacy).map_err(wrong)?
            }
            found @ LocatedFooter::Found { .. } => found,
        };
        let LocatedFooter::Found { bytes: footer, .. } = found else {
            return Err(Error::Internal(format!(
                "{path}: the footer cannot be found"
            )));
        };
        footers[i] = Some(Bytes::copy_from_slice(footer));
    }
    Ok(footers.into_iter().flatten().collect())
}

/// Those of the footers that the storage shows.
fn shown_footers(array: &Array, fragments: &[&Fragment]) -> Vec<Option<Bytes>> {
    // Whoever has read a footer from its own file knows how long that is.
    let len = |fragment: &&Fragment| {
        let offset = fragment.footer().offset?;
        Some(fragment.metadata_size().ok()?.saturating_sub(offset))
    };
    let known = fragments
        .iter()
        .map(len)
        .try_fold(0, |longest, len| Some(len?.max(longest)));
    let folder = &array.location().path;
    let relative = |fragment: &&Fragment| {
        fragment
            .metadata_path()
            .relative_to(folder)
            .map(str::to_owned)
    };
    let paths: Option<Vec<String>> = fragments.iter().map(relative).collect();
    let (Some(len), Some(paths)) = (known, paths) else {
        return fragments.iter().map(|_| None).collect();
    };
    let legacy = legacy_schema(array.schemas());
    let path = |i: usize, text: &mut String| text.push_str(paths.get(i).map_or("", String::as_str));
    let tails = Tails {
        folder,
        count: fragments.len(),
        path: &path,
        len,
    };
    shown_tails(
        &*array.location().storage,
        tails,
        |i, tail, size| match Footer::locate(tail, size, fragments.get(i)?.version(), legacy)
            .ok()?
        {
            LocatedFooter::Found { bytes, .. } => Some(Bytes::copy_from_slice(bytes)),
            LocatedFooter::NeedMore(_) => None,
        },
    )
}

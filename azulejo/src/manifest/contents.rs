//! Which files a manifest holds whole: those that opening reads, as long as they are small.

use super::Manifest;
use crate::context::Location;
use crate::error::{Error, Result};
use crate::storage::{ReadRange, ReadRequest};
use azulejo_format::path::{
    COMMITS_FOLDER, ENUMERATIONS_FOLDER, FRAGMENT_META_FOLDER, FRAGMENT_METADATA_FILE,
    GROUP_DETAILS_FOLDER, LEGACY_SCHEMA_FILE, METADATA_FOLDER, SCHEMA_FOLDER,
};
use std::collections::BTreeMap;

/// Bytes of a file that is held: the metadata of a fragment of some thousand tiles.
const LONGEST: u64 = 32 << 10;

/// Bytes of all files that are held: about what a round trip's time could carry.
const MOST: u64 = 256 << 10;

/// What a file is to those who open; the first kinds are held first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Schemas, what commits say, members of groups.
    Opening,
    /// Where the tiles of fragments lie.
    Fragments,
    /// Key-values and enumerations.
    Later,
}

/// Reads into a manifest what it shall hold, and how long files are where their listing did not
/// tell. What is gone meanwhile is not held.
pub(crate) fn fill(manifest: &mut Manifest, object: &Location) -> Result<()> {
    measure(manifest, object)?;
    let paths = chosen(manifest);
    let request = |path: &String| ReadRequest {
        path: object.path.join(path),
        range: ReadRange::AtMost(LONGEST),
    };
    let requests: Vec<ReadRequest> = paths.iter().map(request).collect();
    let read = match object.storage.read(&requests) {
        Ok(read) => read,
        // The listing counts all the same: whoever reads it asks for the files.
        Err(Error::NotFound { .. } | Error::Budget { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    let held = paths.into_iter().zip(read);
    let held: BTreeMap<_, _> = held
        .filter(|(path, bytes)| manifest.size_of(path) == Some(bytes.len() as u64))
        .collect();
    manifest.contents = held;
    Ok(())
}

/// Asks for the sizes of files whose listing has none, as a disk's.
fn measure(manifest: &mut Manifest, object: &Location) -> Result<()> {
    for (folder, entries) in &mut manifest.folders {
        let folder = object.path.join(folder);
        for entry in entries.iter_mut().filter(|entry| !entry.is_dir) {
            if entry.size.is_some() {
                continue;
            }
            entry.size = match object.storage.size(&folder.join(&entry.name)) {
                Ok(size) => Some(size),
                Err(Error::NotFound { .. }) => None,
                Err(error) => return Err(error),
            };
        }
    }
    Ok(())
}

/// Paths of the files that a manifest shall hold: a kind as a whole or not at all, for as long as
/// one file has to be asked for, the others cost no time.
fn chosen(manifest: &Manifest) -> Vec<String> {
    let mut by_kind: BTreeMap<Kind, (Vec<String>, u64)> = BTreeMap::new();
    for (folder, entries) in &manifest.folders {
        for entry in entries.iter().filter(|entry| !entry.is_dir) {
            let (Some(kind), Some(size)) = (kind(folder, &entry.name), entry.size) else {
                continue;
            };
            let (paths, bytes) = by_kind.entry(kind).or_default();
            // Longer ones make the sum too large for the whole kind.
            *bytes = bytes.saturating_add(if size > LONGEST { MOST } else { size });
            if size > 0 {
                paths.push(crate::storage::path_in(folder, &entry.name));
            }
        }
    }
    let (mut paths, mut left) = (Vec::new(), MOST - 1);
    for (more, bytes) in by_kind.into_values() {
        if bytes <= left {
            left -= bytes;
            paths.extend(more);
        }
    }
    paths
}

/// What a file of an array or group is, by its folder's path and its name.
fn kind(folder: &str, name: &str) -> Option<Kind> {
    let (first, rest) = folder.split_once('/').unwrap_or((folder, ""));
    match (first, rest) {
        ("", _) if name == LEGACY_SCHEMA_FILE => Some(Kind::Opening),
        (SCHEMA_FOLDER, ENUMERATIONS_FOLDER) => Some(Kind::Later),
        (SCHEMA_FOLDER | COMMITS_FOLDER | GROUP_DETAILS_FOLDER, "") => Some(Kind::Opening),
        (FRAGMENT_META_FOLDER, "") => Some(Kind::Fragments),
        (METADATA_FOLDER, "") => Some(Kind::Later),
        _ if name == FRAGMENT_METADATA_FILE => Some(Kind::Fragments),
        _ if folder == crate::snapshots::LISTED_FOLDER => Some(Kind::Later),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Entry;

    fn chosen_of(files: &[(&str, &str, u64)]) -> Vec<String> {
        let mut folders: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        for (folder, name, size) in files {
            folders.entry((*folder).into()).or_default().push(Entry {
                name: (*name).into(),
                is_dir: false,
                size: Some(*size),
            });
        }
        chosen(&Manifest {
            made: 0,
            folders,
            contents: BTreeMap::new(),
        })
    }

    #[test]
    fn small_files_of_opening_are_held_and_data_is_not() {
        let found = chosen_of(&[
            ("", "__array_schema.tdb", 100),
            ("__schema", "__1_1_ab", 100),
            ("__commits", "__1_1_ab_22.wrt", 0),
            ("__commits", "__2_2_ab_22.del", 50),
            ("__fragments/__1_1_ab_22", "__fragment_metadata.tdb", 900),
            ("__fragments/__1_1_ab_22", "a0.tdb", 100),
            ("__meta", "__1_1_ab", 10),
        ]);
        let expected = [
            "__array_schema.tdb",
            "__commits/__2_2_ab_22.del",
            "__schema/__1_1_ab",
            "__fragments/__1_1_ab_22/__fragment_metadata.tdb",
            "__meta/__1_1_ab",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn all_fragments_or_none() {
        let name = "__fragment_metadata.tdb";
        let fragments: Vec<String> = (0..9).map(|i| format!("__fragments/__{i}_{i}_a")).collect();
        let with = |size: u64| -> usize {
            let files: Vec<_> = fragments.iter().map(|f| (f.as_str(), name, size)).collect();
            chosen_of(&[&files[..], &[("__schema", "__1_1_ab", 100)]].concat()).len()
        };
        assert_eq!(
            (with(20 << 10), with(LONGEST), with(LONGEST + 1)),
            (10, 1, 1)
        );
    }
}

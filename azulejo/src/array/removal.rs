//! Taking away the files of an array or a group, such that what a crash leaves is known for that.

use super::{ArrayLock, is_claim, remove_claims};
use crate::context::Location;
use crate::error::{Error, Result};
use crate::object_type::ObjectType;
use crate::storage::{Entry, StorePath};
use azulejo_format::path::{LOCK_FILE, RootEntry, RootFolder};
use std::io::ErrorKind;

/// The file that says of what an array is being made.
pub(crate) const UNFINISHED: &str = "__azulejo_unfinished";
/// The file that says of which object a folder is to become a copy.
pub(crate) const UNFINISHED_COPY: &str = "__azulejo_copy";

/// The folder inside an object's own to which what makes it exist goes first of all, where folders
/// move at once: from then on there is no object any more, and who deletes it again, or makes
/// another one there, finds what is left of it.
pub(crate) const REMAINS: &str = "__azulejo_deleted";

/// Of what a location has the remains.
pub(crate) fn remains(location: &Location) -> Result<Option<ObjectType>> {
    let Location { storage, path } = location;
    if storage.locking().is_none() || storage.find(path, &[REMAINS])?.is_empty() {
        return Ok(None);
    }
    // Where it has nothing any more, it is the last that was left.
    let entries = storage.list(&path.join(REMAINS))?;
    Ok(Some(ObjectType::of(&entries).unwrap_or(ObjectType::Array)))
}

/// Ends a deletion that was cut short, so that something else can lie there. Whether there was any.
pub(crate) fn finish_deletion(location: &Location) -> Result<bool> {
    if remains(location)?.is_none() {
        return Ok(false);
    }
    // Maybe it is only under way.
    let _lock = ArrayLock::wait(location)?;
    if ObjectType::at(location)?.is_none()
        && let Some(object_type) = remains(location)?
    {
        delete_one(location, object_type)?;
    }
    Ok(true)
}

/// Takes away what makes an object exist, at once, where folders move at once.
pub(crate) fn hide(location: &Location, object_type: ObjectType) -> Result<()> {
    let Location { storage, path } = location;
    if storage.locking().is_none() {
        return Ok(());
    }
    let entries = storage.list(path)?;
    let mut markers: Vec<&Entry> = entries
        .iter()
        .filter(|entry| rank_of(entry, object_type) == Some(MARKER))
        .collect();
    // The object goes with its folder, which has all but a mark.
    markers.sort_by_key(|entry| entry.is_dir);
    for marker in markers {
        let hidden = path.join(REMAINS).join(&marker.name);
        // Of an earlier one, if somebody has made this one in its place without a look.
        storage.delete(std::slice::from_ref(&hidden))?;
        storage.rename(&path.join(&marker.name), &hidden)?;
    }
    Ok(())
}

/// Whether a disk had no room for something.
pub(crate) fn is_full(error: &Error) -> bool {
    let Error::Storage { source, .. } = error else {
        return false;
    };
    matches!(
        source.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}

/// Deletes the format's files and folders, and the object's folder if nothing else lies in it.
pub(crate) fn delete_one(location: &Location, object_type: ObjectType) -> Result<()> {
    match hide(location, object_type) {
        // A full disk has no room for the folder that it goes to, and may be why this is deleted: then
        // it goes last, as where folders do not move at once.
        Err(error) if is_full(&error) => {}
        hidden => hidden?,
    }
    let storage = &location.storage;
    let mut entries = storage.list(&location.path)?;
    // What somebody adds before the object is gone is deleted too; who adds to it afterwards finds
    // nothing there. Each pass leaves less, but for that.
    let mut passes = 0;
    while let Some(entry) = entries
        .iter()
        .find(|entry| rank_of(entry, object_type).is_some())
    {
        if passes == DELETING_PASSES {
            return Err(Error::Storage {
                op: "delete",
                uri: location.path.join(&entry.name).to_string(),
                source: std::io::Error::other(
                    "it stays, though the storage says that it was deleted: an object whose name ends in / \
                     may stand for the folder, which other programs can delete",
                ),
            });
        }
        passes += 1;
        // What makes the object exist goes last, what makes fragments count first.
        for rank in 0..=LAST {
            let paths: Vec<StorePath> = (entries.iter())
                .filter(|entry| rank_of(entry, object_type) == Some(rank))
                .map(|entry| location.path.join(&entry.name))
                .collect();
            storage.delete(&paths)?;
        }
        entries = storage.list(&location.path)?;
    }
    // The claim on it goes with it. The folder stays if anything is in it, also what no listing
    // shows.
    if entries.iter().all(|entry| is_claim(&entry.name)) {
        remove_claims(location)?;
        storage.remove_empty_folder(&location.path)?;
    }
    Ok(())
}

/// How often somebody may add to an object that is being deleted: what stays for longer cannot be
/// deleted.
const DELETING_PASSES: usize = 32;

/// The rank of what makes an object exist.
const MARKER: usize = 2;
/// The rank of what says that something is left.
const LAST: usize = 3;

/// When an entry is to be deleted; `None` if it is not the object's.
fn rank_of(entry: &Entry, object_type: ObjectType) -> Option<usize> {
    let is_array = object_type == ObjectType::Array;
    if entry.name == REMAINS {
        return Some(LAST);
    }
    match RootEntry::classify(&entry.name) {
        RootEntry::Folder(RootFolder::Commits) | RootEntry::LegacyCommit(_) if is_array => Some(0),
        RootEntry::Folder(RootFolder::Schema) | RootEntry::LegacySchema if is_array => Some(MARKER),
        RootEntry::Folder(RootFolder::GroupDetails) | RootEntry::GroupMarker => Some(MARKER),
        // Who cannot list reads the manifest first.
        RootEntry::Folder(RootFolder::Manifest) => Some(0),
        RootEntry::Folder(RootFolder::Metadata) => Some(1),
        // Of a move or an import that was cut short.
        RootEntry::Unknown if [UNFINISHED_COPY, UNFINISHED].contains(&entry.name.as_str()) => {
            Some(1)
        }
        RootEntry::Unknown => (is_array && entry.name == LOCK_FILE).then_some(1),
        _ => is_array.then_some(1),
    }
}

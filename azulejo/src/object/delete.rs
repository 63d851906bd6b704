//! Deleting arrays and groups.

use super::transfer::UNFINISHED_COPY;
use super::{Object, ObjectHandle, find};
use crate::array::ArrayLock;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::group::{Group, ObjectType};
use crate::storage::{Entry, StorePath, Uri};
use azulejo_format::path::{LOCK_FILE, RootEntry, RootFolder};
use std::collections::HashSet;

impl ObjectHandle {
    /// Deletes an array or a group, for good and at all times. Files that are not the format's
    /// stay, and so does the folder then. With `recursive` a group's members are deleted first,
    /// wherever they lie, and theirs; without, members stay.
    ///
    /// Returns what was deleted, in that order. What a crash leaves can be deleted again, and is
    /// deleted by who makes another object in its place.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is neither an array nor a group.
    pub fn delete(&self, recursive: bool) -> Result<Vec<Object>> {
        let context = &crate::manifest::without(&self.context);
        let plan = self.plan_deletion(recursive)?;
        for object in &plan {
            let (_, location, _) = find_or_remains(context, &object.uri)?;
            let _lock = ArrayLock::wait(&location);
            let (_, location, object_type) = find_or_remains(context, &object.uri)?;
            delete_one(&location, object_type)?;
        }
        Ok(plan)
    }

    /// As [`Self::delete`], of an array only.
    pub(crate) fn delete_array(&self) -> Result<()> {
        let context = crate::manifest::without(&self.context);
        match find(&context, &self.uri)? {
            (_, _, ObjectType::Array) => self.delete(false).map(drop),
            (uri, ..) => Err(Error::InvalidArgument(format!(
                "{uri} is a group, no array"
            ))),
        }
    }

    /// What [`Self::delete`] would delete; deletes nothing. Members that are not there are left
    /// out.
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub fn plan_deletion(&self, recursive: bool) -> Result<Vec<Object>> {
        let context = &crate::manifest::without(&self.context);
        let (uri, _, object_type) = find_or_remains(context, &self.uri)?;
        let mut plan = Vec::new();
        let mut seen = HashSet::from([uri.to_string()]);
        // Each group is followed by its members: reversed, members come before the groups that name
        // them.
        let mut todo = vec![Object {
            uri: uri.to_string(),
            object_type,
        }];
        while let Some(object) = todo.pop() {
            if recursive && object.object_type == ObjectType::Group {
                let group = match context.group(&object.uri).open() {
                    // Its members were deleted before it.
                    Err(Error::NotFound { .. }) => None,
                    group => Some(group?),
                };
                for member in group.iter().flat_map(Group::members) {
                    let found = match find_or_remains(context, &member.location) {
                        Ok((uri, _, object_type)) => Object {
                            uri: uri.to_string(),
                            object_type,
                        },
                        Err(Error::NotFound { .. }) => continue,
                        Err(error) => return Err(error),
                    };
                    if seen.insert(found.uri.clone()) {
                        todo.push(found);
                    }
                }
            }
            plan.push(object);
        }
        plan.reverse();
        Ok(plan)
    }
}

/// The folder inside an object's own to which what makes it exist goes first of all, where folders
/// move at once: from then on there is no object any more, and who deletes it again, or makes
/// another one there, finds what is left of it.
const REMAINS: &str = "__azulejo_deleted";

/// As [`find`], also of what a deletion that was cut short has left.
fn find_or_remains(context: &Context, uri: &str) -> Result<(Uri, Location, ObjectType)> {
    match find(context, uri) {
        Err(error @ Error::NotFound { .. }) => {
            let uri = Uri::parse(uri)?;
            let location = context.locate(&uri)?;
            match remains(&location)? {
                Some(object_type) => Ok((uri, location, object_type)),
                None => Err(error),
            }
        }
        found => found,
    }
}

/// Of what a location has the remains.
fn remains(location: &Location) -> Result<Option<ObjectType>> {
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
    let _lock = ArrayLock::wait(location);
    if ObjectType::at(location)?.is_none()
        && let Some(object_type) = remains(location)?
    {
        delete_one(location, object_type)?;
    }
    Ok(true)
}

/// Takes away what makes an object exist, at once, where folders move at once.
pub(super) fn hide(location: &Location, object_type: ObjectType) -> Result<()> {
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

/// Deletes the format's files and folders, and the object's folder if nothing else lies in it.
fn delete_one(location: &Location, object_type: ObjectType) -> Result<()> {
    hide(location, object_type)?;
    let storage = &location.storage;
    let mut entries = storage.list(&location.path)?;
    // What somebody adds before the object is gone is deleted too; who adds to it afterwards finds
    // nothing there.
    while entries
        .iter()
        .any(|entry| rank_of(entry, object_type).is_some())
    {
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
    if entries.is_empty() {
        storage.delete(std::slice::from_ref(&location.path))?;
    }
    Ok(())
}

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
        // Of a move that was cut short.
        RootEntry::Unknown if entry.name == UNFINISHED_COPY => Some(1),
        RootEntry::Unknown => (is_array && entry.name == LOCK_FILE).then_some(1),
        _ => is_array.then_some(1),
    }
}

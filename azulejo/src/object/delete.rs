//! Deleting arrays and groups.

use super::{Object, ObjectHandle, find};
use crate::array::ArrayLock;
use crate::context::Location;
use crate::error::{Error, Result};
use crate::group::ObjectType;
use crate::storage::{Entry, StorePath};
use azulejo_format::path::{LOCK_FILE, RootEntry, RootFolder};
use std::collections::HashSet;

impl ObjectHandle {
    /// Deletes an array or a group, for good and at all times. Files that are not the format's
    /// stay, and so does the folder then. With `recursive` a group's members are deleted first,
    /// wherever they lie, and theirs; without, members stay.
    ///
    /// Returns what was deleted, in that order. A crash leaves an object that can be deleted again.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is neither an array nor a group.
    pub fn delete(&self, recursive: bool) -> Result<Vec<Object>> {
        let context = &crate::manifest::without(&self.context);
        let plan = self.plan_deletion(recursive)?;
        for object in &plan {
            let (_, location, _) = find(context, &object.uri)?;
            let _lock = ArrayLock::wait(&location);
            let (_, location, object_type) = find(context, &object.uri)?;
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
        let (uri, _, object_type) = find(context, &self.uri)?;
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
                for member in context.group(&object.uri).open()?.members() {
                    let found = match find(context, &member.location) {
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

/// Deletes the format's files and folders, and the object's folder if nothing else lies in it.
fn delete_one(location: &Location, object_type: ObjectType) -> Result<()> {
    let storage = &location.storage;
    let mut entries = storage.list(&location.path)?;
    // What somebody adds before the object is gone is deleted too; who adds to it afterwards finds
    // nothing there.
    while entries
        .iter()
        .any(|entry| rank_of(entry, object_type).is_some())
    {
        // What makes the object exist goes last, what makes fragments count first.
        for rank in 0..=MARKER {
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

/// When an entry is to be deleted; `None` if it is not the object's.
fn rank_of(entry: &Entry, object_type: ObjectType) -> Option<usize> {
    let is_array = object_type == ObjectType::Array;
    match RootEntry::classify(&entry.name) {
        RootEntry::Folder(RootFolder::Commits) | RootEntry::LegacyCommit(_) if is_array => Some(0),
        RootEntry::Folder(RootFolder::Schema) | RootEntry::LegacySchema if is_array => Some(MARKER),
        RootEntry::Folder(RootFolder::GroupDetails) | RootEntry::GroupMarker => Some(MARKER),
        // Who cannot list reads the manifest first.
        RootEntry::Folder(RootFolder::Manifest) => Some(0),
        RootEntry::Folder(RootFolder::Metadata) => Some(1),
        RootEntry::Unknown => (is_array && entry.name == LOCK_FILE).then_some(1),
        _ => is_array.then_some(1),
    }
}

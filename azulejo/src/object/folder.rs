//! Which arrays and groups lie in a folder.

use super::ObjectHandle;
use crate::array::removal::REMAINS;
use crate::context::Location;
use crate::error::{Error, Result};
use crate::object_type::ObjectType;
use crate::storage::{Entry, StorePath, Uri};
use azulejo_format::path::RootEntry;

/// An array or group in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// The name of its folder.
    pub name: String,
    /// Where it lies.
    pub uri: String,
    /// What it is.
    pub object_type: ObjectType,
}

impl ObjectHandle {
    /// What lies there: an array, a group, or neither.
    ///
    /// # Errors
    /// [`Error::Storage`] if the folder cannot be listed.
    pub fn object_type(&self) -> Result<Option<ObjectType>> {
        let location = crate::manifest::locate(&self.context, &Uri::parse(&self.uri)?)?;
        ObjectType::at(&location)
    }

    /// The arrays and groups that lie directly in a folder, ordered by name, whatever a group there
    /// says its members are. The folder may itself be a group or an array; its own parts (such as
    /// the arrays of dimension labels) do not count.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such folder.
    pub fn list(&self) -> Result<Vec<FolderEntry>> {
        let location = crate::manifest::locate(&self.context, &Uri::parse(&self.uri)?)?;
        let entries = location.storage.list(&location.path)?;
        if entries.is_empty() && !exists(&location)? {
            return Err(Error::NotFound {
                uri: self.uri.clone(),
                what: "a folder",
            });
        }
        let mut found = Vec::new();
        for (name, path) in subfolders(&location.path, &entries) {
            if let Some(object_type) = ObjectType::of(&location.storage.list(&path)?) {
                found.push(FolderEntry {
                    name: name.to_owned(),
                    uri: path.to_string(),
                    object_type,
                });
            }
        }
        Ok(found)
    }
}

/// The folders in a folder that are not parts of the array or group there, nor of what a deletion
/// has left of one.
pub(super) fn subfolders<'a>(
    folder: &StorePath,
    entries: &'a [Entry],
) -> impl Iterator<Item = (&'a str, StorePath)> {
    let foreign = |entry: &&Entry| {
        entry.is_dir
            && entry.name != REMAINS
            && RootEntry::classify(&entry.name) == RootEntry::Unknown
    };
    entries
        .iter()
        .filter(foreign)
        .map(move |entry| (entry.name.as_str(), folder.join(&entry.name)))
}

/// Whether a folder exists: the listing of one that does not is empty too.
pub(super) fn exists(location: &Location) -> Result<bool> {
    let Some(parent) = location.path.parent() else {
        return Ok(true);
    };
    let name = location.path.name();
    Ok(location
        .storage
        .find(&parent, &[name])?
        .iter()
        .any(|entry| entry.is_dir))
}

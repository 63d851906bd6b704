//! What a folder is, and which arrays and groups lie in it.

use crate::context::Location;
use crate::error::{Error, Result};
use crate::object::ObjectHandle;
use crate::storage::{Entry, StorePath, Uri};
use azulejo_format::path::{
    GROUP_DETAILS_FOLDER, GROUP_FILE, LEGACY_SCHEMA_FILE, RootEntry, RootFolder, SCHEMA_FOLDER,
};
use std::fmt;

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectType {
    /// An array.
    Array,
    /// A group.
    Group,
}

impl ObjectType {
    /// What a folder with these entries is. Where there are marks of both, it is an array.
    #[must_use]
    pub fn of(entries: &[Entry]) -> Option<Self> {
        let mut found = None;
        for entry in entries {
            match RootEntry::classify(&entry.name) {
                RootEntry::LegacySchema if !entry.is_dir => return Some(Self::Array),
                RootEntry::Folder(RootFolder::Schema) if entry.is_dir => return Some(Self::Array),
                RootEntry::Folder(RootFolder::GroupDetails) if entry.is_dir => {
                    found = Some(Self::Group);
                }
                RootEntry::GroupMarker if !entry.is_dir => found = Some(Self::Group),
                _ => {}
            }
        }
        found
    }

    /// Names of what makes a folder an array or a group.
    pub(crate) const MARKERS: [&str; 4] = [
        SCHEMA_FOLDER,
        LEGACY_SCHEMA_FILE,
        GROUP_DETAILS_FOLDER,
        GROUP_FILE,
    ];

    /// What a folder is.
    pub(crate) fn at(location: &Location) -> Result<Option<Self>> {
        let find = |names: &[&str]| -> Result<Option<Self>> {
            Ok(Self::of(&location.storage.find(&location.path, names)?))
        };
        if !location.storage.latency().is_low() {
            return find(&Self::MARKERS);
        }
        // What most folders are shows at the first look, and nothing outweighs it.
        let (usual, others) = Self::MARKERS.split_at(1);
        match find(usual)? {
            None => find(others),
            found => Ok(found),
        }
    }
}

impl fmt::Display for ObjectType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Array => "array",
            Self::Group => "group",
        })
    }
}

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

/// The folders in a folder that are not parts of the array or group there.
pub(super) fn subfolders<'a>(
    folder: &StorePath,
    entries: &'a [Entry],
) -> impl Iterator<Item = (&'a str, StorePath)> {
    let foreign =
        |entry: &&Entry| entry.is_dir && RootEntry::classify(&entry.name) == RootEntry::Unknown;
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

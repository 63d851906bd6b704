//! What a folder is: an array, a group, or neither.

use crate::context::Location;
use crate::error::Result;
use crate::storage::Entry;
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

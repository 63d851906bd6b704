//! What lies in a folder: arrays, groups, folders.

use crate::error::Result;
use azulejo::Context;
use azulejo::context::Location;
use azulejo::format::path::{RootEntry, RootFolder};
use azulejo::storage::{Entry, Uri};

/// What a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An array.
    Array,
    /// A group.
    Group,
    /// A folder of the file system.
    Folder,
}

impl Kind {
    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Group => "group",
            Self::Folder => "folder",
        }
    }

    /// What a folder with these entries is.
    fn of(entries: &[Entry]) -> Self {
        let mut kind = Self::Folder;
        for entry in entries {
            match RootEntry::classify(&entry.name) {
                RootEntry::LegacySchema => return Self::Array,
                RootEntry::Folder(RootFolder::Schema) if entry.is_dir => return Self::Array,
                RootEntry::GroupMarker | RootEntry::Folder(RootFolder::GroupDetails) => kind = Self::Group,
                _ => {}
            }
        }
        kind
    }
}

/// Files and bytes below a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Where a URI lies, without asking whether anything does.
pub fn locate(context: &Context, uri: &str) -> Result<Location> {
    Ok(context.locate(&Uri::parse(uri)?)?)
}

/// What lies at a location, and the entries there.
pub fn look(location: &Location) -> Result<(Kind, Vec<Entry>)> {
    let entries = location.storage.list(&location.path)?;
    Ok((Kind::of(&entries), entries))
}

/// A folder in a folder.
pub fn child(location: &Location, name: &str) -> Location {
    Location { storage: location.storage.clone(), path: location.path.join(name) }
}

/// The files below a location.
pub fn disk_usage(location: &Location) -> Result<DiskUsage> {
    let mut usage = DiskUsage::default();
    let mut folders = vec![location.clone()];
    while let Some(folder) = folders.pop() {
        for entry in folder.storage.list(&folder.path)? {
            if entry.is_dir {
                folders.push(child(&folder, &entry.name));
            } else {
                usage.files += 1;
                usage.bytes += match entry.size {
                    Some(size) => size,
                    None => folder.storage.size(&folder.path.join(&entry.name))?,
                };
            }
        }
    }
    Ok(usage)
}

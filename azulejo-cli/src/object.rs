//! What lies at a URI, and how much of it.

use crate::error::Result;
use azulejo::context::Location;

/// Files and bytes below a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The files below a location.
pub fn disk_usage(location: &Location) -> Result<DiskUsage> {
    let mut usage = DiskUsage::default();
    let storage = &location.storage;
    for (folder, entries) in storage.list_tree(&location.path)? {
        for entry in entries.iter().filter(|entry| !entry.is_dir) {
            usage.files += 1;
            usage.bytes += match entry.size {
                Some(size) => size,
                None => storage.size(&location.path.join(&folder).join(&entry.name))?,
            };
        }
    }
    Ok(usage)
}

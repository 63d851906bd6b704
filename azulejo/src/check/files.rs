//! Which files there are.

use crate::context::Location;
use crate::error::Result;
use crate::storage::StorePath;

/// All files below a folder, with their sizes.
pub(super) fn files_below(
    location: &Location,
    folder: &StorePath,
) -> Result<Vec<(StorePath, u64)>> {
    let mut files = Vec::new();
    for (below, entries) in location.storage.list_tree(folder)? {
        for entry in entries.iter().filter(|entry| !entry.is_dir) {
            let path = folder.join(&below).join(&entry.name);
            let size = match entry.size {
                Some(size) => size,
                None => location.storage.size(&path)?,
            };
            files.push((path, size));
        }
    }
    Ok(files)
}

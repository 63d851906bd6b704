//! Which files there must be, and which there are.

use crate::array::Fragment;
use crate::context::Location;
use crate::error::Result;
use crate::storage::StorePath;
use azulejo_format::fragment::{Field, FilePart};

/// The files of a field that a fragment must have, with their sizes.
pub(super) fn parts(fragment: &Fragment, field: Field) -> Vec<(FilePart, Option<u64>)> {
    let (footer, schema) = (fragment.footer(), fragment.schema());
    let mut parts = vec![(FilePart::Data, footer.file_size(field))];
    if field.is_var(schema) {
        parts.push((FilePart::Var, footer.file_var_size(field)));
    }
    if field.is_nullable(schema) {
        parts.push((FilePart::Validity, footer.file_validity_size(field)));
    }
    parts
}

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

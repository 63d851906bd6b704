//! Names of files: which are changed, and which are only for a moment.

use super::changes;
use super::error::storage_error;
use crate::error::{Error, Result};
use crate::storage::StorePath;
use azulejo_format::path::{LABELS_FOLDER, MANIFEST_FOLDER};
use std::fs;
use std::io::{self, ErrorKind};

/// Folders inside an array or group that hold folders of any name.
const OF_ANY_NAME: [&str; 2] = [LABELS_FOLDER, MANIFEST_FOLDER];

/// Whether a folder is a part of an array or group. Their names begin with `__`, or those of the
/// folders that they lie in say so; folders above are the user's, who may link them.
fn is_inside(folder: &StorePath) -> bool {
    let holds_any = |around: StorePath| OF_ANY_NAME.contains(&around.name());
    folder.name().starts_with("__") || folder.parent().is_some_and(holds_any)
}

/// Refuses to change what lies behind a link inside an array or group: hostile ones lead anywhere.
pub(super) fn refuse_links(op: &'static str, path: &StorePath) -> Result<()> {
    let mut folder = path.parent();
    while let Some(inner) = folder.filter(is_inside) {
        if fs::symlink_metadata(inner.as_native()).is_ok_and(|found| found.is_symlink()) {
            let text = format!("{inner} is a link, and nothing behind links is changed");
            let source = io::Error::new(ErrorKind::PermissionDenied, text);
            return Err(storage_error(op, path, source));
        }
        folder = inner.parent();
    }
    Ok(())
}

/// A file that is written under another name before it gets its own.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with(".azulejo-") && name.ends_with(".tmp")
}

pub(super) fn parent_of(path: &StorePath) -> Result<StorePath> {
    path.parent()
        .ok_or_else(|| Error::InvalidArgument(format!("{path}: not the name of a file")))
}

/// Where bytes are written before the file at `path` gets its name. Other programs list folders such
/// as `__schema` and take every file for theirs, so it lies in the array's or group's own folder
/// (same file system: a rename must do).
pub(super) fn temporary_path(path: &StorePath) -> StorePath {
    let name = format!(".azulejo-{}.tmp", uuid::Uuid::new_v4().simple());
    changes::root_of(path).join(&name)
}

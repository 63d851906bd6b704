//! Files that lie elsewhere: in object stores and on web servers.

use crate::error::{CliError, Result};
use azulejo::Context;
use azulejo::context::Location;
use azulejo::object::copy_file;
use azulejo::storage::Uri;
use std::fs::File;
use std::path::Path;

/// Where a name that is the URI of a remote file points to; `None` for a path of this machine.
pub fn remote(context: &Context, name: &str) -> Result<Option<Location>> {
    if !name.contains("://") || name.starts_with("file://") {
        return Ok(None);
    }
    Ok(Some(context.locate(&Uri::parse(name)?)?))
}

/// The local place of a file.
fn local(context: &Context, file: &Path) -> Result<Location> {
    let path = file
        .to_str()
        .ok_or_else(|| CliError::usage(format!("{}: the path is not UTF-8", file.display())))?;
    Ok(context.locate(&Uri::parse(path)?)?)
}

/// Copies a remote file into one that nobody else sees; that, and its size.
pub fn fetch(context: &Context, from: &Location) -> Result<(File, u64)> {
    let folder = tempfile::tempdir()
        .map_err(|e| CliError::io("create a folder in", &std::env::temp_dir(), e))?;
    let path = folder.path().join("file");
    copy_file(from, &local(context, &path)?, None)?;
    let failed = |e| CliError::io("read", &path, e);
    let file = File::open(&path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    // An open file stays readable without its name, but for Windows.
    let kept = match cfg!(windows) {
        true => {
            let mut kept = tempfile::tempfile().map_err(failed)?;
            std::io::copy(&mut &file, &mut kept).map_err(failed)?;
            kept
        }
        false => file,
    };
    Ok((kept, size))
}

/// Copies a local file to a remote place, where it appears when all of it is there.
pub fn send(context: &Context, file: &Path, to: &Location) -> Result<()> {
    Ok(copy_file(&local(context, file)?, to, None)?)
}

/// Whether a remote file is there.
pub fn exists(place: &Location) -> Result<bool> {
    match place.storage.size(&place.path) {
        Ok(_) => Ok(true),
        Err(azulejo::Error::NotFound { .. }) => Ok(false),
        Err(other) => Err(other.into()),
    }
}

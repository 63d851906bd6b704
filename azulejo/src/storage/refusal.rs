//! What every storage says of files that are not as they should be.

use super::uri::StorePath;
use crate::error::Error;
use std::io;

/// There is no such file.
pub(super) fn not_found(path: &StorePath) -> Error {
    Error::NotFound {
        uri: path.to_string(),
        what: "no such file",
    }
}

/// Something is there already.
pub(super) fn already_exists(path: &StorePath) -> Error {
    Error::AlreadyExists {
        uri: path.to_string(),
    }
}

/// A file ends before the bytes that are asked for.
pub(super) fn too_short(path: &StorePath, end: u64, size: u64) -> Error {
    let text = format!("the file has {size} bytes, but byte {end} is asked for");
    Error::Storage {
        op: "read",
        uri: path.to_string(),
        source: io::Error::new(io::ErrorKind::UnexpectedEof, text),
    }
}

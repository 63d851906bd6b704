//! Errors of files.

use crate::error::Error;
use crate::storage::StorePath;
use crate::storage::refusal::not_found;
use std::io::{self, ErrorKind};

/// Whether a file, or a folder on the way to it, is not there.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// What the operating system refused.
pub(super) fn storage_error(op: &'static str, path: &StorePath, source: io::Error) -> Error {
    let source = match source.kind() {
        ErrorKind::NotSeekable => io::Error::new(ErrorKind::InvalidInput, "it is no regular file"),
        _ => source,
    };
    Error::Storage {
        op,
        uri: path.to_string(),
        source,
    }
}

/// The same; what is missing is [`Error::NotFound`].
pub(super) fn io_error(op: &'static str, path: &StorePath, source: io::Error) -> Error {
    if is_missing(&source) {
        not_found(path)
    } else {
        storage_error(op, path, source)
    }
}

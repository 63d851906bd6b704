//! Opening files, and reading of open ones.

use super::error::{io_error, storage_error};
use crate::error::{Error, Result};
use crate::large_pages;
use crate::platform::read_exact_at;
use crate::storage::refusal::not_found;
use crate::storage::{ObjectReader, StorePath};
use bytes::Bytes;
use std::fs::File;
use std::io::{self, ErrorKind, IoSliceMut, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// A file that stays open between reads.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub path: StorePath,
    pub file: File,
}

impl ObjectReader for OpenFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        read_exact_at(&self.file, out, offset)
            .map_err(|source| storage_error("read", &self.path, source))
    }

    fn read_scattered_at(&mut self, offset: u64, pieces: &mut [IoSliceMut<'_>]) -> Result<()> {
        read_scattered(&mut self.file, offset, pieces)
            .map_err(|source| storage_error("read", &self.path, source))
    }
}

pub(super) fn open(path: &StorePath) -> Result<File> {
    open_file(path.as_native()).map_err(|e| io_error("read", path, e))
}

/// Opens a file for reading, without waiting: to open a pipe would wait for who writes into it, who
/// may never come. Positioned reads of it, and to move in it, are errors then; those of files are
/// as ever.
#[cfg(unix)]
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    match File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
    {
        // Someone has a lease of it, and gives it back if that is waited for.
        Err(e) if e.kind() == ErrorKind::WouldBlock && std::fs::metadata(path)?.is_file() => {
            File::open(path)
        }
        opened => opened,
    }
}

#[cfg(not(unix))]
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    File::open(path)
}

pub(super) fn file_size(path: &StorePath, file: &File) -> Result<u64> {
    let metadata = file.metadata().map_err(|e| io_error("read", path, e))?;
    if metadata.is_dir() {
        return Err(not_found(path));
    }
    if !metadata.is_file() {
        return Err(storage_error("read", path, ErrorKind::NotSeekable.into()));
    }
    Ok(metadata.len())
}

pub(super) fn read_range(path: &StorePath, file: &File, range: Range<u64>) -> Result<Bytes> {
    let len = usize::try_from(range.end - range.start).map_err(|_| {
        Error::InvalidArgument(format!(
            "{path}: a read of {range:?} does not fit into memory"
        ))
    })?;
    let mut bytes = large_pages::zeroed(len);
    read_exact_at(file, &mut bytes, range.start)
        .map_err(|source| storage_error("read", path, source))?;
    Ok(Bytes::from(bytes))
}

/// Fills pieces with the bytes from `offset` on; moves the file's cursor.
fn read_scattered(
    file: &mut File,
    offset: u64,
    mut pieces: &mut [IoSliceMut<'_>],
) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    IoSliceMut::advance_slices(&mut pieces, 0);
    while !pieces.is_empty() {
        match file.read_vectored(pieces) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => IoSliceMut::advance_slices(&mut pieces, read),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

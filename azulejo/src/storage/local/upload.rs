//! A file that is written piece by piece and lasts once it is finished.

use super::changes::Changes;
use super::error::storage_error;
use crate::error::Result;
use crate::storage::{StorePath, Upload};
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

/// More files being written than this are closed between writes: a process may not hold many.
const MOST_OPEN_UPLOADS: usize = 128;
/// So many written bytes are sent to the device while more are being made: otherwise the last call
/// waits for all of them.
const FLUSH_BYTES: usize = 4 << 20;

/// A file under its final name; a new one is removed when it is dropped unfinished.
#[derive(Debug)]
pub(super) struct LocalUpload {
    path: StorePath,
    /// Closed between writes where many files are open.
    file: Option<File>,
    /// Whether the file stays if this is dropped.
    stays: bool,
    changes: Changes,
    open_uploads: Arc<AtomicUsize>,
    /// Bytes written since the last flush began.
    unflushed: usize,
    /// What was written before is on its way to the device.
    flush: Option<JoinHandle<io::Result<()>>>,
}

impl LocalUpload {
    pub fn new(
        path: &StorePath,
        file: File,
        changes: Changes,
        open_uploads: &Arc<AtomicUsize>,
    ) -> Self {
        open_uploads.fetch_add(1, Ordering::Relaxed);
        let open_uploads = Arc::clone(open_uploads);
        let (file, path) = (Some(file), path.clone());
        Self {
            path,
            file,
            stays: false,
            changes,
            open_uploads,
            unflushed: 0,
            flush: None,
        }
        .rested()
    }

    /// Of a file that was there already, which stays whatever happens.
    pub fn of_old_file(mut self) -> Self {
        self.stays = true;
        self
    }

    fn file(&mut self) -> io::Result<&mut File> {
        match &mut self.file {
            Some(file) => Ok(file),
            none => Ok(none.insert(File::options().append(true).open(self.path.to_native())?)),
        }
    }

    /// Closes the file if too many are open for a process to keep.
    fn rested(mut self) -> Self {
        self.rest();
        self
    }

    fn rest(&mut self) {
        if self.open_uploads.load(Ordering::Relaxed) > MOST_OPEN_UPLOADS {
            self.file = None;
        }
    }

    /// Begins to flush if enough was written and no flush is under way.
    fn flush_behind(&mut self, written: usize) -> io::Result<()> {
        self.unflushed = self.unflushed.saturating_add(written);
        if self.unflushed < FLUSH_BYTES
            || self
                .flush
                .as_ref()
                .is_some_and(|flush| !flush.is_finished())
        {
            return Ok(());
        }
        self.await_flush()?;
        self.unflushed = 0;
        let file = self.file()?.try_clone()?;
        // Without a thread the last call does all of it.
        let flush = thread::Builder::new().name("azulejo-flush".into());
        self.flush = flush.spawn(move || file.sync_data()).ok();
        Ok(())
    }

    /// Waits for the flush under way: a system tells of bytes that it could not store once only.
    fn await_flush(&mut self) -> io::Result<()> {
        let Some(flush) = self.flush.take() else {
            return Ok(());
        };
        flush
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a flush ended without a result")))
    }
}

impl Upload for LocalUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_pieces(&[bytes])
    }

    fn write_pieces(&mut self, pieces: &[&[u8]]) -> Result<()> {
        let written = self.file().and_then(|file| write_all(file, pieces));
        let len = pieces.iter().map(|piece| piece.len()).sum();
        self.changes.written(self.path.as_native(), pieces);
        let written = written.and_then(|()| self.flush_behind(len));
        self.rest();
        written.map_err(|source| storage_error("write", &self.path, source))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let flushed = self.await_flush();
        let synced = flushed.and_then(|()| {
            let changes = self.changes.clone();
            let native = self.path.to_native();
            changes.sync_file(&native, self.file()?)
        });
        synced.map_err(|source| storage_error("write", &self.path, source))?;
        self.stays = true;
        Ok(())
    }
}

/// Writes all of several pieces.
fn write_all(file: &mut File, pieces: &[&[u8]]) -> io::Result<()> {
    if let [bytes] = pieces {
        return file.write_all(bytes);
    }
    let mut slices: Vec<IoSlice<'_>> = pieces
        .iter()
        .filter(|piece| !piece.is_empty())
        .map(|piece| IoSlice::new(piece))
        .collect();
    let mut rest = slices.as_mut_slice();
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

impl Drop for LocalUpload {
    fn drop(&mut self) {
        self.open_uploads.fetch_sub(1, Ordering::Relaxed);
        self.file = None;
        // Nobody waits for these bytes any more.
        let _ = self.await_flush();
        if !self.stays {
            // What is left of an unfinished file is of no use; that it cannot be removed changes
            // nothing.
            let _ = self.changes.remove_file(self.path.as_native());
        }
    }
}

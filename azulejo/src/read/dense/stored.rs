//! Where the bytes of stored tiles come from while their chunks are walked: read from a file as
//! they are needed, or fetched before.

use super::scatter::ScatteredRead;
use crate::buffer_pool::{BufferPool, PoolBuffer};
use crate::error::{Error, Result};
use crate::read::fetch::TileFile;
use azulejo_format::DecodeError;
use azulejo_format::tile::{ChunkPlace, StoredBytes};
use std::io::IoSliceMut;
use std::ops::Range;

/// Bytes that are read at a time where most of a tile is wanted, unless a chunk is longer. Shorter
/// tiles are read whole.
const READ_SIZE: u64 = 64 * 1024;

/// Bytes that are read to find a header behind a chunk that is skipped.
const SKIPPING: u64 = 512;

/// Where a tile's stored bytes are.
pub(super) enum Stored<'s> {
    /// In an open file.
    File(&'s mut TileFile),
    /// In memory, from the tile's first byte on.
    Bytes(&'s [u8]),
}

/// Some bytes of a file; its memory serves tile after tile.
#[derive(Default)]
pub(super) struct ReadWindow {
    start: u64,
    buffer: PoolBuffer,
    /// Valid bytes in the buffer.
    len: usize,
}

impl ReadWindow {
    /// Forgets the bytes: another file follows.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Memory for `len` bytes; what was there is no longer valid.
    fn room(&mut self, pool: &BufferPool, len: usize) -> &mut [u8] {
        self.clear();
        pool.room(&mut self.buffer, len)
    }

    /// The memory holds `len` bytes from `start` on.
    fn filled(&mut self, start: u64, len: usize) {
        (self.start, self.len) = (start, len);
    }
}

/// A stored tile, of which little more is read than is wanted.
pub(super) struct StoredTileBytes<'w> {
    stored: Stored<'w>,
    window: &'w mut ReadWindow,
    pool: &'w BufferPool,
    /// Where the tile lies in its file.
    range: Range<u64>,
    /// Bytes to read at least with a header.
    with_header: u64,
    /// Bytes to read at least with a chunk.
    with_chunk: u64,
}

impl<'w> StoredTileBytes<'w> {
    /// A tile that lies at `range` of its file. `whole` says that most chunks are wanted,
    /// `scatters` that they are read to their places if possible: then no more is read before.
    pub fn new(
        stored: Stored<'w>,
        window: &'w mut ReadWindow,
        pool: &'w BufferPool,
        range: Range<u64>,
        whole: bool,
        scatters: bool,
    ) -> Self {
        let small = !scatters && range.end.saturating_sub(range.start) <= READ_SIZE;
        let with_header = if small { READ_SIZE } else { SKIPPING };
        let with_chunk = if whole || small { READ_SIZE } else { 0 };
        Self {
            stored,
            window,
            pool,
            range,
            with_header,
            with_chunk,
        }
    }

    /// What is at hand of the tile.
    pub fn at_hand(&self) -> StoredBytes<'_> {
        if let Stored::Bytes(bytes) = self.stored {
            return StoredBytes::whole(bytes);
        }
        let (window, tile) = (&*self.window, &self.range);
        let valid = window.buffer.get(..window.len).unwrap_or_default();
        // The window may begin with the end of the tile before.
        match window.start.checked_sub(tile.start) {
            Some(start) => StoredBytes::new(start, valid),
            None => {
                let before = usize::try_from(tile.start - window.start).unwrap_or(usize::MAX);
                StoredBytes::whole(valid.get(before..).unwrap_or_default())
            }
        }
    }

    /// Reads the bytes `needed` of the tile, which a chunk or headers need.
    pub fn read(&mut self, needed: &Range<u64>, of_chunk: bool) -> Result<()> {
        let Stored::File(file) = &mut self.stored else {
            return Err(Error::Internal(
                "a stored tile was not fetched as a whole".into(),
            ));
        };
        let least = if of_chunk {
            self.with_chunk
        } else {
            self.with_header
        };
        let tile_len = self.range.end - self.range.start;
        let end = needed.end.max((needed.start + least).min(tile_len));
        let len = usize::try_from(end - needed.start)
            .map_err(|_| Error::Internal("a chunk beyond the address space".into()))?;
        let start = self.range.start + needed.start;
        file.read_at(start, self.window.room(self.pool, len))?;
        self.window.filled(start, len);
        Ok(())
    }

    /// Reads parts of a plain chunk to their places, and the next header where `needed`, the bytes
    /// that the chunk needs, has it.
    pub fn scatter(
        &mut self,
        chunk: &ChunkPlace,
        needed: &Range<u64>,
        reads: Vec<ScatteredRead<'_>>,
    ) -> Result<()> {
        let Stored::File(file) = &mut self.stored else {
            return Err(Error::Internal(
                "stored tiles in memory are not read again".into(),
            ));
        };
        let body = chunk.body();
        let header = usize::try_from(needed.end - body.end).unwrap_or(0);
        for mut read in reads {
            let at = self.range.start + body.start;
            let end = at + read.bytes.end as u64;
            let with_header = header > 0 && end == self.range.start + body.end;
            if with_header {
                let room = self.window.room(self.pool, header);
                read.pieces.push(IoSliceMut::new(room));
            }
            file.read_scattered_at(at + read.bytes.start as u64, &mut read.pieces)?;
            drop(read);
            if with_header {
                self.window.filled(end, header);
            }
        }
        Ok(())
    }
}

/// Errors about stored tiles name no file here: [`in_file`] adds it.
pub(super) fn corrupt(source: DecodeError) -> Error {
    Error::decode("", source)
}

/// Says which file an error of a walk is about.
pub(super) fn in_file(error: Error, path: impl FnOnce() -> String) -> Error {
    match error {
        Error::Corrupt { uri, source } if uri.is_empty() => Error::decode(path(), source),
        Error::Encryption { uri, reason } if uri.is_empty() => Error::Encryption {
            uri: path(),
            reason,
        },
        other => other,
    }
}

//! The chunks of one stored tile, one after another, and little more of its bytes than is wanted.
//!
//! A chunk's header says how long the chunk is, so that the next header is found without what lies
//! between.

use super::scatter::ScatteredRead;
use crate::buffer_pool::{BufferPool, PoolBuffer};
use crate::error::{Error, Result};
use crate::storage::ObjectReader;
use azulejo_format::DecodeError;
use azulejo_format::tile::{Chunk, ChunkHeader};
use std::io::IoSliceMut;
use std::ops::Range;

/// Bytes that are read at a time where most of a tile is wanted, unless a chunk is longer. Shorter
/// tiles are read whole.
const READ_SIZE: u64 = 64 * 1024;

/// Bytes that are read to find a header behind a chunk that is passed.
const SKIPPING: u64 = 512;

/// Where a tile's stored bytes are.
pub(super) enum Stored<'s> {
    /// In an open file.
    File(&'s mut (dyn ObjectReader + 'static)),
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
    /// The bytes `range` and whatever follows them at hand; at least `ahead` bytes are read, but
    /// none from `end` on.
    fn bytes(
        &mut self,
        file: &mut dyn ObjectReader,
        pool: &BufferPool,
        range: Range<u64>,
        ahead: u64,
        end: u64,
    ) -> Result<&[u8]> {
        if range.start < self.start || range.end > self.start + self.len as u64 {
            let read_end = range
                .end
                .max(range.start.saturating_add(ahead))
                .min(end)
                .max(range.end);
            let len = usize::try_from(read_end - range.start)
                .map_err(|_| Error::Internal("a chunk beyond the address space".into()))?;
            file.read_at(range.start, self.room(pool, len))?;
            (self.start, self.len) = (range.start, len);
        }
        let from = (range.start - self.start) as usize;
        Ok(self.buffer.get(from..self.len).unwrap_or_default())
    }

    /// Memory for `len` bytes, which then are no longer valid.
    fn room(&mut self, pool: &BufferPool, len: usize) -> &mut [u8] {
        self.len = 0;
        pool.room(&mut self.buffer, len)
    }

    /// Forgets the bytes: another file follows.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

/// A chunk, and where its bytes lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkAt {
    header: ChunkHeader,
    /// First byte of the unfiltered chunk in the tile.
    pub output: u64,
    body: u64,
}

impl ChunkAt {
    /// The bytes of the unfiltered tile that the chunk holds.
    pub fn holds(&self) -> Range<u64> {
        self.output..self.output + u64::from(self.header.original_len)
    }

    /// Whether the chunk is as long as it was before filtering, with nothing in front of it.
    pub fn is_plain(&self) -> bool {
        self.header.metadata_len == 0 && self.header.filtered_len == self.header.original_len
    }
}

/// A walk over the chunks of a tile.
pub(super) struct ChunkWalk<'w> {
    stored: Stored<'w>,
    window: &'w mut ReadWindow,
    pool: &'w BufferPool,
    /// Where the tile lies in its file.
    range: Range<u64>,
    /// Bytes to read at least with a header,
    skipping: u64,
    /// and with a chunk.
    ahead: u64,
    /// The next header.
    at: u64,
    /// Chunks to come.
    left: u64,
    /// Unfiltered bytes of the chunks chunk_at.
    output: u64,
    /// Unfiltered bytes of the tile.
    len: u64,
}

impl<'w> ChunkWalk<'w> {
    /// Begins at the first chunk of a tile of `len` unfiltered bytes. `whole` says that most chunks
    /// are wanted, `scatters` that they are read to their places if possible: then no more is read
    /// before.
    pub fn new(
        stored: Stored<'w>,
        window: &'w mut ReadWindow,
        pool: &'w BufferPool,
        range: Range<u64>,
        len: u64,
        whole: bool,
        scatters: bool,
    ) -> Result<Self> {
        let small = !scatters && range.end.saturating_sub(range.start) <= READ_SIZE;
        let skipping = if small { READ_SIZE } else { SKIPPING };
        let ahead = if whole || small { READ_SIZE } else { 0 };
        let at = range.start;
        let mut walk = Self {
            stored,
            window,
            pool,
            range,
            skipping,
            ahead,
            at,
            left: 0,
            output: 0,
            len,
        };
        let count = walk
            .take(at, 8, skipping)?
            .first_chunk::<8>()
            .map_or(0, |b| u64::from_le_bytes(*b));
        walk.at += 8;
        if count > (walk.range.end - walk.at) / ChunkHeader::LEN as u64 {
            return Err(damaged(format!("{count} chunks do not fit in it")));
        }
        walk.left = count;
        Ok(walk)
    }

    /// The `len` bytes from `at` on, and whatever follows them; `ahead` or more are read if any
    /// have to be.
    fn take(&mut self, at: u64, len: u64, ahead: u64) -> Result<&[u8]> {
        let range = at..at.saturating_add(len);
        if range.end > self.range.end {
            return Err(damaged(format!(
                "{} bytes are missing at its end",
                range.end - self.range.end
            )));
        }
        match &mut self.stored {
            Stored::File(file) => {
                self.window
                    .bytes(&mut **file, self.pool, range, ahead, self.range.end)
            }
            Stored::Bytes(bytes) => {
                let from = usize::try_from(at - self.range.start).unwrap_or(usize::MAX);
                bytes
                    .get(from..)
                    .filter(|rest| rest.len() as u64 >= len)
                    .ok_or_else(|| {
                        Error::Internal("a stored tile was not fetched as a whole".into())
                    })
            }
        }
    }

    /// The next chunk; `None` behind the last one, whose end must be the tile's.
    pub fn next(&mut self) -> Result<Option<ChunkAt>> {
        if self.left == 0 {
            if self.output != self.len {
                return Err(damaged(format!(
                    "its chunks hold {} bytes, not {}",
                    self.output, self.len
                )));
            }
            if self.at != self.range.end {
                return Err(damaged(format!(
                    "{} bytes follow its chunks",
                    self.range.end - self.at
                )));
            }
            return Ok(None);
        }
        self.left -= 1;
        let header =
            ChunkHeader::parse(self.take(self.at, ChunkHeader::LEN as u64, self.skipping)?)
                .map_err(corrupt)?;
        let chunk_at = ChunkAt {
            header,
            output: self.output,
            body: self.at + ChunkHeader::LEN as u64,
        };
        self.output += u64::from(header.original_len);
        self.at = chunk_at.body + header.body_len();
        if self.output > self.len || self.at > self.range.end {
            return Err(damaged("a chunk leaves it".to_owned()));
        }
        Ok(Some(chunk_at))
    }

    /// The bytes of a chunk, which must be the last one chunk_at.
    pub fn chunk(&mut self, chunk_at: &ChunkAt) -> Result<Chunk<'_>> {
        let more = if self.left > 0 {
            ChunkHeader::LEN as u64
        } else {
            0
        };
        // The next header comes along, so that chunk after chunk costs one read each.
        let len = (chunk_at.header.body_len() + more).min(self.range.end - chunk_at.body);
        let body = self.take(chunk_at.body, len, self.ahead)?;
        Chunk::new(chunk_at.header, chunk_at.output, body).map_err(corrupt)
    }
}

impl ChunkWalk<'_> {
    /// Reads parts of the last chunk found, which is plain, to their places.
    pub fn scatter(&mut self, chunk_at: &ChunkAt, reads: Vec<ScatteredRead<'_>>) -> Result<()> {
        let Stored::File(file) = &mut self.stored else {
            return Err(Error::Internal(
                "stored tiles in memory are not read again".into(),
            ));
        };
        for mut read in reads {
            let end = chunk_at.body + read.bytes.end as u64;
            // The next header comes along.
            let header = ChunkHeader::LEN;
            let more = end == self.at && self.left > 0 && end + header as u64 <= self.range.end;
            if more {
                read.pieces
                    .push(IoSliceMut::new(self.window.room(self.pool, header)));
            }
            file.read_scattered_at(chunk_at.body + read.bytes.start as u64, &mut read.pieces)?;
            drop(read);
            if more {
                (self.window.start, self.window.len) = (end, header);
            }
        }
        Ok(())
    }
}

/// Errors of a walk name no file: [`in_file`] adds it.
fn corrupt(source: DecodeError) -> Error {
    Error::decode("", source)
}

fn damaged(reason: String) -> Error {
    corrupt(DecodeError::invalid("tile", 0, reason))
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

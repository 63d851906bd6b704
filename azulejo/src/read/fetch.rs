//! Fetching: what of an array's files a query needs, by whoever waits for it.

pub(super) use crate::storage::{Waiting, block_on};

use super::counts::ReadCounts;
use super::prefetch::Prefetch;
use super::stored_tile::{StoredTile, fragment_of};
use crate::array::{Array, short_read_is_corrupt};
use crate::buffer_pool::BufferPool;
use crate::error::{Error, Result};
use crate::storage::{self, ObjectReader, ReadInto};
use azulejo_format::fragment::{Field, FilePart, Section};
use bytes::Bytes;
use std::io::IoSliceMut;

/// How the stored tiles of a query are read; chosen once, when it is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FetchStrategy {
    /// Low latency, as of local files: the thread that decodes a tile reads it, piece by piece and
    /// straight to its place where the layout allows. Handing reads to another thread would cost
    /// more than it hides.
    Streaming,
    /// High latency, as of object stores: ranges of many tiles are one batch, and are prefetched
    /// while others are decoded.
    Batched,
}

impl FetchStrategy {
    /// What suits the storage of an array, unless its context wants batches everywhere.
    pub(super) fn of(array: &Array) -> Self {
        let low_latency = array.location().storage.latency().is_low();
        if low_latency && !array.context().config().batched_reads {
            Self::Streaming
        } else {
            Self::Batched
        }
    }
}

/// What a query reads through.
#[derive(Debug)]
pub(super) struct Fetcher {
    array: Array,
    pool: BufferPool,
    strategy: FetchStrategy,
    waiting: Waiting,
    prefetch: Prefetch,
    counts: ReadCounts,
}

impl Fetcher {
    /// For a query that takes its memory from a pool.
    pub fn new(array: &Array, waiting: Waiting, pool: BufferPool) -> Self {
        Self {
            array: array.clone(),
            pool,
            strategy: FetchStrategy::of(array),
            waiting,
            prefetch: Prefetch::default(),
            counts: ReadCounts::default(),
        }
    }

    /// The same, which counts among these what it does.
    pub fn counted(mut self, counts: &ReadCounts) -> Self {
        self.counts = counts.clone();
        self
    }

    /// What the query has done so far.
    pub fn counts(&self) -> &ReadCounts {
        &self.counts
    }

    pub fn array(&self) -> &Array {
        &self.array
    }

    pub fn pool(&self) -> &BufferPool {
        &self.pool
    }

    /// Whether threads read what they decode.
    pub fn streams(&self) -> bool {
        self.strategy == FetchStrategy::Streaming
    }

    /// Loads sections of metadata, by index of the fragment, as one batch.
    pub async fn metadata(&self, sections: &[(usize, Section)]) -> Result<()> {
        self.array.load(sections, self.waiting).await
    }

    /// Loads where the tiles of fields lie, by index of the fragment, as one batch.
    pub async fn tile_offsets(
        &self,
        fields: impl IntoIterator<Item = (usize, Field)>,
    ) -> Result<()> {
        let sections = self.offset_sections(fields)?;
        self.metadata(&sections).await
    }

    /// The sections that say where the tiles of fields lie, by index of the fragment.
    pub fn offset_sections(
        &self,
        fields: impl IntoIterator<Item = (usize, Field)>,
    ) -> Result<Vec<(usize, Section)>> {
        let mut sections = Vec::new();
        for (index, field) in fields {
            let fragment = fragment_of(&self.array, index)?;
            let (field, schema) = (fragment.stored_field(field), fragment.schema());
            if !fragment.stores(field) {
                continue;
            }
            sections.push((index, Section::TileOffsets(field)));
            if field.is_var(schema) {
                sections.push((index, Section::TileVarOffsets(field)));
                sections.push((index, Section::TileVarSizes(field)));
            }
            if field.is_nullable(schema) {
                sections.push((index, Section::TileValidityOffsets(field)));
            }
        }
        Ok(sections)
    }

    /// Asks for tiles that will be needed, in their order, as long as no more than `room` bytes are
    /// under way or wait to be used: false if not all of them had room. Threads that stream do not:
    /// they read at once.
    pub fn prefetch(&self, tiles: &[StoredTile], room: u64) -> bool {
        match self.strategy {
            FetchStrategy::Batched => self.prefetch.start(&self.array, tiles, room),
            FetchStrategy::Streaming => true,
        }
    }

    /// Stored tiles, in the order given: those that were prefetched, and the others as one batch.
    /// The caller has checked their lengths against its budget.
    pub async fn fetch(&self, tiles: &[StoredTile]) -> Result<Vec<Bytes>> {
        let streams = self.streams();
        let here = tiles.iter().map(|of| !streams && self.prefetch.has(of));
        let here: Vec<bool> = here.collect();
        let missing = tiles.iter().zip(&here).filter(|(_, here)| !**here);
        let missing: Vec<&StoredTile> = missing.map(|(tile, _)| tile).collect();
        let read = match self.waiting {
            Waiting::Polls if !streams => self.read_shared(&missing).await?,
            Waiting::Blocks | Waiting::Polls => self.read_into_pool(&missing)?,
        };
        let mut read = read.into_iter();
        let unread = || Error::Internal("a tile was not read".into());
        let mut fetched = Vec::with_capacity(tiles.len());
        for (tile, here) in tiles.iter().zip(here) {
            let bytes = match here {
                true => self.prefetch.take(tile).await?,
                false => read.next().ok_or_else(unread)?,
            };
            if !bytes.is_empty() {
                self.counts.add_request(bytes.len() as u64);
            }
            fetched.push(bytes);
        }
        Ok(fetched)
    }

    /// Reads into reused memory.
    fn read_into_pool(&self, tiles: &[&StoredTile]) -> Result<Vec<Bytes>> {
        let mut buffers = Vec::with_capacity(tiles.len());
        for tile in tiles {
            let len = usize::try_from(tile.len(&self.array)?);
            let len = len.map_err(|_| Error::Internal("a tile beyond memory".into()))?;
            buffers.push(self.pool.take(len));
        }
        let mut requests: Vec<ReadInto<'_>> = Vec::with_capacity(tiles.len());
        for (tile, out) in tiles.iter().zip(&mut buffers) {
            if !out.is_empty() {
                let fragment = fragment_of(&self.array, tile.fragment)?;
                requests.push(ReadInto {
                    path: fragment.data_path(tile.field, tile.part)?,
                    offset: tile.range(&self.array)?.start,
                    out,
                });
            }
        }
        if !requests.is_empty() {
            let storage = &self.array.location().storage;
            let read = storage.read_into(&mut requests);
            read.map_err(short_read_is_corrupt)?;
        }
        Ok(buffers.into_iter().map(Bytes::from_owner).collect())
    }

    /// Takes what the storage reads.
    async fn read_shared(&self, tiles: &[&StoredTile]) -> Result<Vec<Bytes>> {
        let mut fetched = vec![Bytes::new(); tiles.len()];
        let (mut requests, mut places) = (Vec::new(), Vec::new());
        for (tile, place) in tiles.iter().zip(&mut fetched) {
            if tile.len(&self.array)? > 0 {
                requests.push(tile.request(&self.array)?);
                places.push(place);
            }
        }
        if !requests.is_empty() {
            let storage = &*self.array.location().storage;
            let read = self.waiting.read(storage, requests).await;
            for (place, bytes) in places.into_iter().zip(read.map_err(short_read_is_corrupt)?) {
                *place = bytes;
            }
        }
        Ok(fetched)
    }

    /// Opens the file of a tile, for many small reads; unless `file` is it already.
    pub fn open<'f>(
        &self,
        tile: &StoredTile,
        file: &'f mut Option<TileFile>,
    ) -> Result<&'f mut TileFile> {
        let of = (tile.fragment, tile.field, tile.part);
        if file.as_ref().is_none_or(|open| open.of != of) {
            let path = fragment_of(&self.array, tile.fragment)?.data_path(tile.field, tile.part)?;
            *file = Some(TileFile {
                of,
                reader: storage::open(&self.array.location().storage, &path)?,
                is_new: true,
                counts: self.counts.clone(),
            });
        }
        file.as_mut()
            .ok_or_else(|| Error::Internal("a file that was not opened".into()))
    }
}

/// An open data file.
pub(super) struct TileFile {
    of: (usize, Field, FilePart),
    reader: Box<dyn ObjectReader>,
    is_new: bool,
    counts: ReadCounts,
}

impl TileFile {
    /// Whether nobody asked this before: bytes of another file do not count any more.
    pub fn is_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// Fills `out` from `offset` on.
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.counts.add_request(out.len() as u64);
        self.reader.read_at(offset, out)
    }

    /// Fills pieces one after another from `offset` on.
    pub fn read_scattered_at(&mut self, offset: u64, pieces: &mut [IoSliceMut<'_>]) -> Result<()> {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        self.counts.add_request(bytes as u64);
        self.reader.read_scattered_at(offset, pieces)
    }
}

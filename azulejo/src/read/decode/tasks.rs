//! Pieces of decoding that threads take.

use crate::array::Array;
use crate::error::{Error, Result};
use crate::read::stored_tile::StoredTile;
use azulejo_format::DecodeError;
use azulejo_format::filter::{FilterContext, Pipeline, Scratch, StringWords};
use azulejo_format::tile::{Chunk, TileDecoder};
use rayon::prelude::*;
use std::cell::RefCell;
use std::ops::Range;

/// Work on fewer bytes than this stays on the calling thread: waking another costs more.
pub(in crate::read) const PARALLEL_BYTES: usize = 128 * 1024;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// Runs work with what this thread keeps for unfiltering.
pub(in crate::read) fn with_scratch<R>(work: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => work(&mut scratch),
        Err(_) => work(&mut Scratch::new()),
    })
}

/// A stored tile, its bytes, and how these were filtered.
#[derive(Clone, Copy)]
pub(super) struct FilteredTile<'t> {
    pub array: &'t Array,
    pub tile: &'t StoredTile,
    pub bytes: &'t [u8],
    pub ctx: FilterContext<'t>,
    pub pipeline: &'t Pipeline,
}

/// One piece of decoding.
pub(super) struct DecodeTask<'t> {
    of: FilteredTile<'t>,
    piece: TilePiece<'t>,
}

pub(super) enum TilePiece<'t> {
    Chunk {
        chunk: Chunk<'t>,
        out: &'t mut [u8],
    },
    /// A whole tile of strings, which holds their offsets too.
    Strings {
        data: &'t mut [u8],
        offsets: &'t mut [u64],
    },
    /// The same, to the words that differ, of strings of `len` bytes.
    Words {
        len: usize,
        ids: &'t mut [[u8; 4]],
        words: &'t mut StringWords,
    },
}

impl<'t> FilteredTile<'t> {
    /// Decoding of the chunks that hold cells in `spans` (ascending; `None`: all), `cell_size`
    /// bytes each, of the unfiltered tile, which is as long as `out`.
    pub fn add_chunks(
        self,
        spans: Option<&[Range<u64>]>,
        cell_size: usize,
        out: &'t mut [u8],
        tasks: &mut Vec<DecodeTask<'t>>,
    ) -> Result<()> {
        // Writers store tiles without cells in more than one way; none of them matters.
        if out.is_empty() {
            return Ok(());
        }
        let mut decoder = TileDecoder::new(self.bytes.len() as u64).sized(out.len() as u64);
        if let Some(spans) = spans {
            decoder = decoder.wanting(spans, cell_size);
        }
        let mut rest = out;
        let mut at = 0;
        for chunk in decoder.chunks(self.bytes) {
            let chunk = chunk.map_err(|source| self.corrupt(source))?;
            // Chunks ascend, and none leaves the tile.
            let (_, from_chunk) = rest.split_at_mut((chunk.output_offset - at) as usize);
            let (out, later) = from_chunk.split_at_mut(chunk.original_len as usize);
            rest = later;
            at = chunk.output_end();
            tasks.push(self.task(TilePiece::Chunk { chunk, out }));
        }
        Ok(())
    }

    /// Decoding of a piece of the tile.
    pub fn task(self, piece: TilePiece<'t>) -> DecodeTask<'t> {
        DecodeTask { of: self, piece }
    }

    fn corrupt(&self, source: DecodeError) -> Error {
        Error::decode(self.tile.path(self.array), source)
    }
}

impl DecodeTask<'_> {
    fn bytes(&self) -> usize {
        match &self.piece {
            TilePiece::Chunk { out, .. } => out.len(),
            TilePiece::Strings { data, offsets } => data.len() + offsets.len() * 8,
            TilePiece::Words { ids, .. } => size_of_val(*ids),
        }
    }

    fn run(self) -> Result<()> {
        let (bytes, ctx, pipeline) = (self.of.bytes, &self.of.ctx, self.of.pipeline);
        let decoded = with_scratch(|scratch| match self.piece {
            TilePiece::Chunk { chunk, out } => pipeline.decode_chunk(ctx, &chunk, out, scratch),
            TilePiece::Strings { data, offsets } => {
                pipeline.decode_string_tile(ctx, bytes, data, offsets, scratch)
            }
            TilePiece::Words { len, ids, words } => pipeline
                .decode_string_words(ctx, bytes, len, ids, scratch)
                .map(|decoded| *words = decoded),
        });
        decoded.map_err(|source| self.of.corrupt(source))
    }
}

/// Runs tasks on all threads, or here if they are few. Who cancels the array's context ends them
/// before the next one.
pub(super) fn run(array: &Array, tasks: Vec<DecodeTask<'_>>) -> Result<()> {
    let bytes: usize = tasks.iter().map(DecodeTask::bytes).sum();
    if tasks.len() < 2 || bytes < PARALLEL_BYTES {
        return tasks.into_iter().try_for_each(DecodeTask::run);
    }
    let operation = array.context().begin();
    let run = |task: DecodeTask<'_>| operation.check().and_then(|()| task.run());
    array
        .context()
        .install(|| tasks.into_par_iter().try_for_each(run))
}

//! Running a pipeline: from stored chunks to cells and back.

use super::{FilterContext, Pipeline, Scratch};
use crate::error::{DecodeError, Result};
use crate::tile::Chunk;

impl Pipeline {
    /// Undoes the filters of one chunk, straight into `out`, which must be [`Chunk::original_len`] bytes long.
    ///
    /// Chunks do not depend on each other: decode any of them, on any thread. String tiles that hold their own offsets
    /// ([`Self::keeps_offsets_in_data`]) need [`Self::decode_string_tile`].
    pub fn decode_chunk(
        &self,
        ctx: &FilterContext<'_>,
        chunk: &Chunk<'_>,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let _ = (ctx, chunk, out, scratch);
        Err(DecodeError::Unsupported { what: "filtering", reason: "under construction" })
    }

    /// Undoes the filters of all chunks of a stored tile; `out` must be the unfiltered size.
    pub fn decode_tile(
        &self,
        ctx: &FilterContext<'_>,
        stored: &[u8],
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let _ = (ctx, stored, out, scratch);
        Err(DecodeError::Unsupported { what: "filtering", reason: "under construction" })
    }

    /// Undoes the filters of a string tile that holds its own offsets, into `data` (the unfiltered size) and `offsets`
    /// (one a cell; validated).
    pub fn decode_string_tile(
        &self,
        ctx: &FilterContext<'_>,
        stored: &[u8],
        data: &mut [u8],
        offsets: &mut [u64],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let _ = (ctx, stored, data, offsets, scratch);
        Err(DecodeError::Unsupported { what: "filtering", reason: "under construction" })
    }

    /// Filters a tile and appends it as it is stored to `out`.
    ///
    /// `data` are the cells; `offsets` (start of each cell) are wanted for variable-length data.
    pub fn encode_tile(
        &self,
        ctx: &FilterContext<'_>,
        data: &[u8],
        offsets: Option<&[u64]>,
        out: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let _ = (ctx, data, offsets, out, scratch);
        Err(DecodeError::Unsupported { what: "filtering", reason: "under construction" })
    }
}

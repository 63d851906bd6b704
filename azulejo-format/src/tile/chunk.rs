//! The chunks of a stored tile. Page: *Tile, Chunk Format*.

use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;

/// Bytes before the first chunk of a tile: the number of its chunks.
pub(super) const CHUNK_COUNT_LEN: usize = 8;

/// What stands before a chunk: how long it is, filtered and not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHeader {
    /// Bytes of the unfiltered chunk.
    pub original_len: u32,
    /// Bytes of the filtered chunk.
    pub filtered_len: u32,
    /// Bytes of what the filters noted, in front of the filtered bytes.
    pub metadata_len: u32,
}

impl ChunkHeader {
    /// Bytes of a header.
    pub const LEN: usize = 12;

    /// Reads a header; `bytes` may go on behind it.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut r = ByteReader::new(bytes);
        Ok(Self {
            original_len: r.u32("chunk, original length")?,
            filtered_len: r.u32("chunk, filtered length")?,
            metadata_len: r.u32("chunk, metadata length")?,
        })
    }

    /// The header as it is stored.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let lens = [self.original_len, self.filtered_len, self.metadata_len].map(u32::to_le_bytes);
        let mut header = [0; Self::LEN];
        header.copy_from_slice(lens.as_flattened());
        header
    }

    /// Bytes between this header and the next.
    #[must_use]
    pub fn body_len(&self) -> u64 {
        u64::from(self.filtered_len) + u64::from(self.metadata_len)
    }
}

/// One chunk of a stored tile, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Where the unfiltered chunk belongs in the tile, in bytes.
    pub output_offset: u64,
    /// Bytes of the unfiltered chunk.
    pub original_len: u32,
    /// What the filters noted about the chunk.
    pub metadata: &'a [u8],
    /// The filtered bytes.
    pub data: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// A chunk out of its header and the bytes behind that, of which the rest belongs to others.
    pub fn new(header: ChunkHeader, output_offset: u64, body: &'a [u8]) -> Result<Self> {
        let mut r = ByteReader::new(body);
        let metadata = r.bytes(header.metadata_len as usize, "chunk metadata")?;
        let data = r.bytes(header.filtered_len as usize, "chunk data")?;
        Ok(Self {
            output_offset,
            original_len: header.original_len,
            metadata,
            data,
        })
    }

    /// The end of the unfiltered chunk in the tile.
    #[must_use]
    pub fn output_end(&self) -> u64 {
        self.output_offset + u64::from(self.original_len)
    }
}

/// Reads the number of chunks at the start of a tile that is stored in `stored_len` bytes, which
/// must have room for their headers.
pub(super) fn parse_chunk_count(bytes: &[u8], stored_len: u64) -> Result<u64> {
    let mut r = ByteReader::new(bytes);
    let count = r.u64("tile, number of chunks")?;
    let have = stored_len.saturating_sub(r.offset() as u64);
    let need = count.saturating_mul(ChunkHeader::LEN as u64);
    if need > have {
        return Err(DecodeError::Truncated {
            what: "tile chunks",
            offset: r.offset(),
            need,
            have,
        });
    }
    Ok(count)
}

/// Appends the number of chunks that a tile begins with.
///
/// A tile of none is what stands in an offsets file where the offsets lie inside the data tile.
pub fn encode_chunk_count(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(count as u64).to_le_bytes());
}

/// What stands between the chunks of a tile that no filter changes: with it the tile is stored from
/// where its cells lie.
#[derive(Debug)]
pub struct PlainHeaders {
    chunk_num: [u8; CHUNK_COUNT_LEN],
    /// One a chunk.
    headers: Vec<[u8; ChunkHeader::LEN]>,
}

impl PlainHeaders {
    /// The headers of the chunks of one tile.
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] for a chunk of 4 GiB or more.
    pub fn of(chunks: &[&[u8]]) -> Result<Self> {
        let header = |chunk: &&[u8]| {
            let too_long = |_| DecodeError::invalid("chunk", 0, "longer than 4 GiB");
            let len = u32::try_from(chunk.len()).map_err(too_long)?;
            Ok(ChunkHeader {
                original_len: len,
                filtered_len: len,
                metadata_len: 0,
            }
            .encode())
        };
        let headers = chunks.iter().map(header).collect::<Result<_>>()?;
        Ok(Self {
            chunk_num: (chunks.len() as u64).to_le_bytes(),
            headers,
        })
    }

    /// The tile as it is stored, in pieces: the headers and the chunks that they were made of.
    #[must_use]
    pub fn between<'a>(&'a self, chunks: &[&'a [u8]]) -> Vec<&'a [u8]> {
        let parts = self
            .headers
            .iter()
            .zip(chunks)
            .flat_map(|(header, chunk)| [header.as_slice(), chunk]);
        std::iter::once(self.chunk_num.as_slice())
            .chain(parts)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_chunks_are_what_a_pipeline_without_filters_stores() {
        use crate::filter::{FilterContext, Pipeline, Scratch};
        use crate::{CellValNum, Datatype, FormatVersion};
        let ctx = FilterContext {
            version: FormatVersion::CURRENT,
            datatype: Datatype::UInt32,
            cell_val_num: CellValNum::ONE,
            key: None,
        };
        for (len, max_chunk_size) in [(0, 16), (4, 16), (16, 16), (100, 16), (100, 18), (100, 0)] {
            let data: Vec<u8> = (0..len).collect();
            let pipeline = Pipeline {
                max_chunk_size,
                ..Pipeline::default()
            };
            assert!(pipeline.stores_as_is(&ctx));
            let mut stored = Vec::new();
            pipeline
                .encode_tile(&ctx, &data, None, &mut stored, &mut Scratch::new())
                .unwrap();
            let mut start = 0;
            let ends = pipeline.chunk_ends(&ctx, data.len(), None);
            let chunks: Vec<&[u8]> = ends
                .into_iter()
                .map(|end| &data[std::mem::replace(&mut start, end)..end])
                .collect();
            let headers = PlainHeaders::of(&chunks).unwrap();
            assert_eq!(
                headers.between(&chunks).concat(),
                stored,
                "{len} {max_chunk_size}"
            );
        }
    }
}

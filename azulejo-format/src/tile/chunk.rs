//! The chunks of a stored tile. Page: *Tile, Chunk Format*.

use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;

/// Bytes before the metadata of a chunk: three lengths.
pub(crate) const CHUNK_HEADER_LEN: usize = 12;

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
    pub const LEN: usize = CHUNK_HEADER_LEN;

    /// Reads a header; `bytes` may go on behind it.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Self::read(&mut ByteReader::new(bytes))
    }

    fn read(r: &mut ByteReader<'_>) -> Result<Self> {
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

/// The index of a stored tile: where each chunk lies and where its cells go.
///
/// Nothing is unfiltered and nothing allocated beyond one entry for each chunk whose 12-byte header
/// is present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileChunks<'a> {
    chunks: Vec<Chunk<'a>>,
    original_len: u64,
}

impl<'a> TileChunks<'a> {
    /// Reads the chunk headers of a stored tile, whose bytes must be exactly `stored`.
    pub fn parse(stored: &'a [u8]) -> Result<Self> {
        let mut r = ByteReader::new(stored);
        let count = r.u64("tile, number of chunks")?;
        let count = r.check_count(count, CHUNK_HEADER_LEN as u64, "tile chunks")?;
        let mut chunks = Vec::with_capacity(count);
        let mut original_len = 0u64;
        for _ in 0..count {
            let ChunkHeader {
                original_len: chunk_len,
                filtered_len,
                metadata_len,
            } = ChunkHeader::read(&mut r)?;
            let metadata = r.bytes(metadata_len as usize, "chunk metadata")?;
            let data = r.bytes(filtered_len as usize, "chunk data")?;
            chunks.push(Chunk {
                output_offset: original_len,
                original_len: chunk_len,
                metadata,
                data,
            });
            // Cannot overflow: 2^32 chunks of 2^32 bytes would need 2^32 headers in memory.
            original_len += u64::from(chunk_len);
        }
        r.finish("tile")?;
        Ok(Self {
            chunks,
            original_len,
        })
    }

    /// As [`Self::parse`], for a tile whose unfiltered size is known to be `original_len` bytes.
    pub fn parse_sized(stored: &'a [u8], original_len: u64) -> Result<Self> {
        let chunks = Self::parse(stored)?;
        if chunks.original_len != original_len {
            let reason = format!(
                "its chunks hold {} bytes, not {original_len}",
                chunks.original_len
            );
            return Err(DecodeError::invalid("tile", 0, reason));
        }
        Ok(chunks)
    }

    /// The chunks, front to back.
    #[must_use]
    pub fn chunks(&self) -> &[Chunk<'a>] {
        &self.chunks
    }

    /// Bytes of the unfiltered tile.
    #[must_use]
    pub fn original_len(&self) -> u64 {
        self.original_len
    }

    /// The chunks that hold any of the bytes `from..to` of the unfiltered tile.
    #[must_use]
    pub fn covering(&self, from: u64, to: u64) -> &[Chunk<'a>] {
        let first = self
            .chunks
            .partition_point(|chunk| chunk.output_end() <= from);
        let rest = self.chunks.get(first..).unwrap_or(&[]);
        let len = rest.partition_point(|chunk| chunk.output_offset < to);
        rest.get(..len).unwrap_or(&[])
    }
}

/// Appends a tile without chunks: what stands in an offsets file where the offsets lie inside the
/// data tile.
pub fn encode_no_chunks(out: &mut Vec<u8>) {
    out.extend_from_slice(&0u64.to_le_bytes());
}

/// What stands between the chunks of a tile that no filter changes: with it the tile is stored from
/// where its cells lie.
#[derive(Debug)]
pub struct PlainHeaders {
    chunk_num: [u8; 8],
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

    fn stored(chunks: &[(u32, &[u8], &[u8])]) -> Vec<u8> {
        let mut bytes = (chunks.len() as u64).to_le_bytes().to_vec();
        for (original_len, metadata, data) in chunks {
            bytes.extend(original_len.to_le_bytes());
            bytes.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
            bytes.extend(u32::try_from(metadata.len()).unwrap().to_le_bytes());
            bytes.extend(*metadata);
            bytes.extend(*data);
        }
        bytes
    }

    #[test]
    fn chunks_are_found_and_placed() {
        let bytes = stored(&[(10, b"m", b"abc"), (0, b"", b""), (5, b"", b"defgh")]);
        let tile = TileChunks::parse_sized(&bytes, 15).unwrap();
        let placed: Vec<_> = tile
            .chunks()
            .iter()
            .map(|c| (c.output_offset, c.output_end(), c.data))
            .collect();
        assert_eq!(
            placed,
            [(0, 10, &b"abc"[..]), (10, 10, b""), (10, 15, b"defgh")]
        );
        assert_eq!(tile.chunks()[0].metadata, b"m");
        assert_eq!(tile.covering(0, 10).len(), 1);
        assert_eq!(tile.covering(9, 11).len(), 3);
        assert_eq!(tile.covering(10, 12).last().unwrap().data, b"defgh");
        assert!(tile.covering(15, 20).is_empty());
        assert!(matches!(
            TileChunks::parse_sized(&bytes, 16),
            Err(DecodeError::Invalid { .. })
        ));
    }

    #[test]
    fn a_cut_or_hostile_tile_is_refused() {
        let bytes = stored(&[(10, b"m", b"abc"), (5, b"", b"defgh")]);
        for len in 0..bytes.len() {
            assert!(
                matches!(
                    TileChunks::parse(&bytes[..len]),
                    Err(DecodeError::Truncated { .. })
                ),
                "{len}"
            );
        }
        let mut long = bytes.clone();
        long.push(0);
        assert!(matches!(
            TileChunks::parse(&long),
            Err(DecodeError::Invalid { .. })
        ));
        let mut many = bytes;
        many[..8].fill(0xff);
        assert!(matches!(
            TileChunks::parse(&many),
            Err(DecodeError::Truncated { .. })
        ));
    }

    #[test]
    fn no_chunks_is_a_tile_too() {
        let mut bytes = Vec::new();
        encode_no_chunks(&mut bytes);
        assert_eq!(TileChunks::parse_sized(&bytes, 0).unwrap().chunks(), []);
    }
}

//! Filters and their pipelines.
//!
//! Pages: *Filter Pipeline*, *Tile*, and one page for each of the newer filters.

mod aes_gcm;
mod bit_rows;
mod bit_width_reduction;
mod bitshuffle;
mod byteshuffle;
mod bzip2;
mod checksum;
mod chunking;
mod compression;
mod context;
mod delta;
mod dictionary;
mod double_delta;
mod float_scale;
mod gzip;
mod integer;
mod key;
mod lanes;
mod lz4;
mod open_chunk;
mod options;
mod parts;
mod pipeline;
mod positive_delta;
mod rle;
mod scratch;
mod shuffle;
mod strings;
#[cfg(test)]
mod tests;
mod typing;
mod webp;
mod xor;
mod zstd;

pub use context::FilterContext;
pub use key::EncryptionKey;
pub use open_chunk::OpenChunk;
pub use scratch::Scratch;

use crate::datatype::Datatype;

/// A filter with its options. The id on disk is in parentheses.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// Does nothing (0).
    None,
    /// A zlib stream (1).
    Gzip {
        /// 0 to 9, or -1 for the default.
        level: i32,
    },
    /// Zstandard (2).
    Zstd {
        /// -7 to 22, -1 for the default.
        level: i32,
    },
    /// LZ4 raw blocks (3).
    Lz4 {
        /// Stored; LZ4 has one level.
        level: i32,
    },
    /// Run lengths (4).
    Rle {
        /// Stored; run lengths have no level.
        level: i32,
    },
    /// Bzip2 (5).
    Bzip2 {
        /// 1 to 9, -1 for the default.
        level: i32,
    },
    /// Second differences, bit-packed (6).
    DoubleDelta {
        /// Stored; ignored.
        level: i32,
        /// Type that the values are taken as; `None` (stored as ANY) for their own.
        reinterpret: Option<Datatype>,
    },
    /// Offsets from a window's minimum, in fewer bytes (7).
    BitWidthReduction {
        /// Window size in bytes.
        max_window: u32,
    },
    /// Transposes bits (8).
    Bitshuffle,
    /// Transposes bytes (9).
    Byteshuffle,
    /// Differences of increasing values (10).
    PositiveDelta {
        /// Window size in bytes.
        max_window: u32,
    },
    /// AES-256-GCM (11). Stored only in the headers of generic tiles; elsewhere a key implies it,
    /// see [`FilterContext`].
    Aes256Gcm,
    /// MD5 checksums (12).
    ChecksumMd5,
    /// SHA-256 checksums (13).
    ChecksumSha256,
    /// Strings as indices into a dictionary (14).
    Dictionary {
        /// Stored; ignored.
        level: i32,
    },
    /// Floats as scaled integers (15).
    FloatScale {
        /// What values are divided by.
        scale: f64,
        /// What is subtracted first.
        offset: f64,
        /// Bytes of the stored integers: 1, 2, 4 or 8.
        byte_width: u64,
    },
    /// Each value xor its predecessor (16).
    Xor,
    /// WebP pictures (18).
    Webp {
        /// 0 to 100 for lossy encoding.
        quality: f32,
        /// 0 none, 1 RGB, 2 BGR, 3 RGBA, 4 BGRA.
        input_format: u8,
        /// Whether the encoding loses nothing.
        lossless: bool,
        /// Extent of the first dimension: rows of a picture.
        y_extent: u16,
        /// Extent of the second dimension: bytes (not pixels) of a row.
        x_extent: u16,
    },
    /// First differences (19).
    Delta {
        /// Stored; ignored.
        level: i32,
        /// Type that the values are taken as; `None` (stored as ANY) for their own.
        reinterpret: Option<Datatype>,
    },
}

/// The filters that data passes through on its way to disk, in that order.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// About how many unfiltered bytes make a chunk when tiles are written; 0 for tiles of one
    /// chunk.
    ///
    /// The reference stores this number and always writes chunks of 64 KiB (or one chunk).
    pub max_chunk_size: u32,
    /// The filters.
    pub filters: Vec<Filter>,
}

impl Filter {
    /// The id on disk.
    #[must_use]
    pub const fn id(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip { .. } => 1,
            Self::Zstd { .. } => 2,
            Self::Lz4 { .. } => 3,
            Self::Rle { .. } => 4,
            Self::Bzip2 { .. } => 5,
            Self::DoubleDelta { .. } => 6,
            Self::BitWidthReduction { .. } => 7,
            Self::Bitshuffle => 8,
            Self::Byteshuffle => 9,
            Self::PositiveDelta { .. } => 10,
            Self::Aes256Gcm => 11,
            Self::ChecksumMd5 => 12,
            Self::ChecksumSha256 => 13,
            Self::Dictionary { .. } => 14,
            Self::FloatScale { .. } => 15,
            Self::Xor => 16,
            Self::Webp { .. } => 18,
            Self::Delta { .. } => 19,
        }
    }

    /// The name that TileDB prints, such as `ZSTD`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Gzip { .. } => "GZIP",
            Self::Zstd { .. } => "ZSTD",
            Self::Lz4 { .. } => "LZ4",
            Self::Rle { .. } => "RLE",
            Self::Bzip2 { .. } => "BZIP2",
            Self::DoubleDelta { .. } => "DOUBLE_DELTA",
            Self::BitWidthReduction { .. } => "BIT_WIDTH_REDUCTION",
            Self::Bitshuffle => "BITSHUFFLE",
            Self::Byteshuffle => "BYTESHUFFLE",
            Self::PositiveDelta { .. } => "POSITIVE_DELTA",
            Self::Aes256Gcm => "AES_256_GCM",
            Self::ChecksumMd5 => "CHECKSUM_MD5",
            Self::ChecksumSha256 => "CHECKSUM_SHA256",
            Self::Dictionary { .. } => "DICTIONARY_ENCODING",
            Self::FloatScale { .. } => "SCALE_FLOAT",
            Self::Xor => "XOR",
            Self::Webp { .. } => "WEBP",
            Self::Delta { .. } => "DELTA",
        }
    }
}

impl Pipeline {
    /// The chunk size of pipelines that do not choose one.
    pub const DEFAULT_CHUNK_SIZE: u32 = 64 * 1024;
    /// The most filters that a stored pipeline may have: a bound of ours, as every chunk walks
    /// through them.
    pub const MAX_FILTERS: usize = 256;
}

impl Default for Pipeline {
    fn default() -> Self {
        Self {
            max_chunk_size: Self::DEFAULT_CHUNK_SIZE,
            filters: Vec::new(),
        }
    }
}

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
mod codecs;
mod compression;
mod context;
mod decode;
mod delta;
mod dictionary;
mod double_delta;
mod encode;
mod float_scale;
mod growth;
mod gzip;
mod integer;
mod key;
mod lanes;
mod lz4;
mod open_chunk;
mod options;
mod parts;
mod positive_delta;
mod rle;
mod scratch;
mod shuffle;
mod step;
mod string_sink;
mod strings;
#[cfg(test)]
mod tests;
mod text;
mod text_sink;
mod typing;
mod webp;
mod word_sink;
mod xor;
mod zstd;

pub use context::FilterContext;
pub use key::EncryptionKey;
pub use open_chunk::OpenChunk;
pub use scratch::Scratch;
pub use text::PipelineTextError;
pub use word_sink::StringWords;

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
    /// Every filter, with the options that the reference gives it unless others are asked for.
    pub const ALL: [Self; 19] = [
        Self::None,
        Self::Gzip { level: -1 },
        Self::Zstd { level: -1 },
        Self::Lz4 { level: -1 },
        Self::Rle { level: -1 },
        Self::Bzip2 { level: -1 },
        Self::DoubleDelta {
            level: -1,
            reinterpret: None,
        },
        Self::BitWidthReduction { max_window: 256 },
        Self::Bitshuffle,
        Self::Byteshuffle,
        Self::PositiveDelta { max_window: 1024 },
        Self::Aes256Gcm,
        Self::ChecksumMd5,
        Self::ChecksumSha256,
        Self::Dictionary { level: -1 },
        Self::FloatScale {
            scale: 1.0,
            offset: 0.0,
            byte_width: 8,
        },
        Self::Xor,
        Self::Webp {
            quality: 100.0,
            input_format: 0,
            lossless: false,
            y_extent: 0,
            x_extent: 0,
        },
        Self::Delta {
            level: -1,
            reinterpret: None,
        },
    ];

    /// The filter of an id, with the options of [`Self::ALL`].
    #[must_use]
    pub fn of_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|filter| filter.id() == id)
    }

    /// The id on disk.
    #[must_use]
    pub const fn id(&self) -> u8 {
        self.id_and_name().0
    }

    /// The name that TileDB prints, such as `ZSTD`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.id_and_name().1
    }

    const fn id_and_name(&self) -> (u8, &'static str) {
        match self {
            Self::None => (0, "NONE"),
            Self::Gzip { .. } => (1, "GZIP"),
            Self::Zstd { .. } => (2, "ZSTD"),
            Self::Lz4 { .. } => (3, "LZ4"),
            Self::Rle { .. } => (4, "RLE"),
            Self::Bzip2 { .. } => (5, "BZIP2"),
            Self::DoubleDelta { .. } => (6, "DOUBLE_DELTA"),
            Self::BitWidthReduction { .. } => (7, "BIT_WIDTH_REDUCTION"),
            Self::Bitshuffle => (8, "BITSHUFFLE"),
            Self::Byteshuffle => (9, "BYTESHUFFLE"),
            Self::PositiveDelta { .. } => (10, "POSITIVE_DELTA"),
            Self::Aes256Gcm => (11, "AES_256_GCM"),
            Self::ChecksumMd5 => (12, "CHECKSUM_MD5"),
            Self::ChecksumSha256 => (13, "CHECKSUM_SHA256"),
            Self::Dictionary { .. } => (14, "DICTIONARY_ENCODING"),
            Self::FloatScale { .. } => (15, "SCALE_FLOAT"),
            Self::Xor => (16, "XOR"),
            Self::Webp { .. } => (18, "WEBP"),
            Self::Delta { .. } => (19, "DELTA"),
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

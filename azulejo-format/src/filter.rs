//! Filters and their pipelines.
//!
//! Pages: *Filter Pipeline*, *Tile*, and one page for each of the newer filters.

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
    Rle,
    /// Bzip2 (5).
    Bzip2 {
        /// 1 to 9, -1 for the default.
        level: i32,
    },
    /// Second differences, bit-packed (6).
    DoubleDelta {
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
    /// MD5 checksums (12).
    ChecksumMd5,
    /// SHA-256 checksums (13).
    ChecksumSha256,
    /// Strings as indices into a dictionary (14).
    Dictionary,
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
        /// Extents of the picture in x (bytes a row) and y, as stored.
        extents: (u16, u16),
    },
    /// First differences (19).
    Delta {
        /// Type that the values are taken as; `None` (stored as ANY) for their own.
        reinterpret: Option<Datatype>,
    },
}

/// The filters that data passes through on its way to disk, in that order.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// Size in bytes of an unfiltered chunk, as stored.
    pub max_chunk_size: u32,
    /// The filters.
    pub filters: Vec<Filter>,
}

impl Pipeline {
    /// The chunk size of pipelines that do not choose one.
    pub const DEFAULT_CHUNK_SIZE: u32 = 64 * 1024;
}

impl Default for Pipeline {
    fn default() -> Self {
        Self { max_chunk_size: Self::DEFAULT_CHUNK_SIZE, filters: Vec::new() }
    }
}

//! How long a chunk can become on its way through a pipeline: what is longer is no chunk that filters
//! have made, and is not given memory.

use super::compression::Compressor;
use super::step::{FilterStep, Transform};

/// How many times as long as its chunk the data between two filters may be, or their metadata,
/// whatever the filters could make of it. No sensible pipeline comes near.
const MOST_TIMES: u64 = 64;

/// Bytes that they may have beyond that: headers and lists of parts.
const MOST_BYTES: u64 = 1 << 20;

/// The most bytes of a chunk's data and metadata at one place of a pipeline.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth {
    pub(super) data: u64,
    pub(super) metadata: u64,
}

impl Growth {
    pub(super) const NONE: Self = Self {
        data: 0,
        metadata: 0,
    };

    /// A chunk of `len` bytes, offsets of strings included, before its first filter.
    pub(super) const fn of(len: u64) -> Self {
        Self {
            data: len,
            metadata: 0,
        }
    }

    /// The most that what this is can be, where the chunk had `len` bytes.
    pub(super) fn most(self, len: u64) -> Self {
        let cut = |bytes: u64| {
            let bytes = bytes.min(len.saturating_mul(MOST_TIMES));
            bytes.saturating_add(MOST_BYTES)
        };
        Self {
            data: cut(self.data),
            metadata: cut(self.metadata),
        }
    }

    /// What a filter can make of it, but for what has the same length in chunks of any length.
    pub(super) fn behind(self, step: FilterStep) -> Self {
        let Self { data, metadata } = self;
        match step {
            FilterStep::Skip | FilterStep::Check(_) => self,
            FilterStep::Transform(transform) => match transform {
                Transform::BitWidthReduction { max_window, .. }
                | Transform::PositiveDelta { max_window, .. } => {
                    // At most 13 bytes a window, which more than half of its bound fills.
                    let windows = data / u64::from(max_window / 2).max(1) + 1;
                    Self {
                        data,
                        metadata: metadata.saturating_add(windows.saturating_mul(16)),
                    }
                }
                Transform::FloatScale(_) | Transform::Webp(_) => Self {
                    data: data.saturating_mul(2),
                    metadata,
                },
                Transform::Byteshuffle { .. }
                | Transform::Bitshuffle { .. }
                | Transform::Xor { .. } => self,
            },
            // The strings of a tile, each once, are the filter's metadata: no longer than they are in
            // the tile, whose offsets count their lengths.
            FilterStep::Compress(Compressor::Dictionary) => Self {
                data: compressed(Compressor::Dictionary, data),
                metadata: metadata.saturating_add(data.saturating_mul(2)),
            },
            FilterStep::Compress(compressor) => Self {
                data: compressed(compressor, data).saturating_add(compressed(compressor, metadata)),
                metadata: 0,
            },
            FilterStep::Encrypt => Self {
                data: data.saturating_add(metadata),
                metadata: 0,
            },
        }
    }
}

/// What a compressor makes of bytes that it cannot compress.
fn compressed(compressor: Compressor, len: u64) -> u64 {
    match compressor {
        // A run of one cell, which two bytes count.
        Compressor::Rle { cell_size } => {
            let cells = len / (cell_size as u64).max(1) + 1;
            len.saturating_add(cells.saturating_mul(2))
        }
        Compressor::Gzip { .. }
        | Compressor::Zstd { .. }
        | Compressor::Lz4
        | Compressor::Bzip2 { .. }
        | Compressor::DoubleDelta(_)
        | Compressor::Delta(_)
        | Compressor::Dictionary => len.saturating_mul(2),
    }
}

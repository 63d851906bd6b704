//! The compressors under one roof: one part in, one part out.

use super::codecs::Codecs;
use super::{bzip2, delta, dictionary, double_delta, lz4, rle};
use crate::datatype::Datatype;
use crate::error::{DecodeError, Result};

/// A compressor with what it must know of the tile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Compressor {
    Gzip {
        level: i32,
    },
    Zstd {
        level: i32,
    },
    Lz4,
    Rle {
        cell_size: usize,
    },
    Bzip2 {
        level: i32,
    },
    /// Of values of a type.
    DoubleDelta(Datatype),
    /// Of values of a type.
    Delta(Datatype),
    /// For strings only, which [`super::strings`] encodes.
    Dictionary,
}

impl Compressor {
    /// Bytes of a part's entry in the list of parts: its lengths.
    pub(super) const ENTRY_LEN: usize = 8;

    /// Fills `out` from a compressed part.
    pub(super) fn decompress(
        self,
        input: &[u8],
        out: &mut [u8],
        codecs: &mut Codecs,
    ) -> Result<()> {
        match self {
            Self::Gzip { .. } => codecs.gzip.decompress(input, out),
            Self::Zstd { .. } => codecs.zstd.decompress(input, out),
            Self::Lz4 => lz4::decompress(input, out),
            Self::Rle { cell_size } => rle::decompress(cell_size, input, out),
            Self::Bzip2 { .. } => bzip2::decompress(input, out),
            Self::DoubleDelta(datatype) => double_delta::decompress(datatype, input, out),
            Self::Delta(datatype) => delta::decompress(datatype, input, out),
            Self::Dictionary => Err(dictionary::only_for_strings()),
        }
    }

    /// Appends the compressed part to `out` and its lengths to `metadata`.
    pub(super) fn compress_part(
        self,
        name: &'static str,
        input: &[u8],
        metadata: &mut Vec<u8>,
        out: &mut Vec<u8>,
        codecs: &mut Codecs,
    ) -> Result<()> {
        let start = out.len();
        match self {
            Self::Gzip { level } => codecs.gzip.compress(level, input, out)?,
            Self::Zstd { level } => codecs.zstd.compress(level, input, out)?,
            Self::Lz4 => lz4::compress(input, out)?,
            Self::Rle { cell_size } => rle::compress(cell_size, input, out)?,
            Self::Bzip2 { level } => bzip2::compress(level, input, out)?,
            Self::DoubleDelta(datatype) => double_delta::compress(datatype, input, out)?,
            Self::Delta(datatype) => delta::compress(datatype, input, out)?,
            Self::Dictionary => return Err(dictionary::only_for_strings()),
        }
        for len in [input.len(), out.len() - start] {
            let len = u32::try_from(len)
                .map_err(|_| DecodeError::filter(name, "a part of more than 4 GiB"))?;
            metadata.extend(len.to_le_bytes());
        }
        Ok(())
    }
}

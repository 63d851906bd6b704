//! The compressors under one roof: one part in, one part out.

use super::scratch::Codecs;
use super::{Filter, FilterContext, bzip2, delta, double_delta, gzip, lz4, rle, zstd};
use crate::datatype::Datatype;
use crate::error::{DecodeError, Result};

/// A compressor with what it must know of the tile.
pub(super) struct Compression<'a> {
    filter: &'a Filter,
    /// The type that the delta compressors take values as.
    datatype: Datatype,
    cell_size: usize,
    codecs: &'a mut Codecs,
}

impl<'a> Compression<'a> {
    /// The compressor that `filter` is, if it is one. It is given values of `datatype`.
    pub(super) fn of(
        filter: &'a Filter,
        datatype: Datatype,
        ctx: &FilterContext<'_>,
        codecs: &'a mut Codecs,
    ) -> Option<Self> {
        let datatype = match filter {
            Filter::Delta { reinterpret, .. } | Filter::DoubleDelta { reinterpret, .. } => {
                reinterpret.unwrap_or(datatype)
            }
            _ => datatype,
        };
        // Run lengths count cells of the tile, whatever type the filters before have made of them.
        filter.is_compressor().then(|| Self {
            filter,
            datatype,
            cell_size: ctx.cell_size(),
            codecs,
        })
    }

    /// Fills `out` from a compressed part.
    pub(super) fn decompress(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        match self.filter {
            Filter::Gzip { .. } => gzip::decompress(input, out, self.codecs),
            Filter::Zstd { .. } => zstd::decompress(input, out, self.codecs),
            Filter::Lz4 { .. } => lz4::decompress(input, out),
            Filter::Rle { .. } => rle::decompress(self.cell_size, input, out),
            Filter::Bzip2 { .. } => bzip2::decompress(input, out),
            Filter::DoubleDelta { .. } => double_delta::decompress(self.datatype, input, out),
            Filter::Delta { .. } => delta::decompress(self.datatype, input, out),
            _ => Err(self.only_for_strings()),
        }
    }

    /// Appends the compressed part to `out` and its lengths to `metadata`.
    pub(super) fn compress_part(
        &mut self,
        input: &[u8],
        metadata: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = out.len();
        match *self.filter {
            Filter::Gzip { level } => gzip::compress(level, input, out, self.codecs)?,
            Filter::Zstd { level } => zstd::compress(level, input, out, self.codecs)?,
            Filter::Lz4 { .. } => lz4::compress(input, out)?,
            Filter::Rle { .. } => rle::compress(self.cell_size, input, out)?,
            Filter::Bzip2 { level } => bzip2::compress(level, input, out)?,
            Filter::DoubleDelta { .. } => double_delta::compress(self.datatype, input, out)?,
            Filter::Delta { .. } => delta::compress(self.datatype, input, out)?,
            _ => return Err(self.only_for_strings()),
        }
        for len in [input.len(), out.len() - start] {
            let len = u32::try_from(len).map_err(|_| {
                DecodeError::filter(self.filter.name(), "a part of more than 4 GiB")
            })?;
            metadata.extend(len.to_le_bytes());
        }
        Ok(())
    }

    fn only_for_strings(&self) -> DecodeError {
        DecodeError::filter(
            self.filter.name(),
            "it works on variable-length strings only, as the first filter",
        )
    }
}

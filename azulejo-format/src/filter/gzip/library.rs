//! libdeflate.

use super::{NAME, effective_level};
use crate::error::{DecodeError, Result};
use libdeflater::{CompressionLvl, Compressor, Decompressor};

/// Contexts, made when they are first needed.
#[derive(Default)]
pub(in crate::filter) struct Codec {
    inflate: Option<Decompressor>,
    /// With the level that it was made for.
    deflate: Option<(u32, Compressor)>,
}

impl Codec {
    /// Fills `out` from a zlib stream of exactly so many bytes.
    pub(in crate::filter) fn decompress(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let decompressor = self.inflate.get_or_insert_with(Decompressor::new);
        match decompressor.zlib_decompress(input, out) {
            Ok(len) if len == out.len() => Ok(()),
            Ok(len) => Err(DecodeError::filter(
                NAME,
                format!("{len} bytes instead of {}", out.len()),
            )),
            Err(error) => Err(DecodeError::filter(
                NAME,
                format!("{} bytes expected: {error}", out.len()),
            )),
        }
    }

    /// Appends the zlib stream of `input`.
    pub(in crate::filter) fn compress(
        &mut self,
        level: i32,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let level = effective_level(level)?;
        let compressor = match &mut self.deflate {
            Some((of, compressor)) if *of == level => compressor,
            other => {
                let invalid = |_| DecodeError::filter(NAME, "invalid level");
                let libdeflate_level = CompressionLvl::new(level.cast_signed()).map_err(invalid)?;
                &mut other.insert((level, Compressor::new(libdeflate_level))).1
            }
        };
        let at = out.len();
        out.resize(at + compressor.zlib_compress_bound(input.len()), 0);
        let place = out.get_mut(at..).unwrap_or_default();
        let len = compressor
            .zlib_compress(input, place)
            .map_err(|e| DecodeError::filter(NAME, e.to_string()))?;
        out.truncate(at + len);
        Ok(())
    }
}

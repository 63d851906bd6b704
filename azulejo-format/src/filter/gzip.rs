//! GZIP: a zlib stream (not a gzip file). Page: *Tile, Compression Filters*.

use super::scratch::Codecs;
use crate::error::{DecodeError, Result};
use libdeflater::{CompressionLvl, Compressor, Decompressor};

const NAME: &str = "GZIP";

/// Fills `out` from a zlib stream of exactly so many bytes.
pub(super) fn decompress(input: &[u8], out: &mut [u8], codecs: &mut Codecs) -> Result<()> {
    let decompressor = codecs.inflate.get_or_insert_with(Decompressor::new);
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
pub(super) fn compress(
    level: i32,
    input: &[u8],
    out: &mut Vec<u8>,
    codecs: &mut Codecs,
) -> Result<()> {
    // zlib's default level is 6.
    let level = if level < 0 { 6 } else { level };
    if level > 9 {
        return Err(DecodeError::filter(
            NAME,
            format!("level {level} is above 9"),
        ));
    }
    if codecs
        .deflate
        .as_ref()
        .is_none_or(|(held, _)| *held != level)
    {
        let level_of =
            CompressionLvl::new(level).map_err(|_| DecodeError::filter(NAME, "invalid level"))?;
        codecs.deflate = Some((level, Compressor::new(level_of)));
    }
    let Some((_, compressor)) = &mut codecs.deflate else {
        return Err(DecodeError::filter(NAME, "no compressor"));
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

//! ZSTD: one Zstandard frame a part. Page: *Tile, Compression Filters*.
//!
//! Frames of releases before 0.8, which some old writers left, are read too. Whatever a frame declares,
//! the library writes no more than the output has room for, and allocates a context of fixed size.

use super::scratch::Codecs;
use crate::error::{DecodeError, Result};
use zstd_safe::{CCtx, DCtx};

const NAME: &str = "ZSTD";

/// Fills `out` from frames of exactly so many bytes.
pub(super) fn decompress(input: &[u8], out: &mut [u8], codecs: &mut Codecs) -> Result<()> {
    let context = match &mut codecs.zstd_decompress {
        Some(context) => context,
        empty => empty
            .insert(DCtx::try_create().ok_or_else(|| DecodeError::filter(NAME, "out of memory"))?),
    };
    let want = out.len();
    match context.decompress(out, input) {
        Ok(len) if len == want => Ok(()),
        Ok(len) => Err(DecodeError::filter(
            NAME,
            format!("{len} bytes instead of {want}"),
        )),
        Err(code) => Err(DecodeError::filter(NAME, zstd_safe::get_error_name(code))),
    }
}

/// Appends the frame of `input`.
pub(super) fn compress(
    level: i32,
    input: &[u8],
    out: &mut Vec<u8>,
    codecs: &mut Codecs,
) -> Result<()> {
    let context = match &mut codecs.zstd_compress {
        Some(context) => context,
        empty => empty
            .insert(CCtx::try_create().ok_or_else(|| DecodeError::filter(NAME, "out of memory"))?),
    };
    // Levels below -7 mean the default. Level -1 is a level of its own (a fast one), although
    // TileDB calls it the default.
    let level = if level < -7 { 3 } else { level };
    let at = out.len();
    out.resize(at + zstd_safe::compress_bound(input.len()), 0);
    let place = out.get_mut(at..).unwrap_or_default();
    let len = context
        .compress(place, input, level)
        .map_err(|code| DecodeError::filter(NAME, zstd_safe::get_error_name(code)))?;
    out.truncate(at + len);
    Ok(())
}

//! LZ4: a raw block, without frame or length. Page: *Tile, Compression Filters*.

use crate::error::{DecodeError, Result};
use lz4_flex::block;

const NAME: &str = "LZ4";

/// Fills `out` from a block of exactly so many bytes.
pub(super) fn decompress(input: &[u8], out: &mut [u8]) -> Result<()> {
    match block::decompress_into(input, out) {
        Ok(len) if len == out.len() => Ok(()),
        Ok(len) => Err(DecodeError::filter(
            NAME,
            format!("{len} bytes instead of {}", out.len()),
        )),
        Err(error) => Err(DecodeError::filter(NAME, error.to_string())),
    }
}

/// Appends the block of `input`.
pub(super) fn compress(input: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let at = out.len();
    out.resize(at + block::get_maximum_output_size(input.len()), 0);
    let place = out.get_mut(at..).unwrap_or_default();
    let len =
        block::compress_into(input, place).map_err(|e| DecodeError::filter(NAME, e.to_string()))?;
    out.truncate(at + len);
    Ok(())
}

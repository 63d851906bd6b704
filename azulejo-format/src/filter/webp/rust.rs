//! The decoder in Rust. There is no encoder: what it wrote would be right, but not what libwebp
//! writes.

use super::options::{NAME, Webp};
use crate::error::{DecodeError, Result};
use image_webp::{DecodingError, WebPDecoder};
use std::io::Cursor;

/// Fills `out` with the pixels of the picture.
pub(in crate::filter) fn decode(webp: Webp, input: &[u8], out: &mut [u8]) -> Result<()> {
    let failed = |error: DecodingError| DecodeError::filter(NAME, error.to_string());
    let depth = webp.depth()?;
    let mut decoder = WebPDecoder::new(Cursor::new(input)).map_err(failed)?;
    let (width, height) = decoder.dimensions();
    let len = u64::from(width) * u64::from(height) * depth as u64;
    // libwebp's simple decoder, which writers use to read back, takes no animations.
    if len != out.len() as u64 || len == 0 || decoder.is_animated() {
        let reason = format!("a picture of {width} x {height} for {} bytes", out.len());
        return Err(DecodeError::filter(NAME, reason));
    }
    decoder.set_memory_limit(out.len().saturating_mul(8).saturating_add(1 << 20));
    let found_depth = if decoder.has_alpha() { 4 } else { 3 };
    if found_depth == depth {
        decoder.read_image(out).map_err(failed)?;
    } else {
        let mut pixels = vec![0; out.len() / depth * found_depth];
        decoder.read_image(&mut pixels).map_err(failed)?;
        let found = pixels.chunks_exact(found_depth);
        for (pixel, found) in out.chunks_exact_mut(depth).zip(found) {
            // Pixels without alpha are opaque; where alpha is not asked for it goes.
            for (at, value) in pixel.iter_mut().enumerate() {
                *value = found.get(at).copied().unwrap_or(0xff);
            }
        }
    }
    if webp.is_bgr() {
        for pixel in out.chunks_exact_mut(depth) {
            pixel.swap(0, 2);
        }
    }
    Ok(())
}

/// Refuses.
#[cfg(not(feature = "webp"))]
pub(in crate::filter) fn encode(_: Webp, _: &[u8], _: &mut Vec<u8>) -> Result<()> {
    Err(DecodeError::Unsupported {
        what: "writing with the WEBP filter",
        reason: "build with the feature `webp`",
    })
}

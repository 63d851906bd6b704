//! GZIP: a zlib stream (not a gzip file). Page: *Tile, Compression Filters*.
//!
//! libdeflate where C is compiled in, otherwise the codec in Rust.

#[cfg(feature = "c-codecs")]
pub(super) mod library;
#[cfg(all(feature = "pure-rust", any(test, not(feature = "c-codecs"))))]
pub(super) mod rust;

#[cfg(feature = "c-codecs")]
pub(super) use library::Codec;
#[cfg(not(feature = "c-codecs"))]
pub(super) use rust::Codec;

use crate::error::{DecodeError, Result};

const NAME: &str = "GZIP";

/// The level that a stored one means: negative ones zlib's default.
fn effective_level(level: i32) -> Result<u32> {
    match u32::try_from(level) {
        Ok(level @ 0..=9) => Ok(level),
        Ok(level) => Err(DecodeError::filter(
            NAME,
            format!("level {level} is above 9"),
        )),
        Err(_) => Ok(6),
    }
}

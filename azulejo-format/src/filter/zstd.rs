//! ZSTD: one Zstandard frame a part. Page: *Tile, Compression Filters*.
//!
//! The C library where it is compiled in, otherwise the codec in Rust. Some old writers left frames
//! of releases before 0.8: the C library reads those of all, the one in Rust those from 0.5 on.

#[cfg(feature = "c-codecs")]
pub(super) mod library;
#[cfg(all(feature = "pure-rust", any(test, not(feature = "c-codecs"))))]
pub(super) mod rust;

#[cfg(feature = "c-codecs")]
pub(super) use library::Codec;
#[cfg(not(feature = "c-codecs"))]
pub(super) use rust::Codec;

const NAME: &str = "ZSTD";

/// The level that a stored one means: those below -7 the default. Level -1 is one of its own (a
/// fast one), although TileDB calls it the default.
fn effective_level(level: i32) -> i32 {
    if level < -7 { 3 } else { level }
}

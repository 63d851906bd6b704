//! What codecs keep from chunk to chunk.

use super::{gzip, zstd};

/// Codec contexts: costly to make, so they are reused.
#[derive(Default)]
pub(super) struct Codecs {
    pub(super) gzip: gzip::Codec,
    pub(super) zstd: zstd::Codec,
}

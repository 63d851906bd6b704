//! Buffers and codec state that a thread keeps from chunk to chunk.

use super::codecs::Codecs;
use super::growth::Growth;
use super::step::FilterStep;

/// What filtering needs beside input and output. Keep one a thread: then chunks cost no allocation
/// once it has grown.
#[derive(Default)]
pub struct Scratch {
    /// Whether checksums are not compared (`sm.skip_checksum_validation`).
    pub skip_checksum_validation: bool,
    pub(super) codecs: Codecs,
    pub(super) data: [Vec<u8>; 2],
    pub(super) metadata: [Vec<u8>; 2],
    /// Lengths of the parts in `metadata` while encoding, the newest filter's first.
    pub(super) part_lens: [Vec<usize>; 2],
    /// The filters that are undone, each with the most that there was before it.
    pub(super) steps: Vec<(FilterStep, Growth)>,
}

impl Scratch {
    /// An empty scratch; it grows with use.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

/// The first `len` bytes of a buffer that only grows: what is overwritten anyway is not zeroed
/// again.
pub(super) fn sized(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    buffer.get_mut(..len).unwrap_or_default()
}

//! Chunks whose cells go to more than one place: the last step of unfiltering puts them there.

use super::{byteshuffle, lanes};
use crate::error::{DecodeError, Result};

/// The bytes of a chunk, unfiltered but for the last step where this can be done while they are put
/// in place. Made by [`Pipeline::open_chunk`](super::Pipeline::open_chunk).
#[derive(Debug)]
pub struct OpenChunk<'a> {
    bytes: &'a [u8],
    /// Bytes of the values that are shuffled; 1 if none are.
    value_size: usize,
    /// Whether bytes may still be on their way to memory.
    streamed: bool,
}

impl<'a> OpenChunk<'a> {
    /// A chunk that is unfiltered but for byteshuffle on values of `value_size` bytes, 1 for
    /// nothing.
    pub(super) fn new(bytes: &'a [u8], value_size: usize) -> Self {
        Self {
            bytes,
            value_size,
            streamed: false,
        }
    }

    /// The bytes, if nothing is left to be done.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        (self.value_size == 1).then_some(self.bytes)
    }

    /// Fills `out` with the chunk's bytes from `start` on. Both must be at whole values of the type
    /// that was filtered.
    ///
    /// With `streams` what is written need not go through the caches, which is faster if it is more
    /// than fits there.
    pub fn copy_to(&mut self, start: usize, out: &mut [u8], streams: bool) -> Result<()> {
        let size = self.value_size;
        let end = start
            .checked_add(out.len())
            .filter(|end| *end <= self.bytes.len());
        if end.is_none() || !start.is_multiple_of(size) || !out.len().is_multiple_of(size) {
            let reason = format!(
                "{} bytes from {start} on are no whole values of its",
                out.len()
            );
            return Err(DecodeError::invalid("chunk", 0, reason));
        }
        if streams {
            self.streamed = true;
            byteshuffle::unshuffle_streamed(size, self.bytes, start, out);
        } else {
            byteshuffle::unshuffle_some(size, self.bytes, start, out);
        }
        Ok(())
    }
}

impl Drop for OpenChunk<'_> {
    fn drop(&mut self) {
        if self.streamed {
            lanes::fence();
        }
    }
}

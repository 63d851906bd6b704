//! Buffers and codec state that a thread keeps from chunk to chunk.

/// What filtering needs beside input and output. Keep one a thread: then chunks cost no allocation once it has grown.
#[derive(Default)]
pub struct Scratch {}

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

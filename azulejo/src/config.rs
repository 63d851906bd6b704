//! Settings of a context.

/// What a [`Context`](crate::Context) is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Bytes that one query may hold at a time, results included.
    pub memory_budget: u64,
    /// Threads for decoding; 0 means one a core.
    pub threads: usize,
    /// Two ranges of one file closer than this many bytes are read as one.
    pub coalesce_gap: u64,
}

impl Config {
    /// The memory budget unless set: 1 GiB.
    pub const DEFAULT_MEMORY_BUDGET: u64 = 1 << 30;
}

impl Default for Config {
    fn default() -> Self {
        Self { memory_budget: Self::DEFAULT_MEMORY_BUDGET, threads: 0, coalesce_gap: 64 * 1024 }
    }
}

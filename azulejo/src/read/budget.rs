//! How a query divides its memory: in one place, once.

/// Batches for the caller to keep take about this much memory, tiles included: enough to keep all
/// threads busy, and little enough that the next batch reuses memory which is warm.
const BATCH_BYTES: u64 = 64 << 20;

/// Batches of which a caller's buffers may not take all at once cost about this, where reads have a
/// low latency: what does not fit waits until the caller has room again, and what fits is copied
/// while it is in a cache.
pub(super) const SMALL_BATCH_BYTES: u64 = 16 << 20;

/// Bytes that a query may hold, by what holds them.
///
/// | | dense | sparse |
/// |---|---|---|
/// | `total` | all | all but the cache |
/// | `result` | 3/4: the rest is for tiles | all, or 3/4 where tiles are prefetched meanwhile |
/// | `tiles` | 1/4: tiles under way are short-lived | 1/2: what is selected of them is held beside them. Windows, too: tiles under way, then the batches made out of one, have half of the rest; its many small pieces the other half, as allocators keep gaps |
/// | `group` | 1/16: one is decoded while the next ones travel | 1/4 |
/// | `prefetch` | 1/8: half of what tiles may take | 1/4: what `result` leaves |
/// | `part` | - | 1/8: parts of long clusters shall fit a cache |
/// | `cache` | - | at most 1/16 |
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// All that the query itself may hold.
    pub total: u64,
    /// A batch: cells in their final place, and what bringing them in order takes.
    pub result: u64,
    /// Tiles at a time, stored and decoded; or the cells that come next of too many of them.
    pub tiles: u64,
    /// Tiles that are fetched or decoded together.
    pub group: u64,
    /// Stored tiles that were asked for and are not used yet.
    pub prefetch: u64,
    /// A part of tiles that could be cut anywhere.
    pub part: u64,
    /// Decoded tiles that stay for the array's next queries.
    pub cache: u64,
    /// What a batch costs where the caller does not want all cells in one piece.
    pub batch: u64,
}

impl Budget {
    /// For a dense read; `batch` is what batches cost, if the caller said.
    pub fn dense(bytes: u64, batch: Option<u64>) -> Self {
        let tiles = bytes / 4;
        Self {
            total: bytes,
            result: bytes - tiles,
            tiles,
            group: tiles / 4,
            prefetch: tiles / 2,
            part: bytes,
            cache: 0,
            batch: batch.unwrap_or(BATCH_BYTES),
        }
    }

    /// For a sparse read; `cache` is what the array's tile cache may hold, `prefetches` whether
    /// tiles travel while others are decoded.
    pub fn sparse(bytes: u64, batch: Option<u64>, cache: u64, prefetches: bool) -> Self {
        let cache = cache.min(bytes / 16);
        let total = bytes - cache;
        let prefetch = total / 4;
        Self {
            total,
            result: if prefetches { total - prefetch } else { total },
            tiles: total / 2,
            group: total / 4,
            prefetch,
            part: (total / 8).max(1),
            cache,
            batch: batch.unwrap_or(BATCH_BYTES),
        }
    }

    /// What a batch costs of which the caller may not have room for all cells.
    pub fn small_batch(&self) -> u64 {
        SMALL_BATCH_BYTES.min(self.batch)
    }

    /// What the next batch may cost.
    pub fn batch_of(&self, wanted: WantedBatch) -> u64 {
        match wanted.few_batches {
            true => u64::MAX,
            false => self.batch,
        }
    }
}

/// What a caller wants of the next batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct WantedBatch {
    /// Cells that may still come; `u64::MAX`: all.
    pub most: u64,
    /// Whether it may be as large as the budget allows, as all cells are wanted in one piece.
    pub few_batches: bool,
    /// Whether texts may come as words.
    pub words: bool,
}

//! What reads have done, for those who want to know while they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what reads look at, while they run. Clones share the counters, and so do the reads that
/// are given them.
///
/// ```
/// # use azulejo::format::{ArraySchema, Datatype};
/// # use azulejo::{ColumnBuffers, ColumnSet, Config, Context, WriteOptions};
/// use azulejo::read::{ReadCounts, ReadOptions};
/// # let context = Context::new(Config::default(), None)?;
/// # let place = context.array("mem://numbers");
/// # let schema = ArraySchema::sparse().dimension("id", 0i64..=99, 10);
/// # place.create(schema.attribute("v", Datatype::Int64).capacity(10).build()?)?;
/// # let mut writer = place.writer(WriteOptions::new())?;
/// # writer.write(&ColumnSet::of([
/// #     ColumnBuffers::of_values("id", (0..100i64).collect::<Vec<_>>()),
/// #     ColumnBuffers::of_values("v", (0..100i64).collect::<Vec<_>>()),
/// # ])?)?;
/// # writer.finish()?;
/// # let array = place.open()?;
/// let counts = ReadCounts::new();
/// let high = array.condition("v >= 80")?;
/// let options = ReadOptions::new().condition(high).counted(&counts);
/// assert_eq!(array.read(options)?.read_all()?.cell_num, 20);
/// assert_eq!((counts.tiles(), counts.pruned()), (2, 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReadCounts(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    tiles: AtomicU64,
    pruned: AtomicU64,
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl ReadCounts {
    /// Counters at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tiles that were looked at, whatever was read of them.
    #[must_use]
    pub fn tiles(&self) -> u64 {
        self.0.tiles.load(Ordering::Relaxed)
    }

    /// Tiles within the selection that were left out, as their statistics say that no cell of theirs
    /// meets the condition.
    #[must_use]
    pub fn pruned(&self) -> u64 {
        self.0.pruned.load(Ordering::Relaxed)
    }

    /// Ranges of data files that were read. The storage may have joined some, or had them in a
    /// cache.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// Bytes of these ranges.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn add_tiles(&self, tiles: usize) {
        self.0.tiles.fetch_add(tiles as u64, Ordering::Relaxed);
    }

    pub(super) fn add_pruned(&self, tiles: usize) {
        self.0.pruned.fetch_add(tiles as u64, Ordering::Relaxed);
    }

    pub(super) fn add_request(&self, bytes: u64) {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

//! Reusable memory: touching fresh pages costs ten times what reusing old ones does.

use crate::large_pages;
use crate::platform::process_id;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use arrow_buffer::Buffer;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// Bytes that contexts keep for their next queries, at most: all those of a process that may keep
/// as much share them.
const MOST_IDLE: u64 = 16 << 20;

/// What the contexts of the process share, and the process.
static SHARED: Mutex<Option<(u32, Weak<Mutex<Shelf>>)>> = Mutex::new(None);

/// Buffers smaller than this are left to the allocator.
const SMALLEST: usize = 32 * 1024;

/// Keeps the memory of dropped [`PoolBuffer`]s for the next ones; cheap to clone, shared by
/// threads.
#[derive(Debug, Clone)]
pub struct BufferPool {
    shelf: Arc<Mutex<Shelf>>,
    load_limit: u64,
}

#[derive(Debug)]
struct Shelf {
    /// Kept buffers by their lengths, every byte of them initialised.
    buffers: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Bytes in `buffers`.
    kept: usize,
    /// `kept` never exceeds this.
    limit: usize,
}

impl BufferPool {
    /// A pool that keeps at most `limit` bytes of unused buffers, for loads of any size.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let shelf = Shelf {
            buffers: BTreeMap::new(),
            kept: 0,
            limit,
        };
        Self {
            shelf: Arc::new(Mutex::new(shelf)),
            load_limit: u64::MAX,
        }
    }

    /// The pool of a context whose queries may hold `budget` bytes: an eighth of that may lie idle
    /// in it. Large ones are one pool, as programs that make many contexts rarely use several at
    /// once, and drop them late.
    pub(crate) fn of_context(budget: u64) -> Self {
        let own = || Self::new(usize::try_from((budget / 8).min(MOST_IDLE)).unwrap_or(usize::MAX));
        if budget / 8 < MOST_IDLE {
            return own();
        }
        // In a forked child the lock may be held by a thread that is none of its own.
        let Ok(mut shared) = SHARED.try_lock() else {
            return own();
        };
        let process = process_id();
        let shelf = shared
            .as_ref()
            .filter(|(made_in, _)| *made_in == process)
            .and_then(|(_, shelf)| shelf.upgrade());
        if let Some(shelf) = shelf {
            return Self {
                shelf,
                load_limit: u64::MAX,
            };
        }
        let pool = own();
        *shared = Some((process, Arc::downgrade(&pool.shelf)));
        pool
    }

    /// Frees what contexts keep for their next queries.
    pub fn release_kept() {
        let kept = shared().map(|shelf| {
            let mut shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
            shelf.kept = 0;
            std::mem::take(&mut shelf.buffers)
        });
        // Memory is given back while nobody waits.
        drop(kept);
    }

    /// Bytes that contexts keep for their next queries.
    #[must_use]
    pub fn kept() -> u64 {
        shared().map_or(0, |shelf| {
            shelf.lock().unwrap_or_else(PoisonError::into_inner).kept as u64
        })
    }

    /// A pool of its own for work that may hold `budget` bytes.
    #[must_use]
    pub fn of_budget(budget: u64) -> Self {
        Self::new(usize::try_from(budget / 8).unwrap_or(usize::MAX)).with_load_limit(budget)
    }

    /// The same buffers, for a query that may load at most `limit` bytes at a time.
    #[must_use]
    pub fn with_load_limit(&self, limit: u64) -> Self {
        Self {
            shelf: Arc::clone(&self.shelf),
            load_limit: limit,
        }
    }

    /// Bytes, stored and decoded, that one call of [`load_tiles`](crate::read::load::load_tiles) may
    /// take.
    #[must_use]
    pub fn load_limit(&self) -> u64 {
        self.load_limit
    }

    /// A buffer of `len` bytes whose content is unspecified (zeros, or what a former user left).
    #[must_use]
    pub fn take(&self, len: usize) -> PoolBuffer {
        let bytes = if len < SMALLEST {
            None
        } else {
            self.shelf().best_fit(len)
        };
        let bytes = bytes.unwrap_or_else(|| large_pages::zeroed(len));
        PoolBuffer {
            bytes,
            len,
            pool: Some(self.clone()),
        }
    }

    /// The first `len` bytes of a buffer that grows where it has to: its content is then
    /// unspecified, as that of a new one.
    pub(crate) fn room<'b>(&self, buffer: &'b mut PoolBuffer, len: usize) -> &'b mut [u8] {
        if buffer.len() < len {
            *buffer = self.take(len);
        }
        buffer.get_mut(..len).unwrap_or_default()
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The shelf of large contexts, if there are any.
fn shared() -> Option<Arc<Mutex<Shelf>>> {
    // In a forked child the lock may be held by a thread that is none of its own.
    let shared = SHARED.try_lock().ok()?;
    let (made_in, shelf) = shared.as_ref()?;
    (*made_in == process_id())
        .then(|| shelf.upgrade())
        .flatten()
}

impl Shelf {
    /// The smallest kept buffer of at least `len` bytes that does not waste more than it serves.
    fn best_fit(&mut self, len: usize) -> Option<Vec<u8>> {
        let wasteful = len.saturating_mul(4).saturating_add(3);
        let (&size, alike) = self.buffers.range_mut(len..=wasteful).next()?;
        let buffer = alike.pop()?;
        if alike.is_empty() {
            self.buffers.remove(&size);
        }
        self.kept -= buffer.len();
        Some(buffer)
    }

    fn put(&mut self, buffer: Vec<u8>) {
        if self.kept + buffer.len() <= self.limit {
            self.kept += buffer.len();
            self.buffers.entry(buffer.len()).or_default().push(buffer);
        }
    }
}

/// Bytes that return to their pool when dropped.
#[derive(Debug, Default)]
pub struct PoolBuffer {
    /// At least `len` bytes long.
    bytes: Vec<u8>,
    len: usize,
    pool: Option<BufferPool>,
}

impl PoolBuffer {
    /// Bytes that the buffer keeps from others.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Shortens the buffer; does nothing if it is not longer than `len`.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl AsRef<[u8]> for PoolBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// The memory of a column; it returns to the pool when the last reference to the column is gone.
impl From<PoolBuffer> for Buffer {
    fn from(buffer: PoolBuffer) -> Self {
        // Large blocks are aligned to 16 bytes by every allocator; others might not be, and are
        // cheap to copy.
        if buffer.len() < SMALLEST || !buffer.as_ptr().addr().is_multiple_of(16) {
            return Self::from_slice_ref(&*buffer);
        }
        Self::from(Bytes::from_owner(buffer))
    }
}

impl From<Vec<u8>> for PoolBuffer {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            len: bytes.len(),
            bytes,
            pool: None,
        }
    }
}

impl Deref for PoolBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl DerefMut for PoolBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

impl Drop for PoolBuffer {
    fn drop(&mut self) {
        if self.bytes.len() >= SMALLEST
            && let Some(pool) = &self.pool
        {
            pool.shelf().put(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_with_room_share_a_pool() {
        let (first, second) = (
            BufferPool::of_context(8 * MOST_IDLE),
            BufferPool::of_context(u64::MAX),
        );
        let small = BufferPool::of_context(8 * MOST_IDLE - 8);
        assert!(!Arc::ptr_eq(&first.shelf, &small.shelf));
        assert_eq!(small.shelf().limit as u64, MOST_IDLE - 1);
        // Another test may hold the lock for a moment.
        let again = || Arc::ptr_eq(&first.shelf, &BufferPool::of_context(u64::MAX).shelf);
        assert!(Arc::ptr_eq(&first.shelf, &second.shelf) || (0..1000).any(|_| again()));
        assert_eq!(first.shelf().limit as u64, MOST_IDLE);
    }

    #[test]
    fn memory_is_reused_and_bounded() {
        let pool = BufferPool::new(200_000);
        let mut first = pool.take(100_000);
        first.fill(7);
        drop(first);
        assert_eq!(pool.take(90_000)[0], 7, "the same memory again");
        assert_eq!(pool.take(10)[0], 0, "small buffers are fresh");
        drop((pool.take(100_000), pool.take(100_000), pool.take(100_000)));
        assert!(pool.shelf().kept <= 200_000);
        assert_eq!(
            pool.take(SMALLEST).bytes.len(),
            SMALLEST.max(100_000),
            "at most four times too large"
        );
        assert_eq!(pool.take(SMALLEST + 1).len(), SMALLEST + 1);
    }
}

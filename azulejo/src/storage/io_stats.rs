//! What storages were asked for: requests, bytes and the time spent waiting.

use crate::platform::Stopwatch;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum IoOp {
    /// A page of a listing.
    List,
    /// Bytes of an object.
    Get,
    /// The size of an object.
    Head,
    /// A whole object written.
    Put,
    /// The start, a part, the end or the abort of an object written in parts.
    Multipart,
    /// A deletion, of one object or of many at once.
    Delete,
    /// A copy within the store.
    Copy,
    /// Anything else, such as asking for credentials.
    Other,
}

impl IoOp {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::List,
        Self::Get,
        Self::Head,
        Self::Put,
        Self::Multipart,
        Self::Delete,
        Self::Copy,
        Self::Other,
    ];

    /// Its name in a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Get => "get",
            Self::Head => "head",
            Self::Put => "put",
            Self::Multipart => "multipart",
            Self::Delete => "delete",
            Self::Copy => "copy",
            Self::Other => "other",
        }
    }

    fn place(self) -> usize {
        self as usize
    }
}

#[derive(Debug, Default)]
struct Counters {
    requests: [AtomicU64; 8],
    bytes: [AtomicU64; 8],
    failures: AtomicU64,
    waited: AtomicU64,
    cache_hits: AtomicU64,
    cache_bytes: AtomicU64,
}

/// Counts requests as they are made. Clones share the counters.
#[derive(Debug, Clone, Default)]
pub struct IoStats {
    counters: Arc<Counters>,
}

impl IoStats {
    /// Counters at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What was counted until now. Requests that are made meanwhile may be counted or not.
    #[must_use]
    pub fn counts(&self) -> IoCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        IoCounts {
            requests: self.counters.requests.each_ref().map(load),
            bytes: self.counters.bytes.each_ref().map(load),
            failures: load(&self.counters.failures),
            waited: Duration::from_nanos(load(&self.counters.waited)),
            cache_hits: load(&self.counters.cache_hits),
            cache_bytes: load(&self.counters.cache_bytes),
        }
    }

    /// Counts requests.
    pub fn add_requests(&self, op: IoOp, number: u64) {
        self.counters.requests[op.place()].fetch_add(number, Ordering::Relaxed);
    }

    /// Counts bytes of a request's body or of its answer.
    pub fn add_bytes(&self, op: IoOp, bytes: u64) {
        self.counters.bytes[op.place()].fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a request that failed and may be tried again.
    pub fn add_failure(&self) {
        self.counters.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a read that a cache has answered.
    pub fn add_cache_hit(&self, bytes: u64) {
        self.counters.cache_hits.fetch_add(1, Ordering::Relaxed);
        self.counters
            .cache_bytes
            .fetch_add(bytes, Ordering::Relaxed);
    }

    /// Runs something that waits for a storage, and counts the time.
    pub fn waiting<R>(&self, work: impl FnOnce() -> R) -> R {
        let start = Stopwatch::start();
        let result = work();
        self.add_waited(start.elapsed());
        result
    }

    /// Counts time spent waiting.
    pub(crate) fn add_waited(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.counters.waited.fetch_add(nanos, Ordering::Relaxed);
    }
}

/// Requests, bytes and waiting time at a moment, or between two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoCounts {
    requests: [u64; 8],
    bytes: [u64; 8],
    /// Requests that were refused, throttled, cut or not answered in time; most of them were made
    /// again.
    pub failures: u64,
    /// How long threads have waited for storages, all threads together.
    pub waited: Duration,
    /// Reads that a cache has answered.
    pub cache_hits: u64,
    /// Their bytes.
    pub cache_bytes: u64,
}

impl IoCounts {
    /// Requests of one kind.
    #[must_use]
    pub fn requests(&self, op: IoOp) -> u64 {
        self.requests[op.place()]
    }

    /// Bytes of one kind of request: read by `Get`, written by `Put` and `Multipart`, sent by
    /// servers for the others.
    #[must_use]
    pub fn bytes(&self, op: IoOp) -> u64 {
        self.bytes[op.place()]
    }

    /// Requests of all kinds.
    #[must_use]
    pub fn total_requests(&self) -> u64 {
        self.requests.iter().sum()
    }

    /// What came after an earlier count.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: &[u64; 8], then: &[u64; 8]| {
            std::array::from_fn(|i| now[i].saturating_sub(then[i]))
        };
        Self {
            requests: less(&self.requests, &earlier.requests),
            bytes: less(&self.bytes, &earlier.bytes),
            failures: self.failures.saturating_sub(earlier.failures),
            waited: self.waited.saturating_sub(earlier.waited),
            cache_hits: self.cache_hits.saturating_sub(earlier.cache_hits),
            cache_bytes: self.cache_bytes.saturating_sub(earlier.cache_bytes),
        }
    }
}

impl fmt::Display for IoCounts {
    /// One line: `14 requests (2 list, 12 get), 81234 bytes read, 0 written, 0 failed, waited 0.213
    /// s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests", self.total_requests())?;
        let mut separator = " (";
        for op in IoOp::ALL.into_iter().filter(|op| self.requests(*op) > 0) {
            write!(f, "{separator}{} {}", self.requests(op), op.name())?;
            separator = ", ";
        }
        if separator == ", " {
            f.write_str(")")?;
        }
        write!(
            f,
            ", {} bytes read, {} written, {} failed, waited {:.3} s",
            self.bytes(IoOp::Get),
            self.bytes(IoOp::Put) + self.bytes(IoOp::Multipart),
            self.failures,
            self.waited.as_secs_f64()
        )?;
        if self.cache_hits > 0 {
            write!(
                f,
                ", {} reads ({} bytes) from the cache",
                self.cache_hits, self.cache_bytes
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_shared_and_subtracted() {
        let stats = IoStats::new();
        let other = stats.clone();
        stats.add_requests(IoOp::Get, 2);
        let before = stats.counts();
        other.add_requests(IoOp::Get, 3);
        other.add_requests(IoOp::List, 1);
        other.add_bytes(IoOp::Get, 100);
        other.add_failure();
        other.waiting(|| ());
        let counts = stats.counts().since(&before);
        assert_eq!(
            (
                counts.requests(IoOp::Get),
                counts.bytes(IoOp::Get),
                counts.failures
            ),
            (3, 100, 1)
        );
        assert_eq!(counts.total_requests(), 4);
        let shown = counts.to_string();
        assert!(
            shown.starts_with("4 requests (1 list, 3 get), 100 bytes read, 0 written, 1 failed"),
            "{shown}"
        );
        assert!(IoOp::ALL.iter().enumerate().all(|(i, op)| op.place() == i));
    }
}

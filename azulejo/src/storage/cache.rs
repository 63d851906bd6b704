//! Bytes that were read already, for the queries of a context: bounded memory in front of a
//! storage.
//!
//! Only what never changes is kept: files of fragments, schemas, consolidated footers. Listings,
//! commits and key-values are asked for each time, so that a cache never hides what others have
//! written.

use super::{
    IoStats, Pending, PendingRead, PendingTails, ReadInto, ReadRange, ReadRequest, Storage,
    StorageLayer, StorePath, Tail, Upload,
};
use crate::error::Result;
use azulejo_format::timestamped_name::TimestampedName;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Folders whose files are written once.
const WRITTEN_ONCE: [&str; 3] = ["__fragments", "__schema", "__fragment_meta"];
/// What an entry costs beside its bytes.
const OVERHEAD: u64 = 256;

/// What was asked for of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum RangeAsked {
    All,
    /// From an offset on.
    From(u64),
    /// So many bytes at its end.
    Last(u64),
}

#[derive(Debug)]
struct CachedRange {
    bytes: Bytes,
    /// Of [`RangeAsked::Last`], the size of the object.
    object_size: u64,
    /// When it was used last.
    used: u64,
}

#[derive(Debug, Default)]
struct CacheContents {
    objects: HashMap<StorePath, BTreeMap<RangeAsked, CachedRange>>,
    /// The least recently used first.
    by_use: BTreeMap<u64, (StorePath, RangeAsked)>,
    bytes: u64,
    clock: u64,
}

impl CacheContents {
    fn touch(&mut self, path: &StorePath, part: RangeAsked) {
        let Some(kept) = self
            .objects
            .get_mut(path)
            .and_then(|parts| parts.get_mut(&part))
        else {
            return;
        };
        self.clock += 1;
        if let Some(place) = self.by_use.remove(&kept.used) {
            kept.used = self.clock;
            self.by_use.insert(self.clock, place);
        }
    }

    fn remove(&mut self, path: &StorePath, part: RangeAsked) {
        let Some(parts) = self.objects.get_mut(path) else {
            return;
        };
        if let Some(kept) = parts.remove(&part) {
            self.by_use.remove(&kept.used);
            self.bytes -= kept.bytes.len() as u64 + OVERHEAD;
        }
        if parts.is_empty() {
            self.objects.remove(path);
        }
    }
}

/// Bytes that were read, the least recently used of which give way to others.
#[derive(Debug)]
pub(crate) struct ByteCache {
    state: Mutex<CacheContents>,
    limit: u64,
    stats: IoStats,
}

impl ByteCache {
    /// Keeps at most `limit` bytes.
    pub(crate) fn new(limit: u64, stats: &IoStats) -> Self {
        Self {
            state: Mutex::default(),
            limit,
            stats: stats.clone(),
        }
    }

    /// Bytes that it keeps at most.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    fn state(&self) -> MutexGuard<'_, CacheContents> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn range(&self, path: &StorePath, range: &ReadRange) -> Option<Bytes> {
        let mut state = self.state();
        let parts = state.objects.get(path)?;
        let (part, bytes) = match range {
            ReadRange::All | ReadRange::AtMost(_) => {
                let bytes = &parts.get(&RangeAsked::All)?.bytes;
                range.within(path, bytes.len() as u64).ok()?;
                (RangeAsked::All, bytes.clone())
            }
            ReadRange::Bytes(range) => {
                let whole = parts.get_key_value(&RangeAsked::All);
                // The nearest range that begins at or before this one.
                let (part, kept) =
                    whole.or_else(|| parts.range(..=RangeAsked::From(range.start)).next_back())?;
                let start = if let RangeAsked::From(start) = part {
                    *start
                } else {
                    0
                };
                let from = usize::try_from(range.start - start).ok()?;
                let to = usize::try_from(range.end.checked_sub(start)?).ok()?;
                (
                    *part,
                    (from <= to && to <= kept.bytes.len()).then(|| kept.bytes.slice(from..to))?,
                )
            }
        };
        state.touch(path, part);
        self.stats.add_cache_hit(bytes.len() as u64);
        Some(bytes)
    }

    fn tail(&self, path: &StorePath, len: u64) -> Option<Tail> {
        let mut state = self.state();
        let kept = state.objects.get(path)?.get(&RangeAsked::Last(len))?;
        let tail = Tail {
            bytes: kept.bytes.clone(),
            object_size: kept.object_size,
        };
        state.touch(path, RangeAsked::Last(len));
        self.stats.add_cache_hit(tail.bytes.len() as u64);
        Some(tail)
    }

    fn keep(&self, path: &StorePath, part: RangeAsked, bytes: &[u8], object_size: u64) {
        let cost = bytes.len() as u64 + OVERHEAD;
        // One object must not drive out all others.
        if bytes.is_empty() || cost > self.limit / 4 || !is_written_once(path) {
            return;
        }
        let mut state = self.state();
        let known = state
            .objects
            .get(path)
            .and_then(|parts| parts.get(&part))
            .map(|kept| kept.bytes.len());
        if known.is_some_and(|known| known >= bytes.len()) {
            return;
        }
        state.remove(path, part);
        state.clock += 1;
        let used = state.clock;
        // A copy of its own: what was read may be a slice of more.
        let kept = CachedRange {
            bytes: Bytes::copy_from_slice(bytes),
            object_size,
            used,
        };
        state
            .objects
            .entry(path.clone())
            .or_default()
            .insert(part, kept);
        state.by_use.insert(used, (path.clone(), part));
        state.bytes += cost;
        while state.bytes > self.limit {
            let Some((_, (path, part))) = state.by_use.pop_first() else {
                break;
            };
            // `remove` looks for the use again, which does no harm.
            state.remove(&path, part);
        }
    }

    fn keep_range(&self, request: &ReadRequest, bytes: &[u8]) {
        match &request.range {
            ReadRange::All | ReadRange::AtMost(_) => {
                self.keep(&request.path, RangeAsked::All, bytes, bytes.len() as u64);
            }
            ReadRange::Bytes(range) => {
                self.keep(&request.path, RangeAsked::From(range.start), bytes, 0);
            }
        }
    }

    /// Forgets objects, and those in folders.
    fn forget(&self, paths: &[StorePath]) {
        let mut state = self.state();
        let inside = |path: &StorePath| paths.iter().any(|gone| path.relative_to(gone).is_some());
        let gone: Vec<StorePath> = state
            .objects
            .keys()
            .filter(|path| inside(path))
            .cloned()
            .collect();
        for path in gone {
            let parts: Vec<RangeAsked> = state
                .objects
                .get(&path)
                .map(|parts| parts.keys().copied().collect())
                .unwrap_or_default();
            parts.into_iter().for_each(|part| state.remove(&path, part));
        }
    }
}

/// Whether an object never changes once it is there.
fn is_written_once(path: &StorePath) -> bool {
    let text = path.as_str();
    let Some((folders, _)) = text.rsplit_once('/') else {
        return false;
    };
    let fragment =
        |folder: &str| folder.starts_with("__") && TimestampedName::parse(folder).is_ok();
    folders
        .split('/')
        .any(|folder| WRITTEN_ONCE.contains(&folder) || fragment(folder))
}

/// A storage whose reads go through a cache.
#[derive(Debug)]
pub(crate) struct CachedStorage {
    inner: Arc<dyn Storage>,
    cache: Arc<ByteCache>,
}

impl CachedStorage {
    /// Puts a cache before a storage.
    pub(crate) fn new(inner: Arc<dyn Storage>, cache: &Arc<ByteCache>) -> Self {
        Self {
            inner,
            cache: Arc::clone(cache),
        }
    }
}

impl StorageLayer for CachedStorage {
    fn inner(&self) -> &dyn Storage {
        &*self.inner
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        StorageLayer::start_read(self, requests.to_vec()).wait()
    }

    fn read_tails(&self, paths: &[StorePath], len: u64) -> Result<Vec<Tail>> {
        StorageLayer::start_read_tails(self, paths.to_vec(), len).wait()
    }

    fn read_into(&self, requests: &mut [ReadInto<'_>]) -> Result<()> {
        let range = |r: &ReadInto<'_>| {
            ReadRange::Bytes(r.offset..r.offset.saturating_add(r.out.len() as u64))
        };
        let mut missing: Vec<ReadInto<'_>> = Vec::new();
        for request in requests {
            match self.cache.range(&request.path, &range(request)) {
                Some(bytes) => request.out.copy_from_slice(&bytes),
                None => {
                    let ReadInto { path, offset, out } = request;
                    missing.push(ReadInto {
                        path: path.clone(),
                        offset: *offset,
                        out,
                    });
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        self.inner.read_into(&mut missing)?;
        for read in &missing {
            self.cache
                .keep(&read.path, RangeAsked::From(read.offset), read.out, 0);
        }
        Ok(())
    }

    fn start_read_tails(&self, paths: Vec<StorePath>, len: u64) -> PendingTails {
        let mut tails: Vec<Option<Tail>> = paths
            .iter()
            .map(|path| self.cache.tail(path, len))
            .collect();
        let missing: Vec<StorePath> = paths
            .into_iter()
            .zip(&tails)
            .filter(|(_, hit)| hit.is_none())
            .map(|(path, _)| path)
            .collect();
        if missing.is_empty() {
            return Pending::ready(Ok(tails.into_iter().flatten().collect()));
        }
        let cache = Arc::clone(&self.cache);
        self.inner
            .start_read_tails(missing.clone(), len)
            .then(move |read| {
                let places = tails.iter_mut().filter(|tail| tail.is_none());
                for ((place, path), tail) in places.zip(&missing).zip(read?) {
                    cache.keep(path, RangeAsked::Last(len), &tail.bytes, tail.object_size);
                    *place = Some(tail);
                }
                Ok(tails.into_iter().flatten().collect())
            })
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        let mut results: Vec<Option<Bytes>> = requests
            .iter()
            .map(|request| self.cache.range(&request.path, &request.range))
            .collect();
        let missing: Vec<ReadRequest> = requests
            .into_iter()
            .zip(&results)
            .filter(|(_, hit)| hit.is_none())
            .map(|(r, _)| r)
            .collect();
        if missing.is_empty() {
            return Pending::ready(Ok(results.into_iter().flatten().collect()));
        }
        let cache = Arc::clone(&self.cache);
        self.inner.start_read(missing.clone()).then(move |read| {
            let places = results.iter_mut().filter(|result| result.is_none());
            for ((place, request), bytes) in places.zip(&missing).zip(read?) {
                cache.keep_range(request, &bytes);
                *place = Some(bytes);
            }
            Ok(results.into_iter().flatten().collect())
        })
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.cache.forget(std::slice::from_ref(path));
        self.inner.put(path, body)
    }

    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        self.cache.forget(std::slice::from_ref(path));
        self.inner.upload(path)
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        self.cache.forget(&[from.clone(), to.clone()]);
        self.inner.rename(from, to)
    }

    fn replace(&self, from: &StorePath, to: &StorePath) -> Result<bool> {
        self.cache.forget(&[from.clone(), to.clone()]);
        self.inner.replace(from, to)
    }

    fn copy_here(&self, from: &StorePath, to: &StorePath) -> Result<bool> {
        self.cache.forget(std::slice::from_ref(to));
        self.inner.copy_here(from, to)
    }

    fn copy_all_here(&self, copies: &[(StorePath, StorePath)]) -> Result<bool> {
        let copied: Vec<StorePath> = copies.iter().map(|(_, to)| to.clone()).collect();
        self.cache.forget(&copied);
        self.inner.copy_all_here(copies)
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        self.cache.forget(paths);
        self.inner.delete(paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{MemoryStorage, RequestLogStorage, conformance};

    fn cached(limit: u64) -> (Arc<dyn Storage>, crate::storage::RequestLog) {
        let (storage, _, log) = with_cache(limit);
        (storage, log)
    }

    fn with_cache(limit: u64) -> (Arc<dyn Storage>, Arc<ByteCache>, crate::storage::RequestLog) {
        let storage = RequestLogStorage::new(Arc::new(MemoryStorage::new()));
        let (log, cache) = (
            storage.log(),
            Arc::new(ByteCache::new(limit, &IoStats::new())),
        );
        let storage = CachedStorage::new(Arc::new(storage), &cache);
        (Arc::new(storage), cache, log)
    }

    fn read(storage: &dyn Storage, path: &StorePath, range: ReadRange) -> Bytes {
        storage
            .read(&[ReadRequest {
                path: path.clone(),
                range,
            }])
            .unwrap()
            .remove(0)
    }

    #[test]
    fn meets_the_contract() {
        conformance::check(&*cached(1 << 20).0, &StorePath::memory("root"));
        conformance::check(&*cached(64 << 20).0, &StorePath::memory("root/__fragments"));
    }

    #[test]
    fn what_is_written_once_is_read_once() {
        let (storage, log) = cached(1 << 20);
        let tile =
            StorePath::memory("a/__fragments/__1_1_00000000000000000000000000000001_22/a0.tdb");
        let other = StorePath::memory("a/__meta/__1_1_00000000000000000000000000000001");
        for path in [&tile, &other] {
            storage
                .put(path, Bytes::from_static(b"0123456789"))
                .unwrap();
        }
        let _ = log.take();
        for _ in 0..3 {
            assert_eq!(read(&*storage, &tile, ReadRange::Bytes(2..8)), "234567");
            assert_eq!(
                read(&*storage, &tile, ReadRange::Bytes(3..5)),
                "34",
                "inside of what is known"
            );
            let mut out = [0; 4];
            storage
                .read_into(&mut [ReadInto {
                    path: tile.clone(),
                    offset: 4,
                    out: &mut out,
                }])
                .unwrap();
            assert_eq!(&out, b"4567");
            assert_eq!(
                storage.read_tails(std::slice::from_ref(&tile), 3).unwrap()[0].bytes,
                "789"
            );
            let range = ReadRange::Bytes(2..6);
            let ahead = storage.start_read(vec![ReadRequest {
                path: tile.clone(),
                range,
            }]);
            assert_eq!(ahead.wait().unwrap(), ["2345"]);
        }
        assert_eq!(log.read_num(), 2);
        assert_eq!(
            read(&*storage, &tile, ReadRange::Bytes(7..9)),
            "78",
            "beyond of what is known"
        );
        assert_eq!(log.read_num(), 3);
        let _ = log.take();
        for _ in 0..3 {
            read(&*storage, &other, ReadRange::All);
        }
        assert_eq!(log.read_num(), 3, "key-values are always asked for");
        let later = |range| ReadRequest {
            path: tile.clone(),
            range: ReadRange::Bytes(range),
        };
        let ahead = || {
            storage
                .start_read(vec![later(0..2), later(2..8), later(8..9)])
                .wait()
                .unwrap()
        };
        assert_eq!(
            (ahead(), ahead()),
            (vec!["01".into(), "234567".into(), "8".into()], ahead())
        );
        assert_eq!(
            log.read_num(),
            4,
            "what is read ahead is kept, and only what is missing is read"
        );
        // All of a file answers for its parts.
        assert_eq!(read(&*storage, &tile, ReadRange::All).len(), 10);
        let _ = log.take();
        assert_eq!(read(&*storage, &tile, ReadRange::Bytes(0..2)), "01");
        assert_eq!(log.read_num(), 0);
        storage.delete(&[StorePath::memory("a")]).unwrap();
        assert!(
            storage
                .read(&[ReadRequest {
                    path: tile,
                    range: ReadRange::All
                }])
                .is_err()
        );
    }

    #[test]
    fn the_least_recently_used_gives_way() {
        let (storage, cache, log) = with_cache(8 * (1000 + OVERHEAD));
        let path = |i: usize| StorePath::memory(&format!("a/__fragments/f/{i}"));
        (0..20).for_each(|i| {
            storage
                .put(&path(i), Bytes::from(vec![i as u8; 1000]))
                .unwrap();
        });
        for i in 0..20 {
            read(&*storage, &path(i), ReadRange::All);
            read(&*storage, &path(0), ReadRange::All);
        }
        let _ = log.take();
        for i in [0, 19, 18, 13] {
            read(&*storage, &path(i), ReadRange::All);
        }
        assert_eq!(log.read_num(), 0);
        read(&*storage, &path(12), ReadRange::All);
        assert_eq!(log.read_num(), 1);
        let state = cache.state();
        assert!(state.bytes <= cache.limit && state.by_use.len() == 8);
    }
}

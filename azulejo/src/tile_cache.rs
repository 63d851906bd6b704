//! The tile cache: decoded tiles that stay with an open array for its next queries.
//!
//! Boxes that are read one after another overlap: a tile that one of them needs in part is often
//! needed again. Fragments never change, so a cached tile is right as long as the array is open.

use crate::column::Tile;
use crate::sync::{Arc, Mutex, PoisonError};
use azulejo_format::fragment::Field;
use std::collections::{HashMap, HashSet, VecDeque};

/// A tile: index of the fragment in the array, field, index in the fragment.
pub(crate) type TileKey = (usize, Field, u64);

/// Tiles that are remembered as needed once, at most: then all are forgotten.
const MOST_TOUCHED: usize = 64 * 1024;

/// Remembering a tile takes about so many bytes.
const TOUCHED_BYTES: usize = 64;

/// The tiles used lately, up to a number of bytes.
#[derive(Debug)]
pub(crate) struct TileCache {
    limit: usize,
    state: Mutex<CacheState>,
}

#[derive(Debug, Default)]
struct CacheState {
    tiles: HashMap<TileKey, CachedTile>,
    /// All keys, those that came first in front. A tile that was used since it came to the front is
    /// sent back once.
    queue: VecDeque<TileKey>,
    bytes: usize,
    /// Tiles of which some chunks were needed once.
    touched: HashSet<TileKey>,
}

#[derive(Debug)]
struct CachedTile {
    tile: Arc<Tile>,
    used: bool,
}

impl TileCache {
    /// Keeps at most `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            state: Mutex::default(),
        }
    }

    /// Forgets all tiles: nobody will ask for them again.
    pub(crate) fn clear(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = CacheState::default();
    }

    /// Bytes that it may hold.
    pub(crate) fn limit(&self) -> u64 {
        self.limit as u64
    }

    /// A tile, if it is cached.
    pub(crate) fn get(&self, key: &TileKey) -> Option<Arc<Tile>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = state.tiles.get_mut(key)?;
        cached.used = true;
        Some(Arc::clone(&cached.tile))
    }

    /// Notes that some chunks of a tile are needed; returns whether it is for the first time. What
    /// is needed again is worth decoding as a whole.
    pub(crate) fn touch(&self, key: TileKey) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.touched.len() >= MOST_TOUCHED.min(self.limit / TOUCHED_BYTES) {
            state.touched = HashSet::new();
        }
        state.touched.insert(key)
    }

    /// Keeps a tile, in place of others if not all fit in `room` bytes (or the cache's limit, if
    /// that is less).
    pub(crate) fn put(&self, key: TileKey, tile: &Arc<Tile>, room: u64) {
        let bytes = tile.reserved();
        let limit = self.limit.min(usize::try_from(room).unwrap_or(usize::MAX));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        if bytes > limit || state.tiles.contains_key(&key) {
            return;
        }
        while state.bytes + bytes > limit {
            let Some(oldest) = state.queue.pop_front() else {
                break;
            };
            match state.tiles.get_mut(&oldest) {
                Some(cached) if cached.used => {
                    cached.used = false;
                    state.queue.push_back(oldest);
                }
                Some(_) => {
                    state.bytes -= state
                        .tiles
                        .remove(&oldest)
                        .map_or(0, |cached| cached.tile.reserved());
                }
                None => {}
            }
        }
        state.bytes += bytes;
        state.queue.push_back(key);
        state.tiles.insert(
            key,
            CachedTile {
                tile: Arc::clone(tile),
                used: false,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer_pool::PoolBuffer;

    fn tile(bytes: usize) -> Arc<Tile> {
        let data = PoolBuffer::from(vec![1; bytes]);
        Arc::new(Tile {
            data,
            offsets: None,
            validity: None,
            cell_num: bytes,
            cell_size: 1,
        })
    }

    fn key(n: u64) -> TileKey {
        (0, Field::Attribute(0), n)
    }

    #[test]
    fn the_tiles_used_lately_stay_within_the_limit() {
        let cache = TileCache::new(1000);
        for n in 0..10 {
            cache.put(key(n), &tile(100), u64::MAX);
        }
        assert!(cache.get(&key(0)).is_some());
        for n in 10..15 {
            cache.put(key(n), &tile(100), u64::MAX);
        }
        assert!(cache.get(&key(0)).is_some(), "it was used since it came");
        let left: Vec<u64> = (0..15).filter(|n| cache.get(&key(*n)).is_some()).collect();
        assert_eq!(left, [0, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
        assert_eq!(cache.state.lock().unwrap().bytes, 1000);
        cache.put(key(20), &tile(1001), u64::MAX);
        assert!(cache.get(&key(20)).is_none(), "too large to keep");
        cache.put(key(21), &tile(1000), u64::MAX);
        assert_eq!(
            cache.state.lock().unwrap().tiles.len(),
            1,
            "all others had to go"
        );
        cache.put(key(22), &tile(50), 60);
        assert_eq!(
            cache.state.lock().unwrap().bytes,
            50,
            "a query with little room makes it smaller"
        );
    }

    #[test]
    fn the_first_touch_is_told_from_the_next() {
        let cache = TileCache::new(1000);
        assert!(cache.touch(key(1)));
        assert!(!cache.touch(key(1)));
        assert!(cache.touch(key(2)));
    }

    #[test]
    fn a_cleared_cache_has_room_again() {
        let cache = TileCache::new(1000);
        cache.put(key(1), &tile(900), u64::MAX);
        cache.touch(key(2));
        cache.clear();
        assert!(cache.get(&key(1)).is_none());
        assert!(cache.touch(key(2)));
        cache.put(key(3), &tile(900), u64::MAX);
        assert!(cache.get(&key(3)).is_some());
    }

    #[test]
    fn nothing_is_kept_without_room() {
        let cache = TileCache::new(0);
        cache.put(key(1), &tile(1), u64::MAX);
        assert!(cache.get(&key(1)).is_none());
    }
}

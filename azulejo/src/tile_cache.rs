//! The tile cache: decoded tiles that stay with an open array for its next queries.
//!
//! Boxes that are read one after another overlap: a tile that one of them needs in part is often
//! needed again. Fragments never change, so a cached tile is right as long as the array is open.
//! All open arrays of a context share the room: tiles of those that were asked lately stay.

use crate::column::Tile;
use crate::platform::process_id;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use azulejo_format::fragment::Field;
use std::collections::{HashMap, HashSet, VecDeque};

/// A tile: index of the fragment in the array, field, index in the fragment.
pub(crate) type TileKey = (usize, Field, u64);

/// Which of the arrays that share the room.
type CacheUser = u64;

/// Tiles that are remembered as needed once, at most: then all are forgotten.
const MOST_TOUCHED: usize = 64 * 1024;

/// Remembering a tile takes about so many bytes.
const TOUCHED_BYTES: usize = 64;

/// The tiles of an open array used lately, up to a number of bytes that it shares with others.
#[derive(Debug)]
pub(crate) struct TileCache {
    owner: CacheUser,
    limit: usize,
    room: TileRoom,
}

/// What the tile caches of arrays share.
#[derive(Debug, Clone)]
pub(crate) struct TileRoom {
    state: Arc<Mutex<CacheState>>,
    process: u32,
}

impl Default for TileRoom {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            process: process_id(),
        }
    }
}

#[derive(Debug, Default)]
struct CacheState {
    owners: CacheUser,
    tiles: HashMap<(CacheUser, TileKey), CachedTile>,
    /// The keys of all tiles, those that came first in front. A tile that was used since it came to the
    /// front is sent back once.
    queue: VecDeque<(CacheUser, TileKey)>,
    bytes: usize,
    /// Bytes of each array's tiles.
    of_owner: HashMap<CacheUser, usize>,
    /// Tiles of which some chunks were needed once.
    touched: HashSet<(CacheUser, TileKey)>,
}

#[derive(Debug)]
struct CachedTile {
    tile: Arc<Tile>,
    used: bool,
}

impl TileRoom {
    /// The cache of another array; all of them keep at most `limit` bytes together.
    pub(crate) fn cache(&self, limit: u64) -> TileCache {
        let owner = {
            let mut state = self.state();
            state.owners += 1;
            state.owners
        };
        TileCache {
            owner,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            room: self.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the tiles of an array.
    fn clear(&self, owner: CacheUser) {
        // In a forked child the lock may be held by a thread that is none of its own. What is left
        // behind then makes room for others as it gets old.
        let state = match self.process == process_id() {
            true => Some(self.state()),
            false => self.state.try_lock().ok(),
        };
        // Memory is given back while nobody waits.
        let gone = state.map(|mut state| state.without(owner));
        drop(gone);
    }
}

impl CacheState {
    /// Takes out the tiles of an array.
    fn without(&mut self, owner: CacheUser) -> Vec<CachedTile> {
        if !self.touched.is_empty() {
            self.touched.retain(|(of, _)| *of != owner);
        }
        let bytes = self.of_owner.remove(&owner).unwrap_or_default();
        if self.tiles.is_empty() {
            return Vec::new();
        }
        let gone = self.tiles.extract_if(|(of, _), _| *of == owner);
        let gone: Vec<CachedTile> = gone.map(|(_, cached)| cached).collect();
        self.bytes -= bytes;
        self.queue.retain(|(of, _)| *of != owner);
        gone
    }

    /// Takes out the tiles that came first, of an array or of all, as many as leave room for so many
    /// bytes; those that were used since they came to the front stay for another round.
    fn make_room(&mut self, bytes: usize, limit: usize, of: Option<CacheUser>) -> Vec<CachedTile> {
        let mut gone = Vec::new();
        // Those of others stand where they stood.
        let mut at = 0;
        while self.held(of) + bytes > limit {
            let Some(oldest) = self.queue.get(at).copied() else {
                if at == 0 {
                    break;
                }
                // What was sent back is looked at again.
                at = 0;
                continue;
            };
            if of.is_some_and(|owner| owner != oldest.0) {
                at += 1;
                continue;
            }
            self.queue.remove(at);
            match self.tiles.get_mut(&oldest) {
                Some(cached) if cached.used => {
                    cached.used = false;
                    self.queue.push_back(oldest);
                }
                Some(_) => gone.extend(self.take(&oldest)),
                None => {}
            }
        }
        gone
    }

    /// Bytes of the tiles of an array, or of all.
    fn held(&self, of: Option<CacheUser>) -> usize {
        match of {
            Some(owner) => self.of_owner.get(&owner).copied().unwrap_or_default(),
            None => self.bytes,
        }
    }

    fn take(&mut self, key: &(CacheUser, TileKey)) -> Option<CachedTile> {
        let cached = self.tiles.remove(key)?;
        let bytes = cached.tile.reserved();
        self.bytes -= bytes;
        if let Some(of_owner) = self.of_owner.get_mut(&key.0) {
            *of_owner -= bytes;
        }
        Some(cached)
    }
}

impl TileCache {
    /// Forgets all tiles: nobody will ask for them again.
    pub(crate) fn clear(&self) {
        self.room.clear(self.owner);
    }

    /// Bytes that it may hold.
    pub(crate) fn limit(&self) -> u64 {
        self.limit as u64
    }

    /// A tile, if it is cached.
    pub(crate) fn get(&self, key: &TileKey) -> Option<Arc<Tile>> {
        let mut state = self.room.state();
        let cached = state.tiles.get_mut(&(self.owner, *key))?;
        cached.used = true;
        Some(Arc::clone(&cached.tile))
    }

    /// Notes that some chunks of a tile are needed; returns whether it is for the first time. What
    /// is needed again is worth decoding as a whole.
    pub(crate) fn touch(&self, key: TileKey) -> bool {
        let mut state = self.room.state();
        if state.touched.len() >= MOST_TOUCHED.min(self.limit / TOUCHED_BYTES) {
            state.touched = HashSet::new();
        }
        state.touched.insert((self.owner, key))
    }

    /// Keeps a tile, in place of others: of this array if its tiles do not fit in `room` bytes, which
    /// is what a query may take for them, and of all arrays if theirs are more than the limit.
    pub(crate) fn put(&self, key: TileKey, tile: &Arc<Tile>, room: u64) {
        let key = (self.owner, key);
        let bytes = tile.reserved();
        let room = self.limit.min(usize::try_from(room).unwrap_or(usize::MAX));
        let mut guard = self.room.state();
        let state = &mut *guard;
        if bytes > room || state.tiles.contains_key(&key) {
            return;
        }
        let mut gone = state.make_room(bytes, room, Some(self.owner));
        gone.extend(state.make_room(bytes, self.limit, None));
        state.bytes += bytes;
        *state.of_owner.entry(self.owner).or_default() += bytes;
        state.queue.push_back(key);
        state.tiles.insert(
            key,
            CachedTile {
                tile: Arc::clone(tile),
                used: false,
            },
        );
        // Memory is given back while nobody waits.
        drop(guard);
        drop(gone);
    }
}

impl Drop for TileCache {
    fn drop(&mut self) {
        self.clear();
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

    fn cache(limit: u64) -> TileCache {
        TileRoom::default().cache(limit)
    }

    fn key(n: u64) -> TileKey {
        (0, Field::Attribute(0), n)
    }

    #[test]
    fn the_tiles_used_lately_stay_within_the_limit() {
        let cache = cache(1000);
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
        assert_eq!(cache.room.state().bytes, 1000);
        cache.put(key(20), &tile(1001), u64::MAX);
        assert!(cache.get(&key(20)).is_none(), "too large to keep");
        cache.put(key(21), &tile(1000), u64::MAX);
        assert_eq!(cache.room.state().tiles.len(), 1, "all others had to go");
        cache.put(key(22), &tile(50), 60);
        assert_eq!(
            cache.room.state().bytes,
            50,
            "a query with little room makes it smaller"
        );
    }

    #[test]
    fn the_first_touch_is_told_from_the_next() {
        let cache = cache(1000);
        assert!(cache.touch(key(1)));
        assert!(!cache.touch(key(1)));
        assert!(cache.touch(key(2)));
    }

    #[test]
    fn a_cleared_cache_has_room_again() {
        let cache = cache(1000);
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
        let cache = cache(0);
        cache.put(key(1), &tile(1), u64::MAX);
        assert!(cache.get(&key(1)).is_none());
    }

    #[test]
    fn arrays_share_the_room() {
        let room = TileRoom::default();
        let arrays: Vec<TileCache> = (0..100).map(|_| room.cache(1000)).collect();
        for array in &arrays {
            for n in 0..5 {
                array.put(key(n), &tile(100), u64::MAX);
            }
        }
        assert_eq!(room.state().bytes, 1000, "of all arrays");
        assert!(arrays[0].get(&key(0)).is_none() && arrays[99].get(&key(0)).is_some());
        arrays[99].clear();
        assert_eq!(room.state().bytes, 500);
        assert!(arrays[98].get(&key(4)).is_some(), "another array's");
        assert!(arrays[98].touch(key(9)) && arrays[97].touch(key(9)));
        drop(arrays);
        let state = room.state();
        assert_eq!(
            (state.bytes, state.queue.len(), state.touched.len()),
            (0, 0, 0)
        );
        assert!(state.of_owner.is_empty());
    }

    #[test]
    fn a_query_with_little_room_leaves_other_arrays_their_tiles() {
        let room = TileRoom::default();
        let (large, small) = (room.cache(1000), room.cache(1000));
        for n in 0..8 {
            large.put(key(n), &tile(100), u64::MAX);
        }
        for n in 0..5 {
            small.put(key(n), &tile(50), 100);
        }
        assert!((0..8).all(|n| large.get(&key(n)).is_some()));
        let left: Vec<u64> = (0..5).filter(|n| small.get(&key(*n)).is_some()).collect();
        assert_eq!(left, [3, 4], "as many as its queries have room for");
        // Of more than the limit the oldest go, whose they may be.
        for n in 10..14 {
            small.put(key(n), &tile(100), u64::MAX);
        }
        assert!(room.state().bytes <= 1000);
        assert!(small.get(&key(13)).is_some());
        let left = (0..8).filter(|n| large.get(&key(*n)).is_some()).count();
        assert!(left >= 4, "{left}");
    }
}

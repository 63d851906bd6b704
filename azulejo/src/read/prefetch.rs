//! Prefetching: stored tiles are asked for before a step needs them, and travel while others are
//! decoded.

use super::stored_tile::StoredTile;
use crate::array::{Array, short_read_is_corrupt};
use crate::error::{Error, Result};
use crate::storage::PendingRead;
use crate::sync::{Mutex, MutexGuard, PoisonError};
use bytes::Bytes;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Reads under way for one query. What is never taken is stopped when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Prefetch {
    state: Mutex<PrefetchState>,
}

#[derive(Debug, Default)]
struct PrefetchState {
    /// Where each tile that was asked for will arrive: which read, which of its results.
    places: HashMap<StoredTile, (u64, usize)>,
    reads: HashMap<u64, PrefetchedRead>,
    /// The next read's number.
    next: u64,
    /// Bytes of all tiles that were asked for and not taken yet.
    under_way: u64,
}

/// Tiles that were asked for together.
#[derive(Debug)]
struct PrefetchedRead {
    pending: Option<PendingRead>,
    arrived: Vec<Bytes>,
    /// How many were not taken yet.
    left: usize,
    /// Bytes of those that were not taken yet.
    bytes: u64,
}

impl Prefetch {
    /// Asks for tiles that were not asked for yet, in their order, as long as no more than `room`
    /// bytes are under way or wait to be taken: false if not all of them had room. What is wrong
    /// with a tile's metadata is said to whoever needs the tile.
    pub(super) fn start(&self, array: &Array, tiles: &[StoredTile], room: u64) -> bool {
        let mut state = self.state();
        let state = &mut *state;
        let number = state.next;
        let (mut requests, mut bytes, mut all) = (Vec::new(), 0u64, true);
        for tile in tiles {
            let Entry::Vacant(place) = state.places.entry(*tile) else {
                continue;
            };
            let (Ok(len), Ok(request)) = (tile.len(array), tile.request(array)) else {
                continue;
            };
            let sum = bytes.saturating_add(len);
            if state.under_way.saturating_add(sum) > room {
                all = false;
                break;
            }
            if len > 0 {
                place.insert((number, requests.len()));
                bytes = sum;
                requests.push(request);
            }
        }
        if requests.is_empty() {
            return all;
        }
        state.next += 1;
        state.under_way += bytes;
        let left = requests.len();
        let pending = Some(array.location().storage.start_read(requests));
        let read = PrefetchedRead {
            pending,
            arrived: Vec::new(),
            left,
            bytes,
        };
        state.reads.insert(number, read);
        all
    }

    /// Whether a tile was asked for and not taken yet.
    pub(super) fn has(&self, tile: &StoredTile) -> bool {
        self.state().places.contains_key(tile)
    }

    /// The bytes of a tile that [was asked for](Self::has), once they are there.
    pub(super) async fn take(&self, tile: &StoredTile) -> Result<Bytes> {
        let gone = || Error::Internal("a tile that was not prefetched".into());
        let (number, place) = self.state().places.remove(tile).ok_or_else(gone)?;
        let pending = self
            .state()
            .reads
            .get_mut(&number)
            .map(|read| read.pending.take());
        // No lock is held meanwhile.
        let arrived = match pending.ok_or_else(gone)? {
            Some(pending) => Some(pending.await),
            None => None,
        };
        let mut state = self.state();
        let state = &mut *state;
        let read = state.reads.get_mut(&number).ok_or_else(gone)?;
        match arrived {
            Some(Ok(arrived)) => read.arrived = arrived,
            Some(Err(error)) => {
                // The others of this read are asked for again by whoever needs them.
                state.under_way -= read.bytes;
                state.reads.remove(&number);
                state.places.retain(|_, (of, _)| *of != number);
                return Err(short_read_is_corrupt(error));
            }
            None => {}
        }
        let bytes = read
            .arrived
            .get_mut(place)
            .map(std::mem::take)
            .ok_or_else(gone)?;
        let len = bytes.len() as u64;
        read.left -= 1;
        read.bytes = read.bytes.saturating_sub(len);
        state.under_way = state.under_way.saturating_sub(len);
        if read.left == 0 {
            state.reads.remove(&number);
        }
        Ok(bytes)
    }

    fn state(&self) -> MutexGuard<'_, PrefetchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What must hold in every order.
#![allow(missing_docs, reason = "the names say it")]

use crate::array::{Array, Location, Store};
use crate::beats::Beats;
use crate::block_on::block_on;
use crate::buffer_pool::BufferPool;
use crate::cancel::CancelHandle;
use crate::column::Tile;
use crate::error::Error;
use crate::pending::Pending;
use crate::prefetch::Prefetch;
use crate::side_by_side::side_by_side;
use crate::stored_tile::StoredTile;
use crate::tile_cache::{TileCache, TileRoom};
use bytes::Bytes;
use shuttle::scheduler::{DfsScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::thread;
use std::sync::Arc;
use std::time::Duration;

/// Orders that are tried where there are more.
const MOST: usize = 200_000;
/// Orders that a seed decides.
const RANDOM: usize = 30_000;

/// Tries every order, or the first [`MOST`] and others at random.
fn in_every_order(name: &str, model: impl Fn() + Send + Sync + 'static) {
    let model = Arc::new(model);
    let again = Arc::clone(&model);
    let scheduler = DfsScheduler::new(Some(MOST), false);
    let tried = shuttle::Runner::new(scheduler, shuttle::Config::new()).run(move || model());
    if tried < MOST {
        println!("{name}: all {tried} orders");
    } else {
        let more = at_random(move || again());
        println!("{name}: the first {tried} orders, {more} at random");
    }
}

fn at_random(model: impl Fn() + Send + Sync + 'static) -> usize {
    let scheduler = RandomScheduler::new_from_seed(20, RANDOM);
    shuttle::Runner::new(scheduler, shuttle::Config::new()).run(model)
}

/// Counts how often it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn count() -> Arc<AtomicUsize> {
    Arc::new(AtomicUsize::new(0))
}

pub fn an_answer_reaches_who_waits() {
    in_every_order("an answer", || {
        let (answer, pending) = Pending::channel();
        let guards = count();
        let pending = pending.with_guard(Counted(Arc::clone(&guards)));
        let other = thread::spawn(move || {
            assert!(answer.is_wanted());
            answer.send(Ok(7));
        });
        assert_eq!(pending.then(|n| Ok(n? + 1)).wait(), Ok(8));
        assert_eq!(guards.load(SeqCst), 1);
        other.join().unwrap();
    });
}

pub fn an_answer_that_never_comes_is_an_error() {
    in_every_order("no answer", || {
        let (answer, pending) = Pending::<()>::channel();
        let other = thread::spawn(move || drop(answer));
        assert!(matches!(pending.wait(), Err(Error::Internal(_))));
        other.join().unwrap();
    });
}

pub fn an_answer_that_nobody_wants_is_dropped_once() {
    in_every_order("an answer that nobody wants", || {
        let dropped = count();
        let (answer, pending) = Pending::channel();
        let result = Counted(Arc::clone(&dropped));
        let other = thread::spawn(move || {
            let wanted = answer.is_wanted();
            assert!(wanted || !answer.is_wanted());
            answer.send(Ok(result));
        });
        drop(pending);
        other.join().unwrap();
        assert_eq!(dropped.load(SeqCst), 1);
    });
}

/// What waits for cancellation as requests to object stores do, and does not look by itself.
fn wait_for_the_end(handle: &CancelHandle, stopped: &Arc<AtomicUsize>) -> impl FnOnce() + use<> {
    let (begun, stopped) = (handle.begin(), Arc::clone(stopped));
    move || {
        let (answer, moment) = Pending::<()>::channel();
        let told = begun.on_cancel(move || {
            stopped.fetch_add(1, SeqCst);
            drop(answer);
        });
        assert!(moment.wait().is_err());
        assert_eq!(begun.check(), Err(Error::Cancelled));
        drop(told);
    }
}

pub fn what_was_begun_before_is_cancelled() {
    in_every_order("cancelled", || {
        let (handle, stopped) = (CancelHandle::default(), count());
        let waiting = thread::spawn(wait_for_the_end(&handle, &stopped));
        handle.cancel();
        waiting.join().unwrap();
        assert_eq!(stopped.load(SeqCst), 1);
        assert_eq!(handle.begin().check(), Ok(()));
    });
}

pub fn a_part_and_its_whole_are_cancelled_at_once() {
    in_every_order("cancelled by two", || {
        let (whole, stopped) = (CancelHandle::default(), count());
        let part = whole.part();
        let waiting = thread::spawn(wait_for_the_end(&part, &stopped));
        let other = thread::spawn(move || whole.cancel());
        part.cancel();
        other.join().unwrap();
        waiting.join().unwrap();
        assert_eq!(stopped.load(SeqCst), 1);
    });
}

pub fn one_operation_is_cancelled_and_not_those_beside_it() {
    in_every_order("cancelled alone", || {
        let (handle, stopped) = (CancelHandle::default(), count());
        let (one, other) = (handle.begin(), handle.begin());
        let (own, stops) = (one.handle(), Arc::clone(&stopped));
        let waiting = thread::spawn(move || {
            let (answer, moment) = Pending::<()>::channel();
            let told = one.on_cancel(move || drop(answer));
            assert!(moment.wait().is_err());
            drop(told);
        });
        let told = other.on_cancel(move || {
            stops.fetch_add(1, SeqCst);
        });
        own.cancel();
        waiting.join().unwrap();
        drop(told);
        assert_eq!(other.check(), Ok(()));
        assert_eq!(stopped.load(SeqCst), 0);
    });
}

pub fn who_goes_while_it_is_cancelled_is_told_once_or_never() {
    in_every_order("cancelled while it goes", || {
        let (handle, stopped, gone) = (CancelHandle::default(), count(), count());
        let (stops, held) = (Arc::clone(&stopped), Counted(Arc::clone(&gone)));
        let begun = handle.begin();
        let told = begun.on_cancel(move || {
            let _held = held;
            stops.fetch_add(1, SeqCst);
        });
        let other = handle.clone();
        let canceller = thread::spawn(move || other.cancel());
        drop(told);
        canceller.join().unwrap();
        assert!(stopped.load(SeqCst) <= 1);
        assert_eq!(gone.load(SeqCst), 1);
    });
}

pub fn a_tile_cache_keeps_to_its_limit() {
    in_every_order("the tile cache", || {
        let cache = Arc::new(TileRoom::default().cache(100));
        // A tile has as many bytes as its key says.
        let key = |bytes: u64| (0, 0, bytes);
        let use_tiles = |cache: Arc<TileCache>, tiles: [u64; 2]| {
            move || {
                for bytes in tiles {
                    match cache.get(&key(bytes)) {
                        Some(tile) => assert_eq!(tile.0 as u64, bytes),
                        None => {
                            cache.touch(key(bytes));
                            cache.put(key(bytes), &Arc::new(Tile(bytes as usize)), u64::MAX);
                        }
                    }
                }
            }
        };
        let others =
            [[60, 30], [60, 70]].map(|tiles| thread::spawn(use_tiles(Arc::clone(&cache), tiles)));
        for other in others {
            other.join().unwrap();
        }
        let kept: u64 = [30, 60, 70]
            .into_iter()
            .filter(|bytes| cache.get(&key(*bytes)).is_some())
            .sum();
        assert!(0 < kept && kept <= 100, "{kept}");
        // Its count of bytes is right: what fits, with all others gone, is kept.
        cache.put(key(100), &Arc::new(Tile(100)), u64::MAX);
        assert!(cache.get(&key(100)).is_some());
    });
}

pub fn a_buffer_has_one_owner() {
    in_every_order("the pool of buffers", || {
        const LEN: usize = 32 * 1024;
        // Room for one.
        let pool = BufferPool::new(LEN);
        let work = |number: u8| {
            let pool = pool.clone();
            move || {
                for _ in 0..2 {
                    let mut buffer = pool.take(LEN);
                    buffer[LEN - 1] = number;
                    thread::yield_now();
                    assert_eq!(buffer[LEN - 1], number);
                }
            }
        };
        let others = [1, 2].map(|number| thread::spawn(work(number)));
        for other in others {
            other.join().unwrap();
        }
        // What is kept is not zeros, what is new is.
        let left = [pool.take(LEN), pool.take(LEN), pool.take(LEN)];
        let kept = left.iter().filter(|buffer| buffer[LEN - 1] != 0).count();
        assert_eq!(kept, 1);
    });
}

/// An array whose reads are answered by threads: each of these with its tiles' bytes, or not.
fn answered(well: bool) -> Array {
    let storage = Store(Box::new(move |tiles| {
        let (answer, pending) = Pending::channel();
        thread::spawn(move || {
            let bytes = |len: u64| Bytes::from(vec![len as u8; len as usize]);
            match well {
                true => answer.send(Ok(tiles.into_iter().map(bytes).collect())),
                false => answer.send(Err(Error::InvalidArgument("no such object".into()))),
            }
        });
        pending
    }));
    Array(Location { storage })
}

pub fn prefetched_tiles_arrive() {
    in_every_order("prefetched tiles", || {
        let (array, prefetch) = (answered(true), Prefetch::default());
        let tiles = [1, 2, 3].map(StoredTile);
        prefetch.start(&array, &tiles, 3);
        assert!(prefetch.has(&tiles[1]) && !prefetch.has(&tiles[2]));
        // One more was under way: no room.
        prefetch.start(&array, &tiles[2..], 5);
        assert!(!prefetch.has(&tiles[2]));
        prefetch.start(&array, &tiles, 6);
        for tile in [1, 0, 2].map(|i| tiles[i]) {
            let bytes = block_on(prefetch.take(&tile)).unwrap();
            assert_eq!(bytes.len() as u64, tile.0);
        }
        // Nothing is under way any more.
        prefetch.start(&array, &tiles, 6);
        assert!(tiles.iter().all(|tile| prefetch.has(tile)));
    });
}

pub fn a_failed_read_is_asked_for_again() {
    in_every_order("prefetched tiles that do not come", || {
        let (array, prefetch) = (answered(false), Prefetch::default());
        let tiles = [1, 2].map(StoredTile);
        prefetch.start(&array, &tiles, 3);
        assert!(block_on(prefetch.take(&tiles[0])).is_err());
        assert!(!prefetch.has(&tiles[1]));
        prefetch.start(&answered(true), &tiles, 3);
        for tile in &tiles {
            assert!(block_on(prefetch.take(tile)).is_ok());
        }
    });
}

pub fn nothing_beats_behind_its_end() {
    let tried = at_random(|| {
        let (beats, ended) = (count(), count());
        let (beaten, over) = (Arc::clone(&beats), Arc::clone(&ended));
        let beating = Beats::start(Duration::from_secs(5), move || {
            assert_eq!(over.load(SeqCst), 0);
            beaten.fetch_add(1, SeqCst);
        });
        thread::yield_now();
        drop(beating);
        ended.store(1, SeqCst);
        let then = beats.load(SeqCst);
        thread::yield_now();
        assert_eq!(beats.load(SeqCst), then);
    });
    println!("the renewal of claims: {tried} orders at random");
}

pub fn all_is_done_once_side_by_side() {
    in_every_order("calls side by side", || {
        let done = count();
        let add = |i: usize| {
            done.fetch_add(i, SeqCst);
            Ok(())
        };
        side_by_side(vec![1, 10, 100], 2, add).unwrap();
        assert_eq!(done.load(SeqCst), 111);
    });
}

pub fn an_error_ends_what_is_side_by_side() {
    in_every_order("calls side by side that fail", || {
        let begun = count();
        let fail = |_: usize| {
            begun.fetch_add(1, SeqCst);
            Err(Error::Cancelled)
        };
        let failed = side_by_side(vec![1, 2, 3, 4], 2, fail);
        assert_eq!(failed, Err(Error::Cancelled));
        assert!((1..=2).contains(&begun.load(SeqCst)));
    });
}

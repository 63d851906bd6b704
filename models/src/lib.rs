//! Models of what the engine's threads share.
//!
//! The files are the engine's own. What they wait and share with (`crate::sync`) is Shuttle's here:
//! one thread runs at a time, and which one goes on at each lock, wait and atomic is tried in every
//! way, or as a seed decides where there are too many. Who waits for ever is found, too. What these
//! files need of the rest of the engine stands below, as little as they use of it.
//!
//! All of them use locks, and atomics in the order of sequential consistency: no weaker order is
//! left out.
#![allow(dead_code, reason = "models use parts of what they include")]

mod sync {
    pub(crate) use shuttle::sync::atomic::{AtomicU64, Ordering};
    pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
    use std::sync::LockResult;
    use std::time::Duration;

    /// Threads, with what Shuttle has no name for.
    pub(crate) mod thread {
        pub(crate) use shuttle::thread::{JoinHandle, Scope, ScopedJoinHandle, scope};
        use std::io;
        use std::sync::Arc;

        /// A thread that can be woken. Who parks is woken by that alone: Shuttle's own threads wake
        /// for no reason too, again and again, so that there is no end to the orders to be tried.
        #[derive(Clone, Default)]
        pub(crate) struct Thread(Arc<(shuttle::sync::Mutex<bool>, shuttle::sync::Condvar)>);

        shuttle::thread_local! {
            static CURRENT: Thread = Thread::default();
        }

        pub(crate) fn current() -> Thread {
            CURRENT.with(Clone::clone)
        }

        pub(crate) fn park() {
            let thread = current();
            let (is_woken, wakes) = &*thread.0;
            let is_woken = is_woken.lock().expect("no thread has panicked");
            let mut is_woken = wakes
                .wait_while(is_woken, |is_woken| !*is_woken)
                .expect("no thread has panicked");
            *is_woken = false;
        }

        impl Thread {
            pub(crate) fn unpark(&self) {
                let (is_woken, wakes) = &*self.0;
                *is_woken.lock().expect("no thread has panicked") = true;
                wakes.notify_one();
            }
        }

        pub(crate) struct Builder(shuttle::thread::Builder);

        impl Builder {
            pub(crate) fn new() -> Self {
                Self(shuttle::thread::Builder::new())
            }

            pub(crate) fn name(self, name: String) -> Self {
                Self(self.0.name(name))
            }

            pub(crate) fn spawn<T: Send + 'static>(
                self,
                work: impl FnOnce() -> T + Send + 'static,
            ) -> io::Result<JoinHandle<T>> {
                self.0.spawn(work)
            }

            pub(crate) fn spawn_scoped<'scope, T: Send + 'scope>(
                self,
                scope: &'scope Scope<'scope, '_>,
                work: impl FnOnce() -> T + Send + 'scope,
            ) -> io::Result<ScopedJoinHandle<'scope, T>> {
                Ok(scope.spawn(work))
            }
        }

        pub(crate) fn available_parallelism() -> io::Result<std::num::NonZero<usize>> {
            std::thread::available_parallelism()
        }
    }

    /// A condition whose time may be over whenever it is waited for.
    #[derive(Debug, Default)]
    pub(crate) struct Condvar(shuttle::sync::Condvar);

    impl Condvar {
        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }

        pub(crate) fn wait_timeout_while<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            _time: Duration,
            mut waits: impl FnMut(&mut T) -> bool,
        ) -> LockResult<(MutexGuard<'a, T>, bool)> {
            use shuttle::rand::Rng;
            while waits(&mut guard) {
                if shuttle::rand::thread_rng().gen_bool(0.5) {
                    return Ok((guard, true));
                }
                guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
            Ok((guard, false))
        }
    }
}

mod error {
    /// As much of the engine's errors as is needed.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum Error {
        Internal(String),
        Cancelled,
        InvalidArgument(String),
    }

    pub type Result<T> = std::result::Result<T, Error>;
}

mod platform {
    use std::time::Duration;

    pub(crate) struct Stopwatch;

    impl Stopwatch {
        pub(crate) fn start() -> Self {
            Self
        }

        pub(crate) fn elapsed(self) -> Duration {
            Duration::ZERO
        }
    }

    pub(crate) fn process_id() -> u32 {
        1
    }
}

mod large_pages {
    pub(crate) fn zeroed(len: usize) -> Vec<u8> {
        vec![0; len]
    }
}

mod column {
    /// A tile of so many bytes.
    #[derive(Debug)]
    pub(crate) struct Tile(pub(crate) usize);

    impl Tile {
        pub(crate) fn reserved(&self) -> usize {
            self.0
        }
    }
}

// A name of the format crate.
extern crate self as azulejo_format;
pub mod fragment {
    pub type Field = usize;
}

mod array {
    use crate::error::Error;
    use crate::pending::PendingRead;

    /// An array that answers when a model lets it.
    #[derive(Debug)]
    pub(crate) struct Array(pub(crate) Location);

    #[derive(Debug)]
    pub(crate) struct Location {
        pub(crate) storage: Store,
    }

    /// Asks for tiles.
    pub(crate) struct Store(pub(crate) Box<dyn Fn(Vec<u64>) -> PendingRead + Send + Sync>);

    impl std::fmt::Debug for Store {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Store")
        }
    }

    impl Store {
        pub(crate) fn start_read(&self, requests: Vec<u64>) -> PendingRead {
            (self.0)(requests)
        }
    }

    impl Array {
        pub(crate) fn location(&self) -> &Location {
            &self.0
        }
    }

    pub(crate) fn short_read_is_corrupt(error: Error) -> Error {
        error
    }
}

mod io_stats {
    #[derive(Debug, Clone)]
    pub struct IoStats;

    impl IoStats {
        pub(crate) fn add_waited(&self, _: std::time::Duration) {}
    }
}

mod request {
    #[derive(Debug)]
    pub struct Entry;
    #[derive(Debug)]
    pub struct Tail;
}

mod storage {
    pub(crate) use crate::pending::PendingRead;
}

mod stored_tile {
    use crate::array::Array;
    use crate::error::Result;

    /// A tile of so many bytes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub(crate) struct StoredTile(pub(crate) u64);

    impl StoredTile {
        #[allow(clippy::unnecessary_wraps, clippy::len_without_is_empty)]
        pub(crate) fn len(&self, _: &Array) -> Result<u64> {
            Ok(self.0)
        }

        #[allow(clippy::unnecessary_wraps)]
        pub(crate) fn request(&self, _: &Array) -> Result<u64> {
            Ok(self.0)
        }
    }
}

#[path = "../../azulejo/src/array/lock/claim/beats.rs"]
mod beats;
#[path = "../../azulejo/src/storage/block_on.rs"]
mod block_on;
#[path = "../../azulejo/src/buffer_pool.rs"]
mod buffer_pool;
#[path = "../../azulejo/src/cancel.rs"]
mod cancel;
#[path = "../../azulejo/src/storage/pending.rs"]
mod pending;
#[path = "../../azulejo/src/read/prefetch.rs"]
mod prefetch;
#[path = "../../azulejo/src/storage/local/side_by_side.rs"]
mod side_by_side;
#[path = "../../azulejo/src/tile_cache.rs"]
mod tile_cache;

pub mod models;

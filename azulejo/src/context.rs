//! What queries share: settings, storages, the compute pool, the encryption key.

mod compute_pool;

use crate::buffer_pool::BufferPool;
use crate::cancel::{CancelHandle, Operation};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::on_behalf::{self, on_nobodys_behalf};
use crate::storage::{IoCounts, LocalStorage, MemoryStorage, Storage, StorePath, Stores, Uri};
use crate::tile_cache::{TileCache, TileRoom};
use azulejo_format::filter::EncryptionKey;
use compute_pool::ComputePool;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Settings and resources of a family of queries; cheap to clone.
#[derive(Debug, Clone)]
pub struct Context {
    inner: Arc<ContextInner>,
    observer: Observer,
}

/// How far a long piece of work has come: consolidation, vacuum, check, copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// What is counted: `cells`, `fragments`, `files`.
    pub unit: &'static str,
    /// How many are done.
    pub done: u64,
    /// How many there are; what is found on the way may make them more.
    pub total: u64,
}

/// Who is told of progress.
#[derive(Clone, Default)]
struct Observer(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Observer" } else { "none" })
    }
}

#[derive(Debug)]
struct ContextInner {
    config: Config,
    key: Option<EncryptionKey>,
    stores: Stores,
    pool: Arc<ComputePool>,
    buffers: BufferPool,
    decoded: TileRoom,
    unanswered: Arc<Mutex<HashSet<String>>>,
}

/// An object or folder, and the storage that keeps it.
#[derive(Debug, Clone)]
pub struct Location {
    /// The storage.
    pub storage: Arc<dyn Storage>,
    /// The path in it.
    pub path: StorePath,
}

impl Location {
    /// What lies there under a relative path.
    #[must_use]
    pub fn join(&self, relative: &str) -> Self {
        Self {
            storage: Arc::clone(&self.storage),
            path: self.path.join(relative),
        }
    }
}

impl Context {
    /// A context with the given settings and, for encrypted arrays, a key.
    pub fn new(config: Config, key: Option<EncryptionKey>) -> Result<Self> {
        let local = LocalStorage::with_gap(config.coalesce_gap);
        Self::with_storages(config, key, Arc::new(local), Arc::new(MemoryStorage::new()))
    }

    /// A context whose `file://` and `mem://` URIs go to the given storages (tests wrap them to
    /// count requests or fail).
    pub fn with_storages(
        config: Config,
        key: Option<EncryptionKey>,
        local: Arc<dyn Storage>,
        memory: Arc<dyn Storage>,
    ) -> Result<Self> {
        let pool = Arc::new(ComputePool::new(config.threads)?);
        Ok(Self::on(pool, config, key, local, memory))
    }

    fn on(
        pool: Arc<ComputePool>,
        config: Config,
        key: Option<EncryptionKey>,
        local: Arc<dyn Storage>,
        memory: Arc<dyn Storage>,
    ) -> Self {
        let buffers = BufferPool::of_context(config.memory_budget);
        let stores = Stores::new(local, memory, config.tile_cache);
        let inner = Arc::new(ContextInner {
            config,
            key,
            stores,
            pool,
            buffers,
            decoded: TileRoom::default(),
            unanswered: Arc::default(),
        });
        Self {
            inner,
            observer: Observer::default(),
        }
    }

    /// A context with settings, storages and caches of its own, on the threads of this one: how many
    /// the settings ask for is passed by.
    ///
    /// ```
    /// use azulejo::format::ArraySchema;
    /// use azulejo::{Config, Context};
    ///
    /// let first = Context::new(Config::default(), None)?;
    /// let other = first.beside(Config::default(), None);
    /// let new = ArraySchema::sparse().dimension("x", 0i32..=9, 10).build()?;
    /// other.array("mem://a").create(new)?;
    /// assert!(other.array("mem://a").open().is_ok());
    /// assert!(first.array("mem://a").open().is_err());
    /// assert_eq!(other.threads(), first.threads());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn beside(&self, config: Config, key: Option<EncryptionKey>) -> Self {
        let local = Arc::new(LocalStorage::with_gap(config.coalesce_gap));
        let (pool, memory) = (Arc::clone(&self.inner.pool), Arc::new(MemoryStorage::new()));
        Self::on(pool, config, key, local, memory)
    }

    /// The same context, whose long pieces of work tell `observer` how far they have come, from the
    /// thread that does them. It should return soon: the work waits for it.
    #[must_use]
    pub fn observed(&self, observer: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            observer: Observer(Some(Arc::new(observer))),
        }
    }

    /// Tells whoever wants to know how far the work has come.
    pub(crate) fn report(&self, unit: &'static str, done: u64, total: u64) {
        if let Some(observer) = &self.observer.0 {
            on_nobodys_behalf(|| observer(Progress { unit, done, total }));
        }
    }

    /// The same storages and threads with other settings, of which the number of threads is passed
    /// by, and another key.
    #[must_use]
    pub fn derive(&self, config: Config, key: Option<EncryptionKey>) -> Self {
        let same_settings = config.store == self.inner.config.store;
        let stores = (self.inner.stores).with_cache(config.tile_cache, same_settings);
        let idle = config.memory_budget;
        self.with(stores, config, key, idle)
    }

    /// The same context, which keeps idle buffers as one with a memory budget of `budget` bytes
    /// does.
    pub(crate) fn within(&self, budget: u64) -> Self {
        let ContextInner {
            config,
            key,
            stores,
            ..
        } = &*self.inner;
        let idle = budget.min(config.memory_budget);
        self.with(stores.clone(), config.clone(), key.clone(), idle)
    }

    /// The same context, where a storage of the caller's stands in for a bucket, container or web
    /// server.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `root` is no URI of an object store.
    pub fn with_storage_at(&self, root: &Uri, storage: Arc<dyn Storage>) -> Result<Self> {
        match self.inner.stores.with(root.path(), storage) {
            Some(stores) => Ok(self.with_stores(stores)),
            None => Err(Error::InvalidArgument(format!(
                "{root}: no URI of an object store"
            ))),
        }
    }

    /// The same context, where `mem://` is another storage: several that know nothing of one
    /// another's data share threads.
    #[must_use]
    pub fn with_memory(&self, memory: Arc<dyn Storage>) -> Self {
        self.with_stores(self.inner.stores.with_memory(memory))
    }

    /// The same context, where URIs with a scheme of the caller's name what lies in a storage of
    /// the caller's. What follows `scheme://` is the path there.
    ///
    /// ```
    /// use azulejo::format::ArraySchema;
    /// use azulejo::storage::MemoryStorage;
    /// use azulejo::{Config, Context};
    /// use std::sync::Arc;
    ///
    /// // Any `Storage` does; see `examples/storage.rs` for one from scratch.
    /// let storage = Arc::new(MemoryStorage::new());
    /// let context = Context::new(Config::default(), None)?.with_scheme("vault", storage)?;
    /// let new = ArraySchema::sparse().dimension("x", 0i32..=9, 10).build()?;
    /// let place = context.array("vault://some/array");
    /// place.create(new)?;
    /// assert_eq!(place.open()?.schema().domain.ndim(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `scheme` is no scheme (letters, digits, `+`, `-`, `.`; the
    /// first of at least two a letter), or one that the crate knows.
    pub fn with_scheme(&self, scheme: &str, storage: Arc<dyn Storage>) -> Result<Self> {
        match Uri::parse(&format!("{scheme}://x")) {
            Ok(Uri::Custom(path)) => {
                let scheme = path.custom_scheme().unwrap_or_default();
                Ok(self.with_stores(self.inner.stores.with_scheme(scheme, storage)))
            }
            _ => Err(Error::InvalidArgument(format!(
                "{scheme:?} is not a scheme that can be given to a storage"
            ))),
        }
    }

    /// The same context with other storages.
    fn with_stores(&self, stores: Stores) -> Self {
        let ContextInner { config, key, .. } = &*self.inner;
        self.with(stores, config.clone(), key.clone(), config.memory_budget)
    }

    /// A context on the same threads and with the same observer, which keeps idle buffers as one
    /// with a memory budget of `idle` bytes does.
    fn with(&self, stores: Stores, config: Config, key: Option<EncryptionKey>, idle: u64) -> Self {
        let inner = Arc::new(ContextInner {
            config,
            key,
            stores,
            pool: Arc::clone(&self.inner.pool),
            buffers: BufferPool::of_context(idle),
            decoded: self.inner.decoded.clone(),
            unanswered: Arc::clone(&self.inner.unanswered),
        });
        Self {
            inner,
            observer: self.observer.clone(),
        }
    }

    /// The requests made of object stores through this context and those derived from it, their
    /// bytes, and the time that threads have waited for them. Files and memory are not counted.
    #[must_use]
    pub fn io_stats(&self) -> IoCounts {
        self.inner.stores.stats().counts()
    }

    /// Cancels what is under way in this context and those derived from it, from any thread.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        self.inner.stores.cancel_handle().clone()
    }

    /// The same context, whose work can be cancelled without that of others:
    /// [`Self::cancel_handle`] of the result ends what is under way through the result, and that of
    /// `self` both.
    #[must_use]
    pub fn cancellable(&self) -> Self {
        let ContextInner {
            config,
            key,
            stores,
            pool,
            buffers,
            decoded,
            unanswered,
        } = &*self.inner;
        let inner = Arc::new(ContextInner {
            config: config.clone(),
            key: key.clone(),
            stores: stores.cancellable(),
            pool: Arc::clone(pool),
            buffers: buffers.clone(),
            decoded: decoded.clone(),
            unanswered: Arc::clone(unanswered),
        });
        Self {
            inner,
            observer: self.observer.clone(),
        }
    }

    /// Marks the beginning of a piece of work that can be cancelled; what this thread works for, if
    /// this context cancels that: work that is a part of other work began with it.
    pub(crate) fn begin(&self) -> Operation {
        let handle = self.inner.stores.cancel_handle();
        let is_part = |operation: &Operation| operation.ends_with(handle);
        on_behalf::current()
            .filter(is_part)
            .unwrap_or_else(|| handle.begin())
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// The encryption key, if one was given.
    #[must_use]
    pub fn key(&self) -> Option<&EncryptionKey> {
        self.inner.key.as_ref()
    }

    /// Which storage keeps a URI, and under which path.
    pub fn locate(&self, uri: &Uri) -> Result<Location> {
        let storage = self.inner.stores.find(uri, &self.inner.config.store)?;
        Ok(Location {
            storage,
            path: uri.path().clone(),
        })
    }

    /// Memory that queries reuse; at most an eighth of the memory budget lies idle in it, and never
    /// much.
    #[must_use]
    pub fn buffers(&self) -> &BufferPool {
        &self.inner.buffers
    }

    /// Fragments whose commit was sent over a network and not answered, through this context and those
    /// derived from it, by their names, which no two have. It may arrive later, and then they must be
    /// there.
    pub(crate) fn unanswered(&self) -> MutexGuard<'_, HashSet<String>> {
        let unanswered = self.inner.unanswered.lock();
        unanswered.unwrap_or_else(PoisonError::into_inner)
    }

    /// Threads for CPU work.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.inner.pool.len()
    }

    /// The decoded tiles that an open array keeps, which share room with those of others.
    pub(crate) fn decoded_cache(&self) -> TileCache {
        let config = &self.inner.config;
        let limit = config.decoded_cache.min(config.memory_budget / 16);
        self.inner.decoded.cache(limit)
    }

    /// Runs CPU work on the context's threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.inner.pool.install(work)
    }
}

//! Which storage keeps a URI: those of a context, made when they are asked for first.

use super::cache::{ByteCache, CachedStorage};
use super::{IoStats, ObjectScheme, Storage, StorePath, StoreSettings, Uri};
use crate::cancel::CancelHandle;
use crate::error::{Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A bucket and the settings with which it is looked at.
type Key = (ObjectScheme, String, StoreSettings);

/// The storages of a context. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Stores {
    local: Arc<dyn Storage>,
    memory: Arc<dyn Storage>,
    objects: Arc<Mutex<HashMap<Key, Connection>>>,
    /// What was found before: who asks for two paths of a bucket gets one storage, by which it knows
    /// that objects can be copied there.
    found: Arc<Mutex<HashMap<Key, Arc<dyn Storage>>>>,
    /// Storages that a caller has put in place of buckets, whatever the settings.
    mounted: Arc<HashMap<(ObjectScheme, String), Arc<dyn Storage>>>,
    /// Storages that a caller has given schemes.
    custom: Arc<HashMap<String, Arc<dyn Storage>>>,
    stats: IoStats,
    cache: Arc<ByteCache>,
    cancel: CancelHandle,
}

impl Stores {
    /// `tile_cache`: bytes of object stores that are kept.
    pub(crate) fn new(local: Arc<dyn Storage>, memory: Arc<dyn Storage>, tile_cache: u64) -> Self {
        let (objects, mounted, stats) = (Arc::default(), Arc::default(), IoStats::new());
        let cache = Arc::new(ByteCache::new(tile_cache, &stats));
        Self {
            local,
            memory,
            objects,
            found: Arc::default(),
            mounted,
            custom: Arc::default(),
            stats,
            cache,
            cancel: CancelHandle::default(),
        }
    }

    /// The same storages; the cache too, unless another size is asked for, or buckets are looked at
    /// with other settings: by these, a name may mean another bucket.
    pub(crate) fn with_cache(&self, tile_cache: u64, same_settings: bool) -> Self {
        let mut stores = self.clone();
        if self.cache.limit() != tile_cache || !same_settings {
            stores.cache = Arc::new(ByteCache::new(tile_cache, &self.stats));
            stores.found = Arc::default();
        }
        stores
    }

    /// The same storages, and another one for a bucket.
    pub(crate) fn with(&self, root: &StorePath, storage: Arc<dyn Storage>) -> Option<Self> {
        let (scheme, authority, _) = root.object_parts()?;
        let mut mounted = (*self.mounted).clone();
        mounted.insert((scheme, authority.to_owned()), storage);
        Some(Self {
            mounted: Arc::new(mounted),
            found: Arc::default(),
            ..self.clone()
        })
    }

    /// The same storages, and another one for what lies in memory.
    pub(crate) fn with_memory(&self, memory: Arc<dyn Storage>) -> Self {
        Self {
            memory,
            ..self.clone()
        }
    }

    /// The same storages, and another one for a scheme.
    pub(crate) fn with_scheme(&self, scheme: &str, storage: Arc<dyn Storage>) -> Self {
        let mut custom = (*self.custom).clone();
        custom.insert(scheme.to_owned(), storage);
        Self {
            custom: Arc::new(custom),
            ..self.clone()
        }
    }

    /// The same storages, in which what is under way can be cancelled alone.
    pub(crate) fn cancellable(&self) -> Self {
        Self {
            cancel: self.cancel.part(),
            found: Arc::default(),
            ..self.clone()
        }
    }

    /// Requests made of object stores.
    pub(crate) fn stats(&self) -> &IoStats {
        &self.stats
    }

    /// Ends what is under way in these storages.
    pub(crate) fn cancel_handle(&self) -> &CancelHandle {
        &self.cancel
    }

    pub(crate) fn find(&self, uri: &Uri, settings: &StoreSettings) -> Result<Arc<dyn Storage>> {
        match uri {
            Uri::Local(_) => Ok(Arc::clone(&self.local)),
            Uri::Memory(_) => Ok(Arc::clone(&self.memory)),
            Uri::Custom(path) => self.custom(path),
            Uri::Object(path) => self.object(path, settings),
        }
    }

    fn custom(&self, path: &StorePath) -> Result<Arc<dyn Storage>> {
        let scheme = path.custom_scheme().unwrap_or_default();
        self.custom.get(scheme).map(Arc::clone).ok_or_else(|| {
            Error::Unsupported(format!(
                "{path}: unknown scheme {scheme}://; a path, file://, mem://, s3://, gs://, azure:// and http:// are \
                 supported"
            ))
        })
    }

    fn object(&self, path: &StorePath, settings: &StoreSettings) -> Result<Arc<dyn Storage>> {
        let Some((scheme, authority, _)) = path.object_parts() else {
            return Ok(Arc::clone(&self.local));
        };
        let key = (scheme, authority.to_owned(), settings.clone());
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(storage) = found.get(&key) {
            return Ok(Arc::clone(storage));
        }
        let storage = self.connected(path, &key)?;
        let storage = match self.cache.limit() {
            0 => storage,
            _ => Arc::new(CachedStorage::new(storage, &self.cache)),
        };
        found.insert(key, Arc::clone(&storage));
        Ok(storage)
    }

    fn connected(&self, path: &StorePath, key: &Key) -> Result<Arc<dyn Storage>> {
        let place = (key.0, key.1.clone());
        if let Some(storage) = self.mounted.get(&place) {
            return Ok(Arc::clone(storage));
        }
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connected) = objects.get(key) {
            return Ok(storage(connected, &self.cancel));
        }
        let connected = connect(path, &key.2, &self.stats)?;
        let storage = storage(&connected, &self.cancel);
        objects.insert(key.clone(), connected);
        Ok(storage)
    }
}

/// A connection, which many use.
#[cfg(feature = "object-store")]
type Connection = super::ObjectStorage;

/// There are none.
#[cfg(not(feature = "object-store"))]
type Connection = std::convert::Infallible;

#[cfg(feature = "object-store")]
fn connect(path: &StorePath, settings: &StoreSettings, stats: &IoStats) -> Result<Connection> {
    super::ObjectStorage::connect(path, settings, stats)
}

/// What lies behind a connection; who waits for it stops when `cancel` cancels.
#[cfg(feature = "object-store")]
fn storage(connected: &Connection, cancel: &CancelHandle) -> Arc<dyn Storage> {
    Arc::new(connected.clone().cancelled_by(cancel))
}

#[cfg(not(feature = "object-store"))]
fn connect(path: &StorePath, _settings: &StoreSettings, _stats: &IoStats) -> Result<Connection> {
    let scheme = path
        .object_parts()
        .map_or("", |(scheme, ..)| scheme.as_str());
    Err(Error::Unsupported(format!(
        "{path}: {scheme}:// needs the object store feature, which this build does not have"
    )))
}

#[cfg(not(feature = "object-store"))]
fn storage(connected: &Connection, _cancel: &CancelHandle) -> Arc<dyn Storage> {
    match *connected {}
}

#[cfg(all(test, feature = "object-store"))]
mod tests {
    use super::*;
    use crate::storage::MemoryStorage;

    fn stores(tile_cache: u64) -> Stores {
        let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        Stores::new(Arc::clone(&memory), memory, tile_cache)
    }

    fn find(stores: &Stores, uri: &str, settings: &StoreSettings) -> Arc<dyn Storage> {
        let uri = Uri::parse(uri).expect("a URI");
        stores.find(&uri, settings).expect("a storage")
    }

    #[test]
    fn two_paths_of_a_bucket_lie_in_one_storage() {
        let settings = StoreSettings::new();
        for tile_cache in [0, 1 << 20] {
            let stores = stores(tile_cache);
            let one = find(&stores, "http://example.org/a", &settings);
            let same =
                |uri: &str, stores: &Stores| Arc::ptr_eq(&one, &find(stores, uri, &settings));
            assert!(same("http://example.org/b", &stores));
            assert!(same(
                "http://example.org/b",
                &stores.with_cache(tile_cache, true)
            ));
            assert!(!same("http://example.com/a", &stores));
            // Who cancels one does not cancel the other.
            assert!(!same("http://example.org/a", &stores.cancellable()));
        }
    }

    #[test]
    fn with_other_settings_nothing_is_taken_from_the_cache() {
        let stores = stores(1 << 20);
        assert!(Arc::ptr_eq(
            &stores.cache,
            &stores.with_cache(1 << 20, true).cache
        ));
        for other in [
            stores.with_cache(1 << 20, false),
            stores.with_cache(1 << 21, true),
        ] {
            assert!(!Arc::ptr_eq(&stores.cache, &other.cache));
        }
    }
}

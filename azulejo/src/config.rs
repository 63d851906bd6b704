//! Settings of a context.

mod tiledb_names;

use crate::error::{Error, Result};
use crate::storage::StoreSettings;
use tiledb_names::TILEDB_NAMES;

/// What a [`Context`](crate::Context) is made with.
///
/// ```
/// use azulejo::Config;
/// let config = Config::new().memory_budget(64 << 20).threads(2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Bytes that one query may hold at a time, results included.
    pub memory_budget: u64,
    /// Threads for decoding; 0 means one a core.
    pub threads: usize,
    /// Two ranges of one file closer than this many bytes are read as one.
    pub coalesce_gap: u64,
    /// Bytes of object stores that are kept in memory for the context's next queries, in files that
    /// never change; 0: none.
    pub tile_cache: u64,
    /// Bytes of decoded tiles that the context's open arrays keep, all together, for their next
    /// queries of some of their cells, where storage is local; 0: none. Never more than a sixteenth of the memory budget, of which
    /// it is a part.
    pub decoded_cache: u64,
    /// Whether tiles of local files are read in large batches and prefetched too, as those of
    /// object stores are: for file systems that a network brings. Unless set, the environment's
    /// `AZULEJO_BATCHED_READS` says so.
    pub batched_reads: bool,
    /// Settings of object stores; what is not set comes from the environment.
    pub store: StoreSettings,
    /// When listings are taken from a manifest.
    pub manifest: ManifestUse,
}

/// When reads take their listings from a [manifest](crate::manifest) instead of asking the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ManifestUse {
    /// Never.
    Never,
    /// Where the storage cannot list, or does not let us.
    #[default]
    Fallback,
    /// Wherever there is one. What was written after it was made is not seen.
    Always,
}

impl Config {
    /// The memory budget unless set: 1 GiB.
    pub const DEFAULT_MEMORY_BUDGET: u64 = 1 << 30;

    /// The name of the setting [`Self::decoded_cache`], which TileDB has not.
    pub const DECODED_CACHE: &str = "azulejo.decoded_cache_size";

    /// The name of the setting [`Self::batched_reads`], which TileDB has not.
    pub const BATCHED_READS: &str = "azulejo.batched_reads";

    /// What stands unless set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the bytes that one query may hold at a time, results included.
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = bytes;
        self
    }

    /// Sets the threads for decoding; 0 means one a core.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the distance in bytes under which two ranges of one file are read as one.
    #[must_use]
    pub fn coalesce_gap(mut self, bytes: u64) -> Self {
        self.coalesce_gap = bytes;
        self
    }

    /// Sets the bytes of object stores that stay in memory; 0: none.
    #[must_use]
    pub fn tile_cache(mut self, bytes: u64) -> Self {
        self.tile_cache = bytes;
        self
    }

    /// Sets the bytes of decoded tiles that stay with open arrays, with all of them together; 0: none.
    #[must_use]
    pub fn decoded_cache(mut self, bytes: u64) -> Self {
        self.decoded_cache = bytes;
        self
    }

    /// Sets whether local files too are read in large batches.
    #[must_use]
    pub fn batched_reads(mut self, batched: bool) -> Self {
        self.batched_reads = batched;
        self
    }

    /// Sets what object stores are told.
    #[must_use]
    pub fn store(mut self, settings: StoreSettings) -> Self {
        self.store = settings;
        self
    }

    /// Sets when listings are taken from a manifest.
    #[must_use]
    pub fn manifest(mut self, manifest: ManifestUse) -> Self {
        self.manifest = manifest;
        self
    }

    /// What [`Self::set`] takes besides the settings of object stores.
    const OWN: [&str; 5] = [
        "sm.mem.total_budget",
        "sm.compute_concurrency_level",
        "sm.tile_cache_size",
        Self::DECODED_CACHE,
        Self::BATCHED_READS,
    ];

    /// Whether [`Self::set`] takes this name.
    #[must_use]
    pub fn knows(name: &str) -> bool {
        Self::OWN.contains(&name) || StoreSettings::knows(name)
    }

    /// All names that [`Self::set`] takes, and those that TileDB 2.30 documents besides, which mean
    /// nothing to this engine.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let others = TILEDB_NAMES.iter().filter(|name| !Self::knows(name));
        let own = Self::OWN.into_iter().chain(StoreSettings::names());
        own.chain(others.copied())
    }

    /// Sets what TileDB calls `name`: `vfs.*` for object stores, `sm.mem.total_budget` in bytes,
    /// `sm.compute_concurrency_level`, `sm.tile_cache_size` in bytes; and [`Self::DECODED_CACHE`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if there is no such setting, or if the value is none for it.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let number = || {
            value.parse::<u64>().map_err(|_| {
                Error::InvalidArgument(format!("{name} is a whole number, not {value:?}"))
            })
        };
        match name {
            "sm.mem.total_budget" => self.memory_budget = number()?.max(1 << 20),
            "sm.tile_cache_size" => self.tile_cache = number()?,
            Self::DECODED_CACHE => self.decoded_cache = number()?,
            Self::BATCHED_READS => {
                self.batched_reads = value.parse().map_err(|_| {
                    Error::InvalidArgument(format!("{name} is true or false, not {value:?}"))
                })?;
            }
            "sm.compute_concurrency_level" => {
                self.threads = usize::try_from(number()?).unwrap_or(0).min(1024);
            }
            _ => self.store.set(name, value)?,
        }
        Ok(())
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            memory_budget: Self::DEFAULT_MEMORY_BUDGET,
            threads: 0,
            coalesce_gap: 64 * 1024,
            tile_cache: 0,
            decoded_cache: 64 << 20,
            batched_reads: std::env::var("AZULEJO_BATCHED_READS").is_ok_and(|v| v == "true"),
            store: StoreSettings::new(),
            manifest: ManifestUse::Fallback,
        }
    }
}

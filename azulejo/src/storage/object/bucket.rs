//! What all operations on one bucket share, and the requests that they are made of.

use super::error::{self, Secrets};
use super::gate::Gate;
use super::http::{self, observed};
use super::runtime;
use crate::error::{Error, Result};
use crate::storage::io_stats::IoStats;
use crate::storage::{Entry, StorePath};
use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use tokio::task::AbortHandle;

/// Sizes and bounds of a store's requests.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    /// Two ranges of one object at most this far apart are read as one: about what a round trip's
    /// time could carry.
    pub(super) gap: u64,
    /// Ranges are joined up to this size, and to that of a piece.
    pub(super) joined: u64,
    /// Longer ranges are read in pieces of this size, or of less while there are connections with
    /// nothing to do.
    pub(super) piece: u64,
    /// Requests in flight.
    pub(super) parallel: usize,
    /// Parts of objects that are written in parts.
    pub(super) part: usize,
    /// How often a body that broke off is continued.
    pub(super) tries: u32,
    /// How long what was cancelled may take to be cleaned away: someone waits for that.
    pub(super) cleaning: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            gap: 512 << 10,
            joined: u64::MAX,
            piece: 16 << 20,
            parallel: 64,
            part: 5 << 20,
            tries: 8,
            cleaning: Duration::from_secs(3),
        }
    }
}

/// Larger requests take several permits.
const LARGE: u64 = 1 << 20;
/// Requests of many bytes that fill any link.
const MOST_LARGE: usize = 16;
/// And the permits that one takes, at most.
const LARGE_PERMITS: usize = 4;
/// Shorter pieces take hardly less time than this one, and cost as much.
const SHORTEST_PIECE: u64 = 4 << 20;

impl Limits {
    /// Permits that a request of so many bytes takes; `None` of as many as there are.
    pub(super) fn permits(&self, bytes: Option<u64>) -> u32 {
        match bytes.is_none_or(|bytes| bytes >= LARGE) {
            true => self.large_permits(),
            false => 1,
        }
    }

    /// Permits that a request of many bytes takes: one where there are few.
    fn large_permits(&self) -> u32 {
        // Between one and a few.
        (self.parallel / MOST_LARGE).clamp(1, LARGE_PERMITS) as u32
    }

    /// How long requests are at most while so many bytes are asked for: all connections have an
    /// equal part of them.
    pub(super) fn piece_of(&self, bytes: u64) -> u64 {
        let connections = self.parallel as u64 / u64::from(self.large_permits());
        let each = bytes.div_ceil(connections.max(1));
        each.max(SHORTEST_PIECE).min(self.piece).max(1)
    }
}

/// What a store can do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Abilities {
    /// Folders can be listed, objects written and deleted: all but plain web servers.
    pub(super) full: bool,
    /// The end of an object can be asked for without knowing its size.
    pub(super) tails: bool,
    /// Objects are copied without us, and are there when the store says so: all but Azure, which may
    /// have promised it only.
    pub(super) copies: bool,
}

/// What all operations on one bucket share.
pub(super) struct Shared {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) limits: Limits,
    pub(super) abilities: Abilities,
    /// Whether ends of objects are asked for as such, until the server refuses that.
    pub(super) tails: AtomicBool,
    pub(super) stats: IoStats,
    /// Bytes that reads have asked for and that are not all there yet.
    pub(super) asked: Arc<AtomicU64>,
    /// One permit a small request, several for a large one.
    pub(super) gate: Gate,
    pub(super) secrets: Secrets,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Stores print their credentials.
        f.debug_struct("Shared")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// An operation under way, which is stopped when this is dropped.
#[derive(Debug)]
pub(super) struct AbortOnDrop(pub(super) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Shared {
    pub(super) fn new(
        store: Arc<dyn ObjectStore>,
        limits: Limits,
        abilities: Abilities,
        stats: &IoStats,
        secrets: Secrets,
    ) -> Self {
        Self {
            gate: Gate::new(limits.parallel),
            asked: Arc::default(),
            tails: AtomicBool::new(abilities.tails),
            store,
            limits,
            abilities,
            stats: stats.clone(),
            secrets,
        }
    }

    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = sync_channel(1);
        let task = runtime::shared()?.spawn(async move {
            // Nobody may be waiting any more, which is no error.
            let _ = sender.send(work.await);
        });
        let _running = AbortOnDrop(task.abort_handle());
        self.stats
            .waiting(|| receiver.recv())
            .unwrap_or_else(|_| Err(ended()))
    }

    pub(super) fn error(
        &self,
        op: &'static str,
        path: &StorePath,
        failure: (object_store::Error, http::ServerAnswer),
    ) -> Error {
        error::convert(op, path, failure, &self.secrets)
    }

    /// What lies right below a folder.
    pub(super) async fn list(&self, dir: &StorePath, key: &Path) -> Result<Vec<Entry>> {
        let prefix = (!key.as_ref().is_empty()).then_some(key);
        let listing = observed(self.store.list_with_delimiter(prefix)).await;
        let listing = listing.map_err(|failure| self.error("list", dir, failure))?;
        let mut entries = Vec::with_capacity(listing.common_prefixes.len() + listing.objects.len());
        let child = |path: &Path| {
            let name = path.filename()?.to_owned();
            // Some programs make an object with a folder's name to stand for it.
            (path.parts_count() == key.parts_count() + 1).then_some(name)
        };
        for folder in &listing.common_prefixes {
            entries.extend(child(folder).map(|name| Entry {
                name,
                is_dir: true,
                size: Some(0),
            }));
        }
        for object in &listing.objects {
            let size = Some(object.size);
            entries.extend(child(&object.location).map(|name| Entry {
                name,
                is_dir: false,
                size,
            }));
        }
        entries.sort_by(|a, b| (&a.name, a.is_dir).cmp(&(&b.name, b.is_dir)));
        Ok(entries)
    }

    /// Everything below a folder.
    pub(super) async fn all_within(&self, path: &StorePath, key: &Path) -> Result<Vec<Path>> {
        let collect = async {
            let mut found = Vec::new();
            let mut listing = self.store.list(Some(key));
            while let Some(object) = listing.next().await {
                found.push(object?.location);
            }
            Ok(found)
        };
        observed(collect)
            .await
            .map_err(|failure| self.error("list", path, failure))
    }

    pub(super) async fn exists(&self, path: &StorePath, key: &Path) -> Result<bool> {
        match observed(self.store.head(key)).await {
            Ok(_) => Ok(true),
            Err((object_store::Error::NotFound { .. }, _)) => Ok(false),
            Err(failure) => Err(self.error("read", path, failure)),
        }
    }

    /// Deletes objects, again where a connection broke: clients of stores do not know that this
    /// does no harm.
    pub(super) async fn delete_all(&self, path: &StorePath, keys: Vec<Path>) -> Result<()> {
        let mut attempt = 1;
        loop {
            let Err((error, answer)) = observed(self.delete_once(&keys)).await else {
                return Ok(());
            };
            let is_broken = answer.status.is_none() && !answer.timed_out && !answer.unreachable;
            if !is_broken || attempt >= self.limits.tries {
                return Err(self.error("delete", path, (error, answer)));
            }
            tokio::time::sleep(pause(attempt)).await;
            attempt += 1;
        }
    }

    async fn delete_once(&self, keys: &[Path]) -> object_store::Result<()> {
        let mut outcome = Ok(());
        let keys: Vec<_> = keys.iter().cloned().map(Ok).collect();
        let mut deleted = self
            .store
            .delete_stream(futures_util::stream::iter(keys).boxed());
        while let Some(result) = deleted.next().await {
            match result {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                // The others go all the same: what is left makes the next attempt.
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }
}

pub(super) fn ended() -> Error {
    Error::Internal("an operation on an object store ended without a result".into())
}

/// The object's name in its bucket: of a path without one, such as those of schemes that a program
/// has given a storage, all of it.
pub(super) fn key_of(path: &StorePath) -> Result<Path> {
    let key = match path.object_parts() {
        Some((_, _, key)) => key,
        None if path.scheme() != "file" => path.as_str(),
        None => {
            return Err(Error::Unsupported(format!(
                "{path}: no path of an object store"
            )));
        }
    };
    let unnamed = |why: &dyn fmt::Display| {
        Error::InvalidArgument(format!("{path}: no name for an object: {why}"))
    };
    // Members of groups may lie beside them; buckets know no such steps.
    let mut parts: Vec<&str> = Vec::new();
    for part in key.split('/') {
        match part {
            ".." if parts.pop().is_none() => return Err(unnamed(&"it leads out of the bucket")),
            ".." | "." => {}
            part => parts.push(part),
        }
    }
    Path::parse(parts.join("/")).map_err(|e| unnamed(&e))
}

/// The object's name; an error for the bucket itself.
pub(super) fn object_key(path: &StorePath) -> Result<Path> {
    let key = key_of(path)?;
    if key.as_ref().is_empty() {
        return Err(Error::InvalidArgument(format!(
            "{path}: a whole bucket is no object"
        )));
    }
    Ok(key)
}

/// A pause before another attempt: longer each time, and of a random part of that.
pub(super) fn pause(attempt: u32) -> Duration {
    let longest = (100u64 << attempt.min(6)).min(5_000);
    let random = u64::from(uuid::Uuid::new_v4().as_bytes()[0]);
    Duration::from_millis(longest / 2 + longest * random / 512)
}

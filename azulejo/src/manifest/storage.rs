//! A storage whose listings come from manifests where they must.

use super::sidecar::{MANIFEST_FILE, Manifest};
use crate::config::ManifestUse;
use crate::error::{Error, Result};
use crate::storage::{
    Entry, Pending, PendingList, PendingRead, PendingTails, ReadInto, ReadRange, ReadRequest,
    Storage, StorageLayer, StorePath, Tail, Waiting, block_on, list_tree_by_folders, path_in,
};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is wrong with a file that only a manifest names.
const STALE: &str = "the manifest names it, but it is gone: the manifest is stale; make it anew with `azulejo manifest`";

/// Passes everything on to another storage, but lists what lies below `root` from manifests:
/// always, or once the other storage has refused to list.
#[derive(Debug, Clone)]
pub(super) struct ManifestStorage {
    inner: Arc<dyn Storage>,
    root: StorePath,
    /// Bytes of a decoded manifest, at most.
    limit: u64,
    /// Whether listings come from manifests.
    in_use: Arc<AtomicBool>,
    /// By the folder of the object; `None` where there is none.
    manifests: Arc<Mutex<HashMap<StorePath, Option<Arc<Manifest>>>>>,
}

/// Whether an error says that folders cannot be listed, here or by us. Only what was tried again in
/// vain is an error, so that a refusal does not pass.
fn is_refusal(error: &Error) -> bool {
    match error {
        Error::Unsupported(_) => true,
        Error::Storage { source, .. } => {
            matches!(
                source.kind(),
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::Unsupported
            )
        }
        _ => false,
    }
}

/// What a manifest says of a folder.
enum Listed {
    Entries(Vec<Entry>),
    /// It lies in another object, in this folder of the manifest's own.
    Nested(String),
}

/// What a manifest says of a folder, by its path relative to the manifest's object.
fn look_up(manifest: &Manifest, path: &str) -> Listed {
    let mut known = path;
    loop {
        if let Some(entries) = manifest.folders.get(known) {
            if known == path {
                return Listed::Entries(entries.clone());
            }
            let below = path.get(known.len()..).unwrap_or_default();
            let below = below.trim_start_matches('/');
            let name = below.split('/').next().unwrap_or_default();
            // A folder that the manifest names and does not list holds an object of its own.
            let nested = entries
                .iter()
                .any(|entry| entry.is_dir && entry.name == name);
            return match nested {
                true => Listed::Nested(path_in(known, name)),
                false => Listed::Entries(Vec::new()),
            };
        }
        if known.is_empty() {
            return Listed::Entries(Vec::new());
        }
        known = known.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
}

impl ManifestStorage {
    pub(super) fn new(
        inner: Arc<dyn Storage>,
        root: StorePath,
        wanted: ManifestUse,
        limit: u64,
    ) -> Self {
        let in_use = Arc::new(AtomicBool::new(wanted == ManifestUse::Always));
        Self {
            inner,
            root,
            limit,
            in_use,
            manifests: Arc::default(),
        }
    }

    fn is_in_use(&self) -> bool {
        self.in_use.load(Ordering::Relaxed)
    }

    fn manifests(&self) -> MutexGuard<'_, HashMap<StorePath, Option<Arc<Manifest>>>> {
        let manifests = self.manifests.lock();
        manifests.unwrap_or_else(PoisonError::into_inner)
    }

    /// The manifest of the object in a folder, read once; whoever else asks meanwhile reads too.
    async fn manifest(
        &self,
        object: &StorePath,
        waiting: Waiting,
    ) -> Result<Option<Arc<Manifest>>> {
        let known = self.manifests().get(object).cloned();
        if let Some(manifest) = known {
            return Ok(manifest);
        }
        let path = object.join(MANIFEST_FILE);
        let request = ReadRequest {
            path: path.clone(),
            range: ReadRange::AtMost(self.limit),
        };
        let manifest = match waiting.read(&*self.inner, vec![request]).await {
            Ok(read) => {
                let bytes = read.into_iter().next().unwrap_or_default();
                let manifest = Manifest::decode(&bytes, self.limit);
                Some(Arc::new(
                    manifest.map_err(|e| Error::decode(path.to_string(), e))?,
                ))
            }
            Err(Error::NotFound { .. }) => None,
            // Who may not list a bucket is not told what is missing.
            Err(error) if is_refusal(&error) => None,
            Err(error) => return Err(error),
        };
        self.manifests().insert(object.clone(), manifest.clone());
        Ok(manifest)
    }

    /// A listing out of the root's manifest, or of an object nested in it; `None` without a
    /// manifest.
    async fn listed(&self, dir: &StorePath, waiting: Waiting) -> Result<Option<Vec<Entry>>> {
        let mut object = self.root.clone();
        loop {
            let Some(manifest) = self.manifest(&object, waiting).await? else {
                return Ok(None);
            };
            let Some(path) = dir.relative_to(&object) else {
                return Ok(None);
            };
            match look_up(&manifest, path) {
                Listed::Entries(entries) => return Ok(Some(entries)),
                Listed::Nested(folder) => object = object.join(&folder),
            }
        }
    }

    /// [`Storage::list`] of one folder, which the other storage may have refused already.
    async fn list_as(&self, dir: &StorePath, waiting: Waiting) -> Result<Vec<Entry>> {
        let inner = async || {
            let listed = waiting.list(&*self.inner, vec![dir.clone()]).await?;
            Ok(listed.into_iter().next().unwrap_or_default())
        };
        if dir.relative_to(&self.root).is_none() {
            return inner().await;
        }
        if self.is_in_use()
            && let Some(entries) = self.listed(dir, waiting).await?
        {
            return Ok(entries);
        }
        let refusal = match inner().await {
            Err(error) if is_refusal(&error) => error,
            listed => return listed,
        };
        let Some(entries) = self.listed(dir, waiting).await? else {
            return Err(match refusal {
                Error::Unsupported(text) => {
                    Error::Unsupported(format!("{text} (there is no {MANIFEST_FILE} yet)"))
                }
                refusal => refusal,
            });
        };
        self.in_use.store(true, Ordering::Relaxed);
        Ok(entries)
    }

    /// [`Storage::list_all`]: as the other storage lists, or folder by folder once that has
    /// refused.
    async fn list_all_as(&self, dirs: &[StorePath], waiting: Waiting) -> Result<Vec<Vec<Entry>>> {
        if !self.is_in_use() && dirs.iter().all(|dir| dir.relative_to(&self.root).is_some()) {
            match waiting.list(&*self.inner, dirs.to_vec()).await {
                Err(error) if is_refusal(&error) => {}
                listed => return listed,
            }
        }
        let mut listed = Vec::with_capacity(dirs.len());
        for dir in dirs {
            listed.push(self.list_as(dir, waiting).await?);
        }
        Ok(listed)
    }

    /// The root's manifest, where listings came from it.
    fn shown(&self) -> Option<Arc<Manifest>> {
        if !self.is_in_use() {
            return None;
        }
        self.manifests().get(&self.root).cloned()?
    }

    /// Size of a file, out of the root's manifest.
    fn size_of(&self, path: &StorePath) -> Option<u64> {
        self.shown()?.size_of(path.relative_to(&self.root)?)
    }

    /// The last bytes of files as ranges, with the files' sizes, where the manifest knows those:
    /// not every server knows ranges that count from the end.
    fn ends_of(&self, paths: &[StorePath], len: u64) -> Option<(Vec<ReadRequest>, Vec<u64>)> {
        let sizes: Vec<u64> = paths
            .iter()
            .map(|path| self.size_of(path))
            .collect::<Option<_>>()?;
        let request = |(path, size): (&StorePath, &u64)| ReadRequest {
            path: path.clone(),
            range: ReadRange::Bytes(size.saturating_sub(len)..*size),
        };
        Some((paths.iter().zip(&sizes).map(request).collect(), sizes))
    }

    /// The bytes of a request, where the manifest holds those of the file.
    fn held(&self, manifest: &Manifest, request: &ReadRequest) -> Option<Bytes> {
        let bytes = manifest
            .contents
            .get(request.path.relative_to(&self.root)?)?;
        // What is wrong with the request the other storage says.
        let range = request
            .range
            .within(&request.path, bytes.len() as u64)
            .ok()?;
        let (start, end) = (usize::try_from(range.start), usize::try_from(range.end));
        Some(bytes.slice(start.ok()?..end.ok()?))
    }

    /// For each request its bytes, if the manifest holds them; `None` where it holds none of all.
    fn all_held(&self, requests: &[ReadRequest]) -> Option<Vec<Option<Bytes>>> {
        let manifest = self.shown()?;
        let held = requests.iter().map(|asked| self.held(&manifest, asked));
        let held: Vec<Option<Bytes>> = held.collect();
        held.iter().any(Option::is_some).then_some(held)
    }

    fn blame<T>(&self, result: Result<T>) -> Result<T> {
        blame(result, StorageLayer::listed_at(self).is_some())
    }
}

/// The requests that are left.
fn left(requests: &[ReadRequest], held: &[Option<Bytes>]) -> Vec<ReadRequest> {
    let left = requests.iter().zip(held);
    let left = left.filter(|(_, held)| held.is_none());
    left.map(|(asked, _)| asked.clone()).collect()
}

/// What was held and what was read, in the order of the requests.
fn merged(held: Vec<Option<Bytes>>, read: Vec<Bytes>) -> Vec<Bytes> {
    let mut read = read.into_iter();
    let each = held
        .into_iter()
        .map(|held| held.or_else(|| read.next()).unwrap_or_default());
    each.collect()
}

/// Ends of files that were read as ranges.
fn tails(read: Vec<Bytes>, sizes: Vec<u64>) -> Vec<Tail> {
    read.into_iter()
        .zip(sizes)
        .map(|(bytes, object_size)| Tail { bytes, object_size })
        .collect()
}

/// Says of a missing object that the manifest is to blame, where one was used.
fn blame<T>(result: Result<T>, is_listed: bool) -> Result<T> {
    match result {
        Err(Error::NotFound { uri, .. }) if is_listed => Err(Error::NotFound { uri, what: STALE }),
        result => result,
    }
}

impl StorageLayer for ManifestStorage {
    fn inner(&self) -> &dyn Storage {
        &*self.inner
    }

    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        block_on(self.list_as(dir, Waiting::Blocks))
    }

    fn list_all(&self, dirs: &[StorePath]) -> Result<Vec<Vec<Entry>>> {
        block_on(self.list_all_as(dirs, Waiting::Blocks))
    }

    fn list_tree(&self, dir: &StorePath) -> Result<Vec<(String, Vec<Entry>)>> {
        if !self.is_in_use() || dir.relative_to(&self.root).is_none() {
            match self.inner.list_tree(dir) {
                Err(error) if is_refusal(&error) => {}
                listed => return listed,
            }
        }
        list_tree_by_folders(self, dir)
    }

    fn find(&self, dir: &StorePath, names: &[&str]) -> Result<Vec<Entry>> {
        if !self.is_in_use() || dir.relative_to(&self.root).is_none() {
            match self.inner.find(dir, names) {
                Err(error) if is_refusal(&error) => {}
                found => return found,
            }
        }
        let mut entries = StorageLayer::list(self, dir)?;
        entries.retain(|entry| names.contains(&entry.name.as_str()));
        Ok(entries)
    }

    fn is_folder(&self, path: &StorePath) -> Result<bool> {
        if !self.is_in_use() || path.relative_to(&self.root).is_none() {
            match self.inner.is_folder(path) {
                Err(error) if is_refusal(&error) => {}
                found => return found,
            }
        }
        match path.parent() {
            // What lies beside the manifest's object it does not say.
            Some(parent) if *path != self.root => {
                let entries = StorageLayer::list(self, &parent)?;
                let mut found = entries.iter().filter(|entry| entry.name == path.name());
                Ok(found.any(|entry| entry.is_dir))
            }
            _ => Ok(!StorageLayer::list(self, path)?.is_empty()),
        }
    }

    fn is_empty(&self, dir: &StorePath) -> Result<bool> {
        if !self.is_in_use() || dir.relative_to(&self.root).is_none() {
            match self.inner.is_empty(dir) {
                Err(error) if is_refusal(&error) => {}
                found => return found,
            }
        }
        Ok(StorageLayer::list(self, dir)?.is_empty())
    }

    fn listed_at(&self) -> Option<u64> {
        if !self.is_in_use() {
            return self.inner.listed_at();
        }
        Some(self.shown()?.made)
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        let Some(held) = self.all_held(requests) else {
            return self.blame(self.inner.read(requests));
        };
        let left = left(requests, &held);
        match left.is_empty() {
            true => Ok(merged(held, Vec::new())),
            false => Ok(merged(held, self.blame(self.inner.read(&left))?)),
        }
    }

    fn read_tails(&self, paths: &[StorePath], len: u64) -> Result<Vec<Tail>> {
        match self.ends_of(paths, len) {
            Some((requests, sizes)) => Ok(tails(StorageLayer::read(self, &requests)?, sizes)),
            None => self.blame(self.inner.read_tails(paths, len)),
        }
    }

    fn read_into(&self, requests: &mut [ReadInto<'_>]) -> Result<()> {
        self.blame(self.inner.read_into(requests))
    }

    fn start_list(&self, dirs: Vec<StorePath>) -> PendingList {
        let storage = self.clone();
        Pending::new(async move { storage.list_all_as(&dirs, Waiting::Polls).await })
    }

    fn start_read_tails(&self, paths: Vec<StorePath>, len: u64) -> PendingTails {
        let is_listed = StorageLayer::listed_at(self).is_some();
        match self.ends_of(&paths, len) {
            Some((requests, sizes)) => {
                StorageLayer::start_read(self, requests).then(move |read| Ok(tails(read?, sizes)))
            }
            None => self
                .inner
                .start_read_tails(paths, len)
                .then(move |tails| blame(tails, is_listed)),
        }
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        let is_listed = StorageLayer::listed_at(self).is_some();
        let Some(held) = self.all_held(&requests) else {
            let pending = self.inner.start_read(requests);
            return pending.then(move |read| blame(read, is_listed));
        };
        let left = left(&requests, &held);
        if left.is_empty() {
            return Pending::ready(Ok(merged(held, Vec::new())));
        }
        self.inner
            .start_read(left)
            .then(move |read| Ok(merged(held, blame(read, is_listed)?)))
    }

    fn size(&self, path: &StorePath) -> Result<u64> {
        match self.size_of(path) {
            Some(size) => Ok(size),
            None => self.blame(self.inner.size(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{MemoryStorage, conformance};

    #[test]
    fn a_storage_that_lists_meets_the_contract_through_it() {
        let inner = Arc::new(MemoryStorage::new());
        let root = StorePath::memory("root");
        let storage = ManifestStorage::new(inner, root.clone(), ManifestUse::Fallback, 1 << 20);
        conformance::check(&storage, &root);
    }
}

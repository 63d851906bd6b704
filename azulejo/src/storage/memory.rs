//! Objects in memory: for tests and for data that need not outlive the process.

use super::refusal::{already_exists, not_found};
use super::{Entry, FolderLock, LockFolder, PutNew, ReadRequest, Storage, StorePath, Tail, Upload};
use crate::error::Result;
use bytes::Bytes;
use std::collections::{BTreeMap, HashSet, btree_map};
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

/// Keeps objects in memory. Folders exist as long as something lies in them.
#[derive(Debug, Default)]
pub struct MemoryStorage {
    objects: Arc<RwLock<BTreeMap<String, Bytes>>>,
    locks: Arc<Locks>,
}

impl MemoryStorage {
    /// An empty storage.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A storage of its own that holds what this one holds now; the bytes are shared.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        Self {
            objects: Arc::new(RwLock::new(objects.clone())),
            locks: Arc::default(),
        }
    }

    fn get(&self, path: &StorePath) -> Result<Bytes> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects
            .get(path.as_str())
            .cloned()
            .ok_or_else(|| not_found(path))
    }
}

/// Whether `key` is `path` or lies below it; nothing lies below the root, so that a slip cannot
/// take all there is.
fn is_within(key: &str, path: &str) -> bool {
    key.strip_prefix(path)
        .is_some_and(|rest| !path.is_empty() && (rest.is_empty() || rest.starts_with('/')))
}

#[derive(Debug)]
struct MemoryUpload {
    path: StorePath,
    body: Vec<u8>,
    objects: Arc<RwLock<BTreeMap<String, Bytes>>>,
}

impl Upload for MemoryUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.insert(self.path.as_str().to_owned(), Bytes::from(self.body));
        Ok(())
    }
}

impl Storage for MemoryStorage {
    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        let prefix = match dir.as_str() {
            "" => String::new(),
            path => format!("{path}/"),
        };
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let mut entries: Vec<Entry> = Vec::new();
        for (path, body) in
            objects.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded))
        {
            let Some(rest) = path.strip_prefix(&prefix) else {
                break;
            };
            let (name, is_dir) = rest
                .split_once('/')
                .map_or((rest, false), |(name, _)| (name, true));
            // Everything in one folder is one run of keys.
            if entries
                .last()
                .is_some_and(|last| is_dir && last.is_dir && last.name == name)
            {
                continue;
            }
            let size = Some(if is_dir { 0 } else { body.len() as u64 });
            entries.push(Entry {
                name: name.to_owned(),
                is_dir,
                size,
            });
        }
        entries.sort_by(|a, b| (&a.name, a.is_dir).cmp(&(&b.name, b.is_dir)));
        Ok(entries)
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        let read = |request: &ReadRequest| {
            let body = self.get(&request.path)?;
            let range = request.range.within(&request.path, body.len() as u64)?;
            // Both ends are at most the size of a buffer in memory.
            Ok(body.slice(range.start as usize..range.end as usize))
        };
        requests.iter().map(read).collect()
    }

    fn read_tails(&self, paths: &[StorePath], len: u64) -> Result<Vec<Tail>> {
        let read = |path: &StorePath| {
            let body = self.get(path)?;
            let start = body
                .len()
                .saturating_sub(usize::try_from(len).unwrap_or(usize::MAX));
            Ok(Tail {
                object_size: body.len() as u64,
                bytes: body.slice(start..),
            })
        };
        paths.iter().map(read).collect()
    }

    fn size(&self, path: &StorePath) -> Result<u64> {
        Ok(self.get(path)?.len() as u64)
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.insert(path.as_str().to_owned(), body);
        Ok(())
    }

    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        if self.get(path).is_ok() {
            return Err(already_exists(path));
        }
        let objects = Arc::clone(&self.objects);
        Ok(Box::new(MemoryUpload {
            path: path.clone(),
            body: Vec::new(),
            objects,
        }))
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        if objects.keys().any(|key| is_within(key, to.as_str())) {
            return Err(already_exists(to));
        }
        let moved: Vec<String> = objects
            .keys()
            .filter(|key| is_within(key, from.as_str()))
            .cloned()
            .collect();
        if moved.is_empty() {
            return Err(not_found(from));
        }
        for key in moved {
            let rest = key.strip_prefix(from.as_str()).unwrap_or_default();
            let new = format!("{}{rest}", to.as_str());
            if let Some(body) = objects.remove(&key) {
                objects.insert(new, body);
            }
        }
        Ok(())
    }

    fn replace(&self, from: &StorePath, to: &StorePath) -> Result<bool> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let mut there = objects.keys().filter(|key| is_within(key, to.as_str()));
        if there.any(|key| key != to.as_str()) {
            return Err(already_exists(to));
        }
        let body = objects
            .remove(from.as_str())
            .ok_or_else(|| not_found(from))?;
        objects.insert(to.as_str().to_owned(), body);
        Ok(true)
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        for path in paths {
            objects.retain(|key, _| !is_within(key, path.as_str()));
        }
        Ok(())
    }

    fn exclusive(&self) -> Option<&dyn PutNew> {
        Some(self)
    }

    fn locking(&self) -> Option<&dyn LockFolder> {
        Some(self)
    }
}

/// Folders that are locked.
#[derive(Debug, Default)]
struct Locks {
    folders: Mutex<HashSet<StorePath>>,
    changed: Condvar,
}

#[derive(Debug)]
struct MemoryLock {
    folder: StorePath,
    locks: Arc<Locks>,
}

impl FolderLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        let folders = self.locks.folders.lock();
        folders
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.folder);
        self.locks.changed.notify_all();
    }
}

impl LockFolder for MemoryStorage {
    fn lock(&self, folder: &StorePath) -> Result<Option<Box<dyn FolderLock>>> {
        let locks = &self.locks;
        let folders = locks.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = |folders: &mut HashSet<StorePath>| folders.contains(folder);
        let mut folders = locks
            .changed
            .wait_while(folders, taken)
            .unwrap_or_else(PoisonError::into_inner);
        folders.insert(folder.clone());
        Ok(Some(Box::new(MemoryLock {
            folder: folder.clone(),
            locks: Arc::clone(locks),
        })))
    }
}

impl PutNew for MemoryStorage {
    fn put_new(&self, path: &StorePath, body: Bytes) -> Result<()> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        match objects.entry(path.as_str().to_owned()) {
            btree_map::Entry::Occupied(_) => Err(already_exists(path)),
            btree_map::Entry::Vacant(place) => {
                place.insert(body);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::conformance;

    #[test]
    fn a_duplicate_goes_its_own_way() {
        let (a, b) = (StorePath::memory("a"), StorePath::memory("b"));
        let storage = MemoryStorage::new();
        storage.put(&a, Bytes::from_static(b"1")).unwrap();
        let duplicate = storage.duplicate();
        storage.put(&a, Bytes::from_static(b"22")).unwrap();
        duplicate.put(&b, Bytes::new()).unwrap();
        assert_eq!(
            (storage.size(&a).unwrap(), duplicate.size(&a).unwrap()),
            (2, 1)
        );
        assert!(storage.size(&b).is_err());
    }

    #[test]
    fn meets_the_contract() {
        conformance::check(&MemoryStorage::new(), &StorePath::memory("root"));
        conformance::check_pages(&MemoryStorage::new(), &StorePath::memory("root"), 1_100);
    }
}

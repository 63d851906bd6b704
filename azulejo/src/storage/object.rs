//! Objects of S3, Google Cloud Storage, Azure and web servers.
//!
//! The engine's side is synchronous: every operation runs on the process's network threads while
//! the caller waits on a channel. Requests of one operation go out side by side, up to a bound that
//! all operations on a bucket share.

mod aws_profile;
mod bucket;
mod cancelled;
mod connect;
mod counting;
mod error;
mod fetch;
mod gate;
mod http;
mod runtime;
mod tree;
mod upload;

use super::io_stats::{IoCounts, IoStats};
use super::refusal::{already_exists, not_found, too_short};
use super::{
    Entry, Pending, PendingList, PendingRead, PendingTails, PutNew, ReadInto, ReadRange,
    ReadRequest, Storage, StorePath, StoreSettings, Tail, Upload,
};
use crate::cancel::CancelHandle;
use crate::error::{Error, Result};
use azulejo_format::path::CLAIM;
use bucket::{Abilities, AbortOnDrop, Limits, Shared, ended, key_of, object_key};
use bytes::Bytes;
use cancelled::Cancelled;
use error::Secrets;
use fetch::FetchedPart;
use gate::Admission;
use http::observed;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use tokio::task::JoinSet;

/// Bodies longer than this are written in parts.
const LONGEST_PUT: usize = 32 << 20;

/// The objects of one bucket, container or web server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ObjectStorage {
    shared: Arc<Shared>,
    /// What it was connected with, where that can be done again.
    connected: Option<Arc<Connected>>,
    cancel: CancelHandle,
}

/// What a connection is made of.
#[derive(Debug)]
struct Connected {
    path: StorePath,
    settings: StoreSettings,
    stats: IoStats,
    /// Connections need the threads that look after them, which a forked child does not have: it
    /// connects again.
    process: u32,
    child: OnceLock<Option<ObjectStorage>>,
}

impl ObjectStorage {
    /// The bucket, container or web server that a path names. No request is made yet.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for settings that contradict each other or lack something,
    /// [`Error::Unsupported`] for paths of other storages.
    pub fn connect(path: &StorePath, settings: &StoreSettings, stats: &IoStats) -> Result<Self> {
        let mut storage = Self::of(connect::connect(path, settings, stats)?);
        storage.connected = Some(Arc::new(Connected {
            path: path.clone(),
            settings: settings.clone(),
            stats: stats.clone(),
            process: crate::platform::process_id(),
            child: OnceLock::new(),
        }));
        Ok(storage)
    }

    /// What operations of this process share.
    fn shared(&self) -> &Arc<Shared> {
        let connected = self.connected.as_deref();
        let Some(parent) = connected.filter(|c| c.process != crate::platform::process_id()) else {
            return &self.shared;
        };
        let again = || Self::connect(&parent.path, &parent.settings, &parent.stats).ok();
        match parent.child.get_or_init(again) {
            Some(child) => child.shared(),
            None => &self.shared,
        }
    }

    /// Objects in memory behind the code for object stores, for tests. Paths may have any scheme but
    /// that of files.
    #[must_use]
    pub fn in_memory() -> Self {
        let stats = IoStats::new();
        let store = counting::Counting::new(object_store::memory::InMemory::new(), &stats);
        let abilities = Abilities {
            full: true,
            tails: true,
            copies: true,
        };
        Self::of(Shared::new(
            Arc::new(store),
            Limits::default(),
            abilities,
            &stats,
            Secrets::default(),
        ))
    }

    /// The requests made of it.
    #[must_use]
    pub fn io_stats(&self) -> IoCounts {
        self.shared().stats.counts()
    }

    fn of(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
            connected: None,
            cancel: CancelHandle::default(),
        }
    }

    /// The same objects; who waits for them stops when `handle` cancels.
    #[must_use]
    pub fn cancelled_by(mut self, handle: &CancelHandle) -> Self {
        self.cancel = handle.clone();
        self
    }

    /// Runs an operation on the network's threads and waits for it, or for its being cancelled.
    fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.start(Ok(work)).wait()
    }

    /// Starts an operation on the network's threads. It ends with an error when it is cancelled,
    /// and is stopped when nobody waits for it any more.
    fn start<T: Send + 'static>(
        &self,
        work: Result<impl Future<Output = Result<T>> + Send + 'static>,
    ) -> Pending<T> {
        let (work, runtime) = match work.and_then(|work| Ok((work, runtime::shared()?))) {
            Ok(started) => started,
            Err(error) => return Pending::ready(Err(error)),
        };
        let (answer, pending) = Pending::channel();
        let cancelled = Cancelled::by(&self.cancel);
        let task = runtime.spawn(async move { answer.send(cancelled.unless(work).await) });
        pending
            .timed(&self.shared().stats)
            .with_guard(AbortOnDrop(task.abort_handle()))
    }

    /// The listings of folders, side by side.
    fn listing(
        &self,
        dirs: Vec<StorePath>,
    ) -> Result<impl Future<Output = Result<Vec<Vec<Entry>>>> + Send + use<>> {
        dirs.iter().try_for_each(|dir| self.listable(dir))?;
        let keys: Vec<Path> = dirs.iter().map(key_of).collect::<Result<_>>()?;
        let shared = Arc::clone(self.shared());
        let turns: Vec<Admission> = dirs.iter().map(|_| shared.gate.turn(1)).collect();
        Ok(async move {
            let mut listed = vec![Vec::new(); dirs.len()];
            let mut tasks = JoinSet::new();
            for (i, ((dir, key), turn)) in dirs.into_iter().zip(keys).zip(turns).enumerate() {
                let shared = Arc::clone(&shared);
                tasks.spawn(async move {
                    let _permit = turn.come().await;
                    (i, shared.list(&dir, &key).await)
                });
            }
            while let Some(done) = tasks.join_next().await {
                let (i, entries) = done.map_err(|_| ended())?;
                listed[i] = entries?;
            }
            Ok(listed)
        })
    }

    /// Ranges of objects.
    fn reading(
        &self,
        requests: &[ReadRequest],
    ) -> Result<impl Future<Output = Result<Vec<Bytes>>> + Send + use<>> {
        let plan = fetch::Plan::new(requests, self.shared())?;
        let shared = Arc::clone(self.shared());
        let queued = plan.queue(&shared);
        Ok(async move { plan.fetch(&shared, queued).await })
    }

    /// The ends of objects, side by side.
    fn reading_tails(
        &self,
        paths: Vec<StorePath>,
        len: u64,
    ) -> Result<impl Future<Output = Result<Vec<Tail>>> + Send + use<>> {
        let keys: Vec<Path> = paths.iter().map(object_key).collect::<Result<_>>()?;
        let shared = Arc::clone(self.shared());
        let turns: Vec<Admission> = paths.iter().map(|_| shared.gate.turn(1)).collect();
        Ok(async move {
            let mut tails: Vec<Option<Tail>> = vec![None; paths.len()];
            let mut tasks = JoinSet::new();
            for (i, ((path, key), turn)) in paths.into_iter().zip(keys).zip(turns).enumerate() {
                let shared = Arc::clone(&shared);
                tasks.spawn(async move { (i, fetch::tail(&shared, &path, &key, len, turn).await) });
            }
            while let Some(done) = tasks.join_next().await {
                let (i, tail) = done.map_err(|_| ended())?;
                tails[i] = Some(tail?);
            }
            Ok(tails.into_iter().flatten().collect())
        })
    }

    fn listable(&self, dir: &StorePath) -> Result<()> {
        if self.shared().abilities.full {
            return Ok(());
        }
        Err(Error::Unsupported(format!(
            "cannot list {dir}: web servers have no listings; run `azulejo manifest` on the array where it can be listed, \
             and publish it again"
        )))
    }

    fn writable(&self, op: &'static str, path: &StorePath) -> Result<()> {
        if self.shared().abilities.full {
            return Ok(());
        }
        Err(Error::Unsupported(format!(
            "cannot {op} {path}: web servers are for reading only"
        )))
    }
}

/// Whether a path is that of a claim, or lies in a folder that holds files only, by its name: such
/// are deleted by the hundred, or while others wait.
fn is_surely_an_object(path: &StorePath) -> bool {
    let folder = path.parent();
    let folder = folder.as_ref().map_or("", StorePath::name);
    ["__commits", "__meta", "__fragment_meta"].contains(&folder) || path.name().starts_with(CLAIM)
}

impl Storage for ObjectStorage {
    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        self.listable(dir)?;
        let (shared, dir, key) = (Arc::clone(self.shared()), dir.clone(), key_of(dir)?);
        self.run(async move { shared.list(&dir, &key).await })
    }

    fn is_folder(&self, path: &StorePath) -> Result<bool> {
        if path.parent().is_none() {
            return Ok(true);
        }
        self.listable(path)?;
        let (shared, path, key) = (Arc::clone(self.shared()), path.clone(), key_of(path)?);
        self.run(async move { shared.is_folder(&path, &key).await })
    }

    fn is_empty(&self, dir: &StorePath) -> Result<bool> {
        self.listable(dir)?;
        let (shared, dir, key) = (Arc::clone(self.shared()), dir.clone(), key_of(dir)?);
        self.run(async move { shared.is_empty(&dir, &key).await })
    }

    fn list_all(&self, dirs: &[StorePath]) -> Result<Vec<Vec<Entry>>> {
        self.start_list(dirs.to_vec()).wait()
    }

    fn list_tree(&self, dir: &StorePath) -> Result<Vec<(String, Vec<Entry>)>> {
        self.listable(dir)?;
        let (shared, dir, key) = (Arc::clone(self.shared()), dir.clone(), key_of(dir)?);
        self.run(async move { shared.tree(&dir, &key).await })
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        self.start(self.reading(requests)).wait()
    }

    fn read_tails(&self, paths: &[StorePath], len: u64) -> Result<Vec<Tail>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        self.start_read_tails(paths.to_vec(), len).wait()
    }

    fn read_into(&self, requests: &mut [ReadInto<'_>]) -> Result<()> {
        if let Some(past) = requests
            .iter()
            .find(|r| r.offset.checked_add(r.out.len() as u64).is_none())
        {
            return Err(too_short(&past.path, u64::MAX, past.offset));
        }
        let plain: Vec<_> = requests
            .iter()
            .map(|r| ReadRequest {
                path: r.path.clone(),
                range: ReadRange::Bytes(r.offset..r.offset.saturating_add(r.out.len() as u64)),
            })
            .collect();
        let plan = Arc::new(fetch::Plan::new(&plain, self.shared())?);
        if plan.is_empty() {
            return Ok(());
        }
        // The bytes travel as they arrive, and are copied once: by the thread that owns the memory.
        let (sender, receiver) = channel::<Result<FetchedPart>>();
        let (shared, planned) = (Arc::clone(self.shared()), Arc::clone(&plan));
        let cancelled = Cancelled::by(&self.cancel);
        let runtime = runtime::shared()?;
        let queued = plan.queue(&shared);
        let task = runtime.spawn(async move {
            let parts = sender.clone();
            let stream = planned.stream(&shared, queued, parts);
            if let Err(error) = cancelled.unless(stream).await {
                // Nobody may be waiting any more, which is no error.
                let _ = sender.send(Err(error));
            }
        });
        let _running = AbortOnDrop(task.abort_handle());
        self.shared().stats.waiting(|| {
            let mut missing = plan.len();
            while missing > 0 {
                let part = receiver.recv().unwrap_or_else(|_| Err(ended()))?;
                missing = missing.saturating_sub(part.bytes.len() as u64);
                plan.place(&part, |request, offset, bytes| {
                    let out = requests
                        .get_mut(request)
                        .and_then(|r| r.out.get_mut(offset..offset + bytes.len()));
                    if let Some(out) = out {
                        out.copy_from_slice(bytes);
                    }
                });
            }
            Ok(())
        })
    }

    fn start_list(&self, dirs: Vec<StorePath>) -> PendingList {
        self.start(self.listing(dirs))
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        self.start(self.reading(&requests))
    }

    fn start_read_tails(&self, paths: Vec<StorePath>, len: u64) -> PendingTails {
        self.start(self.reading_tails(paths, len))
    }

    fn size(&self, path: &StorePath) -> Result<u64> {
        let (shared, path, key) = (Arc::clone(self.shared()), path.clone(), key_of(path)?);
        if key.as_ref().is_empty() {
            return Err(not_found(&path));
        }
        self.run(async move {
            let head = observed(shared.store.head(&key)).await;
            Ok(head
                .map_err(|failure| shared.error("read", &path, failure))?
                .size)
        })
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.writable("write", path)?;
        let (shared, place, key) = (Arc::clone(self.shared()), path.clone(), object_key(path)?);
        if body.len() > LONGEST_PUT {
            let mut upload = self.upload(path)?;
            upload.write(&body)?;
            return upload.finish();
        }
        // Not cancelled: nobody could say whether it is there.
        self.shared().run(async move {
            let put = observed(shared.store.put(&key, PutPayload::from(body))).await;
            put.map(drop)
                .map_err(|failure| shared.error("write", &place, failure))
        })
    }

    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        self.writable("write", path)?;
        Ok(Box::new(upload::ObjectUpload::new(
            self.shared(),
            &self.cancel,
            path,
            object_key(path)?,
        )))
    }

    fn finish_all(&self, mut uploads: Vec<Box<dyn Upload>>) -> Result<()> {
        uploads
            .iter_mut()
            .try_for_each(|upload| upload.begin_finish())?;
        uploads.into_iter().try_for_each(Upload::finish)
    }

    fn make_folder(&self, path: &StorePath) -> Result<()> {
        self.writable("write", path)
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        self.writable("move", from)?;
        let (source, target) = (object_key(from)?, object_key(to)?);
        if from.object_parts().map(|p| (p.0, p.1)) != to.object_parts().map(|p| (p.0, p.1)) {
            return Err(Error::Unsupported(format!(
                "cannot move {from} to {to}: the buckets differ"
            )));
        }
        let (shared, from, to) = (Arc::clone(self.shared()), from.clone(), to.clone());
        self.shared().run(async move {
            if !shared.all_within(&to, &target).await?.is_empty()
                || shared.exists(&to, &target).await?
            {
                return Err(already_exists(&to));
            }
            let mut keys = shared.all_within(&from, &source).await?;
            if keys.is_empty() && shared.exists(&from, &source).await? {
                keys.push(source.clone());
            }
            if keys.is_empty() {
                return Err(not_found(&from));
            }
            let mut copies = JoinSet::new();
            for key in keys.clone() {
                let rest = key
                    .as_ref()
                    .strip_prefix(source.as_ref())
                    .unwrap_or_default();
                let copy = Path::parse(format!("{target}{rest}"))
                    .map_err(|e| Error::InvalidArgument(format!("{to}: {e}")))?;
                let (shared, from) = (Arc::clone(&shared), from.clone());
                copies.spawn(async move {
                    let _permit = shared.gate.acquire().await;
                    let copied = observed(shared.store.copy(&key, &copy)).await;
                    copied.map_err(|failure| shared.error("move", &from, failure))
                });
            }
            while let Some(copied) = copies.join_next().await {
                copied.map_err(|_| ended())??;
            }
            shared.delete_all(&from, keys).await
        })
    }

    fn copy_here(&self, from: &StorePath, to: &StorePath) -> Result<bool> {
        self.copy_all_here(&[(from.clone(), to.clone())])
    }

    fn copy_all_here(&self, copies: &[(StorePath, StorePath)]) -> Result<bool> {
        let bucket = |path: &StorePath| {
            let parts = path.object_parts();
            parts.map(|(scheme, authority, _)| (scheme, authority.to_owned()))
        };
        let mut keys = Vec::with_capacity(copies.len());
        for (from, to) in copies {
            self.writable("copy", to)?;
            if !self.shared().abilities.copies || bucket(from) != bucket(to) {
                return Ok(false);
            }
            keys.push((from.clone(), object_key(from)?, object_key(to)?));
        }
        let shared = Arc::clone(self.shared());
        // Not cancelled: nobody could say what is there.
        self.shared().run(async move {
            let mut under_way = JoinSet::new();
            for (from, source, target) in keys {
                let shared = Arc::clone(&shared);
                under_way.spawn(async move {
                    let _permit = shared.gate.acquire().await;
                    let copied = observed(shared.store.copy(&source, &target)).await;
                    copied.map_err(|failure| shared.error("read", &from, failure))
                });
            }
            let mut outcome = Ok(true);
            // To the last one, which would come later otherwise than what takes all of them back.
            while let Some(copied) = under_way.join_next().await {
                if let Err(error) = copied.map_err(|_| ended()).flatten() {
                    outcome = outcome.and(Err(error));
                }
            }
            outcome
        })
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        let Some(first) = paths.first().cloned() else {
            return Ok(());
        };
        self.writable("delete", &first)?;
        let keys: Vec<Path> = paths.iter().map(object_key).collect::<Result<_>>()?;
        let (shared, paths) = (Arc::clone(self.shared()), paths.to_vec());
        self.shared().run(async move {
            // Each may be an object or a folder.
            let mut listings = JoinSet::new();
            let mut doomed = Vec::new();
            for (path, key) in paths.into_iter().zip(keys) {
                if is_surely_an_object(&path) {
                    doomed.push(key);
                    continue;
                }
                let shared = Arc::clone(&shared);
                listings.spawn(async move {
                    let _permit = shared.gate.acquire().await;
                    let mut found = shared.all_within(&path, &key).await?;
                    if found.is_empty() {
                        found.push(key);
                    }
                    Ok::<_, Error>(found)
                });
            }
            while let Some(listed) = listings.join_next().await {
                doomed.extend(listed.map_err(|_| ended())??);
            }
            shared.delete_all(&first, doomed).await
        })
    }

    fn exclusive(&self) -> Option<&dyn PutNew> {
        self.shared().abilities.full.then_some(self as &dyn PutNew)
    }
}

impl PutNew for ObjectStorage {
    fn put_new(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.writable("write", path)?;
        let (shared, place, key) = (Arc::clone(self.shared()), path.clone(), object_key(path)?);
        // Not cancelled: nobody could say whether it is there.
        self.shared().run(async move {
            let options = PutOptions::from(PutMode::Create);
            let put = shared.store.put_opts(&key, PutPayload::from(body), options);
            match observed(put).await {
                Ok(_) => Ok(()),
                Err((object_store::Error::AlreadyExists { .. }, _)) => Err(already_exists(&place)),
                Err(failure) => Err(shared.error("write", &place, failure)),
            }
        })
    }
}

#[cfg(test)]
mod tests;

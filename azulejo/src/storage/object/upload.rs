//! Objects written front to back: small ones at once, large ones in parts. They exist when they are
//! finished, not before.

use super::bucket::{AbortOnDrop, Shared, ended};
use super::cancelled::{AskedFor, Cancelled};
use super::http::observed;
use super::runtime;
use crate::cancel::CancelHandle;
use crate::error::{Error, Result};
use crate::storage::{StorePath, Upload};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;
use tokio::task::JoinSet;

/// Parts of one object under way at a time, whatever others do; more while the bucket has room.
const OWN_PARTS: usize = 2;
/// Services take 10,000 parts at most; past this many, parts grow.
const PARTS_OF_ONE_SIZE: usize = 4_000;
const PARTS_PER_DOUBLING: usize = 1_000;
/// How long what is given up may take to be cleaned away: so many times this. In pieces, as a
/// process that is stopped meanwhile has not had the time.
const CLEANING: (u32, Duration) = (200, Duration::from_millis(100));

/// An object that is being written.
#[derive(Debug)]
pub(super) struct ObjectUpload {
    shared: Arc<Shared>,
    /// What all of the upload is for, which is cancelled as a whole.
    asked_for: AskedFor,
    path: StorePath,
    key: Path,
    buffer: Vec<u8>,
    parts: Option<Parts>,
    finishing: Option<(AbortOnDrop, Receiver<Result<()>>)>,
    /// The object is there.
    finished: bool,
    /// A part has failed: nothing more is sent.
    failed: bool,
}

/// An upload in parts that has been begun.
#[derive(Debug)]
struct Parts {
    upload: Box<dyn MultipartUpload>,
    under_way: JoinSet<Result<()>>,
    begun: usize,
    /// Bytes of the parts that were begun.
    bytes: u64,
}

impl Parts {
    async fn begin(shared: &Shared, path: &StorePath, key: &Path) -> Result<Self> {
        let upload = observed(shared.store.put_multipart(key)).await;
        let upload = upload.map_err(|failure| shared.error("write", path, failure))?;
        Ok(Self {
            upload,
            under_way: JoinSet::new(),
            begun: 0,
            bytes: 0,
        })
    }

    /// Sends a part, once there is room.
    async fn send(&mut self, shared: &Arc<Shared>, path: &StorePath, body: Bytes) -> Result<()> {
        // Those that are done are under way no more.
        while let Some(done) = self.under_way.try_join_next() {
            done.map_err(|_| ended())??;
        }
        let more = loop {
            if self.under_way.len() < OWN_PARTS {
                break None;
            }
            if let Some(more) = shared.room_for(body.len()) {
                break Some(more);
            }
            self.settle_one().await?;
        };
        self.bytes += body.len() as u64;
        let part = self.upload.put_part(PutPayload::from(body));
        let (shared, path) = (Arc::clone(shared), path.clone());
        self.begun += 1;
        self.under_way.spawn(async move {
            let _room = more;
            let _permit = shared.gate.acquire().await;
            observed(part)
                .await
                .map_err(|failure| shared.error("write", &path, failure))
        });
        Ok(())
    }

    async fn settle_one(&mut self) -> Result<()> {
        match self.under_way.join_next().await {
            Some(done) => done.map_err(|_| ended())?,
            None => Ok(()),
        }
    }

    /// Makes the object of its parts. Where an answer was lost and the next one says that there is
    /// no such upload, or there is none at all, the object says how it went.
    async fn complete(&mut self, shared: &Shared, path: &StorePath, key: &Path) -> Result<()> {
        while !self.under_way.is_empty() {
            self.settle_one().await?;
        }
        let Err((error, answer)) = observed(self.upload.complete()).await else {
            return Ok(());
        };
        let is_unclear = matches!(answer.status, None | Some(404 | 500..=599));
        if is_unclear
            && let Ok(found) = observed(shared.store.head(key)).await
            && found.size == self.bytes
        {
            tracing::info!(%path, "an upload was finished, though its answer was lost");
            return Ok(());
        }
        Err(shared.error("write", path, (error, answer)))
    }

    /// Takes back what was sent.
    async fn abort(mut self, path: &StorePath) {
        self.under_way.shutdown().await;
        // A part that was on its way may arrive after the first.
        for _ in 0..2 {
            if let Err((error, _)) = observed(self.upload.abort()).await
                && !matches!(error, object_store::Error::NotFound { .. })
            {
                tracing::warn!(%path, "parts of a write that was given up may remain in the store");
            }
        }
    }
}

impl ObjectUpload {
    pub(super) fn new(
        shared: &Arc<Shared>,
        cancel: &CancelHandle,
        path: &StorePath,
        key: Path,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            asked_for: AskedFor::now(cancel),
            path: path.clone(),
            key,
            buffer: Vec::new(),
            parts: None,
            finishing: None,
            finished: false,
            failed: false,
        }
    }

    /// The size of the next part.
    fn part_size(&self) -> usize {
        let begun = self.parts.as_ref().map_or(0, |parts| parts.begun);
        let doublings = begun
            .saturating_sub(PARTS_OF_ONE_SIZE)
            .div_ceil(PARTS_PER_DOUBLING);
        self.shared.limits.part << doublings.min(6)
    }

    /// Hands the buffer over as a part.
    fn send(&mut self) -> Result<()> {
        let body = Bytes::from(std::mem::take(&mut self.buffer));
        let (shared, path, key) = (
            Arc::clone(&self.shared),
            self.path.clone(),
            self.key.clone(),
        );
        let cancelled = self.asked_for.cancelled();
        self.asked_for.check().inspect_err(|_| self.failed = true)?;
        let parts = self.parts.take();
        // Whatever happens, what was begun is kept: it has to be taken back.
        let sent = self.shared.run(async move {
            let mut parts = match parts {
                Some(parts) => parts,
                None => Parts::begin(&shared, &path, &key).await?,
            };
            let result = cancelled.unless(parts.send(&shared, &path, body)).await;
            Ok((parts, result))
        });
        let (parts, result) = sent.inspect_err(|_| self.failed = true)?;
        self.parts = Some(parts);
        result.inspect_err(|_| self.failed = true)
    }

    /// Takes back what an unfinished upload has sent, and what a finished one that nobody waited
    /// for has made.
    fn clean(&mut self) {
        let finishing = self.finishing.take();
        if self.finished || (self.parts.is_none() && finishing.is_none()) {
            return;
        }
        let Ok(runtime) = runtime::shared() else {
            return;
        };
        let (parts, path) = (self.parts.take(), self.path.clone());
        let made = finishing.is_some_and(|(running, receiver)| {
            let result = receive(&receiver);
            drop(running);
            matches!(result, Some(Ok(())))
        });
        let (sender, receiver) = sync_channel(1);
        let (shared, key) = (Arc::clone(&self.shared), self.key.clone());
        runtime.spawn(async move {
            if let Some(parts) = parts {
                parts.abort(&path).await;
            }
            if made {
                // That it cannot be deleted changes nothing: nobody knows of it.
                let _ = shared.store.delete(&key).await;
            }
            let _ = sender.send(());
        });
        // The process may end soon, so this waits; what takes longer is left to the store's own
        // rules.
        receive(&receiver);
    }
}

/// What comes while something is cleaned away, if it comes in time.
fn receive<T>(receiver: &Receiver<T>) -> Option<T> {
    let (times, wait) = CLEANING;
    for _ in 0..times {
        match receiver.recv_timeout(wait) {
            Ok(received) => return Some(received),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    None
}

impl Upload for ObjectUpload {
    fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        if self.failed || self.finishing.is_some() {
            return Err(Error::Internal(format!(
                "{}: written to after its end",
                self.path
            )));
        }
        while !bytes.is_empty() {
            let room = self.part_size() - self.buffer.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == self.part_size() {
                self.send()?;
            }
        }
        Ok(())
    }

    fn begin_finish(&mut self) -> Result<()> {
        if self.finishing.is_some() {
            return Ok(());
        }
        if self.failed {
            return Err(Error::Internal(format!(
                "{}: ended after an error",
                self.path
            )));
        }
        let cancelled = self.asked_for.cancelled();
        self.asked_for.check().inspect_err(|_| self.failed = true)?;
        let (sender, receiver) = sync_channel(1);
        let (shared, path, key) = (
            Arc::clone(&self.shared),
            self.path.clone(),
            self.key.clone(),
        );
        let (parts, body) = (
            self.parts.take(),
            Bytes::from(std::mem::take(&mut self.buffer)),
        );
        let task = runtime::shared()?.spawn(async move {
            let _ = sender.send(finish(&shared, (&path, &key), parts, body, cancelled).await);
        });
        self.finishing = Some((AbortOnDrop(task.abort_handle()), receiver));
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.begin_finish()?;
        let Some((_running, receiver)) = self.finishing.take() else {
            return Err(ended());
        };
        self.shared
            .stats
            .waiting(|| receiver.recv())
            .unwrap_or_else(|_| Err(ended()))?;
        self.finished = true;
        Ok(())
    }
}

/// Deletes what may have arrived. That it cannot be deleted changes nothing: nobody knows of it.
async fn delete_if_there(shared: &Shared, key: &Path) {
    let _ = tokio::time::timeout(shared.limits.cleaning, shared.store.delete(key)).await;
}

/// Sends the rest and makes the object exist; takes everything back if that fails.
async fn finish(
    shared: &Arc<Shared>,
    (path, key): (&StorePath, &Path),
    parts: Option<Parts>,
    body: Bytes,
    cancelled: Cancelled,
) -> Result<()> {
    let Some(mut parts) = parts else {
        let put = async {
            let _permit = shared.gate.acquire().await;
            let put = observed(shared.store.put(key, PutPayload::from(body))).await;
            put.map(drop)
                .map_err(|failure| shared.error("write", path, failure))
        };
        let result = cancelled.unless(put).await;
        if matches!(result, Err(Error::Cancelled)) {
            delete_if_there(shared, key).await;
        }
        return result;
    };
    let work = async {
        if !body.is_empty() {
            parts.send(shared, path, body).await?;
        }
        parts.complete(shared, path, key).await
    };
    let result = cancelled.unless(work).await;
    if matches!(result, Err(Error::Cancelled)) {
        let _ = tokio::time::timeout(shared.limits.cleaning, parts.abort(path)).await;
        delete_if_there(shared, key).await;
    } else if result.is_err() {
        parts.abort(path).await;
    }
    result
}

impl Drop for ObjectUpload {
    fn drop(&mut self) {
        self.clean();
    }
}

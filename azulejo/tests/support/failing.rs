//! A storage that stops in the middle: what a crash or a full disk does to a write.

use azulejo::error::{Error, Result};
use azulejo::storage::{Append, PutNew, Storage, StorageLayer, StorePath, Upload};
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// How a storage fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// As when the power goes: no call works any more, so nothing is tidied up either.
    Crash,
    /// As when a disk is full for a moment: one call fails.
    Once,
    /// As when a disk fails to make something last: one call does its work and then says that it
    /// has failed.
    Late,
}

/// Passes calls on to another storage until the `after`-th one that changes something (counted from
/// 0).
#[derive(Debug, Clone)]
pub struct FailingStorage {
    inner: Arc<dyn Storage>,
    fuse: Arc<Fuse>,
}

#[derive(Debug)]
struct Fuse {
    left: AtomicI64,
    failure: Failure,
}

impl Fuse {
    fn check(&self, op: &'static str, path: &StorePath) -> Result<()> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        let fails = if self.failure == Failure::Crash {
            left <= 0
        } else {
            left == 0
        };
        if !fails {
            return Ok(());
        }
        self.failure(op, path)
    }

    /// Does the work of a call, if it is not to fail before.
    fn run<T>(
        &self,
        op: &'static str,
        path: &StorePath,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let checked = self.check(op, path);
        if self.failure != Failure::Late {
            checked?;
            return work();
        }
        let done = work()?;
        checked.map(|()| done)
    }

    fn failure<T>(&self, op: &'static str, path: &StorePath) -> Result<T> {
        Err(Error::Storage {
            op,
            uri: path.to_string(),
            source: io::Error::other("the storage stopped"),
        })
    }
}

impl FailingStorage {
    /// Fails at the `after`-th call.
    pub fn new(inner: Arc<dyn Storage>, after: i64, failure: Failure) -> Self {
        Self {
            inner,
            fuse: Arc::new(Fuse {
                left: AtomicI64::new(after),
                failure,
            }),
        }
    }

    /// Whether the failure has come.
    pub fn has_failed(&self) -> bool {
        self.fuse.left.load(Ordering::SeqCst) < 0
    }
}

impl StorageLayer for FailingStorage {
    fn inner(&self) -> &dyn Storage {
        &*self.inner
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.fuse.run("write", path, || self.inner.put(path, body))
    }

    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        self.fuse.check("write", path)?;
        let inner = Some(self.inner.upload(path)?);
        Ok(Box::new(FailingUpload {
            path: path.clone(),
            inner,
            fuse: Arc::clone(&self.fuse),
        }))
    }

    fn make_folder(&self, path: &StorePath) -> Result<()> {
        self.fuse
            .run("write", path, || self.inner.make_folder(path))
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        self.fuse.run("move", from, || self.inner.rename(from, to))
    }

    fn copy_here(&self, from: &StorePath, to: &StorePath) -> Result<bool> {
        self.fuse.run("copy", to, || self.inner.copy_here(from, to))
    }

    fn copy_all_here(&self, copies: &[(StorePath, StorePath)]) -> Result<bool> {
        for (from, to) in copies {
            if !StorageLayer::copy_here(self, from, to)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn remove_empty_folder(&self, path: &StorePath) -> Result<()> {
        self.fuse
            .run("delete", path, || self.inner.remove_empty_folder(path))
    }

    fn appending(&self) -> Option<&dyn Append> {
        None
    }

    fn exclusive(&self) -> Option<&dyn PutNew> {
        self.inner.exclusive().map(|_| self as &dyn PutNew)
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        // Object by object: a crash can come between any two.
        for path in paths {
            let path = std::slice::from_ref(path);
            self.fuse
                .run("delete", &path[0], || self.inner.delete(path))?;
        }
        Ok(())
    }
}

impl PutNew for FailingStorage {
    fn put_new(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.fuse.check("write", path)?;
        let exclusive = self.inner.exclusive();
        exclusive.expect("looked for above").put_new(path, body)
    }
}

#[derive(Debug)]
struct FailingUpload {
    path: StorePath,
    inner: Option<Box<dyn Upload>>,
    fuse: Arc<Fuse>,
}

impl FailingUpload {
    /// Leaves what was written so far, as a file system may.
    fn leave(&mut self) {
        if let (Some(inner), Failure::Crash) = (self.inner.take(), self.fuse.failure) {
            let _ = inner.finish();
        }
    }
}

impl Upload for FailingUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(inner) = &mut self.inner else {
            return self.fuse.check("write", &self.path);
        };
        if let Err(e) = self.fuse.check("write", &self.path) {
            let _ = inner.write(&bytes[..bytes.len() / 2]);
            self.leave();
            return Err(e);
        }
        inner.write(bytes)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if let Err(e) = self.fuse.check("write", &self.path) {
            self.leave();
            return Err(e);
        }
        self.inner.take().map_or(Ok(()), Upload::finish)
    }
}

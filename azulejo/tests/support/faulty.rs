//! Storages that refuse as real ones do: a full disk, a folder that may only be read, a file that
//! is gone.

use azulejo::error::{Error, Result};
use azulejo::storage::{
    Append, Pending, PendingRead, PendingTails, PutNew, RandomAccess, ReadInto, ReadRequest,
    Storage, StorageLayer, StorePath, Tail, Upload,
};
use bytes::Bytes;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a storage refuses.
#[derive(Debug, Clone)]
pub enum Fault {
    /// To take more bytes than these. It can still delete, which frees nothing.
    Full(Arc<AtomicU64>),
    /// To change anything.
    ReadOnly,
    /// To read the objects whose path ends in this, though listings name them.
    Vanished(String),
    /// Nothing; the bytes that it takes are counted.
    None(Arc<AtomicU64>),
}

/// A storage with a fault.
#[derive(Debug, Clone)]
pub struct FaultyStorage {
    inner: Arc<dyn Storage>,
    fault: Fault,
}

impl Fault {
    /// A disk with room for this many bytes.
    pub fn full_after(bytes: u64) -> Self {
        Self::Full(Arc::new(AtomicU64::new(bytes)))
    }

    fn write(&self, path: &StorePath, bytes: usize) -> Result<()> {
        let failed = |kind: ErrorKind| {
            let source = io::Error::from(kind);
            Err(Error::Storage {
                op: "write",
                uri: path.to_string(),
                source,
            })
        };
        match self {
            Self::Full(left) => {
                let take = |left: u64| left.checked_sub(bytes as u64);
                match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take) {
                    Ok(_) => Ok(()),
                    Err(_) => failed(ErrorKind::StorageFull),
                }
            }
            Self::ReadOnly => failed(ErrorKind::PermissionDenied),
            Self::Vanished(_) => Ok(()),
            Self::None(taken) => {
                taken.fetch_add(bytes as u64, Ordering::SeqCst);
                Ok(())
            }
        }
    }

    fn read(&self, path: &StorePath) -> Result<()> {
        match self {
            Self::Vanished(end) if path.to_string().ends_with(end.as_str()) => {
                Err(Error::NotFound {
                    uri: path.to_string(),
                    what: "a file",
                })
            }
            _ => Ok(()),
        }
    }
}

impl FaultyStorage {
    /// Another storage with a fault.
    pub fn new(inner: Arc<dyn Storage>, fault: Fault) -> Self {
        Self { inner, fault }
    }
}

impl StorageLayer for FaultyStorage {
    fn inner(&self) -> &dyn Storage {
        &*self.inner
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        requests
            .iter()
            .try_for_each(|request| self.fault.read(&request.path))?;
        self.inner.read(requests)
    }

    fn read_tails(&self, paths: &[StorePath], len: u64) -> Result<Vec<Tail>> {
        paths.iter().try_for_each(|path| self.fault.read(path))?;
        self.inner.read_tails(paths, len)
    }

    fn read_into(&self, requests: &mut [ReadInto<'_>]) -> Result<()> {
        requests
            .iter()
            .try_for_each(|request| self.fault.read(&request.path))?;
        self.inner.read_into(requests)
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        Pending::ready(StorageLayer::read(self, &requests))
    }

    fn start_read_tails(&self, paths: Vec<StorePath>, len: u64) -> PendingTails {
        Pending::ready(StorageLayer::read_tails(self, &paths, len))
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        None
    }

    fn appending(&self) -> Option<&dyn Append> {
        None
    }

    fn exclusive(&self) -> Option<&dyn PutNew> {
        self.inner.exclusive().map(|_| self as &dyn PutNew)
    }

    fn size(&self, path: &StorePath) -> Result<u64> {
        self.fault.read(path)?;
        self.inner.size(path)
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        // A file takes a name as well, be it empty.
        self.fault.write(path, body.len() + 1)?;
        self.inner.put(path, body)
    }

    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        self.fault.write(path, 1)?;
        let inner = self.inner.upload(path)?;
        Ok(Box::new(FaultyUpload {
            path: path.clone(),
            inner,
            fault: self.fault.clone(),
        }))
    }

    fn make_folder(&self, path: &StorePath) -> Result<()> {
        self.fault.write(path, 1)?;
        self.inner.make_folder(path)
    }

    fn copy_here(&self, from: &StorePath, to: &StorePath) -> Result<bool> {
        self.fault.write(to, 0)?;
        self.inner.copy_here(from, to)
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
        self.fault.write(path, 0)?;
        self.inner.remove_empty_folder(path)
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        self.fault.write(from, 1)?;
        self.inner.rename(from, to)
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        if let (Fault::ReadOnly, Some(path)) = (&self.fault, paths.first()) {
            let source = io::Error::from(ErrorKind::PermissionDenied);
            return Err(Error::Storage {
                op: "delete",
                uri: path.to_string(),
                source,
            });
        }
        self.inner.delete(paths)
    }
}

impl PutNew for FaultyStorage {
    fn put_new(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.fault.write(path, body.len() + 1)?;
        let exclusive = self.inner.exclusive();
        exclusive.expect("looked for above").put_new(path, body)
    }
}

#[derive(Debug)]
struct FaultyUpload {
    path: StorePath,
    inner: Box<dyn Upload>,
    fault: Fault,
}

impl Upload for FaultyUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.fault.write(&self.path, bytes.len())?;
        self.inner.write(bytes)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.inner.finish()
    }
}

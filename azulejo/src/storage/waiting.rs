//! How work waits for a storage.

use super::Storage;
use super::request::{Entry, ReadRequest, Tail};
use super::uri::StorePath;
use crate::error::Result;
use bytes::Bytes;

/// Who drives a piece of work: a thread that may block, or an executor that polls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// A thread: it reads by itself where that is faster than to ask another.
    Blocks,
    /// An executor: the storage reads, and wakes it.
    Polls,
}

impl Waiting {
    /// Lists folders, in their order.
    pub(crate) async fn list(
        self,
        storage: &dyn Storage,
        dirs: Vec<StorePath>,
    ) -> Result<Vec<Vec<Entry>>> {
        match self {
            Self::Blocks => storage.list_all(&dirs),
            Self::Polls => storage.start_list(dirs).await,
        }
    }

    /// Reads ranges as one batch, in the order of the requests.
    pub(crate) async fn read(
        self,
        storage: &dyn Storage,
        requests: Vec<ReadRequest>,
    ) -> Result<Vec<Bytes>> {
        match self {
            Self::Blocks => storage.read(&requests),
            Self::Polls => storage.start_read(requests).await,
        }
    }

    /// Reads the ends of objects as one batch, in the order of the paths.
    pub(crate) async fn read_tails(
        self,
        storage: &dyn Storage,
        paths: Vec<StorePath>,
        len: u64,
    ) -> Result<Vec<Tail>> {
        match self {
            Self::Blocks => storage.read_tails(&paths, len),
            Self::Polls => storage.start_read_tails(paths, len).await,
        }
    }
}

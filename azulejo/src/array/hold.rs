//! Changes that depend on what somebody has seen of an array, while nobody else changes that.

use super::{ArrayHandle, ArrayLock, Head};
use crate::error::Result;
use crate::storage::Uri;
use azulejo_format::schema::SchemaEvolution;

/// Keeps others from changing what an array consists of, until it is dropped: what
/// [`ArrayHandle::hold`] gives.
///
/// Others wait who change the schema, delete fragments, replace them by consolidated ones or vacuum,
/// and who hold the array too. Reads and writes go on. So rows are added behind the end of a dense
/// array, by any number of threads and processes: each writes
/// [uncommitted](crate::write::WriteOptions::uncommitted) fragments behind the end that it has seen,
/// and holds the array while it opens it once more, commits its fragments if the end is where it was,
/// and expands the current domain over them. Where it is not, another one has been faster, and its
/// rows are written anew.
///
/// Methods of the array's handle that wait for the same lock never return while it is held by the
/// same thread: what is changed meanwhile, this changes.
#[derive(Debug)]
#[must_use]
pub struct ArrayHold {
    handle: ArrayHandle,
    lock: ArrayLock,
}

impl ArrayHandle {
    /// Waits until nobody else changes what the array consists of, and keeps them from it. Whoever
    /// holds several arrays takes them in the order of their URIs, so that no two wait for each other.
    ///
    /// Others are all processes of the machine where folders have locks, all that can write where a
    /// store can tell who was the first to write an object, and else the threads of this process.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) if there is no array.
    pub fn hold(&self) -> Result<ArrayHold> {
        let (lock, _) = Head::locked(&self.context, &self.uri)?;
        Ok(ArrayHold {
            handle: self.clone(),
            lock,
        })
    }
}

impl ArrayHold {
    /// As [`ArrayHandle::evolve`].
    ///
    /// # Errors
    /// As [`ArrayHandle::evolve`]; [`Error::Storage`](crate::Error::Storage) where this process stood
    /// still for so long that another one has taken its place.
    pub fn evolve(&self, evolution: &SchemaEvolution, timestamp: Option<u64>) -> Result<()> {
        self.handle.evolve_locked(&self.lock, evolution, timestamp)
    }

    /// As [`ArrayHandle::commit_fragments`].
    ///
    /// # Errors
    /// As [`ArrayHandle::commit_fragments`]; [`Error::Storage`](crate::Error::Storage) where this
    /// process stood still for so long that another one has taken its place.
    pub fn commit_fragments(&self, names: &[String]) -> Result<()> {
        let ArrayHandle { context, uri } = &self.handle;
        let location = context.locate(&Uri::parse(uri)?)?;
        self.lock.confirm(&location)?;
        self.handle.commit_fragments(names)
    }
}

//! How many requests a bucket has at a time, and which comes next.
//!
//! Turns are given in the order in which they were asked for, across all operations. An operation
//! asks for those of all its requests when it is begun, on the thread of its caller: threads of the
//! network take up tasks in any order, and what is needed last would leave first.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::coop::unconstrained;

/// Leave to make a request, until it is dropped.
pub(super) type Permit = Option<OwnedSemaphorePermit>;

/// The one gate of a bucket.
#[derive(Debug)]
pub(super) struct Gate(Arc<Semaphore>);

/// A place among those that wait, or leave to go on; given up when it is dropped.
///
/// Whoever has one must not wait for another request before this one is made or given up: it may be
/// the other's turn only then.
pub(super) enum Admission {
    Come(Permit),
    Coming(Pin<Box<dyn Future<Output = Permit> + Send>>),
}

impl Gate {
    /// With so many permits: a small request takes one, a large one several.
    pub(super) fn new(permits: usize) -> Self {
        Self(Arc::new(Semaphore::new(permits)))
    }

    /// Takes the next place for a request of so many permits.
    pub(super) fn turn(&self, permits: u32) -> Admission {
        let semaphore = Arc::clone(&self.0);
        let coming = async move { semaphore.acquire_many_owned(permits).await.ok() };
        // Nothing but a look at it takes a place, also where a task has looked at much already.
        let mut coming = Box::pin(unconstrained(coming));
        match coming
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(permit) => Admission::Come(permit),
            Poll::Pending => Admission::Coming(coming),
        }
    }

    /// Waits behind all that wait now.
    pub(super) async fn acquire(&self) -> Permit {
        self.turn(1).come().await
    }

    /// Permits that nobody has.
    #[cfg(test)]
    pub(super) fn available_permits(&self) -> usize {
        self.0.available_permits()
    }
}

impl Admission {
    /// Waits until it has come.
    pub(super) async fn come(self) -> Permit {
        match self {
            Self::Come(permit) => permit,
            Self::Coming(coming) => coming.await,
        }
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").finish_non_exhaustive()
    }
}

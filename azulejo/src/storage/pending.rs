//! Answers of a storage that are under way: futures, which a thread can also wait for.

use super::block_on::block_on;
use super::io_stats::IoStats;
use super::request::{Entry, Tail};
use crate::error::{Error, Result};
use crate::platform::Stopwatch;
use crate::sync::{Arc, Mutex, PoisonError};
use bytes::Bytes;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// An answer of a storage that is under way.
///
/// It is a [`Future`] of any executor, and [`Pending::wait`] blocks for it. The work goes on
/// whether somebody waits or not; dropped before its end, it is stopped where the storage can.
///
/// ```
/// # use azulejo::storage::{MemoryStorage, ReadRange, ReadRequest, Storage, StorePath};
/// # let storage = MemoryStorage::new();
/// let path = StorePath::memory("a/b");
/// storage.put(&path, "what lies there".into())?;
///
/// let pending = storage.start_read(vec![ReadRequest { path, range: ReadRange::Bytes(5..9) }]);
/// // In asynchronous code: `pending.await?`.
/// assert_eq!(pending.wait()?, ["lies"]);
/// # Ok::<(), azulejo::Error>(())
/// ```
pub struct Pending<T> {
    future: Pin<Box<dyn Future<Output = Result<T>> + Send>>,
}

/// Ranges of objects, in the order of the requests.
pub type PendingRead = Pending<Vec<Bytes>>;
/// Listings, in the order of the folders.
pub type PendingList = Pending<Vec<Vec<Entry>>>;
/// Ends of objects, in the order of the objects.
pub type PendingTails = Pending<Vec<Tail>>;

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

impl<T: Send + 'static> Pending<T> {
    /// What a future gives. It makes progress only while somebody waits: work that is to go on
    /// meanwhile runs elsewhere and answers through [`Pending::channel`].
    #[must_use]
    pub fn new(future: impl Future<Output = Result<T>> + Send + 'static) -> Self {
        Self {
            future: Box::pin(future),
        }
    }

    /// An answer that is there.
    #[must_use]
    pub fn ready(result: Result<T>) -> Self {
        Self::new(std::future::ready(result))
    }

    /// An answer that will be sent, by any thread.
    #[must_use]
    pub fn channel() -> (Answer<T>, Self) {
        let slot = Arc::new(Mutex::new(Slot {
            result: None,
            waker: None,
            is_open: true,
        }));
        let answer = Answer {
            slot: Arc::clone(&slot),
        };
        (answer, Self::new(Receiver { slot }))
    }

    /// Does something with the result when it is taken.
    #[must_use]
    pub fn then<U: Send + 'static>(
        self,
        work: impl FnOnce(Result<T>) -> Result<U> + Send + 'static,
    ) -> Pending<U> {
        Pending::new(async move { work(self.await) })
    }

    /// Drops `guard` with the answer: its destructor may stop the work.
    #[must_use]
    pub fn with_guard(self, guard: impl Send + 'static) -> Self {
        Self::new(async move {
            let _guard = guard;
            self.await
        })
    }

    /// Counts the time from the moment at which somebody begins to wait.
    #[must_use]
    pub fn timed(self, stats: &IoStats) -> Self {
        let stats = stats.clone();
        Self::new(async move {
            let begun = Stopwatch::start();
            let result = self.await;
            stats.add_waited(begun.elapsed());
            result
        })
    }

    /// Blocks this thread until the answer is there.
    ///
    /// # Errors
    /// Those of the work.
    pub fn wait(self) -> Result<T> {
        block_on(self.future)
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        self.future.as_mut().poll(context)
    }
}

/// What the two ends of a channel share.
struct Slot<T> {
    result: Option<Result<T>>,
    waker: Option<Waker>,
    /// Whether both ends are there.
    is_open: bool,
}

/// The end of a [`Pending`] at which its result is sent. Dropped without one, the other end gets
/// an error.
pub struct Answer<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

impl<T> Answer<T> {
    /// Whether somebody may still want the result.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.slot
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_open
    }

    /// Gives the result to whoever waits for it, if anybody does.
    pub fn send(self, result: Result<T>) {
        self.slot
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .result = Some(result);
        // The drop that follows wakes the other end.
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        let waker = {
            let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.is_open = false;
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The end of a channel at which the result arrives.
struct Receiver<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

impl<T> Future for Receiver<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(result) = slot.result.take() {
            return Poll::Ready(result);
        }
        if !slot.is_open {
            return Poll::Ready(Err(Error::Internal(
                "a storage ended without an answer".into(),
            )));
        }
        slot.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.is_open = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;
    use std::thread;
    use std::time::Duration;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_thread_waits_until_another_answers() {
        let (answer, pending) = Pending::channel();
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            answer.send(Ok(7));
        });
        assert_eq!(pending.then(|n| Ok(n? + 1)).wait().unwrap(), 8);
        other.join().unwrap();
    }

    #[test]
    fn an_executor_is_woken_once_by_the_answer() {
        let (answer, mut pending) = Pending::channel();
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        for _ in 0..3 {
            assert!(Pin::new(&mut pending).poll(&mut context).is_pending());
        }
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
        answer.send(Ok(5));
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        let Poll::Ready(Ok(5)) = Pin::new(&mut pending).poll(&mut context) else {
            panic!("no answer");
        };
    }

    #[test]
    fn a_dropped_end_is_known_at_the_other() {
        let (answer, pending) = Pending::<()>::channel();
        assert!(answer.is_wanted());
        drop(pending);
        assert!(!answer.is_wanted());
        answer.send(Ok(()));

        let (answer, pending) = Pending::<()>::channel();
        drop(answer);
        assert!(matches!(pending.wait(), Err(Error::Internal(_))));
    }

    #[test]
    fn a_guard_goes_with_the_answer_polled_or_not() {
        struct Guard(Arc<AtomicUsize>);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let dropped = Arc::new(AtomicUsize::new(0));
        let guard = || Guard(Arc::clone(&dropped));
        drop(Pending::<()>::channel().1.with_guard(guard()));
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        Pending::ready(Ok(())).with_guard(guard()).wait().unwrap();
        assert_eq!(dropped.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn time_counts_from_the_first_wait() {
        let stats = IoStats::new();
        let (answer, pending) = Pending::channel();
        let pending = pending.timed(&stats);
        thread::sleep(Duration::from_millis(30));
        answer.send(Ok(()));
        pending.wait().unwrap();
        assert!(stats.counts().waited < Duration::from_millis(30));
    }
}

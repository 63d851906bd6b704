//! Giving up what is under way.

use crate::error::{Error, Result};
use crate::sync::{Arc, AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};
use std::collections::HashMap;
use std::fmt;

/// Cancels what a [`Context`](crate::Context) and those derived from it have under way; cheap to
/// clone, to be used from any thread.
///
/// ```
/// # use azulejo::{Config, Context};
/// let context = Context::new(Config::default(), None)?;
/// let handle = context.cancel_handle();
/// std::thread::spawn(move || handle.cancel());
/// # Ok::<(), azulejo::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct CancelHandle {
    state: Arc<CancelState>,
}

#[derive(Default)]
struct CancelState {
    /// How often something was cancelled.
    times: AtomicU64,
    waiting: Mutex<Stops>,
    /// The whole of which this is a part: what cancels that cancels this.
    whole: Option<CancelHandle>,
}

/// What to run when something is cancelled, by number.
#[derive(Default)]
struct Stops {
    next: u64,
    stops: HashMap<u64, Box<dyn FnOnce() + Send>>,
}

impl fmt::Debug for CancelState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelState")
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

impl CancelHandle {
    /// Ends everything that was begun before with [`Error::Cancelled`]: requests that are waited
    /// for at once, queries and writes before their next step. Returns without waiting for that.
    ///
    /// Nothing is harmed: a write that is cancelled does not count, open arrays can be read on, and
    /// what is begun later is not concerned. An object that is being written as a whole, such as a
    /// commit, a schema or a key-value, is not interrupted: it is there afterwards, or its error
    /// says that it is not.
    pub fn cancel(&self) {
        self.state.times.fetch_add(1, Ordering::SeqCst);
        let stops = std::mem::take(&mut self.waiting().stops);
        stops.into_values().for_each(|stop| stop());
    }

    /// A part of what this cancels, which can be cancelled alone.
    pub(crate) fn part(&self) -> Self {
        let state = CancelState {
            whole: Some(self.clone()),
            ..CancelState::default()
        };
        Self {
            state: Arc::new(state),
        }
    }

    /// This and the wholes of which it is a part.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |handle| handle.state.whole.as_ref())
    }

    /// How often this or a whole of it was cancelled.
    fn times(&self) -> u64 {
        self.chain()
            .map(|handle| handle.state.times.load(Ordering::SeqCst))
            .sum()
    }

    /// Marks the beginning of a piece of work.
    pub(crate) fn begin(&self) -> Operation {
        Operation {
            handle: self.clone(),
            begun: self.times(),
            own: Self::default(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Stops> {
        self.state
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs what stops something, unless it was run before.
fn run_once(stop: &Mutex<Option<impl FnOnce()>>) {
    let stop = stop.lock().unwrap_or_else(PoisonError::into_inner).take();
    stop.into_iter().for_each(|stop| stop());
}

/// Someone who is told of cancellation, until this is dropped.
#[derive(Debug)]
pub(crate) struct StopOnCancel {
    /// Who tells, and the number under which.
    told: Vec<(CancelHandle, u64)>,
}

impl Drop for StopOnCancel {
    fn drop(&mut self) {
        for (handle, number) in &self.told {
            // Outside of the lock: what it holds may do anything when it is dropped.
            let stop = handle.waiting().stops.remove(number);
            drop(stop);
        }
    }
}

/// A piece of work that can be cancelled.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    handle: CancelHandle,
    /// How often something had been cancelled when it began.
    begun: u64,
    /// Cancels this piece alone.
    own: CancelHandle,
}

impl Operation {
    /// What cancels this piece of work, and no other.
    pub(crate) fn handle(&self) -> CancelHandle {
        self.own.clone()
    }

    /// Whether who cancels by a handle cancels this piece of work.
    pub(crate) fn ends_with(&self, handle: &CancelHandle) -> bool {
        let mut chain = self.handle.chain();
        chain.any(|whole| Arc::ptr_eq(&whole.state, &handle.state))
    }

    /// Runs `stop`, once, if this piece of work is cancelled before the result is dropped: at once
    /// if it was cancelled since it began.
    ///
    /// It is told first and looks then, so that no cancellation lies between the two.
    #[cfg_attr(
        not(any(test, feature = "object-store")),
        expect(dead_code, reason = "other storages do not wait")
    )]
    pub(crate) fn on_cancel(&self, stop: impl FnOnce() + Send + 'static) -> StopOnCancel {
        // Whoever is cancelled first runs it.
        let stop = Arc::new(Mutex::new(Some(stop)));
        let tell = |handle: &CancelHandle| {
            let stop = Arc::clone(&stop);
            let mut waiting = handle.waiting();
            let number = waiting.next;
            waiting.next += 1;
            waiting
                .stops
                .insert(number, Box::new(move || run_once(&stop)));
            (handle.clone(), number)
        };
        let handles = self.handle.chain().chain([&self.own]);
        let told = handles.map(tell).collect();
        if self.check().is_err() {
            run_once(&stop);
        }
        StopOnCancel { told }
    }

    /// [`Error::Cancelled`] if it was cancelled since it began.
    pub(crate) fn check(&self) -> Result<()> {
        let own = self.own.state.times.load(Ordering::SeqCst);
        if own == 0 && self.handle.times() == self.begun {
            Ok(())
        } else {
            Err(Error::Cancelled)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn what_was_begun_before_ends_and_what_begins_later_does_not() {
        let handle = CancelHandle::default();
        let (before, (sender, receiver)) = (handle.begin(), channel());
        let other = sender.clone();
        let waiting = before.on_cancel(move || sender.send(1).unwrap());
        drop(before.on_cancel(move || other.send(2).unwrap()));
        assert!(before.check().is_ok() && receiver.try_recv().is_err());
        handle.clone().cancel();
        assert!(matches!(before.check(), Err(Error::Cancelled)));
        assert_eq!(
            receiver.iter().collect::<Vec<i32>>(),
            [1],
            "the one that still waits, once"
        );
        drop(waiting);
        assert!(handle.begin().check().is_ok());
        handle.cancel();
    }

    #[test]
    fn a_part_ends_alone_and_with_the_whole() {
        let whole = CancelHandle::default();
        let (one, other) = (whole.part(), whole.part());
        let (sender, receiver) = channel();
        let waiting = one.begin().on_cancel(move || sender.send(()).unwrap());
        let (all, first, second) = (whole.begin(), one.begin(), other.begin());
        one.cancel();
        assert!(first.check().is_err() && second.check().is_ok() && all.check().is_ok());
        assert_eq!(receiver.iter().count(), 1);
        drop(waiting);
        let first = one.begin();
        let (sender, receiver) = channel();
        let waits = one.part().begin();
        let _waiting = waits.on_cancel(move || sender.send(()).unwrap());
        whole.cancel();
        assert!(first.check().is_err() && second.check().is_err() && all.check().is_err());
        assert_eq!(receiver.iter().count(), 1);
    }

    #[test]
    fn who_begins_to_wait_behind_a_cancellation_is_told_at_once() {
        let whole = CancelHandle::default();
        let part = whole.part();
        let told = |operation: &Operation| {
            let (sender, receiver) = channel();
            let waiting = operation.on_cancel(move || sender.send(()).unwrap());
            let times = receiver.try_iter().count();
            drop(waiting);
            times
        };
        let (first, second) = (part.begin(), part.begin());
        assert_eq!((told(&first), told(&second)), (0, 0));
        first.handle().cancel();
        assert_eq!((told(&first), told(&second)), (1, 0));
        whole.cancel();
        assert_eq!((told(&first), told(&second)), (1, 1));
        assert_eq!(told(&part.begin()), 0, "what begins later");
        assert!(first.ends_with(&whole) && first.ends_with(&part));
        assert!(!whole.begin().ends_with(&part));
    }
}

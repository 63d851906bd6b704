//! On whose behalf a thread asks storages for something.
//!
//! A storage that waits ends what it was asked for when the operation that has asked is cancelled,
//! also where it was cancelled just before. [`Storage`](crate::storage::Storage) says nothing of
//! operations, and layers of callers lie in between: so the thread knows, for as long as it works
//! for one. Whoever waits elsewhere (an upload, an answer under way) keeps what it was begun for.
//!
//! Work for an operation may not clean up by looking at what is there: a look is refused behind a
//! cancellation. Deleting is not, nor is writing an object as a whole.

use crate::cancel::Operation;
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;

thread_local! {
    static CURRENT: RefCell<Option<Operation>> = const { RefCell::new(None) };
}

/// Puts back what was the current operation before.
struct Before(Option<Operation>);

impl Drop for Before {
    fn drop(&mut self) {
        // What takes its place drops behind the borrow: that may do anything.
        drop(replace(self.0.take()));
    }
}

fn replace(operation: Option<Operation>) -> Option<Operation> {
    CURRENT.with(|current| current.replace(operation))
}

/// What this thread works for, if it says so.
pub(crate) fn current() -> Option<Operation> {
    CURRENT.with(|current| current.borrow().clone())
}

/// Runs a caller's code, which begins operations of its own.
pub(crate) fn on_nobodys_behalf<T>(work: impl FnOnce() -> T) -> T {
    let _before = Before(replace(None));
    work()
}

impl Operation {
    /// Runs work that asks storages on behalf of this.
    pub(crate) fn runs<T>(&self, work: impl FnOnce() -> T) -> T {
        let _before = Before(replace(Some(self.clone())));
        work()
    }

    /// As [`Self::runs`], whoever polls it.
    pub(crate) async fn drives<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| self.runs(|| work.as_mut().poll(context))).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::CancelHandle;
    use std::task::{Context, Waker};

    #[test]
    fn a_thread_works_for_one_operation_and_then_for_the_one_before() {
        let (one, other) = (CancelHandle::default(), CancelHandle::default());
        let is_for = |handle: &CancelHandle| current().is_some_and(|now| now.ends_with(handle));
        assert!(current().is_none());
        one.begin().runs(|| {
            assert!(is_for(&one));
            let operation = other.begin();
            let mut work = pin!(operation.drives(async {
                assert!(is_for(&other) && !is_for(&one));
                std::thread::scope(|scope| scope.spawn(|| assert!(current().is_none())).join())
                    .unwrap();
            }));
            let polled = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_ready());
            on_nobodys_behalf(|| assert!(current().is_none()));
            assert!(is_for(&one));
        });
        let panicked = std::panic::catch_unwind(|| one.begin().runs(|| panic!("expected")));
        assert!(panicked.is_err() && current().is_none());
    }
}

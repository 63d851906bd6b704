//! A thread that waits for a future.

use crate::sync::thread::{self, Thread};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Blocks this thread until a future is done.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            // Others may unpark this thread too; then the answer is looked for once more.
            Poll::Pending => thread::park(),
        }
    }
}

/// Wakes a thread that has parked itself.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

//! Something that is done again and again, as long as somebody wants it.

use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A thread that does something every so often, until this is dropped: behind that it does nothing
/// more.
#[derive(Debug)]
pub(super) struct Beats {
    end: Arc<End>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct End {
    has_come: Mutex<bool>,
    comes: Condvar,
}

impl Beats {
    /// Does `beat` behind each `pause`; never, where no thread can be had.
    pub fn start(pause: Duration, mut beat: impl FnMut() + Send + 'static) -> Self {
        let end = Arc::new(End::default());
        let until = Arc::clone(&end);
        let run = move || {
            while !until.comes_within(pause) {
                beat();
            }
        };
        let builder = thread::Builder::new().name("azulejo-claim".into());
        let thread = builder.spawn(run).ok();
        Self { end, thread }
    }
}

impl End {
    fn comes_within(&self, time: Duration) -> bool {
        let has_come = self.has_come.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .comes
            .wait_timeout_while(has_come, time, |has_come| !*has_come);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Drop for Beats {
    fn drop(&mut self) {
        let has_come = self.end.has_come.lock();
        *has_come.unwrap_or_else(PoisonError::into_inner) = true;
        self.end.comes.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

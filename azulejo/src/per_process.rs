//! What belongs to one process: threads, and what waits for them.
//!
//! A forked child has its parent's memory and none of its threads. Whoever asks a thread that does
//! not exist waits for ever, so a child makes its own when it needs them first.

use crate::platform::process_id;
use std::sync::OnceLock;

/// A value of the process that made it. Forked children make their own, and leave the parent's as
/// it is.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    process: u32,
    /// There until the end.
    value: Option<T>,
    /// That of a forked child. The parent's stays empty, whatever its children do.
    child: OnceLock<Box<Self>>,
}

impl<T> PerProcess<T> {
    /// A value of this process.
    pub fn new(value: T) -> Self {
        Self {
            process: process_id(),
            value: Some(value),
            child: OnceLock::new(),
        }
    }

    /// This process's value, which `make` makes in a forked child.
    pub fn get(&self, make: impl Fn(&T) -> T) -> Option<&T> {
        let value = self.value.as_ref()?;
        if self.process == process_id() {
            return Some(value);
        }
        let child = self.child.get_or_init(|| Box::new(Self::new(make(value))));
        child.get(make)
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        if self.process != process_id() {
            // Its end would wait for threads that are not there.
            std::mem::forget(self.value.take());
        }
    }
}

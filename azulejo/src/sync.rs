//! What threads share and wait with: the standard library's.
//!
//! Files whose threads can come in many orders take it from here, so that `models/` can put a
//! scheduler's in its place and try all of them.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
pub(crate) use std::thread;

//! The threads that talk to servers, shared by the whole process and started when they are needed
//! first.
//!
//! Callers wait on a channel of the standard library, which works on any thread, also on one of a
//! caller's own runtime.

use crate::error::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::{Builder, Runtime};

/// Threads for TLS and for copying bodies; requests in flight are not bound to them.
const MOST_THREADS: usize = 4;

/// The runtime and the process that started it: after a fork its threads are gone.
static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

/// The process's runtime.
pub(super) fn shared() -> Result<Arc<Runtime>> {
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, runtime)) = &*runtime
        && *owner == process
    {
        return Ok(Arc::clone(runtime));
    }
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let made = Builder::new_multi_thread()
        .worker_threads(cores.clamp(2, MOST_THREADS))
        .thread_name("azulejo-net")
        .enable_all()
        .build()
        .map_err(|e| Error::Internal(format!("cannot start threads for the network: {e}")))?;
    let made = Arc::new(made);
    // What a parent process started cannot be stopped from here: its threads do not exist.
    std::mem::forget(runtime.replace((process, Arc::clone(&made))));
    Ok(made)
}

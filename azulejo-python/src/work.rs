//! Work of the engine's, done while Python goes on.

use crate::error::raised;
use azulejo::CancelHandle;
use azulejo::Error;
use azulejo::storage::Uri;
use pyo3::prelude::*;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::ThreadId;
use std::time::Duration;

/// The thread to which Python hands signals, once it is known.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// Notes that the calling thread is Python's main thread.
pub fn note_main_thread() {
    // Whoever was first has said the same.
    let _ = MAIN.set(std::thread::current().id());
}

/// How often Python is asked whether a signal has come, such as that of Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(50);

/// Bytes of cells that are read or written before anybody waits for them.
pub const SMALL: u64 = 4 << 20;

/// Whether what lies at a URI is reached without a network.
pub fn is_near(uri: &str) -> bool {
    matches!(Uri::parse(uri), Ok(Uri::Local(_) | Uri::Memory(_)))
}

/// Runs work without the GIL that has ended before anybody would stop it: signals wait for that.
/// To hand it to another thread would take longer than most of it does.
pub fn run_short<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(|error| raised(py, &error))
}

/// Does the same with each of some things, on as many threads; the results in the order of the things,
/// or an error.
pub fn each<A: Sync, T: Send>(
    things: &[A],
    threads: usize,
    work: impl Fn(&A) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(thing) = things.get(index) else {
                return Ok(done);
            };
            match work(thing) {
                Ok(result) => done.push((index, result)),
                Err(error) => {
                    // Nobody begins another one.
                    next.store(things.len(), Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(things.len()))
            .map(|_| scope.spawn(some))
            .collect();
        let mut all: Vec<(usize, T)> = some()?;
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic))?);
        }
        Ok::<_, Error>(all)
    })?;
    done.sort_unstable_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// Runs work without the GIL that may wait for others for ever. A signal whose handler raises (Ctrl-C)
/// leaves it to itself: what it comes to then is dropped.
pub fn run_alone<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let (done, mut waiting) = channel();
    std::thread::spawn(move || {
        // Nobody may wait any more.
        let _ = done.send(work());
    });
    loop {
        let told;
        (waiting, told) = py.detach(move || {
            let told = waiting.recv_timeout(SIGNALS);
            (waiting, told)
        });
        match told {
            Ok(result) => return result.map_err(|error| raised(py, &error)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(ended_early(py)),
        }
    }
}

/// Runs work without the GIL. A signal whose handler raises (Ctrl-C) cancels what `cancel` stands
/// for, and its exception is the result.
pub fn run<T: Send>(
    py: Python<'_>,
    cancel: &CancelHandle,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    if MAIN
        .get()
        .is_some_and(|main| *main != std::thread::current().id())
    {
        // No signal comes here.
        return run_short(py, work);
    }
    let outcome = py.detach(|| {
        let (done, waiting) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // The other side waits as long as this one works.
                let _ = done.send(work());
            });
            let mut signalled = None;
            loop {
                match waiting.recv_timeout(SIGNALS) {
                    Ok(result) => return (Some(result), signalled),
                    // The work has panicked: the scope says so.
                    Err(RecvTimeoutError::Disconnected) => return (None, signalled),
                    Err(RecvTimeoutError::Timeout) if signalled.is_none() => {
                        if let Err(error) = Python::attach(|py| py.check_signals()) {
                            signalled = Some(error);
                            cancel.cancel();
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => cancel.cancel(),
                }
            }
        })
    });
    match outcome {
        (_, Some(signal)) => Err(signal),
        (Some(Ok(value)), None) => Ok(value),
        (Some(Err(error)), None) => Err(raised(py, &error)),
        (None, None) => Err(ended_early(py)),
    }
}

/// The work has panicked.
fn ended_early(py: Python<'_>) -> PyErr {
    raised(py, &Error::Internal("the engine's work ended early".into()))
}

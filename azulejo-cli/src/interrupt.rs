//! Ctrl-C and the wish of the system that a program ends: what is under way is cancelled, and the
//! program tidies up. A second time it ends at once.

use crate::error::{CliError, Result};
use azulejo::CancelHandle;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
#[cfg(feature = "sql")]
use std::task::Poll;
use std::task::Waker;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether it is cancelled in the engine, for as long as the program lives.
static CANCELS: AtomicBool = AtomicBool::new(true);

/// The exit code of a program that was interrupted.
pub const EXIT_CODE: u8 = 130;

/// Cancels through `handle` when the program is to end.
pub fn listen(handle: CancelHandle) {
    // Where signals cannot be caught, the program ends as others do.
    let _ = ctrlc::set_handler(move || {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(EXIT_CODE));
        }
        if CANCELS.load(Ordering::SeqCst) {
            handle.cancel();
        }
        if let Some(waker) = waiting().take() {
            waker.wake();
        }
    });
}

/// Who waits for it.
static WAITING: Mutex<Option<Waker>> = Mutex::new(None);

fn waiting() -> MutexGuard<'static, Option<Waker>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Comes when what is under way is to end: at once, however busy the threads of a runtime are, which
/// clocks would have to wait for.
#[cfg(feature = "sql")]
pub async fn wished() {
    std::future::poll_fn(|context| {
        *waiting() = Some(context.waker().clone());
        match check() {
            Ok(()) => Poll::Pending,
            Err(_) => Poll::Ready(()),
        }
    })
    .await;
}

/// From now on it is a statement that is to end, and not the program: by who asks with [`check`].
#[cfg(feature = "sql")]
pub fn ends_statements_alone() {
    CANCELS.store(false, Ordering::SeqCst);
}

/// Begins the next statement, which nobody has wished to end.
#[cfg(feature = "sql")]
pub fn forget() {
    INTERRUPTED.store(false, Ordering::SeqCst);
}

/// Ends work of this program's own, between two steps, if it is to end.
pub fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::SeqCst) {
        return Err(CliError::Interrupted);
    }
    Ok(())
}

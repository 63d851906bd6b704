//! Ctrl-C and the wish of the system that a program ends: what is under way is cancelled, and the
//! program tidies up. A second time it ends at once.

use crate::error::{CliError, Result};
use azulejo::CancelHandle;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The exit code of a program that was interrupted.
pub const EXIT_CODE: u8 = 130;

/// Cancels through `handle` when the program is to end.
pub fn listen(handle: CancelHandle) {
    // Where signals cannot be caught, the program ends as others do.
    let _ = ctrlc::set_handler(move || {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(EXIT_CODE));
        }
        handle.cancel();
    });
}

/// Ends work of this program's own, between two steps, if it is to end.
pub fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::SeqCst) {
        return Err(CliError::Interrupted);
    }
    Ok(())
}

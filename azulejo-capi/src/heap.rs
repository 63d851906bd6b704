//! Memory that queries have used goes back to the system.
//!
//! Allocators keep what was freed for whoever asks next. After queries of many cells that is as
//! much memory as their keys and tiles took, which the caller's program may need elsewhere. The
//! setting `sm.mem.malloc_trim` says whether they let go of it.

#[cfg(target_os = "linux")]
mod large;

use std::sync::atomic::{AtomicU64, Ordering};

/// Letting go of memory, and touching it for the first time again, costs little beside moving so
/// many bytes.
const MUCH: u64 = 16 << 20;

/// Bytes that queries moved since memory was given back.
static MOVED: AtomicU64 = AtomicU64::new(0);

/// Notes that a query took bytes from its caller's buffers, or filled them.
pub fn moved(bytes: u64) {
    MOVED.fetch_add(bytes, Ordering::Relaxed);
}

/// Gives unused memory back when it is dropped, if much was moved since the last time: queries end
/// with it.
#[derive(Debug)]
pub struct Settling;

impl Drop for Settling {
    fn drop(&mut self) {
        if MOVED.load(Ordering::Relaxed) >= MUCH && MOVED.swap(0, Ordering::Relaxed) >= MUCH {
            trim();
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    // SAFETY: it may be called at any time, by any thread.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Other allocators are not asked.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

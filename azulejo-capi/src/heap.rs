//! Memory that queries have used goes back to the system.
//!
//! Allocators keep what was freed for whoever asks next. After queries of many cells that is as
//! much memory as their keys and tiles took, which the caller's program may need elsewhere. The
//! setting `sm.mem.malloc_trim` says whether they let go of it.

#[cfg(target_os = "linux")]
mod allocator;
#[cfg(target_os = "linux")]
mod idle;
#[cfg(target_os = "linux")]
mod range;

use crate::config::Settings;
#[cfg(target_os = "linux")]
use azulejo::internal::BufferPool;
use std::sync::atomic::{AtomicU64, Ordering};

/// Letting go of memory, and touching it for the first time again, costs little beside moving so
/// many bytes.
const MUCH: u64 = 16 << 20;

/// It is worth so many bytes where they lie idle.
const SOME: u64 = 4 << 20;

/// Bytes that queries moved since memory was given back.
static MOVED: AtomicU64 = AtomicU64::new(0);

/// Notes that a query took bytes from its caller's buffers, or filled them.
pub fn moved(bytes: u64) {
    MOVED.fetch_add(bytes.max(1), Ordering::Relaxed);
}

/// Gives unused memory back when it is dropped, if much was moved since the last time, or queries
/// have left much behind: they end with it.
#[derive(Debug)]
pub struct Settling;

impl Drop for Settling {
    fn drop(&mut self) {
        let moved = MOVED.load(Ordering::Relaxed);
        let much = moved >= MUCH || (moved > 0 && idle() >= SOME);
        if much && MOVED.swap(0, Ordering::Relaxed) > 0 {
            trim();
        }
    }
}

/// Whether the settings let go of unused memory.
pub fn may_settle(settings: &Settings) -> bool {
    settings.flag("sm.mem.malloc_trim")
}

/// Gives unused memory back if there is some: an array was closed, or changed as a whole.
pub fn settle() {
    if idle() >= SOME {
        MOVED.store(0, Ordering::Relaxed);
        trim();
    }
}

#[cfg(target_os = "linux")]
fn idle() -> u64 {
    idle::idle() + BufferPool::kept()
}

/// Other allocators are not asked.
#[cfg(not(target_os = "linux"))]
fn idle() -> u64 {
    0
}

#[cfg(target_os = "linux")]
fn trim() {
    BufferPool::release_kept();
    idle::given_back();
    range::give_all_back();
    #[cfg(target_env = "gnu")]
    // SAFETY: it may be called at any time, by any thread.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Other allocators are not asked.
#[cfg(not(target_os = "linux"))]
fn trim() {}

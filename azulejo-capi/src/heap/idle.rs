//! How much of the heap lies idle: what the library's code held at most since memory was given
//! back, without what it holds now.
//!
//! Each thread counts for itself and tells the others now and then, so that counting costs nothing
//! beside taking a block.

use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

/// Smaller blocks are not counted.
const COUNTED: usize = 1024;
/// A thread tells of so many bytes at once.
const STEP: isize = 64 << 10;

/// Bytes that are held.
static HELD: AtomicIsize = AtomicIsize::new(0);
/// The most of them since memory was given back.
static MOST: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    /// Bytes that this thread has taken, less those that it gave back, and has not told of.
    static UNTOLD: Cell<isize> = const { Cell::new(0) };
}

/// A block of the heap was taken.
pub fn taken(bytes: usize) {
    if bytes >= COUNTED {
        count(bytes.cast_signed());
    }
}

/// A block of the heap was given back.
pub fn freed(bytes: usize) {
    if bytes >= COUNTED {
        count(-bytes.cast_signed());
    }
}

fn count(bytes: isize) {
    UNTOLD.with(|untold| {
        let sum = untold.get() + bytes;
        if sum.abs() < STEP {
            untold.set(sum);
            return;
        }
        untold.set(0);
        let held = HELD.fetch_add(sum, Ordering::Relaxed) + sum;
        if held > MOST.load(Ordering::Relaxed) {
            MOST.fetch_max(held, Ordering::Relaxed);
        }
    });
}

/// Bytes that lie idle.
pub fn idle() -> u64 {
    let held = HELD.load(Ordering::Relaxed);
    u64::try_from(MOST.load(Ordering::Relaxed) - held).unwrap_or(0)
}

/// What lay idle was given back.
pub fn given_back() {
    MOST.store(HELD.load(Ordering::Relaxed), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_freed_lies_idle_until_it_is_given_back() {
        const BLOCK: u64 = 1 << 20;
        // Other tests take and free memory meanwhile, and may give it back.
        let found = (0..100).any(|_| {
            given_back();
            let blocks: Vec<Vec<u8>> = (0..64).map(|_| vec![1; 1 << 20]).collect();
            let while_held = idle();
            drop(blocks);
            let freed = idle();
            given_back();
            while_held < 32 * BLOCK && freed >= 60 * BLOCK && idle() < 32 * BLOCK
        });
        assert!(found);
    }
}

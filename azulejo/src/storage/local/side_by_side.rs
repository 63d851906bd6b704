//! Calls of the system that wait for the device, side by side.

use crate::error::Result;
use crate::sync::{Mutex, thread};
use std::num::NonZero;
use std::sync::OnceLock;

/// Threads that wait at a time, the caller's included.
pub(super) const WAITING: usize = 8;

/// Threads for calls that keep a core busy in the system and wait now and then.
pub(super) fn busy() -> usize {
    // The system is asked once: it takes a dozen calls to find out.
    static CORES: OnceLock<usize> = OnceLock::new();
    let cores = *CORES.get_or_init(|| thread::available_parallelism().map_or(0, NonZero::get));
    (cores + 1).min(WAITING)
}

/// Does `work` on every item, as many at a time as there are `threads`, and returns the first
/// error; after one no other item is begun.
///
/// For work that waits: one commit of a file system's journal serves all files that wait for it
/// together. These threads are none of a pool's, which has few because its own work computes.
pub(super) fn side_by_side<T: Send>(
    items: Vec<T>,
    threads: usize,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let helpers = items.len().min(threads).saturating_sub(1);
    let left = Mutex::new(items.into_iter());
    let failed = Mutex::new(None);
    let next = || left.lock().ok()?.next();
    let run = || {
        while let Some(item) = next() {
            if let Err(error) = work(item) {
                if let Ok(mut left) = left.lock() {
                    left.by_ref().for_each(drop);
                }
                if let Ok(mut failed) = failed.lock() {
                    failed.get_or_insert(error);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..helpers {
            // Without a thread more the others do its work.
            let _ = thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    failed.into_inner().unwrap_or_default().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn all_items_are_done_once_and_an_error_ends_the_rest() {
        let done = AtomicUsize::new(0);
        let add = |i: usize| {
            done.fetch_add(i, Ordering::Relaxed);
            Ok(())
        };
        side_by_side((1..=100).collect(), WAITING, add).unwrap();
        assert_eq!(done.into_inner(), 5050);
        side_by_side(Vec::<usize>::new(), busy(), |_| {
            Err(Error::Internal("never called".into()))
        })
        .unwrap();

        let begun = AtomicUsize::new(0);
        let fail = |i: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err(Error::InvalidArgument(format!("item {i}")))
        };
        let error = side_by_side((0..1000).collect(), WAITING, fail).unwrap_err();
        assert!(error.to_string().contains("item"), "{error}");
        assert!(begun.into_inner() <= WAITING);
    }
}

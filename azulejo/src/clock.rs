//! The time of writes: strictly increasing within the process, never ahead of the wall clock.

use crate::platform::since_epoch;
#[cfg(feature = "testing")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The last timestamp that was handed out.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Whether the clock stands still but for the writes.
#[cfg(feature = "testing")]
static STANDS: AtomicBool = AtomicBool::new(false);

/// From now on, in this process, a millisecond passes with each timestamp of a write, and with
/// nothing else: a test of many writes waits for none.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub fn stand_still() {
    LAST.fetch_max(millis(since_epoch()), Ordering::SeqCst);
    STANDS.store(true, Ordering::SeqCst);
}

/// Whether a millisecond passes with each timestamp, and with nothing else.
#[cfg(feature = "testing")]
fn stands() -> bool {
    STANDS.load(Ordering::SeqCst)
}

#[cfg(not(feature = "testing"))]
fn stands() -> bool {
    false
}

/// How far behind the last timestamp the wall clock may lie for us to wait until it has caught up.
/// A clock that was set back further is not waited for.
const LONGEST_WAIT: u64 = 20;

/// Milliseconds since 1970-01-01 UTC for a new write: later than any that this process was given
/// before.
///
/// Two writes within a millisecond would otherwise have one time, and no order. The second one
/// waits for the next millisecond, so that a reader that opens an array after a write always sees
/// it.
#[must_use]
pub fn next_timestamp() -> u64 {
    if stands() {
        return LAST.fetch_add(1, Ordering::SeqCst) + 1;
    }
    loop {
        let since = since_epoch();
        let wall = millis(since);
        let last = LAST.load(Ordering::SeqCst);
        let next = if wall > last {
            wall
        } else if last - wall < LONGEST_WAIT {
            let within = Duration::from_nanos(u64::from(since.subsec_nanos() % 1_000_000));
            let until_next = Duration::from_millis(last - wall + 1).saturating_sub(within);
            std::thread::sleep(until_next);
            continue;
        } else {
            last.saturating_add(1)
        };
        if LAST
            .compare_exchange(last, next, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
        {
            return next;
        }
    }
}

/// Milliseconds since 1970-01-01 UTC for a reader: everything that this process has written lies
/// before it or at it.
#[must_use]
pub fn now() -> u64 {
    if stands() {
        return LAST.load(Ordering::SeqCst);
    }
    millis(since_epoch()).max(LAST.load(Ordering::SeqCst))
}

fn millis(since: Duration) -> u64 {
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn timestamps_are_unique_and_increase_in_every_thread() {
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| (0..20).map(|_| next_timestamp()).collect::<Vec<_>>()))
            .collect();
        let given: Vec<Vec<u64>> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        assert!(
            given.iter().all(|times| times.is_sorted_by(|a, b| a < b)),
            "{given:?}"
        );
        let all: HashSet<u64> = given.iter().flatten().copied().collect();
        assert_eq!(all.len(), 80);
        assert!(all.iter().all(|time| *time <= now()));
    }

    #[test]
    fn they_keep_up_with_the_wall_clock() {
        for _ in 0..5 {
            let (before, time, after) = (
                millis(since_epoch()),
                next_timestamp(),
                millis(since_epoch()),
            );
            assert!(before <= time && time <= after, "{before} {time} {after}");
        }
    }
}

//! Blocks of tens of kilobytes up to the large ones, past the C library's heap.
//!
//! Threads have heaps of their own there, and what is free at their ends does not go back to the
//! system by any call. Tiles, keys and what is made of them are such blocks, on all threads. They
//! come from a range of addresses of ours, in units, where a block takes the first place that is
//! free: so memory that was freed serves blocks of any size, and goes back unit by unit.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Blocks begin at multiples of so many bytes: a page, or several, on every system.
const UNIT: usize = 64 << 10;
/// Smaller blocks are left to the C library.
pub const SMALLEST: usize = 32 << 10;
/// From here on blocks are not of the range: they would have more units than a word has bits.
pub const LARGEST: usize = 64 * UNIT;
/// The range: addresses, which cost nothing. What does not fit is left to the C library. Where
/// addresses have 32 bits it is 0: then there is none.
const RANGE: usize = 8 << 30;
const WORDS: usize = RANGE / UNIT / 64;
/// So many bytes of the range become usable at once.
const STEP: usize = 64 << 20;
/// Free units keep at most so many bytes of memory for the next blocks: touching new memory costs
/// more than its use.
const MOST_KEPT: usize = 32 << 20;
/// How often a thread tries to get the lock, which is held for some hundred instructions, before it
/// waits for it. A forked child does not wait, and does without the range from then on: whoever
/// holds the lock may be gone.
const TRIES: usize = 200;

/// Where the range begins; 0: nobody has asked the system yet, 1: there is none.
static BASE: AtomicUsize = AtomicUsize::new(0);

/// The process that asked for the range; others are its forked children.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Whether this is a forked child, or one of its own, that could not get the lock.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

static UNITS: Mutex<Units> = Mutex::new(Units {
    used: [0; WORDS],
    touched: [0; WORDS],
    first: 0,
    idle: 0,
    usable: 0,
});

/// Units, a bit each.
struct Units {
    /// They belong to a block.
    used: [u64; WORDS],
    /// They may have memory, and other content than zeros.
    touched: [u64; WORDS],
    /// All words before it are used.
    first: usize,
    /// Units that are touched and not used.
    idle: usize,
    /// Bytes at the beginning of the range that may be used.
    usable: usize,
}

/// A block and whether all its bytes are zero.
pub struct Taken {
    pub block: *mut u8,
    pub zeros: bool,
}

/// Units that follow one another, within two words.
#[derive(Clone, Copy)]
struct Run {
    unit: usize,
    count: usize,
}

impl Run {
    fn of_block(block: *mut u8, size: usize) -> Self {
        Self {
            unit: block.addr().wrapping_sub(BASE.load(Ordering::Relaxed)) / UNIT,
            count: size.div_ceil(UNIT),
        }
    }

    fn start(self) -> *mut u8 {
        let base = BASE.load(Ordering::Relaxed);
        std::ptr::with_exposed_provenance_mut(base + self.unit * UNIT)
    }

    /// Gives its memory back: whether it is zeros from now on. The system keeps what the program
    /// has locked in memory.
    fn give_back(self) -> bool {
        // SAFETY: its units lie in the range, which is mapped for good, and are marked as used by
        // the caller, who uses them for nothing.
        unsafe { libc::madvise(self.start().cast(), self.count * UNIT, libc::MADV_DONTNEED) == 0 }
    }

    /// Its first word, and its bits in that and the next one.
    fn bits(self) -> (usize, u128) {
        let ones = (1u128 << self.count) - 1;
        (self.unit / 64, ones << (self.unit % 64))
    }
}

/// Two words; what lies behind the last one has all bits.
fn pair(words: &[u64; WORDS], at: usize) -> u128 {
    let word = |at: usize| words.get(at).copied().unwrap_or(u64::MAX);
    u128::from(word(at)) | u128::from(word(at + 1)) << 64
}

/// Changes two words.
fn change(words: &mut [u64; WORDS], at: usize, with: impl Fn(&mut u64, u64), bits: u128) {
    #[expect(clippy::cast_possible_truncation, reason = "one half after the other")]
    for (at, bits) in [(at, bits as u64), (at + 1, (bits >> 64) as u64)] {
        if let Some(word) = words.get_mut(at) {
            with(word, bits);
        }
    }
}

impl Units {
    /// The first place of so many free units.
    fn find(&mut self, count: usize) -> Option<Run> {
        while self.used.get(self.first) == Some(&u64::MAX) {
            self.first += 1;
        }
        (self.first..WORDS).find_map(|at| {
            // Bits where a run of free units begins that is ever longer.
            let mut begins = !pair(&self.used, at);
            let mut length = 1;
            while length < count {
                let step = length.min(count - length);
                begins &= begins >> step;
                length += step;
            }
            let bit = begins.trailing_zeros() as usize;
            (bit < 64).then_some(Run {
                unit: at * 64 + bit,
                count,
            })
        })
    }

    /// Makes free units a block's; whether they are zeros.
    fn take(&mut self, run: Run) -> Option<bool> {
        let end = (run.unit + run.count) * UNIT;
        if end > self.usable {
            self.make_usable(end)?;
        }
        let (at, bits) = run.bits();
        let touched = (pair(&self.touched, at) & bits).count_ones();
        self.idle -= touched as usize;
        change(&mut self.used, at, |word, bits| *word |= bits, bits);
        change(&mut self.touched, at, |word, bits| *word |= bits, bits);
        Some(touched == 0)
    }

    /// Makes a block's units free; they keep their memory.
    fn put(&mut self, run: Run) {
        let (at, bits) = run.bits();
        change(&mut self.used, at, |word, bits| *word &= !bits, bits);
        self.idle += run.count;
        self.first = self.first.min(at);
    }

    /// Makes a block's units free that have no memory any more, if they are `empty`.
    fn put_back(&mut self, run: Run, empty: bool) {
        self.put(run);
        if empty {
            let (at, bits) = run.bits();
            change(&mut self.touched, at, |word, bits| *word &= !bits, bits);
            self.idle -= run.count;
        }
    }

    /// Free units with memory within a word, from `first` on. They are marked as used.
    fn claim(&mut self, first: usize) -> Option<Run> {
        let idle = |at: usize| {
            self.touched
                .get(at)
                .zip(self.used.get(at))
                .map(|(t, u)| t & !u)
        };
        let at = (first / 64..WORDS).find(|at| idle(*at).is_some_and(|bits| bits != 0))?;
        let bits = idle(at)?;
        let bit = bits.trailing_zeros() as usize;
        let run = Run {
            unit: at * 64 + bit,
            count: (bits >> bit).trailing_ones() as usize,
        };
        self.take(run)?;
        Some(run)
    }

    /// Lets blocks begin before `end`.
    fn make_usable(&mut self, end: usize) -> Option<()> {
        let end = end.next_multiple_of(STEP).min(RANGE);
        let (base, access) = (range()?, libc::PROT_READ | libc::PROT_WRITE);
        let start = std::ptr::with_exposed_provenance_mut(base + self.usable);
        // SAFETY: no block is of this part of the range yet.
        let refused = unsafe { libc::mprotect(start, end - self.usable, access) } != 0;
        if refused {
            return None;
        }
        self.usable = end;
        Some(())
    }
}

/// Whether a block lies in the range.
pub fn is_ours(block: *mut u8) -> bool {
    let base = BASE.load(Ordering::Relaxed);
    base > 1 && block.addr().wrapping_sub(base) < RANGE
}

/// A block of at least `size` bytes, if there is one.
pub fn take(size: usize) -> Option<Taken> {
    range()?;
    let mut units = lock()?;
    let run = units.find(size.div_ceil(UNIT))?;
    let zeros = units.take(run)?;
    drop(units);
    let block = run.start();
    if zeros {
        // SAFETY: the block is nobody else's; its content stays. Where the system does not know
        // the advice, pages come one by one.
        unsafe { libc::madvise(block.cast(), size, libc::MADV_POPULATE_WRITE) };
    }
    Some(Taken { block, zeros })
}

/// Takes a block of the range back.
pub fn put(block: *mut u8, size: usize) {
    let run = Run::of_block(block, size);
    if let Some(mut units) = lock()
        && (units.idle + run.count) * UNIT <= MOST_KEPT
    {
        units.put(run);
        return;
    }
    // Without the lock the addresses are lost, but no memory is.
    let empty = run.give_back();
    if let Some(mut units) = lock() {
        units.put_back(run, empty);
    }
}

/// Makes a block longer or shorter where it is; false if it must move for that.
pub fn resize(block: *mut u8, old: usize, new: usize) -> bool {
    let (was, is) = (Run::of_block(block, old), Run::of_block(block, new));
    let rest = |from: Run, to: Run| Run {
        unit: from.unit + from.count,
        count: to.count - from.count,
    };
    if is.count < was.count {
        put(rest(is, was).start(), (was.count - is.count) * UNIT);
    } else if is.count > was.count {
        let (rest, units) = (rest(was, is), lock());
        let (at, bits) = rest.bits();
        return units.is_some_and(|mut units| {
            pair(&units.used, at) & bits == 0 && units.take(rest).is_some()
        });
    }
    true
}

/// Gives the memory of free units back.
pub fn give_all_back() {
    let mut next = 0;
    // One run after the other: it is nobody's while its memory goes.
    while let Some(run) = lock().and_then(|mut units| units.claim(next)) {
        let empty = run.give_back();
        // What could not be given back would be found again: its word is left as it is.
        next = run.unit + if empty { 0 } else { 64 };
        if let Some(mut units) = lock() {
            units.put_back(run, empty);
        }
    }
}

/// The units; nothing in a forked child that could not get them once.
fn lock() -> Option<MutexGuard<'static, Units>> {
    if GIVEN_UP.load(Ordering::Relaxed) {
        return None;
    }
    for _ in 0..TRIES {
        match UNITS.try_lock() {
            Ok(units) => return Some(units),
            Err(TryLockError::Poisoned(poisoned)) => {
                return Some(PoisonError::into_inner(poisoned));
            }
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    if OWNER.load(Ordering::Relaxed) == std::process::id() {
        return Some(UNITS.lock().unwrap_or_else(PoisonError::into_inner));
    }
    GIVEN_UP.store(true, Ordering::Relaxed);
    None
}

/// Where the range begins, if there is one.
fn range() -> Option<usize> {
    let base = BASE.load(Ordering::Acquire);
    if base > 0 {
        return (base > 1).then_some(base);
    }
    let new = if addresses_are_limited() {
        libc::MAP_FAILED
    } else {
        reserve()
    };
    let refused = new == libc::MAP_FAILED;
    let found = if refused { 1 } else { new.expose_provenance() };
    OWNER.store(std::process::id(), Ordering::Relaxed);
    let was = BASE.compare_exchange(0, found, Ordering::AcqRel, Ordering::Acquire);
    if let Err(other) = was {
        if !refused {
            // SAFETY: another thread was faster; this map is nobody's.
            unsafe { libc::munmap(new, RANGE) };
        }
        return (other > 1).then_some(other);
    }
    (!refused).then_some(found)
}

/// Addresses that nobody can use yet.
fn reserve() -> *mut std::ffi::c_void {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: new memory at a place that the system chooses; the advice changes no content. Pages
    // larger than a unit would hold what nobody has touched.
    unsafe {
        let range = libc::mmap(null_mut(), RANGE, libc::PROT_NONE, kind, -1, 0);
        if range == libc::MAP_FAILED {
            return range;
        }
        libc::madvise(range, RANGE, libc::MADV_NOHUGEPAGE);
        if !goes_back(range) {
            libc::munmap(range, RANGE);
            return libc::MAP_FAILED;
        }
        range
    }
}

/// Whether memory at the beginning of a new range can be given back, and is zeros then: not where
/// all of a program's memory is locked, and emulators have taken the advice and done nothing.
///
/// # Safety
/// `range` must be a map that nobody uses yet.
unsafe fn goes_back(range: *mut std::ffi::c_void) -> bool {
    let (first, access) = (range.cast::<u8>(), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: the caller's promise; the byte is looked at where it can be written.
    unsafe {
        if libc::mprotect(range, UNIT, access) != 0 {
            return false;
        }
        first.write_volatile(1);
        libc::madvise(range, UNIT, libc::MADV_DONTNEED) == 0 && first.read_volatile() == 0
    }
}

/// Whether the process may only have so many addresses: then they are not ours to reserve.
fn addresses_are_limited() -> bool {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: it writes to `limit`.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0;
    !known || limit.rlim_cur != libc::RLIM_INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units() -> Box<Units> {
        Box::new(Units {
            used: [0; WORDS],
            touched: [0; WORDS],
            first: 0,
            idle: 0,
            usable: RANGE,
        })
    }

    #[test]
    fn blocks_take_the_first_place_that_is_long_enough() {
        let mut units = units();
        let mut take = |count| {
            let run = units.find(count).unwrap();
            assert_eq!(units.take(run), Some(true), "untouched units are zeros");
            (run.unit, run.count)
        };
        assert_eq!(
            [take(60), take(64), take(1), take(10)],
            [(0, 60), (60, 64), (124, 1), (125, 10)]
        );

        units.put(Run {
            unit: 60,
            count: 64,
        });
        assert_eq!((units.idle, units.first), (64, 0));
        let places = [64, 3, 5].map(|count| units.find(count).unwrap().unit);
        assert_eq!(places, [60, 60, 60]);
        let run = units.find(40).unwrap();
        assert_eq!((units.take(run), units.idle), (Some(false), 24));
        assert_eq!(units.find(25).unwrap().unit, 135, "24 are left before it");
        assert_eq!(units.find(24).unwrap().unit, 100);
    }

    #[test]
    fn what_is_free_and_has_memory_is_claimed_once() {
        let mut units = units();
        for _ in 0..5 {
            let run = units.find(50).unwrap();
            units.take(run).unwrap();
        }
        units.put(Run {
            unit: 50,
            count: 50,
        });
        units.put(Run {
            unit: 200,
            count: 50,
        });
        let mut claimed = 0;
        while let Some(run) = units.claim(0) {
            claimed += run.count;
            units.put_back(run, true);
        }
        assert_eq!((claimed, units.idle), (100, 0));
        let run = units.find(50).unwrap();
        assert_eq!((run.unit, units.take(run)), (50, Some(true)));
    }

    #[test]
    fn memory_that_is_locked_is_not_taken_for_zeros() {
        let size = 3 * UNIT;
        let Some(taken) = take(size) else {
            return;
        };
        let run = Run::of_block(taken.block, size);
        // SAFETY: the block is ours, and as large.
        let locked = unsafe {
            taken.block.write_bytes(7, size);
            libc::mlock(taken.block.cast(), size) == 0
        };
        assert_eq!(run.give_back(), !locked);
        put(taken.block, size);
        give_all_back();
        let blocks: Vec<Vec<u8>> = (0..64).map(|_| vec![0; size]).collect();
        assert!(blocks.iter().flatten().all(|byte| *byte == 0));
        // SAFETY: the range is mapped for good; that memory is locked or not changes no content.
        unsafe { libc::munlock(taken.block.cast(), size) };
    }

    #[test]
    fn blocks_are_nobody_elses_and_zero_where_they_say_so() {
        let threads: Vec<_> = (0..4u8)
            .map(|thread| {
                std::thread::spawn(move || {
                    let mut held: Vec<(Vec<u8>, u8)> = Vec::new();
                    for step in 0..400usize {
                        let len = SMALLEST + step * 7919 % (3 << 20);
                        let mut block = vec![0u8; len];
                        assert!(block.iter().all(|byte| *byte == 0));
                        let mark = thread * 50 + u8::try_from(step % 50).unwrap() + 1;
                        block.fill(mark);
                        if step % 5 == 0 {
                            block.reserve_exact(step * 1000);
                            block.shrink_to(len - len / 3);
                        }
                        held.push((block, mark));
                        if step % 3 > 0 {
                            let (block, mark) = held.swap_remove(step * 31 % held.len());
                            assert!(block.iter().all(|byte| *byte == mark));
                        }
                        if step % 97 == 0 {
                            give_all_back();
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

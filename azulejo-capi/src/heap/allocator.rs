//! Where the library's memory comes from.
//!
//! The C library's heap is the host program's: what a library frees into it in large blocks stays
//! there, between the host's own, and glibc takes ever larger blocks from it once one was freed.
//! Only small blocks of ours are of that heap. Larger ones come from a [`range`] of addresses, and
//! the largest are maps of their own: memory that is freed is gone, blocks grow without a copy, and
//! the system may use large pages for them, whose first touch costs a third.

use super::idle::{freed, taken};
use super::range;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;

/// What maps and blocks of the range are aligned to on every system.
const ALIGNMENT: usize = 4096;

/// The allocator of the library's own code.
struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

/// Who has blocks of a size.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    /// The C library.
    System,
    /// The range, as long as it has room; else the C library.
    Range,
    /// The system: the block is a map.
    Map,
}

impl Home {
    fn of(layout: Layout) -> Self {
        if layout.size() < range::SMALLEST || layout.align() > ALIGNMENT {
            Self::System
        } else if layout.size() < range::LARGEST {
            Self::Range
        } else {
            Self::Map
        }
    }
}

// SAFETY: a block's layout and address say where it is from, so that each goes back there; maps and
// blocks of the range are as large and as aligned as their layouts, and zero where that is asked.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let home = Home::of(layout);
        if home == Home::Map {
            return map(layout.size());
        }
        taken(layout.size());
        match range_block(home, layout) {
            Some(taken) => taken.block,
            // SAFETY: the caller's promise.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let home = Home::of(layout);
        if home == Home::Map {
            return map(layout.size());
        }
        taken(layout.size());
        let Some(taken) = range_block(home, layout) else {
            // SAFETY: the caller's promise.
            return unsafe { System.alloc_zeroed(layout) };
        };
        if !taken.zeros {
            // SAFETY: the block is as large, and nobody else's.
            unsafe { taken.block.write_bytes(0, layout.size()) };
        }
        taken.block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let home = Home::of(layout);
        if home == Home::Map {
            // SAFETY: by the layout it is a whole map.
            unsafe { libc::munmap(block.cast(), layout.size()) };
            return;
        }
        freed(layout.size());
        if home == Home::Range && range::is_ours(block) {
            range::put(block, layout.size());
            return;
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Ok(new) = Layout::from_size_align(size, layout.align()) else {
            return null_mut();
        };
        let in_range = Home::of(layout) == Home::Range && range::is_ours(block);
        let resized = match (Home::of(layout), Home::of(new)) {
            // SAFETY: by the layout it is a whole map.
            (Home::Map, Home::Map) => return unsafe { resize(block, layout.size(), size) },
            (Home::Range, Home::Range) if in_range => range::resize(block, layout.size(), size),
            // SAFETY: the caller's promise; the block is not of the range.
            (Home::System, Home::System) => unsafe {
                freed(layout.size());
                taken(size);
                return System.realloc(block, layout, size);
            },
            _ => false,
        };
        if resized {
            freed(layout.size());
            taken(size);
            return block;
        }
        // SAFETY: both blocks hold the bytes that are copied, and are different; the old one is not
        // used again.
        unsafe {
            let to = self.alloc(new);
            if !to.is_null() {
                to.copy_from_nonoverlapping(block, layout.size().min(size));
                self.dealloc(block, layout);
            }
            to
        }
    }
}

/// A block of the range, if it is its to give and has room.
fn range_block(home: Home, layout: Layout) -> Option<range::Taken> {
    (home == Home::Range)
        .then(|| range::take(layout.size()))
        .flatten()
}

/// A new map of zeros; null if there is no memory.
fn map(size: usize) -> *mut u8 {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: new memory at a place that the system chooses; the advice changes no content.
    unsafe {
        let block = libc::mmap(null_mut(), size, access, kind, -1, 0);
        if block == libc::MAP_FAILED {
            return null_mut();
        }
        libc::madvise(block, size, libc::MADV_HUGEPAGE);
        block.cast()
    }
}

/// A map of another size; null if there is no memory, and then the old one is as it was.
///
/// # Safety
/// `block` must be a map of `old` bytes.
unsafe fn resize(block: *mut u8, old: usize, new: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    let resized = unsafe { libc::mremap(block.cast(), old, new, libc::MREMAP_MAYMOVE) };
    if resized == libc::MAP_FAILED {
        null_mut()
    } else {
        resized.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::range::LARGEST;

    #[test]
    fn blocks_grow_and_shrink_across_the_limit() {
        let mut bytes: Vec<u8> = Vec::new();
        for step in 0..40u8 {
            bytes.extend(std::iter::repeat_n(step, 300_000 + usize::from(step)));
        }
        let expected = |step: u8| bytes.iter().filter(|byte| **byte == step).count();
        assert!((0..40).all(|step| expected(step) == 300_000 + usize::from(step)));
        assert!(bytes.is_sorted());
        bytes.truncate(LARGEST + 5);
        bytes.shrink_to_fit();
        let before = bytes.clone();
        bytes.truncate(100_000);
        bytes.shrink_to_fit();
        assert_eq!(bytes, before[..100_000]);
        assert!(vec![0u8; 3 * LARGEST + 1].iter().all(|byte| *byte == 0));
        assert!(vec![0u128; LARGEST].iter().all(|number| *number == 0));
    }
}

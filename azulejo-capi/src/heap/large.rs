//! Large blocks come from the system and go back to it, past the C library's heap.
//!
//! The heap is the host program's: what a library frees into it in large blocks stays there,
//! between the host's own, and glibc takes ever larger blocks from it once one was freed. Large
//! blocks of ours are maps of their own: memory that is freed is gone, blocks grow without a copy,
//! and the system may use large pages for them, whose first touch costs a third.

use super::idle::{freed, taken};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;

/// Blocks of at least this many bytes are large.
const LARGE: usize = 4 << 20;
/// What a map is aligned to on every system.
const ALIGNMENT: usize = 4096;

/// The allocator of the library's own code.
struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

fn is_large(size: usize, alignment: usize) -> bool {
    size >= LARGE && alignment <= ALIGNMENT
}

// SAFETY: a block's layout alone says whether it is a map or the system allocator's, so that each
// goes back to where it came from; maps are as large and as aligned as their layouts, and zero.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout.size(), layout.align()) {
            return map(layout.size());
        }
        taken(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout.size(), layout.align()) {
            return map(layout.size());
        }
        taken(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_large(layout.size(), layout.align()) {
            // SAFETY: by the layout it is a whole map.
            unsafe { libc::munmap(block.cast(), layout.size()) };
            return;
        }
        freed(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match (
            is_large(layout.size(), layout.align()),
            is_large(size, layout.align()),
        ) {
            (false, false) => {
                freed(layout.size());
                taken(size);
                // SAFETY: the caller's promise.
                unsafe { System.realloc(block, layout, size) }
            }
            // SAFETY: by the layout it is a whole map.
            (true, true) => unsafe { resize(block, layout.size(), size) },
            // SAFETY: both blocks hold the bytes that are copied, and are different; the old one is
            // not used again.
            _ => unsafe {
                let Ok(moved) = Layout::from_size_align(size, layout.align()) else {
                    return null_mut();
                };
                let to = self.alloc(moved);
                if !to.is_null() {
                    to.copy_from_nonoverlapping(block, layout.size().min(size));
                    self.dealloc(block, layout);
                }
                to
            },
        }
    }
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
    #[test]
    fn blocks_grow_and_shrink_across_the_limit() {
        let mut bytes: Vec<u8> = Vec::new();
        for step in 0..40u8 {
            bytes.extend(std::iter::repeat_n(step, 300_000 + usize::from(step)));
        }
        let expected = |step: u8| bytes.iter().filter(|byte| **byte == step).count();
        assert!((0..40).all(|step| expected(step) == 300_000 + usize::from(step)));
        assert!(bytes.is_sorted());
        bytes.truncate(super::LARGE + 5);
        bytes.shrink_to_fit();
        let before = bytes.clone();
        bytes.truncate(100_000);
        bytes.shrink_to_fit();
        assert_eq!(bytes, before[..100_000]);
        assert!(
            vec![0u8; 3 * super::LARGE + 1]
                .iter()
                .all(|byte| *byte == 0)
        );
        assert!(vec![0u128; super::LARGE].iter().all(|number| *number == 0));
    }
}

//! Fresh memory for results and other bulk data.
//!
//! The first touch of a page costs more than all that is done with its bytes afterwards: the system
//! finds, clears and maps pages one by one. Pages of 2 MiB instead of 4 KiB make that a third,
//! where the system grants them to those who ask.

/// From this length on the system is asked: memory that holds two large pages wherever it begins.
const WORTHWHILE: usize = 6 << 20;

/// `len` zeros, in large pages where that is possible.
pub(crate) fn zeroed(len: usize) -> Vec<u8> {
    // As long as nobody has written to them, the allocator's zeros of this size are no pages yet.
    let mut bytes = vec![0; len];
    if len >= WORTHWHILE {
        ask_for(&mut bytes);
    }
    bytes
}

#[cfg(target_os = "linux")]
fn ask_for(bytes: &mut [u8]) {
    // A power of two that no system exceeds with its usual pages: advice is about whole ones.
    const PAGE: usize = 64 << 10;
    let start = bytes.as_mut_ptr();
    let skipped = start.align_offset(PAGE);
    let Some(len) = bytes.len().checked_sub(skipped).map(|len| len - len % PAGE) else {
        return;
    };
    // That it is refused changes nothing.
    #[expect(
        unsafe_code,
        reason = "the advice concerns whole pages of memory that is ours alone, and no content"
    )]
    // SAFETY: `skipped` and `len` stay within `bytes`; the advice leaves what is in memory as it
    // is.
    let _ = unsafe { libc::madvise(start.add(skipped).cast(), len, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for(_: &mut [u8]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_any_length_is_zeros_that_can_be_written() {
        for len in [
            0,
            1,
            WORTHWHILE - 1,
            WORTHWHILE,
            WORTHWHILE + 4097,
            3 * WORTHWHILE + 1,
        ] {
            let mut bytes = zeroed(len);
            assert!(bytes.len() == len && bytes.iter().all(|byte| *byte == 0));
            bytes.fill(7);
            assert!(bytes.iter().all(|byte| *byte == 7));
        }
    }
}

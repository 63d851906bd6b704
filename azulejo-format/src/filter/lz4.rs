//! LZ4: a raw block, without frame or length. Page: *Tile, Compression Filters*.
//!
//! Blocks are undone here and not by `lz4_flex`, which makes them: shuffled numbers are long runs of
//! short periods, which it copies byte by byte. Here they go in pieces of eight and sixteen bytes.

use crate::error::{DecodeError, Result};
use lz4_flex::block;

const NAME: &str = "LZ4";

/// Bytes of the shortest match.
const SHORTEST: usize = 4;

/// Fills `out` from a block of exactly so many bytes.
pub(super) fn decompress(input: &[u8], out: &mut [u8]) -> Result<()> {
    match undo(input, out) {
        Some(len) if len == out.len() => Ok(()),
        Some(len) => Err(DecodeError::filter(
            NAME,
            format!("{len} bytes instead of {}", out.len()),
        )),
        None => Err(DecodeError::filter(
            NAME,
            format!("no block of {} bytes", out.len()),
        )),
    }
}

/// How many bytes of `out` a block fills; `None` for what is no block, or one of more bytes.
fn undo(input: &[u8], out: &mut [u8]) -> Option<usize> {
    let (mut at, mut to) = (0, 0);
    loop {
        let token = usize::from(*input.get(at)?);
        at += 1;
        let mut literals = token >> 4;
        // Mostly few, and far from both ends: then a piece of fixed length goes, of which the rest is
        // overwritten later.
        if literals < 15
            && let (Some(from), Some(place)) = (input.get(at..at + 16), out.get_mut(to..to + 16))
        {
            place.copy_from_slice(from);
        } else {
            if literals == 15 {
                literals += longer(input, &mut at)?;
            }
            let from = input.get(at..at.checked_add(literals)?)?;
            out.get_mut(to..to.checked_add(literals)?)?
                .copy_from_slice(from);
        }
        at += literals;
        to += literals;
        if at == input.len() {
            return Some(to);
        }
        let &[low, high] = input.get(at..at + 2)? else {
            return None;
        };
        at += 2;
        let distance = usize::from(u16::from_le_bytes([low, high]));
        let mut len = (token & 15) + SHORTEST;
        if token & 15 == 15 {
            len += longer(input, &mut at)?;
        }
        let end = to.checked_add(len)?;
        if distance == 0 || distance > to || end > out.len() {
            return None;
        }
        repeat(out, to, end, distance);
        to = end;
    }
}

/// What the bytes behind a full half of a token add to it.
fn longer(input: &[u8], at: &mut usize) -> Option<usize> {
    let mut sum = 0usize;
    loop {
        let byte = *input.get(*at)?;
        *at += 1;
        sum = sum.checked_add(byte.into())?;
        if byte != u8::MAX {
            return Some(sum);
        }
    }
}

/// Fills `out` from `to` to `end` with what lies `distance` bytes before; up to 15 bytes behind `end`
/// may change, which are not filled yet.
#[inline]
fn repeat(out: &mut [u8], mut to: usize, end: usize, mut distance: usize) {
    if distance == 1 {
        let byte = out.get(to - 1).copied().unwrap_or(0);
        if let Some(run) = out.get_mut(to..end) {
            run.fill(byte);
        }
        return;
    }
    if distance < 8 {
        // What repeats after 3 bytes repeats after 9: from there on pieces do not overlap.
        let longer = distance * 8usize.div_ceil(distance);
        let first = (to + longer - distance).min(end);
        bytewise(out, to, first, distance);
        (to, distance) = (first, longer);
    }
    if distance < 16 {
        while to < end && to + 8 <= out.len() {
            out.copy_within(to - distance..to - distance + 8, to);
            to += 8;
        }
    } else {
        while to < end && to + 16 <= out.len() {
            out.copy_within(to - distance..to - distance + 16, to);
            to += 16;
        }
    }
    bytewise(out, to, end, distance);
}

fn bytewise(out: &mut [u8], to: usize, end: usize, distance: usize) {
    for at in to..end {
        let byte = out.get(at - distance).copied().unwrap_or(0);
        if let Some(place) = out.get_mut(at) {
            *place = byte;
        }
    }
}

/// Appends the block of `input`.
pub(super) fn compress(input: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let at = out.len();
    out.resize(at + block::get_maximum_output_size(input.len()), 0);
    let place = out.get_mut(at..).unwrap_or_default();
    let len =
        block::compress_into(input, place).map_err(|e| DecodeError::filter(NAME, e.to_string()))?;
    out.truncate(at + len);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// What `lz4_flex` makes of a block: the bytes, or that there is none.
    fn theirs(input: &[u8], len: usize) -> Option<Vec<u8>> {
        let mut out = vec![0; len];
        let done = block::decompress_into(input, &mut out).ok()?;
        (done == len).then_some(out)
    }

    fn ours(input: &[u8], len: usize) -> Option<Vec<u8>> {
        let mut out = vec![0xaa; len];
        decompress(input, &mut out).ok().map(|()| out)
    }

    #[test]
    fn runs_of_every_period_come_back() {
        for period in 1..40usize {
            for len in (0..80).chain([1_000, 65_536]) {
                let bytes: Vec<u8> = (0..len).map(|i| (i % period * 37) as u8).collect();
                let mut block = Vec::new();
                compress(&bytes, &mut block).unwrap();
                assert_eq!(ours(&block, len), Some(bytes), "{period} {len}");
            }
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back(parts in vec((vec(any::<u8>(), 0..40), 1usize..50), 0..30)) {
            let bytes: Vec<u8> = parts.iter().flat_map(|(part, times)| part.repeat(*times)).collect();
            let mut block = Vec::new();
            compress(&bytes, &mut block).unwrap();
            prop_assert_eq!(ours(&block, bytes.len()), Some(bytes));
        }

        #[test]
        fn damaged_blocks_are_what_they_are_elsewhere(
            parts in vec((vec(any::<u8>(), 1..20), 1usize..30), 1..10),
            damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<prop::sample::Index>(),
            more in 0usize..3,
        ) {
            let bytes: Vec<u8> = parts.iter().flat_map(|(part, times)| part.repeat(*times)).collect();
            let mut block = Vec::new();
            compress(&bytes, &mut block).unwrap();
            for (at, byte) in damage {
                let at = at.index(block.len());
                block[at] = byte;
            }
            let cut = cut.index(block.len() * 4);
            block.truncate(cut.max(1));
            for len in [bytes.len(), bytes.len().saturating_sub(more), bytes.len() + more] {
                prop_assert_eq!(ours(&block, len), theirs(&block, len));
            }
        }

        #[test]
        fn anything_is_a_block_or_not(block in vec(any::<u8>(), 0..60), len in 0usize..200) {
            prop_assert_eq!(ours(&block, len), theirs(&block, len));
        }
    }
}

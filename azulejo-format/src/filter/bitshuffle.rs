//! Bitshuffle: the lowest bits of all values, then the next bits, and so on. Page: *Tile, Bitshuffle Filter*.
//!
//! Works in blocks of 8,192 bytes, on whole groups of eight values; what is left of a block stays as it is. A part whose
//! length is no multiple of eight, or of the value size, is not shuffled; the encoder cuts such a part so that only its
//! last bytes stay unshuffled.

use super::shuffle::part_lens;
use crate::error::Result;
use crate::wire::ByteReader;

/// Bytes that are shuffled together.
const BLOCK: usize = 8192;

/// Undoes the filter for all parts; `out` is as long as `input`.
pub(super) fn decode(
    value_size: usize,
    input: &[u8],
    metadata: &mut ByteReader<'_>,
    out: &mut [u8],
) -> Result<()> {
    part_lens("BITSHUFFLE", metadata, input.len())?.for_each(input, out, |input, out| {
        if is_shuffled(value_size, input.len()) {
            for (input, out) in input.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
                unshuffle_block(value_size, input, out);
            }
        } else {
            out.copy_from_slice(input);
        }
        Ok(())
    })
}

fn is_shuffled(value_size: usize, len: usize) -> bool {
    len.is_multiple_of(8) && len.is_multiple_of(value_size)
}

/// Appends the filtered data to `out` and the lengths of its parts to `metadata`.
pub(super) fn encode(value_size: usize, input: &[u8], metadata: &mut Vec<u8>, out: &mut Vec<u8>) {
    let (even, rest) = input.split_at(input.len() - input.len() % 8);
    let parts: &[&[u8]] = if rest.is_empty() { &[even] } else { &[even, rest] };
    metadata.extend((parts.len() as u32).to_le_bytes());
    out.resize(input.len(), 0);
    let mut place = out.as_mut_slice();
    for part in parts {
        metadata.extend((part.len() as u32).to_le_bytes());
        let (out, later) = place.split_at_mut(part.len());
        if is_shuffled(value_size, part.len()) {
            for (input, out) in part.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
                shuffle_block(value_size, input, out);
            }
        } else {
            out.copy_from_slice(part);
        }
        place = later;
    }
}

/// Transposes an 8 x 8 matrix of bits, row `i` being byte `i`.
#[inline]
fn transpose8(mut x: u64) -> u64 {
    let t = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
    x ^= t ^ (t << 7);
    let t = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
    x ^= t ^ (t << 14);
    let t = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
    x ^ t ^ (t << 28)
}

/// Whole groups of eight values, in bytes, of a block of `len` bytes; with the bytes of one row of bits.
fn shuffled_len(value_size: usize, len: usize) -> (usize, usize) {
    let groups = len / value_size / 8;
    (groups * 8 * value_size, groups)
}

fn shuffle_block(value_size: usize, input: &[u8], out: &mut [u8]) {
    let (len, groups) = shuffled_len(value_size, input.len());
    let (input, rest) = input.split_at(len);
    let (out, tail) = out.split_at_mut(len);
    tail.copy_from_slice(rest);
    for (group, values) in input.chunks_exact(8 * value_size).enumerate() {
        for byte in 0..value_size {
            let mut rows = 0u64;
            for (i, value) in values.chunks_exact(value_size).enumerate() {
                rows |= u64::from(value[byte]) << (8 * i);
            }
            for (bit, column) in transpose8(rows).to_le_bytes().into_iter().enumerate() {
                out[(byte * 8 + bit) * groups + group] = column;
            }
        }
    }
}

fn unshuffle_block(value_size: usize, input: &[u8], out: &mut [u8]) {
    let (len, groups) = shuffled_len(value_size, input.len());
    let (input, rest) = input.split_at(len);
    let (out, tail) = out.split_at_mut(len);
    tail.copy_from_slice(rest);
    for (group, values) in out.chunks_exact_mut(8 * value_size).enumerate() {
        for byte in 0..value_size {
            let mut columns = 0u64;
            for bit in 0..8 {
                columns |= u64::from(input[(byte * 8 + bit) * groups + group]) << (8 * bit);
            }
            for (value, row) in values.chunks_exact_mut(value_size).zip(transpose8(columns).to_le_bytes()) {
                value[byte] = row;
            }
        }
    }
}

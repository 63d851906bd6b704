//! Bitshuffle: the lowest bits of all values, then the next bits, and so on. Page: *Tile,
//! Bitshuffle Filter*.
//!
//! Works in blocks of 8,192 bytes, on whole groups of eight values; what is left of a block stays
//! as it is. A part whose length is no multiple of eight, or of the value size, is not shuffled;
//! the encoder cuts such a part so that only its last bytes stay unshuffled.

use super::bit_rows::{merge_bits, split_bits};
use super::byteshuffle::{shuffle, unshuffle};
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
    let mut planes = [0; BLOCK];
    part_lens("BITSHUFFLE", metadata, input.len())?.for_each(input, out, |input, out| {
        if is_shuffled(value_size, input.len()) {
            for (input, out) in input.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
                unshuffle_block(value_size, input, out, &mut planes);
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
    let parts: &[&[u8]] = if rest.is_empty() {
        &[even]
    } else {
        &[even, rest]
    };
    metadata.extend((parts.len() as u32).to_le_bytes());
    out.resize(input.len(), 0);
    let mut planes = [0; BLOCK];
    let mut place = out.as_mut_slice();
    for part in parts {
        metadata.extend((part.len() as u32).to_le_bytes());
        let (out, later) = place.split_at_mut(part.len());
        if is_shuffled(value_size, part.len()) {
            for (input, out) in part.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
                shuffle_block(value_size, input, out, &mut planes);
            }
        } else {
            out.copy_from_slice(part);
        }
        place = later;
    }
}

/// Whole groups of eight values, in bytes, of a block of `len` bytes.
fn shuffled_len(value_size: usize, len: usize) -> usize {
    len / value_size / 8 * 8 * value_size
}

/// Turns values into planes of bytes, then each plane into eight rows of bits.
fn shuffle_block(value_size: usize, input: &[u8], out: &mut [u8], planes: &mut [u8; BLOCK]) {
    let (input, rest) = input.split_at(shuffled_len(value_size, input.len()));
    let (out, tail) = out.split_at_mut(input.len());
    tail.copy_from_slice(rest);
    if value_size == 1 {
        return split_bits(input, out);
    }
    let planes = &mut planes[..input.len()];
    shuffle(value_size, input, planes);
    let plane_len = (input.len() / value_size).max(1);
    for (plane, rows) in planes
        .chunks_exact(plane_len)
        .zip(out.chunks_exact_mut(plane_len))
    {
        split_bits(plane, rows);
    }
}

fn unshuffle_block(value_size: usize, input: &[u8], out: &mut [u8], planes: &mut [u8; BLOCK]) {
    let (input, rest) = input.split_at(shuffled_len(value_size, input.len()));
    let (out, tail) = out.split_at_mut(input.len());
    tail.copy_from_slice(rest);
    if value_size == 1 {
        return merge_bits(input, out);
    }
    let planes = &mut planes[..input.len()];
    let plane_len = (input.len() / value_size).max(1);
    for (rows, plane) in input
        .chunks_exact(plane_len)
        .zip(planes.chunks_exact_mut(plane_len))
    {
        merge_bits(rows, plane);
    }
    unshuffle(value_size, planes, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_any_number_of_values_come_back() {
        // Miri takes a thousand times as long.
        let groups = || match cfg!(miri) {
            true => (1..6).chain([31, 32, 33]),
            false => (1..40).chain([127, 128, 129]),
        };
        for value_size in [1, 2, 4, 8] {
            for groups in groups() {
                let count = groups * 8;
                if count * value_size > BLOCK {
                    continue;
                }
                let input: Vec<u8> = (0..count * value_size)
                    .map(|i| (i * 41 + i / 100) as u8)
                    .collect();
                let mut rows = vec![0; input.len()];
                shuffle_block(value_size, &input, &mut rows, &mut [0; BLOCK]);
                for value in 0..count {
                    for byte in 0..value_size {
                        for bit in 0..8 {
                            let here = input[value * value_size + byte] >> bit & 1;
                            let there =
                                rows[(byte * 8 + bit) * groups + value / 8] >> (value % 8) & 1;
                            assert_eq!(here, there);
                        }
                    }
                }
                let mut back = vec![0; input.len()];
                unshuffle_block(value_size, &rows, &mut back, &mut [0; BLOCK]);
                assert_eq!(back, input);
            }
        }
    }
}

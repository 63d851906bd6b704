//! Bitshuffle: the lowest bits of all values, then the next bits, and so on. Page: *Tile, Bitshuffle Filter*.
//!
//! Works in blocks of 8,192 bytes, on whole groups of eight values; what is left of a block stays as it is. A part whose
//! length is no multiple of eight, or of the value size, is not shuffled; the encoder cuts such a part so that only its
//! last bytes stay unshuffled.

use super::byteshuffle::{shuffle, unshuffle};
use super::lanes::{load, merge, split, store, transpose_bits};
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

/// Whole groups of eight values, in bytes, of a block of `len` bytes.
fn shuffled_len(value_size: usize, len: usize) -> usize {
    len / value_size / 8 * 8 * value_size
}

/// Turns values into planes of bytes, then each plane into eight rows of bits.
fn shuffle_block(value_size: usize, input: &[u8], out: &mut [u8]) {
    let (input, rest) = input.split_at(shuffled_len(value_size, input.len()));
    let (out, tail) = out.split_at_mut(input.len());
    tail.copy_from_slice(rest);
    let mut planes = [0; BLOCK];
    let planes = &mut planes[..input.len()];
    shuffle(value_size, input, planes);
    let plane_len = (input.len() / value_size).max(1);
    for (plane, rows) in planes.chunks_exact(plane_len).zip(out.chunks_exact_mut(plane_len)) {
        split_bits(plane, rows);
    }
}

fn unshuffle_block(value_size: usize, input: &[u8], out: &mut [u8]) {
    let (input, rest) = input.split_at(shuffled_len(value_size, input.len()));
    let (out, tail) = out.split_at_mut(input.len());
    tail.copy_from_slice(rest);
    let mut planes = [0; BLOCK];
    let planes = &mut planes[..input.len()];
    let plane_len = (input.len() / value_size).max(1);
    for (rows, plane) in input.chunks_exact(plane_len).zip(planes.chunks_exact_mut(plane_len)) {
        merge_bits(rows, plane);
    }
    unshuffle(value_size, planes, out);
}

/// From bytes to eight rows, of the lowest bits to the highest; the length is a multiple of eight.
fn split_bits(plane: &[u8], rows: &mut [u8]) {
    let row_len = plane.len() / 8;
    let (blocks, last) = plane.as_chunks::<128>();
    for (i, block) in blocks.iter().enumerate() {
        let from = block.as_chunks::<16>().0;
        let lanes = split::<8>(std::array::from_fn(|n| transpose_bits(load(&from[n]))));
        for (row, lane) in rows.chunks_exact_mut(row_len).zip(lanes) {
            if let Some(to) = row.get_mut(16 * i..).and_then(|row| row.first_chunk_mut()) {
                store(lane, to);
            }
        }
    }
    for (i, group) in last.as_chunks::<8>().0.iter().enumerate() {
        for (bit, row) in rows.chunks_exact_mut(row_len).enumerate() {
            row[16 * blocks.len() + i] = (0..8).fold(0, |byte, n| byte | (group[n] >> bit & 1) << n);
        }
    }
}

/// From eight rows of bits to bytes; the length is a multiple of eight.
fn merge_bits(rows: &[u8], plane: &mut [u8]) {
    let row_len = plane.len() / 8;
    let (blocks, last) = plane.as_chunks_mut::<128>();
    let done = 16 * blocks.len();
    let mut row = rows.chunks_exact(row_len.max(1));
    let row: [&[u8]; 8] = std::array::from_fn(|_| row.next().unwrap_or_default());
    let row_blocks = row.map(|row| row.as_chunks::<16>().0);
    for (i, block) in blocks.iter_mut().enumerate() {
        let lanes = merge::<8>(std::array::from_fn(|bit| load(&row_blocks[bit][i])));
        for (to, lane) in block.as_chunks_mut::<16>().0.iter_mut().zip(lanes) {
            store(transpose_bits(lane), to);
        }
    }
    for (i, group) in last.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *group = std::array::from_fn(|n| {
            row.iter().enumerate().fold(0, |byte, (bit, row)| byte | (row[done + i] >> n & 1) << bit)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_any_number_of_values_come_back() {
        for value_size in [1, 2, 4, 8] {
            for groups in (1..40).chain([127, 128, 129]) {
                let count = groups * 8;
                if count * value_size > BLOCK {
                    continue;
                }
                let input: Vec<u8> = (0..count * value_size).map(|i| (i * 41 + i / 100) as u8).collect();
                let mut rows = vec![0; input.len()];
                shuffle_block(value_size, &input, &mut rows);
                for value in 0..count {
                    for byte in 0..value_size {
                        for bit in 0..8 {
                            let here = input[value * value_size + byte] >> bit & 1;
                            let there = rows[(byte * 8 + bit) * groups + value / 8] >> (value % 8) & 1;
                            assert_eq!(here, there);
                        }
                    }
                }
                let mut back = vec![0; input.len()];
                unshuffle_block(value_size, &rows, &mut back);
                assert_eq!(back, input);
            }
        }
    }
}

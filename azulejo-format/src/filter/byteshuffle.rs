//! Byteshuffle: the first bytes of all values, then the second bytes, and so on. Page: *Tile, Byteshuffle Filter*.
//!
//! Bytes behind the last whole value stay where they are.

use super::lanes::{load, merge, split, store};
use super::shuffle::{part_lens, push_one_part};
use crate::error::Result;
use crate::wire::ByteReader;

/// Undoes the filter for all parts; `out` is as long as `input`.
pub(super) fn decode(
    value_size: usize,
    input: &[u8],
    metadata: &mut ByteReader<'_>,
    out: &mut [u8],
) -> Result<()> {
    part_lens("BYTESHUFFLE", metadata, input.len())?.for_each(input, out, |input, out| {
        unshuffle(value_size, input, out);
        Ok(())
    })
}

/// Appends the filtered part to `out` and its length to `metadata`.
pub(super) fn encode(value_size: usize, input: &[u8], metadata: &mut Vec<u8>, out: &mut Vec<u8>) {
    push_one_part(input.len(), metadata);
    out.resize(input.len(), 0);
    shuffle(value_size, input, out);
}

/// From planes of bytes to values; both slices are equally long.
pub(super) fn unshuffle(value_size: usize, input: &[u8], out: &mut [u8]) {
    match value_size {
        2 => to_values::<2>(input, out),
        4 => to_values::<4>(input, out),
        8 => to_values::<8>(input, out),
        _ => out.copy_from_slice(input),
    }
}

/// From values to planes of bytes; both slices are equally long.
pub(super) fn shuffle(value_size: usize, input: &[u8], out: &mut [u8]) {
    match value_size {
        2 => to_planes::<2>(input, out),
        4 => to_planes::<4>(input, out),
        8 => to_planes::<8>(input, out),
        _ => out.copy_from_slice(input),
    }
}

fn to_values<const N: usize>(input: &[u8], out: &mut [u8]) {
    let (values, tail) = out.as_chunks_mut::<N>();
    let count = values.len();
    let (planes, rest) = input.split_at(count * N);
    tail.copy_from_slice(rest);
    let mut planes = planes.chunks_exact(count.max(1));
    let planes: [&[u8]; N] = std::array::from_fn(|_| planes.next().unwrap_or_default());
    let blocks = planes.map(|plane| plane.as_chunks::<16>().0);
    let (groups, last) = values.as_chunks_mut::<16>();
    let done = groups.len() * 16;
    for (i, group) in groups.iter_mut().enumerate() {
        let lanes = merge::<N>(std::array::from_fn(|byte| load(&blocks[byte][i])));
        for (to, lane) in group.as_flattened_mut().as_chunks_mut::<16>().0.iter_mut().zip(lanes) {
            store(lane, to);
        }
    }
    for (i, value) in last.iter_mut().enumerate() {
        *value = std::array::from_fn(|byte| planes[byte][done + i]);
    }
}

fn to_planes<const N: usize>(input: &[u8], out: &mut [u8]) {
    let (values, tail) = input.as_chunks::<N>();
    let count = values.len();
    let (planes, rest) = out.split_at_mut(count * N);
    rest.copy_from_slice(tail);
    let mut planes = planes.chunks_exact_mut(count.max(1));
    let mut planes: [&mut [u8]; N] = std::array::from_fn(|_| planes.next().unwrap_or_default());
    let (groups, last) = values.as_chunks::<16>();
    let done = groups.len() * 16;
    {
        let mut blocks = planes.each_mut().map(|plane| plane.as_chunks_mut::<16>().0);
        for (i, group) in groups.iter().enumerate() {
            let from = group.as_flattened().as_chunks::<16>().0;
            let lanes = split::<N>(std::array::from_fn(|n| load(&from[n])));
            for (block, lane) in blocks.iter_mut().zip(lanes) {
                store(lane, &mut block[i]);
            }
        }
    }
    for (i, value) in last.iter().enumerate() {
        for (plane, byte) in planes.iter_mut().zip(value) {
            plane[done + i] = *byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_of_any_length_come_back() {
        for value_size in [1, 2, 4, 8] {
            for len in (0..200).chain([1000, 4097]) {
                let input: Vec<u8> = (0..len).map(|i| (i * 7 + i / 256) as u8).collect();
                let mut planes = vec![0; len];
                shuffle(value_size, &input, &mut planes);
                let count = len / value_size;
                for (at, byte) in input.iter().enumerate() {
                    let place =
                        if at < count * value_size { at % value_size * count + at / value_size } else { at };
                    assert_eq!(planes[place], *byte, "{value_size} {len} {at}");
                }
                let mut back = vec![0; len];
                unshuffle(value_size, &planes, &mut back);
                assert_eq!(back, input);
            }
        }
    }
}

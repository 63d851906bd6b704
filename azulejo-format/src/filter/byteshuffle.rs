//! Byteshuffle: the first bytes of all values, then the second bytes, and so on. Page: *Tile,
//! Byteshuffle Filter*.
//!
//! Bytes behind the last whole value stay where they are.

use super::lanes::{load, merge, split, store, stream};
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

/// Whether the metadata tell of one part, so that the planes are those of all `len` bytes.
pub(super) fn is_one_part(len: usize, metadata: &mut ByteReader<'_>) -> Result<bool> {
    Ok(part_lens("BYTESHUFFLE", metadata, len)?.iter().count() == 1)
}

/// Appends the filtered part to `out` and its length to `metadata`.
pub(super) fn encode(value_size: usize, input: &[u8], metadata: &mut Vec<u8>, out: &mut Vec<u8>) {
    push_one_part(input.len(), metadata);
    out.resize(input.len(), 0);
    shuffle(value_size, input, out);
}

/// From planes of bytes to values; both slices are equally long.
pub(super) fn unshuffle(value_size: usize, input: &[u8], out: &mut [u8]) {
    let whole = out.len() - out.len() % value_size.max(1);
    let (values, tail) = out.split_at_mut(whole);
    let (planes, rest) = input.split_at(whole);
    unshuffle_some(value_size, planes, 0, values);
    tail.copy_from_slice(rest);
}

/// Some values from planes that hold no bytes beside whole ones, from byte `start` of the
/// unshuffled ones on; start and length are multiples of the value's size.
pub(super) fn unshuffle_some(value_size: usize, planes: &[u8], start: usize, out: &mut [u8]) {
    unshuffle_by::<false>(value_size, planes, start, out);
}

/// As [`unshuffle_some`], past the caches; a [`fence`](super::lanes::fence) has to follow.
pub(super) fn unshuffle_streamed(value_size: usize, planes: &[u8], start: usize, out: &mut [u8]) {
    /// Bytes of a cache line: parts of lines cost more past the caches than through them.
    const LINE: usize = 64;
    let head = (out.as_ptr().addr().wrapping_neg() % LINE).min(out.len());
    if !head.is_multiple_of(value_size) {
        return unshuffle_some(value_size, planes, start, out);
    }
    let (head, rest) = out.split_at_mut(head);
    let (lines, tail) = rest.split_at_mut(rest.len() / LINE * LINE);
    let (body_start, tail_start) = (start + head.len(), start + head.len() + lines.len());
    unshuffle_some(value_size, planes, start, head);
    unshuffle_by::<true>(value_size, planes, body_start, lines);
    unshuffle_some(value_size, planes, tail_start, tail);
}

fn unshuffle_by<const STREAM: bool>(
    value_size: usize,
    planes: &[u8],
    start: usize,
    out: &mut [u8],
) {
    match value_size {
        2 => to_values::<2, STREAM>(planes, start / 2, out.as_chunks_mut().0),
        4 => to_values::<4, STREAM>(planes, start / 4, out.as_chunks_mut().0),
        8 => to_values::<8, STREAM>(planes, start / 8, out.as_chunks_mut().0),
        _ => out.copy_from_slice(planes.get(start..start + out.len()).unwrap_or_default()),
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

/// The values from the one at place `first` on.
fn to_values<const N: usize, const STREAM: bool>(
    planes: &[u8],
    first: usize,
    values: &mut [[u8; N]],
) {
    let mut planes = planes.chunks_exact((planes.len() / N).max(1));
    let part = first..first + values.len();
    let planes: [&[u8]; N] = std::array::from_fn(|_| {
        planes
            .next()
            .unwrap_or_default()
            .get(part.clone())
            .unwrap_or_default()
    });
    let blocks = planes.map(|plane| plane.as_chunks::<16>().0);
    let (groups, last) = values.as_chunks_mut::<16>();
    let done = groups.len() * 16;
    for (i, group) in groups.iter_mut().enumerate() {
        let lanes = merge::<N>(std::array::from_fn(|byte| load(&blocks[byte][i])));
        for (to, lane) in group
            .as_flattened_mut()
            .as_chunks_mut::<16>()
            .0
            .iter_mut()
            .zip(lanes)
        {
            if STREAM {
                stream(lane, to);
            } else {
                store(lane, to);
            }
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
            // Miri takes a thousand times as long.
            let most = if cfg!(miri) { 70 } else { 200 };
            for len in (0..most).chain([1000, 4097]) {
                let input: Vec<u8> = (0..len).map(|i| (i * 7 + i / 256) as u8).collect();
                let mut planes = vec![0; len];
                shuffle(value_size, &input, &mut planes);
                let count = len / value_size;
                for (at, byte) in input.iter().enumerate() {
                    let place = if at < count * value_size {
                        at % value_size * count + at / value_size
                    } else {
                        at
                    };
                    assert_eq!(planes[place], *byte, "{value_size} {len} {at}");
                }
                let mut back = vec![0; len];
                unshuffle(value_size, &planes, &mut back);
                assert_eq!(back, input);
                let (start, end) = (count / 3 * value_size, count * value_size);
                let mut some = vec![0; end - start];
                unshuffle_some(value_size, &planes[..end], start, &mut some);
                assert_eq!(some, input[start..end]);
                some.fill(0);
                unshuffle_streamed(value_size, &planes[..end], start, &mut some);
                super::super::lanes::fence();
                assert_eq!(some, input[start..end]);
            }
        }
    }
}

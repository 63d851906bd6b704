//! Byteshuffle: the first bytes of all values, then the second bytes, and so on. Page: *Tile, Byteshuffle Filter*.
//!
//! Bytes behind the last whole value stay where they are.

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

fn unshuffle(value_size: usize, input: &[u8], out: &mut [u8]) {
    match value_size {
        2 => unshuffle_scalar::<2>(input, out),
        4 => unshuffle_scalar::<4>(input, out),
        8 => unshuffle_scalar::<8>(input, out),
        _ => out.copy_from_slice(input),
    }
}

fn shuffle(value_size: usize, input: &[u8], out: &mut [u8]) {
    match value_size {
        2 => shuffle_scalar::<2>(input, out),
        4 => shuffle_scalar::<4>(input, out),
        8 => shuffle_scalar::<8>(input, out),
        _ => out.copy_from_slice(input),
    }
}

fn unshuffle_scalar<const N: usize>(input: &[u8], out: &mut [u8]) {
    let count = out.len() / N;
    let (planes, rest) = input.split_at(count * N);
    let (values, tail) = out.as_chunks_mut::<N>();
    tail.copy_from_slice(rest);
    if count == 0 {
        return;
    }
    for (byte, plane) in planes.chunks_exact(count).enumerate().take(N) {
        for (value, from) in values.iter_mut().zip(plane) {
            value[byte] = *from;
        }
    }
}

fn shuffle_scalar<const N: usize>(input: &[u8], out: &mut [u8]) {
    let (values, tail) = input.as_chunks::<N>();
    let (planes, rest) = out.split_at_mut(values.len() * N);
    rest.copy_from_slice(tail);
    if values.is_empty() {
        return;
    }
    for (byte, plane) in planes.chunks_exact_mut(values.len()).enumerate().take(N) {
        for (to, value) in plane.iter_mut().zip(values) {
            *to = value[byte];
        }
    }
}

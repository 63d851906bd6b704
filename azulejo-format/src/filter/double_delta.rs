//! Double delta: second differences, bit-packed. Page: *Filters, Double Delta*.
//!
//! Bits of a difference (`u8`), number of values (`u64`), the first two values, then for each
//! further value a sign bit and the magnitude of its second difference, from the highest bit down
//! in `u64` words. Where that gains nothing (the bits reach those of the type less one) the values
//! follow as they are, and behind them bytes that make no whole value: so a compressor's output is
//! stored.

use super::integer::{Integer, delta_physical, dispatch_integer, places, values};
use crate::datatype::Datatype;
use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;

const NAME: &str = "DOUBLE_DELTA";

/// Fills `out` with values of `datatype`.
pub(super) fn decompress(datatype: Datatype, input: &[u8], out: &mut [u8]) -> Result<()> {
    dispatch_integer!(delta_physical(datatype), T => undo::<T>(input, out), else Err(unsupported(datatype)))
}

fn unsupported(datatype: Datatype) -> DecodeError {
    DecodeError::filter(NAME, format!("it does not work on values of {datatype}"))
}

/// Whether values are stored as they are.
fn is_raw<T: Integer>(bits: u32) -> bool {
    bits as usize >= T::SIZE * 8 - 1
}

fn undo<T: Integer>(input: &[u8], out: &mut [u8]) -> Result<()> {
    let mut r = ByteReader::new(input);
    let bits = u32::from(r.u8("double delta, bits")?);
    let count = r.u64("double delta, number of values")?;
    let whole = out.len().is_multiple_of(T::SIZE) || is_raw::<T>(bits);
    if count != (out.len() / T::SIZE) as u64 || !whole {
        return Err(DecodeError::filter(
            NAME,
            format!("{count} values for {} bytes", out.len()),
        ));
    }
    if is_raw::<T>(bits) {
        out.copy_from_slice(r.bytes(out.len(), "double delta values")?);
        return Ok(());
    }
    let head_len = out.len().min(2 * T::SIZE);
    let (head, tail) = out.split_at_mut(head_len);
    head.copy_from_slice(r.bytes(head_len, "double delta, first values")?);
    if tail.is_empty() {
        return Ok(());
    }
    let mut first = values::<T>(head);
    let (Some(mut before), Some(mut last)) = (first.next(), first.next()) else {
        return Ok(());
    };

    let width = 1 + bits;
    let total_bits = (count - 2)
        .checked_mul(width.into())
        .ok_or_else(|| DecodeError::filter(NAME, "too many bits"))?;
    let words = r.bytes_u64(total_bits.div_ceil(64) * 8, "double delta bits")?;
    let mut words = words
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word));
    // The highest `held` bits of `window` are the next ones.
    let mut window = 0u128;
    let mut held = 0;
    for place in places::<T>(tail) {
        if held < width {
            // The words were counted for all values; `held` is below 64 here.
            window |= u128::from(words.next().unwrap_or(0)) << (64 - held);
            held += 64;
        }
        let code = (window >> (128 - width)) as u64;
        window <<= width;
        held -= width;
        let magnitude = code & ((1u64 << bits) - 1);
        let second = if code >> bits == 0 {
            magnitude as i64
        } else {
            (magnitude as i64).wrapping_neg()
        };
        let value = last
            .wrapping_sub(before)
            .wrapping_add(last)
            .wrapping_add(T::from_i64(second));
        value.write(place);
        (before, last) = (last, value);
    }
    Ok(())
}

/// Appends the second differences of values of `datatype`.
pub(super) fn compress(datatype: Datatype, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
    dispatch_integer!(delta_physical(datatype), T => apply::<T>(input, out), else Err(unsupported(datatype)))
}

fn apply<T: Integer>(input: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if input.is_empty() {
        return Err(DecodeError::filter(NAME, "there is nothing to compress"));
    }
    let bits = bits_needed::<T>(input);
    out.push(bits as u8);
    out.extend((input.len() as u64 / T::SIZE as u64).to_le_bytes());
    if is_raw::<T>(bits) {
        out.extend_from_slice(input);
        return Ok(());
    }
    out.extend_from_slice(input.get(..2 * T::SIZE).unwrap_or(input));
    let width = 1 + bits;
    // The lowest `held` bits of `window` wait to be written.
    let mut window = 0u128;
    let mut held = 0;
    for second in second_differences::<T>(input).skip(1) {
        let sign = u64::from(second < 0);
        window = window << width | u128::from(sign << bits | second.unsigned_abs());
        held += width;
        if held >= 64 {
            held -= 64;
            out.extend(((window >> held) as u64).to_le_bytes());
        }
    }
    if held > 0 {
        out.extend(((window << (64 - held)) as u64).to_le_bytes());
    }
    Ok(())
}

/// The first difference, then the second ones.
fn second_differences<T: Integer>(input: &[u8]) -> impl Iterator<Item = i64> + '_ {
    let mut last_delta = 0i64;
    values::<T>(input)
        .zip(values::<T>(input).skip(1))
        .map(move |(a, b)| {
            let delta = b.to_i64().wrapping_sub(a.to_i64());
            let second = delta.wrapping_sub(last_delta);
            last_delta = delta;
            second
        })
}

/// Bits of the largest magnitude of a second difference (the first difference counts, too); 64
/// where one does not fit, and where there is more than whole values.
fn bits_needed<T: Integer>(input: &[u8]) -> u32 {
    if !input.len().is_multiple_of(T::SIZE) {
        return 64;
    }
    if input.len() <= 2 * T::SIZE {
        return 0;
    }
    let mut largest = 0u64;
    let mut last_delta = 0i64;
    for (a, b) in values::<T>(input).zip(values::<T>(input).skip(1)) {
        let Some(delta) = exact_difference(b, a) else {
            return 64;
        };
        let Some(second) = delta.checked_sub(last_delta) else {
            return 64;
        };
        largest = largest.max(second.unsigned_abs());
        last_delta = delta;
    }
    (64 - largest.leading_zeros()).max(1)
}

/// `a - b` where it fits 64 bits with sign.
fn exact_difference<T: Integer>(a: T, b: T) -> Option<i64> {
    if T::SIGNED || T::SIZE < 8 {
        return a.to_i64().checked_sub(b.to_i64());
    }
    // Unsigned 64-bit values: `to_i64` keeps their bits.
    (a.to_i64() as u64).checked_signed_diff(b.to_i64() as u64)
}

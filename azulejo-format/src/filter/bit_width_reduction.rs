//! Bit width reduction: values less their window's minimum, in fewer bytes. Page: *Tile, Bit Width
//! Reduction Filter*.

use super::integer::{Integer, dispatch_integer, grow, places, push, values};
use super::positive_delta::windows;
use crate::datatype::Datatype;
use crate::error::{DecodeError, Result};
use crate::version::FormatVersion;
use crate::wire::ByteReader;

const NAME: &str = "BIT_WIDTH_REDUCTION";

/// Whether the filter does anything to values of `datatype` in `version`.
pub(super) fn works_on(datatype: Datatype, version: FormatVersion) -> bool {
    if datatype.is_datetime() || datatype.is_time() {
        return version.reduces_datetimes();
    }
    datatype.is_integer() && datatype.size() > 1
}

/// Bytes of the data once the filter is undone; `metadata` stands at the filter's.
pub(super) fn decoded_len(metadata: &ByteReader<'_>) -> Result<usize> {
    Ok(metadata
        .clone()
        .u32("bit width reduction, length of input")? as usize)
}

/// Undoes the filter; `out` is [`decoded_len`] long.
pub(super) fn decode(
    datatype: Datatype,
    input: &[u8],
    metadata: &mut ByteReader<'_>,
    out: &mut [u8],
) -> Result<()> {
    dispatch_integer!(datatype.physical(), T => undo::<T>(input, metadata, out), else Ok(()))
}

fn undo<T: Integer>(input: &[u8], metadata: &mut ByteReader<'_>, out: &mut [u8]) -> Result<()> {
    metadata.u32("bit width reduction, length of input")?;
    let windows = metadata.u32("bit width reduction, number of windows")?;
    let entry_len = T::SIZE + 5;
    let entries = metadata.bytes_u64(
        u64::from(windows) * entry_len as u64,
        "bit width reduction windows",
    )?;
    let mut input = ByteReader::new(input);
    let mut out = out;
    for entry in entries.chunks_exact(entry_len) {
        let (offset, rest) = entry.split_at(T::SIZE);
        let offset = T::read(offset);
        let mut r = ByteReader::new(rest);
        let bits = usize::from(r.u8("bit width")?);
        let len = r.u32("window length")? as usize;
        let Some((place, rest)) = out.split_at_mut_checked(len) else {
            return Err(DecodeError::filter(NAME, "windows longer than the data"));
        };
        out = rest;
        if bits >= T::SIZE * 8 || !len.is_multiple_of(T::SIZE) {
            place.copy_from_slice(input.bytes(len, "bit width reduction window")?);
            continue;
        }
        let packed = input.bytes(len / T::SIZE * (bits / 8), "bit width reduction window")?;
        match (bits, T::SIGNED) {
            (8, true) => widen::<i8, T>(packed, offset, place),
            (8, false) => widen::<u8, T>(packed, offset, place),
            (16, true) => widen::<i16, T>(packed, offset, place),
            (16, false) => widen::<u16, T>(packed, offset, place),
            (32, true) => widen::<i32, T>(packed, offset, place),
            (32, false) => widen::<u32, T>(packed, offset, place),
            _ => return Err(DecodeError::filter(NAME, format!("a width of {bits} bits"))),
        }
    }
    if out.is_empty() {
        Ok(())
    } else {
        Err(DecodeError::filter(NAME, "windows shorter than the data"))
    }
}

fn widen<N: Integer, T: Integer>(packed: &[u8], offset: T, out: &mut [u8]) {
    for (place, value) in places::<T>(out).zip(values::<N>(packed)) {
        T::from_i64(value.to_i64())
            .wrapping_add(offset)
            .write(place);
    }
}

/// Appends the filtered part to `out` and its windows to `metadata`.
pub(super) fn encode(
    datatype: Datatype,
    max_window: u32,
    input: &[u8],
    metadata: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    dispatch_integer!(datatype.physical(), T => apply::<T>(max_window, input, metadata, out), else Ok(()))
}

fn apply<T: Integer>(
    max_window: u32,
    input: &[u8],
    metadata: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let windows = windows::<T>(NAME, max_window, input)?;
    metadata.extend((input.len() as u32).to_le_bytes());
    metadata.extend((windows.len() as u32).to_le_bytes());
    out.reserve(input.len());
    for window in windows {
        let (offset, bits) = reduction::<T>(window);
        push(offset, metadata);
        metadata.push(bits);
        metadata.extend((window.len() as u32).to_le_bytes());
        if usize::from(bits) >= T::SIZE * 8 || !window.len().is_multiple_of(T::SIZE) {
            out.extend_from_slice(window);
            continue;
        }
        match bits {
            8 => narrow::<u8, T>(window, offset, out),
            16 => narrow::<u16, T>(window, offset, out),
            _ => narrow::<u32, T>(window, offset, out),
        }
    }
    Ok(())
}

fn narrow<N: Integer, T: Integer>(window: &[u8], offset: T, out: &mut Vec<u8>) {
    let packed = grow(out, window.len() / T::SIZE * N::SIZE);
    for (place, value) in places::<N>(packed).zip(values::<T>(window)) {
        N::from_i64(value.wrapping_sub(offset).to_i64()).write(place);
    }
}

/// The minimum of a window, and the bits that its range needs (one more than the range must fit, as
/// in the reference).
fn reduction<T: Integer>(window: &[u8]) -> (T, u8) {
    let all = (T::default(), (T::SIZE * 8) as u8);
    let (Some(min), Some(max)) = (values::<T>(window).min(), values::<T>(window).max()) else {
        return all;
    };
    let Some(range) = max.checked_sub(min).filter(|range| *range != T::HIGHEST) else {
        return all;
    };
    let range = range.to_i64() as u64 + 1;
    let bits = 64 - range.leading_zeros() + u32::from(T::SIGNED);
    (min, bits.next_power_of_two().max(8) as u8)
}

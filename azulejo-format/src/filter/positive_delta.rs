//! Positive delta: differences within windows of values that do not decrease. Page: *Tile, Positive
//! Delta Encoding Filter*.

use super::integer::{Integer, dispatch_integer, grow, places, push, values};
use crate::datatype::Datatype;
use crate::error::{DecodeError, Result};
use crate::version::FormatVersion;
use crate::wire::ByteReader;

const NAME: &str = "POSITIVE_DELTA";

/// Whether the filter does anything to values of `datatype` in `version`.
pub(super) fn works_on(datatype: Datatype, version: FormatVersion) -> bool {
    if datatype.is_datetime() || datatype.is_time() {
        return version.reduces_datetimes();
    }
    datatype.is_integer() || datatype.is_byte() || datatype == Datatype::Bool
}

/// Undoes the filter; `out` is as long as `input`.
pub(super) fn decode(
    datatype: Datatype,
    input: &[u8],
    metadata: &mut ByteReader<'_>,
    out: &mut [u8],
) -> Result<()> {
    dispatch_integer!(datatype.physical(), T => undo::<T>(input, metadata, out), else Ok(()))
}

fn undo<T: Integer>(input: &[u8], metadata: &mut ByteReader<'_>, out: &mut [u8]) -> Result<()> {
    let windows = metadata.u32("positive delta, number of windows")?;
    let entries = metadata.bytes_u64(
        u64::from(windows) * (T::SIZE as u64 + 4),
        "positive delta windows",
    )?;
    let mut input = ByteReader::new(input);
    let mut out = out;
    for entry in entries.chunks_exact(T::SIZE + 4) {
        let (offset, len) = entry.split_at(T::SIZE);
        let len = ByteReader::new(len).u32("window length")? as usize;
        let window = input.bytes(len, "positive delta window")?;
        let Some((place, rest)) = out.split_at_mut_checked(len) else {
            return Err(DecodeError::filter(NAME, "windows longer than the data"));
        };
        out = rest;
        if !len.is_multiple_of(T::SIZE) {
            place.copy_from_slice(window);
            continue;
        }
        let mut value = T::read(offset);
        for (place, delta) in places::<T>(place).zip(values::<T>(window)) {
            value = value.wrapping_add(delta);
            value.write(place);
        }
    }
    if out.is_empty() {
        Ok(())
    } else {
        Err(DecodeError::filter(NAME, "windows shorter than the data"))
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
    metadata.extend((windows.len() as u32).to_le_bytes());
    out.reserve(input.len());
    for window in windows {
        let first = T::read(window);
        push(first, metadata);
        metadata.extend((window.len() as u32).to_le_bytes());
        if !window.len().is_multiple_of(T::SIZE) {
            out.extend_from_slice(window);
            continue;
        }
        let mut previous = first;
        let mut decreases = false;
        for (place, value) in places::<T>(grow(out, window.len())).zip(values::<T>(window)) {
            decreases |= value < previous;
            value.wrapping_sub(previous).write(place);
            previous = value;
        }
        if decreases {
            return Err(DecodeError::filter(NAME, "values decrease within a window"));
        }
    }
    Ok(())
}

/// Cuts a part into windows of at most `max_window` bytes of whole values; bytes behind the last
/// value go with it.
pub(super) fn windows<'a, T: Integer>(
    filter: &'static str,
    max_window: u32,
    input: &'a [u8],
) -> Result<std::slice::Chunks<'a, u8>> {
    let size = input.len().min(max_window as usize) / T::SIZE * T::SIZE;
    if size == 0 && !input.is_empty() {
        return Err(DecodeError::filter(
            filter,
            format!("a window of {max_window} bytes holds no value"),
        ));
    }
    Ok(input.chunks(size.max(1)))
}

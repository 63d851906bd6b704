//! Delta: first differences. Page: *Filters, Delta*.
//!
//! The number of values (`u64`), the first value, then the difference of each value to the one
//! before it.

use super::integer::{Integer, delta_physical, dispatch_integer, grow, places, values};
use crate::datatype::Datatype;
use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;

const NAME: &str = "DELTA";

/// Fills `out` with values of `datatype`.
pub(super) fn decompress(datatype: Datatype, input: &[u8], out: &mut [u8]) -> Result<()> {
    dispatch_integer!(delta_physical(datatype), T => undo::<T>(input, out), else Err(unsupported(datatype)))
}

fn unsupported(datatype: Datatype) -> DecodeError {
    DecodeError::filter(NAME, format!("it does not work on values of {datatype}"))
}

fn undo<T: Integer>(input: &[u8], out: &mut [u8]) -> Result<()> {
    let mut r = ByteReader::new(input);
    let count = r.u64("delta, number of values")?;
    if count.checked_mul(T::SIZE as u64) != Some(out.len() as u64) {
        return Err(DecodeError::filter(
            NAME,
            format!("{count} values for {} bytes", out.len()),
        ));
    }
    let deltas = r.bytes(out.len(), "delta values")?;
    let mut value = T::default();
    for (place, delta) in places::<T>(out).zip(values::<T>(deltas)) {
        value = value.wrapping_add(delta);
        value.write(place);
    }
    Ok(())
}

/// Appends the differences of values of `datatype`.
pub(super) fn compress(datatype: Datatype, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
    dispatch_integer!(delta_physical(datatype), T => apply::<T>(input, out), else Err(unsupported(datatype)))
}

fn apply<T: Integer>(input: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if input.is_empty() || !input.len().is_multiple_of(T::SIZE) {
        return Err(DecodeError::filter(
            NAME,
            format!("{} bytes are no values of {}", input.len(), T::SIZE),
        ));
    }
    out.extend((input.len() as u64 / T::SIZE as u64).to_le_bytes());
    let mut previous = T::default();
    for (place, value) in places::<T>(grow(out, input.len())).zip(values::<T>(input)) {
        value.wrapping_sub(previous).write(place);
        previous = value;
    }
    Ok(())
}

//! XOR: each value xor the one before it. Page: *Filters, XOR*.

use super::integer::{Integer, dispatch_integer, places, values};
use super::shuffle::{PartLens, part_lens, push_one_part};
use crate::datatype::{Datatype, Physical};
use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;

const NAME: &str = "XOR";

/// The integer type of a value's size.
fn physical(datatype: Datatype) -> Physical {
    match datatype.size() {
        1 => Physical::I8,
        2 => Physical::I16,
        4 => Physical::I32,
        _ => Physical::I64,
    }
}

/// Undoes the filter for all parts; `out` is as long as `input`.
pub(super) fn decode(
    datatype: Datatype,
    input: &[u8],
    metadata: &mut ByteReader<'_>,
    out: &mut [u8],
) -> Result<()> {
    let lens = part_lens(NAME, metadata, input.len())?;
    dispatch_integer!(physical(datatype), T => undo::<T>(lens, input, out), else Ok(()))
}

fn undo<T: Integer>(lens: PartLens<'_>, input: &[u8], out: &mut [u8]) -> Result<()> {
    lens.for_each(input, out, |input, out| {
        check::<T>(input)?;
        let mut last = T::default();
        for (place, value) in places::<T>(out).zip(values::<T>(input)) {
            last = last.xor(value);
            last.write(place);
        }
        Ok(())
    })
}

fn check<T: Integer>(input: &[u8]) -> Result<()> {
    if input.len().is_multiple_of(T::SIZE) {
        return Ok(());
    }
    Err(DecodeError::filter(
        NAME,
        format!("{} bytes are no values of {}", input.len(), T::SIZE),
    ))
}

/// Appends the filtered part to `out` and its length to `metadata`.
pub(super) fn encode(
    datatype: Datatype,
    input: &[u8],
    metadata: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    push_one_part(input.len(), metadata);
    out.resize(input.len(), 0);
    dispatch_integer!(physical(datatype), T => apply::<T>(input, out), else Ok(()))
}

fn apply<T: Integer>(input: &[u8], out: &mut [u8]) -> Result<()> {
    check::<T>(input)?;
    let mut last = T::default();
    for (place, value) in places::<T>(out).zip(values::<T>(input)) {
        value.xor(last).write(place);
        last = value;
    }
    Ok(())
}

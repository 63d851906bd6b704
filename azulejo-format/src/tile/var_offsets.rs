//! Offsets of variable-length cells: for each cell a `u64`, where in the data tile it starts (in
//! bytes).
//!
//! Page: *Fragment, Data File*. The first offset is 0; a cell ends where the next begins, the last
//! at the end of the data.

use crate::error::{DecodeError, Result};

/// Checks that `offsets` start at 0, never decrease and stay within `data_len` bytes.
pub fn validate(offsets: &[u64], data_len: u64) -> Result<()> {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return Ok(());
    };
    // One pass without branches, so that it runs at the speed of memory; only an error asks where.
    let decreases = offsets
        .iter()
        .zip(offsets.iter().skip(1))
        .fold(0u8, |bad, (a, b)| bad | u8::from(a > b));
    if *first == 0 && *last <= data_len && decreases == 0 {
        return Ok(());
    }
    Err(explain(offsets, data_len))
}

#[cold]
fn explain(offsets: &[u64], data_len: u64) -> DecodeError {
    let mut previous = 0;
    for (cell, offset) in offsets.iter().enumerate() {
        let reason = if cell == 0 && *offset != 0 {
            format!("the first cell starts at {offset}, not 0")
        } else if *offset < previous {
            format!("cell {cell} starts at {offset}, before the cell in front of it ({previous})")
        } else if *offset > data_len {
            format!("cell {cell} starts at {offset}, behind the {data_len} bytes of data")
        } else {
            previous = *offset;
            continue;
        };
        return DecodeError::invalid("offsets tile", cell.saturating_mul(8), reason);
    }
    DecodeError::invalid("offsets tile", 0, "unordered")
}

/// Offsets from the bytes of an unfiltered offsets tile, into `out` (its length is the number of
/// cells).
pub fn decode(bytes: &[u8], out: &mut [u64]) -> Result<()> {
    let (values, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() || values.len() != out.len() {
        let reason = format!("{} bytes for {} cells", bytes.len(), out.len());
        return Err(DecodeError::invalid("offsets tile", 0, reason));
    }
    for (offset, value) in out.iter_mut().zip(values) {
        *offset = u64::from_le_bytes(*value);
    }
    Ok(())
}

/// The bytes of an unfiltered offsets tile.
#[must_use]
pub fn encode(offsets: &[u64]) -> Vec<u8> {
    offsets
        .iter()
        .flat_map(|offset| offset.to_le_bytes())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_offsets_pass() {
        validate(&[], 0).unwrap();
        validate(&[0], 0).unwrap();
        validate(&[0, 0, 3, 3, 7], 7).unwrap();
    }

    #[test]
    fn bad_offsets_are_located() {
        let at = |offsets: &[u64], len| {
            let error = validate(offsets, len).unwrap_err();
            let DecodeError::Invalid { offset, .. } = error else {
                panic!("{error}");
            };
            offset
        };
        assert_eq!(at(&[1, 2], 9), 0);
        assert_eq!(at(&[0, 5, 4, 6], 9), 16);
        assert_eq!(at(&[0, 5, 10], 9), 16);
        assert_eq!(at(&[0, u64::MAX, 3], 9), 8);
    }

    #[test]
    fn bytes_and_offsets_convert() {
        let offsets = [0, 1, u64::from(u32::MAX) + 1];
        let bytes = encode(&offsets);
        let mut back = [9; 3];
        decode(&bytes, &mut back).unwrap();
        assert_eq!(back, offsets);
        assert!(decode(&bytes[1..], &mut back).is_err());
        assert!(decode(&bytes, &mut back[..2]).is_err());
    }
}

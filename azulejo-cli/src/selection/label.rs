//! Selecting by a dimension label: from label values to ranges of the dimension.

use super::range_text::parse_range;
use crate::error::{CliError, Result};
use azulejo::Array;
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::schema::DimensionLabel;
use azulejo::format::{Datatype, Physical, Range};

/// The ranges of the label's dimension whose labels lie in the range given as text.
pub fn ranges(array: &Array, label: &DimensionLabel, text: &str) -> Result<Vec<Range>> {
    let wanted = parse_range(label.datatype, text).map_err(CliError::usage)?;
    let (lowest, highest) = limits(label.datatype);
    let range = Range {
        start: wanted.low.unwrap_or(lowest),
        end: wanted.high.unwrap_or(highest),
    };
    Ok(array.label_ranges(&label.name, &[range])?)
}

/// The bounds that leave no label out.
fn limits(datatype: Datatype) -> (Vec<u8>, Vec<u8>) {
    fn numbers<T: Native>() -> (Vec<u8>, Vec<u8>) {
        let (mut low, mut high) = (vec![0; T::SIZE], vec![0; T::SIZE]);
        T::LOWEST.write(&mut low);
        T::HIGHEST.write(&mut high);
        (low, high)
    }
    if datatype.is_string() {
        // No text has a byte 0xff.
        return (Vec::new(), vec![0xff]);
    }
    match datatype.physical() {
        Physical::F32 => (
            f32::NEG_INFINITY.to_le_bytes().to_vec(),
            f32::INFINITY.to_le_bytes().to_vec(),
        ),
        Physical::F64 => (
            f64::NEG_INFINITY.to_le_bytes().to_vec(),
            f64::INFINITY.to_le_bytes().to_vec(),
        ),
        physical => dispatch!(physical, T => numbers::<T>()),
    }
}

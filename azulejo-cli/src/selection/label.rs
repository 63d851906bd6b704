//! Selecting by a dimension label: from label values to ranges of the dimension.

use super::range_text::parse_range;
use crate::error::{CliError, Result};
use crate::value::{self, Bound, integer};
use azulejo::Array;
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::schema::DimensionLabel;
use azulejo::format::{Datatype, Range};
use azulejo::space::DimSelection;

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

/// The coordinate whose label is nearest to a value; of two the first.
pub fn nearest(array: &Array, label: &DimensionLabel, text: &str) -> Result<Range> {
    fn of_reals<T: Native>(labels: &[u8], wanted: &[u8]) -> Option<usize> {
        let wanted = T::read(wanted).as_f64();
        let far = |bytes: &[u8]| (T::read(bytes).as_f64() - wanted).abs();
        let far = labels.chunks_exact(T::SIZE).map(far).enumerate();
        let far = far.filter(|(_, far)| !far.is_nan());
        far.min_by(|(_, a), (_, b)| a.total_cmp(b))
            .map(|(at, _)| at)
    }
    /// To the last tick, which a real number does not tell of 64 bits.
    fn of_integers<T: Native>(labels: &[u8], wanted: &[u8], of: Datatype) -> Option<usize> {
        let wanted = integer(T::read(wanted));
        let labels = labels.chunks_exact(T::SIZE).enumerate();
        let labels = labels.filter(|(_, bytes)| !value::is_no_time(of, bytes));
        let labels = labels.map(|(at, bytes)| (at, integer(T::read(bytes))));
        let near = labels.min_by_key(|(_, label)| (label - wanted).unsigned_abs());
        near.map(|(at, _)| at)
    }
    if label.datatype.is_string() {
        return Err(CliError::usage(format!(
            "{:?} holds text, of which none is nearest",
            label.name
        )));
    }
    let wanted = value::parse(label.datatype, text, Bound::Low).map_err(CliError::usage)?;
    let set = array.label(&label.name)?.read(DimSelection::All)?;
    let found = match &set.columns[..] {
        [coordinates, labels] => {
            let kind = label.datatype;
            let at = dispatch!(kind.physical(), T => match kind.is_real() {
                true => of_reals::<T>(&labels.data, &wanted),
                false => of_integers::<T>(&labels.data, &wanted, kind),
            });
            at.map(|at| coordinates.view().cell(at).to_vec())
        }
        _ => None,
    };
    let cell = found
        .ok_or_else(|| CliError::usage(format!("no value of {:?} was written", label.name)))?;
    Ok(Range {
        start: cell.clone(),
        end: cell,
    })
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
    let physical = datatype.physical();
    let numbers = || dispatch!(physical, T => numbers::<T>());
    physical.infinities().unwrap_or_else(numbers)
}

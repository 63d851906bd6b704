//! Selecting by a dimension label: from label values to ranges of the dimension.

use super::range_text::parse_range;
use crate::error::{CliError, Result};
use azulejo::Array;
use azulejo::format::Range;
use azulejo::format::range::compare;
use azulejo::format::schema::DimensionLabel;
use azulejo::read::{ReadOptions, Reader};

/// The ranges of the label's dimension whose labels lie in the range given as text.
pub fn ranges(array: &Array, label: &DimensionLabel, text: &str) -> Result<Vec<Range>> {
    let wanted = parse_range(label.datatype, text).map_err(CliError::usage)?;
    let labels = array.open_label(&label.name)?;
    let dimension = labels
        .schema()
        .domain
        .dimensions
        .first()
        .ok_or_else(|| CliError::usage("the label's array has no dimension"))?;
    let options = ReadOptions::new().fields([dimension.name.clone(), label.attribute.clone()]);
    let Some(written) = labels.non_empty_domain()? else { return Ok(Vec::new()) };
    let options = options.subarray(azulejo::Subarray::ranges(written.ranges));
    let mut found: Vec<Range> = Vec::new();
    // Whether the cell before this one matched: then its range goes on.
    let mut open = false;
    for batch in Reader::new(&labels, options)? {
        let batch = batch?;
        let [indices, values] = &batch.columns[..] else { continue };
        let (indices, values) = (indices.view(), values.view());
        for cell in 0..batch.cell_num {
            let value = values.cell(cell);
            let above = wanted.low.as_deref().is_none_or(|low| compare(label.datatype, value, low).is_ge());
            let below =
                wanted.high.as_deref().is_none_or(|high| compare(label.datatype, value, high).is_le());
            if !(above && below) {
                open = false;
                continue;
            }
            let index = indices.cell(cell).to_vec();
            match found.last_mut() {
                Some(last) if open => last.end = index,
                _ => found.push(Range { start: index.clone(), end: index }),
            }
            open = true;
        }
    }
    Ok(found)
}

//! Zipped coordinates: one tile that holds all dimensions, as written below format version 5.

use crate::error::{DecodeError, Result};
use crate::filter::{Filter, Pipeline};
use crate::version::FormatVersion;

/// Whether a zipped-coordinates tile of `version` holds, once unfiltered, all values of the first
/// dimension, then all of the second, and so on ([`zip_coords`] turns it into cells). Version 1 did
/// so only where a compressor follows.
#[must_use]
pub fn coords_are_split(version: FormatVersion, filters: &Pipeline) -> bool {
    version.always_unzips_coords() || filters.filters.iter().any(Filter::is_compressor)
}

/// From values by dimension (`split`) to cells of one value for each of `dim_num` dimensions
/// (`zipped`), where a value has `value_size` bytes.
pub fn zip_coords(
    split: &[u8],
    zipped: &mut [u8],
    dim_num: usize,
    value_size: usize,
) -> Result<()> {
    let cell_size = dim_num.saturating_mul(value_size);
    if cell_size == 0 || split.len() != zipped.len() || !split.len().is_multiple_of(cell_size) {
        let reason = format!(
            "{} bytes are no cells of {dim_num} values of {value_size} bytes",
            split.len()
        );
        return Err(DecodeError::invalid("zipped coordinates", 0, reason));
    }
    let cell_num = split.len() / cell_size;
    if cell_num == 0 {
        return Ok(());
    }
    for (d, column) in split.chunks_exact(cell_num * value_size).enumerate() {
        for (cell, value) in zipped
            .chunks_exact_mut(cell_size)
            .zip(column.chunks_exact(value_size))
        {
            if let Some(place) = cell.get_mut(d * value_size..(d + 1) * value_size) {
                place.copy_from_slice(value);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipping_makes_cells_of_columns() {
        let mut out = [0; 12];
        zip_coords(&[1, 1, 2, 2, 3, 3, 10, 10, 20, 20, 30, 30], &mut out, 2, 2).unwrap();
        assert_eq!(out, [1, 1, 10, 10, 2, 2, 20, 20, 3, 3, 30, 30]);
        assert!(zip_coords(&[0; 5], &mut [0; 5], 2, 2).is_err());
        assert!(zip_coords(&[], &mut [], 0, 0).is_err());
        zip_coords(&[], &mut [], 3, 8).unwrap();
    }

    #[test]
    fn version_1_splits_only_where_it_compresses() {
        let v = |n| FormatVersion::new(n, "test").unwrap();
        let compressed = Pipeline {
            filters: vec![Filter::Zstd { level: -1 }],
            ..Pipeline::default()
        };
        assert!(!coords_are_split(v(1), &Pipeline::default()));
        assert!(coords_are_split(v(1), &compressed));
        assert!(coords_are_split(v(2), &Pipeline::default()));
    }
}

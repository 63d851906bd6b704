//! A caller's memory for cells of any length.

use super::fixed::{short, validity};
use crate::column::ColumnMut;
use crate::error::Result;
use crate::read::{BoundField, PartBytes};
use std::ops::Range;

/// A caller's memory for the next cells of a var-length field.
pub(in crate::read) struct VarOut<'o> {
    /// Room for the values, behind those before.
    pub data: &'o mut [u8],
    /// One a cell: takes where it starts.
    pub starts: &'o mut [u64],
    /// One byte a cell.
    pub validity: Option<&'o mut [u8]>,
    /// Bytes of values before those, which are counted when they are there.
    pub written: &'o mut usize,
}

impl<'o> VarOut<'o> {
    /// The memory of the cells at `places` in a caller's buffer; what is known beforehand of the
    /// bytes that they take is counted: all but those of the values.
    pub fn in_column(
        field: &BoundField,
        column: &'o mut ColumnMut<'_>,
        places: Range<usize>,
        written: &'o mut PartBytes,
    ) -> Result<Self> {
        let starts = column
            .offsets
            .as_mut()
            .and_then(|starts| starts.get_mut(places.clone()));
        written.offsets += places.len() * size_of::<u64>();
        Ok(Self {
            data: column.data.get_mut(written.data..).ok_or_else(short)?,
            starts: starts.ok_or_else(short)?,
            validity: validity(field, &mut column.validity, places, written)?,
            written: &mut written.data,
        })
    }
}

//! A caller's memory for cells of any length.

use super::fixed::{FixedOut, short, validity};
use crate::column::ColumnMut;
use crate::error::Result;
use crate::read::{BoundField, PartBytes, Progress};
use std::ops::Range;

/// A caller's memory for the next cells of a var-length field.
pub(in crate::read) struct VarOut<'o> {
    /// Room for the values, behind those before.
    pub data: &'o mut [u8],
    /// One a cell: takes where it starts.
    pub starts: &'o mut [u64],
    /// One byte a cell.
    pub validity: Option<&'o mut [u8]>,
    /// Where the first cell starts.
    pub base: u64,
}

/// Memory for the cells of a field.
pub(in crate::read) enum FieldOut<'o> {
    /// Of fixed length.
    Fixed(FixedOut<'o>),
    /// Var-length, in the caller's memory.
    Var(VarOut<'o>),
    /// Var-length: a column of its own is made.
    Own,
}

impl<'o> FieldOut<'o> {
    /// The memory of the next `cells` cells in the caller's buffers, one for each of the first
    /// `fields`. What is known beforehand of the bytes that they take is counted by `progress`: all
    /// but the bytes of var-length values.
    pub fn in_columns(
        fields: &'o [BoundField],
        columns: &'o mut [ColumnMut<'_>],
        cells: usize,
        progress: &mut Progress,
    ) -> Result<Vec<Self>> {
        let places = progress.cells..progress.cells + cells;
        let of = |((field, column), written): (
            (&'o BoundField, &'o mut ColumnMut<'_>),
            &mut PartBytes,
        )| {
            if field.column_type.is_var() {
                VarOut::in_column(field, column, places.clone(), written).map(Self::Var)
            } else {
                FixedOut::in_column(field, column, places.clone(), written).map(Self::Fixed)
            }
        };
        let outs = fields
            .iter()
            .zip(columns)
            .zip(&mut progress.written)
            .map(of)
            .collect::<Result<_>>()?;
        progress.cells += cells;
        Ok(outs)
    }

    /// The memory, if the cells are of fixed length.
    pub fn fixed(self) -> Option<FixedOut<'o>> {
        match self {
            Self::Fixed(out) => Some(out),
            Self::Var(_) | Self::Own => None,
        }
    }
}

impl<'o> VarOut<'o> {
    fn in_column(
        field: &BoundField,
        column: &'o mut ColumnMut<'_>,
        places: Range<usize>,
        written: &mut PartBytes,
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
            base: written.data as u64,
        })
    }
}

//! Columns from a caller's own values: vectors, slices and iterators, as a write takes them.
//!
//! The type of a column follows from the values: `Vec<i64>` gives `INT64`, text `STRING_UTF8`. A
//! writer stores plain integers where the array has datetimes, times or booleans of the same size,
//! and text where it has `STRING_ASCII`, `CHAR` or bytes.

use super::{ColumnBuffers, ColumnBuilder, ColumnSet, ColumnType};
use crate::error::{Error, Result};
use arrow_buffer::{ArrowNativeType, Buffer};
use azulejo_format::CellValNum;
use azulejo_format::datatype::{Datatype, Native, Physical};
use std::sync::Arc;

/// The plain number type that is stored as `physical`.
const fn number(physical: Physical) -> Datatype {
    match physical {
        Physical::I8 => Datatype::Int8,
        Physical::I16 => Datatype::Int16,
        Physical::I32 => Datatype::Int32,
        Physical::I64 => Datatype::Int64,
        Physical::U8 => Datatype::UInt8,
        Physical::U16 => Datatype::UInt16,
        Physical::U32 => Datatype::UInt32,
        Physical::U64 => Datatype::UInt64,
        Physical::F32 => Datatype::Float32,
        Physical::F64 => Datatype::Float64,
    }
}

impl ColumnSet {
    /// Columns of one write.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if they do not all have as many cells.
    pub fn of(columns: impl IntoIterator<Item = ColumnBuffers>) -> Result<Self> {
        let columns: Vec<ColumnBuffers> = columns.into_iter().collect();
        let cell_num = columns.first().map_or(0, |c| c.cell_num);
        match columns.iter().find(|c| c.cell_num != cell_num) {
            Some(other) => Err(Error::InvalidArgument(format!(
                "column {:?} has {} cells, those before it {cell_num}",
                other.column_type.name, other.cell_num
            ))),
            None => Ok(Self { cell_num, columns }),
        }
    }
}

impl ColumnBuffers {
    /// A column of numbers, one a cell; nothing is copied.
    ///
    /// ```
    /// # use azulejo::ColumnBuffers;
    /// let column = ColumnBuffers::of_values("a", vec![1i32, 2, 3]);
    /// assert_eq!(column.cell_num, 3);
    /// ```
    #[must_use]
    pub fn of_values<T: Native + ArrowNativeType>(
        name: impl Into<Arc<str>>,
        values: Vec<T>,
    ) -> Self {
        let cell_num = values.len();
        let column_type = ColumnType::new(name, number(T::PHYSICAL));
        Self {
            column_type,
            cell_num,
            data: Buffer::from_vec(values),
            offsets: None,
            validity: None,
        }
    }

    /// A column of numbers, `values_per_cell` a cell, one cell after another; nothing is copied.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the values do not fill whole cells.
    pub fn of_cells<T: Native + ArrowNativeType>(
        name: impl Into<Arc<str>>,
        values: Vec<T>,
        values_per_cell: u32,
    ) -> Result<Self> {
        let column = Self::of_values(name, values);
        let per_cell = values_per_cell as usize;
        if per_cell == 0 || !column.cell_num.is_multiple_of(per_cell) {
            return Err(Error::InvalidArgument(format!(
                "column {:?}: {} values do not fill cells of {per_cell}",
                column.column_type.name, column.cell_num
            )));
        }
        let column_type = column
            .column_type
            .with_cell_val_num(CellValNum::Fixed(values_per_cell));
        Ok(Self {
            column_type,
            cell_num: column.cell_num / per_cell,
            ..column
        })
    }

    /// A nullable column of numbers, one a cell.
    pub fn of_options<T: Native + ArrowNativeType>(
        name: impl Into<Arc<str>>,
        values: impl IntoIterator<Item = Option<T>>,
    ) -> Self {
        let (values, validity): (Vec<T>, Vec<u8>) = values
            .into_iter()
            .map(|v| (v.unwrap_or_default(), u8::from(v.is_some())))
            .unzip();
        let column = Self::of_values(name, values);
        let column_type = column.column_type.with_nulls();
        Self {
            column_type,
            validity: Some(Buffer::from_vec(validity)),
            ..column
        }
    }

    /// A column of numbers, any number of them a cell.
    pub fn of_lists<T: Native + ArrowNativeType, S: AsRef<[T]>>(
        name: impl Into<Arc<str>>,
        cells: impl IntoIterator<Item = S>,
    ) -> Self {
        let (mut values, mut offsets) = (Vec::new(), vec![0u64]);
        for cell in cells {
            values.extend_from_slice(cell.as_ref());
            offsets.push((values.len() * T::SIZE) as u64);
        }
        let column = Self::of_values(name, values);
        let column_type = column.column_type.with_cell_val_num(CellValNum::Var);
        let cell_num = offsets.len() - 1;
        Self {
            column_type,
            cell_num,
            offsets: Some(Buffer::from_vec(offsets)),
            ..column
        }
    }

    /// A column of text (or bytes), one string a cell.
    ///
    /// ```
    /// # use azulejo::ColumnBuffers;
    /// let column = ColumnBuffers::of_strings("city", ["Porto", "Lisboa", ""]);
    /// assert_eq!(column.offsets_slice(), Some(&[0, 5, 11, 11][..]));
    /// ```
    pub fn of_strings<S: AsRef<[u8]>>(
        name: impl Into<Arc<str>>,
        cells: impl IntoIterator<Item = S>,
    ) -> Self {
        let column_type =
            ColumnType::new(name, Datatype::StringUtf8).with_cell_val_num(CellValNum::Var);
        let mut column = ColumnBuilder::new(column_type);
        for cell in cells {
            column.append_cell(cell.as_ref(), true);
        }
        column.finish()
    }

    /// A nullable column of text (or bytes), one string a cell.
    pub fn of_optional_strings<S: AsRef<[u8]>>(
        name: impl Into<Arc<str>>,
        cells: impl IntoIterator<Item = Option<S>>,
    ) -> Self {
        let column_type =
            ColumnType::new(name, Datatype::StringUtf8).with_cell_val_num(CellValNum::Var);
        let mut column = ColumnBuilder::new(column_type.with_nulls());
        for cell in cells {
            column.append_cell(cell.as_ref().map_or(&[], |c| c.as_ref()), cell.is_some());
        }
        column.finish()
    }

    /// A column of any type from its buffers as TileDB has them: little-endian values, for cells of
    /// varying length the byte offset of each cell and of the end, for nullable ones a byte a cell,
    /// 0 for null. Nothing is copied; numbers that are not aligned for their type can be written
    /// all the same.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the buffers do not fit each other or the type.
    pub fn of_raw(
        column_type: ColumnType,
        data: Vec<u8>,
        offsets: Option<Vec<u64>>,
        validity: Option<Vec<u8>>,
    ) -> Result<Self> {
        let cell_num = match (&offsets, column_type.cell_size()) {
            (Some(offsets), _) => offsets.len().saturating_sub(1),
            (None, 0) => 0,
            (None, size) => data.len() / size,
        };
        let (offsets, validity) = (
            offsets.map(Buffer::from_vec),
            validity.map(Buffer::from_vec),
        );
        let column = Self {
            column_type,
            cell_num,
            data: Buffer::from_vec(data),
            offsets,
            validity,
        };
        column.validate()?;
        Ok(column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_all_shapes_are_sound() {
        let columns = [
            ColumnBuffers::of_values("a", vec![1.5f32, 2.5]),
            ColumnBuffers::of_cells("b", vec![1u8, 2, 3, 4, 5, 6], 3).unwrap(),
            ColumnBuffers::of_options("c", [Some(3i16), None]),
            ColumnBuffers::of_lists("d", [vec![1u32, 2], vec![]]),
            ColumnBuffers::of_strings("e", ["x", "yz"]),
            ColumnBuffers::of_optional_strings("f", [Some("x"), None]),
        ];
        let set = ColumnSet::of(columns).unwrap();
        assert_eq!((set.cell_num, set.columns.len()), (2, 6));
        for column in &set.columns {
            column.validate().unwrap();
        }
        assert_eq!(set.columns[3].offsets_slice(), Some(&[0, 8, 8][..]));
        assert_eq!(
            set.columns[2].cells().collect::<Vec<_>>(),
            [Some(&[3u8, 0][..]), None]
        );
        let short = ColumnBuffers::of_values("g", vec![0u64]);
        assert!(ColumnSet::of(set.columns.into_iter().chain([short])).is_err());
        assert!(ColumnBuffers::of_cells("b", vec![1u8, 2], 3).is_err());
        let kind = ColumnType::new("x", Datatype::Int32);
        assert_eq!(
            ColumnBuffers::of_raw(kind.clone(), vec![0; 8], None, None)
                .unwrap()
                .cell_num,
            2
        );
        assert!(ColumnBuffers::of_raw(kind.clone(), vec![0; 7], None, None).is_err());
        assert!(ColumnBuffers::of_raw(kind, vec![0; 8], None, Some(vec![1, 1])).is_err());
    }
}

//! Columns of dense results as `ndarray` views, and `ndarray` arrays as columns of a write.

use super::ColumnBuffers;
use crate::error::{Error, Result};
use ::ndarray::{ArrayBase, ArrayViewD, Data, Dimension, IxDyn, ShapeBuilder};
use arrow_buffer::ArrowNativeType;
use azulejo_format::datatype::Native;
use std::sync::Arc;

impl ColumnBuffers {
    /// The values as an array of a shape, without copying. Cells of several values need one more
    /// dimension at the end (at the front for column-major results: give `column_major` the shape
    /// in the order of the dimensions all the same, the values first).
    ///
    /// ```
    /// # use azulejo::column::{ColumnBuilder, ColumnType};
    /// # use azulejo::format::Datatype;
    /// let mut column = ColumnBuilder::new(ColumnType::new("a", Datatype::Int32));
    /// for value in 0i32..6 {
    ///     column.append_cell(&value.to_le_bytes(), true);
    /// }
    /// let column = column.finish();
    /// assert_eq!(column.ndarray::<i32>(&[2, 3], false)?[[1, 0]], 3);
    /// assert_eq!(column.ndarray::<i32>(&[2, 3], true)?[[1, 0]], 1);
    /// # Ok::<(), azulejo::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `T` is not the column's physical type, its cells vary in
    /// length, or the shape has another number of values.
    pub fn ndarray<T: Native + ArrowNativeType>(
        &self,
        shape: &[usize],
        column_major: bool,
    ) -> Result<ArrayViewD<'_, T>> {
        let name = &self.column_type.name;
        if self.column_type.is_var() {
            return Err(Error::InvalidArgument(format!(
                "column {name}: cells of varying length are no array"
            )));
        }
        let values = self.values::<T>().ok_or_else(|| {
            let datatype = self.column_type.datatype;
            Error::InvalidArgument(format!(
                "column {name} holds {datatype}, not {:?}",
                T::PHYSICAL
            ))
        })?;
        let unfit = || {
            Error::InvalidArgument(format!(
                "column {name}: {} values do not fill the shape {shape:?}",
                values.len()
            ))
        };
        let wanted = shape
            .iter()
            .try_fold(1usize, |n, axis| n.checked_mul(*axis));
        if wanted != Some(values.len()) {
            return Err(unfit());
        }
        ArrayViewD::from_shape(IxDyn(shape).set_f(column_major), values).map_err(|_| unfit())
    }
    /// A column of an array's values in row-major order (its last axis varies fastest), for a
    /// row-major write of a box of its shape. A column-major write takes the transposed array.
    ///
    /// ```
    /// # use azulejo::ColumnBuffers;
    /// let column = ColumnBuffers::of_ndarray("a", &ndarray::array![[1i32, 2], [3, 4]].t());
    /// assert_eq!(column.values::<i32>(), Some(&[1, 3, 2, 4][..]));
    /// ```
    #[must_use]
    pub fn of_ndarray<T, S, D>(name: impl Into<Arc<str>>, values: &ArrayBase<S, D>) -> Self
    where
        T: Native + ArrowNativeType,
        S: Data<Elem = T>,
        D: Dimension,
    {
        let values = match values.as_slice() {
            Some(slice) => slice.to_vec(),
            None => values.iter().copied().collect(),
        };
        Self::of_values(name, values)
    }
}

#[cfg(test)]
mod tests {
    use crate::column::{ColumnBuilder, ColumnType};
    use azulejo_format::{CellValNum, Datatype};

    #[test]
    fn shapes_and_types_must_fit() {
        let kind =
            ColumnType::new("a", Datatype::DateTimeDay).with_cell_val_num(CellValNum::Fixed(2));
        let mut column = ColumnBuilder::new(kind);
        for value in 0u8..4 {
            column.append_cell(&[value; 16], true);
        }
        let column = column.finish();
        assert_eq!(
            column.ndarray::<i64>(&[2, 2, 2], false).unwrap()[[1, 0, 1]],
            0x0202_0202_0202_0202
        );
        assert_eq!(
            column.ndarray::<i64>(&[2, 2, 2], true).unwrap()[[1, 0, 1]],
            0x0202_0202_0202_0202
        );
        assert!(column.ndarray::<i64>(&[2, 2], false).is_err());
        assert!(column.ndarray::<i64>(&[usize::MAX, 2], false).is_err());
        assert!(column.ndarray::<f64>(&[2, 2, 2], false).is_err());
    }
}

//! Texts and bytes as Arrow's views.

use super::refused::too_long;
use crate::column::ColumnType;
use crate::error::Result;
use arrow_array::types::{BinaryViewType, ByteArrayType, ByteViewType, StringViewType};
use arrow_array::{
    ArrayRef, GenericByteArray, GenericByteViewArray, LargeBinaryArray, LargeStringArray,
};
use std::sync::Arc;

/// Arrow's numbers of views have 31 bits, whatever the type of ours.
pub(super) const MOST: usize = i32::MAX as usize;

/// Texts as views into the same memory.
pub(super) fn of_texts(column: &ColumnType, texts: &LargeStringArray) -> Result<ArrayRef> {
    viewed::<_, StringViewType>(column, texts)
}

/// Bytes as views into the same memory.
pub(super) fn of_bytes(column: &ColumnType, bytes: &LargeBinaryArray) -> Result<ArrayRef> {
    viewed::<_, BinaryViewType>(column, bytes)
}

fn viewed<T, V>(column: &ColumnType, array: &GenericByteArray<T>) -> Result<ArrayRef>
where
    T: ByteArrayType<Offset = i64>,
    V: ByteViewType<Native = T::Native>,
{
    if array.values().len() <= MOST {
        return Ok(Arc::new(GenericByteViewArray::<V>::from(array)));
    }
    // Beyond what a view can point to: in blocks of their own.
    let long = |ends: &[i64]| ends[1] - ends[0] > MOST as i64;
    if array.value_offsets().windows(2).any(long) {
        return Err(too_long(column));
    }
    Ok(Arc::new(GenericByteViewArray::<V>::from_iter(array.iter())))
}

//! What views of texts and bytes hold on to.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, GenericByteViewArray};
use datafusion::arrow::datatypes::{ByteViewType, DataType};
use std::sync::Arc;

/// A piece of a column that goes on alone: where its views show little of the memory that they hold
/// on to, they get memory of their own. Texts that repeat stay where they are, as all pieces share
/// them and written out they would be more.
pub fn kept(piece: ArrayRef) -> ArrayRef {
    fn small<V: ByteViewType>(views: &GenericByteViewArray<V>) -> Option<ArrayRef> {
        let held: usize = views.data_buffers().iter().map(|b| b.capacity()).sum();
        let is_large = held > 0 && held / 2 > views.total_buffer_bytes_used();
        is_large.then(|| Arc::new(views.gc()) as ArrayRef)
    }
    let small = match piece.data_type() {
        DataType::Utf8View => small(piece.as_string_view()),
        DataType::BinaryView => small(piece.as_binary_view()),
        _ => None,
    };
    small.unwrap_or(piece)
}

/// Bytes of a column of views were its texts or bytes written out; `None` of other columns.
pub fn written_out(column: &ArrayRef) -> Option<usize> {
    let bytes = match column.data_type() {
        DataType::Utf8View => column.as_string_view().total_bytes_len(),
        DataType::BinaryView => column.as_binary_view().total_bytes_len(),
        _ => return None,
    };
    let views = column.len().saturating_mul(size_of::<u128>());
    Some(views.saturating_add(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::StringViewArray;

    #[test]
    fn pieces_hold_on_to_what_they_show() {
        let long = "a text that is too long for a view ".repeat(10);
        let apart: StringViewArray = (0..1000).map(|i| Some(format!("{i} {long}"))).collect();
        let one = StringViewArray::from(vec![long.as_str()]);
        let same = StringViewArray::try_new(
            vec![one.views()[0]; 1000].into(),
            one.data_buffers().to_vec(),
            None,
        );
        for (whole, shared) in [(apart, false), (same.unwrap(), true)] {
            let piece: ArrayRef = Arc::new(whole.slice(10, 100));
            let small = kept(Arc::clone(&piece));
            assert_eq!(&small, &piece);
            let held = |array: &ArrayRef| array.as_string_view().data_buffers()[0].as_ptr();
            assert_eq!(held(&small) == held(&piece), shared);
            assert!(small.get_array_memory_size() < 100 * (long.len() + 64));
            assert_eq!(
                kept(Arc::new(whole.clone())).get_array_memory_size(),
                whole.get_array_memory_size()
            );
            let bytes: usize = whole.iter().flatten().map(str::len).sum();
            let whole: ArrayRef = Arc::new(whole);
            assert_eq!(written_out(&whole), Some(1000 * 16 + bytes));
        }
        let short: ArrayRef = Arc::new(StringViewArray::from(vec!["short", "texts"]));
        assert_eq!(&kept(Arc::clone(&short)), &short);
    }
}

//! Enumerators as messages name them: with the names that `tiledb_*_to_str` gives.

use crate::enums::QueryType;
use crate::error::{Failure, Result};
use azulejo_format::Datatype;
use azulejo_format::schema::{ArrayType, DataOrder, Layout};

/// Finds the value that has a name.
fn find<T: Copy>(what: &str, text: capnp::text::Reader<'_>, names: &[(T, &str)]) -> Result<T> {
    let text = text.to_str()?;
    let found = names.iter().find(|(_, name)| *name == text);
    found
        .map(|(value, _)| *value)
        .ok_or_else(|| Failure::new(format!("Cannot deserialize; {text:?} is no {what}")))
}

fn name<T: PartialEq>(value: &T, names: &[(T, &'static str)]) -> &'static str {
    let found = names.iter().find(|(known, _)| known == value);
    found.map_or("", |(_, name)| name)
}

/// Declares the words of a type.
macro_rules! words {
    ($($what:literal, $type:ty, $to:ident, $from:ident, [$($value:path = $name:literal),* $(,)?];)*) => {$(
        #[doc = concat!("The word for a ", $what, ".")]
        pub fn $to(value: $type) -> &'static str {
            name(&value, &[$(($value, $name)),*])
        }
        #[doc = concat!("The ", $what, " of a word.")]
        pub fn $from(text: capnp::text::Reader<'_>) -> Result<$type> {
            find($what, text, &[$(($value, $name)),*])
        }
    )*};
}

words! {
    "array type", ArrayType, array_type, array_type_of, [ArrayType::Dense = "dense", ArrayType::Sparse = "sparse"];
    "layout", Layout, layout, layout_of, [
        Layout::RowMajor = "row-major", Layout::ColMajor = "col-major", Layout::Global = "global-order",
        Layout::Unordered = "unordered", Layout::Hilbert = "hilbert"];
    "data order", DataOrder, data_order, data_order_of, [
        DataOrder::Unordered = "unordered", DataOrder::Increasing = "increasing", DataOrder::Decreasing = "decreasing"];
    "query type", QueryType, query_type, query_type_of, [
        QueryType::Read = "READ", QueryType::Write = "WRITE", QueryType::Delete = "DELETE",
        QueryType::Update = "UPDATE", QueryType::ModifyExclusive = "MODIFY_EXCLUSIVE"];
}

/// The datatype of a name.
pub fn datatype_of(text: capnp::text::Reader<'_>) -> Result<Datatype> {
    let text = text.to_str()?;
    let found = Datatype::ALL.into_iter().find(|each| each.name() == text);
    found.ok_or_else(|| Failure::new(format!("Cannot deserialize; {text:?} is no datatype")))
}

/// The number of items in a list of a message.
pub fn count<T>(items: &[T]) -> Result<u32> {
    u32::try_from(items.len())
        .ok()
        .filter(|count| *count < 1 << 29)
        .ok_or_else(|| Failure::new("Cannot serialize; a list is too long for a message"))
}

/// Bytes that a message has room for.
pub fn data(bytes: &[u8]) -> Result<&[u8]> {
    count(bytes).map(|_| bytes)
}

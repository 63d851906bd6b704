//! C's enumerators and ours, in one place: numbers, names, types.

use crate::boundary::{Out, Pointer, Str, Text, capi_plain};
use crate::error::{Failure, Result};
use azulejo_format::Datatype;
use azulejo_format::filter::Filter;
use azulejo_format::schema::{ArrayType, DataOrder, Layout};
use std::ffi::{CStr, CString};
use std::sync::LazyLock;

/// Enumerators of one C enum with the names that `to_str` gives.
type Names = &'static [(i32, &'static CStr)];

fn to_str(names: Names, what: &str, id: i32, out: &Out<Str>) -> Result<()> {
    let found = names.iter().find(|(known, _)| *known == id);
    // Callers make a text of it before they look at the status.
    out.set(Pointer(found.map_or(c"", |(_, name)| *name).as_ptr()))?;
    match found {
        Some(_) => Ok(()),
        None => Err(Failure::new(format!("{id} is no {what}"))),
    }
}

fn from_str(names: Names, what: &str, text: &Text, out: &Out<i32>) -> Result<()> {
    let text = text.get()?;
    let found = names
        .iter()
        .find(|(_, name)| name.to_bytes() == text.as_bytes());
    let (id, _) = found.ok_or_else(|| Failure::new(format!("{text:?} is no {what}")))?;
    out.set(*id)
}

/// The filters as the format names them. Encryption is none here: it comes with the key.
fn filter_types() -> Names {
    static NAMES: LazyLock<Vec<(i32, CString)>> = LazyLock::new(|| {
        let types = Filter::ALL.iter().filter(|f| **f != Filter::Aes256Gcm);
        let named = types.map(|f| Some((f.id().into(), CString::new(f.name()).ok()?)));
        named.flatten().collect()
    });
    static TYPES: LazyLock<Vec<(i32, &CStr)>> = LazyLock::new(|| {
        NAMES
            .iter()
            .map(|(id, name)| (*id, name.as_c_str()))
            .collect()
    });
    &TYPES
}

capi_plain! {
    /// The name of a filter type.
    fn tiledb_filter_type_to_str(id: i32, str: Out<Str>) {
        to_str(filter_types(), "filter type", id, &str)?;
    }
    /// The filter type of a name.
    fn tiledb_filter_type_from_str(str: Text, id: Out<i32>) {
        from_str(filter_types(), "filter type", &str, &id)?;
    }
}

/// The names of an enum, and the two functions that translate them.
macro_rules! names {
    ($($what:literal, $to:ident, $from:ident, $list:ident = [$($id:literal = $name:literal),* $(,)?];)*) => {$(
        const $list: Names = &[$(($id, $name)),*];
        capi_plain! {
            #[doc = concat!("The name of a ", $what, ".")]
            fn $to(id: i32, str: Out<Str>) { to_str($list, $what, id, &str)?; }
            #[doc = concat!("The ", $what, " of a name.")]
            fn $from(str: Text, id: Out<i32>) { from_str($list, $what, &str, &id)?; }
        }
    )*};
}

names! {
    "array type", tiledb_array_type_to_str, tiledb_array_type_from_str, ARRAY_TYPES = [0 = c"dense", 1 = c"sparse"];
    "layout", tiledb_layout_to_str, tiledb_layout_from_str, LAYOUTS = [
        0 = c"row-major", 1 = c"col-major", 2 = c"global-order", 3 = c"unordered", 4 = c"hilbert"];
    "data order", tiledb_data_order_to_str, tiledb_data_order_from_str, DATA_ORDERS = [
        0 = c"unordered", 1 = c"increasing", 2 = c"decreasing"];
    "query type", tiledb_query_type_to_str, tiledb_query_type_from_str, QUERY_TYPES = [
        0 = c"READ", 1 = c"WRITE", 2 = c"DELETE", 3 = c"UPDATE", 4 = c"MODIFY_EXCLUSIVE"];
    "query status", tiledb_query_status_to_str, tiledb_query_status_from_str, QUERY_STATUS = [
        0 = c"FAILED", 1 = c"COMPLETED", 2 = c"INPROGRESS", 3 = c"INCOMPLETE", 4 = c"UNINITIALIZED",
        5 = c"INITIALIZED"];
    "filter option", tiledb_filter_option_to_str, tiledb_filter_option_from_str, FILTER_OPTIONS = [
        0 = c"COMPRESSION_LEVEL", 1 = c"BIT_WIDTH_MAX_WINDOW", 2 = c"POSITIVE_DELTA_MAX_WINDOW",
        3 = c"SCALE_FLOAT_BYTEWIDTH", 4 = c"SCALE_FLOAT_FACTOR", 5 = c"SCALE_FLOAT_OFFSET", 6 = c"WEBP_QUALITY",
        7 = c"WEBP_INPUT_FORMAT", 8 = c"WEBP_LOSSLESS", 9 = c"COMPRESSION_REINTERPRET_DATATYPE"];
    "encryption type", tiledb_encryption_type_to_str, tiledb_encryption_type_from_str, ENCRYPTION_TYPES = [
        0 = c"NO_ENCRYPTION", 1 = c"AES_256_GCM"];
    "filesystem", tiledb_filesystem_to_str, tiledb_filesystem_from_str, FILESYSTEMS = [
        0 = c"HDFS", 1 = c"S3", 2 = c"AZURE", 3 = c"GCS", 4 = c"MEM"];
    "object type", tiledb_object_type_to_str, tiledb_object_type_from_str, OBJECT_TYPES = [
        0 = c"INVALID", 1 = c"GROUP", 2 = c"ARRAY"];
    "walk order", tiledb_walk_order_to_str, tiledb_walk_order_from_str, WALK_ORDERS = [
        0 = c"PREORDER", 1 = c"POSTORDER"];
    "VFS mode", tiledb_vfs_mode_to_str, tiledb_vfs_mode_from_str, VFS_MODES = [
        0 = c"VFS_READ", 1 = c"VFS_WRITE", 2 = c"VFS_APPEND"];
    "MIME type", tiledb_mime_type_to_str, tiledb_mime_type_from_str, MIME_TYPES = [
        0 = c"AUTODETECT", 1 = c"image/tiff", 2 = c"application/pdf"];
    "serialization type", tiledb_serialization_type_to_str, tiledb_serialization_type_from_str, SERIALIZATION_TYPES = [
        0 = c"JSON", 1 = c"CAPNP"];
    "datatype", tiledb_datatype_to_str, tiledb_datatype_from_str, DATATYPES = [
        0 = c"INT32", 1 = c"INT64", 2 = c"FLOAT32", 3 = c"FLOAT64", 4 = c"CHAR", 5 = c"INT8", 6 = c"UINT8", 7 = c"INT16",
        8 = c"UINT16", 9 = c"UINT32", 10 = c"UINT64", 11 = c"STRING_ASCII", 12 = c"STRING_UTF8", 13 = c"STRING_UTF16",
        14 = c"STRING_UTF32", 15 = c"STRING_UCS2", 16 = c"STRING_UCS4", 17 = c"ANY", 18 = c"DATETIME_YEAR",
        19 = c"DATETIME_MONTH", 20 = c"DATETIME_WEEK", 21 = c"DATETIME_DAY", 22 = c"DATETIME_HR", 23 = c"DATETIME_MIN",
        24 = c"DATETIME_SEC", 25 = c"DATETIME_MS", 26 = c"DATETIME_US", 27 = c"DATETIME_NS", 28 = c"DATETIME_PS",
        29 = c"DATETIME_FS", 30 = c"DATETIME_AS", 31 = c"TIME_HR", 32 = c"TIME_MIN", 33 = c"TIME_SEC", 34 = c"TIME_MS",
        35 = c"TIME_US", 36 = c"TIME_NS", 37 = c"TIME_PS", 38 = c"TIME_FS", 39 = c"TIME_AS", 40 = c"BLOB", 41 = c"BOOL",
        42 = c"GEOM_WKB", 43 = c"GEOM_WKT"];
}

/// The datatype of a number.
pub fn datatype(id: i32) -> Result<Datatype> {
    let known = usize::try_from(id)
        .ok()
        .and_then(|id| Datatype::ALL.get(id).copied());
    known.ok_or_else(|| Failure::new(format!("{id} is no datatype")))
}

/// The number of a datatype.
pub fn datatype_id(datatype: Datatype) -> i32 {
    datatype.id().into()
}

/// The layout of a number.
pub fn layout(id: i32) -> Result<Layout> {
    match id {
        0 => Ok(Layout::RowMajor),
        1 => Ok(Layout::ColMajor),
        2 => Ok(Layout::Global),
        3 => Ok(Layout::Unordered),
        4 => Ok(Layout::Hilbert),
        _ => Err(Failure::new(format!("{id} is no layout"))),
    }
}

/// The array type of a number.
pub fn array_type(id: i32) -> Result<ArrayType> {
    match id {
        0 => Ok(ArrayType::Dense),
        1 => Ok(ArrayType::Sparse),
        _ => Err(Failure::new(format!("{id} is no array type"))),
    }
}

/// The data order of a number.
pub fn data_order(id: i32) -> Result<DataOrder> {
    match id {
        0 => Ok(DataOrder::Unordered),
        1 => Ok(DataOrder::Increasing),
        2 => Ok(DataOrder::Decreasing),
        _ => Err(Failure::new(format!("{id} is no data order"))),
    }
}

/// Why an array or a group is opened, or what a query does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "named after the C enumerators")]
#[repr(i32)]
pub enum QueryType {
    Read = 0,
    Write = 1,
    Delete = 2,
    Update = 3,
    ModifyExclusive = 4,
}

/// The query type of a number.
pub fn query_type(id: i32) -> Result<QueryType> {
    match id {
        0 => Ok(QueryType::Read),
        1 => Ok(QueryType::Write),
        2 => Ok(QueryType::Delete),
        3 => Ok(QueryType::Update),
        4 => Ok(QueryType::ModifyExclusive),
        _ => Err(Failure::new(format!("{id} is no query type"))),
    }
}

impl QueryType {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        QUERY_TYPES
            .get(self as usize)
            .and_then(|(_, name)| name.to_str().ok())
            .unwrap_or("?")
    }
}

/// Bytes of one value of a datatype; 0 for a number that is none.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_datatype_size(id: i32) -> u64 {
    datatype(id).map_or(0, |datatype| datatype.size() as u64)
}

//! Constants as functions, and what belongs to no handle.

use crate::boundary::{
    ERR, INVALID_CONTEXT, INVALID_ERROR, OK, Out, Pointer, Ptr, Str, Text, capi_plain,
};
use crate::strings::StringHandle;

/// The version of libtiledb that this library stands in for.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_version(major: Out<i32>, minor: Out<i32>, rev: Out<i32>) {
    major.set_if(2);
    minor.set_if(30);
    rev.set_if(0);
}

/// The number of values in a cell that stands for any number.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_var_num() -> u32 {
    u32::MAX
}

/// The longest path.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_max_path() -> u32 {
    4096
}

/// Bytes of an offset.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_offset_size() -> u64 {
    8
}

/// Milliseconds since 1970-01-01 UTC.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_timestamp_now_ms() -> u64 {
    azulejo::clock::now()
}

/// The name of the field of cell timestamps.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_timestamps() -> Str {
    Pointer(c"__timestamps".as_ptr())
}

/// A status from a function's return value: the value itself.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_status_code(status: i32) -> i32 {
    match status {
        OK | ERR | INVALID_CONTEXT | INVALID_ERROR | -2 | -5 => status,
        _ => ERR,
    }
}

/// The version of this library, which is Azulejo and no libtiledb. Programs that want to know look
/// for this name.
#[unsafe(no_mangle)]
pub extern "C" fn azulejo_version() -> Str {
    const VERSION: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
        concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes(),
    ) {
        Ok(version) => version,
        Err(_) => c"",
    };
    Pointer(VERSION.as_ptr())
}

capi_plain! {
    /// What was built in, as JSON.
    fn tiledb_as_built_dump(out: Out<Ptr<StringHandle>>) {
        out.give(StringHandle::new(as_built()))?;
    }

    /// There is no heap profiler here; the call is accepted.
    fn tiledb_heap_profiler_enable(prefix: Text, interval: u64, bytes: u64, threshold: u64) {
        prefix.opt()?;
        let _ = (interval, bytes, threshold);
    }
}

/// The reference's layout, with what this library has.
fn as_built() -> String {
    let stores = azulejo::storage::HAS_OBJECT_STORES;
    let part = |name: &str, enabled: bool| {
        format!("        \"{name}\": {{\n          \"enabled\": {enabled}\n        }}")
    };
    format!(
        "{{\n  \"as_built\": {{\n    \"parameters\": {{\n      \"storage_backends\": {{\n{},\n{},\n{}\n      }},\n      \"support\": {{\n{}\n      }}\n    }}\n  }}\n}}\n",
        part("azure", stores),
        part("gcs", stores),
        part("s3", stores),
        part("serialization", true)
    )
}

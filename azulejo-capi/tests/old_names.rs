//! Names that libtiledb had until 2.29, and how the library says what it is.
#![allow(unsafe_code, clippy::unwrap_used, reason = "tests of a C API")]

mod capi;

use capi::{Ctx, Handle, c, free, null, ok};
use std::ffi::{CStr, c_char};

const INT32: i32 = 0;

/// What a function writes to a `FILE*`.
fn printed(print: &dyn Fn(*mut libc::FILE)) -> String {
    // SAFETY: the C library's own file, closed at the end.
    unsafe {
        let file = libc::tmpfile();
        assert!(!file.is_null());
        print(file);
        libc::rewind(file);
        let mut text = vec![0u8; 1 << 16];
        let read = libc::fread(text.as_mut_ptr().cast(), 1, text.len(), file);
        libc::fclose(file);
        text.truncate(read);
        String::from_utf8(text).unwrap()
    }
}

/// What a string handle holds.
fn text(mut string: Handle) -> String {
    let (mut data, mut size) = (std::ptr::null::<u8>(), 0usize);
    capi::raw!(tiledb_string_view, string, &mut data, &mut size);
    // SAFETY: the handle lives, and says where its bytes are.
    let bytes = unsafe { std::slice::from_raw_parts(data, size) }.to_vec();
    capi::raw!(tiledb_string_free, &mut string);
    String::from_utf8(bytes).unwrap()
}

#[test]
fn dumps_to_a_file_say_what_dumps_to_a_string_say() {
    let ctx = Ctx::new();
    let (mut dimension, mut domain, mut attribute, mut schema) = (null(), null(), null(), null());
    let (range, extent) = ([1i32, 9], [3i32]);
    ok!(
        tiledb_dimension_alloc,
        ctx.0,
        c"d",
        INT32,
        &range,
        &extent,
        &mut dimension
    );
    ok!(tiledb_domain_alloc, ctx.0, &mut domain);
    ok!(tiledb_domain_add_dimension, ctx.0, domain, dimension);
    ok!(tiledb_attribute_alloc, ctx.0, c"a", INT32, &mut attribute);
    ok!(tiledb_array_schema_alloc, ctx.0, 1i32, &mut schema);
    ok!(tiledb_array_schema_set_domain, ctx.0, schema, domain);
    ok!(tiledb_array_schema_add_attribute, ctx.0, schema, attribute);
    let mut enumeration = null();
    let values = [1i32, 2];
    ok!(
        tiledb_enumeration_alloc,
        ctx.0,
        c"e",
        INT32,
        1u32,
        0i32,
        &values,
        8u64,
        std::ptr::null::<u64>(),
        0u64,
        &mut enumeration
    );
    macro_rules! same {
        ($dump:ident, $dump_str:ident, $handle:expr) => {{
            let mut string = null();
            ok!($dump_str, ctx.0, $handle, &mut string);
            let found = printed(&|file| {
                ok!($dump, ctx.0, $handle, file);
            });
            assert!(!found.is_empty());
            assert_eq!(found, text(string));
        }};
    }
    same!(tiledb_dimension_dump, tiledb_dimension_dump_str, dimension);
    same!(tiledb_domain_dump, tiledb_domain_dump_str, domain);
    same!(tiledb_attribute_dump, tiledb_attribute_dump_str, attribute);
    same!(
        tiledb_array_schema_dump,
        tiledb_array_schema_dump_str,
        schema
    );
    same!(
        tiledb_enumeration_dump,
        tiledb_enumeration_dump_str,
        enumeration
    );

    let folder = tempfile::tempdir().unwrap();
    let uri = std::ffi::CString::new(folder.path().join("g").to_str().unwrap()).unwrap();
    let mut group = null();
    ok!(tiledb_group_create, ctx.0, &uri);
    ok!(tiledb_group_alloc, ctx.0, &uri, &mut group);
    ok!(tiledb_group_open, ctx.0, group, 0i32);
    let (mut string, mut old) = (null(), std::ptr::null_mut::<c_char>());
    ok!(tiledb_group_dump_str_v2, ctx.0, group, &mut string, 1u8);
    ok!(tiledb_group_dump_str, ctx.0, group, &mut old, 1u8);
    // SAFETY: a string of the C library's memory, which is the caller's.
    let found = unsafe {
        let found = CStr::from_ptr(old).to_str().unwrap().to_owned();
        libc::free(old.cast());
        found
    };
    assert_eq!(found, text(string));
    free!(tiledb_group_free, group);
    for (free, handle) in [
        (
            c::tiledb_dimension_free as unsafe extern "C" fn(),
            &mut dimension,
        ),
        (c::tiledb_domain_free, &mut domain),
        (c::tiledb_attribute_free, &mut attribute),
        (c::tiledb_array_schema_free, &mut schema),
        (c::tiledb_enumeration_free, &mut enumeration),
    ] {
        capi::invoke(free, &[std::ptr::from_mut(handle) as u64]);
    }
}

#[test]
fn numbers_without_a_name_have_an_empty_one() {
    for function in [
        c::tiledb_datatype_to_str as unsafe extern "C" fn(),
        c::tiledb_layout_to_str,
        c::tiledb_filter_type_to_str,
    ] {
        let mut name: *const c_char = std::ptr::null();
        let arguments = [99, std::ptr::from_mut(&mut name) as u64];
        assert_eq!(capi::invoke(function, &arguments), -1);
        assert_eq!(capi::text(name), "");
    }
}

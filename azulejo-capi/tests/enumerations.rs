//! Enumerations by themselves, apart from arrays.
#![allow(unsafe_code, clippy::unwrap_used, reason = "tests of a C API")]

mod capi;

use capi::{Ctx, Handle, free, null, ok, raw};
use std::ffi::CStr;

const STRING_ASCII: i32 = 11;
const INT64: i32 = 1;
const VAR: u32 = u32::MAX;
/// What is said of a value that is not there.
const MISSING: (i32, u64) = (0, u64::MAX);

/// Whether a value is there, and its index.
fn index(ctx: &Ctx, enumeration: Handle, value: &[u8]) -> (i32, u64) {
    let (mut exist, mut index) = (-1i32, 7u64);
    ok!(
        tiledb_enumeration_get_value_index,
        ctx.0,
        enumeration,
        value,
        value.len(),
        &mut exist,
        &mut index
    );
    (exist, index)
}

fn alloc(ctx: &Ctx, name: &CStr, datatype: i32, num: u32, data: &[u8], offsets: &[u64]) -> Handle {
    let mut enumeration = null();
    let starts = if offsets.is_empty() {
        std::ptr::null()
    } else {
        offsets.as_ptr()
    };
    let (size, starts_size) = (data.len(), size_of_val(offsets));
    ok!(
        tiledb_enumeration_alloc,
        ctx.0,
        name,
        datatype,
        num,
        0i32,
        data,
        size,
        starts,
        starts_size,
        &mut enumeration
    );
    enumeration
}

#[test]
fn values_are_found_by_their_bytes() {
    let ctx = Ctx::new();
    let mut words = alloc(
        &ctx,
        c"words",
        STRING_ASCII,
        VAR,
        b"tilebazulejo",
        &[0, 4, 5, 5],
    );
    let found =
        [&b"tile"[..], b"b", b"", b"azulejo", b"ti", b"c"].map(|word| index(&ctx, words, word));
    assert_eq!(found, [(1, 0), (1, 1), (1, 2), (1, 3), MISSING, MISSING]);

    let bytes: Vec<u8> = [7i64, -1, 300]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    let mut numbers = alloc(&ctx, c"numbers", INT64, 1, &bytes, &[]);
    let found = [300i64, -1, 7, 8].map(|n| index(&ctx, numbers, &n.to_le_bytes()));
    assert_eq!(found, [(1, 2), (1, 1), (1, 0), MISSING]);
    assert_eq!(
        index(&ctx, numbers, &[7]),
        MISSING,
        "a value of another size"
    );
    free!(tiledb_enumeration_free, words; tiledb_enumeration_free, numbers);
}

#[test]
fn each_of_many_values_is_found() {
    const MANY: u64 = 20_000;
    let ctx = Ctx::new();
    let data: Vec<u8> = (0..MANY)
        .flat_map(|i| format!("value {i:06}").into_bytes())
        .collect();
    let offsets: Vec<u64> = (0..MANY).map(|i| i * 12).collect();
    let mut many = alloc(&ctx, c"many", STRING_ASCII, VAR, &data, &offsets);
    for i in 0..MANY {
        assert_eq!(
            index(&ctx, many, format!("value {i:06}").as_bytes()),
            (1, i)
        );
    }
    assert_eq!(index(&ctx, many, b"value 020000"), MISSING);
    free!(tiledb_enumeration_free, many);
}

#[test]
fn an_enumeration_may_be_extended_by_nothing_and_by_the_empty_text() {
    let ctx = Ctx::new();
    let extend = |old: Handle, data: Option<&[u8]>, starts: Option<&[u64]>| {
        let mut new = null();
        let status = raw!(
            tiledb_enumeration_extend,
            ctx.0,
            old,
            data.map_or(std::ptr::null(), <[u8]>::as_ptr),
            data.map_or(0, <[u8]>::len),
            starts.map_or(std::ptr::null(), <[u64]>::as_ptr),
            starts.map_or(0, size_of_val),
            &mut new
        );
        (status == 0).then_some(new)
    };
    let size = |mut enumeration: Handle| {
        let (mut data, mut size) = (std::ptr::null::<u8>(), 9u64);
        ok!(
            tiledb_enumeration_get_data,
            ctx.0,
            enumeration,
            &mut data,
            &mut size
        );
        free!(tiledb_enumeration_free, enumeration);
        size
    };
    let mut numbers = alloc(&ctx, c"numbers", INT64, 1, &7i64.to_le_bytes(), &[]);
    assert_eq!(extend(numbers, None, None).map(size), Some(8));
    assert_eq!(extend(numbers, Some(&[]), None), None);
    assert_eq!(extend(numbers, None, Some(&[0])), None);
    assert_eq!(extend(numbers, None, Some(&[])), None);

    let mut words = alloc(&ctx, c"words", STRING_ASCII, VAR, b"ab", &[0, 1]);
    let mut longer = extend(words, None, Some(&[0])).unwrap();
    assert_eq!(index(&ctx, longer, b""), (1, 2));
    assert_eq!(
        extend(longer, None, Some(&[0])),
        None,
        "it is there already"
    );
    for (data, starts) in [
        (None, None),
        (Some(&b"x"[..]), None),
        (None, Some(&[][..])),
        (Some(&[][..]), Some(&[0][..])),
    ] {
        assert_eq!(extend(words, data, starts), None);
    }
    free!(tiledb_enumeration_free, words; tiledb_enumeration_free, longer);
    free!(tiledb_enumeration_free, numbers);
}

#[test]
fn truth_values_may_be_enumerated() {
    const BOOL: i32 = 41;
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let uri = std::ffi::CString::new(folder.path().join("a").to_str().unwrap()).unwrap();
    let mut schema = capi::schema(ctx.0, true, 10, 5, &[]);
    let mut words = alloc(&ctx, c"words", STRING_ASCII, VAR, b"noyes", &[0, 2]);
    ok!(tiledb_array_schema_add_enumeration, ctx.0, schema, words);
    let mut attribute = null();
    ok!(tiledb_attribute_alloc, ctx.0, c"k", BOOL, &mut attribute);
    ok!(
        tiledb_attribute_set_enumeration_name,
        ctx.0,
        attribute,
        c"words"
    );
    ok!(tiledb_array_schema_add_attribute, ctx.0, schema, attribute);
    ok!(tiledb_array_schema_check, ctx.0, schema);
    ok!(tiledb_array_create, ctx.0, &uri, schema);
    free!(tiledb_attribute_free, attribute; tiledb_array_schema_free, schema);
    free!(tiledb_enumeration_free, words);
    // And the array can be changed.
    let (mut evolution, mut more) = (null(), null());
    ok!(tiledb_array_schema_evolution_alloc, ctx.0, &mut evolution);
    ok!(tiledb_attribute_alloc, ctx.0, c"more", INT64, &mut more);
    ok!(
        tiledb_array_schema_evolution_add_attribute,
        ctx.0,
        evolution,
        more
    );
    ok!(tiledb_array_evolve, ctx.0, &uri, evolution);
    free!(tiledb_attribute_free, more);
    free!(tiledb_array_schema_evolution_free, evolution);
}

#[test]
fn the_empty_text_alone_may_come_from_anywhere() {
    let ctx = Ctx::new();
    let mut words = alloc(&ctx, c"words", STRING_ASCII, VAR, b"", &[0]);
    assert_eq!(index(&ctx, words, b""), (1, 0));
    assert_eq!(index(&ctx, words, b"a"), MISSING);
    free!(tiledb_enumeration_free, words);
}

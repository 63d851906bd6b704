//! Null, freed and mistaken handles, for every function there is: an error, or nothing, and never a
//! crash; arrays that are open more than once.
#![allow(unsafe_code, clippy::unwrap_used, reason = "tests of a C API")]

mod capi;

use capi::{
    Attr, Ctx, FUNCTIONS, Function, Handle, INT64, READ, ROW, WRITE, close, create, fails, free,
    invoke, null, ok, open, query, raw, set_buffer,
};
use std::ffi::{CStr, CString, c_char};

/// Functions that go well without arguments: there is nothing that they need.
const CONTENT: &[&str] = &[
    "tiledb_consolidation_plan_free_json_str",
    "tiledb_ctx_cancel_tasks",
    "tiledb_heap_profiler_enable",
    "tiledb_stats_disable",
    "tiledb_stats_dump",
    "tiledb_stats_enable",
    "tiledb_stats_free_str",
    "tiledb_stats_raw_dump",
    "tiledb_stats_reset",
    "tiledb_status_code",
];
/// Functions that write to a `FILE*`, or to the standard output.
const PRINTING: &[&str] = &[
    "tiledb_array_schema_dump",
    "tiledb_attribute_dump",
    "tiledb_dimension_dump",
    "tiledb_domain_dump",
    "tiledb_enumeration_dump",
    "tiledb_fragment_info_dump",
    "tiledb_stats_dump",
    "tiledb_stats_raw_dump",
];

#[test]
fn there_are_as_many_functions_as_libtiledb_has() {
    // Those of 2.30, and six names of 2.27 to 2.29.
    assert_eq!(FUNCTIONS.len(), 514 + 6);
    let longest = FUNCTIONS.iter().map(|f| f.letters.len()).max();
    assert_eq!(longest, Some(10));
}

#[test]
fn null_everywhere_is_an_error_or_nothing() {
    let ctx = Ctx::new();
    let mut wrong = Vec::new();
    for f in FUNCTIONS.iter().filter(|f| !PRINTING.contains(&f.name)) {
        // Without a context there is nobody to tell why.
        let status = invoke(f.address, &[]);
        if !f.has_status || f.name.ends_with("_free") || f.name == "tiledb_ctx_alloc" {
            continue;
        }
        let has_ctx = f.letters.starts_with('c');
        if if has_ctx {
            status != -3
        } else {
            status >= 0 && !CONTENT.contains(&f.name)
        } {
            wrong.push((f.name, status));
        }
        if has_ctx && !CONTENT.contains(&f.name) {
            let status = invoke(f.address, &[ctx.0 as u64]);
            if status >= 0 || capi::last_error(ctx.0).len() < 10 {
                wrong.push((f.name, status));
            }
        }
    }
    assert_eq!(wrong, []);
}

/// Calls with the same word for every handle, another for every other pointer, and zeros.
fn call(f: &Function, ctx: Handle, handle: u64, pointer: u64) -> i32 {
    let words: Vec<u64> = f
        .letters
        .chars()
        .map(|letter| match letter {
            'c' => ctx as u64,
            'h' => handle,
            'p' => pointer,
            _ => 0,
        })
        .collect();
    invoke(f.address, &words)
}

#[test]
fn mistaken_and_freed_handles_are_errors() {
    // What is named "" lies where the test runs: nowhere that matters.
    let folder = tempfile::tempdir().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    let ctx = Ctx::new();
    let mut freed = null();
    ok!(tiledb_domain_alloc, ctx.0, &mut freed);
    let stale = freed;
    free!(tiledb_domain_free, freed);
    let mut error = null();
    assert!(raw!(tiledb_config_load_from_file, null(), null(), &mut error) < 0);
    let not_a_handle = [0x5555_5555_5555_5555u64; 8];
    let misaligned = (stale as u64) + 1;
    for f in FUNCTIONS.iter().filter(|f| !PRINTING.contains(&f.name)) {
        // A field of zeros is an empty string, a null handle, a number, and room for results.
        for handle in [
            0,
            stale as u64,
            error as u64,
            not_a_handle.as_ptr() as u64,
            misaligned,
        ] {
            let mut room = [0u64; 512];
            let status = call(f, ctx.0, handle, room.as_mut_ptr() as u64);
            let is_of_errors = f.name.starts_with("tiledb_error") && handle == error as u64;
            if f.has_status && f.letters.contains('h') && handle != 0 && !is_of_errors {
                assert!(status < 0, "{} with {handle:#x}: {status}", f.name);
            }
            call(f, ctx.0, handle, 0);
        }
        // A context that is none.
        if f.letters.starts_with('c') && f.has_status && !f.name.ends_with("_free") {
            assert_eq!(call(f, stale, 0, 0), -3, "{}", f.name);
        }
    }
    free!(tiledb_error_free, error);
}

#[test]
fn freeing_twice_does_nothing() {
    let ctx = Ctx::new();
    let mut domain = null();
    ok!(tiledb_domain_alloc, ctx.0, &mut domain);
    let mut copy = domain;
    free!(tiledb_domain_free, domain);
    raw!(tiledb_domain_free, &mut domain);
    free!(tiledb_domain_free, copy);
    // Without a place for errors nothing is done.
    let mut none = null();
    assert_eq!(raw!(tiledb_config_alloc, &mut none, null()), -4);
    assert!(none.is_null());
    // Neither does freeing a handle as one of another kind.
    let mut config = null();
    let mut error = null();
    assert_eq!(raw!(tiledb_config_alloc, &mut config, &mut error), 0);
    let mut mistaken = config;
    raw!(tiledb_domain_free, &mut mistaken);
    let mut value: *const c_char = std::ptr::null();
    assert_eq!(
        raw!(
            tiledb_config_get,
            config,
            c"sm.dedup_coords",
            &mut value,
            &mut error
        ),
        0
    );
    assert_eq!(capi::text(value), "false");
    free!(tiledb_config_free, config);
}

/// Every function that frees takes null, a null handle, a stale one and one of another kind.
#[test]
fn all_that_free_take_anything() {
    let ctx = Ctx::new();
    let mut stale = null();
    ok!(tiledb_domain_alloc, ctx.0, &mut stale);
    let address = stale;
    free!(tiledb_domain_free, stale);
    for f in FUNCTIONS.iter().filter(|f| f.name.ends_with("_free")) {
        for handle in [null(), address, ctx.0] {
            if f.name == "tiledb_ctx_free" && handle == ctx.0 {
                continue;
            }
            let mut handle = handle;
            let words: Vec<u64> = f
                .letters
                .chars()
                .map(|l| {
                    if l == 'c' {
                        ctx.0 as u64
                    } else {
                        &raw mut handle as u64
                    }
                })
                .collect();
            invoke(f.address, &words);
        }
    }
    let mut config = null();
    ok!(tiledb_ctx_get_config, ctx.0, &mut config);
    free!(tiledb_config_free, config);
}

const MODIFY_EXCLUSIVE: i32 = 4;

/// Whether an array can be opened so.
fn opens(ctx: Handle, uri: &CStr, kind: i32) -> bool {
    let mut array = null();
    ok!(tiledb_array_alloc, ctx, uri, &mut array);
    let opened = raw!(tiledb_array_open, ctx, array, kind) == 0;
    assert!(opened || capi::last_error(ctx).contains("is open"));
    free!(tiledb_array_free, array);
    opened
}

#[test]
fn an_array_that_is_open_exclusively_is_open_once() {
    let (ctx, folder) = (Ctx::new(), tempfile::tempdir().unwrap());
    let ctx = ctx.0;
    let path = folder.path().join("array").to_str().unwrap().to_owned();
    let uri = CString::new(path.clone()).unwrap();
    let spelled = CString::new(format!("file://{path}")).unwrap();
    create(ctx, &uri, true, 10, 10, &[Attr::fixed(c"a", INT64)]);
    for kind in [READ, WRITE, capi::DELETE] {
        let array = open(ctx, &uri, kind);
        assert!(opens(ctx, &uri, READ) && opens(ctx, &uri, WRITE));
        assert!(!opens(ctx, &uri, MODIFY_EXCLUSIVE) && !opens(ctx, &spelled, MODIFY_EXCLUSIVE));
        ok!(tiledb_array_consolidate, ctx, &uri, null());
        close(ctx, array);
        let array = open(ctx, &uri, MODIFY_EXCLUSIVE);
        for other in [READ, WRITE, capi::DELETE, MODIFY_EXCLUSIVE] {
            assert!(!opens(ctx, &spelled, other));
        }
        fails!(tiledb_array_consolidate, ctx, &uri, null());
        close(ctx, array);
    }
    // Opened again it stays open; freed, or with a query that is left, it is not.
    let mut array = open(ctx, &uri, READ);
    ok!(tiledb_array_reopen, ctx, array);
    assert!(!opens(ctx, &uri, MODIFY_EXCLUSIVE));
    let mut q = query(ctx, array, READ, ROW);
    ok!(tiledb_array_close, ctx, array);
    assert!(opens(ctx, &uri, MODIFY_EXCLUSIVE));
    free!(tiledb_query_free, q);
    ok!(tiledb_array_open, ctx, array, READ);
    assert!(!opens(ctx, &uri, MODIFY_EXCLUSIVE));
    free!(tiledb_array_free, array);
    assert!(opens(ctx, &uri, MODIFY_EXCLUSIVE));
    // What could not be opened is not open.
    let later = CString::new(format!("{path}2")).unwrap();
    ok!(tiledb_array_alloc, ctx, &later, &mut array);
    fails!(tiledb_array_open, ctx, array, READ);
    create(ctx, &later, true, 10, 10, &[Attr::fixed(c"a", INT64)]);
    assert!(opens(ctx, &later, MODIFY_EXCLUSIVE));
    free!(tiledb_array_free, array);
}

#[test]
fn an_array_that_is_open_is_not_deleted_nor_are_its_fragments() {
    let (ctx, folder) = (Ctx::new(), tempfile::tempdir().unwrap());
    let ctx = ctx.0;
    let path = folder.path().join("array");
    let uri = CString::new(path.to_str().unwrap()).unwrap();
    create(ctx, &uri, true, 10, 10, &[Attr::fixed(c"a", INT64)]);
    let array = open(ctx, &uri, WRITE);
    let mut q = query(ctx, array, WRITE, capi::UNORDERED);
    let (cells, mut size) = ([1i64, 2], 16u64);
    let place: *mut u64 = &mut size;
    for name in [c"d", c"a"] {
        set_buffer!(data, ctx, q, name, &cells[..], place);
    }
    ok!(tiledb_query_submit, ctx, q);
    free!(tiledb_query_free, q);
    close(ctx, array);
    let folder_of = path.join("__fragments");
    let fragments = || std::fs::read_dir(&folder_of).unwrap().count();
    let name = std::fs::read_dir(&folder_of).unwrap().next().unwrap();
    let name = CString::new(name.unwrap().path().to_str().unwrap()).unwrap();
    let names = [name.as_ptr()];
    for kind in [READ, WRITE, MODIFY_EXCLUSIVE] {
        let array = open(ctx, &uri, kind);
        fails!(tiledb_array_delete, ctx, &uri);
        fails!(tiledb_array_delete_fragments_v2, ctx, &uri, 0u64, u64::MAX);
        fails!(
            tiledb_array_delete_fragments_list,
            ctx,
            &uri,
            &names[..],
            1u64
        );
        assert_eq!(fragments(), 1);
        close(ctx, array);
    }
    ok!(tiledb_array_delete_fragments_v2, ctx, &uri, 0u64, u64::MAX);
    assert_eq!(fragments(), 0);
    ok!(tiledb_array_delete, ctx, &uri);
    // It goes as an array, or not at all.
    let group = CString::new(folder.path().join("group").to_str().unwrap()).unwrap();
    ok!(tiledb_group_create, ctx, &group);
    fails!(tiledb_array_delete, ctx, &group);
    assert!(!path.exists() && folder.path().join("group").exists());
}

#[test]
fn settings_of_who_may_see_objects_are_refused_if_nobody_knows_them() {
    let (mut config, mut error) = (null(), null());
    assert_eq!(capi::raw!(tiledb_config_alloc, &mut config, &mut error), 0);
    let mut set = |key: &CStr, value: &CStr| {
        let status = capi::raw!(tiledb_config_set, config, key, value, &mut error);
        capi::raw!(tiledb_error_free, &mut error);
        status
    };
    for key in [c"vfs.s3.bucket_canned_acl", c"vfs.s3.object_canned_acl"] {
        assert_eq!(set(key, c"public_read"), 0);
        assert_eq!(set(key, c"NOT_SET"), 0);
        assert_eq!(set(key, c"public-read"), -1);
    }
    assert_eq!(set(c"vfs.s3.object_canned_acl", c"bucket_owner_read"), 0);
    assert_eq!(set(c"vfs.s3.bucket_canned_acl", c"bucket_owner_read"), -1);
    free!(tiledb_config_free, config);
}

#[test]
fn an_array_that_is_open_for_writing_says_which_time_writes_get() {
    let (ctx, folder) = (Ctx::new(), tempfile::tempdir().unwrap());
    let ctx = ctx.0;
    let uri = CString::new(folder.path().join("array").to_str().unwrap()).unwrap();
    create(ctx, &uri, true, 10, 10, &[Attr::fixed(c"a", INT64)]);
    for (asked, told) in [(None, 0u64), (Some(7u64), 7)] {
        let mut array = null();
        ok!(tiledb_array_alloc, ctx, &uri, &mut array);
        if let Some(time) = asked {
            ok!(tiledb_array_set_open_timestamp_end, ctx, array, time);
        }
        ok!(tiledb_array_open, ctx, array, WRITE);
        for _ in 0..2 {
            let mut end = 1u64;
            ok!(tiledb_array_get_open_timestamp_end, ctx, array, &mut end);
            assert_eq!(end, told);
            // That is for the next time that it is opened.
            ok!(tiledb_array_set_open_timestamp_end, ctx, array, 9u64);
        }
        close(ctx, array);
    }
}

//! Writes and changes through the C API: global order, labels, deletes, evolution, metadata,
//! statistics, files.
#![allow(unsafe_code, clippy::unwrap_used, reason = "tests of a C API")]

mod capi;

use capi::{
    Attr, COMPLETED, Ctx, DELETE, GLOBAL, Handle, INT32, INT64, READ, ROW, UNORDERED, UPDATE,
    WRITE, bytes, close, create, fails, free, null, ok, open, query, raw, set_buffer, status,
};
use std::ffi::{CStr, CString, c_char};

const A: &[Attr] = &[Attr::fixed(c"a", INT64)];

fn uri(folder: &tempfile::TempDir, name: &str) -> CString {
    CString::new(folder.path().join(name).to_str().unwrap()).unwrap()
}

/// All of `a`, and of `d` where the array is sparse.
fn read(ctx: Handle, uri: &CStr, sparse: bool) -> (Vec<i64>, Vec<i64>) {
    let array = open(ctx, uri, READ);
    let mut q = query(ctx, array, READ, ROW);
    let (mut a, mut d) = (vec![0i64; 1000], vec![0i64; 1000]);
    let (mut a_size, mut d_size) = (bytes(&a), bytes(&d));
    set_buffer!(data, ctx, q, c"a", &mut a[..], &mut a_size);
    if sparse {
        set_buffer!(data, ctx, q, c"d", &mut d[..], &mut d_size);
    }
    ok!(tiledb_query_submit, ctx, q);
    assert_eq!(status(ctx, q), COMPLETED);
    a.truncate(a_size as usize / 8);
    d.truncate(if sparse { d_size as usize / 8 } else { 0 });
    free!(tiledb_query_free, q);
    close(ctx, array);
    (a, d)
}

#[test]
fn cells_without_an_order_are_written_once() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx.0, &uri, true, 40, 10, A);
    let array = open(ctx.0, &uri, WRITE);
    let mut q = query(ctx.0, array, WRITE, UNORDERED);
    let cells = [3i64, 1, 2];
    let (mut a_size, mut d_size) = (bytes(&cells), bytes(&cells));
    set_buffer!(data, ctx.0, q, c"a", &cells[..], &mut a_size);
    set_buffer!(data, ctx.0, q, c"d", &cells[..], &mut d_size);
    ok!(tiledb_query_submit, ctx.0, q);
    let again = fails!(tiledb_query_submit, ctx.0, q);
    assert!(again.contains("already written"), "{again}");
    assert_eq!(status(ctx.0, q), COMPLETED);
    let mut fragments = 0u32;
    ok!(tiledb_query_get_fragment_num, ctx.0, q, &mut fragments);
    assert_eq!(fragments, 1);
    ok!(tiledb_query_finalize, ctx.0, q);
    free!(tiledb_query_free, q);
    close(ctx.0, array);
    assert_eq!(read(ctx.0, &uri, true), (vec![1, 2, 3], vec![1, 2, 3]));
}

#[test]
fn writes_in_global_order_count_once_finalized() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    for (sparse, finalize) in [(false, true), (true, true), (true, false)] {
        let uri = uri(&folder, &format!("array_{sparse}_{finalize}"));
        create(ctx.0, &uri, sparse, 40, 10, A);
        let array = open(ctx.0, &uri, WRITE);
        let mut q = query(ctx.0, array, WRITE, GLOBAL);
        let all: Vec<i64> = (1..=40).collect();
        let parts: Vec<&[i64]> = all.chunks(13).collect();
        for (i, part) in parts.iter().enumerate() {
            let (mut a_size, mut d_size) = (bytes(part), bytes(part));
            set_buffer!(data, ctx.0, q, c"a", *part, &mut a_size);
            if sparse {
                set_buffer!(data, ctx.0, q, c"d", *part, &mut d_size);
            }
            if !finalize && i + 1 == parts.len() {
                ok!(tiledb_query_submit_and_finalize, ctx.0, q);
            } else {
                ok!(tiledb_query_submit, ctx.0, q);
            }
        }
        if finalize {
            let (before, _) = read(ctx.0, &uri, sparse);
            assert!(!before.contains(&40), "{before:?}");
            ok!(tiledb_query_finalize, ctx.0, q);
        }
        let mut fragments = 0u32;
        ok!(tiledb_query_get_fragment_num, ctx.0, q, &mut fragments);
        assert_eq!(fragments, 1);
        let mut fragment: *const c_char = std::ptr::null();
        ok!(tiledb_query_get_fragment_uri, ctx.0, q, 0u64, &mut fragment);
        assert!(capi::text(fragment).contains("__fragments/"));
        fails!(tiledb_query_get_fragment_uri, ctx.0, q, 1u64, &mut fragment);
        free!(tiledb_query_free, q);
        close(ctx.0, array);
        assert_eq!(
            read(ctx.0, &uri, sparse),
            (all.clone(), if sparse { all } else { vec![] })
        );
    }
}

#[test]
fn layouts_that_do_not_fit_are_refused() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    for (sparse, layout) in [
        (false, UNORDERED),
        (true, ROW),
        (true, capi::COL),
        (true, 4),
        (true, 77),
    ] {
        let uri = uri(&folder, &format!("array_{sparse}_{layout}"));
        create(ctx.0, &uri, sparse, 40, 10, A);
        let array = open(ctx.0, &uri, WRITE);
        let mut q = null();
        ok!(tiledb_query_alloc, ctx.0, array, WRITE, &mut q);
        fails!(tiledb_query_set_layout, ctx.0, q, layout);
        free!(tiledb_query_free, q);
        close(ctx.0, array);
    }
}

#[test]
fn duplicates_and_coordinates_outside_are_refused() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx.0, &uri, true, 40, 10, A);
    let array = open(ctx.0, &uri, WRITE);
    for (d, part) in [([3i64, 3], "uplicate"), ([3, 41], "41")] {
        let mut q = query(ctx.0, array, WRITE, UNORDERED);
        let (mut a_size, mut d_size) = (16u64, 16u64);
        set_buffer!(data, ctx.0, q, c"a", &[1i64, 2], &mut a_size);
        set_buffer!(data, ctx.0, q, c"d", &d, &mut d_size);
        let message = fails!(tiledb_query_submit, ctx.0, q);
        assert!(message.contains(part), "{message}");
        assert_eq!(status(ctx.0, q), 0);
        free!(tiledb_query_free, q);
    }
    // A missing buffer, and buffers of different lengths.
    let mut q = query(ctx.0, array, WRITE, UNORDERED);
    let (mut a_size, mut d_size) = (16u64, 8u64);
    set_buffer!(data, ctx.0, q, c"d", &[1i64], &mut d_size);
    assert!(fails!(tiledb_query_submit, ctx.0, q).contains("'a'"));
    set_buffer!(data, ctx.0, q, c"a", &[1i64, 2], &mut a_size);
    // Of attributes, as many cells count as there are coordinates; there may not be fewer.
    ok!(tiledb_query_submit, ctx.0, q);
    free!(tiledb_query_free, q);
    let mut q = query(ctx.0, array, WRITE, UNORDERED);
    let (mut a_size, mut d_size) = (8u64, 16u64);
    set_buffer!(data, ctx.0, q, c"a", &[1i64], &mut a_size);
    set_buffer!(data, ctx.0, q, c"d", &[4i64, 5], &mut d_size);
    assert!(fails!(tiledb_query_submit, ctx.0, q).contains("cells"));
    free!(tiledb_query_free, q);
    close(ctx.0, array);
    assert_eq!(read(ctx.0, &uri, true), (vec![1], vec![1]));
}

#[test]
fn updates_are_stored_and_take_their_cells_away() {
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    let plain = Ctx::new();
    create(plain.0, &uri, true, 40, 10, A);
    let array = open(plain.0, &uri, WRITE);
    let mut q = query(plain.0, array, WRITE, UNORDERED);
    let cells: Vec<i64> = (1..=5).collect();
    let (mut a_size, mut d_size) = (bytes(&cells), bytes(&cells));
    for (name, size) in [(c"a", &mut a_size), (c"d", &mut d_size)] {
        set_buffer!(data, plain.0, q, name, &cells[..], size);
    }
    ok!(tiledb_query_submit, plain.0, q);
    free!(tiledb_query_free, q);
    close(plain.0, array);

    // An experiment, which settings must allow.
    let mut array = null();
    ok!(tiledb_array_alloc, plain.0, uri.as_c_str(), &mut array);
    assert!(fails!(tiledb_array_open, plain.0, array, UPDATE).contains("experimental"));
    free!(tiledb_array_free, array);
    let ctx = Ctx::with(&[(c"sm.allow_updates_experimental", c"true")]);
    let array = open(ctx.0, &uri, UPDATE);
    let (mut q, mut condition) = (null(), null());
    ok!(tiledb_query_alloc, ctx.0, array, UPDATE, &mut q);
    ok!(
        tiledb_query_add_update_value,
        ctx.0,
        q,
        c"a",
        &[77i64],
        8u64
    );
    for (name, why) in [
        (c"a", "already set"),
        (c"none", "no attribute"),
        (c"d", "no attribute"),
    ] {
        let said = fails!(
            tiledb_query_add_update_value,
            ctx.0,
            q,
            name,
            &[77i64],
            8u64
        );
        assert!(said.contains(why), "{said}");
    }
    fails!(tiledb_query_submit, ctx.0, q);
    ok!(tiledb_query_condition_alloc, ctx.0, &mut condition);
    ok!(
        tiledb_query_condition_init,
        ctx.0,
        condition,
        c"a",
        &[4i64],
        8u64,
        3
    );
    ok!(tiledb_query_set_condition, ctx.0, q, condition);
    ok!(tiledb_query_submit, ctx.0, q);
    assert_eq!(status(ctx.0, q), COMPLETED);
    free!(tiledb_query_free, q; tiledb_query_condition_free, condition);
    close(ctx.0, array);
    let commits = std::fs::read_dir(folder.path().join("array/__commits")).unwrap();
    let names = commits.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.ends_with(".upd")).count(), 1);
    // As in the reference, nobody writes the new values.
    assert_eq!(read(plain.0, &uri, true).0, [1, 2, 3]);
}

#[test]
fn deletes_evolution_and_upgrades() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx.0, &uri, true, 40, 10, A);
    let array = open(ctx.0, &uri, WRITE);
    let mut q = query(ctx.0, array, WRITE, UNORDERED);
    let cells: Vec<i64> = (1..=9).collect();
    let (mut a_size, mut d_size) = (bytes(&cells), bytes(&cells));
    set_buffer!(data, ctx.0, q, c"a", &cells[..], &mut a_size);
    set_buffer!(data, ctx.0, q, c"d", &cells[..], &mut d_size);
    ok!(tiledb_query_submit, ctx.0, q);
    free!(tiledb_query_free, q);
    close(ctx.0, array);
    let array = open(ctx.0, &uri, DELETE);
    let mut q = null();
    ok!(tiledb_query_alloc, ctx.0, array, DELETE, &mut q);
    fails!(tiledb_query_submit, ctx.0, q);
    let mut condition = null();
    ok!(tiledb_query_condition_alloc, ctx.0, &mut condition);
    ok!(
        tiledb_query_condition_init,
        ctx.0,
        condition,
        c"a",
        &[7i64],
        8u64,
        3
    );
    free!(tiledb_query_free, q);
    ok!(tiledb_query_alloc, ctx.0, array, DELETE, &mut q);
    ok!(tiledb_query_set_condition, ctx.0, q, condition);
    ok!(tiledb_query_submit, ctx.0, q);
    free!(tiledb_query_free, q; tiledb_query_condition_free, condition);
    close(ctx.0, array);
    assert_eq!(read(ctx.0, &uri, true).0, [1, 2, 3, 4, 5, 6]);

    // A schema with a time before the latest one's is stored, and never the latest.
    let (mut evolution, mut attribute) = (null(), null());
    for (name, time) in [(c"early", Some(1_600_000_000_000u64)), (c"late", None)] {
        ok!(tiledb_array_schema_evolution_alloc, ctx.0, &mut evolution);
        ok!(tiledb_attribute_alloc, ctx.0, name, INT32, &mut attribute);
        ok!(
            tiledb_array_schema_evolution_add_attribute,
            ctx.0,
            evolution,
            attribute
        );
        if let Some(time) = time {
            fails!(
                tiledb_array_schema_evolution_set_timestamp_range,
                ctx.0,
                evolution,
                time,
                time + 1
            );
            ok!(
                tiledb_array_schema_evolution_set_timestamp_range,
                ctx.0,
                evolution,
                time,
                time
            );
        }
        ok!(tiledb_array_evolve, ctx.0, &uri, evolution);
        free!(tiledb_attribute_free, attribute; tiledb_array_schema_evolution_free, evolution);
    }
    let mut schema = null();
    ok!(tiledb_array_schema_load, ctx.0, &uri, &mut schema);
    for (name, there) in [(c"a", 1), (c"early", 0), (c"late", 1)] {
        let mut has = -1i32;
        ok!(
            tiledb_array_schema_has_attribute,
            ctx.0,
            schema,
            name,
            &mut has
        );
        assert_eq!(has, there, "{name:?}");
    }
    free!(tiledb_array_schema_free, schema);
    let schemas = std::fs::read_dir(folder.path().join("array/__schema")).unwrap();
    assert!(schemas.flatten().any(|file| {
        file.file_name()
            .to_str()
            .unwrap()
            .starts_with("__1600000000000_")
    }));
    ok!(tiledb_array_upgrade_version, ctx.0, &uri, null());
}

#[test]
fn labels_select_and_are_read() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    let mut schema = capi::schema(ctx, false, 5, 5, &[Attr::fixed(c"a", INT64)]);
    ok!(
        tiledb_array_schema_add_dimension_label,
        ctx,
        schema,
        0,
        c"x",
        1,
        capi::FLOAT64
    );
    fails!(
        tiledb_array_schema_add_dimension_label,
        ctx,
        schema,
        1,
        c"y",
        1,
        capi::FLOAT64
    );
    let place = || {
        let (mut label, mut place) = (null(), std::ptr::null());
        ok!(
            tiledb_array_schema_get_dimension_label_from_name,
            ctx,
            schema,
            c"x",
            &mut label
        );
        ok!(tiledb_dimension_label_get_uri, ctx, label, &mut place);
        let place = capi::text(place);
        free!(tiledb_dimension_label_free, label);
        place
    };
    assert_eq!(place(), "__labels/l0");
    ok!(tiledb_array_create, ctx, &uri, schema);
    // The schema knows its array from now on.
    assert_eq!(
        place(),
        format!("file://{}/__labels/l0", uri.to_str().unwrap())
    );
    let array = open(ctx, &uri, WRITE);
    let mut q = query(ctx, array, WRITE, ROW);
    let (a, x) = ([10i64, 20, 30, 40, 50], [0.5f64, 1.0, 1.5, 2.0, 2.5]);
    let (mut a_size, mut x_size) = (bytes(&a), bytes(&x));
    set_buffer!(data, ctx, q, c"a", &a, &mut a_size);
    set_buffer!(data, ctx, q, c"x", &x, &mut x_size);
    ok!(tiledb_query_submit, ctx, q);
    free!(tiledb_query_free, q);
    close(ctx, array);
    let array = open(ctx, &uri, READ);
    let mut sub = null();
    ok!(tiledb_subarray_alloc, ctx, array, &mut sub);
    ok!(
        tiledb_subarray_add_label_range,
        ctx,
        sub,
        c"x",
        &[1.0f64],
        &[2.0f64],
        null()
    );
    let mut has = 0i32;
    ok!(tiledb_subarray_has_label_ranges, ctx, sub, 0, &mut has);
    assert_eq!(has, 1);
    fails!(
        tiledb_subarray_add_range,
        ctx,
        sub,
        0,
        &[1i64],
        &[2i64],
        null()
    );
    let mut q = query(ctx, array, READ, ROW);
    ok!(tiledb_query_set_subarray_t, ctx, q, sub);
    let (mut a, mut x) = ([0i64; 5], [0f64; 5]);
    let (mut a_size, mut x_size) = (bytes(&a), bytes(&x));
    set_buffer!(data, ctx, q, c"a", &mut a[..], &mut a_size);
    set_buffer!(data, ctx, q, c"x", &mut x[..], &mut x_size);
    ok!(tiledb_query_submit, ctx, q);
    assert_eq!((status(ctx, q), a_size, x_size), (COMPLETED, 24, 24));
    assert_eq!(
        (&a[..3], &x[..3]),
        (&[20, 30, 40][..], &[1.0, 1.5, 2.0][..])
    );
    free!(tiledb_query_free, q; tiledb_subarray_free, sub; tiledb_array_schema_free, schema);
    close(ctx, array);
}

#[test]
fn labels_of_sparse_cells_go_to_their_coordinates() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    let mut schema = capi::schema(ctx, true, 6, 6, A);
    ok!(
        tiledb_array_schema_add_dimension_label,
        ctx,
        schema,
        0,
        c"x",
        1,
        capi::FLOAT64
    );
    ok!(tiledb_array_create, ctx, &uri, schema);
    free!(tiledb_array_schema_free, schema);
    let array = open(ctx, &uri, WRITE);
    let write = |d: &[i64], a: Option<&[i64]>, x: &[f64]| {
        let mut q = query(ctx, array, WRITE, UNORDERED);
        let (mut d_size, mut x_size) = (bytes(d), bytes(x));
        let mut a_size = a.map_or(0, bytes);
        set_buffer!(data, ctx, q, c"d", d, &mut d_size);
        set_buffer!(data, ctx, q, c"x", x, &mut x_size);
        if let Some(a) = a {
            set_buffer!(data, ctx, q, c"a", a, &mut a_size);
        }
        let status = raw!(tiledb_query_submit, ctx, q);
        free!(tiledb_query_free, q);
        status
    };
    assert_eq!(write(&[1, 2, 3], Some(&[10, 20, 30]), &[0.1, 0.2, 0.3]), 0);
    // Labels alone, of the coordinates beside them.
    assert_eq!(write(&[4, 5, 6], None, &[0.4, 0.5, 0.6]), 0);
    for wrong in [[6, 5, 4], [1, 3, 5], [5, 6, 7], [0, 1, 2]] {
        assert_eq!(write(&wrong, Some(&[1, 2, 3]), &[7.0, 8.0, 9.0]), -1);
    }
    close(ctx, array);

    let array = open(ctx, &uri, READ);
    let mut sub = null();
    ok!(tiledb_subarray_alloc, ctx, array, &mut sub);
    ok!(
        tiledb_subarray_add_label_range,
        ctx,
        sub,
        c"x",
        &[0.15f64],
        &[0.45f64],
        null()
    );
    let mut q = query(ctx, array, READ, ROW);
    ok!(tiledb_query_set_subarray_t, ctx, q, sub);
    let (mut d, mut a) = ([0i64; 6], [0i64; 6]);
    let (mut d_size, mut a_size) = (bytes(&d), bytes(&a));
    set_buffer!(data, ctx, q, c"d", &mut d[..], &mut d_size);
    set_buffer!(data, ctx, q, c"a", &mut a[..], &mut a_size);
    ok!(tiledb_query_submit, ctx, q);
    assert_eq!((d_size, a_size), (16, 16));
    assert_eq!((&d[..2], &a[..2]), (&[2, 3][..], &[20, 30][..]));
    free!(tiledb_query_free, q; tiledb_subarray_free, sub);
    close(ctx, array);
}

#[test]
fn bytes_may_become_geometries() {
    const BLOB: i32 = 40;
    const GEOM_WKB: i32 = 42;
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    for sparse in [false, true] {
        let uri = uri(&folder, &format!("array_{sparse}"));
        create(ctx, &uri, sparse, 4, 4, &[Attr::fixed(c"a", BLOB)]);
        let array = open(ctx, &uri, WRITE);
        let layout = if sparse { UNORDERED } else { ROW };
        let mut q = query(ctx, array, WRITE, layout);
        let (a, d) = ([7u8, 8, 9, 10], [1i64, 2, 3, 4]);
        let (mut a_size, mut d_size) = (bytes(&a), bytes(&d));
        set_buffer!(data, ctx, q, c"a", &a, &mut a_size);
        if sparse {
            set_buffer!(data, ctx, q, c"d", &d, &mut d_size);
        }
        ok!(tiledb_query_submit, ctx, q);
        free!(tiledb_query_free, q);
        close(ctx, array);
        for (add, datatype, drop) in [(c"b", BLOB, c"a"), (c"a", GEOM_WKB, c"b")] {
            let (mut evolution, mut attribute) = (null(), null());
            ok!(tiledb_array_schema_evolution_alloc, ctx, &mut evolution);
            ok!(tiledb_attribute_alloc, ctx, add, datatype, &mut attribute);
            ok!(
                tiledb_array_schema_evolution_add_attribute,
                ctx,
                evolution,
                attribute
            );
            ok!(
                tiledb_array_schema_evolution_drop_attribute,
                ctx,
                evolution,
                drop
            );
            ok!(tiledb_array_evolve, ctx, &uri, evolution);
            free!(tiledb_attribute_free, attribute; tiledb_array_schema_evolution_free, evolution);
        }
        let array = open(ctx, &uri, READ);
        let mut q = query(ctx, array, READ, ROW);
        let (mut a, mut size) = ([0u8; 4], 4u64);
        set_buffer!(data, ctx, q, c"a", &mut a[..], &mut size);
        ok!(tiledb_query_submit, ctx, q);
        assert_eq!((size, a), (4, [7, 8, 9, 10]), "sparse: {sparse}");
        free!(tiledb_query_free, q);
        close(ctx, array);
    }
}

#[test]
fn metadata_is_stored_when_the_array_is_closed() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx.0, &uri, false, 4, 2, A);
    let array = open(ctx.0, &uri, WRITE);
    ok!(
        tiledb_array_put_metadata,
        ctx.0,
        array,
        c"key",
        INT32,
        3,
        &[1i32, 2, 3]
    );
    ok!(
        tiledb_array_put_metadata,
        ctx.0,
        array,
        c"gone",
        INT32,
        1,
        &[1i32]
    );
    ok!(tiledb_array_delete_metadata, ctx.0, array, c"gone");
    fails!(
        tiledb_array_put_metadata,
        ctx.0,
        array,
        c"bad",
        99,
        1,
        &[1i32]
    );
    close(ctx.0, array);
    let array = open(ctx.0, &uri, READ);
    let (mut kind, mut count, mut value): (i32, u32, *const i32) = (0, 0, std::ptr::null());
    ok!(
        tiledb_array_get_metadata,
        ctx.0,
        array,
        c"key",
        &mut kind,
        &mut count,
        &mut value
    );
    // SAFETY: three values, which live as long as the array.
    assert_eq!(
        (kind, unsafe {
            std::slice::from_raw_parts(value, count as usize)
        }),
        (INT32, &[1, 2, 3][..])
    );
    ok!(
        tiledb_array_get_metadata,
        ctx.0,
        array,
        c"gone",
        &mut kind,
        &mut count,
        &mut value
    );
    assert!(value.is_null());
    let mut num = 0u64;
    ok!(tiledb_array_get_metadata_num, ctx.0, array, &mut num);
    assert_eq!(num, 1);
    fails!(
        tiledb_array_put_metadata,
        ctx.0,
        array,
        c"key",
        INT32,
        1,
        &[1i32]
    );
    close(ctx.0, array);
}

#[test]
fn statistics_count_while_they_are_on() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx.0, &uri, true, 40, 10, A);
    let dump = || {
        let mut text: *mut c_char = std::ptr::null_mut();
        ok!(tiledb_ctx_get_stats, ctx.0, &mut text);
        let json = capi::text(text);
        raw!(tiledb_stats_free_str, &mut text);
        assert!(text.is_null());
        json
    };
    assert_eq!(dump(), "");
    raw!(tiledb_stats_enable);
    let array = open(ctx.0, &uri, READ);
    let mut q = query(ctx.0, array, READ, ROW);
    let (mut a, mut size) = ([0i64; 4], 32u64);
    set_buffer!(data, ctx.0, q, c"a", &mut a[..], &mut size);
    ok!(tiledb_query_submit, ctx.0, q);
    let json = dump();
    for part in [
        "\"timers\": {",
        "\"counters\": {",
        "\"Context.array_open_READ.sum\": ",
        "\"Context.Query.Reader.dowork.avg\": ",
        "\"Context.Query.Reader.loop_num\": 1",
        "\"Context.VFS.read_byte_num\": ",
    ] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
    let mut text: *mut c_char = std::ptr::null_mut();
    ok!(tiledb_query_get_stats, ctx.0, q, &mut text);
    assert!(!capi::text(text).contains("array_open") && capi::text(text).contains("attr_num"));
    raw!(tiledb_stats_free_str, &mut text);
    raw!(tiledb_stats_dump_str, &mut text);
    assert!(
        capi::text(text).starts_with("[\n") && capi::text(text).contains("Context.Query.Reader")
    );
    raw!(tiledb_stats_free_str, &mut text);
    raw!(tiledb_stats_reset);
    raw!(tiledb_stats_disable);
    assert_eq!(dump(), "");
    free!(tiledb_query_free, q);
    close(ctx.0, array);
}

#[test]
fn files_are_written_and_read() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let (mut vfs, mut file) = (null(), null());
    ok!(tiledb_vfs_alloc, ctx, null(), &mut vfs);
    for base in [folder.path().to_str().unwrap(), "mem://files"] {
        let uri = CString::new(format!("{base}/file")).unwrap();
        ok!(tiledb_vfs_open, ctx, vfs, &uri, 1, &mut file);
        ok!(tiledb_vfs_write, ctx, file, c"hello", 5u64);
        if !base.starts_with("mem:") {
            let mut early = [0u8; 4];
            ok!(tiledb_vfs_read, ctx, file, 1u64, &mut early[..], 4u64);
            assert_eq!(&early, b"ello");
        }
        ok!(tiledb_vfs_close, ctx, file);
        fails!(tiledb_vfs_read, ctx, file, 0u64, &mut [0u8; 1][..], 1u64);
        free!(tiledb_vfs_fh_free, file);
        let mut size = 0u64;
        ok!(tiledb_vfs_file_size, ctx, vfs, &uri, &mut size);
        assert_eq!(size, 5);
        ok!(tiledb_vfs_open, ctx, vfs, &uri, 0, &mut file);
        let mut room = [0u8; 3];
        ok!(tiledb_vfs_read, ctx, file, 2u64, &mut room[..], 3u64);
        assert_eq!(&room, b"llo");
        fails!(tiledb_vfs_read, ctx, file, 3u64, &mut room[..], 3u64);
        fails!(tiledb_vfs_write, ctx, file, c"x", 1u64);
        free!(tiledb_vfs_fh_free, file);
        ok!(tiledb_vfs_remove_file, ctx, vfs, &uri);
        fails!(tiledb_vfs_open, ctx, vfs, &uri, 0, &mut file);
        assert!(file.is_null());
    }
    free!(tiledb_vfs_free, vfs);
}

#[test]
fn files_are_copied_moved_and_added_to() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let uri = |name: &str| CString::new(path(name).to_str().unwrap()).unwrap();
    let (mut vfs, mut file) = (null(), null());
    ok!(tiledb_vfs_alloc, ctx, null(), &mut vfs);
    let large: Vec<u8> = (0..9u32 << 20).map(|i| (i % 251) as u8).collect();
    for bytes in [b"small".to_vec(), large] {
        let holds = |name: &str| std::fs::read(path(name)).unwrap() == bytes;
        std::fs::write(path("a"), &bytes).unwrap();
        std::fs::write(path("b"), b"before").unwrap();
        ok!(tiledb_vfs_copy_file, ctx, vfs, &uri("a"), &uri("b"));
        ok!(tiledb_vfs_copy_file, ctx, vfs, &uri("a"), &uri("c"));
        ok!(tiledb_vfs_copy_file, ctx, vfs, &uri("a"), &uri("a"));
        ok!(tiledb_vfs_move_file, ctx, vfs, &uri("a"), &uri("a"));
        assert!(holds("a") && holds("b") && holds("c"));
        fails!(tiledb_vfs_copy_file, ctx, vfs, &uri("missing"), &uri("b"));
        fails!(tiledb_vfs_move_file, ctx, vfs, &uri("missing"), &uri("b"));
        // What TileDB-Py up to 0.34 copies of arrays that have none.
        ok!(
            tiledb_vfs_copy_file,
            ctx,
            vfs,
            &uri("__lock.tdb"),
            &uri("d")
        );
        assert!(!path("d").exists());
        // A file never takes the place of a folder.
        let parent = CString::new(folder.path().to_str().unwrap()).unwrap();
        fails!(tiledb_vfs_copy_file, ctx, vfs, &uri("a"), &parent);
        fails!(tiledb_vfs_move_file, ctx, vfs, &uri("a"), &parent);
        assert!(holds("a") && holds("b"));
        ok!(tiledb_vfs_move_file, ctx, vfs, &uri("a"), &uri("b"));
        assert!(holds("b") && !path("a").exists());
        ok!(tiledb_vfs_open, ctx, vfs, &uri("b"), 2, &mut file);
        ok!(tiledb_vfs_write, ctx, file, c" more", 5u64);
        ok!(tiledb_vfs_close, ctx, file);
        free!(tiledb_vfs_fh_free, file);
        assert_eq!(
            std::fs::read(path("b")).unwrap(),
            [&bytes[..], b" more"].concat()
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
    free!(tiledb_vfs_free, vfs);
}

#[test]
fn what_is_built_in_is_json() {
    let mut built = null();
    assert_eq!(raw!(tiledb_as_built_dump, &mut built), 0);
    let (mut data, mut length): (*const c_char, usize) = (std::ptr::null(), 0);
    assert_eq!(raw!(tiledb_string_view, built, &mut data, &mut length), 0);
    let json: serde_json::Value = serde_json::from_str(&capi::text(data)).unwrap();
    let ctx = Ctx::new();
    for (name, number) in [("s3", 1), ("azure", 2), ("gcs", 3)] {
        let mut supported = -1i32;
        ok!(tiledb_ctx_is_supported_fs, ctx.0, number, &mut supported);
        let enabled = &json["as_built"]["parameters"]["storage_backends"][name]["enabled"];
        assert_eq!(enabled, &serde_json::Value::Bool(supported == 1));
    }
    let serialization = &json["as_built"]["parameters"]["support"]["serialization"];
    assert_eq!(serialization["enabled"], true);
    raw!(tiledb_string_free, &mut built);
}

#[test]
fn a_buffer_set_once_may_grow_between_submissions() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx.0, &uri, false, 40, 10, A);
    let array = open(ctx.0, &uri, WRITE);
    let mut q = query(ctx.0, array, WRITE, GLOBAL);
    let (mut part, mut size) = (vec![0i64; 20], 0u64);
    let place: *mut u64 = &mut size;
    set_buffer!(data, ctx.0, q, c"a", &mut part[..], place);
    for (start, finalize) in [(1, false), (21, true)] {
        part.iter_mut()
            .zip(start..)
            .for_each(|(cell, value)| *cell = value);
        // SAFETY: the size outlives the query.
        unsafe { place.write(bytes(&part)) };
        if finalize {
            ok!(tiledb_query_submit_and_finalize, ctx.0, q);
        } else {
            ok!(tiledb_query_submit, ctx.0, q);
        }
    }
    free!(tiledb_query_free, q);
    // What an array has can only be asked for where it is read.
    let (mut domain, mut is_empty) = ([0i64; 2], 0i32);
    fails!(
        tiledb_array_get_non_empty_domain,
        ctx.0,
        array,
        &mut domain[..],
        &mut is_empty
    );
    close(ctx.0, array);
    assert_eq!(read(ctx.0, &uri, false).0, (1..=40).collect::<Vec<i64>>());
}

#[test]
fn reserved_names_and_fragments_elsewhere_are_refused() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx.0, &uri, false, 40, 10, A);
    let (mut schema, mut attribute) = (null(), null());
    ok!(tiledb_array_schema_alloc, ctx.0, 0, &mut schema);
    ok!(tiledb_attribute_alloc, ctx.0, c"__a", INT32, &mut attribute);
    fails!(tiledb_array_schema_add_attribute, ctx.0, schema, attribute);
    free!(tiledb_attribute_free, attribute);
    free!(tiledb_array_schema_free, schema);
    let elsewhere = [c"/some/array/__fragments/__1_1_a_22".as_ptr()];
    fails!(
        tiledb_array_consolidate_fragments,
        ctx.0,
        &uri,
        &elsewhere[..],
        1u64,
        null()
    );
}

#[test]
fn dimensions_of_stored_schemas_show_the_filters_of_coordinates() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let filters = |schema: Handle| {
        let (mut domain, mut dimension, mut list, mut count) = (null(), null(), null(), 9u32);
        ok!(tiledb_array_schema_get_domain, ctx.0, schema, &mut domain);
        ok!(
            tiledb_domain_get_dimension_from_index,
            ctx.0,
            domain,
            0,
            &mut dimension
        );
        ok!(
            tiledb_dimension_get_filter_list,
            ctx.0,
            dimension,
            &mut list
        );
        ok!(tiledb_filter_list_get_nfilters, ctx.0, list, &mut count);
        free!(tiledb_filter_list_free, list; tiledb_dimension_free, dimension; tiledb_domain_free, domain);
        count
    };
    for sparse in [false, true] {
        let uri = uri(&folder, if sparse { "sparse" } else { "dense" });
        create(ctx.0, &uri, sparse, 10, 5, A);
        let (mut loaded, mut opened) = (null(), null());
        ok!(tiledb_array_schema_load, ctx.0, &uri, &mut loaded);
        let array = open(ctx.0, &uri, READ);
        ok!(tiledb_array_get_schema, ctx.0, array, &mut opened);
        assert_eq!([filters(loaded), filters(opened)], [1, 1]);
        free!(tiledb_array_schema_free, loaded; tiledb_array_schema_free, opened);
        close(ctx.0, array);
    }
}

#[test]
fn members_of_groups_give_way_to_those_added_later() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let (group_uri, first, second) = (
        uri(&folder, "group"),
        uri(&folder, "first"),
        uri(&folder, "second"),
    );
    ok!(tiledb_group_create, ctx.0, &group_uri);
    for array in [&first, &second] {
        create(ctx.0, array, true, 10, 5, A);
    }
    let session = |members: &[&CString]| {
        let mut group = null();
        ok!(tiledb_group_alloc, ctx.0, &group_uri, &mut group);
        ok!(tiledb_group_open, ctx.0, group, WRITE);
        for (i, member) in members.iter().enumerate() {
            if i == 0 {
                ok!(
                    tiledb_group_add_member,
                    ctx.0,
                    group,
                    member.as_c_str(),
                    0u8,
                    c"name"
                );
            } else {
                fails!(
                    tiledb_group_add_member,
                    ctx.0,
                    group,
                    member.as_c_str(),
                    0u8,
                    c"name"
                );
            }
        }
        ok!(tiledb_group_close, ctx.0, group);
        ok!(tiledb_group_open, ctx.0, group, READ);
        let (mut count, mut location, mut kind) = (0u64, null(), 0i32);
        ok!(tiledb_group_get_member_count, ctx.0, group, &mut count);
        ok!(
            tiledb_group_get_member_by_name_v2,
            ctx.0,
            group,
            c"name",
            &mut location,
            &mut kind
        );
        let (mut text, mut length) = (std::ptr::null::<c_char>(), 0usize);
        ok!(tiledb_string_view, location, &mut text, &mut length);
        let location_text = capi::text(text);
        ok!(tiledb_group_close, ctx.0, group);
        free!(tiledb_string_free, location; tiledb_group_free, group);
        (count, location_text)
    };
    for members in [[&first, &second], [&second, &first], [&second, &second]] {
        let (count, location) = session(&members);
        assert_eq!(count, 1);
        assert!(
            location.ends_with(members[0].to_str().unwrap()),
            "{location}"
        );
    }
}

#[test]
fn coordinates_beyond_the_domain_are_named() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx.0, &uri, true, 40, 10, A);
    for layout in [GLOBAL, UNORDERED] {
        let array = open(ctx.0, &uri, WRITE);
        let mut q = query(ctx.0, array, WRITE, layout);
        let (mut a, mut d) = (vec![0i64; 3], vec![7i64, 41, 50]);
        let (mut a_size, mut d_size) = (bytes(&a), bytes(&d));
        let set = |name: &CStr, values: &mut [i64], size: &mut u64| {
            set_buffer!(data, ctx.0, q, name, values, size);
        };
        set(c"a", &mut a, &mut a_size);
        set(c"d", &mut d, &mut d_size);
        let message = fails!(tiledb_query_submit, ctx.0, q);
        assert_eq!(
            message,
            "[TileDB::Dimension] Error: Dimension: Coordinate 41 is out of domain bounds [1, 40] \
             on dimension 'd'"
        );
        free!(tiledb_query_free, q);
        close(ctx.0, array);
    }
}

#[test]
fn a_subarray_that_comes_after_the_first_cells_is_refused_and_loses_none() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx, &uri, false, 20, 10, A);
    let array = open(ctx, &uri, WRITE);
    let mut q = query(ctx, array, WRITE, GLOBAL);
    let mut sub = null();
    ok!(tiledb_subarray_alloc, ctx, array, &mut sub);
    ok!(tiledb_query_set_subarray_t, ctx, q, sub);
    let all: Vec<i64> = (1..=20).collect();
    let mut size = bytes(&all);
    set_buffer!(data, ctx, q, c"a", &all[..], &mut size);
    ok!(tiledb_query_submit, ctx, q);
    let message = fails!(tiledb_query_set_subarray_t, ctx, q, sub);
    assert!(message.contains("already initialized"), "{message}");
    assert_eq!(status(ctx, q), COMPLETED);
    ok!(tiledb_query_finalize, ctx, q);
    free!(tiledb_query_free, q; tiledb_subarray_free, sub);
    close(ctx, array);
    assert_eq!(read(ctx, &uri, false).0, all);
}

#[test]
fn a_refused_write_may_be_given_another_subarray() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx, &uri, false, 10, 10, A);
    let array = open(ctx, &uri, WRITE);
    let mut q = query(ctx, array, WRITE, ROW);
    let (cells, mut size) = ([1i64, 2, 3], 24u64);
    set_buffer!(data, ctx, q, c"a", &cells[..], &mut size);
    for last in [9i64, 3] {
        let mut sub = null();
        ok!(tiledb_subarray_alloc, ctx, array, &mut sub);
        ok!(
            tiledb_subarray_add_range,
            ctx,
            sub,
            0,
            &[1i64],
            &[last],
            null()
        );
        ok!(tiledb_query_set_subarray_t, ctx, q, sub);
        free!(tiledb_subarray_free, sub);
        assert_eq!(raw!(tiledb_query_submit, ctx, q) == 0, last == 3);
    }
    free!(tiledb_query_free, q);
    close(ctx, array);
    assert_eq!(read(ctx, &uri, false).0[..3], cells);
}

#[test]
fn a_failed_write_without_an_order_cannot_be_finalized() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx, &uri, true, 20, 10, A);
    let array = open(ctx, &uri, WRITE);
    let mut q = query(ctx, array, WRITE, UNORDERED);
    // Equal coordinates.
    let (mut cells, mut size) = ([7i64, 7], 16u64);
    let place: *mut u64 = &mut size;
    for name in [c"d", c"a"] {
        set_buffer!(data, ctx, q, name, &mut cells[..], place);
    }
    fails!(tiledb_query_submit, ctx, q);
    let message = fails!(tiledb_query_finalize, ctx, q);
    assert!(message.contains("nothing was written"), "{message}");
    let mut fragments = 9u64;
    ok!(
        tiledb_query_get_relevant_fragment_num,
        ctx,
        q,
        &mut fragments
    );
    assert_eq!(fragments, 0);
    free!(tiledb_query_free, q);
    close(ctx, array);
    assert!(read(ctx, &uri, true).0.is_empty());
}

#[test]
fn a_label_without_ranges_has_none_and_a_schema_has_a_time() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    let mut schema = capi::schema(ctx, false, 20, 10, A);
    ok!(
        tiledb_array_schema_add_dimension_label,
        ctx,
        schema,
        0u32,
        c"l",
        1,
        capi::FLOAT64
    );
    ok!(tiledb_array_create, ctx, &uri, schema);
    free!(tiledb_array_schema_free, schema);
    let array = open(ctx, &uri, READ);
    let (mut sub, mut count) = (null(), 9u64);
    ok!(tiledb_subarray_alloc, ctx, array, &mut sub);
    ok!(
        tiledb_subarray_get_label_range_num,
        ctx,
        sub,
        c"l",
        &mut count
    );
    assert_eq!(count, 0);
    fails!(
        tiledb_subarray_get_label_range_num,
        ctx,
        sub,
        c"m",
        &mut count
    );
    free!(tiledb_subarray_free, sub);
    close(ctx, array);
    fails!(
        tiledb_array_schema_alloc_at_timestamp,
        ctx,
        0,
        0u64,
        &mut schema
    );
}

#[test]
fn groups_that_lie_beside_each_other_in_a_circle_are_dumped_once() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (uri(&folder, "g"), uri(&folder, "x"));
    ok!(tiledb_group_create, ctx, &first);
    ok!(tiledb_group_create, ctx, &second);
    let mut group = null();
    for (at, other) in [(&second, c"../g"), (&first, c"../x")] {
        ok!(tiledb_group_alloc, ctx, at.as_c_str(), &mut group);
        ok!(tiledb_group_open, ctx, group, WRITE);
        ok!(tiledb_group_add_member, ctx, group, other, 1u8, c"m");
        ok!(tiledb_group_close, ctx, group);
        free!(tiledb_group_free, group);
    }
    ok!(tiledb_group_alloc, ctx, &first, &mut group);
    ok!(tiledb_group_open, ctx, group, READ);
    let mut dump = null();
    ok!(tiledb_group_dump_str_v2, ctx, group, &mut dump, 1u8);
    let (mut text, mut length) = (std::ptr::null::<c_char>(), 0usize);
    ok!(tiledb_string_view, dump, &mut text, &mut length);
    assert_eq!(capi::text(text), "g GROUP\n|-- m GROUP\n|------ m GROUP\n");
    ok!(tiledb_group_close, ctx, group);
    free!(tiledb_string_free, dump; tiledb_group_free, group);
}

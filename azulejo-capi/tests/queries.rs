//! What queries do at their second submission, after a refused one, and with arrays of old
//! versions.
#![allow(unsafe_code, clippy::unwrap_used, reason = "tests of a C API")]

mod capi;

use azulejo::format::{ArraySchema, Datatype, FormatVersion};
use capi::{
    ASCII, Attr, COMPLETED, Ctx, DELETE, FLOAT64, GLOBAL, Handle, INCOMPLETE, INT64, READ, ROW,
    UNORDERED, WRITE, bytes, close, create, fails, free, null, ok, open, query, raw, set_buffer,
    status,
};
use std::ffi::{CStr, CString, c_char};

const A: &[Attr] = &[Attr::fixed(c"a", INT64)];

fn uri(folder: &tempfile::TempDir, name: &str) -> CString {
    CString::new(folder.path().join(name).to_str().unwrap()).unwrap()
}

/// Sets the buffer of a field's values.
fn set<T>(ctx: Handle, q: Handle, name: &CStr, values: &mut [T], size: &mut u64) {
    set_buffer!(data, ctx, q, name, values, size);
}

/// Submits cells of a sparse array whose `a` is their `d`.
fn submit_cells(ctx: Handle, q: Handle, cells: &[i64]) -> i32 {
    let (mut d, mut a) = (cells.to_vec(), cells.to_vec());
    let (mut d_size, mut a_size) = (bytes(&d), bytes(&a));
    set(ctx, q, c"d", &mut d, &mut d_size);
    set(ctx, q, c"a", &mut a, &mut a_size);
    raw!(tiledb_query_submit, ctx, q)
}

fn write(ctx: Handle, uri: &CStr, cells: &[i64]) {
    let array = open(ctx, uri, WRITE);
    let mut q = query(ctx, array, WRITE, UNORDERED);
    assert_eq!(submit_cells(ctx, q, cells), 0);
    free!(tiledb_query_free, q);
    close(ctx, array);
}

/// The cells of `a`.
fn read(ctx: Handle, uri: &CStr) -> Vec<i64> {
    let array = open(ctx, uri, READ);
    let mut q = query(ctx, array, READ, ROW);
    let mut a = vec![0i64; 1000];
    let mut size = bytes(&a);
    set(ctx, q, c"a", &mut a, &mut size);
    ok!(tiledb_query_submit, ctx, q);
    assert_eq!(status(ctx, q), COMPLETED);
    free!(tiledb_query_free, q);
    close(ctx, array);
    a.truncate(size as usize / 8);
    a
}

fn range(ctx: Handle, array: Handle, q: Handle, from: i64, to: i64) {
    let mut sub = null();
    ok!(tiledb_subarray_alloc, ctx, array, &mut sub);
    ok!(
        tiledb_subarray_add_range,
        ctx,
        sub,
        0,
        &[from],
        &[to],
        null()
    );
    ok!(tiledb_query_set_subarray_t, ctx, q, sub);
    free!(tiledb_subarray_free, sub);
}

#[test]
fn a_completed_read_stays_as_it_is() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx, &uri, true, 100, 10, A);
    write(ctx, &uri, &[1, 2, 3]);
    let array = open(ctx, &uri, READ);
    let mut q = query(ctx, array, READ, ROW);
    let (mut a, mut size) = ([0i64; 10], 80u64);
    let place: *mut u64 = &mut size;
    set_buffer!(data, ctx, q, c"a", &mut a[..], place);
    // SAFETY: the size outlives the query.
    let now = || unsafe { place.read() };
    ok!(tiledb_query_submit, ctx, q);
    assert_eq!(
        (status(ctx, q), now(), &a[..3]),
        (COMPLETED, 24, &[1, 2, 3][..])
    );
    a.fill(7);
    // SAFETY: as above.
    unsafe { place.write(80) };
    ok!(tiledb_query_submit, ctx, q);
    assert_eq!((status(ctx, q), now(), a), (COMPLETED, 80, [7; 10]));
    free!(tiledb_query_free, q);
    close(ctx, array);
}

#[test]
fn aggregates_come_with_the_last_cells_and_are_kept_for_larger_buffers() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(
        ctx,
        &uri,
        true,
        100,
        10,
        &[Attr::fixed(c"a", INT64), Attr::var(c"s", ASCII)],
    );
    let array = open(ctx, &uri, WRITE);
    let mut q = query(ctx, array, WRITE, UNORDERED);
    let (mut s, mut starts) = (*b"longestmiddleshort", [0u64, 7, 13]);
    let (mut s_size, mut starts_size) = (18, 24);
    set(ctx, q, c"s", &mut s, &mut s_size);
    set_buffer!(offsets, ctx, q, c"s", &mut starts[..], &mut starts_size);
    assert_eq!(submit_cells(ctx, q, &[1, 2, 3]), 0);
    free!(tiledb_query_free, q);
    close(ctx, array);

    let array = open(ctx, &uri, READ);
    let with_aggregates = || {
        let q = query(ctx, array, READ, ROW);
        let (mut channel, mut count, mut operator, mut min) = (null(), null(), null(), null());
        ok!(tiledb_query_get_default_channel, ctx, q, &mut channel);
        ok!(tiledb_aggregate_count_get, ctx, &mut count);
        ok!(
            tiledb_channel_apply_aggregate,
            ctx,
            channel,
            c"Count",
            count
        );
        ok!(tiledb_channel_operator_min_get, ctx, &mut operator);
        ok!(
            tiledb_create_unary_aggregate,
            ctx,
            q,
            operator,
            c"s",
            &mut min
        );
        ok!(tiledb_channel_apply_aggregate, ctx, channel, c"Min", min);
        raw!(tiledb_aggregate_free, ctx, &mut min);
        raw!(tiledb_query_channel_free, ctx, &mut channel);
        q
    };
    let has_results = |q: Handle| {
        let mut has = 9i32;
        ok!(tiledb_query_has_results, ctx, q, &mut has);
        has
    };
    let mut q = with_aggregates();
    let (mut a, mut count, mut min, mut min_start) = ([0i64; 2], [77u64], [0u8; 9], [0u64]);
    let mut sizes = [bytes(&a), 8, 3, 8];
    let at = sizes.as_mut_ptr();
    let place = |i: usize| at.wrapping_add(i);
    // SAFETY: the sizes outlive the query.
    let now = |i: usize| unsafe { place(i).read() };
    for (name, buffer, i) in [
        (c"a", a.as_mut_ptr().cast::<u8>(), 0),
        (c"Count", count.as_mut_ptr().cast(), 1),
        (c"Min", min.as_mut_ptr(), 2),
    ] {
        set_buffer!(data, ctx, q, name, buffer, place(i));
    }
    set_buffer!(offsets, ctx, q, c"Min", &mut min_start[..], place(3));
    ok!(tiledb_query_submit, ctx, q);
    assert_eq!(
        (status(ctx, q), now(0), now(1), now(2)),
        (INCOMPLETE, 16, 8, 3)
    );
    assert_eq!(
        (a, count[0]),
        ([1, 2], 77),
        "the aggregates are not asked for yet"
    );
    // The last cell, and no room for the text.
    ok!(tiledb_query_submit, ctx, q);
    assert_eq!(
        (status(ctx, q), now(0), now(1), now(2)),
        (INCOMPLETE, 8, 8, 0)
    );
    assert_eq!((a[0], count[0]), (3, 3));
    // SAFETY: as above.
    unsafe { place(2).write(9) };
    set_buffer!(data, ctx, q, c"Min", min.as_mut_ptr(), place(2));
    ok!(tiledb_query_submit, ctx, q);
    assert_eq!((status(ctx, q), now(0), now(2)), (COMPLETED, 0, 7));
    assert_eq!((&min[..7], count[0]), (&b"longest"[..], 3));
    // Results are fields' cells.
    assert_eq!(has_results(q), 0);
    free!(tiledb_query_free, q);
    close(ctx, array);
}

#[test]
fn a_refused_part_of_a_write_in_global_order_is_its_end() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    for (name, refused) in [("order", [9i64, 8]), ("domain", [50, 101])] {
        let uri = uri(&folder, name);
        create(ctx, &uri, true, 100, 10, A);
        let array = open(ctx, &uri, WRITE);
        let mut q = query(ctx, array, WRITE, GLOBAL);
        assert_eq!(submit_cells(ctx, q, &[1, 2, 3]), 0);
        assert_eq!(submit_cells(ctx, q, &refused), -1);
        ok!(tiledb_query_finalize, ctx, q);
        let mut fragments = 9u32;
        ok!(tiledb_query_get_fragment_num, ctx, q, &mut fragments);
        assert_eq!(fragments, 0, "{name}");
        free!(tiledb_query_free, q);
        close(ctx, array);
        assert!(read(ctx, &uri).is_empty(), "{name}");
    }
}

#[test]
fn fragments_of_old_arrays_lie_where_their_uris_say() {
    let folder = tempfile::tempdir().unwrap();
    let context = azulejo::Context::new(azulejo::Config::new(), None).unwrap();
    for (version, flat) in [(7, true), (11, true), (12, false), (16, false)] {
        let schema = ArraySchema::sparse()
            .dimension("d", 1i64..=100, 10)
            .attribute("a", Datatype::Int64)
            .version(FormatVersion::new(version, "test").unwrap());
        let uri = uri(&folder, &version.to_string());
        let array = context.array(uri.to_str().unwrap());
        array.create(schema.build().unwrap()).unwrap();
        let ctx = Ctx::new();
        let array = open(ctx.0, &uri, WRITE);
        let mut q = query(ctx.0, array, WRITE, UNORDERED);
        assert_eq!(submit_cells(ctx.0, q, &[1, 2, 3]), 0);
        let mut fragment: *const c_char = std::ptr::null();
        ok!(tiledb_query_get_fragment_uri, ctx.0, q, 0u64, &mut fragment);
        let fragment = capi::text(fragment);
        let path = fragment.strip_prefix("file://").unwrap();
        assert!(std::path::Path::new(path).is_dir(), "{fragment}");
        assert_eq!(fragment.contains("__fragments"), !flat, "{fragment}");
        let (mut start, mut end) = (0u64, 0u64);
        ok!(
            tiledb_query_get_fragment_timestamp_range,
            ctx.0,
            q,
            0u64,
            &mut start,
            &mut end
        );
        assert!(start > 0 && start == end && path.contains(&start.to_string()));
        free!(tiledb_query_free, q);
        close(ctx.0, array);
        // So does a message about them, also of an array that was upgraded since. Schemas of before
        // version 10 have no names, which messages ask for.
        if version < 10 {
            continue;
        }
        context.array(uri.to_str().unwrap()).upgrade(None).unwrap();
        let (mut info, mut sent, mut told) = (null(), null(), null());
        for each in [&mut info, &mut told] {
            ok!(tiledb_fragment_info_alloc, ctx.0, &uri, each);
        }
        ok!(tiledb_fragment_info_load, ctx.0, info);
        ok!(
            tiledb_serialize_fragment_info,
            ctx.0,
            info,
            1i32,
            0i32,
            &mut sent
        );
        ok!(
            tiledb_deserialize_fragment_info,
            ctx.0,
            sent,
            1i32,
            &uri,
            1i32,
            told
        );
        for info in [info, told] {
            let mut named: *const c_char = std::ptr::null();
            ok!(
                tiledb_fragment_info_get_fragment_uri,
                ctx.0,
                info,
                0u32,
                &mut named
            );
            assert_eq!(capi::text(named), fragment, "{version}");
        }
        free!(tiledb_fragment_info_free, info; tiledb_fragment_info_free, told; tiledb_buffer_free, sent);
    }
}

#[test]
fn deletes_that_nobody_could_read_again_are_refused() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx, &uri, true, 100, 10, A);
    write(ctx, &uri, &[1, 2, 3]);
    for (depth, stored) in [(256, true), (257, false)] {
        let array = open(ctx, &uri, DELETE);
        let mut q = null();
        ok!(tiledb_query_alloc, ctx, array, DELETE, &mut q);
        let leaf = |value: i64, op: i32| {
            let mut leaf = null();
            ok!(tiledb_query_condition_alloc, ctx, &mut leaf);
            ok!(
                tiledb_query_condition_init,
                ctx,
                leaf,
                c"a",
                &[value],
                8u64,
                op
            );
            leaf
        };
        // Cells that are 2, by turns and what is always so, or what never is.
        let mut condition = leaf(2, 4);
        for level in 0..depth {
            let (mut other, mut both) = (leaf(1000, if level % 2 == 0 { 0 } else { 4 }), null());
            ok!(
                tiledb_query_condition_combine,
                ctx,
                condition,
                other,
                level % 2,
                &mut both
            );
            free!(tiledb_query_condition_free, condition; tiledb_query_condition_free, other);
            condition = both;
        }
        ok!(tiledb_query_set_condition, ctx, q, condition);
        if stored {
            ok!(tiledb_query_submit, ctx, q);
        } else {
            let message = fails!(tiledb_query_submit, ctx, q);
            assert!(message.contains("nested deeper"), "{message}");
        }
        free!(tiledb_query_condition_free, condition; tiledb_query_free, q);
        close(ctx, array);
        assert_eq!(read(ctx, &uri), [1, 3]);
    }
}

#[test]
fn relevant_fragments_are_those_that_the_selection_meets() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx, &uri, true, 100, 10, A);
    for cells in [[1, 10], [41, 50], [45, 60]] {
        write(ctx, &uri, &cells);
    }
    let array = open(ctx, &uri, READ);
    for (from, to, expected) in [
        (1, 100, 3),
        (1, 5, 1),
        (41, 44, 1),
        (46, 47, 2),
        (70, 80, 0),
    ] {
        let mut q = query(ctx, array, READ, ROW);
        range(ctx, array, q, from, to);
        let mut count = 9u64;
        ok!(tiledb_query_get_relevant_fragment_num, ctx, q, &mut count);
        assert_eq!(count, expected, "{from}..={to}");
        free!(tiledb_query_free, q);
    }
    let mut q = query(ctx, array, READ, ROW);
    let mut count = 9u64;
    ok!(tiledb_query_get_relevant_fragment_num, ctx, q, &mut count);
    assert_eq!(count, 3);
    free!(tiledb_query_free, q);
    close(ctx, array);
}

#[test]
fn labels_come_in_parts_where_buffers_are_small() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    let mut schema = capi::schema(ctx, false, 6, 2, &[Attr::fixed(c"a", INT64)]);
    ok!(
        tiledb_array_schema_add_dimension_label,
        ctx,
        schema,
        0,
        c"x",
        1,
        INT64
    );
    ok!(tiledb_array_create, ctx, &uri, schema);
    free!(tiledb_array_schema_free, schema);
    let array = open(ctx, &uri, WRITE);
    let mut q = query(ctx, array, WRITE, ROW);
    let (mut a, mut x) = ([1i64, 2, 3, 4, 5, 6], [10i64, 20, 30, 40, 50, 60]);
    let (mut a_size, mut x_size) = (48, 48);
    set(ctx, q, c"a", &mut a, &mut a_size);
    set(ctx, q, c"x", &mut x, &mut x_size);
    ok!(tiledb_query_submit, ctx, q);
    free!(tiledb_query_free, q);
    close(ctx, array);

    let array = open(ctx, &uri, READ);
    let mut q = query(ctx, array, READ, ROW);
    range(ctx, array, q, 1, 6);
    let (mut a, mut x, mut sizes) = ([0i64; 2], [0i64; 6], [16u64, 40]);
    let at = sizes.as_mut_ptr();
    let (a_place, x_place) = (at, at.wrapping_add(1));
    set_buffer!(data, ctx, q, c"a", &mut a[..], a_place);
    set_buffer!(data, ctx, q, c"x", &mut x[..], x_place);
    // SAFETY: the sizes outlive the query.
    let now = |place: *mut u64| unsafe { place.read() };
    let mut seen = Vec::new();
    let mut submit = |a: &[i64; 2]| {
        ok!(tiledb_query_submit, ctx, q);
        seen.extend_from_slice(&a[..now(a_place) as usize / 8]);
        status(ctx, q)
    };
    // There is no room for six labels.
    assert_eq!((submit(&a), now(x_place)), (INCOMPLETE, 40));
    assert_eq!(x, [10, 20, 30, 40, 50, 0]);
    submit(&a);
    assert_eq!((now(x_place), x), (8, [60, 20, 30, 40, 50, 0]));
    x.fill(7);
    for _ in 0..6 {
        if submit(&a) == COMPLETED {
            break;
        }
    }
    assert_eq!((status(ctx, q), now(x_place), x), (COMPLETED, 8, [7; 6]));
    assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
    free!(tiledb_query_free, q);

    // Labels alone, and none fits at first.
    let mut q = query(ctx, array, READ, ROW);
    range(ctx, array, q, 2, 6);
    let (mut x, mut size, mut all) = ([0i64; 2], 7u64, Vec::new());
    set(ctx, q, c"x", &mut x, &mut size);
    ok!(tiledb_query_submit, ctx, q);
    assert_eq!((status(ctx, q), size), (INCOMPLETE, 0));
    while status(ctx, q) == INCOMPLETE {
        size = 16;
        set(ctx, q, c"x", &mut x, &mut size);
        ok!(tiledb_query_submit, ctx, q);
        assert!(size > 0);
        all.extend_from_slice(&x[..size as usize / 8]);
    }
    assert_eq!(
        (status(ctx, q), &all[..]),
        (COMPLETED, &[20, 30, 40, 50, 60][..])
    );
    free!(tiledb_query_free, q);
    close(ctx, array);
}

#[test]
fn labels_of_text_come_in_parts_too() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    let mut schema = capi::schema(ctx, false, 4, 2, A);
    ok!(
        tiledb_array_schema_add_dimension_label,
        ctx,
        schema,
        0,
        c"x",
        1,
        ASCII
    );
    ok!(tiledb_array_create, ctx, &uri, schema);
    free!(tiledb_array_schema_free, schema);
    let array = open(ctx, &uri, WRITE);
    let mut q = query(ctx, array, WRITE, ROW);
    let (mut a, mut x, mut starts) = ([1i64, 2, 3, 4], *b"abbbccdddd", [0u64, 1, 4, 6]);
    let mut sizes = [bytes(&a), bytes(&x), bytes(&starts)];
    let [a_size, x_size, starts_size] = &mut sizes;
    set(ctx, q, c"a", &mut a, a_size);
    set(ctx, q, c"x", &mut x, x_size);
    set_buffer!(offsets, ctx, q, c"x", &mut starts[..], starts_size);
    ok!(tiledb_query_submit, ctx, q);
    free!(tiledb_query_free, q);
    close(ctx, array);

    let array = open(ctx, &uri, READ);
    let mut q = query(ctx, array, READ, ROW);
    range(ctx, array, q, 1, 4);
    let (mut parts, mut left) = (Vec::new(), 9);
    while left > 0 && status(ctx, q) != COMPLETED {
        let (mut x, mut starts, mut sizes) = ([0u8; 5], [0u64; 3], [5u64, 24]);
        let [x_size, starts_size] = &mut sizes;
        set(ctx, q, c"x", &mut x, x_size);
        set_buffer!(offsets, ctx, q, c"x", &mut starts[..], starts_size);
        ok!(tiledb_query_submit, ctx, q);
        let text = String::from_utf8_lossy(&x[..sizes[0] as usize]).into_owned();
        parts.push((text, starts[..sizes[1] as usize / 8].to_vec()));
        left -= 1;
    }
    let expected = [("abbb", vec![0, 1]), ("cc", vec![0]), ("dddd", vec![0])];
    assert_eq!(
        parts,
        expected.map(|(text, starts)| (text.to_owned(), starts))
    );
    free!(tiledb_query_free, q);
    close(ctx, array);
}

#[test]
fn ranges_of_labels_that_end_before_they_start_are_refused() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    let mut schema = capi::schema(ctx, false, 4, 2, A);
    for (name, datatype) in [(c"x", FLOAT64), (c"text", ASCII)] {
        ok!(
            tiledb_array_schema_add_dimension_label,
            ctx,
            schema,
            0,
            name,
            1,
            datatype
        );
    }
    ok!(tiledb_array_create, ctx, &uri, schema);
    free!(tiledb_array_schema_free, schema);
    let array = open(ctx, &uri, READ);
    let mut sub = null();
    ok!(tiledb_subarray_alloc, ctx, array, &mut sub);
    for (from, to) in [(2.0f64, 1.0), (f64::NAN, 1.0)] {
        fails!(
            tiledb_subarray_add_label_range,
            ctx,
            sub,
            c"x",
            &[from],
            &[to],
            null()
        );
    }
    // Nothing of it stays.
    ok!(
        tiledb_subarray_add_range,
        ctx,
        sub,
        0,
        &[1i64],
        &[2i64],
        null()
    );
    free!(tiledb_subarray_free, sub);
    // Bounds of text are not compared.
    ok!(tiledb_subarray_alloc, ctx, array, &mut sub);
    ok!(
        tiledb_subarray_add_label_range_var,
        ctx,
        sub,
        c"text",
        b"b",
        1u64,
        b"a",
        1u64
    );
    free!(tiledb_subarray_free, sub);
    close(ctx, array);
}

#[test]
fn buffers_of_reads_are_never_null() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "a");
    let attributes = &[Attr::fixed(c"a", INT64), Attr::var(c"v", ASCII).or_null()];
    create(ctx, &uri, true, 100, 10, attributes);
    let mut none = 0u64;
    let array = open(ctx, &uri, READ);
    let mut q = query(ctx, array, READ, ROW);
    fails!(
        tiledb_query_set_data_buffer,
        ctx,
        q,
        c"a",
        null(),
        &mut none
    );
    fails!(
        tiledb_query_set_data_buffer,
        ctx,
        q,
        c"v",
        null(),
        &mut none
    );
    fails!(
        tiledb_query_set_offsets_buffer,
        ctx,
        q,
        c"v",
        null(),
        &mut none
    );
    fails!(
        tiledb_query_set_validity_buffer,
        ctx,
        q,
        c"v",
        null(),
        &mut none
    );
    free!(tiledb_query_free, q);
    close(ctx, array);
    // Writes take values of no bytes from nowhere, and nothing else.
    let array = open(ctx, &uri, WRITE);
    let mut q = query(ctx, array, WRITE, UNORDERED);
    set_buffer!(data, ctx, q, c"v", null(), &mut none);
    fails!(
        tiledb_query_set_offsets_buffer,
        ctx,
        q,
        c"v",
        null(),
        &mut none
    );
    fails!(
        tiledb_query_set_validity_buffer,
        ctx,
        q,
        c"v",
        null(),
        &mut none
    );
    free!(tiledb_query_free, q);
    close(ctx, array);
}

#[test]
fn subarrays_are_put_back_to_all_and_ranges_of_numbers_are_no_texts() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "a");
    create(ctx, &uri, true, 100, 10, A);
    write(ctx, &uri, &[3, 5, 7]);
    let array = open(ctx, &uri, READ);
    let mut sub = null();
    ok!(tiledb_subarray_alloc, ctx, array, &mut sub);
    ok!(tiledb_subarray_set_subarray, ctx, sub, &[4i64, 6]);
    ok!(tiledb_subarray_set_subarray, ctx, sub, null());
    let (mut start, mut end, mut stride) = (null(), null(), null());
    ok!(
        tiledb_subarray_get_range,
        ctx,
        sub,
        0,
        0u64,
        &mut start,
        &mut end,
        &mut stride
    );
    // SAFETY: bounds of the dimension, which live as long as the subarray.
    let bounds = unsafe { [start.cast::<i64>().read(), end.cast::<i64>().read()] };
    assert_eq!(bounds, [1, 100]);
    let (mut low, mut high, mut text) = (0u64, 0u64, [0u8; 16]);
    fails!(
        tiledb_subarray_get_range_var_size,
        ctx,
        sub,
        0,
        0u64,
        &mut low,
        &mut high
    );
    fails!(
        tiledb_subarray_get_range_var,
        ctx,
        sub,
        0,
        0u64,
        &mut text[..],
        &mut end
    );
    assert_eq!(text, [0; 16]);
    free!(tiledb_subarray_free, sub);
    close(ctx, array);
}

#[test]
fn what_a_failed_close_did_not_store_is_stored_by_the_next_one() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let (at, group_at) = (uri(&folder, "a"), uri(&folder, "g"));
    create(ctx, &at, true, 100, 10, A);
    ok!(tiledb_group_create, ctx, &group_at);
    // In the place of the folder of key-values lies a file.
    let meta = |name: &str| folder.path().join(name).join("__meta");
    let spoil = |name: &str| {
        let _ = std::fs::remove_dir_all(meta(name));
        std::fs::write(meta(name), b"").unwrap();
    };
    let repair = |name: &str| {
        std::fs::remove_file(meta(name)).unwrap();
        std::fs::create_dir(meta(name)).unwrap();
    };
    let mut array = open(ctx, &at, WRITE);
    ok!(
        tiledb_array_put_metadata,
        ctx,
        array,
        c"k",
        INT64,
        1,
        &[5i64]
    );
    spoil("a");
    fails!(tiledb_array_close, ctx, array);
    fails!(tiledb_array_close, ctx, array);
    repair("a");
    ok!(tiledb_array_close, ctx, array);
    ok!(tiledb_array_close, ctx, array);
    free!(tiledb_array_free, array);
    let array = open(ctx, &at, READ);
    let mut count = 0u64;
    ok!(tiledb_array_get_metadata_num, ctx, array, &mut count);
    assert_eq!(count, 1);
    close(ctx, array);

    let mut group = null();
    ok!(tiledb_group_alloc, ctx, &group_at, &mut group);
    ok!(tiledb_group_open, ctx, group, WRITE);
    ok!(
        tiledb_group_put_metadata,
        ctx,
        group,
        c"k",
        INT64,
        1,
        &[5i64]
    );
    ok!(tiledb_group_add_member, ctx, group, &at, 0u8, c"m");
    spoil("g");
    fails!(tiledb_group_close, ctx, group);
    repair("g");
    ok!(tiledb_group_close, ctx, group);
    ok!(tiledb_group_open, ctx, group, READ);
    let mut members = 0u64;
    ok!(tiledb_group_get_metadata_num, ctx, group, &mut count);
    ok!(tiledb_group_get_member_count, ctx, group, &mut members);
    assert_eq!((count, members), (1, 1));
    ok!(tiledb_group_close, ctx, group);

    // No array is deleted as a group.
    ok!(tiledb_group_open, ctx, group, 4);
    fails!(tiledb_group_delete_group, ctx, group, &at, 0u8);
    ok!(tiledb_group_close, ctx, group);
    close(ctx, open(ctx, &at, READ));
    free!(tiledb_group_free, group);
}

#[test]
fn every_compressor_keeps_the_type_that_values_are_taken_as() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    // GZIP, ZSTD, LZ4, RLE, BZIP2, DOUBLE_DELTA, DICTIONARY, DELTA.
    for id in [1, 2, 3, 4, 5, 6, 14, 19] {
        let mut filter = null();
        ok!(tiledb_filter_alloc, ctx, id, &mut filter);
        let mut given = 99u8;
        ok!(tiledb_filter_get_option, ctx, filter, 9, &mut given);
        assert_eq!(given, 17, "ANY, of filter {id}");
        ok!(tiledb_filter_set_option, ctx, filter, 9, &[4u8]);
        ok!(tiledb_filter_get_option, ctx, filter, 9, &mut given);
        assert_eq!(given, 4, "of filter {id}");
        free!(tiledb_filter_free, filter);
    }
}

#[test]
fn encrypted_arrays_say_so_whatever_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, secret) = (uri(&folder, "plain"), uri(&folder, "secret"));
    let of = |key: &CStr| {
        Ctx::with(&[
            (c"sm.encryption_type", c"AES_256_GCM"),
            (c"sm.encryption_key", key),
        ])
    };
    let right = of(c"0123456789abcdeffedcba9876543210");
    let contexts = [Ctx::new(), of(c"another key 0123456789abcdefghij"), right];
    create(contexts[0].0, &plain, true, 100, 10, A);
    create(contexts[2].0, &secret, true, 100, 10, A);
    for ctx in &contexts {
        for (uri, wanted) in [(&plain, 0), (&secret, 1)] {
            let mut found = 9i32;
            ok!(tiledb_array_encryption_type, ctx.0, uri, &mut found);
            assert_eq!(found, wanted);
        }
        let mut found = 9i32;
        let missing = uri(&folder, "missing");
        fails!(tiledb_array_encryption_type, ctx.0, &missing, &mut found);
    }
}

#[test]
fn deletes_take_no_subarray_and_subarrays_of_queries_stay_within_the_domain() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "a");
    create(ctx, &uri, true, 100, 10, A);
    write(ctx, &uri, &[3, 5, 7]);
    let (reading, deleting) = (open(ctx, &uri, READ), open(ctx, &uri, DELETE));
    let mut sub = null();
    ok!(tiledb_subarray_alloc, ctx, reading, &mut sub);
    ok!(
        tiledb_subarray_add_range,
        ctx,
        sub,
        0,
        &[5i64],
        &[5i64],
        null()
    );
    fails!(tiledb_subarray_set_coalesce_ranges, ctx, sub, 0);
    let mut q = null();
    ok!(tiledb_query_alloc, ctx, deleting, DELETE, &mut q);
    let message = fails!(tiledb_query_set_subarray_t, ctx, q, sub);
    assert!(message.contains("DELETE"), "{message}");
    free!(tiledb_query_free, q; tiledb_subarray_free, sub);
    let mut q = query(ctx, reading, READ, ROW);
    ok!(tiledb_query_get_subarray_t, ctx, q, &mut sub);
    ok!(tiledb_subarray_set_coalesce_ranges, ctx, sub, 0);
    let message = fails!(
        tiledb_subarray_add_range,
        ctx,
        sub,
        0,
        &[200i64],
        &[300i64],
        null()
    );
    assert!(message.contains("out of domain"), "{message}");
    free!(tiledb_query_free, q; tiledb_subarray_free, sub);
    close(ctx, reading);
    close(ctx, deleting);
    assert_eq!(read(ctx, &uri), [3, 5, 7]);
}

#[test]
fn what_is_set_on_an_attribute_of_a_schema_counts() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "a");
    let mut schema = capi::schema(ctx, true, 100, 10, A);
    let (mut added, mut got, mut list, mut filter) = (null(), null(), null(), null());
    // Through a handle on the schema's attribute.
    ok!(
        tiledb_array_schema_get_attribute_from_name,
        ctx,
        schema,
        c"a",
        &mut got
    );
    ok!(tiledb_filter_list_alloc, ctx, &mut list);
    ok!(tiledb_filter_alloc, ctx, 2, &mut filter);
    ok!(tiledb_filter_list_add_filter, ctx, list, filter);
    ok!(tiledb_attribute_set_filter_list, ctx, got, list);
    // Through the handle that was added.
    ok!(tiledb_attribute_alloc, ctx, c"b", INT64, &mut added);
    ok!(tiledb_array_schema_add_attribute, ctx, schema, added);
    ok!(tiledb_attribute_set_nullable, ctx, added, 1u8);
    free!(tiledb_attribute_free, added; tiledb_attribute_free, got);
    free!(tiledb_filter_free, filter; tiledb_filter_list_free, list);
    ok!(tiledb_array_create, ctx, &uri, schema);
    free!(tiledb_array_schema_free, schema);
    ok!(tiledb_array_schema_load, ctx, &uri, &mut schema);
    let (mut filters, mut nullable) = (0u32, 0u8);
    ok!(
        tiledb_array_schema_get_attribute_from_index,
        ctx,
        schema,
        0,
        &mut got
    );
    ok!(tiledb_attribute_get_filter_list, ctx, got, &mut list);
    ok!(tiledb_filter_list_get_nfilters, ctx, list, &mut filters);
    free!(tiledb_attribute_free, got; tiledb_filter_list_free, list);
    ok!(
        tiledb_array_schema_get_attribute_from_name,
        ctx,
        schema,
        c"b",
        &mut got
    );
    ok!(tiledb_attribute_get_nullable, ctx, got, &mut nullable);
    assert_eq!((filters, nullable), (1, 1));
    free!(tiledb_attribute_free, got; tiledb_array_schema_free, schema);
}

#[test]
fn ordered_labels_that_are_equal_are_refused() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    let mut schema = capi::schema(ctx, false, 6, 2, A);
    for (name, order) in [(c"up", 1), (c"down", 2)] {
        ok!(
            tiledb_array_schema_add_dimension_label,
            ctx,
            schema,
            0,
            name,
            order,
            FLOAT64
        );
    }
    ok!(tiledb_array_create, ctx, &uri, schema);
    free!(tiledb_array_schema_free, schema);
    let array = open(ctx, &uri, WRITE);
    let write = |name: &CStr, mut labels: [f64; 3]| {
        let mut q = query(ctx, array, WRITE, ROW);
        range(ctx, array, q, 1, 3);
        let mut size = bytes(&labels);
        set(ctx, q, name, &mut labels, &mut size);
        let status = raw!(tiledb_query_submit, ctx, q);
        free!(tiledb_query_free, q);
        status
    };
    assert_eq!(write(c"up", [1.0, 2.0, 3.0]), 0);
    assert_eq!(write(c"up", [1.0, 2.0, 2.0]), -1);
    assert_eq!(write(c"up", [-0.0, 0.0, 2.0]), -1);
    assert_eq!(write(c"down", [3.0, 2.0, 1.0]), 0);
    assert_eq!(write(c"down", [3.0, 3.0, 1.0]), -1);
    close(ctx, array);

    // Ranges of labels give way to a whole subarray.
    let array = open(ctx, &uri, READ);
    let (mut sub, mut has, mut count) = (null(), 9i32, 9u64);
    ok!(tiledb_subarray_alloc, ctx, array, &mut sub);
    for (values, wanted) in [(Some([2i64, 5]), 1u64), (None, 1)] {
        ok!(
            tiledb_subarray_add_label_range,
            ctx,
            sub,
            c"up",
            &[1.0f64],
            &[2.0f64],
            null()
        );
        let values = values
            .as_ref()
            .map_or(std::ptr::null(), |values| values.as_ptr());
        ok!(tiledb_subarray_set_subarray, ctx, sub, values);
        ok!(tiledb_subarray_has_label_ranges, ctx, sub, 0, &mut has);
        ok!(tiledb_subarray_get_range_num, ctx, sub, 0, &mut count);
        assert_eq!((has, count), (0, wanted));
        ok!(tiledb_subarray_set_subarray, ctx, sub, null());
    }
    free!(tiledb_subarray_free, sub);
    close(ctx, array);
}

#[test]
fn a_read_goes_on_behind_a_submission_with_buffers_that_do_not_do() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "a");
    create(ctx, &uri, true, 100, 10, &[Attr::var(c"v", ASCII)]);
    let array = open(ctx, &uri, WRITE);
    let mut q = query(ctx, array, WRITE, UNORDERED);
    let (mut d, mut v, mut starts) = ([1i64, 2, 3, 4], *b"abbcccdddd", [0u64, 1, 3, 6]);
    let (mut d_size, mut v_size, mut starts_size) = (32u64, 10u64, 32u64);
    set(ctx, q, c"d", &mut d, &mut d_size);
    set(ctx, q, c"v", &mut v, &mut v_size);
    set_buffer!(offsets, ctx, q, c"v", &mut starts[..], &mut starts_size);
    ok!(tiledb_query_submit, ctx, q);
    free!(tiledb_query_free, q);
    close(ctx, array);

    let extra = Ctx::with(&[(c"sm.var_offsets.extra_element", c"true")]);
    let ctx = extra.0;
    let array = open(ctx, &uri, READ);
    let mut q = query(ctx, array, READ, ROW);
    let (mut channel, mut count, mut cells) = (null(), null(), [0u64; 2]);
    ok!(tiledb_query_get_default_channel, ctx, q, &mut channel);
    ok!(tiledb_aggregate_count_get, ctx, &mut count);
    ok!(tiledb_channel_apply_aggregate, ctx, channel, c"n", count);
    let (mut v, mut starts) = ([0u8; 40], [0u64; 8]);
    let mut seen: Vec<u8> = Vec::new();
    // Bytes of offsets and of the aggregate; how the submission ends.
    for (offsets, aggregate, ends) in [
        (24u64, 8u64, Some(INCOMPLETE)),
        (4, 8, Some(INCOMPLETE)),
        (24, 16, None),
        (64, 8, Some(COMPLETED)),
    ] {
        let (mut v_size, mut starts_size, mut n_size) = (40u64, offsets, aggregate);
        set(ctx, q, c"v", &mut v, &mut v_size);
        set_buffer!(offsets, ctx, q, c"v", &mut starts[..], &mut starts_size);
        set(ctx, q, c"n", &mut cells, &mut n_size);
        match ends {
            Some(ends) => {
                ok!(tiledb_query_submit, ctx, q);
                assert_eq!(status(ctx, q), ends);
                seen.extend(&v[..v_size as usize]);
            }
            None => {
                let message = fails!(tiledb_query_submit, ctx, q);
                assert!(message.contains("one element"), "{message}");
                assert_eq!(status(ctx, q), INCOMPLETE);
            }
        }
    }
    assert_eq!(String::from_utf8_lossy(&seen), "abbcccdddd");
    assert_eq!(cells[0], 4);
    raw!(tiledb_query_channel_free, ctx, &mut channel);
    free!(tiledb_query_free, q);
    close(ctx, array);
}

#[test]
fn what_is_under_way_goes_on_when_its_array_is_closed() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    create(ctx, &uri, true, 100, 10, A);
    let array = open(ctx, &uri, WRITE);
    let mut q = query(ctx, array, WRITE, GLOBAL);
    assert_eq!(submit_cells(ctx, q, &[1, 2]), 0);
    close(ctx, array);
    assert_eq!(submit_cells(ctx, q, &[3, 4]), 0);
    ok!(tiledb_query_finalize, ctx, q);
    free!(tiledb_query_free, q);

    let array = open(ctx, &uri, READ);
    let mut q = query(ctx, array, READ, ROW);
    let mut late = query(ctx, array, READ, ROW);
    let (mut a, mut size) = ([0i64; 3], 24u64);
    let place: *mut u64 = &mut size;
    for q in [q, late] {
        set_buffer!(data, ctx, q, c"a", &mut a[..], place);
    }
    ok!(tiledb_query_submit, ctx, q);
    assert_eq!((status(ctx, q), a), (INCOMPLETE, [1, 2, 3]));
    close(ctx, array);
    // SAFETY: the size outlives the query.
    unsafe { place.write(24) };
    ok!(tiledb_query_submit, ctx, q);
    // SAFETY: as above.
    let size = unsafe { place.read() };
    assert_eq!((status(ctx, q), size, a[0]), (COMPLETED, 8, 4));
    // What was not begun does not begin any more.
    fails!(tiledb_query_submit, ctx, late);
    free!(tiledb_query_free, q; tiledb_query_free, late);
}

#[test]
fn fields_that_cannot_be_null_have_no_validity_to_ask_for() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder, "array");
    let attributes = [Attr::fixed(c"a", INT64), Attr::fixed(c"n", INT64).or_null()];
    create(ctx, &uri, true, 100, 10, &attributes);
    let array = open(ctx, &uri, READ);
    let mut q = query(ctx, array, READ, ROW);
    let (mut place, mut size) = (null(), null());
    fails!(
        tiledb_query_get_validity_buffer,
        ctx,
        q,
        c"a",
        &mut place,
        &mut size
    );
    ok!(
        tiledb_query_get_validity_buffer,
        ctx,
        q,
        c"n",
        &mut place,
        &mut size
    );
    free!(tiledb_query_free, q);
    close(ctx, array);
}

//! What few clients ask for: zipped coordinates, times of cells, fields written one by one, only
//! the matching cells of a dense array.
#![allow(unsafe_code, clippy::unwrap_used, reason = "tests of a C API")]

mod capi;

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::Range;
use azulejo::format::datatype::Datatype;
use azulejo::format::schema::ArraySchema;
use azulejo::write::WriteOptions;
use azulejo::{Config, Context};
use capi::{
    Attr, COMPLETED, Ctx, GLOBAL, Handle, INCOMPLETE, INT64, READ, ROW, UNORDERED, WRITE, bytes,
    close, create, fails, free, null, ok, open, query, set_buffer, status,
};
use std::ffi::{CString, c_char};

const TWO: &[Attr] = &[Attr::fixed(c"a", INT64), Attr::fixed(c"b", INT64)];

#[test]
fn coordinates_may_be_zipped() {
    let (ctx, folder) = (Ctx::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("array").to_str().unwrap().to_owned();
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=9, 10)
        .dimension("y", 0i64..=9, 10);
    let schema = schema.attribute("a", Datatype::Int64).build().unwrap();
    Context::new(Config::default(), None)
        .unwrap()
        .array(&path)
        .create(schema)
        .unwrap();
    let uri = CString::new(path).unwrap();

    let array = open(ctx.0, &uri, WRITE);
    let mut q = query(ctx.0, array, WRITE, UNORDERED);
    let (zipped, a) = ([3i64, 4, 1, 2, 1, 9], [34i64, 12, 19]);
    let mut sizes = [bytes(&zipped), bytes(&a)];
    let [z_size, a_size] = &mut sizes;
    set_buffer!(data, ctx.0, q, c"__coords", &zipped[..], z_size);
    set_buffer!(data, ctx.0, q, c"a", &a[..], a_size);
    ok!(tiledb_query_submit, ctx.0, q);
    free!(tiledb_query_free, q);
    close(ctx.0, array);

    // Room for two cells and a half: two come, then the third.
    let array = open(ctx.0, &uri, READ);
    let mut q = query(ctx.0, array, READ, ROW);
    let (mut zipped, mut size) = ([-1i64; 5], 40u64);
    set_buffer!(data, ctx.0, q, c"__coords", &mut zipped[..], &mut size);
    ok!(tiledb_query_submit, ctx.0, q);
    assert_eq!(
        (status(ctx.0, q), size, zipped),
        (INCOMPLETE, 32, [1, 2, 1, 9, -1])
    );
    ok!(tiledb_query_submit, ctx.0, q);
    assert_eq!(
        (status(ctx.0, q), size, zipped),
        (COMPLETED, 16, [3, 4, 1, 9, -1])
    );
    free!(tiledb_query_free, q);

    // Not with the same coordinates apart.
    let mut q = query(ctx.0, array, READ, ROW);
    let (mut x, mut x_size) = ([0i64; 5], 40u64);
    set_buffer!(data, ctx.0, q, c"__coords", &mut zipped[..], &mut size);
    set_buffer!(data, ctx.0, q, c"x", &mut x[..], &mut x_size);
    assert!(fails!(tiledb_query_submit, ctx.0, q).contains("zipped"));
    free!(tiledb_query_free, q);
    close(ctx.0, array);
}

#[test]
fn cells_know_when_they_were_written() {
    let (ctx, folder) = (Ctx::new(), tempfile::tempdir().unwrap());
    let uri = CString::new(folder.path().join("array").to_str().unwrap()).unwrap();
    create(ctx.0, &uri, true, 10, 10, &TWO[..1]);
    for (time, d) in [(5u64, [1i64, 2]), (7, [2, 3])] {
        let mut array = null();
        ok!(tiledb_array_alloc, ctx.0, &*uri, &mut array);
        ok!(tiledb_array_set_open_timestamp_end, ctx.0, array, time);
        ok!(tiledb_array_open, ctx.0, array, WRITE);
        let mut q = query(ctx.0, array, WRITE, UNORDERED);
        let mut size = bytes(&d);
        set_buffer!(data, ctx.0, q, c"d", &d[..], &mut size);
        set_buffer!(data, ctx.0, q, c"a", &d[..], &mut size);
        ok!(tiledb_query_submit, ctx.0, q);
        free!(tiledb_query_free, q);
        close(ctx.0, array);
    }
    let read = || {
        let array = open(ctx.0, &uri, READ);
        let mut q = query(ctx.0, array, READ, GLOBAL);
        let (mut d, mut t) = ([0i64; 9], [0u64; 9]);
        let (mut d_size, mut t_size) = (bytes(&d), bytes(&t));
        set_buffer!(data, ctx.0, q, c"d", &mut d[..], &mut d_size);
        set_buffer!(data, ctx.0, q, c"__timestamps", &mut t[..], &mut t_size);
        ok!(tiledb_query_submit, ctx.0, q);
        assert_eq!((status(ctx.0, q), d_size), (COMPLETED, t_size));
        free!(tiledb_query_free, q);
        close(ctx.0, array);
        (
            d[..d_size as usize / 8].to_vec(),
            t[..t_size as usize / 8].to_vec(),
        )
    };
    // The time of the version that counts, in fragments without times of their cells and in one
    // with them.
    let expected = (vec![1, 2, 3], vec![5, 7, 7]);
    assert_eq!(read(), expected);
    ok!(tiledb_array_consolidate, ctx.0, &*uri, null());
    ok!(tiledb_array_vacuum, ctx.0, &*uri, null());
    assert_eq!(read(), expected);
}

#[test]
fn fields_may_be_written_one_by_one() {
    let ctx = Ctx::with(&[(c"sm.allow_separate_attribute_writes", c"true")]);
    let folder = tempfile::tempdir().unwrap();
    let uri = CString::new(folder.path().join("array").to_str().unwrap()).unwrap();
    create(ctx.0, &uri, true, 10, 10, TWO);
    let array = open(ctx.0, &uri, WRITE);
    let mut q = query(ctx.0, array, WRITE, UNORDERED);
    let mut size = 24u64;
    set_buffer!(data, ctx.0, q, c"a", &[1i64, 2, 3], &mut size);
    assert!(fails!(tiledb_query_submit, ctx.0, q).contains("Dimension buffer d is not set"));
    set_buffer!(data, ctx.0, q, c"d", &[7i64, 8, 2], &mut size);
    ok!(tiledb_query_submit, ctx.0, q);
    let again = fails!(
        tiledb_query_set_data_buffer,
        ctx.0,
        q,
        c"a",
        &[1i64, 2, 3],
        &mut size
    );
    assert!(again.contains("already written"));
    assert!(fails!(tiledb_query_finalize, ctx.0, q).contains("Not all buffers"));
    let mut short = 16u64;
    set_buffer!(data, ctx.0, q, c"b", &[10i64, 20, 30], &mut short);
    assert!(fails!(tiledb_query_submit, ctx.0, q).contains("numbers of cells"));
    set_buffer!(data, ctx.0, q, c"b", &[10i64, 20, 30], &mut size);
    ok!(tiledb_query_submit, ctx.0, q);
    ok!(tiledb_query_finalize, ctx.0, q);
    free!(tiledb_query_free, q);
    close(ctx.0, array);

    let array = open(ctx.0, &uri, READ);
    let mut q = query(ctx.0, array, READ, ROW);
    let (mut d, mut a, mut b, mut sizes) = ([0i64; 3], [0i64; 3], [0i64; 3], [24u64; 3]);
    let [d_size, a_size, b_size] = &mut sizes;
    set_buffer!(data, ctx.0, q, c"d", &mut d[..], d_size);
    set_buffer!(data, ctx.0, q, c"a", &mut a[..], a_size);
    set_buffer!(data, ctx.0, q, c"b", &mut b[..], b_size);
    ok!(tiledb_query_submit, ctx.0, q);
    assert_eq!((d, a, b), ([2, 7, 8], [3, 1, 2], [30, 10, 20]));
    free!(tiledb_query_free, q);
    close(ctx.0, array);
}

#[test]
fn unordered_reads_without_duplicates_come_in_global_order() {
    let (ctx, folder) = (Ctx::new(), tempfile::tempdir().unwrap());
    let uri = CString::new(folder.path().join("array").to_str().unwrap()).unwrap();
    create(ctx.0, &uri, true, 30, 10, &TWO[..1]);
    // The later fragment's cells come first: they lie before the others.
    for d in [[20i64, 21, 25], [3, 4, 11]] {
        let array = open(ctx.0, &uri, WRITE);
        let mut q = query(ctx.0, array, WRITE, UNORDERED);
        let mut sizes = [bytes(&d), bytes(&d)];
        let [d_size, a_size] = &mut sizes;
        set_buffer!(data, ctx.0, q, c"d", &d[..], d_size);
        set_buffer!(data, ctx.0, q, c"a", &d[..], a_size);
        ok!(tiledb_query_submit, ctx.0, q);
        free!(tiledb_query_free, q);
        close(ctx.0, array);
    }
    let array = open(ctx.0, &uri, READ);
    let mut q = query(ctx.0, array, READ, UNORDERED);
    let (mut d, mut size) = ([0i64; 8], 64u64);
    set_buffer!(data, ctx.0, q, c"d", &mut d[..], &mut size);
    ok!(tiledb_query_submit, ctx.0, q);
    assert_eq!(
        (status(ctx.0, q), size, &d[..6]),
        (COMPLETED, 48, &[3, 4, 11, 20, 21, 25][..])
    );
    free!(tiledb_query_free, q);
    close(ctx.0, array);
}

#[test]
fn dense_reads_may_give_the_matching_cells_only() {
    let ctx = Ctx::with(&[(c"sm.query.dense.qc_coords_mode", c"true")]);
    let folder = tempfile::tempdir().unwrap();
    let uri = CString::new(folder.path().join("array").to_str().unwrap()).unwrap();
    create(ctx.0, &uri, false, 30, 10, &TWO[..1]);
    let array = open(ctx.0, &uri, WRITE);
    let mut q = query(ctx.0, array, WRITE, ROW);
    let (mut sub, a) = (null(), [5i64, 50, 5, 50, 5]);
    ok!(tiledb_subarray_alloc, ctx.0, array, &mut sub);
    ok!(
        tiledb_subarray_add_range,
        ctx.0,
        sub,
        0,
        &[8i64],
        &[12i64],
        null()
    );
    ok!(tiledb_query_set_subarray_t, ctx.0, q, sub);
    let mut size = bytes(&a);
    set_buffer!(data, ctx.0, q, c"a", &a[..], &mut size);
    ok!(tiledb_query_submit, ctx.0, q);
    free!(tiledb_query_free, q; tiledb_subarray_free, sub);
    close(ctx.0, array);

    let array = open(ctx.0, &uri, READ);
    let mut q = query(ctx.0, array, READ, ROW);
    let (mut d, mut size) = ([0i64; 30], 240u64);
    set_buffer!(data, ctx.0, q, c"d", &mut d[..], &mut size);
    assert!(fails!(tiledb_query_submit, ctx.0, q).contains("requires a query condition"));
    let mut condition = null();
    ok!(tiledb_query_condition_alloc, ctx.0, &mut condition);
    ok!(
        tiledb_query_condition_init,
        ctx.0,
        condition,
        c"a",
        &[40i64],
        8u64,
        0
    );
    ok!(tiledb_query_set_condition, ctx.0, q, condition);
    ok!(tiledb_query_submit, ctx.0, q);
    // Cells that nobody wrote do not count, though their fill value is less than 40.
    assert_eq!(
        (status(ctx.0, q), size, &d[..3]),
        (COMPLETED, 24, &[8i64, 10, 12][..])
    );
    free!(tiledb_query_free, q; tiledb_query_condition_free, condition);
    close(ctx.0, array);
}

#[test]
fn offsets_of_4_bytes_are_sized_as_of_8() {
    let ctx = Ctx::with(&[(c"sm.var_offsets.bitsize", c"32")]);
    let folder = tempfile::tempdir().unwrap();
    let var = &[Attr::var(c"a", INT64).or_null()];
    // As the reference counts them, and as their bytes are.
    for (name, bytes_each) in [("eight", 8u64), ("four", 4)] {
        let uri = CString::new(folder.path().join(name).to_str().unwrap()).unwrap();
        create(ctx.0, &uri, true, 10, 10, var);
        let array = open(ctx.0, &uri, WRITE);
        let mut q = query(ctx.0, array, WRITE, UNORDERED);
        // More validity than cells does no harm.
        let (d, a, offsets, validity) = (
            [1i64, 2, 3],
            [1i64, 2, 3, 4, 5],
            [0u32, 8, 24],
            [1u8, 0, 1, 9, 9],
        );
        let mut sizes = [bytes(&d), bytes(&a), 3 * bytes_each, bytes(&validity)];
        let [d_size, a_size, o_size, v_size] = &mut sizes;
        set_buffer!(data, ctx.0, q, c"d", &d[..], d_size);
        set_buffer!(data, ctx.0, q, c"a", &a[..], a_size);
        set_buffer!(offsets, ctx.0, q, c"a", &offsets[..], o_size);
        set_buffer!(validity, ctx.0, q, c"a", &validity[..], v_size);
        ok!(tiledb_query_submit, ctx.0, q);
        free!(tiledb_query_free, q);
        close(ctx.0, array);

        let array = open(ctx.0, &uri, READ);
        let mut q = query(ctx.0, array, READ, ROW);
        let (mut a, mut offsets, mut validity) = ([0i64; 9], [0u32; 9], [7u8; 9]);
        let mut sizes = [bytes(&a), bytes(&offsets), bytes(&validity)];
        let [a_size, o_size, v_size] = &mut sizes;
        set_buffer!(data, ctx.0, q, c"a", &mut a[..], a_size);
        set_buffer!(offsets, ctx.0, q, c"a", &mut offsets[..], o_size);
        set_buffer!(validity, ctx.0, q, c"a", &mut validity[..], v_size);
        ok!(tiledb_query_submit, ctx.0, q);
        assert_eq!(
            (status(ctx.0, q), sizes),
            (COMPLETED, [40, 12, 3]),
            "{name}"
        );
        assert_eq!(
            (&a[..5], &offsets[..3], &validity[..3]),
            (
                &[1i64, 2, 3, 4, 5][..],
                &[0u32, 8, 24][..],
                &[1u8, 0, 1][..]
            )
        );
        free!(tiledb_query_free, q);
        close(ctx.0, array);
    }
}

#[test]
fn bounds_of_strings_are_meant_as_they_are() {
    let (ctx, folder) = (Ctx::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("array").to_str().unwrap().to_owned();
    let schema = ArraySchema::sparse()
        .string_dimension("s")
        .attribute("a", Datatype::Int64)
        .build()
        .unwrap();
    let context = Context::new(Config::default(), None).unwrap();
    context.array(&path).create(schema).unwrap();
    let mut writer = context.array(&path).writer(WriteOptions::new()).unwrap();
    let cells = [
        ColumnBuffers::of_strings("s", ["", "a", "bb"]),
        ColumnBuffers::of_values("a", vec![1i64, 2, 3]),
    ];
    writer.write(&ColumnSet::of(cells).unwrap()).unwrap();
    writer.finish().unwrap();

    let uri = CString::new(path).unwrap();
    let array = open(ctx.0, &uri, READ);
    let all: &[i64] = &[1, 2, 3];
    for (ranges, wanted) in [
        (&[][..], all),
        (&[("", "")], &[1]),
        (&[("", "a")], &[1, 2]),
        (&[("a", "")], &[]),
        (&[("b", "a")], &[]),
        (&[("", ""), ("bb", "bb"), ("c", "b")], &[1, 3]),
    ] {
        let mut sub = null();
        ok!(tiledb_subarray_alloc, ctx.0, array, &mut sub);
        for (start, end) in ranges {
            let (n, m) = (start.len() as u64, end.len() as u64);
            ok!(
                tiledb_subarray_add_range_var,
                ctx.0,
                sub,
                0,
                start.as_bytes(),
                n,
                end.as_bytes(),
                m
            );
        }
        let mut q = query(ctx.0, array, READ, ROW);
        ok!(tiledb_query_set_subarray_t, ctx.0, q, sub);
        let (mut a, mut size) = ([0i64; 4], 32u64);
        set_buffer!(data, ctx.0, q, c"a", &mut a[..], &mut size);
        ok!(tiledb_query_submit, ctx.0, q);
        assert_eq!(
            (status(ctx.0, q), &a[..size as usize / 8]),
            (COMPLETED, wanted),
            "{ranges:?}"
        );
        free!(tiledb_query_free, q);
        free!(tiledb_subarray_free, sub);
    }
    close(ctx.0, array);
}

#[test]
fn plans_of_dense_reads_name_all_dimensions() {
    let (ctx, folder) = (Ctx::new(), tempfile::tempdir().unwrap());
    let uri = CString::new(folder.path().join("array").to_str().unwrap()).unwrap();
    create(ctx.0, &uri, false, 30, 10, &TWO[..1]);
    let array = open(ctx.0, &uri, READ);
    let (mut q, mut plan) = (query(ctx.0, array, READ, ROW), null());
    let (mut a, mut size) = ([0i64; 30], 240u64);
    set_buffer!(data, ctx.0, q, c"a", &mut a[..], &mut size);
    ok!(tiledb_query_get_plan, ctx.0, q, &mut plan);
    let (mut data, mut length) = (std::ptr::null(), 0usize);
    assert_eq!(
        capi::raw!(tiledb_string_view, plan, &mut data, &mut length),
        0
    );
    let text: String = capi::text(data).split_whitespace().collect();
    assert!(
        text.contains(r#""Query.Attributes":["a"],"Query.Dimensions":["d"]"#),
        "{text}"
    );
    free!(tiledb_string_free, plan; tiledb_query_free, q);
    close(ctx.0, array);
}

/// Counts the objects that it is called with.
extern "C-unwind" fn count(_: *const c_char, _: i32, data: *mut u32) -> i32 {
    unsafe { *data += 1 };
    1
}

#[test]
fn folders_that_are_not_there_hold_no_objects() {
    let (ctx, folder) = (Ctx::new(), tempfile::tempdir().unwrap());
    let path = |name: &str| CString::new(folder.path().join(name).to_str().unwrap()).unwrap();
    create(ctx.0, &path("array"), true, 10, 5, TWO);
    let found = |name: &str| {
        let (uri, mut listed, mut walked) = (path(name), 0u32, 0u32);
        ok!(
            tiledb_object_ls,
            ctx.0,
            &uri,
            count as *const () as u64,
            &mut listed
        );
        ok!(
            tiledb_object_walk,
            ctx.0,
            &uri,
            0i32,
            count as *const () as u64,
            &mut walked
        );
        (listed, walked)
    };
    assert_eq!(
        (found(""), found("array"), found("nowhere")),
        ((1, 1), (0, 0), (0, 0))
    );
}

#[cfg(unix)]
#[test]
fn walks_over_objects_do_not_go_through_links_that_lead_back() {
    let (ctx, folder) = (Ctx::new(), tempfile::tempdir().unwrap());
    let path = |name: &str| CString::new(folder.path().join(name).to_str().unwrap()).unwrap();
    ok!(tiledb_group_create, ctx.0, &path("g"));
    create(ctx.0, &path("g/array"), true, 10, 5, TWO);
    // Through these a walk would come by 2 to the power of 40 groups.
    for name in ["g/one", "g/two"] {
        std::os::unix::fs::symlink(folder.path().join("g"), folder.path().join(name)).unwrap();
    }
    for order in [0i32, 1] {
        let mut walked = 0u32;
        ok!(
            tiledb_object_walk,
            ctx.0,
            &path(""),
            order,
            count as *const () as u64,
            &mut walked
        );
        assert_eq!(walked, 4);
    }
}

#[test]
fn what_is_less_than_a_cell_behind_the_last_one_is_not_written() {
    let (ctx, folder) = (Ctx::new(), tempfile::tempdir().unwrap());
    let ctx = ctx.0;
    let attributes = &[Attr::fixed(c"a", INT64), Attr::var(c"v", INT64)];
    for sparse in [true, false] {
        let name = format!("array_{sparse}");
        let uri = CString::new(folder.path().join(name).to_str().unwrap()).unwrap();
        create(ctx, &uri, sparse, 2, 2, attributes);
        let array = open(ctx, &uri, WRITE);
        let mut q = query(ctx, array, WRITE, if sparse { UNORDERED } else { ROW });
        let (mut d, mut a, mut v, mut starts) =
            ([1i64, 2, 9], [10i64, 20, 90], [5i64, 6, 7], [0u64, 8, 99]);
        let mut sizes = [19u64, 18, 24, 18];
        let [d_size, a_size, v_size, starts_size] = &mut sizes;
        if sparse {
            set_buffer!(data, ctx, q, c"d", &d[..], d_size);
        }
        set_buffer!(data, ctx, q, c"a", &a[..], a_size);
        set_buffer!(data, ctx, q, c"v", &v[..], v_size);
        set_buffer!(offsets, ctx, q, c"v", &starts[..], starts_size);
        ok!(tiledb_query_submit, ctx, q);
        free!(tiledb_query_free, q);
        close(ctx, array);

        (d, a, v, starts) = ([0; 3], [0; 3], [0; 3], [0; 3]);
        sizes = [24; 4];
        let [d_size, a_size, v_size, starts_size] = &mut sizes;
        let array = open(ctx, &uri, READ);
        let mut q = query(ctx, array, READ, ROW);
        for (name, values, size) in [
            (c"d", &mut d, d_size),
            (c"a", &mut a, a_size),
            (c"v", &mut v, v_size),
        ] {
            set_buffer!(data, ctx, q, name, &mut values[..], size);
        }
        set_buffer!(offsets, ctx, q, c"v", &mut starts[..], starts_size);
        ok!(tiledb_query_submit, ctx, q);
        free!(tiledb_query_free, q);
        close(ctx, array);
        assert_eq!(sizes, [16, 16, 24, 16]);
        assert_eq!((d, a), ([1, 2, 0], [10, 20, 0]));
        assert_eq!((v, starts), ([5, 6, 7], [0, 8, 0]));
    }
}

/// What a read of a box is estimated to give, in bytes of offsets and of values, where `abc` was
/// written to each cell of another one.
fn estimated(
    (domain, extent, current): ((i64, i64), i64, Option<(i64, i64)>),
    written: (i64, i64),
    asked: (i64, i64),
) -> (u64, u64) {
    let (ctx, folder) = (Ctx::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("array").to_str().unwrap().to_owned();
    let mut schema = ArraySchema::dense()
        .dimension("d", domain.0..=domain.1, extent)
        .var_attribute("t", Datatype::StringAscii);
    if let Some((low, high)) = current {
        schema = schema.current_domain(vec![Range::of(low, high)]);
    }
    let context = Context::new(Config::default(), None).unwrap();
    let schema = schema.build().unwrap();
    context.array(&path).create(schema).unwrap();
    let uri = CString::new(path).unwrap();
    let within = |array: Handle, q: Handle, (low, high): (i64, i64)| {
        let mut sub = null();
        ok!(tiledb_subarray_alloc, ctx.0, array, &mut sub);
        ok!(
            tiledb_subarray_add_range,
            ctx.0,
            sub,
            0,
            &[low],
            &[high],
            null()
        );
        ok!(tiledb_query_set_subarray_t, ctx.0, q, sub);
        free!(tiledb_subarray_free, sub);
    };
    let cells = (written.1 - written.0 + 1) as u64;
    let t = b"abc".repeat(cells as usize);
    let offsets: Vec<u64> = (0..cells).map(|i| 3 * i).collect();
    let array = open(ctx.0, &uri, WRITE);
    let mut q = query(ctx.0, array, WRITE, ROW);
    within(array, q, written);
    let mut sizes = [bytes(&t), bytes(&offsets)];
    let [t_size, o_size] = &mut sizes;
    set_buffer!(data, ctx.0, q, c"t", &t[..], t_size);
    set_buffer!(offsets, ctx.0, q, c"t", &offsets[..], o_size);
    ok!(tiledb_query_submit, ctx.0, q);
    free!(tiledb_query_free, q);
    close(ctx.0, array);

    let array = open(ctx.0, &uri, READ);
    let mut q = query(ctx.0, array, READ, ROW);
    within(array, q, asked);
    let (mut off, mut val) = (0u64, 0u64);
    ok!(
        tiledb_query_get_est_result_size_var,
        ctx.0,
        q,
        c"t",
        &mut off,
        &mut val
    );
    free!(tiledb_query_free, q);
    close(ctx.0, array);
    (off, val)
}

#[test]
fn estimates_of_dense_arrays_are_the_references() {
    // The tile has 24 bytes: seven cells and three that are filled up. Within a current domain its
    // first cell is the first that was written.
    let bounded = ((0, 19), 10, Some((3, 16)));
    assert_eq!(estimated(bounded, (3, 9), (3, 16)), (112, 24));
    assert_eq!(estimated(bounded, (3, 9), (3, 7)), (40, 12));
    let whole = ((0, 19), 10, None);
    assert_eq!(estimated(whole, (3, 9), (3, 16)), (112, 17));
    // At the ends of 64 bits all cells of a tile are one real.
    let first = i64::MIN + 1;
    let far = ((first, first + 9), 7, None);
    assert_eq!(
        estimated(far, (first, first + 9), (first, first + 2)),
        (24, 21)
    );
}

//! Reads through the C API: small buffers, resubmission, shapes of offsets, aggregates, conditions,
//! estimates, plans.
#![allow(unsafe_code, clippy::unwrap_used, reason = "tests of a C API")]

mod capi;

use capi::{
    ASCII, Attr, COMPLETED, Ctx, FLOAT64, GLOBAL, Handle, INCOMPLETE, INT32, INT64, READ, ROW,
    UNORDERED, WRITE, bytes, close, create, fails, free, null, ok, open, query, set_buffer, status,
};
use std::ffi::{CStr, CString, c_char};

const CELLS: usize = 100;
const ATTRIBUTES: &[Attr] = &[
    Attr::fixed(c"a", INT64),
    Attr::var(c"s", ASCII).or_null(),
    Attr::var(c"v", INT32),
];

/// The cell `i` of `s`; `None` is null.
fn text(i: usize) -> Option<String> {
    (!i.is_multiple_of(7)).then(|| "x".repeat(i % 5))
}
/// The cell `i` of `v`.
fn list(i: usize) -> Vec<i32> {
    (0..i % 4).map(|k| (i * 10 + k) as i32).collect()
}

fn uri(folder: &tempfile::TempDir) -> CString {
    CString::new(folder.path().join("array").to_str().unwrap()).unwrap()
}

/// Writes the cells, for a sparse array with their coordinates 1, 2, 3 ...
fn fill(ctx: Handle, uri: &CStr, sparse: bool) {
    create(ctx, uri, sparse, CELLS as i64, 10, ATTRIBUTES);
    let array = open(ctx, uri, WRITE);
    let mut q = query(ctx, array, WRITE, if sparse { UNORDERED } else { ROW });
    let d: Vec<i64> = (1..=CELLS as i64).collect();
    let a: Vec<i64> = (0..CELLS as i64).map(|i| i * i).collect();
    let (mut s, mut s_offsets, mut s_validity) = (Vec::new(), Vec::new(), Vec::new());
    let (mut v, mut v_offsets) = (Vec::new(), Vec::new());
    for i in 0..CELLS {
        s_offsets.push(s.len() as u64);
        s_validity.push(u8::from(text(i).is_some()));
        s.extend(text(i).unwrap_or_default().bytes());
        v_offsets.push(bytes(&v));
        v.extend(list(i));
    }
    let mut sizes = [
        bytes(&d),
        bytes(&a),
        bytes(&s),
        bytes(&s_offsets),
        bytes(&s_validity),
        bytes(&v),
        bytes(&v_offsets),
    ];
    let [d_size, a_size, s_size, so_size, sv_size, v_size, vo_size] = &mut sizes;
    if sparse {
        set_buffer!(data, ctx, q, c"d", &d[..], d_size);
    }
    set_buffer!(data, ctx, q, c"a", &a[..], a_size);
    set_buffer!(data, ctx, q, c"s", &s[..], s_size);
    set_buffer!(offsets, ctx, q, c"s", &s_offsets[..], so_size);
    set_buffer!(validity, ctx, q, c"s", &s_validity[..], sv_size);
    set_buffer!(data, ctx, q, c"v", &v[..], v_size);
    set_buffer!(offsets, ctx, q, c"v", &v_offsets[..], vo_size);
    ok!(tiledb_query_submit, ctx, q);
    assert_eq!(status(ctx, q), COMPLETED);
    let mut fragments = 0u32;
    ok!(tiledb_query_get_fragment_num, ctx, q, &mut fragments);
    assert_eq!(fragments, 1);
    free!(tiledb_query_free, q);
    close(ctx, array);
}

/// Reads everything with room for a few cells at a time; the same buffers serve all submissions.
fn read_in_steps(ctx: Handle, uri: &CStr, layout: i32, cells: usize) -> usize {
    let array = open(ctx, uri, READ);
    let mut q = query(ctx, array, READ, layout);
    let mut a = vec![0i64; cells];
    let (mut s, mut so, mut sv) = (vec![0u8; cells * 3], vec![0u64; cells], vec![9u8; cells]);
    let (mut v, mut vo) = (vec![0i32; cells * 3], vec![0u64; cells]);
    let mut sizes = [
        bytes(&a),
        bytes(&s),
        bytes(&so),
        bytes(&sv),
        bytes(&v),
        bytes(&vo),
    ];
    let at = sizes.as_mut_ptr();
    let size = |i: usize| at.wrapping_add(i);
    // SAFETY: the sizes live as long as the query.
    let now = |i: usize| unsafe { size(i).read() } as usize;
    set_buffer!(data, ctx, q, c"a", &mut a[..], size(0));
    set_buffer!(data, ctx, q, c"s", &mut s[..], size(1));
    set_buffer!(offsets, ctx, q, c"s", &mut so[..], size(2));
    set_buffer!(validity, ctx, q, c"s", &mut sv[..], size(3));
    set_buffer!(data, ctx, q, c"v", &mut v[..], size(4));
    set_buffer!(offsets, ctx, q, c"v", &mut vo[..], size(5));
    let (mut seen, mut submissions) = (0, 0);
    loop {
        ok!(tiledb_query_submit, ctx, q);
        submissions += 1;
        let n = now(0) / 8;
        assert!(n > 0, "no cell in submission {submissions}");
        assert_eq!((now(2), now(3), now(5)), (n * 8, n, n * 8));
        for k in 0..n {
            let i = seen + k;
            assert_eq!(a[k], (i * i) as i64);
            let end = |offsets: &[u64], all: usize| {
                if k + 1 < n {
                    offsets[k + 1] as usize
                } else {
                    all
                }
            };
            assert_eq!(sv[k], u8::from(text(i).is_some()), "{i}");
            assert_eq!(
                s[so[k] as usize..end(&so, now(1))],
                *text(i).unwrap_or_default().as_bytes(),
                "{i}"
            );
            assert_eq!(v[vo[k] as usize / 4..end(&vo, now(4)) / 4], list(i), "{i}");
        }
        seen += n;
        let mut reason = -1i32;
        ok!(tiledb_query_get_status_details, ctx, q, &mut reason);
        match status(ctx, q) {
            COMPLETED => break assert_eq!(reason, 0),
            INCOMPLETE => assert_eq!(reason, 1),
            other => panic!("{other}"),
        }
        let mut has = 0i32;
        ok!(tiledb_query_has_results, ctx, q, &mut has);
        assert_eq!(has, 1);
    }
    assert_eq!(seen, CELLS);
    free!(tiledb_query_free, q);
    close(ctx, array);
    submissions
}

#[test]
fn tiny_buffers_give_all_cells_bit_by_bit() {
    let ctx = Ctx::new();
    for sparse in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let uri = uri(&folder);
        fill(ctx.0, &uri, sparse);
        for layout in if sparse {
            &[ROW, GLOBAL, UNORDERED][..]
        } else {
            &[ROW, GLOBAL][..]
        } {
            for cells in [3, 7, CELLS] {
                let submissions = read_in_steps(ctx.0, &uri, *layout, cells);
                assert!(
                    if cells == CELLS {
                        submissions == 1
                    } else {
                        submissions >= CELLS / cells
                    },
                    "{submissions}"
                );
            }
        }
    }
}

#[test]
fn a_buffer_for_no_cell_is_incomplete_and_larger_ones_go_on() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder);
    fill(ctx.0, &uri, true);
    let array = open(ctx.0, &uri, READ);
    let mut q = query(ctx.0, array, READ, ROW);
    let mut a = vec![0i64; CELLS];
    let mut size = 7u64;
    set_buffer!(data, ctx.0, q, c"a", &mut a[..], &mut size);
    ok!(tiledb_query_submit, ctx.0, q);
    assert_eq!((status(ctx.0, q), size), (INCOMPLETE, 0));
    let mut has = 1i32;
    ok!(tiledb_query_has_results, ctx.0, q, &mut has);
    assert_eq!(has, 0);
    size = 16;
    set_buffer!(data, ctx.0, q, c"a", &mut a[..], &mut size);
    ok!(tiledb_query_submit, ctx.0, q);
    assert_eq!(
        (status(ctx.0, q), size, &a[..2]),
        (INCOMPLETE, 16, &[0, 1][..])
    );
    size = bytes(&a);
    set_buffer!(data, ctx.0, q, c"a", &mut a[..], &mut size);
    // Another field cannot join now.
    let mut other = bytes(&a);
    let message = fails!(
        tiledb_query_set_data_buffer,
        ctx.0,
        q,
        c"d",
        &mut a[..],
        &mut other
    );
    assert!(message.contains("'d'"), "{message}");
    ok!(tiledb_query_submit, ctx.0, q);
    assert_eq!((status(ctx.0, q), size, a[0]), (COMPLETED, 98 * 8, 4));
    free!(tiledb_query_free, q);
    close(ctx.0, array);
}

#[test]
fn buffers_of_another_shape_are_errors() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder);
    fill(ctx.0, &uri, false);
    let array = open(ctx.0, &uri, READ);
    let mut q = query(ctx.0, array, READ, ROW);
    let mut room = [0u64; 8];
    let mut size = bytes(&room);
    assert!(
        fails!(
            tiledb_query_set_offsets_buffer,
            ctx.0,
            q,
            c"a",
            &mut room[..],
            &mut size
        )
        .contains("fixed")
    );
    assert!(
        fails!(
            tiledb_query_set_validity_buffer,
            ctx.0,
            q,
            c"a",
            &mut room[..],
            &mut size
        )
        .contains("nullable")
    );
    assert!(
        fails!(
            tiledb_query_set_data_buffer,
            ctx.0,
            q,
            c"none",
            &mut room[..],
            &mut size
        )
        .contains("none")
    );
    fails!(
        tiledb_query_set_data_buffer,
        ctx.0,
        q,
        c"a",
        &mut room[..],
        null()
    );
    fails!(
        tiledb_query_set_data_buffer,
        ctx.0,
        q,
        c"a",
        null(),
        &mut size
    );
    assert!(fails!(tiledb_query_submit, ctx.0, q).contains("not set"));
    set_buffer!(data, ctx.0, q, c"s", &mut room[..], &mut size);
    assert!(fails!(tiledb_query_submit, ctx.0, q).contains("offsets"));
    free!(tiledb_query_free, q);
    // An array open for reading takes no writes.
    let mut write = null();
    fails!(tiledb_query_alloc, ctx.0, array, WRITE, &mut write);
    assert!(write.is_null());
    close(ctx.0, array);
}

/// Offsets of `v` in a given format, and how many bytes of them.
fn offsets_of(settings: &[(&CStr, &CStr)], width: usize, extra: bool) -> Vec<u64> {
    let ctx = Ctx::with(settings);
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder);
    fill(Ctx::new().0, &uri, true);
    let array = open(ctx.0, &uri, READ);
    let mut q = query(ctx.0, array, READ, ROW);
    let count = CELLS + usize::from(extra);
    let (mut v, mut offsets) = ([0i32; 4 * CELLS], vec![0u8; count * width]);
    let (mut v_size, mut o_size) = (bytes(&v), bytes(&offsets));
    set_buffer!(data, ctx.0, q, c"v", &mut v[..], &mut v_size);
    set_buffer!(offsets, ctx.0, q, c"v", &mut offsets[..], &mut o_size);
    ok!(tiledb_query_submit, ctx.0, q);
    assert_eq!(
        (status(ctx.0, q), o_size as usize),
        (COMPLETED, count * width)
    );
    free!(tiledb_query_free, q);
    close(ctx.0, array);
    let number = |b: &[u8]| {
        let mut wide = [0; 8];
        wide[..b.len()].copy_from_slice(b);
        u64::from_le_bytes(wide)
    };
    offsets.chunks(width).map(number).collect()
}

#[test]
fn offsets_come_in_every_format() {
    let (mut starts, mut at) = (Vec::new(), 0);
    for i in 0..CELLS {
        starts.push(at);
        at += list(i).len() as u64;
    }
    let all = at;
    let in_bytes: Vec<u64> = starts.iter().map(|n| n * 4).collect();
    let (bits, mode, extra) = (
        c"sm.var_offsets.bitsize",
        c"sm.var_offsets.mode",
        c"sm.var_offsets.extra_element",
    );
    assert_eq!(offsets_of(&[], 8, false), in_bytes);
    assert_eq!(offsets_of(&[(bits, c"32")], 4, false), in_bytes);
    assert_eq!(offsets_of(&[(mode, c"elements")], 8, false), starts);
    assert_eq!(
        offsets_of(&[(bits, c"32"), (mode, c"elements")], 4, false),
        starts
    );
    let with = |mut offsets: Vec<u64>, last: u64| {
        offsets.push(last);
        offsets
    };
    assert_eq!(
        offsets_of(&[(extra, c"true")], 8, true),
        with(in_bytes, all * 4)
    );
    assert_eq!(
        offsets_of(
            &[(extra, c"true"), (bits, c"32"), (mode, c"elements")],
            4,
            true
        ),
        with(starts, all)
    );
}

#[test]
fn offsets_with_an_extra_element_are_written_and_small_buffers_read() {
    let settings: &[(&CStr, &CStr)] = &[
        (c"sm.var_offsets.bitsize", c"32"),
        (c"sm.var_offsets.mode", c"elements"),
        (c"sm.var_offsets.extra_element", c"true"),
    ];
    let ctx = Ctx::with(settings);
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder);
    create(ctx.0, &uri, false, 4, 2, &ATTRIBUTES[2..]);
    let array = open(ctx.0, &uri, WRITE);
    let mut q = query(ctx.0, array, WRITE, ROW);
    let (v, offsets) = ([1i32, 2, 3, 4, 5, 99], [0u32, 2, 2, 3, 5]);
    let (mut v_size, mut o_size) = (bytes(&v), bytes(&offsets));
    set_buffer!(data, ctx.0, q, c"v", &v, &mut v_size);
    set_buffer!(offsets, ctx.0, q, c"v", &offsets, &mut o_size);
    ok!(tiledb_query_submit, ctx.0, q);
    free!(tiledb_query_free, q);
    close(ctx.0, array);
    let array = open(ctx.0, &uri, READ);
    let mut q = query(ctx.0, array, READ, ROW);
    // Room for two cells and the extra element.
    let (mut v, mut offsets, mut seen) = ([0i32; 8], [0u32; 3], Vec::new());
    loop {
        let (mut v_size, mut o_size) = (bytes(&v), bytes(&offsets));
        set_buffer!(data, ctx.0, q, c"v", &mut v[..], &mut v_size);
        set_buffer!(offsets, ctx.0, q, c"v", &mut offsets[..], &mut o_size);
        ok!(tiledb_query_submit, ctx.0, q);
        let n = o_size as usize / 4;
        assert_eq!(u64::from(offsets[n - 1]) * 4, v_size);
        seen.extend(
            offsets[..n]
                .windows(2)
                .map(|w| v[w[0] as usize..w[1] as usize].to_vec()),
        );
        if status(ctx.0, q) == COMPLETED {
            break;
        }
    }
    assert_eq!(seen, [vec![1, 2], vec![], vec![3], vec![4, 5]]);
    free!(tiledb_query_free, q);
    close(ctx.0, array);
}

#[test]
fn aggregates_conditions_estimates_and_plans() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder);
    fill(ctx, &uri, true);
    let array = open(ctx, &uri, READ);
    let mut q = query(ctx, array, READ, UNORDERED);
    let (mut condition, mut ten, limit) = (null(), null(), [100i64]);
    ok!(tiledb_query_condition_alloc, ctx, &mut condition);
    ok!(
        tiledb_query_condition_init,
        ctx,
        condition,
        c"a",
        &limit,
        8u64,
        0
    );
    // a < 100 and not a = 25: the cells 0 to 9 but 5.
    ok!(tiledb_query_condition_alloc, ctx, &mut ten);
    ok!(
        tiledb_query_condition_init,
        ctx,
        ten,
        c"a",
        &[25i64],
        8u64,
        4
    );
    let (mut not, mut both) = (null(), null());
    ok!(tiledb_query_condition_negate, ctx, ten, &mut not);
    ok!(
        tiledb_query_condition_combine,
        ctx,
        condition,
        not,
        0,
        &mut both
    );
    ok!(tiledb_query_set_condition, ctx, q, both);
    let (mut channel, mut sum, mut mean, mut operator, mut count) =
        (null(), null(), null(), null(), null());
    ok!(tiledb_query_get_default_channel, ctx, q, &mut channel);
    ok!(tiledb_channel_operator_sum_get, ctx, &mut operator);
    ok!(
        tiledb_create_unary_aggregate,
        ctx,
        q,
        operator,
        c"a",
        &mut sum
    );
    ok!(tiledb_channel_apply_aggregate, ctx, channel, c"Sum", sum);
    ok!(tiledb_channel_operator_mean_get, ctx, &mut operator);
    ok!(
        tiledb_create_unary_aggregate,
        ctx,
        q,
        operator,
        c"a",
        &mut mean
    );
    ok!(tiledb_channel_apply_aggregate, ctx, channel, c"Mean", mean);
    ok!(tiledb_aggregate_count_get, ctx, &mut count);
    ok!(
        tiledb_channel_apply_aggregate,
        ctx,
        channel,
        c"Count",
        count
    );
    let message = fails!(
        tiledb_create_unary_aggregate,
        ctx,
        q,
        operator,
        c"s",
        &mut sum
    );
    assert!(message.contains('s'), "{message}");
    let mut field = null();
    ok!(tiledb_query_get_field, ctx, q, c"Sum", &mut field);
    let (mut kind, mut origin) = (-1i32, -1i32);
    ok!(tiledb_field_datatype, ctx, field, &mut kind);
    ok!(tiledb_field_origin, ctx, field, &mut origin);
    assert_eq!((kind, origin), (INT64, 2));
    let (mut total, mut average, mut cells, mut a) = ([0i64], [0f64], [0u64], [0i64; CELLS]);
    let mut sizes = [8u64, 8, 8, bytes(&a)];
    let [total_size, average_size, cells_size, a_size] = &mut sizes;
    set_buffer!(data, ctx, q, c"Sum", &mut total[..], total_size);
    set_buffer!(data, ctx, q, c"Mean", &mut average[..], average_size);
    set_buffer!(data, ctx, q, c"Count", &mut cells[..], cells_size);
    set_buffer!(data, ctx, q, c"a", &mut a[..], a_size);
    let mut estimate = 0u64;
    ok!(
        tiledb_query_get_est_result_size,
        ctx,
        q,
        c"a",
        &mut estimate
    );
    assert!(estimate > 0 && estimate <= 8 * CELLS as u64, "{estimate}");
    let (mut off, mut val, mut valid) = (0u64, 0u64, 0u64);
    ok!(
        tiledb_query_get_est_result_size_var_nullable,
        ctx,
        q,
        c"s",
        &mut off,
        &mut val,
        &mut valid
    );
    assert_eq!((off, valid), (8 * CELLS as u64, CELLS as u64));
    assert!(val > 0);
    assert!(fails!(tiledb_query_get_est_result_size, ctx, q, c"s", &mut off).contains("var-sized"));
    let message = fails!(
        tiledb_query_get_est_result_size_var,
        ctx,
        q,
        c"s",
        &mut off,
        &mut val
    );
    assert!(message.contains("nullable"), "{message}");
    // Six cells of one tile and one of the next, of those that follow each other.
    let (mut few, mut sub) = (query(ctx, array, READ, UNORDERED), null());
    ok!(tiledb_subarray_alloc, ctx, array, &mut sub);
    ok!(
        tiledb_subarray_add_range,
        ctx,
        sub,
        0,
        &[5i64],
        &[11i64],
        null()
    );
    assert!(
        fails!(
            tiledb_subarray_add_range,
            ctx,
            sub,
            0,
            &[5i64],
            &[101i64],
            null()
        )
        .contains("bounds")
    );
    ok!(tiledb_query_set_subarray_t, ctx, few, sub);
    ok!(
        tiledb_query_get_est_result_size,
        ctx,
        few,
        c"a",
        &mut estimate
    );
    assert_eq!(estimate, 7 * 8);
    free!(tiledb_query_free, few; tiledb_subarray_free, sub);
    let mut plan = null();
    ok!(tiledb_query_get_plan, ctx, q, &mut plan);
    let (mut data, mut length): (*const c_char, usize) = (std::ptr::null(), 0);
    assert_eq!(
        capi::raw!(tiledb_string_view, plan, &mut data, &mut length),
        0
    );
    let plan_text = capi::text(data);
    assert_eq!(plan_text.len(), length);
    for part in ["TileDB Query Plan", "\"Query.Strategy.Name\"", "\"sparse\""] {
        assert!(plan_text.contains(part), "{plan_text}");
    }
    ok!(tiledb_query_submit, ctx, q);
    assert_eq!(status(ctx, q), COMPLETED);
    let expected: Vec<i64> = (0..10).filter(|i| *i != 5).map(|i| i * i).collect();
    let sum_of: i64 = expected.iter().sum();
    assert_eq!((total[0], cells[0]), (sum_of, 9));
    assert!((average[0] - sum_of as f64 / 9.0).abs() < 1e-9);
    assert_eq!(a[..9], expected[..]);
    assert_eq!(sizes, [8, 8, 8, 72]);
    let mut status_of = FLOAT64;
    ok!(tiledb_query_get_type, ctx, q, &mut status_of);
    assert_eq!(status_of, READ);
    capi::raw!(tiledb_aggregate_free, ctx, &mut sum);
    capi::raw!(tiledb_aggregate_free, ctx, &mut mean);
    capi::raw!(tiledb_query_channel_free, ctx, &mut channel);
    capi::raw!(tiledb_query_field_free, ctx, &mut field);
    capi::raw!(tiledb_string_free, &mut plan);
    free!(tiledb_query_condition_free, condition; tiledb_query_condition_free, ten;
          tiledb_query_condition_free, not; tiledb_query_condition_free, both; tiledb_query_free, q);
    close(ctx, array);
}

#[test]
fn subarrays_ranges_and_points() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder);
    fill(ctx.0, &uri, false);
    let array = open(ctx.0, &uri, READ);
    let mut sub = null();
    ok!(tiledb_subarray_alloc, ctx.0, array, &mut sub);
    ok!(
        tiledb_subarray_add_range,
        ctx.0,
        sub,
        0,
        &[5i64],
        &[6i64],
        null()
    );
    ok!(
        tiledb_subarray_add_point_ranges,
        ctx.0,
        sub,
        0,
        &[20i64, 30],
        2u64
    );
    let mut num = 0u64;
    ok!(tiledb_subarray_get_range_num, ctx.0, sub, 0, &mut num);
    assert_eq!(num, 3);
    assert!(
        fails!(
            tiledb_subarray_add_range,
            ctx.0,
            sub,
            0,
            &[9i64],
            &[8i64],
            null()
        )
        .contains("larger")
    );
    assert!(
        fails!(
            tiledb_subarray_add_range,
            ctx.0,
            sub,
            1,
            &[1i64],
            &[2i64],
            null()
        )
        .contains("dimension")
    );
    let mut q = query(ctx.0, array, READ, ROW);
    ok!(tiledb_query_set_subarray_t, ctx.0, q, sub);
    let (mut a, mut size) = ([0i64; 8], 64u64);
    set_buffer!(data, ctx.0, q, c"a", &mut a[..], &mut size);
    ok!(tiledb_query_submit, ctx.0, q);
    assert_eq!(
        (status(ctx.0, q), size, &a[..4]),
        (COMPLETED, 32, &[16, 25, 361, 841][..])
    );
    free!(tiledb_query_free, q; tiledb_subarray_free, sub);
    close(ctx.0, array);
}

#[test]
fn what_a_read_is_of_is_said_before_its_first_submission() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&folder);
    fill(ctx, &uri, true);
    let array = open(ctx, &uri, READ);
    let (mut sub, mut condition) = (null(), null());
    ok!(tiledb_subarray_alloc, ctx, array, &mut sub);
    ok!(tiledb_query_condition_alloc, ctx, &mut condition);
    ok!(
        tiledb_query_condition_init,
        ctx,
        condition,
        c"a",
        &[100i64],
        8u64,
        0
    );
    for (room, expected) in [(1, INCOMPLETE), (CELLS, COMPLETED)] {
        let mut q = query(ctx, array, READ, ROW);
        let (mut a, mut d) = (vec![0i64; room], vec![0i64; room]);
        let (mut a_size, mut d_size) = (bytes(&a), bytes(&d));
        set_buffer!(data, ctx, q, c"a", &mut a[..], &mut a_size);
        ok!(tiledb_query_submit, ctx, q);
        let message = fails!(
            tiledb_query_set_data_buffer,
            ctx,
            q,
            c"d",
            &mut d[..],
            &mut d_size
        );
        assert!(message.contains("'d'"), "{message}");
        fails!(tiledb_query_set_condition, ctx, q, condition);
        fails!(tiledb_query_set_subarray_t, ctx, q, sub);
        assert_eq!(status(ctx, q), expected);
        // The buffers that there are may be others.
        set_buffer!(data, ctx, q, c"a", &mut d[..], &mut d_size);
        ok!(tiledb_query_submit, ctx, q);
        assert_eq!((status(ctx, q), d_size), (expected, bytes(&a)));
        // Finalized, a read is at its end.
        ok!(tiledb_query_finalize, ctx, q);
        ok!(tiledb_query_submit, ctx, q);
        assert_eq!((status(ctx, q), d_size), (COMPLETED, bytes(&a)));
        free!(tiledb_query_free, q);
    }
    free!(tiledb_query_condition_free, condition; tiledb_subarray_free, sub);
    close(ctx, array);
}

#[test]
fn cells_shorter_than_a_fill_value_need_no_room_for_one() {
    let ctx = Ctx::new();
    let ctx = ctx.0;
    for cells in [vec![], vec![7i32]] {
        let folder = tempfile::tempdir().unwrap();
        let uri = uri(&folder);
        create(ctx, &uri, false, 3, 3, &[Attr::var(c"v", INT32)]);
        let array = open(ctx, &uri, WRITE);
        let mut q = query(ctx, array, WRITE, ROW);
        let end = bytes(&cells);
        let (starts, mut size, mut starts_size) = ([0, end, end], end, 24u64);
        set_buffer!(data, ctx, q, c"v", &cells[..], &mut size);
        set_buffer!(offsets, ctx, q, c"v", &starts[..], &mut starts_size);
        ok!(tiledb_query_submit, ctx, q);
        free!(tiledb_query_free, q);
        close(ctx, array);
        for layout in [ROW, GLOBAL] {
            let array = open(ctx, &uri, READ);
            let mut q = query(ctx, array, READ, layout);
            let (mut v, mut found) = ([0i32; 1], [9u64; 3]);
            let (mut size, mut found_size) = (end, 24u64);
            set_buffer!(data, ctx, q, c"v", &mut v[..], &mut size);
            set_buffer!(offsets, ctx, q, c"v", &mut found[..], &mut found_size);
            ok!(tiledb_query_submit, ctx, q);
            assert_eq!(status(ctx, q), COMPLETED, "{cells:?} in layout {layout}");
            assert_eq!((size, found_size, found), (end, 24, starts));
            assert_eq!(&v[..cells.len()], cells);
            free!(tiledb_query_free, q);
            close(ctx, array);
        }
    }
}

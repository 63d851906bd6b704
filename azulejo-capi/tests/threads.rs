//! One context, one array and one query used by many threads at once.
#![allow(unsafe_code, clippy::unwrap_used, reason = "tests of a C API")]

mod capi;

use capi::{
    Attr, COMPLETED, Ctx, Handle, INT64, READ, ROW, WRITE, bytes, close, create, free, null, ok,
    open, query, raw, set_buffer, status,
};
use std::ffi::CString;

const A: &[Attr] = &[Attr::fixed(c"a", INT64)];
const SIZE: usize = 200;

/// Handles are addresses; the API says which may be shared.
#[derive(Clone, Copy)]
struct Shared(Handle);
// SAFETY: contexts, and arrays open for reading, may be used by several threads.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    fn get(self) -> Handle {
        self.0
    }
}

fn write(ctx: Handle, uri: &CString, value: i64) {
    let array = open(ctx, uri, WRITE);
    let mut q = query(ctx, array, WRITE, ROW);
    let cells = vec![value; SIZE];
    let mut size = bytes(&cells);
    set_buffer!(data, ctx, q, c"a", &cells[..], &mut size);
    ok!(tiledb_query_submit, ctx, q);
    free!(tiledb_query_free, q);
    close(ctx, array);
}

fn read(ctx: Handle, array: Handle) -> Vec<i64> {
    let mut q = query(ctx, array, READ, ROW);
    let mut cells = vec![-1i64; SIZE];
    let mut size = bytes(&cells);
    set_buffer!(data, ctx, q, c"a", &mut cells[..], &mut size);
    ok!(tiledb_query_submit, ctx, q);
    assert_eq!(status(ctx, q), COMPLETED);
    free!(tiledb_query_free, q);
    cells
}

#[test]
fn threads_share_a_context_and_an_array() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let uri = CString::new(folder.path().join("array").to_str().unwrap()).unwrap();
    create(ctx.0, &uri, false, SIZE as i64, 10, A);
    write(ctx.0, &uri, 7);
    let (shared, array) = (Shared(ctx.0), Shared(open(ctx.0, &uri, READ)));
    let uri = &uri;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for turn in 0..5 {
                    // The open array stays as it was.
                    assert_eq!(read(shared.get(), array.get()), [7; SIZE]);
                    write(shared.get(), uri, thread * 10 + turn);
                    let now = open(shared.get(), uri, READ);
                    let cells = read(shared.get(), now);
                    assert!(cells.iter().all(|cell| *cell == cells[0]));
                    close(shared.get(), now);
                    // Errors of one thread do not disturb the calls of another.
                    let mut none = null();
                    raw!(tiledb_array_alloc, shared.get(), c"", &mut none);
                    assert!(none.is_null());
                    let _ = capi::last_error(shared.get());
                }
            });
        }
    });
    close(ctx.0, array.get());
}

#[test]
fn one_query_submitted_by_many_threads_is_whole_each_time() {
    let ctx = Ctx::new();
    let folder = tempfile::tempdir().unwrap();
    let uri = CString::new(folder.path().join("array").to_str().unwrap()).unwrap();
    create(ctx.0, &uri, false, SIZE as i64, 10, A);
    write(ctx.0, &uri, 3);
    let array = open(ctx.0, &uri, READ);
    let mut q = query(ctx.0, array, READ, ROW);
    let mut cells = vec![-1i64; SIZE];
    let mut size = bytes(&cells);
    set_buffer!(data, ctx.0, q, c"a", &mut cells[..], &mut size);
    let (shared, shared_query) = (Shared(ctx.0), Shared(q));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for _ in 0..20 {
                    assert_eq!(
                        raw!(tiledb_query_submit, shared.get(), shared_query.get()),
                        0
                    );
                }
            });
        }
    });
    assert_eq!((status(ctx.0, q), size), (COMPLETED, 8 * SIZE as u64));
    assert_eq!(cells, [3; SIZE]);
    free!(tiledb_query_free, q);
    close(ctx.0, array);
}

#[test]
fn contexts_come_and_go_in_many_threads() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let ctx = Ctx::new();
                    let mut domain = null();
                    ok!(tiledb_domain_alloc, ctx.0, &mut domain);
                    free!(tiledb_domain_free, domain);
                }
            });
        }
    });
}

//! Messages: what is written is read again, and what is damaged is an error. That the reference
//! reads them too, and we its own, is `cargo xtask interop messages`.
#![allow(unsafe_code, clippy::unwrap_used, reason = "tests of a C API")]

mod capi;

use capi::{
    ASCII, Attr, COMPLETED, Ctx, Handle, INT64, READ, ROW, UNORDERED, WRITE, bytes, close, create,
    fails, free, last_error, null, ok, open, query, raw, set_buffer, status,
};
use std::ffi::CString;

const JSON: i32 = 0;
const CAPNP: i32 = 1;

const ATTRIBUTES: [Attr; 2] = [Attr::fixed(c"a", INT64), Attr::var(c"v", ASCII).or_null()];

/// A folder, and the URI of an array in it.
fn place() -> (tempfile::TempDir, CString) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array");
    let uri = CString::new(path.to_str().unwrap()).unwrap();
    (folder, uri)
}

/// A buffer handle over bytes, which must stay.
fn buffer(ctx: &Ctx, data: &[u8]) -> Handle {
    let mut buffer = null();
    ok!(tiledb_buffer_alloc, ctx.0, &mut buffer);
    ok!(
        tiledb_buffer_set_data,
        ctx.0,
        buffer,
        data,
        data.len() as u64
    );
    buffer
}

/// The bytes of a buffer handle, which is freed.
fn content(ctx: &Ctx, mut buffer: Handle) -> Vec<u8> {
    let (mut data, mut size) = (std::ptr::null::<u8>(), 0u64);
    ok!(tiledb_buffer_get_data, ctx.0, buffer, &mut data, &mut size);
    // SAFETY: the buffer has so many bytes, and lives.
    let content = unsafe { std::slice::from_raw_parts(data, size as usize) }.to_vec();
    free!(tiledb_buffer_free, buffer);
    content
}

/// A message made by a function whose last argument takes the buffer.
macro_rules! message {
    ($name:ident, $ctx:expr $(, $arg:expr)*) => {{
        let mut made = null();
        ok!($name, $ctx.0 $(, $arg)*, &mut made);
        content($ctx, made)
    }};
}

fn schema_of(ctx: &Ctx, array: Handle) -> Handle {
    let mut schema = null();
    ok!(tiledb_array_get_schema, ctx.0, array, &mut schema);
    schema
}

/// An array of ten cells.
fn filled(ctx: &Ctx, uri: &CString, sparse: bool) {
    let attributes = &ATTRIBUTES[..if sparse { 2 } else { 1 }];
    create(ctx.0, uri, sparse, 10, 5, attributes);
    let array = open(ctx.0, uri, WRITE);
    let mut write = query(ctx.0, array, WRITE, if sparse { UNORDERED } else { ROW });
    let values: Vec<i64> = (1..=10).collect();
    let mut size = bytes(&values);
    set_buffer!(data, ctx.0, write, c"a", &values[..], &mut size);
    let (text, offsets, valid) = (b"0123456789", (0..10u64).collect::<Vec<_>>(), [1u8; 10]);
    let (mut text_size, mut offsets_size, mut valid_size) = (10u64, bytes(&offsets), 10u64);
    if sparse {
        set_buffer!(data, ctx.0, write, c"d", &values[..], &mut size);
        set_buffer!(data, ctx.0, write, c"v", text, &mut text_size);
        set_buffer!(offsets, ctx.0, write, c"v", &offsets[..], &mut offsets_size);
        set_buffer!(validity, ctx.0, write, c"v", &valid, &mut valid_size);
    }
    ok!(tiledb_query_submit, ctx.0, write);
    assert_eq!(status(ctx.0, write), COMPLETED);
    free!(tiledb_query_free, write);
    close(ctx.0, array);
}

#[test]
fn schemas_are_the_same_after_a_journey() {
    let (ctx, (_folder, uri)) = (Ctx::new(), place());
    filled(&ctx, &uri, true);
    let array = open(ctx.0, &uri, READ);
    let mut schema = schema_of(&ctx, array);
    // A server's messages tell no URI, so that both are alike to the last byte.
    let json = message!(tiledb_serialize_array_schema, &ctx, schema, JSON, 0i32);
    let text = String::from_utf8(json.clone()).unwrap();
    assert!(text.contains(r#""arrayType":"sparse""#) && text.contains(r#""capacity":"10""#));
    assert!(text.contains(r#""domain":{"int64":["1","10"]}"#), "{text}");
    for format in [JSON, CAPNP] {
        let sent = message!(tiledb_serialize_array_schema, &ctx, schema, format, 0i32);
        let (mut handle, mut received) = (buffer(&ctx, &sent), null());
        ok!(
            tiledb_deserialize_array_schema,
            ctx.0,
            handle,
            format,
            0i32,
            &mut received
        );
        ok!(tiledb_array_schema_check, ctx.0, received);
        assert_eq!(
            message!(tiledb_serialize_array_schema, &ctx, received, JSON, 0i32),
            json
        );
        free!(tiledb_array_schema_free, received; tiledb_buffer_free, handle);
    }
    free!(tiledb_array_schema_free, schema);
    close(ctx.0, array);
}

#[test]
fn an_array_that_lies_nowhere_has_what_its_message_says() {
    let (ctx, (_folder, uri)) = (Ctx::new(), place());
    filled(&ctx, &uri, true);
    let array = open(ctx.0, &uri, READ);
    let sent = message!(tiledb_serialize_array, &ctx, array, CAPNP, 1i32);
    let (mut handle, mut received) = (buffer(&ctx, &sent), null());
    let nowhere = c"mem://nowhere";
    ok!(
        tiledb_deserialize_array,
        ctx.0,
        handle,
        CAPNP,
        1i32,
        nowhere,
        &mut received
    );
    let (mut domain, mut empty) = ([0i64; 2], -1i32);
    ok!(
        tiledb_array_get_non_empty_domain_from_index,
        ctx.0,
        received,
        0u32,
        &mut domain[..],
        &mut empty
    );
    assert_eq!((domain, empty), ([1, 10], 0));
    let (mut first, mut second) = (schema_of(&ctx, array), schema_of(&ctx, received));
    assert_eq!(
        message!(tiledb_serialize_array_schema, &ctx, first, JSON, 0i32),
        message!(tiledb_serialize_array_schema, &ctx, second, JSON, 0i32)
    );
    free!(tiledb_array_schema_free, first; tiledb_array_schema_free, second);
    close(ctx.0, received);
    free!(tiledb_buffer_free, handle);
    close(ctx.0, array);
}

/// Sends a query and gives the other side's.
fn send(ctx: &Ctx, uri: &CString, from: Handle) -> (Handle, Handle) {
    let (mut list, mut flat) = (null(), null());
    ok!(tiledb_serialize_query, ctx.0, from, CAPNP, 1i32, &mut list);
    ok!(tiledb_buffer_list_flatten, ctx.0, list, &mut flat);
    let (mut query, mut array) = (null(), null());
    ok!(
        tiledb_deserialize_query_and_array,
        ctx.0,
        flat,
        CAPNP,
        0i32,
        uri,
        &mut query,
        &mut array
    );
    free!(tiledb_buffer_free, flat; tiledb_buffer_list_free, list);
    (query, array)
}

/// Brings the answer home.
fn answer(ctx: &Ctx, from: Handle, to: Handle) {
    let (mut list, mut flat) = (null(), null());
    ok!(tiledb_serialize_query, ctx.0, from, CAPNP, 0i32, &mut list);
    ok!(tiledb_buffer_list_flatten, ctx.0, list, &mut flat);
    ok!(tiledb_deserialize_query, ctx.0, flat, CAPNP, 1i32, to);
    free!(tiledb_buffer_free, flat; tiledb_buffer_list_free, list);
}

#[test]
fn queries_are_run_on_the_other_side() {
    for sparse in [true, false] {
        let (ctx, (_folder, uri)) = (Ctx::new(), place());
        filled(&ctx, &uri, sparse);
        let array = open(ctx.0, &uri, READ);
        let mut read = query(ctx.0, array, READ, ROW);
        let mut subarray = null();
        ok!(tiledb_subarray_alloc, ctx.0, array, &mut subarray);
        ok!(
            tiledb_subarray_add_range,
            ctx.0,
            subarray,
            0u32,
            &[3i64],
            &[5i64],
            null()
        );
        ok!(tiledb_query_set_subarray_t, ctx.0, read, subarray);
        let (mut values, mut size) = ([0i64; 8], 64u64);
        set_buffer!(data, ctx.0, read, c"a", &mut values[..], &mut size);
        let (mut theirs, on) = send(&ctx, &uri, read);
        // It has sizes, no memory; that comes with the submission.
        let (mut place, mut there) = (null(), std::ptr::null::<u64>());
        ok!(
            tiledb_query_get_data_buffer,
            ctx.0,
            theirs,
            c"a",
            &mut place,
            &mut there
        );
        // SAFETY: the place of the size lives as long as the query.
        assert_eq!((place.is_null(), unsafe { *there }), (true, 64));
        ok!(tiledb_query_submit, ctx.0, theirs);
        answer(&ctx, theirs, read);
        assert_eq!((status(ctx.0, read), size), (COMPLETED, 24));
        assert_eq!(values[..3], [3, 4, 5]);
        free!(tiledb_query_free, theirs; tiledb_query_free, read; tiledb_subarray_free, subarray);
        close(ctx.0, on);
        close(ctx.0, array);
    }
}

#[test]
fn writes_arrive_and_their_fragments_are_named() {
    let (ctx, (_folder, uri)) = (Ctx::new(), place());
    create(ctx.0, &uri, true, 10, 5, &ATTRIBUTES[..1]);
    let array = open(ctx.0, &uri, WRITE);
    let mut write = query(ctx.0, array, WRITE, UNORDERED);
    let (values, mut size, mut other) = ([7i64, 8], 16u64, 16u64);
    for (name, size) in [(c"d", &mut size), (c"a", &mut other)] {
        set_buffer!(data, ctx.0, write, name, &values, size);
    }
    let (mut theirs, on) = send(&ctx, &uri, write);
    ok!(tiledb_query_submit, ctx.0, theirs);
    ok!(tiledb_query_finalize, ctx.0, theirs);
    answer(&ctx, theirs, write);
    let mut count = 0u32;
    ok!(tiledb_query_get_fragment_num, ctx.0, write, &mut count);
    assert_eq!((count, status(ctx.0, write)), (1, COMPLETED));
    free!(tiledb_query_free, theirs; tiledb_query_free, write);
    close(ctx.0, on);
    close(ctx.0, array);
}

#[test]
fn what_only_this_process_knows_is_not_sent() {
    let (ctx, (_folder, uri)) = (Ctx::new(), place());
    filled(&ctx, &uri, true);
    let array = open(ctx.0, &uri, READ);
    let mut read = query(ctx.0, array, READ, ROW);
    let (mut values, mut size) = ([0i64; 2], 16u64);
    set_buffer!(data, ctx.0, read, c"a", &mut values[..], &mut size);
    ok!(tiledb_query_submit, ctx.0, read);
    let mut list = null();
    let message = fails!(tiledb_serialize_query, ctx.0, read, CAPNP, 0i32, &mut list);
    assert!(message.contains("incomplete"), "{message}");
    free!(tiledb_query_free, read);
    close(ctx.0, array);
}

/// Numbers that look random and are the same each time.
fn numbers(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Reads a message as whatever it may be; an error must not be a bug of ours.
fn try_all(ctx: &Ctx, uri: &CString, format: i32, data: &[u8], array: Handle, info: Handle) {
    let mut handle = buffer(ctx, data);
    let check = |status: i32| {
        if status != 0 {
            let message = last_error(ctx.0);
            assert!(!message.contains("internal error"), "{message}");
        }
    };
    let mut out = null();
    check(raw!(
        tiledb_deserialize_array_schema,
        ctx.0,
        handle,
        format,
        1i32,
        &mut out
    ));
    raw!(tiledb_array_schema_free, &mut out);
    check(raw!(
        tiledb_deserialize_array,
        ctx.0,
        handle,
        format,
        1i32,
        c"mem://x",
        &mut out
    ));
    raw!(tiledb_array_free, &mut out);
    check(raw!(
        tiledb_deserialize_array_schema_evolution,
        ctx.0,
        handle,
        format,
        1i32,
        &mut out
    ));
    raw!(tiledb_array_schema_evolution_free, &mut out);
    check(raw!(
        tiledb_deserialize_fragment_info,
        ctx.0,
        handle,
        format,
        uri,
        1i32,
        info
    ));
    check(raw!(
        tiledb_deserialize_array_metadata,
        ctx.0,
        array,
        format,
        handle
    ));
    let mut on = null();
    check(raw!(
        tiledb_deserialize_query_and_array,
        ctx.0,
        handle,
        format,
        0i32,
        uri,
        &mut out,
        &mut on
    ));
    raw!(tiledb_query_free, &mut out);
    raw!(tiledb_array_free, &mut on);
    free!(tiledb_buffer_free, handle);
}

#[test]
fn damaged_messages_are_errors() {
    let (ctx, (_folder, uri)) = (Ctx::new(), place());
    filled(&ctx, &uri, true);
    let array = open(ctx.0, &uri, READ);
    let mut read = query(ctx.0, array, READ, ROW);
    let (mut values, mut size) = ([0i64; 16], 128u64);
    set_buffer!(data, ctx.0, read, c"a", &mut values[..], &mut size);
    let (mut schema, mut info, mut list, mut flat) =
        (schema_of(&ctx, array), null(), null(), null());
    ok!(tiledb_fragment_info_alloc, ctx.0, &uri, &mut info);
    ok!(tiledb_fragment_info_load, ctx.0, info);
    ok!(tiledb_serialize_query, ctx.0, read, CAPNP, 1i32, &mut list);
    ok!(tiledb_buffer_list_flatten, ctx.0, list, &mut flat);
    let sent_query = content(&ctx, flat);
    let mut next = numbers(0x5eed);
    for format in [CAPNP, JSON] {
        let mut messages = vec![
            message!(tiledb_serialize_array_schema, &ctx, schema, format, 1i32),
            message!(tiledb_serialize_array, &ctx, array, format, 1i32),
            message!(tiledb_serialize_fragment_info, &ctx, info, format, 1i32),
        ];
        if format == CAPNP {
            messages.push(sent_query.clone());
        }
        for message in &messages {
            try_all(&ctx, &uri, format, &[], array, info);
            for _ in 0..60 {
                let mut damaged = message.clone();
                for _ in 0..1 + next() % 4 {
                    let at = next() as usize % damaged.len();
                    damaged[at] = (next() >> 8) as u8;
                }
                if next().is_multiple_of(4) {
                    damaged.truncate(next() as usize % damaged.len());
                }
                try_all(&ctx, &uri, format, &damaged, array, info);
            }
        }
    }
    free!(tiledb_array_schema_free, schema; tiledb_fragment_info_free, info);
    free!(tiledb_buffer_list_free, list; tiledb_query_free, read);
    close(ctx.0, array);
}

#[test]
fn a_message_that_wants_more_memory_than_there_is_is_an_error() {
    const LARGE: u64 = 1 << 61;
    let budget = |bytes: &'static std::ffi::CStr| Ctx::with(&[(c"sm.mem.total_budget", bytes)]);
    let client = budget(c"9223372036854775808");
    let (_folder, uri) = place();
    filled(&client, &uri, true);
    let array = open(client.0, &uri, READ);
    let mut read = query(client.0, array, READ, UNORDERED);
    let (mut a, mut size) = ([0i64; 1], LARGE);
    set_buffer!(data, client.0, read, c"a", &mut a[..], &mut size);
    // Who runs it has a limit, or none: then there is no such memory.
    for (server, why) in [(&Ctx::new(), "total_budget"), (&client, "no memory")] {
        let (mut sent, mut on) = send(server, &uri, read);
        let message = fails!(tiledb_query_submit, server.0, sent);
        assert!(message.contains(why), "{message}");
        free!(tiledb_query_free, sent; tiledb_array_free, on);
    }
    free!(tiledb_query_free, read);
    close(client.0, array);
}

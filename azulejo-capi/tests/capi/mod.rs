//! The exported functions as C sees them: by name, with arguments of which each takes a register or
//! a stack slot.
#![allow(
    dead_code,
    unused_macros,
    unused_imports,
    unsafe_code,
    clippy::cast_lossless,
    reason = "each test file uses a part; what C passes is words"
)]

use azulejo_capi as _;
use std::ffi::{CStr, CString, c_char, c_void};

/// Opaque handles.
pub type Handle = *mut c_void;

/// Declares the functions, and a table of them.
macro_rules! functions {
    ($($name:ident $status:ident $letters:literal;)*) => {
        pub mod c {
            unsafe extern "C" {
                $(pub fn $name();)*
            }
        }

        /// A function: its name, its address, whether it returns a status, the letters of its
        /// parameters.
        #[derive(Debug, Clone, Copy)]
        pub struct Function {
            pub name: &'static str,
            pub address: unsafe extern "C" fn(),
            pub has_status: bool,
            pub letters: &'static str,
        }

        pub const FUNCTIONS: &[Function] = &[$(Function {
            name: stringify!($name),
            address: c::$name,
            has_status: matches!(stringify!($status).as_bytes(), b"status"),
            letters: $letters,
        }),*];
    };
}
include!("../functions/list.rs");

/// What fits a register.
pub trait Word {
    fn word(self) -> u64;
}
macro_rules! words {
    ($($ty:ty),*) => {$(
        impl Word for $ty {
            fn word(self) -> u64 { self as u64 }
        }
    )*};
}
words!(i32, u32, u64, usize, u8);
impl<T> Word for *mut T {
    fn word(self) -> u64 {
        self as u64
    }
}
impl<T> Word for *const T {
    fn word(self) -> u64 {
        self as u64
    }
}
impl<T> Word for &mut T {
    fn word(self) -> u64 {
        std::ptr::from_mut(self) as u64
    }
}
impl<T> Word for &[T] {
    fn word(self) -> u64 {
        self.as_ptr() as u64
    }
}
impl<T> Word for &mut [T] {
    fn word(self) -> u64 {
        self.as_mut_ptr() as u64
    }
}
impl<T, const N: usize> Word for &[T; N] {
    fn word(self) -> u64 {
        self.as_ptr() as u64
    }
}
impl Word for &CStr {
    fn word(self) -> u64 {
        self.as_ptr() as u64
    }
}
impl Word for &CString {
    fn word(self) -> u64 {
        self.as_ptr() as u64
    }
}

/// Most words that a function takes.
const MAX: usize = 10;

/// Calls a function with words; those that it does not take are zeros that it does not see.
///
/// Integers and pointers of a C function go into the same registers and slots, and the caller
/// removes what it passed: on the 64-bit machines that the tests run on, more words than parameters
/// do no harm.
pub fn invoke(function: unsafe extern "C" fn(), arguments: &[u64]) -> i32 {
    type Words =
        unsafe extern "C-unwind" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> i32;
    let mut w = [0u64; MAX];
    w[..arguments.len()].copy_from_slice(arguments);
    // SAFETY: see above; that the words are what the function wants is what its caller is about.
    unsafe {
        let function = std::mem::transmute::<unsafe extern "C" fn(), Words>(function);
        function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9])
    }
}

/// The status of a function: `raw!(tiledb_array_open, ctx, array, 0)`.
macro_rules! raw {
    ($name:ident $(, $arg:expr)* $(,)?) => {
        $crate::capi::invoke($crate::capi::c::$name, &[$($crate::capi::Word::word($arg)),*])
    };
}
pub(crate) use raw;

/// Calls a function of a context that must go well.
macro_rules! ok {
    ($name:ident, $ctx:expr $(, $arg:expr)* $(,)?) => {{
        let ctx: $crate::capi::Handle = $ctx;
        let status = $crate::capi::raw!($name, ctx $(, $arg)*);
        assert_eq!(status, 0, "{}: {}", stringify!($name), $crate::capi::last_error(ctx));
    }};
}
pub(crate) use ok;

/// Gives a query the caller's memory for a field: `data`, `offsets` or `validity`, and its size in
/// bytes.
macro_rules! set_buffer {
    (data, $($arg:expr),* $(,)?) => {
        $crate::capi::ok!(tiledb_query_set_data_buffer, $($arg),*)
    };
    (offsets, $($arg:expr),* $(,)?) => {
        $crate::capi::ok!(tiledb_query_set_offsets_buffer, $($arg),*)
    };
    (validity, $($arg:expr),* $(,)?) => {
        $crate::capi::ok!(tiledb_query_set_validity_buffer, $($arg),*)
    };
}
pub(crate) use set_buffer;

/// Calls a function of a context that must fail; its message.
macro_rules! fails {
    ($name:ident, $ctx:expr $(, $arg:expr)* $(,)?) => {{
        let ctx: $crate::capi::Handle = $ctx;
        let status = $crate::capi::raw!($name, ctx $(, $arg)*);
        assert_eq!(status, -1, "{} went well", stringify!($name));
        $crate::capi::last_error(ctx)
    }};
}
pub(crate) use fails;

pub fn null() -> Handle {
    std::ptr::null_mut()
}

/// A C string of ours as text.
pub fn text(pointer: *const c_char) -> String {
    assert!(!pointer.is_null());
    // SAFETY: strings that the library hands out end in NUL and live as long as their handle.
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}

pub fn last_error(ctx: Handle) -> String {
    let mut error = null();
    if raw!(tiledb_ctx_get_last_error, ctx, &mut error) != 0 || error.is_null() {
        return "no error".into();
    }
    let mut message: *const c_char = std::ptr::null();
    assert_eq!(raw!(tiledb_error_message, error, &mut message), 0);
    let message = text(message);
    raw!(tiledb_error_free, &mut error);
    assert!(error.is_null());
    message
}

/// A context, which is freed at the end.
pub struct Ctx(pub Handle);

impl Ctx {
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// With settings.
    pub fn with(settings: &[(&CStr, &CStr)]) -> Self {
        let (mut config, mut error, mut ctx) = (null(), null(), null());
        assert_eq!(raw!(tiledb_config_alloc, &mut config, &mut error), 0);
        for (key, value) in settings {
            assert_eq!(raw!(tiledb_config_set, config, *key, *value, &mut error), 0);
        }
        assert_eq!(raw!(tiledb_ctx_alloc, config, &mut ctx), 0);
        raw!(tiledb_config_free, &mut config);
        Self(ctx)
    }
}

impl Drop for Ctx {
    fn drop(&mut self) {
        raw!(tiledb_ctx_free, &mut self.0);
        assert!(self.0.is_null());
    }
}

/// Frees through a pointer of C's.
macro_rules! free {
    ($($name:ident, $handle:expr);* $(;)?) => {$(
        $crate::capi::raw!($name, &mut $handle);
        assert!($handle.is_null());
    )*};
}
pub(crate) use free;

/// Datatypes.
pub const INT32: i32 = 0;
pub const INT64: i32 = 1;
pub const FLOAT64: i32 = 3;
pub const UINT64: i32 = 10;
pub const ASCII: i32 = 11;
/// Layouts.
pub const ROW: i32 = 0;
pub const COL: i32 = 1;
pub const GLOBAL: i32 = 2;
pub const UNORDERED: i32 = 3;
/// Query types.
pub const READ: i32 = 0;
pub const WRITE: i32 = 1;
pub const DELETE: i32 = 2;
pub const UPDATE: i32 = 3;
/// States of queries.
pub const COMPLETED: i32 = 1;
pub const INCOMPLETE: i32 = 3;

/// An attribute to make an array with.
#[derive(Debug, Clone, Copy)]
pub struct Attr {
    pub name: &'static CStr,
    pub datatype: i32,
    pub var: bool,
    pub nullable: bool,
}

impl Attr {
    /// One whose cells are of one value.
    pub const fn fixed(name: &'static CStr, datatype: i32) -> Self {
        let (var, nullable) = (false, false);
        Self {
            name,
            datatype,
            var,
            nullable,
        }
    }

    /// One whose cells are of any number of values.
    pub const fn var(name: &'static CStr, datatype: i32) -> Self {
        let var = true;
        Self {
            var,
            ..Self::fixed(name, datatype)
        }
    }

    /// The same, whose cells may be null.
    pub const fn or_null(self) -> Self {
        let nullable = true;
        Self { nullable, ..self }
    }
}

/// The schema of an array with one dimension `d` of int64 from 1 to `size`.
pub fn schema(ctx: Handle, sparse: bool, size: i64, extent: i64, attributes: &[Attr]) -> Handle {
    let (mut domain, mut dimension, mut schema) = (null(), null(), null());
    ok!(tiledb_domain_alloc, ctx, &mut domain);
    ok!(
        tiledb_dimension_alloc,
        ctx,
        c"d",
        INT64,
        &[1i64, size],
        &[extent],
        &mut dimension
    );
    ok!(tiledb_domain_add_dimension, ctx, domain, dimension);
    ok!(
        tiledb_array_schema_alloc,
        ctx,
        i32::from(sparse),
        &mut schema
    );
    ok!(tiledb_array_schema_set_domain, ctx, schema, domain);
    ok!(tiledb_array_schema_set_capacity, ctx, schema, 10u64);
    for a in attributes {
        let mut attribute = null();
        ok!(
            tiledb_attribute_alloc,
            ctx,
            a.name,
            a.datatype,
            &mut attribute
        );
        if a.var {
            ok!(tiledb_attribute_set_cell_val_num, ctx, attribute, u32::MAX);
        }
        ok!(
            tiledb_attribute_set_nullable,
            ctx,
            attribute,
            u8::from(a.nullable)
        );
        ok!(tiledb_array_schema_add_attribute, ctx, schema, attribute);
        free!(tiledb_attribute_free, attribute);
    }
    free!(tiledb_dimension_free, dimension; tiledb_domain_free, domain);
    schema
}

/// Makes an array with such a schema.
pub fn create(ctx: Handle, uri: &CStr, sparse: bool, size: i64, extent: i64, attributes: &[Attr]) {
    let mut schema = schema(ctx, sparse, size, extent, attributes);
    ok!(tiledb_array_schema_check, ctx, schema);
    ok!(tiledb_array_create, ctx, uri, schema);
    free!(tiledb_array_schema_free, schema);
}

/// Opens an array.
pub fn open(ctx: Handle, uri: &CStr, kind: i32) -> Handle {
    let mut array = null();
    ok!(tiledb_array_alloc, ctx, uri, &mut array);
    ok!(tiledb_array_open, ctx, array, kind);
    array
}

/// A query on an open array.
pub fn query(ctx: Handle, array: Handle, kind: i32, layout: i32) -> Handle {
    let mut query = null();
    ok!(tiledb_query_alloc, ctx, array, kind, &mut query);
    ok!(tiledb_query_set_layout, ctx, query, layout);
    query
}

/// Closes and frees an array.
pub fn close(ctx: Handle, mut array: Handle) {
    ok!(tiledb_array_close, ctx, array);
    free!(tiledb_array_free, array);
}

/// The state of a query.
pub fn status(ctx: Handle, query: Handle) -> i32 {
    let mut status = -1i32;
    ok!(tiledb_query_get_status, ctx, query, &mut status);
    status
}

/// Bytes of a slice.
pub fn bytes<T>(values: &[T]) -> u64 {
    size_of_val(values) as u64
}

//! The one way through which calls come in: arguments are checked, panics stop here, errors land
//! where C looks for them.
//!
//! Every exported function is declared with `capi!` (its first argument is the context) or
//! `capi_plain!`. Parameters are of the pointer types of this module, `repr(transparent)` over
//! what C passes, or numbers. Bodies are safe code that returns a [`Result`]: `unsafe` is in the
//! methods of the pointer types.

use crate::ctx::Context;
use crate::error::{Failure, Result};
pub use crate::handle::{Handle, Kind};
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

/// A function went well.
pub const OK: i32 = 0;
/// It did not; the context or the error handle has the reason.
pub const ERR: i32 = -1;
/// There is no valid context to report to.
pub const INVALID_CONTEXT: i32 = -3;
/// There is no place for an error to report.
pub const INVALID_ERROR: i32 = -4;

/// What every parameter can do before a body runs.
pub trait Argument {
    /// Gives output parameters a value, which stays if the function fails.
    fn prepare(&self) {}
}

impl Argument for u8 {}
impl Argument for i32 {}
impl Argument for u32 {}
impl Argument for u64 {}
impl Argument for usize {}
impl<F> Argument for Option<F> {}

/// A handle coming in.
#[repr(transparent)]
#[derive(Debug)]
pub struct In<T>(*mut Handle<T>);

impl<T> Argument for In<T> {}

impl<T: Kind> In<T> {
    /// The value behind the handle.
    pub fn get(&self) -> Result<&T> {
        self.opt()?.ok_or_else(|| Failure::null(T::NAME))
    }

    /// The value behind the handle, if there is one.
    pub fn opt(&self) -> Result<Option<&T>> {
        let Some(handle) = NonNull::new(self.0) else {
            return Ok(None);
        };
        // SAFETY: C passes null or a handle of some kind, freed or not. The reference lives as long
        // as the argument, that is, during the call.
        let value = unsafe { Handle::value(handle) };
        value.map(Some).ok_or_else(|| Failure::no_handle(T::NAME))
    }

    /// The address, to tell handles apart.
    pub fn address(&self) -> usize {
        self.0 as usize
    }
}

/// A handle as C keeps it.
#[repr(transparent)]
#[derive(Debug)]
pub struct Ptr<T>(*mut Handle<T>);

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Ptr<T> {}
impl<T> Default for Ptr<T> {
    fn default() -> Self {
        Self(std::ptr::null_mut())
    }
}

impl<T: Kind> Ptr<T> {
    /// A new handle, which the caller frees.
    pub fn new(value: T) -> Self {
        Self(Handle::new(value))
    }

    /// Whether it points to this handle.
    pub fn is(&self, handle: &Handle<T>) -> bool {
        std::ptr::eq(self.0, handle)
    }
}

/// A place that takes a result.
#[repr(transparent)]
#[derive(Debug)]
pub struct Out<T>(*mut T);

impl<T: Default> Argument for Out<T> {
    fn prepare(&self) {
        if !self.0.is_null() && self.0.is_aligned() {
            // SAFETY: C passes null or a place for a `T`.
            unsafe { self.0.write(T::default()) };
        }
    }
}

impl<T> Out<T> {
    /// Writes the result.
    pub fn set(&self, value: T) -> Result<()> {
        if self.0.is_null() {
            return Err(Failure::null("output argument"));
        }
        // SAFETY: C passes a place for a `T`, and null was refused.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Writes the result if the caller wants it.
    pub fn set_if(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: as in `set`.
            unsafe { self.0.write(value) };
        }
    }

    /// Whether the caller gave no place.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

impl<T: Kind> Out<Ptr<T>> {
    /// Hands out a new handle.
    pub fn give(&self, value: T) -> Result<()> {
        if self.0.is_null() {
            return Err(Failure::null("output argument"));
        }
        self.set(Ptr::new(value))
    }
}

/// A place that holds a value and takes another.
#[repr(transparent)]
#[derive(Debug)]
pub struct InOut<T>(*mut T);

impl<T> Argument for InOut<T> {}

impl<T: Copy> InOut<T> {
    /// The value there.
    pub fn get(&self) -> Result<T> {
        if self.0.is_null() {
            return Err(Failure::null("argument"));
        }
        // SAFETY: C passes a place that holds a `T`, and null was refused.
        Ok(unsafe { self.0.read() })
    }

    /// Replaces the value.
    pub fn set(&self, value: T) -> Result<()> {
        if self.0.is_null() {
            return Err(Failure::null("argument"));
        }
        // SAFETY: as in `get`.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// The address, for callers' buffers that outlive the call.
    pub fn raw(&self) -> *mut T {
        self.0
    }
}

impl<T: Kind> InOut<Ptr<T>> {
    /// Frees the handle and leaves null; a null handle and one of another kind are left alone.
    pub fn free(&self) {
        let Ok(Ptr(handle)) = self.get() else { return };
        let Some(handle) = NonNull::new(handle) else {
            return;
        };
        // SAFETY: C passes a handle of some kind, freed or not.
        unsafe { Handle::free(handle) };
        let _ = self.set(Ptr::default());
    }
}

/// A string coming in.
#[repr(transparent)]
#[derive(Debug)]
pub struct Text(*const c_char);

impl Argument for Text {}

impl Text {
    /// The string.
    pub fn get(&self) -> Result<&str> {
        self.opt()?.ok_or_else(|| Failure::null("string"))
    }

    /// The string, if there is one.
    pub fn opt(&self) -> Result<Option<&str>> {
        if self.0.is_null() {
            return Ok(None);
        }
        // SAFETY: C passes null or a string that ends in NUL and stays during the call.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str()
            .map(Some)
            .map_err(|_| Failure::new("a string argument is not UTF-8"))
    }
}

/// A list of strings coming in.
#[repr(transparent)]
#[derive(Debug)]
pub struct Texts(*const *const c_char);

impl Argument for Texts {}

impl Texts {
    /// The strings.
    pub fn get(&self, count: usize) -> Result<Vec<String>> {
        if self.0.is_null() && count > 0 {
            return Err(Failure::null("list of strings"));
        }
        (0..count)
            .map(|i| {
                // SAFETY: C passes `count` pointers.
                let text = Text(unsafe { self.0.add(i).read() });
                text.get().map(str::to_owned)
            })
            .collect()
    }
}

/// Bytes coming in whose number another argument or a type tells.
#[repr(transparent)]
#[derive(Debug)]
pub struct Bytes(*const c_void);

impl Argument for Bytes {}

impl Bytes {
    /// The first `len` bytes.
    pub fn get(&self, len: usize) -> Result<&[u8]> {
        if len == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() {
            return Err(Failure::null("data"));
        }
        if isize::try_from(len).is_err() {
            return Err(Failure::new(format!(
                "a size of {len} bytes is not possible"
            )));
        }
        // SAFETY: C passes at least as many bytes as it or the type says, and they stay during the
        // call.
        Ok(unsafe { std::slice::from_raw_parts(self.0.cast(), len) })
    }

    /// The first `len` bytes, where C counts in 64 bits.
    pub fn get64(&self, len: u64) -> Result<&[u8]> {
        self.get(
            usize::try_from(len).map_err(|_| Failure::new("a size does not fit this machine"))?,
        )
    }

    /// The first `count` numbers.
    pub fn get_u64s(&self, count: u64) -> Result<Vec<u64>> {
        let len = count
            .checked_mul(8)
            .ok_or_else(|| Failure::new("a size does not fit this machine"))?;
        Ok(self
            .get64(len)?
            .as_chunks::<8>()
            .0
            .iter()
            .map(|b| u64::from_le_bytes(*b))
            .collect())
    }

    /// Whether C passed null.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

/// Memory that takes bytes whose number a type tells.
#[repr(transparent)]
#[derive(Debug)]
pub struct OutBytes(*mut c_void);

impl Argument for OutBytes {}

impl OutBytes {
    /// Writes bytes at an offset.
    pub fn write_at(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        if self.0.is_null() {
            return Err(Failure::null("output argument"));
        }
        // SAFETY: C passes room for what the type asks for, which is what callers here write.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                self.0.cast::<u8>().add(offset),
                bytes.len(),
            );
        }
        Ok(())
    }

    /// Writes bytes.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        self.write_at(0, bytes)
    }

    /// The memory as bytes to fill, `len` of them.
    #[expect(
        clippy::mut_from_ref,
        reason = "the memory is the caller's, not the argument's"
    )]
    pub fn slice(&self, len: usize) -> Result<&mut [u8]> {
        if len == 0 {
            return Ok(&mut []);
        }
        if self.0.is_null() {
            return Err(Failure::null("output argument"));
        }
        // SAFETY: C passes `len` bytes that nobody else uses during the call.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.0.cast(), len) })
    }

    /// The address, for callers' buffers that outlive the call.
    pub fn raw(&self) -> *mut c_void {
        self.0
    }
}

/// A pointer that is only handed on, to a callback or to nowhere.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub struct Opaque(pub *mut c_void);

impl Argument for Opaque {}

unsafe extern "C" {
    /// The C library's.
    fn fputs(text: *const c_char, file: *mut c_void) -> i32;
    /// The C library's standard output.
    #[cfg_attr(target_vendor = "apple", link_name = "__stdoutp")]
    static stdout: *mut c_void;
}

impl Opaque {
    /// Writes text to the C library's `FILE` that this points to, or to its standard output.
    pub fn put_text(&self, text: &str) -> Result<()> {
        let text = crate::strings::to_c(text);
        // SAFETY: C passes a `FILE*` that is open for writing, or null; the C library sets `stdout`
        // before anything runs.
        let status = unsafe {
            fputs(
                text.as_ptr(),
                if self.0.is_null() { stdout } else { self.0 },
            )
        };
        if status < 0 {
            Err("cannot write to the FILE".into())
        } else {
            Ok(())
        }
    }
}

/// A copy of a text that the caller frees with the C library's `free`; null if there is no memory.
pub fn malloced_text(text: &str) -> Pointer<c_char> {
    let text = crate::strings::to_c(text);
    // SAFETY: the text ends with a zero byte.
    Pointer(unsafe { libc::strdup(text.as_ptr()) })
}

/// A pointer handed out.
#[repr(transparent)]
#[derive(Debug)]
pub struct Pointer<T = c_void>(pub *const T);

impl<T> Clone for Pointer<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Pointer<T> {}

impl<T> Default for Pointer<T> {
    fn default() -> Self {
        Self(std::ptr::null())
    }
}

/// Bytes behind a pointer inside a structure of the caller's.
pub fn bytes_of(pointer: Pointer) -> Bytes {
    Bytes(pointer.0)
}

/// A string handed out.
pub type Str = Pointer<c_char>;

/// Runs a body; a panic becomes an error.
pub fn run(body: impl FnOnce() -> Result<()>) -> Result<()> {
    let mut body = Some(body);
    caught(&mut || body.take().map_or(Ok(()), |body| body()))
}

/// As [`run`]: once for all functions, of which there are hundreds.
fn caught(body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic");
        Err(Failure::new(format!(
            "internal error: {text} (please report it)"
        )))
    })
}

/// Runs a body that has a context and reports its error there.
pub fn with_context(ctx: &In<Context>, body: impl FnOnce(&Context) -> Result<()>) -> i32 {
    let mut body = Some(body);
    reported(ctx, &mut |context| {
        body.take().map_or(Ok(()), |body| body(context))
    })
}

/// As [`with_context`]: once for all functions.
fn reported(ctx: &In<Context>, body: &mut dyn FnMut(&Context) -> Result<()>) -> i32 {
    let Ok(context) = ctx.get() else {
        return INVALID_CONTEXT;
    };
    match caught(&mut || body(context)) {
        Ok(()) => OK,
        Err(failure) => {
            let code = failure.code;
            context.fail(failure);
            code
        }
    }
}

/// Runs a body that finds what a callback is to see, and calls back with each as it is found: 1 goes
/// on, 0 stops, -1 is an error.
///
/// The callback runs outside of what catches panics, which must not meet exceptions of C++; those
/// become errors.
pub fn with_callback<T, I: Iterator<Item = Result<T>>>(
    ctx: &In<Context>,
    find: impl FnOnce(&Context) -> Result<I>,
    callback: impl Fn(&T) -> i32,
) -> i32 {
    let mut all = None;
    let status = with_context(ctx, |ctx| {
        all = Some(find(ctx)?);
        Ok(())
    });
    let Some(mut all) = all else {
        return status;
    };
    loop {
        let mut next = None;
        let status = with_context(ctx, |_| {
            next = all.next().transpose()?;
            Ok(())
        });
        let Some(each) = next else {
            return status;
        };
        match crate::exception::caught(|| callback(&each)) {
            Ok(0) => return status,
            Ok(-1) => return with_context(ctx, |_| Err(Failure::new("the callback failed"))),
            Ok(_) => {}
            Err(message) => return with_context(ctx, |_| Err(Failure::new(message))),
        }
    }
}

/// Runs a body whose error nobody asks about.
pub fn without_context(body: impl FnOnce() -> Result<()>) -> i32 {
    run(body).map_or_else(|failure| failure.code, |()| OK)
}

/// Declares exported functions whose first argument is the context; the body sees it as a
/// reference.
macro_rules! capi {
    ($( $(#[$meta:meta])* fn $name:ident($ctx:ident $(, $arg:ident: $type:ty)* $(,)?) $body:block )*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($ctx: $crate::boundary::In<$crate::ctx::Context> $(, $arg: $type)*) -> i32 {
            $( $crate::boundary::Argument::prepare(&$arg); )*
            $crate::boundary::with_context(&$ctx, |$ctx| {
                let _ = $ctx;
                let () = $body;
                Ok(())
            })
        }
    )*};
}

/// Declares exported functions without a context that return a status.
macro_rules! capi_plain {
    ($( $(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block )*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $type),*) -> i32 {
            $( $crate::boundary::Argument::prepare(&$arg); )*
            $crate::boundary::without_context(|| {
                let () = $body;
                Ok(())
            })
        }
    )*};
}

/// Declares exported functions that call back with each of what their body finds; see
/// [`with_callback`].
macro_rules! capi_callback {
    ($( $(#[$meta:meta])* fn $name:ident($ctx:ident $(, $arg:ident: $type:ty)* $(,)?)
        $body:block => |$each:ident| $call:expr; )*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name($ctx: $crate::boundary::In<$crate::ctx::Context> $(, $arg: $type)*) -> i32 {
            $crate::boundary::with_callback(
                &$ctx,
                |$ctx| {
                    let _ = $ctx;
                    $body
                },
                |$each| $call,
            )
        }
    )*};
}

/// Declares the functions that free handles.
macro_rules! capi_free {
    ($( fn $name:ident($type:ty); )*) => {$(
        /// Frees the handle and sets it to null; null is left alone.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(handle: $crate::boundary::InOut<$crate::boundary::Ptr<$type>>) {
            let _ = $crate::boundary::run(|| {
                handle.free();
                Ok(())
            });
        }
    )*};
}

pub(crate) use {capi, capi_callback, capi_free, capi_plain};

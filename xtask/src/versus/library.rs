//! The few C functions of libtiledb that the comparison calls, looked up in the reference's shared
//! library.

use libloading::{Library, Symbol};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::process::Command;

/// An opaque handle of the C API.
pub type Handle = *mut c_void;

/// The library and a context in it.
pub struct TileDb {
    library: Library,
    pub ctx: Handle,
}

/// Calls a C function that returns a status; an error has the library's own message.
macro_rules! call {
    ($lib:expr, $name:literal, ($($ty:ty),*), $($arg:expr),*) => {{
        // SAFETY: the signature is the one of the public C header, and the arguments outlive the
        // call.
        let status = unsafe {
            let f: libloading::Symbol<unsafe extern "C" fn(Handle, $($ty),*) -> c_int> = $lib.symbol($name)?;
            f($lib.ctx, $($arg),*)
        };
        $lib.check(status, $name)
    }};
}
pub(super) use call;

impl TileDb {
    /// Loads the library out of the reference's environment.
    pub fn load() -> Result<Self, String> {
        let path = Self::path()?;
        // SAFETY: loading the reference's library runs its own initialisers only.
        let library = unsafe { Library::new(&path) }.map_err(|e| e.to_string())?;
        let mut this = Self {
            library,
            ctx: std::ptr::null_mut(),
        };
        let mut ctx: Handle = std::ptr::null_mut();
        // SAFETY: as declared in the public header: (config, out context).
        let status = unsafe {
            let alloc: Symbol<unsafe extern "C" fn(Handle, *mut Handle) -> c_int> =
                this.symbol("tiledb_ctx_alloc")?;
            alloc(std::ptr::null_mut(), &raw mut ctx)
        };
        this.ctx = ctx;
        this.check(status, "tiledb_ctx_alloc")?;
        Ok(this)
    }

    /// Where the reference's library lies.
    pub fn path() -> Result<PathBuf, String> {
        let python = crate::reference::python()?;
        let script = "import glob,os,tiledb;print(glob.glob(os.path.join(os.path.dirname(os.path.dirname(tiledb.__file__)),'tiledb.libs','libtiledb*.so*'))[0])";
        let out = Command::new(python)
            .args(["-c", script])
            .output()
            .map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&out.stdout).trim().to_owned();
        if text.is_empty() {
            Err("the reference has no libtiledb".into())
        } else {
            Ok(text.into())
        }
    }

    /// Looks a function up.
    ///
    /// # Safety
    /// `T` must be the function's type in the public header.
    pub unsafe fn symbol<T>(&self, name: &str) -> Result<Symbol<'_, T>, String> {
        // SAFETY: passed on to the caller.
        unsafe { self.library.get(name.as_bytes()) }.map_err(|e| e.to_string())
    }

    /// Turns a status into an error with the library's message.
    pub fn check(&self, status: c_int, what: &str) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: signatures of the public header; the message is read before the error is leaked
        // (the process ends).
        unsafe {
            let mut error: Handle = std::ptr::null_mut();
            let mut text: *const c_char = std::ptr::null();
            let last: Symbol<unsafe extern "C" fn(Handle, *mut Handle) -> c_int> =
                self.symbol("tiledb_ctx_get_last_error")?;
            last(self.ctx, &raw mut error);
            let message: Symbol<unsafe extern "C" fn(Handle, *mut *const c_char) -> c_int> =
                self.symbol("tiledb_error_message")?;
            if !error.is_null() {
                message(error, &raw mut text);
            }
            let text = if text.is_null() {
                "?".into()
            } else {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            };
            Err(format!("{what}: {text}"))
        }
    }

    /// Frees a handle.
    pub fn free(&self, name: &str, mut handle: Handle) {
        // SAFETY: all free functions take a pointer to the handle.
        unsafe {
            if let Ok(f) = self.symbol::<unsafe extern "C" fn(*mut Handle)>(name) {
                f(&raw mut handle);
            }
        }
    }
}

//! Errors on their way to C, and the handle `tiledb_error_t`.

use crate::boundary::{ERR, In, Kind, Out, Ptr, Str, capi_free, capi_plain};
use crate::strings::to_c;
use std::ffi::CString;

/// The result of a body.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a function fails.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What the function returns.
    pub code: i32,
    /// What the error handle says.
    pub message: String,
}

impl Failure {
    /// An error with a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            code: ERR,
            message: message.into(),
        }
    }

    /// A null argument.
    pub fn null(what: &str) -> Self {
        Self::new(format!("Invalid argument: the {what} is null"))
    }

    /// A pointer that is no live handle of its kind.
    pub fn no_handle(kind: &str) -> Self {
        Self::new(format!(
            "Invalid argument: this is no tiledb_{kind}_t, or it has been freed"
        ))
    }

    /// Something out of this library's scope.
    pub fn unsupported(what: &str) -> Self {
        Self::new(format!("{what} is not supported by this library"))
    }
}

impl From<azulejo::Error> for Failure {
    fn from(error: azulejo::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<azulejo_format::DecodeError> for Failure {
    fn from(error: azulejo_format::DecodeError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<azulejo_format::schema::SchemaError> for Failure {
    fn from(error: azulejo_format::schema::SchemaError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

/// `tiledb_error_t`.
#[derive(Debug)]
pub struct ErrorHandle {
    message: CString,
}

impl Kind for ErrorHandle {
    const NAME: &'static str = "error";
}

impl ErrorHandle {
    /// An error that says `message`.
    pub fn new(message: &str) -> Self {
        Self {
            message: to_c(message),
        }
    }
}

/// Runs a body and hands its error to the caller's `tiledb_error_t**`; without one nothing is done.
pub fn report(error: &Out<Ptr<ErrorHandle>>, body: impl FnOnce() -> Result<()>) -> i32 {
    if error.is_null() {
        return crate::boundary::INVALID_ERROR;
    }
    match crate::boundary::run(body) {
        Ok(()) => crate::boundary::OK,
        Err(failure) => {
            let _ = error.give(ErrorHandle::new(&failure.message));
            failure.code
        }
    }
}

capi_plain! {
    /// The message of an error; it lives as long as the handle.
    fn tiledb_error_message(err: In<ErrorHandle>, message: Out<Str>) {
        message.set(crate::boundary::Pointer(err.get()?.message.as_ptr()))?;
    }
}

capi_free! {
    fn tiledb_error_free(ErrorHandle);
}

//! Errors on their way to JavaScript and back.

use azulejo::Error;
use js_sys::Reflect;
use std::io;
use wasm_bindgen::JsValue;

/// An `Error` of JavaScript's with a `code`, by which programs tell errors apart.
pub(crate) fn to_js(error: &Error) -> JsValue {
    let code = match error {
        Error::NotFound { .. } => "NotFound",
        Error::InvalidArgument(_) => "InvalidArgument",
        Error::SchemaMismatch(_) => "SchemaMismatch",
        Error::Corrupt { .. } => "Corrupt",
        Error::Unsupported(_) => "Unsupported",
        Error::Encryption { .. } => "Encryption",
        Error::Storage { .. } => "Storage",
        Error::Budget { .. } => "Budget",
        Error::Cancelled => "Cancelled",
        _ => "Internal",
    };
    let thrown = js_sys::Error::new(&error.to_string());
    // A fresh object takes properties.
    let _ = Reflect::set(&thrown, &"code".into(), &code.into());
    thrown.into()
}

/// What a source has thrown while it was asked for something.
pub(crate) fn from_js(op: &'static str, thrown: &JsValue) -> Error {
    let text = |name: &str| {
        let value = Reflect::get(thrown, &name.into()).ok()?;
        value.as_string()
    };
    let message = text("message").unwrap_or_else(|| format!("{thrown:?}"));
    let uri = text("uri").unwrap_or_else(|| "the source".to_owned());
    let storage = |kind| Error::Storage {
        op,
        uri: uri.clone(),
        source: io::Error::new(kind, message.clone()),
    };
    match text("code").as_deref() {
        Some("NotFound") => Error::NotFound {
            uri,
            what: "no such file",
        },
        Some("Refused") => storage(io::ErrorKind::PermissionDenied),
        Some("Short") => storage(io::ErrorKind::UnexpectedEof),
        Some("Unlisted") => Error::Unsupported(message),
        Some("Cancelled") => Error::Cancelled,
        _ if text("name").as_deref() == Some("AbortError") => Error::Cancelled,
        _ => storage(io::ErrorKind::Other),
    }
}

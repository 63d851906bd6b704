//! The engine's errors as the package's exceptions.

use azulejo::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The exception for an engine error: a class of `azulejo_db.errors`.
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let uri = match error {
        Error::NotFound { uri, .. }
        | Error::AlreadyExists { uri }
        | Error::Corrupt { uri, .. }
        | Error::Storage { uri, .. } => Some(uri.as_str()),
        _ => None,
    };
    let class = match error {
        Error::NotFound { .. } => "NotFoundError",
        Error::AlreadyExists { .. } => "ExistsError",
        Error::InvalidArgument(_) => "ArgumentError",
        Error::SchemaMismatch(_) => "SchemaError",
        Error::Corrupt { .. } => "CorruptError",
        Error::Unsupported(_) => "UnsupportedError",
        Error::Encryption { .. } => "EncryptionError",
        Error::Budget { .. } => "BudgetError",
        Error::Storage { .. } => "StorageError",
        Error::Cancelled => "CancelledError",
        _ => "AzulejoError",
    };
    let made = py
        .import("azulejo_db.errors")
        .and_then(|errors| errors.getattr(class))
        .and_then(|class| class.call1((error.to_string(), uri)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(_) => PyRuntimeError::new_err(error.to_string()),
    }
}

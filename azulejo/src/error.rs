//! What can go wrong in the engine: which object, and what the caller can do.

use azulejo_format::DecodeError;

/// The engine's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An engine error. Variants differ by what the caller can do about them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing of the expected kind lies at the URI.
    #[error("{uri}: not found ({what})")]
    NotFound {
        /// The object's URI.
        uri: String,
        /// What was looked for.
        what: &'static str,
    },
    /// Something lies at the URI already.
    #[error("{uri}: already exists")]
    AlreadyExists {
        /// The object's URI.
        uri: String,
    },
    /// The caller asked for something that makes no sense for this object.
    #[error("{0}")]
    InvalidArgument(String),
    /// A field, dimension or type that the array's schema does not have.
    #[error("{0}")]
    SchemaMismatch(String),
    /// The bytes of an object are damaged, or were written by something else.
    #[error("{uri}: {source}")]
    Corrupt {
        /// The object's URI.
        uri: String,
        /// What is wrong with its bytes, and where.
        source: DecodeError,
    },
    /// A feature that this build or version does not have.
    #[error("{0}")]
    Unsupported(String),
    /// The array is encrypted and the key is missing or wrong, or the other way round.
    #[error("{uri}: {reason}")]
    Encryption {
        /// The object's URI.
        uri: String,
        /// What is wrong with the key. Never contains key material.
        reason: &'static str,
    },
    /// The storage failed.
    #[error("cannot {op} {uri}: {source}")]
    Storage {
        /// The operation: `read`, `list`, `write`, `delete`.
        op: &'static str,
        /// The object's URI.
        uri: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The memory budget does not suffice for the smallest possible step.
    #[error(
        "the memory budget of {budget} bytes is too small: {what} needs {need}; raise the budget or select fewer fields"
    )]
    Budget {
        /// What needs the memory.
        what: String,
        /// Bytes that it needs.
        need: u64,
        /// Bytes allowed.
        budget: u64,
    },
    /// A caller's buffer cannot take even one cell.
    #[error(
        "the {part} buffer of field {field:?} is too small: {need} bytes needed for the next cell, {have} given"
    )]
    BufferTooSmall {
        /// The field.
        field: String,
        /// `data`, `offsets` or `validity`.
        part: &'static str,
        /// Bytes needed.
        need: u64,
        /// Bytes given.
        have: u64,
    },
    /// The caller cancelled the operation.
    #[error("cancelled")]
    Cancelled,
    /// A bug in this library.
    #[error("internal error: {0} (please report it)")]
    Internal(String),
}

impl Error {
    /// Attaches the object to an error in its bytes: decryption failures become
    /// [`Error::Encryption`].
    pub fn decode(uri: impl Into<String>, source: DecodeError) -> Self {
        match source {
            DecodeError::Decrypt { reason } => Self::Encryption {
                uri: uri.into(),
                reason,
            },
            source => Self::Corrupt {
                uri: uri.into(),
                source,
            },
        }
    }
}

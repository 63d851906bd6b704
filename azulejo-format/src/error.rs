//! What can be wrong with bytes, and where in them.

/// The result of decoding or encoding a structure.
pub type Result<T, E = DecodeError> = std::result::Result<T, E>;

/// Why bytes could not be decoded (or a value not encoded): the structure, the offset in its bytes,
/// the reason.
///
/// The engine adds which object the bytes came from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the structure does.
    #[error("{what} is cut off: {need} bytes needed at offset {offset}, {have} left")]
    Truncated {
        /// The structure or field being read.
        what: &'static str,
        /// Byte offset, from the start of the structure's buffer, where the read began.
        offset: usize,
        /// Bytes that the field needs.
        need: u64,
        /// Bytes that are left.
        have: u64,
    },
    /// A value that no writer produces.
    #[error("{what} is invalid at offset {offset}: {reason}")]
    Invalid {
        /// The structure or field.
        what: &'static str,
        /// Byte offset of the field.
        offset: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Written by a newer library, or by none.
    #[error("{what} has format version {found}, but versions 1 to {max} are supported")]
    UnsupportedVersion {
        /// The structure.
        what: &'static str,
        /// The version that the bytes name.
        found: u32,
        /// The newest version that this crate reads.
        max: u32,
    },
    /// An id outside its closed set (datatype, filter, layout, ..).
    #[error("{what} has no meaning for id {id} (offset {offset})")]
    UnknownId {
        /// The set.
        what: &'static str,
        /// The id found.
        id: u64,
        /// Byte offset of the id.
        offset: usize,
    },
    /// A filter could not undo (or do) its work.
    #[error("filter {filter} failed: {reason}")]
    Filter {
        /// The filter's name.
        filter: &'static str,
        /// What went wrong.
        reason: String,
    },
    /// A stored checksum does not match the data.
    #[error("{filter} checksum mismatch: the data is damaged")]
    Checksum {
        /// `MD5` or `SHA-256`.
        filter: &'static str,
    },
    /// Decryption failed: no key, a wrong key, or damaged data.
    #[error("cannot decrypt: {reason}")]
    Decrypt {
        /// What is wrong; never contains key material.
        reason: &'static str,
    },
    /// A size in the bytes asks for more than the caller allows.
    #[error("{what} asks for {asked} bytes, the limit is {limit}")]
    LimitExceeded {
        /// The structure or field.
        what: &'static str,
        /// Bytes asked for.
        asked: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// A feature that the format defines and this build leaves out.
    #[error("{what} is not supported: {reason}")]
    Unsupported {
        /// The feature.
        what: &'static str,
        /// Why, and what to do.
        reason: &'static str,
    },
}

impl DecodeError {
    /// An [`DecodeError::Invalid`] in one call.
    pub fn invalid(what: &'static str, offset: usize, reason: impl Into<String>) -> Self {
        Self::Invalid {
            what,
            offset,
            reason: reason.into(),
        }
    }

    /// A [`DecodeError::Filter`] in one call.
    pub fn filter(filter: &'static str, reason: impl Into<String>) -> Self {
        Self::Filter {
            filter,
            reason: reason.into(),
        }
    }
}

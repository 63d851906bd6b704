//! What storages are asked for, and what they answer.

use super::refusal::too_short;
use super::uri::StorePath;
use crate::error::Result;
use bytes::Bytes;
use std::ops::Range;

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The entry's last path component.
    pub name: String,
    /// Whether it is a folder.
    pub is_dir: bool,
    /// Size in bytes of an object, 0 for a folder; `None` where a listing does not tell and asking
    /// would cost.
    pub size: Option<u64>,
}

/// A range of bytes of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRequest {
    /// The object.
    pub path: StorePath,
    /// Which bytes of it.
    pub range: ReadRange,
}

/// Which bytes of an object to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadRange {
    /// All of it.
    All,
    /// All of it, which is [`Error::Budget`](crate::Error::Budget) if that is more than so many
    /// bytes: nothing of it is read then.
    AtMost(u64),
    /// These bytes; it is an error if the object is shorter.
    Bytes(Range<u64>),
}

/// The end of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// The last bytes.
    pub bytes: Bytes,
    /// Size in bytes of the whole object.
    pub object_size: u64,
}

/// A range of bytes of one object, to be read into memory that the caller already has.
#[derive(Debug)]
pub struct ReadInto<'a> {
    /// The object.
    pub path: StorePath,
    /// Offset of the first byte.
    pub offset: u64,
    /// Where the bytes go; filled whole or an error is returned.
    pub out: &'a mut [u8],
}

impl ReadRange {
    /// Bytes that it asks for as far as it says; 0 of a whole object.
    #[must_use]
    pub fn known_len(&self) -> u64 {
        match self {
            Self::All | Self::AtMost(_) => 0,
            Self::Bytes(range) => range.end.saturating_sub(range.start),
        }
    }

    /// The range in an object of this size.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the object is shorter,
    /// [`Error::Budget`](crate::Error::Budget) if it is longer than may be.
    pub fn within(&self, path: &StorePath, size: u64) -> Result<Range<u64>> {
        match self {
            Self::All => Ok(0..size),
            Self::AtMost(limit) if size > *limit => Err(crate::Error::Budget {
                what: format!("all of {path}"),
                need: size,
                budget: *limit,
            }),
            Self::AtMost(_) => Ok(0..size),
            Self::Bytes(range) if range.is_empty() => Ok(0..0),
            Self::Bytes(range) if range.end > size => Err(too_short(path, range.end, size)),
            Self::Bytes(range) => Ok(range.clone()),
        }
    }
}

//! Messages to bytes and back, in either form.

use super::json;
use crate::error::{Failure, Result};
use capnp::message::{Builder, ReaderOptions};
use capnp::traits::Owned;
use capnp::{Word, dynamic_value, serialize};

/// How a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people, and for programs that know no Cap'n Proto.
    Json,
    /// The unpacked stream of Cap'n Proto.
    Capnp,
}

impl Format {
    /// The format of `tiledb_serialization_type_t`.
    pub fn of(id: i32) -> Result<Self> {
        match id {
            0 => Ok(Self::Json),
            1 => Ok(Self::Capnp),
            _ => Err(Failure::new(format!("{id} is no serialization type"))),
        }
    }
}

impl From<capnp::Error> for Failure {
    fn from(error: capnp::Error) -> Self {
        Self::new(format!("Cannot deserialize; {error}"))
    }
}

impl From<capnp::NotInSchema> for Failure {
    fn from(error: capnp::NotInSchema) -> Self {
        Self::new(format!("Cannot deserialize; {error}"))
    }
}

impl From<std::str::Utf8Error> for Failure {
    fn from(error: std::str::Utf8Error) -> Self {
        Self::new(format!("Cannot deserialize; {error}"))
    }
}

/// Writes a message that `fill` fills.
pub fn encode<T: Owned>(
    format: Format,
    fill: impl FnOnce(T::Builder<'_>) -> Result<()>,
) -> Result<Vec<u8>>
where
    for<'a> T::Reader<'a>: Into<dynamic_value::Reader<'a>>,
{
    let mut message = Builder::new_default();
    fill(message.init_root())?;
    match format {
        Format::Capnp => Ok(serialize::write_message_to_words(&message)),
        Format::Json => {
            let root = message.get_root_as_reader::<T::Reader<'_>>()?;
            json::write(root.into())
        }
    }
}

/// Reads a message.
///
/// Whatever the bytes say, no more is looked at than four times what is there (pointers of a
/// message may lead to the same place), no deeper than 64 structures, and nothing is allocated but
/// by what is there.
pub fn decode<T: Owned, R>(
    format: Format,
    bytes: &[u8],
    read: impl FnOnce(T::Reader<'_>) -> Result<R>,
) -> Result<R>
where
    for<'a> T::Builder<'a>: Into<dynamic_value::Builder<'a>>,
{
    match format {
        Format::Capnp => decode_before::<T, R>(bytes, |from, _| read(from)),
        Format::Json => {
            let mut message = Builder::new_default();
            let root: T::Builder<'_> = message.init_root();
            json::read(bytes, root.into())?;
            read(message.get_root_as_reader()?)
        }
    }
}

/// As [`decode`], for a message of Cap'n Proto that other bytes follow: `read` gets those too.
pub fn decode_before<T: Owned, R>(
    bytes: &[u8],
    read: impl FnOnce(T::Reader<'_>, &[u8]) -> Result<R>,
) -> Result<R> {
    // Callers' bytes may lie anywhere; Cap'n Proto wants them at a word's address.
    let mut words = Word::allocate_zeroed_vec(bytes.len().div_ceil(8));
    if let Some(aligned) = Word::words_to_bytes_mut(&mut words).get_mut(..bytes.len()) {
        aligned.copy_from_slice(bytes);
    }
    let aligned = Word::words_to_bytes(&words);
    let mut rest = aligned.get(..bytes.len()).unwrap_or_default();
    let mut options = ReaderOptions::new();
    let limit = 4 * words.len() + (1 << 16);
    options
        .traversal_limit_in_words(Some(limit))
        .nesting_limit(64);
    let message = serialize::read_message_from_flat_slice(&mut rest, options)?;
    read(message.get_root()?, rest)
}

//! The TileDB storage format, versions 1 to 23: bytes to values and back.
//!
//! Every structure that TileDB keeps on disk has a module with its decoder and, under it, its
//! encoder. Nothing here does IO: callers bring bytes and take bytes.
#![deny(unsafe_code)]
// What is added to a closed set must be thought of wherever the set is matched.
#![warn(clippy::wildcard_enum_match_arm)]

#[cfg(not(any(feature = "c-codecs", feature = "pure-rust")))]
compile_error!(
    "arrays cannot be read without codecs: enable `c-codecs` (a default) or `pure-rust`"
);

pub mod commit;
pub mod condition;
pub mod datatype;
pub mod error;
pub mod filter;
pub mod fragment;
pub mod group;
pub mod metadata;
pub mod path;
pub mod range;
pub mod schema;
pub mod tile;
pub mod timestamped_name;
pub mod version;
pub mod wire;

pub use datatype::{CellValNum, Datatype, Physical};
pub use error::DecodeError;
pub use range::{NdRectangle, Range};
pub use schema::ArraySchema;
pub use version::FormatVersion;

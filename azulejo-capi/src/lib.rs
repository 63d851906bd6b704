//! TileDB's C API on the Azulejo engine.
//!
//! The library exports every function and object of libtiledb 2.30's public headers, so that
//! programs built against those run on it unchanged. One file holds one handle; [`boundary`] is the
//! only way in.
//!
//! Handles are tagged: null, freed handles and handles of another kind are errors. Panics do not
//! cross. Output arguments are written even when a function fails. Errors lie on the context, or in
//! the `tiledb_error_t**` where there is no context.

pub mod array;
pub mod attribute;
pub mod boundary;
pub mod buffer;
pub mod condition;
pub mod config;
pub mod ctx;
pub mod dimension;
pub mod dimension_label;
pub mod domain;
mod dump;
mod entry;
pub mod enumeration;
pub mod enums;
pub mod error;
pub mod evolution;
mod exception;
pub mod filestore;
pub mod filter;
pub mod fragment_info;
pub mod group;
pub mod handle;
mod heap;
pub mod maintain;
mod metadata;
pub mod ndrectangle;
pub mod object;
pub mod profile;
pub mod query;
pub mod schema;
pub mod serialize;
pub mod stats;
pub mod strings;
pub mod subarray;
mod uri;
pub mod version;
pub mod vfs;

//! Azulejo: TileDB's multi-dimensional array engine, written afresh in Rust.
#![deny(unsafe_code)]

pub mod array;
mod buffer_pool;
mod cancel;
pub mod check;
pub mod column;
pub mod condition;
pub mod config;
pub mod consolidate;
pub mod context;
pub mod error;
pub mod fragment_info;
pub mod group;
#[cfg(feature = "json")]
pub mod json;
pub mod label;
mod large_pages;
pub mod manifest;
pub mod object;
pub mod read;
pub mod space;
pub mod storage;
mod tile_cache;
pub mod write;

pub use array::{Array, TimeRange};
pub use azulejo_format as format;
pub use cancel::CancelHandle;
pub use column::{ColumnBuffers, ColumnSet};
pub use config::Config;
pub use context::{Context, Progress};
pub use error::{Error, Result};
pub use read::Reader;
pub use space::Subarray;
pub use write::{WriteLayout, WriteOptions, Writer};

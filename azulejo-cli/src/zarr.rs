//! Reading stores of Zarr, versions 2 and 3, in folders of this machine.
//!
//! A reader of our own rather than the crate `zarrs`: only the way in is needed, and that crate
//! brings 46 more with it. What is not supported is refused by name.

mod blosc;
mod codec;
mod element;
mod metadata;
mod node;
mod places;
mod store;

pub use element::unbase64;
pub use metadata::ArrayMetadata;
pub use node::{Group, Node, is_store, open};
pub use places::Boxes;
pub use store::{Cells, ChunkStore, FilledBox};

use crate::error::FileError;

/// The result of reading a store.
pub type Result<T, E = FileError> = std::result::Result<T, E>;

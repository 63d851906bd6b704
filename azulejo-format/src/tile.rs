//! Tiles as stored: chunks that were filtered one by one. Page: *Tile*.

mod chunk;
mod coords;
pub mod generic_tile;
pub mod var_offsets;

pub use chunk::{Chunk, ChunkHeader, PlainHeaders, TileChunks, encode_no_chunks};
pub use coords::{coords_are_split, zip_coords};
pub use generic_tile::{GenericTile, GenericTileHeader};

//! Tiles as stored: chunks that were filtered one by one. Page: *Tile*.

mod chunk;
mod coords;
mod decoder;
pub mod generic_tile;
pub mod var_offsets;

pub use chunk::{Chunk, ChunkHeader, PlainHeaders, encode_chunk_count};
pub use coords::{coords_are_split, zip_coords};
pub use decoder::{ChunkPlace, StoredBytes, TileDecoder, TileStep};
pub use generic_tile::{GenericTile, GenericTileHeader};

//! Coordinates, orders and tiles: pure arithmetic over domains.
//!
//! Coordinates of integer and datetime dimensions are handled as `u64` indices from the start of
//! the domain, so that negative domains and bounds at `i64::MIN` or `u64::MAX` need no special
//! cases.

mod axis_selection;
mod bisect;
pub(crate) mod cell_bound;
pub(crate) mod cell_order;
mod cell_slab;
pub(crate) mod copy;
pub(crate) mod hilbert;
pub(crate) mod keys;
pub(crate) mod ordinal;
mod subarray;
mod subarray_bytes;
pub(crate) mod tile_grid;

pub(crate) use axis_selection::{AxisSelection, Span};
pub use azulejo_format::schema::Layout;
pub(crate) use bisect::{first_where, try_first_where};
pub(crate) use cell_slab::CellSlab;
pub(crate) use subarray::is_number;
pub use subarray::{DimSelection, PointColumn, Points, Subarray};
pub(crate) use tile_grid::{FragmentGrid, TileGrid};
pub(crate) use tile_grid::{dimension_order, same_types, tiled_alike};

//! The array schema: domain, attributes, orders and filters of an array.
//!
//! Page: *Array Schema*.

mod attribute;
mod current_domain;
mod dimension;
mod dimension_label;
mod domain;
mod enumeration;

pub use attribute::{Attribute, DataOrder};
pub use current_domain::CurrentDomain;
pub use dimension::Dimension;
pub use dimension_label::DimensionLabel;
pub use domain::Domain;
pub use enumeration::Enumeration;

use crate::filter::Pipeline;
use crate::version::FormatVersion;

/// Whether every cell of the domain exists, or only those written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArrayType {
    /// Every cell exists; unwritten ones read as fill values.
    Dense,
    /// Only written cells exist.
    Sparse,
}

/// An order of cells or tiles, by its id on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Layout {
    /// The last dimension varies fastest.
    RowMajor = 0,
    /// The first dimension varies fastest.
    ColMajor = 1,
    /// Tile by tile, cells within a tile in cell order. Never stored in a schema.
    Global = 2,
    /// Any order. Never stored in a schema.
    Unordered = 3,
    /// By position on the Hilbert curve; a cell order of sparse arrays.
    Hilbert = 4,
}

/// An array schema, whatever version it was stored in.
#[derive(Debug, Clone, PartialEq)]
pub struct ArraySchema {
    /// The version it is (to be) stored in.
    pub version: FormatVersion,
    /// Dense or sparse.
    pub array_type: ArrayType,
    /// Whether a sparse array keeps several cells with the same coordinates.
    pub allows_dups: bool,
    /// Order of the space tiles.
    pub tile_order: Layout,
    /// Order of the cells in a tile.
    pub cell_order: Layout,
    /// Cells in a data tile of a sparse fragment.
    pub capacity: u64,
    /// Default filters of coordinates (and those of zipped coordinates below v5, of cell timestamps and delete metadata).
    pub coords_filters: Pipeline,
    /// Filters of var-length offsets.
    pub offsets_filters: Pipeline,
    /// Filters of validity bytes.
    pub validity_filters: Pipeline,
    /// The dimensions.
    pub domain: Domain,
    /// The attributes, in stored order (which names their files since v9).
    pub attributes: Vec<Attribute>,
    /// Dimension labels.
    pub dimension_labels: Vec<DimensionLabel>,
    /// Enumerations: name and file name in `__schema/__enumerations`, in stored order.
    pub enumerations: Vec<EnumerationRef>,
    /// The current domain, if one is set.
    pub current_domain: CurrentDomain,
}

/// Where a schema's enumeration lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EnumerationRef {
    /// The enumeration's name.
    pub name: String,
    /// File name in `__schema/__enumerations`.
    pub file_name: String,
}

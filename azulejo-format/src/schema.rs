//! The array schema: domain, attributes, orders and filters of an array.
//!
//! Page: *Array Schema*.

mod attribute;
mod build;
mod check;
mod current_domain;
mod dimension;
mod dimension_label;
mod domain;
mod enumeration;
mod evolution;
mod field;
#[cfg(test)]
mod tests;
mod tile_axis;

pub use attribute::{Attribute, DataOrder, quoted_name, shown_names};
pub use build::{NewArray, SchemaBuilder};
pub use check::SchemaError;
pub use current_domain::CurrentDomain;
pub use dimension::Dimension;
pub use dimension_label::DimensionLabel;
pub use domain::Domain;
pub use enumeration::{Enumeration, EnumerationIndex};
pub use evolution::SchemaEvolution;
pub use field::{CellType, FieldIndex};
pub use tile_axis::{Coordinate, TileAxis};

use crate::error::{DecodeError, Result};
use crate::filter::Pipeline;
use crate::version::FormatVersion;
use crate::wire::{ByteReader, ByteWriter};

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
    /// Default filters of coordinates (and those of zipped coordinates below v5, of cell timestamps
    /// and delete metadata).
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

const WHAT: &str = "array schema";

impl Layout {
    /// The layout with an id read at `offset`.
    pub fn from_id(id: u8, offset: usize) -> Result<Self> {
        match id {
            0 => Ok(Self::RowMajor),
            1 => Ok(Self::ColMajor),
            2 => Ok(Self::Global),
            3 => Ok(Self::Unordered),
            4 => Ok(Self::Hilbert),
            _ => Err(DecodeError::UnknownId {
                what: "layout",
                id: id.into(),
                offset,
            }),
        }
    }
}

/// Each attribute of a schema takes a kilobyte and more of whoever works with it.
const MOST_ATTRIBUTES: u32 = 1 << 16;

impl ArraySchema {
    /// Reads a schema of any version from the unfiltered payload of its generic tile.
    ///
    /// # Errors
    /// Bytes that are not a schema, and schemas that no engine could work with ([`Self::check`]).
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let r = &mut ByteReader::new(bytes);
        let version = FormatVersion::new(r.u32("schema version")?, WHAT)?;
        let allows_dups = if version.has_separate_dimensions() {
            r.flag("allows dups")?
        } else {
            false
        };
        let at = r.offset();
        let array_type = match r.u8("array type")? {
            0 => ArrayType::Dense,
            1 => ArrayType::Sparse,
            id => {
                return Err(DecodeError::UnknownId {
                    what: "array type",
                    id: id.into(),
                    offset: at,
                });
            }
        };
        let at = r.offset();
        let tile_order = Layout::from_id(r.u8("tile order")?, at)?;
        let at = r.offset();
        let cell_order = match (Layout::from_id(r.u8("cell order")?, at)?, array_type) {
            // The reference lets sparse arrays be created with this order, and sorts their cells in
            // column-major order.
            (Layout::Global, ArrayType::Sparse) => Layout::ColMajor,
            (order, _) => order,
        };
        let capacity = r.u64("capacity")?;
        let coords_filters = Pipeline::decode(r, version)?;
        let offsets_filters = Pipeline::decode(r, version)?;
        let validity_filters = if version.has_nullable() {
            Pipeline::decode(r, version)?
        } else {
            Pipeline::default()
        };
        let domain = Domain::decode(r, version)?;
        let count = r.u32("number of attributes")?;
        let at = r.offset();
        if count > MOST_ATTRIBUTES {
            return Err(DecodeError::invalid(
                WHAT,
                at,
                "more attributes than any array has",
            ));
        }
        let count = r.check_count(count.into(), 17, "attributes")?;
        let mut implied = Attribute::MAX_IMPLIED_FILL;
        let attributes = (0..count)
            .map(|_| Attribute::decode(r, version, &mut implied))
            .collect::<Result<_>>()?;
        let dimension_labels = if version.has_dimension_labels() {
            let count = r.u32("number of dimension labels")?;
            let count = r.check_count(count.into(), 28, "dimension labels")?;
            (0..count)
                .map(|_| DimensionLabel::decode(r))
                .collect::<Result<_>>()?
        } else {
            Vec::new()
        };
        let enumerations = if version.has_enumerations() {
            let count = r.u32("number of enumerations")?;
            let count = r.check_count(count.into(), 8, "enumerations")?;
            (0..count)
                .map(|_| EnumerationRef::decode(r))
                .collect::<Result<_>>()?
        } else {
            Vec::new()
        };
        let current_domain = if version.has_current_domain() {
            CurrentDomain::decode(r, &domain)?
        } else {
            CurrentDomain::Empty
        };
        r.finish(WHAT)?;
        let schema = Self {
            version,
            array_type,
            allows_dups,
            tile_order,
            cell_order,
            capacity,
            coords_filters,
            offsets_filters,
            validity_filters,
            domain,
            attributes,
            dimension_labels,
            enumerations,
            current_domain,
        };
        schema
            .check()
            .map_err(|error| DecodeError::invalid(WHAT, r.offset(), error.to_string()))?;
        Ok(schema)
    }

    /// Writes the schema in its version, as the payload of a generic tile; what that version lacks
    /// is left out.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let w = &mut ByteWriter::new();
        let version = self.version;
        w.u32(version.number());
        if version.has_separate_dimensions() {
            w.flag(self.allows_dups);
        }
        w.u8(match self.array_type {
            ArrayType::Dense => 0,
            ArrayType::Sparse => 1,
        });
        w.u8(self.tile_order as u8);
        w.u8(self.cell_order as u8);
        w.u64(self.capacity);
        self.coords_filters.encode(w, version);
        self.offsets_filters.encode(w, version);
        if version.has_nullable() {
            self.validity_filters.encode(w, version);
        }
        self.domain.encode(w, version);
        w.u32(count(&self.attributes));
        for attribute in &self.attributes {
            attribute.encode(w, version);
        }
        if version.has_dimension_labels() {
            w.u32(count(&self.dimension_labels));
            for label in &self.dimension_labels {
                label.encode(w);
            }
        }
        if version.has_enumerations() {
            w.u32(count(&self.enumerations));
            for enumeration in &self.enumerations {
                w.text32(&enumeration.name);
                w.text32(&enumeration.file_name);
            }
        }
        if version.has_current_domain() {
            self.current_domain.encode(w, &self.domain);
        }
        std::mem::take(w).into_bytes()
    }
}

impl EnumerationRef {
    fn decode(r: &mut ByteReader<'_>) -> Result<Self> {
        let len = r.u32("enumeration name length")?;
        let name = r.text(len.into(), "enumeration name")?;
        let len = r.u32("enumeration file name length")?;
        let file_name = r.text(len.into(), "enumeration file name")?;
        Ok(Self { name, file_name })
    }
}

/// The stored number of items; a schema in memory never holds four billion.
fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}

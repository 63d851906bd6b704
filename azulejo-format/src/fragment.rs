//! Fragments: what one write left behind. Metadata files, their parts, and the names of data files.
//!
//! A fragment is a folder with data files and `__fragment_metadata.tdb`. Since v3 that file is a
//! row of generic tiles ([`Section`]s) and a [`Footer`] at its end that says where each starts;
//! before, it is one generic tile ([`LegacyMetadata`]). Readers take a [`Footer`] first and the
//! sections as they need them.
//!
//! A **dense** fragment covers its non-empty domain expanded to whole space tiles; its data tiles
//! are those space tiles in tile order *within that expanded domain* (not within the array's
//! domain), all of the same number of cells. A **sparse** fragment holds its cells in global order,
//! cut into tiles of the schema's capacity, the last one shorter.
//!
//! Page: *Fragment*.

mod consolidated;
mod footer;
mod legacy;
mod metadata_file;
mod name;
mod numbers;
mod processed_conditions;
mod rtree;
#[cfg(test)]
pub(crate) mod sample;
mod section;
mod tile_index;
mod tile_stats;

pub(crate) use consolidated::last_component;
pub use consolidated::{ConsolidatedFooter, ConsolidatedFragmentMetadata};
pub use footer::{Footer, LocatedFooter, SectionRanges};
pub use legacy::LegacyMetadata;
pub use metadata_file::{FieldMetadata, FragmentMetadata};
pub use name::{FileNaming, FilePart, data_file_name, shared_file_name};
pub use numbers::Numbers;
pub use processed_conditions::ProcessedConditions;
pub use rtree::{DimensionRanges, RTree, RTreeBuilder, TileOverlap};
pub use section::{OptionalSection, Section, SectionOffsets, SectionRange};
pub use tile_index::{TileOffsets, TileSizes};
pub use tile_stats::{
    FieldStats, FragmentStats, StatsTrust, SumKind, TileBounds, TileNullCounts, TileSum, TileSums,
    has_min_max,
};

use crate::datatype::{CellValNum, Datatype};
use crate::schema::ArraySchema;
use crate::version::FormatVersion;

/// Something that a fragment stores a column of: the key of data files and of per-field metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// The attribute with this index in the schema.
    Attribute(usize),
    /// The dimension with this index (fragments since v5).
    Dimension(usize),
    /// All dimensions in one file (fragments below v5).
    ZippedCoords,
    /// When each cell was written (consolidated fragments with timestamps).
    Timestamps,
    /// When each cell was deleted, `u64::MAX` if it was not (consolidated fragments with delete
    /// metadata).
    DeleteTimestamps,
    /// Which processed condition deleted each cell, `u64::MAX` if none (same fragments).
    DeleteConditions,
}

impl Field {
    /// Type and shape of the field's cells; `None` if the schema has no such field.
    ///
    /// Zipped coordinates count as one value a dimension of the first dimension's type.
    #[must_use]
    pub fn layout(self, schema: &ArraySchema) -> Option<(Datatype, CellValNum)> {
        match self {
            Self::Attribute(i) => schema
                .attributes
                .get(i)
                .map(|a| (a.datatype, a.cell_val_num)),
            Self::Dimension(i) => schema
                .domain
                .dimensions
                .get(i)
                .map(|d| (d.datatype, d.cell_val_num)),
            Self::ZippedCoords => {
                let dimensions = &schema.domain.dimensions;
                let values = u32::try_from(dimensions.len()).ok()?;
                dimensions
                    .first()
                    .map(|d| (d.datatype, CellValNum::Fixed(values)))
            }
            Self::Timestamps | Self::DeleteTimestamps | Self::DeleteConditions => {
                Some((Datatype::UInt64, CellValNum::ONE))
            }
        }
    }

    /// Whether the field's cells can be null.
    #[must_use]
    pub fn is_nullable(self, schema: &ArraySchema) -> bool {
        matches!(self, Self::Attribute(i) if schema.attributes.get(i).is_some_and(|a| a.nullable))
    }

    /// Whether the field's cells vary in length.
    #[must_use]
    pub fn is_var(self, schema: &ArraySchema) -> bool {
        self.layout(schema).is_some_and(|(_, n)| n.is_var())
    }
}

/// Which fields have an entry in a fragment's metadata, and at which position.
///
/// Attributes come first, then the zipped coordinates (an entry that exists, unused, in later
/// versions too), then the dimensions (since v5), then the timestamps, then the two fields of
/// delete metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slots {
    attributes: usize,
    dimensions: usize,
    timestamps: bool,
    delete_metadata: bool,
}

impl Slots {
    /// The slots of a fragment of `schema`.
    #[must_use]
    pub fn new(
        version: FormatVersion,
        schema: &ArraySchema,
        timestamps: bool,
        delete_metadata: bool,
    ) -> Self {
        let dimensions = if version.has_separate_dimensions() {
            schema.domain.dimensions.len()
        } else {
            0
        };
        Self {
            attributes: schema.attributes.len(),
            dimensions,
            timestamps,
            delete_metadata,
        }
    }

    /// How many there are.
    #[must_use]
    pub const fn len(self) -> usize {
        self.attributes
            + 1
            + self.dimensions
            + self.timestamps as usize
            + if self.delete_metadata { 2 } else { 0 }
    }

    /// Never: the zipped coordinates always have a slot.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        false
    }

    /// How many dimensions have files of their own: none below v5.
    #[must_use]
    pub const fn dimension_num(self) -> usize {
        self.dimensions
    }

    /// The position of a field, if the fragment can hold it.
    #[must_use]
    pub fn of(self, field: Field) -> Option<usize> {
        let first_special = self.attributes + 1 + self.dimensions;
        match field {
            Field::Attribute(i) => (i < self.attributes).then_some(i),
            Field::ZippedCoords => Some(self.attributes),
            Field::Dimension(i) => (i < self.dimensions).then_some(self.attributes + 1 + i),
            Field::Timestamps => self.timestamps.then_some(first_special),
            Field::DeleteTimestamps => self
                .delete_metadata
                .then_some(first_special + usize::from(self.timestamps)),
            Field::DeleteConditions => self
                .delete_metadata
                .then_some(first_special + usize::from(self.timestamps) + 1),
        }
    }

    /// The fields in the order of their slots.
    pub fn fields(self) -> impl Iterator<Item = Field> {
        let delete = [Field::DeleteTimestamps, Field::DeleteConditions];
        (0..self.attributes)
            .map(Field::Attribute)
            .chain([Field::ZippedCoords])
            .chain((0..self.dimensions).map(Field::Dimension))
            .chain(self.timestamps.then_some(Field::Timestamps))
            .chain(delete.into_iter().filter(move |_| self.delete_metadata))
    }

    /// How many entries lists of var-length files have: zipped coordinates, which come last below
    /// v5, have none there.
    pub(crate) const fn var_len(self, version: FormatVersion) -> usize {
        if version.has_separate_dimensions() {
            self.len()
        } else {
            self.attributes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_number_the_fields() {
        for version in FormatVersion::all() {
            let schema = sample::schema(version, &[Datatype::Int64, Datatype::Int64]);
            for (timestamps, deletes) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                let slots = Slots::new(version, &schema, timestamps, deletes);
                let fields: Vec<Field> = slots.fields().collect();
                assert_eq!(fields.len(), slots.len());
                for (slot, field) in fields.iter().enumerate() {
                    assert_eq!(slots.of(*field), Some(slot));
                }
                assert_eq!(slots.of(Field::ZippedCoords), Some(3));
                assert_eq!(slots.of(Field::Attribute(3)), None);
                assert_eq!(slots.of(Field::Dimension(2)), None);
                assert_eq!(
                    slots.of(Field::Dimension(1)).is_some(),
                    version.has_separate_dimensions()
                );
                assert_eq!(slots.of(Field::Timestamps).is_some(), timestamps);
                assert_eq!(slots.of(Field::DeleteConditions).is_some(), deletes);
            }
        }
    }
}

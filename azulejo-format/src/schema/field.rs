//! Finding fields by name, and what is true of any field.

use super::{ArraySchema, ArrayType, Attribute, Dimension, DimensionLabel, EnumerationRef};
use crate::datatype::{CellValNum, Datatype};
use crate::filter::Pipeline;

/// A field of an array: where it stands in its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldIndex {
    /// An index into [`ArraySchema::attributes`].
    Attribute(usize),
    /// An index into the domain's dimensions.
    Dimension(usize),
}

/// What the cells of a field are. An attribute that was dropped and added again with another of these
/// is another attribute: fragments from before have no cells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellType {
    /// The type of the values.
    pub datatype: Datatype,
    /// Values in a cell.
    pub cell_val_num: CellValNum,
    /// Whether cells can be null.
    pub nullable: bool,
}

impl CellType {
    /// Whether cells of `other` are stored alike and mean the same: bytes may have become geometries
    /// since, or these bytes.
    #[must_use]
    pub fn is_stored_as(&self, other: &Self) -> bool {
        let alike =
            self.datatype == other.datatype || self.datatype.is_byte() && other.datatype.is_byte();
        alike && self.cell_val_num == other.cell_val_num && self.nullable == other.nullable
    }
}

impl ArraySchema {
    /// What the cells of the field with a name are, if there is one.
    #[must_use]
    pub fn cell_type(&self, name: &str) -> Option<CellType> {
        let field = self.field(name)?;
        let (datatype, cell_val_num) = self.type_of(field)?;
        Some(CellType {
            datatype,
            cell_val_num,
            nullable: self.is_nullable(field),
        })
    }

    /// The field with a name, which is empty for an anonymous one. Names are unique among
    /// attributes and dimensions.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<FieldIndex> {
        let attribute = self
            .attributes
            .iter()
            .position(|a| a.name == name)
            .map(FieldIndex::Attribute);
        attribute.or_else(|| self.domain.index_of(name).map(FieldIndex::Dimension))
    }

    /// All dimensions, then all attributes, in stored order.
    pub fn fields(&self) -> impl Iterator<Item = FieldIndex> + use<> {
        let dimensions = (0..self.domain.ndim()).map(FieldIndex::Dimension);
        dimensions.chain((0..self.attributes.len()).map(FieldIndex::Attribute))
    }

    /// The attribute at an index, if there is one.
    #[must_use]
    pub fn attribute(&self, index: usize) -> Option<&Attribute> {
        self.attributes.get(index)
    }

    /// The dimension at an index, if there is one.
    #[must_use]
    pub fn dimension(&self, index: usize) -> Option<&Dimension> {
        self.domain.dimensions.get(index)
    }

    /// The dimension label with a name.
    #[must_use]
    pub fn dimension_label(&self, name: &str) -> Option<&DimensionLabel> {
        self.dimension_labels
            .iter()
            .find(|label| label.name == name)
    }

    /// Where the enumeration with a name lies.
    #[must_use]
    pub fn enumeration(&self, name: &str) -> Option<&EnumerationRef> {
        self.enumerations
            .iter()
            .find(|enumeration| enumeration.name == name)
    }

    /// Whether every cell of the domain exists.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.array_type == ArrayType::Dense
    }

    /// The name of a field; empty for an index that the schema has not.
    #[must_use]
    pub fn name_of(&self, field: FieldIndex) -> &str {
        match field {
            FieldIndex::Attribute(i) => self.attribute(i).map_or("", |a| &a.name),
            FieldIndex::Dimension(i) => self.dimension(i).map_or("", |d| &d.name),
        }
    }

    /// The type of a field's values and how many make a cell; `None` for an index that the schema
    /// has not.
    #[must_use]
    pub fn type_of(&self, field: FieldIndex) -> Option<(Datatype, CellValNum)> {
        match field {
            FieldIndex::Attribute(i) => self.attribute(i).map(|a| (a.datatype, a.cell_val_num)),
            FieldIndex::Dimension(i) => self.dimension(i).map(|d| (d.datatype, d.cell_val_num)),
        }
    }

    /// Bytes of one cell of a field; `None` where cells vary.
    #[must_use]
    pub fn cell_size(&self, field: FieldIndex) -> Option<usize> {
        self.type_of(field)
            .and_then(|(datatype, cell_val_num)| cell_val_num.cell_size(datatype))
    }

    /// Whether cells of a field vary in length.
    #[must_use]
    pub fn is_var(&self, field: FieldIndex) -> bool {
        self.type_of(field)
            .is_some_and(|(_, cell_val_num)| cell_val_num.is_var())
    }

    /// Whether cells of a field can be null.
    #[must_use]
    pub fn is_nullable(&self, field: FieldIndex) -> bool {
        match field {
            FieldIndex::Attribute(i) => self.attribute(i).is_some_and(|a| a.nullable),
            FieldIndex::Dimension(_) => false,
        }
    }

    /// The filters of a field's data: a dimension without its own has the schema's
    /// `coords_filters`.
    ///
    /// Not so in a schema below v5, which filters its zipped coordinates by `coords_filters`
    /// (whatever this says): a newer fragment in such an array has unfiltered dimensions.
    #[must_use]
    pub fn filters_of(&self, field: FieldIndex) -> &Pipeline {
        match field {
            FieldIndex::Attribute(i) => self
                .attribute(i)
                .map_or(&self.coords_filters, |a| &a.filters),
            FieldIndex::Dimension(i) => match self.dimension(i).map(|d| &d.filters) {
                Some(own) if !own.filters.is_empty() || !self.version.has_separate_dimensions() => {
                    own
                }
                _ => &self.coords_filters,
            },
        }
    }
}

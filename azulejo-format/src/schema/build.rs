//! Making schemas: a builder, and what a new array consists of.

use super::{
    ArraySchema, ArrayType, Attribute, CurrentDomain, DataOrder, Dimension, DimensionLabel, Domain,
    Enumeration, EnumerationRef, Layout, SchemaError,
};
use crate::datatype::{CellValNum, Datatype, Native, Physical, dispatch};
use crate::filter::{Filter, Pipeline};
use crate::path::LABELS_FOLDER;
use crate::range::{NdRectangle, Range};
use crate::version::FormatVersion;
use std::ops::RangeInclusive;

/// Cells in a data tile of a sparse fragment unless set.
const DEFAULT_CAPACITY: u64 = 10_000;
/// Names in arrays of dimension labels.
const LABEL_DIMENSION: &str = "index";
const LABEL_ATTRIBUTE: &str = "label";

/// All that a new array consists of: its schema, and what the schema only refers to.
#[derive(Debug, Clone, PartialEq)]
pub struct NewArray {
    /// The schema.
    pub schema: ArraySchema,
    /// Its enumerations, in any order.
    pub enumerations: Vec<Enumeration>,
    /// The schemas of its dimension labels' arrays, in the order of the labels; of labels outside
    /// the array they mean nothing.
    pub label_schemas: Vec<ArraySchema>,
}

impl From<ArraySchema> for NewArray {
    /// A new array without enumerations; the arrays of dimension labels get the usual schema. Where
    /// a dimension has no tile extent, a tile spans its domain (in Hilbert order apart): so the
    /// reference does it, and readers rely on it. Where the filters of coordinates would not give
    /// back the times of cells they become the dimensions' own. Pictures of no size are as large as
    /// tiles.
    fn from(schema: ArraySchema) -> Self {
        let mut schema = schema.with_times_filters();
        if schema.cell_order != Layout::Hilbert {
            schema
                .domain
                .dimensions
                .iter_mut()
                .for_each(Dimension::fill_tile_extent);
        }
        schema.fill_picture_extents();
        let label_schemas = schema
            .dimension_labels
            .iter()
            .map(|label| label_schema(&schema, label))
            .collect();
        Self {
            schema,
            enumerations: Vec::new(),
            label_schemas,
        }
    }
}

impl From<&ArraySchema> for NewArray {
    fn from(schema: &ArraySchema) -> Self {
        Self::from(schema.clone())
    }
}

impl NewArray {
    /// Checks all rules that a new array must keep to.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self) -> Result<(), SchemaError> {
        self.schema.validate()?;
        self.schema.check_filters_beside()?;
        if !self.schema.version.is_writable() {
            return Err(SchemaError::Version {
                feature: "a new array",
                version: self.schema.version,
            });
        }
        for reference in &self.schema.enumerations {
            let error = |reason| SchemaError::Enumeration {
                name: reference.name.clone(),
                reason,
            };
            let mut found = self
                .enumerations
                .iter()
                .filter(|e| e.name == reference.name);
            match (found.next(), found.next()) {
                (Some(one), None) if one.file_name == reference.file_name => one.check()?,
                (Some(_), None) => return Err(error("has another file name than the schema says")),
                (Some(_), Some(_)) => return Err(error("is given twice")),
                (None, _) => return Err(error("has no values")),
            }
        }
        for enumeration in &self.enumerations {
            if self.schema.enumeration(&enumeration.name).is_none() {
                let name = enumeration.name.clone();
                return Err(SchemaError::Enumeration {
                    name,
                    reason: "is not one of the schema's",
                });
            }
        }
        for attribute in &self.schema.attributes {
            attribute.check_enumeration(&self.enumerations)?;
        }
        if self.label_schemas.len() != self.schema.dimension_labels.len() {
            return Err(SchemaError::LabelSchemas {
                labels: self.schema.dimension_labels.len(),
                schemas: self.label_schemas.len(),
            });
        }
        self.labels()
            .try_for_each(|(label, schema)| self.check_label(label, schema))
    }

    /// The dimension labels whose arrays lie in the array, and their schemas.
    pub fn labels(&self) -> impl Iterator<Item = (&DimensionLabel, &ArraySchema)> {
        self.schema
            .dimension_labels
            .iter()
            .zip(&self.label_schemas)
            .filter(|(label, _)| !label.external)
    }

    fn check_label(&self, label: &DimensionLabel, schema: &ArraySchema) -> Result<(), SchemaError> {
        let error = |reason| {
            Err(SchemaError::Label {
                name: label.name.clone(),
                reason,
            })
        };
        schema.validate()?;
        schema.check_filters_beside()?;
        let [dimension] = schema.domain.dimensions.as_slice() else {
            return error("needs an array with one dimension");
        };
        let labelled = self.schema.dimension(label.dimension as usize);
        if labelled.map(|d| (d.datatype, d.cell_val_num))
            != Some((dimension.datatype, dimension.cell_val_num))
        {
            return error("has an array whose dimension is of another type than the labelled one");
        }
        match schema
            .attributes
            .iter()
            .find(|attribute| attribute.name == label.attribute)
        {
            None => error("has an array without the attribute of the labels"),
            Some(attribute) if attribute.order != label.order => {
                error("has an array in another order")
            }
            Some(attribute)
                if (attribute.datatype, attribute.cell_val_num)
                    != (label.datatype, label.cell_val_num) =>
            {
                error("has an array with labels of another type")
            }
            Some(_) => Ok(()),
        }
    }
}

impl DimensionLabel {
    /// A label whose array lies in the array's folder of labels, in a folder of this name.
    pub fn within(
        dimension: u32,
        name: impl Into<String>,
        order: DataOrder,
        datatype: Datatype,
        folder: &str,
    ) -> Self {
        let cell_val_num = if datatype == Datatype::StringAscii {
            CellValNum::Var
        } else {
            CellValNum::ONE
        };
        Self {
            dimension,
            order,
            name: name.into(),
            relative: true,
            uri: format!("{LABELS_FOLDER}/{folder}"),
            attribute: LABEL_ATTRIBUTE.to_owned(),
            datatype,
            cell_val_num,
            external: false,
        }
    }
}

impl ArraySchema {
    /// This schema with one label more, in a version that has labels, and the schema of the
    /// label's array.
    ///
    /// # Errors
    /// A name that is taken, a dimension that is not there or cannot be labelled.
    pub fn labelled(&self, label: DimensionLabel) -> Result<(Self, Self), SchemaError> {
        let mut next = self.to_change();
        let own = label_schema(&next, &label);
        next.dimension_labels.push(label);
        next.validate()?;
        own.validate()?;
        Ok((next, own))
    }
}

/// The schema of the array that holds a label, as the reference makes it.
fn label_schema(schema: &ArraySchema, label: &DimensionLabel) -> ArraySchema {
    let mut values = Attribute::new(&label.attribute, label.datatype, label.cell_val_num);
    values.order = label.order;
    let mut builder = ArraySchema::dense().attribute_with(values);
    if let Some(labelled) = schema.dimension(label.dimension as usize) {
        let index = Dimension {
            name: LABEL_DIMENSION.to_owned(),
            filters: Pipeline::default(),
            ..labelled.clone()
        };
        builder = builder.dimension_with(index);
    }
    builder.finish().schema
}

/// Makes a schema step by step; [`Self::build`] checks it.
#[derive(Debug, Clone)]
#[must_use]
pub struct SchemaBuilder {
    schema: ArraySchema,
    enumerations: Vec<Enumeration>,
}

impl ArraySchema {
    /// Begins the schema of a dense array: row-major, without dimensions and attributes.
    pub fn dense() -> SchemaBuilder {
        SchemaBuilder::new(ArrayType::Dense)
    }

    /// Begins the schema of a sparse array: row-major, 10,000 cells a tile, no duplicates, without
    /// dimensions and attributes.
    pub fn sparse() -> SchemaBuilder {
        SchemaBuilder::new(ArrayType::Sparse)
    }
}

impl SchemaBuilder {
    fn new(array_type: ArrayType) -> Self {
        let only = |filter| Pipeline {
            filters: vec![filter],
            ..Pipeline::default()
        };
        let schema = ArraySchema {
            version: FormatVersion::CURRENT,
            array_type,
            allows_dups: false,
            tile_order: Layout::RowMajor,
            cell_order: Layout::RowMajor,
            capacity: DEFAULT_CAPACITY,
            coords_filters: only(Filter::Zstd { level: -1 }),
            offsets_filters: only(Filter::Zstd { level: -1 }),
            validity_filters: only(Filter::Rle { level: -1 }),
            domain: Domain::default(),
            attributes: Vec::new(),
            dimension_labels: Vec::new(),
            enumerations: Vec::new(),
            current_domain: CurrentDomain::Empty,
        };
        Self {
            schema,
            enumerations: Vec::new(),
        }
    }

    /// Adds a dimension of numbers: its inclusive domain, and how many of them (for reals, how
    /// much) a tile spans.
    pub fn dimension<T: Native>(
        self,
        name: impl Into<String>,
        domain: RangeInclusive<T>,
        tile_extent: T,
    ) -> Self {
        self.dimension_with(Dimension::new(name, domain).tile_extent(tile_extent))
    }

    /// Adds a dimension of ASCII strings.
    pub fn string_dimension(self, name: impl Into<String>) -> Self {
        self.dimension_with(Dimension::string(name))
    }

    /// Adds a dimension made by hand. Without a tile extent, a tile spans its domain.
    pub fn dimension_with(mut self, dimension: Dimension) -> Self {
        self.schema.domain.dimensions.push(dimension);
        self
    }

    /// Adds an attribute with one value a cell, not nullable, without filters. A value of a type
    /// of strings is a text of any length; for text of a fixed length give
    /// [`Self::attribute_with`] an [`Attribute`] that says how long.
    pub fn attribute(self, name: impl Into<String>, datatype: Datatype) -> Self {
        let cell_val_num = if datatype.is_string() {
            CellValNum::Var
        } else {
            CellValNum::ONE
        };
        self.attribute_with(Attribute::new(name, datatype, cell_val_num))
    }

    /// Adds an attribute with any number of values a cell, not nullable, without filters.
    pub fn var_attribute(self, name: impl Into<String>, datatype: Datatype) -> Self {
        self.attribute_with(Attribute::new(name, datatype, CellValNum::Var))
    }

    /// Whether a dimension of this name was added.
    #[must_use]
    pub fn has_dimension(&self, name: &str) -> bool {
        let dimensions = &self.schema.domain.dimensions;
        dimensions.iter().any(|dimension| dimension.name == name)
    }

    /// Adds an attribute made by hand.
    pub fn attribute_with(mut self, attribute: Attribute) -> Self {
        self.schema.attributes.push(attribute);
        self
    }

    /// Adds an enumeration, for attributes to refer to.
    pub fn enumeration(mut self, enumeration: Enumeration) -> Self {
        let (name, file_name) = (enumeration.name.clone(), enumeration.file_name.clone());
        self.schema
            .enumerations
            .push(EnumerationRef { name, file_name });
        self.enumerations.push(enumeration);
        self
    }

    /// Adds a label to the dimension with an index: an array of its own in this array's folder.
    pub fn label(
        mut self,
        dimension: u32,
        name: impl Into<String>,
        order: DataOrder,
        datatype: Datatype,
    ) -> Self {
        let labels = self.schema.dimension_labels.iter();
        let folder = format!("l{}", labels.filter(|label| !label.external).count());
        self.schema.dimension_labels.push(DimensionLabel::within(
            dimension, name, order, datatype, &folder,
        ));
        self
    }

    /// Sets the order of the tiles.
    pub fn tile_order(mut self, order: Layout) -> Self {
        self.schema.tile_order = order;
        self
    }

    /// Sets the order of the cells in a tile.
    pub fn cell_order(mut self, order: Layout) -> Self {
        self.schema.cell_order = order;
        self
    }

    /// Sets how many cells a data tile of a sparse fragment holds.
    pub fn capacity(mut self, cells: u64) -> Self {
        self.schema.capacity = cells;
        self
    }

    /// Says whether a sparse array keeps several cells with the same coordinates.
    pub fn allows_duplicates(mut self, allows: bool) -> Self {
        self.schema.allows_dups = allows;
        self
    }

    /// Sets the filters of dimensions that have none of their own (Zstandard unless set).
    pub fn coords_filters(mut self, filters: Pipeline) -> Self {
        self.schema.coords_filters = filters;
        self
    }

    /// Sets the filters of the offsets of variable-length cells (Zstandard unless set).
    pub fn offsets_filters(mut self, filters: Pipeline) -> Self {
        self.schema.offsets_filters = filters;
        self
    }

    /// Sets the filters of validity bytes (run lengths unless set).
    pub fn validity_filters(mut self, filters: Pipeline) -> Self {
        self.schema.validity_filters = filters;
        self
    }

    /// Sets the part of the domain that is in use at first, one range a dimension. Evolution can
    /// expand it.
    pub fn current_domain(mut self, ranges: impl Into<Vec<Range>>) -> Self {
        self.schema.current_domain = CurrentDomain::NdRectangle(NdRectangle {
            ranges: ranges.into(),
        });
        self
    }

    /// Sets the format version (22 unless set). Older programs read older versions.
    pub fn version(mut self, version: FormatVersion) -> Self {
        self.schema.version = version;
        self
    }

    /// Checks everything that was said.
    ///
    /// # Errors
    /// The first rule that the schema breaks.
    pub fn build(self) -> Result<NewArray, SchemaError> {
        let array = self.finish();
        array.check()?;
        Ok(array)
    }

    fn finish(self) -> NewArray {
        NewArray {
            enumerations: self.enumerations,
            ..NewArray::from(self.schema)
        }
    }
}

impl ArraySchema {
    /// Makes pictures (the WebP filter) that have no size as large as tiles, where such a tile can be
    /// one.
    pub(super) fn fill_picture_extents(&mut self) {
        let extent = |index: usize| {
            let axis = self.domain.dimensions.get(index)?.axis()?;
            u16::try_from(axis.extent()).ok()
        };
        let (Some(rows), Some(columns)) = (extent(0), extent(1)) else {
            return;
        };
        let filters = self.attributes.iter_mut();
        for filter in filters.flat_map(|attribute| &mut attribute.filters.filters) {
            if let Filter::Webp {
                y_extent: y @ 0,
                x_extent: x @ 0,
                ..
            } = filter
            {
                (*y, *x) = (rows, columns);
            }
        }
    }
}

impl Dimension {
    /// A dimension of numbers without a tile extent and without filters of its own.
    #[must_use]
    pub fn new<T: Native>(name: impl Into<String>, domain: RangeInclusive<T>) -> Self {
        Self {
            domain: Some(Range::of(*domain.start(), *domain.end())),
            ..Self::of_type(name, datatype_of(T::PHYSICAL))
        }
    }

    /// A dimension of ASCII strings without filters of its own.
    #[must_use]
    pub fn string(name: impl Into<String>) -> Self {
        Self::of_type(name, Datatype::StringAscii)
    }

    /// A dimension of a type, whose coordinates vary in length if it is one of strings, without
    /// domain, tile extent and filters of its own.
    #[must_use]
    pub fn of_type(name: impl Into<String>, datatype: Datatype) -> Self {
        Self {
            name: name.into(),
            datatype,
            cell_val_num: if datatype.is_string() {
                CellValNum::Var
            } else {
                CellValNum::ONE
            },
            filters: Pipeline::default(),
            domain: None,
            tile_extent: None,
        }
    }

    /// With a type whose values lie in memory as those of the domain do, such as a datetime for
    /// `i64`.
    #[must_use]
    pub fn datatype(mut self, datatype: Datatype) -> Self {
        self.datatype = datatype;
        self
    }

    /// With this many values (for reals, this much) to a tile.
    #[must_use]
    pub fn tile_extent<T: Native>(mut self, extent: T) -> Self {
        let mut bytes = vec![0; T::SIZE];
        extent.write(&mut bytes);
        self.tile_extent = Some(bytes);
        self
    }

    /// With filters of its own.
    #[must_use]
    pub fn filters(mut self, filters: Pipeline) -> Self {
        self.filters = filters;
        self
    }

    /// Makes a tile span the domain where no extent is set.
    pub fn fill_tile_extent(&mut self) {
        fn extent<T: Native>(dimension: &Dimension, domain: &Range) -> Option<Vec<u8>> {
            let (low, high) = domain.bounds::<T>();
            let mut bytes = vec![0; T::SIZE];
            match dimension.axis() {
                // The length of a domain is an unsigned number in the bytes of the type, also where
                // the type is signed.
                Some(axis) => {
                    let cells = axis.cells().to_le_bytes();
                    bytes.copy_from_slice(cells.get(..T::SIZE)?);
                }
                None if T::PHYSICAL == Physical::F32 => {
                    // Subtracted as the type does it.
                    (f32::read(&domain.end) - f32::read(&domain.start)).write(&mut bytes);
                }
                None if T::PHYSICAL == Physical::F64 => {
                    (high.as_f64() - low.as_f64()).write(&mut bytes);
                }
                None => return None,
            }
            Some(bytes)
        }
        if self.tile_extent.is_none()
            && let Some(domain) = &self.domain
        {
            self.tile_extent = dispatch!(self.datatype.physical(), T => extent::<T>(self, domain));
        }
    }
}

impl Attribute {
    /// With cells that can be null.
    #[must_use]
    pub fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// With filters.
    #[must_use]
    pub fn filters(mut self, filters: Pipeline) -> Self {
        self.filters = filters;
        self
    }

    /// With another fill value: one whole cell, or any number of values where cells vary.
    #[must_use]
    pub fn fill_value(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.fill_value = bytes.into();
        self
    }

    /// With values that are indices into an enumeration.
    #[must_use]
    pub fn enumerated(mut self, enumeration: impl Into<String>) -> Self {
        self.enumeration = Some(enumeration.into());
        self
    }

    /// Checks that the attribute can hold every index of its enumeration, if that is among those
    /// given.
    pub(super) fn check_enumeration(
        &self,
        enumerations: &[Enumeration],
    ) -> Result<(), SchemaError> {
        let Some(name) = &self.enumeration else {
            return Ok(());
        };
        match enumerations.iter().find(|e| e.name == *name) {
            Some(enumeration) if self.datatype.max_integer() <= enumeration.len() as u64 => {
                Err(SchemaError::Attribute {
                    name: self.name.clone(),
                    reason: "has a type too small for the indices of its enumeration".to_owned(),
                })
            }
            _ => Ok(()),
        }
    }
}

/// The plain datatype of a machine type.
fn datatype_of(physical: Physical) -> Datatype {
    match physical {
        Physical::I8 => Datatype::Int8,
        Physical::I16 => Datatype::Int16,
        Physical::I32 => Datatype::Int32,
        Physical::I64 => Datatype::Int64,
        Physical::U8 => Datatype::UInt8,
        Physical::U16 => Datatype::UInt16,
        Physical::U32 => Datatype::UInt32,
        Physical::U64 => Datatype::UInt64,
        Physical::F32 => Datatype::Float32,
        Physical::F64 => Datatype::Float64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_in_one_sentence() {
        let new = ArraySchema::sparse()
            .dimension("x", 1i64..=100, 10)
            .dimension_with(Dimension::new("t", 0i64..=99).datatype(Datatype::DateTimeDay))
            .string_dimension("s")
            .dimension_with(Dimension::new("f", 1f32..=2.5))
            .attribute("a", Datatype::Float64)
            .var_attribute("b", Datatype::StringUtf8)
            .capacity(7)
            .allows_duplicates(true)
            .cell_order(Layout::ColMajor)
            .build()
            .unwrap();
        let schema = &new.schema;
        assert_eq!(ArraySchema::decode(&schema.encode()).unwrap(), *schema);
        let extent = |i: usize| schema.dimension(i).unwrap().tile_extent.clone();
        assert_eq!(extent(0), Some(10i64.to_le_bytes().to_vec()));
        assert_eq!(extent(1), Some(100i64.to_le_bytes().to_vec()));
        assert_eq!(extent(2), None);
        assert_eq!(extent(3), Some(1.5f32.to_le_bytes().to_vec()));
        assert_eq!(
            (schema.capacity, schema.allows_dups, schema.version),
            (7, true, FormatVersion::CURRENT)
        );
    }

    #[test]
    fn hilbert_order_does_without_extents() {
        let new = ArraySchema::sparse()
            .dimension_with(Dimension::new("x", 0u8..=254))
            .cell_order(Layout::Hilbert)
            .build()
            .unwrap();
        assert_eq!(new.schema.dimension(0).unwrap().tile_extent, None);
        let new = ArraySchema::sparse()
            .dimension_with(Dimension::new("x", 0i8..=126))
            .build()
            .unwrap();
        assert_eq!(
            new.schema.dimension(0).unwrap().tile_extent,
            Some(vec![127])
        );
        // As an unsigned number.
        let new = ArraySchema::sparse()
            .dimension_with(Dimension::new("x", -128i8..=126))
            .build()
            .unwrap();
        assert_eq!(
            new.schema.dimension(0).unwrap().tile_extent,
            Some(vec![255])
        );
    }

    #[test]
    fn enumerations_come_with_their_values() {
        let words =
            Enumeration::of_strings("words", Datatype::StringUtf8, true, ["a", "b"]).unwrap();
        let attribute = Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words");
        let builder = ArraySchema::dense()
            .dimension("d", 0u32..=9, 5)
            .attribute_with(attribute);
        assert!(
            builder
                .clone()
                .build()
                .unwrap_err()
                .to_string()
                .contains("which the schema has not")
        );
        let new = builder.enumeration(words.clone()).build().unwrap();
        assert_eq!(new.enumerations, [words]);
        let error = NewArray::from(&new.schema).check().unwrap_err();
        assert!(error.to_string().contains("has no values"), "{error}");
        let many = Enumeration::of_strings(
            "m",
            Datatype::StringAscii,
            true,
            (0..127).map(|i| i.to_string()),
        );
        let attribute = Attribute::new("w", Datatype::Int8, CellValNum::ONE).enumerated("m");
        let error = ArraySchema::dense()
            .dimension("d", 0u32..=9, 5)
            .enumeration(many.unwrap())
            .attribute_with(attribute)
            .build()
            .unwrap_err();
        assert!(error.to_string().contains("too small"), "{error}");
    }

    #[test]
    fn labels_get_arrays_of_their_own() {
        let new = ArraySchema::dense()
            .dimension("d", 1i32..=8, 4)
            .attribute("a", Datatype::Int8)
            .label(0, "name", DataOrder::Increasing, Datatype::StringAscii)
            .label(0, "height", DataOrder::Decreasing, Datatype::Float32)
            .build()
            .unwrap();
        let uris: Vec<&str> = new.labels().map(|(label, _)| label.uri.as_str()).collect();
        assert_eq!(uris, ["__labels/l0", "__labels/l1"]);
        let schema = &new.label_schemas[0];
        assert!(schema.is_dense() && schema.validate().is_ok());
        assert_eq!(
            schema.name_of(crate::schema::FieldIndex::Dimension(0)),
            "index"
        );
        assert!(
            schema.attributes[0].is_var() && schema.attributes[0].order == DataOrder::Increasing
        );
        let mut shared = new.clone();
        let first = shared.schema.dimension_labels[0].uri.clone();
        shared.schema.dimension_labels[1].uri = first;
        let refused = shared.check().unwrap_err().to_string();
        assert!(refused.contains("folder of another"), "{refused}");
        let mut wrong = new.clone();
        wrong.label_schemas.swap(0, 1);
        assert!(
            wrong
                .check()
                .unwrap_err()
                .to_string()
                .contains("another order")
        );
        wrong.label_schemas.pop();
        assert!(wrong.check().is_err());
    }
}

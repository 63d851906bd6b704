//! What every schema must keep to ([`ArraySchema::check`]) and what a new one must
//! ([`ArraySchema::validate`]).
//!
//! Both follow what the reference enforces when it loads or creates an array. Loading also refuses
//! what the reference takes for granted, where no writer can have produced it and an engine would
//! stumble over it.

use super::{
    ArraySchema, Attribute, DataOrder, Dimension, DimensionLabel, Domain, FieldIndex, Layout,
    TileAxis,
};
use crate::datatype::{CellValNum, Datatype, Native, dispatch};
use crate::error::DecodeError;
use crate::filter::{Filter, Pipeline};
use crate::range::{Range, compare};
use crate::version::FormatVersion;
use std::cmp::Ordering;
use std::collections::HashSet;

/// The rule that a schema breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A domain without dimensions.
    #[error("it has no dimensions")]
    NoDimensions,
    /// A dense array without attributes.
    #[error("a dense array needs at least one attribute")]
    NoAttributes,
    /// A name that two attributes, dimensions or labels have.
    #[error("two of its attributes, dimensions and labels are named {name:?}")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// An order that cells or tiles cannot have, or not in this kind of array.
    #[error("its {what} order cannot be {order:?}: {reason}")]
    Order {
        /// `tile` or `cell`.
        what: &'static str,
        /// The order.
        order: Layout,
        /// Why.
        reason: &'static str,
    },
    /// A sparse array whose tiles would hold no cells.
    #[error("the capacity of a sparse array cannot be 0")]
    ZeroCapacity,
    /// A dense array that would allow duplicates.
    #[error("a dense array cannot allow duplicates")]
    DenseDuplicates,
    /// A dimension that cannot be.
    #[error("dimension {name:?} {reason}")]
    Dimension {
        /// The dimension.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An attribute that cannot be.
    #[error("attribute {name:?} {reason}")]
    Attribute {
        /// The attribute.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A dimension label that cannot be.
    #[error("dimension label {name:?} {reason}")]
    Label {
        /// The label.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Not one schema for each dimension label.
    #[error("there are {labels} dimension labels and schemas for {schemas}")]
    LabelSchemas {
        /// Labels.
        labels: usize,
        /// Schemas of their arrays.
        schemas: usize,
    },
    /// An enumeration that cannot be.
    #[error("enumeration {name:?} {reason}")]
    Enumeration {
        /// The enumeration.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A feature that the schema's version cannot store.
    #[error("{feature} cannot be stored in format version {version}")]
    Version {
        /// The feature.
        feature: &'static str,
        /// The schema's version.
        version: FormatVersion,
    },
    /// A tile of a dense array with more than 2^64 - 1 cells.
    #[error("a tile would have more than 2^64 - 1 cells")]
    TileTooLarge,
    /// Filters of what is stored beside the cells that would not give it back.
    #[error("its filters of {what} do not go together: {reason}")]
    Filters {
        /// `offsets`, `validity` or `the times of cells`.
        what: &'static str,
        /// What is wrong with them.
        reason: String,
    },
    /// A current domain that does not go with the domain.
    #[error("the current domain {reason}")]
    CurrentDomain {
        /// What is wrong with it.
        reason: String,
    },
}

type Check = Result<(), SchemaError>;

/// Dimensions that a Hilbert curve can run through: 63 bits are dealt out among them.
const MAX_HILBERT_DIMENSIONS: usize = 16;

impl ArraySchema {
    /// Checks what decoding enforces and every reader may rely on.
    pub fn check(&self) -> Check {
        let dimensions = &self.domain.dimensions;
        let Some(first) = dimensions.first() else {
            return Err(SchemaError::NoDimensions);
        };
        self.check_orders()?;
        for dimension in dimensions {
            dimension
                .check()
                .map_err(|reason| dimension.error(reason))?;
        }
        if self.is_dense() {
            if self.attributes.is_empty() {
                return Err(SchemaError::NoAttributes);
            }
            for dimension in dimensions {
                dimension
                    .check_dense(first.datatype)
                    .map_err(|reason| dimension.error(reason))?;
            }
            self.domain
                .cells_per_tile()
                .ok_or(SchemaError::TileTooLarge)?;
        } else if self.capacity == 0 {
            return Err(SchemaError::ZeroCapacity);
        }
        for attribute in &self.attributes {
            attribute
                .check()
                .map_err(|reason| attribute.error(reason))?;
        }
        self.check_names()?;
        for label in &self.dimension_labels {
            label.check(&self.domain)?;
        }
        let mut names = HashSet::new();
        for enumeration in &self.enumerations {
            let error = |reason| SchemaError::Enumeration {
                name: enumeration.name.clone(),
                reason,
            };
            if !is_file_name(&enumeration.file_name) {
                return Err(error("has a file name that is not one"));
            }
            if !names.insert(&enumeration.name) {
                return Err(error("is there twice"));
            }
        }
        if let Some(ranges) = self.current_domain.ranges() {
            check_current_domain(&self.domain, ranges)
                .map_err(|reason| SchemaError::CurrentDomain { reason })?;
        }
        Ok(())
    }

    /// Checks [`Self::check`] and all else that an array must keep to when it is created or
    /// evolved.
    pub fn validate(&self) -> Check {
        self.check()?;
        self.check_version()?;
        if self.is_dense() && self.allows_dups {
            return Err(SchemaError::DenseDuplicates);
        }
        for (index, dimension) in self.domain.dimensions.iter().enumerate() {
            let filters = self.filters_of(FieldIndex::Dimension(index));
            dimension
                .validate()
                .map_err(|reason| dimension.error(reason))?;
            // Coordinates of dense arrays are not stored: what the schema's filters would do to
            // them does not matter.
            if !self.is_dense() || !dimension.filters.filters.is_empty() {
                check_filters(filters, dimension.datatype, dimension.cell_val_num)
                    .map_err(|reason| dimension.error(reason))?;
            }
        }
        for (what, filters) in [
            ("coordinates", &self.coords_filters),
            ("offsets", &self.offsets_filters),
            ("validity", &self.validity_filters),
        ] {
            filters
                .check_length()
                .map_err(|error| beside(what, &error))?;
        }
        for attribute in &self.attributes {
            self.validate_attribute(attribute)
                .map_err(|reason| attribute.error(reason))?;
        }
        let mut files = HashSet::new();
        for enumeration in &self.enumerations {
            // The one that is written last would be both.
            if !files.insert(&enumeration.file_name) {
                return Err(SchemaError::Enumeration {
                    name: enumeration.name.clone(),
                    reason: "lies in the file of another enumeration",
                });
            }
        }
        let mut folders = HashSet::new();
        for label in &self.dimension_labels {
            let error = |reason| {
                Err(SchemaError::Label {
                    name: label.name.clone(),
                    reason,
                })
            };
            // Each would write over the other.
            if !label.external && !folders.insert(label.uri.trim_end_matches('/')) {
                return error("lies in the folder of another label");
            }
            let labelled = self.dimension(label.dimension as usize).map(|d| d.datatype);
            if !labelled.is_some_and(is_discrete) {
                return error("needs a dimension of integers, datetimes or times");
            }
            // Such labels can be read and searched here, but not in the reference.
            if label.order == DataOrder::Unordered {
                return error("must be increasing or decreasing");
            }
        }
        Ok(())
    }

    /// Checks that `offsets_filters` give back offsets. Stored schemas are not held to this, nor to the
    /// next two: the reference takes any filters.
    pub(super) fn check_offsets_filters(&self) -> Check {
        (self.offsets_filters.check_numbers(Datatype::UInt64, true))
            .map_err(|error| beside("offsets", &error))
    }

    /// Checks that `validity_filters` give back validity bytes.
    pub(super) fn check_validity_filters(&self) -> Check {
        (self.validity_filters.check_numbers(Datatype::UInt8, false))
            .map_err(|error| beside("validity", &error))
    }

    /// Checks that `coords_filters` give back the times of cells, which merged sparse fragments keep;
    /// `ascend` says whether these never decrease.
    ///
    /// # Errors
    /// The filter that would not.
    pub fn check_times_filters(&self, ascend: bool) -> Check {
        if self.is_dense() {
            return Ok(());
        }
        (self.coords_filters.check_numbers(Datatype::UInt64, ascend))
            .map_err(|error| beside("the times of cells", &error))
    }

    /// Checks the filters of all that its fields store beside their values.
    pub(super) fn check_filters_beside(&self) -> Check {
        let has_var = self.domain.dimensions.iter().any(Dimension::is_var) && !self.is_dense()
            || self.attributes.iter().any(Attribute::is_var);
        if has_var {
            self.check_offsets_filters()?;
        }
        if self.attributes.iter().any(|attribute| attribute.nullable) {
            self.check_validity_filters()?;
        }
        self.check_times_filters(false)
    }

    /// Encoding leaves out what the version lacks: a new schema must have nothing of that.
    fn check_version(&self) -> Check {
        let v = self.version;
        let attributes = |has: fn(&Attribute) -> bool| self.attributes.iter().any(has);
        let mut dimensions = self.domain.dimensions.iter();
        let uniform = dimensions.all(|d| {
            d.filters.filters.is_empty()
                && Some(d.datatype) == self.dimension(0).map(|first| first.datatype)
        });
        let strings = self.domain.dimensions.iter().any(Dimension::is_var);
        let default_fill = |a: &Attribute| {
            a.fill_value == super::attribute::default_fill(a.datatype, a.cell_val_num)
        };
        let rules = [
            (
                v.has_separate_dimensions() || !self.allows_dups,
                "a sparse array with duplicates",
            ),
            (
                v.has_separate_dimensions() || (uniform && !strings),
                "dimensions with their own types or filters",
            ),
            (
                v.has_fill_value() || self.attributes.iter().all(default_fill),
                "a fill value",
            ),
            (
                v.has_nullable() || !attributes(|a| a.nullable),
                "a nullable attribute",
            ),
            (
                v.has_attribute_order() || !attributes(|a| a.order != DataOrder::Unordered),
                "an ordered attribute",
            ),
            (
                v.has_dimension_labels() || self.dimension_labels.is_empty(),
                "a dimension label",
            ),
            (
                v.has_enumerations()
                    || (self.enumerations.is_empty() && !attributes(|a| a.enumeration.is_some())),
                "an enumeration",
            ),
            (
                v.has_current_domain() || self.current_domain.ranges().is_none(),
                "a current domain",
            ),
        ];
        match rules.into_iter().find(|(kept, _)| !kept) {
            Some((_, feature)) => Err(SchemaError::Version {
                feature,
                version: v,
            }),
            None => Ok(()),
        }
    }

    fn check_orders(&self) -> Check {
        let tile_order = |reason| SchemaError::Order {
            what: "tile",
            order: self.tile_order,
            reason,
        };
        let cell_order = |reason| SchemaError::Order {
            what: "cell",
            order: self.cell_order,
            reason,
        };
        if !matches!(self.tile_order, Layout::RowMajor | Layout::ColMajor) {
            return Err(tile_order("tiles are in row-major or column-major order"));
        }
        match self.cell_order {
            Layout::RowMajor | Layout::ColMajor => Ok(()),
            Layout::Hilbert if self.is_dense() => {
                Err(cell_order("only cells of sparse arrays can be"))
            }
            Layout::Hilbert if self.domain.ndim() > MAX_HILBERT_DIMENSIONS => {
                Err(cell_order("the domain has more than 16 dimensions"))
            }
            Layout::Hilbert => Ok(()),
            // It reads as column-major order.
            Layout::Global if !self.is_dense() => Ok(()),
            Layout::Global | Layout::Unordered => Err(cell_order(
                "cells are in row-major, column-major or Hilbert order",
            )),
        }
    }

    fn check_names(&self) -> Check {
        let mut names = HashSet::new();
        let all = (self.domain.dimensions.iter().map(|d| &d.name))
            .chain(self.attributes.iter().map(|a| &a.name))
            .chain(self.dimension_labels.iter().map(|l| &l.name));
        for name in all {
            if !names.insert(name) {
                return Err(SchemaError::DuplicateName { name: name.clone() });
            }
        }
        Ok(())
    }

    fn validate_attribute(&self, attribute: &Attribute) -> Result<(), String> {
        let (size, fill) = (attribute.datatype.size(), attribute.fill_value.len());
        if !fill.is_multiple_of(size.max(1)) {
            return Err(format!(
                "has a fill value of {fill} bytes, which are no whole values of {size}"
            ));
        }
        if attribute.name.starts_with("__") {
            return Err("has a name beginning with __, which are reserved".to_owned());
        }
        if attribute.order != DataOrder::Unordered {
            if attribute.nullable {
                return Err("is ordered and cannot be nullable".to_owned());
            }
            if !self.is_dense() || self.domain.ndim() != 1 {
                return Err(
                    "is ordered, which only dense arrays with one dimension support".to_owned(),
                );
            }
        }
        if let Some(name) = &attribute.enumeration {
            if self.enumeration(name).is_none() {
                return Err(format!(
                    "refers to enumeration {name:?}, which the schema has not"
                ));
            }
            // Truth values are integers here, as in the reference.
            let whole = attribute.datatype.is_integer() || attribute.datatype == Datatype::Bool;
            if !whole || attribute.cell_val_num != CellValNum::ONE {
                return Err("has an enumeration and must hold one integer a cell".to_owned());
            }
        }
        if attribute
            .filters
            .filters
            .iter()
            .any(|filter| matches!(filter, Filter::Webp { .. }))
        {
            if attribute.datatype != Datatype::UInt8 {
                return Err("has the WebP filter, which takes UINT8".to_owned());
            }
            let integers = self
                .domain
                .dimensions
                .iter()
                .all(|d| d.datatype.is_integer());
            if !self.is_dense() || self.domain.ndim() != 2 || !integers {
                return Err(
                    "has the WebP filter, which needs a dense array with two integer dimensions"
                        .to_owned(),
                );
            }
            let no_size = |filter: &Filter| matches!(filter, Filter::Webp { y_extent, x_extent, .. } if *y_extent == 0 || *x_extent == 0);
            if attribute.filters.filters.iter().any(no_size) {
                return Err(
                    "has the WebP filter, whose pictures have no size; tiles of more than 65,535 rows or bytes in one cannot be pictures"
                        .to_owned(),
                );
            }
        }
        let dictionary = attribute
            .filters
            .filters
            .iter()
            .any(|f| matches!(f, Filter::Dictionary { .. }));
        let has_dictionary = if attribute.datatype == Datatype::StringUtf8 {
            self.version.utf8_keeps_offsets()
        } else {
            self.version.dictionary_ascii_keeps_offsets()
        };
        if dictionary && !has_dictionary {
            return Err(format!(
                "has the dictionary filter, which version {} has not for its type",
                self.version
            ));
        }
        check_filters(
            &attribute.filters,
            attribute.datatype,
            attribute.cell_val_num,
        )
    }
}

impl Domain {
    /// Cells in a space tile, those past the domain's end included; `None` if a dimension has no
    /// discrete tiles or the number does not fit.
    #[must_use]
    pub fn cells_per_tile(&self) -> Option<u64> {
        self.dimensions.iter().try_fold(1u64, |cells, dimension| {
            cells.checked_mul(u64::try_from(dimension.axis()?.extent()).ok()?)
        })
    }
}

impl Dimension {
    fn error(&self, reason: impl Into<String>) -> SchemaError {
        SchemaError::Dimension {
            name: self.name.clone(),
            reason: reason.into(),
        }
    }

    fn check(&self) -> Result<(), String> {
        if !is_dimension_type(self.datatype) {
            return Err(format!("cannot be of type {}", self.datatype));
        }
        if self.datatype.is_string() {
            if !self.is_var() {
                return Err("holds strings and must be of variable length".to_owned());
            }
            if self.domain.is_some() || self.tile_extent.is_some() {
                return Err("holds strings and can have no domain and no tile extent".to_owned());
            }
            return Ok(());
        }
        if self.cell_val_num != CellValNum::ONE {
            return Err("must hold one value a cell".to_owned());
        }
        let size = self.datatype.size();
        let Some(domain) = &self.domain else {
            return Err("has no domain".to_owned());
        };
        if domain.start.len() != size || domain.end.len() != size {
            return Err(format!("has domain bounds that are not {size} bytes long"));
        }
        dispatch!(self.datatype.physical(), T => check_bounds::<T>(domain))?;
        let Some(extent) = &self.tile_extent else {
            return Ok(());
        };
        if extent.len() != size {
            return Err(format!("has a tile extent that is not {size} bytes long"));
        }
        dispatch!(self.datatype.physical(), T => check_extent::<T>(extent))
    }

    fn check_dense(&self, first: Datatype) -> Result<(), String> {
        if !is_discrete(self.datatype) {
            return Err(format!(
                "cannot be of type {} in a dense array",
                self.datatype
            ));
        }
        if self.datatype != first {
            return Err(format!(
                "must be of type {first}, as the first one is in this dense array"
            ));
        }
        Ok(())
    }

    /// What the reference checks only when a domain and an extent are set.
    fn validate(&self) -> Result<(), String> {
        match (&self.domain, self.axis()) {
            (_, Some(axis)) => self.validate_discrete(axis),
            (Some(domain), None) => match (&self.tile_extent, self.datatype) {
                (Some(extent), Datatype::Float32) => validate_real::<f32>(domain, extent),
                (Some(extent), _) => validate_real::<f64>(domain, extent),
                (None, _) => Ok(()),
            },
            (None, None) => Ok(()),
        }
    }

    fn validate_discrete(&self, axis: TileAxis) -> Result<(), String> {
        let highest = dispatch!(self.datatype.physical(), T => top::<T>());
        if axis.cells() == highest + 1 {
            return Err(
                "has a domain of all values of its type, which must be one smaller".to_owned(),
            );
        }
        if self.tile_extent.is_none() {
            return Ok(());
        }
        if axis.extent() > axis.cells() {
            return Err(format!(
                "has a tile extent of {}, its domain only {} values",
                axis.extent(),
                axis.cells()
            ));
        }
        // The last tile may leave a narrow type's range, but not that of 64 bits.
        let expanded = axis.tiles().saturating_mul(axis.extent());
        let room = dispatch!(self.datatype.physical(), T => room_above::<T>(&axis.coordinate(0)));
        if expanded > axis.cells() && expanded > room + 1 {
            return Err(
                "has a domain that, rounded up to whole tiles, does not fit in 64 bits".to_owned(),
            );
        }
        Ok(())
    }
}

impl Attribute {
    fn error(&self, reason: String) -> SchemaError {
        SchemaError::Attribute {
            name: self.name.clone(),
            reason,
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.datatype == Datatype::Any && !self.is_var() {
            return Err("is of type ANY and must be of variable length".to_owned());
        }
        if self.order != DataOrder::Unordered {
            let wanted = if self.datatype == Datatype::StringAscii {
                CellValNum::Var
            } else {
                CellValNum::ONE
            };
            if self.cell_val_num != wanted {
                return Err(
                    "is ordered and must hold one value, or one ASCII string, a cell".to_owned(),
                );
            }
        }
        match self.cell_size() {
            None if self.fill_value.is_empty() => Err("has an empty fill value".to_owned()),
            Some(size) if self.fill_value.len() != size => Err(format!(
                "has a fill value of {} bytes for cells of {size}",
                self.fill_value.len()
            )),
            _ => Ok(()),
        }
    }
}

impl DimensionLabel {
    fn check(&self, domain: &Domain) -> Check {
        let error = |reason| {
            Err(SchemaError::Label {
                name: self.name.clone(),
                reason,
            })
        };
        if self.dimension as usize >= domain.ndim() {
            return error("is on a dimension that the domain has not");
        }
        if self.name.is_empty() || self.uri.is_empty() || self.attribute.is_empty() {
            return error("needs a name, a URI and an attribute");
        }
        if !is_dimension_type(self.datatype) {
            return error("has a type that no dimension can have");
        }
        let wanted = if self.datatype == Datatype::StringAscii {
            CellValNum::Var
        } else {
            CellValNum::ONE
        };
        if self.cell_val_num != wanted {
            return error("must hold one value, or one ASCII string, a cell");
        }
        let outside =
            self.uri.starts_with('/') || self.uri.split(['/', '\\']).any(|part| part == "..");
        if !self.external && (!self.relative || outside) {
            return error("is part of the array and must lie in its folder");
        }
        Ok(())
    }
}

/// Types that coordinates can have.
fn is_dimension_type(datatype: Datatype) -> bool {
    is_discrete(datatype) || datatype.is_real() || datatype == Datatype::StringAscii
}

/// Types of coordinates that can be counted.
fn is_discrete(datatype: Datatype) -> bool {
    datatype.is_integer() || datatype.is_datetime() || datatype.is_time()
}

/// Whether a name stays in the folder that it is joined to.
fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', '\0'])
}

fn check_filters(
    filters: &Pipeline,
    datatype: Datatype,
    cell_val_num: CellValNum,
) -> Result<(), String> {
    filters.check(datatype, cell_val_num).map_err(|error| {
        let reason = filter_reason(&error);
        format!("has filters that do not go together: {reason}")
    })
}

fn filter_reason(error: &DecodeError) -> String {
    if let DecodeError::Filter { filter, reason } = error {
        format!("{filter} {reason}")
    } else {
        error.to_string()
    }
}

fn beside(what: &'static str, error: &DecodeError) -> SchemaError {
    SchemaError::Filters {
        what,
        reason: filter_reason(error),
    }
}

fn check_bounds<T: Native>(domain: &Range) -> Result<(), String> {
    let (low, high) = domain.bounds::<T>();
    if !low.as_f64().is_finite() || !high.as_f64().is_finite() {
        return Err("has a domain that is not finite".to_owned());
    }
    if low > high {
        return Err("has a domain that ends before it starts".to_owned());
    }
    Ok(())
}

/// Integers: not 0. Floats: not negative and not NaN; a domain of one point has the extent 0, the
/// widest one infinity.
fn check_extent<T: Native>(extent: &[u8]) -> Result<(), String> {
    let extent = T::read(extent);
    if T::PHYSICAL.is_integer() {
        if extent == T::default() {
            return Err("has a tile extent of 0".to_owned());
        }
    } else if extent.as_f64().is_nan() || extent < T::default() {
        return Err("has a tile extent that is not positive".to_owned());
    }
    Ok(())
}

fn validate_real<T: Native>(domain: &Range, extent: &[u8]) -> Result<(), String> {
    let (low, high) = domain.bounds::<T>();
    let extent = T::read(extent).as_f64();
    // A dimension without an extent has that of its domain, which is 0 where the domain is one
    // point.
    if extent < 0.0 || extent == 0.0 && low != high {
        return Err("has a tile extent that is not positive".to_owned());
    }
    // The widest domain of 32 bits is infinitely wide in 32 bits, and so is its one tile.
    if extent.is_finite() && extent > high.as_f64() - low.as_f64() + 1.0 {
        return Err("has a tile extent larger than its domain".to_owned());
    }
    Ok(())
}

/// The largest offset between two values of the type.
fn top<T: Native>() -> u128 {
    u128::MAX >> (128 - 8 * T::SIZE)
}

/// The distance from a value to the highest one in 64 bits of the same kind, signed or unsigned.
fn room_above<T: super::Coordinate>(start: &[u8]) -> u128 {
    let top = if T::LOWEST < T::default() {
        i64::MAX.cast_unsigned()
    } else {
        u64::MAX
    };
    let start = T::read(start);
    // The distance from 0, which wraps around for negative numbers: so does the subtraction.
    let low = if start < T::default() {
        u128::from(T::default().offset_from(start)).wrapping_neg()
    } else {
        start.offset_from(T::default()).into()
    };
    u128::from(top).wrapping_sub(low)
}

fn check_current_domain(domain: &Domain, ranges: &[Range]) -> Result<(), String> {
    if ranges.len() != domain.ndim() {
        return Err(format!(
            "has {} ranges for {} dimensions",
            ranges.len(),
            domain.ndim()
        ));
    }
    for (dimension, range) in domain.dimensions.iter().zip(ranges) {
        let name = &dimension.name;
        let size = dimension.coord_size();
        if size.is_some_and(|size| range.start.len() != size || range.end.len() != size) {
            return Err(format!(
                "has bounds of the wrong size for dimension {name:?}"
            ));
        }
        let order = |a: &[u8], b: &[u8]| compare(dimension.datatype, a, b);
        // Written so that a NaN, which is above all, breaks one of the rules.
        if order(&range.start, &range.end) == Ordering::Greater {
            return Err(format!("ends before it starts in dimension {name:?}"));
        }
        if let Some(whole) = &dimension.domain
            && (order(&range.start, &whole.start) == Ordering::Less
                || order(&range.end, &whole.end) == Ordering::Greater)
        {
            return Err(format!("leaves the domain in dimension {name:?}"));
        }
    }
    Ok(())
}

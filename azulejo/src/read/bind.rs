//! From names to fields: options checked against an array.

use super::fetch::{FetchStrategy, Waiting};
use super::{BoundField, BoundOptions, ReadOptions};
use crate::array::{Array, Fragment};
use crate::column::{ColumnBuilder, ColumnSet, ColumnType};
use crate::condition::{BoundCondition, unknown_field};
use crate::error::{Error, Result};
use crate::space::Layout;
use azulejo_format::fragment::Field;
use azulejo_format::schema::{Attribute, CellType, FieldIndex};
use std::collections::BTreeSet;

/// The field that every sparse array has: when each cell was written, in ms since 1970, u64.
const TIMESTAMPS: &str = "__timestamps";

/// What cells read as that no fragment has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FillCell {
    /// The bytes of one cell.
    pub bytes: Vec<u8>,
    /// Whether the cell counts as valid, if the field is nullable.
    pub valid: bool,
}

impl FillCell {
    /// The fill of an attribute.
    #[must_use]
    pub fn of(attribute: &Attribute) -> Self {
        Self {
            bytes: attribute.fill_value.clone(),
            valid: attribute.fill_validity,
        }
    }

    /// A value that is none of an attribute.
    fn valid(bytes: Vec<u8>) -> Self {
        Self { bytes, valid: true }
    }
}

impl ReadOptions {
    /// Checks the options against an array; fields get their types.
    pub(super) fn bind(self, array: &Array) -> Result<BoundOptions> {
        let schema = array.schema();
        if self.layout == Layout::Hilbert {
            return Err(Error::InvalidArgument(
                "results cannot be asked for in Hilbert order: use the global order of a Hilbert array"
                    .into(),
            ));
        }
        let names = if self.fields.is_empty() {
            let dimensions = schema.domain.dimensions.iter().map(|d| d.name.clone());
            let attributes = schema.attributes.iter().map(|a| a.name.clone());
            if schema.is_dense() {
                attributes.collect()
            } else {
                dimensions.chain(attributes).collect()
            }
        } else {
            self.fields
        };
        let fields = names
            .iter()
            .map(|name| field(array, name))
            .collect::<Result<Vec<_>>>()?;
        let mut again = names.iter().enumerate();
        if let Some((_, name)) = again.find(|(i, name)| names[..*i].contains(name)) {
            return Err(Error::InvalidArgument(format!(
                "field {name:?} is asked for twice"
            )));
        }
        Ok(BoundOptions {
            subarray: self.subarray.bind(schema)?,
            fields,
            condition: self.condition,
            meaning: self.meaning,
            layout: self.layout,
            memory_budget: self
                .memory_budget
                .unwrap_or(array.context().config().memory_budget),
            limit: self.limit,
            versions: false,
            matching_only: self.matching_only,
            batch_bytes: self
                .batch_bytes
                .filter(|_| FetchStrategy::of(array) == FetchStrategy::Streaming),
            counts: self.counts.unwrap_or_default(),
        })
    }
}

/// Options checked against an array, whose enumerations are read first, as one batch: binding
/// itself waits for nothing then.
pub(super) async fn bind(
    array: &Array,
    options: &ReadOptions,
    waiting: Waiting,
) -> Result<BoundOptions> {
    let names = enumerations(array, options);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    array.load_enumerations_as(&names, waiting).await?;
    options.clone().bind(array)
}

/// The enumerations that binding options will look at, by name.
fn enumerations(array: &Array, options: &ReadOptions) -> BTreeSet<String> {
    let schema = array.schema();
    let deletes = array.deletes().iter().map(|delete| &delete.kept);
    let conditions = options.condition.iter().chain(deletes);
    let tested: BTreeSet<&str> = conditions
        .flat_map(|condition| condition.fields())
        .map(|field| field.name.as_str())
        .collect();
    let is_used = |name: &str| {
        options.fields.is_empty()
            || options.fields.iter().any(|field| field == name)
            || tested.contains(name)
    };
    let attributes = schema.attributes.iter().filter(|a| is_used(&a.name));
    attributes.filter_map(|a| a.enumeration.clone()).collect()
}

/// The field with a name.
pub(super) fn field(array: &Array, name: &str) -> Result<BoundField> {
    let schema = array.schema();
    match schema.field(name) {
        Some(FieldIndex::Attribute(i)) => {
            let mut bound = stored_field(array, Field::Attribute(i))?;
            let enumeration = schema.attribute(i).and_then(|a| a.enumeration.as_ref());
            let enumeration = enumeration.map(|name| array.enumeration(name));
            bound.column_type.enumeration = enumeration.transpose()?;
            Ok(bound)
        }
        Some(FieldIndex::Dimension(i)) => stored_field(array, Field::Dimension(i)),
        None if name == TIMESTAMPS && !schema.is_dense() => stored_field(array, Field::Timestamps),
        None => Err(unknown_field(schema, name)),
    }
}

/// A field as it is stored: values of enumerated attributes are indices.
pub(super) fn stored_field(array: &Array, field: Field) -> Result<BoundField> {
    let schema = array.schema();
    let none = || Error::Internal(format!("the array has no field {field:?}"));
    let (datatype, cell_val_num) = field.layout(schema).ok_or_else(none)?;
    let (name, fill) = match field {
        Field::Attribute(i) => {
            let attribute = schema.attribute(i).ok_or_else(none)?;
            (attribute.name.as_str(), FillCell::of(attribute))
        }
        Field::Dimension(i) => {
            let dimension = schema.dimension(i).ok_or_else(none)?;
            let fill = FillCell::valid(datatype.default_fill());
            (dimension.name.as_str(), fill)
        }
        Field::Timestamps => (TIMESTAMPS, FillCell::valid(vec![0; 8])),
        Field::DeleteTimestamps => ("__delete_timestamps", FillCell::valid(vec![0xff; 8])),
        Field::DeleteConditions => ("__delete_conditions", FillCell::valid(vec![0xff; 8])),
        Field::ZippedCoords => return Err(none()),
    };
    let mut column_type = ColumnType::new(name, datatype).with_cell_val_num(cell_val_num);
    column_type.nullable = field.is_nullable(schema);
    Ok(BoundField {
        column_type,
        field,
        fill,
    })
}

impl BoundOptions {
    /// The condition, bound to the latest schema.
    pub(super) fn bound_condition(&self, array: &Array) -> Result<Option<BoundCondition>> {
        let enumerations = |name: &str| array.enumeration(name);
        let bind = |of| BoundCondition::bind_as(of, self.meaning, array.schema(), &enumerations);
        self.condition.as_ref().map(bind).transpose()
    }

    /// A result without cells.
    pub(super) fn empty(&self) -> ColumnSet {
        let fields = self.fields.iter();
        let columns = fields.map(|f| ColumnBuilder::new(f.column_type.clone()).finish());
        ColumnSet {
            cell_num: 0,
            columns: columns.collect(),
        }
    }
}

/// The field of a fragment that holds the cells of a column; `None` if it has none of the same
/// type, or other labels. Where indices are asked for as they are stored, labels do not matter.
pub(super) fn same_field(fragment: &Fragment, column: &ColumnType) -> Option<Field> {
    let wanted = CellType {
        datatype: column.datatype,
        cell_val_num: column.cell_val_num,
        nullable: column.nullable,
    };
    if column.enumeration.is_some() && fragment.relabelled().iter().any(|a| **a == *column.name) {
        return None;
    }
    let stored = fragment.schema().cell_type(&column.name);
    stored
        .is_some_and(|stored| wanted.is_stored_as(&stored))
        .then(|| fragment.field(&column.name))?
}

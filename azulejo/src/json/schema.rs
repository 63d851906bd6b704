//! An array schema as JSON, both ways.
//!
//! The document is complete: an array created from it has the same schema. Where the schema files
//! lie (names of enumeration files) is the storage's business and not part of it.

use super::filter::PipelineJson;
use super::value;
use crate::array::Snapshot;
use crate::error::{Error, Result as EngineResult};
use azulejo_format::schema::{
    ArraySchema, ArrayType, Attribute, CurrentDomain, DataOrder, Dimension, DimensionLabel, Domain,
    Enumeration, EnumerationRef, Layout, NewArray,
};
use azulejo_format::{CellValNum, Datatype, FormatVersion, NdRectangle, Range};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// A schema with everything that an array needs: its enumerations' values and its labels' own
/// schemas.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaDocument {
    /// The schema.
    pub schema: ArraySchema,
    /// The enumerations named by the schema, in its order.
    pub enumerations: Vec<Enumeration>,
    /// For each dimension label the schema of its array, where it could be read.
    pub label_schemas: Vec<Option<ArraySchema>>,
}

impl From<NewArray> for SchemaDocument {
    fn from(array: NewArray) -> Self {
        let label_schemas = array.label_schemas.into_iter().map(Some).collect();
        Self {
            schema: array.schema,
            enumerations: array.enumerations,
            label_schemas,
        }
    }
}

impl SchemaDocument {
    /// The document of an array: its schema with all that belongs to it.
    ///
    /// # Errors
    /// An enumeration that cannot be read.
    pub fn of(array: &Snapshot) -> EngineResult<Self> {
        let schema = array.schema().as_ref().clone();
        let enumerations = schema
            .enumerations
            .iter()
            .map(|reference| Ok(array.enumeration(&reference.name)?.as_ref().clone()))
            .collect::<EngineResult<Vec<_>>>()?;
        let label_schemas = schema
            .dimension_labels
            .iter()
            .map(|label| {
                array
                    .open_label(&label.name)
                    .ok()
                    .map(|labels| labels.schema().as_ref().clone())
            })
            .collect();
        Ok(Self {
            schema,
            enumerations,
            label_schemas,
        })
    }

    /// A document from JSON.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`], which says which field is wrong.
    pub fn from_json(json: &Json) -> EngineResult<Self> {
        SchemaJson::deserialize(json)
            .map_err(|e| e.to_string())
            .and_then(decode)
            .map_err(Error::InvalidArgument)
    }

    /// The document as JSON.
    ///
    /// # Errors
    /// None that a schema can cause.
    pub fn to_json(&self) -> EngineResult<Json> {
        serde_json::to_value(encode(self)).map_err(|e| Error::Internal(e.to_string()))
    }

    /// A new array like it: its enumerations get files of their own, labels without a schema the
    /// usual one.
    ///
    /// # Errors
    /// An enumeration that cannot be.
    pub fn into_new_array(mut self) -> EngineResult<NewArray> {
        let enumerations: Vec<Enumeration> = self
            .enumerations
            .iter()
            .map(with_file_name)
            .collect::<Result<_, _>>()
            .map_err(Error::InvalidArgument)?;
        self.schema.enumerations = enumerations
            .iter()
            .map(|e| EnumerationRef {
                name: e.name.clone(),
                file_name: e.file_name.clone(),
            })
            .collect();
        let usual = NewArray::from(self.schema);
        let label_schemas = (usual.label_schemas.into_iter().zip(self.label_schemas))
            .map(|(usual, given)| given.unwrap_or(usual))
            .collect();
        Ok(NewArray {
            schema: usual.schema,
            enumerations,
            label_schemas,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaJson {
    version: u32,
    array_type: String,
    allows_dups: bool,
    tile_order: String,
    cell_order: String,
    capacity: u64,
    coords_filters: PipelineJson,
    offsets_filters: PipelineJson,
    validity_filters: PipelineJson,
    dimensions: Vec<DimensionJson>,
    attributes: Vec<AttributeJson>,
    #[serde(default)]
    enumerations: Vec<EnumerationJson>,
    #[serde(default)]
    dimension_labels: Vec<LabelJson>,
    #[serde(default)]
    current_domain: Option<Vec<(Json, Json)>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DimensionJson {
    name: String,
    datatype: String,
    cell_val_num: Json,
    domain: Option<(Json, Json)>,
    tile_extent: Option<Json>,
    filters: PipelineJson,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AttributeJson {
    name: String,
    datatype: String,
    cell_val_num: Json,
    nullable: bool,
    fill_value: Json,
    fill_validity: bool,
    order: String,
    enumeration: Option<String>,
    filters: PipelineJson,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnumerationJson {
    name: String,
    datatype: String,
    cell_val_num: Json,
    ordered: bool,
    values: Vec<Json>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelJson {
    name: String,
    dimension: u32,
    order: String,
    datatype: String,
    cell_val_num: Json,
    attribute: String,
    uri: String,
    relative: bool,
    external: bool,
    schema: Option<Box<SchemaJson>>,
}

/// One attribute, as in a [`SchemaDocument`].
///
/// # Errors
/// [`Error::InvalidArgument`], which says which field is wrong.
pub fn attribute_from_json(json: &Json) -> EngineResult<Attribute> {
    AttributeJson::deserialize(json)
        .map_err(|e| e.to_string())
        .and_then(decode_attribute)
        .map_err(Error::InvalidArgument)
}

/// One enumeration, as in a [`SchemaDocument`], with a file name of its own.
///
/// # Errors
/// [`Error::InvalidArgument`], which says which field is wrong.
pub fn enumeration_from_json(json: &Json) -> EngineResult<Enumeration> {
    EnumerationJson::deserialize(json)
        .map_err(|e| e.to_string())
        .and_then(|json| with_file_name(&decode_enumeration(&json)?))
        .map_err(Error::InvalidArgument)
}

/// The same enumeration in a file of its own.
fn with_file_name(old: &Enumeration) -> Result<Enumeration, String> {
    let new = match old.cell_val_num {
        CellValNum::Var => {
            Enumeration::of_strings(&old.name, old.datatype, old.ordered, old.values())
        }
        fixed @ CellValNum::Fixed(_) => Enumeration::of_fixed(
            &old.name,
            old.datatype,
            fixed,
            old.ordered,
            old.data.clone(),
        ),
    };
    new.map_err(|e| e.to_string())
}

fn encode(document: &SchemaDocument) -> SchemaJson {
    let schema = &document.schema;
    let label_schema = |i: usize| document.label_schemas.get(i).and_then(Option::as_ref);
    SchemaJson {
        version: schema.version.number(),
        array_type: array_type_name(schema.array_type).to_owned(),
        allows_dups: schema.allows_dups,
        tile_order: layout_name(schema.tile_order).to_owned(),
        cell_order: layout_name(schema.cell_order).to_owned(),
        capacity: schema.capacity,
        coords_filters: PipelineJson::encode(&schema.coords_filters),
        offsets_filters: PipelineJson::encode(&schema.offsets_filters),
        validity_filters: PipelineJson::encode(&schema.validity_filters),
        dimensions: schema
            .domain
            .dimensions
            .iter()
            .map(encode_dimension)
            .collect(),
        attributes: schema.attributes.iter().map(encode_attribute).collect(),
        enumerations: document
            .enumerations
            .iter()
            .map(encode_enumeration)
            .collect(),
        dimension_labels: (schema.dimension_labels.iter().enumerate())
            .map(|(i, label)| encode_label(label, label_schema(i)))
            .collect(),
        current_domain: match &schema.current_domain {
            CurrentDomain::Empty => None,
            CurrentDomain::NdRectangle(rectangle) => {
                Some(rectangle_json(&schema.domain, rectangle))
            }
        },
    }
}

fn decode(json: SchemaJson) -> Result<SchemaDocument, String> {
    let dimensions = json
        .dimensions
        .into_iter()
        .map(decode_dimension)
        .collect::<Result<Vec<_>, _>>()?;
    let enumerations = json
        .enumerations
        .iter()
        .map(decode_enumeration)
        .collect::<Result<Vec<_>, _>>()?;
    let mut dimension_labels = Vec::new();
    let mut label_schemas = Vec::new();
    for label in json.dimension_labels {
        let (label, schema) = decode_label(label)?;
        dimension_labels.push(label);
        label_schemas.push(schema);
    }
    let domain = Domain { dimensions };
    let current_domain = match json.current_domain {
        None => CurrentDomain::Empty,
        Some(bounds) => CurrentDomain::NdRectangle(decode_rectangle(&domain, &bounds)?),
    };
    let schema = ArraySchema {
        version: FormatVersion::new(json.version, "schema").map_err(|e| e.to_string())?,
        array_type: named(
            "array_type",
            &json.array_type,
            &[ArrayType::Dense, ArrayType::Sparse],
            array_type_name,
        )?,
        allows_dups: json.allows_dups,
        tile_order: decode_layout("tile_order", &json.tile_order)?,
        cell_order: decode_layout("cell_order", &json.cell_order)?,
        capacity: json.capacity,
        coords_filters: json.coords_filters.decode()?,
        offsets_filters: json.offsets_filters.decode()?,
        validity_filters: json.validity_filters.decode()?,
        domain,
        attributes: json
            .attributes
            .into_iter()
            .map(decode_attribute)
            .collect::<Result<_, _>>()?,
        dimension_labels,
        enumerations: enumerations
            .iter()
            .map(|e| EnumerationRef {
                name: e.name.clone(),
                file_name: String::new(),
            })
            .collect(),
        current_domain,
    };
    Ok(SchemaDocument {
        schema,
        enumerations,
        label_schemas,
    })
}

fn encode_dimension(dimension: &Dimension) -> DimensionJson {
    let one = |bytes: &[u8]| value::value_json(dimension.datatype, CellValNum::ONE, bytes);
    DimensionJson {
        name: dimension.name.clone(),
        datatype: dimension.datatype.name().to_owned(),
        cell_val_num: cell_val_num_json(dimension.cell_val_num),
        domain: dimension
            .domain
            .as_ref()
            .map(|range| encode_range(dimension.datatype, range)),
        tile_extent: dimension.tile_extent.as_deref().map(one),
        filters: PipelineJson::encode(&dimension.filters),
    }
}

fn decode_dimension(json: DimensionJson) -> Result<Dimension, String> {
    let datatype = decode_datatype(&json.datatype)?;
    let number = |value: &Json| {
        let bytes = value::from_json(datatype, CellValNum::ONE, value)?;
        if bytes.len() == datatype.size() {
            Ok(bytes)
        } else {
            Err(format!(
                "dimension {:?}: {value} is not one {datatype}",
                json.name
            ))
        }
    };
    Ok(Dimension {
        datatype,
        cell_val_num: decode_cell_val_num(&json.cell_val_num)?,
        filters: json.filters.decode()?,
        domain: match &json.domain {
            Some((low, high)) => Some(Range::new(number(low)?, number(high)?)),
            None => None,
        },
        tile_extent: json.tile_extent.as_ref().map(number).transpose()?,
        name: json.name,
    })
}

fn encode_attribute(attribute: &Attribute) -> AttributeJson {
    AttributeJson {
        name: attribute.name.clone(),
        datatype: attribute.datatype.name().to_owned(),
        cell_val_num: cell_val_num_json(attribute.cell_val_num),
        nullable: attribute.nullable,
        fill_value: value::value_json(
            attribute.datatype,
            attribute.cell_val_num,
            &attribute.fill_value,
        ),
        fill_validity: attribute.fill_validity,
        order: order_name(attribute.order).to_owned(),
        enumeration: attribute.enumeration.clone(),
        filters: PipelineJson::encode(&attribute.filters),
    }
}

fn decode_attribute(json: AttributeJson) -> Result<Attribute, String> {
    let datatype = decode_datatype(&json.datatype)?;
    let cell_val_num = decode_cell_val_num(&json.cell_val_num)?;
    let fill_value = value::from_json(datatype, cell_val_num, &json.fill_value)?;
    if cell_val_num
        .cell_size(datatype)
        .is_some_and(|size| size != fill_value.len())
    {
        return Err(format!(
            "attribute {:?}: the fill value is not one cell",
            json.name
        ));
    }
    Ok(Attribute {
        datatype,
        cell_val_num,
        nullable: json.nullable,
        filters: json.filters.decode()?,
        fill_value,
        fill_validity: json.fill_validity,
        order: decode_order(&json.order)?,
        enumeration: json.enumeration,
        name: json.name,
    })
}

fn encode_enumeration(enumeration: &Enumeration) -> EnumerationJson {
    EnumerationJson {
        name: enumeration.name.clone(),
        datatype: enumeration.datatype.name().to_owned(),
        cell_val_num: cell_val_num_json(enumeration.cell_val_num),
        ordered: enumeration.ordered,
        values: enumeration
            .values()
            .map(|entry| value::value_json(enumeration.datatype, enumeration.cell_val_num, entry))
            .collect(),
    }
}

fn decode_enumeration(json: &EnumerationJson) -> Result<Enumeration, String> {
    let datatype = decode_datatype(&json.datatype)?;
    let cell_val_num = decode_cell_val_num(&json.cell_val_num)?;
    let size = cell_val_num.cell_size(datatype);
    let mut data = Vec::new();
    let mut offsets = Vec::new();
    for entry in &json.values {
        let bytes = value::from_json(datatype, cell_val_num, entry)?;
        match size {
            None => offsets.push(data.len() as u64),
            Some(size) if size != bytes.len() => {
                return Err(format!(
                    "enumeration {:?}: {entry} is not one entry",
                    json.name
                ));
            }
            Some(_) => {}
        }
        data.extend(bytes);
    }
    Ok(Enumeration {
        name: json.name.clone(),
        file_name: String::new(),
        datatype,
        cell_val_num,
        ordered: json.ordered,
        data,
        offsets,
    })
}

fn encode_label(label: &DimensionLabel, schema: Option<&ArraySchema>) -> LabelJson {
    LabelJson {
        name: label.name.clone(),
        dimension: label.dimension,
        order: order_name(label.order).to_owned(),
        datatype: label.datatype.name().to_owned(),
        cell_val_num: cell_val_num_json(label.cell_val_num),
        attribute: label.attribute.clone(),
        uri: label.uri.clone(),
        relative: label.relative,
        external: label.external,
        // A label's array has neither enumerations nor labels of its own.
        schema: schema.map(|schema| {
            Box::new(encode(&SchemaDocument {
                schema: schema.clone(),
                enumerations: Vec::new(),
                label_schemas: Vec::new(),
            }))
        }),
    }
}

fn decode_label(json: LabelJson) -> Result<(DimensionLabel, Option<ArraySchema>), String> {
    let datatype = decode_datatype(&json.datatype)?;
    let schema = json.schema.map(|schema| decode(*schema)).transpose()?;
    let label = DimensionLabel {
        dimension: json.dimension,
        order: decode_order(&json.order)?,
        name: json.name,
        relative: json.relative,
        uri: json.uri,
        attribute: json.attribute,
        datatype,
        cell_val_num: decode_cell_val_num(&json.cell_val_num)?,
        external: json.external,
    };
    Ok((label, schema.map(|document| document.schema)))
}

fn encode_range(datatype: Datatype, range: &Range) -> (Json, Json) {
    let bound = |bytes: &[u8]| value::value_json(datatype, CellValNum::ONE, bytes);
    (bound(&range.start), bound(&range.end))
}

fn decode_range(datatype: Datatype, (low, high): &(Json, Json)) -> Result<Range, String> {
    let bound = |value: &Json| value::from_json(datatype, CellValNum::ONE, value);
    Ok(Range::new(bound(low)?, bound(high)?))
}

/// The ranges of a rectangle in the given domain.
#[must_use]
pub fn rectangle_json(domain: &Domain, rectangle: &NdRectangle) -> Vec<(Json, Json)> {
    (domain.dimensions.iter().zip(&rectangle.ranges))
        .map(|(d, range)| encode_range(d.datatype, range))
        .collect()
}

fn decode_rectangle(domain: &Domain, bounds: &[(Json, Json)]) -> Result<NdRectangle, String> {
    if bounds.len() != domain.dimensions.len() {
        return Err("current_domain needs one range a dimension".to_owned());
    }
    let ranges = (domain.dimensions.iter().zip(bounds))
        .map(|(d, bounds)| decode_range(d.datatype, bounds))
        .collect();
    Ok(NdRectangle {
        ranges: Result::<Vec<_>, _>::from_iter::<Vec<_>>(ranges)?,
    })
}

fn cell_val_num_json(cell_val_num: CellValNum) -> Json {
    match cell_val_num {
        CellValNum::Fixed(n) => n.into(),
        CellValNum::Var => "var".into(),
    }
}

fn decode_cell_val_num(json: &Json) -> Result<CellValNum, String> {
    if json.as_str() == Some("var") {
        return Ok(CellValNum::Var);
    }
    json.as_u64()
        .and_then(|n| u32::try_from(n).ok())
        .filter(|&n| n > 0 && n != CellValNum::VAR_ID)
        .map(CellValNum::Fixed)
        .ok_or_else(|| format!("cell_val_num is {json}; it must be a number from 1 or \"var\""))
}

fn decode_datatype(name: &str) -> Result<Datatype, String> {
    Datatype::from_name(name)
        .ok_or_else(|| format!("{name:?} is not a datatype, such as INT32 or STRING_UTF8"))
}

fn named<T: Copy>(
    field: &str,
    text: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, String> {
    all.iter()
        .copied()
        .find(|&v| name(v) == text)
        .ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|&v| name(v)).collect();
            format!(
                "{field} is {text:?}; it must be one of {}",
                names.join(", ")
            )
        })
}

/// `dense` or `sparse`.
#[must_use]
pub fn array_type_name(array_type: ArrayType) -> &'static str {
    match array_type {
        ArrayType::Dense => "dense",
        ArrayType::Sparse => "sparse",
    }
}

/// The name of an order: `row-major`, `col-major`, `global`, `unordered`, `hilbert`.
#[must_use]
pub fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::RowMajor => "row-major",
        Layout::ColMajor => "col-major",
        Layout::Global => "global",
        Layout::Unordered => "unordered",
        Layout::Hilbert => "hilbert",
    }
}

fn decode_layout(field: &str, text: &str) -> Result<Layout, String> {
    let all = [
        Layout::RowMajor,
        Layout::ColMajor,
        Layout::Global,
        Layout::Unordered,
        Layout::Hilbert,
    ];
    named(field, text, &all, layout_name)
}

/// The name of a data order.
#[must_use]
pub fn order_name(order: DataOrder) -> &'static str {
    match order {
        DataOrder::Unordered => "unordered",
        DataOrder::Increasing => "increasing",
        DataOrder::Decreasing => "decreasing",
    }
}

fn decode_order(text: &str) -> Result<DataOrder, String> {
    named(
        "order",
        text,
        &[
            DataOrder::Unordered,
            DataOrder::Increasing,
            DataOrder::Decreasing,
        ],
        order_name,
    )
}

//! Schemas.

use super::message::{self, Format};
use super::rest_capnp::{
    array_create_request, array_schema, attribute, dimension, dimension_label, domain, map,
};
use super::values::{halves, read_array, read_extent, write_array, write_extent};
use super::words::{self, count, data, datatype_of};
use super::{current_domain, enumeration, filter};
use crate::attribute::cell_val_num;
use crate::boundary::{In, Out, Ptr, capi};
use crate::buffer::Buffer;
use crate::error::{Failure, Result};
use crate::schema::{SchemaContent, SchemaHandle};
use crate::strings::StringHandle;
use azulejo_format::filter::Pipeline;
use azulejo_format::schema::{
    ArraySchema, Attribute, CurrentDomain, Dimension, DimensionLabel, Domain, EnumerationRef,
};
use azulejo_format::{CellValNum, FormatVersion};
use std::sync::Arc;

/// Writes a schema; clients also tell where it lies.
pub fn write(
    from: &SchemaContent,
    with_uri: bool,
    mut to: array_schema::Builder<'_>,
) -> Result<()> {
    if let Some(uri) = from.uri.as_ref().filter(|_| with_uri) {
        to.set_uri(format!(
            "{}/",
            crate::uri::absolute(uri).trim_end_matches('/')
        ));
    } else if with_uri {
        to.set_uri("");
    }
    to.set_name(from.name.as_str());
    let mut time = to.reborrow().init_timestamp_range(2);
    time.set(0, from.time.0);
    time.set(1, from.time.1);
    if !from.enumerations.is_empty() {
        let mut list = to.reborrow().init_enumerations(count(&from.enumerations)?);
        for (index, each) in (0u32..).zip(&from.enumerations) {
            enumeration::write(each, list.reborrow().get(index))?;
        }
    }
    write_body(&from.schema, to.reborrow())?;
    if from.schema.dimension_labels.is_empty() {
        return Ok(());
    }
    let labels = &from.schema.dimension_labels;
    let mut list = to.init_dimension_labels(count(labels)?);
    for (index, label) in (0u32..).zip(labels) {
        let stored = from.labels.get(index as usize);
        write_label(label, stored, list.reborrow().get(index))?;
    }
    Ok(())
}

/// What needs nothing but the schema itself.
fn write_body(from: &ArraySchema, mut to: array_schema::Builder<'_>) -> Result<()> {
    let version = i32::try_from(from.version.number()).unwrap_or(i32::MAX);
    to.reborrow().init_version(1).set(0, version);
    to.set_array_type(words::array_type(from.array_type));
    to.set_tile_order(words::layout(from.tile_order));
    to.set_cell_order(words::layout(from.cell_order));
    to.set_capacity(from.capacity);
    to.set_allows_duplicates(from.allows_dups);
    filter::write_pipeline(
        &from.coords_filters,
        to.reborrow().init_coords_filter_pipeline(),
    )?;
    filter::write_pipeline(
        &from.offsets_filters,
        to.reborrow().init_offset_filter_pipeline(),
    )?;
    filter::write_pipeline(
        &from.validity_filters,
        to.reborrow().init_validity_filter_pipeline(),
    )?;
    write_domain(from, to.reborrow().init_domain())?;
    let mut list = to.reborrow().init_attributes(count(&from.attributes)?);
    for (index, each) in (0u32..).zip(&from.attributes) {
        write_attribute(each, list.reborrow().get(index))?;
    }
    if !from.enumerations.is_empty() {
        let mut list = to
            .reborrow()
            .init_enumeration_path_map(count(&from.enumerations)?);
        for (index, each) in (0u32..).zip(&from.enumerations) {
            let mut entry = list.reborrow().get(index);
            entry.set_key(each.name.as_str());
            entry.set_value(each.file_name.as_str());
        }
    }
    current_domain::write(
        &from.current_domain,
        &from.domain.dimensions,
        to.init_current_domain(),
    )
}

/// Writes schemas, each under its name.
pub fn write_all(
    all: &[SchemaContent],
    with_uri: bool,
    to: map::Builder<'_, capnp::text::Owned, array_schema::Owned>,
) -> Result<()> {
    let mut list = to.init_entries(count(all)?);
    for (index, each) in (0u32..).zip(all) {
        let mut entry = list.reborrow().get(index);
        entry.set_key(each.name.as_str())?;
        write(each, with_uri, entry.init_value())?;
    }
    Ok(())
}

/// Writes an attribute.
pub fn write_attribute(from: &Attribute, mut to: attribute::Builder<'_>) -> Result<()> {
    to.set_name(from.name.as_str());
    to.set_type(from.datatype.name());
    to.set_cell_val_num(from.cell_val_num.id());
    to.set_nullable(from.nullable);
    to.set_order(words::data_order(from.order));
    to.set_fill_value(data(&from.fill_value)?);
    to.set_fill_value_validity(!from.nullable || from.fill_validity);
    filter::write_pipeline(&from.filters, to.reborrow().init_filter_pipeline())?;
    if let Some(name) = &from.enumeration {
        to.set_enumeration_name(name.as_str());
    }
    Ok(())
}

fn write_domain(schema: &ArraySchema, mut to: domain::Builder<'_>) -> Result<()> {
    let dimensions = &schema.domain.dimensions;
    let first = dimensions
        .first()
        .ok_or_else(|| Failure::new("Cannot serialize; the schema has no dimensions"))?;
    to.set_type(first.datatype.name());
    to.set_tile_order(words::layout(schema.tile_order));
    to.set_cell_order(words::layout(schema.cell_order));
    let mut list = to.init_dimensions(count(dimensions)?);
    for (index, each) in (0u32..).zip(dimensions) {
        write_dimension(each, list.reborrow().get(index))?;
    }
    Ok(())
}

fn write_dimension(from: &Dimension, mut to: dimension::Builder<'_>) -> Result<()> {
    to.set_name(from.name.as_str());
    to.set_type(from.datatype.name());
    to.set_null_tile_extent(from.tile_extent.is_none());
    if let Some(range) = &from.domain {
        let bounds = [range.start.as_slice(), range.end.as_slice()].concat();
        write_array(from.datatype, &bounds, to.reborrow().init_domain())?;
    }
    if let Some(extent) = &from.tile_extent {
        write_extent(from.datatype, extent, to.reborrow().init_tile_extent());
    }
    if !from.filters.filters.is_empty() {
        filter::write_pipeline(&from.filters, to.init_filter_pipeline())?;
    }
    Ok(())
}

fn write_label(
    from: &DimensionLabel,
    stored: Option<&ArraySchema>,
    mut to: dimension_label::Builder<'_>,
) -> Result<()> {
    if !from.relative {
        return Err("Cannot serialize; a dimension label lies outside its array".into());
    }
    to.set_dimension_id(from.dimension);
    to.set_name(from.name.as_str());
    to.set_uri(from.uri.as_str());
    to.set_attribute_name(from.attribute.as_str());
    to.set_order(words::data_order(from.order));
    to.set_type(from.datatype.name());
    to.set_cell_val_num(from.cell_val_num.id());
    to.set_external(from.external);
    to.set_relative(from.relative);
    if let Some(schema) = stored {
        let mut to = to.init_schema();
        to.set_name("");
        to.reborrow().init_timestamp_range(2);
        write_body(schema, to)?;
    }
    Ok(())
}

/// Reads a schema. It may lack what an array needs, as one that is being made may.
pub fn read(from: array_schema::Reader<'_>) -> Result<SchemaContent> {
    let mut schema = read_body(from)?;
    let mut enumerations = Vec::new();
    for each in from.get_enumerations()? {
        enumerations.push(Arc::new(enumeration::read(each)?));
    }
    let mut labels = Vec::new();
    for each in from.get_dimension_labels()? {
        let (label, stored) = read_label(each)?;
        if schema.dimension(label.dimension as usize).is_none() {
            return Err("Cannot deserialize; a label is of no dimension".into());
        }
        schema.dimension_labels.push(label);
        labels.extend(stored);
    }
    let time = from.get_timestamp_range()?;
    let uri = from.get_uri()?.to_str()?;
    Ok(SchemaContent {
        schema: Arc::new(schema),
        name: from.get_name()?.to_str()?.to_owned(),
        time: (time.try_get(0).unwrap_or(0), time.try_get(1).unwrap_or(0)),
        uri: (!uri.is_empty()).then(|| uri.to_owned()),
        enumerations,
        labels,
    })
}

fn read_body(from: array_schema::Reader<'_>) -> Result<ArraySchema> {
    let pipeline = |has: bool, reader: capnp::Result<_>| match has {
        true => filter::read_pipeline(reader?),
        false => Ok(Pipeline::default()),
    };
    let version = from.get_version()?;
    // Long ago three numbers: the library's version.
    let version = match (version.len(), version.try_get(0)) {
        (1, Some(number)) => {
            FormatVersion::new(u32::try_from(number).unwrap_or(u32::MAX), "schema version")?
        }
        _ => FormatVersion::CURRENT,
    };
    let domain = read_domain(from.get_domain()?)?;
    let mut attributes = Vec::new();
    for each in from.get_attributes()? {
        attributes.push(read_attribute(each)?);
    }
    let mut enumerations = Vec::new();
    for each in from.get_enumeration_path_map()? {
        let file_name = each.get_value()?.to_str()?.to_owned();
        if file_name.contains(['/', '\\', '\0']) {
            return Err("Cannot deserialize; the file name of an enumeration is none".into());
        }
        enumerations.push(EnumerationRef {
            name: each.get_key()?.to_str()?.to_owned(),
            file_name,
        });
    }
    let current_domain = if from.has_current_domain() {
        current_domain::read(from.get_current_domain()?)?
    } else {
        CurrentDomain::Empty
    };
    let schema = ArraySchema {
        version,
        array_type: words::array_type_of(from.get_array_type()?)?,
        allows_dups: from.get_allows_duplicates(),
        tile_order: words::layout_of(from.get_tile_order()?)?,
        cell_order: words::layout_of(from.get_cell_order()?)?,
        capacity: from.get_capacity(),
        coords_filters: pipeline(
            from.has_coords_filter_pipeline(),
            from.get_coords_filter_pipeline(),
        )?,
        offsets_filters: pipeline(
            from.has_offset_filter_pipeline(),
            from.get_offset_filter_pipeline(),
        )?,
        validity_filters: pipeline(
            from.has_validity_filter_pipeline(),
            from.get_validity_filter_pipeline(),
        )?,
        domain,
        attributes,
        dimension_labels: Vec::new(),
        enumerations,
        current_domain,
    };
    schema.check()?;
    Ok(schema)
}

/// Reads an attribute.
pub fn read_attribute(from: attribute::Reader<'_>) -> Result<Attribute> {
    let datatype = datatype_of(from.get_type()?)?;
    let number = cell_val_num(from.get_cell_val_num())?;
    let mut attribute = if from.has_fill_value() {
        let mut attribute = Attribute::new("", datatype, CellValNum::ONE);
        attribute.cell_val_num = number;
        attribute.fill_value = from.get_fill_value()?.to_vec();
        attribute.fill_validity = from.get_nullable() && from.get_fill_value_validity();
        attribute
    } else if number
        .cell_size(datatype)
        .is_some_and(|size| size > Attribute::MAX_IMPLIED_FILL)
    {
        return Err("Cannot deserialize; a cell of an attribute is too large".into());
    } else {
        Attribute::new("", datatype, number)
    };
    attribute.name = from.get_name()?.to_str()?.to_owned();
    attribute.nullable = from.get_nullable();
    if from.has_order() {
        attribute.order = words::data_order_of(from.get_order()?)?;
    }
    if from.has_filter_pipeline() {
        attribute.filters = filter::read_pipeline(from.get_filter_pipeline()?)?;
    }
    if from.has_enumeration_name() {
        attribute.enumeration = Some(from.get_enumeration_name()?.to_str()?.to_owned());
    }
    Ok(attribute)
}

fn read_domain(from: domain::Reader<'_>) -> Result<Domain> {
    let mut domain = Domain::default();
    for each in from.get_dimensions()? {
        domain.dimensions.push(read_dimension(each)?);
    }
    Ok(domain)
}

fn read_dimension(from: dimension::Reader<'_>) -> Result<Dimension> {
    let datatype = datatype_of(from.get_type()?)?;
    let bounds = read_array(datatype, from.get_domain()?)?;
    let domain = match bounds.is_empty() {
        true => None,
        false => Some(halves(datatype, &bounds)?),
    };
    let tile_extent = match from.get_null_tile_extent() {
        true => None,
        false => Some(read_extent(datatype, from.get_tile_extent())?),
    };
    Ok(Dimension {
        filters: match from.has_filter_pipeline() {
            true => filter::read_pipeline(from.get_filter_pipeline()?)?,
            false => Pipeline::default(),
        },
        domain,
        tile_extent,
        ..Dimension::of_type(from.get_name()?.to_str()?, datatype)
    })
}

fn read_label(from: dimension_label::Reader<'_>) -> Result<(DimensionLabel, Option<ArraySchema>)> {
    let uri = from.get_uri()?.to_str()?.to_owned();
    let leaves = uri.starts_with('/') || uri.contains("://") || uri.split('/').any(|p| p == "..");
    if !from.get_relative() || leaves {
        return Err("Cannot deserialize; a dimension label lies outside its array".into());
    }
    let label = DimensionLabel {
        dimension: from.get_dimension_id(),
        order: words::data_order_of(from.get_order()?)?,
        name: from.get_name()?.to_str()?.to_owned(),
        relative: true,
        uri,
        attribute: from.get_attribute_name()?.to_str()?.to_owned(),
        datatype: datatype_of(from.get_type()?)?,
        cell_val_num: cell_val_num(from.get_cell_val_num())?,
        external: from.get_external(),
    };
    let stored = match from.has_schema() {
        true => Some(read_body(from.get_schema()?)?),
        false => None,
    };
    Ok((label, stored))
}

capi! {
    /// A message with a schema.
    fn tiledb_serialize_array_schema(
        ctx, array_schema: In<SchemaHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        let content = array_schema.get()?.content();
        let bytes = message::encode::<array_schema::Owned>(
            Format::of(kind)?, |to| write(&content, client_side != 0, to)
        )?;
        buffer.give(Buffer::of(bytes))?;
    }

    /// A schema out of a message.
    fn tiledb_deserialize_array_schema(
        ctx, buffer: In<Buffer>, kind: i32, client_side: i32, array_schema: Out<Ptr<SchemaHandle>>
    ) {
        let _ = client_side;
        let bytes = buffer.get()?.bytes()?;
        let content = message::decode::<array_schema::Owned, _>(Format::of(kind)?, &bytes, read)?;
        array_schema.give(SchemaHandle::of_content(content))?;
    }

    /// A schema out of a request to create an array, and where that is to lie.
    fn tiledb_deserialize_array_create(
        ctx, buffer: In<Buffer>, kind: i32, client_side: i32,
        storage_uri: Out<Ptr<StringHandle>>, array_schema: Out<Ptr<SchemaHandle>>
    ) {
        let _ = client_side;
        let bytes = buffer.get()?.bytes()?;
        let (uri, content) = message::decode::<array_create_request::Owned, _>(Format::of(kind)?, &bytes, |from| {
            Ok((from.get_uri()?.to_str()?.to_owned(), read(from.get_schema()?)?))
        })?;
        array_schema.give(SchemaHandle::of_content(content))?;
        storage_uri.give(StringHandle::new(uri))?;
    }
}

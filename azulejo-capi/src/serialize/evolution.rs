//! Changes to schemas.

use super::message::{self, Format};
use super::rest_capnp::array_schema_evolution;
use super::words::count;
use super::{current_domain, enumeration, schema};
use crate::boundary::{In, Out, Ptr, capi};
use crate::buffer::Buffer;
use crate::error::Result;
use crate::evolution::EvolutionHandle;
use azulejo_format::Datatype;
use azulejo_format::schema::{CurrentDomain, Dimension, Enumeration, SchemaEvolution};

/// Changes, and the time that they are to have.
type Timed = (SchemaEvolution, Option<(u64, u64)>);

fn write(
    (from, time): &Timed,
    types: &[Datatype],
    mut to: array_schema_evolution::Builder<'_>,
) -> Result<()> {
    let names = &from.drop_attributes;
    let mut list = to.reborrow().init_attributes_to_drop(count(names)?);
    for (index, name) in (0u32..).zip(names) {
        list.set(index, name.as_str());
    }
    let attributes = &from.add_attributes;
    let mut list = to.reborrow().init_attributes_to_add(count(attributes)?);
    for (index, each) in (0u32..).zip(attributes) {
        schema::write_attribute(each, list.reborrow().get(index))?;
    }
    let mut write_all = |all: &[Enumeration], extended: bool| -> Result<()> {
        if all.is_empty() {
            return Ok(());
        }
        let mut list = match extended {
            true => to.reborrow().init_enumerations_to_extend(count(all)?),
            false => to.reborrow().init_enumerations_to_add(count(all)?),
        };
        for (index, each) in (0u32..).zip(all) {
            enumeration::write(each, list.reborrow().get(index))?;
        }
        Ok(())
    };
    write_all(&from.add_enumerations, false)?;
    write_all(&from.extend_enumerations, true)?;
    let names = &from.drop_enumerations;
    if !names.is_empty() {
        let mut list = to.reborrow().init_enumerations_to_drop(count(names)?);
        for (index, name) in (0u32..).zip(names) {
            list.set(index, name.as_str());
        }
    }
    let (start, end) = time.unwrap_or_default();
    let mut range = to.reborrow().init_timestamp_range(2);
    range.set(0, start);
    range.set(1, end);
    if let Some(rectangle) = &from.expand_current_domain {
        // Only their types count.
        let unnamed = |datatype: &Datatype| Dimension::of_type("", *datatype);
        let dimensions: Vec<Dimension> = types.iter().map(unnamed).collect();
        let current = CurrentDomain::NdRectangle(rectangle.clone());
        current_domain::write(&current, &dimensions, to.init_current_domain_to_expand())?;
    }
    Ok(())
}

fn read(from: array_schema_evolution::Reader<'_>) -> Result<(Timed, Vec<Datatype>)> {
    let mut evolution = SchemaEvolution::default();
    for name in from.get_attributes_to_drop()? {
        evolution.drop_attributes.push(name?.to_str()?.to_owned());
    }
    for each in from.get_attributes_to_add()? {
        evolution.add_attributes.push(schema::read_attribute(each)?);
    }
    for each in from.get_enumerations_to_add()? {
        evolution.add_enumerations.push(enumeration::read(each)?);
    }
    for each in from.get_enumerations_to_extend()? {
        evolution.extend_enumerations.push(enumeration::read(each)?);
    }
    for name in from.get_enumerations_to_drop()? {
        evolution.drop_enumerations.push(name?.to_str()?.to_owned());
    }
    let mut types = Vec::new();
    if from.has_current_domain_to_expand() {
        let current = from.get_current_domain_to_expand()?;
        types = current_domain::types(current)?;
        if let CurrentDomain::NdRectangle(rectangle) = current_domain::read(current)? {
            evolution.expand_current_domain = Some(rectangle);
        }
    }
    let time = from.get_timestamp_range()?;
    let time = time
        .try_get(0)
        .zip(time.try_get(1))
        .filter(|time| *time != (0, 0));
    Ok(((evolution, time), types))
}

capi! {
    /// A message with changes to a schema.
    fn tiledb_serialize_array_schema_evolution(
        ctx, array_schema_evolution: In<EvolutionHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        let _ = client_side;
        let evolution = array_schema_evolution.get()?;
        let (timed, types) = (evolution.evolution(), evolution.current_domain_types());
        let bytes = message::encode::<array_schema_evolution::Owned>(
            Format::of(kind)?, |to| write(&timed, &types, to)
        )?;
        buffer.give(Buffer::of(bytes))?;
    }

    /// Changes to a schema out of a message.
    fn tiledb_deserialize_array_schema_evolution(
        ctx, buffer: In<Buffer>, kind: i32, client_side: i32, array_schema_evolution: Out<Ptr<EvolutionHandle>>
    ) {
        let _ = client_side;
        let bytes = buffer.get()?.bytes()?;
        let (timed, types) = message::decode::<array_schema_evolution::Owned, _>(Format::of(kind)?, &bytes, read)?;
        array_schema_evolution.give(EvolutionHandle::of(timed, types))?;
    }
}

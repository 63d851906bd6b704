//! Requests that servers answer.

use super::message::{self, Format};
use super::query;
use super::rest_capnp::{
    array_delete_fragments_list_request, array_delete_fragments_timestamps_request,
    consolidation_plan_request, consolidation_plan_response, load_array_schema_request,
    load_array_schema_response, load_enumerations_request, load_enumerations_response,
    query_plan_request, query_plan_response,
};
use super::words::{self, count};
use super::{array, enumeration, schema, settings};
use crate::array::ArrayHandle;
use crate::boundary::{In, capi};
use crate::buffer::Buffer;
use crate::error::{Failure, Result};
use crate::query::content::Side;
use crate::query::{QueryHandle, plan};
use azulejo::array::{FragmentSelection, TimeRange};
use azulejo_format::schema::{ArrayType, Enumeration};
use std::sync::Arc;

/// A setting of old clients, which their requests name in the message.
const ALL_ENUMERATIONS: &str = "rest.load_enumerations_on_array_open";

fn texts(from: capnp::text_list::Reader<'_>) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for text in from {
        all.push(text?.to_str()?.to_owned());
    }
    Ok(all)
}

/// The enumerations that a request names, or all of every schema, with the schema's name.
fn enumerations(
    array: &ArrayHandle,
    names: &[String],
) -> Result<Vec<(String, Vec<Arc<Enumeration>>)>> {
    let open = array.open()?;
    let snapshot = open.snapshot();
    let load = |names: &[&str]| Ok::<_, Failure>(snapshot.load_enumerations(names)?);
    if !names.is_empty() {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        return Ok(vec![(snapshot.schema_name().to_owned(), load(&names)?)]);
    }
    let mut all = Vec::new();
    for (name, schema) in snapshot.schemas() {
        let handle = crate::schema::SchemaHandle::of_fragment(schema, name, snapshot);
        handle.load_enumerations()?;
        all.push((name.clone(), handle.content().enumerations));
    }
    Ok(all)
}

fn write_enumerations(
    from: &[(String, Vec<Arc<Enumeration>>)],
    to: load_enumerations_response::Builder<'_>,
) -> Result<()> {
    if let [(_, only)] = from {
        let mut list = to.init_enumerations(count(only)?);
        for (index, each) in (0u32..).zip(only) {
            enumeration::write(each, list.reborrow().get(index))?;
        }
        return Ok(());
    }
    let mut entries = to.init_all_enumerations().init_entries(count(from)?);
    for (index, (name, all)) in (0u32..).zip(from) {
        let mut entry = entries.reborrow().get(index);
        entry.set_key(name.as_str());
        let mut list = entry.init_value(count(all)?);
        for (index, each) in (0u32..).zip(all) {
            enumeration::write(each, list.reborrow().get(index))?;
        }
    }
    Ok(())
}

/// The fragments of a request lie in the array: names, perhaps with their folder.
fn fragment_names(from: &[String]) -> Result<Vec<String>> {
    let name = |uri: &String| {
        let name = uri.strip_prefix("__fragments/").unwrap_or(uri);
        match name.is_empty() || name.contains('/') {
            true => Err(Failure::new(format!(
                "Cannot delete {uri:?}; it is no fragment's name"
            ))),
            false => Ok(name.to_owned()),
        }
    };
    from.iter().map(name).collect()
}

fn delete(array: &ArrayHandle, selection: FragmentSelection<'_>) -> Result<()> {
    let open = array.open()?;
    if open.kind() != crate::enums::QueryType::ModifyExclusive {
        return Err(
            "Failed to delete fragments; Array was not opened in modify_exclusive mode".into(),
        );
    }
    open.engine()
        .array(open.uri())
        .delete_fragments(selection)
        .map_err(|error| Failure::new(format!("Failed to delete fragments; {error}")))?;
    Ok(())
}

capi! {
    /// Deletes the fragments that a request names; the array must be open for exclusive changes.
    fn tiledb_handle_array_delete_fragments_list_request(ctx, array: In<ArrayHandle>, kind: i32, request: In<Buffer>) {
        let bytes = request.get()?.bytes()?;
        let names = message::decode::<array_delete_fragments_list_request::Owned, _>(
            Format::of(kind)?, &bytes, |from| fragment_names(&texts(from.get_entries()?)?)
        )?;
        if names.is_empty() {
            return Err("[fragments_list_from_capnp] There are no fragments to deserialize".into());
        }
        delete(array.get()?, FragmentSelection::Named(&names))?;
    }

    /// Deletes the fragments whose time lies in the range of a request; the array must be open for
    /// exclusive changes.
    fn tiledb_handle_array_delete_fragments_timestamps_request(
        ctx, array: In<ArrayHandle>, kind: i32, request: In<Buffer>
    ) {
        let bytes = request.get()?.bytes()?;
        let time = message::decode::<array_delete_fragments_timestamps_request::Owned, _>(
            Format::of(kind)?, &bytes,
            |from| Ok(TimeRange { start: from.get_start_timestamp(), end: from.get_end_timestamp() })
        )?;
        delete(array.get()?, FragmentSelection::Within(time))?;
    }

    /// Answers which fragments would best be consolidated together.
    fn tiledb_handle_consolidation_plan_request(
        ctx, array: In<ArrayHandle>, kind: i32, request: In<Buffer>, response: In<Buffer>
    ) {
        let (format, bytes) = (Format::of(kind)?, request.get()?.bytes()?);
        let size = message::decode::<consolidation_plan_request::Owned, _>(
            format, &bytes, |from| Ok(from.get_fragment_size())
        )?;
        let plan = array.get()?.open()?.array()?.consolidation_plan(size)?;
        let answer = message::encode::<consolidation_plan_response::Owned>(format, |to| {
            let mut nodes = to.init_fragment_uris_per_node(count(&plan.nodes)?);
            for (index, node) in (0u32..).zip(&plan.nodes) {
                let mut list = nodes.reborrow().init(index, count(node)?);
                for (index, uri) in (0u32..).zip(node) {
                    list.set(index, uri.as_str());
                }
            }
            Ok(())
        })?;
        response.get()?.fill(answer);
    }

    /// Answers with the schemas of an array.
    fn tiledb_handle_load_array_schema_request(
        ctx, array: In<ArrayHandle>, kind: i32, request: In<Buffer>, response: In<Buffer>
    ) {
        let (format, bytes) = (Format::of(kind)?, request.get()?.bytes()?);
        let with_enumerations = message::decode::<load_array_schema_request::Owned, _>(format, &bytes, |from| {
            let config = match from.has_config() {
                true => settings::read(from.get_config()?)?.flag(ALL_ENUMERATIONS),
                false => false,
            };
            Ok(config || from.get_include_enumerations())
        })?;
        let open = array.get()?.open()?;
        if with_enumerations {
            open.schema_handle().load_enumerations()?;
        }
        let (latest, all) = (open.schema_handle().content(), array::all_schemas(&open));
        let answer = message::encode::<load_array_schema_response::Owned>(format, |mut to| {
            schema::write(&latest, false, to.reborrow().init_schema())?;
            schema::write_all(&all, false, to.init_array_schemas_all())
        })?;
        response.get()?.fill(answer);
    }

    /// Answers with the enumerations that a request names, or with all.
    fn tiledb_handle_load_enumerations_request(
        ctx, array: In<ArrayHandle>, kind: i32, request: In<Buffer>, response: In<Buffer>
    ) {
        let (format, bytes) = (Format::of(kind)?, request.get()?.bytes()?);
        let names = message::decode::<load_enumerations_request::Owned, _>(
            format, &bytes, |from| texts(from.get_enumerations()?)
        )?;
        let found = enumerations(array.get()?, &names)?;
        let answer = message::encode::<load_enumerations_response::Owned>(
            format, |to| write_enumerations(&found, to)
        )?;
        response.get()?.fill(answer);
    }

    /// Answers how a query would be run.
    fn tiledb_handle_query_plan_request(
        ctx, array: In<ArrayHandle>, kind: i32, request: In<Buffer>, response: In<Buffer>
    ) {
        let (format, bytes, array) = (Format::of(kind)?, request.get()?.bytes()?, array.get()?);
        let made = QueryHandle::new(ctx, array, array.open()?.kind())?;
        message::decode::<query_plan_request::Owned, _>(format, &bytes, |from| {
            match from.has_query() {
                true => query::read(from.get_query()?, &made, Side::Server, &[]),
                false => Ok(()),
            }
        })?;
        let plan = plan(&made);
        let answer = message::encode::<query_plan_response::Owned>(format, |mut to| {
            to.set_query_layout(words::layout(plan.layout));
            to.set_strategy_name(plan.strategy);
            let kind = if plan.dense { ArrayType::Dense } else { ArrayType::Sparse };
            to.set_array_type(words::array_type(kind));
            if !plan.attributes.is_empty() {
                let mut list = to.reborrow().init_attribute_names(count(&plan.attributes)?);
                for (index, name) in (0u32..).zip(&plan.attributes) {
                    list.set(index, name.as_str());
                }
            }
            if !plan.dimensions.is_empty() {
                let mut list = to.init_dimension_names(count(&plan.dimensions)?);
                for (index, name) in (0u32..).zip(&plan.dimensions) {
                    list.set(index, name.as_str());
                }
            }
            Ok(())
        })?;
        response.get()?.fill(answer);
    }
}

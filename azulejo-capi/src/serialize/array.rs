//! Open arrays.

use super::message::{self, Format};
use super::rest_capnp::{array, array_directory, array_metadata, array_open};
use super::words::{self, count};
use super::{domain, fragment, metadata, schema, settings};
use crate::array::{ArrayHandle, Description, OpenArray, open_described};
use crate::boundary::{In, Out, Ptr, Text, capi};
use crate::buffer::Buffer;
use crate::ctx::Context;
use crate::enums::QueryType;
use crate::error::{Failure, Result};
use crate::metadata::Changes;
use crate::schema::{SchemaContent, SchemaHandle};
use azulejo::array::{Snapshot, TimeRange};
use azulejo_format::metadata::MetadataValue;
use azulejo_format::path::{LEGACY_SCHEMA_FILE, fragment_path};

/// Every schema of an open array, as messages have them.
pub fn all_schemas(open: &OpenArray) -> Vec<SchemaContent> {
    all_schemas_of(open.snapshot())
}

/// Every schema of an array, as messages have them.
pub fn all_schemas_of(snapshot: &Snapshot) -> Vec<SchemaContent> {
    let schemas = snapshot.schemas().iter();
    schemas
        .map(|(name, each)| SchemaHandle::of_fragment(each, name, snapshot).content())
        .collect()
}

/// Writes an open array: its schemas and, if it is open for reading, what was looked up of it.
pub fn write(
    handle: &ArrayHandle,
    open: &OpenArray,
    client_side: bool,
    mut to: array::Builder<'_>,
) -> Result<()> {
    let time = handle.time_range();
    to.set_uri(crate::uri::absolute(handle.uri()).as_str());
    to.set_start_timestamp(time.start);
    to.set_end_timestamp(time.end);
    let snapshot = open.snapshot();
    to.set_opened_at_end_timestamp(snapshot.time_range().end.min(time.end));
    to.set_query_type(words::query_type(open.kind()));
    if open.settings().flag("rest.load_enumerations_on_array_open") {
        open.schema_handle().load_enumerations()?;
    }
    let located = |mut content: SchemaContent| {
        content.uri = Some(handle.uri().to_owned());
        content
    };
    schema::write(
        &located(open.schema_handle().content()),
        client_side,
        to.reborrow().init_array_schema_latest(),
    )?;
    let all: Vec<SchemaContent> = all_schemas(open).into_iter().map(located).collect();
    schema::write_all(&all, client_side, to.reborrow().init_array_schemas_all())?;
    let submits = "rest.use_refactored_array_open_and_query_submit";
    if open.settings().flag(submits) && !is_of_message(open) {
        write_directory(open, to.reborrow().init_array_directory())?;
        if open.kind() == QueryType::Read {
            let array = open.array()?;
            let fragments = array.fragments();
            if !fragments.is_empty() {
                let mut list = to.reborrow().init_fragment_metadata_all(count(fragments)?);
                for (index, each) in (0u32..).zip(fragments) {
                    fragment::write_metadata(each, None, list.reborrow().get(index))?;
                }
            }
        }
    }
    if open.kind() == QueryType::Read {
        let dimensions = &snapshot.schema().domain.dimensions;
        let wanted = |key| open.settings().flag(key);
        if wanted("rest.load_non_empty_domain_on_array_open") {
            domain::write(
                open.non_empty_domain()?.as_ref(),
                dimensions,
                to.reborrow().init_non_empty_domain(),
            )?;
        }
        if wanted("rest.load_metadata_on_array_open") {
            metadata::write(&entries(open)?, to.init_array_metadata())?;
        }
    }
    Ok(())
}

/// Whether the array lies nowhere but in a message.
fn is_of_message(open: &OpenArray) -> bool {
    let uri = open.snapshot().uri().to_string();
    uri.starts_with(super::MESSAGE_SCHEME)
}

/// Writes which files the array consists of: what a server needs to read the same.
fn write_directory(open: &OpenArray, mut to: array_directory::Builder<'_>) -> Result<()> {
    let snapshot = open.snapshot();
    let schema = |name: &str| {
        let folder = if name == LEGACY_SCHEMA_FILE {
            ""
        } else {
            "__schema/"
        };
        format!("{folder}{name}")
    };
    let schemas: Vec<String> = snapshot.schemas().keys().map(|name| schema(name)).collect();
    let mut list = to.reborrow().init_array_schema_uris(count(&schemas)?);
    for (index, uri) in (0u32..).zip(&schemas) {
        list.set(index, uri.as_str());
    }
    to.set_latest_array_schema_uri(schema(snapshot.schema_name()));
    let time = snapshot.time_range();
    to.set_timestamp_start(time.start);
    to.set_timestamp_end(time.end);
    if open.kind() != QueryType::Read {
        return Ok(());
    }
    let array = open.array()?;
    let fragments = array.fragments();
    if !fragments.is_empty() {
        let mut list = to
            .reborrow()
            .init_unfiltered_fragment_uris(count(fragments)?);
        for (index, each) in (0u32..).zip(fragments) {
            list.set(
                index,
                fragment_path(each.timestamped_name(), each.version()),
            );
        }
    }
    let deletes = array.deletes();
    if !deletes.is_empty() {
        let mut list = to.init_delete_and_update_tile_location(count(deletes)?);
        for (index, each) in (0u32..).zip(deletes) {
            let mut entry = list.reborrow().get(index);
            entry.set_uri(each.name.as_str());
            entry.set_condition_marker(each.name.as_str());
        }
    }
    Ok(())
}

/// The key-values that readers see, or those that are to be stored.
fn entries(open: &OpenArray) -> Result<Changes> {
    if open.kind() != QueryType::Read {
        return Ok(open.pending_metadata());
    }
    let all = open.metadata()?.into_iter();
    Ok(all
        .map(|(key, value)| (key, Some::<MetadataValue>(value)))
        .collect())
}

/// Reads an open array.
pub fn read(from: array::Reader<'_>) -> Result<Description> {
    let kind = match from.has_query_type() {
        true => words::query_type_of(from.get_query_type()?)?,
        false => QueryType::Read,
    };
    let mut schemas = Vec::new();
    if from.has_array_schemas_all() {
        for entry in from.get_array_schemas_all()?.get_entries()? {
            let mut content = schema::read(entry.get_value()?)?;
            entry.get_key()?.to_str()?.clone_into(&mut content.name);
            schemas.push(content);
        }
    }
    let mut latest = match from.has_array_schema_latest() {
        true => Some(schema::read(from.get_array_schema_latest()?)?),
        false => None,
    };
    let dimensions = latest
        .as_ref()
        .map(|latest| latest.schema.domain.dimensions.clone())
        .unwrap_or_default();
    let name = latest.as_ref().map(|latest| latest.name.clone());
    let known = name
        .as_ref()
        .is_some_and(|name| schemas.iter().any(|s| s.name == *name));
    if !known {
        schemas.extend(latest.take());
    }
    let non_empty_domain = match from.has_non_empty_domain() {
        true => Some(domain::read(from.get_non_empty_domain()?, &dimensions)?),
        false => None,
    };
    let metadata = match from.has_array_metadata() {
        true => Some(metadata::read(from.get_array_metadata()?)?),
        false => None,
    };
    Ok(Description {
        kind,
        time: TimeRange {
            start: from.get_start_timestamp(),
            end: from.get_end_timestamp(),
        },
        schemas: (name.unwrap_or_default(), schemas),
        non_empty_domain,
        metadata,
    })
}

/// Opens the array at a URI as a message says.
pub fn open(ctx: &Context, uri: &str, description: Description) -> Result<ArrayHandle> {
    if uri.is_empty() {
        return Err("Cannot deserialize array; Invalid URI".into());
    }
    open_described(ctx, uri, description)
}

capi! {
    /// A message with an open array.
    fn tiledb_serialize_array(ctx, array: In<ArrayHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>) {
        let handle = array.get()?;
        let open = handle.open()?;
        let bytes = message::encode::<array::Owned>(
            Format::of(kind)?, |to| write(handle, &open, client_side != 0, to)
        )?;
        buffer.give(Buffer::of(bytes))?;
    }

    /// An open array out of a message. If nothing lies at the URI, it has what the message says.
    fn tiledb_deserialize_array(
        ctx, buffer: In<Buffer>, kind: i32, client_side: i32, array_uri: Text, array: Out<Ptr<ArrayHandle>>
    ) {
        let _ = client_side;
        let bytes = buffer.get()?.bytes()?;
        let description = message::decode::<array::Owned, _>(Format::of(kind)?, &bytes, read)?;
        array.give(open(ctx, array_uri.get()?, description)?)?;
    }

    /// A message with the settings of an array and what it is open for.
    fn tiledb_serialize_array_open(
        ctx, array: In<ArrayHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        let _ = client_side;
        let open = array.get()?.open()?;
        let bytes = message::encode::<array_open::Owned>(Format::of(kind)?, |mut to| {
            to.set_query_type(words::query_type(open.kind()));
            settings::write(open.settings(), to.init_config())
        })?;
        buffer.give(Buffer::of(bytes))?;
    }

    /// A handle that is not open on an array that is yet to be named, with the settings of a
    /// message.
    fn tiledb_deserialize_array_open(
        ctx, buffer: In<Buffer>, kind: i32, client_side: i32, array: Out<Ptr<ArrayHandle>>
    ) {
        let _ = client_side;
        let bytes = buffer.get()?.bytes()?;
        let found = message::decode::<array_open::Owned, _>(Format::of(kind)?, &bytes, |from| {
            if from.has_query_type() {
                words::query_type_of(from.get_query_type()?)?;
            }
            match from.has_config() {
                true => settings::read(from.get_config()?).map(Some),
                false => Ok(None),
            }
        })?;
        let handle = ArrayHandle::at("deserialized_array");
        if let Some(settings) = found {
            handle.set_settings(settings);
        }
        array.give(handle)?;
    }

    /// A message with an array's key-values: those that there are, or of an array that is open for
    /// writing those that are to be stored.
    fn tiledb_serialize_array_metadata(ctx, array: In<ArrayHandle>, kind: i32, buffer: Out<Ptr<Buffer>>) {
        let entries = entries(&*array.get()?.open()?)?;
        let bytes = message::encode::<array_metadata::Owned>(
            Format::of(kind)?, |to| metadata::write(&entries, to)
        )?;
        buffer.give(Buffer::of(bytes))?;
    }

    /// Gives an open array the key-values of a message.
    fn tiledb_deserialize_array_metadata(ctx, array: In<ArrayHandle>, kind: i32, buffer: In<Buffer>) {
        let bytes = buffer.get()?.bytes()?;
        let changes = message::decode::<array_metadata::Owned, _>(Format::of(kind)?, &bytes, metadata::read)?;
        array.get()?.open()?.tell_metadata(changes)?;
    }

    /// Not there any more, as in the reference.
    fn tiledb_serialize_array_max_buffer_sizes(
        ctx, array: In<ArrayHandle>, subarray: crate::boundary::Opaque, kind: i32, buffer: Out<Ptr<Buffer>>
    ) {
        let _ = (array, subarray, kind, buffer);
        Err::<(), _>(Failure::new("tiledb_serialize_array_max_buffer_sizes is no longer supported."))?;
    }
}

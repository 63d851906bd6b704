//! What is known of fragments.

use super::array::all_schemas_of;
use super::memory::{Files, in_memory};
use super::message::{self, Format};
use super::rest_capnp::{
    fragment_info, fragment_info_request, fragment_metadata, single_fragment_info,
};
use super::words::{count, data};
use super::{domain, schema, settings};
use crate::boundary::{In, Out, Ptr, Text, capi};
use crate::buffer::Buffer;
use crate::error::{Failure, Result};
use crate::fragment_info::{InfoHandle, Loaded, Told};
use crate::schema::SchemaContent;
use azulejo::array::Fragment;
use azulejo::fragment_info::FragmentDescription;
use azulejo_format::FormatVersion;
use azulejo_format::fragment::{
    Field, FieldMetadata, Footer, FragmentMetadata, FragmentStats, Numbers, ProcessedConditions,
    RTree, SectionOffsets, Slots,
};
use azulejo_format::path::{fragment_entry, fragment_path};
use azulejo_format::schema::ArraySchema;
use azulejo_format::timestamped_name::TimestampedName;

fn write(from: &Loaded, client_side: bool, mut to: fragment_info::Builder<'_>) -> Result<()> {
    let snapshot = from.array();
    let all = all_schemas_of(snapshot);
    let latest = all.iter().find(|each| each.name == snapshot.schema_name());
    if let Some(latest) = latest {
        schema::write(
            latest,
            client_side,
            to.reborrow().init_array_schema_latest(),
        )?;
    }
    schema::write_all(&all, client_side, to.reborrow().init_array_schemas_all())?;
    let fragments: Vec<FragmentDescription<'_>> = from.fragments().collect();
    let mut list = to.reborrow().init_fragment_info(count(&fragments)?);
    for (index, each) in (0u32..).zip(&fragments) {
        write_fragment(from, each, list.reborrow().get(index))?;
    }
    let uris = from.vacuum_uris();
    let mut list = to.init_to_vacuum(count(&uris)?);
    for (index, uri) in (0u32..).zip(&uris) {
        list.set(
            index,
            uri.trim_end_matches('/')
                .rsplit('/')
                .next()
                .unwrap_or_default(),
        );
    }
    Ok(())
}

fn write_fragment(
    info: &Loaded,
    from: &FragmentDescription<'_>,
    mut to: single_fragment_info::Builder<'_>,
) -> Result<()> {
    to.set_array_schema_name(from.schema_name());
    to.set_fragment_size(info.size(from)?);
    let mut to = to.init_meta();
    // The other side may have no files, but is asked for MBRs.
    let rtree = match from.is_dense() {
        true => None,
        false => Some(from.fragment().rtree()?),
    };
    write_metadata(from.fragment(), rtree, to.reborrow())?;
    to.set_has_consolidated_footer(info.is_consolidated(from));
    to.set_array_schema_name(from.schema_name());
    Ok(())
}

/// Writes what the footer of a fragment says, and its MBRs, if they are to be there.
pub fn write_metadata(
    from: &Fragment,
    rtree: Option<&RTree>,
    mut to: fragment_metadata::Builder<'_>,
) -> Result<()> {
    let footer = from.footer();
    to.set_fragment_uri(fragment_path(from.timestamped_name(), footer.version));
    to.set_has_timestamps(footer.has_timestamps);
    to.set_has_delete_meta(footer.has_delete_metadata);
    to.set_has_consolidated_footer(from.has_consolidated_footer());
    to.set_sparse_tile_num(footer.sparse_tile_num);
    to.set_version(footer.version.number());
    to.set_last_tile_cell_num(footer.last_tile_cell_num);
    if let Some(name) = &footer.schema_name {
        to.set_array_schema_name(name.as_str());
    }
    let time = from.time_range();
    let mut range = to.reborrow().init_timestamp_range(2);
    range.set(0, time.start);
    range.set(1, time.end);
    domain::write(
        footer.non_empty_domain.as_ref(),
        &from.schema().domain.dimensions,
        to.reborrow().init_non_empty_domain(),
    )?;
    let empty = RTree::empty(&from.schema().domain);
    let rtree = rtree.unwrap_or(&empty).encode(footer.version);
    to.set_rtree(data(&rtree)?);
    write_sizes(footer, to)
}

/// Sizes and offsets of files, by field.
fn write_sizes(from: &Footer, mut to: fragment_metadata::Builder<'_>) -> Result<()> {
    macro_rules! numbers {
        ($($init:ident: $to:expr, $from:expr;)*) => {$(
            if !$from.is_empty() {
                let mut list = $to.$init(count(&$from)?);
                for (index, number) in (0u32..).zip(&$from) {
                    list.set(index, *number);
                }
            }
        )*};
    }
    numbers! {
        init_file_sizes: to.reborrow(), from.file_sizes;
        init_file_var_sizes: to.reborrow(), from.file_var_sizes;
        init_file_validity_sizes: to.reborrow(), from.file_validity_sizes;
    }
    let (sections, mut to) = (&from.sections, to.init_gt_offsets());
    to.set_rtree(sections.rtree);
    to.set_fragment_min_max_sum_null_count_offset(sections.fragment_stats.unwrap_or(0));
    to.set_processed_conditions_offsets(sections.processed_conditions.unwrap_or(0));
    numbers! {
        init_tile_offsets: to.reborrow(), sections.tile_offsets;
        init_tile_var_offsets: to.reborrow(), sections.tile_var_offsets;
        init_tile_var_sizes: to.reborrow(), sections.tile_var_sizes;
        init_tile_validity_offsets: to.reborrow(), sections.tile_validity_offsets;
        init_tile_min_offsets: to.reborrow(), sections.tile_mins;
        init_tile_max_offsets: to.reborrow(), sections.tile_maxs;
        init_tile_sum_offsets: to.reborrow(), sections.tile_sums;
        init_tile_null_count_offsets: to.reborrow(), sections.tile_null_counts;
    }
    Ok(())
}

/// What a message says of an array's fragments.
struct Described {
    latest: String,
    schemas: Vec<SchemaContent>,
    files: Files,
    told: Told,
}

fn read(from: fragment_info::Reader<'_>, array_uri: &str) -> Result<Described> {
    let latest = schema::read(from.get_array_schema_latest()?)?;
    let mut schemas = Vec::new();
    for entry in from.get_array_schemas_all()?.get_entries()? {
        let mut content = schema::read(entry.get_value()?)?;
        entry.get_key()?.to_str()?.clone_into(&mut content.name);
        schemas.push(content);
    }
    let mut described = Described {
        latest: latest.name.clone(),
        files: Files::default(),
        told: Told {
            array_uri: array_uri.trim_end_matches('/').to_owned(),
            ..Told::default()
        },
        schemas,
    };
    if !described
        .schemas
        .iter()
        .any(|each| each.name == latest.name)
    {
        described.schemas.push(latest);
    }
    for single in from.get_fragment_info()? {
        read_fragment(single, &mut described)?;
    }
    for uri in from.get_to_vacuum()? {
        described.told.to_vacuum.push(uri?.to_str()?.to_owned());
    }
    Ok(described)
}

fn read_fragment(from: single_fragment_info::Reader<'_>, to: &mut Described) -> Result<()> {
    let meta = from.get_meta()?;
    let uri = meta.get_fragment_uri()?.to_str()?;
    let name = uri
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let name: TimestampedName = fragment_entry(name)
        .ok_or_else(|| Failure::new(format!("Cannot deserialize; {uri:?} is no fragment")))?;
    let wanted = from.get_array_schema_name()?.to_str()?;
    let schema = to.schemas.iter().find(|each| each.name == wanted);
    let schema = schema.ok_or_else(|| {
        Failure::new(format!(
            "Could not find schema {wanted} in map of deserialized schemas."
        ))
    })?;
    let version = FormatVersion::new(meta.get_version(), "fragment version")?;
    let file = metadata_file(meta, version, wanted, &schema.schema)?;
    to.files.fragment(&name, version, file);
    to.told.fragments.insert(
        name.to_string(),
        (from.get_fragment_size(), meta.get_has_consolidated_footer()),
    );
    Ok(())
}

/// The metadata file of a fragment, with what the message says of it: neither tiles nor statistics.
fn metadata_file(
    from: fragment_metadata::Reader<'_>,
    version: FormatVersion,
    schema_name: &str,
    schema: &ArraySchema,
) -> Result<FragmentMetadata> {
    let dimensions = &schema.domain.dimensions;
    let (has_timestamps, has_delete_metadata) =
        (from.get_has_timestamps(), from.get_has_delete_meta());
    let slots = Slots::new(version, schema, has_timestamps, has_delete_metadata);
    let numbers = |list: capnp::Result<capnp::primitive_list::Reader<'_, u64>>| -> Result<Numbers> {
        let mut numbers: Vec<u64> = list?.iter().collect();
        numbers.resize(slots.len(), 0);
        Ok(numbers.into())
    };
    let rtree = match from.get_rtree()? {
        [] => RTree::empty(&schema.domain),
        bytes => RTree::decode(bytes, version, &schema.domain)?,
    };
    let footer = Footer {
        version,
        schema_name: version
            .has_schema_evolution()
            .then(|| schema_name.to_owned()),
        dense: schema.is_dense() && from.get_sparse_tile_num() == 0,
        non_empty_domain: domain::read(from.get_non_empty_domain()?, dimensions)?,
        sparse_tile_num: from.get_sparse_tile_num(),
        last_tile_cell_num: from.get_last_tile_cell_num(),
        has_timestamps,
        has_delete_metadata,
        slots,
        file_sizes: numbers(from.get_file_sizes())?,
        file_var_sizes: numbers(from.get_file_var_sizes())?,
        file_validity_sizes: numbers(from.get_file_validity_sizes())?,
        sections: SectionOffsets::default(),
        optional_sections: Vec::new(),
        offset: None,
    };
    let empty = |field: Field| FieldMetadata::empty(field, schema);
    Ok(FragmentMetadata {
        footer,
        rtree,
        fields: slots.fields().map(empty).collect(),
        stats: FragmentStats::default(),
        processed_conditions: ProcessedConditions::default(),
        global_order: Vec::new(),
    })
}

capi! {
    /// A message with what is known of an array's fragments.
    fn tiledb_serialize_fragment_info(
        ctx, fragment_info: In<InfoHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        let loaded = fragment_info.get()?.info()?;
        let bytes = message::encode::<fragment_info::Owned>(
            Format::of(kind)?, |to| write(&loaded, client_side != 0, to)
        )?;
        buffer.give(Buffer::of(bytes))?;
    }

    /// Loads a handle with what a message says of the fragments of the array at a URI, at which
    /// nobody looks.
    fn tiledb_deserialize_fragment_info(
        ctx, buffer: In<Buffer>, kind: i32, array_uri: Text, client_side: i32, fragment_info: In<InfoHandle>
    ) {
        let _ = client_side;
        let (bytes, uri) = (buffer.get()?.bytes()?, array_uri.get()?);
        if uri.is_empty() {
            return Err("Failed to deserialize fragment info; Invalid array URI".into());
        }
        let described = message::decode::<fragment_info::Owned, _>(Format::of(kind)?, &bytes, |from| read(from, uri))?;
        let Described { latest, schemas, files, told } = described;
        let snapshot = in_memory(&ctx.engine()?, &latest, &schemas, files)?;
        fragment_info.get()?.tell(Loaded::told(snapshot.array()?.fragment_info(), told));
    }

    /// A message with the settings of a handle.
    fn tiledb_serialize_fragment_info_request(
        ctx, fragment_info: In<InfoHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        let _ = client_side;
        let settings = ctx.settings_with(fragment_info.get()?.settings().as_ref());
        let bytes = message::encode::<fragment_info_request::Owned>(
            Format::of(kind)?, |to| settings::write(&settings, to.init_config())
        )?;
        buffer.give(Buffer::of(bytes))?;
    }

    /// Gives a handle the settings of a message.
    fn tiledb_deserialize_fragment_info_request(
        ctx, buffer: In<Buffer>, kind: i32, client_side: i32, fragment_info: In<InfoHandle>
    ) {
        let _ = client_side;
        let bytes = buffer.get()?.bytes()?;
        let found = message::decode::<fragment_info_request::Owned, _>(Format::of(kind)?, &bytes, |from| {
            match from.has_config() {
                true => settings::read(from.get_config()?).map(Some),
                false => Ok(None),
            }
        })?;
        if let Some(settings) = found {
            fragment_info.get()?.set_settings(settings);
        }
    }
}

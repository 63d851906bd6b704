//! Queries, with their buffers behind them, and the sizes that reads are estimated to give.

use super::message::{self, Format};
use super::rest_capnp::{attribute_buffer_header, estimated_result_size, query, subarray};
use super::values::{read_ranges, write_ranges};
use super::words::{self, count};
use super::{array, condition, settings};
use crate::array::ArrayHandle;
use crate::boundary::{In, Out, Ptr, Text, capi};
use crate::buffer::{Buffer, BufferList};
use crate::ctx::Context;
use crate::enums::QueryType;
use crate::error::{Failure, Result};
use crate::query::channel::NamedAggregate;
use crate::query::content::{BufferContent, PartSize, QueryContent, Side};
use crate::query::estimate::Sizes;
use crate::query::{QueryHandle, Status};
use crate::subarray::Ranges;
use azulejo_format::Range;
use azulejo_format::schema::{ArraySchema, Dimension, Layout};

const STATUS: [(Status, &str); 5] = [
    (Status::Failed, "FAILED"),
    (Status::Completed, "COMPLETED"),
    (Status::Incomplete, "INCOMPLETE"),
    (Status::Uninitialized, "UNINITIALIZED"),
    (Status::Initialized, "INITIALIZED"),
];

/// Writes a query, without the bytes of its buffers.
pub fn write(handle: &QueryHandle, client_side: bool, mut to: query::Builder<'_>) -> Result<()> {
    let (content, open) = (handle.content()?, handle.open());
    let schema = open.snapshot().schema();
    to.set_type(words::query_type(handle.kind()));
    to.set_layout(words::layout(content.layout));
    let status = STATUS.iter().find(|(status, _)| *status == content.status);
    to.set_status(status.map_or("", |(_, word)| word));
    array::write(
        handle.array(),
        open,
        client_side,
        to.reborrow().init_array(),
    )?;
    write_buffers(&content.buffers, to.reborrow())?;
    settings::write(&handle.settings(), to.reborrow().init_config())?;
    write_aggregates(&content.aggregates, to.reborrow())?;
    if !content.fragments.is_empty() {
        let fragments = &content.fragments;
        let mut list = to.reborrow().init_written_fragment_info(count(fragments)?);
        for (index, (uri, time)) in (0u32..).zip(fragments) {
            let mut entry = list.reborrow().get(index);
            entry.set_uri(
                uri.trim_end_matches('/')
                    .rsplit('/')
                    .next()
                    .unwrap_or_default(),
            );
            let mut range = entry.init_timestamp_range(2);
            range.set(0, time.0);
            range.set(1, time.1);
        }
    }
    match handle.kind() {
        QueryType::Read => write_reader(handle, &content, schema, to),
        QueryType::Write | QueryType::ModifyExclusive => {
            let mut writer = to.init_writer();
            let settings = handle.settings();
            writer.set_check_coord_dups(settings.flag("sm.check_coord_dups"));
            writer.set_check_coord_o_o_b(settings.flag("sm.check_coord_oob"));
            writer.set_dedup_coords(settings.flag("sm.dedup_coords"));
            match &content.subarray {
                Some(ranges) if schema.is_dense() || ranges.has_labels() => write_subarray(
                    ranges,
                    content.layout,
                    schema,
                    writer.init_subarray_ranges(),
                ),
                _ => Ok(()),
            }
        }
        QueryType::Delete => match &content.condition {
            Some(found) => condition::write(found, to.init_delete().init_condition()),
            None => Ok(()),
        },
        QueryType::Update => Err(Failure::unsupported("an update query")),
    }
}

fn write_buffers(buffers: &[BufferContent], mut to: query::Builder<'_>) -> Result<()> {
    let total = |part: fn(&BufferContent) -> PartSize| -> u64 {
        let sizes = buffers.iter().map(|buffer| part(buffer).current);
        sizes.fold(0, u64::saturating_add)
    };
    to.set_total_fixed_length_buffer_bytes(total(|b| b.fixed));
    to.set_total_var_len_buffer_bytes(total(|b| b.var));
    to.set_total_validity_buffer_bytes(total(|b| b.validity));
    let mut list = to.init_attribute_buffer_headers(count(buffers)?);
    for (index, from) in (0u32..).zip(buffers) {
        let mut header = list.reborrow().get(index);
        header.set_name(from.name.as_str());
        header.set_fixed_len_buffer_size_in_bytes(from.fixed.current);
        header.set_original_fixed_len_buffer_size_in_bytes(from.fixed.original);
        header.set_var_len_buffer_size_in_bytes(from.var.current);
        header.set_original_var_len_buffer_size_in_bytes(from.var.original);
        header.set_validity_len_buffer_size_in_bytes(from.validity.current);
        header.set_original_validity_len_buffer_size_in_bytes(from.validity.original);
    }
    Ok(())
}

fn write_aggregates(aggregates: &[NamedAggregate], to: query::Builder<'_>) -> Result<()> {
    if aggregates.is_empty() {
        return Ok(());
    }
    let mut channel = to.init_channels(1).get(0);
    channel.set_default(true);
    let mut list = channel.init_aggregates(count(aggregates)?);
    for (index, each) in (0u32..).zip(aggregates) {
        let mut entry = list.reborrow().get(index);
        let (word, field) = each.words();
        entry.set_output_field_name(each.name.as_str());
        entry.set_name(word);
        if let Some(field) = field {
            entry.set_input_field_name(field);
        }
    }
    Ok(())
}

/// Writes what is read. The reference has three kinds of readers, and each has its own place.
fn write_reader(
    handle: &QueryHandle,
    content: &QueryContent,
    schema: &ArraySchema,
    mut to: query::Builder<'_>,
) -> Result<()> {
    let settings = handle.settings();
    let get = |key| settings.get(key).unwrap_or_default();
    to.set_var_offsets_mode(get("sm.var_offsets.mode"));
    to.set_var_offsets_add_extra_element(settings.flag("sm.var_offsets.extra_element"));
    to.set_var_offsets_bitsize(get("sm.var_offsets.bitsize").parse().unwrap_or(64));
    // Two kinds of structures, with the same fields as far as they are written here.
    macro_rules! write_selection {
        ($to:ident) => {{
            $to.set_layout(words::layout(content.layout));
            if let Some(ranges) = &content.subarray {
                let to = $to.reborrow().init_subarray();
                write_subarray(ranges, content.layout, schema, to)?;
            }
            match &content.condition {
                Some(found) => condition::write(found, $to.init_condition()),
                None => Ok(()),
            }
        }};
    }
    if !schema.is_dense() && matches!(content.layout, Layout::Global | Layout::Unordered) {
        let mut to = to.init_reader_index();
        to.reborrow().init_read_state().init_frag_tile_idx(0);
        write_selection!(to)
    } else {
        let mut to = match schema.is_dense() {
            true => to.init_dense_reader(),
            false => to.init_reader(),
        };
        to.reborrow().init_read_state();
        write_selection!(to)
    }
}

fn write_subarray(
    from: &Ranges,
    layout: Layout,
    schema: &ArraySchema,
    mut to: subarray::Builder<'_>,
) -> Result<()> {
    to.set_layout(words::layout(layout));
    to.set_coalesce_ranges(from.coalesces());
    let all = from.content()?;
    let mut list = to.reborrow().init_ranges(count(&all)?);
    for ((index, (ranges, default)), dimension) in (0u32..).zip(&all).zip(&schema.domain.dimensions)
    {
        let mut to = list.reborrow().get(index);
        to.set_has_default_range(*default);
        write_ranges(dimension, ranges, to)?;
    }
    let labels: Vec<(usize, &str, &[Range])> = from.labels().collect();
    if labels.is_empty() {
        return Ok(());
    }
    let mut list = to.init_label_ranges(count(&labels)?);
    for (index, (dimension, name, ranges)) in (0u32..).zip(labels) {
        let mut to = list.reborrow().get(index);
        to.set_dimension_id(u32::try_from(dimension).unwrap_or(u32::MAX));
        to.set_name(name);
        write_ranges(&labelled(schema, name)?, ranges, to.init_ranges())?;
    }
    Ok(())
}

/// A label's values as those of a dimension.
fn labelled(schema: &ArraySchema, name: &str) -> Result<Dimension> {
    let label = schema.dimension_label(name).ok_or_else(|| {
        Failure::new(format!(
            "Cannot deserialize; there is no dimension label '{name}'"
        ))
    })?;
    Ok(Dimension {
        cell_val_num: label.cell_val_num,
        ..Dimension::of_type(name, label.datatype)
    })
}

fn read_subarray(from: subarray::Reader<'_>, handle: &QueryHandle) -> Result<Ranges> {
    let schema = handle.open().snapshot().schema();
    let mut ranges = Ranges::new(handle.open(), true, None)?;
    let mut all = Vec::new();
    for (each, dimension) in from.get_ranges()?.iter().zip(&schema.domain.dimensions) {
        all.push(match each.get_has_default_range() {
            true => None,
            false => Some(read_ranges(dimension, each)?),
        });
    }
    ranges.tell(all, from.get_coalesce_ranges())?;
    for each in from.get_label_ranges()? {
        let name = each.get_name()?.to_str()?;
        for range in read_ranges(&labelled(schema, name)?, each.get_ranges()?)? {
            ranges.tell_label(name, range)?;
        }
    }
    Ok(ranges)
}

fn read_buffer(from: attribute_buffer_header::Reader<'_>) -> Result<BufferContent> {
    Ok(BufferContent {
        name: from.get_name()?.to_str()?.to_owned(),
        fixed: PartSize {
            current: from.get_fixed_len_buffer_size_in_bytes(),
            original: from.get_original_fixed_len_buffer_size_in_bytes(),
        },
        var: PartSize {
            current: from.get_var_len_buffer_size_in_bytes(),
            original: from.get_original_var_len_buffer_size_in_bytes(),
        },
        validity: PartSize {
            current: from.get_validity_len_buffer_size_in_bytes(),
            original: from.get_original_validity_len_buffer_size_in_bytes(),
        },
    })
}

/// What a message says that a query on this array is to read, write or delete.
type Work = (Option<Ranges>, Option<azulejo_format::condition::Condition>);

fn read_work(from: query::Reader<'_>, handle: &QueryHandle) -> Result<Work> {
    let schema = handle.open().snapshot().schema();
    // Two kinds of structures, with the same fields as far as they are read here.
    macro_rules! selection {
        ($reader:expr) => {{
            let reader = $reader?;
            let found = match reader.has_condition() {
                true => Some(condition::read(reader.get_condition()?, schema)?),
                false => None,
            };
            Ok((Some(read_subarray(reader.get_subarray()?, handle)?), found))
        }};
    }
    match handle.kind() {
        QueryType::Read if from.has_reader_index() => selection!(from.get_reader_index()),
        QueryType::Read if from.has_dense_reader() => selection!(from.get_dense_reader()),
        QueryType::Read if from.has_ordered_dim_label_reader() => {
            selection!(from.get_ordered_dim_label_reader())
        }
        QueryType::Read => selection!(from.get_reader()),
        QueryType::Delete => {
            let delete = from.get_delete()?;
            Ok(match delete.has_condition() {
                true => (
                    None,
                    Some(condition::read(delete.get_condition()?, schema)?),
                ),
                false => (None, None),
            })
        }
        _ => {
            let writer = from.get_writer()?;
            if writer.has_global_write_state_v1() {
                return Err(
                    "Cannot deserialize a write in global order that another library began".into(),
                );
            }
            Ok(match writer.has_subarray_ranges() {
                true => (
                    Some(read_subarray(writer.get_subarray_ranges()?, handle)?),
                    None,
                ),
                false => (None, None),
            })
        }
    }
}

/// Lets a query become what a message says; `bytes` are those of its buffers.
pub fn read(from: query::Reader<'_>, handle: &QueryHandle, side: Side, bytes: &[u8]) -> Result<()> {
    let kind = words::query_type_of(from.get_type()?)?;
    if kind != handle.kind() {
        return Err(Failure::new(format!(
            "Cannot deserialize; Query opened for {} but got serialized type for {}",
            handle.kind().name(),
            kind.name()
        )));
    }
    let status = from.get_status()?.to_str()?;
    let found = STATUS.iter().find(|(_, word)| *word == status);
    let (status, _) = *found
        .ok_or_else(|| Failure::new(format!("Cannot deserialize; {status:?} is no status")))?;
    if from.has_config() {
        handle.set_settings(&settings::read(from.get_config()?)?);
    }
    let schema = handle.open().snapshot().schema();
    let mut aggregates = Vec::new();
    for channel in from.get_channels()? {
        for each in channel.get_aggregates()? {
            let field = match each.has_input_field_name() {
                true => Some(each.get_input_field_name()?.to_str()?),
                false => None,
            };
            let name = each.get_output_field_name()?.to_str()?;
            let word = each.get_name()?.to_str()?;
            aggregates.push(NamedAggregate::of_words(schema, name, word, field)?);
        }
    }
    let mut buffers = Vec::new();
    for header in from.get_attribute_buffer_headers()? {
        let buffer = read_buffer(header)?;
        if !crate::query::content::is_known(handle, &aggregates, &buffer.name) {
            return Err(Failure::new(format!(
                "Cannot deserialize; the array has no field '{}'",
                buffer.name
            )));
        }
        buffers.push(buffer);
    }
    let mut fragments = Vec::new();
    for each in from.get_written_fragment_info()? {
        let (time, name) = (each.get_timestamp_range()?, each.get_uri()?.to_str()?);
        let at = |index| time.try_get(index).unwrap_or(0);
        let uri = crate::query::fragment_uri(handle.open().uri(), name)?;
        fragments.push((uri, (at(0), at(1))));
    }
    let (subarray, condition) = read_work(from, handle)?;
    let content = QueryContent {
        status,
        layout: words::layout_of(from.get_layout()?)?,
        subarray,
        condition,
        buffers,
        aggregates,
        fragments,
    };
    handle.tell(content, side, bytes)
}

fn side(client_side: i32) -> Side {
    if client_side == 1 {
        Side::Client
    } else {
        Side::Server
    }
}

fn only_capnp(kind: i32) -> Result<()> {
    match Format::of(kind)? {
        Format::Capnp => Ok(()),
        Format::Json => Err("Cannot serialize query; json format not supported.".into()),
    }
}

/// Opens the array of a query's message.
fn array_of(ctx: &Context, uri: &str, bytes: &[u8]) -> Result<(ArrayHandle, QueryType)> {
    let (description, kind) = message::decode_before::<query::Owned, _>(bytes, |from, _| {
        let kind = words::query_type_of(from.get_type()?)?;
        let mut description = array::read(from.get_array()?)?;
        description.kind = kind;
        Ok((description, kind))
    })?;
    Ok((array::open(ctx, uri, description)?, kind))
}

capi! {
    /// A message with a query and, if it is what the other side needs, the bytes of its buffers.
    fn tiledb_serialize_query(
        ctx, query: In<QueryHandle>, kind: i32, client_side: i32, buffer_list: Out<Ptr<BufferList>>
    ) {
        only_capnp(kind)?;
        let (query, client_side) = (query.get()?, client_side == 1);
        let bytes = message::encode::<query::Owned>(Format::Capnp, |to| write(query, client_side, to))?;
        let mut parts = vec![bytes];
        let sends = if client_side { QueryType::Write } else { QueryType::Read };
        if query.kind() == sends {
            parts.extend(query.buffer_bytes());
        }
        buffer_list.give(BufferList::of(parts))?;
    }

    /// Lets a query become what a message says: a client's gets results and the state of the
    /// server's, a server's gets all that it is to do and buffers of its own.
    fn tiledb_deserialize_query(ctx, buffer: In<Buffer>, kind: i32, client_side: i32, query: In<QueryHandle>) {
        only_capnp(kind)?;
        let bytes = buffer.get()?.bytes()?;
        let query = query.get()?;
        message::decode_before::<query::Owned, _>(
            &bytes, |from, rest| read(from, query, side(client_side), rest)
        )?;
    }

    /// A query out of a message, and the array that it is on.
    fn tiledb_deserialize_query_and_array(
        ctx, buffer: In<Buffer>, kind: i32, client_side: i32,
        array_uri: Text, query: Out<Ptr<QueryHandle>>, array: Out<Ptr<ArrayHandle>>
    ) {
        only_capnp(kind)?;
        let bytes = buffer.get()?.bytes()?;
        let (on, what) = array_of(ctx, array_uri.get()?, &bytes)?;
        let made = QueryHandle::new(ctx, &on, what)?;
        message::decode_before::<query::Owned, _>(
            &bytes, |from, rest| read(from, &made, side(client_side), rest)
        )?;
        array.give(on)?;
        query.give(made)?;
    }

    /// A message with what a read of every field is estimated to give.
    fn tiledb_serialize_query_est_result_sizes(
        ctx, query: In<QueryHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        let _ = client_side;
        let estimates = query.get()?.estimates()?;
        let bytes = message::encode::<estimated_result_size::Owned>(
            Format::of(kind)?, |to| write_estimates(&estimates, to)
        )?;
        buffer.give(Buffer::of(bytes))?;
    }

    /// Lets a query have the estimates of a message.
    fn tiledb_deserialize_query_est_result_sizes(
        ctx, query: In<QueryHandle>, kind: i32, client_side: i32, buffer: In<Buffer>
    ) {
        let _ = client_side;
        let bytes = buffer.get()?.bytes()?;
        let found = message::decode::<estimated_result_size::Owned, _>(Format::of(kind)?, &bytes, read_estimates)?;
        query.get()?.tell_estimates(found);
    }
}

fn write_estimates(
    from: &[(String, Sizes)],
    mut to: estimated_result_size::Builder<'_>,
) -> Result<()> {
    let mut list = to.reborrow().init_result_sizes().init_entries(count(from)?);
    for (index, (name, sizes)) in (0u32..).zip(from) {
        let mut entry = list.reborrow().get(index);
        entry.set_key(name.as_str())?;
        let mut value = entry.init_value();
        let (fixed, var) = split(sizes);
        value.set_size_fixed(fixed as f64);
        value.set_size_var(var as f64);
        value.set_size_validity(sizes.validity as f64);
    }
    let mut list = to.init_memory_sizes().init_entries(count(from)?);
    for (index, (name, sizes)) in (0u32..).zip(from) {
        let mut entry = list.reborrow().get(index);
        entry.set_key(name.as_str())?;
        let mut value = entry.init_value();
        let (fixed, var) = split(sizes);
        value.set_size_fixed(fixed);
        value.set_size_var(var);
        value.set_size_validity(sizes.validity);
    }
    Ok(())
}

/// Offsets and values of var-length fields; values of others and nothing.
fn split(sizes: &Sizes) -> (u64, u64) {
    match sizes.offsets {
        0 => (sizes.data, 0),
        offsets => (offsets, sizes.data),
    }
}

fn read_estimates(from: estimated_result_size::Reader<'_>) -> Result<Vec<(String, Sizes)>> {
    let mut found = Vec::new();
    for entry in from.get_result_sizes()?.get_entries()? {
        let value = entry.get_value()?;
        // As the reference, parts of bytes count as bytes.
        let [fixed, var, validity] = [
            value.get_size_fixed(),
            value.get_size_var(),
            value.get_size_validity(),
        ]
        .map(|size| size.ceil() as u64);
        let sizes = match var {
            0 => Sizes {
                data: fixed,
                offsets: 0,
                validity,
            },
            _ => Sizes {
                data: var,
                offsets: fixed,
                validity,
            },
        };
        found.push((entry.get_key()?.to_str()?.to_owned(), sizes));
    }
    Ok(found)
}

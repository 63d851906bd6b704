//! Submitting writes and deletes.

use super::State;
use super::buffers::{FieldBuffers, Loan};
use super::read::{Source, source};
use super::{OffsetsFormat, Status};
use crate::array::OpenArray;
use crate::error::{Failure, Result};
use arrow_buffer::Buffer;
use azulejo::Array;
use azulejo::column::{ColumnBuffers, ColumnSet, ColumnType};
use azulejo::write::{Duplicates, WriteLayout, WriteOptions, Writer};
use azulejo_format::NdRectangle;
use azulejo_format::schema::{ArraySchema, Layout};

/// What a write has made so far.
#[derive(Debug, Default)]
pub struct WriteState {
    /// URIs and times of the fragments.
    pub fragments: Vec<(String, (u64, u64))>,
    /// A write in global order under way.
    global: Option<Writer>,
}

/// The column that the caller's buffers hold: values and validity are those buffers, offsets become ours.
fn column(
    column_type: ColumnType,
    buffers: &FieldBuffers,
    format: OffsetsFormat,
    loan: &Loan,
) -> Result<ColumnBuffers> {
    let fail =
        |what: &str| Failure::new(format!("Cannot write field '{}'; {what} buffer is not set", buffers.name));
    let place = buffers.data.as_ref().ok_or_else(|| fail("Data"))?;
    let mut len = place.bytes().len();
    let offsets = if column_type.is_var() {
        let given = buffers.offsets.as_ref().ok_or_else(|| fail("Offsets"))?;
        let (mut offsets, end) = format.read(given.bytes(), column_type.datatype)?;
        let end = end.unwrap_or(len as u64);
        offsets.push(end);
        if offsets.first().is_some_and(|first| *first != 0) {
            return Err(Failure::new(format!(
                "Cannot write field '{}'; the first offset is not 0",
                buffers.name
            )));
        }
        len = len.min(usize::try_from(end).unwrap_or(usize::MAX));
        Some(Buffer::from_vec(offsets))
    } else {
        None
    };
    let validity = if column_type.nullable {
        let place = buffers.validity.as_ref().ok_or_else(|| fail("Validity"))?;
        Some(loan.of(place, place.bytes().len()))
    } else {
        None
    };
    let data = loan.of(place, len);
    let cell_num = match (&offsets, column_type.cell_size()) {
        (Some(offsets), _) => (offsets.len() / size_of::<u64>()).saturating_sub(1),
        (None, 0) => 0,
        (None, size) => len / size,
    };
    let column = ColumnBuffers { column_type, cell_num, data, offsets, validity };
    column.validate()?;
    Ok(column)
}

fn column_type(schema: &ArraySchema, name: &str) -> Result<ColumnType> {
    let field = schema.field(name).ok_or_else(|| Failure::new(format!("there is no field '{name}'")))?;
    let (datatype, num) = schema.type_of(field).ok_or_else(|| Failure::new("a field without a type"))?;
    let mut column_type = ColumnType::new(name, datatype).with_cell_val_num(num);
    column_type.nullable = schema.is_nullable(field);
    Ok(column_type)
}

fn columns(state: &State, schema: &ArraySchema, format: OffsetsFormat, loan: &Loan) -> Result<ColumnSet> {
    let mut columns = Vec::new();
    for buffers in &state.buffers {
        if source(schema, &[], &buffers.name) == Some(Source::Field) {
            columns.push(column(column_type(schema, &buffers.name)?, buffers, format, loan)?);
        }
    }
    for attribute in &schema.attributes {
        if !columns.iter().any(|column| *column.column_type.name == *attribute.name) {
            return Err(Failure::new(format!(
                "[TileDB::Query] Error: Cannot write; the buffer of attribute '{}' is not set",
                attribute.name
            )));
        }
    }
    if schema.is_dense() && columns.iter().any(|c| schema.domain.index_of(&c.column_type.name).is_some()) {
        return Err("[TileDB::Query] Error: Dense writes do not support coordinate buffers".into());
    }
    Ok(ColumnSet::of(columns)?)
}

fn options(state: &State, open: &OpenArray) -> Result<WriteOptions> {
    let layout = match state.layout {
        Layout::RowMajor => WriteLayout::Row,
        Layout::ColMajor => WriteLayout::Col,
        Layout::Global => WriteLayout::Global,
        Layout::Unordered | Layout::Hilbert => WriteLayout::Unordered,
    };
    let mut options = WriteOptions::new().layout(layout);
    if let Some(time) = open.write_time() {
        options = options.timestamp(time);
    }
    if let Some(ranges) = &state.subarray
        && open.array().schema().is_dense()
        && !ranges.is_default()
    {
        options = options.subarray(NdRectangle { ranges: ranges.single()? });
    }
    let dedup = state.settings.as_ref().map_or_else(
        || open.settings().flag("sm.dedup_coords"),
        |own| own.flag("sm.dedup_coords") || open.settings().flag("sm.dedup_coords"),
    );
    let check = state.settings.as_ref().and_then(|own| own.given("sm.check_coord_dups"));
    let check = check.or_else(|| open.settings().get("sm.check_coord_dups"));
    if dedup {
        options = options.duplicates(Duplicates::Dedup);
    } else if check.is_some_and(|value| value.eq_ignore_ascii_case("false")) {
        options = options.duplicates(Duplicates::Unchecked);
    }
    Ok(options)
}

/// Remembers fragments by their names.
fn note(state: &mut State, open: &OpenArray, names: Vec<String>) {
    for name in names {
        let mut numbers = name.trim_start_matches('_').split('_').map(|part| part.parse().unwrap_or(0));
        let time = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        let uri = format!("{}/__fragments/{name}", crate::uri::absolute(open.uri()));
        state.write.fragments.push((uri, time));
    }
}

/// Writes what the caller's buffers hold.
pub fn submit(state: &mut State, open: &OpenArray) -> Result<()> {
    let schema = open.array().schema();
    let format = state.offsets_format(open)?;
    if let Some(ranges) = &mut state.subarray {
        ranges.resolve()?;
    }
    write_labels(state, open, format)?;
    let has_fields = state.buffers.iter().any(|b| source(schema, &[], &b.name) == Some(Source::Field));
    if has_fields {
        let loan = Loan::default();
        let cells = columns(state, schema, format, &loan)?;
        if state.layout == Layout::Global {
            if state.write.global.is_none() {
                state.write.global = Some(Writer::new(open.array(), options(state, open)?)?);
            }
            if let Some(writer) = &mut state.write.global {
                writer.write(&cells)?;
            }
            drop(cells);
        } else {
            let mut writer = Writer::new(open.array(), options(state, open)?)?;
            writer.write(&cells)?;
            let names = writer.finish()?;
            drop(cells);
            note(state, open, names);
        }
        loan.end();
    } else if state.buffers.is_empty() {
        return Err("[TileDB::Query] Error: Cannot submit query; Buffers are not set".into());
    }
    state.status = Status::Completed;
    Ok(())
}

/// Writes the values of dimension labels into their arrays.
fn write_labels(state: &State, open: &OpenArray, format: OffsetsFormat) -> Result<()> {
    let schema = open.array().schema();
    for buffers in &state.buffers {
        if source(schema, &[], &buffers.name) != Some(Source::Label) {
            continue;
        }
        let Some(label) = schema.dimension_label(&buffers.name) else { continue };
        let array = open.array().open_label(&buffers.name)?;
        let loan = Loan::default();
        let values = column(column_type(array.schema(), &label.attribute)?, buffers, format, &loan)?;
        let mut options = WriteOptions::new().layout(WriteLayout::Row);
        if let Some(time) = open.write_time() {
            options = options.timestamp(time);
        }
        if let Some(ranges) = &state.subarray
            && let Some(range) = ranges.single()?.get(label.dimension as usize)
        {
            options = options.subarray(NdRectangle { ranges: vec![range.clone()] });
        }
        let mut writer = Writer::new(&array, options)?;
        writer.write(&ColumnSet::of([values])?)?;
        writer.finish()?;
    }
    Ok(())
}

/// Ends a write in global order: what was written counts from now on.
pub fn finalize(state: &mut State, open: &OpenArray) -> Result<()> {
    if let Some(writer) = state.write.global.take() {
        let names = writer.finish()?;
        note(state, open, names);
    }
    Ok(())
}

/// Deletes the cells that meet the query's condition.
pub fn delete(state: &mut State, open: &OpenArray) -> Result<()> {
    let condition = state.condition.as_ref();
    let condition = condition.ok_or_else(|| {
        Failure::new("[TileDB::DeletesAndUpdates] Error: Cannot initialize deletes; One condition is needed")
    })?;
    Array::delete_cells(open.engine(), open.uri(), condition, open.write_time())?;
    state.status = Status::Completed;
    Ok(())
}

//! Submitting writes and deletes.

use super::State;
use super::buffers::FieldBuffers;
use super::outside;
use super::partial::Partial;
use super::read::{Source, source};
use super::zipped::Unzipped;
use super::{OffsetsFormat, Status};
use crate::array::OpenArray;
use crate::error::{Failure, Result};
use crate::subarray::Ranges;
use azulejo::Array;
use azulejo::column::{ColumnBuffers, ColumnType, ColumnView};
use azulejo::space::Subarray;
use azulejo::write::{Duplicates, WriteLayout, WriteOptions, Writer};
use azulejo_format::path::{fragment_path, fragment_version};
use azulejo_format::range::compare;
use azulejo_format::schema::{ArraySchema, DataOrder, DimensionLabel, Layout};
use azulejo_format::timestamped_name::TimestampedName;
use azulejo_format::{NdRectangle, Range};
use std::cmp::Ordering;

/// What a write has made so far.
#[derive(Debug, Default)]
pub struct WriteState {
    /// URIs and times of the fragments.
    pub fragments: Vec<(String, (u64, u64))>,
    /// A write in global order under way.
    global: Option<Writer>,
    /// The fields of a write that brings them one by one.
    pub partial: Partial,
}

impl WriteState {
    /// Whether cells were taken that do not count yet.
    pub fn is_under_way(&self) -> bool {
        self.global.is_some() || self.partial.is_under_way()
    }
}

/// A field's cells in the caller's buffers, but for its offsets, of which the engine wants one
/// more.
pub struct Given<'a> {
    column_type: ColumnType,
    data: &'a [u8],
    offsets: Option<Vec<u64>>,
    validity: Option<&'a [u8]>,
}

impl<'a> Given<'a> {
    /// The cells that the buffers of a field hold. `cells`: how many there are, if others tell.
    pub fn new(
        column_type: ColumnType,
        buffers: &'a FieldBuffers,
        format: OffsetsFormat,
        cells: Option<usize>,
    ) -> Result<Self> {
        let fail = |what: &str| {
            Failure::new(format!(
                "Cannot write field '{}'; {what} buffer is not set",
                buffers.name
            ))
        };
        let mut data = buffers.data.as_ref().ok_or_else(|| fail("Data"))?.bytes();
        let offsets = if column_type.is_var() {
            let given = buffers.offsets.as_ref().ok_or_else(|| fail("Offsets"))?;
            let (mut offsets, end) = format.read(given, cells, column_type.datatype)?;
            let end = end.unwrap_or(data.len() as u64);
            offsets.push(end);
            data = usize::try_from(end)
                .ok()
                .and_then(|end| data.get(..end))
                .unwrap_or(data);
            Some(offsets)
        } else {
            // What is less than a cell behind the last one is none.
            let rest = data.len() % column_type.cell_size().max(1);
            data = data.get(..data.len() - rest).unwrap_or(data);
            None
        };
        let validity = if column_type.nullable {
            Some(
                buffers
                    .validity
                    .as_ref()
                    .ok_or_else(|| fail("Validity"))?
                    .bytes(),
            )
        } else {
            None
        };
        let mut given = Self {
            column_type,
            data,
            offsets,
            validity,
        };
        // There may be more bytes of validity than cells.
        given.validity = given
            .validity
            .map(|validity| validity.get(..given.cell_num()).unwrap_or(validity));
        Ok(given)
    }

    fn cell_num(&self) -> usize {
        match &self.offsets {
            Some(offsets) => offsets.len() - 1,
            None => self.data.len() / self.column_type.cell_size().max(1),
        }
    }

    /// Leaves the first `cells` cells, if there are more.
    fn truncate(&mut self, cells: usize) {
        if self.cell_num() <= cells {
            return;
        }
        let end = match &mut self.offsets {
            Some(offsets) => {
                offsets.truncate(cells + 1);
                offsets.last().and_then(|end| usize::try_from(*end).ok())
            }
            None => cells.checked_mul(self.column_type.cell_size()),
        };
        self.data = end
            .and_then(|end| self.data.get(..end))
            .unwrap_or(self.data);
        self.validity = self
            .validity
            .map(|validity| validity.get(..cells).unwrap_or(validity));
    }

    /// A copy, which does not need the caller's buffers.
    pub fn keep(self) -> Result<ColumnBuffers> {
        let validity = self.validity.map(<[u8]>::to_vec);
        Ok(ColumnBuffers::of_raw(
            self.column_type,
            self.data.to_vec(),
            self.offsets,
            validity,
        )?)
    }

    fn view(&self) -> Result<ColumnView<'_>> {
        let offsets = self.offsets.as_deref();
        Ok(ColumnView::new(
            self.column_type.clone(),
            self.data,
            offsets,
            self.validity,
        )?)
    }
}

/// The type of a field.
pub fn column_type(schema: &ArraySchema, name: &str) -> Result<ColumnType> {
    let field = schema
        .field(name)
        .ok_or_else(|| Failure::new(format!("there is no field '{name}'")))?;
    let (datatype, num) = schema
        .type_of(field)
        .ok_or_else(|| Failure::new("a field without a type"))?;
    let mut column_type = ColumnType::new(name, datatype).with_cell_val_num(num);
    column_type.nullable = schema.is_nullable(field);
    Ok(column_type)
}

fn columns<'a>(
    buffers: &'a [FieldBuffers],
    schema: &ArraySchema,
    format: OffsetsFormat,
    cells: Option<usize>,
) -> Result<Vec<Given<'a>>> {
    let mut columns = Vec::new();
    let cells = cells.or_else(|| coordinates(buffers, schema));
    for buffers in buffers {
        if source(schema, &[], &buffers.name) == Some(Source::Field) {
            columns.push(Given::new(
                column_type(schema, &buffers.name)?,
                buffers,
                format,
                cells,
            )?);
        }
    }
    for attribute in &schema.attributes {
        if !columns
            .iter()
            .any(|column| *column.column_type.name == *attribute.name)
        {
            return Err(Failure::new(format!(
                "[TileDB::Query] Error: Cannot write; the buffer of attribute '{}' is not set",
                attribute.name
            )));
        }
    }
    if schema.is_dense()
        && columns
            .iter()
            .any(|c| schema.domain.index_of(&c.column_type.name).is_some())
    {
        return Err("[TileDB::Query] Error: Dense writes do not support coordinate buffers".into());
    }
    // As many cells count as there are coordinates: attributes' buffers may hold more.
    let is_dimension =
        |column: &Given<'_>| schema.domain.index_of(&column.column_type.name).is_some();
    if let Some(cells) = columns
        .iter()
        .find(|c| is_dimension(c))
        .map(Given::cell_num)
    {
        columns
            .iter_mut()
            .filter(|c| !is_dimension(c))
            .for_each(|column| column.truncate(cells));
    }
    Ok(columns)
}

/// How many coordinates of fixed length there are.
pub fn coordinates(buffers: &[FieldBuffers], schema: &ArraySchema) -> Option<usize> {
    let mut dimensions = schema.domain.dimensions.iter().filter(|d| !d.is_var());
    dimensions.find_map(|dimension| {
        let given = buffers
            .iter()
            .find(|b| b.name == dimension.name)?
            .data
            .as_ref()?;
        Some(given.bytes().len() / dimension.datatype.size())
    })
}

/// The cells that a dense write in the order of its subarray brings.
fn selected(state: &State, schema: &ArraySchema) -> Result<Option<usize>> {
    if !schema.is_dense() || state.layout == Layout::Global {
        return Ok(None);
    }
    let selection = match &state.subarray {
        Some(ranges) => ranges.subarray()?,
        None => Subarray::all(),
    };
    Ok(selection
        .cell_num(schema)
        .and_then(|cells| usize::try_from(cells).ok()))
}

fn options(state: &State, open: &OpenArray) -> Result<WriteOptions> {
    let layout = match state.layout {
        Layout::RowMajor => WriteLayout::Row,
        Layout::ColMajor => WriteLayout::Col,
        Layout::Global => WriteLayout::Global,
        Layout::Unordered | Layout::Hilbert => WriteLayout::Unordered,
    };
    let mut options = WriteOptions::new().layout(layout).torn_values();
    if let Some(time) = open.write_time() {
        options = options.timestamp(time);
    }
    if let Some(ranges) = &state.subarray
        && open.snapshot().schema().is_dense()
        && !ranges.is_default()
    {
        options = options.subarray(NdRectangle {
            ranges: ranges.single()?,
        });
    }
    let check = state.settings.get("sm.check_coord_dups");
    if state.settings.flag("sm.dedup_coords") {
        options = options.duplicates(Duplicates::Dedup);
    } else if check.is_some_and(|value| value.eq_ignore_ascii_case("false")) {
        options = options.duplicates(Duplicates::Unchecked);
    }
    Ok(options)
}

/// Remembers fragments by their names.
fn note(state: &mut State, open: &OpenArray, names: &[String]) -> Result<()> {
    for name in names {
        let time = TimestampedName::parse(name)?;
        let uri = fragment_uri(open.uri(), name)?;
        state
            .write
            .fragments
            .push((uri, (time.t_start, time.t_end)));
    }
    Ok(())
}

/// Where an array's fragment of this name lies, which its version decides.
pub fn fragment_uri(array: &str, name: &str) -> Result<String> {
    let parsed = TimestampedName::parse(name)?;
    let path = fragment_path(&parsed, fragment_version(&parsed)?);
    Ok(format!("{}/{path}", crate::uri::folder(array)))
}

/// Writes what the caller's buffers hold.
pub fn submit(state: &mut State, open: &OpenArray) -> Result<()> {
    let schema = open.snapshot().schema();
    // It would write the same cells once more, which arrays that allow duplicates then have twice.
    if state.layout == Layout::Unordered && !schema.is_dense() && !state.write.fragments.is_empty()
    {
        return Err(
            "TileDB internal: ['UnorderedWriter::dowork]  (UnorderWriter: All buffers already written)"
                .into(),
        );
    }
    let format = state.offsets_format()?;
    if let Some(ranges) = &mut state.subarray {
        ranges.resolve()?;
    }
    write_labels(state, open, format)?;
    let has_fields = !only_labels(state, schema)
        && state
            .buffers
            .iter()
            .any(|b| source(schema, &[], &b.name) == Some(Source::Field));
    if has_fields && Partial::applies(state, schema) {
        submit_part(state, open, format)?;
    } else if has_fields {
        // Places, not the memory itself: the state changes while it is written.
        let unzipped = Unzipped::to_write(schema, &state.buffers)?;
        let given = columns(&unzipped.buffers, schema, format, selected(state, schema)?)?;
        let array = open.array_to_write()?;
        let cells = given.iter().map(Given::view).collect::<Result<Vec<_>>>()?;
        // What fails before leaves the query as it was; an error from here on is its end.
        state.status = Status::Failed;
        if state.layout == Layout::Global {
            if state.write.global.is_none() {
                state.write.global = Some(array.writer(options(state, open)?)?);
            }
            if let Some(writer) = &mut state.write.global {
                let failed = |error| outside::told(schema, &cells, "Write failed; ", &error);
                if let Err(error) = writer.write_views(&cells) {
                    // What came before does not count either: whoever finalizes then has nothing.
                    state.write.global = None;
                    return Err(failed(error));
                }
            }
        } else {
            write_fragments(state, open, &array, &cells)?;
        }
    } else if state.buffers.is_empty() {
        return Err("[TileDB::Query] Error: Cannot submit query; Buffers are not set".into());
    }
    state.status = Status::Completed;
    Ok(())
}

/// Keeps the fields of a write that brings them one by one; writes the cells when all are there.
fn submit_part(state: &mut State, open: &OpenArray, format: OffsetsFormat) -> Result<()> {
    // What may fail comes before fields are taken.
    let array = open.array_to_write()?;
    let unzipped = Unzipped::to_write(open.snapshot().schema(), &state.buffers)?;
    let complete = state.write.partial.add(&unzipped.buffers, open, format)?;
    state.buffers.clear();
    if complete {
        state.status = Status::Failed;
        let partial = std::mem::take(&mut state.write.partial);
        write_fragments(state, open, &array, &partial.views())?;
    }
    Ok(())
}

/// Writes cells that are all there; they count when this returns.
fn write_fragments(
    state: &mut State,
    open: &OpenArray,
    array: &Array,
    cells: &[ColumnView<'_>],
) -> Result<()> {
    let failed = |error| outside::told(array.schema(), cells, "", &error);
    let mut writer = array.writer(options(state, open)?)?;
    writer.write_views(cells).map_err(failed)?;
    let names = writer.finish().map_err(failed)?;
    note(state, open, &names)
}

/// Whether only labels are to be written: beside them, the coordinates of one dimension alone say
/// what is labelled, as in the reference.
fn only_labels(state: &State, schema: &ArraySchema) -> bool {
    let is =
        |buffers: &FieldBuffers, wanted: Source| source(schema, &[], &buffers.name) == Some(wanted);
    let fields: Vec<&FieldBuffers> = (state.buffers.iter())
        .filter(|buffers| is(buffers, Source::Field))
        .collect();
    let is_dimension = matches!(&*fields, [one] if schema.domain.index_of(&one.name).is_some());
    is_dimension
        && !schema.attributes.is_empty()
        && state
            .buffers
            .iter()
            .any(|buffers| is(buffers, Source::Label))
}

/// The coordinates that labels are for: those that are given beside them, which are to follow one
/// another, or the selected ones.
fn labelled(state: &State, schema: &ArraySchema, label: &DimensionLabel) -> Result<Option<Range>> {
    let index = label.dimension as usize;
    let given = schema.domain.dimensions.get(index).and_then(|dimension| {
        let buffers = state.buffers.iter().find(|b| b.name == dimension.name)?;
        Some((dimension, buffers.data.as_ref()?))
    });
    let Some((dimension, data)) = given else {
        let selected = state.subarray.as_ref().map(Ranges::single).transpose()?;
        return Ok(selected.and_then(|ranges| ranges.get(index).cloned()));
    };
    let refused = || {
        Failure::new(format!(
            "Cannot write labels '{}'; the coordinates of '{}' beside them must be consecutive points of its domain",
            label.name, dimension.name
        ))
    };
    let axis = dimension.axis().ok_or_else(refused)?;
    let mut found: Option<(&[u8], &[u8], u64)> = None;
    for coordinate in data.bytes().chunks_exact(dimension.datatype.size().max(1)) {
        let offset = axis.offset_of(coordinate).ok_or_else(refused)?;
        found = Some(match found {
            None => (coordinate, coordinate, offset),
            Some((first, _, before)) if before.checked_add(1) == Some(offset) => {
                (first, coordinate, offset)
            }
            Some(_) => return Err(refused()),
        });
    }
    let (first, last, _) = found.ok_or_else(refused)?;
    Ok(Some(Range::new(first, last)))
}

/// Writes the values of dimension labels into their arrays.
fn write_labels(state: &State, open: &OpenArray, format: OffsetsFormat) -> Result<()> {
    let schema = open.snapshot().schema();
    for buffers in &state.buffers {
        if source(schema, &[], &buffers.name) != Some(Source::Label) {
            continue;
        }
        let Some(label) = schema.dimension_label(&buffers.name) else {
            continue;
        };
        let array = open.snapshot().open_label(&buffers.name)?;
        let values = Given::new(
            column_type(array.schema(), &label.attribute)?,
            buffers,
            format,
            None,
        )?;
        if label.order != DataOrder::Unordered && has_equal_neighbours(label, &values.view()?) {
            return Err(Failure::new(format!(
                "Cannot write labels '{}'; The data for attribute '{}' is not in the expected order: \
                 labels follow each other that are equal",
                label.name, label.attribute
            )));
        }
        let mut options = WriteOptions::new().layout(WriteLayout::Row);
        if let Some(time) = open.write_time() {
            options = options.timestamp(time);
        }
        if let Some(range) = labelled(state, schema, label)? {
            options = options.subarray(NdRectangle {
                ranges: vec![range],
            });
        }
        let mut writer = array.writer(options)?;
        writer.write_views(&[values.view()?])?;
        writer.finish()?;
    }
    Ok(())
}

/// Whether a label equals the one before it.
fn has_equal_neighbours(label: &DimensionLabel, values: &ColumnView<'_>) -> bool {
    let equal = |at: usize| {
        let (before, after) = (values.cells.cell(at), values.cells.cell(at + 1));
        match label.cell_val_num.is_var() {
            true => before == after,
            false => compare(label.datatype, before, after) == Ordering::Equal,
        }
    };
    (0..values.cells.cell_num.saturating_sub(1)).any(equal)
}

/// Ends a write in global order: what was written counts from now on.
pub fn finalize(state: &mut State, open: &OpenArray) -> Result<()> {
    if state.write.partial.is_under_way() {
        return Err("UnorderWriter: Not all buffers already written".into());
    }
    if let Some(writer) = state.write.global.take() {
        let names = writer.finish()?;
        note(state, open, &names)?;
    }
    Ok(())
}

/// Deletes the cells that meet the query's condition, or stores what they are updated to.
pub fn delete(state: &mut State, open: &OpenArray) -> Result<()> {
    let condition = state.condition.clone();
    let condition = condition.ok_or_else(|| {
        Failure::new(
            "[TileDB::DeletesAndUpdates] Error: Cannot initialize deletes; One condition is needed",
        )
    })?;
    if !state.buffers.is_empty() {
        return Err("Deletes: Cannot initialize deletes; Buffers are set".into());
    }
    state.status = Status::Failed;
    let array = open.engine().array(open.uri());
    match state.updates.is_empty() {
        true => array.delete_cells(&condition, open.write_time())?,
        false => array.put_update(&condition, state.updates.clone(), open.write_time())?,
    };
    state.status = Status::Completed;
    Ok(())
}

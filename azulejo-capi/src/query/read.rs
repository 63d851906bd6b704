//! Submitting reads.

use super::buffers::{self, FieldBuffers, OffsetsFormat, OffsetsTarget};
use super::channel::{NamedAggregate, to_column};
use super::cut::Progress;
use super::held::{self, Held};
use super::zipped::{self, Unzipped};
use super::{Reason, State, Status};
use crate::array::OpenArray;
use crate::error::{Failure, Result};
use crate::subarray::Ranges;
use azulejo::column::{ColumnBuffers, ColumnMut};
use azulejo::read::ReadOptions;
use azulejo::read::aggregate::Aggregate;
use azulejo::space::{DimSelection, Layout, Subarray};
use azulejo::{Error, Reader};
use azulejo_format::Datatype;
use azulejo_format::schema::{ArraySchema, FieldIndex};

/// A read under way.
#[derive(Debug)]
pub struct ReadState {
    /// The fields' cells; `None` where only aggregates are asked for, and when all cells were read.
    reader: Option<Reader>,
    /// Names of the fields that it reads, in its order.
    fields: Vec<String>,
    /// The values of aggregates, once all cells were read: kept for buffers that had no room.
    aggregates: Option<Vec<ColumnBuffers>>,
    /// The labels of which not all values were given yet.
    labels: Vec<LabelValues>,
    /// Whether the labels have been read.
    labels_read: bool,
    /// How far it is, where the selection is given in parts.
    progress: Option<Progress>,
    /// Cells that the reader gave and the caller did not get.
    held: Held,
    /// Whether the reader has nothing more.
    at_end: bool,
    /// Whether the caller got cells or labels already, which a new beginning would give again.
    gave: bool,
}

/// The values of a dimension label where the dimension is selected.
#[derive(Debug)]
struct LabelValues {
    name: String,
    values: ColumnBuffers,
    /// How many were given.
    given: usize,
}

/// Where a buffer's cells come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A field of the schema, the cells' timestamps, or the zipped coordinates.
    Field,
    /// An aggregate.
    Aggregate,
    /// A dimension label.
    Label,
}

/// What a buffer of this name is for.
pub fn source(schema: &ArraySchema, aggregates: &[NamedAggregate], name: &str) -> Option<Source> {
    let special = name == "__timestamps" || (name == zipped::NAME && zipped::possible(schema));
    if schema.field(name).is_some() || special {
        Some(Source::Field)
    } else if aggregates.iter().any(|aggregate| aggregate.name == name) {
        Some(Source::Aggregate)
    } else {
        schema.dimension_label(name).map(|_| Source::Label)
    }
}

/// Type, var-length, nullable.
fn shape(schema: &ArraySchema, name: &str) -> (Datatype, bool, bool) {
    let Some(field) = schema.field(name) else {
        return (Datatype::UInt64, false, false);
    };
    let datatype = schema
        .type_of(field)
        .map_or(Datatype::UInt8, |(datatype, _)| datatype);
    let nullable = matches!(field, FieldIndex::Attribute(_)) && schema.is_nullable(field);
    (datatype, schema.is_var(field), nullable)
}

fn options(state: &State, open: &OpenArray) -> Result<ReadOptions> {
    let subarray = match &state.subarray {
        Some(ranges) => ranges.subarray()?,
        None => Ranges::new(open, true, None)?.subarray()?,
    };
    for key in [
        "sm.mem.total_budget",
        "sm.io_concurrency_level",
        "sm.compute_concurrency_level",
    ] {
        if state.settings.number(key)? == 0 {
            return Err(Failure::new(format!("Cannot read; {key} is 0")));
        }
    }
    let schema = open.snapshot().schema();
    // Without duplicates the reference reads "unordered" in global order, and clients count on it.
    let layout = match state.layout {
        Layout::Unordered if !schema.is_dense() && !schema.allows_dups => Layout::Global,
        layout => layout,
    };
    let mut options = ReadOptions::new().subarray(subarray).layout(layout);
    options.condition.clone_from(&state.condition);
    if schema.is_dense() && state.settings.flag("sm.query.dense.qc_coords_mode") {
        if state.condition.is_none() {
            return Err(
                "DenseReader: sm.query.dense.qc_coords_mode requires a query condition".into(),
            );
        }
        options = options.matching_only();
    }
    if state.settings.given("sm.mem.total_budget").is_some() {
        options.memory_budget = Some(state.settings.number("sm.mem.total_budget")?.max(1 << 20));
    }
    Ok(options)
}

/// Checks that every field has the buffers that its type asks for.
fn check_buffers(schema: &ArraySchema, fields: &[&FieldBuffers]) -> Result<()> {
    for buffers in fields {
        let (_, var, nullable) = shape(schema, &buffers.name);
        let fail = |what: &str| {
            Err(Failure::new(format!(
                "Cannot read field '{}'; {what} buffer is not set",
                buffers.name
            )))
        };
        if buffers.data.is_none() {
            return fail("Data");
        }
        if var && buffers.offsets.is_none() {
            return fail("Var-Sized input attribute/dimension: the offsets");
        }
        if nullable && buffers.validity.is_none() {
            return fail("Nullable input attribute: the validity");
        }
    }
    Ok(())
}

/// Reads as much as the caller's buffers take.
pub fn submit(state: &mut State, open: &OpenArray) -> Result<()> {
    let schema = open.snapshot().schema();
    let format = state.offsets_format()?;
    if let Some(ranges) = &mut state.subarray {
        ranges.resolve()?;
    }
    let unzipped = Unzipped::to_read(schema, &state.buffers)?;
    let all = &unzipped.buffers;
    let of = |wanted: Source| -> Vec<&FieldBuffers> {
        all.iter()
            .filter(|b| source(schema, &state.aggregates, &b.name) == Some(wanted))
            .collect()
    };
    let (fields, aggregates, labels) =
        (of(Source::Field), of(Source::Aggregate), of(Source::Label));
    if all.is_empty() && state.subarray.as_ref().is_some_and(Ranges::has_labels) {
        // Clients look up labels this way: the subarray has the ranges now.
        state.status = Status::Completed;
        return Ok(());
    }
    if all.is_empty() {
        return Err("Cannot submit query; Buffers are not set".into());
    }
    for aggregate in &state.aggregates {
        if !aggregates
            .iter()
            .any(|buffers| buffers.name == aggregate.name)
        {
            return Err(Failure::new(format!(
                "Cannot submit query; the aggregate '{}' has no buffer",
                aggregate.name
            )));
        }
    }
    check_buffers(schema, &fields)?;
    for named in &state.aggregates {
        let own = aggregates.iter().filter(|b| b.name == named.name);
        own.copied()
            .try_for_each(|buffers| check_aggregate(named, buffers))?;
    }
    if state.status == Status::Failed && state.read.as_ref().is_some_and(|read| read.gave) {
        return Err(
            "Cannot submit query; it has failed after it gave cells, which would come again: make a new one".into(),
        );
    }
    let mut read = match state.read.take() {
        Some(read) if state.status == Status::Incomplete => read,
        _ => {
            let names: Vec<String> = fields.iter().map(|b| b.name.clone()).collect();
            let options = options(state, open)?;
            // Where only matching cells are given, nobody knows how many these are.
            let progress = match options.matching_only {
                true => None,
                false => Progress::new(open, &options.subarray, options.layout, &fields)?,
            };
            let reader = match names.is_empty() {
                true => None,
                false => Some(open.array()?.read(options.fields(names.clone()))?),
            };
            ReadState {
                reader,
                fields: names,
                aggregates: None,
                labels: Vec::new(),
                labels_read: false,
                progress,
                held: Held::default(),
                at_end: false,
                gave: false,
            }
        }
    };
    // What fails before leaves the query as it was; an error from here on is its end.
    state.status = Status::Failed;
    let outcome = step(
        &mut read,
        state,
        open,
        &fields,
        &aggregates,
        &labels,
        format,
    );
    if matches!(outcome, Ok(false)) {
        read.gave |= fields.iter().chain(&labels).any(|b| b.has_results());
    }
    state.read = Some(read);
    unzipped.zip();
    match outcome? {
        true => {
            state.status = Status::Completed;
            state.reason = Reason::None;
            state.read = None;
        }
        false => {
            state.status = Status::Incomplete;
            state.reason = Reason::UserBufferSize;
        }
    }
    Ok(())
}

/// One submission; whether all is done.
fn step(
    read: &mut ReadState,
    state: &State,
    open: &OpenArray,
    fields: &[&FieldBuffers],
    aggregates: &[&FieldBuffers],
    labels: &[&FieldBuffers],
    format: OffsetsFormat,
) -> Result<bool> {
    let mut complete = true;
    if read.reader.is_some() {
        complete = fill(read, open.snapshot().schema(), fields, format)?;
        if complete {
            read.reader = None;
        }
    } else {
        fields.iter().for_each(|buffers| buffers.clear());
    }
    complete &= give_labels(read, state, open, labels, format)?;
    // As in the reference: aggregates come with the last cells, and no submission before touches
    // their buffers.
    if read.reader.is_some() || aggregates.is_empty() {
        return Ok(complete);
    }
    let values = match &read.aggregates {
        Some(values) => values,
        None => read.aggregates.insert(aggregate(state, open)?),
    };
    for (named, column) in state.aggregates.iter().zip(values) {
        for buffers in aggregates.iter().filter(|b| b.name == named.name) {
            complete &= buffers::copy(column, 0, buffers, format)? == column.cell_num;
        }
    }
    Ok(complete)
}

/// The values of all aggregates.
fn aggregate(state: &State, open: &OpenArray) -> Result<Vec<ColumnBuffers>> {
    let wanted: Vec<Aggregate> = state
        .aggregates
        .iter()
        .map(|named| named.aggregate.clone())
        .collect();
    let values = open.array()?.aggregate(options(state, open)?, &wanted)?;
    let named = state.aggregates.iter().zip(&values);
    Ok(named
        .map(|(named, value)| to_column(named, value))
        .collect())
}

/// Gives of the values of labels that were not given yet as many as there is room for; whether all
/// are given.
fn give_labels(
    read: &mut ReadState,
    state: &State,
    open: &OpenArray,
    labels: &[&FieldBuffers],
    format: OffsetsFormat,
) -> Result<bool> {
    if !read.labels_read {
        for buffers in labels {
            let values = read_label(state, open, &buffers.name)?;
            read.labels.push(LabelValues {
                name: buffers.name.clone(),
                values,
                given: 0,
            });
        }
        read.labels_read = true;
    }
    for label in &mut read.labels {
        let buffers = labels.iter().find(|buffers| buffers.name == label.name);
        let buffers = buffers.ok_or_else(|| {
            Failure::new(format!(
                "Cannot resubmit; the buffer of '{}' is gone",
                label.name
            ))
        })?;
        label.given += buffers::copy(&label.values, label.given, buffers, format)?;
    }
    read.labels
        .retain(|label| label.given < label.values.cell_num);
    Ok(read.labels.is_empty())
}

/// Checks the buffers of an aggregate.
fn check_aggregate(named: &NamedAggregate, buffers: &FieldBuffers) -> Result<()> {
    let fail = |why: &str| Err(Failure::new(format!("Aggregate '{}': {why}", named.name)));
    let size = named.column_type.cell_size();
    if !named.column_type.is_var() && buffers.data.is_some_and(|place| place.capacity() != size) {
        return fail(&format!(
            "fixed size aggregates must be for one element only: {size} bytes"
        ));
    }
    if named.column_type.nullable && buffers.validity.is_none() {
        return fail("aggregates of nullable fields need a validity buffer");
    }
    if !named.column_type.nullable && buffers.validity.is_some() {
        return fail("aggregates of fields that are not nullable have no validity");
    }
    Ok(())
}

/// Fills the fields' buffers; whether all cells were given.
fn fill(
    read: &mut ReadState,
    schema: &ArraySchema,
    fields: &[&FieldBuffers],
    format: OffsetsFormat,
) -> Result<bool> {
    let ordered: Vec<&FieldBuffers> = read
        .fields
        .iter()
        .map(|name| {
            let found = fields.iter().find(|buffers| buffers.name == *name).copied();
            found.ok_or_else(|| {
                Failure::new(format!("Cannot resubmit; the buffer of '{name}' is gone"))
            })
        })
        .collect::<Result<_>>()?;
    let most = match &mut read.progress {
        Some(progress) => progress.cells(&ordered, format)?,
        None => Some(usize::MAX),
    };
    let Some(most) = most else {
        ordered.iter().for_each(|buffers| buffers.clear());
        return Ok(false);
    };
    let mut targets: Vec<Option<OffsetsTarget>> = ordered
        .iter()
        .map(
            |buffers| match (shape(schema, &buffers.name), buffers.offsets) {
                ((datatype, true, _), Some(place)) => {
                    Some(OffsetsTarget::new(place, format, datatype))
                }
                _ => None,
            },
        )
        .collect();
    let mut columns = ordered
        .iter()
        .zip(&mut targets)
        .map(|(buffers, target)| buffers::column_mut(buffers, target.as_mut()))
        .collect::<Result<Vec<_>>>()?;
    let sizes = held::cell_sizes(schema, &ordered);
    for (column, size) in columns.iter_mut().zip(&sizes) {
        held::limit(column, *size, most);
    }
    let given = take_cells(read, &mut columns, &sizes, most)?;
    drop(columns);
    let Some((cells, written)) = given else {
        ordered.iter().for_each(|buffers| buffers.clear());
        return Ok(false);
    };
    for ((buffers, target), written) in ordered.iter().zip(&mut targets).zip(&written) {
        if let Some(place) = buffers.data {
            place.set_size(*written);
        }
        if let Some(target) = target {
            target.finish(cells, *written);
        }
        if let Some(place) = buffers.validity {
            place.set_size(cells);
        }
    }
    Ok(read.at_end && read.held.len() == 0)
}

/// Puts the next cells into columns, at most `most`: how many, and the bytes of each column's data.
/// `None` if not one fits.
fn take_cells(
    read: &mut ReadState,
    columns: &mut [ColumnMut<'_>],
    sizes: &[usize],
    most: usize,
) -> Result<Option<(usize, Vec<usize>)>> {
    let (mut cells, mut written) = read.held.give(columns, sizes, most);
    let mut full = read.held.len() > 0;
    if let (Some(reader), false, false) = (&mut read.reader, full, read.at_end) {
        let mut rest = held::behind(columns, &written, cells);
        match reader.read_into(&mut rest) {
            Ok(progress) => {
                for ((column, bytes), new) in
                    rest.iter_mut().zip(&mut written).zip(&progress.written)
                {
                    let before = *bytes as u64;
                    let starts = column.offsets.iter_mut().flat_map(|o| o.iter_mut());
                    if before > 0 {
                        starts
                            .take(progress.cells)
                            .for_each(|start| *start += before);
                    }
                    *bytes += new.data;
                }
                cells += progress.cells;
                read.at_end = progress.complete;
                full = !progress.complete;
            }
            Err(Error::BufferTooSmall { .. }) => full = true,
            Err(error) => return Err(error.into()),
        }
    }
    let parted = most < usize::MAX;
    let Some(progress) = read.progress.as_mut().filter(|_| parted) else {
        return Ok((cells > 0 || !full).then_some((cells, written)));
    };
    if full && cells < most {
        // Values of variable length are longer than was thought.
        let Some(kept) = progress.fewer(cells)? else {
            return Ok(None);
        };
        written = read.held.take(columns, sizes, &written, kept, cells);
        cells = kept;
    }
    progress.done();
    Ok(Some((cells, written)))
}

/// Reads the values of a dimension label where the dimension is selected.
fn read_label(state: &State, open: &OpenArray, name: &str) -> Result<ColumnBuffers> {
    let array = open.array()?;
    let label = array.label(name)?;
    let selection = match &state.subarray {
        Some(ranges) => match ranges.subarray()? {
            Subarray::Box(selections) => selections
                .into_iter()
                .nth(label.dimension())
                .unwrap_or(DimSelection::All),
            Subarray::Points(_) => DimSelection::All,
        },
        None => DimSelection::All,
    };
    let values = label.read(selection)?.columns.into_iter().nth(1);
    values.ok_or_else(|| Failure::new("a label without values"))
}

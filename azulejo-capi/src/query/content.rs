//! What messages say of a query, and a query made of that.

use super::buffers::{FieldBuffers, OwnMemory, Place};
use super::channel::NamedAggregate;
use super::{QueryHandle, Status, read};
use crate::enums::QueryType;
use crate::error::{Failure, Result};
use crate::subarray::Ranges;
use azulejo_format::condition::Condition;
use azulejo_format::schema::Layout;

/// The sizes that a message says of one of a field's buffers.
#[derive(Debug, Clone, Copy, Default)]
pub struct PartSize {
    /// Bytes that hold something now.
    pub current: u64,
    /// Bytes that there are.
    pub original: u64,
}

/// What a message says of a field's buffers.
#[derive(Debug, Clone, Default)]
pub struct BufferContent {
    /// The field.
    pub name: String,
    /// Offsets of var-length fields, values of others.
    pub fixed: PartSize,
    /// Values of var-length fields.
    pub var: PartSize,
    /// Validity.
    pub validity: PartSize,
}

/// What a message says of a query.
#[derive(Debug)]
pub struct QueryContent {
    /// How far it is.
    pub status: Status,
    /// The order of cells.
    pub layout: Layout,
    /// Which cells.
    pub subarray: Option<Ranges>,
    /// Which of those.
    pub condition: Option<Condition>,
    /// The buffers, in the order in which their bytes follow.
    pub buffers: Vec<BufferContent>,
    /// Aggregates.
    pub aggregates: Vec<NamedAggregate>,
    /// URIs and times of the fragments that it wrote.
    pub fragments: Vec<(String, (u64, u64))>,
}

/// On which side of the wire a message is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Whose query it is: results go to the buffers that were set.
    Client,
    /// Who runs it: it gets buffers of its own.
    Server,
}

impl QueryHandle {
    /// What messages say of the query. An error if it has done a part of its work of which only
    /// this process knows.
    pub fn content(&self) -> Result<QueryContent> {
        let state = self.shared.state();
        if state.status == Status::Incomplete {
            return Err(
                "Cannot serialize an incomplete read: how far it is, only its reader knows".into(),
            );
        }
        if state.write.is_under_way() {
            return Err("Cannot serialize a write that is not finalized".into());
        }
        let buffers = state.buffers.iter().map(|buffers| {
            let size = |place: Option<Place>| {
                place.map_or_else(PartSize::default, |place| PartSize {
                    current: place.current(),
                    original: place.capacity() as u64,
                })
            };
            let var = buffers.offsets.is_some();
            let (fixed, var) = match var {
                true => (buffers.offsets, buffers.data),
                false => (buffers.data, None),
            };
            BufferContent {
                name: buffers.name.clone(),
                fixed: size(fixed),
                var: size(var),
                validity: size(buffers.validity),
            }
        });
        let buffers = buffers.collect();
        Ok(QueryContent {
            status: state.status,
            layout: state.layout,
            subarray: Some(match &state.subarray {
                Some(ranges) => ranges.clone(),
                None => Ranges::new(&self.shared.open, true, None)?,
            }),
            condition: state.condition.clone(),
            buffers,
            aggregates: state.aggregates.clone(),
            fragments: state.write.fragments.clone(),
        })
    }

    /// What the query does.
    pub fn kind(&self) -> QueryType {
        self.shared.kind
    }

    /// The bytes of the buffers, in the order of [`QueryContent::buffers`].
    pub fn buffer_bytes(&self) -> Vec<Vec<u8>> {
        let state = self.shared.state();
        let mut all = Vec::new();
        for buffers in &state.buffers {
            let parts = match buffers.offsets {
                Some(offsets) => [Some(offsets), buffers.data, buffers.validity],
                None => [buffers.data, None, buffers.validity],
            };
            all.extend(
                parts
                    .into_iter()
                    .flatten()
                    .map(|place| place.bytes().to_vec()),
            );
        }
        all
    }

    /// Becomes what a message says; `bytes` are those of the buffers behind it.
    pub fn tell(&self, content: QueryContent, side: Side, bytes: &[u8]) -> Result<()> {
        let mut state = self.shared.state();
        state.layout = content.layout;
        state.aggregates = content.aggregates;
        match (side, self.shared.kind) {
            // A query that nobody ran has no results.
            (Side::Client, QueryType::Read) if content.status != Status::Uninitialized => {
                let schema = self.shared.schema();
                fill(&state.buffers, &content.buffers, bytes, |name| {
                    shape(schema, &state.aggregates, name).0
                })?;
            }
            (Side::Client, _) => {}
            (Side::Server, kind) => {
                let schema = self.shared.schema();
                let set = |place: Option<Place>| place.is_some_and(|place| !place.data().is_null());
                let own = |b: &FieldBuffers| state.remote.iter().any(|memory| memory.is_of(b));
                if state
                    .buffers
                    .iter()
                    .any(|b| !own(b) && (set(b.data) || set(b.offsets)))
                {
                    return Err(
                        "Error deserializing read query; unexpected buffer set on server-side."
                            .into(),
                    );
                }
                let mut buffers = Vec::new();
                let mut memory = Vec::new();
                let mut rest = bytes;
                for content in &content.buffers {
                    let shape = shape(schema, &state.aggregates, &content.name);
                    let cells = (kind == QueryType::Write).then_some(&mut rest);
                    buffers.push(remote(content, shape, cells, &mut memory)?);
                }
                (state.buffers, state.remote) = (buffers, memory);
            }
        }
        if self.shared.kind != QueryType::Write || self.shared.schema().is_dense() {
            state.subarray = content.subarray;
        }
        if content.condition.is_some() {
            state.condition = content.condition;
        }
        if self.shared.kind != QueryType::Read {
            state.write.fragments = content.fragments;
        }
        state.read = None;
        state.elsewhere = content.status == Status::Incomplete;
        state.status = content.status;
        Ok(())
    }
}

/// Whether a field's cells vary in length, and whether they can be null.
fn shape(
    schema: &azulejo_format::schema::ArraySchema,
    aggregates: &[NamedAggregate],
    name: &str,
) -> (bool, bool) {
    let aggregate = aggregates.iter().find(|aggregate| aggregate.name == name);
    match (aggregate, schema.field(name)) {
        (Some(aggregate), _) => {
            let column = &aggregate.column_type;
            (column.is_var(), column.nullable)
        }
        (None, Some(field)) => (schema.is_var(field), schema.is_nullable(field)),
        (None, None) => {
            let label = schema.dimension_label(name);
            (
                label.is_some_and(|label| label.cell_val_num.is_var()),
                false,
            )
        }
    }
}

/// Takes `size` bytes off the front of what is left.
fn take<'a>(rest: &mut &'a [u8], size: u64) -> Result<&'a [u8]> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let split = rest.split_at_checked(size);
    let (front, back) = split.ok_or_else(|| {
        Failure::new("Cannot deserialize; the bytes of the buffers are not all there")
    })?;
    *rest = back;
    Ok(front)
}

/// Puts results into the caller's buffers.
fn fill(
    buffers: &[FieldBuffers],
    contents: &[BufferContent],
    bytes: &[u8],
    is_var: impl Fn(&str) -> bool,
) -> Result<()> {
    // All is looked at before anything is written.
    let mut writes: Vec<(Place, &[u8])> = Vec::new();
    let mut rest = bytes;
    for content in contents {
        let found = buffers.iter().find(|buffers| buffers.name == content.name);
        let found = found.ok_or_else(|| {
            Failure::new(format!(
                "Cannot deserialize; there is no buffer of '{}'",
                content.name
            ))
        })?;
        let parts = match is_var(&content.name) {
            true => [
                (found.offsets, content.fixed),
                (found.data, content.var),
                (found.validity, content.validity),
            ],
            false => [
                (found.data, content.fixed),
                (None, content.var),
                (found.validity, content.validity),
            ],
        };
        for (place, size) in parts {
            let cells = take(&mut rest, size.current)?;
            match place {
                Some(place) if place.capacity() >= cells.len() => writes.push((place, cells)),
                None if cells.is_empty() => {}
                _ => {
                    return Err(Failure::new(format!(
                        "Error deserializing query; buffer too small for buffer '{}'.",
                        content.name
                    )));
                }
            }
        }
    }
    for (place, cells) in writes {
        if let Some(target) = place.bytes_mut().get_mut(..cells.len()) {
            target.copy_from_slice(cells);
        }
        place.set_size(cells.len());
    }
    Ok(())
}

/// Buffers of the query's own: with the cells of a message, or for results, of which only the size
/// is known as yet.
fn remote(
    content: &BufferContent,
    (var, nullable): (bool, bool),
    mut cells: Option<&mut &[u8]>,
    memory: &mut Vec<OwnMemory>,
) -> Result<FieldBuffers> {
    let mut place = |size: PartSize| -> Result<Place> {
        match &mut cells {
            Some(rest) => {
                let (own, place) = OwnMemory::holding(take(rest, size.current)?)?;
                memory.push(own);
                Ok(place)
            }
            None => {
                let size = if size.original == 0 {
                    size.current
                } else {
                    size.original
                };
                let (own, place) = OwnMemory::for_size(size)?;
                memory.push(own);
                Ok(place)
            }
        }
    };
    let fixed = place(content.fixed)?;
    let var = match var {
        true => Some(place(content.var)?),
        false => None,
    };
    let validity = match nullable {
        true => Some(place(content.validity)?),
        false => None,
    };
    Ok(FieldBuffers {
        name: content.name.clone(),
        data: Some(var.unwrap_or(fixed)),
        offsets: var.is_some().then_some(fixed),
        validity,
    })
}

/// Gives buffers that have only a size their memory, before a submission; at most `limit` bytes.
pub fn allocate(
    buffers: &mut [FieldBuffers],
    memory: &mut Vec<OwnMemory>,
    limit: u64,
) -> Result<()> {
    let places = buffers
        .iter_mut()
        .flat_map(|b| [&mut b.data, &mut b.offsets, &mut b.validity]);
    let mut total = 0u64;
    for place in places.flatten() {
        if !place.data().is_null() || place.capacity() == 0 {
            continue;
        }
        total = total.saturating_add(place.capacity() as u64);
        if total > limit {
            return Err(Failure::new(format!(
                "Cannot submit query; its buffers would take more than the {limit} bytes of sm.mem.total_budget"
            )));
        }
        let own = OwnMemory::zeroed(place.capacity())?;
        *place = place.moved_to(&own);
        memory.push(own);
    }
    Ok(())
}

/// Whether a name is one of a field, an aggregate or a label.
pub fn is_known(query: &QueryHandle, aggregates: &[NamedAggregate], name: &str) -> bool {
    read::source(query.shared.schema(), aggregates, name).is_some()
}

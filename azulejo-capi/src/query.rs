//! `tiledb_query_t`.

mod buffers;
pub mod channel;
pub mod content;
mod cut;
pub mod estimate;
pub mod field;
mod held;
mod outside;
mod partial;
mod parts;
mod read;
mod stats;
mod write;
mod zipped;

pub use write::fragment_uri;

use crate::array::{ArrayHandle, OpenArray};
use crate::boundary::{
    Bytes, In, InOut, Kind, Out, OutBytes, Pointer, Ptr, Str, Text, capi, capi_free,
};
use crate::condition::ConditionHandle;
use crate::config::{Config, Settings};
use crate::ctx::Context;
use crate::enums::{QueryType, layout, query_type};
use crate::error::{Failure, Result};
use crate::heap::Settling;
use crate::strings::{Keep, StringHandle, lock};
use crate::subarray::{Ranges, SubarrayHandle};
use azulejo_format::commit::UpdateValue;
use azulejo_format::schema::{ArraySchema, Layout};
use buffers::{FieldBuffers, OffsetsFormat, Place};
use channel::NamedAggregate;
use read::{ReadState, Source};
use stats::QueryStats;
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// `tiledb_query_t`.
#[derive(Debug)]
pub struct QueryHandle {
    shared: Arc<Shared>,
    array: ArrayHandle,
    keep: Keep,
    /// The last to go, after what the query held.
    _settling: Settling,
}

impl Kind for QueryHandle {
    const NAME: &'static str = "query";
}

/// What a query shares with its channels and fields.
#[derive(Debug)]
pub struct Shared {
    open: Arc<OpenArray>,
    kind: QueryType,
    state: Mutex<State>,
    stats: QueryStats,
}

/// How far a query is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "named after the C enumerators")]
#[repr(i32)]
pub enum Status {
    Failed = 0,
    Completed = 1,
    Incomplete = 3,
    Uninitialized = 4,
    Initialized = 5,
}

/// Why a query is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Reason {
    /// It is not.
    None = 0,
    /// The caller's buffers are full.
    UserBufferSize = 1,
}

/// What a query is made of.
#[derive(Debug)]
pub struct State {
    layout: Layout,
    subarray: Option<Ranges>,
    condition: Option<azulejo_format::condition::Condition>,
    buffers: Vec<FieldBuffers>,
    aggregates: Vec<NamedAggregate>,
    /// What an update query stores.
    updates: Vec<UpdateValue>,
    /// Those of the context that made the query, under its own.
    settings: Settings,
    status: Status,
    reason: Reason,
    read: Option<ReadState>,
    write: write::WriteState,
    /// Memory of the query's own, if a message brought it.
    remote: Vec<buffers::OwnMemory>,
    /// Whether a message said that a server did a part of the work: the rest is there.
    elsewhere: bool,
    /// Sizes of results that a message said.
    estimates: HashMap<String, estimate::Sizes>,
}

impl Shared {
    /// The array's latest schema.
    pub fn schema(&self) -> &ArraySchema {
        self.open.snapshot().schema()
    }

    /// What the query is made of.
    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl QueryHandle {
    /// A query on an open array.
    pub fn new(ctx: &Context, array: &ArrayHandle, kind: QueryType) -> Result<Self> {
        let open = array.open()?;
        if open.kind() != kind {
            return Err(Failure::new(format!(
                "Cannot create query; Array query type does not match declared query type: ({} != {})",
                open.kind().name(),
                kind.name()
            )));
        }
        let row_major = kind == QueryType::Read || open.snapshot().schema().is_dense();
        let layout = if row_major {
            Layout::RowMajor
        } else {
            Layout::Unordered
        };
        let state = State {
            layout,
            subarray: None,
            condition: None,
            buffers: Vec::new(),
            aggregates: Vec::new(),
            updates: Vec::new(),
            settings: ctx.settings().clone(),
            status: Status::Uninitialized,
            reason: Reason::None,
            read: None,
            write: write::WriteState::default(),
            remote: Vec::new(),
            elsewhere: false,
            estimates: HashMap::new(),
        };
        let stats = QueryStats::new(kind, ctx.stats());
        let shared = Arc::new(Shared {
            open,
            kind,
            state: Mutex::new(state),
            stats,
        });
        Ok(Self {
            shared,
            array: array.clone(),
            keep: Keep::default(),
            _settling: Settling,
        })
    }

    /// The array.
    pub fn array(&self) -> &ArrayHandle {
        &self.array
    }

    /// The array as it was when the query was made.
    pub fn open(&self) -> &OpenArray {
        &self.shared.open
    }

    /// The settings that count.
    pub fn settings(&self) -> Settings {
        self.shared.state().settings.clone()
    }

    /// Gives it the settings of a message.
    pub fn set_settings(&self, settings: &Settings) {
        self.shared.state().settings.inherit(settings);
    }

    /// What a read of every field is estimated to give.
    pub fn estimates(&self) -> Result<Vec<(String, estimate::Sizes)>> {
        let schema = self.shared.schema();
        let names = (schema.attributes.iter().map(|a| &a.name))
            .chain(schema.domain.dimensions.iter().map(|d| &d.name));
        let all = names.map(|name| {
            let field = schema.field(name);
            let (var, nullable) = field.map_or((false, false), |f| {
                (schema.is_var(f), schema.is_nullable(f))
            });
            let sizes = read_only(self, |state, open| {
                estimate::sizes(state, open, name, var, nullable)
            })?;
            Ok((name.clone(), sizes))
        });
        all.collect()
    }

    /// Takes over what a message says that reads will give.
    pub fn tell_estimates(&self, estimates: Vec<(String, estimate::Sizes)>) {
        self.shared.state().estimates.extend(estimates);
    }

    /// What the query shares with its channels and fields.
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }
}

impl State {
    /// Whether it was submitted.
    pub fn is_started(&self) -> bool {
        self.status != Status::Uninitialized
    }

    fn offsets_format(&self) -> Result<OffsetsFormat> {
        let get = |key: &str| self.settings.get(key).unwrap_or_default();
        let narrow = match get("sm.var_offsets.bitsize").as_str() {
            "64" => false,
            "32" => true,
            other => {
                return Err(Failure::new(format!(
                    "sm.var_offsets.bitsize is {other}; it must be 32 or 64"
                )));
            }
        };
        Ok(OffsetsFormat {
            narrow,
            elements: get("sm.var_offsets.mode") == "elements",
            extra: get("sm.var_offsets.extra_element").eq_ignore_ascii_case("true"),
        })
    }

    /// The buffers of a field, made if there are none.
    fn buffers_of(&mut self, name: &str) -> &mut FieldBuffers {
        let at = self
            .buffers
            .iter()
            .position(|buffers| buffers.name == name)
            .unwrap_or_else(|| {
                self.buffers.push(FieldBuffers {
                    name: name.into(),
                    data: None,
                    offsets: None,
                    validity: None,
                });
                self.buffers.len() - 1
            });
        &mut self.buffers[at]
    }
}

/// The part of a field that a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Data,
    Offsets,
    Validity,
}

fn set_buffer(query: &QueryHandle, name: &str, part: Part, place: Place) -> Result<()> {
    let schema = query.shared.schema();
    let mut state = query.shared.state();
    let fail = |why: &str| Err(Failure::new(format!("Cannot set buffer; {why}")));
    let source = read::source(schema, &state.aggregates, name);
    let (var, nullable) = match source {
        None => return fail(&format!("Invalid attribute/dimension '{name}'")),
        Some(Source::Field) => match schema.field(name) {
            Some(field) => (schema.is_var(field), schema.is_nullable(field)),
            None => (false, false),
        },
        Some(Source::Aggregate) => {
            let column_type = state
                .aggregates
                .iter()
                .find(|a| a.name == name)
                .map(|a| &a.column_type);
            column_type.map_or((false, false), |t| (t.is_var(), t.nullable))
        }
        Some(Source::Label) => (
            schema
                .dimension_label(name)
                .is_some_and(|label| label.cell_val_num.is_var()),
            false,
        ),
    };
    if state.write.partial.has(name) {
        return Err(Failure::new(format!(
            "[TileDB::Query] Error: Buffer {name} was already written"
        )));
    }
    if part == Part::Offsets && !var {
        return fail(&format!(
            "Input attribute/dimension '{name}' is fixed-sized"
        ));
    }
    if part == Part::Validity && !nullable {
        return fail(&format!("Input attribute '{name}' is not nullable"));
    }
    // Writes alone take values of no bytes from nowhere.
    let writes = matches!(
        query.shared.kind,
        QueryType::Write | QueryType::ModifyExclusive
    );
    if place.data().is_null() && !(writes && part == Part::Data) {
        return fail(&format!("{name} buffer is null"));
    }
    let is_new = !state.buffers.iter().any(|buffers| buffers.name == name);
    if is_new && state.is_started() && query.shared.kind == QueryType::Read {
        return fail(&format!(
            "setting buffers for new attribute '{name}' after the first submission is not allowed"
        ));
    }
    let buffers = state.buffers_of(name);
    match part {
        Part::Data => buffers.data = Some(place),
        Part::Offsets => buffers.offsets = Some(place),
        Part::Validity => buffers.validity = Some(place),
    }
    Ok(())
}

fn place(query: &QueryHandle, name: &str, part: Part) -> Result<Option<Place>> {
    let state = query.shared.state();
    if read::source(query.shared.schema(), &state.aggregates, name).is_none() {
        return Err(Failure::new(format!(
            "Cannot get buffer; Invalid attribute/dimension name '{name}'"
        )));
    }
    let schema = query.shared.schema();
    if part == Part::Offsets
        && schema
            .field(name)
            .is_some_and(|field| !schema.is_var(field))
    {
        return Err(Failure::new(format!(
            "Cannot get buffer; '{name}' is fixed-sized"
        )));
    }
    if part == Part::Validity
        && schema
            .field(name)
            .is_some_and(|field| !schema.is_nullable(field))
    {
        return Err(Failure::new(format!(
            "Cannot get buffer; '{name}' is non-nullable"
        )));
    }
    let buffers = state.buffers.iter().find(|buffers| buffers.name == name);
    Ok(buffers.and_then(|buffers| match part {
        Part::Data => buffers.data,
        Part::Offsets => buffers.offsets,
        Part::Validity => buffers.validity,
    }))
}

fn submit(query: &QueryHandle) -> Result<()> {
    // As in the reference: a read that is done stays as it is, with what its buffers hold.
    if query.shared.kind == QueryType::Read && query.shared.state().status == Status::Completed {
        return Ok(());
    }
    let open = &query.shared.open;
    let mut state = query.shared.state();
    // The array must be open where a query begins. What is under way goes on with what was opened
    // with it, also when the array is closed meanwhile, as in the reference.
    let is_under_way = state.status == Status::Incomplete || state.write.is_under_way();
    if !is_under_way || query.shared.kind == QueryType::ModifyExclusive {
        query.array.open()?;
    }
    if state.elsewhere {
        return Err("Cannot submit query; the rest of it is with the server that began it".into());
    }
    // A message may say what it likes: it does not lift the limit of who runs the query.
    let key = "sm.mem.total_budget";
    let limit = state
        .settings
        .number(key)?
        .min(open.settings().number(key)?);
    let State {
        buffers, remote, ..
    } = &mut *state;
    content::allocate(buffers, remote, limit)?;
    let start = Instant::now();
    let outcome = match query.shared.kind {
        QueryType::Read => read::submit(&mut state, open),
        QueryType::Write | QueryType::ModifyExclusive => write::submit(&mut state, open),
        QueryType::Delete | QueryType::Update => write::delete(&mut state, open),
    };
    query
        .shared
        .stats
        .submitted(&state, query.shared.schema(), start.elapsed());
    if crate::heap::may_settle(&state.settings) {
        crate::heap::moved(
            state
                .buffers
                .iter()
                .map(FieldBuffers::current)
                .fold(0, u64::saturating_add),
        );
    }
    outcome
}

fn finalize(query: &QueryHandle) -> Result<()> {
    let mut state = query.shared.state();
    if matches!(
        query.shared.kind,
        QueryType::Write | QueryType::ModifyExclusive
    ) && state.is_started()
    {
        // As in the reference: programs that look at this status alone are to know.
        if state.status == Status::Failed && state.layout == Layout::Unordered {
            return Err(
                "Cannot finalize query; its last submission failed, by which nothing was written"
                    .into(),
            );
        }
        let outcome = write::finalize(&mut state, &query.shared.open);
        if outcome.is_err() {
            state.status = Status::Failed;
        }
        return outcome;
    }
    if query.shared.kind == QueryType::Read && state.status == Status::Incomplete {
        state.status = Status::Completed;
        state.reason = Reason::None;
        state.read = None;
    }
    Ok(())
}

fn read_only<T>(
    query: &QueryHandle,
    body: impl FnOnce(&State, &OpenArray) -> Result<T>,
) -> Result<T> {
    if query.shared.kind != QueryType::Read {
        return Err(
            "Cannot get estimated result size; Operation currently only supported for read queries"
                .into(),
        );
    }
    body(&query.shared.state(), &query.shared.open)
}

/// A fragment that a write made.
fn written(query: &QueryHandle, index: u64) -> Result<(String, (u64, u64))> {
    if query.shared.kind == QueryType::Read {
        return Err("Cannot get fragment; Applicable only to WRITE mode".into());
    }
    let state = query.shared.state();
    let found = usize::try_from(index)
        .ok()
        .and_then(|index| state.write.fragments.get(index).cloned());
    found.ok_or_else(|| Failure::new("Cannot get fragment; Invalid fragment index"))
}

capi! {
    /// A query on an open array.
    fn tiledb_query_alloc(ctx, array: In<ArrayHandle>, kind: i32, query: Out<Ptr<QueryHandle>>) {
        query.give(QueryHandle::new(ctx, array.get()?, query_type(kind)?)?)?;
    }

    /// Statistics as JSON; free them with `tiledb_stats_free_str`.
    fn tiledb_query_get_stats(ctx, query: In<QueryHandle>, out: Out<Pointer<c_char>>) {
        out.set(crate::stats::owned_text(&query.get()?.shared.stats.json()))?;
    }

    /// Sets settings of the query's own, before it is submitted.
    fn tiledb_query_set_config(ctx, query: In<QueryHandle>, config: In<Config>) {
        let mut state = query.get()?.shared.state();
        if state.is_started() {
            return Err("[TileDB::Query] Error: Cannot set config after initialization.".into());
        }
        state.settings.inherit(&config.get()?.settings());
    }

    /// A copy of the query's settings.
    fn tiledb_query_get_config(ctx, query: In<QueryHandle>, config: Out<Ptr<Config>>) {
        let settings = query.get()?.shared.state().settings.clone();
        config.give(Config::new(settings))?;
    }

    /// Sets which cells, before it is submitted: a copy of the subarray.
    fn tiledb_query_set_subarray_t(ctx, query: In<QueryHandle>, subarray: In<SubarrayHandle>) {
        let ranges = subarray.get()?.ranges();
        let query = query.get()?;
        // All cells that meet the condition are meant, wherever they are.
        if matches!(query.shared.kind, QueryType::Delete | QueryType::Update) {
            return Err(Failure::new(format!(
                "Setting a subarray is not supported for query type '{}'.", query.shared.kind.name()
            )));
        }
        let mut state = query.shared.state();
        if query.shared.kind == QueryType::Write && !query.shared.schema().is_dense() && !ranges.is_default() {
            return Err("[TileDB::Query] Error: Setting a subarray is not supported on sparse writes.".into());
        }
        // What has failed did nothing, and can be put right.
        if state.is_started() && state.status != Status::Failed {
            return Err("Setting a subarray on an already initialized query is not supported.".into());
        }
        state.subarray = Some(ranges);
        // Other cells are asked for: what came of those before a failure does not count.
        state.read = None;
    }

    /// A copy of the subarray.
    fn tiledb_query_get_subarray_t(ctx, query: In<QueryHandle>, subarray: Out<Ptr<SubarrayHandle>>) {
        let query = query.get()?;
        let ranges = match &query.shared.state().subarray {
            Some(ranges) => ranges.clone(),
            None => Ranges::new(&query.shared.open, true, Some("error"))?,
        };
        subarray.give(SubarrayHandle::new(ranges))?;
    }

    /// Sets the buffer of a field's values; `size` says how large it is and, after submission, how
    /// much was written.
    fn tiledb_query_set_data_buffer(ctx, query: In<QueryHandle>, name: Text, buffer: OutBytes, size: InOut<u64>) {
        set_buffer(query.get()?, name.get()?, Part::Data, Place::new(buffer.raw().cast(), size.raw())?)?;
    }

    /// Sets the buffer of the starts of a field's var-length cells.
    fn tiledb_query_set_offsets_buffer(ctx, query: In<QueryHandle>, name: Text, buffer: OutBytes, size: InOut<u64>) {
        set_buffer(query.get()?, name.get()?, Part::Offsets, Place::new(buffer.raw().cast(), size.raw())?)?;
    }

    /// Sets the buffer of a nullable field's validity, a byte a cell.
    fn tiledb_query_set_validity_buffer(ctx, query: In<QueryHandle>, name: Text, buffer: OutBytes, size: InOut<u64>) {
        set_buffer(query.get()?, name.get()?, Part::Validity, Place::new(buffer.raw().cast(), size.raw())?)?;
    }

    /// The buffer of a field's values; nulls if none was set.
    fn tiledb_query_get_data_buffer(
        ctx, query: In<QueryHandle>, name: Text, buffer: Out<Pointer<c_void>>, size: Out<Pointer<u64>>
    ) {
        let found = place(query.get()?, name.get()?, Part::Data)?;
        buffer.set(Pointer(found.map_or(std::ptr::null(), |place| place.data().cast_const().cast())))?;
        size.set(Pointer(found.map_or(std::ptr::null(), |place| place.size().cast_const())))?;
    }

    /// The buffer of the starts of a field's var-length cells; nulls if none was set.
    fn tiledb_query_get_offsets_buffer(
        ctx, query: In<QueryHandle>, name: Text, buffer: Out<Pointer<c_void>>, size: Out<Pointer<u64>>
    ) {
        let found = place(query.get()?, name.get()?, Part::Offsets)?;
        buffer.set(Pointer(found.map_or(std::ptr::null(), |place| place.data().cast_const().cast())))?;
        size.set(Pointer(found.map_or(std::ptr::null(), |place| place.size().cast_const())))?;
    }

    /// The buffer of a field's validity; nulls if none was set.
    fn tiledb_query_get_validity_buffer(
        ctx, query: In<QueryHandle>, name: Text, buffer: Out<Pointer<c_void>>, size: Out<Pointer<u64>>
    ) {
        let found = place(query.get()?, name.get()?, Part::Validity)?;
        buffer.set(Pointer(found.map_or(std::ptr::null(), |place| place.data().cast_const().cast())))?;
        size.set(Pointer(found.map_or(std::ptr::null(), |place| place.size().cast_const())))?;
    }

    /// Sets the order of cells.
    fn tiledb_query_set_layout(ctx, query: In<QueryHandle>, id: i32) {
        let query = query.get()?;
        let order = layout(id)?;
        let mut state = query.shared.state();
        if state.is_started() && state.layout != order {
            return Err("Cannot set layout after initialization".into());
        }
        if order == Layout::Hilbert {
            return Err("Cannot set layout; Hilbert order is not applicable to queries".into());
        }
        let dense = query.shared.schema().is_dense();
        if query.shared.kind == QueryType::Write {
            if dense && order == Layout::Unordered {
                return Err("Unordered writes are only possible for sparse arrays".into());
            }
            if !dense && matches!(order, Layout::RowMajor | Layout::ColMajor) {
                return Err("Row-major and column-major writes are only possible for dense arrays".into());
            }
        }
        state.layout = order;
    }

    /// Only cells that meet a condition; or, of a delete query, the cells to delete.
    fn tiledb_query_set_condition(ctx, query: In<QueryHandle>, cond: In<ConditionHandle>) {
        let query = query.get()?;
        if matches!(query.shared.kind, QueryType::Write | QueryType::ModifyExclusive) {
            return Err("Cannot set query condition; Operation not applicable to write queries".into());
        }
        let condition = cond.get()?.condition()?;
        let mut state = query.shared.state();
        if state.is_started() {
            return Err("Cannot set query condition after initialization".into());
        }
        state.condition = Some(condition);
    }

    /// Ends a write in global order, or a read that is incomplete; nothing happens for other
    /// queries.
    fn tiledb_query_finalize(ctx, query: In<QueryHandle>) {
        finalize(query.get()?)?;
    }

    /// Submits the last part of a write in global order and ends it.
    fn tiledb_query_submit_and_finalize(ctx, query: In<QueryHandle>) {
        let query = query.get()?;
        if query.shared.state().layout != Layout::Global {
            return Err("Failed to submit and finalize query; Call valid only in global_order writes.".into());
        }
        submit(query)?;
        finalize(query)?;
    }

    /// Reads or writes what the buffers have room for or hold. An incomplete read is submitted
    /// again for more.
    fn tiledb_query_submit(ctx, query: In<QueryHandle>) {
        submit(query.get()?)?;
    }

    /// Whether the last submission gave cells; aggregates and labels do not count.
    fn tiledb_query_has_results(ctx, query: In<QueryHandle>, has: Out<i32>) {
        let query = query.get()?;
        let state = query.shared.state();
        let schema = query.shared.schema();
        let is_field = |b: &&FieldBuffers| read::source(schema, &state.aggregates, &b.name) == Some(Source::Field);
        let some = query.shared.kind == QueryType::Read
            && matches!(state.status, Status::Completed | Status::Incomplete)
            && state.buffers.iter().filter(is_field).any(FieldBuffers::has_results);
        has.set(some.into())?;
    }

    /// How far the query is.
    fn tiledb_query_get_status(ctx, query: In<QueryHandle>, status: Out<i32>) {
        status.set(query.get()?.shared.state().status as i32)?;
    }

    /// Why the query is incomplete.
    fn tiledb_query_get_status_details(ctx, query: In<QueryHandle>, details: Out<i32>) {
        details.set(query.get()?.shared.state().reason as i32)?;
    }

    /// What the query does.
    fn tiledb_query_get_type(ctx, query: In<QueryHandle>, kind: Out<i32>) {
        kind.set(query.get()?.shared.kind as i32)?;
    }

    /// The order of cells.
    fn tiledb_query_get_layout(ctx, query: In<QueryHandle>, order: Out<i32>) {
        order.set(query.get()?.shared.state().layout as i32)?;
    }

    /// A handle on the query's array.
    fn tiledb_query_get_array(ctx, query: In<QueryHandle>, array: Out<Ptr<ArrayHandle>>) {
        array.give(query.get()?.array.clone())?;
    }

    /// An estimate of the size of a fixed-length field.
    fn tiledb_query_get_est_result_size(ctx, query: In<QueryHandle>, name: Text, size: Out<u64>) {
        let name = name.get()?;
        size.set(read_only(query.get()?, |state, open| estimate::sizes(state, open, name, false, false))?.data)?;
    }

    /// An estimate of the sizes of a var-length field.
    fn tiledb_query_get_est_result_size_var(
        ctx, query: In<QueryHandle>, name: Text, size_off: Out<u64>, size_val: Out<u64>
    ) {
        let name = name.get()?;
        let sizes = read_only(query.get()?, |state, open| estimate::sizes(state, open, name, true, false))?;
        size_off.set(sizes.offsets)?;
        size_val.set(sizes.data)?;
    }

    /// An estimate of the sizes of a nullable fixed-length field.
    fn tiledb_query_get_est_result_size_nullable(
        ctx, query: In<QueryHandle>, name: Text, size_val: Out<u64>, size_validity: Out<u64>
    ) {
        let name = name.get()?;
        let sizes = read_only(query.get()?, |state, open| estimate::sizes(state, open, name, false, true))?;
        size_val.set(sizes.data)?;
        size_validity.set(sizes.validity)?;
    }

    /// An estimate of the sizes of a nullable var-length field.
    fn tiledb_query_get_est_result_size_var_nullable(
        ctx, query: In<QueryHandle>, name: Text, size_off: Out<u64>, size_val: Out<u64>, size_validity: Out<u64>
    ) {
        let name = name.get()?;
        let sizes = read_only(query.get()?, |state, open| estimate::sizes(state, open, name, true, true))?;
        size_off.set(sizes.offsets)?;
        size_val.set(sizes.data)?;
        size_validity.set(sizes.validity)?;
    }

    /// The number of fragments that a write made.
    fn tiledb_query_get_fragment_num(ctx, query: In<QueryHandle>, num: Out<u32>) {
        let query = query.get()?;
        if query.shared.kind == QueryType::Read {
            return Err("Cannot get number of fragments; Applicable only to WRITE mode".into());
        }
        num.set(u32::try_from(query.shared.state().write.fragments.len()).unwrap_or(u32::MAX))?;
    }

    /// The URI of a fragment that a write made; it lives as long as the handle.
    fn tiledb_query_get_fragment_uri(ctx, query: In<QueryHandle>, index: u64, uri: Out<Str>) {
        let query = query.get()?;
        uri.set(query.keep.text(&written(query, index)?.0))?;
    }

    /// The time of a fragment that a write made.
    fn tiledb_query_get_fragment_timestamp_range(ctx, query: In<QueryHandle>, index: u64, t1: Out<u64>, t2: Out<u64>) {
        let (_, time) = written(query.get()?, index)?;
        t1.set(time.0)?;
        t2.set(time.1)?;
    }

    /// The number of fragments whose non-empty domain meets what a read selects.
    fn tiledb_query_get_relevant_fragment_num(ctx, query: In<QueryHandle>, num: Out<u64>) {
        let query = query.get()?;
        let found = match query.shared.kind {
            QueryType::Read => read_only(query, estimate::relevant_fragments)?,
            // As in the reference: what is not a read looks at none.
            QueryType::Write | QueryType::Delete | QueryType::Update | QueryType::ModifyExclusive => 0,
        };
        num.set(found)?;
    }

    /// A new value for the cells that meet the condition of an update query. It is stored and never
    /// applied: readers leave out the cells.
    fn tiledb_query_add_update_value(ctx, query: In<QueryHandle>, name: Text, value: Bytes, size: u64) {
        let query = query.get()?;
        if query.shared.kind != QueryType::Update {
            return Err("Cannot add query update value; Operation only applicable to update queries".into());
        }
        let schema = query.shared.schema();
        if schema.is_dense() {
            return Err("Setting update values is only valid for sparse arrays".into());
        }
        let value = UpdateValue { field: name.get()?.into(), value: value.get64(size)?.to_vec() };
        let attribute = schema.attributes.iter().find(|attribute| attribute.name == value.field);
        let attribute = attribute.ok_or_else(|| {
            Failure::new(format!("Cannot add query update value; there is no attribute '{}'", value.field))
        })?;
        if attribute.cell_size().is_some_and(|cell| cell as u64 != size) {
            return Err("Cannot add query update value; its size is not that of a cell".into());
        }
        let mut state = query.shared.state();
        if state.updates.iter().any(|update| update.field == value.field) {
            return Err("Update value already set for attribute".into());
        }
        state.updates.push(value);
    }

    /// How the query would be run, as JSON.
    fn tiledb_query_get_plan(ctx, query: In<QueryHandle>, plan: Out<Ptr<StringHandle>>) {
        let query = query.get()?;
        plan.give(StringHandle::new(plan_json(query)))?;
    }
}

/// How a query would be run.
#[derive(Debug)]
pub struct QueryPlan {
    /// The order of cells.
    pub layout: Layout,
    /// The class of the reference's that would run it.
    pub strategy: &'static str,
    /// Whether the array is dense.
    pub dense: bool,
    /// The attributes, by name.
    pub attributes: Vec<String>,
    /// The dimensions, by name.
    pub dimensions: Vec<String>,
}

/// The plan of a query.
pub fn plan(query: &QueryHandle) -> QueryPlan {
    let shared = &query.shared;
    let state = shared.state();
    let schema = shared.schema();
    let dense = schema.is_dense();
    let strategy = match (shared.kind, dense, state.layout) {
        (QueryType::Read, true, _) => "DenseReader",
        (QueryType::Read, false, Layout::Unordered) if schema.allows_dups => {
            "SparseUnorderedWithDupsReader"
        }
        (QueryType::Read, false, _) => "SparseGlobalOrderReader",
        (QueryType::Write, _, Layout::Global) => "GlobalOrderWriter",
        (QueryType::Write, true, _) => "OrderedWriter",
        (QueryType::Write, false, _) => "UnorderedWriter",
        (QueryType::Delete | QueryType::Update | QueryType::ModifyExclusive, ..) => {
            "DeletesAndUpdates"
        }
    };
    let names = |is_dim: bool| -> Vec<String> {
        let fields = state.buffers.iter().map(|b| b.name.as_str());
        // Cells of dense arrays are found by all dimensions, whatever is read.
        let mut names: Vec<&str> = if dense && is_dim {
            schema
                .domain
                .dimensions
                .iter()
                .map(|d| d.name.as_str())
                .collect()
        } else {
            fields
                .filter(|name| schema.domain.index_of(name).is_some() == is_dim)
                .collect()
        };
        names.sort_unstable();
        names.into_iter().map(str::to_owned).collect()
    };
    QueryPlan {
        layout: state.layout,
        strategy,
        dense,
        attributes: names(false),
        dimensions: names(true),
    }
}

/// The plan of a query as the reference lays it out.
fn plan_json(query: &QueryHandle) -> String {
    let plan = plan(query);
    let shared = &query.shared;
    let layout = match plan.layout {
        Layout::RowMajor => "row-major",
        Layout::ColMajor => "col-major",
        Layout::Global => "global-order",
        Layout::Unordered | Layout::Hilbert => "unordered",
    };
    let vfs = if shared.open.uri().starts_with("mem://") {
        "mem"
    } else {
        "file"
    };
    let plan = serde_json::json!({
        "TileDB Query Plan": {
            "Array.Type": if plan.dense { "dense" } else { "sparse" },
            "Array.URI": crate::uri::absolute(shared.open.uri()),
            "Query.Attributes": plan.attributes,
            "Query.Dimensions": plan.dimensions,
            "Query.Layout": layout,
            "Query.Strategy.Name": plan.strategy,
            "VFS.Backend": vfs,
        }
    });
    format!("{plan:#}")
}

capi_free! {
    fn tiledb_query_free(QueryHandle);
}

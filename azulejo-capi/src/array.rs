//! `tiledb_array_t`.

use crate::boundary::{
    Bytes, In, InOut, Kind, Out, OutBytes, Pointer, Ptr, Str, Text, capi, capi_free,
};
use crate::config::{Config, Settings};
use crate::ctx::Context;
use crate::entry::Entry;
use crate::enumeration::EnumerationHandle;
use crate::enums::{QueryType, datatype, datatype_id, query_type};
use crate::error::{Failure, Result};
use crate::metadata::Changes;
use crate::schema::{SchemaContent, SchemaHandle};
use crate::strings::{Keep, lock};
use azulejo::array::{Snapshot, TimeRange};
use azulejo::storage::Uri;
use azulejo_format::metadata::{Metadata, MetadataValue};
use azulejo_format::schema::ArraySchema;
use azulejo_format::{NdRectangle, Range};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// `tiledb_array_t`; copies of the handle share it.
#[derive(Debug, Clone)]
pub struct ArrayHandle {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    uri: String,
    state: Mutex<State>,
    keep: Keep,
}

#[derive(Debug)]
struct State {
    start: u64,
    end: u64,
    settings: Option<Settings>,
    open: Option<Opened>,
}

/// What a handle has while it is open. Queries go on with the array when the handle is closed; to
/// others it is closed then.
#[derive(Debug)]
struct Opened {
    array: Arc<OpenArray>,
    /// `None` for an array that lies nowhere.
    _entry: Option<Entry>,
}

/// An array that is open.
#[derive(Debug)]
pub struct OpenArray {
    kind: QueryType,
    snapshot: Snapshot,
    engine: azulejo::Context,
    settings: Settings,
    uri: String,
    /// The time asked for: what new fragments and metadata get, unless it is `u64::MAX`.
    end: u64,
    /// Metadata written and deleted, to be stored at closing.
    pending: Mutex<Changes>,
    /// Evolutions of arrays by this process when it was opened.
    evolutions: u64,
    /// What all handles on the schema share: changes through one show in the others.
    schema: SchemaHandle,
    /// What messages said of the array, which counts before what is stored.
    told: Mutex<Told>,
}

/// What messages said of an array.
#[derive(Debug, Default)]
struct Told {
    non_empty_domain: Option<Option<NdRectangle>>,
    metadata: Option<Metadata>,
    /// Which of the key-values was asked for last by its position.
    last: crate::metadata::Cursor,
}

/// An array as a message describes it.
#[derive(Debug)]
pub struct Description {
    /// What it is open for.
    pub kind: QueryType,
    /// The times that it was opened at.
    pub time: TimeRange,
    /// The latest schema's name and all schemas.
    pub schemas: (String, Vec<SchemaContent>),
    /// Its non-empty domain, if the message has it.
    pub non_empty_domain: Option<Option<NdRectangle>>,
    /// Its key-values, if the message has them.
    pub metadata: Option<Changes>,
}

impl Kind for ArrayHandle {
    const NAME: &'static str = "array";
}

impl OpenArray {
    /// Why it is open.
    pub fn kind(&self) -> QueryType {
        self.kind
    }

    /// The array as it was when it was opened.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The array with its fragments, which are looked at when this is first called.
    pub fn array(&self) -> Result<azulejo::Array> {
        Ok(self.snapshot.array()?)
    }

    /// The engine's context that it was opened with.
    pub fn engine(&self) -> &azulejo::Context {
        &self.engine
    }

    /// The schema as its handles have it: a current domain set through one of them bounds reads.
    pub fn shown_schema(&self) -> Arc<ArraySchema> {
        self.schema.schema()
    }

    /// Its settings: those of the context under its own.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The array as a write sees it: clients grow the current domain of an array and go on writing
    /// through a handle that was opened before. All else is as it was when it was opened.
    pub fn array_to_write(&self) -> Result<azulejo::Array> {
        if crate::maintain::evolutions() == self.evolutions {
            return self.array();
        }
        let latest = self.engine.array(&self.uri).snapshot_to_write()?.array()?;
        let mut schema = ArraySchema::clone(latest.schema());
        schema.current_domain = self.snapshot.schema().current_domain.clone();
        if schema == **self.snapshot.schema() {
            Ok(latest)
        } else {
            self.array()
        }
    }

    /// Where it lies, as the caller said.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The time that writes get; `None` for now.
    pub fn write_time(&self) -> Option<u64> {
        (self.end != u64::MAX).then_some(self.end)
    }

    /// The box around all cells: what a message said, else what is stored.
    pub fn non_empty_domain(&self) -> Result<Option<NdRectangle>> {
        match &lock(&self.told).non_empty_domain {
            Some(told) => Ok(told.clone()),
            None => Ok(self.array()?.non_empty_domain()?),
        }
    }

    /// From now on this is the box around all cells.
    pub fn tell_non_empty_domain(&self, domain: Option<NdRectangle>) {
        lock(&self.told).non_empty_domain = Some(domain);
    }

    /// The key-values that readers see: what is stored, and what messages said.
    pub fn metadata(&self) -> Result<Metadata> {
        match &lock(&self.told).metadata {
            Some(told) => Ok(told.clone()),
            None => Ok(self.snapshot.metadata()?.clone()),
        }
    }

    /// Takes over key-values of a message: to be seen, or to be stored at closing.
    pub fn tell_metadata(&self, changes: Changes) -> Result<()> {
        if self.kind == QueryType::Read {
            let mut metadata = self.metadata()?;
            crate::metadata::apply(&mut metadata, changes);
            let mut told = lock(&self.told);
            (told.metadata, told.last) = (Some(metadata), None);
        } else {
            lock(&self.pending).extend(changes);
        }
        Ok(())
    }

    /// Key-values put and deleted that are not stored yet.
    pub fn pending_metadata(&self) -> Changes {
        lock(&self.pending).clone()
    }

    /// The schema's handle.
    pub fn schema_handle(&self) -> &SchemaHandle {
        &self.schema
    }

    /// Stores key-values; what could not be stored is there for another try.
    fn flush(&self) -> Result<()> {
        let mut pending = lock(&self.pending);
        if !pending.is_empty() {
            let writer = self.snapshot.change_metadata()?;
            crate::metadata::store(writer, pending.clone(), self.write_time())?;
            pending.clear();
        }
        Ok(())
    }
}

impl ArrayHandle {
    /// A handle on the array at a URI, which is not looked at before it is opened.
    pub fn at(uri: &str) -> Self {
        let state = State {
            start: 0,
            end: u64::MAX,
            settings: None,
            open: None,
        };
        Self {
            inner: Arc::new(Inner {
                uri: uri.into(),
                state: Mutex::new(state),
                keep: Keep::default(),
            }),
        }
    }

    /// The URI.
    pub fn uri(&self) -> &str {
        &self.inner.uri
    }

    /// The times that it is opened at.
    pub fn time_range(&self) -> TimeRange {
        let state = lock(&self.inner.state);
        TimeRange {
            start: state.start,
            end: state.end,
        }
    }

    /// Its own settings, if it has some.
    pub fn settings(&self) -> Option<Settings> {
        lock(&self.inner.state).settings.clone()
    }

    /// Gives it settings of its own.
    pub fn set_settings(&self, settings: Settings) {
        lock(&self.inner.state).settings = Some(settings);
    }

    /// The array, which must be open.
    pub fn open(&self) -> Result<Arc<OpenArray>> {
        let state = lock(&self.inner.state);
        let open = state.open.as_ref();
        open.map(|open| Arc::clone(&open.array))
            .ok_or_else(|| Failure::new("Array is not open"))
    }

    /// The array, which must be open for reading.
    pub fn open_for_reading(&self) -> Result<Arc<OpenArray>> {
        let open = self.open()?;
        if open.kind != QueryType::Read {
            return Err(Failure::new(format!(
                "Array was not opened in read mode, but for {}",
                open.kind.name()
            )));
        }
        Ok(open)
    }
}

fn open(ctx: &Context, handle: &ArrayHandle, kind: QueryType) -> Result<()> {
    let mut state = lock(&handle.inner.state);
    if state.open.is_some() {
        return Err("Cannot open array; Array already open.".into());
    }
    if kind == QueryType::Update && !ctx.settings().flag("sm.allow_updates_experimental") {
        return Err(
            "Cannot open array; Update query type is only experimental, do not use.".into(),
        );
    }
    let entry = match kind {
        QueryType::ModifyExclusive => Entry::exclusive(&handle.inner.uri)?,
        _ => Entry::shared(&handle.inner.uri)?,
    };
    let settings = ctx.settings_with(state.settings.as_ref());
    let engine = ctx.engine_with(state.settings.as_ref())?;
    // What is written has the time that was asked for; the schema that it must fit is the latest.
    let uri = &handle.inner.uri;
    let evolutions = crate::maintain::evolutions();
    let snapshot = match kind {
        QueryType::Read => engine.array(uri).snapshot_at(TimeRange {
            start: state.start,
            end: state.end,
        }),
        _ => engine.array(uri).snapshot_to_write(),
    };
    let snapshot = snapshot.map_err(|error| match error {
        azulejo::Error::NotFound { uri, .. } => Failure::new(format!(
            "[TileDB::Array] Error: Cannot open array; Array does not exist. ({uri})"
        )),
        other => other.into(),
    })?;
    let version = snapshot.schema().version;
    if kind == QueryType::Delete && !version.has_deletes() {
        return Err(Failure::new(format!(
            "[TileDB::Array] Error: Cannot open array for deletes; Array format version ({}) is smaller than the \
             minimum supported version (16).",
            version.number()
        )));
    }
    let schema = SchemaHandle::of_array(&snapshot);
    let array = Arc::new(OpenArray {
        kind,
        schema,
        snapshot,
        engine,
        settings,
        uri: handle.inner.uri.clone(),
        end: state.end,
        pending: Mutex::default(),
        evolutions,
        told: Mutex::default(),
    });
    state.open = Some(Opened {
        array,
        _entry: Some(entry),
    });
    Ok(())
}

/// Opens the array that a message describes: the one at the URI, or if there is none an array in
/// memory that has nothing but what the message says.
pub fn open_described(ctx: &Context, uri: &str, described: Description) -> Result<ArrayHandle> {
    let handle = ArrayHandle::at(uri);
    lock(&handle.inner.state).start = described.time.start;
    lock(&handle.inner.state).end = described.time.end;
    let engine = ctx.engine()?;
    let stored = match engine.array(uri).snapshot_to_write() {
        Ok(_) => true,
        Err(azulejo::Error::NotFound { .. } | azulejo::Error::InvalidArgument(_)) => false,
        Err(other) => return Err(other.into()),
    };
    if stored {
        open(ctx, &handle, described.kind)?;
        return Ok(handle);
    }
    let (latest, schemas) = described.schemas;
    let snapshot = crate::serialize::in_memory(&engine, &latest, &schemas)?;
    let schema = SchemaHandle::of_array(&snapshot);
    let mut metadata = Metadata::new();
    crate::metadata::apply(&mut metadata, described.metadata.unwrap_or_default());
    let told = Told {
        non_empty_domain: Some(described.non_empty_domain.flatten()),
        metadata: Some(metadata),
        last: None,
    };
    let array = Arc::new(OpenArray {
        kind: described.kind,
        schema,
        snapshot,
        engine,
        settings: ctx.settings().clone(),
        uri: uri.to_owned(),
        end: described.time.end,
        pending: Mutex::default(),
        evolutions: crate::maintain::evolutions(),
        told: Mutex::new(told),
    });
    lock(&handle.inner.state).open = Some(Opened {
        array,
        _entry: None,
    });
    Ok(handle)
}

/// The range of a dimension of the non-empty domain; `None` if the array is empty.
fn non_empty(array: &ArrayHandle, index: usize, var: Option<bool>) -> Result<Option<Range>> {
    let open = array.open()?;
    let dimension = open.snapshot.schema().dimension(index);
    let dimension = dimension
        .ok_or_else(|| Failure::new("Cannot get non-empty domain; Invalid dimension index"))?;
    match var {
        Some(true) if !dimension.is_var() => {
            return Err(Failure::new(format!(
                "Cannot get non-empty domain; Dimension '{}' is fixed-sized",
                dimension.name
            )));
        }
        Some(false) if dimension.is_var() => {
            return Err(Failure::new(format!(
                "Cannot get non-empty domain; Dimension '{}' is variable-sized",
                dimension.name
            )));
        }
        _ => {}
    }
    Ok(domain(&open)?.and_then(|domain| domain.ranges.into_iter().nth(index)))
}

fn domain(open: &OpenArray) -> Result<Option<NdRectangle>> {
    if open.kind != QueryType::Read {
        return Err("[non_empty_domain] Array not opened for reads".into());
    }
    open.non_empty_domain()
}

fn index_of(array: &ArrayHandle, name: &str) -> Result<usize> {
    let found = array.open()?.snapshot.schema().domain.index_of(name);
    found.ok_or_else(|| {
        Failure::new(format!(
            "Cannot get non-empty domain; Dimension name '{name}' does not exist"
        ))
    })
}

fn put_fixed(range: Option<&Range>, out: &OutBytes, is_empty: &Out<i32>) -> Result<()> {
    if let Some(range) = range {
        out.write(&range.start)?;
        out.write_at(range.start.len(), &range.end)?;
    }
    is_empty.set(range.is_none().into())
}

fn put_var(
    range: Option<&Range>,
    start: &OutBytes,
    end: &OutBytes,
    is_empty: &Out<i32>,
) -> Result<()> {
    if let Some(range) = range {
        start.write(&range.start)?;
        end.write(&range.end)?;
    }
    is_empty.set(range.is_none().into())
}

fn put_sizes(
    range: Option<&Range>,
    start: &Out<u64>,
    end: &Out<u64>,
    is_empty: &Out<i32>,
) -> Result<()> {
    start.set(range.map_or(0, |range| range.start.len() as u64))?;
    end.set(range.map_or(0, |range| range.end.len() as u64))?;
    is_empty.set(range.is_none().into())
}

/// The metadata that readers see.
fn with_metadata<R>(array: &ArrayHandle, body: impl FnOnce(&Metadata) -> Result<R>) -> Result<R> {
    with_metadata_and_last(array, |all, _| body(all))
}

/// The metadata that readers see, and which of it was asked for last by its position.
fn with_metadata_and_last<R>(
    array: &ArrayHandle,
    body: impl FnOnce(&Metadata, &mut crate::metadata::Cursor) -> Result<R>,
) -> Result<R> {
    let open = array.open()?;
    if open.kind != QueryType::Read {
        return Err("Cannot get metadata; Array was not opened in read mode".into());
    }
    let mut told = lock(&open.told);
    let Told { metadata, last, .. } = &mut *told;
    match metadata {
        Some(told) => body(told, last),
        None => body(open.snapshot.metadata()?, last),
    }
}

/// Hands out a value, which lives as long as `keep`.
pub fn give_value(
    keep: &Keep,
    value: Option<&MetadataValue>,
    id: &Out<i32>,
    num: &Out<u32>,
    data: &Out<Pointer>,
) -> Result<()> {
    match value {
        Some(value) => {
            id.set(datatype_id(value.datatype))?;
            // A value without bytes counts 1, at null: a count of 0 says that there is no value.
            num.set(u32::try_from(value.count()).unwrap_or(u32::MAX).max(1))?;
            data.set(if value.data.is_empty() {
                Pointer::default()
            } else {
                keep.bytes(&value.data)
            })
        }
        None => {
            num.set(0)?;
            data.set(Pointer::default())
        }
    }
}

/// A value from C: `num` values of a type.
pub fn take_value(id: i32, num: u32, value: &Bytes) -> Result<MetadataValue> {
    let datatype = datatype(id)?;
    if datatype == azulejo_format::Datatype::Any {
        return Err("Cannot put metadata; Value type must not be ANY".into());
    }
    let size = datatype.size() as u64 * u64::from(num);
    let data = if value.is_null() {
        Vec::new()
    } else {
        value.get64(size)?.to_vec()
    };
    Ok(MetadataValue::new(datatype, data))
}

fn writable(array: &ArrayHandle) -> Result<Arc<OpenArray>> {
    let open = array.open()?;
    if !matches!(open.kind, QueryType::Write | QueryType::ModifyExclusive) {
        return Err(
            "Cannot put metadata; Array was not opened in write or modify_exclusive mode".into(),
        );
    }
    Ok(open)
}

capi! {
    /// A handle on the array at a URI, which is not looked at before it is opened.
    fn tiledb_array_alloc(ctx, uri: Text, array: Out<Ptr<ArrayHandle>>) {
        let uri = uri.get()?;
        if uri.is_empty() {
            return Err("Failed to create TileDB array object; Invalid URI".into());
        }
        // It stays where it is now when the current folder changes.
        array.give(ArrayHandle::at(&crate::uri::absolute(uri)))?;
    }

    /// Sets the time in milliseconds that the array is to be opened from.
    fn tiledb_array_set_open_timestamp_start(ctx, array: In<ArrayHandle>, timestamp: u64) {
        lock(&array.get()?.inner.state).start = timestamp;
    }

    /// Sets the time in milliseconds that the array is to be opened at.
    fn tiledb_array_set_open_timestamp_end(ctx, array: In<ArrayHandle>, timestamp: u64) {
        lock(&array.get()?.inner.state).end = timestamp;
    }

    /// The time in milliseconds that the array is opened from.
    fn tiledb_array_get_open_timestamp_start(ctx, array: In<ArrayHandle>, timestamp: Out<u64>) {
        timestamp.set(lock(&array.get()?.inner.state).start)?;
    }

    /// The time in milliseconds that the array is opened at.
    fn tiledb_array_get_open_timestamp_end(ctx, array: In<ArrayHandle>, timestamp: Out<u64>) {
        let state = lock(&array.get()?.inner.state);
        let end = match state.open.as_ref().map(|open| &open.array) {
            None => state.end,
            Some(open) if open.kind == QueryType::Read => open.snapshot.time_range().end,
            // As in the reference: 0 where each write gets the time that it is made at.
            Some(open) => open.write_time().unwrap_or(0),
        };
        timestamp.set(end)?;
    }

    /// Opens the array.
    fn tiledb_array_open(ctx, array: In<ArrayHandle>, kind: i32) {
        let (kind, start) = (query_type(kind)?, Instant::now());
        open(ctx, array.get()?, kind)?;
        ctx.stats().time(&format!("array_open_{}", kind.name()), start.elapsed());
    }

    /// Whether the array is open.
    fn tiledb_array_is_open(ctx, array: In<ArrayHandle>, is_open: Out<i32>) {
        is_open.set(lock(&array.get()?.inner.state).open.is_some().into())?;
    }

    /// Opens the array again, to see what was written meanwhile, or at another time that was set.
    fn tiledb_array_reopen(ctx, array: In<ArrayHandle>) {
        let handle = array.get()?;
        let kind = handle.open()?.kind;
        if kind != QueryType::Read {
            return Err("Cannot reopen array; Array was not opened in read mode".into());
        }
        let before = {
            let mut state = lock(&handle.inner.state);
            // Unless another time was set since, it is opened as it is now.
            if state.open.as_ref().is_some_and(|open| open.array.end == state.end) {
                state.end = u64::MAX;
            }
            state.open.take()
        };
        if let Err(failure) = open(ctx, handle, kind) {
            lock(&handle.inner.state).open = before;
            return Err(failure);
        }
    }

    /// Sets settings of the array's own; it must not be open.
    fn tiledb_array_set_config(ctx, array: In<ArrayHandle>, config: In<Config>) {
        let mut state = lock(&array.get()?.inner.state);
        if state.open.is_some() {
            return Err("Cannot set a config on an open array".into());
        }
        state.settings = Some(config.get()?.settings());
    }

    /// A copy of the array's settings.
    fn tiledb_array_get_config(ctx, array: In<ArrayHandle>, config: Out<Ptr<Config>>) {
        let own = lock(&array.get()?.inner.state).settings.clone();
        config.give(Config::new(ctx.settings_with(own.as_ref())))?;
    }

    /// Stores metadata that was put, and closes the array; it stays open if that fails. Closing
    /// twice is no error.
    fn tiledb_array_close(ctx, array: In<ArrayHandle>) {
        let mut state = lock(&array.get()?.inner.state);
        let Some(open) = &state.open else {
            return Ok(());
        };
        // Queries hold on to what they were made for, long after they are done in languages that
        // collect garbage.
        open.array.snapshot.release_tiles();
        open.array.flush()?;
        let settles = crate::heap::may_settle(open.array.settings());
        state.open = None;
        if settles {
            crate::heap::settle();
        }
    }

    /// A handle on the schema.
    fn tiledb_array_get_schema(ctx, array: In<ArrayHandle>, schema: Out<Ptr<SchemaHandle>>) {
        schema.give(array.get()?.open()?.schema.clone())?;
    }

    /// What the array is open for.
    fn tiledb_array_get_query_type(ctx, array: In<ArrayHandle>, kind: Out<i32>) {
        kind.set(array.get()?.open()?.kind as i32)?;
    }

    /// The URI; it lives as long as the handle.
    fn tiledb_array_get_uri(ctx, array: In<ArrayHandle>, uri: Out<Str>) {
        let inner = &array.get()?.inner;
        uri.set(inner.keep.text(&crate::uri::absolute(&inner.uri)))?;
    }

    /// Creates an array.
    fn tiledb_array_create(ctx, uri: Text, schema: In<SchemaHandle>) {
        let schema = schema.get()?;
        let (new, time) = schema.new_array()?;
        let (engine, uri) = (ctx.engine()?, uri.get()?);
        match time {
            (0, _) => engine.array(uri).create(new)?,
            (at, _) => engine.array(uri).create_at(new, at)?,
        }
        schema.set_created(engine.locate(&Uri::parse(uri)?)?.path);
    }

    /// The encryption of an array, whatever the key.
    fn tiledb_array_encryption_type(ctx, uri: Text, id: Out<i32>) {
        match ctx.engine_without_key()?.array(uri.get()?).snapshot() {
            Ok(_) => id.set(0)?,
            Err(azulejo::Error::Encryption { .. }) => id.set(1)?,
            Err(other) => return Err(other.into()),
        }
    }

    /// The non-empty domain of fixed-size dimensions, as pairs of values.
    fn tiledb_array_get_non_empty_domain(ctx, array: In<ArrayHandle>, out: OutBytes, is_empty: Out<i32>) {
        let open = array.get()?.open()?;
        let dimensions = &open.snapshot.schema().domain.dimensions;
        let first = dimensions.first().map(|d| d.datatype);
        if dimensions.iter().any(|d| d.is_var() || Some(d.datatype) != first) {
            return Err("Cannot get non-empty domain; Function not applicable to heterogeneous or variable-sized domains".into());
        }
        let found = domain(&open)?;
        let mut at = 0;
        for range in found.iter().flat_map(|domain| &domain.ranges) {
            for bound in [&range.start, &range.end] {
                out.write_at(at, bound)?;
                at += bound.len();
            }
        }
        is_empty.set(found.is_none().into())?;
    }

    /// The non-empty domain of a fixed-size dimension, as a pair of values.
    fn tiledb_array_get_non_empty_domain_from_index(
        ctx, array: In<ArrayHandle>, index: u32, out: OutBytes, is_empty: Out<i32>
    ) {
        put_fixed(non_empty(array.get()?, index as usize, Some(false))?.as_ref(), &out, &is_empty)?;
    }

    /// The non-empty domain of a fixed-size dimension by its name, as a pair of values.
    fn tiledb_array_get_non_empty_domain_from_name(
        ctx, array: In<ArrayHandle>, name: Text, out: OutBytes, is_empty: Out<i32>
    ) {
        let array = array.get()?;
        let index = index_of(array, name.get()?)?;
        put_fixed(non_empty(array, index, Some(false))?.as_ref(), &out, &is_empty)?;
    }

    /// Sizes of the bounds of the non-empty domain of a string dimension.
    fn tiledb_array_get_non_empty_domain_var_size_from_index(
        ctx, array: In<ArrayHandle>, index: u32, start: Out<u64>, end: Out<u64>, is_empty: Out<i32>
    ) {
        put_sizes(non_empty(array.get()?, index as usize, Some(true))?.as_ref(), &start, &end, &is_empty)?;
    }

    /// Sizes of the bounds of the non-empty domain of a string dimension by its name.
    fn tiledb_array_get_non_empty_domain_var_size_from_name(
        ctx, array: In<ArrayHandle>, name: Text, start: Out<u64>, end: Out<u64>, is_empty: Out<i32>
    ) {
        let array = array.get()?;
        let index = index_of(array, name.get()?)?;
        put_sizes(non_empty(array, index, Some(true))?.as_ref(), &start, &end, &is_empty)?;
    }

    /// The bounds of the non-empty domain of a string dimension, into memory of the caller's.
    fn tiledb_array_get_non_empty_domain_var_from_index(
        ctx, array: In<ArrayHandle>, index: u32, start: OutBytes, end: OutBytes, is_empty: Out<i32>
    ) {
        put_var(non_empty(array.get()?, index as usize, Some(true))?.as_ref(), &start, &end, &is_empty)?;
    }

    /// The bounds of the non-empty domain of a string dimension by its name, into memory of the
    /// caller's.
    fn tiledb_array_get_non_empty_domain_var_from_name(
        ctx, array: In<ArrayHandle>, name: Text, start: OutBytes, end: OutBytes, is_empty: Out<i32>
    ) {
        let array = array.get()?;
        let index = index_of(array, name.get()?)?;
        put_var(non_empty(array, index, Some(true))?.as_ref(), &start, &end, &is_empty)?;
    }

    /// An enumeration of the latest schema.
    fn tiledb_array_get_enumeration(ctx, array: In<ArrayHandle>, name: Text, enumeration: Out<Ptr<EnumerationHandle>>) {
        let (open, name) = (array.get()?.open()?, name.get()?);
        if open.snapshot.schema().enumeration(name).is_none() {
            return Err(Failure::new(format!(
                "ArraySchema: Unable to check if unknown enumeration is loaded. No enumeration named '{name}'."
            )));
        }
        let found = open.snapshot.enumeration(name)?;
        enumeration.give(EnumerationHandle::new(found))?;
    }

    /// Reads all enumerations of the latest schema.
    fn tiledb_array_load_all_enumerations(ctx, array: In<ArrayHandle>) {
        array.get()?.open()?.snapshot.enumerations()?;
    }

    /// Reads all enumerations of the latest schema; those of earlier ones are read when they are
    /// asked for.
    fn tiledb_array_load_enumerations_all_schemas(ctx, array: In<ArrayHandle>) {
        array.get()?.open()?.snapshot.enumerations()?;
    }

    /// Puts a key-value; it is stored when the array is closed.
    fn tiledb_array_put_metadata(ctx, array: In<ArrayHandle>, key: Text, id: i32, num: u32, value: Bytes) {
        let open = writable(array.get()?)?;
        let entry = (key.get()?.to_owned(), Some(take_value(id, num, &value)?));
        lock(&open.pending).push(entry);
    }

    /// Deletes a key-value when the array is closed.
    fn tiledb_array_delete_metadata(ctx, array: In<ArrayHandle>, key: Text) {
        let open = writable(array.get()?)?;
        lock(&open.pending).push((key.get()?.to_owned(), None));
    }

    /// The value of a key, null if there is none; it lives as long as the handle.
    fn tiledb_array_get_metadata(
        ctx, array: In<ArrayHandle>, key: Text, id: Out<i32>, num: Out<u32>, value: Out<Pointer>
    ) {
        let (array, key) = (array.get()?, key.get()?);
        with_metadata(array, |all| give_value(&array.inner.keep, all.get(key), &id, &num, &value))?;
    }

    /// The number of key-values.
    fn tiledb_array_get_metadata_num(ctx, array: In<ArrayHandle>, num: Out<u64>) {
        num.set(with_metadata(array.get()?, |all| Ok(all.len() as u64))?)?;
    }

    /// A key-value by its position in the order of keys.
    fn tiledb_array_get_metadata_from_index(
        ctx, array: In<ArrayHandle>, index: u64, key: Out<Str>, key_len: Out<u32>, id: Out<i32>, num: Out<u32>,
        value: Out<Pointer>
    ) {
        let array = array.get()?;
        with_metadata_and_last(array, |all, last| {
            let found = crate::metadata::at(all, index, last);
            let (name, found) = found.ok_or_else(|| Failure::new("Cannot get metadata; index out of bounds"))?;
            key.set(array.inner.keep.text(name))?;
            key_len.set(u32::try_from(name.len()).unwrap_or(u32::MAX))?;
            give_value(&array.inner.keep, Some(found), &id, &num, &value)
        })?;
    }

    /// Whether there is a key, and its type; the place of the type stays as it is if there is none.
    fn tiledb_array_has_metadata_key(ctx, array: In<ArrayHandle>, key: Text, id: InOut<i32>, has: Out<i32>) {
        let key = key.get()?;
        let found = with_metadata(array.get()?, |all| Ok(all.get(key).map(|value| value.datatype)))?;
        if let Some(datatype) = found {
            id.set(datatype_id(datatype))?;
        }
        has.set(found.is_some().into())?;
    }
}

capi_free! {
    fn tiledb_array_free(ArrayHandle);
}

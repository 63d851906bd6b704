//! `tiledb_array_schema_t`.

use crate::attribute::{AttributeHandle, SharedAttribute};
use crate::boundary::{Bytes, In, Kind, Opaque, Out, Ptr, Text, capi, capi_free};
use crate::config::Config;
use crate::ctx::Context;
use crate::dimension::SharedDimension;
use crate::dimension_label::LabelHandle;
use crate::domain::DomainHandle;
use crate::enumeration::EnumerationHandle;
use crate::enums::{array_type, data_order, datatype, layout};
use crate::error::{Failure, Result};
use crate::filter::FilterList;
use crate::ndrectangle::CurrentDomainHandle;
use crate::strings::{StringHandle, lock};
use azulejo::array::Snapshot;
use azulejo::storage::StorePath;
use azulejo_format::filter::{Filter, Pipeline};
use azulejo_format::path::LABELS_FOLDER;
use azulejo_format::schema::{
    ArraySchema, ArrayType, Attribute, CurrentDomain, Dimension, DimensionLabel, Domain,
    Enumeration, EnumerationRef, Layout, NewArray,
};
use azulejo_format::{CellValNum, Datatype, FormatVersion, Range};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// `tiledb_array_schema_t`; copies of the handle share it.
#[derive(Debug, Clone)]
pub struct SchemaHandle {
    state: Arc<Mutex<State>>,
}

/// A schema in the making, or that of an array.
#[derive(Debug)]
struct State {
    schema: Arc<ArraySchema>,
    /// The dimensions as handles on the domain share them: what is set through those counts.
    dimensions: Vec<SharedDimension>,
    /// The attributes as their handles share them: what is set through those counts.
    attributes: Vec<SharedAttribute>,
    /// Those that are there in memory; others are loaded from `array` when they are asked for.
    enumerations: Vec<Arc<Enumeration>>,
    label_filters: HashMap<String, Pipeline>,
    label_extents: HashMap<String, Vec<u8>>,
    /// When it was stored.
    time: (u64, u64),
    /// The name that it is stored under; empty if it is not.
    name: String,
    array: Option<Snapshot>,
    /// Where an array was last created with it.
    created: Option<StorePath>,
}

/// What a message says of a schema.
#[derive(Debug)]
pub struct SchemaContent {
    /// The schema.
    pub schema: Arc<ArraySchema>,
    /// The name that it is stored under; empty if it is not.
    pub name: String,
    /// When it was stored.
    pub time: (u64, u64),
    /// The URI of its array, if it has one.
    pub uri: Option<String>,
    /// The enumerations that are in memory.
    pub enumerations: Vec<Arc<Enumeration>>,
    /// The schemas of its labels' arrays, in the order of labels; none if the labels are stored.
    pub labels: Vec<ArraySchema>,
}

impl Kind for SchemaHandle {
    const NAME: &'static str = "array_schema";
}

impl SchemaHandle {
    /// A stored schema. Its dimensions have the filters of coordinates as their own where they were
    /// stored with none.
    fn stored(schema: &Arc<ArraySchema>, name: &str, array: &Snapshot) -> Self {
        let time = time_of(name);
        let inherits = schema
            .domain
            .dimensions
            .iter()
            .any(|d| d.filters.filters.is_empty());
        let schema = if inherits {
            Arc::new(schema.with_own_filters())
        } else {
            Arc::clone(schema)
        };
        let handle = Self::of(schema, time, Some(array.clone()));
        lock(&handle.state).name = name.to_owned();
        handle
    }

    fn of(schema: Arc<ArraySchema>, time: (u64, u64), array: Option<Snapshot>) -> Self {
        let state = State {
            dimensions: shared(&schema.domain),
            attributes: shared_attributes(&schema),
            schema,
            enumerations: Vec::new(),
            label_filters: HashMap::new(),
            label_extents: HashMap::new(),
            time,
            name: String::new(),
            array,
            created: None,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// The latest schema of an array.
    pub fn of_array(array: &Snapshot) -> Self {
        let schema = array.schema();
        let name = array
            .schemas()
            .iter()
            .find(|(_, other)| Arc::ptr_eq(other, schema))
            .map(|(name, _)| name.as_str());
        Self::stored(schema, name.unwrap_or_default(), array)
    }

    /// A schema that some fragment of an array was written with.
    pub fn of_fragment(schema: &Arc<ArraySchema>, name: &str, array: &Snapshot) -> Self {
        Self::stored(schema, name, array)
    }

    /// A dense schema of bytes along one dimension.
    pub fn of_bytes(dimension: &str, attribute: &str, extent: u64) -> Self {
        let handle = new_schema(ArrayType::Dense, 0);
        let mut state = lock(&handle.state);
        let schema = state.edit();
        schema.domain.dimensions.push(Dimension {
            name: dimension.into(),
            datatype: Datatype::UInt64,
            cell_val_num: CellValNum::ONE,
            filters: Pipeline::default(),
            domain: Some(Range::of(0, u64::MAX - extent - 1)),
            tile_extent: Some(extent.to_le_bytes().to_vec()),
        });
        schema
            .attributes
            .push(Attribute::new(attribute, Datatype::Blob, CellValNum::ONE));
        state.dimensions = shared(&state.schema.domain);
        state.attributes = shared_attributes(&state.schema);
        drop(state);
        handle
    }

    /// The schema as it is now.
    pub fn schema(&self) -> Arc<ArraySchema> {
        lock(&self.state).current()
    }

    /// What a message says of the schema.
    pub fn content(&self) -> SchemaContent {
        let mut state = lock(&self.state);
        let name = state.name.clone();
        let stored = state.array.is_some();
        let labels = if stored {
            Vec::new()
        } else {
            state.label_schemas()
        };
        SchemaContent {
            uri: (state.array.as_ref())
                .map(|array| array.uri().to_string())
                .filter(|uri| !uri.starts_with(crate::serialize::MESSAGE_SCHEME)),
            name,
            time: state.time,
            enumerations: state.enumerations.clone(),
            labels,
            schema: state.current(),
        }
    }

    /// A schema out of a message.
    pub fn of_content(content: SchemaContent) -> Self {
        let handle = Self::of(content.schema, content.time, None);
        let mut state = lock(&handle.state);
        state.name = content.name;
        state.enumerations = content.enumerations;
        let State {
            schema,
            label_filters,
            label_extents,
            ..
        } = &mut *state;
        for (label, stored) in schema.dimension_labels.iter().zip(content.labels) {
            if let Some(attribute) = stored.attributes.first() {
                label_filters.insert(label.name.clone(), attribute.filters.clone());
            }
            let extent = stored
                .domain
                .dimensions
                .first()
                .and_then(|d| d.tile_extent.clone());
            if let Some(extent) = extent {
                label_extents.insert(label.name.clone(), extent);
            }
        }
        drop(state);
        handle
    }

    /// Reads all enumerations that are not there yet.
    pub fn load_enumerations(&self) -> Result<()> {
        lock(&self.state).load_enumerations()
    }

    /// A handle on a label; its URI is whole if the array is known.
    fn label(&self, mut label: DimensionLabel) -> LabelHandle {
        let state = lock(&self.state);
        if let Some(array) = state
            .array
            .as_ref()
            .map(|array| &array.location().path)
            .or(state.created.as_ref())
            && label.relative
        {
            label.uri = array.join(&label.uri).to_string();
        }
        LabelHandle::new(label)
    }

    /// From now on labels are those of the array that was created there.
    pub fn set_created(&self, path: StorePath) {
        lock(&self.state).created = Some(path);
    }

    /// All that an array with this schema consists of.
    pub fn new_array(&self) -> Result<(NewArray, (u64, u64))> {
        let mut state = lock(&self.state);
        state.load_enumerations()?;
        let mut schema = ArraySchema::clone(&state.current());
        if schema.cell_order != Layout::Hilbert {
            for dimension in &mut schema.domain.dimensions {
                dimension.fill_tile_extent();
            }
        }
        set_picture_extents(&mut schema);
        let mut array = NewArray::from(schema);
        array.enumerations = state
            .enumerations
            .iter()
            .map(|e| Enumeration::clone(e))
            .collect();
        state.finish_labels(&mut array);
        Ok((array, state.time))
    }
}

/// Pictures are as large as tiles.
fn set_picture_extents(schema: &mut ArraySchema) {
    let extent = |index: usize| {
        let bytes = schema.domain.dimensions.get(index)?.tile_extent.as_ref()?;
        let mut wide = [0u8; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        u16::try_from(u64::from_le_bytes(wide)).ok()
    };
    let (Some(rows), Some(columns)) = (extent(0), extent(1)) else {
        return;
    };
    for filter in schema
        .attributes
        .iter_mut()
        .flat_map(|attribute| &mut attribute.filters.filters)
    {
        if let Filter::Webp {
            y_extent, x_extent, ..
        } = filter
        {
            (*y_extent, *x_extent) = (rows, columns);
        }
    }
}

/// The time in a schema's file name; the one file of old arrays has none.
fn time_of(name: &str) -> (u64, u64) {
    let mut numbers = name
        .trim_start_matches('_')
        .split('_')
        .map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Dimensions for handles to share.
fn shared(domain: &Domain) -> Vec<SharedDimension> {
    domain
        .dimensions
        .iter()
        .map(|dimension| Arc::new(Mutex::new(dimension.clone())))
        .collect()
}

/// Attributes for handles to share.
fn shared_attributes(schema: &ArraySchema) -> Vec<SharedAttribute> {
    let attributes = schema.attributes.iter();
    attributes
        .map(|attribute| Arc::new(Mutex::new(attribute.clone())))
        .collect()
}

impl State {
    /// The schema with its dimensions and attributes as they are now.
    fn current(&mut self) -> Arc<ArraySchema> {
        let dimensions: Vec<Dimension> = self.dimensions.iter().map(|d| lock(d).clone()).collect();
        if self.schema.domain.dimensions != dimensions {
            self.edit().domain.dimensions = dimensions;
        }
        let stored = &self.schema.attributes;
        let same = stored.len() == self.attributes.len()
            && (stored.iter().zip(&self.attributes)).all(|(stored, now)| *stored == *lock(now));
        if !same {
            let attributes = self.attributes.iter().map(|a| lock(a).clone()).collect();
            self.edit().attributes = attributes;
        }
        Arc::clone(&self.schema)
    }

    fn edit(&mut self) -> &mut ArraySchema {
        Arc::make_mut(&mut self.schema)
    }

    /// An enumeration of the schema, from memory or from the array.
    fn enumeration(&mut self, name: &str) -> Result<Arc<Enumeration>> {
        if let Some(found) = self.enumerations.iter().find(|e| e.name == name) {
            return Ok(Arc::clone(found));
        }
        let reference = self.schema.enumeration(name);
        let array = self.array.as_ref().filter(|_| reference.is_some());
        let Some(array) = array else {
            return Err(Failure::new(format!(
                "Unable to get enumeration: the schema has no enumeration '{name}'"
            )));
        };
        let found = array.enumeration(name)?;
        self.enumerations.push(Arc::clone(&found));
        Ok(found)
    }

    /// Gives the arrays of labels what was set on them.
    fn finish_labels(&self, array: &mut NewArray) {
        for (label, schema) in array
            .schema
            .dimension_labels
            .iter()
            .zip(&mut array.label_schemas)
        {
            if let Some(filters) = self.label_filters.get(&label.name)
                && let Some(attribute) = schema.attributes.first_mut()
            {
                attribute.filters = filters.clone();
            }
            if let Some(extent) = self.label_extents.get(&label.name)
                && let Some(dimension) = schema.domain.dimensions.first_mut()
            {
                dimension.tile_extent = Some(extent.clone());
            }
        }
    }

    /// The schemas of the labels' arrays.
    fn label_schemas(&mut self) -> Vec<ArraySchema> {
        let mut array = NewArray::from(ArraySchema::clone(&self.current()));
        self.finish_labels(&mut array);
        array.label_schemas
    }

    fn load_enumerations(&mut self) -> Result<()> {
        let names: Vec<String> = self
            .schema
            .enumerations
            .iter()
            .map(|e| e.name.clone())
            .collect();
        for name in names {
            self.enumeration(&name)?;
        }
        Ok(())
    }
}

/// The usual filters of coordinates and offsets.
fn zstd() -> Pipeline {
    Pipeline {
        filters: vec![Filter::Zstd { level: -1 }],
        ..Pipeline::default()
    }
}

fn new_schema(kind: ArrayType, timestamp: u64) -> SchemaHandle {
    let schema = ArraySchema {
        version: FormatVersion::CURRENT,
        array_type: kind,
        allows_dups: false,
        tile_order: Layout::RowMajor,
        cell_order: Layout::RowMajor,
        capacity: 10_000,
        coords_filters: zstd(),
        offsets_filters: zstd(),
        validity_filters: Pipeline {
            filters: vec![Filter::Rle { level: -1 }],
            ..Pipeline::default()
        },
        domain: Domain::default(),
        attributes: Vec::new(),
        dimension_labels: Vec::new(),
        enumerations: Vec::new(),
        current_domain: CurrentDomain::Empty,
    };
    SchemaHandle::of(Arc::new(schema), (timestamp, timestamp), None)
}

fn load(ctx: &Context, config: Option<&Config>, uri: &str) -> Result<SchemaHandle> {
    let settings = config.map(Config::settings);
    let engine = ctx.engine_with(settings.as_ref())?;
    // Only the schemas are looked at, and the latest counts whatever its time.
    Ok(SchemaHandle::of_array(
        &engine.array(uri).snapshot_to_write()?,
    ))
}

fn add_label(schema: &mut ArraySchema, index: u32, name: &str, order: i32, id: i32) -> Result<()> {
    let datatype = datatype(id)?;
    let fail = |why: &str| {
        Err(Failure::new(format!(
            "Cannot add dimension label '{name}'; {why}"
        )))
    };
    if schema.dimension(index as usize).is_none() {
        return fail("there is no such dimension");
    }
    let taken = schema.dimension_label(name).is_some() || schema.field(name).is_some();
    if taken {
        return fail("the name is used already");
    }
    let cell_val_num = if datatype == Datatype::StringAscii {
        CellValNum::Var
    } else {
        CellValNum::ONE
    };
    let internal = schema
        .dimension_labels
        .iter()
        .filter(|label| !label.external)
        .count();
    schema.dimension_labels.push(DimensionLabel {
        dimension: index,
        order: data_order(order)?,
        name: name.into(),
        relative: true,
        uri: format!("{LABELS_FOLDER}/l{internal}"),
        attribute: "label".into(),
        datatype,
        cell_val_num,
        external: false,
    });
    Ok(())
}

capi! {
    /// A schema without domain and attributes.
    fn tiledb_array_schema_alloc(ctx, id: i32, schema: Out<Ptr<SchemaHandle>>) {
        schema.give(new_schema(array_type(id)?, 0))?;
    }

    /// A schema that is to be stored with a given time.
    fn tiledb_array_schema_alloc_at_timestamp(ctx, id: i32, timestamp: u64, schema: Out<Ptr<SchemaHandle>>) {
        if timestamp == 0 {
            return Err("Cannot create array schema; the timestamp must not be 0".into());
        }
        schema.give(new_schema(array_type(id)?, timestamp))?;
    }

    /// Appends an attribute, which the schema shares.
    fn tiledb_array_schema_add_attribute(ctx, schema: In<SchemaHandle>, attr: In<AttributeHandle>) {
        let shared = attr.get()?.shared();
        let attribute = attr.get()?.attribute();
        if attribute.name.starts_with("__") {
            return Err("Cannot add attribute; Attribute names starting with '__' are reserved".into());
        }
        let mut state = lock(&schema.get()?.state);
        if let Some(name) = &attribute.enumeration
            && state.schema.enumeration(name).is_none()
        {
            return Err(Failure::new(format!(
                "Cannot add attribute; Attribute refers to an unknown enumeration: '{name}'"
            )));
        }
        state.edit().attributes.push(attribute);
        state.attributes.push(shared);
    }

    /// Sets whether cells may share coordinates (sparse arrays).
    fn tiledb_array_schema_set_allows_dups(ctx, schema: In<SchemaHandle>, allows: i32) {
        let mut state = lock(&schema.get()?.state);
        if allows != 0 && state.schema.is_dense() {
            return Err("Dense arrays cannot allow coordinate duplicates".into());
        }
        state.edit().allows_dups = allows != 0;
    }

    /// Whether cells may share coordinates.
    fn tiledb_array_schema_get_allows_dups(ctx, schema: In<SchemaHandle>, allows: Out<i32>) {
        allows.set(schema.get()?.schema().allows_dups.into())?;
    }

    /// The version of the format.
    fn tiledb_array_schema_get_version(ctx, schema: In<SchemaHandle>, version: Out<u32>) {
        version.set(schema.get()?.schema().version.number())?;
    }

    /// Sets the domain, with which the schema shares dimensions.
    fn tiledb_array_schema_set_domain(ctx, schema: In<SchemaHandle>, domain: In<DomainHandle>) {
        let (domain, dimensions) = (domain.get()?.domain(), domain.get()?.shared());
        if domain.dimensions.is_empty() {
            return Err("Cannot set domain; Domain has 0 dimensions".into());
        }
        let mut state = lock(&schema.get()?.state);
        if state.schema.is_dense() {
            let first = domain.dimensions.first().map(|d| d.datatype);
            if domain.dimensions.iter().any(|d| Some(d.datatype) != first) {
                return Err("Cannot set domain; In dense arrays, all dimensions must have the same datatype".into());
            }
            if first.is_some_and(|datatype| {
                !(datatype.is_integer() || datatype.is_datetime() || datatype.is_time())
            }) {
                return Err("Cannot set domain; Dense arrays do not support dimension datatype of this kind".into());
            }
        }
        // Without a tile extent a tile spans the domain, which those who hold the dimensions see.
        if state.schema.cell_order != Layout::Hilbert {
            dimensions.iter().for_each(|dimension| lock(dimension).fill_tile_extent());
        }
        state.edit().domain = Domain { dimensions: dimensions.iter().map(|d| lock(d).clone()).collect() };
        state.dimensions = dimensions;
    }

    /// A handle on the domain.
    fn tiledb_array_schema_get_domain(ctx, schema: In<SchemaHandle>, domain: Out<Ptr<DomainHandle>>) {
        domain.give(DomainHandle::of(lock(&schema.get()?.state).dimensions.clone()))?;
    }

    /// Sets the number of cells in a tile of a sparse array.
    fn tiledb_array_schema_set_capacity(ctx, schema: In<SchemaHandle>, capacity: u64) {
        let mut state = lock(&schema.get()?.state);
        if capacity == 0 && !state.schema.is_dense() {
            return Err("Sparse arrays cannot have their capacity equal to zero.".into());
        }
        state.edit().capacity = capacity;
    }

    /// The number of cells in a tile of a sparse array.
    fn tiledb_array_schema_get_capacity(ctx, schema: In<SchemaHandle>, capacity: Out<u64>) {
        capacity.set(schema.get()?.schema().capacity)?;
    }

    /// Sets the order of cells in tiles.
    fn tiledb_array_schema_set_cell_order(ctx, schema: In<SchemaHandle>, id: i32) {
        let mut state = lock(&schema.get()?.state);
        let order = layout(id)?;
        if order == Layout::Hilbert && state.schema.is_dense() {
            return Err("Cannot set cell order; Hilbert order is only applicable to sparse arrays".into());
        }
        if order == Layout::Unordered {
            return Err("Cannot set cell order; Cannot create arrays with unordered cells".into());
        }
        state.edit().cell_order = order;
    }

    /// The order of cells in tiles.
    fn tiledb_array_schema_get_cell_order(ctx, schema: In<SchemaHandle>, order: Out<i32>) {
        order.set(schema.get()?.schema().cell_order as i32)?;
    }

    /// Sets the order of tiles.
    fn tiledb_array_schema_set_tile_order(ctx, schema: In<SchemaHandle>, id: i32) {
        let mut state = lock(&schema.get()?.state);
        let order = layout(id)?;
        if !matches!(order, Layout::RowMajor | Layout::ColMajor) {
            return Err(match order {
                Layout::Hilbert => "Cannot set tile order; Hilbert order is not applicable to tiles".into(),
                _ => "Cannot set tile order; it must be row-major or column-major".into(),
            });
        }
        state.edit().tile_order = order;
    }

    /// The order of tiles.
    fn tiledb_array_schema_get_tile_order(ctx, schema: In<SchemaHandle>, order: Out<i32>) {
        order.set(schema.get()?.schema().tile_order as i32)?;
    }

    /// Sets the filters of coordinates whose dimensions have none.
    fn tiledb_array_schema_set_coords_filter_list(ctx, schema: In<SchemaHandle>, list: In<FilterList>) {
        let filters = list.get()?.pipeline();
        let mut state = lock(&schema.get()?.state);
        let edited = state.edit();
        for dimension in edited.domain.dimensions.iter().filter(|d| d.is_var() && d.filters.filters.is_empty()) {
            filters.check(dimension.datatype, dimension.cell_val_num).map_err(|e| Failure::new(e.to_string()))?;
        }
        edited.coords_filters = filters;
    }

    /// Sets the filters of offsets of var-length cells.
    fn tiledb_array_schema_set_offsets_filter_list(ctx, schema: In<SchemaHandle>, list: In<FilterList>) {
        let filters = list.get()?.pipeline();
        lock(&schema.get()?.state).edit().offsets_filters = filters;
    }

    /// Sets the filters of validity bytes.
    fn tiledb_array_schema_set_validity_filter_list(ctx, schema: In<SchemaHandle>, list: In<FilterList>) {
        let filters = list.get()?.pipeline();
        lock(&schema.get()?.state).edit().validity_filters = filters;
    }

    /// A copy of the filters of coordinates.
    fn tiledb_array_schema_get_coords_filter_list(ctx, schema: In<SchemaHandle>, list: Out<Ptr<FilterList>>) {
        list.give(FilterList::new(schema.get()?.schema().coords_filters.clone()))?;
    }

    /// A copy of the filters of offsets.
    fn tiledb_array_schema_get_offsets_filter_list(ctx, schema: In<SchemaHandle>, list: Out<Ptr<FilterList>>) {
        list.give(FilterList::new(schema.get()?.schema().offsets_filters.clone()))?;
    }

    /// A copy of the filters of validity bytes.
    fn tiledb_array_schema_get_validity_filter_list(ctx, schema: In<SchemaHandle>, list: Out<Ptr<FilterList>>) {
        list.give(FilterList::new(schema.get()?.schema().validity_filters.clone()))?;
    }

    /// Whether an array can have this schema; the error says why not.
    fn tiledb_array_schema_check(ctx, schema: In<SchemaHandle>) {
        let schema = schema.get()?;
        let (mut array, _) = schema.new_array()?;
        // The reference lets dense schemas pass that have this order. None is stored.
        if array.schema.is_dense() && array.schema.cell_order == Layout::Global {
            array.schema.cell_order = Layout::RowMajor;
        }
        if let Err(error) = array.check() {
            return Err(Failure::new(format!("Array schema check failed; {error}")));
        }
        // What the check fills in are tile extents; dimensions without filters keep having none.
        let mut state = lock(&schema.state);
        for (mine, checked) in state.dimensions.iter_mut().zip(array.schema.domain.dimensions) {
            lock(mine).tile_extent = checked.tile_extent;
        }
        state.current();
    }

    /// Dense or sparse.
    fn tiledb_array_schema_get_array_type(ctx, schema: In<SchemaHandle>, id: Out<i32>) {
        id.set(i32::from(!schema.get()?.schema().is_dense()))?;
    }

    /// The number of attributes.
    fn tiledb_array_schema_get_attribute_num(ctx, schema: In<SchemaHandle>, num: Out<u32>) {
        num.set(u32::try_from(schema.get()?.schema().attributes.len()).unwrap_or(u32::MAX))?;
    }

    /// A handle on an attribute.
    fn tiledb_array_schema_get_attribute_from_index(ctx, schema: In<SchemaHandle>, index: u32, attr: Out<Ptr<AttributeHandle>>) {
        let state = lock(&schema.get()?.state);
        let count = state.attributes.len();
        // The reference hands out nothing and is content where there are no attributes.
        if count == 0 {
            return Ok(());
        }
        let found = state.attributes.get(index as usize).map(Arc::clone);
        let found = found.ok_or_else(|| Failure::new(format!(
            "Attribute index: {index} out of bounds given {count} attributes in array"
        )))?;
        attr.give(AttributeHandle::new(found))?;
    }

    /// A handle on an attribute.
    fn tiledb_array_schema_get_attribute_from_name(ctx, schema: In<SchemaHandle>, name: Text, attr: Out<Ptr<AttributeHandle>>) {
        let (state, name) = (lock(&schema.get()?.state), name.get()?);
        if state.attributes.is_empty() {
            return Ok(());
        }
        let found = state.attributes.iter().find(|attribute| lock(attribute).name == name).map(Arc::clone);
        let found = found.ok_or_else(|| Failure::new(format!("Attribute name: {name} does not exist for array")))?;
        attr.give(AttributeHandle::new(found))?;
    }

    /// Whether there is an attribute of this name.
    fn tiledb_array_schema_has_attribute(ctx, schema: In<SchemaHandle>, name: Text, has: Out<i32>) {
        let (schema, name) = (schema.get()?.schema(), name.get()?);
        has.set(schema.attributes.iter().any(|a| a.name == name).into())?;
    }

    /// The schema of an array.
    fn tiledb_array_schema_load(ctx, uri: Text, schema: Out<Ptr<SchemaHandle>>) {
        schema.give(load(ctx, None, uri.get()?)?)?;
    }

    /// The schema of an array, opened with settings of its own.
    fn tiledb_array_schema_load_with_config(ctx, config: In<Config>, uri: Text, schema: Out<Ptr<SchemaHandle>>) {
        schema.give(load(ctx, config.opt()?, uri.get()?)?)?;
    }

    /// The time in milliseconds that the schema was stored with.
    fn tiledb_array_schema_timestamp_range(ctx, schema: In<SchemaHandle>, lo: Out<u64>, hi: Out<u64>) {
        let time = lock(&schema.get()?.state).time;
        lo.set(time.0)?;
        hi.set(time.1)?;
    }

    /// The schema as text for people.
    fn tiledb_array_schema_dump_str(ctx, schema: In<SchemaHandle>, out: Out<Ptr<StringHandle>>) {
        let mut state = lock(&schema.get()?.state);
        state.load_enumerations()?;
        out.give(StringHandle::new(crate::dump::schema(&state.current(), &state.enumerations)))?;
    }

    /// The schema as text for people, to a `FILE*`. A name that libtiledb had until 2.29.
    fn tiledb_array_schema_dump(ctx, schema: In<SchemaHandle>, out: Opaque) {
        let mut state = lock(&schema.get()?.state);
        state.load_enumerations()?;
        out.put_text(&crate::dump::schema(&state.current(), &state.enumerations))?;
    }

    /// Adds an enumeration, which attributes may then refer to.
    fn tiledb_array_schema_add_enumeration(ctx, schema: In<SchemaHandle>, enumeration: In<EnumerationHandle>) {
        let enumeration = enumeration.get()?.enumeration();
        let mut state = lock(&schema.get()?.state);
        if state.schema.enumeration(&enumeration.name).is_some() {
            return Err(Failure::new(format!(
                "Error adding enumeration: Enumeration with name '{}' already exists in this ArraySchema.",
                enumeration.name
            )));
        }
        let reference = EnumerationRef { name: enumeration.name.clone(), file_name: enumeration.file_name.clone() };
        state.edit().enumerations.push(reference);
        state.enumerations.push(Arc::clone(enumeration));
    }

    /// An enumeration; it is read if it has not been.
    fn tiledb_array_schema_get_enumeration_from_name(
        ctx, schema: In<SchemaHandle>, name: Text, enumeration: Out<Ptr<EnumerationHandle>>
    ) {
        let found = lock(&schema.get()?.state).enumeration(name.get()?)?;
        enumeration.give(EnumerationHandle::new(found))?;
    }

    /// The enumeration of an attribute; null if it has none.
    fn tiledb_array_schema_get_enumeration_from_attribute_name(
        ctx, schema: In<SchemaHandle>, name: Text, enumeration: Out<Ptr<EnumerationHandle>>
    ) {
        let mut state = lock(&schema.get()?.state);
        let name = name.get()?;
        let attribute = state.attributes.iter().find(|attribute| lock(attribute).name == name).cloned();
        let Some(attribute) = attribute else {
            return Err(Failure::new(format!("Attribute name: {name} does not exist for array")));
        };
        let enumeration_name = lock(&attribute).enumeration.clone();
        match enumeration_name {
            Some(of) => enumeration.give(EnumerationHandle::new(state.enumeration(&of)?))?,
            None => enumeration.set(Ptr::default())?,
        }
    }

    /// Sets the current domain: a copy.
    fn tiledb_array_schema_set_current_domain(ctx, schema: In<SchemaHandle>, current: In<CurrentDomainHandle>) {
        let current = current.get()?.current_domain()?;
        let mut state = lock(&schema.get()?.state);
        let mut next = ArraySchema::clone(&state.schema);
        next.current_domain = current;
        *state.edit() = next;
    }

    /// A copy of the current domain.
    fn tiledb_array_schema_get_current_domain(ctx, schema: In<SchemaHandle>, current: Out<Ptr<CurrentDomainHandle>>) {
        let schema = schema.get()?.schema();
        current.give(CurrentDomainHandle::new(&schema.domain, &schema.current_domain))?;
    }

    /// Adds a label to a dimension.
    fn tiledb_array_schema_add_dimension_label(ctx, schema: In<SchemaHandle>, index: u32, name: Text, order: i32, id: i32) {
        add_label(lock(&schema.get()?.state).edit(), index, name.get()?, order, id)?;
    }

    /// The number of dimension labels.
    fn tiledb_array_schema_get_dimension_label_num(ctx, schema: In<SchemaHandle>, num: Out<u64>) {
        num.set(schema.get()?.schema().dimension_labels.len() as u64)?;
    }

    /// Whether there is a dimension label of this name.
    fn tiledb_array_schema_has_dimension_label(ctx, schema: In<SchemaHandle>, name: Text, has: Out<i32>) {
        has.set(schema.get()?.schema().dimension_label(name.get()?).is_some().into())?;
    }

    /// A copy of a dimension label.
    fn tiledb_array_schema_get_dimension_label_from_name(
        ctx, schema: In<SchemaHandle>, name: Text, label: Out<Ptr<LabelHandle>>
    ) {
        let (handle, name) = (schema.get()?, name.get()?);
        let schema = handle.schema();
        let found = schema.dimension_label(name).cloned();
        let found = found.ok_or_else(|| Failure::new(format!("there is no dimension label '{name}'")))?;
        label.give(handle.label(found))?;
    }

    /// A copy of a dimension label.
    fn tiledb_array_schema_get_dimension_label_from_index(
        ctx, schema: In<SchemaHandle>, index: u64, label: Out<Ptr<LabelHandle>>
    ) {
        let handle = schema.get()?;
        let schema = handle.schema();
        let found = usize::try_from(index).ok().and_then(|index| schema.dimension_labels.get(index)).cloned();
        let found = found.ok_or_else(|| Failure::new(format!("there is no dimension label {index}")))?;
        label.give(handle.label(found))?;
    }

    /// Sets the filters of a label's values.
    fn tiledb_array_schema_set_dimension_label_filter_list(ctx, schema: In<SchemaHandle>, name: Text, list: In<FilterList>) {
        let (filters, name) = (list.get()?.pipeline(), name.get()?);
        let mut state = lock(&schema.get()?.state);
        if state.schema.dimension_label(name).is_none() {
            return Err(Failure::new(format!("there is no dimension label '{name}'")));
        }
        state.label_filters.insert(name.into(), filters);
    }

    /// Sets the tile extent of a label's array.
    fn tiledb_array_schema_set_dimension_label_tile_extent(
        ctx, schema: In<SchemaHandle>, name: Text, id: i32, extent: Bytes
    ) {
        let (datatype, name) = (datatype(id)?, name.get()?);
        let mut state = lock(&schema.get()?.state);
        let labelled = state.schema.dimension_label(name).and_then(|l| state.schema.dimension(l.dimension as usize));
        let Some(dimension) = labelled else {
            return Err(Failure::new(format!("there is no dimension label '{name}'")));
        };
        if dimension.datatype != datatype {
            return Err(Failure::new(format!("the tile extent of label '{name}' must be of type {}", dimension.datatype)));
        }
        let extent = extent.get(datatype.size())?.to_vec();
        state.label_extents.insert(name.into(), extent);
    }
}

capi_free! {
    fn tiledb_array_schema_free(SchemaHandle);
}

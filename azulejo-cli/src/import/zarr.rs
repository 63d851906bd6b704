//! A store of Zarr as arrays: laid out as `ds.azulejo.to(..)` lays out a dataset in Python, so that
//! xarray sees the same through either. A group becomes a group whose members are its variables.

use super::filters;
use crate::error::{CliError, Result};
use crate::interrupt;
use crate::session::Session;
use crate::zarr::{ArrayMetadata, Boxes, Cells, ChunkStore, FilledBox, Group, Node, ZarrError};
use arrow_buffer::Buffer;
use azulejo::column::{ColumnBuffers, ColumnBuilder, ColumnSet, ColumnType};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{ArraySchema, Attribute, Dimension, NewArray};
use azulejo::format::{CellValNum, Datatype, NdRectangle, Range};
use azulejo::group::{NewMember, ObjectType};
use azulejo::write::{WriteLayout, WriteOptions};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};

/// What keys of variables begin with.
const ATTRIBUTE: &str = "__tiledb_attr.";
/// The dimension of a variable that has none.
const SCALAR: &str = "__scalar";
/// The key of a variable whose member has another name.
const NAME: &str = "__azulejo_name";
/// The key that names dimensions without coordinates.
const EMPTY_DIMS: &str = "__azulejo_empty_dims";
/// Cells of chunks that are not there, and have to be written, are no more than this many bytes.
const MOST_FILL: u64 = 64 << 30;

/// A variable to be made.
#[derive(Debug)]
pub struct Variable {
    /// Where it lies below the whole; empty for an array that is the whole.
    pub path: String,
    /// The array.
    pub array: NewArray,
    keys: Vec<(String, MetadataValue)>,
    source: ArrayMetadata,
    folder: PathBuf,
}

/// What is made of a store.
#[derive(Debug, Default)]
pub struct Plan {
    /// Groups by their paths, those above first, with their keys.
    groups: Vec<(String, Vec<(String, MetadataValue)>)>,
    /// Variables.
    pub variables: Vec<Variable>,
    /// What is said before.
    pub notes: Vec<String>,
}

/// What a store becomes; `name` is that of an array that is no member of a group.
pub fn plan(node: Node, name: &str) -> Result<Plan> {
    let mut plan = Plan::default();
    match node {
        Node::Array(source, folder) => {
            let about = |e: CliError| of(&folder, e);
            let variable = plan.variable(String::new(), name, *source, &folder);
            let variable = variable.map_err(about)?;
            plan.variables.push(variable);
        }
        Node::Group(group) => plan.group("", group)?,
    }
    Ok(plan)
}

fn of(folder: &Path, error: CliError) -> CliError {
    match error {
        CliError::Engine(e) => CliError::Format(format!("{}: {e}", folder.display())),
        other => other,
    }
}

impl From<ZarrError> for CliError {
    fn from(error: ZarrError) -> Self {
        Self::Format(error.0)
    }
}

impl Plan {
    fn group(&mut self, path: &str, group: Group) -> Result<()> {
        let keys = group.attributes.iter();
        let keys = keys.filter_map(|(key, value)| Some((key.clone(), stored(value)?)));
        let keys = keys.collect();
        self.groups.push((path.to_owned(), keys));
        for (name, node) in group.members {
            let member = member_name(&name);
            let below = match path.is_empty() {
                true => member,
                false => format!("{path}/{member}"),
            };
            match node {
                Node::Group(group) => self.group(&below, group)?,
                Node::Array(source, folder) => {
                    let variable = self.variable(below, &name, *source, &folder);
                    self.variables.push(variable.map_err(|e| of(&folder, e))?);
                }
            }
        }
        Ok(())
    }

    fn variable(
        &mut self,
        path: String,
        name: &str,
        source: ArrayMetadata,
        folder: &Path,
    ) -> Result<Variable> {
        let axes = source.shape.len();
        let dims = match &source.dims {
            Some(dims) => dims.clone(),
            None if path.is_empty() => (0..axes).map(|at| format!("dim_{at}")).collect(),
            None => (0..axes).map(|at| format!("{name}_dim_{at}")).collect(),
        };
        let member = member_name(name);
        let attribute = match dims.iter().any(|dim| dim == name) {
            true => format!("{name}_"),
            false => member.clone(),
        };
        let (datatype, cell_val_num) = source.element.cell();
        let mut keys = Vec::new();
        let mut fill = None;
        for (key, value) in &source.attributes {
            let own = format!("{ATTRIBUTE}{attribute}.{key}");
            if key == "_FillValue" {
                fill = fill_of(&source, value);
                if fill.is_none() {
                    self.notes.push(format!(
                        "{name:?}: the fill value {value} is none of its type, and left out"
                    ));
                }
                continue;
            }
            match stored(value) {
                Some(value) => keys.push((own, value)),
                None => self
                    .notes
                    .push(format!("{name:?}: {key:?} has no value, and is left out")),
            }
        }
        // In version 2 the store's own fill value is what xarray takes for missing.
        if source.version == 2 && fill.is_none() && cell_val_num == CellValNum::ONE {
            fill.clone_from(&source.fill);
        }
        if let Some(fill) = fill.as_ref() {
            let datatype = match cell_val_num {
                CellValNum::ONE => datatype,
                _ => Datatype::StringUtf8,
            };
            let key = format!("{ATTRIBUTE}{attribute}._FillValue");
            keys.push((key, MetadataValue::new(datatype, fill.clone())));
        }
        if member != name && !path.is_empty() {
            keys.push((
                NAME.to_owned(),
                MetadataValue::new(Datatype::StringUtf8, name),
            ));
        }
        let empty = dims
            .iter()
            .zip(&source.shape)
            .filter(|(_, size)| **size == 0);
        let empty: Vec<&str> = empty.map(|(dim, _)| dim.as_str()).collect();
        if !empty.is_empty() {
            let names = MetadataValue::new(Datatype::StringUtf8, empty.join(";"));
            keys.push((EMPTY_DIMS.to_owned(), names));
        }
        let mut builder = ArraySchema::dense().offsets_filters(filters::chosen_offsets());
        let mut current = Vec::new();
        for ((dim, size), chunk) in dims.iter().zip(&source.shape).zip(&source.chunk) {
            let extent = (*chunk).min((*size).max(1));
            let extent = i64::try_from(extent)
                .map_err(|_| CliError::Format(format!("{name:?} is too long")))?;
            let dimension = Dimension::new(dim.as_str(), 0i64..=i64::MAX - 2 * extent);
            builder = builder.dimension_with(dimension.tile_extent(extent));
            current.push(Range::of(0i64, (*size).max(1) as i64 - 1));
        }
        if dims.is_empty() {
            builder = builder.dimension_with(Dimension::new(SCALAR, 0i64..=0).tile_extent(1i64));
            current.push(Range::of(0i64, 0i64));
        }
        let mut own = Attribute::new(attribute.as_str(), datatype, cell_val_num)
            .filters(filters::chosen(datatype, cell_val_num));
        if cell_val_num == CellValNum::ONE
            && let Some(fill) = fill
        {
            own = own.fill_value(fill);
        }
        let array = builder.attribute_with(own).current_domain(current).build();
        let array = array.map_err(|e| CliError::Format(format!("{}: {e}", folder.display())))?;
        Ok(Variable {
            path,
            array,
            keys,
            source,
            folder: folder.to_owned(),
        })
    }
}

/// The name of a member: two underscores at the beginning are TileDB's own.
fn member_name(name: &str) -> String {
    match name.starts_with("__") {
        true => format!("v{name}"),
        false => name.to_owned(),
    }
}

/// A fill value as xarray writes it: that of reals as the bytes of one of eight.
fn fill_of(source: &ArrayMetadata, json: &Json) -> Option<Vec<u8>> {
    let (datatype, _) = source.element.cell();
    if let Json::String(text) = json
        && datatype.is_real()
        && let Some(bytes) = unbase64(text)
    {
        let value = match bytes[..] {
            [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).into(),
            _ => return source.element.value(json),
        };
        return Some(match datatype {
            Datatype::Float32 => (value as f32).to_le_bytes().to_vec(),
            _ => value.to_le_bytes().to_vec(),
        });
    }
    source.element.value(json)
}

/// The bytes that base64 stands for.
fn unbase64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let (mut bits, mut held, mut out) = (0u32, 0, Vec::new());
    for byte in text.trim_end_matches('=').bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    Some(out)
}

/// A value of JSON as a key's: text, numbers and rows of numbers as they are, rows of text joined,
/// everything else as JSON's text. `None` for null.
fn stored(json: &Json) -> Option<MetadataValue> {
    let text = |text: &str| MetadataValue::new(Datatype::StringUtf8, text);
    let items = match json {
        Json::Null => return None,
        Json::String(own) => return Some(text(own)),
        Json::Array(items) if !items.is_empty() => items.as_slice(),
        Json::Array(_) | Json::Object(_) => return Some(text(&json.to_string())),
        one => std::slice::from_ref(one),
    };
    let texts: Option<Vec<&str>> = items.iter().map(Json::as_str).collect();
    if let Some(texts) = texts {
        return Some(text(&texts.join(";")));
    }
    let bools: Option<Vec<u8>> = items.iter().map(|i| i.as_bool().map(u8::from)).collect();
    if let Some(bools) = bools {
        return Some(MetadataValue::new(Datatype::Bool, bools));
    }
    let whole: Option<Vec<i64>> = items.iter().map(Json::as_i64).collect();
    if let Some(whole) = whole {
        let bytes: Vec<u8> = whole.iter().flat_map(|n| n.to_le_bytes()).collect();
        return Some(MetadataValue::new(Datatype::Int64, bytes));
    }
    let whole: Option<Vec<u64>> = items.iter().map(Json::as_u64).collect();
    if let Some(whole) = whole {
        let bytes: Vec<u8> = whole.iter().flat_map(|n| n.to_le_bytes()).collect();
        return Some(MetadataValue::new(Datatype::UInt64, bytes));
    }
    let reals: Option<Vec<f64>> = items.iter().map(Json::as_f64).collect();
    if let Some(reals) = reals {
        let bytes: Vec<u8> = reals.iter().flat_map(|n| n.to_le_bytes()).collect();
        return Some(MetadataValue::new(Datatype::Float64, bytes));
    }
    Some(text(&json.to_string()))
}

/// Makes the arrays; the number of cells. Of what it has begun the caller deletes what is left.
pub fn make(session: &Session, plan: &Plan, uri: &str, at: Option<u64>) -> Result<u64> {
    let root = uri.trim_end_matches('/');
    let place = |path: &str| match path.is_empty() {
        true => root.to_owned(),
        false => format!("{root}/{path}"),
    };
    for (path, keys) in &plan.groups {
        let group = session.context.group(&place(path));
        group.create()?;
        if !keys.is_empty() {
            let mut writer = group.change_metadata()?;
            for (key, value) in keys {
                writer.put(key.as_str(), value.clone())?;
            }
            writer.commit()?;
        }
    }
    let total: u64 = plan
        .variables
        .iter()
        .map(Variable::cells)
        .fold(0, u64::saturating_add);
    let progress = session.progress(Some(total));
    let mut done = 0;
    for variable in &plan.variables {
        let array = session.context.array(&place(&variable.path));
        match at {
            Some(at) => array.create_at(variable.array.clone(), at)?,
            None => array.create(variable.array.clone())?,
        }
        if !variable.keys.is_empty() {
            let mut writer = array.change_metadata()?;
            if let Some(at) = at {
                writer = writer.at(at);
            }
            for (key, value) in &variable.keys {
                writer.put(key.as_str(), value.clone())?;
            }
            writer.commit()?;
        }
        let before = done;
        variable.write(session, &place(&variable.path), at, &mut |cells| {
            done += cells;
            progress.advance(done, done, "importing");
        })?;
        done = before + variable.cells();
    }
    // What is no member of a group is no part of it: all of it appears now, from below upwards.
    let groups = plan
        .groups
        .iter()
        .map(|(path, _)| (path, ObjectType::Group));
    let arrays = plan.variables.iter().map(|v| (&v.path, ObjectType::Array));
    let members: Vec<(&String, ObjectType)> = groups.chain(arrays).collect();
    for (path, _) in plan.groups.iter().rev() {
        let mut edit = session.context.group(&place(path)).edit()?;
        for (member, kind) in &members {
            let (above, name) = member.rsplit_once('/').unwrap_or(("", member));
            if above == path && !name.is_empty() {
                edit.add(NewMember::relative(name).named(name).typed(*kind))?;
            }
        }
        edit.commit()?;
    }
    Ok(total)
}

impl Variable {
    /// The number of its cells.
    pub fn cells(&self) -> u64 {
        self.source.shape.iter().product()
    }

    /// Checks what can be known before anything is written.
    pub fn check(&self, session: &Session) -> Result<()> {
        self.in_store(|| {
            let store = ChunkStore::new(&self.source, &self.folder, budget(session))?;
            if self.may_be_left_out() {
                return Ok(());
            }
            let there = store.files()?.saturating_mul(store.chunks_of_a_file());
            let chunks = self.source.chunk_counts().iter().product::<u64>();
            let missing = u128::from(chunks.saturating_sub(there));
            let bytes = missing * u128::from(self.source.chunk_cells()) * 8;
            match bytes > u128::from(MOST_FILL) {
                true => Err(ZarrError::new(format!(
                    "{missing} of its {chunks} chunks are not there, and would have to be written"
                ))),
                false => Ok(()),
            }
        })
    }

    fn in_store<R>(&self, work: impl FnOnce() -> crate::zarr::Result<R>) -> Result<R> {
        Ok(work().map_err(|e| e.of(self.folder.display()))?)
    }

    /// What cells of missing chunks hold: zeros where the store does not say.
    fn missing(&self) -> Vec<u8> {
        let (datatype, cell_val_num) = self.source.element.cell();
        match (&self.source.fill, cell_val_num) {
            (Some(fill), _) => fill.clone(),
            (None, CellValNum::Var) => Vec::new(),
            (None, _) => vec![0; datatype.size()],
        }
    }

    /// Whether cells that are not written read as those of missing chunks should.
    fn may_be_left_out(&self) -> bool {
        let own = self.array.schema.attributes.first();
        !self.source.element.is_var() && own.is_some_and(|a| a.fill_value == self.missing())
    }

    fn write(
        &self,
        session: &Session,
        uri: &str,
        at: Option<u64>,
        done: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let store =
            self.in_store(|| ChunkStore::new(&self.source, &self.folder, budget(session)))?;
        let (datatype, cell_val_num) = self.source.element.cell();
        let fill = self.missing();
        let schema = &self.array.schema;
        let name = schema.attributes.first().map_or("", |a| a.name.as_str());
        let column_type = ColumnType::new(name, datatype).with_cell_val_num(cell_val_num);
        let options = match at {
            Some(at) => WriteOptions::new().timestamp(at),
            None => WriteOptions::new(),
        };
        let options = options.layout(WriteLayout::Row);
        let mut writer = session.context.array(uri).writer(options)?;
        let counts = self.source.chunk_counts();
        let threads = session.context.threads();
        for sides in Boxes::new(&counts, store.most_chunks()) {
            interrupt::check()?;
            let read = || store.read(&sides, &fill, threads);
            let found = self.in_store(|| session.context.install(read))?;
            let (bounds, cells) = match found {
                Some(found) => found,
                // Cells that nobody wrote read as the fill value anyway.
                None if self.may_be_left_out() => continue,
                None => self.nothing(&sides, &fill),
            };
            let set = column(column_type.clone(), cells);
            let number = set.cell_num as u64;
            let mut ranges: Vec<Range> = bounds
                .iter()
                .map(|(low, size)| Range::of(*low as i64, (low + size - 1) as i64))
                .collect();
            if ranges.is_empty() {
                ranges.push(Range::of(0i64, 0i64));
            }
            writer.write_box(&NdRectangle { ranges }, &set)?;
            done(number);
        }
        writer.finish()?;
        Ok(())
    }

    /// A box of which no chunk is there.
    fn nothing(&self, sides: &[(u64, u64)], fill: &[u8]) -> FilledBox {
        let axes = sides.iter().zip(&self.source.chunk).zip(&self.source.shape);
        let bounds: Vec<(u64, u64)> = axes
            .map(|(((first, count), chunk), size)| {
                (first * chunk, (count * chunk).min(size - first * chunk))
            })
            .collect();
        let cells = bounds.iter().map(|(_, n)| *n as usize).product();
        let cells = match self.source.element.is_var() {
            true => Cells::Var(vec![fill.to_vec(); cells]),
            false => Cells::Fixed(fill.repeat(cells)),
        };
        (bounds, cells)
    }
}

/// Bytes for the cells of a box.
fn budget(session: &Session) -> u64 {
    (session.context.config().memory_budget / 4).max(1)
}

fn column(column_type: ColumnType, cells: Cells) -> ColumnSet {
    let column = match cells {
        Cells::Fixed(data) => ColumnBuffers {
            cell_num: data.len() / column_type.cell_size().max(1),
            column_type,
            data: Buffer::from_vec(data),
            offsets: None,
            validity: None,
        },
        Cells::Var(texts) => {
            let bytes = texts.iter().map(Vec::len).sum();
            let mut builder = ColumnBuilder::with_capacity(column_type, texts.len(), bytes);
            for text in &texts {
                builder.append_cell(text, true);
            }
            builder.finish()
        }
    };
    ColumnSet {
        cell_num: column.cell_num,
        columns: vec![column],
    }
}

/// Deletes what lies in a folder, made for the members of a group or left of it.
pub fn clear(session: &Session, uri: &str) -> Result<()> {
    let object = session.context.object(uri);
    for entry in object.list()? {
        clear(
            session,
            &format!("{}/{}", uri.trim_end_matches('/'), entry.name),
        )?;
    }
    if object.object_type()?.is_some() {
        object.delete(false)?;
    }
    Ok(())
}

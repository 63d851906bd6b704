//! A store of Zarr as arrays: laid out as `ds.azulejo.to(..)` lays out a dataset in Python, so that
//! xarray sees the same through either. A group becomes a group whose members are its variables.

use super::dataset::{
    ATTRIBUTE, CellSource, EMPTY_DIMS, MOST_FILL, NAME, Plan, PutBox, SCALAR, Variable, budget,
    fixed_column, member_name,
};
use crate::error::{CliError, FileError, Result};
use crate::interrupt;
use crate::session::Session;
use crate::zarr::{ArrayMetadata, Boxes, Cells, ChunkStore, FilledBox, Group, Node, unbase64};
use azulejo::column::{ColumnBuilder, ColumnSet, ColumnType};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{ArraySchema, Attribute, Dimension};
use azulejo::format::{CellValNum, Datatype, Range};
use azulejo::write::optimize::{usual_filters, usual_offsets_filters};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};

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
        let mut builder = ArraySchema::dense().offsets_filters(usual_offsets_filters());
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
            .filters(usual_filters(datatype, cell_val_num));
        if cell_val_num == CellValNum::ONE
            && let Some(fill) = fill
        {
            own = own.fill_value(fill);
        }
        let array = builder.attribute_with(own).current_domain(current).build();
        let array = array.map_err(|e| CliError::Format(format!("{}: {e}", folder.display())))?;
        let own = array.schema.attributes.first();
        let cells = StoreCells {
            source,
            folder: folder.to_owned(),
            fill: own.map_or_else(Vec::new, |own| own.fill_value.clone()),
            attribute,
        };
        Ok(Variable {
            path,
            array,
            keys,
            cells: Box::new(cells),
        })
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

/// The cells of a store's array.
#[derive(Debug)]
struct StoreCells {
    source: ArrayMetadata,
    folder: PathBuf,
    /// The attribute that they become.
    attribute: String,
    /// What cells hold that nobody writes.
    fill: Vec<u8>,
}

impl CellSource for StoreCells {
    fn cells(&self) -> u64 {
        self.source.shape.iter().product()
    }

    fn check(&self, session: &Session) -> Result<()> {
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
                true => Err(FileError::new(format!(
                    "{missing} of its {chunks} chunks are not there, and would have to be written"
                ))),
                false => Ok(()),
            }
        })
    }

    fn each_box(&self, session: &Session, put: PutBox<'_>) -> Result<()> {
        let mut store =
            self.in_store(|| ChunkStore::new(&self.source, &self.folder, budget(session)))?;
        let (datatype, cell_val_num) = self.source.element.cell();
        let fill = self.missing();
        let column_type = ColumnType::new(self.attribute.as_str(), datatype);
        let column_type = column_type.with_cell_val_num(cell_val_num);
        let counts = self.source.chunk_counts();
        let threads = session.context.threads();
        let boxes = Boxes::new(&counts, store.most_chunks());
        let there = match self.may_be_left_out() {
            true => self.in_store(|| store.boxes_there(&boxes))?,
            false => None,
        };
        let sides: Box<dyn Iterator<Item = Vec<(u64, u64)>>> = match there {
            Some(there) => Box::new(there.into_iter().map(move |index| boxes.sides(index))),
            None => Box::new(boxes),
        };
        for sides in sides {
            interrupt::check()?;
            let read = || store.read(&sides, &fill, threads);
            let found = self.in_store(|| session.context.install(read))?;
            let (bounds, cells) = match found {
                Some(found) => found,
                // Cells that nobody wrote read as the fill value anyway.
                None if self.may_be_left_out() => continue,
                None => self.nothing(&sides, &fill),
            };
            put(&bounds, column(column_type.clone(), cells))?;
        }
        Ok(())
    }
}

impl StoreCells {
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
        !self.source.element.is_var() && self.fill == self.missing()
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

fn column(column_type: ColumnType, cells: Cells) -> ColumnSet {
    let column = match cells {
        Cells::Fixed(data) => return fixed_column(column_type, data),
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

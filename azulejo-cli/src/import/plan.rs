//! From what a file holds and what the user asks for to the schema of an array, and which column
//! fills which field.

use super::arrow::TickRule;
use super::domain::{self, Axis};
use super::grid;
use super::npy_file::Turn;
use super::profile::{Bounds, Profile};
use super::target::Target;
use super::{Look, RESERVED, attribute_name, parse};
use crate::args::{CellOrderArg, FieldArgs, ShapeArgs, TileOrderArg};
use crate::error::{CliError, Result};
use crate::size;
use crate::value;
use azulejo::column::ColumnType;
use azulejo::format::datatype::Native;
use azulejo::format::filter::Pipeline;
use azulejo::format::schema::{
    ArraySchema, Attribute, Dimension, Enumeration, FieldIndex, Layout, NewArray, SchemaBuilder,
    quoted_name,
};
use azulejo::format::{CellValNum, Datatype, NdRectangle, Range};
use azulejo::write::optimize::{usual_filters, usual_offsets_filters};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The dimension that numbers rows, if no column has its name.
const ROW: &str = "row";
/// Rows of a dense tile, at most.
const ROWS_A_TILE: u64 = 65_536;
/// Rows of a dense tile, at least: small files leave room for more rows.
const LEAST_ROWS_A_TILE: u64 = 1_024;
/// The last row that there can be: enough for ever, and easy to read.
const LAST_ROW: i64 = 999_999_999_999_999;

/// An array to be made or added to, and how the file fills it.
#[derive(Debug)]
pub struct Plan {
    /// The array.
    pub array: NewArray,
    /// The fields and their columns.
    pub targets: Vec<Target>,
    /// How rows find their place.
    pub shape: Shape,
    /// The number of rows.
    pub rows: u64,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// How rows find their place in the array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// By their coordinates, in a sparse array.
    Sparse,
    /// By their coordinates, in this box of a dense array.
    Coordinates(NdRectangle),
    /// One after another in this box of a dense array; the first dimension varies fastest if
    /// `columns_first`.
    Grid {
        /// The box.
        bounds: NdRectangle,
        /// The order of the cells in the file.
        columns_first: bool,
    },
}

/// What was asked for of the fields, by name.
#[derive(Debug, Default)]
struct Wishes {
    types: BTreeMap<String, (Datatype, CellValNum)>,
    filters: BTreeMap<String, Pipeline>,
    domains: BTreeMap<String, String>,
    tiles: BTreeMap<String, String>,
}

impl Wishes {
    fn new(shape: &ShapeArgs, fields: &FieldArgs) -> Result<Self> {
        let mut wishes = Self::default();
        for text in &fields.types {
            let (name, datatype) = pair("--type", text)?;
            let datatype =
                parse_type(datatype).map_err(|e| CliError::usage(format!("--type {text}: {e}")))?;
            wishes.types.insert(name, datatype);
        }
        for text in &fields.filters {
            let (name, pipeline) = pair("--filter", text)?;
            let pipeline = pipeline
                .parse()
                .map_err(|e| CliError::usage(format!("--filter {text}: {e}")))?;
            wishes.filters.insert(name, pipeline);
        }
        for text in &shape.domain {
            let (name, bounds) = pair("--domain", text)?;
            wishes.domains.insert(name, bounds.to_owned());
        }
        for text in &shape.tile {
            let (name, extent) = pair("--tile", text)?;
            wishes.tiles.insert(name, extent.to_owned());
        }
        Ok(wishes)
    }

    /// Every name must be that of a field, so that a slip of the pen does not go unnoticed.
    fn check(&self, fields: &FieldArgs, schema: &ArraySchema) -> Result<()> {
        let dimension = |name: &str| schema.domain.index_of(name).is_some();
        let attribute = |name: &str| schema.attributes.iter().any(|a| a.name == name);
        let field = |name: &str| dimension(name) || attribute(name);
        let special = |name: &str| matches!(name, "@coords" | "@offsets" | "@validity");
        let none = |name: &str| name == "none";
        let checks = [
            ("--type", self.types.keys().find(|n| !field(n)), "field"),
            (
                "--filter",
                self.filters.keys().find(|n| !field(n) && !special(n)),
                "field",
            ),
            (
                "--domain",
                self.domains.keys().find(|n| !dimension(n)),
                "dimension",
            ),
            (
                "--tile",
                self.tiles.keys().find(|n| !dimension(n)),
                "dimension",
            ),
            (
                "--nullable",
                fields.nullable.iter().find(|n| !attribute(n)),
                "attribute",
            ),
            (
                "--required",
                fields.required.iter().find(|n| !attribute(n)),
                "attribute",
            ),
            (
                "--enumerate",
                fields
                    .enumerate
                    .iter()
                    .flatten()
                    .find(|n| !attribute(n) && !none(n)),
                "attribute",
            ),
        ];
        for (option, unknown, kind) in checks {
            if let Some(name) = unknown {
                return Err(CliError::usage(format!(
                    "{option}: the array would have no {kind} {name:?}"
                )));
            }
        }
        Ok(())
    }
}

fn pair<'t>(option: &str, text: &'t str) -> Result<(String, &'t str)> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) =
        pair.ok_or_else(|| CliError::usage(format!("{option} {text}: write NAME=VALUE")))?;
    Ok((name.to_owned(), value))
}

/// Reads `FLOAT32`, `FLOAT32[3]`, `INT32[]` (any number). Strings and bytes have any length unless
/// it is said.
fn parse_type(text: &str) -> Result<(Datatype, CellValNum), String> {
    let (name, number) = match text.split_once('[') {
        Some((name, number)) => (
            name,
            Some(number.strip_suffix(']').ok_or("the ] is missing")?),
        ),
        None => (text, None),
    };
    let datatype = Datatype::from_name(name).ok_or_else(|| {
        format!("{name:?} is not a datatype, such as INT32, FLOAT64, STRING_UTF8 or DATETIME_MS")
    })?;
    let lumps = parse::is_text(datatype) || parse::is_bytes(datatype);
    let cell_val_num = match number {
        Some("") => CellValNum::Var,
        Some(number) => match number.parse() {
            Ok(n) if n > 0 && n != CellValNum::VAR_ID => CellValNum::Fixed(n),
            _ => return Err(format!("{number:?} is not a number of values")),
        },
        None if lumps => CellValNum::Var,
        None => CellValNum::ONE,
    };
    Ok((datatype, cell_val_num))
}

/// Plans a new array for rows with columns.
pub fn new_array(
    profiles: &[Profile],
    names: &[String],
    shape: &ShapeArgs,
    fields: &FieldArgs,
) -> Result<Plan> {
    let wishes = Wishes::new(shape, fields)?;
    let dims = shape.dims.as_deref().unwrap_or_default();
    for dim in dims {
        if !profiles.iter().any(|p| p.name == *dim) {
            return Err(no_column(dim, profiles));
        }
    }
    let sparse = shape.sparse || (!shape.dense && !dims.is_empty());
    if sparse && dims.is_empty() {
        return Err(CliError::usage(
            "a sparse array needs dimensions: name their columns with --dims",
        ));
    }
    let rows = profiles.first().map_or(0, |p| p.rows);
    let mut notes: Vec<String> = profiles.iter().filter_map(|p| p.note.clone()).collect();
    let mut axes = Vec::new();
    for dim in dims {
        let profile = profiles
            .iter()
            .find(|p| p.name == *dim)
            .ok_or_else(|| no_column(dim, profiles))?;
        axes.push(axis(profile, &wishes, fields.narrow, &mut notes)?);
    }
    if !sparse {
        same_type(&mut axes)?;
    }
    let columns: Vec<&Profile> = profiles
        .iter()
        .filter(|p| !dims.contains(&p.name))
        .collect();
    let hilbert = match shape.cell_order {
        Some(order) => order == CellOrderArg::Hilbert,
        None => sparse && axes.len() > 1 && axes.iter().all(|axis| axis.datatype.is_real()),
    };
    let mut builder = if sparse {
        ArraySchema::sparse()
    } else {
        ArraySchema::dense()
    };
    builder = orders(builder, shape, hilbert, false);
    let capacity = shape.capacity.unwrap_or(10_000);
    builder = builder
        .capacity(capacity)
        .allows_duplicates(sparse && !shape.unique);
    let mut first_row = 0;
    if axes.is_empty() {
        let axis = row_axis(rows, profiles);
        let dimension = axis.dimension(&wishes)?;
        first_row = dimension
            .domain
            .as_ref()
            .map_or(0, |domain| i64::read(&domain.start));
        // The rows in use, so that more can be added.
        let wide = dimension.domain == axis.domain;
        builder = builder.dimension_with(dimension);
        if wide {
            builder = builder.current_domain([Range::of(0i64, last_row(rows))]);
        }
    } else {
        match sparse {
            true => domain::sparse(&mut axes, rows, capacity, hilbert)?,
            false => domain::dense(&mut axes)?,
        }
        for axis in &axes {
            builder = builder.dimension_with(axis.dimension(&wishes)?);
        }
    }
    let mut labels: BTreeMap<&str, Arc<Enumeration>> = BTreeMap::new();
    for profile in &columns {
        let (attribute, enumeration) = attribute(profile, &wishes, fields, &mut notes)?;
        if let Some(enumeration) = enumeration {
            builder = builder.enumeration(enumeration.clone());
            labels.insert(attribute_name(&profile.name), Arc::new(enumeration));
        }
        builder = builder.attribute_with(attribute);
    }
    builder = array_filters(builder, &wishes);
    let array = builder
        .build()
        .map_err(|e| CliError::usage(format!("such an array cannot be: {e}")))?;
    wishes.check(fields, &array.schema)?;
    let targets = targets(&array.schema, names, None, &|name| {
        labels.get(name).cloned()
    })?;
    let shape = if sparse {
        Shape::Sparse
    } else if axes.is_empty() {
        let bounds = one_range(Range::of(
            first_row,
            first_row.saturating_add(last_row(rows)),
        ));
        grid::check_domain(&array.schema, &bounds)?;
        Shape::Grid {
            bounds,
            columns_first: false,
        }
    } else {
        let bounds = domain::data_box(&axes)?;
        grid::check_domain(&array.schema, &bounds)?;
        Shape::Coordinates(bounds)
    };
    Ok(Plan {
        array,
        targets,
        shape,
        rows,
        notes,
    })
}

/// Plans a new array of as many dimensions as an array in a file has axes.
pub fn new_grid(
    column: &ColumnType,
    lengths: &[u64],
    columns_first: bool,
    shape: &ShapeArgs,
    fields: &FieldArgs,
) -> Result<Plan> {
    let wishes = Wishes::new(shape, fields)?;
    if shape.sparse {
        return Err(CliError::usage("an .npy file becomes a dense array"));
    }
    let names = match &shape.dims {
        Some(names) if names.len() != lengths.len() => {
            let (given, axes) = (names.len(), lengths.len());
            return Err(CliError::usage(format!(
                "--dims gives {given} names, the array has {axes} axes"
            )));
        }
        Some(names) => names.clone(),
        None => (0..lengths.len())
            .map(|axis| format!("dim_{axis}"))
            .collect(),
    };
    let mut axes = Vec::new();
    for (name, &length) in names.iter().zip(lengths) {
        let last = i64::try_from(length)
            .ok()
            .and_then(|n| n.checked_sub(1))
            .filter(|&n| n >= 0);
        let last =
            last.ok_or_else(|| CliError::usage(format!("axis {name:?} has the length {length}")))?;
        axes.push(Axis::new(
            name,
            Datatype::Int64,
            Some(Bounds::Integer(0, last.into())),
        ));
    }
    if axes.is_empty() {
        // A single number: an array of one cell.
        axes.push(Axis::new(
            "dim_0",
            Datatype::Int64,
            Some(Bounds::Integer(0, 0)),
        ));
    }
    domain::dense(&mut axes)?;
    domain::tiles_of_bytes(&mut axes, column.cell_size() as u64);
    let mut builder = orders(ArraySchema::dense(), shape, false, columns_first);
    for axis in &axes {
        builder = builder.dimension_with(axis.dimension(&wishes)?);
    }
    let (datatype, cell_val_num) = match wishes.types.get(&*column.name) {
        Some(&(datatype, cell_val_num)) => {
            let cells = ColumnType::new(&*column.name, datatype).with_cell_val_num(cell_val_num);
            if Turn::of(column, &cells, true).is_none() {
                return Err(CliError::usage(format!(
                    "--type: the file holds {}, which cannot become {datatype}",
                    column.datatype
                )));
            }
            (datatype, cell_val_num)
        }
        // Few programs read UTF-32; NumPy pads it with zeros besides.
        None if column.datatype == Datatype::StringUtf32 => (Datatype::StringUtf8, CellValNum::Var),
        None => (column.datatype, column.cell_val_num),
    };
    let mut attribute = Attribute::new(&*column.name, datatype, cell_val_num);
    attribute.nullable = fields.nullable.iter().any(|n| **n == *column.name);
    attribute.filters = attribute_filters(&wishes, &attribute);
    builder = array_filters(builder.attribute_with(attribute), &wishes);
    let array = builder
        .build()
        .map_err(|e| CliError::usage(format!("such an array cannot be: {e}")))?;
    wishes.check(fields, &array.schema)?;
    let targets = targets(&array.schema, &[column.name.to_string()], None, &|_| None)?;
    let bounds = domain::data_box(&axes)?;
    grid::check_domain(&array.schema, &bounds)?;
    let rows = lengths.iter().product();
    Ok(Plan {
        array,
        targets,
        shape: Shape::Grid {
            bounds,
            columns_first,
        },
        rows,
        notes: Vec::new(),
    })
}

fn orders(
    builder: SchemaBuilder,
    shape: &ShapeArgs,
    hilbert: bool,
    columns_first: bool,
) -> SchemaBuilder {
    let default = if columns_first {
        Layout::ColMajor
    } else {
        Layout::RowMajor
    };
    let cell = match shape.cell_order {
        Some(CellOrderArg::Row) => Layout::RowMajor,
        Some(CellOrderArg::Col) => Layout::ColMajor,
        Some(CellOrderArg::Hilbert) => Layout::Hilbert,
        None if hilbert => Layout::Hilbert,
        None => default,
    };
    let tile = match shape.tile_order {
        Some(TileOrderArg::Row) => Layout::RowMajor,
        Some(TileOrderArg::Col) => Layout::ColMajor,
        None => default,
    };
    builder.cell_order(cell).tile_order(tile)
}

fn array_filters(builder: SchemaBuilder, wishes: &Wishes) -> SchemaBuilder {
    let offsets = wishes
        .filters
        .get("@offsets")
        .cloned()
        .unwrap_or_else(usual_offsets_filters);
    let mut builder = builder.offsets_filters(offsets);
    if let Some(filters) = wishes.filters.get("@coords") {
        builder = builder.coords_filters(filters.clone());
    }
    if let Some(filters) = wishes.filters.get("@validity") {
        builder = builder.validity_filters(filters.clone());
    }
    builder
}

fn attribute_filters(wishes: &Wishes, attribute: &Attribute) -> Pipeline {
    let asked = wishes.filters.get(&attribute.name).cloned();
    asked.unwrap_or_else(|| usual_filters(attribute.datatype, attribute.cell_val_num))
}

impl Axis {
    /// The dimension, with what was asked for.
    fn dimension(&self, wishes: &Wishes) -> Result<Dimension> {
        let mut axis = self.clone();
        if let Some(text) = wishes.domains.get(&self.name) {
            axis.set_domain(text)
                .map_err(|e| CliError::usage(format!("--domain {}={text}: {e}", self.name)))?;
        }
        if let Some(text) = wishes.tiles.get(&self.name) {
            axis.set_tile(text)
                .map_err(|e| CliError::usage(format!("--tile {}={text}: {e}", self.name)))?;
        }
        let asked = wishes.filters.get(&self.name).cloned();
        // Filters of the array's coordinates, where they are given, are for all dimensions without
        // their own.
        let filters = asked.unwrap_or_else(|| match wishes.filters.contains_key("@coords") {
            true => Pipeline::default(),
            false => usual_filters(self.datatype, self.cell_val_num()),
        });
        Ok(Dimension {
            name: self.name.clone(),
            datatype: self.datatype,
            cell_val_num: self.cell_val_num(),
            filters,
            domain: axis.domain,
            tile_extent: axis.tile_extent,
        })
    }
}

/// The dimension that a column becomes.
fn axis(profile: &Profile, wishes: &Wishes, narrow: bool, notes: &mut Vec<String>) -> Result<Axis> {
    let name = &profile.name;
    if let Some(row) = profile.first_null.filter(|_| profile.nulls > 0) {
        return Err(CliError::usage(format!(
            "column {name:?} cannot be a dimension: {} values are missing, the first in row {}",
            size::count(profile.nulls),
            row + 1
        )));
    }
    let mut datatype = profile.datatype;
    if let Some(&(asked, _)) = wishes.types.get(name) {
        datatype = asked;
    } else if datatype == Datatype::StringUtf8 {
        if !profile.ascii {
            return Err(CliError::usage(format!(
                "column {name:?} cannot be a dimension: its texts are not all ASCII; --type {name}=STRING_ASCII takes them \
                 as they are"
            )));
        }
        datatype = Datatype::StringAscii;
    } else if narrow && !profile.stated {
        datatype = narrowed(datatype, profile.bounds);
    }
    let text = datatype == Datatype::StringAscii;
    let number =
        datatype.is_integer() || datatype.is_real() || datatype.is_datetime() || datatype.is_time();
    let single = profile.cell_val_num == CellValNum::ONE || wishes.types.contains_key(name);
    if !(text || number && single) {
        return Err(CliError::usage(format!(
            "column {name:?} cannot be a dimension: it holds {datatype}"
        )));
    }
    let bounds = match profile.bounds {
        Some(bounds) if !text => Some(bounds_as(bounds, profile, datatype)?),
        _ => None,
    };
    let roomy = domain::type_with_room(datatype, bounds);
    if roomy != datatype && !wishes.types.contains_key(name) {
        notes.push(format!(
            "{name:?} has the least and the greatest {datatype}, so the dimension is {roomy}: no domain holds all values of its type"
        ));
        datatype = roomy;
    }
    Ok(Axis::new(name, datatype, bounds))
}

/// The bounds of a column in the type that was asked for: ticks of another length are other
/// numbers.
fn bounds_as(bounds: Bounds, profile: &Profile, datatype: Datatype) -> Result<Bounds> {
    let (Bounds::Integer(low, high), Some(rule)) =
        (bounds, TickRule::between(profile.datatype, datatype))
    else {
        return Ok(bounds);
    };
    let converted = |tick: i128| {
        let tick = i64::try_from(tick).ok()?;
        rule.apply(tick).map(i128::from)
    };
    match (converted(low), converted(high)) {
        (Some(low), Some(high)) => Ok(Bounds::Integer(low, high)),
        (least, _) => {
            let wrong = if least.is_none() { low } else { high };
            let wrong = i64::try_from(wrong).unwrap_or(i64::MAX);
            Err(CliError::usage(format!(
                "--type {}={datatype}: {} is not a value of {datatype}",
                profile.name,
                value::tick_text(profile.datatype, wrong)
            )))
        }
    }
}

/// Dense dimensions have one type.
fn same_type(axes: &mut [Axis]) -> Result<()> {
    let Some(first) = axes.first().map(|axis| axis.datatype) else {
        return Ok(());
    };
    if axes.iter().all(|axis| axis.datatype == first) {
        return Ok(());
    }
    let wide = |axis: &Axis| matches!(axis.bounds, Some(Bounds::Integer(_, high)) if high > i128::from(i64::MAX));
    if axes
        .iter()
        .all(|axis| axis.datatype.is_integer() && !wide(axis))
    {
        for axis in axes.iter_mut() {
            axis.datatype = Datatype::Int64;
        }
        return Ok(());
    }
    let types: Vec<String> = axes
        .iter()
        .map(|axis| format!("{} {}", axis.name, axis.datatype))
        .collect();
    Err(CliError::usage(format!(
        "the dimensions of a dense array have one type, these have several: {}; --sparse takes them",
        types.join(", ")
    )))
}

fn row_axis(rows: u64, profiles: &[Profile]) -> Axis {
    let taken = |name: &str| profiles.iter().any(|p| p.name == name);
    let mut name = ROW.to_owned();
    while taken(&name) {
        name.push('_');
    }
    let mut axis = Axis::new(
        &name,
        Datatype::Int64,
        Some(Bounds::Integer(0, last_row(rows).into())),
    );
    axis.domain = Some(Range::of(0i64, LAST_ROW));
    let tile = rows
        .next_power_of_two()
        .clamp(LEAST_ROWS_A_TILE, ROWS_A_TILE);
    axis.tile_extent = Some(tile.to_le_bytes().to_vec());
    axis
}

fn last_row(rows: u64) -> i64 {
    i64::try_from(rows.max(1) - 1).unwrap_or(i64::MAX)
}

fn one_range(range: Range) -> NdRectangle {
    NdRectangle {
        ranges: vec![range],
    }
}

/// The attribute that a column becomes, and its labels.
fn attribute(
    profile: &Profile,
    wishes: &Wishes,
    fields: &FieldArgs,
    notes: &mut Vec<String>,
) -> Result<(Attribute, Option<Enumeration>)> {
    let name = attribute_name(&profile.name);
    let (mut datatype, mut cell_val_num) = match wishes.types.get(name) {
        // A plain type leaves lists lists.
        Some(&(datatype, CellValNum::ONE)) if !parse::is_text(profile.datatype) => {
            (datatype, profile.cell_val_num)
        }
        Some(&wish) => wish,
        None if fields.narrow && !profile.stated => (
            narrowed(profile.datatype, profile.bounds),
            profile.cell_val_num,
        ),
        None => (profile.datatype, profile.cell_val_num),
    };
    let mut enumeration = None;
    if wishes
        .types
        .get(name)
        .is_none_or(|wish| wish.0.is_integer())
        && let Some(labels) = labels(profile, fields)?
    {
        let count = labels.len() as u64;
        let index = match wishes.types.get(name) {
            Some(&(datatype, CellValNum::ONE)) => datatype,
            // Half of an index type is left for labels to come.
            _ if count <= 128 => Datatype::UInt8,
            _ if count <= 32_768 => Datatype::UInt16,
            _ => Datatype::UInt32,
        };
        let asked = fields
            .enumerate
            .as_ref()
            .is_some_and(|names| names.iter().any(|n| n == name));
        if !asked && !profile.dictionary {
            notes.push(format!(
                "{name:?} has {count} different values and becomes an enumeration; --enumerate none keeps plain text"
            ));
        }
        (datatype, cell_val_num) = (index, CellValNum::ONE);
        enumeration = Some(labels);
    }
    if name != profile.name {
        notes.push(format!(
            "column {:?} becomes the attribute {name:?}: names that begin with {RESERVED} are the format's own",
            profile.name
        ));
    }
    let mut attribute = Attribute::new(name, datatype, cell_val_num);
    let named = |names: &[String]| names.iter().any(|n| n == name);
    attribute.nullable = !named(&fields.required) && (profile.nulls > 0 || named(&fields.nullable));
    attribute.enumeration = enumeration.as_ref().map(|e| e.name.clone());
    attribute.filters = attribute_filters(wishes, &attribute);
    Ok((attribute, enumeration))
}

/// The enumeration of a column, if it becomes one.
fn labels(profile: &Profile, fields: &FieldArgs) -> Result<Option<Enumeration>> {
    let name = attribute_name(&profile.name);
    let asked = match &fields.enumerate {
        Some(names) if names.iter().any(|n| n == "none") => return Ok(None),
        Some(names) => names.iter().any(|n| n == name),
        None => false,
    };
    let found = profile
        .labels
        .as_ref()
        .and_then(|labels| Some((labels, labels.len()?)));
    let Some((labels, count)) = found else {
        return match asked {
            true if profile.labels.is_some() => {
                let most = size::count(Look::MOST_LABELS as u64);
                Err(CliError::usage(format!(
                    "--enumerate: column {name:?} has more than {most} different values"
                )))
            }
            true => Err(CliError::usage(format!(
                "--enumerate: column {name:?} holds {}, not text",
                profile.datatype
            ))),
            false => Ok(None),
        };
    };
    let values = profile.rows - profile.nulls;
    // Clearly worth it: many rows, few labels, and not flags of one letter.
    let few =
        count > 0 && count <= Look::FEW_LABELS && values >= 10_000 && count as u64 <= values / 100;
    let long = profile.bytes >= 2 * values;
    if !(asked || profile.dictionary || fields.enumerate.is_none() && few && long) {
        return Ok(None);
    }
    let texts = labels.texts(profile.dictionary);
    let enumeration = match profile.cell_val_num {
        CellValNum::Var => {
            Enumeration::of_strings(name, profile.datatype, profile.ordered_labels, texts)
        }
        fixed @ CellValNum::Fixed(_) => Enumeration::of_fixed(
            name,
            profile.datatype,
            fixed,
            profile.ordered_labels,
            texts.concat(),
        ),
    };
    enumeration
        .map(Some)
        .map_err(|e| CliError::usage(format!("column {name:?} makes no enumeration: {e}")))
}

/// The narrowest integer type with these bounds.
fn narrowed(datatype: Datatype, bounds: Option<Bounds>) -> Datatype {
    let Some(Bounds::Integer(low, high)) = bounds.filter(|_| datatype.is_integer()) else {
        return datatype;
    };
    let fits = |least: i128, most: i128| low >= least && high <= most;
    match () {
        () if fits(i8::MIN.into(), i8::MAX.into()) => Datatype::Int8,
        () if fits(0, u8::MAX.into()) => Datatype::UInt8,
        () if fits(i16::MIN.into(), i16::MAX.into()) => Datatype::Int16,
        () if fits(0, u16::MAX.into()) => Datatype::UInt16,
        () if fits(i32::MIN.into(), i32::MAX.into()) => Datatype::Int32,
        () if fits(0, u32::MAX.into()) => Datatype::UInt32,
        () => datatype,
    }
}

fn no_column(name: &str, profiles: &[Profile]) -> CliError {
    let names: Vec<&str> = profiles.iter().map(|p| p.name.as_str()).collect();
    CliError::usage(format!(
        "the file has no column {name:?}; it has {}",
        names.join(", ")
    ))
}

/// The column that fills a field.
pub fn column_of(names: &[String], field: &str) -> Option<usize> {
    let exact = names.iter().position(|name| name == field);
    exact.or_else(|| names.iter().position(|name| attribute_name(name) == field))
}

/// The fields of a schema that the file has columns for, by name, among those that were `chosen`. The
/// others must be able to do without.
pub fn targets(
    schema: &ArraySchema,
    names: &[String],
    chosen: Option<&[String]>,
    enumeration: &dyn Fn(&str) -> Option<Arc<Enumeration>>,
) -> Result<Vec<Target>> {
    let mut targets = Vec::new();
    for field in schema.fields() {
        let name = schema.name_of(field);
        let is_dimension = matches!(field, FieldIndex::Dimension(_));
        let found = column_of(names, name);
        let is_chosen = |at: usize| {
            let column = names.get(at);
            chosen.is_none_or(|chosen| column.is_some_and(|column| chosen.contains(column)))
        };
        let Some(source) = found.filter(|&at| is_chosen(at)) else {
            if is_dimension && schema.is_dense() {
                continue;
            }
            if found.is_some() {
                return Err(CliError::usage(format!(
                    "the array has a field {}, and --columns leaves that column out",
                    quoted_name(name)
                )));
            }
            return Err(CliError::usage(format!(
                "the array has a field {} and the file no such column; it has {}",
                quoted_name(name),
                names.join(", ")
            )));
        };
        let Some((datatype, cell_val_num)) = schema.type_of(field) else {
            continue;
        };
        let enumeration = match field {
            FieldIndex::Attribute(at) => {
                match schema.attribute(at).and_then(|a| a.enumeration.as_deref()) {
                    Some(_) => enumeration(name),
                    None => None,
                }
            }
            FieldIndex::Dimension(_) => None,
        };
        let nullable = schema.is_nullable(field);
        let column = ColumnType {
            name: name.into(),
            datatype,
            cell_val_num,
            nullable,
            enumeration,
        };
        targets.push(Target::new(column, source, is_dimension));
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read() {
        assert_eq!(
            parse_type("float32"),
            Ok((Datatype::Float32, CellValNum::ONE))
        );
        assert_eq!(parse_type("CHAR"), Ok((Datatype::Char, CellValNum::Var)));
        assert_eq!(
            parse_type("CHAR[3]"),
            Ok((Datatype::Char, CellValNum::Fixed(3)))
        );
        assert_eq!(parse_type("INT8[]"), Ok((Datatype::Int8, CellValNum::Var)));
        for text in ["", "INT", "INT8[0]", "INT8[", "INT8[x]"] {
            assert!(parse_type(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_narrowest_type_holds_the_bounds() {
        let narrow = |low, high| narrowed(Datatype::Int64, Some(Bounds::Integer(low, high)));
        assert_eq!(narrow(-128, 127), Datatype::Int8);
        assert_eq!(narrow(0, 255), Datatype::UInt8);
        assert_eq!(narrow(-1, 255), Datatype::Int16);
        assert_eq!(narrow(0, 1 << 31), Datatype::UInt32);
        assert_eq!(narrow(-1, 1 << 31), Datatype::Int64);
        assert_eq!(
            narrowed(Datatype::Float64, Some(Bounds::Integer(0, 1))),
            Datatype::Float64
        );
    }
}

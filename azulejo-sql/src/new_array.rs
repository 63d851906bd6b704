//! What options say of a new array: its dimensions, tiles and filters.

use crate::error::{Result, external};
use crate::table::TableOptions;
use crate::table_key::{self, TableKey};
use crate::time_rule::far::with_seconds;
use crate::time_travel::{moment, truth};
use azulejo::Context;
use azulejo::array::NewArray;
use azulejo::arrow::ArrowFields;
use azulejo::format::datatype::dispatch;
use azulejo::format::filter::Pipeline;
use azulejo::format::schema::Dimension;
use azulejo::format::{ArraySchema, CellValNum, Datatype, Physical, Range};
use azulejo::write::optimize::{Goal, usual_filters, usual_offsets_filters};
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use std::collections::HashMap;

/// The options of a statement, taken one by one.
#[derive(Debug, Clone)]
pub struct Options(HashMap<String, String>);

impl Options {
    /// The options of a statement: letter case does not matter in their names.
    pub fn new<'a>(options: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let option = |(key, value): (&String, &String)| {
            // Keys without a point come with one of DataFusion's.
            let key = key.strip_prefix("format.").unwrap_or(key);
            (key.to_ascii_lowercase(), value.clone())
        };
        Self(options.into_iter().map(option).collect())
    }

    /// Takes an option.
    pub fn take(&mut self, key: &str) -> Option<String> {
        self.0.remove(key)
    }

    fn flag(&mut self, key: &str) -> Result<bool> {
        let said = self.0.remove(key);
        said.map_or(Ok(false), |said| truth(key, &ScalarValue::from(said)))
    }

    /// How the array is shown.
    pub fn table(&mut self) -> Result<TableOptions> {
        let mut table = TableOptions::new();
        if let Some(at) = self.0.remove("at") {
            // Options are text, milliseconds too.
            let time = match at.parse::<i64>() {
                Ok(milliseconds) => ScalarValue::from(milliseconds),
                Err(_) => ScalarValue::from(at.as_str()),
            };
            table = table.at(moment(&time)?);
        }
        if self.flag("unwritten")? {
            table = table.unwritten();
        }
        if self.flag("bytes")? {
            table = table.bytes();
        }
        Ok(table)
    }

    /// The context that opens the array: a session's, or one with a key of the array's own.
    pub fn context(&mut self, session: &Context) -> Result<Context> {
        let mut key = TableKey::default();
        for name in table_key::NAMES {
            if let Some(value) = self.take(name) {
                key.set(name, &value)?;
            }
        }
        Ok(key.context(session))
    }

    /// The columns that `dimensions` names, by their indices.
    pub fn dimensions(&mut self, columns: &Schema) -> Result<Vec<usize>> {
        let names = self.take("dimensions").ok_or_else(|| {
            DataFusionError::Plan(
                "a new array needs dimensions: write 'dimensions' 'COLUMN, COLUMN'".into(),
            )
        })?;
        let parts: Vec<&str> = names.split(',').collect();
        let (mut left, mut found) = (parts.as_slice(), Vec::new());
        while let Some(first) = left.first() {
            // Names may have commas themselves.
            let known = (1..=left.len()).find_map(|len| {
                let (name, rest) = left.split_at_checked(len)?;
                let index = columns.index_of(name.join(",").trim()).ok()?;
                Some((index, rest))
            });
            let (index, rest) = known.ok_or_else(|| {
                DataFusionError::Plan(format!("dimensions: there is no column {:?}", first.trim()))
            })?;
            found.push(index);
            left = rest;
        }
        Ok(found)
    }

    /// The schema of a new array: the columns of the key, by their indices, are its dimensions, in
    /// that order.
    pub fn schema(&mut self, columns: &Schema, key: &[usize]) -> Result<NewArray> {
        let dense = self.flag("dense")?;
        let mut builder = if dense {
            ArraySchema::dense()
        } else {
            ArraySchema::sparse()
        };
        for index in key {
            builder = builder.dimension_with(self.dimension(columns.field(*index))?);
        }
        let rest = columns.fields().iter().enumerate();
        let rest: Vec<Field> = rest
            .filter(|(index, _)| !key.contains(index))
            .map(|(_, field)| field.as_ref().clone())
            .collect();
        rest.iter().try_for_each(refuse_decimals)?;
        builder = builder.arrow_fields(&Schema::new(rest)).map_err(external)?;
        if let Some(capacity) = self.0.remove("capacity") {
            let capacity = capacity.parse().map_err(|_| {
                DataFusionError::Plan(format!("capacity must be a number, not {capacity:?}"))
            })?;
            builder = builder.capacity(capacity);
        }
        if self.flag("duplicates")? {
            builder = builder.allows_duplicates(true);
        }
        let new = builder.offsets_filters(usual_offsets_filters()).build();
        let mut new = new.map_err(|error| DataFusionError::Plan(error.to_string()))?;
        let all = self.filters("filters")?;
        for attribute in &mut new.schema.attributes {
            let key = format!("filters.{}", attribute.name.to_ascii_lowercase());
            let usual = || usual_filters(attribute.datatype, attribute.cell_val_num);
            let own = self.filters(&key)?.or_else(|| all.clone());
            attribute.filters = own.unwrap_or_else(usual);
        }
        Ok(new)
    }

    /// How filters are chosen by the rows, unless all are said.
    pub fn optimized(&mut self) -> Result<Option<Optimized>> {
        let goal = self.take("optimize").map(|goal| goal.parse::<Goal>());
        let goal = goal.transpose();
        let goal = goal.map_err(|error| DataFusionError::Plan(format!("optimize: {error}")))?;
        if self.0.contains_key("filters") {
            return match goal {
                None => Ok(None),
                Some(_) => Err(DataFusionError::Plan(
                    "filters says what optimize would choose: name those of single columns".into(),
                )),
            };
        }
        let named = self.0.keys().filter_map(|key| key.strip_prefix("filters."));
        let keeps = named.map(str::to_owned).collect();
        Ok(Some(Optimized {
            goal: goal.unwrap_or(Goal::Balanced),
            keeps,
        }))
    }

    /// A dimension: `domain.NAME` is `LOW..HIGH`, numbers or times, `tile.NAME` the extent of its tiles.
    fn dimension(&mut self, field: &Field) -> Result<Dimension> {
        let name = field.name();
        let key = name.to_ascii_lowercase();
        let (domain, tile) = (
            self.0.remove(&format!("domain.{key}")),
            self.0.remove(&format!("tile.{key}")),
        );
        let datatype = dimension_type(field.data_type()).ok_or_else(|| {
            DataFusionError::Plan(format!(
                "{name}: {} is no type of dimensions",
                field.data_type()
            ))
        })?;
        let filters = self.filters(&format!("filters.{key}"))?;
        let mut dimension = Dimension {
            filters: filters.unwrap_or_else(|| usual_filters(datatype, number_of(datatype))),
            ..Dimension::of_type(name, datatype)
        };
        if datatype.is_string() {
            return match (domain, tile) {
                (None, None) => Ok(dimension),
                _ => Err(DataFusionError::Plan(format!(
                    "{name}: a dimension of text has neither domain.{name} nor tile.{name}"
                ))),
            };
        }
        let wrong = |what: &str, text: &str| {
            DataFusionError::Plan(format!("{what}.{name}: {text:?} does not fit {datatype}"))
        };
        dimension.tile_extent = match &tile {
            Some(text) => Some(coordinate(datatype, text).ok_or_else(|| wrong("tile", text))?),
            None => None,
        };
        dimension.domain = Some(match &domain {
            Some(text) => {
                let end = |text| coordinate(datatype, text).or_else(|| moment_at(field, text));
                let bounds = text.split_once("..");
                let bounds = bounds.and_then(|(low, high)| Some(Range::new(end(low)?, end(high)?)));
                bounds.ok_or_else(|| wrong("domain", text))?
            }
            // Days have 32 bits in SQL: of further ones it could not tell which comes first.
            None if *field.data_type() == DataType::Date32 => {
                Range::of(i64::from(i32::MIN), i64::from(i32::MAX))
            }
            None => widest(datatype.physical(), dimension.tile_extent.as_deref()),
        });
        Ok(dimension)
    }

    /// A pipeline of filters, such as `byteshuffle,zstd:5`.
    fn filters(&mut self, key: &str) -> Result<Option<Pipeline>> {
        let pipeline = self.take(key).map(|text| text.parse::<Pipeline>());
        pipeline
            .transpose()
            .map_err(|error| DataFusionError::Plan(format!("{key}: {error}")))
    }

    /// That nothing is left which nobody has asked for.
    pub fn finish(self) -> Result<()> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(key) => Err(DataFusionError::Plan(format!(
                "there is no option {key:?}: there are at, unwritten, bytes, key, key_file, dense, duplicates, capacity, dimensions, optimize (where there are rows), filters, domain.COLUMN, tile.COLUMN and filters.COLUMN"
            ))),
        }
    }
}

/// How filters are chosen by rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Optimized {
    /// What for.
    pub goal: Goal,
    /// The columns whose filters are said, in small letters.
    pub keeps: Vec<String>,
}

impl Optimized {
    /// Whether the filters of a column are said.
    pub fn keeps(&self, name: &str) -> bool {
        self.keeps.contains(&name.to_ascii_lowercase())
    }
}

/// An array has no decimals, and other numbers are for who knows them to choose.
///
/// # Errors
/// Columns of decimals.
pub fn refuse_decimals(column: &Field) -> Result<()> {
    match column.data_type().is_decimal() {
        false => Ok(()),
        true => Err(DataFusionError::Plan(format!(
            "{}: an array has no {}: take DOUBLE, which rounds, or BIGINT that counts the last digits (cents, say)",
            column.name(),
            column.data_type()
        ))),
    }
}

/// Values of a coordinate.
fn number_of(datatype: Datatype) -> CellValNum {
    match datatype.is_string() {
        true => CellValNum::Var,
        false => CellValNum::ONE,
    }
}

/// The type of a dimension that a column becomes.
fn dimension_type(data_type: &DataType) -> Option<Datatype> {
    Some(match data_type {
        DataType::Int8 => Datatype::Int8,
        DataType::Int16 => Datatype::Int16,
        DataType::Int32 => Datatype::Int32,
        DataType::Int64 => Datatype::Int64,
        DataType::UInt8 => Datatype::UInt8,
        DataType::UInt16 => Datatype::UInt16,
        DataType::UInt32 => Datatype::UInt32,
        DataType::UInt64 => Datatype::UInt64,
        DataType::Float32 => Datatype::Float32,
        DataType::Float64 => Datatype::Float64,
        DataType::Date32 => Datatype::DateTimeDay,
        DataType::Timestamp(TimeUnit::Second, None) => Datatype::DateTimeSecond,
        DataType::Timestamp(TimeUnit::Millisecond, None) => Datatype::DateTimeMilli,
        DataType::Timestamp(TimeUnit::Microsecond, None) => Datatype::DateTimeMicro,
        DataType::Timestamp(TimeUnit::Nanosecond, None) => Datatype::DateTimeNano,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Datatype::StringAscii,
        // Labels are written as what they are.
        DataType::Dictionary(_, values) => return dimension_type(values),
        _ => return None,
    })
}

/// The bytes of a coordinate that is written as a number.
fn coordinate(datatype: Datatype, text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let number =
        dispatch!(datatype.physical(), T => text.parse::<T>().ok()?.to_le_bytes().to_vec());
    Some(number)
}

/// The bytes of a coordinate that is written as a day or a moment.
fn moment_at(field: &Field, text: &str) -> Option<Vec<u8>> {
    let kind = field.data_type();
    if !kind.is_temporal() {
        return None;
    }
    let text = text.trim();
    let text = with_seconds(text).unwrap_or_else(|| text.to_owned());
    let value = ScalarValue::from(text).cast_to(kind).ok()?;
    // Days have 32 bits in SQL, and 64 in arrays.
    let ticks = match value.cast_to(&DataType::Int32) {
        Ok(ScalarValue::Int32(Some(days))) if *kind == DataType::Date32 => i64::from(days),
        _ => match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(ticks))) => ticks,
            _ => return None,
        },
    };
    Some(ticks.to_le_bytes().to_vec())
}

/// All numbers of a type but the last, which tiles must be able to count beyond: of the widest types
/// as many as whole tiles hold.
fn widest(physical: Physical, extent: Option<&[u8]>) -> Range {
    let extent = extent.and_then(<[u8]>::first_chunk);
    let extent = extent.map_or(1, |bytes| u64::from_le_bytes(*bytes).max(1));
    // A negative extent is refused with the array.
    let last = |cells: u64| (cells / extent * extent).max(1) - 1;
    match physical {
        Physical::I8 => Range::of(i8::MIN, i8::MAX - 1),
        Physical::I16 => Range::of(i16::MIN, i16::MAX - 1),
        Physical::I32 => Range::of(i32::MIN, i32::MAX - 1),
        Physical::I64 => {
            let low = i64::MIN + 1;
            Range::of(low, low.wrapping_add_unsigned(last(u64::MAX - 2)))
        }
        Physical::U8 => Range::of(u8::MIN, u8::MAX - 1),
        Physical::U16 => Range::of(u16::MIN, u16::MAX - 1),
        Physical::U32 => Range::of(u32::MIN, u32::MAX - 1),
        Physical::U64 => Range::of(u64::MIN, last(u64::MAX)),
        Physical::F32 => Range::of(f32::MIN, f32::MAX),
        Physical::F64 => Range::of(f64::MIN, f64::MAX),
    }
}

//! `CREATE EXTERNAL TABLE t STORED AS AZULEJO LOCATION 'uri'`: an array that is there, or, with
//! columns and a primary key, a new one.

use crate::error::{Result, external};
use crate::table::{ArrayTable, TableOptions, blocking};
use async_trait::async_trait;
use azulejo::Context;
use azulejo::array::NewArray;
use azulejo::arrow::ArrowFields;
use azulejo::format::datatype::dispatch;
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::Dimension;
use azulejo::format::{ArraySchema, Datatype, Physical, Range};
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{Constraint, Constraints, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::CreateExternalTable;
use std::collections::HashMap;
use std::sync::Arc;

/// The name behind `STORED AS`.
pub const FILE_TYPE: &str = "AZULEJO";

/// Opens and creates the arrays of external tables.
#[derive(Debug)]
pub struct ArrayTableFactory {
    context: Context,
}

impl ArrayTableFactory {
    /// A factory that opens arrays through a context.
    pub fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
        }
    }
}

#[async_trait]
impl TableProviderFactory for ArrayTableFactory {
    async fn create(
        &self,
        _state: &dyn Session,
        command: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        let [uri] = command.locations.as_slice() else {
            return Err(DataFusionError::Plan(
                "an array lies at one location".into(),
            ));
        };
        let mut options = Options::of(command)?;
        let table = options.table()?;
        let place = self.context.array(uri);
        let columns = command.schema.as_arrow();
        let new = match columns.fields().is_empty() {
            true => None,
            false => Some(options.schema(columns, &command.constraints)?),
        };
        options.finish()?;
        let table = blocking(move || {
            match (place.snapshot(), new) {
                (Err(azulejo::Error::NotFound { .. }), Some(new)) => place.create(new)?,
                (Err(error), _) => return Err(error),
                (Ok(_), _) => {}
            }
            Ok(ArrayTable::open(place, table))
        });
        let table = table.await??;
        let declared = columns.fields();
        let fits = declared
            .iter()
            .all(|field| table.schema().field_with_name(field.name()).is_ok());
        if !fits {
            return Err(DataFusionError::Plan(format!(
                "{uri}: the array there has other columns: {}",
                table.schema()
            )));
        }
        Ok(Arc::new(table))
    }
}

/// The options of a statement, taken one by one.
struct Options(HashMap<String, String>);

impl Options {
    fn of(command: &CreateExternalTable) -> Result<Self> {
        let mut options = HashMap::new();
        for (key, value) in &command.options {
            // Keys without a point come with one of DataFusion's.
            let key = key.strip_prefix("format.").unwrap_or(key);
            options.insert(key.to_ascii_lowercase(), value.clone());
        }
        Ok(Self(options))
    }

    fn flag(&mut self, key: &str) -> Result<bool> {
        match self.0.remove(key).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(DataFusionError::Plan(format!(
                "{key} must be true or false, not {other:?}"
            ))),
        }
    }

    fn table(&mut self) -> Result<TableOptions> {
        let mut table = TableOptions::new();
        if let Some(at) = self.0.remove("at") {
            table = table.at(crate::time_travel::moment(&ScalarValue::from(at.as_str()))?);
        }
        if self.flag("unwritten")? {
            table = table.unwritten();
        }
        Ok(table)
    }

    /// The schema of a new array: the columns of the primary key are its dimensions.
    fn schema(&mut self, columns: &Schema, constraints: &Constraints) -> Result<NewArray> {
        let dense = self.flag("dense")?;
        let key = constraints.iter().find_map(|constraint| match constraint {
            Constraint::PrimaryKey(columns) => Some(columns.clone()),
            Constraint::Unique(_) => None,
        });
        let key = key.ok_or_else(|| {
            DataFusionError::Plan("a new array needs a PRIMARY KEY: its dimensions".into())
        })?;
        let mut builder = if dense {
            ArraySchema::dense()
        } else {
            ArraySchema::sparse()
        };
        for index in &key {
            builder = builder.dimension_with(self.dimension(columns.field(*index))?);
        }
        let rest = columns.fields().iter().enumerate();
        let rest: Vec<Field> = rest
            .filter(|(index, _)| !key.contains(index))
            .map(|(_, field)| field.as_ref().clone())
            .collect();
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
        let new = builder.build();
        let mut new = new.map_err(|error| DataFusionError::Plan(error.to_string()))?;
        for attribute in &mut new.schema.attributes {
            attribute.filters = compressed();
        }
        Ok(new)
    }

    /// A dimension: `domain.NAME` is `LOW..HIGH`, `tile.NAME` the extent of its tiles.
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
        let mut dimension = Dimension {
            filters: compressed(),
            ..Dimension::of_type(name, datatype)
        };
        if datatype.is_string() {
            return Ok(dimension);
        }
        let wrong = |what: &str, text: &str| {
            DataFusionError::Plan(format!("{what}.{name}: {text:?} does not fit {datatype}"))
        };
        dimension.domain = Some(match &domain {
            Some(text) => {
                let bounds = text.split_once("..").and_then(|(low, high)| {
                    Some(Range::new(
                        coordinate(datatype, low)?,
                        coordinate(datatype, high)?,
                    ))
                });
                bounds.ok_or_else(|| wrong("domain", text))?
            }
            None => widest(datatype.physical()),
        });
        dimension.tile_extent = match &tile {
            Some(text) => Some(coordinate(datatype, text).ok_or_else(|| wrong("tile", text))?),
            None => None,
        };
        Ok(dimension)
    }

    /// That nothing is left which nobody has asked for.
    fn finish(self) -> Result<()> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(key) => Err(DataFusionError::Plan(format!(
                "there is no option {key:?}: there are at, unwritten, dense, duplicates, capacity, domain.COLUMN and tile.COLUMN"
            ))),
        }
    }
}

/// The filters of new columns.
fn compressed() -> Pipeline {
    Pipeline {
        filters: vec![Filter::Zstd { level: 3 }],
        ..Pipeline::default()
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

/// All numbers of a type but the last, which tiles must be able to count beyond.
fn widest(physical: Physical) -> Range {
    match physical {
        Physical::I8 => Range::of(i8::MIN, i8::MAX - 1),
        Physical::I16 => Range::of(i16::MIN, i16::MAX - 1),
        Physical::I32 => Range::of(i32::MIN, i32::MAX - 1),
        Physical::I64 => Range::of(i64::MIN + 1, i64::MAX - 1),
        Physical::U8 => Range::of(u8::MIN, u8::MAX - 1),
        Physical::U16 => Range::of(u16::MIN, u16::MAX - 1),
        Physical::U32 => Range::of(u32::MIN, u32::MAX - 1),
        Physical::U64 => Range::of(u64::MIN, u64::MAX - 1),
        Physical::F32 => Range::of(f32::MIN, f32::MAX),
        Physical::F64 => Range::of(f64::MIN, f64::MAX),
    }
}

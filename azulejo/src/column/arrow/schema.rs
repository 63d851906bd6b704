//! Attributes for the fields of an Arrow schema.

use super::number_datatype;
use crate::error::{Error, Result};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use azulejo_format::schema::{Attribute, SchemaBuilder};
use azulejo_format::{CellValNum, Datatype};

/// What of a new array's schema Arrow's can tell.
pub trait ArrowFields: Sized {
    /// Adds an attribute for each field of an Arrow schema that is not named like a dimension added
    /// before. Which columns are dimensions, and their domains, Arrow cannot say: add them first.
    ///
    /// Text and bytes get cells of any length, lists of numbers any number of values a cell,
    /// timestamps, dates, durations and times of day (as durations) Arrow's unit; dictionaries become attributes of their
    /// values' type, and what has nulls only text. Fields that come from a TileDB array, and say so in their metadata, get the
    /// type that they had there.
    ///
    /// ```
    /// use azulejo::arrow::arrow_schema::{DataType, Field, Schema};
    /// use azulejo::arrow::ArrowFields;
    /// use azulejo::format::{ArraySchema, CellValNum};
    ///
    /// let schema = Schema::new(vec![
    ///     Field::new("id", DataType::Int64, false),
    ///     Field::new("name", DataType::Utf8, true),
    /// ]);
    /// let new = ArraySchema::sparse()
    ///     .dimension("id", 0i64..=999, 100)
    ///     .arrow_fields(&schema)?
    ///     .build()?;
    /// let name = &new.schema.attributes[0];
    /// assert_eq!((name.cell_val_num, name.nullable), (CellValNum::Var, true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a field of a type that no attribute has, such as a struct.
    fn arrow_fields(self, schema: &Schema) -> Result<Self>;
}

impl ArrowFields for SchemaBuilder {
    fn arrow_fields(mut self, schema: &Schema) -> Result<Self> {
        for field in schema.fields() {
            if !self.has_dimension(field.name()) {
                self = self.attribute_with(attribute_of(field)?);
            }
        }
        Ok(self)
    }
}

fn attribute_of(field: &Field) -> Result<Attribute> {
    let known = stored_type(field);
    let none = field.data_type() == &DataType::Null;
    let (datatype, cell_val_num) = match known {
        Some(known) => known,
        // Nothing says what its values would be: text, as of a column of objects without a value.
        None if none => (Datatype::StringUtf8, CellValNum::Var),
        None => type_of(field.data_type()).ok_or_else(|| {
            Error::Unsupported(format!(
                "field {:?}: no attribute holds values of Arrow's type {}",
                field.name(),
                field.data_type()
            ))
        })?,
    };
    let attribute = Attribute::new(field.name().as_str(), datatype, cell_val_num);
    // Times are null in Arrow where they are none, which attributes without nulls can say.
    let never = known.is_some()
        && field
            .metadata()
            .get("tiledb_nullable")
            .is_some_and(|said| said == "false");
    Ok(if (field.is_nullable() && !never) || none {
        attribute.nullable()
    } else {
        attribute
    })
}

/// The type that a field had in the array that it comes from. Indices of labels are none: the new
/// array has no enumeration.
fn stored_type(field: &Field) -> Option<(Datatype, CellValNum)> {
    let metadata = field.metadata();
    if metadata.contains_key("tiledb_enumeration") {
        return None;
    }
    let datatype = Datatype::from_name(metadata.get("tiledb_type")?)?;
    let cell_val_num = match metadata.get("tiledb_cell_val_num")?.as_str() {
        "var" => CellValNum::Var,
        number => CellValNum::Fixed(number.parse().ok().filter(|n| *n > 0)?),
    };
    Some((datatype, cell_val_num))
}

fn type_of(data_type: &DataType) -> Option<(Datatype, CellValNum)> {
    let several = |item: &Field, cell_val_num| match type_of(item.data_type())? {
        (datatype, CellValNum::ONE) => Some((datatype, cell_val_num)),
        _ => None,
    };
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            Some((Datatype::StringUtf8, CellValNum::Var))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            Some((Datatype::Blob, CellValNum::Var))
        }
        DataType::FixedSizeBinary(n) => {
            let n = u32::try_from(*n).ok().filter(|n| *n > 0)?;
            Some((Datatype::Blob, CellValNum::Fixed(n)))
        }
        DataType::List(item) | DataType::LargeList(item) => several(item, CellValNum::Var),
        DataType::FixedSizeList(item, n) => {
            let n = u32::try_from(*n).ok().filter(|n| *n > 0)?;
            several(item, CellValNum::Fixed(n))
        }
        DataType::Dictionary(_, values) => type_of(values),
        one => Some((one_value(one)?, CellValNum::ONE)),
    }
}

fn one_value(data_type: &DataType) -> Option<Datatype> {
    Some(match data_type {
        DataType::Boolean => Datatype::Bool,
        DataType::Date32 => Datatype::DateTimeDay,
        DataType::Date64 => Datatype::DateTimeMilli,
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => Datatype::DateTimeSecond,
            TimeUnit::Millisecond => Datatype::DateTimeMilli,
            TimeUnit::Microsecond => Datatype::DateTimeMicro,
            TimeUnit::Nanosecond => Datatype::DateTimeNano,
        },
        // Times of day are durations: they come back as such.
        DataType::Time32(unit) | DataType::Time64(unit) | DataType::Duration(unit) => match unit {
            TimeUnit::Second => Datatype::TimeSecond,
            TimeUnit::Millisecond => Datatype::TimeMilli,
            TimeUnit::Microsecond => Datatype::TimeMicro,
            TimeUnit::Nanosecond => Datatype::TimeNano,
        },
        other => number_datatype(other)?,
    })
}

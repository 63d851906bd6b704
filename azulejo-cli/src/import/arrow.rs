//! Arrow arrays into columns of an array. What is there already in the right form is shared, not
//! copied.

use super::parse;
use super::scalar;
use super::target::Target;
use super::text::{RecordError, shown};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{DataType, Field, TimeUnit};
use azulejo::column::{ColumnBuffers, ColumnBuilder, ColumnType};
use azulejo::format::datatype::Native;
use azulejo::format::{CellValNum, Datatype, Physical};
use std::sync::Arc;

/// What is wrong with a row.
type RowError = (usize, String);
type Converted = Result<ColumnBuffers, RowError>;

/// The TileDB type of an Arrow column, and what the user should know of it. Columns that this
/// program exported say themselves what they were.
pub fn natural_type(field: &Field) -> Result<(Datatype, CellValNum, Option<String>), String> {
    if let Some((datatype, cell_val_num)) = exported_type(field) {
        return Ok((datatype, cell_val_num, None));
    }
    // They would be the numbers that periods are counted by.
    if field.extension_type_name() == Some("pandas.period") {
        return Err(format!(
            "column {:?} holds pandas' periods, which cells cannot hold; .dt.to_timestamp() makes times of them, --columns \
             leaves it out",
            field.name()
        ));
    }
    type_of(field.name(), field.data_type())
}

/// What the metadata of an exported column says, where Arrow's type can have come from it.
fn exported_type(field: &Field) -> Option<(Datatype, CellValNum)> {
    let metadata = field.metadata();
    let datatype = Datatype::from_name(metadata.get("tiledb_type")?)?;
    let cell_val_num = match metadata.get("tiledb_cell_val_num")?.as_str() {
        "var" => CellValNum::Var,
        number => CellValNum::Fixed(
            number
                .parse()
                .ok()
                .filter(|&n| n > 0 && n != CellValNum::VAR_ID)?,
        ),
    };
    if metadata.contains_key("tiledb_enumeration") {
        return None;
    }
    let many = cell_val_num != CellValNum::ONE;
    let fits = match field.data_type() {
        DataType::LargeUtf8 | DataType::Utf8 | DataType::Utf8View => parse::is_text(datatype),
        DataType::LargeBinary
        | DataType::Binary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => parse::is_text(datatype) || parse::is_bytes(datatype),
        DataType::LargeList(_) | DataType::List(_) | DataType::FixedSizeList(..) => {
            many && !parse::is_text(datatype) && !parse::is_bytes(datatype)
        }
        DataType::Boolean => datatype == Datatype::Bool && !many,
        DataType::Timestamp(..) | DataType::Date32 => datatype.is_datetime() && !many,
        DataType::Duration(_) => datatype.is_time() && !many,
        DataType::Int64 => {
            (datatype.is_datetime() || datatype.is_time() || datatype == Datatype::Int64) && !many
        }
        other => {
            number_type(datatype.physical()) == *other
                && !many
                && (datatype.is_integer() || datatype.is_real())
        }
    };
    fits.then_some((datatype, cell_val_num))
}

fn type_of(
    name: &str,
    data_type: &DataType,
) -> Result<(Datatype, CellValNum, Option<String>), String> {
    use Datatype as D;
    let zone = |zone: &Option<Arc<str>>| {
        zone.as_ref()
            .map(|zone| format!("{name:?} is stored in UTC; its time zone {zone:?} is not kept"))
    };
    let one = |datatype| Ok((datatype, CellValNum::ONE, None));
    match data_type {
        DataType::Boolean => one(D::Bool),
        DataType::Int8 => one(D::Int8),
        DataType::Int16 => one(D::Int16),
        DataType::Int32 => one(D::Int32),
        DataType::Int64 => one(D::Int64),
        DataType::UInt8 => one(D::UInt8),
        DataType::UInt16 => one(D::UInt16),
        DataType::UInt32 => one(D::UInt32),
        DataType::UInt64 => one(D::UInt64),
        DataType::Float16 | DataType::Float32 => one(D::Float32),
        DataType::Float64 => one(D::Float64),
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => {
            let note = format!(
                "{name:?} holds decimals, which become FLOAT64; --type {name}=STRING_ASCII keeps every digit"
            );
            Ok((D::Float64, CellValNum::ONE, Some(note)))
        }
        DataType::Date32 => one(D::DateTimeDay),
        DataType::Date64 => one(D::DateTimeMilli),
        DataType::Timestamp(TimeUnit::Second, z) => {
            Ok((D::DateTimeSecond, CellValNum::ONE, zone(z)))
        }
        DataType::Timestamp(TimeUnit::Millisecond, z) => {
            Ok((D::DateTimeMilli, CellValNum::ONE, zone(z)))
        }
        DataType::Timestamp(TimeUnit::Microsecond, z) => {
            Ok((D::DateTimeMicro, CellValNum::ONE, zone(z)))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, z) => {
            Ok((D::DateTimeNano, CellValNum::ONE, zone(z)))
        }
        DataType::Time32(unit) | DataType::Time64(unit) | DataType::Duration(unit) => {
            one(match unit {
                TimeUnit::Second => D::TimeSecond,
                TimeUnit::Millisecond => D::TimeMilli,
                TimeUnit::Microsecond => D::TimeMicro,
                TimeUnit::Nanosecond => D::TimeNano,
            })
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => {
            Ok((D::StringUtf8, CellValNum::Var, None))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            Ok((D::Blob, CellValNum::Var, None))
        }
        DataType::FixedSizeBinary(n @ 1..) => {
            Ok((D::Blob, CellValNum::Fixed(n.unsigned_abs()), None))
        }
        DataType::Dictionary(_, values) => type_of(name, values),
        DataType::List(item) | DataType::LargeList(item) => many(name, item, CellValNum::Var),
        DataType::FixedSizeList(item, n @ 1..) => {
            many(name, item, CellValNum::Fixed(n.unsigned_abs()))
        }
        other => Err(format!(
            "column {name:?} is of type {other}, which cells cannot hold; leave it out with --columns"
        )),
    }
}

fn many(
    name: &str,
    item: &Field,
    cell_val_num: CellValNum,
) -> Result<(Datatype, CellValNum, Option<String>), String> {
    match type_of(name, item.data_type())? {
        (datatype, CellValNum::ONE, note) => Ok((datatype, cell_val_num, note)),
        _ => Err(format!(
            "column {name:?} holds lists of {}, which cells cannot hold; leave it out with --columns",
            item.data_type()
        )),
    }
}

/// Numbers as cells have them as an Arrow array; truth values are their bytes.
pub fn numbers_array(datatype: Datatype, data: &[u8]) -> ArrayRef {
    fn of<T: ArrowPrimitiveType>(data: &[u8]) -> ArrayRef
    where
        T::Native: Native,
    {
        let values = data.chunks_exact(<T::Native as Native>::SIZE);
        let values = values.map(<T::Native as Native>::read);
        Arc::new(PrimitiveArray::<T>::from_iter_values(values))
    }
    match datatype.physical() {
        Physical::I8 => of::<Int8Type>(data),
        Physical::I16 => of::<Int16Type>(data),
        Physical::I32 => of::<Int32Type>(data),
        Physical::I64 => of::<Int64Type>(data),
        Physical::U8 => of::<UInt8Type>(data),
        Physical::U16 => of::<UInt16Type>(data),
        Physical::U32 => of::<UInt32Type>(data),
        Physical::U64 => of::<UInt64Type>(data),
        Physical::F32 => of::<Float32Type>(data),
        Physical::F64 => of::<Float64Type>(data),
    }
}

/// The rows of an Arrow column as a column of the array.
pub fn column(array: &ArrayRef, target: &Target) -> Result<ColumnBuffers, RecordError> {
    convert(array, target).map_err(|(row, reason)| RecordError {
        row,
        lines: 0,
        column: Some(target.column.name.to_string()),
        reason,
    })
}

fn convert(array: &ArrayRef, target: &Target) -> Converted {
    let datatype = target.column.datatype;
    if target.labels.is_some() {
        return labelled(array, target);
    }
    if let DataType::Dictionary(_, values) = array.data_type() {
        return convert(&cast_to(array, values)?, target);
    }
    if parse::is_text(datatype) || parse::is_bytes(datatype) {
        return lumps(array, target);
    }
    if target.column.cell_val_num != CellValNum::ONE {
        return lists(array, target);
    }
    let nulls = array.logical_nulls();
    if datatype.is_datetime() || datatype.is_time() {
        let ticks = ticks(array, datatype)?;
        return fixed(Buffer::from_vec(ticks), nulls.as_ref(), target);
    }
    if datatype == Datatype::Bool {
        let bytes = truths(array, datatype)?;
        return fixed(bytes, nulls.as_ref(), target);
    }
    let data = match datatype.physical() {
        Physical::I8 => numbers::<Int8Type>(array, datatype)?,
        Physical::I16 => numbers::<Int16Type>(array, datatype)?,
        Physical::I32 => numbers::<Int32Type>(array, datatype)?,
        Physical::I64 => numbers::<Int64Type>(array, datatype)?,
        Physical::U8 => numbers::<UInt8Type>(array, datatype)?,
        Physical::U16 => numbers::<UInt16Type>(array, datatype)?,
        Physical::U32 => numbers::<UInt32Type>(array, datatype)?,
        Physical::U64 => numbers::<UInt64Type>(array, datatype)?,
        Physical::F32 => numbers::<Float32Type>(array, datatype)?,
        Physical::F64 => numbers::<Float64Type>(array, datatype)?,
    };
    fixed(data, nulls.as_ref(), target)
}

fn number_type(physical: Physical) -> DataType {
    match physical {
        Physical::I8 => DataType::Int8,
        Physical::I16 => DataType::Int16,
        Physical::I32 => DataType::Int32,
        Physical::I64 => DataType::Int64,
        Physical::U8 => DataType::UInt8,
        Physical::U16 => DataType::UInt16,
        Physical::U32 => DataType::UInt32,
        Physical::U64 => DataType::UInt64,
        Physical::F32 => DataType::Float32,
        Physical::F64 => DataType::Float64,
    }
}

/// The same values in another type. What that type does not hold the cast makes null, which is an
/// error: it was there.
fn cast_to(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, RowError> {
    let cast = cast(array, to).map_err(|e| (0, e.to_string()))?;
    let (before, after) = (array.logical_nulls(), cast.logical_nulls());
    let count = |nulls: &Option<NullBuffer>| nulls.as_ref().map_or(0, NullBuffer::null_count);
    if count(&after) > count(&before) {
        let is_null = |nulls: &Option<NullBuffer>, row| {
            nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
        };
        let lost = (0..array.len()).find(|&row| is_null(&after, row) && !is_null(&before, row));
        let row = lost.unwrap_or(0);
        return Err((
            row,
            format!("{} is not a value of {to}", text_of(array, row)),
        ));
    }
    Ok(cast)
}

/// The truth values of a column, as bytes; words for them are those of CSV files.
fn truths(array: &ArrayRef, datatype: Datatype) -> Result<Buffer, RowError> {
    let no_value = |row| {
        let reason = format!("{} is not a value of {datatype}", text_of(array, row));
        (row, reason)
    };
    if array.data_type().is_numeric() {
        // 0 and 1 are the truth values among numbers.
        let bytes = numbers::<UInt8Type>(array, datatype)?;
        let neither = |row: &usize| array.is_valid(*row) && bytes[*row] > 1;
        return match (0..array.len()).find(neither) {
            Some(row) => Err(no_value(row)),
            None => Ok(bytes),
        };
    }
    if is_text(array.data_type()) {
        let text = cast_to(array, &DataType::LargeUtf8)?;
        let text = text.as_string::<i64>();
        let truth = |row: usize| match text.is_valid(row) {
            true => parse::boolean(text.value(row).as_bytes())
                .map(u8::from)
                .map_err(|reason| (row, reason)),
            false => Ok(0),
        };
        let bytes = (0..text.len()).map(truth).collect::<Result<Vec<u8>, _>>()?;
        return Ok(Buffer::from_vec(bytes));
    }
    let bits = cast_to(array, &DataType::Boolean)?;
    let bits = bits.as_boolean().values();
    Ok(Buffer::from_vec(
        bits.iter().map(u8::from).collect::<Vec<u8>>(),
    ))
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// Numbers of another type, each of which must fit.
fn numbers<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    datatype: Datatype,
) -> Result<Buffer, RowError> {
    let to = T::DATA_TYPE;
    if *array.data_type() == to {
        return Ok(array.as_primitive::<T>().values().inner().clone());
    }
    let lenient = CastOptions {
        safe: true,
        ..CastOptions::default()
    };
    let cast = cast_with_options(array, &to, &lenient)
        .map_err(|_| (0, format!("{} cannot become {datatype}", array.data_type())))?;
    // What is cut off comes to light on the way back. Reals of fewer digits are near enough.
    let back = match to.is_integer() && has_fractions(array.data_type()) {
        true => Some(cast_to(&cast, array.data_type())?),
        false => None,
    };
    for row in 0..array.len() {
        if !array.is_valid(row) {
            continue;
        }
        let cut = |back: &ArrayRef| !is_equal(array, back, row);
        let endless = |cast: &ArrayRef| is_infinite(cast, row) && !is_infinite(array, row);
        if cast.is_null(row) || back.as_ref().is_some_and(cut) || endless(&cast) {
            return Err((
                row,
                format!("{} is not a value of {datatype}", text_of(array, row)),
            ));
        }
    }
    Ok(cast.as_primitive::<T>().values().inner().clone())
}

fn has_fractions(data_type: &DataType) -> bool {
    data_type.is_floating()
        || matches!(
            data_type,
            DataType::Decimal32(..)
                | DataType::Decimal64(..)
                | DataType::Decimal128(..)
                | DataType::Decimal256(..)
        )
}

/// Whether two arrays of one type have the same value in a row.
fn is_equal(a: &ArrayRef, b: &ArrayRef, row: usize) -> bool {
    match a.data_type() {
        // 0.0 and -0.0 are.
        DataType::Float64 => is_same::<Float64Type>(a, b, row),
        DataType::Float32 => is_same::<Float32Type>(a, b, row),
        DataType::Float16 => is_same::<Float16Type>(a, b, row),
        _ => a.slice(row, 1) == b.slice(row, 1),
    }
}

fn is_same<T: ArrowPrimitiveType>(a: &ArrayRef, b: &ArrayRef, row: usize) -> bool {
    a.as_primitive::<T>().value(row) == b.as_primitive::<T>().value(row)
}

fn is_infinite(array: &ArrayRef, row: usize) -> bool {
    match array.data_type() {
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).is_infinite(),
        DataType::Float32 => array.as_primitive::<Float32Type>().value(row).is_infinite(),
        DataType::Float16 => array.as_primitive::<Float16Type>().value(row).is_infinite(),
        _ => false,
    }
}

fn text_of(array: &ArrayRef, row: usize) -> String {
    arrow_cast::display::array_value_to_string(array, row).unwrap_or_else(|_| "a value".to_owned())
}

/// The length of an Arrow tick in nanoseconds.
fn tick_nanos(data_type: &DataType) -> Option<i128> {
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    match data_type {
        DataType::Date32 => Some(scalar::DAY),
        DataType::Date64 => Some(1_000_000),
        DataType::Timestamp(u, _)
        | DataType::Time32(u)
        | DataType::Time64(u)
        | DataType::Duration(u) => Some(unit(u)),
        _ => None,
    }
}

const SECOND: i128 = 1_000_000_000;

/// The length of a tick in nanoseconds; `None` of months, years and what is shorter.
fn nanos_of(datatype: Datatype) -> Option<i128> {
    use Datatype as D;
    Some(match datatype {
        D::DateTimeWeek => 7 * scalar::DAY,
        D::DateTimeDay => scalar::DAY,
        D::DateTimeHour | D::TimeHour => 3600 * SECOND,
        D::DateTimeMinute | D::TimeMinute => 60 * SECOND,
        D::DateTimeSecond | D::TimeSecond => SECOND,
        D::DateTimeMilli | D::TimeMilli => 1_000_000,
        D::DateTimeMicro | D::TimeMicro => 1_000,
        D::DateTimeNano | D::TimeNano => 1,
        _ => return None,
    })
}

/// Ticks of a datetime or time type. Integers count as ticks already.
fn ticks(array: &ArrayRef, datatype: Datatype) -> Result<Vec<i64>, RowError> {
    if is_text(array.data_type()) {
        let text = cast_to(array, &DataType::LargeUtf8)?;
        let text = text.as_string::<i64>();
        let tick = |row: usize| match text.is_valid(row) {
            true => parse::tick(datatype, text.value(row).as_bytes()).map_err(|e| (row, e)),
            false => Ok(0),
        };
        return (0..text.len()).map(tick).collect();
    }
    let from = match tick_nanos(array.data_type()) {
        Some(nanos) => nanos,
        None if array.data_type().is_integer() => {
            let integers = cast_to(array, &DataType::Int64)?;
            return Ok(integers.as_primitive::<Int64Type>().values().to_vec());
        }
        None => return Err((0, format!("{} cannot become {datatype}", array.data_type()))),
    };
    // Date32 and Time32 become integers of their own width first.
    let narrow = matches!(array.data_type(), DataType::Date32 | DataType::Time32(_));
    let integers = if narrow {
        cast_to(array, &DataType::Int32)?
    } else {
        array.clone()
    };
    let integers = cast_to(&integers, &DataType::Int64)?;
    let ticks = integers.as_primitive::<Int64Type>().values();
    let rule = TickRule::new(datatype, from)
        .ok_or_else(|| (0, format!("{} cannot become {datatype}", array.data_type())))?;
    let convert = |(row, &tick): (usize, &i64)| {
        if !array.is_valid(row) {
            return Ok(0);
        }
        rule.apply(tick).ok_or_else(|| {
            (
                row,
                format!("{} is not a value of {datatype}", text_of(array, row)),
            )
        })
    };
    ticks.iter().enumerate().map(convert).collect()
}

/// How ticks of one length become ticks of another.
#[derive(Debug)]
pub enum TickRule {
    Times(i64),
    Over(i64),
    /// Ticks of some seconds, or of a part of one, to months (1) or years (12).
    Months {
        seconds: i64,
        per_second: i64,
        months: i64,
    },
}

impl TickRule {
    /// From one type of moments, or of durations, to another; `None` where there is no way.
    pub fn between(from: Datatype, to: Datatype) -> Option<Self> {
        let alike = from.is_datetime() && to.is_datetime() || from.is_time() && to.is_time();
        match alike {
            true if from == to => Some(Self::Times(1)),
            true => Self::new(to, nanos_of(from)?),
            false => None,
        }
    }

    fn new(datatype: Datatype, from: i128) -> Option<Self> {
        use Datatype as D;
        let to = match datatype {
            D::DateTimeYear | D::DateTimeMonth => {
                let months = if datatype == D::DateTimeYear { 12 } else { 1 };
                let seconds = i64::try_from((from / SECOND).max(1)).ok()?;
                let per_second = i64::try_from(SECOND / from.min(SECOND)).ok()?;
                return Some(Self::Months {
                    seconds,
                    per_second,
                    months,
                });
            }
            _ => nanos_of(datatype)?,
        };
        let ratio = |a: i128, b: i128| i64::try_from(a / b).ok();
        if from >= to {
            ratio(from, to).map(Self::Times)
        } else {
            ratio(to, from).map(Self::Over)
        }
    }

    /// The tick that is the same moment; `None` if there is none.
    pub fn apply(&self, tick: i64) -> Option<i64> {
        match *self {
            // The least tick is no time, whatever the unit.
            _ if tick == i64::MIN => Some(tick),
            Self::Times(factor) => tick.checked_mul(factor),
            Self::Over(divisor) => {
                (tick.rem_euclid(divisor) == 0).then(|| tick.div_euclid(divisor))
            }
            Self::Months {
                seconds,
                per_second,
                months,
            } => {
                if tick.rem_euclid(per_second) != 0 {
                    return None;
                }
                let second = tick.div_euclid(per_second).checked_mul(seconds)?;
                let (month, first) = scalar::month_of(second);
                (first && month.rem_euclid(months) == 0).then(|| month.div_euclid(months))
            }
        }
    }
}

/// A column of fixed-size cells; missing ones are null, or what stands in for them.
fn fixed(data: Buffer, nulls: Option<&NullBuffer>, target: &Target) -> Converted {
    let column = &target.column;
    let size = column.cell_size();
    let cell_num = data.len() / size.max(1);
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    let validity = column.nullable.then(|| validity_of(nulls, cell_num));
    let data = match nulls {
        Some(nulls) if !column.nullable => {
            let missing = (0..cell_num).find(|&row| nulls.is_null(row)).unwrap_or(0);
            let value = target
                .stand_in()
                .ok_or_else(|| (missing, target.missing()))?;
            let mut data = MutableBuffer::from(data.to_vec());
            for (row, cell) in data.as_slice_mut().chunks_exact_mut(size).enumerate() {
                if nulls.is_null(row) {
                    cell.chunks_exact_mut(value.len())
                        .for_each(|part| part.copy_from_slice(&value));
                }
            }
            data.into()
        }
        _ => data,
    };
    Ok(ColumnBuffers {
        column_type: column.clone(),
        cell_num,
        data,
        offsets: None,
        validity,
    })
}

fn validity_of(nulls: Option<&NullBuffer>, cell_num: usize) -> Buffer {
    match nulls {
        Some(nulls) => Buffer::from_vec(nulls.iter().map(u8::from).collect::<Vec<_>>()),
        None => Buffer::from_vec(vec![1u8; cell_num]),
    }
}

/// Texts and bytes.
fn lumps(array: &ArrayRef, target: &Target) -> Converted {
    let column = &target.column;
    let text = parse::is_text(column.datatype);
    let is_binary = matches!(
        array.data_type(),
        DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    );
    if let (DataType::FixedSizeBinary(n), CellValNum::Fixed(_)) =
        (array.data_type(), column.cell_val_num)
        && usize::try_from(*n) == Ok(column.cell_size())
    {
        let data = array.as_fixed_size_binary();
        return fixed(
            Buffer::from(data.value_data()),
            array.logical_nulls().as_ref(),
            target,
        );
    }
    let array = match (is_binary, text) {
        (true, _) => cast_to(array, &DataType::LargeBinary)?,
        (false, true) => cast_to(array, &DataType::LargeUtf8)?,
        (false, false) => cast_to(
            &cast_to(array, &DataType::LargeUtf8)?,
            &DataType::LargeBinary,
        )?,
    };
    let (offsets, values) = match array.data_type() {
        DataType::LargeUtf8 => (
            array.as_string::<i64>().offsets().clone(),
            array.as_string::<i64>().values().clone(),
        ),
        _ => (
            array.as_binary::<i64>().offsets().clone(),
            array.as_binary::<i64>().values().clone(),
        ),
    };
    let cell = |row: usize| {
        let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        values.as_slice().get(start..end).unwrap_or(&[])
    };
    if is_binary && column.datatype == Datatype::StringUtf8 {
        let bad =
            (0..array.len()).find(|&row| array.is_valid(row) && str::from_utf8(cell(row)).is_err());
        if let Some(row) = bad {
            return Err((row, format!("{} is not UTF-8", shown(cell(row)))));
        }
    }
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    if let (Some(nulls), false) = (nulls, column.nullable) {
        let row = (0..array.len())
            .find(|&row| nulls.is_null(row))
            .unwrap_or(0);
        return Err((row, target.missing()));
    }
    let validity = column.nullable.then(|| validity_of(nulls, array.len()));
    if column.is_var() {
        let (first, last) = (offsets[0], offsets[array.len()]);
        let data = values.slice_with_length(first as usize, (last - first) as usize);
        let offsets: Vec<u64> = offsets
            .iter()
            .map(|offset| (offset - first).cast_unsigned())
            .collect();
        let offsets = Some(Buffer::from_vec(offsets));
        return Ok(ColumnBuffers {
            column_type: column.clone(),
            cell_num: array.len(),
            data,
            offsets,
            validity,
        });
    }
    let size = column.cell_size();
    let mut builder = ColumnBuilder::with_capacity(column.clone(), array.len(), 0);
    for row in 0..array.len() {
        let bytes = cell(row);
        if bytes.len() > size {
            return Err((
                row,
                format!("{} has {} bytes, a cell {size}", shown(bytes), bytes.len()),
            ));
        }
        builder.append_cell(bytes, array.is_valid(row));
    }
    Ok(builder.finish())
}

/// Several numbers a cell.
fn lists(array: &ArrayRef, target: &Target) -> Converted {
    let column = &target.column;
    let nulls = array.logical_nulls();
    // The offsets of all lists, and the values from the first to the last.
    let (offsets, values): (Vec<usize>, ArrayRef) = match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (
                list.value_offsets().iter().map(|&o| o as usize).collect(),
                list.values().clone(),
            )
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            (
                list.value_offsets().iter().map(|&o| o as usize).collect(),
                list.values().clone(),
            )
        }
        DataType::FixedSizeList(_, n) => {
            let list = array.as_fixed_size_list();
            let n = usize::try_from(*n).unwrap_or(0);
            (
                (0..=list.len()).map(|i| i * n).collect(),
                list.values().clone(),
            )
        }
        other => {
            return Err((
                0,
                format!("{other} cannot become a list of {}", column.datatype),
            ));
        }
    };
    let (first, last) = (offsets[0], offsets[array.len()]);
    let values = values.slice(first, last - first);
    // Items of lists that are missing may be missing as well.
    let item_target = Target {
        column: ColumnType {
            nullable: true,
            ..ColumnType::new(column.name.clone(), column.datatype)
        },
        source: target.source,
        is_dimension: false,
        labels: None,
    };
    let row_of = |item: usize| {
        offsets
            .partition_point(|&o| o <= item + first)
            .saturating_sub(1)
    };
    let mut items =
        convert(&values, &item_target).map_err(|(item, reason)| (row_of(item), reason))?;
    let size = column.datatype.size();
    let present = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let validity = items
        .validity
        .as_deref()
        .unwrap_or_default()
        .iter()
        .enumerate();
    let missing: Vec<usize> = validity
        .filter(|&(item, &valid)| valid == 0 && present(row_of(item)))
        .map(|(item, _)| item)
        .collect();
    if let Some(&first) = missing.first() {
        let value = target.stand_in().ok_or_else(|| {
            (
                row_of(first),
                "a value within the list is missing, which cells cannot hold".to_owned(),
            )
        })?;
        let mut data = MutableBuffer::from(items.data.to_vec());
        let mut cells: Vec<&mut [u8]> = data.as_slice_mut().chunks_exact_mut(size).collect();
        missing
            .iter()
            .for_each(|&item| cells[item].copy_from_slice(&value));
        items.data = data.into();
    }
    match column.cell_val_num {
        CellValNum::Fixed(n) => {
            let n = n as usize;
            // Nulls of lists of varying length may have no values.
            let full = (0..array.len()).all(|row| offsets[row + 1] - offsets[row] == n);
            if full {
                return fixed(items.data, nulls.as_ref(), target);
            }
            let mut data = Vec::with_capacity(array.len() * n * size);
            for row in 0..array.len() {
                let (start, end) = (offsets[row] - first, offsets[row + 1] - first);
                if end - start == n {
                    data.extend_from_slice(&items.data.as_slice()[start * size..end * size]);
                } else if array.is_null(row) {
                    data.resize(data.len() + n * size, 0);
                } else {
                    return Err((
                        row,
                        format!("the list has {} values where {n} are expected", end - start),
                    ));
                }
            }
            fixed(Buffer::from_vec(data), nulls.as_ref(), target)
        }
        CellValNum::Var => {
            let nulls = nulls.as_ref().filter(|nulls| nulls.null_count() > 0);
            if let (Some(nulls), false) = (nulls, column.nullable) {
                let row = (0..array.len())
                    .find(|&row| nulls.is_null(row))
                    .unwrap_or(0);
                return Err((row, target.missing()));
            }
            let offsets: Vec<u64> = offsets
                .iter()
                .map(|&o| ((o - first) * size) as u64)
                .collect();
            Ok(ColumnBuffers {
                column_type: column.clone(),
                cell_num: array.len(),
                data: items.data,
                offsets: Some(Buffer::from_vec(offsets)),
                validity: column.nullable.then(|| validity_of(nulls, array.len())),
            })
        }
    }
}

/// Labels as indices: those of a dictionary are looked up once.
fn labelled(array: &ArrayRef, target: &Target) -> Converted {
    let column = &target.column;
    let labels = target
        .labels
        .as_deref()
        .ok_or_else(|| (0, "there are no labels".to_owned()))?;
    let values = column.enumeration.as_deref().map_or_else(
        || ColumnType::new("", Datatype::StringUtf8).with_cell_val_num(CellValNum::Var),
        |e| ColumnType::new("", e.datatype).with_cell_val_num(e.cell_val_num),
    );
    let lookup = |entries: &ArrayRef| -> Result<Vec<Option<u64>>, RowError> {
        let target = Target {
            column: values.clone().with_nulls(),
            source: 0,
            is_dimension: false,
            labels: None,
        };
        let entries = convert(entries, &target)?;
        Ok(entries
            .cells()
            .map(|cell| cell.and_then(|cell| labels.get(cell).copied()))
            .collect())
    };
    let indices: Vec<Option<u64>> = match array.as_any_dictionary_opt() {
        Some(dictionary) => {
            let known = lookup(dictionary.values())?;
            // Without words every row is null.
            let keys = match known.is_empty() {
                true => vec![0; array.len()],
                false => dictionary.normalized_keys(),
            };
            (keys.iter().enumerate())
                .map(|(row, &key)| {
                    array
                        .is_valid(row)
                        .then(|| known.get(key).copied().flatten())
                        .flatten()
                })
                .collect()
        }
        None => lookup(array)?,
    };
    let size = column.datatype.size();
    let nulls = array.logical_nulls();
    let mut data = Vec::with_capacity(indices.len() * size);
    for (row, index) in indices.iter().enumerate() {
        let null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let index = match index {
            Some(index) => *index,
            None if null => 0,
            None => {
                return Err((
                    row,
                    format!("{} is none of the labels", text_of(array, row)),
                ));
            }
        };
        data.extend_from_slice(&index.to_le_bytes()[..size]);
    }
    fixed(Buffer::from_vec(data), nulls.as_ref(), target)
}

#[cfg(test)]
mod tests;

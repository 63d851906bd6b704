//! What has no text among moments and durations: the least tick, which is no time (NaT), becomes a
//! null before text is made of a batch, and what lies beyond the calendar is an error. The writers
//! of text would put a message of their own among the values, or a moment that nobody stored.

use crate::error::{CliError, Result};
use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::{as_datetime, as_duration};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, OffsetSizeTrait, PrimitiveArray,
    RecordBatch, RecordBatchOptions, StructArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use std::sync::Arc;

/// The batch as text can be made of it; mostly it is the same.
pub fn readable(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    if !schema.fields().iter().any(|f| has_ticks(f.data_type())) {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns
        .map(|(column, field)| readable_column(column, field.name()))
        .collect::<Result<Vec<_>>>()?;
    let fields = schema.fields().iter().zip(&columns);
    let fields: Vec<FieldRef> = fields.map(|(field, c)| field_of(field, c)).collect();
    let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let readable = RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)?;
    Ok(readable)
}

/// Whether there may be moments or durations in a column.
fn has_ticks(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(..) | DataType::Duration(_) | DataType::Date32 => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_ticks(item.data_type())
        }
        DataType::Dictionary(_, values) => has_ticks(values),
        DataType::Struct(fields) => fields.iter().any(|field| has_ticks(field.data_type())),
        _ => false,
    }
}

/// A field of the type that a column has come to, which may have nulls now.
fn field_of(field: &FieldRef, column: &ArrayRef) -> FieldRef {
    let nullable = field.is_nullable() || has_ticks(field.data_type());
    let field = Field::clone(field).with_data_type(column.data_type().clone());
    Arc::new(field.with_nullable(nullable))
}

fn readable_column(array: &ArrayRef, name: &str) -> Result<ArrayRef> {
    use TimeUnit as U;
    match array.data_type() {
        DataType::Timestamp(U::Second, _) => moments::<TimestampSecondType>(array, name),
        DataType::Timestamp(U::Millisecond, _) => moments::<TimestampMillisecondType>(array, name),
        DataType::Timestamp(U::Microsecond, _) => moments::<TimestampMicrosecondType>(array, name),
        DataType::Timestamp(U::Nanosecond, _) => moments::<TimestampNanosecondType>(array, name),
        DataType::Date32 => ticks::<Date32Type>(array, name, |tick| {
            as_datetime::<Date32Type>(i64::from(tick)).is_some()
        }),
        DataType::Duration(U::Second) => durations::<DurationSecondType>(array, name),
        DataType::Duration(U::Millisecond) => durations::<DurationMillisecondType>(array, name),
        DataType::Duration(U::Microsecond) => durations::<DurationMicrosecondType>(array, name),
        DataType::Duration(U::Nanosecond) => durations::<DurationNanosecondType>(array, name),
        other if !has_ticks(other) => Ok(Arc::clone(array)),
        DataType::List(item) => list::<i32>(array, item, name),
        DataType::LargeList(item) => list::<i64>(array, item, name),
        DataType::FixedSizeList(item, size) => {
            let lists = array.as_fixed_size_list();
            let values = readable_column(lists.values(), name)?;
            let item = field_of(item, &values);
            let nulls = lists.nulls().cloned();
            let lists = FixedSizeListArray::try_new(item, *size, values, nulls)?;
            Ok(Arc::new(lists))
        }
        DataType::Dictionary(..) => {
            let labels = array.as_any_dictionary();
            Ok(labels.with_values(readable_column(labels.values(), name)?))
        }
        DataType::Struct(fields) => {
            let parts = array.as_struct();
            let columns = parts.columns().iter();
            let columns = columns
                .map(|column| readable_column(column, name))
                .collect::<Result<Vec<_>>>()?;
            let fields = fields.iter().zip(&columns);
            let fields: Fields = fields.map(|(field, c)| field_of(field, c)).collect();
            let parts = StructArray::try_new(fields, columns, parts.nulls().cloned())?;
            Ok(Arc::new(parts))
        }
        _ => Ok(Arc::clone(array)),
    }
}

fn list<O: OffsetSizeTrait>(array: &ArrayRef, item: &FieldRef, name: &str) -> Result<ArrayRef> {
    let lists = array.as_list::<O>();
    let values = readable_column(lists.values(), name)?;
    let item = field_of(item, &values);
    let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
    let lists = GenericListArray::<O>::try_new(item, offsets, values, nulls)?;
    Ok(Arc::new(lists))
}

fn moments<T: ArrowPrimitiveType<Native = i64>>(array: &ArrayRef, name: &str) -> Result<ArrayRef> {
    ticks::<T>(array, name, |tick| as_datetime::<T>(tick).is_some())
}

fn durations<T: ArrowPrimitiveType<Native = i64>>(
    array: &ArrayRef,
    name: &str,
) -> Result<ArrayRef> {
    ticks::<T>(array, name, |tick| as_duration::<T>(tick).is_some())
}

/// The ticks that are times, each of which must have a text.
fn ticks<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    name: &str,
    has_text: impl Fn(T::Native) -> bool,
) -> Result<ArrayRef>
where
    T::Native: Into<i64>,
{
    let ticks = array.as_primitive::<T>();
    let is_none = |tick: T::Native| tick.into() == i64::MIN;
    let (mut none, rows) = (false, ticks.len());
    for (row, &tick) in ticks.values().iter().enumerate() {
        if is_none(tick) {
            none = true;
        } else if !has_text(tick) && ticks.is_valid(row) {
            let tick: i64 = tick.into();
            return Err(CliError::Format(format!(
                "column {name:?}: tick {tick} lies beyond the calendar and has no text; Arrow files keep it"
            )));
        }
    }
    if !none {
        return Ok(Arc::clone(array));
    }
    let mut valid = BooleanBufferBuilder::new(rows);
    for (row, &tick) in ticks.values().iter().enumerate() {
        valid.append(ticks.is_valid(row) && !is_none(tick));
    }
    let nulls = NullBuffer::new(valid.finish());
    let ticks = PrimitiveArray::<T>::try_new(ticks.values().clone(), Some(nulls))?;
    Ok(Arc::new(ticks.with_data_type(array.data_type().clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{DurationSecondArray, TimestampNanosecondArray, TimestampSecondArray};

    #[test]
    fn no_time_is_null_and_what_has_no_text_an_error() {
        let batch = |array: ArrayRef| {
            let field = Field::new("t", array.data_type().clone(), false);
            RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap()
        };
        let nulls =
            |array: ArrayRef| readable(&batch(array)).map(|batch| batch.column(0).null_count());
        let none = vec![i64::MIN, 0, i64::MIN];
        assert_eq!(
            nulls(Arc::new(TimestampNanosecondArray::from(none.clone()))).unwrap(),
            2
        );
        assert_eq!(nulls(Arc::new(DurationSecondArray::from(none))).unwrap(), 2);
        assert_eq!(
            nulls(Arc::new(TimestampSecondArray::from(vec![0, 1]))).unwrap(),
            0
        );
        assert!(nulls(Arc::new(TimestampSecondArray::from(vec![i64::MAX]))).is_err());
        // Of what is null nothing is written.
        let null: ArrayRef = Arc::new(TimestampSecondArray::new(
            vec![i64::MAX].into(),
            Some(vec![false].into()),
        ));
        let field = Field::new("t", null.data_type().clone(), true);
        let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![null]).unwrap();
        assert!(readable(&batch).is_ok());
        let lists = FixedSizeListArray::new(
            Arc::new(Field::new(
                "item",
                DataType::Timestamp(TimeUnit::Second, None),
                false,
            )),
            2,
            Arc::new(TimestampSecondArray::from(vec![i64::MIN, 5])),
            None,
        );
        let lists = readable_column(&(Arc::new(lists) as ArrayRef), "t").unwrap();
        assert_eq!(lists.as_fixed_size_list().values().null_count(), 1);
    }
}

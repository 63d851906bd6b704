//! Columns as Arrow arrays, as the documentation of [`crate::arrow`] has them.

mod import;
mod pieces;
mod refused;
mod schema;
mod views;
mod words;

pub use import::ArrowImporter;
pub(crate) use pieces::Pieces;
pub use schema::ArrowFields;

use super::{ColumnBuffers, ColumnSet, ColumnType, part, typed};
use crate::error::{Error, Result};
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Date32Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray,
    LargeBinaryArray, LargeListArray, LargeStringArray, PrimitiveArray, RecordBatch,
    RecordBatchOptions,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use azulejo_format::schema::Enumeration;
use azulejo_format::{CellValNum, Datatype, Physical};
use refused::{no_text, too_long};
use std::collections::HashMap;
use std::sync::Arc;

/// How columns become Arrow arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ArrowOptions {
    /// Stored values: ticks, enumeration indices, bytes.
    pub raw: bool,
    /// Texts, and bytes of varying length, as views.
    pub views: bool,
    /// Texts of a fixed length without the zeros at their end.
    pub trimmed: bool,
    /// CHAR as bytes: not all of it need be text.
    pub char_bytes: bool,
    /// Times that are none (NaT) as nulls.
    pub null_times: bool,
    /// Rows of a record batch at most; as many as come at once without.
    pub rows: Option<usize>,
}

impl ArrowOptions {
    /// Arrow's own types for what the values mean.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether values come as they are stored: ticks, enumeration indices, bytes.
    #[must_use]
    pub fn raw(mut self, raw: bool) -> Self {
        self.raw = raw;
        self
    }

    /// Sets whether texts come as `Utf8View` instead of `LargeUtf8`, and bytes of varying length as
    /// `BinaryView` instead of `LargeBinary`: 16 bytes a cell, which hold a text of at most 12 bytes
    /// or say where a longer one lies. Of sparse arrays texts with the dictionary filter, or RLE as
    /// the first one, are then not written out: as many cells point to one text. The labels of
    /// enumerations stay as they are.
    #[must_use]
    pub fn views(mut self, views: bool) -> Self {
        self.views = views;
        self
    }

    /// Sets whether texts of a fixed length come without the zeros that fill them up, as NumPy shows
    /// its `S3`. Taken back, shorter texts are filled up again.
    #[must_use]
    pub fn trimmed(mut self, trimmed: bool) -> Self {
        self.trimmed = trimmed;
        self
    }

    /// Sets whether CHAR comes as bytes, which any of it is. As text, cells are refused that are not UTF-8.
    #[must_use]
    pub fn char_bytes(mut self, char_bytes: bool) -> Self {
        self.char_bytes = char_bytes;
        self
    }

    /// Sets whether times that are none (NaT, the least tick) are null in Arrow, which has no such times
    /// and shows one of long ago. All columns of times are nullable then, whatever they are in TileDB.
    #[must_use]
    pub fn null_times(mut self, null_times: bool) -> Self {
        self.null_times = null_times;
        self
    }

    /// Sets how many rows a record batch of a read has at most, at least one. Larger batches are cut,
    /// not copied: pieces share memory, of which each counts its own part.
    #[must_use]
    pub fn rows(mut self, rows: usize) -> Self {
        self.rows = Some(rows);
        self
    }
}

/// Turns the batches of one query into record batches of one schema.
///
/// ```
/// # use azulejo::column::{ColumnBuilder, ColumnSet, ColumnType};
/// # use azulejo::arrow::{ArrowConverter, ArrowOptions};
/// # use azulejo::format::Datatype;
/// let mut column = ColumnBuilder::new(ColumnType::new("a", Datatype::Int32));
/// column.append_cell(&7i32.to_le_bytes(), true);
/// let set = ColumnSet { cell_num: 1, columns: vec![column.finish()] };
/// let converter = ArrowConverter::new(set.columns.iter().map(|c| &c.column_type), ArrowOptions::default())?;
/// assert_eq!(converter.convert(&set)?.num_rows(), 1);
/// # Ok::<(), azulejo::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ArrowConverter {
    schema: SchemaRef,
    options: ArrowOptions,
    /// For each column, its labels.
    labels: Vec<Option<ArrayRef>>,
}

impl ArrowConverter {
    /// Prepares for columns of these types, in this order.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for cells too long for Arrow, or labels that are not UTF-8 though
    /// their type says text.
    pub fn new<'a>(
        types: impl IntoIterator<Item = &'a ColumnType>,
        options: ArrowOptions,
    ) -> Result<Self> {
        let (mut fields, mut labels) = (Vec::new(), Vec::new());
        for column in types {
            fields.push(field_of(column, options)?);
            labels.push(match &column.enumeration {
                Some(enumeration) if !options.raw => Some(labels_of(enumeration)?),
                _ => None,
            });
        }
        Ok(Self {
            schema: Arc::new(Schema::new(fields)),
            options,
            labels,
        })
    }

    /// The schema of the record batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// One batch.
    ///
    /// # Errors
    /// Columns other than those prepared for, text that is not UTF-8, buffers whose lengths do not
    /// fit.
    pub fn convert(&self, columns: &ColumnSet) -> Result<RecordBatch> {
        self.batch(columns.cell_num, &columns.columns, |column, labels| {
            array_of(column, self.options, labels)
        })
    }

    fn batch<C>(
        &self,
        cell_num: usize,
        columns: impl IntoIterator<Item = C, IntoIter: ExactSizeIterator>,
        convert: impl Fn(C, Option<&ArrayRef>) -> Result<ArrayRef>,
    ) -> Result<RecordBatch> {
        let columns = columns.into_iter();
        if columns.len() != self.labels.len() {
            return Err(Error::InvalidArgument(format!(
                "{} columns given, {} expected",
                columns.len(),
                self.labels.len()
            )));
        }
        let arrays = columns
            .zip(&self.labels)
            .map(|(column, labels)| convert(column, labels.as_ref()))
            .collect::<Result<Vec<_>>>()?;
        let rows = RecordBatchOptions::new().with_row_count(Some(cell_num));
        RecordBatch::try_new_with_options(self.schema(), arrays, &rows)
            .map_err(|e| Error::InvalidArgument(format!("these columns make no record batch: {e}")))
    }
}

impl ColumnSet {
    /// The columns as an Arrow record batch, with values as people want them.
    ///
    /// # Errors
    /// Those of [`Self::to_record_batch`].
    pub fn into_record_batch(self) -> Result<RecordBatch> {
        self.to_record_batch(ArrowOptions::default())
    }

    /// The columns as an Arrow record batch; see [`crate::arrow`] for the types. For many
    /// batches of one query an [`ArrowConverter`] prepares labels once.
    ///
    /// # Errors
    /// Those of [`ArrowConverter::new`] and [`ArrowConverter::convert`].
    pub fn to_record_batch(&self, options: ArrowOptions) -> Result<RecordBatch> {
        ArrowConverter::new(self.columns.iter().map(|c| &c.column_type), options)?.convert(self)
    }
}

/// What becomes of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Numbers as they are.
    Numbers,
    /// 64-bit ticks that Arrow names.
    Ticks(Ticks),
    /// Bits.
    Bits,
    /// Text.
    Text,
    /// Strings of bytes.
    Bytes,
    /// Indices of labels.
    Labels,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ticks {
    Timestamp(TimeUnit),
    Duration(TimeUnit),
    /// Days in 32 bits.
    Days,
    /// Timestamp in seconds, this many a tick.
    Seconds(i64),
    /// Duration in seconds, this many a tick.
    DurationSeconds(i64),
    Months,
    Years,
}

fn form_of(column: &ColumnType, options: ArrowOptions) -> Form {
    use Datatype as D;
    let datatype = column.datatype;
    if column.enumeration.is_some() && !options.raw && column.cell_val_num == CellValNum::ONE {
        return Form::Labels;
    }
    let text = if options.raw {
        // Raw text in cells of varying length is text if the type vouches for it.
        datatype == D::StringUtf8 && column.is_var()
    } else {
        matches!(datatype, D::StringAscii | D::StringUtf8 | D::GeomWkt)
            || (datatype == D::Char && !options.char_bytes)
    };
    if text {
        return Form::Text;
    }
    if datatype.is_string() || datatype.is_byte() || matches!(datatype, D::Char | D::Any) {
        return Form::Bytes;
    }
    if options.raw {
        return Form::Numbers;
    }
    Form::Ticks(match datatype {
        // Indices of labels are numbers.
        D::Bool if column.enumeration.is_none() => return Form::Bits,
        D::DateTimeSecond => Ticks::Timestamp(TimeUnit::Second),
        D::DateTimeMilli => Ticks::Timestamp(TimeUnit::Millisecond),
        D::DateTimeMicro => Ticks::Timestamp(TimeUnit::Microsecond),
        D::DateTimeNano => Ticks::Timestamp(TimeUnit::Nanosecond),
        D::TimeSecond => Ticks::Duration(TimeUnit::Second),
        D::TimeMilli => Ticks::Duration(TimeUnit::Millisecond),
        D::TimeMicro => Ticks::Duration(TimeUnit::Microsecond),
        D::TimeNano => Ticks::Duration(TimeUnit::Nanosecond),
        D::DateTimeDay => Ticks::Days,
        D::DateTimeYear => Ticks::Years,
        D::DateTimeMonth => Ticks::Months,
        D::DateTimeWeek => Ticks::Seconds(7 * 86_400),
        D::DateTimeHour => Ticks::Seconds(3_600),
        D::DateTimeMinute => Ticks::Seconds(60),
        D::TimeHour => Ticks::DurationSeconds(3_600),
        D::TimeMinute => Ticks::DurationSeconds(60),
        _ => return Form::Numbers,
    })
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

/// The datatype of Arrow's numbers.
fn number_datatype(data_type: &DataType) -> Option<Datatype> {
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
        _ => return None,
    })
}

/// The type of one value of a column of numbers or bits.
fn value_type(form: Form, physical: Physical) -> DataType {
    match form {
        Form::Bits => DataType::Boolean,
        Form::Ticks(Ticks::Timestamp(unit)) => DataType::Timestamp(unit, None),
        Form::Ticks(Ticks::Duration(unit)) => DataType::Duration(unit),
        Form::Ticks(Ticks::Days) => DataType::Date32,
        Form::Ticks(Ticks::DurationSeconds(_)) => DataType::Duration(TimeUnit::Second),
        Form::Ticks(_) => DataType::Timestamp(TimeUnit::Second, None),
        _ => number_type(physical),
    }
}

/// Whether conversion can leave values out.
const fn is_converted(form: Form, options: ArrowOptions) -> bool {
    match form {
        Form::Ticks(Ticks::Timestamp(_) | Ticks::Duration(_)) => options.null_times,
        Form::Ticks(_) | Form::Labels => true,
        _ => false,
    }
}

/// The item of lists.
fn item(form: Form, physical: Physical, options: ArrowOptions) -> Field {
    Field::new_list_field(value_type(form, physical), is_converted(form, options))
}

/// The nulls of shared ticks together with those that are no time, where these are to be null. Converted
/// ones leave them out themselves.
fn nulls_among(
    form: Form,
    options: ArrowOptions,
    data: &Buffer,
    nulls: Option<NullBuffer>,
) -> Option<NullBuffer> {
    if !options.null_times || !matches!(form, Form::Ticks(Ticks::Timestamp(_) | Ticks::Duration(_)))
    {
        return nulls;
    }
    let (ticks, _) = data.as_slice().as_chunks::<8>();
    let no_time = i64::MIN.to_le_bytes();
    if !ticks.contains(&no_time) {
        return nulls;
    }
    let times = ticks.iter().map(|tick| *tick != no_time).collect();
    NullBuffer::union(nulls.as_ref(), Some(&times))
}

fn field_of(column: &ColumnType, options: ArrowOptions) -> Result<Field> {
    let form = form_of(column, options);
    let physical = column.datatype.physical();
    let data_type = match (form, column.cell_val_num) {
        (Form::Text, _) if options.views => DataType::Utf8View,
        (Form::Text, _) => DataType::LargeUtf8,
        (Form::Bytes, CellValNum::Var) if options.views => DataType::BinaryView,
        (Form::Bytes, CellValNum::Var) => DataType::LargeBinary,
        (Form::Bytes, CellValNum::Fixed(_)) => {
            let size = i32::try_from(column.cell_size()).map_err(|_| too_long(column))?;
            DataType::FixedSizeBinary(size)
        }
        (Form::Labels, _) => {
            let labels = column
                .enumeration
                .as_ref()
                .map_or(DataType::Null, |e| label_type(e));
            DataType::Dictionary(Box::new(number_type(physical)), Box::new(labels))
        }
        (_, CellValNum::ONE) => value_type(form, physical),
        (_, CellValNum::Var) => DataType::LargeList(Arc::new(item(form, physical, options))),
        (_, CellValNum::Fixed(n)) => {
            let n = i32::try_from(n).map_err(|_| too_long(column))?;
            DataType::FixedSizeList(Arc::new(item(form, physical, options)), n)
        }
    };
    let whole = column.cell_val_num == CellValNum::ONE;
    let nullable = column.nullable || (whole && is_converted(form, options));
    let mut metadata = HashMap::from([
        ("tiledb_type".to_owned(), column.datatype.name().to_owned()),
        (
            "tiledb_cell_val_num".to_owned(),
            match column.cell_val_num {
                CellValNum::Var => "var".to_owned(),
                CellValNum::Fixed(n) => n.to_string(),
            },
        ),
    ]);
    if nullable && !column.nullable && matches!(form, Form::Ticks(_)) {
        // Whoever makes an array of it makes it like this one.
        metadata.insert("tiledb_nullable".to_owned(), "false".to_owned());
    }
    if let Some(enumeration) = &column.enumeration {
        metadata.insert("tiledb_enumeration".to_owned(), enumeration.name.clone());
    }
    let ordered =
        matches!(form, Form::Labels) && column.enumeration.as_ref().is_some_and(|e| e.ordered);
    let field = Field::new(&*column.name, data_type, nullable).with_metadata(metadata);
    Ok(field.with_dict_is_ordered(ordered))
}

/// An enumeration's values as a column of their own. Values that are not what their type says, as
/// there are in public arrays, are bytes.
fn label_column(enumeration: &Enumeration) -> ColumnType {
    let column = ColumnType::new(enumeration.name.as_str(), enumeration.datatype)
        .with_cell_val_num(enumeration.cell_val_num);
    let size = enumeration.datatype.size();
    let fits = match form_of(&column, ArrowOptions::default()) {
        Form::Text => enumeration.values().all(|v| std::str::from_utf8(v).is_ok()),
        _ => enumeration.values().all(|v| v.len().is_multiple_of(size)),
    };
    if fits {
        return column;
    }
    let cell_val_num = match column.cell_val_num {
        CellValNum::Fixed(n) => {
            CellValNum::Fixed(n.saturating_mul(u32::try_from(size).unwrap_or(1)))
        }
        CellValNum::Var => CellValNum::Var,
    };
    ColumnType {
        datatype: Datatype::Blob,
        ..column
    }
    .with_cell_val_num(cell_val_num)
}

fn label_type(enumeration: &Enumeration) -> DataType {
    let column = label_column(enumeration);
    field_of(&column, ArrowOptions::default()).map_or(DataType::Null, |f| f.data_type().clone())
}

fn labels_of(enumeration: &Enumeration) -> Result<ArrayRef> {
    let mut column = super::ColumnBuilder::new(label_column(enumeration));
    for value in enumeration.values() {
        column.append_cell(value, true);
    }
    array_of(&column.finish(), ArrowOptions::default(), None)
}

fn array_of(
    column: &ColumnBuffers,
    options: ArrowOptions,
    labels: Option<&ArrayRef>,
) -> Result<ArrayRef> {
    column.validate()?;
    let kind = &column.column_type;
    let form = form_of(kind, options);
    let nulls = nulls_of(column);
    let wrong =
        |e: arrow_schema::ArrowError| Error::InvalidArgument(format!("column {}: {e}", kind.name));
    match (form, kind.cell_val_num) {
        (Form::Text, _) => {
            let texts = match options.trimmed && !kind.is_var() {
                true => trimmed_array(column)?,
                false => text_array(column, nulls)?,
            };
            match options.views {
                true => views::of_texts(kind, &texts),
                false => Ok(Arc::new(texts)),
            }
        }
        (Form::Bytes, CellValNum::Var) => {
            let array =
                LargeBinaryArray::try_new(byte_offsets(column)?, column.data.clone(), nulls);
            let bytes = array.map_err(wrong)?;
            match options.views {
                true => views::of_bytes(kind, &bytes),
                false => Ok(Arc::new(bytes)),
            }
        }
        (Form::Bytes, CellValNum::Fixed(_)) => {
            let size = i32::try_from(kind.cell_size()).map_err(|_| too_long(kind))?;
            let data = part(&column.data, 0, column.cell_num * kind.cell_size());
            let array = FixedSizeBinaryArray::try_new_with_len(size, data, nulls, column.cell_num);
            Ok(Arc::new(array.map_err(wrong)?))
        }
        (Form::Labels, _) => match labels {
            Some(labels) => label_array(column, labels, nulls.as_ref()),
            None => Err(Error::Internal(format!(
                "column {} has no labels",
                kind.name
            ))),
        },
        (_, CellValNum::ONE) => {
            let nulls = nulls_among(form, options, &column.data, nulls);
            number_array(form, kind.datatype.physical(), &column.data, nulls)
        }
        (_, CellValNum::Fixed(n)) => {
            let n = i32::try_from(n).map_err(|_| too_long(kind))?;
            let field = Arc::new(item(form, kind.datatype.physical(), options));
            let none = nulls_among(form, options, &column.data, None);
            let values = number_array(form, kind.datatype.physical(), &column.data, none)?;
            let list =
                FixedSizeListArray::try_new_with_length(field, n, values, nulls, column.cell_num);
            Ok(Arc::new(list.map_err(wrong)?))
        }
        (_, CellValNum::Var) => {
            let size = kind.datatype.size() as u64;
            let offsets = column.offsets_slice().unwrap_or(&[0]);
            let end = offsets.last().copied().unwrap_or(0);
            if offsets.iter().any(|o| !o.is_multiple_of(size)) {
                return Err(Error::InvalidArgument(format!(
                    "column {}: a cell ends within a value",
                    kind.name
                )));
            }
            let offsets: Vec<i64> = offsets.iter().map(|o| (o / size).cast_signed()).collect();
            let field = Arc::new(item(form, kind.datatype.physical(), options));
            let data = part(&column.data, 0, end as usize);
            let none = nulls_among(form, options, &data, None);
            let values = number_array(form, kind.datatype.physical(), &data, none)?;
            let list =
                LargeListArray::try_new(field, OffsetBuffer::new(offsets.into()), values, nulls);
            Ok(Arc::new(list.map_err(wrong)?))
        }
    }
}

/// The validity of a column that was found valid.
fn nulls_of(column: &ColumnBuffers) -> Option<NullBuffer> {
    column.validity.as_ref().map(|validity| {
        let validity = validity.as_slice();
        NullBuffer::new(BooleanBuffer::collect_bool(column.cell_num, |i| {
            validity[i] != 0
        }))
    })
}

/// The offsets of a column that was found valid. TileDB's 64 bits are Arrow's, but for the sign.
fn byte_offsets(column: &ColumnBuffers) -> Result<OffsetBuffer<i64>> {
    let too_far = || {
        Error::InvalidArgument(format!(
            "column {}: offsets beyond 2^63",
            column.column_type.name
        ))
    };
    let (Some(buffer), Some(offsets)) = (&column.offsets, column.offsets_slice()) else {
        return Err(Error::Internal(format!(
            "column {} has no offsets",
            column.column_type.name
        )));
    };
    if offsets.last().is_some_and(|o| i64::try_from(*o).is_err()) {
        return Err(too_far());
    }
    Ok(OffsetBuffer::new(ScalarBuffer::new(
        buffer.clone(),
        0,
        offsets.len(),
    )))
}

fn text_array(column: &ColumnBuffers, nulls: Option<NullBuffer>) -> Result<LargeStringArray> {
    let kind = &column.column_type;
    let offsets = if kind.is_var() {
        byte_offsets(column)?
    } else {
        let size = kind.cell_size() as i64;
        OffsetBuffer::new(
            (0..=column.cell_num as i64)
                .map(|i| i * size)
                .collect::<Vec<_>>()
                .into(),
        )
    };
    match LargeStringArray::try_new(offsets, column.data.clone(), nulls) {
        Ok(array) => Ok(array),
        Err(_) => {
            let view = column.view();
            let text = |cell: usize| std::str::from_utf8(view.cell(cell)).ok();
            let bad = (0..column.cell_num).find(|i| view.is_valid(*i) && text(*i).is_none());
            match bad {
                Some(cell) => Err(no_text(kind, cell)),
                // What lies under a null may be anything: often a fill value that is no text.
                None => {
                    let cells = 0..column.cell_num;
                    let valid = |i: usize| text(i).filter(|_| view.is_valid(i));
                    Ok(cells.map(valid).collect())
                }
            }
        }
    }
}

/// Texts of a fixed length without the zeros at their end.
fn trimmed_array(column: &ColumnBuffers) -> Result<LargeStringArray> {
    let view = column.view();
    let text = |cell: usize| {
        if !view.is_valid(cell) {
            return Ok(None);
        }
        let bytes = view.cell(cell);
        let last = bytes.iter().rposition(|byte| *byte != 0);
        let bytes = last.and_then(|last| bytes.get(..=last)).unwrap_or_default();
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(no_text(&column.column_type, cell)),
        }
    };
    (0..column.cell_num).map(text).collect()
}

/// Numbers as an array that shares their memory, if it is aligned for them.
fn shared<T: ArrowPrimitiveType>(data: &Buffer, nulls: Option<NullBuffer>) -> PrimitiveArray<T>
where
    T::Native: ArrowNativeType,
{
    let size = size_of::<T::Native>();
    let len = data.len() / size;
    let data = match typed::<T::Native>(data) {
        Some(_) => data.clone(),
        None => Buffer::from(&data.as_slice()[..len * size]),
    };
    PrimitiveArray::new(ScalarBuffer::new(data, 0, len), nulls)
}

/// Ticks converted one by one; those that have no counterpart become null.
fn converted<T: ArrowPrimitiveType>(
    data: &Buffer,
    nulls: Option<&NullBuffer>,
    convert: impl Fn(i64) -> Option<T::Native>,
) -> PrimitiveArray<T> {
    let (ticks, _) = data.as_slice().as_chunks::<8>();
    let ticks = ticks.iter().map(|t| i64::from_le_bytes(*t)).enumerate();
    ticks
        .map(|(i, t)| convert(t).filter(|_| nulls.is_none_or(|n| n.is_valid(i))))
        .collect()
}

fn number_array(
    form: Form,
    physical: Physical,
    data: &Buffer,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let times = |n: i64| move |t: i64| (t != i64::MIN).then(|| t.checked_mul(n)).flatten();
    // The first day of a month, counted from January 1970.
    let month = |m: i128| {
        let days =
            super::datetime::days_from_date(1970 + m.div_euclid(12), m.rem_euclid(12) + 1, 1);
        i64::try_from(days * 86_400).ok()
    };
    Ok(match form {
        Form::Bits => {
            let bytes = data.as_slice();
            let bits = BooleanBuffer::collect_bool(bytes.len(), |i| bytes[i] != 0);
            Arc::new(BooleanArray::new(bits, nulls))
        }
        Form::Ticks(ticks) => match ticks {
            Ticks::Timestamp(TimeUnit::Second) => {
                Arc::new(shared::<TimestampSecondType>(data, nulls))
            }
            Ticks::Timestamp(TimeUnit::Millisecond) => {
                Arc::new(shared::<TimestampMillisecondType>(data, nulls))
            }
            Ticks::Timestamp(TimeUnit::Microsecond) => {
                Arc::new(shared::<TimestampMicrosecondType>(data, nulls))
            }
            Ticks::Timestamp(TimeUnit::Nanosecond) => {
                Arc::new(shared::<TimestampNanosecondType>(data, nulls))
            }
            Ticks::Duration(TimeUnit::Second) => {
                Arc::new(shared::<DurationSecondType>(data, nulls))
            }
            Ticks::Duration(TimeUnit::Millisecond) => {
                Arc::new(shared::<DurationMillisecondType>(data, nulls))
            }
            Ticks::Duration(TimeUnit::Microsecond) => {
                Arc::new(shared::<DurationMicrosecondType>(data, nulls))
            }
            Ticks::Duration(TimeUnit::Nanosecond) => {
                Arc::new(shared::<DurationNanosecondType>(data, nulls))
            }
            Ticks::Days => Arc::new(converted::<Date32Type>(data, nulls.as_ref(), |t| {
                i32::try_from(t).ok()
            })),
            Ticks::Seconds(n) => Arc::new(converted::<TimestampSecondType>(
                data,
                nulls.as_ref(),
                times(n),
            )),
            Ticks::DurationSeconds(n) => Arc::new(converted::<DurationSecondType>(
                data,
                nulls.as_ref(),
                times(n),
            )),
            Ticks::Months => Arc::new(converted::<TimestampSecondType>(
                data,
                nulls.as_ref(),
                |t| (t != i64::MIN).then(|| month(t.into())).flatten(),
            )),
            Ticks::Years => Arc::new(converted::<TimestampSecondType>(
                data,
                nulls.as_ref(),
                |t| (t != i64::MIN).then(|| month(i128::from(t) * 12)).flatten(),
            )),
        },
        _ => match physical {
            Physical::I8 => Arc::new(shared::<Int8Type>(data, nulls)),
            Physical::I16 => Arc::new(shared::<Int16Type>(data, nulls)),
            Physical::I32 => Arc::new(shared::<Int32Type>(data, nulls)),
            Physical::I64 => Arc::new(shared::<Int64Type>(data, nulls)),
            Physical::U8 => Arc::new(shared::<UInt8Type>(data, nulls)),
            Physical::U16 => Arc::new(shared::<UInt16Type>(data, nulls)),
            Physical::U32 => Arc::new(shared::<UInt32Type>(data, nulls)),
            Physical::U64 => Arc::new(shared::<UInt64Type>(data, nulls)),
            Physical::F32 => Arc::new(shared::<Float32Type>(data, nulls)),
            Physical::F64 => Arc::new(shared::<Float64Type>(data, nulls)),
        },
    })
}

fn label_array(
    column: &ColumnBuffers,
    labels: &ArrayRef,
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef> {
    match column.column_type.datatype.physical() {
        Physical::I8 => dictionary::<Int8Type>(column, labels, nulls),
        Physical::I16 => dictionary::<Int16Type>(column, labels, nulls),
        Physical::I32 => dictionary::<Int32Type>(column, labels, nulls),
        Physical::I64 => dictionary::<Int64Type>(column, labels, nulls),
        Physical::U8 => dictionary::<UInt8Type>(column, labels, nulls),
        Physical::U16 => dictionary::<UInt16Type>(column, labels, nulls),
        Physical::U32 => dictionary::<UInt32Type>(column, labels, nulls),
        Physical::U64 => dictionary::<UInt64Type>(column, labels, nulls),
        Physical::F32 | Physical::F64 => Err(Error::SchemaMismatch(format!(
            "column {} has labels, but its values are no indices",
            column.column_type.name
        ))),
    }
}

fn dictionary<K: ArrowDictionaryKeyType>(
    column: &ColumnBuffers,
    labels: &ArrayRef,
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef> {
    let keys = shared::<K>(&column.data, None);
    // Negative indices become the greatest numbers here.
    let labelled = |key: K::Native| key.as_usize() < labels.len();
    let known = if keys.values().iter().all(|key| labelled(*key)) {
        None
    } else {
        let values = keys.values();
        Some(NullBuffer::new(BooleanBuffer::collect_bool(
            keys.values().len(),
            |i| labelled(values[i]),
        )))
    };
    let nulls = NullBuffer::union(nulls, known.as_ref());
    let keys = PrimitiveArray::<K>::new(keys.values().clone(), nulls);
    let array = DictionaryArray::try_new(keys, Arc::clone(labels))
        .map_err(|e| Error::InvalidArgument(format!("column {}: {e}", column.column_type.name)))?;
    Ok(Arc::new(array))
}

#[cfg(test)]
mod tests;

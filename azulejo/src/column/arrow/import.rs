//! Arrow record batches as columns of a write: the way back from the parent module's table.
//!
//! What a column becomes is decided by the array it goes to, not by Arrow's type alone: timestamps,
//! dates and durations become ticks of the array's unit (an error where they would lose precision),
//! dictionaries become indices of the attribute's enumeration or plain values, text and bytes
//! become cells of varying or of fixed length. Numbers are taken as they are, without a copy, and
//! must have the array's type.

use super::{ArrowOptions, Form, Ticks, form_of};
use crate::column::{ColumnBuffers, ColumnBuilder, ColumnSet, ColumnType, datetime};
use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::{DataType, TimeUnit};
use azulejo_format::schema::shown_names;
use azulejo_format::{CellValNum, Datatype, Physical};
use std::borrow::Cow;
use std::collections::HashMap;

/// The tick of what is no time (NaT), in every unit.
const NO_TIME: i64 = i64::MIN;

/// Turns record batches into columns of given types.
///
/// ```
/// # use azulejo::column::{ColumnType, ColumnSet, ColumnBuffers};
/// # use azulejo::arrow::{ArrowImporter, ArrowOptions};
/// let columns = ColumnSet::of([ColumnBuffers::of_values("a", vec![1i32, 2])])?;
/// let batch = columns.to_record_batch(ArrowOptions::default())?;
/// let importer = ArrowImporter::new(columns.columns.iter().map(|c| c.column_type.clone()));
/// assert_eq!(importer.convert(&batch)?, columns);
/// # Ok::<(), azulejo::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ArrowImporter {
    targets: Vec<ImportTarget>,
}

#[derive(Debug, Clone)]
struct ImportTarget {
    column_type: ColumnType,
    /// Indices by label, for enumerated columns.
    labels: HashMap<Vec<u8>, u64>,
}

impl ArrowImporter {
    /// Prepares for columns of these types, such as [`crate::Writer::column_types`] gives.
    pub fn new(types: impl IntoIterator<Item = ColumnType>) -> Self {
        let target = |column_type: ColumnType| {
            let values = column_type.enumeration.iter().flat_map(|e| e.values());
            let labels = values
                .zip(0..)
                .map(|(value, index)| (value.to_vec(), index))
                .collect();
            ImportTarget {
                column_type,
                labels,
            }
        };
        Self {
            targets: types.into_iter().map(target).collect(),
        }
    }

    /// The columns of a batch, in its order.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] for columns that are not known or of a type that does not fit;
    /// [`Error::InvalidArgument`] for values that do not, naming the first: nulls where there are
    /// none (but of times, for which there is NaT), labels that the enumeration does not have, times
    /// between two ticks.
    pub fn convert(&self, batch: &RecordBatch) -> Result<ColumnSet> {
        let schema = batch.schema();
        let columns = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, array)| {
                let target = self
                    .targets
                    .iter()
                    .find(|t| *t.column_type.name == **field.name())
                    .ok_or_else(|| {
                        let names = self.targets.iter().map(|t| &*t.column_type.name);
                        Error::SchemaMismatch(format!(
                            "column {:?} is no field of the array; it has {}",
                            field.name(),
                            shown_names(names)
                        ))
                    })?;
                target.column(array)
            });
        Ok(ColumnSet {
            cell_num: batch.num_rows(),
            columns: columns.collect::<Result<_>>()?,
        })
    }
}

impl ImportTarget {
    fn mismatch(&self, found: &DataType) -> Error {
        let kind = &self.column_type;
        let cells = match kind.cell_val_num {
            CellValNum::ONE => String::new(),
            CellValNum::Fixed(n) => format!(", {n} a cell"),
            CellValNum::Var => ", any number a cell".to_owned(),
        };
        Error::SchemaMismatch(format!(
            "column {:?}: Arrow's {found} does not fit the array's {}{cells}",
            kind.name, kind.datatype
        ))
    }

    /// Whether there is a value that says that there is none: NaT.
    fn is_of_time(&self) -> bool {
        let datatype = self.column_type.datatype;
        datatype.is_datetime() || datatype.is_time()
    }

    fn wrong(&self, cell: usize, what: &str) -> Error {
        Error::InvalidArgument(format!(
            "column {:?}: cell {cell} {what}",
            self.column_type.name
        ))
    }

    fn column(&self, array: &ArrayRef) -> Result<ColumnBuffers> {
        let kind = &self.column_type;
        if array.data_type() == &DataType::Null {
            return self.all_null(array.len());
        }
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        // Exported times that are none (NaT) are null whether or not the array has nulls.
        let is_value = self.is_of_time() && time_of(array.data_type()).is_some();
        if let Some(nulls) = nulls.as_ref().filter(|_| !kind.nullable && !is_value) {
            let cell = (0..nulls.len()).find(|i| nulls.is_null(*i)).unwrap_or(0);
            return Err(self.wrong(cell, "is null, but the array has no nulls there"));
        }
        let (data, offsets) = self.values(array, nulls.as_ref())?;
        let validity = kind.nullable.then(|| match &nulls {
            Some(nulls) => nulls.iter().map(u8::from).collect::<Vec<u8>>(),
            None => vec![1; array.len()],
        });
        let column = ColumnBuffers {
            column_type: kind.clone(),
            cell_num: array.len(),
            data,
            offsets: offsets.map(Buffer::from_vec),
            validity: validity.map(Buffer::from_vec),
        };
        column.validate()?;
        Ok(column)
    }

    fn all_null(&self, cells: usize) -> Result<ColumnBuffers> {
        let kind = &self.column_type;
        let of_time = kind.datatype.is_datetime() || kind.datatype.is_time();
        let nullable = kind.nullable;
        let cell = match nullable {
            true => vec![0; kind.cell_size()],
            // As of Arrow's times that are null: there is NaT.
            false if of_time && !kind.is_var() => NO_TIME
                .to_le_bytes()
                .repeat(kind.cell_size() / size_of::<i64>()),
            false if cells > 0 => {
                return Err(self.wrong(0, "is null, but the array has no nulls there"));
            }
            false => vec![0; kind.cell_size()],
        };
        let mut column = ColumnBuilder::new(kind.clone());
        column.append_repeated(&cell, !nullable, cells);
        Ok(column.finish())
    }

    /// Values and offsets of the cells; those of null cells are anything.
    fn values(
        &self,
        array: &ArrayRef,
        nulls: Option<&NullBuffer>,
    ) -> Result<(Buffer, Option<Vec<u64>>)> {
        let kind = &self.column_type;
        if let Some(dictionary) = array.as_any_dictionary_opt() {
            return self.dictionary(dictionary.keys(), dictionary.values(), nulls);
        }
        if kind.enumeration.is_some() && text_of(array).is_some() {
            let data = self.label_indices(array, nulls, &|cell| cell)?;
            return Ok((data, None));
        }
        if let Some(text) = text_of(array) {
            return self.text(array, text, nulls);
        }
        let mismatch = || self.mismatch(array.data_type());
        match array.data_type() {
            DataType::FixedSizeList(..) | DataType::List(_) | DataType::LargeList(_) => {
                self.lists(array, nulls)
            }
            DataType::Boolean => {
                if kind.cell_val_num != CellValNum::ONE {
                    return Err(mismatch());
                }
                let data = self.bits(array)?;
                self.check_indices(&data, nulls)?;
                Ok((data, None))
            }
            _ if kind.cell_val_num != CellValNum::ONE => Err(mismatch()),
            _ => {
                let data = self.numbers(array, nulls)?;
                self.check_indices(&data, nulls)?;
                Ok((data, None))
            }
        }
    }

    /// Truth values, a byte each.
    fn bits(&self, array: &ArrayRef) -> Result<Buffer> {
        let physical = self.column_type.datatype.physical();
        if !matches!(physical, Physical::U8 | Physical::I8) {
            return Err(self.mismatch(array.data_type()));
        }
        let bits = array.as_boolean().values().iter().map(u8::from);
        Ok(Buffer::from_vec(bits.collect::<Vec<u8>>()))
    }

    /// Numbers in an enumerated column are indices, of labels that there are.
    fn check_indices(&self, data: &[u8], nulls: Option<&NullBuffer>) -> Result<()> {
        let kind = &self.column_type;
        let Some(enumeration) = &kind.enumeration else {
            return Ok(());
        };
        let (labels, size) = (enumeration.len() as u64, kind.datatype.size());
        for (cell, index) in data.chunks_exact(size).enumerate() {
            let mut wide = [0; 8];
            wide.iter_mut()
                .zip(index)
                .for_each(|(out, byte)| *out = *byte);
            // A negative one is beyond all labels, too.
            if u64::from_le_bytes(wide) >= labels && !nulls.is_some_and(|n| n.is_null(cell)) {
                let what = format!(
                    "is no index of the {labels} labels of enumeration {:?}",
                    enumeration.name
                );
                return Err(self.wrong(cell, &what));
            }
        }
        Ok(())
    }

    /// One number a cell, or the items of a list: numbers as they are, times in the array's unit.
    fn numbers(&self, array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<Buffer> {
        let kind = &self.column_type;
        let mismatch = || self.mismatch(array.data_type());
        if let Some((unit, family)) = time_of(array.data_type()) {
            let fits = match family {
                TimeKind::Moment => kind.datatype.is_datetime(),
                TimeKind::Span => kind.datatype.is_time(),
            };
            if fits {
                return self.ticks(array, unit, nulls);
            }
            if kind.datatype != Datatype::Int64 {
                return Err(mismatch());
            }
        }
        let data = array.to_data();
        let width = data.data_type().primitive_width().ok_or_else(mismatch)?;
        let same = physical_of(array.data_type()) == Some(kind.datatype.physical());
        if !same || width != kind.datatype.size() {
            return Err(mismatch());
        }
        let buffer = data.buffers().first().ok_or_else(mismatch)?;
        Ok(buffer.slice_with_length(data.offset() * width, data.len() * width))
    }

    /// Times as ticks. What is no time is none in every unit.
    fn ticks(
        &self,
        array: &ArrayRef,
        unit: ArrowUnit,
        nulls: Option<&NullBuffer>,
    ) -> Result<Buffer> {
        let kind = &self.column_type;
        let data = array.to_data();
        let values: Cow<'_, [i64]> = match data.data_type().primitive_width() {
            Some(4) => {
                let buffer = data.buffer::<i32>(0);
                buffer
                    .iter()
                    .take(data.len())
                    .map(|&v| i64::from(v))
                    .collect::<Vec<_>>()
                    .into()
            }
            Some(8) => data
                .buffer::<i64>(0)
                .get(..data.len())
                .unwrap_or_default()
                .into(),
            _ => return Err(self.mismatch(array.data_type())),
        };
        let mut ticks = Vec::with_capacity(values.len());
        let convert =
            converter(unit, kind.datatype).ok_or_else(|| self.mismatch(array.data_type()))?;
        // Where there are nulls, anything lies under them; items of lists cannot be null.
        let none = match kind.nullable && kind.cell_val_num == CellValNum::ONE {
            true => 0,
            false => NO_TIME,
        };
        for (cell, &value) in values.iter().enumerate() {
            ticks.push(match value {
                _ if nulls.is_some_and(|nulls| nulls.is_null(cell)) => none,
                NO_TIME => NO_TIME,
                _ => convert(value).ok_or_else(|| {
                    let what = format!("({value}) is no whole tick of {}", kind.datatype);
                    self.wrong(cell, &what)
                })?,
            });
        }
        Ok(Buffer::from_vec(ticks))
    }

    /// The items of lists. Those that belong to a null cell may be null themselves, as they are in
    /// lists of one length, and so may times that are none.
    fn items(
        &self,
        values: &ArrayRef,
        nulls: Option<&NullBuffer>,
        cell_of: impl Fn(usize) -> usize,
    ) -> Result<Buffer> {
        let none = values.logical_nulls().filter(|n| n.null_count() > 0);
        let of_time = self.is_of_time() && time_of(values.data_type()).is_some();
        if let Some(none) = none.as_ref().filter(|_| !of_time) {
            let wrong = (0..none.len())
                .filter(|&item| none.is_null(item))
                .map(cell_of)
                .find(|&cell| nulls.is_none_or(|nulls| nulls.is_valid(cell)));
            if let Some(cell) = wrong {
                return Err(self.wrong(cell, "is a list with a null; only whole cells can be"));
            }
        }
        if values.data_type() == &DataType::Boolean {
            return self.bits(values);
        }
        self.numbers(values, none.as_ref())
    }

    fn lists(
        &self,
        array: &ArrayRef,
        nulls: Option<&NullBuffer>,
    ) -> Result<(Buffer, Option<Vec<u64>>)> {
        let kind = &self.column_type;
        let mismatch = || self.mismatch(array.data_type());
        let size = kind.datatype.size();
        if let Some(list) = array.as_fixed_size_list_opt() {
            let n = u32::try_from(list.value_length()).map_err(|_| mismatch())?;
            if kind.cell_val_num != CellValNum::Fixed(n) {
                return Err(mismatch());
            }
            let start = list.value_offset(0).max(0) as usize;
            let values = list.values().slice(start, list.len() * n as usize);
            let data = self.items(&values, nulls, |item| item / (n as usize).max(1))?;
            return Ok((data, None));
        }
        if kind.cell_val_num != CellValNum::Var {
            return Err(mismatch());
        }
        let (values, ends): (&ArrayRef, Vec<u64>) =
            match (array.as_list_opt::<i32>(), array.as_list_opt::<i64>()) {
                (Some(list), _) => (
                    list.values(),
                    list.value_offsets()
                        .iter()
                        .map(|&o| o.max(0) as u64)
                        .collect(),
                ),
                (_, Some(list)) => (
                    list.values(),
                    list.value_offsets()
                        .iter()
                        .map(|&o| o.max(0) as u64)
                        .collect(),
                ),
                _ => return Err(mismatch()),
            };
        let first = ends.first().copied().unwrap_or(0);
        let last = ends.last().copied().unwrap_or(0);
        let values = values.slice(first as usize, (last - first) as usize);
        let data = self.items(&values, nulls, |item| {
            let ended = ends.partition_point(|end| end - first <= item as u64);
            ended.saturating_sub(1)
        })?;
        Ok((
            data,
            Some(ends.iter().map(|end| (end - first) * size as u64).collect()),
        ))
    }

    fn text(
        &self,
        array: &ArrayRef,
        (data, ends): (Buffer, Vec<u64>),
        nulls: Option<&NullBuffer>,
    ) -> Result<(Buffer, Option<Vec<u64>>)> {
        let kind = &self.column_type;
        let bytes = kind.datatype.size() == 1 && !matches!(kind.datatype, Datatype::Bool);
        // Other strings are exported as bytes, and numbers never are text.
        if !bytes && !kind.datatype.is_string() {
            return Err(self.mismatch(array.data_type()));
        }
        let size = kind.cell_size();
        if kind.is_var() {
            return Ok((data, Some(ends)));
        }
        // Zeros behind a text are none of it; those of bytes are.
        let fills_up = array.data_type().is_string()
            && matches!(
                kind.datatype,
                Datatype::Char | Datatype::StringAscii | Datatype::StringUtf8
            );
        let mut cells = Vec::with_capacity(array.len() * size);
        for (cell, pair) in ends.windows(2).enumerate() {
            let (start, end) = (pair[0] as usize, pair[1] as usize);
            let text = data.get(start..end).unwrap_or_default();
            if nulls.is_some_and(|nulls| nulls.is_null(cell)) {
                cells.resize(cells.len() + size, 0);
            } else if text.len() == size {
                cells.extend_from_slice(text);
            } else if text.len() < size && fills_up {
                cells.extend_from_slice(text);
                cells.resize(cells.len() + size - text.len(), 0);
            } else {
                let what = format!("has {} bytes, the array {size}", text.len());
                return Err(self.wrong(cell, &what));
            }
        }
        Ok((Buffer::from_vec(cells), None))
    }

    /// Text as indices of the enumeration; `cell_of` says which cell a wrong one is in.
    fn label_indices(
        &self,
        array: &ArrayRef,
        nulls: Option<&NullBuffer>,
        cell_of: &dyn Fn(usize) -> usize,
    ) -> Result<Buffer> {
        let Some((data, ends)) = text_of(array) else {
            return Err(self.mismatch(array.data_type()));
        };
        let label = |pair: &[u64]| data.get(pair[0] as usize..pair[1] as usize);
        let labels = ends.windows(2).map(|pair| label(pair).unwrap_or_default());
        self.indices_of(labels, nulls, cell_of)
    }

    /// The indices of labels, of what is not null.
    fn indices_of<'l>(
        &self,
        labels: impl ExactSizeIterator<Item = &'l [u8]>,
        nulls: Option<&NullBuffer>,
        cell_of: &dyn Fn(usize) -> usize,
    ) -> Result<Buffer> {
        let mut indices = Vec::with_capacity(labels.len() * self.column_type.datatype.size());
        for (cell, label) in labels.enumerate() {
            let index = match self.labels.get(label) {
                _ if nulls.is_some_and(|nulls| nulls.is_null(cell)) => 0,
                Some(&index) => index,
                None => return Err(self.unknown_label(cell_of(cell), label)),
            };
            self.push_index(&mut indices, cell, index)?;
        }
        Ok(Buffer::from_vec(indices))
    }

    fn unknown_label(&self, cell: usize, label: &[u8]) -> Error {
        let name = self
            .column_type
            .enumeration
            .as_ref()
            .map_or("", |e| &e.name);
        let label: String = String::from_utf8_lossy(label).chars().take(100).collect();
        self.wrong(
            cell,
            &format!("is {label:?}, which enumeration {name:?} does not have; extend it first"),
        )
    }

    fn push_index(&self, indices: &mut Vec<u8>, cell: usize, index: u64) -> Result<()> {
        let physical = self.column_type.datatype.physical();
        let most = match physical {
            Physical::I8 => i8::MAX as u64,
            Physical::I16 => i16::MAX as u64,
            Physical::I32 => i32::MAX as u64,
            Physical::I64 => i64::MAX as u64,
            Physical::U8 => u64::from(u8::MAX),
            Physical::U16 => u64::from(u16::MAX),
            Physical::U32 => u64::from(u32::MAX),
            Physical::U64 => u64::MAX,
            Physical::F32 | Physical::F64 => 0,
        };
        if index > most {
            return Err(self.wrong(
                cell,
                &format!("has index {index}, which {physical:?} cannot hold"),
            ));
        }
        indices.extend(index.to_le_bytes().into_iter().take(physical.size()));
        Ok(())
    }

    fn dictionary(
        &self,
        keys: &dyn Array,
        values: &ArrayRef,
        nulls: Option<&NullBuffer>,
    ) -> Result<(Buffer, Option<Vec<u64>>)> {
        let kind = &self.column_type;
        let keys_at = keys_of(keys).ok_or_else(|| self.mismatch(keys.data_type()))?;
        // Dictionaries hold values that no cell has, such as unused categories: these need not fit.
        let mut first: Vec<Option<usize>> = vec![None; values.len()];
        for (cell, key) in keys_at.iter().enumerate() {
            if let Some(entry) = first.get_mut(*key)
                && !nulls.is_some_and(|nulls| nulls.is_null(cell))
            {
                entry.get_or_insert(cell);
            }
        }
        let used = first.iter().map(Option::is_some).collect::<NullBuffer>();
        let unused = NullBuffer::union(values.logical_nulls().as_ref(), Some(&used));
        let cell_of = |entry: usize| first.get(entry).copied().flatten().unwrap_or(entry);
        // The values as a column of their own, whose cells the keys then pick.
        let entries = if kind.enumeration.is_some() {
            let indices = match text_of(values) {
                Some(_) => self.label_indices(values, unused.as_ref(), &cell_of)?,
                None => self.number_labels(values, unused.as_ref(), &cell_of)?,
            };
            (indices, None)
        } else {
            self.values(values, unused.as_ref())?
        };
        let entries = ColumnBuffers {
            column_type: ColumnType {
                nullable: false,
                ..kind.clone()
            },
            cell_num: values.len(),
            data: entries.0,
            offsets: entries.1.map(Buffer::from_vec),
            validity: None,
        };
        let view = entries.view();
        let empty = vec![0; view.cell_size];
        let mut picked = ColumnBuilder::new(entries.column_type.clone());
        for (cell, key) in keys_at.into_iter().enumerate() {
            if nulls.is_some_and(|nulls| nulls.is_null(cell)) {
                picked.append_cell(&empty, true);
            } else if key < entries.cell_num {
                picked.append_cell(view.cell(key), true);
            } else {
                return Err(self.wrong(cell, "has a key that its dictionary lacks"));
            }
        }
        let picked = picked.finish();
        let offsets = picked.offsets_slice().map(<[u64]>::to_vec);
        Ok((picked.data, offsets))
    }

    /// Dictionary values that are numbers as indices of an enumeration of numbers.
    fn number_labels(
        &self,
        values: &ArrayRef,
        nulls: Option<&NullBuffer>,
        cell_of: &dyn Fn(usize) -> usize,
    ) -> Result<Buffer> {
        let enumeration = self.column_type.enumeration.as_ref();
        let Some(enumeration) = enumeration.filter(|e| e.cell_val_num == CellValNum::ONE) else {
            return Err(self.mismatch(values.data_type()));
        };
        let label_type = ColumnType::new(self.column_type.name.clone(), enumeration.datatype);
        let labels = Self {
            column_type: label_type,
            labels: HashMap::new(),
        };
        let (data, _) = labels.values(values, nulls)?;
        let labels = data.chunks_exact(enumeration.datatype.size());
        self.indices_of(labels, nulls, cell_of)
    }
}

/// Keys of a dictionary; those of null cells, and negative ones, are anything.
fn keys_of(keys: &dyn Array) -> Option<Vec<usize>> {
    let data = keys.to_data();
    let width = data.data_type().primitive_width()?;
    let bytes = data
        .buffers()
        .first()?
        .slice_with_length(data.offset() * width, data.len() * width);
    let signed = matches!(
        physical_of(keys.data_type())?,
        Physical::I8 | Physical::I16 | Physical::I32 | Physical::I64
    );
    let key = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide.iter_mut()
            .zip(bytes)
            .for_each(|(out, byte)| *out = *byte);
        let negative = signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        if negative {
            usize::MAX
        } else {
            usize::try_from(u64::from_le_bytes(wide)).unwrap_or(usize::MAX)
        }
    };
    Some(bytes.chunks_exact(width).map(key).collect())
}

/// Bytes of text and byte arrays, and where each cell starts in them; `None` for other arrays.
fn text_of(array: &ArrayRef) -> Option<(Buffer, Vec<u64>)> {
    macro_rules! with_offsets {
        ($array:expr) => {{
            let array = $array;
            if array.is_empty() {
                // A piece of no cells begins where it was cut out, behind bytes that did not come along.
                return Some((Buffer::default(), vec![0]));
            }
            let offsets = array
                .value_offsets()
                .iter()
                .map(|&o| o.max(0) as u64)
                .collect();
            Some((array.values().clone(), offsets))
        }};
    }
    fn collected<'a>(cells: impl Iterator<Item = Option<&'a [u8]>>) -> (Buffer, Vec<u64>) {
        let (mut data, mut offsets) = (Vec::new(), vec![0]);
        for cell in cells {
            data.extend_from_slice(cell.unwrap_or_default());
            offsets.push(data.len() as u64);
        }
        (Buffer::from_vec(data), offsets)
    }
    match array.data_type() {
        DataType::Utf8 => with_offsets!(array.as_string::<i32>()),
        DataType::LargeUtf8 => with_offsets!(array.as_string::<i64>()),
        DataType::Binary => with_offsets!(array.as_binary::<i32>()),
        DataType::LargeBinary => with_offsets!(array.as_binary::<i64>()),
        DataType::Utf8View => Some(collected(
            array.as_string_view().iter().map(|s| s.map(str::as_bytes)),
        )),
        DataType::BinaryView => Some(collected(array.as_binary_view().iter())),
        DataType::FixedSizeBinary(_) => Some(collected(array.as_fixed_size_binary().iter())),
        _ => None,
    }
}

fn physical_of(data_type: &DataType) -> Option<Physical> {
    Some(match data_type {
        DataType::Int8 => Physical::I8,
        DataType::Int16 => Physical::I16,
        DataType::Int32 => Physical::I32,
        DataType::Int64
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Date64
        | DataType::Time64(_) => Physical::I64,
        DataType::UInt8 => Physical::U8,
        DataType::UInt16 => Physical::U16,
        DataType::UInt32 => Physical::U32,
        DataType::UInt64 => Physical::U64,
        DataType::Float32 => Physical::F32,
        DataType::Float64 => Physical::F64,
        _ => return None,
    })
}

/// Moments are datetimes, spans are times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeKind {
    Moment,
    Span,
}

/// What one unit of an Arrow value is worth: seconds, and how many of it make one.
#[derive(Debug, Clone, Copy)]
struct ArrowUnit {
    seconds: i128,
    per_second: i128,
}

fn time_of(data_type: &DataType) -> Option<(ArrowUnit, TimeKind)> {
    let of = |unit: &TimeUnit| {
        let per_second = match unit {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1_000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => 1_000_000_000,
        };
        ArrowUnit {
            seconds: 1,
            per_second,
        }
    };
    Some(match data_type {
        DataType::Timestamp(unit, _) => (of(unit), TimeKind::Moment),
        DataType::Date32 => (
            ArrowUnit {
                seconds: 86_400,
                per_second: 1,
            },
            TimeKind::Moment,
        ),
        DataType::Date64 => (of(&TimeUnit::Millisecond), TimeKind::Moment),
        DataType::Time32(unit) | DataType::Time64(unit) | DataType::Duration(unit) => {
            (of(unit), TimeKind::Span)
        }
        _ => return None,
    })
}

/// From values of an Arrow unit to ticks of a datatype; no result for times between two ticks or
/// too far away.
fn converter(unit: ArrowUnit, datatype: Datatype) -> Option<Box<dyn Fn(i64) -> Option<i64>>> {
    let kind = ColumnType::new("", datatype);
    // A tick is `seconds` seconds, or `per_second` of them make one.
    let (seconds, per_second) = match form_of(&kind, ArrowOptions::default()) {
        Form::Ticks(Ticks::Months) => return Some(Box::new(move |v| months(v, unit, 1))),
        Form::Ticks(Ticks::Years) => return Some(Box::new(move |v| months(v, unit, 12))),
        Form::Ticks(Ticks::Days) => (86_400, 1),
        Form::Ticks(Ticks::Seconds(n) | Ticks::DurationSeconds(n)) => (i128::from(n), 1),
        Form::Ticks(Ticks::Timestamp(other) | Ticks::Duration(other)) => {
            let other = time_of(&DataType::Duration(other))?.0;
            (other.seconds, other.per_second)
        }
        Form::Numbers => match datatype {
            Datatype::DateTimePico | Datatype::TimePico => (1, 1_000_000_000_000),
            Datatype::DateTimeFemto | Datatype::TimeFemto => (1, 1_000_000_000_000_000),
            Datatype::DateTimeAtto | Datatype::TimeAtto => (1, 1_000_000_000_000_000_000),
            _ => return None,
        },
        _ => return None,
    };
    let (up, down) = (unit.seconds * per_second, unit.per_second * seconds);
    Some(Box::new(move |value| {
        let scaled = i128::from(value).checked_mul(up)?;
        (scaled % down == 0)
            .then(|| i64::try_from(scaled / down).ok())
            .flatten()
    }))
}

/// Months (or years) since 1970 of a moment at the start of one.
fn months(value: i64, unit: ArrowUnit, months_a_tick: i64) -> Option<i64> {
    let seconds = i128::from(value).checked_mul(unit.seconds)?;
    let day = unit.per_second * 86_400;
    if seconds % day != 0 {
        return None;
    }
    let (year, month, date) = datetime::date_from_days(seconds / day);
    let months = (year - 1970) * 12 + (month - 1);
    let whole = date == 1 && months % i128::from(months_a_tick) == 0;
    whole
        .then(|| i64::try_from(months / i128::from(months_a_tick)).ok())
        .flatten()
}

#[cfg(test)]
mod tests;

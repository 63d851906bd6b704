//! The columns of a result: their types, as they are stored or as people want them, and their way
//! to Arrow.

use crate::error::{CliError, Result};
use crate::label_columns::{self, LabelColumn};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, LargeStringArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_schema::{FieldRef, Schema, SchemaRef};
use azulejo::array::Fragment;
use azulejo::arrow::{ArrowConverter, ArrowOptions};
use azulejo::column::ColumnType;
use azulejo::format::schema::{Attribute, FieldIndex};
use azulejo::format::{CellValNum, Datatype};
use azulejo::{Array, ColumnSet};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The columns of a result and how their values come out.
#[derive(Debug, Clone)]
pub struct Columns {
    stored: Vec<ColumnType>,
    shown: Vec<ColumnType>,
    raw: bool,
    labels: Vec<LabelColumn>,
    /// For each column of text what cells hold that nobody wrote, where that is no text.
    fills: Vec<Option<Vec<u8>>>,
}

impl Columns {
    /// The named fields of an array; `raw` for values as stored.
    pub fn new(array: &Array, fields: &[String], raw: bool) -> Result<Self> {
        let mut stored = fields
            .iter()
            .map(|name| column_type(array, name))
            .collect::<Result<Vec<_>>>()?;
        let fills = stored.iter_mut().map(|column| {
            let fill = fill_without_text(array, column).filter(|_| !raw);
            // Then nobody's cells are null.
            column.nullable |= fill.is_some();
            fill
        });
        let fills = fills.collect();
        let shown = if raw {
            stored.iter().map(raw_type).collect()
        } else {
            stored.clone()
        };
        Ok(Self {
            stored,
            shown,
            raw,
            labels: Vec::new(),
            fills,
        })
    }

    /// The same with the labels of the dimensions among them, each behind its dimension.
    pub fn with_labels(mut self, array: &Array, fields: &[String]) -> Result<Self> {
        self.labels = label_columns::of_columns(array, fields)?;
        for label in &self.labels {
            let (at, column) = label.place();
            self.stored.insert(at, column.clone());
            self.fills.insert(at, None);
            let shown = match self.raw {
                true => raw_type(column),
                false => column.clone(),
            };
            self.shown.insert(at, shown);
        }
        Ok(self)
    }

    /// A result of the array's fields with the columns that are not among these, and with nulls where
    /// nobody wrote a text.
    pub fn labelled(&self, set: ColumnSet) -> ColumnSet {
        let mut set = match self.labels.is_empty() {
            true => set,
            false => label_columns::added(&self.labels, set),
        };
        for (column, fill) in set.columns.iter_mut().zip(&self.fills) {
            let Some(fill) = fill else { continue };
            let view = column.view();
            let written = (0..column.cell_num).map(|cell| view.cell(cell) != fill.as_slice());
            let validity: Vec<u8> = written.map(u8::from).collect();
            column.validity = Some(Buffer::from_vec(validity));
            column.column_type.nullable = true;
        }
        set
    }

    /// The types of the values that come out.
    pub fn types(&self) -> &[ColumnType] {
        &self.shown
    }

    /// The same with some text columns, which turned out not to hold UTF-8, as bytes.
    pub fn as_bytes(&self, columns: &BTreeSet<usize>) -> Self {
        let mut changed = self.clone();
        for &at in columns {
            // Among bytes those of the fill value are as good as any.
            let fill = changed.fills.get_mut(at).and_then(Option::take);
            for types in [&mut changed.stored, &mut changed.shown] {
                if let Some(column) = types.get_mut(at) {
                    *column = bytes_type(column);
                    column.nullable &= fill.is_none();
                }
            }
        }
        changed
    }

    /// The first text column of a batch whose cells are not all UTF-8.
    pub fn not_utf8(&self, set: &ColumnSet) -> Option<usize> {
        set.columns
            .iter()
            .zip(&self.shown)
            .position(|(column, shown)| is_text(shown) && !is_utf8(column))
    }

    /// What makes record batches of these columns.
    pub fn converter(&self) -> Result<Converter> {
        let arrow = ArrowConverter::new(&self.stored, ArrowOptions::new().raw(self.raw))?;
        let schema = name_columns(&arrow.schema());
        Ok(Converter {
            arrow,
            schema,
            types: self.stored.clone(),
        })
    }
}

/// Makes record batches.
#[derive(Debug)]
pub struct Converter {
    arrow: ArrowConverter,
    schema: SchemaRef,
    types: Vec<ColumnType>,
}

impl Converter {
    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// A batch as Arrow.
    pub fn convert(&self, mut set: ColumnSet) -> Result<RecordBatch> {
        for (column, column_type) in set.columns.iter_mut().zip(&self.types) {
            column.column_type = column_type.clone();
        }
        let batch = self.arrow.convert(&set)?;
        let columns = batch.columns().iter().zip(&self.types);
        let columns = columns.map(|(array, column)| unpadded(array, column));
        // Renaming columns is no change of schema that Arrow allows, so the batch is put together
        // anew.
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(
            self.schema.clone(),
            columns.collect(),
            &rows,
        )?)
    }
}

/// Text of a fixed length without the zeros that fill it up.
fn unpadded(array: &ArrayRef, column: &ColumnType) -> ArrayRef {
    match array.as_string_opt::<i64>() {
        Some(texts) if !column.is_var() => {
            let texts = texts.iter();
            let texts = texts.map(|text| text.map(|text| text.trim_end_matches('\0')));
            Arc::new(texts.collect::<LargeStringArray>())
        }
        _ => Arc::clone(array),
    }
}

/// The fill value of an attribute of text that cannot be null, where it is no text (that of CHAR,
/// unless another was chosen) and cells may hold it that nobody wrote.
fn fill_without_text(array: &Array, column: &ColumnType) -> Option<Vec<u8>> {
    let text = is_text(column) && !column.nullable;
    let schema = array.schema();
    let mut attributes = schema.attributes.iter();
    let attribute = attributes.find(|a| text && *a.name == *column.name)?;
    // Of a sparse array those are that are older than the attribute, or its type.
    let has = |of: &Attribute| {
        of.name == attribute.name
            && (of.datatype, of.cell_val_num) == (attribute.datatype, attribute.cell_val_num)
            && !of.nullable
    };
    let is_older = |fragment: &Fragment| !fragment.schema().attributes.iter().any(has);
    let unwritten = schema.is_dense() || array.fragments().iter().any(is_older);
    (unwritten && str::from_utf8(&attribute.fill_value).is_err())
        .then(|| attribute.fill_value.clone())
}

/// Whether a column is shown as text that it holds itself.
fn is_text(column: &ColumnType) -> bool {
    let text = matches!(
        column.datatype,
        Datatype::StringAscii | Datatype::StringUtf8 | Datatype::Char | Datatype::GeomWkt
    );
    text && column.enumeration.is_none()
}

/// Gives the nameless attribute a name: many formats need one.
fn name_columns(schema: &SchemaRef) -> SchemaRef {
    let named = |field: &FieldRef| match field.name().is_empty() {
        true => Arc::new(field.as_ref().clone().with_name("attr_")),
        false => Arc::clone(field),
    };
    let fields: Vec<FieldRef> = schema.fields().iter().map(named).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Whether every cell with a value is UTF-8; under nulls there may be any bytes.
fn is_utf8(column: &azulejo::ColumnBuffers) -> bool {
    let view = column.view();
    (0..column.cell_num).all(|cell| !view.is_valid(cell) || str::from_utf8(view.cell(cell)).is_ok())
}

/// The type of a field of the array's latest schema.
fn column_type(array: &Array, name: &str) -> Result<ColumnType> {
    let schema = array.schema();
    let missing = || CliError::usage(format!("there is no attribute or dimension {name:?}"));
    let field = schema.field(name).ok_or_else(missing)?;
    let (datatype, cell_val_num) = schema.type_of(field).ok_or_else(missing)?;
    let enumeration = match field {
        FieldIndex::Attribute(at) => schema.attribute(at).and_then(|a| a.enumeration.as_deref()),
        FieldIndex::Dimension(_) => None,
    };
    Ok(ColumnType {
        name: name.into(),
        datatype,
        cell_val_num,
        nullable: schema.is_nullable(field),
        enumeration: enumeration
            .map(|name| array.enumeration(name))
            .transpose()?,
    })
}

/// The type whose Arrow form is the stored one: ticks, indices, bytes.
fn raw_type(column: &ColumnType) -> ColumnType {
    let mut raw = ColumnType {
        enumeration: None,
        ..column.clone()
    };
    let datatype = column.datatype;
    if datatype.is_datetime() || datatype.is_time() {
        raw.datatype = Datatype::Int64;
    } else if datatype == Datatype::Bool {
        raw.datatype = Datatype::UInt8;
    } else if datatype == Datatype::StringUtf8 && column.cell_val_num.is_var() {
        // Text that says it is UTF-8 stays text.
    } else if datatype.is_string()
        || datatype.is_byte()
        || matches!(datatype, Datatype::Char | Datatype::Any)
    {
        return bytes_type(&raw);
    }
    raw
}

fn bytes_type(column: &ColumnType) -> ColumnType {
    let cell_val_num = match column.cell_val_num {
        CellValNum::Fixed(n) => CellValNum::Fixed(n.saturating_mul(column.datatype.size() as u32)),
        CellValNum::Var => CellValNum::Var,
    };
    ColumnType {
        datatype: Datatype::Blob,
        cell_val_num,
        enumeration: None,
        ..column.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo::column::ColumnBuilder;
    use azulejo::format::ArraySchema;
    use azulejo::format::schema::SchemaEvolution;
    use azulejo::{ColumnBuffers, Config, Context, WriteOptions};

    #[test]
    fn text_of_sparse_arrays_is_null_where_cells_are_older() {
        let context = Context::new(Config::default(), None).unwrap();
        let place = context.array("mem://chars");
        let of_chars = |name: &str| Attribute::new(name, Datatype::Char, CellValNum::Var);
        let schema = ArraySchema::sparse()
            .dimension("x", 0i64..=9, 4)
            .attribute_with(of_chars("c"));
        place.create(schema.build().unwrap()).unwrap();
        let text = ColumnType::new("c", Datatype::Char).with_cell_val_num(CellValNum::Var);
        let mut text = ColumnBuilder::new(text);
        text.append_cell(b"ab", true);
        let cells = [ColumnBuffers::of_values("x", vec![1i64]), text.finish()];
        let mut writer = place.writer(WriteOptions::new()).unwrap();
        writer.write(&ColumnSet::of(cells).unwrap()).unwrap();
        writer.finish().unwrap();
        let nullable = |names: &[&str]| -> Vec<bool> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let columns = Columns::new(&place.open().unwrap(), &names, false).unwrap();
            columns.types().iter().map(|shown| shown.nullable).collect()
        };
        assert_eq!(nullable(&["x", "c"]), [false, false]);
        let evolution = SchemaEvolution {
            add_attributes: vec![of_chars("d")],
            ..SchemaEvolution::default()
        };
        place.evolve(&evolution, None).unwrap();
        assert_eq!(nullable(&["c", "d"]), [false, true]);
    }

    #[test]
    fn raw_types_are_the_stored_ones() {
        let raw = |datatype, cell_val_num| {
            let raw = raw_type(&ColumnType::new("a", datatype).with_cell_val_num(cell_val_num));
            (raw.datatype, raw.cell_val_num)
        };
        let (one, three, var) = (CellValNum::ONE, CellValNum::Fixed(3), CellValNum::Var);
        assert_eq!(raw(Datatype::DateTimeDay, one), (Datatype::Int64, one));
        assert_eq!(raw(Datatype::TimeNano, three), (Datatype::Int64, three));
        assert_eq!(raw(Datatype::Bool, one), (Datatype::UInt8, one));
        assert_eq!(raw(Datatype::StringAscii, var), (Datatype::Blob, var));
        assert_eq!(raw(Datatype::StringUtf8, var), (Datatype::StringUtf8, var));
        assert_eq!(raw(Datatype::StringUtf8, three), (Datatype::Blob, three));
        assert_eq!(
            raw(Datatype::StringUtf16, three),
            (Datatype::Blob, CellValNum::Fixed(6))
        );
        assert_eq!(raw(Datatype::Char, one), (Datatype::Blob, one));
        assert_eq!(raw(Datatype::Float32, three), (Datatype::Float32, three));
    }
}

//! Labels of dimensions: a file of values for each coordinate of a dense array's dimension.

use super::input::Input;
use super::npy_file;
use super::source::Source;
use super::target::Target;
use super::{Look, options_at};
use crate::args::ImportArgs;
use crate::error::{CliError, Result};
use crate::session::Session;
use azulejo::Array;
use azulejo::array::NewLabel;
use azulejo::column::{ColumnBuffers, ColumnBuilder, ColumnSet, ColumnType};
use azulejo::format::range::compare;
use azulejo::format::schema::{ArraySchema, DataOrder, NewArray};
use azulejo::format::{CellValNum, Datatype, NdRectangle};
use azulejo::write::WriteLayout;
use std::cmp::Ordering;

/// A label and its values.
#[derive(Debug)]
pub struct LabelFile {
    name: String,
    /// The dimension's name, where it is said.
    dimension: Option<String>,
    file: String,
    order: DataOrder,
    values: ColumnBuffers,
}

impl LabelFile {
    /// Reads `NAME=FILE` or `DIM:NAME=FILE`.
    pub fn read(session: &Session, wish: &str) -> Result<Self> {
        let usage = |reason: &str| CliError::usage(format!("--label {wish}: {reason}"));
        let (names, file) = wish
            .split_once('=')
            .ok_or_else(|| usage("write NAME=FILE or DIM:NAME=FILE"))?;
        let (dimension, name) = match names.split_once(':') {
            Some((dimension, name)) => (Some(dimension.to_owned()), name),
            None => (None, names),
        };
        let values = column(session, name, file).map_err(|e| match e {
            CliError::Usage(reason) => usage(&reason),
            other => other,
        })?;
        Ok(Self {
            name: name.to_owned(),
            dimension,
            file: file.to_owned(),
            order: order(&values),
            values,
        })
    }

    /// The dimension that it labels: the one named, or the only one of its length.
    fn place(&self, schema: &ArraySchema) -> Result<usize> {
        let usage = |reason: String| CliError::usage(format!("--label {}: {reason}", self.name));
        let dimensions = &schema.domain.dimensions;
        let length = |at: usize| {
            let axis = dimensions[at].axis()?;
            u64::try_from(axis.cells()).ok()
        };
        let own = self.values.cell_num as u64;
        if let Some(name) = &self.dimension {
            let at = schema
                .domain
                .index_of(name)
                .ok_or_else(|| usage(format!("there is no dimension {name:?}")))?;
            return match length(at) {
                Some(length) if length == own => Ok(at),
                length => Err(usage(format!(
                    "{} holds {own} values, and {name:?} has {} coordinates",
                    self.file,
                    length.map_or("too many".to_owned(), |n| n.to_string())
                ))),
            };
        }
        let fitting: Vec<usize> = (0..dimensions.len())
            .filter(|&at| length(at) == Some(own))
            .collect();
        match fitting[..] {
            [only] => Ok(only),
            [] => Err(usage(format!(
                "{} holds {own} values, and no dimension has so many coordinates",
                self.file
            ))),
            _ => Err(usage(format!(
                "several dimensions have {own} coordinates: write DIM:{}={}",
                self.name, self.file
            ))),
        }
    }

    /// The label for an array that is there.
    pub fn of_array(self, schema: &ArraySchema) -> Result<NewLabel> {
        Ok(NewLabel {
            dimension: u32::try_from(self.place(schema)?).unwrap_or(u32::MAX),
            order: self.order,
            values: self.values,
        })
    }

    /// Writes the values to the label's own array.
    pub fn write(&self, array: &Array, at: Option<u64>) -> Result<()> {
        let reference = array.schema().dimension_label(&self.name);
        let reference = reference.ok_or_else(|| CliError::Format("a label went away".into()))?;
        let dimension = reference.dimension as usize;
        let dimensions = &array.schema().domain.dimensions;
        let range = dimensions.get(dimension).and_then(|d| d.domain.clone());
        let range = range.ok_or_else(|| CliError::Format("a dimension went away".into()))?;
        let mut values = self.values.clone();
        values.column_type.name = reference.attribute.as_str().into();
        let label = array.open_label(&self.name)?;
        let mut writer = label.writer(options_at(at).layout(WriteLayout::Row))?;
        let set = ColumnSet::of([values])?;
        writer.write_box(
            &NdRectangle {
                ranges: vec![range],
            },
            &set,
        )?;
        writer.finish()?;
        Ok(())
    }
}

/// Adds labels to an array to be made.
pub fn attach(array: &mut NewArray, labels: &[LabelFile]) -> Result<()> {
    let schema = &mut array.schema;
    if labels.is_empty() {
        return Ok(());
    }
    if !schema.is_dense() {
        return Err(CliError::usage("--label: sparse arrays have no labels"));
    }
    // What a builder makes of them, on dimensions like these.
    let mut builder = ArraySchema::dense();
    for dimension in &schema.domain.dimensions {
        builder = builder.dimension_with(dimension.clone());
    }
    if let Some(attribute) = schema.attributes.first() {
        let mut attribute = attribute.clone();
        attribute.enumeration = None;
        builder = builder.attribute_with(attribute);
    }
    for label in labels {
        let at = u32::try_from(label.place(schema)?)
            .map_err(|_| CliError::usage("--label: too many dimensions"))?;
        let datatype = label.values.column_type.datatype;
        builder = builder.label(at, &*label.name, label.order, datatype);
    }
    let built = builder
        .build()
        .map_err(|e| CliError::usage(format!("--label: {e}")))?;
    schema.dimension_labels = built.schema.dimension_labels;
    array.label_schemas = built.label_schemas;
    Ok(())
}

/// The one column of a file.
fn column(session: &Session, name: &str, file: &str) -> Result<ColumnBuffers> {
    let inputs = Input::open_all(session, &[file.to_owned()], None)?;
    let [input] = &inputs[..] else {
        return Err(CliError::usage("name one file"));
    };
    let mut source = Source::open(input, &ImportArgs::of_files(vec![file.to_owned()]))?;
    let look = Look {
        dims: source.names().to_vec(),
        ..Look::default()
    };
    let profiles = source.profile(session, &look, input.size)?;
    let [profile] = &profiles[..] else {
        return Err(CliError::usage(format!(
            "{file} holds {} columns: labels are one",
            profiles.len()
        )));
    };
    if profile.nulls > 0 {
        return Err(CliError::usage(format!("{file}: a label is missing")));
    }
    let (datatype, cell_val_num) = match profile.datatype {
        Datatype::StringUtf8 | Datatype::StringAscii | Datatype::Char | Datatype::StringUtf32 => {
            (Datatype::StringAscii, CellValNum::Var)
        }
        other if profile.cell_val_num == CellValNum::ONE && other != Datatype::Bool => {
            (other, CellValNum::ONE)
        }
        _ => {
            return Err(CliError::usage(format!(
                "{file}: labels are one number, date or text a coordinate"
            )));
        }
    };
    let column_type = ColumnType::new(name, datatype).with_cell_val_num(cell_val_num);
    // Text of fixed length, as NumPy has it, is read as it is.
    let stored = match profile.cell_val_num {
        fixed @ CellValNum::Fixed(_) if cell_val_num == CellValNum::Var => {
            ColumnType::new(name, profile.datatype).with_cell_val_num(fixed)
        }
        _ => column_type.clone(),
    };
    let target = Target::new(stored.clone(), 0, false);
    let mut values = ColumnBuilder::new(stored.clone());
    source.read(session, &[target], input.size, &mut |_, set| {
        if let [column] = &set.columns[..] {
            values.append_view(&column.view(), 0..set.cell_num)?;
        }
        Ok(())
    })?;
    let mut values = values.finish();
    if stored != column_type {
        values = unpadded(&values, column_type);
    }
    if datatype == Datatype::StringAscii && !values.data.is_ascii() {
        return Err(CliError::usage(format!(
            "{file}: labels of text are ASCII, and some here are not"
        )));
    }
    Ok(values)
}

/// Text of fixed length without the zeros at its end.
fn unpadded(values: &ColumnBuffers, column_type: ColumnType) -> ColumnBuffers {
    let (view, mut texts) = (values.view(), ColumnBuilder::new(column_type));
    for at in 0..values.cell_num {
        let cell = view.cell(at);
        let text = match values.column_type.datatype {
            Datatype::StringUtf32 => npy_file::utf8_of(cell).into_bytes(),
            _ => {
                let end = cell.iter().rposition(|byte| *byte != 0);
                cell[..end.map_or(0, |end| end + 1)].to_vec()
            }
        };
        texts.append_cell(&text, true);
    }
    texts.finish()
}

/// The order that values are in.
fn order(values: &ColumnBuffers) -> DataOrder {
    let view = values.view();
    let datatype = values.column_type.datatype;
    let (mut rises, mut falls) = (false, false);
    for at in 1..values.cell_num {
        match compare(datatype, view.cell(at - 1), view.cell(at)) {
            Ordering::Less => rises = true,
            Ordering::Greater => falls = true,
            Ordering::Equal => {}
        }
    }
    match (rises, falls) {
        (_, false) => DataOrder::Increasing,
        (false, true) => DataOrder::Decreasing,
        (true, true) => DataOrder::Unordered,
    }
}

//! The columns of a write, matched to the fields of a fragment.

use crate::column::{ColumnView, FieldView};
use crate::error::{Error, Result};
use azulejo_format::fragment::Field;
use azulejo_format::schema::quoted_name;
use azulejo_format::{ArraySchema, CellValNum, Datatype};

/// What the engine has to know of a field to move its cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldShape {
    pub name: String,
    pub datatype: Datatype,
    pub cell_val_num: CellValNum,
    pub nullable: bool,
    /// Whether it is a dimension.
    pub dimension: bool,
    /// Whether cells may end within a value.
    pub torn: bool,
}

impl FieldShape {
    /// The shapes of a fragment's fields: attributes and, for sparse arrays, dimensions.
    pub fn of_all(schema: &ArraySchema, fields: &[Field]) -> Result<Vec<Self>> {
        let shape = |field: &Field| {
            let (datatype, cell_val_num) = field.layout(schema)?;
            let (name, dimension) = match *field {
                Field::Attribute(i) => (&schema.attribute(i)?.name, false),
                Field::Dimension(i) => (&schema.dimension(i)?.name, true),
                _ => return None,
            };
            let nullable = field.is_nullable(schema);
            Some(Self {
                name: name.clone(),
                datatype,
                cell_val_num,
                nullable,
                dimension,
                torn: false,
            })
        };
        let shapes: Option<Vec<Self>> = fields.iter().map(shape).collect();
        shapes.ok_or_else(|| Error::Internal("a fragment has a field that its schema lacks".into()))
    }

    /// Bytes of a fixed-length cell; 0 for var-length ones.
    pub fn cell_size(&self) -> usize {
        self.cell_val_num.cell_size(self.datatype).unwrap_or(0)
    }

    /// Bytes of a cell of zero bytes, which fills tiles that a box takes a part of.
    pub fn filling_size(&self) -> usize {
        let value = match self.is_var() {
            true => size_of::<u64>() + self.datatype.size(),
            false => self.cell_size(),
        };
        value + usize::from(self.nullable)
    }

    /// Whether cells vary in length.
    pub fn is_var(&self) -> bool {
        self.cell_val_num.is_var()
    }
}

/// The cells of one call, one view a field.
#[derive(Debug)]
pub(super) struct Input<'a> {
    pub cell_num: usize,
    /// In the order of the fragment's fields.
    pub fields: Vec<FieldView<'a>>,
}

impl Input<'_> {
    /// Bytes that a cell takes on average, offsets and validity included; at least 1.
    pub fn bytes_per_cell(&self) -> usize {
        let bytes: usize = self.fields.iter().map(FieldView::byte_len).sum();
        bytes.div_ceil(self.cell_num.max(1)).max(1)
    }
}

/// Validity for nullable fields whose columns have none: as many ones as there are cells, if any
/// column needs them.
pub(super) fn all_valid(shapes: &[FieldShape], columns: &[ColumnView<'_>]) -> Vec<u8> {
    let lacks = |shape: &FieldShape| {
        shape.nullable
            && column_of(columns, shape).is_some_and(|column| column.cells.validity.is_none())
    };
    if shapes.iter().any(lacks) {
        vec![1; cell_num(columns)]
    } else {
        Vec::new()
    }
}

/// The column of a field.
fn column_of<'c, 'a>(
    columns: &'c [ColumnView<'a>],
    shape: &FieldShape,
) -> Option<&'c ColumnView<'a>> {
    columns
        .iter()
        .find(|column| *column.column_type.name == shape.name)
}

/// Cells of a write: of the first column, which all others must equal.
fn cell_num(columns: &[ColumnView<'_>]) -> usize {
    columns.first().map_or(0, |column| column.cells.cell_num)
}

/// Finds the column of every field and checks its type and lengths. `ones` comes from
/// [`all_valid`].
///
/// # Errors
/// [`Error::SchemaMismatch`] for columns that are missing, too many or of another type,
/// [`Error::InvalidArgument`] for buffers that do not fit each other and for nulls in a field that
/// has none.
pub(super) fn bind<'a>(
    schema: &ArraySchema,
    shapes: &[FieldShape],
    columns: &[ColumnView<'a>],
    ones: &'a [u8],
) -> Result<Input<'a>> {
    let cell_num = cell_num(columns);
    for (i, column) in columns.iter().enumerate() {
        let name = &*column.column_type.name;
        if columns
            .iter()
            .take(i)
            .any(|other| *other.column_type.name == *name)
        {
            return Err(Error::SchemaMismatch(format!(
                "there are two columns {name:?}"
            )));
        }
        if !shapes.iter().any(|shape| shape.name == name) {
            let why = if schema.domain.index_of(name).is_some() {
                "is a dimension: dense writes take attributes only, the box says where they go"
                    .to_owned()
            } else {
                format!("is no field of the array; it has {}", names(shapes))
            };
            return Err(Error::SchemaMismatch(format!("column {name:?} {why}")));
        }
    }
    let mut fields = Vec::with_capacity(shapes.len());
    for shape in shapes {
        let Some(column) = column_of(columns, shape) else {
            let kind = if shape.dimension {
                "dimension"
            } else {
                "attribute"
            };
            return Err(Error::SchemaMismatch(format!(
                "the column of {kind} {:?} is missing: a write needs {}",
                shape.name,
                names(shapes)
            )));
        };
        if column.cells.cell_num != cell_num {
            return Err(Error::InvalidArgument(format!(
                "column {:?} has {} cells, the write {cell_num}",
                shape.name, column.cells.cell_num
            )));
        }
        fields.push(view(shape, column, ones)?);
    }
    Ok(Input { cell_num, fields })
}

fn names(shapes: &[FieldShape]) -> String {
    let names = shapes.iter().map(|shape| quoted_name(&shape.name));
    names.collect::<Vec<_>>().join(", ")
}

/// The column as the cells of a field.
fn view<'a>(shape: &FieldShape, column: &ColumnView<'a>, ones: &'a [u8]) -> Result<FieldView<'a>> {
    let given = &column.column_type;
    if !takes(shape.datatype, given.datatype) || shape.cell_val_num != given.cell_val_num {
        return Err(Error::SchemaMismatch(format!(
            "column {:?} holds {}, the array {}",
            shape.name,
            describe(given.datatype, given.cell_val_num),
            describe(shape.datatype, shape.cell_val_num)
        )));
    }
    column.validate()?;
    let mut view = column.cells;
    view.cell_size = shape.cell_size();
    if let Some(offsets) = view.offsets {
        let size = shape.datatype.size() as u64;
        let odd =
            |ends: &[u64]| matches!(ends, [start, end] if !(end - start).is_multiple_of(size));
        if size > 1
            && !shape.torn
            && let Some(cell) = offsets.windows(2).position(odd)
        {
            return Err(Error::InvalidArgument(format!(
                "column {:?}: cell {cell} is no whole number of {} values",
                shape.name, shape.datatype
            )));
        }
    }
    match (shape.nullable, view.validity) {
        (true, None) => view.validity = Some(ones),
        (false, Some(validity)) => {
            if let Some(cell) = validity.iter().position(|&valid| valid == 0) {
                return Err(Error::InvalidArgument(format!(
                    "column {:?}: cell {cell} is null, but the array has no nulls there",
                    shape.name
                )));
            }
            view.validity = None;
        }
        _ => {}
    }
    Ok(view)
}

/// Whether values of type `given` may be stored as `wanted`: the same type, texts and bytes among
/// each other, and plain integers as what they are the stored form of.
fn takes(wanted: Datatype, given: Datatype) -> bool {
    let bytes = |t: Datatype| {
        t.is_byte()
            || matches!(
                t,
                Datatype::Char
                    | Datatype::StringAscii
                    | Datatype::StringUtf8
                    | Datatype::Any
                    | Datatype::UInt8
            )
    };
    let physical = wanted.physical() == given.physical();
    wanted == given
        || (bytes(wanted) && bytes(given))
        || (physical && (given.is_integer() || wanted.is_integer()))
}

fn describe(datatype: Datatype, cell_val_num: CellValNum) -> String {
    match cell_val_num {
        CellValNum::ONE => datatype.to_string(),
        CellValNum::Fixed(n) => format!("{n} values of {datatype} a cell"),
        CellValNum::Var => format!("cells of {datatype} of varying length"),
    }
}

/// The views of the dimensions, in their order.
pub(super) fn dimensions_of<'a>(shapes: &[FieldShape], input: &Input<'a>) -> Vec<FieldView<'a>> {
    shapes
        .iter()
        .zip(&input.fields)
        .filter(|(shape, _)| shape.dimension)
        .map(|(_, view)| *view)
        .collect()
}

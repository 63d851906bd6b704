//! The columns of an array's table: dimensions, then attributes.

use crate::error::{Result, external};
use azulejo::arrow::{ArrowConverter, ArrowOptions};
use azulejo::column::ColumnType;
use azulejo::condition::{Comparison, Condition};
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::schema::{Attribute, Dimension};
use azulejo::format::{CellValNum, Datatype, Physical};
use azulejo::{Array, array::Snapshot};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::sync::Arc;

/// How an array's cells become rows: texts that repeat are not written out, and zeros that fill up those
/// of a fixed length are none of them. CHAR is text unless it is to be bytes.
fn arrow_options(bytes: bool) -> ArrowOptions {
    let options = ArrowOptions::new().views(true).trimmed(true);
    options.char_bytes(bytes)
}

/// What a column is in the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A dimension, by its index.
    Dimension(usize),
    /// An attribute, by its index.
    Attribute(usize),
}

/// How values of a column lie in the array, as far as SQL's literals can be compared with them.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    /// Numbers of the type that Arrow shows.
    Number(Physical),
    /// A byte that is not 0 for true.
    Bool,
    /// 64-bit ticks of which Arrow shows multiples: days as they are, hours as seconds, ...
    Ticks {
        /// What one tick is in the unit that Arrow shows.
        scale: i64,
        /// The least and greatest tick that Arrow can show; others are null there.
        shown: (i64, i64),
    },
    /// Strings of bytes.
    Text,
    /// Strings of this many bytes, of which zeros at the end are not shown.
    Padded(usize),
    /// Indices of labels, which are strings.
    Labels,
    /// Nothing that literals are compared with.
    Other,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub struct TableColumn {
    /// Its type in the array.
    pub column_type: ColumnType,
    /// What it is.
    pub place: Place,
    /// What literals become.
    pub stored: Stored,
    /// The tiles of a dimension.
    pub tiles: Option<Tiles>,
}

/// The tiles along a dimension, in the units that Arrow shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiles {
    /// Where the domain begins, as a number.
    pub start: String,
    /// How wide they are, without a sign.
    pub extent: String,
}

impl TableColumn {
    fn of_dimension(index: usize, dimension: &Dimension) -> Self {
        let column_type = ColumnType::new(dimension.name.as_str(), dimension.datatype)
            .with_cell_val_num(dimension.cell_val_num);
        let stored = stored(&column_type);
        Self {
            tiles: tiles_of(dimension, &stored),
            stored,
            column_type,
            place: Place::Dimension(index),
        }
    }

    fn of_attribute(
        index: usize,
        attribute: &Attribute,
        array: &Snapshot,
        bytes: bool,
    ) -> Result<Self> {
        let enumeration = match &attribute.enumeration {
            Some(name) => Some(array.enumeration(name).map_err(external)?),
            None => None,
        };
        let column_type = ColumnType {
            name: attribute.name.as_str().into(),
            datatype: attribute.datatype,
            cell_val_num: attribute.cell_val_num,
            nullable: attribute.nullable,
            enumeration,
        };
        let is_bytes = bytes && column_type.datatype == Datatype::Char;
        Ok(Self {
            stored: match is_bytes {
                true => Stored::Other,
                false => stored(&column_type),
            },
            column_type,
            place: Place::Attribute(index),
            tiles: None,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.column_type.name
    }

    /// The cells with a time that Arrow cannot show, if there can be some.
    pub fn hidden(&self) -> Option<Condition> {
        let Stored::Ticks { shown, .. } = self.stored else {
            return None;
        };
        let is = |op, tick: i64| Condition::compare(self.name(), op, tick.to_le_bytes());
        // The least tick is no time.
        let before = is(Comparison::Lt, shown.0).and(is(Comparison::Ne, i64::MIN));
        Some(before.or(is(Comparison::Gt, shown.1)))
    }
}

/// How values of a type lie in the array.
fn stored(column: &ColumnType) -> Stored {
    use Datatype as D;
    let (datatype, whole) = (column.datatype, column.cell_val_num == CellValNum::ONE);
    if let Some(labels) = &column.enumeration {
        let text = matches!(labels.datatype, D::StringAscii | D::StringUtf8 | D::Char)
            && labels.cell_val_num.is_var()
            && labels.values().all(|label| str::from_utf8(label).is_ok());
        return if text && whole {
            Stored::Labels
        } else {
            Stored::Other
        };
    }
    match datatype {
        D::StringAscii | D::StringUtf8 | D::Char if column.is_var() => Stored::Text,
        // CHAR of a fixed length compares by the first alone.
        D::StringAscii | D::StringUtf8 => match column.cell_val_num {
            CellValNum::Fixed(n) => Stored::Padded(n as usize),
            CellValNum::Var => Stored::Text,
        },
        _ if !whole => Stored::Other,
        D::Bool => Stored::Bool,
        D::DateTimeDay => Stored::Ticks {
            scale: 1,
            shown: (i32::MIN.into(), i32::MAX.into()),
        },
        D::DateTimeWeek => scaled(7 * 86_400),
        D::DateTimeHour | D::TimeHour => scaled(3_600),
        D::DateTimeMinute | D::TimeMinute => scaled(60),
        D::DateTimeYear | D::DateTimeMonth => Stored::Other,
        _ if datatype.is_integer()
            || datatype.is_real()
            || datatype.is_datetime()
            || datatype.is_time() =>
        {
            Stored::Number(datatype.physical())
        }
        _ => Stored::Other,
    }
}

fn scaled(scale: i64) -> Stored {
    Stored::Ticks {
        scale,
        shown: (i64::MIN / scale, i64::MAX / scale),
    }
}

/// All columns of an array's table, and their Arrow schema.
#[derive(Debug, Clone)]
pub struct TableColumns {
    columns: Vec<TableColumn>,
    schema: SchemaRef,
    /// Whether CHAR is bytes.
    bytes: bool,
}

impl TableColumns {
    /// The columns of an array, where CHAR may be bytes. Reads its enumerations.
    pub fn of(array: &Array, bytes: bool) -> Result<Self> {
        let of = array.schema();
        let dimensions = of.domain.dimensions.iter().enumerate();
        let mut columns: Vec<TableColumn> = dimensions
            .map(|(i, d)| TableColumn::of_dimension(i, d))
            .collect();
        for (i, attribute) in of.attributes.iter().enumerate() {
            columns.push(TableColumn::of_attribute(i, attribute, array, bytes)?);
        }
        let types = columns.iter().map(|column| &column.column_type);
        let converter = ArrowConverter::new(types, arrow_options(bytes)).map_err(external)?;
        // Plans compare schemas, those of unions and recursive queries too: what Arrow tells of
        // TileDB's types would be in their way.
        let bare = |field: &Arc<Field>| {
            Field::new(field.name(), field.data_type().clone(), field.is_nullable())
        };
        let schema = converter.schema();
        let fields: Vec<Field> = schema.fields().iter().map(bare).collect();
        Ok(Self {
            columns,
            schema: Arc::new(Schema::new(fields)),
            bytes,
        })
    }

    /// Whether CHAR is bytes.
    pub fn bytes(&self) -> bool {
        self.bytes
    }

    /// How the array's cells become rows.
    pub fn arrow_options(&self) -> ArrowOptions {
        arrow_options(self.bytes)
    }

    /// Whether the values of all columns lie in the array as those of others do. Enumerations may
    /// have got more labels since: conditions name these, and whoever reads looks them up.
    pub fn stored_as(&self, others: &Self) -> bool {
        let alike = |(own, other): (&TableColumn, &TableColumn)| {
            let (a, b) = (&own.column_type, &other.column_type);
            own.place == other.place
                && own.stored == other.stored
                && a.datatype == b.datatype
                && a.cell_val_num == b.cell_val_num
                && a.enumeration.is_some() == b.enumeration.is_some()
        };
        self.schema == others.schema && self.columns.iter().zip(&others.columns).all(alike)
    }

    /// The Arrow schema.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The columns.
    pub fn all(&self) -> &[TableColumn] {
        &self.columns
    }

    /// A column by its index.
    pub fn get(&self, index: usize) -> Option<&TableColumn> {
        self.columns.get(index)
    }

    /// The index of the column with a name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name() == name)
    }

    /// Whether the coordinates of a dimension are as many values in SQL, in the same order. Arrow
    /// orders -0.0 before 0.0, which SQL takes for one, and what it cannot show is null.
    pub fn shows_each(&self, d: usize, dimension: &Dimension) -> bool {
        let field = self.schema.fields().get(d);
        let nullable = field.is_none_or(|field| field.is_nullable());
        let days_fit = || {
            dimension.domain.as_ref().is_some_and(|domain| {
                let (start, end) = domain.bounds::<i64>();
                i32::try_from(start).is_ok() && i32::try_from(end).is_ok()
            })
        };
        !dimension.datatype.is_real()
            && (!nullable || dimension.datatype == Datatype::DateTimeDay && days_fit())
    }

    /// The type that Arrow shows of a column.
    pub fn data_type(&self, index: usize) -> Option<&DataType> {
        self.schema
            .fields()
            .get(index)
            .map(|field| field.data_type())
    }
}

/// The tiles of a dimension, if it has some.
fn tiles_of(dimension: &Dimension, stored: &Stored) -> Option<Tiles> {
    let (domain, extent) = (dimension.domain.as_ref()?, dimension.tile_extent.as_ref()?);
    let scale = match stored {
        Stored::Ticks { scale, .. } => i128::from(*scale),
        Stored::Number(_) => 1,
        _ => return None,
    };
    let text =
        |bytes: &[u8]| dispatch!(dimension.datatype.physical(), T => T::read(bytes).to_string());
    // Reals are shown as they are.
    let scaled = |text: String| match text.parse::<i128>() {
        Ok(number) => (number * scale).to_string(),
        Err(_) => text,
    };
    Some(Tiles {
        start: scaled(text(&domain.start)),
        extent: scaled(match dimension.axis() {
            Some(axis) => axis.extent().to_string(),
            None => text(extent),
        }),
    })
}

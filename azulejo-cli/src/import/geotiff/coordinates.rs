//! Evenly spaced coordinates as the cells of a variable.

use super::array;
use crate::error::Result;
use crate::import::dataset::{CellSource, PutBox, Variable, fixed_column};
use crate::interrupt;
use crate::session::Session;
use azulejo::column::ColumnType;
use azulejo::format::schema::Attribute;
use azulejo::format::{CellValNum, Datatype};
use azulejo::write::optimize::usual_filters;

/// Cells of a coordinate that are written at once.
const AT_ONCE: u64 = 1 << 20;

/// The variable of a dimension's coordinates.
pub fn coordinate(name: &str, line: (f64, f64), count: u64, whole: bool) -> Result<Variable> {
    let attribute = format!("{name}_");
    let cells = Coordinates {
        attribute,
        line,
        count,
        whole,
    };
    let datatype = cells.datatype();
    let own = Attribute::new(cells.attribute.as_str(), datatype, CellValNum::ONE)
        .filters(usual_filters(datatype, CellValNum::ONE));
    let extent = cells.count.min(AT_ONCE);
    Ok(Variable {
        path: name.to_owned(),
        array: array(&[name], &[cells.count], &[extent], own)?,
        keys: Vec::new(),
        cells: Box::new(cells),
    })
}

/// Evenly spaced coordinates.
#[derive(Debug)]
pub struct Coordinates {
    /// The attribute that they become.
    pub attribute: String,
    /// The first, and what is added for each.
    pub line: (f64, f64),
    /// How many there are.
    pub count: u64,
    /// Whether they are whole numbers.
    pub whole: bool,
}

impl Coordinates {
    fn datatype(&self) -> Datatype {
        if self.whole {
            Datatype::Int64
        } else {
            Datatype::Float64
        }
    }
}

impl CellSource for Coordinates {
    fn cells(&self) -> u64 {
        self.count
    }

    fn check(&self, _: &Session) -> Result<()> {
        Ok(())
    }

    fn each_box(&self, _: &Session, put: PutBox<'_>) -> Result<()> {
        let column = ColumnType::new(self.attribute.as_str(), self.datatype());
        let (first, step) = self.line;
        let mut low = 0;
        while low < self.count {
            interrupt::check()?;
            let number = (self.count - low).min(AT_ONCE);
            let values = (low..low + number).map(|at| at as f64 * step + first);
            let bytes = values.flat_map(|value| match self.whole {
                true => (value as i64).to_le_bytes(),
                false => value.to_le_bytes(),
            });
            put(
                &[(low, number)],
                fixed_column(column.clone(), bytes.collect()),
            )?;
            low += number;
        }
        Ok(())
    }
}

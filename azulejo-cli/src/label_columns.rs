//! Labels of dimensions as columns: looked up by the coordinates of each cell.

use crate::error::Result;
use crate::value::integer;
use azulejo::column::{ColumnBuilder, ColumnType};
use azulejo::format::datatype::dispatch;
use azulejo::space::DimSelection;
use azulejo::{Array, ColumnBuffers, ColumnSet};
use std::sync::Arc;

/// A label that stands beside the dimension that it labels.
#[derive(Debug, Clone)]
pub struct LabelColumn {
    /// Where it stands in the result.
    at: usize,
    /// Where its dimension does, before labels are added.
    dimension: usize,
    /// Its type: null where nothing was written.
    column_type: ColumnType,
    /// The first coordinate with a label.
    first: i128,
    labels: Arc<ColumnBuffers>,
}

/// The labels of the dimensions among these columns.
pub fn of_columns(array: &Array, fields: &[String]) -> Result<Vec<LabelColumn>> {
    let schema = array.schema();
    let mut found = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let dimension = schema.domain.index_of(field);
        for reference in &schema.dimension_labels {
            if dimension != Some(reference.dimension as usize) {
                continue;
            }
            let mut columns = array
                .label(&reference.name)?
                .read(DimSelection::All)?
                .columns;
            let (Some(labels), Some(coordinates)) = (columns.pop(), columns.pop()) else {
                continue;
            };
            let of = coordinates.column_type.datatype;
            let first = match coordinates.cell_num {
                0 => 0,
                _ => {
                    dispatch!(of.physical(), T => integer(<T as azulejo::format::datatype::Native>::read(&coordinates.data)))
                }
            };
            found.push(LabelColumn {
                at: at + 1 + found.len(),
                dimension: at,
                column_type: ColumnType {
                    name: reference.name.as_str().into(),
                    nullable: true,
                    ..labels.column_type.clone()
                },
                first,
                labels: Arc::new(labels),
            });
        }
    }
    Ok(found)
}

impl LabelColumn {
    /// Where it stands among all columns, and its type.
    pub fn place(&self) -> (usize, &ColumnType) {
        (self.at, &self.column_type)
    }

    fn of(&self, coordinates: &ColumnBuffers) -> ColumnBuffers {
        let of = coordinates.column_type.datatype;
        let view = coordinates.view();
        let labels = self.labels.view();
        let mut out = ColumnBuilder::new(self.column_type.clone());
        for cell in 0..coordinates.cell_num {
            let bytes = view.cell(cell);
            let coordinate = dispatch!(of.physical(), T => integer(<T as azulejo::format::datatype::Native>::read(bytes)));
            let at = usize::try_from(coordinate - self.first).ok();
            match at.filter(|&at| at < self.labels.cell_num && labels.is_valid(at)) {
                Some(at) => out.append_cell(labels.cell(at), true),
                None => out.append_cell(&self.column_type.datatype.default_fill(), false),
            }
        }
        out.finish()
    }
}

/// A result with the labels in their places.
pub fn added(labels: &[LabelColumn], mut set: ColumnSet) -> ColumnSet {
    let made: Vec<(usize, ColumnBuffers)> = labels
        .iter()
        .filter_map(|label| Some((label.at, label.of(set.columns.get(label.dimension)?))))
        .collect();
    for (at, column) in made {
        set.columns.insert(at.min(set.columns.len()), column);
    }
    set
}

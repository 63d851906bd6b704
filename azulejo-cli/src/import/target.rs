//! Where a column of the file goes: a field of the array.

use azulejo::column::ColumnType;
use azulejo::format::schema::Enumeration;
use std::collections::HashMap;
use std::sync::Arc;

/// A field of the array and the column of the file that fills it.
#[derive(Debug, Clone)]
pub struct Target {
    /// The field.
    pub column: ColumnType,
    /// The column's position in the file.
    pub source: usize,
    /// Whether the field is a dimension: it can have no missing values.
    pub is_dimension: bool,
    /// The indices of the field's labels, by their bytes.
    pub labels: Option<Arc<LabelIndex>>,
}

/// Label bytes to index.
pub type LabelIndex = HashMap<Box<[u8]>, u64>;

impl Target {
    /// A target; its labels are those of the field's enumeration.
    pub fn new(column: ColumnType, source: usize, is_dimension: bool) -> Self {
        let labels = column
            .enumeration
            .as_deref()
            .map(|e| Arc::new(label_index(e)));
        Self {
            column,
            source,
            is_dimension,
            labels,
        }
    }

    /// What stands for a missing value where the field cannot be null: NaN, or the least tick,
    /// which is no time.
    pub fn stand_in(&self) -> Option<Vec<u8>> {
        let datatype = self.column.datatype;
        if self.is_dimension || self.labels.is_some() {
            return None;
        }
        let has_one = datatype.is_real() || datatype.is_datetime() || datatype.is_time();
        has_one.then(|| datatype.default_fill())
    }

    /// Why a missing value is an error.
    pub fn missing(&self) -> String {
        match self.is_dimension {
            true => "it is missing, and a cell needs all its coordinates".to_owned(),
            false => "it is missing, and the attribute cannot be null".to_owned(),
        }
    }
}

fn label_index(enumeration: &Enumeration) -> LabelIndex {
    enumeration
        .values()
        .zip(0..)
        .map(|(value, index)| (value.into(), index))
        .collect()
}

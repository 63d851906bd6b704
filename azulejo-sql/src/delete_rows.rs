//! Deletes of rows whose condition an array cannot keep: the rows are looked for, and what is stored
//! names their coordinates.

use crate::columns::{Stored, TableColumns};
use crate::error::{Result, external};
use crate::giving_up::until_given_up;
use crate::predicate::Predicate;
use crate::table::ArrayTable;
use async_trait::async_trait;
use azulejo::ArrayHandle;
use azulejo::condition::{Comparison, Condition};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::datasource::sink::DataSink;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use futures_util::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Rows that one delete can name, at most: whoever reads the array compares its cells with them.
const MOST_ROWS: usize = 1 << 16;

/// Lists of coordinates that one delete can have, at most: each is compared with every cell.
const MOST_LISTS: usize = 1 << 10;

/// The coordinates of a row as the array stores them.
type Coordinates = Vec<Vec<u8>>;

/// What takes the coordinates of the rows that go, and deletes these once it has all of them.
#[derive(Debug)]
pub struct DeleteSink {
    place: ArrayHandle,
    columns: Arc<TableColumns>,
    /// The dimensions, in their order.
    schema: SchemaRef,
}

impl DeleteSink {
    /// The sink of a table without duplicates: coordinates name one row each.
    ///
    /// # Errors
    /// Dimensions without values of their own in Arrow.
    pub fn new(table: &ArrayTable) -> Result<Self> {
        let columns = Arc::clone(table.columns());
        let dimensions: Vec<usize> = (0..table.array().schema().domain.ndim()).collect();
        Ok(Self {
            place: table.place().clone(),
            schema: Arc::new(columns.schema().project(&dimensions)?),
            columns,
        })
    }

    fn too_much(&self, why: &str) -> DataFusionError {
        DataFusionError::Execution(format!(
            "DELETE FROM {}: an array cannot keep the condition of this delete, and {why}; nothing was deleted",
            self.place.uri()
        ))
    }

    /// A coordinate as it is stored.
    fn coordinate(&self, dimension: usize, value: &ScalarValue) -> Result<Vec<u8>> {
        let told = Predicate::compare(&self.columns, dimension, Comparison::Eq, value);
        let Some(Predicate::Compare { op, value, .. }) = told else {
            return Err(self.too_much("some coordinates cannot be compared"));
        };
        let real = self.columns.get(dimension).is_some_and(
            |column| matches!(column.stored, Stored::Number(physical) if !physical.is_integer()),
        );
        // All bytes of 0.0 are zero, and all but one bit of -0.0, which equals it.
        let zero = value
            .split_last()
            .is_some_and(|(last, rest)| last & 0x7f == 0 && rest.iter().all(|byte| *byte == 0));
        match op == Comparison::Eq && !(real && zero) {
            true => Ok(value),
            false => Err(self.too_much("0.0 and -0.0 are two coordinates that compare as one")),
        }
    }

    fn condition(&self, rows: BTreeSet<Coordinates>) -> Result<Option<Condition>> {
        let dimensions = self.schema.fields().len();
        // The dimension with the most values becomes lists.
        let different = |d: usize| {
            let values: BTreeSet<_> = rows.iter().filter_map(|row| row.get(d)).collect();
            values.len()
        };
        let Some(listed) = (0..dimensions).max_by_key(|d| different(*d)) else {
            return Ok(None);
        };
        let mut lists: BTreeMap<Coordinates, Vec<Vec<u8>>> = BTreeMap::new();
        for mut row in rows {
            let value = row.remove(listed);
            lists.entry(row).or_default().push(value);
        }
        if lists.len() > MOST_LISTS {
            return Err(self.too_much("its rows lie too far apart to be named"));
        }
        let others = (0..dimensions).filter(|d| *d != listed);
        let of_list = |(row, values): (Coordinates, Vec<Vec<u8>>)| {
            let equal = others.clone().zip(row).map(|(column, value)| {
                let op = Comparison::Eq;
                Predicate::Compare { column, op, value }
            });
            let one_of = Predicate::In {
                column: listed,
                values,
                negated: false,
            };
            Predicate::all(equal.chain([one_of]))
        };
        let named = Predicate::any(lists.into_iter().map(of_list));
        match named {
            Predicate::Constant(_) => Ok(None),
            named => Ok(named.to_condition(&self.columns)),
        }
    }
}

impl DisplayAs for DeleteSink {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeleteSink(array={})", self.place.uri())
    }
}

#[async_trait]
impl DataSink for DeleteSink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        mut data: SendableRecordBatchStream,
        _context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let mut rows: BTreeSet<Coordinates> = BTreeSet::new();
        while let Some(batch) = data.next().await {
            let batch = batch?;
            for row in 0..batch.num_rows() {
                let coordinates = batch.columns().iter().enumerate().map(|(d, column)| {
                    self.coordinate(d, &ScalarValue::try_from_array(column, row)?)
                });
                rows.insert(coordinates.collect::<Result<_>>()?);
                if rows.len() > MOST_ROWS {
                    let why = format!("it would name more than {MOST_ROWS} rows");
                    return Err(self.too_much(&why));
                }
            }
        }
        let number = rows.len() as u64;
        if let Some(condition) = self.condition(rows)? {
            let own = self.place.context().cancellable();
            let place = own.array(self.place.uri());
            let delete = until_given_up(own, move |_| {
                place.delete_cells(&condition, None).map_err(external)
            });
            delete.await?;
        } else if number > 0 {
            return Err(external(azulejo::Error::Internal(
                "rows without a condition".into(),
            )));
        }
        Ok(number)
    }
}

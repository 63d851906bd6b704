//! `DELETE` and `TRUNCATE`: one delete each, stored as a condition, which other programs apply too.

use crate::columns::{Place, Stored, TableColumns};
use crate::error::{Result, external};
use crate::filters;
use crate::giving_up::until_given_up;
use crate::predicate::Predicate;
use azulejo::condition::{Comparison, Condition, Meaning};
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use azulejo::{Array, ArrayHandle, ReadOptions};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::Expr;
use std::collections::BTreeSet;

/// What became of a delete when it was planned.
#[derive(Debug)]
pub enum Planned {
    /// No row meets its filters.
    Nothing,
    /// An array can keep its condition.
    Delete(Box<Delete>),
    /// It cannot, for a reason.
    Cannot(String),
}

/// A delete that an array can keep as a condition.
#[derive(Debug, Clone)]
pub struct Delete {
    place: ArrayHandle,
    array: Array,
    /// What is stored.
    condition: Condition,
    /// The cells that it removes, as SQL sees them; `None`: all.
    seen: Option<Condition>,
    /// The fields that can be null, and must not be anywhere.
    compared: Vec<String>,
}

/// The delete of the rows for which all filters are true.
///
/// # Errors
/// Dense arrays, and those of reading where fields are null.
pub fn plan_delete(
    place: ArrayHandle,
    columns: &TableColumns,
    array: Array,
    filters: &[Expr],
) -> Result<Planned> {
    if array.schema().is_dense() {
        return Err(DataFusionError::NotImplemented(format!(
            "{}: cells of dense arrays cannot be deleted",
            place.uri()
        )));
    }
    let condition = |predicate: &Predicate| {
        let condition = predicate.to_condition(columns);
        condition.ok_or_else(|| DataFusionError::Internal("a predicate without a condition".into()))
    };
    let (mut seen, mut compared) = (Vec::new(), BTreeSet::new());
    for filter in filters {
        match filters::of_logical(filter, columns) {
            Some(Predicate::Constant(true)) => {}
            Some(Predicate::Constant(false)) => return Ok(Planned::Nothing),
            Some(predicate) if is_exact(&predicate, columns, &array) => {
                seen.push(condition(&predicate)?);
                nullable(&predicate, columns, &mut compared);
            }
            _ => {
                return Ok(Planned::Cannot(format!(
                    "DELETE FROM {}: an array cannot keep {filter} as the condition of a delete",
                    place.uri()
                )));
            }
        }
    }
    // What is stored says which cells stay, and null cells fail every comparison.
    let compared: Vec<String> = compared.into_iter().collect();
    if has_nulls(&array, &compared)? {
        return Ok(Planned::Cannot(format!(
            "DELETE FROM {}: an array cannot keep the condition of this delete, which would take cells along that are null; there are some in {}",
            place.uri(),
            compared.join(", ")
        )));
    }
    let seen = seen.into_iter().reduce(Condition::and);
    Ok(Planned::Delete(Box::new(Delete {
        place,
        condition: seen.clone().map_or_else(|| everything(&array), Ok)?,
        seen,
        array,
        compared,
    })))
}

/// Whether some cells of fields are null.
fn has_nulls(array: &Array, fields: &[String]) -> Result<bool> {
    let nulls: Vec<Aggregate> = fields.iter().cloned().map(Aggregate::NullCount).collect();
    let counts = array.aggregate(ReadOptions::new(), &nulls);
    let some = |count: &AggregateValue| *count != AggregateValue::Unsigned(0);
    Ok(counts.map_err(external)?.iter().any(some))
}

impl Delete {
    /// Deletes, and tells how many rows that were.
    pub async fn run(self) -> Result<u64> {
        let array = self.array.cancellable();
        let place = array.context().array(self.place.uri());
        let counted = array.context().clone();
        let delete = until_given_up(counted, move |wanted| {
            // It may have waited since it was planned, for other statements to end.
            let array = place.open().map_err(external)?;
            let changed = if array.schema_name() != self.array.schema_name() {
                Some("its schema has changed".to_owned())
            } else if has_nulls(&array, &self.compared)? {
                Some(format!("cells of {} became null", self.compared.join(", ")))
            } else {
                None
            };
            if let Some(changed) = changed {
                return Err(DataFusionError::Execution(format!(
                    "DELETE FROM {}: {changed} since the statement was planned; nothing was deleted",
                    self.place.uri()
                )));
            }
            let mut options = ReadOptions::new().meaning(Meaning::Sql);
            options.condition = self.seen;
            let found = array.aggregate(options, &[Aggregate::Count]);
            let rows = match found.map_err(external)?.first() {
                Some(AggregateValue::Unsigned(rows)) => *rows,
                _ => {
                    return Err(DataFusionError::Internal(
                        "a count that is no number".into(),
                    ));
                }
            };
            if rows > 0 {
                wanted.check().map_err(external)?;
                place
                    .delete_cells(&self.condition, None)
                    .map_err(external)?;
            }
            Ok(rows)
        });
        delete.await
    }
}

/// A condition that every cell meets.
fn everything(array: &Array) -> Result<Condition> {
    let dimension = array.schema().domain.dimensions.first();
    let dimension =
        dimension.ok_or_else(|| DataFusionError::Internal("an array without dimensions".into()))?;
    let least = dimension.domain.as_ref().map(|domain| domain.start.clone());
    let least = least.unwrap_or_default();
    Ok(Condition::compare(
        dimension.name.as_str(),
        Comparison::Ge,
        least,
    ))
}

/// Whether a stored delete removes exactly the cells for which a predicate holds. A delete stores
/// which cells stay, and compares NaN, and what a fragment lacks, in TileDB's way.
fn is_exact(predicate: &Predicate, columns: &TableColumns, array: &Array) -> bool {
    let everywhere = |index: usize| {
        let Some(column) = columns.get(index) else {
            return false;
        };
        let Place::Attribute(i) = column.place else {
            return true;
        };
        let Some(attribute) = array.schema().attributes.get(i) else {
            return false;
        };
        array.fragments().iter().all(|fragment| {
            let stored = fragment
                .schema()
                .attributes
                .iter()
                .find(|a| a.name == attribute.name);
            stored.is_some_and(|stored| {
                (stored.datatype, stored.cell_val_num, stored.nullable)
                    == (
                        attribute.datatype,
                        attribute.cell_val_num,
                        attribute.nullable,
                    )
            })
        })
    };
    match predicate {
        Predicate::Constant(_) => false,
        Predicate::Compare { column, op, .. } => {
            let real = columns.get(*column).is_some_and(|c| {
                matches!(c.stored, Stored::Number(physical) if !physical.is_integer())
                    && matches!(c.place, Place::Attribute(_))
            });
            everywhere(*column) && (!real || matches!(op, Comparison::Eq))
        }
        // Which cells are null cannot be stored, which are not can.
        Predicate::IsNull { negated: true, .. } => false,
        Predicate::In { column, .. } | Predicate::IsNull { column, .. } => everywhere(*column),
        Predicate::And(parts) | Predicate::Or(parts) => {
            parts.iter().all(|part| is_exact(part, columns, array))
        }
    }
}

/// The columns that can be null and that a predicate compares.
fn nullable(predicate: &Predicate, columns: &TableColumns, found: &mut BTreeSet<String>) {
    match predicate {
        Predicate::Compare { column, .. } | Predicate::In { column, .. } => {
            let column = columns.get(*column).filter(|c| c.column_type.nullable);
            found.extend(column.map(|column| column.name().to_owned()));
        }
        Predicate::And(parts) | Predicate::Or(parts) => {
            parts.iter().for_each(|part| nullable(part, columns, found));
        }
        Predicate::Constant(_) | Predicate::IsNull { .. } => {}
    }
}

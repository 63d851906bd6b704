//! Aggregates without groups, answered by the engine: what tiles' metadata tells is not read.

mod answers;
mod exec;
mod rule;

#[cfg(feature = "distributed")]
pub use exec::ArrayAggregateExec;
pub use rule::AggregateRule;

use crate::columns::{Stored, TableColumn};
use crate::scan::ArrayScan;
use azulejo::format::{Datatype, Physical};
use datafusion::arrow::datatypes::DataType;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_plan::projection::ProjectionExec;
use std::fmt;
use std::sync::Arc;

/// One aggregate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The number of rows.
    Rows,
    /// The number of a field's values that are not null.
    Values(String),
    /// The sum of a field.
    Sum(String),
    /// The least value of a field; whether it is real.
    Least(String, bool),
    /// The greatest value of a field; whether it is real.
    Greatest(String, bool),
}

/// What an aggregate looks at.
enum Argument {
    /// The same for every row; whether it is null.
    Constant { null: bool },
    /// A column of the scan, which sums may have widened.
    Column { output: usize, widened: bool },
}

impl Argument {
    /// What an expression over a scan, seen through projections (the topmost first), comes to.
    fn of(expr: &Arc<dyn PhysicalExpr>, projections: &[&ProjectionExec]) -> Option<Self> {
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            let null = literal.value().is_null();
            return Some(Self::Constant { null });
        }
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            // The types that sums are computed in hold every number of the narrower ones.
            let widest = [DataType::Int64, DataType::UInt64, DataType::Float64];
            let inner = Self::of(cast.expr(), projections)?;
            return match inner {
                Self::Column {
                    output,
                    widened: false,
                } if widest.contains(cast.cast_type()) => Some(Self::Column {
                    output,
                    widened: true,
                }),
                _ => None,
            };
        }
        let column = expr.downcast_ref::<Column>()?;
        match projections.split_first() {
            Some((projection, below)) => {
                let inner = projection.expr().get(column.index())?;
                Self::of(&inner.expr, below)
            }
            None => Some(Self::Column {
                output: column.index(),
                widened: false,
            }),
        }
    }
}

impl Wanted {
    fn of(
        aggregate: &AggregateFunctionExpr,
        scan: &ArrayScan,
        projections: &[&ProjectionExec],
    ) -> Option<Self> {
        let plain = !aggregate.is_distinct() && aggregate.order_bys().is_empty();
        let [argument]: [Arc<dyn PhysicalExpr>; 1] = aggregate.expressions().try_into().ok()?;
        if !plain {
            return None;
        }
        let name = aggregate.fun().name();
        let (output, widened) = match Argument::of(&argument, projections)? {
            Argument::Constant { null } => {
                return (name == "count" && !null).then_some(Self::Rows);
            }
            Argument::Column { output, widened } => (output, widened),
        };
        let index = *scan.projection().get(output)?;
        let column = scan.columns().get(index)?;
        let nullable = scan.columns().schema().field(index).is_nullable();
        let field = column.name().to_owned();
        let shown = shows_values(column);
        match name {
            "sum" if is_summed(column) && (!widened || widens(column, aggregate)) => {
                Some(Self::Sum(field))
            }
            _ if widened => None,
            "count" if !nullable => Some(Self::Rows),
            "count" if shown => Some(Self::Values(field)),
            "min" if shown && has_bounds(column) => Some(Self::Least(field, is_real(column))),
            "max" if shown && has_bounds(column) => Some(Self::Greatest(field, is_real(column))),
            _ => None,
        }
    }

    fn field(&self) -> Option<&str> {
        match self {
            Self::Rows => None,
            Self::Values(field)
            | Self::Sum(field)
            | Self::Least(field, _)
            | Self::Greatest(field, _) => Some(field),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows => f.write_str("count(*)"),
            Self::Values(field) => write!(f, "count({field})"),
            Self::Sum(field) => write!(f, "sum({field})"),
            Self::Least(field, _) => write!(f, "min({field})"),
            Self::Greatest(field, _) => write!(f, "max({field})"),
        }
    }
}

/// Whether Arrow shows exactly the values that the array has.
fn shows_values(column: &TableColumn) -> bool {
    column.column_type.enumeration.is_none()
        && !matches!(column.stored, Stored::Ticks { .. })
        && !matches!(
            column.column_type.datatype,
            Datatype::DateTimeYear | Datatype::DateTimeMonth
        )
}

fn is_real(column: &TableColumn) -> bool {
    column.column_type.datatype.is_real()
}

/// Sums of numbers; those of reals depend on an order that plans do not fix either.
fn is_summed(column: &TableColumn) -> bool {
    let datatype = column.column_type.datatype;
    matches!(column.stored, Stored::Number(_))
        && (datatype.is_integer() || datatype.is_real())
        && shows_values(column)
}

/// Whether a sum is of the type that the engine sums a column in.
fn widens(column: &TableColumn, sum: &AggregateFunctionExpr) -> bool {
    let physical = column.column_type.datatype.physical();
    let signed = matches!(
        physical,
        Physical::I8 | Physical::I16 | Physical::I32 | Physical::I64
    );
    match sum.field().data_type() {
        DataType::Int64 => signed,
        DataType::UInt64 => physical.is_integer() && !signed,
        DataType::Float64 => !physical.is_integer(),
        _ => false,
    }
}

fn has_bounds(column: &TableColumn) -> bool {
    match &column.stored {
        Stored::Number(_) => true,
        Stored::Text => column.column_type.is_var(),
        _ => false,
    }
}

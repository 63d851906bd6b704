//! Joins by labels that are numbers.
//!
//! DataFusion 55 looks up keys that are whole numbers close to each other in a table of its own, and
//! takes labels (dictionaries) of such for numbers too, which that table has not: the join fails. So
//! they are joined by their values.

use crate::error::Result;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{ExprSchemable, LogicalPlan, cast};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// Joins by the values of labels that are whole numbers.
#[derive(Debug, Default)]
pub struct LabelRule;

impl OptimizerRule for LabelRule {
    fn name(&self) -> &str {
        "joins_by_labels"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let mut join = match plan {
            LogicalPlan::Join(join) => join,
            plan => return Ok(Transformed::no(plan)),
        };
        let left = Arc::clone(join.left.schema());
        let right = Arc::clone(join.right.schema());
        let mut changed = false;
        for (of_left, of_right) in &mut join.on {
            for (key, schema) in [(of_left, &left), (of_right, &right)] {
                if let DataType::Dictionary(_, values) = key.get_type(schema.as_ref())?
                    && values.is_integer()
                {
                    *key = cast(key.clone(), *values);
                    changed = true;
                }
            }
        }
        let plan = LogicalPlan::Join(join);
        Ok(match changed {
            true => Transformed::yes(plan),
            false => Transformed::no(plan),
        })
    }
}

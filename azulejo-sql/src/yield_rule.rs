//! The rule of DataFusion's optimizer that lets joins be cancelled.

use crate::error::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use std::sync::Arc;

/// Has joins make room for others after some batches.
///
/// DataFusion has scans do so. But a join may make years of rows of two batches, and nothing above it
/// waits for anything: who gives it up, by Ctrl-C or as its time is over, would not be heard, and its
/// thread would be lost to all other queries.
#[derive(Debug, Default)]
pub struct YieldRule;

impl PhysicalOptimizerRule for YieldRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let joins = plan.is::<CrossJoinExec>()
                || plan.is::<HashJoinExec>()
                || plan.is::<NestedLoopJoinExec>()
                || plan.is::<SortMergeJoinExec>();
            Ok(match joins {
                true => Transformed::yes(Arc::new(CooperativeExec::new(plan))),
                false => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "joins_that_yield"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

//! The rule of DataFusion's optimizer that hands aggregates to the engine.

use super::Wanted;
use super::exec::ArrayAggregateExec;
use crate::error::Result;
use crate::scan::ArrayScan;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateInputMode, AggregateOutputMode,
};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use std::sync::Arc;

/// Replaces `count`, `min`, `max` and `sum` over a scan of an array, without groups, by what the
/// engine computes.
#[derive(Debug, Default)]
pub struct AggregateRule;

impl PhysicalOptimizerRule for AggregateRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|plan| {
            Ok(match replacement(&plan) {
                Some(new) => Transformed::new(new, true, TreeNodeRecursion::Jump),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "array_aggregates"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether an aggregate has neither groups nor filters nor a limit.
fn is_plain(aggregate: &AggregateExec) -> bool {
    let groups = aggregate.group_expr();
    groups.expr().is_empty()
        && !groups.has_grouping_set()
        && aggregate.filter_expr().iter().all(Option::is_none)
        && aggregate.limit_options().is_none()
}

/// Whether a node gives the rows that it gets, as they are.
fn passes_rows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<CoalescePartitionsExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<CooperativeExec>()
}

/// What the engine computes instead of an aggregate, if it can.
fn replacement(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let top = plan.downcast_ref::<AggregateExec>()?;
    if !is_plain(top) || top.mode().output_mode() != AggregateOutputMode::Final {
        return None;
    }
    // 1. Down to the aggregate that takes rows.
    let mut raw = plan;
    while raw.downcast_ref::<AggregateExec>()?.mode().input_mode() != AggregateInputMode::Raw {
        let mut below = raw.children().into_iter().next()?;
        while passes_rows(below) {
            below = below.children().into_iter().next()?;
        }
        raw = below;
        if !is_plain(raw.downcast_ref::<AggregateExec>()?) {
            return None;
        }
    }
    let raw = raw.downcast_ref::<AggregateExec>()?;
    // 2. Down to the scan: projections widen what is summed.
    let mut below = raw.input();
    let mut projections = Vec::new();
    loop {
        if let Some(projection) = below.downcast_ref::<ProjectionExec>() {
            projections.push(projection);
        } else if !passes_rows(below) {
            break;
        }
        below = below.children().into_iter().next()?;
    }
    let source = below.downcast_ref::<DataSourceExec>()?;
    let scan = source.data_source().downcast_ref::<ArrayScan>()?;
    if scan.limit().is_some() || scan.unwritten() {
        return None;
    }
    let wanted = raw
        .aggr_expr()
        .iter()
        .map(|aggregate| Wanted::of(aggregate, scan, &projections));
    let wanted = wanted.collect::<Option<Vec<_>>>()?;
    Some(Arc::new(ArrayAggregateExec::new(
        scan.clone(),
        wanted,
        Arc::clone(plan),
    )))
}

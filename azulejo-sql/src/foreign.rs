//! Tables for a DataFusion of another library's, such as the one of the Python wheel `datafusion`,
//! through `datafusion-ffi`.
//!
//! The other side plans with what it is told: columns, which filters the array takes, statistics,
//! rows. Its own rules know nothing of ours, so counts and sums from metadata, `ORDER BY` without a
//! sort, filters that joins learn, `UPDATE` and `DELETE` need sessions of [`crate::session`].

use crate::error::Result;
use crate::table::ArrayTable;
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    displayable,
};
pub use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
pub use datafusion_ffi::table_provider::FFI_TableProvider;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use tokio::runtime::Handle;

/// The major version of DataFusion whose libraries understand these tables.
#[must_use]
pub fn version() -> u64 {
    datafusion_ffi::version()
}

/// A table for another library's DataFusion. `codec` is the other side's, by which filters are read;
/// what waits for storage waits on `runtime`, as the other library's has another Tokio.
#[must_use]
pub fn table_provider(
    table: Arc<ArrayTable>,
    codec: FFI_LogicalExtensionCodec,
    runtime: Handle,
) -> FFI_TableProvider {
    let table = ForeignTable {
        table,
        runtime: runtime.clone(),
    };
    FFI_TableProvider::new_with_ffi_codec(Arc::new(table), true, Some(runtime), codec)
}

/// A table whose futures are polled by another library.
#[derive(Debug)]
struct ForeignTable {
    table: Arc<ArrayTable>,
    runtime: Handle,
}

impl ForeignTable {
    /// What a future gives, which finds our Tokio wherever it is polled.
    async fn within<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let _entered = self.runtime.enter();
            work.as_mut().poll(context)
        })
        .await
    }
}

#[async_trait]
impl TableProvider for ForeignTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    fn statistics(&self) -> Option<Statistics> {
        self.table.statistics()
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let scan = self.table.scan(state, projection, filters, limit);
        Ok(Arc::new(ForeignPlan::new(self.within(scan).await?)))
    }

    async fn insert_into(
        &self,
        state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let insert = self.table.insert_into(state, input, op);
        Ok(Arc::new(ForeignPlan::new(self.within(insert).await?)))
    }
}

/// A plan that another library runs. The other side is told its name and nothing of what it wants of
/// its input.
#[derive(Debug)]
struct ForeignPlan {
    plan: Arc<dyn ExecutionPlan>,
    /// All that `EXPLAIN` shows there.
    name: String,
}

impl ForeignPlan {
    fn new(plan: Arc<dyn ExecutionPlan>) -> Self {
        let name = displayable(plan.as_ref()).one_line().to_string();
        Self {
            name: name.trim_end().to_owned(),
            plan,
        }
    }

    /// The plan itself with other inputs.
    fn over(&self, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match inputs.is_empty() {
            true => Ok(Arc::clone(&self.plan)),
            false => Arc::clone(&self.plan).replace_children(
                inputs,
                ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute),
            ),
        }
    }
}

impl DisplayAs for ForeignPlan {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl ExecutionPlan for ForeignPlan {
    fn name(&self) -> &str {
        &self.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.plan.children()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(self.over(children)?)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.plan.apply_expressions(f)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.plan.metrics()
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.plan.statistics_from_inputs(inputs, args)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.plan.child_stats_requests(partition)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        // What writes takes all rows from one partition. The other side does not know, and divides them.
        let whole = |input: &Arc<dyn ExecutionPlan>| -> Arc<dyn ExecutionPlan> {
            match input.output_partitioning().partition_count() {
                1 => Arc::clone(input),
                _ => Arc::new(CoalescePartitionsExec::new(Arc::clone(input))),
            }
        };
        let inputs = self.plan.children().into_iter().map(whole).collect();
        self.over(inputs)?.execute(partition, context)
    }
}

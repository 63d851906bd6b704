//! A scan that came from another machine.
//!
//! Its array is opened when it runs, and not when its plan is read: of thousands of fragments in a
//! bucket that takes long, and who sends plans waits for them to be read, but not for ever.

use super::wire::ScanParts;
use crate::error::Result;
use crate::scan::{ArrayScan, sorted_by};
use crate::table::blocking;
use azulejo::Context;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source::DataSource;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures_util::TryStreamExt;
use std::fmt;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// A scan of an array that is opened when the first partition runs.
#[derive(Debug, Clone)]
pub struct SentScan {
    parts: Arc<ScanParts>,
    context: Context,
    /// Shared by all partitions.
    scan: Arc<OnceCell<ArrayScan>>,
    metrics: ExecutionPlanMetricsSet,
}

impl SentScan {
    /// A scan that opens its array through a context.
    pub fn new(parts: ScanParts, context: &Context) -> Self {
        Self {
            parts: Arc::new(parts),
            context: context.clone(),
            scan: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// What came.
    pub fn parts(&self) -> &ScanParts {
        &self.parts
    }

    async fn opened(&self) -> Result<&ArrayScan> {
        let open = || async {
            let (parts, context) = (Arc::clone(&self.parts), self.context.clone());
            let scan = blocking(move || Ok(parts.open(&context))).await??;
            Ok::<_, DataFusionError>(scan.with_metrics(self.metrics.clone()))
        };
        self.scan.get_or_try_init(open).await
    }
}

impl DataSource for SentScan {
    fn open(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let scan = self.clone();
        let batches = async move { scan.opened().await?.open(partition, context) };
        let batches = futures_util::stream::once(batches).try_flatten();
        let schema = Arc::clone(&self.parts.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "array={}", self.parts.uri)
    }

    fn output_partitioning(&self) -> Partitioning {
        Partitioning::UnknownPartitioning(self.parts.partitions)
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        let parts = &self.parts;
        sorted_by(&parts.order, &parts.projection, &parts.schema)
    }

    fn scheduling_type(&self) -> SchedulingType {
        SchedulingType::NonCooperative
    }

    fn partition_statistics(&self, _partition: Option<usize>) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.parts.schema)))
    }

    fn with_fetch(&self, _limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        None
    }

    fn fetch(&self) -> Option<usize> {
        self.parts.limit
    }

    fn metrics(&self) -> ExecutionPlanMetricsSet {
        self.metrics.clone()
    }

    fn try_swapping_with_projection(
        &self,
        _projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        Ok(None)
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}

//! The plan node that asks the engine for aggregates.

use super::Wanted;
use super::answers::{Memory, row};
use crate::error::{Result, external};
use crate::giving_up::until_given_up;
use crate::part_stream::memory_of;
use crate::scan::ArrayScan;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures_util::StreamExt;
use std::fmt;
use std::sync::Arc;

/// Bytes of cells that are looked at together, at most: enough to keep all threads busy.
const BATCH_BYTES: u64 = 64 << 20;

/// Aggregates over the cells of a scan.
#[derive(Debug)]
pub struct ArrayAggregateExec {
    scan: ArrayScan,
    wanted: Vec<Wanted>,
    /// The plan that gives the same answer row by row: for sums beyond 64 bits, and for NaN.
    by_rows: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ArrayAggregateExec {
    /// The aggregates over a scan, and the plan that computes them row by row.
    pub fn new(scan: ArrayScan, wanted: Vec<Wanted>, by_rows: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(by_rows.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self {
            scan,
            wanted,
            by_rows,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

#[cfg(feature = "distributed")]
impl ArrayAggregateExec {
    /// The scan whose cells are looked at.
    pub fn scan(&self) -> &ArrayScan {
        &self.scan
    }

    /// What is computed.
    pub fn wanted(&self) -> &[Wanted] {
        &self.wanted
    }

    /// The plan that gives the same answer row by row.
    pub fn by_rows(&self) -> &Arc<dyn ExecutionPlan> {
        &self.by_rows
    }
}

impl DisplayAs for ArrayAggregateExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use datafusion::datasource::source::DataSource;
        let wanted = self
            .wanted
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>();
        write!(
            f,
            "ArrayAggregateExec: aggregates=[{}], ",
            wanted.join(", ")
        )?;
        self.scan.fmt_as(format, f)
    }
}

impl ExecutionPlan for ArrayAggregateExec {
    fn name(&self) -> &'static str {
        "ArrayAggregateExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (scan, wanted) = (self.scan.clone().cancellable(), self.wanted.clone());
        let (schema, by_rows) = (self.by_rows.schema(), Arc::clone(&self.by_rows));
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let pool = context.memory_pool();
        let read = memory_of(scan.array(), 1, &pool.memory_limit());
        let memory = Memory {
            read,
            batch: BATCH_BYTES.min(read / 8),
        };
        let held = MemoryConsumer::new("array aggregates").register(pool);
        let answer = async move {
            held.try_grow(usize::try_from(memory.batch).unwrap_or(usize::MAX))?;
            let own = scan.array().context().clone();
            let row = until_given_up(own, move |_| row(&scan, &wanted, memory).map_err(external));
            let row = row.await?.map(|row| batch(&row, &schema));
            drop(held);
            let batches = match row {
                Some(row) => futures_util::stream::iter([row]).left_stream(),
                None => by_rows.execute(0, context)?.right_stream(),
            };
            Ok::<_, DataFusionError>(batches.inspect(move |batch| {
                if let Ok(batch) = batch {
                    baseline.record_output(batch.num_rows());
                }
            }))
        };
        let batches = futures_util::TryStreamExt::try_flatten(futures_util::stream::once(answer));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.by_rows.schema(),
            batches,
        )))
    }
}

/// The row of answers, as one batch.
fn batch(row: &[ScalarValue], schema: &SchemaRef) -> Result<RecordBatch> {
    let arrays = row.iter().zip(schema.fields()).map(|(value, field)| {
        let array = value.to_array()?;
        Ok(match array.data_type() == field.data_type() {
            true => array,
            false => cast(&array, field.data_type())?,
        })
    });
    let arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), arrays)?)
}

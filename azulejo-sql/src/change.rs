//! The plan of a change that brings no rows but their number.

use crate::error::Result;
use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;

/// A change under way: the number of rows concerned.
pub type Change = BoxFuture<'static, Result<u64>>;

/// Changes something when it runs, and gives the number of rows concerned.
pub struct ChangeExec {
    what: String,
    change: Arc<dyn Fn() -> Change + Send + Sync>,
    properties: Arc<PlanProperties>,
}

impl ChangeExec {
    /// A change, and what it is called.
    pub fn new(what: String, change: impl Fn() -> Change + Send + Sync + 'static) -> Self {
        let count = Field::new("count", DataType::UInt64, false);
        let schema: SchemaRef = Arc::new(Schema::new(vec![count]));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self {
            what,
            change: Arc::new(change),
            properties: Arc::new(properties),
        }
    }
}

impl fmt::Debug for ChangeExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChangeExec").field(&self.what).finish()
    }
}

impl DisplayAs for ChangeExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChangeExec: {}", self.what)
    }
}

impl ExecutionPlan for ChangeExec {
    fn name(&self) -> &'static str {
        "ChangeExec"
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

    fn execute(
        &self,
        _partition: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (change, schema) = (Arc::clone(&self.change), self.schema());
        let batch = async move {
            let rows = change().await?;
            let count = Arc::new(UInt64Array::from(vec![rows]));
            Ok(RecordBatch::try_new(schema, vec![count])?)
        };
        let batches = futures_util::stream::once(batch);
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            batches,
        )))
    }
}

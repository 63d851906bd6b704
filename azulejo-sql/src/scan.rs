//! The leaf of a plan that reads an array.

mod order;
mod show;

pub use order::sorted_by;

use crate::columns::TableColumns;
use crate::error::Result;
use crate::part_stream::{self, PartRead};
use crate::selection::Selection;
use crate::statistics;
use crate::table::TableOptions;
use azulejo::condition::{Condition, Meaning};
use azulejo::space::Layout;
use azulejo::{Array, ReadOptions, Subarray};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, project_schema};
use datafusion::datasource::source::DataSource;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{Column, DynamicFilterTracking};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{
    EquivalenceProperties, Partitioning, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, SortOrderPushdownResult};
use std::fmt;
use std::sync::Arc;

/// Rows that one partition brings, where any will do: others would only begin to read.
const FEW_ROWS: usize = 1 << 16;

/// A scan of an array: one snapshot of it, a part of its cells for each partition.
#[derive(Debug, Clone)]
pub struct ArrayScan {
    array: Array,
    unwritten: bool,
    columns: Arc<TableColumns>,
    /// Indices of the columns that come out.
    projection: Vec<usize>,
    schema: SchemaRef,
    selection: Selection,
    /// What the partitions read; those beyond have nothing to read.
    parts: Arc<Vec<Subarray>>,
    /// The number of partitions, at least one.
    partitions: usize,
    /// Whether others read parts of the selection that are not among these.
    is_part: bool,
    limit: Option<usize>,
    /// The dimensions by which each partition is sorted, ascending.
    order: Vec<usize>,
    /// Whether the last cells along the dimensions are wanted most.
    backwards: bool,
    /// Filters that change while the plan runs; rows that they leave out may be left out.
    dynamic: Vec<Arc<dyn PhysicalExpr>>,
    metrics: ExecutionPlanMetricsSet,
}

impl ArrayScan {
    /// A scan of the parts of a selection.
    ///
    /// # Errors
    /// Columns that do not exist.
    pub fn new(
        array: Array,
        options: &TableOptions,
        columns: Arc<TableColumns>,
        projection: Vec<usize>,
        selection: Selection,
        parts: Vec<Subarray>,
    ) -> Result<Self> {
        let schema = project_schema(columns.schema(), Some(&projection))?;
        Ok(Self {
            array,
            unwritten: options.unwritten,
            columns,
            projection,
            schema,
            selection,
            partitions: parts.len().max(1),
            parts: Arc::new(parts),
            is_part: false,
            limit: None,
            order: Vec::new(),
            backwards: false,
            dynamic: Vec::new(),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// No more rows are wanted than these, nor than were before. Few rows are the first partition's to
    /// bring, if it need not search for them.
    #[must_use]
    pub fn limited(mut self, limit: Option<usize>) -> Self {
        // The limit that is there may stand for one that plans have no longer.
        self.limit = self.limit.into_iter().chain(limit).min();
        if self.takes_few()
            && !self.is_part
            && self.parts.len() > 1
            && let Selection::Cells { subarray, .. } = &self.selection
        {
            self.parts = Arc::new(vec![subarray.clone()]);
        }
        self
    }

    /// Whether few rows are wanted, and the first ones will do.
    pub fn takes_few(&self) -> bool {
        self.limit.is_some_and(|rows| rows <= FEW_ROWS)
            && self.condition().is_none()
            && self.dynamic.is_empty()
    }

    /// The same scan in some number of partitions, not fewer than it has parts.
    #[must_use]
    pub fn of_partitions(mut self, partitions: usize) -> Self {
        self.partitions = partitions.max(self.parts.len()).max(1);
        self
    }

    /// The snapshot that is read.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// The columns of the table.
    pub fn columns(&self) -> &Arc<TableColumns> {
        &self.columns
    }

    /// The columns that come out.
    #[cfg(feature = "distributed")]
    pub fn output(&self) -> &SchemaRef {
        &self.schema
    }

    /// Indices of the columns that come out.
    pub fn projection(&self) -> &[usize] {
        &self.projection
    }

    /// Which cells are read.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// What the partitions read; those beyond have nothing to read.
    pub fn parts(&self) -> &Arc<Vec<Subarray>> {
        &self.parts
    }

    /// The number of partitions.
    pub fn partitions(&self) -> usize {
        self.partitions
    }

    /// Whether others read parts of the selection that are not among these.
    pub fn is_part(&self) -> bool {
        self.is_part
    }

    /// Whether cells of a dense array are rows that nobody wrote.
    pub fn unwritten(&self) -> bool {
        self.unwritten
    }

    /// The number of rows that are wanted, if not all.
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Whether fewer rows may come than are selected.
    pub fn is_narrowed(&self) -> bool {
        self.limit.is_some() || self.is_part || !self.dynamic.is_empty()
    }

    /// The dimensions by which each partition is sorted.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The same scan, each partition sorted by some dimensions.
    #[must_use]
    pub fn ordered(mut self, order: Vec<usize>) -> Self {
        self.order = order;
        self
    }

    /// The same scan in parts, each of which a partition reads.
    #[must_use]
    pub fn with_all_parts(mut self, parts: Vec<Subarray>) -> Self {
        self.partitions = parts.len().max(1);
        self.parts = Arc::new(parts);
        self
    }

    /// The same scan with some of its parts, as one of several that divide the work; of as many
    /// partitions as the others have.
    #[must_use]
    pub fn with_parts(mut self, parts: Vec<Subarray>, partitions: usize) -> Self {
        self.partitions = partitions.max(parts.len()).max(1);
        self.parts = Arc::new(parts);
        self.is_part = true;
        self
    }

    /// The same scan, which counts what it does among these.
    #[cfg(feature = "distributed")]
    #[must_use]
    pub fn with_metrics(mut self, metrics: ExecutionPlanMetricsSet) -> Self {
        self.metrics = metrics;
        self
    }

    /// The same scan, whose reads can be cancelled without those of others.
    #[must_use]
    pub fn cancellable(mut self) -> Self {
        self.array = self.array.cancellable();
        self
    }

    /// The condition that cells must meet.
    pub fn condition(&self) -> Option<&Condition> {
        self.selection.condition()
    }

    /// What the engine is asked for, for one part.
    pub fn read_options(&self, part: Subarray) -> ReadOptions {
        let mut options = ReadOptions::new()
            .subarray(part)
            .meaning(Meaning::Sql)
            .layout(self.layout());
        if !self.unwritten {
            options = options.matching_only();
        }
        if let Some(condition) = self.condition() {
            options = options.condition(condition.clone());
        }
        options
    }

    fn layout(&self) -> Layout {
        match self.order.as_slice() {
            [] => Layout::Unordered,
            [0, ..] => Layout::RowMajor,
            _ => Layout::ColMajor,
        }
    }

    /// The names of the fields to read, at least one.
    fn fields(&self) -> Vec<String> {
        let name = |index: &usize| self.columns.get(*index).map(|c| c.name().to_owned());
        let mut fields: Vec<String> = self.projection.iter().filter_map(name).collect();
        if fields.is_empty() {
            fields.extend(name(&0));
        }
        fields
    }
}

impl DataSource for ArrayScan {
    fn open(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let read = PartRead {
            array: self.array.clone(),
            columns: Arc::clone(&self.columns),
            schema: Arc::clone(&self.schema),
            options: self.parts.get(partition).map(|part| {
                let options = self.read_options(part.clone()).fields(self.fields());
                match self.limit {
                    Some(limit) => options.limit(limit as u64),
                    None => options,
                }
            }),
            dynamic: self.dynamic.clone(),
            backwards: self.backwards,
            unwritten: self.unwritten,
            partitions: self.partitions,
        };
        Ok(part_stream::open(read, partition, &context, &self.metrics))
    }

    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(format, f)
    }

    fn output_partitioning(&self) -> Partitioning {
        Partitioning::UnknownPartitioning(self.partitions)
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        sorted_by(&self.order, &self.projection, &self.schema)
    }

    fn scheduling_type(&self) -> SchedulingType {
        SchedulingType::NonCooperative
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        Ok(Arc::new(statistics::of_scan(self, partition)))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        // A limit below filters would count rows that these have left out already.
        let counts_all = limit.is_none() || self.dynamic.is_empty();
        counts_all.then(|| Arc::new(self.clone().limited(limit)) as Arc<dyn DataSource>)
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn metrics(&self) -> ExecutionPlanMetricsSet {
        self.metrics.clone()
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        let mut columns = Vec::new();
        for expr in projection.iter() {
            let Some(column) = expr.expr.downcast_ref::<Column>() else {
                return Ok(None);
            };
            let Some(index) = self.projection.get(column.index()).copied() else {
                return Ok(None);
            };
            if column.name() != expr.alias || columns.contains(&index) {
                return Ok(None);
            }
            columns.push(index);
        }
        let schema = project_schema(self.columns.schema(), Some(&columns))?;
        Ok(Some(Arc::new(Self {
            projection: columns,
            schema,
            ..self.clone()
        })))
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn DataSource>>> {
        // What never changes was asked for when the scan was planned.
        let answers = vec![PushedDown::No; filters.len()];
        let changing = |filter: &Arc<dyn PhysicalExpr>| {
            DynamicFilterTracking::classify(filter).contains_dynamic_filter()
        };
        let dynamic: Vec<_> = filters.into_iter().filter(changing).collect();
        let result = FilterPushdownPropagation::with_parent_pushdown_result(answers);
        // They come from above the limit: it counts the rows that they leave out.
        if dynamic.is_empty() || self.limit.is_some() {
            return Ok(result);
        }
        let mut scan = self.clone();
        scan.dynamic.extend(dynamic);
        Ok(result.with_updated_node(Arc::new(scan)))
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn DataSource>>> {
        let Some(dimensions) = self.dimensions_of(order) else {
            // The last cells are not read backwards, but first: what a top-k has seen of them
            // leaves out the others.
            return Ok(match self.descends(order) {
                true => SortOrderPushdownResult::Inexact {
                    inner: Arc::new(Self {
                        backwards: true,
                        ..self.clone()
                    }),
                },
                false => SortOrderPushdownResult::Unsupported,
            });
        };
        // A part of several ranges is sorted as a whole only if they ascend, which ours do.
        let inner = Arc::new(self.clone().ordered(dimensions));
        Ok(SortOrderPushdownResult::Exact { inner })
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for filter in &self.dynamic {
            recursion = recursion.visit_sibling(|| f(filter))?;
        }
        Ok(recursion)
    }
}

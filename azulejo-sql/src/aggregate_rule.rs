//! Aggregates without groups, answered by the engine: what tiles' metadata tells is not read.

use crate::columns::{Stored, TableColumn};
use crate::error::Result;
use crate::scan::ArrayScan;
use crate::selection::Selection;
use crate::table::blocking;
use azulejo::Array;
use azulejo::condition::{Comparison, Condition};
use azulejo::format::{Datatype, Physical};
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateInputMode, AggregateOutputMode,
};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures_util::StreamExt;
use std::fmt;
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

/// What the engine computes instead of an aggregate, if it can.
fn replacement(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let top = plan.downcast_ref::<AggregateExec>()?;
    let plain = |aggregate: &AggregateExec| {
        let groups = aggregate.group_expr();
        groups.expr().is_empty()
            && !groups.has_grouping_set()
            && aggregate.filter_expr().iter().all(Option::is_none)
            && aggregate.limit_options().is_none()
    };
    if !plain(top) || top.mode().output_mode() != AggregateOutputMode::Final {
        return None;
    }
    let mut below = Arc::clone(top.input());
    let mut raw = (top.mode().input_mode() == AggregateInputMode::Raw).then(|| Arc::clone(plan));
    loop {
        if let Some(partial) = below.downcast_ref::<AggregateExec>() {
            if raw.is_some()
                || !plain(partial)
                || partial.mode().input_mode() != AggregateInputMode::Raw
            {
                return None;
            }
            raw = Some(Arc::clone(&below));
        } else if !below.is::<CoalescePartitionsExec>() && !below.is::<RepartitionExec>() {
            break;
        }
        let child = below.children().first().map(|child| Arc::clone(child))?;
        below = child;
    }
    let source = below.downcast_ref::<DataSourceExec>()?;
    let scan = source.data_source().downcast_ref::<ArrayScan>()?;
    let raw = raw?;
    let raw = raw.downcast_ref::<AggregateExec>()?;
    if scan.limit().is_some() || scan.unwritten() {
        return None;
    }
    let wanted = raw
        .aggr_expr()
        .iter()
        .map(|aggregate| Wanted::of(aggregate, scan));
    let wanted = wanted.collect::<Option<Vec<_>>>()?;
    Some(Arc::new(ArrayAggregateExec::new(
        scan.clone(),
        wanted,
        Arc::clone(plan),
    )))
}

/// One aggregate.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    Rows,
    /// Values that are not null.
    Values(String),
    Sum(String),
    Least(String, bool),
    Greatest(String, bool),
}

impl Wanted {
    fn of(aggregate: &AggregateFunctionExpr, scan: &ArrayScan) -> Option<Self> {
        let plain = !aggregate.is_distinct() && aggregate.order_bys().is_empty();
        let [argument] = aggregate.expressions().try_into().ok()?;
        let argument: Arc<dyn PhysicalExpr> = argument;
        if !plain {
            return None;
        }
        let name = aggregate.fun().name();
        if let Some(literal) = argument.downcast_ref::<Literal>() {
            return (name == "count" && !literal.value().is_null()).then_some(Self::Rows);
        }
        let column = argument.downcast_ref::<Column>()?;
        let index = *scan.projection().get(column.index())?;
        let column = scan.columns().get(index)?;
        let nullable = scan.columns().schema().field(index).is_nullable();
        let field = column.name().to_owned();
        let shown = shows_values(column);
        match name {
            "count" if !nullable => Some(Self::Rows),
            "count" if shown => Some(Self::Values(field)),
            "sum" if is_summed(column) => Some(Self::Sum(field)),
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

fn has_bounds(column: &TableColumn) -> bool {
    match &column.stored {
        Stored::Number(_) => true,
        Stored::Text => column.column_type.is_var(),
        _ => false,
    }
}

/// Aggregates over the cells of a scan.
#[derive(Debug)]
struct ArrayAggregateExec {
    scan: ArrayScan,
    wanted: Vec<Wanted>,
    /// The plan that gives the same answer row by row: for sums beyond 64 bits, and for NaN.
    by_rows: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ArrayAggregateExec {
    fn new(scan: ArrayScan, wanted: Vec<Wanted>, by_rows: Arc<dyn ExecutionPlan>) -> Self {
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
        let (scan, wanted) = (self.scan.clone(), self.wanted.clone());
        let (schema, by_rows) = (self.by_rows.schema(), Arc::clone(&self.by_rows));
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let answer = async move {
            let row = {
                let schema = Arc::clone(&schema);
                blocking(move || row(&scan, &wanted))
                    .await?
                    .map(|row| batch(&row, &schema))
            };
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

/// The answers; `None` where SQL's may be others.
fn row(scan: &ArrayScan, wanted: &[Wanted]) -> azulejo::Result<Option<Vec<ScalarValue>>> {
    let Selection::Cells { subarray, .. } = scan.selection() else {
        return Ok(Some(wanted.iter().map(|w| nothing(w, scan)).collect()));
    };
    let array = scan.array();
    // 1. What to ask the engine for. Sums tell whether there is NaN; null counts, whether there is
    //    anything.
    let mut asked: Vec<Aggregate> = Vec::new();
    let mut ask = |aggregate: Aggregate| {
        if !asked.contains(&aggregate) {
            asked.push(aggregate);
        }
    };
    for want in wanted {
        let Some(field) = want.field().map(str::to_owned) else {
            continue;
        };
        ask(Aggregate::NullCount(field.clone()));
        match want {
            Wanted::Rows | Wanted::Values(_) => {}
            Wanted::Sum(_) => ask(Aggregate::Sum(field)),
            Wanted::Least(_, real) | Wanted::Greatest(_, real) => {
                if *real {
                    ask(Aggregate::Sum(field.clone()));
                }
                ask(match want {
                    Wanted::Least(..) => Aggregate::Min(field),
                    _ => Aggregate::Max(field),
                });
            }
        }
    }
    let options = scan.read_options(subarray.clone());
    let dense = array.schema().is_dense();
    let mut rows = None;
    if !dense {
        asked.push(Aggregate::Count);
    } else {
        rows = Some(dense_rows(scan)?);
    }
    let values = match asked.is_empty() {
        true => Vec::new(),
        false => array.aggregate(options, &asked)?,
    };
    let found = |aggregate: &Aggregate| {
        let at = asked.iter().position(|asked| asked == aggregate)?;
        values.get(at)
    };
    let count = |value: Option<&AggregateValue>| match value {
        Some(AggregateValue::Unsigned(count)) => Some(*count),
        _ => None,
    };
    let Some(rows) = rows.or_else(|| count(found(&Aggregate::Count))) else {
        return Ok(None);
    };

    // 2. The answers as SQL has them.
    let mut row = Vec::with_capacity(wanted.len());
    for want in wanted {
        let Some(field) = want.field() else {
            row.push(ScalarValue::Int64(i64::try_from(rows).ok()));
            continue;
        };
        let Some(nulls) = count(found(&Aggregate::NullCount(field.to_owned()))) else {
            return Ok(None);
        };
        let values = rows.saturating_sub(nulls);
        let answer = match want {
            _ if values == 0 => Some(nothing(want, scan)),
            Wanted::Rows | Wanted::Values(_) => {
                Some(ScalarValue::Int64(i64::try_from(values).ok()))
            }
            Wanted::Sum(_) => sum(found(&Aggregate::Sum(field.to_owned()))),
            Wanted::Least(_, real) | Wanted::Greatest(_, real) => {
                let finite =
                    !real || found(&Aggregate::Sum(field.to_owned())).is_some_and(is_finite);
                let bound = match want {
                    Wanted::Least(..) => Aggregate::Min(field.to_owned()),
                    _ => Aggregate::Max(field.to_owned()),
                };
                finite
                    .then(|| found(&bound).and_then(|value| scalar(value, want, scan)))
                    .flatten()
            }
        };
        match answer {
            Some(answer) => row.push(answer),
            None => return Ok(None),
        }
    }
    Ok(Some(row))
}

/// The number of cells of a dense array that were written, are selected and meet the condition.
fn dense_rows(scan: &ArrayScan) -> azulejo::Result<u64> {
    let (array, Selection::Cells { subarray, .. }) = (scan.array(), scan.selection()) else {
        return Ok(0);
    };
    if scan.condition().is_none()
        && let Some(rows) = one_box(array, subarray)
    {
        return Ok(rows);
    }
    // Cells that nobody wrote meet no condition, not even one that says nothing.
    let mut options = scan.read_options(subarray.clone());
    if options.condition.is_none() {
        let dimension = array.schema().domain.dimensions.first();
        let name = dimension.map_or("", |dimension| dimension.name.as_str());
        options.condition = Some(Condition::compare(name, Comparison::AlwaysTrue, Vec::new()));
    }
    match array.aggregate(options, &[Aggregate::Count])?.first() {
        Some(AggregateValue::Unsigned(rows)) => Ok(*rows),
        _ => Err(azulejo::Error::Internal("a count that is no number".into())),
    }
}

/// The selected cells of an array whose cells were all written in one box.
fn one_box(array: &Array, subarray: &azulejo::Subarray) -> Option<u64> {
    let [fragment] = array.fragments() else {
        return None;
    };
    let written = fragment.footer().non_empty_domain.as_ref()?;
    let azulejo::Subarray::Box(selections) = subarray else {
        return None;
    };
    if !fragment.is_dense() {
        return None;
    }
    let dimensions = array.schema().domain.dimensions.iter().enumerate();
    let mut cells = 1u64;
    for (d, dimension) in dimensions {
        let axis = dimension.axis()?;
        let (first, last) = axis.offsets_of(written.ranges.get(d)?)?;
        let current = array
            .schema()
            .current_domain
            .ranges()
            .and_then(|ranges| ranges.get(d));
        let (first, last) = match current.map(|range| axis.offsets_of(range)) {
            Some(within) => {
                let within = within?;
                (first.max(within.0), last.min(within.1))
            }
            None => (first, last),
        };
        let count = |from: u64, to: u64| {
            let (from, to) = (from.max(first), to.min(last));
            if from <= to { to - from + 1 } else { 0 }
        };
        let along = match selections.get(d) {
            None | Some(azulejo::space::DimSelection::All) => count(first, last),
            Some(azulejo::space::DimSelection::Ranges(ranges)) => {
                let spans = ranges.iter().filter_map(|range| axis.offsets_of(range));
                spans.map(|(from, to)| count(from, to)).sum()
            }
            Some(azulejo::space::DimSelection::Strided { .. }) => return None,
        };
        cells = cells.checked_mul(along)?;
    }
    Some(cells)
}

/// The answer over no values.
fn nothing(want: &Wanted, scan: &ArrayScan) -> ScalarValue {
    match want {
        Wanted::Rows | Wanted::Values(_) => ScalarValue::Int64(Some(0)),
        Wanted::Sum(field) | Wanted::Least(field, _) | Wanted::Greatest(field, _) => {
            let index = scan.columns().index_of(field);
            let data_type = index.and_then(|index| scan.columns().data_type(index));
            let data_type = data_type.unwrap_or(&DataType::Null);
            ScalarValue::try_from(data_type).unwrap_or(ScalarValue::Null)
        }
    }
}

/// A sum that has not reached the end of its type: there ours stays, and SQL's wraps around.
fn sum(value: Option<&AggregateValue>) -> Option<ScalarValue> {
    match value? {
        AggregateValue::Signed(sum) if *sum != i64::MIN && *sum != i64::MAX => {
            Some(ScalarValue::Int64(Some(*sum)))
        }
        AggregateValue::Unsigned(sum) if *sum != u64::MAX => Some(ScalarValue::UInt64(Some(*sum))),
        AggregateValue::Real(sum) => Some(ScalarValue::Float64(Some(*sum))),
        _ => None,
    }
}

/// A finite sum has no NaN in it, which the engine takes for neither least nor greatest.
fn is_finite(sum: &AggregateValue) -> bool {
    matches!(sum, AggregateValue::Real(sum) if sum.is_finite())
}

/// The least or greatest value as Arrow shows it.
fn scalar(value: &AggregateValue, want: &Wanted, scan: &ArrayScan) -> Option<ScalarValue> {
    let AggregateValue::Cell { datatype, bytes } = value else {
        return None;
    };
    let index = scan.columns().index_of(want.field()?)?;
    let data_type = scan.columns().data_type(index)?;
    if *data_type == DataType::LargeUtf8 {
        return Some(ScalarValue::LargeUtf8(Some(
            String::from_utf8(bytes.clone()).ok()?,
        )));
    }
    Some(match (datatype.physical(), data_type) {
        (Physical::I64, DataType::Int64) | (_, DataType::Timestamp(..) | DataType::Duration(_)) => {
            let ticks = ScalarValue::Int64(Some(i64::from_le_bytes(*bytes.first_chunk()?)));
            ticks.cast_to(data_type).ok()?
        }
        (Physical::I8, _) => ScalarValue::Int8(Some(i8::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::I16, _) => ScalarValue::Int16(Some(i16::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::I32, _) => ScalarValue::Int32(Some(i32::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::U8, _) => ScalarValue::UInt8(Some(*bytes.first()?)),
        (Physical::U16, _) => ScalarValue::UInt16(Some(u16::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::U32, _) => ScalarValue::UInt32(Some(u32::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::U64, _) => ScalarValue::UInt64(Some(u64::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::F32, _) => ScalarValue::Float32(Some(f32::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::F64, _) => ScalarValue::Float64(Some(f64::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::I64, _) => return None,
    })
}

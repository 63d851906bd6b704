//! What a partition of a scan does when it runs.

use crate::columns::TableColumns;
use crate::error::{Result, of_cells};
use crate::filters;
use crate::pieces::{ordered_pieces, pieces};
use crate::predicate::Predicate;
use crate::selection::{self, Selection};
use crate::statistics;
use crate::table::blocking;
use azulejo::arrow::RecordBatchStream;
use azulejo::read::ReadCounts;
use azulejo::space::Layout;
use azulejo::{Array, ReadOptions};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures_util::StreamExt;
use std::collections::VecDeque;
use std::sync::Arc;

/// What the engine's batches cost, about. They go through DataFusion's operators in pieces. Larger
/// ones touch more memory for the first time than they save: twice as much cost a sixth more where
/// few columns are grouped.
const BATCH_BYTES: u64 = 2 << 20;

/// Rows for which a partition in order is read in pieces.
const FEW_ROWS: u64 = 1 << 16;

/// What one partition reads.
pub struct PartRead {
    /// The snapshot.
    pub array: Array,
    /// The table's columns.
    pub columns: Arc<TableColumns>,
    /// The columns that come out.
    pub schema: SchemaRef,
    /// What the engine is asked for; nothing is read without.
    pub options: Option<ReadOptions>,
    /// Filters that change while the plan runs.
    pub dynamic: Vec<Arc<dyn PhysicalExpr>>,
    /// Whether the last cells teach most of these filters.
    pub backwards: bool,
    /// Whether cells are rows that nobody wrote.
    pub unwritten: bool,
    /// How many partitions share the memory.
    pub partitions: usize,
}

/// Begins to read when the stream is first polled; dropping it cancels what is under way.
pub fn open(
    read: PartRead,
    partition: usize,
    context: &TaskContext,
    metrics: &ExecutionPlanMetricsSet,
) -> SendableRecordBatchStream {
    let schema = Arc::clone(&read.schema);
    let pool = context.memory_pool();
    let consumer = MemoryConsumer::new(format!("array scan {partition}"));
    let counter = |name: &'static str| MetricBuilder::new(metrics).counter(name, partition);
    let running = Running {
        memory: memory_of(&read.array, read.partitions, &pool.memory_limit()),
        reservation: consumer.register(pool),
        left: read.options.as_ref().and_then(|options| options.limit),
        rows_a_batch: context.session_config().batch_size(),
        pieces: None,
        current: None,
        baseline: BaselineMetrics::new(metrics, partition),
        pieces_read: counter("pieces_read"),
        pieces_pruned: counter("pieces_pruned"),
        batches: counter("batches_read"),
        counts: ReadCounts::new(),
        tiles_read: counter("tiles_read"),
        tiles_pruned: counter("tiles_pruned"),
        requests: counter("requests"),
        bytes: counter("bytes_scanned"),
        read,
    };
    let batches = futures_util::stream::try_unfold(running, |mut running| async move {
        Ok(running.next().await?.map(|batch| (batch, running)))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

/// Bytes that the read of one of some partitions may hold: its share of the context's, and of the
/// pool's.
pub fn memory_of(array: &Array, partitions: usize, pool: &MemoryLimit) -> u64 {
    let context = array.context().config().memory_budget;
    let most = match pool {
        MemoryLimit::Finite(bytes) => context.min(*bytes as u64),
        _ => context,
    };
    (most / partitions.max(1) as u64).max(1 << 20)
}

struct Running {
    read: PartRead,
    memory: u64,
    reservation: MemoryReservation,
    /// Rows that may still come, if not all.
    left: Option<u64>,
    /// What is still to be read; not known before the first poll.
    pieces: Option<VecDeque<ReadOptions>>,
    current: Option<RecordBatchStream>,
    /// Rows of a batch that others want.
    rows_a_batch: usize,
    baseline: BaselineMetrics,
    pieces_read: Count,
    pieces_pruned: Count,
    batches: Count,
    /// What the engine counts, and the same for plans.
    counts: ReadCounts,
    tiles_read: Count,
    tiles_pruned: Count,
    requests: Count,
    bytes: Count,
}

impl Running {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.left == Some(0) {
                self.current = None;
                return Ok(None);
            }
            let Some(stream) = &mut self.current else {
                match self.next_piece().await? {
                    Some(options) => {
                        let stream = self.read.array.read_stream(options);
                        let options = self.read.columns.arrow_options();
                        let options = options.rows(self.rows_a_batch);
                        self.current = Some(stream.record_batches(options));
                        continue;
                    }
                    None => {
                        self.baseline.done();
                        return Ok(None);
                    }
                }
            };
            // Memory of the batch before has gone on: who keeps it accounts for it.
            self.reservation.free();
            let batch = stream.next().await;
            let held = stream.bytes_held();
            self.count();
            let Some(batch) = batch else {
                self.current = None;
                continue;
            };
            let batch = batch.map_err(of_cells)?;
            // What is held is what the rows are part of.
            let bytes = held.max(batch.get_array_memory_size());
            self.reservation.try_grow(bytes)?;
            self.batches.add(1);
            let batch = self.shaped(&batch)?;
            self.baseline.record_output(batch.num_rows());
            return Ok(Some(batch));
        }
    }

    /// Tells what the engine has counted since.
    fn count(&self) {
        for (count, now) in [
            (&self.tiles_read, self.counts.tiles()),
            (&self.tiles_pruned, self.counts.pruned()),
            (&self.requests, self.counts.requests()),
            (&self.bytes, self.counts.bytes()),
        ] {
            let now = usize::try_from(now).unwrap_or(usize::MAX);
            count.add(now.saturating_sub(count.value()));
        }
    }

    /// A batch as the plan expects it, cut at the limit.
    fn shaped(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let most = self
            .left
            .map_or(rows, |left| rows.min(usize::try_from(left).unwrap_or(rows)));
        if let Some(left) = &mut self.left {
            *left -= most as u64;
        }
        let wanted = self.read.schema.fields().len();
        let columns = batch.columns().iter().take(wanted);
        let columns = columns.map(|column| column.slice(0, most)).collect();
        let rows = RecordBatchOptions::new().with_row_count(Some(most));
        let schema = Arc::clone(&self.read.schema);
        RecordBatch::try_new_with_options(schema, columns, &rows).map_err(DataFusionError::from)
    }

    /// What to read next: a piece of which the filters, as they are by now, leave something.
    async fn next_piece(&mut self) -> Result<Option<ReadOptions>> {
        loop {
            let piece = match &mut self.pieces {
                Some(pieces) => pieces.pop_front(),
                None => {
                    let pieces = self.pieces().await?;
                    self.pieces.insert(pieces).pop_front()
                }
            };
            let Some(options) = piece else {
                return Ok(None);
            };
            let Some(mut options) = self.narrowed(options)? else {
                self.pieces_pruned.add(1);
                continue;
            };
            self.pieces_read.add(1);
            options.limit = self.left;
            return Ok(Some(
                options
                    .memory_budget(self.memory)
                    .batch_bytes(BATCH_BYTES)
                    .counted(&self.counts),
            ));
        }
    }

    /// The partition in pieces, between which filters that change are looked at again. What must
    /// come in order stays in one, unless the first few rows of it are wanted: tiles may overlap
    /// from one end of the array to the other, and all of these would be looked at for them.
    async fn pieces(&mut self) -> Result<VecDeque<ReadOptions>> {
        let Some(options) = self.read.options.clone() else {
            return Ok(VecDeque::new());
        };
        let leading = match options.layout {
            Layout::RowMajor => Some(0),
            Layout::ColMajor => Some(self.read.array.schema().domain.ndim().saturating_sub(1)),
            _ => None,
        };
        let few = self.left.is_some_and(|rows| rows <= FEW_ROWS);
        let (array, whole) = (self.read.array.clone(), options.subarray.clone());
        let cells = statistics::stored_cells(&array) / self.read.partitions as u64;
        let backwards = self.read.backwards;
        let parts = match leading {
            Some(dimension) if few => {
                let ordered = move || ordered_pieces(&array, &whole, cells, dimension);
                blocking(ordered).await?
            }
            None if !self.read.dynamic.is_empty() => {
                Some(blocking(move || pieces(&array, &whole, cells, backwards)).await?)
            }
            _ => None,
        };
        let Some(parts) = parts else {
            return Ok(VecDeque::from([options]));
        };
        let parts = parts.into_iter();
        Ok(parts.map(|part| options.clone().subarray(part)).collect())
    }

    /// What the filters leave of a piece; `None` if nothing.
    fn narrowed(&self, options: ReadOptions) -> Result<Option<ReadOptions>> {
        if self.read.dynamic.is_empty() {
            return Ok(Some(options));
        }
        let columns = &self.read.columns;
        let mut predicates = Vec::new();
        for filter in &self.read.dynamic {
            let now = snapshot_physical_expr(Arc::clone(filter))?;
            predicates.push(filters::implied_by(&now, columns));
        }
        if predicates.iter().all(|p| *p == Predicate::Constant(true)) {
            return Ok(Some(options));
        }
        let Some(within) = selection::predicates_of(&options.subarray, columns) else {
            return Ok(Some(options));
        };
        predicates.extend(within);
        match Selection::of(&predicates, columns, self.read.array.schema()) {
            Selection::Nothing => Ok(None),
            Selection::Cells {
                subarray,
                condition,
            } => {
                let known = options.condition.clone();
                let mut options = options.subarray(subarray);
                // These meet no condition: ranges leave out enough.
                if self.read.unwritten {
                    return Ok(Some(options));
                }
                options.condition = match (known, condition) {
                    (Some(known), Some(more)) => Some(known.and(more)),
                    (known, more) => known.or(more),
                };
                Ok(Some(options.matching_only()))
            }
        }
    }
}

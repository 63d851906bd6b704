//! Writing rows to arrays: each statement is one fragment (or some, where there is too much for the
//! memory) whose commit comes last, visible at once or not at all.

use crate::error::{Result, external};
use crate::table::ArrayTable;
use async_trait::async_trait;
use azulejo::{ArrayHandle, WriteOptions};
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::compute::{
    SortColumn, concat_batches, lexsort_to_indices, take_record_batch,
};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::sink::DataSink;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use futures_util::StreamExt;
use std::fmt;
use std::sync::Arc;

/// Batches between the plan that makes rows and the thread that writes them.
const BATCHES_AHEAD: usize = 4;

/// Bytes that are gathered for a fragment at most: the offsets of text have 32 bits.
const MOST_BYTES: usize = 512 << 20;

/// What takes the rows of a statement.
#[derive(Debug)]
pub struct ArraySink {
    place: ArrayHandle,
    schema: SchemaRef,
    dense: bool,
    dimensions: usize,
}

impl ArraySink {
    /// The sink of a table.
    pub fn new(table: &ArrayTable) -> Self {
        let schema = table.array().schema();
        Self {
            place: table.place().clone(),
            schema: Arc::clone(table.columns().schema()),
            dense: schema.is_dense(),
            dimensions: schema.domain.ndim(),
        }
    }
}

impl DisplayAs for ArraySink {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArraySink(array={})", self.place.uri())
    }
}

#[async_trait]
impl DataSink for ArraySink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        mut data: SendableRecordBatchStream,
        _context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let (send, receive) = tokio::sync::mpsc::channel(BATCHES_AHEAD);
        let (place, dimensions, dense) = (self.place.clone(), self.dimensions, self.dense);
        let schema = Arc::clone(&self.schema);
        let writing = tokio::task::spawn_blocking(move || match dense {
            true => write_box(&place, &schema, dimensions, receive),
            false => write_cells(&place, receive),
        });
        while let Some(batch) = data.next().await {
            // Whoever writes has stopped at an error of its own, which it tells.
            if send.send(Some(batch)).await.is_err() {
                break;
            }
        }
        // Without this word nothing is committed: a query that is given up leaves nothing behind.
        let _ = send.send(None).await;
        let written = writing.await;
        written.map_err(|error| DataFusionError::External(Box::new(error)))?
    }
}

/// Batches on their way to a writer, then `None`.
type Batches = tokio::sync::mpsc::Receiver<Option<Result<RecordBatch>>>;

/// The next batch; `None` behind the last one. That the query was given up is an error.
fn receive(batches: &mut Batches) -> Result<Option<RecordBatch>> {
    match batches.blocking_recv() {
        Some(batch) => batch.transpose(),
        None => Err(external(azulejo::Error::Cancelled)),
    }
}

/// Writes the cells of a sparse array as they come: one fragment as long as they fit in a quarter of
/// the memory that a write may take, else several, which count together. Whatever goes wrong,
/// nothing is seen of them.
fn write_cells(place: &ArrayHandle, mut batches: Batches) -> Result<u64> {
    let most = place.context().config().memory_budget / 4;
    let most = usize::try_from(most).unwrap_or(MOST_BYTES).min(MOST_BYTES);
    let mut rows = 0;
    let mut writer = None;
    loop {
        let (mut gathered, mut bytes, mut more) = (Vec::new(), 0, true);
        while bytes < most && more {
            match receive(&mut batches)? {
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => {
                    bytes += bytes_of(&batch);
                    gathered.push(batch);
                }
                None => more = false,
            }
        }
        if let Some(first) = gathered.first() {
            let (writer, importer) = match &mut writer {
                Some(known) => known,
                none => {
                    let new = place.writer(WriteOptions::new()).map_err(external)?;
                    let importer = new.importer().map_err(external)?;
                    none.insert((new, importer))
                }
            };
            let batch = concat_batches(&first.schema(), &gathered)?;
            drop(gathered);
            let cells = importer.convert(&batch).map_err(external)?;
            writer.write(&cells).map_err(external)?;
            rows += batch.num_rows() as u64;
        }
        if !more {
            break;
        }
    }
    if let Some((writer, _)) = writer {
        writer.finish().map_err(external)?;
    }
    Ok(rows)
}

/// What a batch holds: of columns that are pieces of larger ones, the pieces.
fn bytes_of(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter();
    let bytes = columns.map(|column| {
        let piece = column.to_data().get_slice_memory_size();
        piece.unwrap_or_else(|_| column.get_array_memory_size())
    });
    bytes.sum()
}

/// Writes the cells of a dense array, which must fill a box: in any order, each once.
fn write_box(
    place: &ArrayHandle,
    schema: &SchemaRef,
    dimensions: usize,
    mut batches: Batches,
) -> Result<u64> {
    use azulejo::format::{NdRectangle, Range};
    let mut all = Vec::new();
    while let Some(batch) = receive(&mut batches)? {
        all.push(batch);
    }
    let rows = concat_batches(schema, &all)?;
    if rows.num_rows() == 0 {
        return Ok(0);
    }
    let keys = rows
        .columns()
        .iter()
        .take(dimensions)
        .map(|column| SortColumn {
            values: Arc::clone(column),
            options: None,
        });
    let order = lexsort_to_indices(&keys.collect::<Vec<_>>(), None)?;
    let rows = take_record_batch(&rows, &order)?;

    let snapshot = place.snapshot_to_write().map_err(external)?;
    let of = &snapshot.schema().domain.dimensions;
    // Coordinates as the array stores them: what a writer of a sparse array would take.
    let types = of.iter().map(|dimension| {
        azulejo::column::ColumnType::new(dimension.name.as_str(), dimension.datatype)
    });
    let importer = azulejo::arrow::ArrowImporter::new(types);
    let places: Vec<usize> = (0..dimensions).collect();
    let coordinates = importer
        .convert(&rows.project(&places)?)
        .map_err(external)?;
    let mut offsets: Vec<Vec<u64>> = Vec::new();
    for (dimension, column) in of.iter().zip(&coordinates.columns) {
        let axis = dimension.axis().ok_or_else(|| {
            DataFusionError::Internal(format!("dimension {} has no tiles", dimension.name))
        })?;
        let view = column.view();
        let offset = |cell: usize| {
            axis.offset_of(view.cell(cell)).ok_or_else(|| {
                DataFusionError::Execution(format!(
                    "row {cell} lies outside the domain of dimension {}",
                    dimension.name
                ))
            })
        };
        offsets.push((0..column.cell_num).map(offset).collect::<Result<_>>()?);
    }
    let bounds: Vec<(u64, u64)> = offsets
        .iter()
        .map(|along| {
            let least = along.iter().min().copied().unwrap_or(0);
            (least, along.iter().max().copied().unwrap_or(0))
        })
        .collect();
    let mut steps = vec![1u64; bounds.len()];
    for d in (1..bounds.len()).rev() {
        let len = bounds.get(d).map_or(0, |b| b.1 - b.0 + 1);
        let step = steps.get(d).copied().unwrap_or(1).saturating_mul(len);
        if let Some(before) = steps.get_mut(d - 1) {
            *before = step;
        }
    }
    // Sorted rows fill the box if each lies at its own number's place, and the last at its end.
    let place_of = |row: usize| {
        let along = offsets.iter().zip(&bounds).zip(&steps);
        along.fold(0u64, |sum, ((offsets, bounds), step)| {
            let offset = offsets.get(row).map_or(0, |offset| offset - bounds.0);
            sum.saturating_add(offset.saturating_mul(*step))
        })
    };
    let cells = bounds
        .iter()
        .fold(1u64, |cells, b| cells.saturating_mul(b.1 - b.0 + 1));
    let fills = cells == rows.num_rows() as u64
        && (0..rows.num_rows()).all(|row| place_of(row) == row as u64);
    if !fills {
        return Err(DataFusionError::Execution(format!(
            "{}: rows of a dense array must fill a box, each cell once; there are {} rows for the {cells} cells between the least and greatest coordinates",
            place.uri(),
            rows.num_rows()
        )));
    }
    let ranges = of
        .iter()
        .zip(&bounds)
        .filter_map(|(dimension, (first, last))| {
            let axis = dimension.axis()?;
            Some(Range::new(axis.coordinate(*first), axis.coordinate(*last)))
        });
    let options = WriteOptions::new().subarray(NdRectangle {
        ranges: ranges.collect(),
    });
    let mut writer = place.writer(options).map_err(external)?;
    let importer = writer.importer().map_err(external)?;
    let attributes: Vec<usize> = (dimensions..schema.fields().len()).collect();
    let cells = importer
        .convert(&rows.project(&attributes)?)
        .map_err(external)?;
    writer.write(&cells).map_err(external)?;
    writer.finish().map_err(external)?;
    Ok(rows.num_rows() as u64)
}

//! Writing rows to dense arrays: in the boxes that they fill, or, where these are many, together
//! with the cells between them.

use crate::error::{Result, external};
use crate::giving_up::StillWanted;
use crate::write::{Batches, bytes_of, most_bytes, receive};
use azulejo::arrow::{ArrowImporter, ArrowOptions};
use azulejo::column::ColumnType;
use azulejo::format::{ArraySchema, NdRectangle, Range};
use azulejo::space::Layout;
use azulejo::{ArrayHandle, ReadOptions, Subarray, WriteOptions};
use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::compute::{
    SortColumn, concat_batches, lexsort_to_indices, take_record_batch,
};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryReservation;
use std::sync::Arc;

/// Fragments that one statement makes at most: each makes later reads dearer.
const MOST_BOXES: usize = 64;

/// Writes the cells of a dense array, in any order, each once: visible at once or not at all.
///
/// Up to [`MOST_BOXES`] boxes are a fragment each. Rows that lie further apart are one fragment with
/// all cells between the least and greatest coordinates, which must have been written before: they
/// are read and written again as they are.
///
/// All rows are held until they are sorted: `held` counts these and their copy.
///
/// # Errors
/// [`DataFusionError::ResourcesExhausted`] for more rows than memory takes; rows of one cell, and
/// such as lie too far apart.
pub fn write_boxes(
    place: &ArrayHandle,
    (schema, arrow): (&SchemaRef, ArrowOptions),
    dimensions: usize,
    mut batches: Batches,
    wanted: &StillWanted,
    held: &MemoryReservation,
) -> Result<u64> {
    let most = place.context().config().memory_budget / 2;
    let (mut all, mut bytes) = (Vec::new(), 0u64);
    while let Some(batch) = receive(&mut batches)? {
        let more = bytes_of(&batch);
        bytes = bytes.saturating_add(more as u64);
        if bytes > most {
            return Err(too_many(place, most));
        }
        held.try_grow(more.saturating_mul(2))?;
        all.push(batch);
    }
    let rows = concat_batches(schema, &all)?;
    drop(all);
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
    let array = snapshot.schema();
    let places = places_of(array, &rows)?;
    if places.has_twins() {
        return Err(DataFusionError::Execution(format!(
            "{}: two rows are of the same cell",
            place.uri()
        )));
    }
    let boxes = boxes_of(&places);
    match boxes.len() <= MOST_BOXES {
        true => write_each(place, array, &rows, &boxes, wanted)?,
        false => {
            let (whole, rows) = with_cells_between(place, array, (schema, arrow), &rows, &places)?;
            write_each(place, array, &rows, &[whole], wanted)?;
        }
    }
    Ok(rows.num_rows() as u64)
}

fn too_many(place: &ArrayHandle, most: u64) -> DataFusionError {
    DataFusionError::ResourcesExhausted(format!(
        "{}: rows for a dense array are sorted in memory, where a statement may hold {most} bytes of them, half of sm.mem.total_budget: INSERT them in parts; nothing was written",
        place.uri()
    ))
}

/// Where cells lie: the distance of each from the start of the domain, along each dimension.
#[derive(Debug)]
struct Places {
    ndim: usize,
    offsets: Vec<u64>,
}

impl Places {
    fn iter(&self) -> impl Iterator<Item = &[u64]> {
        self.offsets.chunks_exact(self.ndim.max(1))
    }

    /// Whether neighbours are one place.
    fn has_twins(&self) -> bool {
        self.iter().zip(self.iter().skip(1)).any(|(a, b)| a == b)
    }
}

/// A box of places, both ends within, and the first of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RowBox {
    first: Vec<u64>,
    last: Vec<u64>,
    row: usize,
}

impl RowBox {
    /// Its cells; `None` beyond 64 bits.
    fn cells(&self) -> Option<u64> {
        let mut sides = self.first.iter().zip(&self.last);
        sides.try_fold(1u64, |cells, (a, b)| {
            cells.checked_mul((b - a).checked_add(1)?)
        })
    }

    /// Whether another box goes on along a dimension where this one ends.
    fn goes_on_in(&self, next: &Self, along: usize) -> bool {
        let sides = self.first.iter().zip(&self.last);
        let others = next.first.iter().zip(&next.last);
        sides.zip(others).enumerate().all(|(d, (this, that))| {
            if d == along {
                this.1.checked_add(1) == Some(*that.0)
            } else {
                this == that
            }
        })
    }

    /// The number of a place within, in row-major order.
    fn number_of(&self, place: &[u64]) -> Option<usize> {
        let mut number = 0u64;
        for ((first, last), at) in self.first.iter().zip(&self.last).zip(place) {
            if at < first || at > last {
                return None;
            }
            number = number
                .checked_mul(last - first + 1)?
                .checked_add(at - first)?;
        }
        usize::try_from(number).ok()
    }

    /// The box in coordinates.
    fn ranges(&self, schema: &ArraySchema) -> Vec<Range> {
        let dimensions = schema.domain.dimensions.iter();
        let ends = self.first.iter().zip(&self.last);
        let range = |(dimension, (first, last)): (&azulejo::format::schema::Dimension, _)| {
            let axis = dimension.axis()?;
            let (first, last): (&u64, &u64) = (first, last);
            Some(Range::new(axis.coordinate(*first), axis.coordinate(*last)))
        };
        dimensions.zip(ends).filter_map(range).collect()
    }
}

/// Where the cells of rows lie, which must be within the domain, and the current one.
fn places_of(schema: &ArraySchema, rows: &RecordBatch) -> Result<Places> {
    let dimensions = &schema.domain.dimensions;
    // Coordinates as the array stores them: what a writer of a sparse array would take.
    let types = dimensions
        .iter()
        .map(|dimension| ColumnType::new(dimension.name.as_str(), dimension.datatype));
    let importer = ArrowImporter::new(types);
    let indices: Vec<usize> = (0..dimensions.len()).collect();
    let coordinates = importer
        .convert(&rows.project(&indices)?)
        .map_err(external)?;
    let ndim = dimensions.len();
    let mut offsets = vec![0; rows.num_rows().saturating_mul(ndim)];
    for (d, (dimension, column)) in dimensions.iter().zip(&coordinates.columns).enumerate() {
        let axis = dimension.axis().ok_or_else(|| {
            DataFusionError::Internal(format!("dimension {} has no tiles", dimension.name))
        })?;
        let current = schema.current_domain.ranges();
        let current = current
            .and_then(|ranges| ranges.get(d))
            .map(|range| axis.offsets_of(range));
        let view = column.view();
        for (row, place) in offsets.chunks_exact_mut(ndim).enumerate() {
            let within = |offset: &u64| match current {
                Some(Some((first, last))) => (first..=last).contains(offset),
                Some(None) => false,
                None => true,
            };
            let offset = axis.offset_of(view.cell(row)).filter(within);
            let offset = offset.ok_or_else(|| {
                DataFusionError::Execution(format!(
                    "row {row} lies outside the domain of dimension {}",
                    dimension.name
                ))
            })?;
            if let Some(place) = place.get_mut(d) {
                *place = offset;
            }
        }
    }
    Ok(Places { ndim, offsets })
}

/// The boxes that sorted places fill: those that follow each other are joined, along the last
/// dimension first. The rows of each stay in a row, in its row-major order.
fn boxes_of(places: &Places) -> Vec<RowBox> {
    let mut boxes: Vec<RowBox> = Vec::new();
    for (row, place) in places.iter().enumerate() {
        // Most rows only make a box longer.
        if let Some(known) = boxes.last_mut()
            && let (Some((end, others)), Some((at, rest))) =
                (known.last.split_last_mut(), place.split_last())
            && others == rest
            && end.checked_add(1) == Some(*at)
        {
            *end = *at;
            continue;
        }
        boxes.push(RowBox {
            first: place.to_vec(),
            last: place.to_vec(),
            row,
        });
    }
    for along in (0..places.ndim.saturating_sub(1)).rev() {
        let mut joined: Vec<RowBox> = Vec::new();
        for next in boxes {
            match joined.last_mut() {
                Some(known) if known.goes_on_in(&next, along) => known.last = next.last,
                _ => joined.push(next),
            }
        }
        boxes = joined;
    }
    boxes
}

/// Writes boxes of rows, each a fragment, which count together.
fn write_each(
    place: &ArrayHandle,
    schema: &ArraySchema,
    rows: &RecordBatch,
    boxes: &[RowBox],
    wanted: &StillWanted,
) -> Result<()> {
    let options = match boxes.len() {
        1 => WriteOptions::new(),
        _ => WriteOptions::new().uncommitted(),
    };
    let attributes: Vec<usize> = (schema.domain.ndim()..rows.num_columns()).collect();
    let rows = rows.project(&attributes)?;
    let mut names = Vec::new();
    let mut write = || -> azulejo::Result<()> {
        for (index, cells) in boxes.iter().enumerate() {
            let end = boxes
                .get(index + 1)
                .map_or(rows.num_rows(), |next| next.row);
            let ranges = cells.ranges(schema);
            wanted.check()?;
            let options = options.clone().subarray(NdRectangle { ranges });
            let mut writer = place.writer(options)?;
            let importer = writer.importer()?;
            writer.write(&importer.convert(&rows.slice(cells.row, end - cells.row))?)?;
            names.extend(writer.finish()?);
        }
        Ok(())
    };
    let mut written = write();
    if boxes.len() > 1 {
        written = written
            .and_then(|()| wanted.check())
            .and_then(|()| place.commit_fragments(&names));
        if written.is_err() {
            // What stays behind counts for nothing.
            let _ = place.discard_fragments(&names);
        }
    }
    written.map_err(external)
}

/// Rows, and the cells between them as they are: all of the box around the rows, in its order.
fn with_cells_between(
    place: &ArrayHandle,
    array: &ArraySchema,
    (schema, arrow): (&SchemaRef, ArrowOptions),
    rows: &RecordBatch,
    places: &Places,
) -> Result<(RowBox, RecordBatch)> {
    let any = places.iter().next().unwrap_or_default();
    let mut around = RowBox {
        first: any.to_vec(),
        last: any.to_vec(),
        row: 0,
    };
    for at in places.iter() {
        let ends = around.first.iter_mut().zip(&mut around.last);
        for ((first, last), offset) in ends.zip(at) {
            *first = (*first).min(*offset);
            *last = (*last).max(*offset);
        }
    }
    let refuse = |why: &str| {
        DataFusionError::Execution(format!(
            "{}: rows of a dense array must fill a box, or {MOST_BOXES} at most, or lie among cells that have been written; {why}. A sparse array takes any rows, and is made by `azulejo import --dims .. --unique`, or by CREATE TABLE .. AS SELECT without 'dense'",
            place.uri()
        ))
    };
    let most = most_bytes(place);
    let a_row = bytes_of(rows).div_ceil(rows.num_rows().max(1)).max(1);
    let cells = around.cells().and_then(|cells| usize::try_from(cells).ok());
    let cells = cells
        .filter(|cells| cells.saturating_mul(a_row) <= most)
        .ok_or_else(|| refuse("these lie too far apart"))?;
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    let options = ReadOptions::new()
        .fields(names)
        .subarray(Subarray::ranges(around.ranges(array)))
        .layout(Layout::RowMajor)
        .matching_only();
    let there = place
        .open()
        .and_then(|array| array.read(options)?.read_all());
    let there = there.and_then(|cells| cells.to_record_batch(arrow));
    let there = RecordBatch::try_new(
        Arc::clone(schema),
        there.map_err(external)?.columns().to_vec(),
    )?;
    // Which row each cell has: a new one, else the one that was there.
    let mut chosen: Vec<Option<u64>> = vec![None; cells];
    let known = places_of(array, &there)?;
    let behind = rows.num_rows();
    let old = known.iter().enumerate().map(|(row, at)| (row + behind, at));
    for (row, at) in old.chain(places.iter().enumerate()) {
        let cell = around.number_of(at).and_then(|cell| chosen.get_mut(cell));
        *cell.ok_or_else(|| DataFusionError::Internal("a cell outside its box".into()))? =
            Some(row as u64);
    }
    let chosen: Option<Vec<u64>> = chosen.into_iter().collect();
    let chosen = chosen.ok_or_else(|| refuse("some between these have not"))?;
    let both = concat_batches(schema, [rows, &there])?;
    let all = take_record_batch(&both, &UInt64Array::from(chosen))?;
    Ok((around, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxes(places: &[[u64; 2]]) -> Vec<([u64; 4], usize)> {
        let found = boxes_of(&Places {
            ndim: 2,
            offsets: places.concat(),
        });
        let ends = |b: RowBox| ([b.first[0], b.first[1], b.last[0], b.last[1]], b.row);
        found.into_iter().map(ends).collect()
    }

    #[test]
    fn rows_that_follow_each_other_share_a_box() {
        assert_eq!(
            boxes(&[[1, 4], [1, 5], [2, 4], [2, 5]]),
            [([1, 4, 2, 5], 0)]
        );
        assert_eq!(boxes(&[[1, 4], [2, 4], [3, 4]]), [([1, 4, 3, 4], 0)]);
        assert_eq!(
            boxes(&[[1, 4], [1, 5], [2, 4], [4, 4]]),
            [([1, 4, 1, 5], 0), ([2, 4, 2, 4], 2), ([4, 4, 4, 4], 3)]
        );
        assert_eq!(boxes(&[]), []);
    }
}

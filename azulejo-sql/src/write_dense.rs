//! Writing rows to dense arrays: in the boxes that they fill, or, where these are many, together
//! with the cells between them.

use crate::error::{Result, external};
use crate::giving_up::StillWanted;
use crate::write::{Batches, bytes_of, most_bytes, receive};
use azulejo::arrow::{ArrowImporter, ArrowOptions};
use azulejo::column::ColumnType;
use azulejo::format::path::fragment_entry;
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

/// Fragments that rows make at most which memory takes at once: each makes later reads dearer.
const MOST_BOXES: usize = 64;

/// Writes the cells of a dense array, in any order, each once: visible at once or not at all.
///
/// Up to [`MOST_BOXES`] boxes are a fragment each. Rows that lie further apart are one fragment with
/// all cells between the least and greatest coordinates, which must have been written before: they
/// are read and written again as they are.
///
/// Rows are held until they are sorted: `held` counts these and their copy. Where there are more than
/// memory takes, those that have come are written, if they fill that few boxes, and the next are
/// taken. Of rows in the order of cells each such part fills some boxes, however many parts there are.
///
/// # Errors
/// [`DataFusionError::ResourcesExhausted`] for more rows than memory takes, where they fill many
/// boxes; rows of one cell, and such as lie too far apart.
pub fn write_boxes(
    place: &ArrayHandle,
    (schema, arrow): (&SchemaRef, ArrowOptions),
    dimensions: usize,
    mut batches: Batches,
    wanted: &StillWanted,
    held: &MemoryReservation,
) -> Result<u64> {
    let most = place.context().config().memory_budget / 2;
    let mut fragments = Fragments::new(place, wanted);
    let mut count = 0;
    loop {
        let (mut part, mut bytes, mut more) = (Vec::new(), 0u64, false);
        while let Some(batch) = receive(&mut batches)? {
            let its = bytes_of(&batch);
            held.try_grow(its.saturating_mul(2))?;
            bytes = bytes.saturating_add(its as u64);
            part.push(batch);
            more = bytes > most;
            if more {
                break;
            }
        }
        let rows = concat_batches(schema, &part)?;
        drop(part);
        if rows.num_rows() > 0 {
            count += rows.num_rows() as u64;
            let rows = sorted(&rows, dimensions)?;
            let snapshot = place.snapshot_to_write().map_err(external)?;
            let array = snapshot.schema();
            let places = places_of(array, &rows)?;
            let boxes = boxes_of(&places);
            if places.has_twins() || fragments.have_any_of(&boxes) {
                return Err(DataFusionError::Execution(format!(
                    "{}: two rows are of the same cell",
                    place.uri()
                )));
            }
            let others = more || !fragments.boxes.is_empty();
            if boxes.len() <= MOST_BOXES {
                fragments.write(array, &rows, boxes, others)?;
            } else if others {
                return Err(too_many(place, most));
            } else {
                let (whole, rows) =
                    with_cells_between(place, array, (schema, arrow), &rows, &places)?;
                fragments.write(array, &rows, vec![whole], false)?;
            }
        }
        held.free();
        if !more {
            fragments.commit()?;
            return Ok(count);
        }
    }
}

/// Rows in the order of their cells.
fn sorted(rows: &RecordBatch, dimensions: usize) -> Result<RecordBatch> {
    let keys = rows
        .columns()
        .iter()
        .take(dimensions)
        .map(|column| SortColumn {
            values: Arc::clone(column),
            options: None,
        });
    let order = lexsort_to_indices(&keys.collect::<Vec<_>>(), None)?;
    Ok(take_record_batch(rows, &order)?)
}

fn too_many(place: &ArrayHandle, most: u64) -> DataFusionError {
    DataFusionError::ResourcesExhausted(format!(
        "{}: rows for a dense array are sorted in memory, {most} bytes at once (half of sm.mem.total_budget), and such a part of these fills more than {MOST_BOXES} boxes: let them come in the order of cells (ORDER BY), or INSERT them in parts; nothing was written",
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

/// The fragments of a statement, each a box full of rows, which count together.
#[derive(Debug)]
struct Fragments<'a> {
    place: &'a ArrayHandle,
    wanted: &'a StillWanted,
    boxes: Vec<RowBox>,
    /// Those that do not count yet.
    names: Vec<String>,
    /// The time of the first of them, which all have: at no moment a part of them shows, and what
    /// others write meanwhile is before all of them or behind.
    time: Option<u64>,
}

impl<'a> Fragments<'a> {
    fn new(place: &'a ArrayHandle, wanted: &'a StillWanted) -> Self {
        Self {
            place,
            wanted,
            boxes: Vec::new(),
            names: Vec::new(),
            time: None,
        }
    }

    /// Whether some cell of these boxes has been written.
    fn have_any_of(&self, boxes: &[RowBox]) -> bool {
        let meets = |a: &RowBox, b: &RowBox| {
            let mut ends = a.first.iter().zip(&a.last).zip(b.first.iter().zip(&b.last));
            ends.all(|((a, a_last), (b, b_last))| a <= b_last && b <= a_last)
        };
        let mut written = self.boxes.iter();
        written.any(|known| boxes.iter().any(|new| meets(known, new)))
    }

    /// Writes boxes of rows. One that is all of the statement counts at once.
    fn write(
        &mut self,
        schema: &ArraySchema,
        rows: &RecordBatch,
        boxes: Vec<RowBox>,
        others: bool,
    ) -> Result<()> {
        let options = match boxes.len() == 1 && !others {
            true => WriteOptions::new(),
            false => WriteOptions::new().uncommitted(),
        };
        let attributes: Vec<usize> = (schema.domain.ndim()..rows.num_columns()).collect();
        let rows = rows.project(&attributes)?;
        for (index, cells) in boxes.iter().enumerate() {
            let end = boxes
                .get(index + 1)
                .map_or(rows.num_rows(), |next| next.row);
            let ranges = cells.ranges(schema);
            self.wanted.check().map_err(external)?;
            let mut options = options.clone().subarray(NdRectangle { ranges });
            options.timestamps = self.time.map(|time| (time, time));
            let written = || -> azulejo::Result<_> {
                let mut writer = self.place.writer(options)?;
                let importer = writer.importer()?;
                writer.write(&importer.convert(&rows.slice(cells.row, end - cells.row))?)?;
                writer.finish()
            };
            let name = written().map_err(external)?;
            if boxes.len() > 1 || others {
                let first = name.first().and_then(|name| fragment_entry(name));
                self.time = self.time.or(first.map(|first| first.t_end));
                self.names.extend(name);
            }
        }
        self.boxes.extend(boxes);
        Ok(())
    }

    /// Lets all of them count.
    fn commit(mut self) -> Result<()> {
        if self.names.is_empty() {
            return Ok(());
        }
        self.wanted.check().map_err(external)?;
        self.place.commit_fragments(&self.names).map_err(external)?;
        self.names.clear();
        Ok(())
    }
}

impl Drop for Fragments<'_> {
    fn drop(&mut self) {
        if !self.names.is_empty() {
            // What stays behind counts for nothing.
            let _ = self.place.discard_fragments(&self.names);
        }
    }
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

//! Range after range, where a result in row-major or column-major order keeps the order of the
//! ranges: along one dimension, that of its cells is the same, so that only the ranges' can be
//! meant. What several ranges share is then repeated, as in dense arrays.
//!
//! Where there are many ranges with few cells, such as single coordinates in no order, those of some
//! thousand are read together, each tile once, and then put in the order of the ranges.

use super::SparseReader;
use super::selection::is_endless;
use crate::array::Array;
use crate::column::{BatchColumn, BatchColumns, ColumnSet};
use crate::error::{Error, Result};
use crate::read::BoundOptions;
use crate::read::bind::stored_field;
use crate::read::fetch::Waiting;
use crate::read::output::{Batch, Output, batch_columns};
use crate::space::{DimSelection, Layout, Subarray, first_where};
use azulejo_format::Range;
use azulejo_format::fragment::Field;
use azulejo_format::range::compare;
use azulejo_format::schema::{Dimension, FieldIndex};
use std::collections::VecDeque;
use std::ops::Range as Span;

/// Fewer reads than this are made one after another.
const MANY: usize = 8;

/// Reads that are made together, at most.
const TOGETHER: usize = 4096;

/// Sparse reads of parts of a selection, one after another.
#[derive(Debug)]
pub(in crate::read) struct RangeSequence {
    array: Array,
    options: BoundOptions,
    waiting: Waiting,
    reader: SparseReader,
    /// The ranges of the reads to come.
    later: VecDeque<Vec<Range>>,
    /// How many of these may be made together: fewer where the cells of so many were too many.
    together: usize,
}

impl RangeSequence {
    /// Plans the read of a sparse array; reads nothing but metadata.
    pub async fn new(array: &Array, options: &BoundOptions, waiting: Waiting) -> Result<Self> {
        let mut options = options.clone();
        let mut later = parts(array, &options);
        if let Some(first) = later.pop_front() {
            options.subarray = along(first);
        }
        let filters = array.schema().filters_of(FieldIndex::Dimension(0));
        Ok(Self {
            reader: SparseReader::new(array, &options, waiting).await?,
            array: array.clone(),
            options,
            waiting,
            later,
            // Cells are told apart by coordinates, which are to be those that they were selected by.
            together: if filters.keeps_values() { TOGETHER } else { 0 },
        })
    }

    /// As [`SparseReader::merged_at_once`], of the first range.
    pub async fn merged_at_once(&mut self) -> Result<Option<usize>> {
        self.reader.merged_at_once().await
    }

    /// As [`SparseReader::next`].
    pub async fn next(&mut self, mut output: Output<'_, '_>) -> Result<Option<Batch>> {
        loop {
            let batch = self.reader.next(output.again()).await?;
            if batch.is_some() {
                return Ok(batch);
            }
            let some = self.later.len().min(self.together);
            if some >= MANY {
                match self.next_together(some, output.wanted.words).await? {
                    Some(cells) if cells.cell_num > 0 => return Ok(Some(Batch::Own(cells))),
                    Some(_) => {}
                    None => self.together = some / 4,
                }
                continue;
            }
            let Some(ranges) = self.later.pop_front() else {
                return Ok(None);
            };
            self.options.subarray = along(ranges);
            self.reader = SparseReader::new(&self.array, &self.options, self.waiting).await?;
        }
    }

    /// The cells of `some` of the next reads; `None` if they are too many to be put in order here.
    ///
    /// For example the ranges 9 to 9, 4 to 5 and 4 to 4: the cells at 4, 5 and 9 are read, and those
    /// at 9, 4, 5 and 4 given out.
    async fn next_together(&mut self, some: usize, words: bool) -> Result<Option<BatchColumns>> {
        let ranges: Vec<Range> = self.later.iter().take(some).flatten().cloned().collect();
        let Some(dimension) = self.array.schema().domain.dimensions.first().cloned() else {
            return Ok(None);
        };

        // 1. The cells of all of them, each once, with their coordinates.
        let mut options = self.options.clone();
        options.subarray = along(ranges.clone());
        // They are held twice.
        options.memory_budget /= 4;
        let words = words && !dimension.is_var();
        let asked = options.fields.len();
        let coordinates = Field::Dimension(0);
        let place = options.fields.iter().position(|f| f.field == coordinates);
        if place.is_none() {
            options.fields.push(stored_field(&self.array, coordinates)?);
        }
        let mut first = match self.one_batch(&options, words).await {
            Ok(Some(cells)) if cells.cell_num == 0 => {
                self.later.drain(..some);
                return Ok(Some(cells));
            }
            Ok(Some(cells)) => cells,
            // With all of the budget it may do.
            Ok(None) | Err(Error::Budget { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };

        // 2. Those of each range.
        let Some(BatchColumn::Cells(column)) = first.columns.get(place.unwrap_or(asked)) else {
            return Err(Error::Internal("coordinates were not read".into()));
        };
        let (view, cells) = (column.view(), first.cell_num as u64);
        let order = |at: u64, bound: &[u8]| {
            let cell = usize::try_from(at).unwrap_or(usize::MAX);
            compare(dimension.datatype, view.cell(cell), bound)
        };
        let (mut spans, mut sum): (Vec<Span<usize>>, usize) = (Vec::new(), 0);
        for range in &ranges {
            let start = first_where(0..cells, |at| order(at, &range.start).is_ge());
            let end = match is_endless(dimension.datatype, range) {
                true => cells,
                false => first_where(start..cells, |at| order(at, &range.end).is_gt()),
            };
            let span = usize::try_from(start).unwrap_or(0)..usize::try_from(end).unwrap_or(0);
            sum = sum.saturating_add(span.len());
            spans.push(span);
        }
        // Ranges that share many cells, or long ones: what they repeat is not held here.
        if sum > first.cell_num.saturating_mul(2) || !fit_twice(&first, &spans) {
            return Ok(None);
        }
        spans.retain(|span| !span.is_empty());
        self.later.drain(..some);
        first.columns.truncate(asked);
        first.gather(&spans).map(Some)
    }

    /// All cells of a read, if they are no more than one batch.
    async fn one_batch(&self, options: &BoundOptions, words: bool) -> Result<Option<BatchColumns>> {
        let mut output = Output::own(u64::MAX);
        output.wanted.words = words;
        let mut reader = SparseReader::new(&self.array, options, self.waiting).await?;
        let Some(batch) = reader.next(output.again()).await? else {
            return Ok(Some(ColumnSet::default().into()));
        };
        match reader.next(output.again()).await? {
            Some(_) => Ok(None),
            None => batch_columns(batch).map(Some),
        }
    }
}

/// Whether the values of cells within spans take no more than twice what those of all cells do.
fn fit_twice(cells: &BatchColumns, spans: &[Span<usize>]) -> bool {
    cells.columns.iter().all(|column| {
        let BatchColumn::Cells(column) = column else {
            return true;
        };
        let view = column.view();
        let Some(offsets) = view.offsets else {
            return true;
        };
        let at = |cell: usize| offsets.get(cell).copied().unwrap_or(0);
        let bytes = spans.iter();
        let bytes = bytes.map(|span| at(span.end).saturating_sub(at(span.start)));
        let bytes = bytes.fold(0, u64::saturating_add);
        bytes <= (view.data.len() as u64).saturating_mul(2)
    })
}

/// The ranges of a selection cut where one does not lie behind the one before it; nothing where the
/// order of the result has nothing to do with theirs.
fn parts(array: &Array, options: &BoundOptions) -> VecDeque<Vec<Range>> {
    let ordered = matches!(options.layout, Layout::RowMajor | Layout::ColMajor);
    let (Subarray::Box(selections), [dimension]) =
        (&options.subarray, &array.schema().domain.dimensions[..])
    else {
        return VecDeque::new();
    };
    let ([DimSelection::Ranges(ranges)], true) = (&selections[..], ordered) else {
        return VecDeque::new();
    };
    let parts = ranges.chunk_by(|before, next| ascend(dimension, before, next));
    parts.map(<[Range]>::to_vec).collect()
}

/// What lies in ranges of the only dimension.
fn along(ranges: Vec<Range>) -> Subarray {
    Subarray::Box(vec![DimSelection::Ranges(ranges)])
}

/// Whether a range lies wholly behind another.
fn ascend(dimension: &Dimension, before: &Range, next: &Range) -> bool {
    let datatype = dimension.datatype;
    !is_endless(datatype, before) && compare(datatype, &before.end, &next.start).is_lt()
}

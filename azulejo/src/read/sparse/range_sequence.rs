//! Range after range, where a result in row-major or column-major order keeps the order of the
//! ranges: along one dimension, that of its cells is the same, so that only the ranges' can be
//! meant. What several ranges share is then repeated, as in dense arrays.

use super::SparseReader;
use crate::array::Array;
use crate::error::Result;
use crate::read::BoundOptions;
use crate::read::fetch::Waiting;
use crate::read::output::{Batch, Output};
use crate::space::{DimSelection, Layout, Subarray};
use azulejo_format::Range;
use azulejo_format::range::compare;
use azulejo_format::schema::Dimension;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// Sparse reads of parts of a selection, one after another.
#[derive(Debug)]
pub(in crate::read) struct RangeSequence {
    array: Array,
    options: BoundOptions,
    waiting: Waiting,
    reader: SparseReader,
    /// The ranges of the reads to come.
    later: VecDeque<Vec<Range>>,
    few_batches: bool,
}

impl RangeSequence {
    /// Plans the read of a sparse array; reads nothing but metadata.
    pub async fn new(array: &Array, options: &BoundOptions, waiting: Waiting) -> Result<Self> {
        let mut options = options.clone();
        let mut later = parts(array, &options);
        if let Some(first) = later.pop_front() {
            options.subarray = Subarray::Box(vec![DimSelection::Ranges(first)]);
        }
        Ok(Self {
            reader: SparseReader::new(array, &options, waiting).await?,
            array: array.clone(),
            options,
            waiting,
            later,
            few_batches: false,
        })
    }

    /// As [`SparseReader::prefer_few_batches`].
    pub fn prefer_few_batches(&mut self) {
        self.few_batches = true;
        self.reader.prefer_few_batches();
    }

    /// As [`SparseReader::prefer_words`].
    #[cfg(feature = "arrow")]
    pub fn prefer_words(&mut self) {
        self.options.words = true;
        self.reader.prefer_words();
    }

    /// As [`SparseReader::merged_at_once`], of the first range.
    pub async fn merged_at_once(&mut self) -> Result<Option<usize>> {
        self.reader.merged_at_once().await
    }

    /// As [`SparseReader::next`].
    pub async fn next(&mut self, mut output: Output<'_, '_>, most: u64) -> Result<Option<Batch>> {
        loop {
            let batch = self.reader.next(output.again(), most).await?;
            if batch.is_some() {
                return Ok(batch);
            }
            let Some(ranges) = self.later.pop_front() else {
                return Ok(None);
            };
            self.options.subarray = Subarray::Box(vec![DimSelection::Ranges(ranges)]);
            self.reader = SparseReader::new(&self.array, &self.options, self.waiting).await?;
            if self.few_batches {
                self.reader.prefer_few_batches();
            }
        }
    }
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

/// Whether a range lies wholly behind another.
fn ascend(dimension: &Dimension, before: &Range, next: &Range) -> bool {
    // A range of strings without an end goes on for ever; without either bound it is the empty
    // string.
    let endless = dimension.is_var() && before.end.is_empty() && !before.start.is_empty();
    !endless && compare(dimension.datatype, &before.end, &next.start) == Ordering::Less
}

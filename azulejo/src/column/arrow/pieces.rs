//! Record batches of some rows out of a larger batch.

use super::words::WordViews;
use super::{ArrowConverter, ArrowOptions, array_of};
use crate::column::{BatchColumn, BatchColumns, ColumnBuffers};
use crate::error::Result;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use bytes::Bytes;
use std::ops::Range;

/// What is left of a batch on its way to Arrow.
#[derive(Debug)]
pub(crate) struct Pieces {
    columns: Vec<PieceColumn>,
    left: Range<usize>,
    /// Rows of a piece.
    most: usize,
}

#[derive(Debug)]
enum PieceColumn {
    Cells(ColumnBuffers),
    /// A view of each word is made once, whatever the number of pieces.
    Words(WordViews),
}

impl Pieces {
    /// Pieces of a batch, as the converter's options have it.
    pub fn of(batch: BatchColumns, converter: &ArrowConverter) -> Result<Self> {
        let options = converter.options;
        let columns = batch.columns.into_iter().map(|column| {
            Ok(match column {
                BatchColumn::Cells(column) => PieceColumn::Cells(column),
                BatchColumn::Words(column) => PieceColumn::Words(WordViews::of(column, options)?),
            })
        });
        Ok(Self {
            columns: columns.collect::<Result<_>>()?,
            left: 0..batch.cell_num,
            most: options.rows.unwrap_or(usize::MAX).max(1),
        })
    }

    /// The next rows of these pieces; none are there any more behind the last ones, whose memory is
    /// then theirs alone.
    pub fn next_of(
        these: &mut Option<Self>,
        converter: &ArrowConverter,
    ) -> Option<Result<RecordBatch>> {
        let pieces = these.as_mut()?;
        let piece = pieces.next(converter);
        if pieces.left.is_empty() {
            *these = None;
        }
        piece
    }

    /// Bytes of all rows: they stay as long as some are left.
    #[cfg(feature = "stream")]
    pub fn memory_size(&self) -> usize {
        self.columns.iter().map(PieceColumn::memory_size).sum()
    }

    /// The next rows; `None` where none are left.
    fn next(&mut self, converter: &ArrowConverter) -> Option<Result<RecordBatch>> {
        let cells = self.left.start..self.left.end.min(self.left.start.saturating_add(self.most));
        if cells.is_empty() {
            return None;
        }
        let whole = cells == self.left && cells.start == 0;
        self.left.start = cells.end;
        let columns = self.columns.iter();
        Some(converter.batch(cells.len(), columns, |column, labels| {
            column.piece(cells.clone(), whole, converter.options, labels)
        }))
    }
}

impl PieceColumn {
    #[cfg(feature = "stream")]
    fn memory_size(&self) -> usize {
        match self {
            Self::Cells(column) => column.memory_size(),
            Self::Words(words) => words.memory_size(),
        }
    }

    fn piece(
        &self,
        cells: Range<usize>,
        whole: bool,
        options: ArrowOptions,
        labels: Option<&ArrayRef>,
    ) -> Result<ArrayRef> {
        match self {
            Self::Cells(column) if whole => array_of(column, options, labels),
            Self::Cells(column) => array_of(&apart(column.slice(cells)), options, labels),
            Self::Words(words) => words.of_cells(cells),
        }
    }
}

/// The same cells in memory that counts as their own. Arrow counts for a part of some memory all of
/// it, so that who keeps ten pieces of a batch would seem to hold the batch ten times. Who keeps one
/// piece alone does hold on to all.
fn apart(column: ColumnBuffers) -> ColumnBuffers {
    struct PieceBytes(Buffer);
    impl AsRef<[u8]> for PieceBytes {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let apart = |buffer: Buffer| Buffer::from(Bytes::from_owner(PieceBytes(buffer)));
    ColumnBuffers {
        data: apart(column.data),
        offsets: column.offsets.map(apart),
        validity: column.validity.map(apart),
        ..column
    }
}

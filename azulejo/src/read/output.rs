//! Where results go: memory of their own, or the caller's.

pub(super) mod copy;
mod fixed;
mod var;
pub(super) mod words;

pub(super) use fixed::{FixedBuffer, FixedOut};
pub(super) use var::VarOut;
pub(super) use words::{WordsBuffer, WordsOut};

use super::budget::WantedBatch;
use super::{BoundField, FillProgress};
use crate::buffer_pool::BufferPool;
use crate::column::{BatchColumn, BatchColumns, ColumnMut, ColumnSet};
use crate::error::{Error, Result};
use crate::space::CellSlab;

/// Where the next cells go, and what is wanted of them.
pub(super) struct Output<'c, 'o> {
    /// The caller's memory, which takes them as long as it has room for all of a batch; else they go
    /// to memory of their own.
    pub caller: Option<CallerMemory<'c, 'o>>,
    pub wanted: WantedBatch,
}

/// A caller's memory.
pub(super) struct CallerMemory<'c, 'o> {
    /// A buffer for every field.
    pub columns: &'c mut [ColumnMut<'o>],
    /// Cells that the buffers have room for, the bytes of var-length values aside.
    pub room: usize,
    /// What lies in them already.
    pub progress: &'c mut FillProgress,
}

/// The next cells.
#[derive(Debug)]
pub(super) enum Batch {
    /// In memory of their own.
    Own(BatchColumns),
    /// In the caller's memory.
    Placed,
    /// None were read, as the caller's memory is full.
    NoRoom,
}

impl<'o> Output<'_, 'o> {
    /// Memory of their own for `most` cells, or fewer.
    pub fn own(most: u64) -> Self {
        Self {
            caller: None,
            wanted: WantedBatch {
                most,
                few_batches: false,
                words: false,
            },
        }
    }

    /// The same for a while.
    pub fn again(&mut self) -> Output<'_, 'o> {
        let caller = self.caller.as_mut().map(|memory| CallerMemory {
            columns: &mut *memory.columns,
            room: memory.room,
            progress: &mut *memory.progress,
        });
        Output {
            caller,
            wanted: self.wanted,
        }
    }

    /// Cells that lie in the caller's memory.
    pub fn cells(&self) -> usize {
        let memory = self.caller.as_ref();
        memory.map_or(0, |memory| memory.progress.cells)
    }

    /// Cells that the caller still has room for, and wants; `None` if the memory is not the caller's.
    pub fn room(&self) -> Option<usize> {
        let most = usize::try_from(self.wanted.most).unwrap_or(usize::MAX);
        let room = self.caller.as_ref()?.room.saturating_sub(self.cells());
        Some(room.min(most))
    }

    /// Whether the caller's memory has no room, but cells.
    pub fn is_full(&self) -> bool {
        self.cells() > 0 && self.room() == Some(0)
    }
}

/// Memory for the cells of a batch.
pub(super) enum OutputMemory<'c, 'o> {
    Own(Vec<OwnBuffer>),
    Caller(CallerMemory<'c, 'o>),
}

/// Memory of ours for the cells of a field.
pub(super) enum OwnBuffer {
    /// Of fixed length; nothing for others, of which a column is made.
    Cells(FixedBuffer),
    /// Texts as words.
    Words(WordsBuffer),
}

/// Memory for the cells of a field.
pub(super) enum FieldOut<'o> {
    /// Of fixed length.
    Fixed(FixedOut<'o>),
    /// Var-length, in the caller's memory.
    Var(VarOut<'o>),
    /// Texts as words, in memory of ours.
    Words(WordsOut<'o>),
    /// Var-length: a column of its own is made.
    Own,
}

impl<'c, 'o> OutputMemory<'c, 'o> {
    /// Memory of their own for `cells` cells of each field, out of `tiles` tiles where the fields that
    /// are marked come as words.
    pub fn own(
        fields: &[BoundField],
        as_words: &[bool],
        (cells, tiles): (usize, usize),
        pool: &BufferPool,
    ) -> Result<Self> {
        let buffers = fields.iter().enumerate().map(|(i, field)| {
            Ok(match as_words.get(i) {
                Some(true) => OwnBuffer::Words(WordsBuffer::of(field, cells, tiles, pool)?),
                _ => OwnBuffer::Cells(FixedBuffer::new(field, cells, pool)?),
            })
        });
        buffers.collect::<Result<_>>().map(Self::Own)
    }

    /// The places for `cells` cells, one for each of the first fields.
    pub fn outs<'m>(
        &'m mut self,
        fields: &'m [BoundField],
        cells: usize,
    ) -> Result<Vec<FieldOut<'m>>> {
        let (columns, progress) = match self {
            Self::Own(buffers) => {
                let outs = fields.iter().zip(buffers);
                let out = |(field, out): (&'m BoundField, &'m mut OwnBuffer)| match out {
                    OwnBuffer::Cells(out) => FieldOut::own(field, out),
                    OwnBuffer::Words(out) => FieldOut::Words(out.out()),
                };
                return Ok(outs.map(out).collect());
            }
            Self::Caller(memory) => (&mut *memory.columns, &mut *memory.progress),
        };
        let places = progress.cells..progress.cells + cells;
        let mut outs = Vec::with_capacity(fields.len());
        let columns = fields.iter().zip(columns.iter_mut());
        for ((field, column), written) in columns.zip(&mut progress.written) {
            outs.push(match field.column_type.is_var() {
                true => FieldOut::Var(VarOut::in_column(field, column, places.clone(), written)?),
                false => {
                    FieldOut::Fixed(FixedOut::in_column(field, column, places.clone(), written)?)
                }
            });
        }
        Ok(outs)
    }

    /// The filled memory; `made` are columns of their own, by field, where cells are not in this
    /// memory. `slabs` say of which tiles the cells are, where texts may be words.
    pub fn finish(
        self,
        fields: &[BoundField],
        cell_num: usize,
        slabs: &[CellSlab],
        made: Vec<Option<BatchColumn>>,
    ) -> Result<Batch> {
        match self {
            Self::Own(buffers) => {
                let columns = fields.iter().zip(buffers).zip(made);
                let columns = columns.map(|((field, buffer), made)| {
                    Ok(match (made, buffer) {
                        (Some(column), _) => column,
                        (None, OwnBuffer::Cells(buffer)) => {
                            BatchColumn::Cells(buffer.into_column(field, cell_num))
                        }
                        (None, OwnBuffer::Words(buffer)) => {
                            BatchColumn::Words(buffer.into_column(field, slabs)?)
                        }
                    })
                });
                Ok(Batch::Own(BatchColumns {
                    cell_num,
                    columns: columns.collect::<Result<_>>()?,
                }))
            }
            Self::Caller(memory) => {
                memory.progress.cells += cell_num;
                Ok(Batch::Placed)
            }
        }
    }
}

impl<'o> FieldOut<'o> {
    /// Memory of ours.
    pub fn own(field: &'o BoundField, buffer: &'o mut FixedBuffer) -> Self {
        match field.column_type.is_var() {
            true => Self::Own,
            false => Self::Fixed(buffer.out(field)),
        }
    }
}

/// A batch that is a column set.
pub(super) fn own_columns(batch: Batch) -> Result<ColumnSet> {
    batch_columns(batch)?.into_cells()
}

/// A batch in memory of its own.
pub(super) fn batch_columns(batch: Batch) -> Result<BatchColumns> {
    match batch {
        Batch::Own(columns) => Ok(columns),
        Batch::Placed | Batch::NoRoom => Err(Error::Internal("a batch went astray".into())),
    }
}

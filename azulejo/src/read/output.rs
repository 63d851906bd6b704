//! Where results go: memory of their own, or the caller's.

pub(super) mod copy;
mod fixed;
mod var;

pub(super) use fixed::{FixedBuffer, FixedOut};
pub(super) use var::VarOut;

use super::{BoundField, FillProgress};
use crate::buffer_pool::BufferPool;
use crate::column::{ColumnBuffers, ColumnMut, ColumnSet};
use crate::error::{Error, Result};

/// Where the next cells go.
pub(super) enum Output<'c, 'o> {
    /// To memory of their own.
    Own,
    /// To the caller's, as long as it has room for all of a batch; else to memory of their own.
    Caller {
        /// A buffer for every field.
        columns: &'c mut [ColumnMut<'o>],
        /// Cells that the buffers have room for, the bytes of var-length values aside.
        room: usize,
        /// What lies in them already.
        progress: &'c mut FillProgress,
    },
}

/// The next cells.
#[derive(Debug)]
pub(super) enum Batch {
    /// In memory of their own.
    Own(ColumnSet),
    /// In the caller's memory.
    Placed,
    /// None were read, as the caller's memory is full.
    NoRoom,
}

impl<'o> Output<'_, 'o> {
    /// The same for a while.
    pub fn again(&mut self) -> Output<'_, 'o> {
        match self {
            Self::Own => Output::Own,
            Self::Caller {
                columns,
                room,
                progress,
            } => Output::Caller {
                columns,
                room: *room,
                progress,
            },
        }
    }

    /// Counts on room for `cells` more cells at most.
    pub fn limit(&mut self, cells: u64) {
        if let Self::Caller { room, progress, .. } = self {
            let cells = usize::try_from(cells).unwrap_or(usize::MAX);
            *room = (*room).min(progress.cells.saturating_add(cells));
        }
    }

    /// Cells that lie in the caller's memory.
    pub fn cells(&self) -> usize {
        match self {
            Self::Own => 0,
            Self::Caller { progress, .. } => progress.cells,
        }
    }

    /// Cells that the caller still has room for; `None` if the memory is not the caller's.
    pub fn room(&self) -> Option<usize> {
        match self {
            Self::Own => None,
            Self::Caller { room, progress, .. } => Some(room.saturating_sub(progress.cells)),
        }
    }

    /// Whether the caller's memory has no room, but cells.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Own => false,
            Self::Caller { progress, .. } => progress.cells > 0 && self.room() == Some(0),
        }
    }
}

/// Memory for the cells of a batch.
pub(super) enum OutputMemory<'c, 'o> {
    Own(Vec<FixedBuffer>),
    Caller(&'c mut [ColumnMut<'o>], &'c mut FillProgress),
}

/// Memory for the cells of a field.
pub(super) enum FieldOut<'o> {
    /// Of fixed length.
    Fixed(FixedOut<'o>),
    /// Var-length, in the caller's memory.
    Var(VarOut<'o>),
    /// Var-length: a column of its own is made.
    Own,
}

/// What became of a field's cells.
pub(super) enum Filled {
    /// They are where they belong.
    Placed {
        /// Bytes of the values, if these are var-length.
        values: usize,
    },
    /// They are a column of their own.
    Own(ColumnBuffers),
}

impl<'c, 'o> OutputMemory<'c, 'o> {
    /// Memory of their own for `cells` cells of each field.
    pub fn own(fields: &[BoundField], cells: usize, pool: &BufferPool) -> Result<Self> {
        FixedBuffer::of(fields, cells, pool).map(Self::Own)
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
                return Ok(outs.map(|(field, out)| FieldOut::own(field, out)).collect());
            }
            Self::Caller(columns, progress) => (columns, progress),
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

    /// The filled memory.
    pub fn finish(
        self,
        fields: &[BoundField],
        cell_num: usize,
        filled: impl IntoIterator<Item = Filled>,
    ) -> Batch {
        let filled = filled.into_iter();
        match self {
            Self::Own(buffers) => {
                let columns = fields.iter().zip(buffers).zip(filled);
                let columns = columns.map(|((field, buffer), filled)| match filled {
                    Filled::Own(column) => column,
                    Filled::Placed { .. } => buffer.into_column(field, cell_num),
                });
                Batch::Own(ColumnSet {
                    cell_num,
                    columns: columns.collect(),
                })
            }
            Self::Caller(_, progress) => {
                for (written, filled) in progress.written.iter_mut().zip(filled) {
                    if let Filled::Placed { values } = filled {
                        written.data += values;
                    }
                }
                progress.cells += cell_num;
                Batch::Placed
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

    /// The memory, if the cells are of fixed length.
    pub fn fixed(self) -> Option<FixedOut<'o>> {
        match self {
            Self::Fixed(out) => Some(out),
            Self::Var(_) | Self::Own => None,
        }
    }

    /// The memory for a while, if the cells are of fixed length.
    pub fn fixed_again(&mut self) -> Option<FixedOut<'_>> {
        match self {
            Self::Fixed(out) => Some(out.again()),
            Self::Var(_) | Self::Own => None,
        }
    }
}

/// A batch that is a column set.
pub(super) fn own_columns(batch: Batch) -> Result<ColumnSet> {
    match batch {
        Batch::Own(columns) => Ok(columns),
        Batch::Placed | Batch::NoRoom => Err(Error::Internal("a batch went astray".into())),
    }
}

//! Cells that were read and are not to be given yet: a part turned out to be too large for the
//! buffers, and the submission ends before them.

use super::buffers::FieldBuffers;
use azulejo::column::ColumnMut;

/// Cells of one field.
#[derive(Debug, Default)]
struct Cells {
    data: Vec<u8>,
    /// Where each cell starts in `data`, if their lengths vary.
    starts: Option<Vec<u64>>,
    validity: Option<Vec<u8>>,
}

/// Cells of all fields, in the fields' order.
#[derive(Debug, Default)]
pub struct Held {
    fields: Vec<Cells>,
    cells: usize,
}

/// Bytes of `cells` cells from `first` on.
fn span(
    starts: Option<&[u64]>,
    all: usize,
    cell_size: usize,
    first: usize,
    cells: usize,
) -> (usize, usize) {
    let at = |cell: usize| match starts {
        Some(starts) => starts
            .get(cell)
            .and_then(|start| usize::try_from(*start).ok())
            .unwrap_or(all),
        None => (cell * cell_size).min(all),
    };
    let start = at(first);
    (start, at(first + cells).max(start))
}

impl Held {
    /// The number of cells.
    pub fn len(&self) -> usize {
        self.cells
    }

    /// Takes the cells behind the first `kept` of `cells` out of columns that hold `written` bytes
    /// of data each; `sizes`: bytes of a cell of each column. Returns what the columns hold then.
    pub fn take(
        &mut self,
        columns: &[ColumnMut<'_>],
        sizes: &[usize],
        written: &[usize],
        kept: usize,
        cells: usize,
    ) -> Vec<usize> {
        let mut left = Vec::with_capacity(columns.len());
        let mut taken = Vec::with_capacity(columns.len());
        for ((column, size), written) in columns.iter().zip(sizes).zip(written) {
            let starts = column.offsets.as_deref().and_then(|o| o.get(..cells));
            let (from, to) = span(starts, *written, *size, kept, cells - kept);
            let starts: Option<Vec<u64>> = starts.map(|starts| {
                let rest = starts.iter().skip(kept);
                rest.map(|start| start.saturating_sub(from as u64))
                    .collect()
            });
            taken.push(Cells {
                data: column.data.get(from..to).unwrap_or_default().to_vec(),
                starts,
                validity: (column.validity.as_deref())
                    .map(|v| v.get(kept..cells).unwrap_or_default().to_vec()),
            });
            left.push(from);
        }
        // What was held already comes behind: those cells were not reached.
        let rest = std::mem::take(self);
        *self = Self {
            fields: taken,
            cells: cells - kept,
        };
        self.append(rest);
        left
    }

    fn append(&mut self, rest: Self) {
        for (field, rest) in self.fields.iter_mut().zip(rest.fields) {
            let from = field.data.len() as u64;
            field.data.extend(rest.data);
            if let (Some(starts), Some(rest)) = (&mut field.starts, rest.starts) {
                starts.extend(rest.iter().map(|start| start + from));
            }
            if let (Some(validity), Some(rest)) = (&mut field.validity, rest.validity) {
                validity.extend(rest);
            }
        }
        self.cells += rest.cells;
    }

    /// Puts as many cells as there is room for, at most `most`, at the start of columns. Returns
    /// how many, and how many bytes of data each column holds then.
    pub fn give(
        &mut self,
        columns: &mut [ColumnMut<'_>],
        sizes: &[usize],
        most: usize,
    ) -> (usize, Vec<usize>) {
        let mut cells = self.cells.min(most);
        for ((field, column), size) in self.fields.iter().zip(columns.iter()).zip(sizes) {
            let fits = |cells: usize| {
                let (_, end) = span(field.starts.as_deref(), field.data.len(), *size, 0, cells);
                end <= column.data.len()
                    && column.offsets.as_ref().is_none_or(|o| cells <= o.len())
                    && column.validity.as_ref().is_none_or(|v| cells <= v.len())
            };
            while cells > 0 && !fits(cells) {
                cells -= 1;
            }
        }
        let mut written = Vec::with_capacity(columns.len());
        for ((field, column), size) in self.fields.iter_mut().zip(columns).zip(sizes) {
            let (_, end) = span(field.starts.as_deref(), field.data.len(), *size, 0, cells);
            if let Some(place) = column.data.get_mut(..end) {
                place.copy_from_slice(field.data.get(..end).unwrap_or_default());
            }
            field.data.drain(..end);
            if let (Some(starts), Some(places)) = (&mut field.starts, &mut column.offsets) {
                for (place, start) in places.iter_mut().zip(starts.drain(..cells)) {
                    *place = start;
                }
                starts.iter_mut().for_each(|start| *start -= end as u64);
            }
            if let (Some(validity), Some(places)) = (&mut field.validity, &mut column.validity) {
                for (place, valid) in places.iter_mut().zip(validity.drain(..cells)) {
                    *place = valid;
                }
            }
            written.push(end);
        }
        if self.fields.is_empty() {
            written = vec![0; sizes.len()];
        }
        self.cells -= cells;
        (cells, written)
    }
}

/// Leaves room for at most `most` cells.
pub fn limit(column: &mut ColumnMut<'_>, cell_size: usize, most: usize) {
    fn shorten<T>(memory: &mut &mut [T], most: usize) {
        let len = memory.len().min(most);
        *memory = std::mem::take(memory).get_mut(..len).unwrap_or_default();
    }
    match &mut column.offsets {
        Some(offsets) => shorten(offsets, most),
        None => shorten(&mut column.data, most.saturating_mul(cell_size.max(1))),
    }
    if let Some(validity) = &mut column.validity {
        shorten(validity, most);
    }
}

/// What is left of columns behind `cells` cells and `written` bytes of data.
pub fn behind<'a>(
    columns: &'a mut [ColumnMut<'_>],
    written: &[usize],
    cells: usize,
) -> Vec<ColumnMut<'a>> {
    let rest = columns.iter_mut().zip(written);
    rest.map(|(column, written)| ColumnMut {
        data: column.data.get_mut(*written..).unwrap_or_default(),
        offsets: (column.offsets.as_deref_mut()).map(|o| o.get_mut(cells..).unwrap_or_default()),
        validity: (column.validity.as_deref_mut()).map(|v| v.get_mut(cells..).unwrap_or_default()),
    })
    .collect()
}

/// Bytes of a cell of each field; 0 where they vary.
pub fn cell_sizes(
    schema: &azulejo_format::schema::ArraySchema,
    fields: &[&FieldBuffers],
) -> Vec<usize> {
    let size = |buffers: &&FieldBuffers| schema.cell_size(schema.field(&buffers.name)?);
    fields
        .iter()
        .map(|buffers| size(buffers).unwrap_or(0))
        .collect()
}

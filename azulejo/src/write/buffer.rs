//! Memory for the cells of tiles, reused from one tile to the next.

use super::input::FieldShape;
use crate::column::FieldView;
use crate::error::{Error, Result};
use std::ops::Range;

/// The cells of one field.
#[derive(Debug, Default)]
pub(super) struct FieldBuffer {
    pub data: Vec<u8>,
    /// Var-length fields: one more than there are cells, beginning with 0.
    pub offsets: Vec<u64>,
    /// Nullable fields.
    pub validity: Vec<u8>,
}

fn lacking() -> Error {
    Error::Internal("a column lacks cells that it was found to have".into())
}

impl FieldBuffer {
    /// The cells as a tile's field.
    pub fn view(&self, shape: &FieldShape, cell_num: usize) -> FieldView<'_> {
        FieldView {
            cell_num,
            data: &self.data,
            offsets: shape.is_var().then_some(&self.offsets),
            validity: shape.nullable.then_some(&self.validity),
            cell_size: shape.cell_size(),
        }
    }

    /// Forgets the cells, keeps the memory.
    pub fn clear(&mut self) {
        self.data.clear();
        self.offsets.clear();
        self.validity.clear();
    }

    /// Appends cells of a view of the same field.
    pub fn append(&mut self, view: &FieldView<'_>, cells: Range<usize>) -> Result<()> {
        let part = view.slice(cells).ok_or_else(lacking)?;
        match part.offsets {
            Some(offsets) => {
                let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
                    return Err(lacking());
                };
                if self.offsets.is_empty() {
                    self.offsets.push(0);
                }
                let base = self.data.len() as u64;
                let bytes = part
                    .data
                    .get(first as usize..last as usize)
                    .ok_or_else(lacking)?;
                self.data.extend_from_slice(bytes);
                self.offsets
                    .extend(offsets.iter().skip(1).map(|end| base + (end - first)));
            }
            None => self.data.extend_from_slice(part.data),
        }
        self.validity
            .extend_from_slice(part.validity.unwrap_or(&[]));
        Ok(())
    }

    /// Takes the place of what was there: the cells `cells` of a view, in that order.
    pub fn gather(&mut self, view: &FieldView<'_>, cells: &[u32]) -> Result<()> {
        match view.offsets {
            Some(offsets) => self.gather_var(view.data, offsets, cells)?,
            None => {
                let size = view.cell_size;
                self.data.resize(cells.len() * size, 0);
                match size {
                    1 => gather_cells::<1>(view.data, cells, &mut self.data)?,
                    2 => gather_cells::<2>(view.data, cells, &mut self.data)?,
                    4 => gather_cells::<4>(view.data, cells, &mut self.data)?,
                    8 => gather_cells::<8>(view.data, cells, &mut self.data)?,
                    16 => gather_cells::<16>(view.data, cells, &mut self.data)?,
                    _ => {
                        for (out, &cell) in self.data.chunks_exact_mut(size.max(1)).zip(cells) {
                            let start = cell as usize * size;
                            out.copy_from_slice(
                                view.data.get(start..start + size).ok_or_else(lacking)?,
                            );
                        }
                    }
                }
            }
        }
        self.validity.clear();
        if let Some(validity) = view.validity {
            self.validity.resize(cells.len(), 0);
            gather_cells::<1>(validity, cells, &mut self.validity)?;
        }
        Ok(())
    }

    fn gather_var(&mut self, data: &[u8], offsets: &[u64], cells: &[u32]) -> Result<()> {
        self.offsets.clear();
        self.offsets.reserve(cells.len() + 1);
        self.offsets.push(0);
        let mut end = 0;
        for &cell in cells {
            let cell = cell as usize;
            let Some(&[start, next]) = offsets.get(cell..cell + 2) else {
                return Err(lacking());
            };
            end += next - start;
            self.offsets.push(end);
        }
        self.data.clear();
        self.data.reserve(end as usize);
        for &cell in cells {
            let cell = cell as usize;
            let Some(&[start, next]) = offsets.get(cell..cell + 2) else {
                return Err(lacking());
            };
            self.data.extend_from_slice(
                data.get(start as usize..next as usize)
                    .ok_or_else(lacking)?,
            );
        }
        Ok(())
    }
}

/// Copies fixed-length cells of `N` bytes.
fn gather_cells<const N: usize>(data: &[u8], cells: &[u32], out: &mut [u8]) -> Result<()> {
    let (values, _) = data.as_chunks::<N>();
    let (out, _) = out.as_chunks_mut::<N>();
    // One check for all: the loop below then has nothing to decide.
    let most = cells
        .iter()
        .copied()
        .max()
        .map_or(0, |most| most as usize + 1);
    let values = values.get(..most).ok_or_else(lacking)?;
    for (out, &cell) in out.iter_mut().zip(cells) {
        if let Some(value) = values.get(cell as usize) {
            *out = *value;
        }
    }
    Ok(())
}

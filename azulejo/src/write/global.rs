//! Writes in the array's own order, over any number of calls.

use super::TileView;
use super::buffer::FieldBuffer;
use super::fragments::Fragments;
use super::input::dimensions_of;
use super::input::{FieldShape, Input};
use super::sort::{CHECKED, Disorder, DuplicateRule, disorders};
use super::sparse::{band_tiles, push_slices};
use super::validate::{describe_cell, describe_coordinates};
use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::space::Layout;
use crate::space::cell_bound::CellBound;
use crate::space::cell_order::CellOrder;
use azulejo_format::ArraySchema;
use azulejo_format::schema::{Attribute, DataOrder};
use azulejo_format::timestamped_name::TimestampedName;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// A write that goes on from call to call. Cells that do not fill a tile yet are kept.
#[derive(Debug)]
pub(super) struct GlobalWrite {
    schema: Arc<ArraySchema>,
    shapes: Vec<FieldShape>,
    fragments: Fragments,
    tile_cells: usize,
    band_bytes: usize,
    /// Sparse: how cells must follow each other.
    order: Option<(CellOrder, DuplicateRule)>,
    /// Sparse: the last cell.
    last: Option<LastCell>,
    /// The last cell's values, one a field, where the schema wants an order of some.
    last_values: Option<Vec<Vec<u8>>>,
    /// The begun tile, one buffer a field, and its cells.
    tail: Vec<FieldBuffer>,
    tail_cells: usize,
    written: u64,
    /// Dense: cells that the box takes.
    expected: Option<u64>,
}

/// The last cell of the calls so far.
#[derive(Debug)]
struct LastCell {
    bound: CellBound,
    coordinates: Vec<Vec<u8>>,
}

impl GlobalWrite {
    /// A sparse write.
    pub fn sparse(
        schema: &Arc<ArraySchema>,
        shapes: &[FieldShape],
        rule: DuplicateRule,
        band_bytes: usize,
        fragments: Fragments,
    ) -> Self {
        let order = CellOrder::new(schema, Layout::Global);
        let tile_cells = usize::try_from(schema.capacity)
            .unwrap_or(usize::MAX)
            .max(1);
        let mut write = Self::dense(schema, shapes, tile_cells, u64::MAX, band_bytes, fragments);
        (write.order, write.expected) = (Some((order, rule)), None);
        write
    }

    /// A dense write of a box of whole tiles with so many cells.
    pub fn dense(
        schema: &Arc<ArraySchema>,
        shapes: &[FieldShape],
        tile_cells: usize,
        cells: u64,
        band_bytes: usize,
        fragments: Fragments,
    ) -> Self {
        let tail = shapes.iter().map(|_| FieldBuffer::default()).collect();
        Self {
            schema: Arc::clone(schema),
            shapes: shapes.to_vec(),
            fragments,
            tile_cells,
            band_bytes,
            order: None,
            last: None,
            last_values: None,
            tail,
            tail_cells: 0,
            written: 0,
            expected: Some(cells),
        }
    }

    /// Whether any were written.
    pub const fn has_cells(&self) -> bool {
        self.written > 0
    }

    /// The values of the last cell of the calls so far, one a field, if the schema wants an order of
    /// some.
    pub fn last_values(&self) -> Option<&[Vec<u8>]> {
        self.last_values.as_deref()
    }

    /// The cells of a call that are to be stored, as ranges. Nothing is written yet.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for cells out of order, of equal coordinates, or too many.
    pub fn check(&self, input: &Input<'_>) -> Result<Vec<Range<usize>>> {
        if let Some(expected) = self.expected {
            let total = self.written.saturating_add(input.cell_num as u64);
            if total > expected {
                return Err(Error::InvalidArgument(format!(
                    "{total} cells were given so far, but the box has {expected}"
                )));
            }
        }
        let all = std::iter::once(0..input.cell_num).collect();
        let Some((order, rule)) = &self.order else {
            return Ok(all);
        };
        if input.cell_num == 0 {
            return Ok(Vec::new());
        }
        let dimensions = dimensions_of(&self.shapes, input);
        let equal_matters = *rule != DuplicateRule::Allowed;
        let mut found = disorders(order, &dimensions, input.cell_num, equal_matters, CHECKED)?;
        if let Some(last) = &self.last {
            let first = order.cell_bound(&coordinates_of(&dimensions, 0));
            match last.bound.cmp(&first) {
                Ordering::Greater => found.insert(0, Disorder::Before(0)),
                Ordering::Equal if equal_matters => found.insert(0, Disorder::Equal(0)),
                _ => {}
            }
        }
        let mut kept: Vec<Range<usize>> = Vec::new();
        let mut start = 0;
        for disorder in found {
            match disorder {
                Disorder::Equal(cell) if *rule == DuplicateRule::FirstStays => {
                    if start < cell {
                        kept.push(start..cell);
                    }
                    start = cell + 1;
                }
                wrong => return Err(self.refuse(&dimensions, wrong)),
            }
        }
        if start < input.cell_num {
            kept.push(start..input.cell_num);
        }
        Ok(kept)
    }

    fn refuse(&self, dimensions: &[FieldView<'_>], disorder: Disorder) -> Error {
        let (Disorder::Before(cell) | Disorder::Equal(cell)) = disorder;
        let before = match (cell.checked_sub(1), &self.last) {
            (Some(before), _) => describe_cell(&self.schema, dimensions, before),
            (None, Some(last)) => {
                let last = describe_coordinates(&self.schema, &last.coordinates);
                format!("{last} of the previous call")
            }
            (None, None) => String::new(),
        };
        let given = describe_cell(&self.schema, dimensions, cell);
        Error::InvalidArgument(match disorder {
            // Clients know these words.
            Disorder::Before(_) => format!(
                "Coordinates {before} succeed those of cell {cell} {given} in the global order, which cells must be in: an \
                 unordered write sorts them"
            ),
            Disorder::Equal(_) => format!(
                "cell {cell} {given} has the coordinates of the cell before it, {before}: the array does not allow that; leave \
                 one out or ask for duplicates to be dropped"
            ),
        })
    }

    /// Writes cells that [`Self::check`] has found good.
    pub fn push(&mut self, input: &Input<'_>, kept: &[Range<usize>]) -> Result<()> {
        let at_once = band_tiles(
            self.tile_cells.min(input.cell_num.max(1)),
            input.bytes_per_cell(),
            self.band_bytes,
        );
        for range in kept {
            self.push_range(input, range.clone(), at_once)?;
            self.written += range.len() as u64;
        }
        let Some(cell) = input.cell_num.checked_sub(1) else {
            return Ok(());
        };
        let is_ordered = |attribute: &Attribute| attribute.order != DataOrder::Unordered;
        if self.schema.attributes.iter().any(is_ordered) {
            let values = input.fields.iter().map(|view| view.cell(cell).to_vec());
            self.last_values = Some(values.collect());
        }
        if let Some((order, _)) = &self.order {
            let dimensions = dimensions_of(&self.shapes, input);
            let coordinates = coordinates_of(&dimensions, cell);
            let bound = order.cell_bound(&coordinates);
            let coordinates = coordinates.into_iter().map(<[u8]>::to_vec).collect();
            self.last = Some(LastCell { bound, coordinates });
        }
        Ok(())
    }

    fn push_range(
        &mut self,
        input: &Input<'_>,
        mut cells: Range<usize>,
        at_once: usize,
    ) -> Result<()> {
        if self.tail_cells > 0 {
            let end = cells
                .end
                .min(cells.start + (self.tile_cells - self.tail_cells));
            self.keep(input, cells.start..end)?;
            cells.start = end;
            if self.tail_cells == self.tile_cells {
                self.push_tail()?;
            }
        }
        let whole = cells.len() / self.tile_cells * self.tile_cells;
        let middle = cells.start..cells.start + whole;
        push_slices(
            input,
            middle.clone(),
            self.tile_cells,
            at_once,
            &mut self.fragments,
        )?;
        self.keep(input, middle.end..cells.end)
    }

    fn keep(&mut self, input: &Input<'_>, cells: Range<usize>) -> Result<()> {
        if cells.is_empty() {
            return Ok(());
        }
        for (buffer, view) in self.tail.iter_mut().zip(&input.fields) {
            buffer.append(view, cells.clone())?;
        }
        self.tail_cells += cells.len();
        Ok(())
    }

    fn push_tail(&mut self) -> Result<()> {
        let fields = self.shapes.iter().zip(&self.tail);
        let fields = fields
            .map(|(shape, buffer)| buffer.view(shape, self.tail_cells))
            .collect();
        let tile = TileView {
            cell_num: self.tail_cells as u64,
            fields,
            written: None,
        };
        self.fragments.push(std::slice::from_ref(&tile))?;
        self.tail.iter_mut().for_each(FieldBuffer::clear);
        self.tail_cells = 0;
        Ok(())
    }

    /// Writes what is left and makes the fragments count.
    pub fn finish(mut self) -> Result<Vec<TimestampedName>> {
        if let Some(expected) = self.expected.filter(|expected| *expected != self.written) {
            return Err(Error::InvalidArgument(format!(
                "the write ends after {} cells, but its box has {expected}",
                self.written
            )));
        }
        if self.tail_cells > 0 {
            self.push_tail()?;
        }
        self.fragments.finish()
    }
}

fn coordinates_of<'a>(dimensions: &[FieldView<'a>], cell: usize) -> Vec<&'a [u8]> {
    dimensions.iter().map(|view| view.cell(cell)).collect()
}

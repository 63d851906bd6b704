//! Where incomplete reads of dense arrays end: as the reference, at the end of a tile, if one ends
//! within the caller's buffers. Clients count on it.

use super::buffers::FieldBuffers;
use azulejo::space::DimSelection;
use azulejo::space::Subarray;
use azulejo_format::schema::ArraySchema;

/// How far a read of one range of a dense array of one dimension is.
#[derive(Debug)]
pub struct Progress {
    /// Cells of a tile.
    extent: u64,
    /// Offset of the next cell from the start of the domain.
    next: u64,
    /// Offset of the last cell.
    last: u64,
}

impl Progress {
    /// `None` for other arrays and selections, and where cells differ in size: such reads fill the
    /// buffers.
    pub fn new(schema: &ArraySchema, subarray: &Subarray, conditional: bool) -> Option<Self> {
        let ([dimension], false) = (schema.domain.dimensions.as_slice(), conditional) else {
            return None;
        };
        let Subarray::Box(selections) = subarray else {
            return None;
        };
        if !schema.is_dense() {
            return None;
        }
        let axis = dimension.axis()?;
        let range = match selections.as_slice() {
            [DimSelection::Ranges(ranges)] => match ranges.as_slice() {
                [range] => range.clone(),
                _ => return None,
            },
            [DimSelection::All] | [] => dimension.domain.clone()?,
            _ => return None,
        };
        let (next, last) = axis.offsets_of(&range)?;
        Some(Self {
            extent: u64::try_from(axis.extent()).unwrap_or(u64::MAX).max(1),
            next,
            last,
        })
    }

    /// How many cells the next submission is to give, if buffers take `room` of them.
    fn cells(&self, room: u64) -> u64 {
        let left = (self.last - self.next).saturating_add(1);
        if room == 0 || room >= left {
            return room;
        }
        // Where the last whole tile ends that fits.
        let end = self.next.saturating_add(room) / self.extent * self.extent;
        if end > self.next {
            end - self.next
        } else {
            room
        }
    }

    /// As many cells as the smallest buffer takes, cut at the end of a tile; `None` where the sizes
    /// of cells are not known before.
    pub fn limit(&self, schema: &ArraySchema, fields: &[&FieldBuffers]) -> Option<usize> {
        let mut room = u64::MAX;
        for buffers in fields {
            let size = schema.cell_size(schema.field(&buffers.name)?)?.max(1);
            let data = buffers.data?.capacity() / size;
            let validity = buffers
                .validity
                .map_or(usize::MAX, |place| place.capacity());
            room = room.min(data.min(validity) as u64);
        }
        usize::try_from(self.cells(room)).ok()
    }

    /// So many cells were given.
    pub fn advance(&mut self, cells: usize) {
        self.next = self.next.saturating_add(cells as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_end_with_tiles_that_fit() {
        let at = |next, last| Progress {
            extent: 5,
            next,
            last,
        };
        assert_eq!(at(0, 9).cells(6), 5);
        assert_eq!(at(0, 9).cells(9), 5);
        assert_eq!(at(5, 9).cells(6), 6);
        assert_eq!(at(0, 9).cells(10), 10);
        assert_eq!(at(3, 22).cells(8), 7);
        // No tile ends within.
        assert_eq!(at(0, 9).cells(4), 4);
        assert_eq!(at(3, 9).cells(1), 1);
    }
}

//! Boxes of integers: where a run of cells lies in a dense array, and how it is cut into slabs.

use super::boxes;
use crate::error::{CliError, Result};
use crate::value::integer;
use azulejo::format::datatype::dispatch;
use azulejo::format::schema::{ArraySchema, Dimension};
use azulejo::format::{NdRectangle, Range};

/// A box of a dense array, as integers.
#[derive(Debug, Clone)]
pub struct Grid {
    sides: Vec<Side>,
    /// The axis whose coordinate changes last as cells go by.
    slow: usize,
}

/// One side of a box.
#[derive(Debug, Clone, Copy)]
struct Side {
    low: i128,
    high: i128,
    /// Where the domain begins, and with it the tiles.
    origin: i128,
    extent: i128,
    size: usize,
}

impl Grid {
    /// A box of an array; cells go by in column-major order if `columns_first`.
    pub fn new(schema: &ArraySchema, bounds: &NdRectangle, columns_first: bool) -> Self {
        let sides: Vec<Side> = schema
            .domain
            .dimensions
            .iter()
            .zip(&bounds.ranges)
            .map(|(d, range)| side(d, range))
            .collect();
        let slow = if columns_first {
            sides.len().saturating_sub(1)
        } else {
            0
        };
        Self { sides, slow }
    }

    /// The number of its cells; `None` beyond 64 bits.
    pub fn cells(&self) -> Option<u64> {
        let cells = self
            .sides
            .iter()
            .try_fold(1i128, |cells, side| cells.checked_mul(side.len()))?;
        u64::try_from(cells).ok()
    }

    /// The length of the slow axis.
    pub fn len(&self) -> i128 {
        self.sides[self.slow].len()
    }

    /// Cells of one step along the slow axis.
    pub fn step_cells(&self) -> Option<u64> {
        u64::try_from(i128::from(self.cells()?) / self.len().max(1)).ok()
    }

    /// How many steps, at most `steps`, from `done` on end with a tile; 0 if there is no tile's end
    /// among them.
    pub fn whole_tiles(&self, done: i128, steps: i128) -> i128 {
        let side = self.sides[self.slow];
        if done + steps >= side.len() {
            return side.len() - done;
        }
        let start = side.low + done - side.origin;
        let end = (start + steps).div_euclid(side.extent) * side.extent;
        (end - start).max(0)
    }

    /// The part of `steps` steps along the slow axis from `done` on.
    pub fn slab(&self, done: i128, steps: i128) -> NdRectangle {
        let range = |(at, side): (usize, &Side)| {
            if at == self.slow {
                side.range(side.low + done, side.low + done + steps - 1)
            } else {
                side.range(side.low, side.high)
            }
        };
        NdRectangle {
            ranges: self.sides.iter().enumerate().map(range).collect(),
        }
    }

    /// The lengths of the sides of `steps` steps along the slow axis; `None` if memory has no room
    /// for one of them.
    pub fn sides(&self, steps: i128) -> Option<Vec<usize>> {
        let length = |(at, side): (usize, &Side)| {
            let length = if at == self.slow { steps } else { side.len() };
            usize::try_from(length).ok()
        };
        self.sides.iter().enumerate().map(length).collect()
    }

    /// A part of the slab that begins at `done`, as a box of the array.
    pub fn part(&self, done: i128, part: &boxes::Part) -> NdRectangle {
        let range = |(at, (side, part)): (usize, (&Side, &std::ops::Range<usize>))| {
            let low = side.low + if at == self.slow { done } else { 0 };
            side.range(low + part.start as i128, low + part.end as i128 - 1)
        };
        NdRectangle {
            ranges: self.sides.iter().zip(part).enumerate().map(range).collect(),
        }
    }

    /// The position of a cell, given by its coordinates, in row-major order of the slab from `done`
    /// on; `None` if it is not in the slab.
    pub fn position(&self, done: i128, steps: i128, coordinates: &[i128]) -> Option<u64> {
        let mut position = 0i128;
        for (at, (side, &coordinate)) in self.sides.iter().zip(coordinates).enumerate() {
            let (low, len) = if at == self.slow {
                (side.low + done, steps)
            } else {
                (side.low, side.len())
            };
            let offset = coordinate - low;
            if offset < 0 || offset >= len {
                return None;
            }
            position = position * len + offset;
        }
        u64::try_from(position).ok()
    }
}

impl Side {
    fn len(self) -> i128 {
        self.high - self.low + 1
    }

    fn range(self, low: i128, high: i128) -> Range {
        let bytes = |value: i128| value.to_le_bytes()[..self.size].to_vec();
        Range::new(bytes(low), bytes(high))
    }
}

fn side(dimension: &Dimension, range: &Range) -> Side {
    let (low, high) = integers(dimension, range);
    let origin = dimension
        .domain
        .as_ref()
        .map_or(low, |domain| integers(dimension, domain).0);
    let extent = dimension
        .axis()
        .map_or(1, |axis| i128::try_from(axis.extent()).unwrap_or(i128::MAX));
    Side {
        low,
        high,
        origin,
        extent: extent.max(1),
        size: dimension.datatype.size(),
    }
}

/// The bounds of a range of a dimension.
pub fn integers(dimension: &Dimension, range: &Range) -> (i128, i128) {
    fn read<T: azulejo::format::datatype::Native>(range: &Range) -> (i128, i128) {
        (integer(T::read(&range.start)), integer(T::read(&range.end)))
    }
    dispatch!(dimension.datatype.physical(), T => read::<T>(range))
}

/// A range of a dimension from integers.
pub fn range(dimension: &Dimension, low: i128, high: i128) -> Range {
    let bytes = |value: i128| value.to_le_bytes()[..dimension.datatype.size()].to_vec();
    Range::new(bytes(low), bytes(high))
}

/// Checks that the data lies in the domain of each dimension that has one of integers.
pub fn check_domain(schema: &ArraySchema, bounds: &NdRectangle) -> Result<()> {
    for (dimension, range) in schema.domain.dimensions.iter().zip(&bounds.ranges) {
        let Some(domain) = dimension
            .domain
            .as_ref()
            .filter(|_| !dimension.datatype.is_real())
        else {
            continue;
        };
        let (data, domain) = (integers(dimension, range), integers(dimension, domain));
        if data.0 < domain.0 || data.1 > domain.1 {
            let text = |range: (i128, i128)| {
                let text = |value: i128| {
                    crate::value::text(
                        dimension.datatype,
                        &value.to_le_bytes()[..dimension.datatype.size()],
                    )
                };
                format!("{} to {}", text(range.0), text(range.1))
            };
            return Err(CliError::usage(format!(
                "dimension {:?}: the data goes from {}, the domain only from {}",
                dimension.name,
                text(data),
                text(domain)
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo::format::Datatype;

    fn grid(columns_first: bool) -> Grid {
        let array = ArraySchema::dense()
            .dimension("x", 10i32..=29, 4)
            .dimension("y", 0i32..=9, 3)
            .attribute("a", Datatype::Int8)
            .build()
            .unwrap();
        let bounds = NdRectangle {
            ranges: vec![Range::of(12i32, 21), Range::of(1i32, 8)],
        };
        Grid::new(&array.schema, &bounds, columns_first)
    }

    #[test]
    fn slabs_end_with_tiles() {
        let rows = grid(false);
        assert_eq!(
            (rows.cells(), rows.len(), rows.step_cells()),
            (Some(80), 10, Some(8))
        );
        assert_eq!(rows.whole_tiles(0, 1), 0);
        assert_eq!(rows.whole_tiles(0, 3), 2);
        assert_eq!(rows.whole_tiles(2, 7), 4);
        assert_eq!(rows.whole_tiles(6, 9), 4);
        assert_eq!(
            rows.slab(2, 4).ranges,
            [Range::of(14i32, 17), Range::of(1i32, 8)]
        );
        assert_eq!(rows.sides(4), Some(vec![4, 8]));
        assert_eq!(
            rows.part(2, &vec![1..3, 0..8]).ranges,
            [Range::of(15i32, 16), Range::of(1i32, 8)]
        );
        let columns = grid(true);
        assert_eq!((columns.len(), columns.step_cells()), (8, Some(10)));
        assert_eq!(columns.whole_tiles(0, 4), 2);
        assert_eq!(
            columns.slab(2, 3).ranges,
            [Range::of(12i32, 21), Range::of(3i32, 5)]
        );
    }

    #[test]
    fn cells_have_positions() {
        let rows = grid(false);
        assert_eq!(rows.position(2, 4, &[14, 1]), Some(0));
        assert_eq!(rows.position(2, 4, &[15, 2]), Some(9));
        assert_eq!(rows.position(2, 4, &[13, 1]), None);
        assert_eq!(rows.position(2, 4, &[14, 9]), None);
    }
}

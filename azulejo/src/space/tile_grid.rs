//! Space tiles of dense arrays: which tile holds a cell, and where in the tile and in its fragment.
//!
//! Coordinates are *offsets* from the start of the domain, tile coordinates are offsets divided by
//! the tile extent.

use crate::error::{Error, Result};
use azulejo_format::schema::{Dimension, Layout, TileAxis};
use azulejo_format::{ArraySchema, NdRectangle};

/// The space tiles of a dense array. Extents need not divide the domain: the last tiles reach past
/// its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileGrid {
    axes: Vec<TileAxis>,
    extents: Vec<u64>,
    /// Cells between neighbours along each dimension, in a tile.
    cell_strides: Vec<u64>,
    tile_cells: u64,
    tile_order: Vec<usize>,
    cell_order: Vec<usize>,
}

/// The dimensions from the slowest to the fastest in row-major or column-major order; any other
/// order counts as row-major.
#[must_use]
pub fn dimension_order(layout: Layout, ndim: usize) -> Vec<usize> {
    match layout {
        Layout::ColMajor => (0..ndim).rev().collect(),
        _ => (0..ndim).collect(),
    }
}

/// Whether two schemas have as many dimensions, of the same types.
#[must_use]
pub fn same_types(a: &ArraySchema, b: &ArraySchema) -> bool {
    let types = |schema: &ArraySchema| -> Vec<_> {
        let dimensions = schema.domain.dimensions.iter();
        dimensions.map(|d| (d.datatype, d.cell_val_num)).collect()
    };
    std::ptr::eq(a, b) || types(a) == types(b)
}

/// Whether two schemas have the same domain and cut it into the same tiles.
#[must_use]
pub fn tiled_alike(a: &ArraySchema, b: &ArraySchema) -> bool {
    let same =
        |(a, b): (&Dimension, &Dimension)| a.domain == b.domain && a.tile_extent == b.tile_extent;
    let mut dimensions = a.domain.dimensions.iter().zip(&b.domain.dimensions);
    std::ptr::eq(a, b)
        || same_types(a, b)
            && (a.tile_order, a.cell_order) == (b.tile_order, b.cell_order)
            && dimensions.all(same)
}

impl TileGrid {
    /// The grid of a schema.
    ///
    /// # Errors
    /// A dimension that is no integer, datetime or time; tiles of 2^64 cells or more.
    pub fn new(schema: &ArraySchema) -> Result<Self> {
        let dimensions = &schema.domain.dimensions;
        let mut axes = Vec::with_capacity(dimensions.len());
        for d in dimensions {
            axes.push(d.axis().ok_or_else(|| {
                Error::SchemaMismatch(format!(
                    "dimension {:?} of type {} cannot be read as a dense dimension",
                    d.name, d.datatype
                ))
            })?);
        }
        let too_large = || Error::Unsupported("tiles of 2^64 cells or more cannot be read".into());
        let mut extents = Vec::with_capacity(axes.len());
        for axis in &axes {
            extents.push(u64::try_from(axis.extent()).map_err(|_| too_large())?);
        }
        let cell_order = dimension_order(schema.cell_order, axes.len());
        let mut cell_strides = vec![1; axes.len()];
        let mut tile_cells = 1u64;
        for &d in cell_order.iter().rev() {
            cell_strides[d] = tile_cells;
            tile_cells = tile_cells.checked_mul(extents[d]).ok_or_else(too_large)?;
        }
        let tile_order = dimension_order(schema.tile_order, axes.len());
        Ok(Self {
            axes,
            extents,
            cell_strides,
            tile_cells,
            tile_order,
            cell_order,
        })
    }

    /// Number of dimensions.
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.axes.len()
    }

    /// The dimensions' domains.
    #[must_use]
    pub fn axes(&self) -> &[TileAxis] {
        &self.axes
    }

    /// Cells of a tile along each dimension.
    #[must_use]
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// Cells between neighbours along each dimension, in a tile.
    #[must_use]
    pub fn cell_strides(&self) -> &[u64] {
        &self.cell_strides
    }

    /// Cells of a whole tile.
    #[must_use]
    pub fn tile_cells(&self) -> u64 {
        self.tile_cells
    }

    /// The dimensions from the one that tiles vary slowest along to the fastest.
    #[must_use]
    pub fn tile_order(&self) -> &[usize] {
        &self.tile_order
    }

    /// The dimensions from the one that cells of a tile vary slowest along to the fastest.
    #[must_use]
    pub fn cell_order(&self) -> &[usize] {
        &self.cell_order
    }

    /// A box of coordinates as offsets, per dimension first and last; `None` if it is empty or
    /// leaves the domain.
    #[must_use]
    pub fn offsets_of(&self, rectangle: &NdRectangle) -> Option<Vec<(u64, u64)>> {
        if rectangle.ranges.len() != self.ndim() {
            return None;
        }
        let bounds = self
            .axes
            .iter()
            .zip(&rectangle.ranges)
            .map(|(axis, range)| {
                let (first, last) = (axis.offset_of(&range.start)?, axis.offset_of(&range.end)?);
                (first <= last).then_some((first, last))
            });
        bounds.collect()
    }

    /// What of a box of coordinates lies in the domain, as offsets, per dimension first and last;
    /// `None` if nothing does.
    #[must_use]
    pub fn offsets_within(&self, rectangle: &NdRectangle) -> Option<Vec<(u64, u64)>> {
        if rectangle.ranges.len() != self.ndim() {
            return None;
        }
        let axes = self.axes.iter().zip(&rectangle.ranges);
        axes.map(|(axis, range)| axis.offsets_of(range)).collect()
    }
}

/// Where the tiles of a dense fragment lie: its non-empty domain, expanded to whole tiles, in tile
/// order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentGrid {
    /// First and last offset of the non-empty domain, along each dimension.
    bounds: Vec<(u64, u64)>,
    /// Wraps around where the fragment begins before the grid.
    first_tile: Vec<u64>,
    tile_strides: Vec<u64>,
    tile_num: u64,
}

impl FragmentGrid {
    /// The tiles of a fragment with this non-empty domain (offsets, first and last); `None` if
    /// there are 2^64 or more.
    #[must_use]
    pub fn new(grid: &TileGrid, bounds: Vec<(u64, u64)>) -> Option<Self> {
        let mut first_tile = Vec::with_capacity(bounds.len());
        for (axis, (first, _)) in grid.axes.iter().zip(&bounds) {
            first_tile.push(axis.tile_of(*first));
        }
        let mut tile_strides = vec![0; bounds.len()];
        let mut tile_num = 1u64;
        for &d in grid.tile_order.iter().rev() {
            tile_strides[d] = tile_num;
            let (first, last) = bounds[d];
            let tiles =
                (grid.axes[d].tile_of(last) - grid.axes[d].tile_of(first)).checked_add(1)?;
            tile_num = tile_num.checked_mul(tiles)?;
        }
        Some(Self {
            bounds,
            first_tile,
            tile_strides,
            tile_num,
        })
    }

    /// The same tiles seen from another grid: one of another domain, into which the fragment's
    /// reaches at `bounds` (offsets there, first and last). `own` is the grid of the fragment's
    /// schema. `None` if the grids do not cut cells into the same tiles.
    #[must_use]
    pub fn seen_from(
        &self,
        grid: &TileGrid,
        own: &TileGrid,
        bounds: Vec<(u64, u64)>,
    ) -> Option<Self> {
        let same = grid.ndim() == own.ndim()
            && (grid.ndim() < 2
                || grid.tile_order == own.tile_order && grid.cell_order == own.cell_order);
        if !same {
            return None;
        }
        let mut first_tile = Vec::with_capacity(bounds.len());
        for ((axis, own), first) in grid.axes.iter().zip(&own.axes).zip(&self.first_tile) {
            first_tile.push(first.wrapping_add(axis.first_tile_of(own)?));
        }
        Some(Self {
            bounds,
            first_tile,
            tile_strides: self.tile_strides.clone(),
            tile_num: self.tile_num,
        })
    }

    /// Where the cells at an offset along one dimension lie: what that adds to the index of their
    /// tile, and to their own in the tile. `None` outside the non-empty domain. `grid` is the one
    /// that the tiles were made with.
    #[must_use]
    pub fn place(&self, grid: &TileGrid, dimension: usize, offset: u64) -> Option<(u64, u64)> {
        let (low, high) = *self.bounds.get(dimension)?;
        if !(low..=high).contains(&offset) {
            return None;
        }
        let tile = grid.axes.get(dimension)?.tile_of(offset);
        let cell = offset - tile * grid.extents.get(dimension)?;
        let tile_stride = self.tile_strides.get(dimension)?;
        Some((
            (tile - self.first_tile.get(dimension)?) * tile_stride,
            cell * grid.cell_strides.get(dimension)?,
        ))
    }

    /// First and last offset of the non-empty domain, along each dimension.
    #[must_use]
    pub fn bounds(&self) -> &[(u64, u64)] {
        &self.bounds
    }

    /// Number of tiles.
    #[must_use]
    pub fn tile_num(&self) -> u64 {
        self.tile_num
    }

    /// The index of a tile in the fragment. Its coordinates must lie within the expanded domain.
    #[must_use]
    pub fn tile_index(&self, tile: &[u64]) -> u64 {
        let steps = tile.iter().zip(&self.first_tile).zip(&self.tile_strides);
        steps
            .map(|((t, first), stride)| t.wrapping_sub(*first) * stride)
            .sum()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use azulejo_format::datatype::{CellValNum, Native};
    use azulejo_format::filter::Pipeline;
    use azulejo_format::schema::{ArrayType, Attribute, CurrentDomain, Domain};
    use azulejo_format::{Datatype, FormatVersion, Range};

    pub fn dimension<T: Native>(datatype: Datatype, low: T, high: T, extent: T) -> Dimension {
        let mut bytes = vec![0; T::SIZE];
        extent.write(&mut bytes);
        Dimension {
            name: String::new(),
            datatype,
            cell_val_num: CellValNum::ONE,
            filters: Pipeline::default(),
            domain: Some(Range::of(low, high)),
            tile_extent: Some(bytes),
        }
    }

    pub fn schema(
        mut dimensions: Vec<Dimension>,
        tile_order: Layout,
        cell_order: Layout,
    ) -> ArraySchema {
        for (i, d) in dimensions.iter_mut().enumerate() {
            d.name = format!("d{i}");
        }
        ArraySchema {
            version: FormatVersion::CURRENT,
            array_type: ArrayType::Dense,
            allows_dups: false,
            tile_order,
            cell_order,
            capacity: 10_000,
            coords_filters: Pipeline::default(),
            offsets_filters: Pipeline::default(),
            validity_filters: Pipeline::default(),
            domain: Domain { dimensions },
            attributes: vec![Attribute::new("a", Datatype::Int32, CellValNum::ONE)],
            dimension_labels: Vec::new(),
            enumerations: Vec::new(),
            current_domain: CurrentDomain::Empty,
        }
    }

    #[test]
    fn cells_of_a_tile_follow_the_cell_order() {
        let dims = || {
            vec![
                dimension(Datatype::Int16, -3i16, 10, 4),
                dimension(Datatype::Int16, 0i16, 9, 3),
                dimension(Datatype::Int16, 1i16, 5, 5),
            ]
        };
        let grid = TileGrid::new(&schema(dims(), Layout::RowMajor, Layout::RowMajor)).unwrap();
        assert_eq!(
            (grid.cell_strides(), grid.tile_cells()),
            (&[15, 5, 1][..], 60)
        );
        let grid = TileGrid::new(&schema(dims(), Layout::RowMajor, Layout::ColMajor)).unwrap();
        assert_eq!(grid.cell_strides(), [1, 4, 12]);
    }

    #[test]
    fn a_fragment_counts_its_own_tiles() {
        let dims = || {
            vec![
                dimension(Datatype::Int32, -10i32, 89, 10),
                dimension(Datatype::Int32, 0i32, 99, 25),
            ]
        };
        let rectangle = NdRectangle {
            ranges: vec![Range::of(5i32, 25), Range::of(30i32, 76)],
        };
        for (order, index) in [(Layout::RowMajor, 7), (Layout::ColMajor, 5)] {
            let grid = TileGrid::new(&schema(dims(), order, Layout::RowMajor)).unwrap();
            let bounds = grid.offsets_of(&rectangle).unwrap();
            assert_eq!(bounds, [(15, 35), (30, 76)]);
            let fragment = FragmentGrid::new(&grid, bounds).unwrap();
            assert_eq!(fragment.tile_num(), 9);
            assert_eq!(fragment.tile_index(&[1, 1]), 0);
            assert_eq!(fragment.tile_index(&[3, 2]), index);
        }
    }

    #[test]
    fn extreme_domains_do_not_overflow() {
        let wide =
            |extent| vec![dimension(Datatype::Int64, i64::MIN, i64::MAX - extent, extent); 2];
        let grid =
            TileGrid::new(&schema(wide(1 << 31), Layout::RowMajor, Layout::RowMajor)).unwrap();
        assert_eq!(grid.tile_cells(), 1 << 62);
        let all = grid.axes().iter().map(|a| (0, a.last_offset())).collect();
        assert_eq!(FragmentGrid::new(&grid, all), None, "2^66 tiles");
        assert!(TileGrid::new(&schema(wide(1 << 32), Layout::RowMajor, Layout::RowMajor)).is_err());
        let one = vec![dimension(Datatype::UInt64, 0, u64::MAX, 1)];
        let grid = TileGrid::new(&schema(one, Layout::RowMajor, Layout::RowMajor)).unwrap();
        let fragment = FragmentGrid::new(&grid, vec![(u64::MAX, u64::MAX)]).unwrap();
        assert_eq!(fragment.tile_index(&[u64::MAX]), 0);
        let strings = vec![dimension(Datatype::Float64, 0.0, 1.0, 0.5)];
        assert!(TileGrid::new(&schema(strings, Layout::RowMajor, Layout::RowMajor)).is_err());
    }
}

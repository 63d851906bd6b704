//! Which cells of a tile are selected: prepared filters, one a dimension or one for a list of
//! points.

mod points;
mod ranges;

pub(crate) use points::PointFilter;
pub(crate) use ranges::DimensionFilter;

use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::space::keys::RowSelection;
use crate::space::{DimSelection, Subarray};
use azulejo_format::fragment::{DimensionRanges, RTree};
use azulejo_format::range::RangeRef;
use azulejo_format::schema::ArraySchema;
use azulejo_format::{NdRectangle, Range};

/// A subarray, prepared for testing many cells.
#[derive(Debug)]
pub(crate) struct Selection {
    /// By dimension; for points these are each dimension's coordinates, which select more than the
    /// points.
    dimensions: Vec<DimensionFilter>,
    points: Option<PointFilter>,
    /// The same for R-trees; `None` selects all.
    ranges: Vec<Option<Vec<Range>>>,
}

/// What is left to test in a tile that the R-tree found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TileTest {
    /// The tile.
    pub(crate) tile: usize,
    /// Dimensions whose coordinates must be looked at, ascending; none: all cells are selected.
    pub(crate) dimensions: Vec<usize>,
}

impl Selection {
    /// Prepares a subarray that fits the schema.
    pub(crate) fn new(subarray: &Subarray, schema: &ArraySchema) -> Result<Self> {
        let dims = &schema.domain.dimensions;
        match subarray {
            Subarray::Box(selections) => {
                let mut dimensions = Vec::with_capacity(dims.len());
                let mut ranges = Vec::with_capacity(dims.len());
                for (d, dimension) in dims.iter().enumerate() {
                    let selection = selections.get(d).unwrap_or(&DimSelection::All);
                    dimensions.push(DimensionFilter::new(selection, dimension.datatype));
                    ranges.push(match selection {
                        DimSelection::All => None,
                        DimSelection::Ranges(ranges) => Some(ranges.clone()),
                        DimSelection::Strided { range, .. } => Some(vec![range.clone()]),
                    });
                }
                Ok(Self {
                    dimensions,
                    points: None,
                    ranges,
                })
            }
            Subarray::Points(points) => {
                if points.coordinates.len() != dims.len() {
                    return Err(Error::InvalidArgument(format!(
                        "points have {} coordinates, the array has {} dimensions",
                        points.coordinates.len(),
                        dims.len()
                    )));
                }
                let datatypes: Vec<_> = dims.iter().map(|d| d.datatype).collect();
                let filter = PointFilter::new(points, &datatypes)?;
                let ranges: Vec<_> = filter.coordinate_ranges();
                let dimensions = ranges
                    .iter()
                    .zip(&datatypes)
                    .map(|(ranges, datatype)| DimensionFilter::exact(ranges, *datatype))
                    .collect();
                // Along one dimension points are ranges of one value.
                let points = (dims.len() > 1).then_some(filter);
                Ok(Self {
                    dimensions,
                    points,
                    ranges: ranges.into_iter().map(Some).collect(),
                })
            }
        }
    }

    /// Whether cells of a box can be selected.
    pub(crate) fn meets(&self, bounds: &NdRectangle) -> bool {
        self.dimensions
            .iter()
            .zip(&bounds.ranges)
            .all(|(filter, range)| filter.meets(range.as_ref()))
    }

    /// The tiles that may hold selected cells, ascending.
    pub(crate) fn tiles(&self, tree: &RTree) -> Vec<TileTest> {
        let ranges: Vec<DimensionRanges<'_>> = self
            .ranges
            .iter()
            .map(|ranges| {
                ranges
                    .as_deref()
                    .map_or(DimensionRanges::All, DimensionRanges::Ranges)
            })
            .collect();
        let found = tree.overlapping_tiles(&ranges);
        let tested = |tile: usize| -> Option<Vec<usize>> {
            let bounds = |d: usize| tree.tile_range(tile, d);
            if let Some(points) = &self.points {
                return points
                    .meets(&bounds)
                    .then(|| (0..self.dimensions.len()).collect());
            }
            let mut dimensions = Vec::new();
            for (d, filter) in self.dimensions.iter().enumerate() {
                match bounds(d) {
                    Some(range) if filter.covers(range) => {}
                    Some(range) if !filter.meets(range) => return None,
                    _ if matches!(filter, DimensionFilter::All) => {}
                    _ => dimensions.push(d),
                }
            }
            Some(dimensions)
        };
        found
            .into_iter()
            .filter_map(|t| {
                Some(TileTest {
                    tile: t.tile,
                    dimensions: tested(t.tile)?,
                })
            })
            .collect()
    }

    /// About what share of a range of coordinates is selected along a dimension; `None` where that
    /// is not known.
    pub(crate) fn share(&self, dimension: usize, bounds: RangeRef<'_>) -> Option<f64> {
        if self.points.is_some() {
            return None;
        }
        self.dimensions.get(dimension)?.share(bounds)
    }

    /// Those of the cells `selected` so far that are selected, given what the tile needs tested and
    /// the coordinates of those dimensions, by dimension.
    pub(crate) fn select<'a>(
        &self,
        test: &[usize],
        coordinates: &dyn Fn(usize) -> Option<FieldView<'a>>,
        bounds: &dyn Fn(usize) -> Option<RangeRef<'a>>,
        mut selected: RowSelection,
    ) -> Result<RowSelection> {
        let missing = || Error::Internal("coordinates to select by were not loaded".into());
        if test.is_empty() {
            return Ok(selected);
        }
        if let Some(points) = &self.points {
            let views = (0..self.dimensions.len())
                .map(|d| coordinates(d).ok_or_else(missing))
                .collect::<Result<Vec<_>>>()?;
            let mut mask = selected.mask(views.first().map_or(0, |view| view.cell_num));
            points.apply(&views, bounds, &mut mask);
            return Ok(RowSelection::of_mask(&mask));
        }
        for &d in test {
            let filter = self.dimensions.get(d).ok_or_else(missing)?;
            selected = filter.select(coordinates(d).ok_or_else(missing)?, selected);
        }
        Ok(selected)
    }
}

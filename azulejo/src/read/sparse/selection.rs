//! Which cells of a tile are selected: prepared filters, one a dimension or one for a list of
//! points.

mod points;
mod ranges;

pub(crate) use points::PointFilter;
pub(crate) use ranges::{DimensionFilter, is_endless};

use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::space::keys::RowSelection;
use crate::space::{DimSelection, Subarray};
use azulejo_format::datatype::Native;
use azulejo_format::filter::Pipeline;
use azulejo_format::fragment::{DimensionRanges, RTree};
use azulejo_format::range::RangeRef;
use azulejo_format::schema::{ArraySchema, FieldIndex};
use azulejo_format::{Datatype, NdRectangle, Physical, Range};

/// A subarray, prepared for testing many cells.
#[derive(Debug)]
pub(crate) struct Selection {
    /// For points these are each dimension's coordinates, which select more than the points.
    dimensions: Vec<SelectedDimension>,
    points: Option<PointFilter>,
}

/// What is selected along one dimension.
#[derive(Debug)]
struct SelectedDimension {
    filter: DimensionFilter,
    /// The same for R-trees; `None` selects all.
    ranges: Option<Vec<Range>>,
    /// The filters that change its coordinates, if they do. Boxes are of those that were written,
    /// while cells are selected by those that are read.
    moved: Option<MovedDimension>,
}

impl SelectedDimension {
    fn new(
        filter: DimensionFilter,
        ranges: Option<Vec<Range>>,
        moved: Option<MovedDimension>,
    ) -> Self {
        // What was written may lie near what is selected.
        let ranges = ranges.and_then(|ranges| match &moved {
            Some(moved) => ranges.iter().map(|r| moved.around(r.as_ref())).collect(),
            None => Some(ranges),
        });
        Self {
            filter,
            ranges,
            moved,
        }
    }

    /// Whether coordinates of a box can be selected.
    fn meets(&self, range: RangeRef<'_>) -> bool {
        match self.moved.as_ref().map(|moved| moved.around(range)) {
            Some(read) => read.is_none_or(|read| self.filter.meets(read.as_ref())),
            None => self.filter.meets(range),
        }
    }

    /// Whether all coordinates of a box are selected, as what they are read.
    fn covers(&self, range: RangeRef<'_>) -> bool {
        match self.moved.as_ref().map(|moved| moved.around(range)) {
            Some(read) => read.is_some_and(|read| self.filter.covers(read.as_ref())),
            None => self.filter.covers(range),
        }
    }
}

/// A dimension whose filters change coordinates.
#[derive(Debug)]
struct MovedDimension {
    datatype: Datatype,
    filters: Pipeline,
}

impl MovedDimension {
    fn of(schema: &ArraySchema, d: usize, datatype: Datatype) -> Option<Self> {
        let filters = schema.filters_of(FieldIndex::Dimension(d));
        (!filters.keeps_values()).then(|| Self {
            datatype,
            filters: filters.clone(),
        })
    }

    /// A range with all that coordinates in it may be read as, or may have been written as; `None`
    /// where that is anything.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "f32 again, and one further"
    )]
    fn around(&self, range: RangeRef<'_>) -> Option<Range> {
        fn bounds<T: Native>(range: RangeRef<'_>) -> (f64, f64) {
            (T::read(range.start).as_f64(), T::read(range.end).as_f64())
        }
        let near = |(low, high): (f64, f64)| {
            let by = |at: f64| self.filters.moves_by(self.datatype, at);
            Some((low - by(low)?, high + by(high)?))
        };
        match self.datatype.physical() {
            Physical::F32 => {
                let (low, high) = near(bounds::<f32>(range))?;
                Some(Range::of((low as f32).next_down(), (high as f32).next_up()))
            }
            Physical::F64 => {
                let (low, high) = near(bounds::<f64>(range))?;
                Some(Range::of(low.next_down(), high.next_up()))
            }
            _ => None,
        }
    }

    /// A range that reaches to an end of all that was written, open there: the box around all cells
    /// selects all of them, where the first and last may read as beside it, too.
    fn open(&self, range: &Range, written: &Range) -> Range {
        let physical = self.datatype.physical();
        let ordinal = |bytes: &[u8]| ranges::ordinal(physical, bytes);
        let Some((low, high)) = physical.infinities() else {
            return range.clone();
        };
        let (start, end) = (ordinal(&range.start), ordinal(&range.end));
        let holds = |bytes: &[u8]| (start..=end).contains(&ordinal(bytes));
        Range {
            start: match holds(&written.start) {
                true => low,
                false => range.start.clone(),
            },
            end: match holds(&written.end) {
                true => high,
                false => range.end.clone(),
            },
        }
    }
}

impl Selection {
    /// Prepares a subarray that fits the schema. Along dimensions whose filters change coordinates,
    /// ranges that reach to an end of what was `written` are open there.
    pub(crate) fn new(
        subarray: &Subarray,
        schema: &ArraySchema,
        written: impl FnOnce() -> Result<Option<NdRectangle>>,
    ) -> Result<Self> {
        let dims = &schema.domain.dimensions;
        let moved = dims.iter().enumerate();
        let moved = moved.map(|(d, dimension)| MovedDimension::of(schema, d, dimension.datatype));
        let moved: Vec<Option<MovedDimension>> = moved.collect();
        let written = match moved.iter().any(Option::is_some) {
            true => written()?,
            false => None,
        };
        match subarray {
            Subarray::Box(selections) => {
                let dimensions = dims.iter().zip(moved).enumerate();
                let dimensions = dimensions.map(|(d, (dimension, moved))| {
                    let selection = selections.get(d).unwrap_or(&DimSelection::All);
                    let written = written.as_ref().and_then(|bounds| bounds.ranges.get(d));
                    let open = match (selection, &moved, written) {
                        (DimSelection::Ranges(ranges), Some(moved), Some(written)) => {
                            let open = ranges.iter().map(|range| moved.open(range, written));
                            Some(DimSelection::Ranges(open.collect()))
                        }
                        _ => None,
                    };
                    let of_cells = open.as_ref().unwrap_or(selection);
                    let filter = DimensionFilter::new(of_cells, dimension.datatype);
                    let ranges = match selection {
                        DimSelection::All => None,
                        DimSelection::Ranges(ranges) => Some(ranges.clone()),
                        DimSelection::Strided { range, .. } => Some(vec![range.clone()]),
                    };
                    SelectedDimension::new(filter, ranges, moved)
                });
                Ok(Self {
                    dimensions: dimensions.collect(),
                    points: None,
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
                let points = PointFilter::new(points, &datatypes)?;
                let ranges = points.coordinate_ranges().into_iter();
                let dimensions = ranges.zip(&datatypes).zip(moved);
                let dimensions = dimensions.map(|((ranges, datatype), moved)| {
                    let filter = DimensionFilter::exact(&ranges, *datatype);
                    SelectedDimension::new(filter, Some(ranges), moved)
                });
                Ok(Self {
                    dimensions: dimensions.collect(),
                    // Along one dimension points are ranges of one value.
                    points: (dims.len() > 1).then_some(points),
                })
            }
        }
    }

    /// Whether cells of a box can be selected.
    pub(crate) fn meets(&self, bounds: &NdRectangle) -> bool {
        let mut sides = self.dimensions.iter().zip(&bounds.ranges);
        sides.all(|(of, range)| of.meets(range.as_ref()))
    }

    /// The bounds of a box along a dimension, where they say where coordinates lie.
    fn known<'a>(&self, d: usize, bounds: Option<RangeRef<'a>>) -> Option<RangeRef<'a>> {
        bounds.filter(|_| self.dimensions.get(d).is_some_and(|of| of.moved.is_none()))
    }

    /// The tiles that may hold selected cells, ascending, and of each the dimensions whose coordinates
    /// must be looked at, ascending; none: all cells are selected.
    pub(crate) fn tiles(&self, tree: &RTree) -> Vec<(usize, Vec<usize>)> {
        let ranges = self.dimensions.iter().map(|of| match &of.ranges {
            Some(ranges) => DimensionRanges::Ranges(ranges),
            None => DimensionRanges::All,
        });
        let found = tree.overlapping_tiles(&ranges.collect::<Vec<_>>());
        let tested = |tile: usize| -> Option<Vec<usize>> {
            let bounds = |d: usize| tree.tile_range(tile, d);
            if let Some(points) = &self.points {
                let meets = points.meets(&|d| self.known(d, bounds(d)));
                return meets.then(|| (0..self.dimensions.len()).collect());
            }
            let mut dimensions = Vec::new();
            for (d, of) in self.dimensions.iter().enumerate() {
                match bounds(d) {
                    Some(range) if of.covers(range) => {}
                    Some(range) if !of.meets(range) => return None,
                    _ if matches!(of.filter, DimensionFilter::All) => {}
                    _ => dimensions.push(d),
                }
            }
            Some(dimensions)
        };
        let tests = found.into_iter();
        let tests = tests.filter_map(|found| Some((found.tile, tested(found.tile)?)));
        tests.collect()
    }

    /// About what share of a range of coordinates is selected along a dimension; `None` where that
    /// is not known.
    pub(crate) fn share(&self, dimension: usize, bounds: RangeRef<'_>) -> Option<f64> {
        if self.points.is_some() {
            return None;
        }
        self.dimensions.get(dimension)?.filter.share(bounds)
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
            let bounds = |d: usize| self.known(d, bounds(d));
            points.apply(&views, &bounds, &mut mask);
            return Ok(RowSelection::of_mask(&mask));
        }
        for &d in test {
            let of = self.dimensions.get(d).ok_or_else(missing)?;
            selected = of
                .filter
                .select(coordinates(d).ok_or_else(missing)?, selected);
        }
        Ok(selected)
    }
}

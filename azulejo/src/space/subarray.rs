//! What part of the domain a query selects.

use crate::error::{Error, Result};
use azulejo_format::range::compare;
use azulejo_format::schema::{CurrentDomain, Dimension, TileAxis};
use azulejo_format::{ArraySchema, Range};
use std::cmp::Ordering;

/// What is selected along one dimension.
#[derive(Debug, Clone, PartialEq)]
pub enum DimSelection {
    /// The whole domain, or the current domain if there is one.
    All,
    /// The union of inclusive ranges. Dense results keep their order and repeat what overlapping
    /// ranges repeat; so do results of sparse arrays of one dimension in row-major or column-major
    /// order. Others have each cell once, wherever its range stands. A range of strings without an
    /// end goes on for ever; one without either bound holds the empty string.
    Ranges(Vec<Range>),
    /// Every `step`-th coordinate of an inclusive range, beginning with its start (integer
    /// dimensions).
    Strided {
        /// The range.
        range: Range,
        /// At least 1.
        step: u64,
    },
}

/// A list of full coordinates.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Points {
    /// For each dimension, the coordinate of each point.
    pub coordinates: Vec<PointColumn>,
}

/// The coordinates of all points along one dimension.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PointColumn {
    /// Values, one after another.
    pub data: Vec<u8>,
    /// String dimensions: `points + 1` byte offsets.
    pub offsets: Option<Vec<u64>>,
}

/// The selected part of a domain: a selection per dimension, or a list of points.
#[derive(Debug, Clone, PartialEq)]
pub enum Subarray {
    /// The cross product of what is selected along each dimension; missing dimensions are selected
    /// whole.
    Box(Vec<DimSelection>),
    /// Exactly these cells. Dense results keep the order of the points.
    Points(Points),
}

impl PointColumn {
    /// The coordinate of a point; `None` behind the last one. `size` is that of a fixed-length
    /// coordinate.
    #[must_use]
    pub fn get(&self, point: usize, size: usize) -> Option<&[u8]> {
        match &self.offsets {
            Some(offsets) => {
                let (start, end) = (*offsets.get(point)?, *offsets.get(point + 1)?);
                self.data
                    .get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
            }
            None => self
                .data
                .get(point.checked_mul(size)?..(point + 1).checked_mul(size)?),
        }
    }

    /// Number of points, given the size of a fixed-length coordinate.
    #[must_use]
    pub fn len(&self, size: usize) -> usize {
        match &self.offsets {
            Some(offsets) => offsets.len().saturating_sub(1),
            None => self.data.len() / size.max(1),
        }
    }
}

impl Points {
    /// Number of points.
    #[must_use]
    pub fn len(&self, schema: &ArraySchema) -> usize {
        let first = schema.domain.dimensions.first();
        match (self.coordinates.first(), first) {
            (Some(column), Some(d)) => column.len(d.datatype.size()),
            _ => 0,
        }
    }
}

impl Subarray {
    /// Everything.
    #[must_use]
    pub const fn all() -> Self {
        Self::Box(Vec::new())
    }

    /// One inclusive range a dimension.
    pub fn ranges(ranges: impl IntoIterator<Item = Range>) -> Self {
        Self::Box(
            ranges
                .into_iter()
                .map(|r| DimSelection::Ranges(vec![r]))
                .collect(),
        )
    }

    /// Checks the selection against a schema and returns it with one selection for each dimension.
    ///
    /// # Errors
    /// More selections than dimensions, bounds of another size than the dimension's type, `start >
    /// end`, NaN, bounds outside the domain or the current domain, a stride along a dimension that
    /// is not of an integer kind, coordinate columns of different lengths, points of a dense array
    /// outside its domain or current domain.
    pub fn bind(&self, schema: &ArraySchema) -> Result<Self> {
        let dimensions = &schema.domain.dimensions;
        let current = schema.current_domain.ranges();
        let within = |d: usize| current.and_then(|ranges| ranges.get(d));
        match self {
            Self::Box(selections) => {
                if selections.len() > dimensions.len() {
                    return Err(Error::InvalidArgument(format!(
                        "{} dimensions are selected from, the array has {}",
                        selections.len(),
                        dimensions.len()
                    )));
                }
                for (d, (selection, dimension)) in selections.iter().zip(dimensions).enumerate() {
                    match selection {
                        DimSelection::All => {}
                        DimSelection::Ranges(ranges) => {
                            for range in ranges {
                                check_range(range, dimension, within(d))?;
                            }
                        }
                        DimSelection::Strided { range, step } => {
                            if dimension.axis().is_none() {
                                return Err(refuse(
                                    dimension,
                                    "only integer dimensions can be strided",
                                ));
                            }
                            if *step == 0 {
                                return Err(refuse(dimension, "a step must be at least 1"));
                            }
                            check_range(range, dimension, within(d))?;
                        }
                    }
                }
                let missing = dimensions.len() - selections.len();
                let rest = std::iter::repeat_n(DimSelection::All, missing);
                Ok(Self::Box(selections.iter().cloned().chain(rest).collect()))
            }
            Self::Points(points) => {
                if points.coordinates.len() != dimensions.len() {
                    return Err(Error::InvalidArgument(format!(
                        "points have {} coordinates, the array has {} dimensions",
                        points.coordinates.len(),
                        dimensions.len()
                    )));
                }
                let len = points.len(schema);
                let columns = points.coordinates.iter().zip(dimensions).enumerate();
                for (d, (column, dimension)) in columns {
                    let size = dimension.datatype.size();
                    let whole = if dimension.is_var() {
                        column.offsets.is_some()
                    } else {
                        column.offsets.is_none() && column.data.len().is_multiple_of(size)
                    };
                    if !whole || column.len(size) != len {
                        return Err(refuse(
                            dimension,
                            "the points' coordinates do not fit its type or number",
                        ));
                    }
                    if (0..len).any(|point| column.get(point, size).is_none()) {
                        return Err(refuse(
                            dimension,
                            "the offsets of the points' coordinates leave the data",
                        ));
                    }
                    // A sparse array has no cell there; a dense one would have to make one up.
                    if schema.is_dense() {
                        check_points(column, dimension, len, within(d))?;
                    }
                }
                Ok(self.clone())
            }
        }
    }

    /// As [`Self::bind`], bounded by the domain alone: cells beyond the current domain are stored where
    /// a fragment was committed and the current domain was not expanded yet.
    ///
    /// # Errors
    /// Those of [`Self::bind`].
    pub(crate) fn bind_to_domain(&self, schema: &ArraySchema) -> Result<Self> {
        let mut unbounded = schema.clone();
        unbounded.current_domain = CurrentDomain::Empty;
        self.bind(&unbounded)
    }

    /// Number of cells that a dense array has in the selection, repetitions counted. `None` where a
    /// dimension is not of an integer kind or the number exceeds 128 bits.
    #[must_use]
    pub fn cell_num(&self, schema: &ArraySchema) -> Option<u128> {
        match self {
            Self::Box(_) => (self.shape(schema)?.into_iter()).try_fold(1, u128::checked_mul),
            Self::Points(points) => Some(points.len(schema) as u128),
        }
    }

    /// Number of coordinates that a box takes along each dimension, repetitions counted. `None` for
    /// points, and where a dimension is not of an integer kind or a number exceeds 128 bits.
    #[must_use]
    pub fn shape(&self, schema: &ArraySchema) -> Option<Vec<u128>> {
        let Self::Box(selections) = self else {
            return None;
        };
        let current = schema.current_domain.ranges();
        let along = |(d, dimension): (usize, &Dimension)| {
            let selection = selections.get(d).unwrap_or(&DimSelection::All);
            let within = current.and_then(|ranges| ranges.get(d));
            selected(selection, &dimension.axis()?, within)
        };
        let dimensions = schema.domain.dimensions.iter().enumerate();
        dimensions.map(along).collect()
    }
}

/// Coordinates that a selection takes along one axis.
fn selected(selection: &DimSelection, axis: &TileAxis, within: Option<&Range>) -> Option<u128> {
    let count = |range: &Range| {
        axis.offsets_of(range)
            .map_or(0, |(first, last)| u128::from(last - first) + 1)
    };
    match selection {
        DimSelection::All => Some(within.map_or(axis.cells(), count)),
        DimSelection::Ranges(ranges) => ranges.iter().map(count).try_fold(0u128, u128::checked_add),
        DimSelection::Strided { range, step } => {
            Some(count(range).div_ceil(u128::from((*step).max(1))))
        }
    }
}

fn refuse(dimension: &Dimension, why: &str) -> Error {
    Error::InvalidArgument(format!(
        "dimension {:?} ({}): {why}",
        dimension.name, dimension.datatype
    ))
}

const LEAVES_CURRENT_DOMAIN: &str = "a range was set outside of the current domain";

/// Checks type, order and bounds of one range. String ranges may be open on either side.
fn check_range(range: &Range, dimension: &Dimension, within: Option<&Range>) -> Result<()> {
    let datatype = dimension.datatype;
    let less = |a: &[u8], b: &[u8]| compare(datatype, a, b) == Ordering::Less;
    if dimension.is_var() {
        if !range.start.is_empty() && !range.end.is_empty() && less(&range.end, &range.start) {
            return Err(refuse(dimension, "a range ends before it starts"));
        }
        // An empty bound of either is none.
        let beyond = |a: &[u8], b: &[u8]| !a.is_empty() && !b.is_empty() && less(a, b);
        if within.is_some_and(|limits| {
            beyond(&range.start, &limits.start) || beyond(&limits.end, &range.end)
        }) {
            return Err(refuse(dimension, LEAVES_CURRENT_DOMAIN));
        }
        return Ok(());
    }
    if range.start.len() != datatype.size() || range.end.len() != datatype.size() {
        return Err(refuse(
            dimension,
            &format!("bounds must have {} bytes", datatype.size()),
        ));
    }
    if datatype.is_real() && !is_number(&range.start, &range.end) {
        return Err(refuse(dimension, "a bound is not a number"));
    }
    if less(&range.end, &range.start) {
        return Err(refuse(dimension, "a range ends before it starts"));
    }
    let leaves =
        |limits: &Range| less(&range.start, &limits.start) || less(&limits.end, &range.end);
    if dimension.domain.as_ref().is_some_and(leaves) {
        return Err(refuse(
            dimension,
            &format!("a range leaves the domain {}", describe(dimension)),
        ));
    }
    if within.is_some_and(leaves) {
        return Err(refuse(dimension, LEAVES_CURRENT_DOMAIN));
    }
    Ok(())
}

/// Checks that points of a dense array lie where it has cells.
fn check_points(
    column: &PointColumn,
    dimension: &Dimension,
    len: usize,
    within: Option<&Range>,
) -> Result<()> {
    let Some(axis) = dimension.axis() else {
        return Ok(());
    };
    let size = dimension.datatype.size();
    let offset = |point: usize| axis.offset_of(column.get(point, size)?);
    if let Some(point) = (0..len).find(|point| offset(*point).is_none()) {
        return Err(refuse(
            dimension,
            &format!(
                "point {point} lies outside the domain {}",
                describe(dimension)
            ),
        ));
    }
    let Some(within) = within else {
        return Ok(());
    };
    let current = axis.offsets_of(within);
    let inside = |point: usize| {
        let (offset, (first, last)) = offset(point).zip(current)?;
        (first..=last).contains(&offset).then_some(())
    };
    match (0..len).find(|point| inside(*point).is_none()) {
        Some(point) => Err(refuse(
            dimension,
            &format!("point {point} lies outside the current domain"),
        )),
        None => Ok(()),
    }
}

/// Whether neither of two reals is NaN.
pub(crate) fn is_number(start: &[u8], end: &[u8]) -> bool {
    fn nan(bytes: &[u8]) -> bool {
        match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>()) {
            (Some(b), _) => f64::from_le_bytes(*b).is_nan(),
            (None, Some(b)) => f32::from_le_bytes(*b).is_nan(),
            _ => true,
        }
    }
    !nan(start) && !nan(end)
}

/// The domain of a dimension as text.
fn describe(dimension: &Dimension) -> String {
    use azulejo_format::datatype::{Native, dispatch};
    fn bounds<T: Native>(range: &Range) -> String {
        let (start, end) = range.bounds::<T>();
        format!("[{start:?}, {end:?}]")
    }
    match &dimension.domain {
        Some(range) => dispatch!(dimension.datatype.physical(), T => bounds::<T>(range)),
        None => "of all strings".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::tile_grid::tests::{dimension, schema};
    use azulejo_format::Datatype;
    use azulejo_format::schema::{CurrentDomain, Layout};

    fn two_dimensions() -> ArraySchema {
        let dims = vec![
            dimension(Datatype::Int32, 0i32, 99, 10),
            dimension(Datatype::Int32, -50i32, 49, 10),
        ];
        schema(dims, Layout::RowMajor, Layout::RowMajor)
    }

    #[test]
    fn selections_are_checked_and_completed() {
        let schema = two_dimensions();
        let bound = Subarray::ranges([Range::of(3i32, 5)])
            .bind(&schema)
            .unwrap();
        assert_eq!(
            bound,
            Subarray::Box(vec![
                DimSelection::Ranges(vec![Range::of(3i32, 5)]),
                DimSelection::All
            ])
        );
        assert_eq!(bound.cell_num(&schema), Some(300));
        assert_eq!(Subarray::all().cell_num(&schema), Some(10_000));
        let strided = DimSelection::Strided {
            range: Range::of(1i32, 9),
            step: 3,
        };
        assert_eq!(Subarray::Box(vec![strided]).cell_num(&schema), Some(300));
        for bad in [
            Subarray::ranges([Range::of(5i32, 3)]),
            Subarray::ranges([Range::of(5i32, 100)]),
            Subarray::ranges([Range::of(5i64, 6)]),
            Subarray::ranges(vec![Range::of(5i32, 6); 3]),
            Subarray::Box(vec![DimSelection::Strided {
                range: Range::of(1i32, 9),
                step: 0,
            }]),
        ] {
            assert!(
                matches!(bad.bind(&schema), Err(Error::InvalidArgument(_))),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn points_must_have_whole_coordinates() {
        let schema = two_dimensions();
        let points = |lens: &[usize]| {
            let coordinates = lens
                .iter()
                .map(|&n| PointColumn {
                    data: vec![0; n],
                    offsets: None,
                })
                .collect();
            Subarray::Points(Points { coordinates })
        };
        assert_eq!(
            points(&[8, 8]).bind(&schema).unwrap().cell_num(&schema),
            Some(2)
        );
        for bad in [points(&[8]), points(&[8, 4]), points(&[7, 7])] {
            assert!(bad.bind(&schema).is_err());
        }
    }

    #[test]
    fn points_of_dense_arrays_must_lie_in_them() {
        let points = |x: &[i32], y: &[i32]| {
            let coordinates = [x, y].map(|values| PointColumn {
                data: values
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect(),
                offsets: None,
            });
            Subarray::Points(Points {
                coordinates: coordinates.into(),
            })
        };
        let schema = two_dimensions();
        assert!(points(&[0, 99], &[-50, 49]).bind(&schema).is_ok());
        for bad in [
            points(&[0, 100], &[0, 0]),
            points(&[-1], &[0]),
            points(&[0], &[50]),
            points(&[0], &[i32::MIN]),
        ] {
            let error = bad.bind(&schema).unwrap_err();
            assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
        }
        let mut smaller = schema;
        smaller.current_domain = CurrentDomain::NdRectangle(azulejo_format::NdRectangle {
            ranges: vec![Range::of(0i32, 9), Range::of(-5i32, 5)],
        });
        assert!(points(&[9], &[-5]).bind(&smaller).is_ok());
        assert!(points(&[10], &[0]).bind(&smaller).is_err());
        assert!(points(&[10], &[0]).bind_to_domain(&smaller).is_ok());
    }

    #[test]
    fn the_current_domain_is_a_bound() {
        let mut schema = two_dimensions();
        let ranges = vec![Range::of(0i32, 9), Range::of(0i32, 9)];
        schema.current_domain = CurrentDomain::NdRectangle(azulejo_format::NdRectangle { ranges });
        assert_eq!(Subarray::all().cell_num(&schema), Some(100));
        assert!(
            Subarray::ranges([Range::of(0i32, 10)])
                .bind(&schema)
                .is_err()
        );
        assert!(Subarray::ranges([Range::of(0i32, 9)]).bind(&schema).is_ok());
    }
}

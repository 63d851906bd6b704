//! Orders of cells as lists of comparisons, and bounds of boxes in them.
//!
//! Every order that TileDB has is lexicographic over *segments*: the space tile's index along a
//! dimension, the coordinate along one, the position on the Hilbert curve. Orders that differ in
//! general may coincide within a box (all cells in one space tile, one dimension);
//! [`CellOrder::within`] drops what cannot decide there, so that equal lists mean equal orders.

use super::cell_bound::{BoundPart, CellBound};
use super::hilbert::HilbertCurve;
use super::ordinal::Ordinal;
use azulejo_format::datatype::{Datatype, Physical};
use azulejo_format::dispatch;
use azulejo_format::schema::{ArraySchema, Dimension, FieldIndex, Layout};

/// One comparison of a lexicographic order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Segment {
    /// By position on the Hilbert curve.
    Hilbert,
    /// By index of the space tile along this dimension.
    Tile(usize),
    /// By coordinate along this dimension.
    Coordinate(usize),
}

/// The space tiles along a numeric dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TileSplit {
    /// Tiles of `extent` from the ordinal `low` on; ordinals have `mask`'s bits.
    Integer {
        /// Ordinal of the domain's lower bound.
        low: u64,
        /// At least 1.
        extent: u64,
        /// See [`reciprocal`].
        reciprocal: u64,
        /// The bits of an ordinal.
        mask: u64,
    },
    /// As for integers, computed in `f32`.
    Float32 {
        /// The domain's lower bound.
        low: f32,
        /// The extent.
        extent: f32,
    },
    /// As for integers, computed in `f64`.
    Float64 {
        /// The domain's lower bound.
        low: f64,
        /// The extent.
        extent: f64,
    },
}

/// The index of the tile with coordinates that are infinitely far from the domain's lower bound, where
/// tiles are infinitely long too: what NaN is in whole numbers to libtiledb, which stores cells in the
/// order of these indices.
const BEYOND_REALS: u64 = 1 << 63;

/// Indices from here on are 0 to libtiledb (on x86-64): so does a conversion to whole numbers of 64 bits
/// end that is none.
const INDICES: f64 = 18_446_744_073_709_551_616.0;

impl TileSplit {
    /// Whether the domain is longer than a real can say, so that tiles are infinitely long.
    #[must_use]
    pub fn is_infinite(self) -> bool {
        match self {
            Self::Integer { .. } => false,
            Self::Float32 { extent, .. } => extent.is_infinite(),
            Self::Float64 { extent, .. } => extent.is_infinite(),
        }
    }

    /// The index of the tile with a coordinate.
    #[inline]
    pub fn index<T: Ordinal>(self, value: T) -> u64 {
        match self {
            Self::Integer {
                low,
                extent,
                reciprocal,
                mask,
            } => divide(value.ordinal().wrapping_sub(low) & mask, extent, reciprocal).0,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "an index"
            )]
            Self::Float32 { .. } | Self::Float64 { .. } => match self.real_index(value) {
                index if index.is_nan() => BEYOND_REALS,
                index if index >= INDICES => 0,
                index => index as u64,
            },
        }
    }

    /// The index as it is computed, in the type of the coordinates; 0 for integers.
    #[inline]
    fn real_index<T: Ordinal>(self, value: T) -> f64 {
        match self {
            Self::Integer { .. } => 0.0,
            #[expect(clippy::cast_possible_truncation, reason = "f32 again")]
            Self::Float32 { low, extent } => ((value.as_f64() as f32 - low) / extent).into(),
            Self::Float64 { low, extent } => (value.as_f64() - low) / extent,
        }
    }

    /// The place of a coordinate in its tile, given its ordinal; the ordinal itself for floats.
    #[inline]
    pub fn place(self, ordinal: u64) -> u64 {
        match self {
            Self::Integer {
                low,
                extent,
                reciprocal,
                mask,
            } => divide(ordinal.wrapping_sub(low) & mask, extent, reciprocal).1,
            Self::Float32 { .. } | Self::Float64 { .. } => ordinal,
        }
    }

    /// The least and greatest index of integers, given their least and greatest ordinal, if none
    /// lies below the domain.
    pub fn extremes(self, (least, most): (u64, u64)) -> Option<(u64, u64)> {
        match self {
            Self::Integer {
                low,
                extent,
                reciprocal,
                mask,
            } if low <= least && most - low <= mask => {
                let index = |ordinal: u64| divide(ordinal - low, extent, reciprocal).0;
                Some((index(least), index(most)))
            }
            _ => None,
        }
    }
}

/// What 32-bit numbers are multiplied by to be divided by `b`, their product's high half being the
/// quotient; 0 if it is not worth it.
fn reciprocal(b: u64) -> u64 {
    if (2..1 << 32).contains(&b) {
        u64::MAX / b + 1
    } else {
        0
    }
}

/// Quotient and remainder; a multiplication is several times as fast where the numbers allow it.
#[inline]
fn divide(a: u64, b: u64, reciprocal: u64) -> (u64, u64) {
    if a >> 32 == 0 && reciprocal != 0 {
        // With 64 bits of the reciprocal, rounded up, the quotient of any two 32-bit numbers is
        // exact.
        let quotient = ((u128::from(a) * u128::from(reciprocal)) >> 64) as u64;
        (quotient, a - quotient * b)
    } else {
        (a / b, a % b)
    }
}

/// What an order needs to know about a dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct DimensionOrder {
    /// The type of coordinates; strings are compared byte by byte, as ranges and boxes are.
    pub datatype: Datatype,
    /// The space tiles, if the dimension has an extent.
    pub split: Option<TileSplit>,
    /// The domain's bounds as stored, if it has one.
    pub domain: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether filters keep the coordinates: else cells were sorted by others than are read, and boxes are
    /// of those.
    pub is_kept: bool,
}

impl DimensionOrder {
    fn new(dimension: &Dimension, is_kept: bool) -> Self {
        let domain = dimension
            .domain
            .as_ref()
            .map(|d| (d.start.clone(), d.end.clone()));
        let split = match (&domain, &dimension.tile_extent) {
            (Some((low, _)), Some(extent)) if !dimension.cell_val_num.is_var() => {
                split(dimension.datatype.physical(), low, extent)
            }
            (Some((low, high)), None) if !dimension.cell_val_num.is_var() => {
                infinite_split(dimension.datatype.physical(), low, high)
            }
            _ => None,
        };
        Self {
            datatype: dimension.datatype,
            split,
            domain,
            is_kept,
        }
    }

    /// Whether some coordinates are so far from the domain's start that libtiledb has no index for their
    /// tiles: they come among those of tile 0.
    #[must_use]
    pub fn has_far_tiles(&self) -> bool {
        self.domain
            .as_ref()
            .is_some_and(|(_, high)| self.is_far(high))
    }

    /// Whether a number lies in such a tile; so do all that are greater.
    fn is_far(&self, value: &[u8]) -> bool {
        fn of<T: Ordinal>(split: TileSplit, value: &[u8]) -> bool {
            split.real_index(T::read(value)) >= INDICES
        }
        self.split
            .is_some_and(|split| dispatch!(self.datatype.physical(), T => of::<T>(split, value)))
    }

    /// Whether a value is neither an infinity nor NaN.
    fn is_finite(&self, value: &[u8]) -> bool {
        use azulejo_format::datatype::Native;
        !self.datatype.is_real()
            || dispatch!(self.datatype.physical(), T => T::read(value).as_f64().is_finite())
    }

    /// Whether coordinates are strings.
    #[must_use]
    pub fn is_string(&self) -> bool {
        self.datatype.is_string()
    }

    /// The ordinal of a number's bytes.
    #[must_use]
    pub fn ordinal(&self, value: &[u8]) -> u64 {
        fn of<T: Ordinal>(value: &[u8]) -> u64 {
            T::read(value).ordinal()
        }
        dispatch!(self.datatype.physical(), T => of::<T>(value))
    }

    /// The index of the space tile with a number; 0 without an extent.
    #[must_use]
    pub fn tile_index(&self, value: &[u8]) -> u64 {
        fn of<T: Ordinal>(split: TileSplit, value: &[u8]) -> u64 {
            split.index(T::read(value))
        }
        self.split.map_or(
            0,
            |split| dispatch!(self.datatype.physical(), T => of::<T>(split, value)),
        )
    }
}

fn split(physical: Physical, low: &[u8], extent: &[u8]) -> Option<TileSplit> {
    fn integer<T: Ordinal>(low: &[u8], extent: &[u8]) -> Option<TileSplit> {
        let extent = T::read(extent).unsigned();
        let mask = u64::MAX >> (64 - T::ORDINAL_BITS);
        (extent != 0).then(|| TileSplit::Integer {
            low: T::read(low).ordinal(),
            extent,
            reciprocal: reciprocal(extent),
            mask,
        })
    }
    use azulejo_format::datatype::Native;
    match physical {
        Physical::F32 => Some(TileSplit::Float32 {
            low: f32::read(low),
            extent: f32::read(extent),
        }),
        Physical::F64 => Some(TileSplit::Float64 {
            low: f64::read(low),
            extent: f64::read(extent),
        }),
        _ => dispatch!(physical, T => integer::<T>(low, extent)),
    }
}

/// The tiles of reals without an extent: libtiledb takes the domain's length for it. That is one tile,
/// unless the length overflows.
fn infinite_split(physical: Physical, low: &[u8], high: &[u8]) -> Option<TileSplit> {
    use azulejo_format::datatype::Native;
    let length = match physical {
        Physical::F32 => (f32::read(high) - f32::read(low)).to_le_bytes().to_vec(),
        Physical::F64 => (f64::read(high) - f64::read(low)).to_le_bytes().to_vec(),
        _ => return None,
    };
    split(physical, low, &length).filter(|split| split.is_infinite())
}

/// An order of cells.
#[derive(Debug, Clone, PartialEq)]
pub struct CellOrder {
    dimensions: Vec<DimensionOrder>,
    segments: Vec<Segment>,
}

impl CellOrder {
    /// The order of `layout` in an array; [`Layout::Unordered`] counts as [`Layout::Global`], the
    /// order within fragments.
    #[must_use]
    pub fn new(schema: &ArraySchema, layout: Layout) -> Self {
        let dimensions: Vec<DimensionOrder> = schema
            .domain
            .dimensions
            .iter()
            .enumerate()
            .map(|(d, dimension)| {
                let filters = schema.filters_of(FieldIndex::Dimension(d));
                DimensionOrder::new(dimension, filters.keeps_values())
            })
            .collect();
        let dims = dimensions.len();
        let coordinates = |layout: Layout| -> Vec<Segment> {
            match layout {
                Layout::ColMajor => (0..dims).rev().map(Segment::Coordinate).collect(),
                _ => (0..dims).map(Segment::Coordinate).collect(),
            }
        };
        let segments = match (layout, schema.cell_order) {
            (Layout::RowMajor | Layout::ColMajor, _) => coordinates(layout),
            (_, Layout::Hilbert) => [Segment::Hilbert]
                .into_iter()
                .chain(coordinates(Layout::RowMajor))
                .collect(),
            (_, cell_order) => {
                let mut tiled: Vec<usize> = (0..dims)
                    .filter(|d| dimensions[*d].split.is_some())
                    .collect();
                if schema.tile_order == Layout::ColMajor {
                    tiled.reverse();
                }
                tiled
                    .into_iter()
                    .map(Segment::Tile)
                    .chain(coordinates(cell_order))
                    .collect()
            }
        };
        let mut order = Self {
            dimensions,
            segments,
        };
        order.drop_redundant();
        order
    }

    /// The dimensions.
    #[must_use]
    pub fn dimensions(&self) -> &[DimensionOrder] {
        &self.dimensions
    }

    /// Whether strings decide the order.
    #[must_use]
    pub fn compares_text(&self) -> bool {
        let is_text = |d: usize| {
            self.dimensions
                .get(d)
                .is_some_and(DimensionOrder::is_string)
        };
        let mut segments = self.segments.iter();
        segments.any(|segment| matches!(*segment, Segment::Coordinate(d) if is_text(d)))
    }

    /// Whether fragments of this order may be stored in another one: libtiledb and Azulejo to 0.1 stored
    /// strings in the order of signed bytes.
    #[must_use]
    pub fn is_stored_otherwise(&self) -> bool {
        self.compares_text() || self.is_stored_anyhow()
    }

    /// Whether nothing follows from a cell's place in a fragment: Azulejo to 0.1 knew neither tiles of
    /// infinite length nor what becomes of an index that is too great, and filters may change what cells
    /// were sorted by.
    #[must_use]
    pub fn is_stored_anyhow(&self) -> bool {
        let is_odd = |d: usize| {
            self.dimensions.get(d).is_some_and(|dimension| {
                dimension.split.is_some_and(TileSplit::is_infinite) || dimension.has_far_tiles()
            })
        };
        let mut segments = self.segments.iter();
        self.dimensions.iter().any(|dimension| !dimension.is_kept)
            || segments.any(|segment| matches!(*segment, Segment::Tile(d) if is_odd(d)))
    }

    /// The comparisons, the deciding first.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The Hilbert curve, if positions on it decide.
    #[must_use]
    pub fn curve(&self) -> Option<HilbertCurve> {
        self.segments
            .contains(&Segment::Hilbert)
            .then(|| HilbertCurve::new(self.dimensions.len()))
            .flatten()
    }

    /// The same order as far as cells within a box go: one lower and upper bound a dimension.
    #[must_use]
    pub fn within(&self, bounds: &[(&[u8], &[u8])]) -> Self {
        let mut order = self.clone();
        let one_tile = |d: usize| match (self.dimensions.get(d), bounds.get(d)) {
            (Some(dimension), Some((low, high))) => {
                // What lies between infinities, or up to NaN, may be anywhere.
                dimension.is_finite(low)
                    && dimension.is_finite(high)
                    && dimension.tile_index(low) == dimension.tile_index(high)
                    && dimension.is_far(low) == dimension.is_far(high)
            }
            _ => false,
        };
        order
            .segments
            .retain(|s| !matches!(s, Segment::Tile(d) if one_tile(*d)));
        order.drop_redundant();
        order
    }

    /// Drops tile indices that the coordinate of the same dimension follows at once: it says the
    /// same and more, unless far tiles come first.
    fn drop_redundant(&mut self) {
        let ascends = |d: usize| {
            !self
                .dimensions
                .get(d)
                .is_some_and(DimensionOrder::has_far_tiles)
        };
        let mut kept: Vec<Segment> = Vec::with_capacity(self.segments.len());
        for segment in self.segments.iter().rev() {
            match (segment, kept.last()) {
                (Segment::Tile(d), Some(Segment::Coordinate(next))) if d == next && ascends(*d) => {
                }
                _ => kept.push(*segment),
            }
        }
        kept.reverse();
        self.segments = kept;
    }

    /// A bound below every cell of a box, given the box's lower corner.
    #[must_use]
    pub fn lower_bound(&self, corner: &[&[u8]]) -> CellBound {
        self.bound(corner, None)
    }

    /// A bound that no cell of a box is above, given the box's upper corner.
    #[must_use]
    pub fn upper_bound(&self, corner: &[&[u8]]) -> CellBound {
        self.bound(corner, Some(BoundPart::Infinity))
    }

    /// The bound at a cell: not above it, and above all cells before it.
    #[must_use]
    pub fn cell_bound(&self, coordinates: &[&[u8]]) -> CellBound {
        fn bucket<T: Ordinal>(
            curve: HilbertCurve,
            dimension: &DimensionOrder,
            value: &[u8],
        ) -> u64 {
            let domain = dimension.domain.as_ref();
            let domain = domain.map_or((T::LOWEST, T::HIGHEST), |(low, high)| {
                (T::read(low), T::read(high))
            });
            curve.number_bucket(T::read(value), domain)
        }
        let position = |curve: HilbertCurve| {
            let buckets = self.dimensions.iter().zip(coordinates).map(|(dimension, value)| {
                if dimension.is_string() {
                    curve.string_bucket(value)
                } else {
                    dispatch!(dimension.datatype.physical(), T => bucket::<T>(curve, dimension, value))
                }
            });
            BoundPart::Number(curve.position(&mut buckets.collect::<Vec<_>>()))
        };
        let parts = self.segments.iter().map_while(|segment| match segment {
            Segment::Hilbert => self.curve().map(position),
            _ => self.part(*segment, coordinates),
        });
        parts.collect()
    }

    /// Corners bound a box's cells as far as segments never decrease along any dimension: Hilbert's do,
    /// and tile indices where far tiles begin.
    fn bound(&self, corner: &[&[u8]], unknown: Option<BoundPart>) -> CellBound {
        let is_upper = unknown.is_some();
        let is_known = |segment: Segment| {
            let (Segment::Tile(d) | Segment::Coordinate(d)) = segment else {
                return false;
            };
            let Some((dimension, value)) = self.dimensions.get(d).zip(corner.get(d)) else {
                return false;
            };
            let turns = matches!(segment, Segment::Tile(_)) && dimension.has_far_tiles();
            dimension.is_kept && !(turns && dimension.is_far(value) == is_upper)
        };
        let mut parts = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            match self.part(*segment, corner).filter(|_| is_known(*segment)) {
                Some(part) => parts.push(part),
                None => {
                    parts.extend(unknown);
                    break;
                }
            }
        }
        parts.into_iter().collect()
    }

    /// Coordinates in one segment; `None` for Hilbert's.
    fn part(&self, segment: Segment, coordinates: &[&[u8]]) -> Option<BoundPart> {
        let along = |d: usize| self.dimensions.get(d).zip(coordinates.get(d));
        Some(match segment {
            Segment::Hilbert => return None,
            Segment::Tile(d) => {
                let (dimension, value) = along(d)?;
                BoundPart::Number(dimension.tile_index(value))
            }
            Segment::Coordinate(d) => {
                let (dimension, value) = along(d)?;
                match dimension.is_string() {
                    true => BoundPart::Text(value.to_vec()),
                    false => BoundPart::Number(dimension.ordinal(value)),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Segment::{Coordinate, Tile};

    fn dimension<T: Ordinal>(datatype: Datatype, low: T, extent: Option<T>) -> DimensionOrder {
        let bytes = |value: T| {
            let mut bytes = vec![0; T::SIZE];
            value.write(&mut bytes);
            bytes
        };
        let split = extent.and_then(|e| split(datatype.physical(), &bytes(low), &bytes(e)));
        DimensionOrder {
            datatype,
            split,
            domain: Some((bytes(low), bytes(T::HIGHEST))),
            is_kept: true,
        }
    }

    fn order(dimensions: Vec<DimensionOrder>, segments: Vec<Segment>) -> CellOrder {
        let mut order = CellOrder {
            dimensions,
            segments,
        };
        order.drop_redundant();
        order
    }

    #[test]
    fn tiles_count_from_the_start_of_the_domain() {
        let d = dimension(Datatype::Int8, -128i8, Some(100));
        assert_eq!(d.tile_index(&(-128i8).to_le_bytes()), 0);
        assert_eq!(d.tile_index(&(-28i8).to_le_bytes()), 1);
        assert_eq!(d.tile_index(&127i8.to_le_bytes()), 2);
        assert_eq!(d.split.unwrap().place(127i8.ordinal()), 55);
        let d = dimension(Datatype::UInt64, 1u64, Some(u64::MAX));
        assert_eq!(d.tile_index(&u64::MAX.to_le_bytes()), 0);
        let d = dimension(Datatype::Float64, -1.0f64, Some(0.5));
        assert_eq!(d.tile_index(&0.75f64.to_le_bytes()), 3);
        assert_eq!(
            dimension(Datatype::Int8, 0i8, Some(0)).split,
            None,
            "an extent of 0 is none"
        );
    }

    #[test]
    fn products_are_quotients() {
        let most = u64::from(u32::MAX);
        let numbers = [
            0,
            1,
            2,
            3,
            5,
            6,
            7,
            10,
            641,
            65_535,
            65_536,
            99_999,
            1 << 31,
            most - 1,
            most,
            most + 1,
            u64::MAX,
        ];
        for b in numbers.into_iter().skip(1) {
            for near in numbers {
                for a in [
                    near.saturating_sub(1),
                    near,
                    near / b * b,
                    (near / b * b).wrapping_sub(1),
                ] {
                    assert_eq!(divide(a, b, reciprocal(b)), (a / b, a % b), "{a} / {b}");
                }
            }
        }
        let split = TileSplit::Integer {
            low: 10,
            extent: 7,
            reciprocal: reciprocal(7),
            mask: u64::MAX,
        };
        assert_eq!(split.extremes((10, 24)), Some((0, 2)));
        assert_eq!(
            split.extremes((9, 24)),
            None,
            "what lies below the domain comes last"
        );
    }

    #[test]
    fn orders_that_coincide_in_a_box_are_equal_there() {
        let dims = || {
            vec![
                dimension(Datatype::Int32, 0i32, Some(10)),
                dimension(Datatype::Int32, 0i32, Some(10)),
            ]
        };
        let global = order(dims(), vec![Tile(0), Tile(1), Coordinate(0), Coordinate(1)]);
        let rows = order(dims(), vec![Coordinate(0), Coordinate(1)]);
        let (zero, nine, ten) = (0i32.to_le_bytes(), 9i32.to_le_bytes(), 10i32.to_le_bytes());
        assert_eq!(global.segments().len(), 4);
        let flat = [(&zero[..], &ten[..]), (&zero[..], &nine[..])];
        assert_eq!(
            global.within(&flat),
            rows.within(&flat),
            "one column of space tiles"
        );
        let wide = [(&zero[..], &nine[..]), (&zero[..], &ten[..])];
        assert_eq!(
            global.within(&wide).segments(),
            [Tile(1), Coordinate(0), Coordinate(1)]
        );
        let single = order(
            vec![dimension(Datatype::Int32, 0i32, Some(3))],
            vec![Tile(0), Coordinate(0)],
        );
        assert_eq!(single.segments(), [Coordinate(0)], "one dimension");
    }

    #[test]
    fn bounds_of_unknown_segments_are_open() {
        let dims = vec![dimension(Datatype::Int32, 0i32, None)];
        let hilbert = order(dims, vec![Segment::Hilbert, Coordinate(0)]);
        let corner = [&5i32.to_le_bytes()[..]];
        assert_eq!(hilbert.lower_bound(&corner), CellBound::LOWEST);
        assert_eq!(hilbert.upper_bound(&corner), CellBound::highest());
    }
}

//! Space tiles along one dimension, counted from the start of its domain.
//!
//! Coordinates of integer dimensions become *offsets*: `u64` distances from the domain's start.
//! Every domain fits, [`i64::MIN`] to [`i64::MAX`] too, and offsets compare as coordinates do.
//! Extents are taken as unsigned, because a writer that covers all of an `INT8` domain with one
//! tile may store an extent of 201 as -55.

use super::Dimension;
use crate::datatype::{Native, Physical, dispatch};
use crate::range::Range;
use std::num::NonZeroU64;

/// Coordinate arithmetic of one machine type, for loops over coordinates.
pub trait Coordinate: Native {
    /// The distance from `low`, which must not be above `self` (else it wraps around). 0 for
    /// floats.
    fn offset_from(self, low: Self) -> u64;
    /// The coordinate at a distance from `low`, wrapping around. `low` itself for floats.
    fn at_offset(low: Self, offset: u64) -> Self;
    /// The value as an extent: unsigned. 0 for floats.
    fn as_extent(self) -> u64;
    /// The index of the tile that holds `self`, which must not be below `low`. An extent of 0 means
    /// one tile.
    fn tile_index(self, low: Self, extent: Self) -> u64;
}

macro_rules! integers {
    ($($t:ident as $unsigned:ident),*) => {$(
        #[allow(
            clippy::cast_lossless,
            clippy::unnecessary_cast,
            trivial_numeric_casts,
            reason = "one macro serves types of all sizes, signed and unsigned"
        )]
        impl Coordinate for $t {
            #[inline]
            fn offset_from(self, low: Self) -> u64 {
                self.wrapping_sub(low) as $unsigned as u64
            }
            #[inline]
            fn at_offset(low: Self, offset: u64) -> Self {
                low.wrapping_add(offset as $t)
            }
            #[inline]
            fn as_extent(self) -> u64 {
                self as $unsigned as u64
            }
            #[inline]
            fn tile_index(self, low: Self, extent: Self) -> u64 {
                self.offset_from(low).checked_div(extent.as_extent()).unwrap_or(0)
            }
        }
    )*};
}

macro_rules! floats {
    ($($t:ident),*) => {$(
        impl Coordinate for $t {
            #[inline]
            fn offset_from(self, _: Self) -> u64 {
                0
            }
            #[inline]
            fn at_offset(low: Self, _: u64) -> Self {
                low
            }
            #[inline]
            fn as_extent(self) -> u64 {
                0
            }
            /// In the type's own precision, as the reference divides: global order depends on it.
            #[inline]
            fn tile_index(self, low: Self, extent: Self) -> u64 {
                if extent == 0.0 { 0 } else { ((self - low) / extent) as u64 }
            }
        }
    )*};
}

integers! { i8 as u8, i16 as u16, i32 as u32, i64 as u64, u8 as u8, u16 as u16, u32 as u32, u64 as u64 }
floats! { f32, f64 }

/// The domain and tiles of an integer (or datetime, or time) dimension, in offsets from the
/// domain's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileAxis {
    physical: Physical,
    /// The distance from 0 to the domain's start, wrapping around in the type.
    low: u64,
    last: u64,
    extent: Option<NonZeroU64>,
}

impl TileAxis {
    /// The largest offset of the domain: one less than its number of coordinates, which may be
    /// 2^64.
    #[must_use]
    pub const fn last_offset(&self) -> u64 {
        self.last
    }

    /// The type of the coordinates.
    #[must_use]
    pub const fn physical(&self) -> Physical {
        self.physical
    }

    /// The number of coordinates of the domain.
    #[must_use]
    pub const fn cells(&self) -> u128 {
        self.last as u128 + 1
    }

    /// Coordinates of a tile, those past the domain's end included; all of the domain's without an
    /// extent.
    #[must_use]
    pub const fn extent(&self) -> u128 {
        match self.extent {
            Some(extent) => extent.get() as u128,
            None => self.cells(),
        }
    }

    /// The tile that holds an offset.
    #[must_use]
    #[inline]
    pub const fn tile_of(&self, offset: u64) -> u64 {
        match self.extent {
            Some(extent) => offset / extent.get(),
            None => 0,
        }
    }

    /// The index of the last tile: one less than the number of tiles, which may be 2^64.
    #[must_use]
    pub const fn last_tile(&self) -> u64 {
        self.tile_of(self.last)
    }

    /// The number of tiles.
    #[must_use]
    pub const fn tiles(&self) -> u128 {
        self.last_tile() as u128 + 1
    }

    /// The first offset of a tile; `None` past the last tile.
    #[must_use]
    pub fn tile_start(&self, tile: u64) -> Option<u64> {
        let start = match self.extent {
            Some(extent) => tile.checked_mul(extent.get())?,
            None if tile == 0 => 0,
            None => return None,
        };
        (start <= self.last).then_some(start)
    }

    /// The last offset of a tile that is still in the domain; `None` past the last tile.
    #[must_use]
    pub fn tile_end(&self, tile: u64) -> Option<u64> {
        let start = self.tile_start(tile)?;
        let size = self.extent.map_or(u64::MAX, |extent| extent.get() - 1);
        Some(start.saturating_add(size).min(self.last))
    }

    /// The domain's start as a number.
    fn start(&self) -> i128 {
        fn number<T: Coordinate>(low: u64) -> i128 {
            let (zero, low) = (T::default(), T::at_offset(T::default(), low));
            if low < zero {
                -i128::from(zero.offset_from(low))
            } else {
                i128::from(low.offset_from(zero))
            }
        }
        dispatch!(self.physical, T => number::<T>(self.low))
    }

    /// How far the domain of `other` begins behind that of `self`.
    fn distance_to(&self, other: &Self) -> i128 {
        other.start() - self.start()
    }

    /// The tile that has the index 0 in `other`, another domain of one type. It may be one before
    /// the first: then the number has wrapped around. `None` if the domains are not cut into tiles
    /// at the same coordinates.
    #[must_use]
    pub fn first_tile_of(&self, other: &Self) -> Option<u64> {
        if self == other {
            return Some(0);
        }
        if self.physical != other.physical || self.extent != other.extent {
            return None;
        }
        let (distance, extent) = (self.distance_to(other), i128::from(self.extent?.get()));
        (distance % extent == 0).then_some((distance / extent) as u64)
    }

    /// The offset here of the coordinate at an offset of `other`, another domain of one type;
    /// `None` outside the domain.
    #[must_use]
    pub fn offset_in(&self, other: &Self, offset: u64) -> Option<u64> {
        if self.physical != other.physical {
            return None;
        }
        let here = i128::from(offset) + self.distance_to(other);
        u64::try_from(here).ok().filter(|here| *here <= self.last)
    }

    /// The offset of a coordinate, given as bytes of the dimension's type; `None` outside the
    /// domain.
    #[must_use]
    pub fn offset_of(&self, coordinate: &[u8]) -> Option<u64> {
        fn distance<T: Coordinate>(coordinate: &[u8], low: u64, last: u64) -> Option<u64> {
            let low = T::at_offset(T::default(), low);
            let coordinate = T::read(coordinate);
            // Below the start the distance would wrap around into the domain.
            if coordinate < low {
                return None;
            }
            Some(coordinate.offset_from(low)).filter(|offset| *offset <= last)
        }
        dispatch!(self.physical, T => distance::<T>(coordinate, self.low, self.last))
    }

    /// The first and last offset of a range, cut to the domain; `None` if the range is empty or
    /// outside the domain.
    #[must_use]
    pub fn offsets_of(&self, range: &Range) -> Option<(u64, u64)> {
        fn cut<T: Coordinate>(range: &Range, low: u64, last: u64) -> Option<(u64, u64)> {
            let low = T::at_offset(T::default(), low);
            let high = T::at_offset(low, last);
            let (start, end) = range.bounds::<T>();
            if start > end || start > high || end < low {
                return None;
            }
            let start = if start < low {
                0
            } else {
                start.offset_from(low)
            };
            Some((
                start,
                if end > high {
                    last
                } else {
                    end.offset_from(low)
                },
            ))
        }
        dispatch!(self.physical, T => cut::<T>(range, self.low, self.last))
    }

    /// Writes the coordinate at an offset to the front of `out`, in the dimension's type.
    pub fn write_coordinate(&self, offset: u64, out: &mut [u8]) {
        fn write<T: Coordinate>(low: u64, offset: u64, out: &mut [u8]) {
            T::at_offset(T::at_offset(T::default(), low), offset).write(out);
        }
        dispatch!(self.physical, T => write::<T>(self.low, offset, out));
    }

    /// The bytes of the coordinate at an offset, in the dimension's type.
    #[must_use]
    pub fn coordinate(&self, offset: u64) -> Vec<u8> {
        let mut out = vec![0; self.physical.size()];
        self.write_coordinate(offset, &mut out);
        out
    }
}

impl Dimension {
    /// The dimension's tiles in offsets; `None` for float and string dimensions, and without a
    /// sound domain.
    #[must_use]
    pub fn axis(&self) -> Option<TileAxis> {
        fn axis<T: Coordinate>(domain: &Range, extent: Option<&[u8]>) -> Option<TileAxis> {
            let (low, high) = domain.bounds::<T>();
            if low > high {
                return None;
            }
            Some(TileAxis {
                physical: T::PHYSICAL,
                low: low.offset_from(T::default()),
                last: high.offset_from(low),
                extent: extent.and_then(|bytes| NonZeroU64::new(T::read(bytes).as_extent())),
            })
        }
        let physical = self.datatype.physical();
        let domain = self
            .domain
            .as_ref()
            .filter(|_| !self.is_var() && physical.is_integer())?;
        dispatch!(physical, T => axis::<T>(domain, self.tile_extent.as_deref()))
    }

    /// The index of the tile that holds a coordinate (bytes of the dimension's type), which must
    /// lie in the domain. 0 for strings and without an extent.
    #[must_use]
    pub fn tile_of(&self, coordinate: &[u8]) -> u64 {
        fn tile<T: Coordinate>(coordinate: &[u8], domain: &Range, extent: &[u8]) -> u64 {
            T::read(coordinate).tile_index(T::read(&domain.start), T::read(extent))
        }
        match (&self.domain, &self.tile_extent) {
            (Some(domain), Some(extent)) if !self.is_var() => {
                dispatch!(self.datatype.physical(), T => tile::<T>(coordinate, domain, extent))
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::{CellValNum, Datatype};
    use crate::filter::Pipeline;

    fn dimension<T: Native>(datatype: Datatype, low: T, high: T, extent: Option<T>) -> Dimension {
        let bytes = |value: T| {
            let mut bytes = vec![0; T::SIZE];
            value.write(&mut bytes);
            bytes
        };
        Dimension {
            name: "d".to_owned(),
            datatype,
            cell_val_num: CellValNum::ONE,
            filters: Pipeline::default(),
            domain: Some(Range::of(low, high)),
            tile_extent: extent.map(bytes),
        }
    }

    #[test]
    fn the_whole_of_64_bits_fits() {
        let d = dimension(Datatype::Int64, i64::MIN, i64::MAX, Some(i64::MAX));
        let axis = d.axis().unwrap();
        assert_eq!(
            (axis.cells(), axis.last_offset(), axis.tiles()),
            (1 << 64, u64::MAX, 3)
        );
        assert_eq!(axis.offset_of(&0i64.to_le_bytes()), Some(1 << 63));
        assert_eq!(axis.coordinate(u64::MAX), i64::MAX.to_le_bytes());
        assert_eq!(
            (axis.tile_start(2), axis.tile_end(2)),
            (Some(u64::MAX - 1), Some(u64::MAX))
        );
        assert_eq!(
            (axis.tile_start(3), axis.tile_start(u64::MAX)),
            (None, None)
        );
        assert_eq!(d.tile_of(&i64::MAX.to_le_bytes()), 2);

        let axis = dimension(Datatype::UInt64, 0, u64::MAX, Some(1))
            .axis()
            .unwrap();
        assert_eq!(
            (axis.tiles(), axis.tile_end(u64::MAX)),
            (1 << 64, Some(u64::MAX))
        );
        let axis = dimension(Datatype::UInt64, 0, u64::MAX, None)
            .axis()
            .unwrap();
        assert_eq!(
            (axis.extent(), axis.tiles(), axis.tile_end(0)),
            (1 << 64, 1, Some(u64::MAX))
        );
        assert_eq!(axis.tile_start(1), None);
    }

    #[test]
    fn a_wrapped_extent_covers_its_domain() {
        let d = dimension(Datatype::Int8, -100, 100, Some(201u8 as i8));
        let axis = d.axis().unwrap();
        assert_eq!(
            (axis.extent(), axis.tiles(), axis.tile_end(0)),
            (201, 1, Some(200))
        );
        assert_eq!(axis.coordinate(200), [100]);
    }

    #[test]
    fn offsets_agree_with_wide_arithmetic() {
        for low in [-128i8, -5, 0, 3] {
            for high in [3i8, 100, 127] {
                for extent in [1i8, 3, 7, 127] {
                    let d = dimension(Datatype::Int8, low, high, Some(extent));
                    let axis = d.axis().unwrap();
                    for c in i8::MIN..=i8::MAX {
                        let inside = (low..=high).contains(&c);
                        let offset = axis.offset_of(&c.to_le_bytes());
                        assert_eq!(
                            offset,
                            inside.then(|| (i64::from(c) - i64::from(low)) as u64)
                        );
                        let Some(offset) = offset else { continue };
                        assert_eq!(axis.coordinate(offset), c.to_le_bytes());
                        let tile = axis.tile_of(offset);
                        assert_eq!(
                            (tile, tile),
                            (d.tile_of(&c.to_le_bytes()), offset / extent as u64)
                        );
                        assert!(
                            axis.tile_start(tile).unwrap() <= offset
                                && offset <= axis.tile_end(tile).unwrap()
                        );
                    }
                    assert_eq!(axis.tile_end(axis.last_tile()), Some(axis.last_offset()));
                    assert_eq!(axis.tile_start(axis.last_tile() + 1), None);
                }
            }
        }
    }

    #[test]
    fn domains_of_one_grid_are_whole_tiles_apart() {
        let axis = |low: i8, high: i8, extent: Option<i8>| {
            dimension(Datatype::Int8, low, high, extent).axis().unwrap()
        };
        let base = axis(-8, 20, Some(4));
        for (low, high, first) in [(-8, 3, 0), (-8, 100, 0), (0, 9, 2), (-20, 20, -3)] {
            let other = axis(low, high, Some(4));
            let wrapped = i64::from(first).cast_unsigned();
            assert_eq!(base.first_tile_of(&other), Some(wrapped), "{other:?}");
            for c in i8::MIN..=i8::MAX {
                if let Some(offset) = other.offset_of(&[c.cast_unsigned()]) {
                    let here = base.offset_of(&[c.cast_unsigned()]);
                    assert_eq!(base.offset_in(&other, offset), here);
                    let tile = other.tile_of(offset).wrapping_add(wrapped);
                    assert!(here.is_none_or(|here| base.tile_of(here) == tile));
                }
            }
        }
        for other in [
            axis(-8, 20, Some(5)),
            axis(-7, 20, Some(4)),
            axis(-8, 20, None),
        ] {
            assert_eq!(base.first_tile_of(&other), None);
        }
        assert_eq!(axis(1, 5, None).first_tile_of(&axis(1, 6, None)), None);
        assert_eq!(axis(1, 5, None).first_tile_of(&axis(1, 5, None)), Some(0));
        // The ends of 64 bits are further apart than 64 bits with a sign.
        let low = dimension(Datatype::Int64, i64::MIN, 0, Some(1))
            .axis()
            .unwrap();
        let high = dimension(Datatype::Int64, i64::MAX - 1, i64::MAX, Some(1))
            .axis()
            .unwrap();
        assert_eq!(low.first_tile_of(&high), Some(u64::MAX - 1));
        assert_eq!(
            (low.offset_in(&high, 1), high.offset_in(&low, 0)),
            (None, None)
        );
        let unsigned = dimension(Datatype::UInt8, 8u8, 20, Some(4)).axis().unwrap();
        assert_eq!(base.first_tile_of(&unsigned), None);
        assert_eq!(base.offset_in(&unsigned, 0), None);
    }

    #[test]
    fn ranges_are_cut_to_the_domain() {
        let axis = dimension(Datatype::Int16, -10, 10, Some(4)).axis().unwrap();
        assert_eq!(axis.offsets_of(&Range::of(-5i16, 5)), Some((5, 15)));
        assert_eq!(
            axis.offsets_of(&Range::of(i16::MIN, i16::MAX)),
            Some((0, 20))
        );
        assert_eq!(axis.offsets_of(&Range::of(10i16, 11)), Some((20, 20)));
        for (start, end) in [(11i16, 12), (-20, -11), (3, 2)] {
            assert_eq!(axis.offsets_of(&Range::of(start, end)), None);
        }
    }

    #[test]
    fn floats_have_tiles_and_no_offsets() {
        let d = dimension(Datatype::Float32, -1.0f32, 1.0, Some(0.5));
        assert_eq!(d.axis(), None);
        assert_eq!(
            (
                d.tile_of(&0.4f32.to_le_bytes()),
                d.tile_of(&1.0f32.to_le_bytes())
            ),
            (2, 4)
        );
        // One point as a domain gives an extent of 0; the widest domain one of infinity.
        let d = dimension(Datatype::Float64, 1.0f64, 1.0, Some(0.0));
        assert_eq!(d.tile_of(&1.0f64.to_le_bytes()), 0);
        let d = dimension(Datatype::Float64, f64::MIN, f64::MAX, Some(f64::INFINITY));
        assert_eq!(d.tile_of(&f64::MAX.to_le_bytes()), 0);
    }
}

//! From a [`Physical`](super::Physical) to generic code: once per column or tile, never per value.

use super::Physical;
use std::cmp::Ordering;

mod sealed {
    pub trait Sealed {}
}

/// One of the ten machine types that lie under TileDB's datatypes.
pub trait Native:
    sealed::Sealed + Copy + PartialOrd + PartialEq + Default + Send + Sync + std::fmt::Debug + 'static
{
    /// The type's tag.
    const PHYSICAL: Physical;
    /// Bytes of a value.
    const SIZE: usize = size_of::<Self>();
    /// The smallest value (minus infinity apart).
    const LOWEST: Self;
    /// The largest value (infinity apart).
    const HIGHEST: Self;

    /// Reads a value from the front of `bytes`; missing bytes read as 0 (callers check lengths).
    fn read(bytes: &[u8]) -> Self;
    /// Writes the value to the front of `out`, as far as it is long.
    fn write(self, out: &mut [u8]);
    /// A total order: numbers as numbers, NaN above all, -0.0 equal to 0.0.
    fn total_order(&self, other: &Self) -> Ordering;
    /// The nearest `f64`.
    fn as_f64(self) -> f64;
}

macro_rules! native {
    ($($t:ident => $tag:ident, $order:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Native for $t {
            const PHYSICAL: Physical = Physical::$tag;
            const LOWEST: Self = $t::MIN;
            const HIGHEST: Self = $t::MAX;
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                match bytes.first_chunk() {
                    Some(chunk) => Self::from_le_bytes(*chunk),
                    None => Self::default(),
                }
            }
            #[inline]
            fn write(self, out: &mut [u8]) {
                if let Some(chunk) = out.first_chunk_mut() {
                    *chunk = self.to_le_bytes();
                }
            }
            #[inline]
            fn total_order(&self, other: &Self) -> Ordering {
                let order: fn(&$t, &$t) -> Ordering = $order;
                order(self, other)
            }
            #[inline]
            #[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "one macro serves all types")]
            fn as_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}

native! {
    i8 => I8, Ord::cmp;
    i16 => I16, Ord::cmp;
    i32 => I32, Ord::cmp;
    i64 => I64, Ord::cmp;
    u8 => U8, Ord::cmp;
    u16 => U16, Ord::cmp;
    u32 => U32, Ord::cmp;
    u64 => U64, Ord::cmp;
    f32 => F32, |a, b| a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
    f64 => F64, |a, b| a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
}

/// Calls one generic function for a [`Physical`](crate::datatype::Physical): `dispatch!(physical, T
/// => f::<T>(args))`.
#[macro_export]
macro_rules! dispatch {
    ($physical:expr, $T:ident => $call:expr) => {
        match $physical {
            $crate::datatype::Physical::I8 => {
                type $T = i8;
                $call
            }
            $crate::datatype::Physical::I16 => {
                type $T = i16;
                $call
            }
            $crate::datatype::Physical::I32 => {
                type $T = i32;
                $call
            }
            $crate::datatype::Physical::I64 => {
                type $T = i64;
                $call
            }
            $crate::datatype::Physical::U8 => {
                type $T = u8;
                $call
            }
            $crate::datatype::Physical::U16 => {
                type $T = u16;
                $call
            }
            $crate::datatype::Physical::U32 => {
                type $T = u32;
                $call
            }
            $crate::datatype::Physical::U64 => {
                type $T = u64;
                $call
            }
            $crate::datatype::Physical::F32 => {
                type $T = f32;
                $call
            }
            $crate::datatype::Physical::F64 => {
                type $T = f64;
                $call
            }
        }
    };
}
pub use dispatch;

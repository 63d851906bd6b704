//! Integer arithmetic that the delta and reduction filters share: everything wraps, as stored data
//! demands.

use crate::datatype::{Datatype, Native, Physical};

/// An integer type that filters compute with.
pub(super) trait Integer: Native + Ord {
    fn wrapping_add(self, other: Self) -> Self;
    fn wrapping_sub(self, other: Self) -> Self;
    fn checked_sub(self, other: Self) -> Option<Self>;
    fn xor(self, other: Self) -> Self;
    /// The same number where it fits, the same low bits where not.
    fn to_i64(self) -> i64;
    /// The low bits.
    fn from_i64(value: i64) -> Self;
    /// Whether the type has a sign.
    const SIGNED: bool;
}

macro_rules! integer {
    ($($t:ident)*) => {$(
        impl Integer for $t {
            #[inline]
            fn wrapping_add(self, other: Self) -> Self {
                $t::wrapping_add(self, other)
            }
            #[inline]
            fn wrapping_sub(self, other: Self) -> Self {
                $t::wrapping_sub(self, other)
            }
            #[inline]
            fn checked_sub(self, other: Self) -> Option<Self> {
                $t::checked_sub(self, other)
            }
            #[inline]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
            #[inline]
            #[allow(clippy::cast_lossless, clippy::unnecessary_cast, reason = "one macro for eight types")]
            fn to_i64(self) -> i64 {
                self as i64
            }
            #[inline]
            #[allow(clippy::unnecessary_cast, reason = "one macro for eight types")]
            fn from_i64(value: i64) -> Self {
                value as $t
            }
            const SIGNED: bool = $t::MIN != 0;
        }
    )*};
}

integer! { i8 i16 i32 i64 u8 u16 u32 u64 }

/// Calls a generic function for an integer [`Physical`] type, once a part:
/// `dispatch_integer!(physical, T => f::<T>(..), else e)`.
macro_rules! dispatch_integer {
    ($physical:expr, $T:ident => $call:expr, else $other:expr) => {
        dispatch_integer!(@arms $physical, $T, $call, $other; I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
    (@arms $physical:expr, $T:ident, $call:expr, $other:expr; $($tag:ident $t:ident),*) => {
        match $physical {
            $($crate::datatype::Physical::$tag => {
                type $T = $t;
                $call
            })*
            $crate::datatype::Physical::F32 | $crate::datatype::Physical::F64 => $other,
        }
    };
}
pub(super) use dispatch_integer;

/// What the delta compressors take values of `datatype` as: strings of any width count as bytes.
pub(super) fn delta_physical(datatype: Datatype) -> Physical {
    if datatype.is_string() {
        Physical::U8
    } else {
        datatype.physical()
    }
}

/// Values of an array of bytes; a rest shorter than a value is left out.
pub(super) fn values<T: Native>(bytes: &[u8]) -> impl Iterator<Item = T> + '_ {
    bytes.chunks_exact(T::SIZE).map(T::read)
}

/// Places for values in an array of bytes.
pub(super) fn places<T: Native>(bytes: &mut [u8]) -> std::slice::ChunksExactMut<'_, u8> {
    bytes.chunks_exact_mut(T::SIZE)
}

/// Room for `len` more bytes, to be overwritten.
pub(super) fn grow(out: &mut Vec<u8>, len: usize) -> &mut [u8] {
    let at = out.len();
    out.resize(at + len, 0);
    out.get_mut(at..).unwrap_or_default()
}

/// Appends a value.
pub(super) fn push<T: Native>(value: T, out: &mut Vec<u8>) {
    value.write(grow(out, T::SIZE));
}

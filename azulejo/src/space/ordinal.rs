//! Numbers as unsigned integers of the same order.

use azulejo_format::datatype::Native;

/// A number that maps to a `u64` keeping its order: -0.0 and 0.0 to the same, every NaN to the
/// greatest.
pub trait Ordinal: Native {
    /// The bits that ordinals of this type use; those above are 0.
    const ORDINAL_BITS: u32 = Self::SIZE as u32 * 8;

    /// The number's place in the order of its type.
    fn ordinal(self) -> u64;

    /// The number's bit pattern as an unsigned integer (extents of space tiles are unsigned).
    fn unsigned(self) -> u64;
}

macro_rules! unsigned {
    ($($t:ty)*) => {$(
        impl Ordinal for $t {
            #[inline]
            fn ordinal(self) -> u64 {
                u64::from(self)
            }
            #[inline]
            fn unsigned(self) -> u64 {
                u64::from(self)
            }
        }
    )*};
}
unsigned!(u8 u16 u32 u64);

macro_rules! signed {
    ($($t:ty)*) => {$(
        impl Ordinal for $t {
            #[inline]
            fn ordinal(self) -> u64 {
                u64::from((self ^ Self::MIN).cast_unsigned())
            }
            #[inline]
            fn unsigned(self) -> u64 {
                u64::from(self.cast_unsigned())
            }
        }
    )*};
}
signed!(i8 i16 i32 i64);

macro_rules! float {
    ($($t:ty)*) => {$(
        impl Ordinal for $t {
            #[inline]
            fn ordinal(self) -> u64 {
                // Adding 0.0 turns -0.0 into 0.0.
                let bits = (self + 0.0).to_bits();
                let ordered = if bits >> (Self::ORDINAL_BITS - 1) == 0 { bits | 1 << (Self::ORDINAL_BITS - 1) } else { !bits };
                if self.is_nan() { u64::MAX >> (64 - Self::ORDINAL_BITS) } else { u64::from(ordered) }
            }
            #[inline]
            fn unsigned(self) -> u64 {
                u64::from(self.to_bits())
            }
        }
    )*};
}
float!(f32 f64);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keeps_order<T: Ordinal>(a: T, b: T) {
        assert_eq!(
            a.ordinal().cmp(&b.ordinal()),
            a.total_order(&b),
            "{a:?} {b:?}"
        );
        assert!(T::ORDINAL_BITS == 64 || a.ordinal() >> T::ORDINAL_BITS == 0);
    }

    #[test]
    fn special_floats() {
        for a in [
            f64::NEG_INFINITY,
            -1.0,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            1.5,
            f64::INFINITY,
            f64::NAN,
            -f64::NAN,
        ] {
            for b in [
                f64::NEG_INFINITY,
                -1.0,
                -0.0,
                0.0,
                f64::MIN_POSITIVE,
                1.5,
                f64::INFINITY,
                f64::NAN,
                -f64::NAN,
            ] {
                keeps_order(a, b);
                keeps_order(a as f32, b as f32);
            }
        }
    }

    proptest! {
        #[test]
        fn order_is_kept(a: (i8, i16, i32, i64, u8, u64, f32, f64), b: (i8, i16, i32, i64, u8, u64, f32, f64)) {
            keeps_order(a.0, b.0);
            keeps_order(a.1, b.1);
            keeps_order(a.2, b.2);
            keeps_order(a.3, b.3);
            keeps_order(a.4, b.4);
            keeps_order(a.5, b.5);
            keeps_order(a.6, b.6);
            keeps_order(a.7, b.7);
        }
    }
}

//! Sums, minima and maxima of slices of cells: one dispatch a slice, loops that the compiler can
//! vectorise.

use azulejo_format::datatype::Native;

/// What a slice of numbers adds up to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Sum {
    /// Exactly: no number of cells that fits in memory overflows it.
    Integer(i128),
    /// As floating point does it.
    Real(f64),
}

/// Numbers that can be aggregated.
pub(super) trait Number: Native {
    /// Greater than or equal to all numbers.
    const TOP: Self;
    /// Less than or equal to all numbers.
    const BOTTOM: Self;
    /// The sum of a slice's numbers for which `mask` (as long as the slice, or absent for all) is
    /// not 0.
    fn sum(data: &[u8], mask: Option<&[u8]>) -> Sum;
}

/// Numbers in a slice of bytes.
fn numbers<T: Native>(data: &[u8]) -> impl Iterator<Item = T> + '_ {
    data.chunks_exact(T::SIZE).map(T::read)
}

/// A number as it is, or 0 where it does not count.
#[inline]
fn masked<T: Native>(data: &[u8], mask: &[u8]) -> impl Iterator<Item = T> {
    numbers::<T>(data)
        .zip(mask)
        .map(|(v, k)| if *k != 0 { v } else { T::default() })
}

/// Sums of up to this many 32-bit numbers fit 64 bits.
const BLOCK: usize = 1 << 20;

macro_rules! integers {
    ($($t:ident => $wide:ident, |$sum:ident, $value:ident| $add:expr;)*) => {$(
        impl Number for $t {
            const TOP: Self = $t::MAX;
            const BOTTOM: Self = $t::MIN;
            fn sum(data: &[u8], mask: Option<&[u8]>) -> Sum {
                let mut total = 0;
                for (i, block) in data.chunks(BLOCK * size_of::<$t>()).enumerate() {
                    let mut sum = Halves::<$wide>::default();
                    let add = |$value: $t| {
                        let $sum = &mut sum;
                        $add;
                    };
                    match mask {
                        None => numbers::<$t>(block).for_each(add),
                        Some(mask) => masked::<$t>(block, mask.get(i * BLOCK..).unwrap_or(&[])).for_each(add),
                    }
                    total += (i128::from(sum.high) << 32) + i128::from(sum.low);
                }
                Sum::Integer(total)
            }
        }
    )*};
}

/// A sum in two parts: `high` counts 2^32.
#[derive(Default)]
struct Halves<W> {
    high: W,
    low: W,
}

integers! {
    i8 => i64, |sum, v| sum.low += i64::from(v);
    i16 => i64, |sum, v| sum.low += i64::from(v);
    i32 => i64, |sum, v| sum.low += i64::from(v);
    i64 => i64, |sum, v| {
        sum.high += v >> 32;
        sum.low += v & 0xffff_ffff;
    };
    u8 => u64, |sum, v| sum.low += u64::from(v);
    u16 => u64, |sum, v| sum.low += u64::from(v);
    u32 => u64, |sum, v| sum.low += u64::from(v);
    u64 => u64, |sum, v| {
        sum.high += v >> 32;
        sum.low += v & 0xffff_ffff;
    };
}

macro_rules! reals {
    ($($t:ident)*) => {$(
        impl Number for $t {
            const TOP: Self = $t::INFINITY;
            const BOTTOM: Self = $t::NEG_INFINITY;
            fn sum(data: &[u8], mask: Option<&[u8]>) -> Sum {
                Sum::Real(match mask {
                    None => lanes(numbers::<$t>(data)),
                    Some(mask) => lanes(masked::<$t>(data, mask)),
                })
            }
        }
    )*};
}

reals! { f32 f64 }

/// A sum in eight interleaved parts, which is both faster and closer to the true sum than one.
fn lanes<T: Native>(mut values: impl Iterator<Item = T>) -> f64 {
    let mut parts = [0.0f64; 8];
    'all: loop {
        for part in &mut parts {
            match values.next() {
                Some(value) => *part += value.as_f64(),
                None => break 'all,
            }
        }
    }
    parts.iter().sum()
}

/// The least and the greatest of the numbers that count; `None` if none does. NaN is no number.
pub(super) fn bounds<T: Number>(data: &[u8], mask: Option<&[u8]>) -> Option<(T, T)> {
    fn fold<T: Number>(values: impl Iterator<Item = (T, T)>) -> (T, T) {
        // Comparisons with NaN are false, so that it changes nothing.
        values.fold((T::TOP, T::BOTTOM), |(min, max), (low, high)| {
            (
                if low < min { low } else { min },
                if high > max { high } else { max },
            )
        })
    }
    let (min, max) = match mask {
        None => fold(numbers::<T>(data).map(|v| (v, v))),
        Some(mask) => fold(
            numbers::<T>(data)
                .zip(mask)
                .map(|(v, k)| if *k != 0 { (v, v) } else { (T::TOP, T::BOTTOM) }),
        ),
    };
    (min <= max).then_some((min, max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes<T: Native>(values: &[T]) -> Vec<u8> {
        let mut out = vec![0; values.len() * T::SIZE];
        for (chunk, value) in out.chunks_exact_mut(T::SIZE).zip(values) {
            value.write(chunk);
        }
        out
    }

    proptest! {
        #[test]
        fn integers_add_up_exactly(values in proptest::collection::vec(any::<i64>(), 0..40), mask in any::<u64>()) {
            let mask: Vec<u8> = (0..values.len()).map(|i| u8::from(mask >> i & 1 == 1)).collect();
            let data = bytes(&values);
            let all: i128 = values.iter().map(|v| i128::from(*v)).sum();
            let some: i128 = values.iter().zip(&mask).filter(|(_, k)| **k != 0).map(|(v, _)| i128::from(*v)).sum();
            prop_assert_eq!(i64::sum(&data, None), Sum::Integer(all));
            prop_assert_eq!(i64::sum(&data, Some(&mask)), Sum::Integer(some));
            let unsigned: Vec<u64> = values.iter().map(|v| v.cast_unsigned()).collect();
            let all: i128 = unsigned.iter().map(|v| i128::from(*v)).sum();
            prop_assert_eq!(u64::sum(&data, None), Sum::Integer(all));
            let counted = || values.iter().zip(&mask).filter(|(_, k)| **k != 0).map(|(v, _)| *v);
            prop_assert_eq!(bounds::<i64>(&data, Some(&mask)), counted().min().zip(counted().max()));
        }
    }

    #[test]
    fn blocks_join() {
        let values = vec![i8::MIN; 3 * BLOCK + 5];
        assert_eq!(
            i8::sum(&bytes(&values), None),
            Sum::Integer(-128 * (3 * BLOCK as i128 + 5))
        );
        let mut mask = vec![0; values.len()];
        mask[2 * BLOCK + 1] = 1;
        mask[3 * BLOCK + 4] = 1;
        assert_eq!(i8::sum(&bytes(&values), Some(&mask)), Sum::Integer(-256));
    }

    #[test]
    fn nan_is_no_bound() {
        let data = bytes(&[f64::NAN, 3.0, 1.0, f64::NAN]);
        assert_eq!(bounds::<f64>(&data, None), Some((1.0, 3.0)));
        assert_eq!(bounds::<f64>(&data, Some(&[1, 0, 0, 1])), None);
        assert_eq!(f64::sum(&data, Some(&[0, 1, 1, 0])), Sum::Real(4.0));
        let data = bytes(&[f32::INFINITY]);
        assert_eq!(
            bounds::<f32>(&data, None),
            Some((f32::INFINITY, f32::INFINITY))
        );
    }
}

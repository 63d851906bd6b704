//! Positions on the Hilbert curve, as TileDB orders cells by them.
//!
//! Coordinates are mapped to buckets of `63 / dimensions` bits each, and these to the curve by John
//! Skilling's transposition ("Programming the Hilbert Curve", AIP 2004). Cells with equal positions
//! follow in row-major order.

mod table;

use super::ordinal::Ordinal;
use table::Table;

/// A Hilbert curve through a number of dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HilbertCurve {
    dim_num: usize,
    bits: u32,
}

impl HilbertCurve {
    /// The most dimensions that the curve exists for.
    pub const MAX_DIMENSIONS: usize = 15;

    /// The curve for `dim_num` dimensions; `None` outside 1 to [`Self::MAX_DIMENSIONS`].
    #[must_use]
    pub fn new(dim_num: usize) -> Option<Self> {
        let num = u32::try_from(dim_num).ok()?;
        (1..=Self::MAX_DIMENSIONS).contains(&dim_num).then(|| Self {
            dim_num,
            bits: 63 / num,
        })
    }

    /// The bucket of a number in a domain: its place between the bounds, computed in `f64` (results
    /// are part of the format: fragments are sorted by them).
    #[must_use]
    pub fn number_bucket<T: Ordinal>(self, value: T, domain: (T, T)) -> u64 {
        let (low, high) = (domain.0.as_f64(), domain.1.as_f64());
        let max = ((1u64 << self.bits) - 1) as f64;
        truncate((value.as_f64() - low) / (high - low) * max)
    }

    /// The bucket of a string: its first eight bytes, big end first, each sign-extended as a C
    /// `char`.
    #[must_use]
    pub fn string_bucket(self, value: &[u8]) -> u64 {
        let mut bucket = 0u64;
        for i in 0..8 {
            bucket <<= 8;
            if let Some(&byte) = value.get(i) {
                bucket |= i64::from(byte.cast_signed()).cast_unsigned();
            }
        }
        bucket >> (64 - self.bits)
    }

    /// The position on the curve of a cell whose buckets are in `x`, one a dimension; `x` is
    /// overwritten.
    #[must_use]
    pub fn position(self, x: &mut [u64]) -> u64 {
        debug_assert_eq!(x.len(), self.dim_num);
        self.transpose(x);
        if let [first, last] = x {
            let mask = (1 << self.bits) - 1;
            return spread(*first & mask) << 1 | spread(*last & mask);
        }
        self.interleave(x)
    }

    /// The positions of cells given column by column, one column of buckets a dimension, all of
    /// `out`'s length: those that [`Self::position`] gives, several times as fast in two to four
    /// dimensions.
    pub fn positions(self, columns: &[Vec<u64>], out: &mut [u64]) {
        let table = Table::of(self.dim_num);
        match (table, columns) {
            (Some(table), [a, b]) => table.positions(self.bits, [a, b], out, |x| self.position(x)),
            (Some(table), [a, b, c]) => {
                table.positions(self.bits, [a, b, c], out, |x| self.position(x));
            }
            (Some(table), [a, b, c, d]) => {
                table.positions(self.bits, [a, b, c, d], out, |x| self.position(x));
            }
            _ => {
                let mut x = vec![0; columns.len()];
                for (i, out) in out.iter_mut().enumerate() {
                    for (x, column) in x.iter_mut().zip(columns) {
                        *x = column.get(i).copied().unwrap_or(0);
                    }
                    *out = self.position(&mut x);
                }
            }
        }
    }

    /// Whether cells of one position have equal coordinates, where all dimensions hold whole
    /// numbers and these lie in their domains, of which the lower and upper bounds are given.
    ///
    /// Positions tell buckets apart. Buckets tell whole numbers apart where they are at least twice
    /// as many, and where `f64` holds all of these; with one dimension there are more buckets than
    /// `f64` can hold.
    #[must_use]
    pub fn tells_apart(self, mut domains: impl Iterator<Item = (f64, f64)>) -> bool {
        let (most, exact) = (((1u64 << (self.bits - 1)) - 1) as f64, (1u64 << 53) as f64);
        self.dim_num > 1
            && domains.all(|(low, high)| low > -exact && high < exact && high - low <= most)
    }

    /// The bits of the numbers in turn, the lowest of the last one first.
    fn interleave(self, x: &[u64]) -> u64 {
        let mut position = 0;
        let mut out = 0;
        for bit in 0..self.bits {
            for value in x.iter().rev() {
                position |= (value >> bit & 1) << out;
                out += 1;
            }
        }
        position
    }

    /// From buckets to the position's bits, one to each dimension in turn.
    fn transpose(self, x: &mut [u64]) {
        let Some((first, rest)) = x.split_first_mut() else {
            return;
        };
        for bit in (1..self.bits).rev() {
            let (q, low) = (1u64 << bit, (1u64 << bit) - 1);
            // Without branches: the bits are as good as random.
            *first ^= low & ones_if(*first & q);
            for value in rest.iter_mut() {
                let set = ones_if(*value & q);
                let swap = (*first ^ *value) & low & !set;
                *first ^= low & set | swap;
                *value ^= swap;
            }
        }
        let mut previous = *first;
        for value in rest {
            *value ^= previous;
            previous = *value;
        }
        let Some((last, others)) = x.split_last_mut() else {
            return;
        };
        let before = *last;
        let mut shift = 1;
        while shift < self.bits {
            *last ^= *last >> shift;
            shift <<= 1;
        }
        let change = before ^ *last;
        for value in others {
            *value ^= change;
        }
    }
}

/// All bits if any is set, else none.
#[inline]
fn ones_if(bit: u64) -> u64 {
    0u64.wrapping_sub(u64::from(bit != 0))
}

/// The bits of a number below 2^32 with a 0 before each.
#[inline]
fn spread(value: u64) -> u64 {
    let mut x = value;
    x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

/// The integer part of a number as x86-64 converts `double` to `uint64_t`, which is what fragments
/// were sorted by: negative numbers wrap, NaN (of a domain of one value) is 2^63.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the point of this function"
)]
fn truncate(value: f64) -> u64 {
    if value.is_nan() {
        1 << 63
    } else if value < 0.0 {
        (value as i64).cast_unsigned()
    } else {
        value as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_positions_in_two_dimensions() {
        let curve = HilbertCurve {
            dim_num: 2,
            bits: 4,
        };
        let cells = [
            (0, 0),
            (1, 0),
            (1, 1),
            (0, 1),
            (0, 2),
            (0, 3),
            (1, 3),
            (1, 2),
            (2, 2),
            (2, 3),
            (3, 3),
        ];
        for (position, (x, y)) in cells.into_iter().enumerate() {
            assert_eq!(curve.position(&mut [x, y]), position as u64, "({x}, {y})");
        }
        assert_eq!(curve.position(&mut [15, 0]), 255);
    }

    #[test]
    fn every_cell_of_a_cube_is_one_step_from_the_next() {
        for (dim_num, bits) in [(2, 4), (3, 3), (4, 2)] {
            let curve = HilbertCurve { dim_num, bits };
            let mut cells = vec![None; 1 << (bits as usize * dim_num)];
            for cell in 0..cells.len() as u64 {
                let x: Vec<u64> = (0..dim_num)
                    .map(|d| cell >> (bits as usize * d) & ((1 << bits) - 1))
                    .collect();
                let position = curve.position(&mut x.clone());
                assert!(cells[position as usize].replace(x).is_none());
            }
            for pair in cells.windows(2) {
                let (a, b) = (pair[0].as_ref().unwrap(), pair[1].as_ref().unwrap());
                assert_eq!(a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).sum::<u64>(), 1);
            }
        }
    }

    #[test]
    fn buckets_are_those_of_the_format() {
        let curve = HilbertCurve::new(2).unwrap();
        assert_eq!(curve.bits, 31);
        assert_eq!(curve.number_bucket(0i32, (0, 3)), 0);
        assert_eq!(curve.number_bucket(3i32, (0, 3)), (1 << 31) - 1);
        assert_eq!(curve.number_bucket(0.5f32, (0.0, 1.0)), (1 << 30) - 1);
        assert_eq!(
            curve.number_bucket(7u8, (7, 7)),
            1 << 63,
            "a domain of one value"
        );
        assert_eq!(curve.string_bucket(b"cat"), 0x6361_7400 >> 1);
        assert_eq!(
            HilbertCurve::new(1).unwrap().number_bucket(1i64, (0, 1)),
            1 << 63
        );
        assert!(HilbertCurve::new(0).is_none() && HilbertCurve::new(16).is_none());
    }

    proptest! {
        #[test]
        fn two_dimensions_are_interleaved_as_any(a: u64, b: u64) {
            let curve = HilbertCurve::new(2).unwrap();
            let mut x = [a, b];
            curve.transpose(&mut x);
            prop_assert_eq!(curve.position(&mut [a, b]), curve.interleave(&x));
        }

        #[test]
        fn columns_have_the_positions_of_their_cells(dim_num in 1usize..16, seed: u64, drop in 0u32..64, odd in 0usize..40) {
            let curve = HilbertCurve::new(dim_num).unwrap();
            let mut state = seed;
            let mut random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state ^ state >> 29
            };
            let mut columns = vec![vec![0u64; 37]; dim_num];
            for bucket in columns.iter_mut().flatten() {
                *bucket = (random() & ((1 << curve.bits) - 1)) >> (drop % curve.bits);
            }
            // A coordinate outside its domain.
            if let Some(bucket) = columns[dim_num / 2].get_mut(odd) {
                *bucket = random();
            }
            let mut found = vec![0; 37];
            curve.positions(&columns, &mut found);
            for (i, found) in found.into_iter().enumerate() {
                let mut x: Vec<u64> = columns.iter().map(|column| column[i]).collect();
                prop_assert_eq!(found, curve.position(&mut x));
            }
        }

        #[test]
        fn buckets_tell_whole_numbers_apart(dim_num in 2usize..16, low in 1 - (1i64 << 53)..1 << 52, less in 0u32..8, value: u64) {
            let curve = HilbertCurve::new(dim_num).unwrap();
            let range = ((1i64 << (curve.bits - 1)) - 1) >> less.min(curve.bits - 1);
            let domain = (low, low + range);
            prop_assert!(curve.tells_apart(std::iter::once((domain.0 as f64, domain.1 as f64))));
            prop_assert!(!curve.tells_apart(std::iter::once((0.0, (1u64 << curve.bits) as f64))));
            if range > 0 {
                let value = low + (value % range as u64) as i64;
                prop_assert!(curve.number_bucket(value, domain) < curve.number_bucket(value + 1, domain));
                prop_assert!(curve.number_bucket(value + 1, domain) < 1 << curve.bits);
            }
        }

        #[test]
        fn no_input_panics(dim_num in 1usize..16, seed: u64) {
            let curve = HilbertCurve::new(dim_num).unwrap();
            let mut x: Vec<u64> = (0..dim_num as u64).map(|i| seed.rotate_left(i as u32 * 7).wrapping_mul(i + 3)).collect();
            let _ = curve.position(&mut x);
        }
    }
}

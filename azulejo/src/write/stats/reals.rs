//! Statistics of real numbers, as if they were looked at one after the other, at several a step.
//!
//! A sum depends on the order of its additions only where one of them rounds. Numbers that are all
//! multiples of one power of two, and whose sums all stay below 2^53 times that power, add up
//! without rounding, so that they may be added in any order; single-precision numbers nearly always
//! do. A block of which that is not so is added number by number.

use azulejo_format::datatype::Native;

/// Cells that are looked at together; they stay in the first cache.
const BLOCK: usize = 512;
/// Numbers a step.
const LANES: usize = 8;
/// Sums up to here are far from the type's limits.
const FAR_FROM_LIMIT: f64 = f64::MAX / 4.0;

/// A real number.
pub(super) trait Real: Native + Into<f64> {}

impl Real for f32 {}
impl Real for f64 {}

/// Statistics of the cells so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folded<T> {
    /// Of equals the last.
    pub min: T,
    /// Of equals the last.
    pub max: T,
    pub sum: f64,
    /// The sum has left its type somewhere on the way.
    pub over: bool,
}

impl<T: Real> Folded<T> {
    /// What was found before the first cell, the sum as bits of a double.
    pub fn new(min: T, max: T, sum_bits: u64) -> Self {
        Self {
            min,
            max,
            sum: f64::from_bits(sum_bits),
            over: false,
        }
    }

    /// Takes in the cells that `bytes` hold, in their order.
    pub fn take(&mut self, bytes: &[u8]) {
        let mut buffer = [T::default(); BLOCK];
        // Where sums keep rounding, as those of doubles do, finding out again costs more than it
        // brings.
        let (mut exact, mut rounded) = (0u32, 0u32);
        for bytes in bytes.chunks(BLOCK * T::SIZE) {
            let mut len = 0;
            for (place, cell) in buffer.iter_mut().zip(bytes.chunks_exact(T::SIZE)) {
                *place = T::read(cell);
                len += 1;
            }
            let cells = buffer.get(..len).unwrap_or_default();
            let Some((low, high)) = bounds(cells) else {
                continue;
            };
            // No sum on the way, whatever its order, is farther from zero.
            let largest = (-low.into()).max(high.into()).max(0.0);
            let bound = self.sum.abs() + largest * len as f64;
            let sum = if rounded <= exact + 2 {
                sum_exactly(self.sum, cells, bound)
            } else {
                None
            };
            match sum {
                Some(_) => exact += 1,
                None => rounded += 1,
            }
            let sum = sum.unwrap_or_else(|| {
                cells
                    .iter()
                    .fold(self.sum, |sum, cell| sum + (*cell).into())
            });
            if sum.is_nan() || bound > FAR_FROM_LIMIT {
                // Bounds of cells with NaN among them are none.
                self.take_one_by_one(cells);
                continue;
            }
            self.sum = sum;
            self.min = if self.min < low {
                self.min
            } else {
                last_of_equals(cells, low)
            };
            self.max = if self.max > high {
                self.max
            } else {
                last_of_equals(cells, high)
            };
        }
    }

    fn take_one_by_one(&mut self, cells: &[T]) {
        cells.iter().for_each(|cell| self.take_one(*cell));
    }

    /// Takes in one cell. The order of additions, and which of two equals or NaNs comes last, show
    /// in the result.
    #[inline]
    pub fn take_one(&mut self, cell: T) {
        self.min = if self.min < cell { self.min } else { cell };
        self.max = if self.max > cell { self.max } else { cell };
        let wide = cell.into();
        self.over |= (self.sum < 0.0) == (wide < 0.0) && self.sum.abs() > f64::MAX - wide.abs();
        self.sum += wide;
    }
}

/// The least and the greatest of some cells without NaN; of equals any.
fn bounds<T: Real>(cells: &[T]) -> Option<(T, T)> {
    let first = *cells.first()?;
    let (groups, rest) = cells.as_chunks::<LANES>();
    // One loop each: together they are not taken for what a processor has instructions for.
    let mut low = [first; LANES];
    for group in groups {
        low = std::array::from_fn(|i| if low[i] < group[i] { low[i] } else { group[i] });
    }
    let mut high = [first; LANES];
    for group in groups {
        high = std::array::from_fn(|i| {
            if high[i] > group[i] {
                high[i]
            } else {
                group[i]
            }
        });
    }
    let all = |lanes: [T; LANES]| lanes.into_iter().chain(rest.iter().copied());
    let least = all(low).fold(first, |a, b| if a < b { a } else { b });
    let greatest = all(high).fold(first, |a, b| if a > b { a } else { b });
    Some((least, greatest))
}

/// Adds up cells, none of which can take the sum farther from zero than `bound`; `None` where an
/// addition might round.
fn sum_exactly<T: Real>(start: f64, cells: &[T], bound: f64) -> Option<f64> {
    // What is a multiple of 2^(exponent - 52) and below 2^(exponent + 1) has one exact double.
    let exponent = (bound.to_bits() >> 52) as i64 - 1023;
    if cells.len() < LANES || !(-900..900).contains(&exponent) {
        return None;
    }
    let power = |exponent: i64| f64::from_bits((exponent + 1023).cast_unsigned() << 52);
    let steps = start * power(52 - exponent);
    if steps as i64 as f64 != steps {
        return None;
    }
    // Adding this and taking it away again rounds to multiples of 2^(exponent - 52): no cell
    // exceeds an eighth of the bound, so that all sums have the exponent of the constant.
    let rounder = 1.5 * power(exponent);
    let (mut sums, mut lost) = ([0.0; LANES], [0u64; LANES]);
    let (groups, rest) = cells.as_chunks::<LANES>();
    let lost_of = |cell: f64| ((cell + rounder) - rounder - cell).to_bits();
    for group in groups {
        for ((sum, lost), &cell) in sums.iter_mut().zip(&mut lost).zip(group) {
            let cell = cell.into();
            *lost |= lost_of(cell);
            *sum += cell;
        }
    }
    let rest = rest.iter().map(|cell| (*cell).into());
    let is_exact = lost
        .into_iter()
        .chain(rest.clone().map(lost_of))
        .all(|lost| lost == 0);
    is_exact.then(|| {
        sums.into_iter()
            .chain(rest)
            .fold(start, |sum, part| sum + part)
    })
}

/// The last of the cells that equal `value`, which one of them does: -0.0 and 0.0 are equal.
fn last_of_equals<T: Real>(cells: &[T], value: T) -> T {
    if value != T::default() {
        return value;
    }
    cells
        .iter()
        .rev()
        .copied()
        .find(|cell| *cell == value)
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn folded<T: Real>(cells: &[T], one_by_one: bool) -> (u64, u64, u64, bool) {
        let mut folded = Folded::new(T::HIGHEST, T::LOWEST, 0);
        if one_by_one {
            folded.take_one_by_one(cells);
        } else {
            let mut bytes = vec![0; cells.len() * T::SIZE];
            bytes
                .chunks_exact_mut(T::SIZE)
                .zip(cells)
                .for_each(|(place, cell)| cell.write(place));
            folded.take(&bytes);
        }
        // A NaN is a NaN.
        let bits = |value: f64| {
            if value.is_nan() {
                u64::MAX
            } else {
                value.to_bits()
            }
        };
        (
            bits(folded.min.into()),
            bits(folded.max.into()),
            bits(folded.sum),
            folded.over,
        )
    }

    fn agrees<T: Real>(cells: &[T]) {
        assert_eq!(folded(cells, false), folded(cells, true), "{cells:?}");
    }

    #[test]
    fn numbers_of_all_kinds_give_what_they_give_one_by_one() {
        let n = 3 * BLOCK + 5;
        let mut state = 7u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        let mut fill =
            |value: &dyn Fn(u32) -> f32| (0..n).map(|_| value(random())).collect::<Vec<f32>>();
        let smooth = fill(&|r| 280.0 + (r % 64) as f32 / 64.0);
        let mixed = fill(&|r| (r as f32 - 8_388_608.0) / 3e6);
        let tiny_and_huge = fill(&|r| f32::from_bits(r << 7));
        let zeros = fill(&|r| if r % 2 == 0 { 0.0 } else { -0.0 });
        for cells in [&smooth, &mixed, &tiny_and_huge, &zeros] {
            agrees(cells);
            let doubles: Vec<f64> = cells.iter().map(|cell| f64::from(*cell) * 1.1).collect();
            agrees(&doubles);
            for special in [
                f32::NAN,
                f32::INFINITY,
                f32::NEG_INFINITY,
                f32::MAX,
                -0.0,
                1e-40,
            ] {
                for at in [0, 3, BLOCK - 1, BLOCK + 100, n - 1] {
                    let mut cells = cells.clone();
                    cells[at] = special;
                    agrees(&cells);
                    let mut doubles = doubles.clone();
                    doubles[at] = f64::from(special) * 1e270;
                    doubles[n / 2] = f64::MAX;
                    agrees(&doubles);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_doubles_give_what_they_give_one_by_one(cells in prop::collection::vec(any::<f64>(), 0..40)) {
            agrees(&cells);
        }

        #[test]
        fn sums_that_must_round_are_rounded_in_order(
            cells in prop::collection::vec((-(1i64 << 53)..1 << 53, -60i32..60), 0..700),
        ) {
            let cells: Vec<f64> = cells.iter().map(|(digits, power)| *digits as f64 * 2f64.powi(*power)).collect();
            agrees(&cells);
        }

        #[test]
        fn sums_of_singles_agree(cells in prop::collection::vec((-(1i32 << 24)..1 << 24, -30i32..3), 0..1500)) {
            let cells: Vec<f32> = cells.iter().map(|(digits, power)| *digits as f32 * 2f32.powi(*power)).collect();
            agrees(&cells);
        }
    }
}

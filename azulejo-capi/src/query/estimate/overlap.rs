//! Which share of a tile's bounds a range takes, as the reference reckons it for estimates.

use azulejo_format::range::RangeRef;
use azulejo_format::schema::Dimension;
use azulejo_format::{Datatype, Range};

/// The share, from 0 (they do not meet) to 1 (the bounds lie within the range).
pub fn share(dimension: &Dimension, range: &Range, bounds: RangeRef<'_>) -> f64 {
    let both = (&*range.start, &*range.end, bounds.start, bounds.end);
    if dimension.is_var() {
        return strings(both.0, both.1, both.2, both.3);
    }
    match dimension.datatype {
        Datatype::Float32 => {
            let of = |b: &[u8]| b.first_chunk().map_or(f32::NAN, |b| f32::from_le_bytes(*b));
            reals(
                of(both.0),
                of(both.1),
                of(both.2),
                of(both.3),
                f32::MAX / 2.0,
            )
        }
        Datatype::Float64 => {
            let of = |b: &[u8]| b.first_chunk().map_or(f64::NAN, |b| f64::from_le_bytes(*b));
            reals(
                of(both.0),
                of(both.1),
                of(both.2),
                of(both.3),
                f64::MAX / 2.0,
            )
        }
        datatype => {
            let of = |b: &[u8]| whole(datatype, b);
            let bits = 8 * datatype.size() as u32;
            integers(
                of(both.0),
                of(both.1),
                of(both.2),
                of(both.3),
                limits(datatype, bits),
            )
        }
    }
}

/// Whether a datatype of whole numbers has negative ones.
fn is_signed(datatype: Datatype) -> bool {
    !matches!(
        datatype,
        Datatype::UInt8 | Datatype::UInt16 | Datatype::UInt32 | Datatype::UInt64 | Datatype::Bool
    )
}

/// A whole number out of its bytes.
pub fn whole(datatype: Datatype, bytes: &[u8]) -> i128 {
    let negative = is_signed(datatype) && bytes.last().is_some_and(|top| top & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    for (to, from) in wide.iter_mut().zip(bytes) {
        *to = *from;
    }
    i128::from_le_bytes(wide)
}

/// Bounds outside of these are halved before lengths are taken: the reference takes them in the
/// dimension's type. For 64 bits they are rounded as doubles are.
fn limits(datatype: Datatype, bits: u32) -> (i128, i128) {
    let step = if bits == 64 {
        1i128 << (if is_signed(datatype) { 9 } else { 10 })
    } else {
        1
    };
    let half = 1i128
        << if is_signed(datatype) {
            bits - 2
        } else {
            bits - 1
        };
    let upper = if bits == 64 { half } else { half - 1 };
    let lower = if is_signed(datatype) {
        step - half
    } else {
        i128::MIN
    };
    (lower, upper - step)
}

fn between(share: f64) -> f64 {
    if share <= 0.0 {
        f64::from_bits(1)
    } else if share >= 1.0 {
        1.0 - f64::EPSILON / 2.0
    } else {
        share
    }
}

fn integers(low: i128, high: i128, start: i128, end: i128, limits: (i128, i128)) -> f64 {
    if low > end || high < start {
        return 0.0;
    }
    if low <= start && end <= high {
        return 1.0;
    }
    let by = if end > limits.1 || start < limits.0 {
        2
    } else {
        1
    };
    let taken = high.min(end) / by - low.max(start) / by + 1;
    between(taken as f64 / (end / by - start / by + 1) as f64)
}

/// Lengths are taken in the dimension's type.
fn reals<T>(low: T, high: T, start: T, end: T, half: T) -> f64
where
    T: Copy
        + PartialOrd
        + Into<f64>
        + From<f32>
        + std::ops::Sub<Output = T>
        + std::ops::Div<Output = T>
        + std::ops::Neg<Output = T>,
{
    if low > end || high < start {
        return 0.0;
    }
    if low <= start && end <= high {
        return 1.0;
    }
    let by = T::from(if end >= half || start <= -half {
        2.0f32
    } else {
        1.0
    });
    let first = if low > start { low } else { start };
    let last = if high < end { high } else { end };
    let all: f64 = (end / by - start / by).into();
    if all == 0.0 {
        return 0.5;
    }
    let taken: f64 = (last / by - first / by).into();
    between(taken / all)
}

/// By the first character in which the bounds of the tile differ.
fn strings(low: &[u8], high: &[u8], start: &[u8], end: &[u8]) -> f64 {
    let open = high.is_empty();
    if low > end || (!open && high < start) {
        return 0.0;
    }
    let same = start.iter().zip(end).take_while(|(a, b)| a == b).count();
    let at = |text: &[u8]| text.get(same).map_or(0, |c| i64::from(*c as i8));
    let all = if start == end {
        1
    } else {
        at(end) - at(start) + 1
    };
    let first = low.max(start);
    let last = if open { end } else { high.min(end) };
    let taken = if first == last {
        1
    } else {
        at(last) - at(first) + 1
    };
    let share = taken as f64 / all.max(1) as f64;
    if first == start && last == end {
        1.0
    } else {
        between(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<const N: usize>(datatype: Datatype, range: [[u8; N]; 2], bounds: [[u8; N]; 2]) -> f64 {
        let dimension = Dimension::of_type("d", datatype);
        let [range, bounds] = [range, bounds].map(|[low, high]| Range::new(low, high));
        share(&dimension, &range, bounds.as_ref())
    }

    #[test]
    fn whole_numbers_are_counted_and_reals_measured() {
        let int = |a: i32, b: i32, c: i32, d: i32| {
            let bytes = |x: i32, y: i32| [x.to_le_bytes(), y.to_le_bytes()];
            of(Datatype::Int32, bytes(a, b), bytes(c, d))
        };
        assert_eq!(int(1, 4, 3, 12), 0.2);
        assert_eq!(int(1, 20, 3, 12), 1.0);
        assert_eq!(int(13, 20, 3, 12), 0.0);
        let real = |a: f64, b: f64, c: f64, d: f64| {
            let bytes = |x: f64, y: f64| [x.to_le_bytes(), y.to_le_bytes()];
            of(Datatype::Float64, bytes(a, b), bytes(c, d))
        };
        assert_eq!(real(1.0, 4.0, 3.0, 7.0), 0.25);
        assert_eq!(real(1.0, 3.0, 3.0, 7.0), f64::from_bits(1));
        assert_eq!(
            real(0.0, 1e308, 0.0, 1.7e308),
            1e308 / 2.0 / (1.7e308 / 2.0)
        );
    }

    #[test]
    fn strings_go_by_their_first_difference() {
        assert_eq!(strings(b"ab", b"ad", b"aa", b"ae"), 0.6);
        assert_eq!(strings(b"", b"", b"aa", b"ae"), 1.0);
        assert_eq!(strings(b"b", b"c", b"aa", b"ae"), 0.0);
    }
}

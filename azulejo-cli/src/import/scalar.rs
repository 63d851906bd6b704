//! Numbers, dates and times out of ASCII text, fast: import reads hundreds of millions of them.

use azulejo::format::datatype::Native;

/// An integer: digits with an optional sign. `None` for anything else and beyond 128 bits.
pub fn integer(text: &[u8]) -> Option<i128> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 38 {
        return None;
    }
    if let Some(small) = small_integer(digits) {
        return Some(if negative {
            -i128::from(small)
        } else {
            i128::from(small)
        });
    }
    let mut value = 0i128;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i128::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// At most 18 digits.
fn small_integer(digits: &[u8]) -> Option<i64> {
    if digits.len() > 18 {
        return None;
    }
    let mut value = 0i64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(value)
}

/// A finite or infinite number or NaN, as Rust, C and Python write them. Digits that stand for a
/// number beyond the type are not infinity.
pub fn real<T: Native + std::str::FromStr>(text: &[u8]) -> Option<T> {
    // Rust takes `infinity` and `nan` in any letter case, and so do we.
    let value: T = str::from_utf8(text).ok()?.parse().ok()?;
    let beyond = value.as_f64().is_infinite() && text.iter().any(u8::is_ascii_digit);
    (!beyond).then_some(value)
}

/// Nanoseconds in a day.
pub const DAY: i128 = 86_400_000_000_000;

/// A date or a date with a time of day, in nanoseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The instant.
    pub nanos: i128,
    /// What it says of it.
    pub precision: Precision,
}

/// How much of an instant is written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// The day.
    Day,
    /// The second, or the minute.
    Second,
    /// Up to three decimals.
    Milli,
    /// Up to six decimals.
    Micro,
    /// Up to nine decimals.
    Nano,
}

/// Reads `YYYY-MM-DD`, or that with `T` or a space and `HH:MM[:SS[.fraction]]` and perhaps `Z` or
/// `+HH:MM`. `None` for anything else, days that the calendar lacks included.
pub fn stamp(text: &[u8]) -> Option<Stamp> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (date, rest) = text.split_at_checked(10)?;
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = date else {
        return None;
    };
    let year = i64::from(two(y1, y2)? * 100 + two(y3, y4)?) * if negative { -1 } else { 1 };
    let (month, day) = (two(m1, m2)?, two(d1, d2)?);
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let midnight = i128::from(days(year, i64::from(month), i64::from(day))) * DAY;
    if rest.is_empty() {
        return Some(Stamp {
            nanos: midnight,
            precision: Precision::Day,
        });
    }
    let [b'T' | b't' | b' ', clock @ ..] = rest else {
        return None;
    };
    let (of_day, precision, zone) = clock_time(clock)?;
    let zone = match zone {
        [] | [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), h1, h2, minutes @ ..] => {
            let minutes = match minutes {
                [] => 0,
                [b':', m1, m2] | [m1, m2] => two(*m1, *m2).filter(|&m| m < 60)?,
                _ => return None,
            };
            let offset =
                i128::from(two(*h1, *h2).filter(|&h| h < 24)? * 60 + minutes) * 60_000_000_000;
            if *sign == b'-' { -offset } else { offset }
        }
        _ => return None,
    };
    Some(Stamp {
        nanos: midnight + of_day - zone,
        precision,
    })
}

/// `HH:MM[:SS[.fraction]]` in nanoseconds, how precise it is, and what follows.
fn clock_time(text: &[u8]) -> Option<(i128, Precision, &[u8])> {
    let [h1, h2, b':', m1, m2, rest @ ..] = text else {
        return None;
    };
    let hours = two(*h1, *h2).filter(|&h| h < 24)?;
    let minutes = two(*m1, *m2).filter(|&m| m < 60)?;
    let mut nanos = i128::from(hours * 60 + minutes) * 60_000_000_000;
    let [b':', s1, s2, rest @ ..] = rest else {
        return Some((nanos, Precision::Second, rest));
    };
    nanos += i128::from(two(*s1, *s2).filter(|&s| s < 60)?) * 1_000_000_000;
    let [b'.' | b',', fraction @ ..] = rest else {
        return Some((nanos, Precision::Second, rest));
    };
    let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
    let (fraction, rest) = fraction.split_at(digits);
    let precision = match digits {
        1..=3 => Precision::Milli,
        4..=6 => Precision::Micro,
        7..=9 => Precision::Nano,
        _ => return None,
    };
    nanos += i128::from(small_integer(fraction)?) * 10i128.pow(9 - digits as u32);
    Some((nanos, precision, rest))
}

fn two(a: u8, b: u8) -> Option<u32> {
    let (a, b) = (a.wrapping_sub(b'0'), b.wrapping_sub(b'0'));
    (a <= 9 && b <= 9).then(|| u32::from(a) * 10 + u32::from(b))
}

fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years are counted from March, so that a leap day ends them.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day - 719_469
}

/// The first of January 1970 counted in months, from seconds since then: the month that holds them,
/// and whether they are its very beginning.
pub fn month_of(seconds: i64) -> (i64, bool) {
    let day = seconds.div_euclid(86_400);
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let date = of_year - (153 * march + 2) / 5 + 1;
    let (month, carry) = if march < 10 {
        (march + 2, 0)
    } else {
        (march - 10, 1)
    };
    let months = (era * 400 + year + carry - 1970) * 12 + month;
    (months, date == 1 && seconds.rem_euclid(86_400) == 0)
}

/// A duration as ISO 8601 has it, `PT3600S` or `-P1DT2H0.5S`, in nanoseconds: what Arrow writes.
pub fn duration(text: &[u8]) -> Option<i128> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let [b'P', rest @ ..] = text else { return None };
    let (mut rest, mut in_time, mut total, mut parts) = (rest, false, 0i128, 0);
    while !rest.is_empty() {
        if let ([b'T', after @ ..], false) = (rest, in_time) {
            (rest, in_time) = (after, true);
            continue;
        }
        let number = rest
            .iter()
            .take_while(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-'))
            .count();
        let (number, after) = rest.split_at(number);
        let (&unit, after) = after.split_first()?;
        let nanos = match (unit, in_time) {
            (b'D', false) => DAY,
            (b'H', true) => 3_600_000_000_000,
            (b'M', true) => 60_000_000_000,
            (b'S', true) => 1_000_000_000,
            _ => return None,
        };
        total = total.checked_add(decimal(number, nanos)?)?;
        rest = after;
        parts += 1;
    }
    (parts > 0).then_some(if negative { -total } else { total })
}

/// A decimal number of units of so many nanoseconds.
fn decimal(text: &[u8], unit: i128) -> Option<i128> {
    let (whole, fraction) = match memchr::memchr(b'.', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[][..]),
    };
    let negative = whole.first() == Some(&b'-');
    let mut nanos = integer(whole)?.checked_mul(unit)?;
    if !fraction.is_empty() {
        let part = i128::from(small_integer(fraction)?) * unit / 10i128.pow(fraction.len() as u32);
        nanos += if negative { -part } else { part };
    }
    Some(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_any_width() {
        for (text, value) in [
            ("0", 0),
            ("-1", -1),
            ("+7", 7),
            ("-9223372036854775808", i128::from(i64::MIN)),
            ("18446744073709551615", i128::from(u64::MAX)),
            (
                "99999999999999999999999999999999999999",
                99_999_999_999_999_999_999_999_999_999_999_999_999,
            ),
        ] {
            assert_eq!(integer(text.as_bytes()), Some(value), "{text}");
        }
        for text in [
            "",
            "-",
            "+",
            "1.0",
            "1e3",
            " 1",
            "--1",
            "0x10",
            "1_000",
            &"9".repeat(39),
        ] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn dates_agree_with_the_calendar() {
        let at = |text: &str| stamp(text.as_bytes()).map(|s| (s.nanos, s.precision));
        assert_eq!(at("1970-01-02"), Some((DAY, Precision::Day)));
        assert_eq!(at("2024-02-29"), Some((19_782 * DAY, Precision::Day)));
        assert_eq!(
            at("2024-05-01T10:00:01"),
            Some((1_714_557_601_000_000_000, Precision::Second))
        );
        assert_eq!(
            at("2024-05-01 10:00"),
            Some((1_714_557_600_000_000_000, Precision::Second))
        );
        assert_eq!(
            at("2024-05-01T12:00:00.250+02:00"),
            Some((1_714_557_600_250_000_000, Precision::Milli))
        );
        assert_eq!(
            at("1969-12-31T23:59:59.999999999Z"),
            Some((-1, Precision::Nano))
        );
        for text in [
            "2023-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-01-00",
            "2024-1-1",
            "2024-01-01T",
            "2024-01-01T24:00",
            "2024-01-01T10:00:61",
            "2024-01-01T10:00:00.",
            "2024-01-01T10:00:00.0000000001",
            "2024-01-01X10:00",
            "20240101",
            "",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
        for (text, month, first) in [
            ("1970-01-01", 0, true),
            ("1969-12-31", -1, false),
            ("2024-02-29", 649, false),
            ("2024-03-01", 650, true),
        ] {
            let seconds = (stamp(text.as_bytes()).unwrap().nanos / 1_000_000_000) as i64;
            assert_eq!(month_of(seconds), (month, first), "{text}");
        }
    }

    #[test]
    fn durations_as_arrow_writes_them() {
        for (text, nanos) in [
            ("PT3600S", 3_600_000_000_000),
            ("-PT0.001S", -1_000_000),
            ("P1DT2H3M4.5S", DAY + 7_384_500_000_000),
            ("P0D", 0),
        ] {
            assert_eq!(duration(text.as_bytes()), Some(nanos), "{text}");
        }
        for text in ["P", "PT", "1H", "P1H", "PT1D", "PTS", "PT1S1"] {
            assert_eq!(duration(text.as_bytes()), None, "{text}");
        }
    }
}

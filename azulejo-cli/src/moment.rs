//! Dates and times as people write them: ISO 8601 in UTC, down to attoseconds.

use jiff::civil::{Date, DateTime};
use jiff::{Timestamp, ToSpan, tz::TimeZone};

/// Attoseconds in a second: the finest unit that a datetime datatype has.
const SECOND: i128 = 1_000_000_000_000_000_000;
/// Attoseconds in a millisecond.
const MILLISECOND: i128 = SECOND / 1000;

/// A date or time as written: all the instants that it names. `2024-05` names a month,
/// `2024-05-01T10:30` a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The first instant, in attoseconds since 1970-01-01T00:00:00Z.
    pub first: i128,
    /// The last instant.
    pub last: i128,
}

impl Moment {
    /// Reads `YYYY`, `YYYY-MM`, `YYYY-MM-DD` and `YYYY-MM-DDTHH[:MM[:SS[.fraction]]][Z|+HH:MM]`; a
    /// space can stand for the `T`. `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (sign, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let (date, time) = match unsigned.find(['T', 't', ' ']) {
            Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
            None => (unsigned, None),
        };
        let mut parts = date.split('-');
        let year = sign * number(parts.next()?, 4)? as i16;
        let Some(month) = parts.next() else {
            return time
                .is_none()
                .then(|| Self::between(Date::new(year, 1, 1).ok()?, 1.year()))?;
        };
        let month = number(month, 2)? as i8;
        let Some(day) = parts.next() else {
            return time
                .is_none()
                .then(|| Self::between(Date::new(year, month, 1).ok()?, 1.month()))?;
        };
        let date = Date::new(year, month, number(day, 2)? as i8).ok()?;
        if parts.next().is_some() {
            return None;
        }
        let Some(time) = time else {
            return Self::between(date, 1.day());
        };
        let (clock, zone) = split_zone(time)?;
        let (offset, length) = parse_clock(clock)?;
        let first = midnight(date) + offset - zone;
        Some(Self {
            first,
            last: first + length - 1,
        })
    }

    fn between(date: Date, span: jiff::Span) -> Option<Self> {
        let first = midnight(date);
        // The year 9999 is the last one that the calendar knows.
        let next = date
            .checked_add(span)
            .map_or_else(|_| midnight(Date::MAX) + 86_400 * SECOND, midnight);
        Some(Self {
            first,
            last: next - 1,
        })
    }

    /// The first and the last millisecond since the epoch, for time travel; moments before the
    /// epoch count as 0.
    pub fn milliseconds(self) -> (u64, u64) {
        let ms = |at: i128| u64::try_from(at.div_euclid(MILLISECOND)).unwrap_or(0);
        (ms(self.first), ms(self.last))
    }
}

/// A point in time travel: milliseconds since the epoch, or a date. Gives the first and last
/// millisecond meant.
pub fn parse_timestamp(text: &str) -> Result<(u64, u64), String> {
    let text = text.trim();
    // Four digits are a year: no array was written in the first ten seconds of 1970.
    if text.len() != 4
        && let Ok(ms) = text.parse::<u64>()
    {
        return Ok((ms, ms));
    }
    if text == "0" {
        return Ok((0, 0));
    }
    if let Some(found) = relative(text, Timestamp::now().as_millisecond()) {
        return Ok(found);
    }
    Moment::parse(text).map(Moment::milliseconds).ok_or_else(|| {
        format!(
            "{text:?} is not a time; write milliseconds since 1970 (1714557600000), a UTC date \
             (2024-05-01, 2024-05-01T10:00:00.250), now, today, yesterday, or -90m (also s, h, d, w)"
        )
    })
}

/// Times as seen from `now`: `now`, `today`, `yesterday`, `-90m`.
fn relative(text: &str, now: i64) -> Option<(u64, u64)> {
    const DAY: i64 = 86_400_000;
    let day = |days: i64| {
        let first = (now.div_euclid(DAY) + days) * DAY;
        Some((
            u64::try_from(first).ok()?,
            u64::try_from(first + DAY - 1).ok()?,
        ))
    };
    match text {
        "now" => return Some((u64::try_from(now).ok()?, u64::try_from(now).ok()?)),
        "today" => return day(0),
        "yesterday" => return day(-1),
        _ => {}
    }
    let span = text.strip_prefix('-')?;
    let (digits, unit) = span.split_at_checked(span.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => DAY,
        "w" => 7 * DAY,
        _ => return None,
    };
    let span = digits.parse::<u32>().ok().map(i64::from)?;
    let at = u64::try_from(now.checked_sub(span.checked_mul(unit)?)?).unwrap_or(0);
    Some((at, at))
}

/// A millisecond since the epoch as an ISO date and time.
pub fn timestamp_text(ms: u64) -> String {
    match i64::try_from(ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
    {
        Some(at) => at
            .to_zoned(TimeZone::UTC)
            .datetime()
            .strftime("%Y-%m-%dT%H:%M:%S%.fZ")
            .to_string(),
        None => ms.to_string(),
    }
}

/// Attoseconds into the day and the length of the unit named, from `HH[:MM[:SS[.fraction]]]`.
pub fn parse_clock(text: &str) -> Option<(i128, i128)> {
    let mut parts = text.split(':');
    let hour = number(parts.next()?, 2).filter(|&h| h < 24)?;
    let mut offset = i128::from(hour) * 3600 * SECOND;
    let Some(minute) = parts.next() else {
        return Some((offset, 3600 * SECOND));
    };
    offset += i128::from(number(minute, 2).filter(|&m| m < 60)?) * 60 * SECOND;
    let Some(second) = parts.next() else {
        return Some((offset, 60 * SECOND));
    };
    if parts.next().is_some() {
        return None;
    }
    let (whole, fraction) = match second.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (second, None),
    };
    offset += i128::from(number(whole, 2).filter(|&s| s < 60)?) * SECOND;
    let Some(fraction) = fraction else {
        return Some((offset, SECOND));
    };
    if fraction.is_empty() || fraction.len() > 18 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let unit = 10i128.pow(18 - fraction.len() as u32);
    Some((offset + fraction.parse::<i128>().ok()? * unit, unit))
}

/// The clock and the zone's offset from UTC in attoseconds.
fn split_zone(time: &str) -> Option<(&str, i128)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = time.find(['+', '-']) else {
        return Some((time, 0));
    };
    let sign = if time.as_bytes().get(at) == Some(&b'-') {
        -1
    } else {
        1
    };
    let (offset, _) = parse_clock(&time[at + 1..])?;
    Some((&time[..at], sign * offset))
}

/// A decimal number of exactly `digits` digits.
fn number(text: &str, digits: usize) -> Option<u16> {
    (text.len() == digits && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

fn midnight(date: Date) -> i128 {
    let days = date
        .since(Date::constant(1970, 1, 1))
        .map_or(0, |span| span.get_days());
    i128::from(days) * 86_400 * SECOND
}

/// Attoseconds in a tick of the datetime or time units of fixed length, by the datatype's suffix:
/// week to attosecond.
pub fn tick_length(unit: &str) -> Option<i128> {
    Some(match unit {
        "WEEK" => 7 * 86_400 * SECOND,
        "DAY" => 86_400 * SECOND,
        "HR" => 3600 * SECOND,
        "MIN" => 60 * SECOND,
        "SEC" => SECOND,
        "MS" => MILLISECOND,
        "US" => SECOND / 1_000_000,
        "NS" => SECOND / 1_000_000_000,
        "PS" => SECOND / 1_000_000_000_000,
        "FS" => SECOND / 1_000_000_000_000_000,
        "AS" => 1,
        _ => return None,
    })
}

/// The tick of `unit` that holds an instant; `None` if it does not fit 64 bits.
pub fn tick_of(unit: &str, instant: i128) -> Option<i64> {
    let ticks = match unit {
        "YEAR" | "MONTH" => {
            let date = date_of(instant.div_euclid(86_400 * SECOND))?;
            let years = i128::from(date.year()) - 1970;
            if unit == "YEAR" {
                years
            } else {
                years * 12 + i128::from(date.month()) - 1
            }
        }
        _ => instant.div_euclid(tick_length(unit)?),
    };
    i64::try_from(ticks).ok()
}

/// A tick of `unit` since the epoch in ISO form, as precise as the unit; `None` beyond the
/// calendar's years.
pub fn tick_text(unit: &str, tick: i64) -> Option<String> {
    match unit {
        "YEAR" => {
            let year = i16::try_from(tick.checked_add(1970)?).ok()?;
            return Some(year_text(year));
        }
        "MONTH" => {
            let year = i16::try_from(tick.div_euclid(12).checked_add(1970)?).ok()?;
            return Some(format!(
                "{}-{:02}",
                year_text(year),
                tick.rem_euclid(12) + 1
            ));
        }
        _ => {}
    }
    let instant = i128::from(tick).checked_mul(tick_length(unit)?)?;
    let day = 86_400 * SECOND;
    let date = date_of(instant.div_euclid(day))?;
    let year = year_text(date.year());
    let date_text = format!("{year}-{:02}-{:02}", date.month(), date.day());
    if matches!(unit, "WEEK" | "DAY") {
        return Some(date_text);
    }
    Some(format!(
        "{date_text}T{}",
        clock_text(unit, instant.rem_euclid(day))
    ))
}

/// A year in four digits, behind a sign if it is before the year 0.
fn year_text(year: i16) -> String {
    let sign = if year < 0 { "-" } else { "" };
    format!("{sign}{:04}", year.unsigned_abs())
}

/// Attoseconds into a day as `HH:MM[:SS[.fraction]]`, as precise as the unit.
pub fn clock_text(unit: &str, of_day: i128) -> String {
    let seconds = of_day / SECOND;
    let mut out = format!("{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
    let digits = match unit {
        "HR" | "MIN" => return out,
        "SEC" => 0,
        "MS" => 3,
        "US" => 6,
        "NS" => 9,
        "PS" => 12,
        "FS" => 15,
        _ => 18,
    };
    out.push_str(&format!(":{:02}", seconds % 60));
    if digits > 0 {
        let fraction = format!("{:018}", of_day % SECOND);
        out.push('.');
        out.push_str(&fraction[..digits]);
    }
    out
}

fn date_of(days: i128) -> Option<Date> {
    let days = i64::try_from(days)
        .ok()
        .filter(|d| d.unsigned_abs() < 5_000_000)?;
    let epoch = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
    Some(epoch.checked_add(days.days()).ok()?.date())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_names_all_its_instants() {
        let day = Moment::parse("1970-01-02").unwrap();
        assert_eq!(day.milliseconds(), (86_400_000, 2 * 86_400_000 - 1));
        let month = Moment::parse("1970-02").unwrap();
        assert_eq!(month.milliseconds(), (31 * 86_400_000, 59 * 86_400_000 - 1));
        let second = Moment::parse("2024-05-01T10:00:01Z").unwrap();
        assert_eq!(
            second.milliseconds(),
            (1_714_557_601_000, 1_714_557_601_999)
        );
        let zoned = Moment::parse("2024-05-01 12:00:01+02:00").unwrap();
        assert_eq!(zoned, second);
        assert_eq!(
            Moment::parse("2024-05-01T10:00:01.25")
                .unwrap()
                .milliseconds()
                .0,
            1_714_557_601_250
        );
        assert_eq!(Moment::parse("1969").unwrap().milliseconds(), (0, 0));
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "x",
            "24-05-01",
            "2024-13",
            "2023-02-29",
            "2024-05-01T",
            "2024-05-01T25",
            "2024-5-1",
            "12:00",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }

    #[test]
    fn timestamps_are_milliseconds_or_dates() {
        assert_eq!(
            parse_timestamp("1714557600000"),
            Ok((1_714_557_600_000, 1_714_557_600_000))
        );
        assert_eq!(parse_timestamp("2"), Ok((2, 2)));
        assert_eq!(parse_timestamp("1970").unwrap().0, 0);
        let now = 1_714_557_600_250;
        assert_eq!(
            relative("now", now),
            Some((1_714_557_600_250, 1_714_557_600_250))
        );
        assert_eq!(
            relative("-1h", now),
            Some((1_714_554_000_250, 1_714_554_000_250))
        );
        assert_eq!(relative("-2w", now).unwrap().0, 1_713_348_000_250);
        assert_eq!(relative("-99999w", now), Some((0, 0)));
        assert_eq!(
            relative("yesterday", now),
            Moment::parse("2024-04-30").map(Moment::milliseconds)
        );
        assert_eq!(
            relative("today", now),
            Moment::parse("2024-05-01").map(Moment::milliseconds)
        );
        for text in ["-", "-h", "-5", "-5y", "-é", "1h", ""] {
            assert_eq!(relative(text, now), None, "{text}");
        }
        assert!(parse_timestamp("tomorrow").is_err());
        assert!(parse_timestamp("-5").is_err());
        assert_eq!(timestamp_text(1_714_557_600_250), "2024-05-01T10:00:00.25Z");
        assert_eq!(timestamp_text(1), "1970-01-01T00:00:00.001Z");
        assert_eq!(timestamp_text(u64::MAX), u64::MAX.to_string());
    }

    #[test]
    fn ticks_go_both_ways() {
        for (unit, tick, text) in [
            ("YEAR", 50, "2020"),
            ("MONTH", -1, "1969-12"),
            ("WEEK", 1, "1970-01-08"),
            ("DAY", 18262, "2020-01-01"),
            ("DAY", -1, "1969-12-31"),
            ("HR", 25, "1970-01-02T01:00"),
            ("MIN", -1, "1969-12-31T23:59"),
            ("SEC", 1_714_557_600, "2024-05-01T10:00:00"),
            ("MS", -1, "1969-12-31T23:59:59.999"),
            ("NS", 1, "1970-01-01T00:00:00.000000001"),
            ("AS", -1, "1969-12-31T23:59:59.999999999999999999"),
        ] {
            assert_eq!(
                tick_text(unit, tick).as_deref(),
                Some(text),
                "{unit} {tick}"
            );
            let moment = Moment::parse(text).unwrap();
            assert_eq!(tick_of(unit, moment.first), Some(tick), "{unit} {text}");
        }
        for unit in ["YEAR", "MONTH", "WEEK", "DAY", "HR", "MIN", "SEC"] {
            assert_eq!(tick_text(unit, i64::MAX), None, "{unit}");
            assert_eq!(tick_text(unit, i64::MIN + 1), None, "{unit}");
        }
        assert_eq!(
            tick_of("AS", Moment::parse("2024").unwrap().first),
            None,
            "beyond 64 bits"
        );
    }
}

//! Ticks of `DATETIME_*` and `TIME_*` values as ISO 8601 text and back.
//!
//! Datetimes are ticks since 1970-01-01T00:00:00 in the proleptic Gregorian calendar, without leap
//! seconds; weeks begin on that day too. As in NumPy, the least tick is no time at all, written
//! `NaT`.

use azulejo_format::Datatype;
use std::fmt::Write;

/// The length of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TickUnit {
    Years,
    Months,
    /// This many seconds.
    Seconds(i128),
    /// A second is ten to this power of ticks.
    Decimals(u32),
}

fn unit(datatype: Datatype) -> Option<(TickUnit, &'static str)> {
    use Datatype as D;
    Some(match datatype {
        D::DateTimeYear => (TickUnit::Years, "years"),
        D::DateTimeMonth => (TickUnit::Months, "months"),
        D::DateTimeWeek => (TickUnit::Seconds(7 * 86_400), "weeks"),
        D::DateTimeDay => (TickUnit::Seconds(86_400), "days"),
        D::DateTimeHour | D::TimeHour => (TickUnit::Seconds(3_600), "hours"),
        D::DateTimeMinute | D::TimeMinute => (TickUnit::Seconds(60), "minutes"),
        D::DateTimeSecond | D::TimeSecond => (TickUnit::Seconds(1), "seconds"),
        D::DateTimeMilli | D::TimeMilli => (TickUnit::Decimals(3), "milliseconds"),
        D::DateTimeMicro | D::TimeMicro => (TickUnit::Decimals(6), "microseconds"),
        D::DateTimeNano | D::TimeNano => (TickUnit::Decimals(9), "nanoseconds"),
        D::DateTimePico | D::TimePico => (TickUnit::Decimals(12), "picoseconds"),
        D::DateTimeFemto | D::TimeFemto => (TickUnit::Decimals(15), "femtoseconds"),
        D::DateTimeAtto | D::TimeAtto => (TickUnit::Decimals(18), "attoseconds"),
        _ => return None,
    })
}

/// Seconds since the epoch and a fraction in attoseconds.
struct Instant {
    seconds: i128,
    attos: i128,
}

const ATTOS: i128 = 10i128.pow(18);

/// The days from 1970-01-01 to a date.
pub(super) fn days_from_date(year: i128, month: i128, day: i128) -> i128 {
    // Years are counted from March, so that a leap day ends them.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day
        - 1
        - 719_468
}

/// The year, month and day of a number of days since 1970-01-01.
pub(super) fn date_from_days(days: i128) -> (i128, i128, i128) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + carry, month, date)
}

fn days_in_month(year: i128, month: i128) -> i128 {
    let (next_year, next) = if month == 12 {
        (year + 1, 1)
    } else {
        (year, month + 1)
    };
    days_from_date(next_year, next, 1) - days_from_date(year, month, 1)
}

/// The ticks of a text such as `2020-01-31`, `2020-01`, `2020-01-31T12:30:00.25`, `2020-01-31
/// 12:30Z`, or for `TIME_*` types `12:30:00.25` or `-100:00`.
///
/// # Errors
/// What is wrong with the text, in a few words: it is no such time, the type's ticks are too long
/// to say it, or it lies too far away.
pub fn parse_ticks(text: &str, datatype: Datatype) -> Result<i64, String> {
    let Some((unit, name)) = unit(datatype) else {
        return Err(format!("{datatype} has no ticks"));
    };
    if text.eq_ignore_ascii_case("nat") {
        return Ok(i64::MIN);
    }
    let mut scan = Scan { rest: text };
    let instant = if datatype.is_time() {
        duration(&mut scan)
    } else {
        datetime(&mut scan)
    };
    let instant = instant.filter(|_| scan.rest.is_empty()).ok_or_else(|| {
        let example = if datatype.is_time() {
            "12:30:00.25"
        } else {
            "2020-01-31 or 2020-01-31T12:30:00.25"
        };
        format!("{text:?} is no such value: write it like {example}, or as a number of {name}")
    })?;
    let coarse = || format!("{text:?} is not a whole number of {name}, which {datatype} counts");
    let ticks = match unit {
        TickUnit::Years | TickUnit::Months => {
            let (days, rest) = (
                instant.seconds.div_euclid(86_400),
                instant.seconds.rem_euclid(86_400),
            );
            let (year, month, day) = date_from_days(days);
            if rest != 0
                || instant.attos != 0
                || day != 1
                || (unit == TickUnit::Years && month != 1)
            {
                return Err(coarse());
            }
            if unit == TickUnit::Years {
                year - 1970
            } else {
                (year - 1970) * 12 + month - 1
            }
        }
        TickUnit::Seconds(n) => {
            if instant.attos != 0 || instant.seconds.rem_euclid(n) != 0 {
                return Err(coarse());
            }
            instant.seconds.div_euclid(n)
        }
        TickUnit::Decimals(n) => {
            let tick = 10i128.pow(18 - n);
            if instant.attos % tick != 0 {
                return Err(coarse());
            }
            let whole = instant.seconds.checked_mul(10i128.pow(n));
            whole.map_or(i128::MAX, |whole| whole + instant.attos / tick)
        }
    };
    i64::try_from(ticks).map_err(|_| format!("{text:?} is too far away for {datatype}"))
}

/// The text of a number of ticks, as [`parse_ticks`] reads it; the number itself for other types.
#[must_use]
pub fn format_ticks(ticks: i64, datatype: Datatype) -> String {
    let Some((unit, _)) = unit(datatype) else {
        return ticks.to_string();
    };
    if ticks == i64::MIN {
        return "NaT".into();
    }
    let ticks = i128::from(ticks);
    let (seconds, fraction, digits) = match unit {
        TickUnit::Years => return format!("{}", Year(1970 + ticks)),
        TickUnit::Months => {
            return format!(
                "{}-{:02}",
                Year(1970 + ticks.div_euclid(12)),
                ticks.rem_euclid(12) + 1
            );
        }
        TickUnit::Seconds(n) => (ticks * n, 0, 0),
        TickUnit::Decimals(n) => {
            let second = 10i128.pow(n);
            (
                ticks.div_euclid(second),
                ticks.rem_euclid(second),
                n as usize,
            )
        }
    };
    let mut out = String::new();
    if datatype.is_time() {
        // A negative duration is the sign and its length.
        let second = 10i128.pow(u32::try_from(digits).unwrap_or(0));
        let total = seconds * second + fraction;
        let (seconds, fraction) = (total.abs() / second, total.abs() % second);
        let sign = if total < 0 { "-" } else { "" };
        let _ = write!(
            out,
            "{sign}{:02}:{:02}:{:02}",
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60
        );
        push_fraction(&mut out, fraction, digits);
        return out;
    }
    let (year, month, day) = date_from_days(seconds.div_euclid(86_400));
    let _ = write!(out, "{}-{month:02}-{day:02}", Year(year));
    let second = seconds.rem_euclid(86_400);
    match unit {
        TickUnit::Seconds(n) if n >= 86_400 => {}
        _ => {
            let _ = write!(
                out,
                "T{:02}:{:02}:{:02}",
                second / 3_600,
                second / 60 % 60,
                second % 60
            );
        }
    }
    push_fraction(&mut out, fraction, digits);
    out
}

fn push_fraction(out: &mut String, fraction: i128, digits: usize) {
    if digits > 0 {
        let _ = write!(out, ".{fraction:0digits$}");
    }
}

/// A year with at least four digits and a sign where ISO 8601 wants one.
struct Year(i128);

impl std::fmt::Display for Year {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0..=9999 => write!(f, "{:04}", self.0),
            year => write!(f, "{year:+05}"),
        }
    }
}

struct Scan<'a> {
    rest: &'a str,
}

impl Scan<'_> {
    fn eat(&mut self, any_of: &[char]) -> Option<char> {
        let c = self.rest.chars().next().filter(|c| any_of.contains(c))?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// A number of `min` to `max` decimal digits.
    fn number(&mut self, min: usize, max: usize) -> Option<i128> {
        let len = self
            .rest
            .bytes()
            .take(max)
            .take_while(u8::is_ascii_digit)
            .count();
        let (digits, rest) = self.rest.split_at_checked(len).filter(|_| len >= min)?;
        self.rest = rest;
        digits.parse().ok()
    }

    /// `:MM[:SS[.fraction]]`, as seconds and attoseconds.
    fn minutes(&mut self) -> Option<Instant> {
        let mut time = Instant {
            seconds: 0,
            attos: 0,
        };
        if self.eat(&[':']).is_none() {
            return Some(time);
        }
        time.seconds = 60 * self.number(2, 2).filter(|m| *m < 60)?;
        if self.eat(&[':']).is_none() {
            return Some(time);
        }
        time.seconds += self.number(2, 2).filter(|s| *s < 60)?;
        if self.eat(&['.', ',']).is_some() {
            let before = self.rest.len();
            let fraction = self.number(1, 18)?;
            let digits = u32::try_from(before - self.rest.len()).ok()?;
            time.attos = fraction * 10i128.pow(18 - digits);
        }
        Some(time)
    }
}

fn datetime(scan: &mut Scan<'_>) -> Option<Instant> {
    let negative = scan.eat(&['+', '-']) == Some('-');
    let year = scan.number(4, 19)?;
    let year = if negative { -year } else { year };
    let (mut month, mut day) = (1, 1);
    if scan.eat(&['-']).is_some() {
        month = scan.number(2, 2).filter(|m| (1..=12).contains(m))?;
        if scan.eat(&['-']).is_some() {
            day = scan
                .number(2, 2)
                .filter(|d| (1..=days_in_month(year, month)).contains(d))?;
        }
    }
    let mut instant = Instant {
        seconds: days_from_date(year, month, day) * 86_400,
        attos: 0,
    };
    if scan.eat(&['T', 't', ' ']).is_some() {
        let hour = scan.number(2, 2).filter(|h| *h < 24)?;
        let time = scan.minutes()?;
        instant.seconds += hour * 3_600 + time.seconds;
        instant.attos = time.attos;
        if let Some(sign) = scan.eat(&['Z', 'z', '+', '-'])
            && let '+' | '-' = sign
        {
            let hours = scan.number(2, 2).filter(|h| *h < 24)?;
            scan.eat(&[':']);
            let minutes = if scan.rest.is_empty() {
                0
            } else {
                scan.number(2, 2).filter(|m| *m < 60)?
            };
            let ahead = hours * 3_600 + minutes * 60;
            instant.seconds -= if sign == '+' { ahead } else { -ahead };
        }
    }
    Some(instant)
}

fn duration(scan: &mut Scan<'_>) -> Option<Instant> {
    let negative = scan.eat(&['+', '-']) == Some('-');
    let hours = scan.number(1, 19)?;
    if !scan.rest.starts_with(':') {
        return None;
    }
    let mut time = scan.minutes()?;
    time.seconds += hours * 3_600;
    if negative {
        time.seconds = -time.seconds;
        if time.attos > 0 {
            time.seconds -= 1;
            time.attos = ATTOS - time.attos;
        }
    }
    Some(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_times() {
        use Datatype as D;
        for (text, datatype, ticks) in [
            ("1970-01-01", D::DateTimeDay, 0),
            ("1969-12-31", D::DateTimeDay, -1),
            ("2000-02-29", D::DateTimeDay, 11_016),
            ("2020-01-31", D::DateTimeDay, 18_292),
            ("1970-01-15", D::DateTimeWeek, 2),
            ("2020", D::DateTimeYear, 50),
            ("2020-03", D::DateTimeMonth, 602),
            ("1969-12", D::DateTimeMonth, -1),
            ("-0001", D::DateTimeYear, -1971),
            ("+12020", D::DateTimeYear, 10_050),
            ("2020-01-31T12:30:00", D::DateTimeMinute, 26_341_230),
            (
                "2020-01-31T12:30:00.250",
                D::DateTimeMilli,
                1_580_473_800_250,
            ),
            ("1969-12-31T23:59:59.999999999", D::DateTimeNano, -1),
            ("12:30:00", D::TimeMinute, 750),
            ("-00:00:00.001", D::TimeMilli, -1),
            ("100:00:00", D::TimeHour, 100),
            ("NaT", D::DateTimeNano, i64::MIN),
        ] {
            assert_eq!(parse_ticks(text, datatype), Ok(ticks), "{text} {datatype}");
            assert_eq!(format_ticks(ticks, datatype), text, "{text} {datatype}");
        }
        for (text, datatype, ticks) in [
            ("2020-01-31 12:30Z", D::DateTimeSecond, 1_580_473_800),
            ("2020-01-31T12:30+02:00", D::DateTimeSecond, 1_580_466_600),
            ("2020-01-31T12-0130", D::DateTimeSecond, 1_580_477_400),
            ("2020", D::DateTimeDay, 18_262),
        ] {
            assert_eq!(parse_ticks(text, datatype), Ok(ticks), "{text} {datatype}");
        }
    }

    #[test]
    fn wrong_times_are_refused() {
        use Datatype as D;
        for (text, datatype, says) in [
            ("2020-02-30", D::DateTimeDay, "no such value"),
            ("2020-13-01", D::DateTimeDay, "no such value"),
            ("2020-01-01x", D::DateTimeDay, "no such value"),
            ("20", D::DateTimeDay, "no such value"),
            ("", D::DateTimeDay, "no such value"),
            ("2020-01-01T24:00", D::DateTimeSecond, "no such value"),
            ("2020-01-01T12:00", D::DateTimeDay, "whole number of days"),
            ("2020-02-01", D::DateTimeYear, "whole number of years"),
            ("3000-01-01", D::DateTimeNano, "too far away"),
            ("9999999999999999999-01-01", D::DateTimeAtto, "too far away"),
            ("12", D::TimeHour, "no such value"),
        ] {
            let error = parse_ticks(text, datatype).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn ticks_round_trip(ticks in prop_oneof![any::<i64>(), -100_000i64..100_000], id in 18u8..40) {
            let datatype = Datatype::from_id(id, 0).unwrap();
            prop_assert_eq!(parse_ticks(&format_ticks(ticks, datatype), datatype), Ok(ticks));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[-+0-9TZ:. ]{0,24}", id in 18u8..40) {
            let _ = parse_ticks(&text, Datatype::from_id(id, 0).unwrap());
        }
    }
}

//! Dates that are written otherwise than ISO 8601 has it.

use super::scalar::{Precision, Stamp, days};
use jiff::civil::Time;
use jiff::fmt::strtime::{self, BrokenDownTime};

/// How dates are written, as `strftime` says it: `%d/%m/%Y`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateFormat {
    format: String,
    timed: bool,
}

impl DateFormat {
    /// Reads a format: it must name a day.
    pub fn parse(format: &str) -> Result<Self, String> {
        let day = jiff::civil::date(2024, 12, 31).at(13, 14, 15, 0);
        let zoned = day
            .to_zoned(jiff::tz::TimeZone::UTC)
            .map_err(|e| e.to_string())?;
        let written = strtime::format(format, &zoned).map_err(|e| e.to_string())?;
        let read = BrokenDownTime::parse(format, &written).ok();
        let said = read.as_ref().and_then(|read| read.to_date().ok());
        if said != Some(day.date()) {
            return Err(format!(
                "{format:?} does not say a whole date, as %d/%m/%Y does"
            ));
        }
        // There are many ways to write an hour (`%H`, `%-H`, `%k`, `%I %p`, `%T`, ..).
        let timed = read.is_some_and(|read| read.hour().is_some());
        Ok(Self {
            format: format.to_owned(),
            timed,
        })
    }

    /// The instant that a text says, if it has the format.
    pub fn stamp(&self, text: &[u8]) -> Option<Stamp> {
        let read = BrokenDownTime::parse(&self.format, text).ok()?;
        let date = read.to_date().ok()?;
        let time = match self.timed {
            true => read.to_time().ok()?,
            false => Time::midnight(),
        };
        let seconds = i64::from(time.hour()) * 3600
            + i64::from(time.minute()) * 60
            + i64::from(time.second())
            - read
                .offset()
                .map_or(0, |offset| i64::from(offset.seconds()))
            + days(date.year().into(), date.month().into(), date.day().into()) * 86_400;
        let fraction = time.subsec_nanosecond();
        let precision = match fraction {
            _ if !self.timed => Precision::Day,
            0 => Precision::Second,
            n if n % 1_000_000 == 0 => Precision::Milli,
            n if n % 1_000 == 0 => Precision::Micro,
            _ => Precision::Nano,
        };
        Some(Stamp {
            nanos: i128::from(seconds) * 1_000_000_000 + i128::from(fraction),
            precision,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::scalar;

    #[test]
    fn dates_of_other_forms_are_read() {
        let same = |format: &str, text: &str, iso: &str| {
            let format = DateFormat::parse(format).unwrap();
            assert_eq!(
                format.stamp(text.as_bytes()),
                scalar::stamp(iso.as_bytes()),
                "{text}"
            );
        };
        same("%d/%m/%Y", "31/12/2023", "2023-12-31");
        same("%d.%m.%Y %H:%M", "01.02.1969 03:04", "1969-02-01T03:04:00");
        same("%Y%m%d", "20240229", "2024-02-29");
        same("%b %d, %Y", "May 01, 2024", "2024-05-01");
        same("%d.%m.%Y %-H:%M", "01.02.2024 3:04", "2024-02-01T03:04:00");
        same("%d.%m.%Y %_H:%M", "01.02.2024  3:04", "2024-02-01T03:04:00");
        same(
            "%m/%d/%Y %-I:%M %p",
            "02/01/2024 3:04 PM",
            "2024-02-01T15:04:00",
        );
        same(
            "%Y-%m-%d %H:%M:%S%.f %z",
            "2024-05-01 12:00:00.250 +0200",
            "2024-05-01T10:00:00.250",
        );
        let format = DateFormat::parse("%d/%m/%Y").unwrap();
        for wrong in ["12/31/2023", "2023-12-31", "31/12", ""] {
            assert_eq!(format.stamp(wrong.as_bytes()), None, "{wrong}");
        }
        assert!(DateFormat::parse("%d/%m").is_err() && DateFormat::parse("day").is_err());
    }
}

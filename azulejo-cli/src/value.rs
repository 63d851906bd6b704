//! Single values - coordinates, fill values, metadata - between bytes and text.

use crate::moment::{self, Moment};
use azulejo::format::Datatype;
use azulejo::format::datatype::{Native, dispatch};
use azulejo::json::hex;

/// The unit of a datetime or time type: `DAY` of `DATETIME_DAY`, `NS` of `TIME_NS`.
pub fn unit(datatype: Datatype) -> Option<&'static str> {
    if datatype.is_datetime() || datatype.is_time() {
        datatype.name().split_once('_').map(|(_, unit)| unit)
    } else {
        None
    }
}

/// Which end of a range a text stands for: a date names its first instant as a lower bound, its
/// last as an upper one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The lower one, or a single value.
    Low,
    /// The upper one.
    High,
}

/// Reads one value of `datatype`. Datetimes: ISO dates, or ticks as numbers (`@2020` where four
/// digits would be a year).
pub fn parse(datatype: Datatype, text: &str, bound: Bound) -> Result<Vec<u8>, String> {
    if datatype.is_string() {
        return match datatype {
            Datatype::StringAscii | Datatype::StringUtf8 => Ok(text.as_bytes().to_vec()),
            _ => Err(format!("values of {datatype} cannot be given as text")),
        };
    }
    let text = text.trim();
    if datatype.is_datetime() {
        return parse_datetime(datatype, text, bound).map(|tick| tick.to_le_bytes().to_vec());
    }
    if datatype.is_time() {
        return parse_time(datatype, text, bound).map(|tick| tick.to_le_bytes().to_vec());
    }
    match (datatype, text) {
        (Datatype::Bool, "true") => return Ok(vec![1]),
        (Datatype::Bool, "false") => return Ok(vec![0]),
        (Datatype::Char, _) if text.len() == 1 => return Ok(text.as_bytes().to_vec()),
        _ => {}
    }
    fn number<T: Native + std::str::FromStr>(text: &str) -> Option<Vec<u8>> {
        let mut out = vec![0; T::SIZE];
        text.parse::<T>().ok()?.write(&mut out);
        Some(out)
    }
    let plain = text.replace('_', "");
    dispatch!(datatype.physical(), T => number::<T>(&plain))
        .ok_or_else(|| format!("{text:?} is not a value of {datatype}"))
}

fn parse_datetime(datatype: Datatype, text: &str, bound: Bound) -> Result<i64, String> {
    let unit = unit(datatype).unwrap_or_default();
    if let Some(tick) = text.strip_prefix('@').unwrap_or(text).parse::<i64>().ok()
        && (text.starts_with('@') || text.len() != 4)
    {
        return Ok(tick);
    }
    let moment = Moment::parse(text).ok_or_else(|| {
        format!("{text:?} is not a date; write 2024-05-01, 2024-05-01T10:00:00.250 or ticks such as @18262")
    })?;
    let instant = if bound == Bound::Low {
        moment.first
    } else {
        moment.last
    };
    moment::tick_of(unit, instant).ok_or_else(|| format!("{text:?} does not fit {datatype}"))
}

fn parse_time(datatype: Datatype, text: &str, bound: Bound) -> Result<i64, String> {
    if let Ok(tick) = text.strip_prefix('@').unwrap_or(text).parse::<i64>() {
        return Ok(tick);
    }
    let length = unit(datatype).and_then(moment::tick_length);
    let clock = moment::parse_clock(text).zip(length);
    let Some(((offset, unit_length), tick)) = clock else {
        return Err(format!(
            "{text:?} is not a time; write 10:30:00.250 or ticks such as 37800"
        ));
    };
    let instant = if bound == Bound::Low {
        offset
    } else {
        offset + unit_length - 1
    };
    i64::try_from(instant / tick).map_err(|_| format!("{text:?} does not fit {datatype}"))
}

/// A cell's bytes as people read them.
pub fn text(datatype: Datatype, bytes: &[u8]) -> String {
    if datatype.is_opaque() || datatype == Datatype::Char {
        return lump_text(datatype, bytes);
    }
    let size = datatype.size();
    let mut values = bytes
        .chunks_exact(size)
        .map(|value| scalar_text(datatype, value));
    if bytes.len() == size {
        return values.next().unwrap_or_default();
    }
    format!("[{}]", values.collect::<Vec<_>>().join(", "))
}

fn lump_text(datatype: Datatype, bytes: &[u8]) -> String {
    // Texts of a fixed length are filled up with zeros.
    let used = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == 0).count();
    if datatype.is_text()
        && let Some(Ok(text)) = bytes.get(..used).map(str::from_utf8)
        && !text
            .chars()
            .any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
    {
        return text.to_owned();
    }
    decode_wide(datatype, bytes).unwrap_or_else(|| hex(bytes))
}

/// UTF-16 and UTF-32 text; `None` for other types and for what is no text.
fn decode_wide(datatype: Datatype, bytes: &[u8]) -> Option<String> {
    match datatype {
        Datatype::StringUtf16 | Datatype::StringUcs2 => {
            let units: Vec<u16> = bytes.chunks_exact(2).map(u16::read).collect();
            String::from_utf16(&units).ok()
        }
        Datatype::StringUtf32 | Datatype::StringUcs4 => bytes
            .chunks_exact(4)
            .map(|c| char::from_u32(u32::read(c)))
            .collect(),
        _ => None,
    }
    .map(|text: String| text.trim_end_matches('\0').to_owned())
    .filter(|text| !text.chars().any(char::is_control))
}

fn scalar_text(datatype: Datatype, bytes: &[u8]) -> String {
    fn number<T: Native + std::fmt::Display>(bytes: &[u8]) -> String {
        T::read(bytes).to_string()
    }
    match datatype {
        Datatype::Bool => (if bytes.first() == Some(&0) {
            "false"
        } else {
            "true"
        })
        .to_owned(),
        _ if datatype.is_datetime() || datatype.is_time() => tick_text(datatype, i64::read(bytes)),
        Datatype::Float32 => real_text(f64::from(f32::read(bytes)), f32::read(bytes)),
        Datatype::Float64 => real_text(f64::read(bytes), f64::read(bytes)),
        _ => dispatch!(datatype.physical(), T => number::<T>(bytes)),
    }
}

/// A real number in no more digits than it takes: `1.8e308`, not 309 digits.
fn real_text<T: std::fmt::Display + std::fmt::LowerExp>(size: f64, number: T) -> String {
    let plain = size == 0.0 || !size.is_finite() || (1e-5..1e17).contains(&size.abs());
    match plain {
        true => number.to_string(),
        false => format!("{number:e}"),
    }
}

/// A tick of a datetime or time type in ISO form, `NaT` for the missing one, `@ticks` beyond the
/// calendar.
pub fn tick_text(datatype: Datatype, tick: i64) -> String {
    if tick == i64::MIN {
        return "NaT".to_owned();
    }
    let unit = unit(datatype).unwrap_or_default();
    let iso = if datatype.is_datetime() {
        moment::tick_text(unit, tick)
    } else {
        moment::tick_length(unit)
            .and_then(|length| i128::from(tick).checked_mul(length))
            .filter(|of_day| (0..moment::tick_length("DAY").unwrap_or(0)).contains(of_day))
            .map(|of_day| moment::clock_text(unit, of_day))
    };
    iso.unwrap_or_else(|| format!("@{tick}"))
}

/// Whether a cell is the tick that stands for no time (NaT).
pub fn is_no_time(datatype: Datatype, bytes: &[u8]) -> bool {
    (datatype.is_datetime() || datatype.is_time()) && bytes == i64::MIN.to_le_bytes()
}

/// The bytes of a cell that is one value, by which it is told from others: of -0.0 those of 0.0,
/// which is the same.
pub fn told_apart(datatype: Datatype, bytes: &[u8]) -> &[u8] {
    const ZERO: &[u8] = &[0; 8];
    match bytes.split_last() {
        Some((0x80, rest)) if datatype.is_real() && rest.iter().all(|byte| *byte == 0) => {
            ZERO.get(..bytes.len()).unwrap_or(bytes)
        }
        _ => bytes,
    }
}

/// The index that the bytes of an enumerated cell hold; `None` for one that no enumeration has so
/// many entries for.
pub fn index(bytes: &[u8]) -> Option<usize> {
    let mut wide = [0; 8];
    for (to, from) in wide.iter_mut().zip(bytes) {
        *to = *from;
    }
    usize::try_from(u64::from_le_bytes(wide)).ok()
}

/// An integer of any type.
pub fn integer<T: Native>(value: T) -> i128 {
    let mut bytes = [0; 16];
    value.write(&mut bytes);
    let unsigned = T::LOWEST.as_f64() == 0.0;
    if !unsigned && bytes[T::SIZE - 1] >= 0x80 {
        bytes[T::SIZE..].fill(0xff);
    }
    i128::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn low(datatype: Datatype, text: &str) -> Result<Vec<u8>, String> {
        parse(datatype, text, Bound::Low)
    }

    #[test]
    fn values_are_parsed_by_their_type() {
        assert_eq!(low(Datatype::Int32, "-5").unwrap(), (-5i32).to_le_bytes());
        assert_eq!(
            low(Datatype::UInt64, "18446744073709551615").unwrap(),
            [0xff; 8]
        );
        assert_eq!(
            low(Datatype::Int64, "1_000").unwrap(),
            1000i64.to_le_bytes()
        );
        assert_eq!(
            low(Datatype::Float64, "-1.5e3").unwrap(),
            (-1500f64).to_le_bytes()
        );
        assert_eq!(low(Datatype::StringAscii, " a ").unwrap(), b" a ");
        assert_eq!(
            low(Datatype::DateTimeDay, "2020-01-01").unwrap(),
            18262i64.to_le_bytes()
        );
        assert_eq!(
            low(Datatype::DateTimeDay, "18262").unwrap(),
            18262i64.to_le_bytes()
        );
        assert_eq!(
            low(Datatype::DateTimeYear, "2020").unwrap(),
            50i64.to_le_bytes()
        );
        assert_eq!(
            low(Datatype::DateTimeYear, "@2020").unwrap(),
            2020i64.to_le_bytes()
        );
        assert_eq!(
            low(Datatype::TimeSecond, "00:01:01").unwrap(),
            61i64.to_le_bytes()
        );
        assert_eq!(low(Datatype::Bool, "true").unwrap(), [1]);
        for (datatype, text) in [
            (Datatype::UInt8, "256"),
            (Datatype::UInt8, "-1"),
            (Datatype::Int32, "1.5"),
            (Datatype::DateTimeDay, "x"),
        ] {
            assert!(low(datatype, text).is_err(), "{datatype} {text}");
        }
    }

    #[test]
    fn an_upper_bound_covers_the_period_it_names() {
        let high = parse(Datatype::DateTimeDay, "2020-01", Bound::High).unwrap();
        assert_eq!(high, (18262i64 + 30).to_le_bytes());
        let high = parse(Datatype::DateTimeHour, "1970-01-01", Bound::High).unwrap();
        assert_eq!(high, 23i64.to_le_bytes());
    }

    #[test]
    fn values_are_shown_by_their_type() {
        assert_eq!(text(Datatype::Int16, &(-3i16).to_le_bytes()), "-3");
        assert_eq!(text(Datatype::Int16, &[1, 0, 2, 0]), "[1, 2]");
        assert_eq!(text(Datatype::StringUtf8, "é".as_bytes()), "é");
        assert_eq!(text(Datatype::StringUtf8, &[0xff]), "0xff");
        assert_eq!(text(Datatype::Blob, b"ab"), "0x6162");
        assert_eq!(text(Datatype::StringUtf16, &[0x61, 0, 0x62, 0]), "ab");
        assert_eq!(text(Datatype::StringUtf16, &[0x61, 0, 0, 0]), "a");
        assert_eq!(text(Datatype::Char, b"a\0\0"), "a");
        assert_eq!(text(Datatype::Char, b"\0a\0"), "0x006100");
        assert_eq!(
            text(Datatype::DateTimeMilli, &i64::MIN.to_le_bytes()),
            "NaT"
        );
        assert_eq!(text(Datatype::TimeMinute, &61i64.to_le_bytes()), "01:01");
        assert_eq!(text(Datatype::TimeHour, &99i64.to_le_bytes()), "@99");
        for datatype in Datatype::ALL
            .into_iter()
            .filter(|t| t.is_datetime() || t.is_time())
        {
            for tick in [i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1] {
                assert!(!tick_text(datatype, tick).is_empty());
            }
        }
    }
}

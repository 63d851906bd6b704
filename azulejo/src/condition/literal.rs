//! Values in text: from a literal to the bytes of a field's type and back.

use crate::column::datetime::{format_ticks, parse_ticks};
use azulejo_format::datatype::{Native, dispatch};
use azulejo_format::{CellValNum, Datatype, Physical};
use std::fmt::Write;

/// A value as written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    /// A number, its sign and digits as written, without `_`.
    Number(String),
    /// A quoted string, unescaped: any bytes.
    Text(Vec<u8>),
    /// A date or time without quotes, as written.
    Time(String),
    /// `@18262`: ticks of a date or time, their digits as written.
    Ticks(String),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
}

/// Where a number or a moment lies that a type of whole numbers cannot say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BetweenValues {
    /// The greatest value of the type below it, or the least of all where there is none below.
    pub bytes: Vec<u8>,
    /// Whether it lies above that value.
    pub above: bool,
}

impl Literal {
    /// Where this lies among the values of a type, if it is a number or a moment and none of them:
    /// 300 lies above the greatest `UINT8`, and 1.5 above 1.
    pub fn beside(&self, datatype: Datatype) -> Option<BetweenValues> {
        if datatype.is_string() || datatype.is_byte() || datatype == Datatype::Char {
            return None;
        }
        let text = match self {
            Self::Number(text) => text.as_str(),
            Self::Ticks(digits) => return number_beside(digits, datatype),
            Self::Time(text) => return moment_beside(text, datatype),
            Self::Text(bytes) => std::str::from_utf8(bytes).ok()?.trim(),
            Self::Bool(_) | Self::Null => return None,
        };
        let is_number = matches!(self, Self::Number(_)) && !is_year(text);
        match datatype.is_datetime() && !is_number {
            true => moment_beside(text, datatype),
            false => number_beside(text, datatype),
        }
    }

    /// The last tick of the period that a date names; `None` for what is one value.
    pub fn period_end(&self, datatype: Datatype) -> Option<i64> {
        match self {
            Self::Text(text) => period_end(std::str::from_utf8(text).ok()?, datatype),
            Self::Time(text) => period_end(text, datatype),
            Self::Number(text) if is_year(text) => period_end(text, datatype),
            _ => None,
        }
    }

    /// The value as bytes of a type: one cell, or a string. The error says what does not fit.
    pub fn to_bytes(
        &self,
        datatype: Datatype,
        cell_val_num: CellValNum,
    ) -> Result<Vec<u8>, String> {
        let text_type =
            datatype.is_string() || datatype.is_byte() || matches!(datatype, Datatype::Char);
        let of_time = datatype.is_datetime() || datatype.is_time();
        match self {
            Self::Time(text) if of_time => Ok(parse_ticks(text, datatype)?.to_le_bytes().to_vec()),
            Self::Time(text) if text_type => Err(format!(
                "{text} is a date or time, but the type is {datatype}: write it in quotes"
            )),
            Self::Time(text) => Err(format!(
                "{text} is a date or time, but the type is {datatype}"
            )),
            Self::Ticks(digits) if of_time => number(digits, datatype),
            Self::Ticks(digits) => Err(format!(
                "@{digits} is a number of ticks, but the type is {datatype}"
            )),
            // As everywhere: four digits are a year.
            Self::Number(text) if datatype.is_datetime() && is_year(text) => {
                Ok(parse_ticks(text, datatype)?.to_le_bytes().to_vec())
            }
            Self::Null => {
                Err("null is neither less nor greater than a value: use `is null`".into())
            }
            Self::Bool(value) => match datatype {
                Datatype::Bool => Ok(vec![u8::from(*value)]),
                _ => Err(format!("{value} is no value of type {datatype}")),
            },
            Self::Text(bytes) if text_type => Ok(padded(bytes, datatype, cell_val_num)),
            Self::Text(bytes) => {
                let text = std::str::from_utf8(bytes)
                    .map_err(|_| "this string is not UTF-8".to_owned())?;
                if datatype.is_datetime() || datatype.is_time() {
                    return Ok(parse_ticks(text, datatype)?.to_le_bytes().to_vec());
                }
                // Shells and query builders like to quote numbers.
                number(text.trim(), datatype)
                    .map_err(|_| format!("{text:?} is a string, but the type is {datatype}"))
            }
            Self::Number(text) if text_type => Err(format!(
                "{text} is a number, but the type is {datatype}: write it in quotes"
            )),
            Self::Number(text) => number(text, datatype),
        }
    }
}

fn is_year(text: &str) -> bool {
    text.len() == 4 && text.bytes().all(|b| b.is_ascii_digit())
}

/// The last tick of what a text names: a year, a month, a day, an hour, a minute, a second or a
/// part of one. `None` for a single tick.
fn period_end(text: &str, datatype: Datatype) -> Option<i64> {
    if !datatype.is_datetime() {
        return None;
    }
    let text = text.trim();
    let ticks = |text: &str| parse_ticks(text, datatype).ok();
    let first = ticks(text)?;
    // Then whole seconds are whole ticks, wherever they are not too far away: others never are.
    let whole_seconds = ticks("1970-01-01T00:00:01").is_some();
    // Before the year 0 there is a sign.
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (-1, unsigned),
        None => (1, text),
    };
    let (date, clock) = match unsigned.split_once(['T', 't', ' ']) {
        Some((date, clock)) => (date, Some(clock)),
        None => (unsigned, None),
    };
    let parts: Vec<&str> = date.split('-').collect();
    let number = |part: &str, digits: usize| -> Option<u32> {
        let plain = part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| part.parse().ok())?
    };
    let year_of = |part: &str| Some(sign * i64::from(number(part, 4)?));
    let shown = |year: i64| match year {
        ..0 => format!("-{:04}", -year),
        year => format!("{year:04}"),
    };
    // Behind what the type can say there is nothing: its last tick ends the period.
    let behind = |first_of_next: &str| match ticks(first_of_next) {
        None if whole_seconds => Some(None),
        next => next.map(Some),
    };
    let next = match (&*parts, clock) {
        ([year], None) => behind(&shown(year_of(year)? + 1))?,
        ([year, month], None) => match (year_of(year)?, number(month, 2)?) {
            (year, 12) => behind(&format!("{}-01", shown(year + 1)))?,
            (year, month) => behind(&format!("{}-{:02}", shown(year), month + 1))?,
        },
        ([year, month, day], clock) => {
            number(year, 4).and(number(month, 2)).and(number(day, 2))?;
            let unit = match clock {
                None => "1970-01-02".to_owned(),
                Some(clock) => after_one(clock)?,
            };
            match ticks(&unit) {
                Some(length) => first.checked_add(length),
                None if whole_seconds && !unit.contains('.') => None,
                None => return None,
            }
        }
        _ => return None,
    };
    let last = next.map_or(Some(i64::MAX), |next| next.checked_sub(1));
    last.filter(|last| *last > first)
}

/// The first day at one unit of what a time of day is written in.
fn after_one(clock: &str) -> Option<String> {
    let clock = clock.trim_end_matches(['Z', 'z']);
    // A zone behind the time, if there is one.
    let clock = clock.split(['+', '-']).next()?;
    let parts: Vec<&str> = clock.split(':').collect();
    Some(match *parts {
        [_] => "1970-01-01T01:00".to_owned(),
        [_, _] => "1970-01-01T00:01".to_owned(),
        [_, _, seconds] => match seconds.split_once('.') {
            None => "1970-01-01T00:00:01".to_owned(),
            Some((_, fraction)) => {
                let digits = fraction.len().checked_sub(1)?;
                format!("1970-01-01T00:00:00.{}1", "0".repeat(digits))
            }
        },
        _ => return None,
    })
}

/// A string for fixed-length cells ends in zero bytes, as the writers of fixed-length strings do.
fn padded(bytes: &[u8], datatype: Datatype, cell_val_num: CellValNum) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(size) = cell_val_num.cell_size(datatype)
        && bytes.len() < size
    {
        bytes.resize(size, 0);
    }
    bytes
}

fn number(text: &str, datatype: Datatype) -> Result<Vec<u8>, String> {
    let physical = datatype.physical();
    let real = |text: &str| {
        text.parse::<f64>()
            .map_err(|_| format!("{text} is not a number"))
    };
    match physical {
        // Straight to the nearest f32: by way of f64 it could be rounded twice.
        Physical::F32 => match integer(text) {
            Some(value) => Ok((value as f32).to_le_bytes().to_vec()),
            None => match text.parse::<f32>() {
                Ok(value) => Ok(value.to_le_bytes().to_vec()),
                Err(_) => Err(format!("{text} is not a number")),
            },
        },
        Physical::F64 => match integer(text) {
            // `-0` keeps its sign.
            Some(0) if text.starts_with('-') => Ok((-0.0f64).to_le_bytes().to_vec()),
            Some(value) => Ok((value as f64).to_le_bytes().to_vec()),
            None => Ok(real(text)?.to_le_bytes().to_vec()),
        },
        _ => {
            let value = match integer(text) {
                Some(value) => value,
                None => {
                    let value = real(text)?;
                    if value.fract() != 0.0 || value.abs() > 9e15 {
                        return Err(format!(
                            "{text} is not a whole number, but the type is {datatype}"
                        ));
                    }
                    value as i128
                }
            };
            dispatch!(physical, T => integer_bytes::<T>(value)).ok_or_else(|| {
                let (low, high) = dispatch!(physical, T => limits::<T>());
                format!("{text} does not fit {datatype} ({low} to {high})")
            })
        }
    }
}

/// As [`Literal::beside`], for a number.
fn number_beside(text: &str, datatype: Datatype) -> Option<BetweenValues> {
    let physical = datatype.physical();
    if matches!(physical, Physical::F32 | Physical::F64) {
        return None;
    }
    let (low, high) = dispatch!(physical, T => limits::<T>());
    let (floor, is_whole) = match integer(text) {
        Some(value) => (value, true),
        None => {
            let value: f64 = text.parse().ok().filter(|value: &f64| !value.is_nan())?;
            // What 128 bits cannot say lies beyond all limits too.
            (value.floor() as i128, value.fract() == 0.0)
        }
    };
    let (nearest, above) = match floor {
        _ if floor > high => (high, true),
        _ if floor < low => (low, false),
        _ if is_whole => return None,
        floor => (floor, true),
    };
    let bytes = dispatch!(physical, T => integer_bytes::<T>(nearest))?;
    Some(BetweenValues { bytes, above })
}

/// As [`Literal::beside`], for a moment too far away for the ticks of a type.
fn moment_beside(text: &str, datatype: Datatype) -> Option<BetweenValues> {
    use Datatype as D;
    let is_fine = matches!(
        datatype,
        D::DateTimeMicro | D::DateTimeNano | D::DateTimePico | D::DateTimeFemto | D::DateTimeAtto
    );
    if !is_fine || parse_ticks(text, datatype).is_ok() {
        return None;
    }
    let above = parse_ticks(text, D::DateTimeMilli).ok()? > 0;
    // The least of all is no time.
    let nearest = if above { i64::MAX } else { i64::MIN + 1 };
    Some(BetweenValues {
        bytes: nearest.to_le_bytes().to_vec(),
        above,
    })
}

/// A whole number, decimal, `0x`, `0o` or `0b`, with a sign.
fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let radix = match digits.get(..2) {
        Some("0x" | "0X") => 16,
        Some("0o" | "0O") => 8,
        Some("0b" | "0B") => 2,
        _ => 10,
    };
    let digits = if radix == 10 { digits } else { &digits[2..] };
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).ok()?;
    Some(if negative { -value } else { value })
}

fn integer_bytes<T: Native>(value: i128) -> Option<Vec<u8>> {
    let bytes = value.to_le_bytes();
    let (low, high) = limits::<T>();
    (low..=high)
        .contains(&value)
        .then(|| bytes[..T::SIZE].to_vec())
}

/// The limits of an integer type.
fn limits<T: Native>() -> (i128, i128) {
    let bits = 8 * u32::try_from(T::SIZE).unwrap_or(8);
    match T::PHYSICAL {
        Physical::I8 | Physical::I16 | Physical::I32 | Physical::I64 => {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        }
        _ => (0, (1i128 << bits) - 1),
    }
}

/// Bytes of a type as a literal that reads as the same bytes.
pub(super) fn literal(bytes: &[u8], datatype: Datatype) -> String {
    if datatype.is_string()
        || datatype.is_byte()
        || matches!(datatype, Datatype::Char | Datatype::Any)
    {
        return quoted(bytes, '"');
    }
    if datatype.is_datetime() || datatype.is_time() {
        return format!("\"{}\"", format_ticks(i64::read(bytes), datatype));
    }
    match datatype.physical() {
        _ if datatype == Datatype::Bool && bytes == [0] => "false".into(),
        _ if datatype == Datatype::Bool && bytes == [1] => "true".into(),
        Physical::F32 => real(f32::read(bytes)),
        Physical::F64 => real(f64::read(bytes)),
        physical => dispatch!(physical, T => format!("{:?}", T::read(bytes))),
    }
}

fn real(value: impl std::fmt::Debug) -> String {
    // Rust writes NaN with capitals, and infinities as `inf`.
    format!("{value:?}").to_lowercase()
}

/// A string in quotes, with escapes for what is not printable.
pub(super) fn quoted(bytes: &[u8], quote: char) -> String {
    let mut out = String::from(quote);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\0' => out.push_str("\\0"),
                c if c == quote => {
                    out.push('\\');
                    out.push(c);
                }
                c if c.is_control() => {
                    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push(quote);
    out
}

//! `LO:HI` as text, for every type of dimension.

use crate::value::{self, Bound};
use azulejo::format::Datatype;

/// A range as written: a missing bound is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeText {
    /// The lower bound's bytes.
    pub low: Option<Vec<u8>>,
    /// The upper bound's bytes.
    pub high: Option<Vec<u8>>,
}

/// Reads `LO:HI`, `LO..HI`, `LO:`, `:HI` or a single value. Bounds in double quotes are taken as
/// they are (strings that contain colons). Dates contain colons too: all readings are tried, and
/// there must be one.
pub fn parse_range(datatype: Datatype, text: &str) -> Result<RangeText, String> {
    if let Some(range) = parse_quoted(datatype, text)? {
        return Ok(range);
    }
    if let Some((low, high)) = text.split_once("..") {
        return bounds(datatype, low, high);
    }
    let colons: Vec<usize> = text.match_indices(':').map(|(at, _)| at).collect();
    if datatype.is_string() {
        return match colons.first() {
            None => single(datatype, text),
            Some(&at) => bounds(datatype, &text[..at], &text[at + 1..]),
        };
    }
    let whole = single(datatype, text);
    if whole.is_ok() || colons.is_empty() {
        return whole;
    }
    let mut readings = colons
        .iter()
        .map(|&at| bounds(datatype, &text[..at], &text[at + 1..]));
    if let [_] = colons[..] {
        return readings.next().unwrap_or(whole);
    }
    let good: Vec<RangeText> = readings.filter_map(Result::ok).collect();
    match &good[..] {
        [range] => Ok(range.clone()),
        [] => Err(format!(
            "{text:?} is not a range of {datatype}; write LO..HI"
        )),
        _ => Err(format!(
            "{text:?} can be read in several ways; write LO..HI"
        )),
    }
}

fn single(datatype: Datatype, text: &str) -> Result<RangeText, String> {
    Ok(RangeText {
        low: Some(value::parse(datatype, text, Bound::Low)?),
        high: Some(value::parse(datatype, text, Bound::High)?),
    })
}

fn bounds(datatype: Datatype, low: &str, high: &str) -> Result<RangeText, String> {
    let bound = |text: &str, bound: Bound| {
        (!text.trim().is_empty())
            .then(|| value::parse(datatype, text, bound))
            .transpose()
    };
    Ok(RangeText {
        low: bound(low, Bound::Low)?,
        high: bound(high, Bound::High)?,
    })
}

/// Ranges with a quoted bound: `"a:b":"c"`, `"a"..`, `:"b"`, `"a"`.
fn parse_quoted(datatype: Datatype, text: &str) -> Result<Option<RangeText>, String> {
    if !text.contains('"') || !datatype.is_string() {
        return Ok(None);
    }
    let bad = || format!("{text} is not a range; write \"LO\":\"HI\"");
    let (low, rest) = take_bound(text).ok_or_else(bad)?;
    if rest.is_empty() {
        return Ok(low.map(|value| RangeText {
            low: Some(value.clone()),
            high: Some(value),
        }));
    }
    let rest = rest
        .strip_prefix("..")
        .or_else(|| rest.strip_prefix(':'))
        .ok_or_else(bad)?;
    match take_bound(rest).ok_or_else(bad)? {
        (high, "") => Ok(Some(RangeText { low, high })),
        (None, plain) => Ok(Some(RangeText {
            low,
            high: Some(plain.as_bytes().to_vec()),
        })),
        _ => Err(bad()),
    }
}

/// A quoted bound (`\"` and `\\` escape) and what follows; no bound if the text does not begin with
/// a quote.
fn take_bound(text: &str) -> Option<(Option<Vec<u8>>, &str)> {
    let Some(body) = text.strip_prefix('"') else {
        // An unquoted bound before a quoted one ends at the first separator.
        let end = text.find(':').filter(|_| text.contains('"')).unwrap_or(0);
        let (plain, rest) = text.split_at(end);
        return Some(((!plain.is_empty()).then(|| plain.as_bytes().to_vec()), rest));
    };
    let mut value = String::new();
    let mut chars = body.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((Some(value.into_bytes()), &body[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            _ => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(datatype: Datatype, text: &str) -> (Option<String>, Option<String>) {
        let range = parse_range(datatype, text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let show = |bound: Option<Vec<u8>>| bound.map(|bytes| value::text(datatype, &bytes));
        (show(range.low), show(range.high))
    }

    fn some(low: &str, high: &str) -> (Option<String>, Option<String>) {
        let bound = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        (bound(low), bound(high))
    }

    #[test]
    fn numbers() {
        let t = Datatype::Int32;
        assert_eq!(range(t, "1:5"), some("1", "5"));
        assert_eq!(range(t, "-5:-1"), some("-5", "-1"));
        assert_eq!(range(t, "-5..10"), some("-5", "10"));
        assert_eq!(range(t, ":10"), some("", "10"));
        assert_eq!(range(t, "5:"), some("5", ""));
        assert_eq!(range(t, ":"), some("", ""));
        assert_eq!(range(t, "7"), some("7", "7"));
        assert_eq!(range(Datatype::Float64, "-1.5:2e3"), some("-1.5", "2000"));
        for text in ["", "x", "1:2:3", "1:x", "1.5:2"] {
            assert!(parse_range(t, text).is_err(), "{text}");
        }
    }

    #[test]
    fn dates() {
        let t = Datatype::DateTimeSecond;
        assert_eq!(
            range(t, "2020-01-01:2020-01-02"),
            some("2020-01-01T00:00:00", "2020-01-02T23:59:59")
        );
        assert_eq!(
            range(t, "2020-01"),
            some("2020-01-01T00:00:00", "2020-01-31T23:59:59")
        );
        assert_eq!(
            range(t, "2020-01-01T10:00:00"),
            some("2020-01-01T10:00:00", "2020-01-01T10:00:00")
        );
        assert_eq!(
            range(t, "2020-01-01T10:00:00:2020-01-01T11:00:00"),
            some("2020-01-01T10:00:00", "2020-01-01T11:00:00")
        );
        assert_eq!(
            range(t, "2020-01-01T10:30:"),
            some("2020-01-01T10:30:00", "")
        );
        assert_eq!(
            range(t, ":2020-01-01T10:30"),
            some("", "2020-01-01T10:30:59")
        );
        assert_eq!(
            range(t, "@0:@5"),
            some("1970-01-01T00:00:00", "1970-01-01T00:00:05")
        );
        assert_eq!(
            range(Datatype::TimeSecond, "08:00:00..10:00:00"),
            some("08:00:00", "10:00:00")
        );
        assert!(
            parse_range(Datatype::TimeSecond, "08:00:10:00")
                .unwrap_err()
                .contains("LO..HI")
        );
    }

    #[test]
    fn strings() {
        let t = Datatype::StringAscii;
        assert_eq!(range(t, "a:c"), some("a", "c"));
        assert_eq!(range(t, "a:"), some("a", ""));
        assert_eq!(range(t, "a"), some("a", "a"));
        assert_eq!(range(t, "chr1:5..chr1:9"), some("chr1:5", "chr1:9"));
        assert_eq!(range(t, r#""chr1:5""#), some("chr1:5", "chr1:5"));
        assert_eq!(range(t, r#""chr1:5":"chr1:9""#), some("chr1:5", "chr1:9"));
        assert_eq!(range(t, r#"a:"chr1:9""#), some("a", "chr1:9"));
        assert_eq!(range(t, r#""a":b"#), some("a", "b"));
        assert_eq!(range(t, r#""a":"#), some("a", ""));
        assert_eq!(range(t, r#""a\"b""#), some("a\"b", "a\"b"));
        assert!(parse_range(t, r#""a"#).is_err());
        assert!(parse_range(t, r#""a"b"#).is_err());
    }
}

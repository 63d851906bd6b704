//! What a column of texts holds: every value is looked at, so that the type chosen fits them all.

use super::date_format::DateFormat;
use super::profile::{Bounds, Labels, Profile};
use super::scalar::{self, Precision, Stamp};
use super::text::{SpanKind, TextBlock};
use azulejo::format::{CellValNum, Datatype};

/// Texts that stand for a missing number, date or truth value when nothing else speaks against it.
const NULL_WORDS: [&[u8]; 10] = [
    b"NA", b"N/A", b"n/a", b"NULL", b"Null", b"null", b"None", b"#N/A", b"<NA>", b"NaT",
];

/// Values looked at behind the first text of a column, to know whether it is a surprise.
const LOOKED_AT_BEHIND: u8 = 64;

/// How texts are to be taken.
#[derive(Debug, Clone)]
pub struct TextRules {
    /// Texts that are null in every column.
    pub nulls: Vec<Vec<u8>>,
    /// Whether quoted values may be numbers (CSV) or are text, whatever they look like (JSON).
    pub quoted_numbers: bool,
    /// How dates are written, besides ISO 8601.
    pub dates: Option<DateFormat>,
}

impl TextRules {
    /// The instant that a text says.
    pub fn stamp(&self, text: &[u8]) -> Option<Stamp> {
        let own = self.dates.as_ref().and_then(|dates| dates.stamp(text));
        own.or_else(|| scalar::stamp(text))
    }

    /// Whether a text is null whatever the column.
    pub fn is_null(&self, text: &[u8], kind: SpanKind) -> bool {
        kind == SpanKind::Missing
            || (kind == SpanKind::Bare && text.is_empty())
            || self.nulls.iter().any(|null| null == text)
    }
}

/// Whether a text is a usual word for a missing value.
pub fn is_null_word(text: &[u8]) -> bool {
    text.len() <= 4 && NULL_WORDS.contains(&text)
}

/// Kinds of values seen, as bits.
mod seen {
    pub const INTEGER: u8 = 1;
    /// An integer beyond 64 bits.
    pub const WIDE: u8 = 2;
    pub const REAL: u8 = 4;
    pub const BOOL: u8 = 8;
    pub const STAMP: u8 = 16;
    pub const TEXT: u8 = 32;
    /// An array of numbers or of truth values.
    pub const LIST: u8 = 64;
    pub const OTHER_NESTED: u8 = 128;
}

/// What is known of a column so far.
#[derive(Debug, Clone)]
pub struct TextProfile {
    seen: u8,
    rows: u64,
    nulls: u64,
    null_words: u64,
    empty_texts: u64,
    integers: Option<(i128, i128)>,
    reals: Option<(f64, f64)>,
    stamps: Option<(i128, i128)>,
    precision: Precision,
    ascii: bool,
    bytes: u64,
    longest: usize,
    first_null: Option<u64>,
    labels: Labels,
    list_real: bool,
    list_truth: bool,
    list_len: Option<u32>,
    list_varies: bool,
    /// Numbers, dates and truth values before the first text, and among some values behind it.
    typed: u64,
    first_text: Option<(u64, Box<[u8]>)>,
    /// Other texts among those values.
    texts: u64,
    /// How many more of them to look at.
    behind: u8,
}

impl TextProfile {
    /// A column without values yet, remembering up to `labels` different texts.
    pub fn new(labels: usize) -> Self {
        Self {
            seen: 0,
            rows: 0,
            nulls: 0,
            null_words: 0,
            empty_texts: 0,
            integers: None,
            reals: None,
            stamps: None,
            precision: Precision::Day,
            ascii: true,
            bytes: 0,
            longest: 0,
            first_null: None,
            labels: Labels::new(labels),
            list_real: false,
            list_truth: false,
            list_len: None,
            list_varies: false,
            typed: 0,
            first_text: None,
            texts: 0,
            behind: LOOKED_AT_BEHIND,
        }
    }

    /// Whether it is clear that the column holds text.
    pub fn is_text(&self) -> bool {
        let numbers = seen::INTEGER | seen::WIDE | seen::REAL;
        self.seen & (seen::TEXT | seen::OTHER_NESTED) != 0
            || (self.seen & !numbers != 0
                && !matches!(self.seen, seen::BOOL | seen::STAMP | seen::LIST))
    }

    /// Looks at a column of a block; `text` if it is known to hold text from elsewhere.
    pub fn look(&mut self, block: &TextBlock, column: usize, rules: &TextRules, text: bool) {
        if text {
            self.seen |= seen::TEXT;
        }
        let Some(spans) = block.columns.get(column) else {
            return;
        };
        for (row, &span) in spans.iter().enumerate() {
            let value = block.text(span);
            if rules.is_null(value, span.kind) {
                self.first_null.get_or_insert(self.rows + row as u64);
                self.nulls += 1;
                continue;
            }
            if span.kind == SpanKind::Nested {
                self.look_at_nested(value);
            } else if !self.is_text() && (span.kind == SpanKind::Bare || rules.quoted_numbers) {
                self.look_at_scalar(value, row as u64, rules);
                if self.seen & seen::TEXT == 0 {
                    self.typed += 1;
                } else {
                    self.first_text = Some((self.rows + row as u64, value.into()));
                }
            } else if self.first_text.is_some() && self.behind > 0 {
                self.look_behind(value, rules);
            } else if !self.is_text() && span.kind == SpanKind::Quoted {
                // JSON has no dates but as strings.
                match rules.stamp(value) {
                    Some(stamp) => self.add_stamp(stamp),
                    None => self.seen |= seen::TEXT,
                }
            }
            self.labels.add(value);
            self.ascii &= value.is_ascii();
            self.bytes += value.len() as u64;
            self.longest = self.longest.max(value.len());
        }
        self.rows += spans.len() as u64;
    }

    /// Looks whether a value behind the first text is one too.
    fn look_behind(&mut self, value: &[u8], rules: &TextRules) {
        self.behind -= 1;
        let mut alone = Self::new(0);
        alone.look_at_scalar(value, 0, rules);
        match alone.seen & seen::TEXT {
            _ if alone.seen == 0 => {}
            0 => self.typed += 1,
            _ => self.texts += 1,
        }
    }

    fn look_at_scalar(&mut self, value: &[u8], row: u64, rules: &TextRules) {
        if let Some(stamp) = rules.dates.as_ref().and_then(|dates| dates.stamp(value)) {
            self.add_stamp(stamp);
            return;
        }
        match value {
            [] => self.empty_texts += 1,
            [b'0'..=b'9' | b'-' | b'+' | b'.', ..] => self.look_at_number(value),
            _ if is_null_word(value) => {
                self.first_null.get_or_insert(self.rows + row);
                self.null_words += 1;
            }
            [b't' | b'T' | b'f' | b'F', ..] if truth(value).is_some() => self.seen |= seen::BOOL,
            _ => match scalar::real::<f64>(value) {
                Some(real) if rules.quoted_numbers => self.add_real(real),
                _ => self.seen |= seen::TEXT,
            },
        }
    }

    fn look_at_number(&mut self, value: &[u8]) {
        if is_padded(value) {
            self.seen |= seen::TEXT;
            return;
        }
        if let Some(integer) = scalar::integer(value) {
            let fits = i128::from(i64::MIN)..=i128::from(u64::MAX);
            self.seen |= if fits.contains(&integer) {
                seen::INTEGER
            } else {
                seen::WIDE
            };
            widen(&mut self.integers, integer, integer);
        } else if let Some(stamp) = scalar::stamp(value) {
            self.add_stamp(stamp);
        } else if let Some(real) = scalar::real::<f64>(value) {
            let digits_only = value
                .iter()
                .all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+'));
            if digits_only {
                self.seen |= seen::WIDE;
            }
            self.add_real_value(real, digits_only);
        } else {
            self.seen |= seen::TEXT;
        }
    }

    fn add_real(&mut self, real: f64) {
        self.add_real_value(real, false);
    }

    fn add_real_value(&mut self, real: f64, is_integer: bool) {
        if !is_integer {
            self.seen |= seen::REAL;
        }
        if !real.is_nan() {
            let (low, high) = self.reals.get_or_insert((real, real));
            (*low, *high) = (low.min(real), high.max(real));
        }
    }

    fn add_stamp(&mut self, stamp: Stamp) {
        self.seen |= seen::STAMP;
        self.precision = self.precision.max(stamp.precision);
        widen(&mut self.stamps, stamp.nanos, stamp.nanos);
    }

    fn look_at_nested(&mut self, value: &[u8]) {
        let Some(items) = list_items(value) else {
            self.seen |= seen::OTHER_NESTED;
            return;
        };
        self.seen |= seen::LIST;
        let mut count = 0u32;
        for item in items {
            count += 1;
            match scalar::integer(item) {
                Some(integer) => widen(&mut self.integers, integer, integer),
                None if scalar::real::<f64>(item).is_some() => self.list_real = true,
                None if truth(item).is_some() => self.list_truth = true,
                None => self.seen |= seen::OTHER_NESTED,
            }
        }
        self.list_varies |= *self.list_len.get_or_insert(count) != count;
    }

    /// Adds what another part of the column, which follows, is known to hold.
    pub fn merge(&mut self, other: &Self) {
        if let (None, Some(row)) = (self.first_null, other.first_null) {
            self.first_null = Some(self.rows + row);
        }
        if self.first_text.is_none() {
            self.typed += other.typed;
            let first = other.first_text.as_ref();
            self.first_text = first.map(|(row, text)| (self.rows + row, text.clone()));
            self.texts = other.texts;
        }
        self.seen |= other.seen;
        self.rows += other.rows;
        self.nulls += other.nulls;
        self.null_words += other.null_words;
        self.empty_texts += other.empty_texts;
        if let Some((low, high)) = other.integers {
            widen(&mut self.integers, low, high);
        }
        if let Some((low, high)) = other.stamps {
            widen(&mut self.stamps, low, high);
        }
        if let Some((low, high)) = other.reals {
            let mine = self.reals.get_or_insert((low, high));
            *mine = (mine.0.min(low), mine.1.max(high));
        }
        self.precision = self.precision.max(other.precision);
        self.ascii &= other.ascii;
        self.bytes += other.bytes;
        self.longest = self.longest.max(other.longest);
        self.labels.merge(&other.labels);
        self.list_real |= other.list_real;
        self.list_truth |= other.list_truth;
        self.list_varies |= other.list_varies
            || matches!((self.list_len, other.list_len), (Some(a), Some(b)) if a != b);
        self.list_len = self.list_len.or(other.list_len);
    }

    /// Rows without a value were in the file before the column first appeared.
    pub fn add_missing(&mut self, rows: u64) {
        if rows > 0 {
            self.first_null.get_or_insert(self.rows);
        }
        self.rows += rows;
        self.nulls += rows;
    }

    /// The different texts, whatever they look like.
    pub fn labels(&self) -> Labels {
        self.labels.clone()
    }

    /// Rows seen.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The row and the text that make a column text which mostly holds numbers, dates or truth
    /// values, as far as it was looked at.
    pub fn culprit(&self) -> Option<(u64, &[u8])> {
        let (row, text) = self.first_text.as_ref()?;
        let texts = self.texts + 1;
        (self.typed >= 2 * texts).then_some((*row, text))
    }

    /// What the column holds.
    pub fn finish(&self, name: &str) -> Profile {
        let numbers = self.seen & (seen::INTEGER | seen::WIDE | seen::REAL);
        let all_numbers = numbers != 0 && numbers == self.seen;
        let mut note = None;
        let integers = (self.seen == seen::INTEGER).then(|| integer_type(self.integers));
        let (datatype, bounds) = if let Some(Some(found)) = integers {
            found
        } else if all_numbers && self.seen & seen::REAL != 0 {
            let mut reals = self.reals;
            if let Some((low, high)) = self.integers {
                let mine = reals.get_or_insert((low as f64, high as f64));
                *mine = (mine.0.min(low as f64), mine.1.max(high as f64));
            }
            let exact = -EXACT..=EXACT;
            let beyond =
                |(low, high): (i128, i128)| !exact.contains(&low) || !exact.contains(&high);
            if self.seen & seen::WIDE != 0 || self.integers.is_some_and(beyond) {
                note = Some(format!(
                    "{name:?} holds integers beside reals and becomes FLOAT64, which rounds those beyond 2^53; \
                     --type {name}=STRING_ASCII keeps every digit"
                ));
            }
            (
                Datatype::Float64,
                reals.map(|(low, high)| Bounds::Real(low, high)),
            )
        } else if self.seen == seen::BOOL {
            (Datatype::Bool, None)
        } else if self.seen == seen::STAMP {
            self.stamp_type()
        } else if self.seen == seen::LIST && !self.has_mixed_lists() {
            return self.list(name);
        } else {
            if all_numbers {
                note = Some(format!(
                    "{name:?} holds integers that no type of 64 bits has room for, and is kept as text; \
                     --type {name}=FLOAT64 rounds them"
                ));
            } else if self.seen == 0 && self.rows > 0 {
                note = Some(format!("{name:?} holds nothing and becomes nullable text"));
            }
            (Datatype::StringUtf8, None)
        };
        let text = datatype == Datatype::StringUtf8;
        // In a column of text an empty text is a value, and NA may be Namibia.
        let nulls = self.nulls
            + if text && self.seen != 0 {
                0
            } else {
                self.null_words + self.empty_texts
            };
        Profile {
            name: name.to_owned(),
            datatype,
            cell_val_num: if text {
                CellValNum::Var
            } else {
                CellValNum::ONE
            },
            rows: self.rows,
            nulls,
            first_null: self.first_null.filter(|_| nulls > 0),
            bounds,
            labels: text.then(|| self.labels.clone()),
            dictionary: false,
            ordered_labels: false,
            ascii: self.ascii,
            bytes: self.bytes,
            stated: false,
            note,
        }
    }

    fn stamp_type(&self) -> (Datatype, Option<Bounds>) {
        let (datatype, unit) = match self.precision {
            Precision::Day => (Datatype::DateTimeDay, scalar::DAY),
            Precision::Second => (Datatype::DateTimeSecond, 1_000_000_000),
            Precision::Milli => (Datatype::DateTimeMilli, 1_000_000),
            Precision::Micro => (Datatype::DateTimeMicro, 1_000),
            Precision::Nano => (Datatype::DateTimeNano, 1),
        };
        let Some((low, high)) = self.stamps else {
            return (datatype, None);
        };
        let (low, high) = (low.div_euclid(unit), high.div_euclid(unit));
        // Nanoseconds end in 2262.
        if i64::try_from(low).is_err() || i64::try_from(high).is_err() {
            return (Datatype::StringUtf8, None);
        }
        (datatype, Some(Bounds::Integer(low, high)))
    }

    /// Whether there are numbers and truth values in lists.
    fn has_mixed_lists(&self) -> bool {
        self.list_truth && (self.list_real || self.integers.is_some())
    }

    fn list(&self, name: &str) -> Profile {
        let datatype = if self.list_truth {
            Datatype::Bool
        } else if self.list_real {
            Datatype::Float64
        } else {
            integer_type(self.integers).map_or(Datatype::Float64, |(datatype, _)| datatype)
        };
        let cell_val_num = match self.list_len {
            Some(n @ 2..) if !self.list_varies && self.nulls == 0 => CellValNum::Fixed(n),
            _ => CellValNum::Var,
        };
        Profile {
            name: name.to_owned(),
            datatype,
            cell_val_num,
            rows: self.rows,
            nulls: self.nulls,
            first_null: self.first_null,
            bounds: None,
            labels: None,
            dictionary: false,
            ordered_labels: false,
            ascii: false,
            bytes: self.bytes,
            stated: false,
            note: None,
        }
    }
}

fn widen(bounds: &mut Option<(i128, i128)>, low: i128, high: i128) {
    let mine = bounds.get_or_insert((low, high));
    *mine = (mine.0.min(low), mine.1.max(high));
}

/// Up to here reals have all integers.
const EXACT: i128 = 1 << 53;

/// INT64, or UINT64 where it must be; `None` where neither holds all values.
fn integer_type(bounds: Option<(i128, i128)>) -> Option<(Datatype, Option<Bounds>)> {
    let Some((low, high)) = bounds else {
        return Some((Datatype::Int64, None));
    };
    let within = |least: i128, most: i128| least <= low && high <= most;
    let datatype = if within(i64::MIN.into(), i64::MAX.into()) {
        Datatype::Int64
    } else if within(0, u64::MAX.into()) {
        Datatype::UInt64
    } else {
        return None;
    };
    Some((datatype, Some(Bounds::Integer(low, high))))
}

/// Whether digits begin with zeros that a number would lose: codes such as 00123.
fn is_padded(value: &[u8]) -> bool {
    let digits = value
        .strip_prefix(b"-")
        .or_else(|| value.strip_prefix(b"+"))
        .unwrap_or(value);
    digits.len() > 1 && digits[0] == b'0' && digits.iter().all(u8::is_ascii_digit)
}

/// A truth value in letters.
pub fn truth(value: &[u8]) -> Option<bool> {
    match value {
        b"true" | b"True" | b"TRUE" => Some(true),
        b"false" | b"False" | b"FALSE" => Some(false),
        _ => None,
    }
}

/// The items of a flat JSON array, or of a list as Arrow prints one; `None` for anything else.
pub fn list_items(value: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let inner = value.strip_prefix(b"[")?.strip_suffix(b"]")?;
    if inner.iter().any(|b| matches!(b, b'[' | b'{' | b'"')) {
        return None;
    }
    let empty = inner.trim_ascii().is_empty();
    Some(
        inner
            .split(|&b| b == b',')
            .map(<[u8]>::trim_ascii)
            .filter(move |_| !empty),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::csv::Dialect;
    use crate::import::ndjson;

    fn rules(quoted_numbers: bool) -> TextRules {
        TextRules {
            nulls: Vec::new(),
            quoted_numbers,
            dates: None,
        }
    }

    fn csv(text: &str) -> Profile {
        let dialect = Dialect {
            delimiter: b',',
            quote: b'"',
            comment: None,
        };
        let mut whole = TextProfile::new(100);
        // In two parts, so that merging is looked at too.
        let middle = text.len() / 2 + text[text.len() / 2..].find('\n').map_or(0, |at| at + 1);
        for part in [&text[..middle], &text[middle..]] {
            let block = dialect
                .cut(part.as_bytes().to_vec(), &[Some(0)], 1)
                .unwrap();
            let mut profile = TextProfile::new(100);
            profile.look(&block, 0, &rules(true), whole.is_text());
            whole.merge(&profile);
        }
        whole.finish("x")
    }

    fn json(values: &str) -> Profile {
        let lines: String = values
            .split(';')
            .map(|v| format!("{{\"x\":{v}}}\n"))
            .collect();
        let mut keys = ndjson::Keys::default();
        let block = ndjson::cut(lines.into_bytes(), &mut keys, |_| true).unwrap();
        let mut profile = TextProfile::new(100);
        profile.look(&block, 0, &rules(false), false);
        profile.finish("x")
    }

    #[test]
    fn types_follow_from_the_values() {
        use Datatype as D;
        for (text, datatype, nulls) in [
            ("1\n-2\n3\n", D::Int64, 0),
            ("1\n\n3\n", D::Int64, 1),
            ("1\nNA\n\"\"\n", D::Int64, 2),
            ("\"1\"\n\"2\"\n", D::Int64, 0),
            ("0\n18446744073709551615\n", D::UInt64, 0),
            ("-1\n18446744073709551615\n", D::StringUtf8, 0),
            ("1\n36893488147419103232\n", D::StringUtf8, 0),
            ("1.5\n36893488147419103232\n", D::Float64, 0),
            ("1\n2.5\nnan\n-inf\n1e300\n", D::Float64, 0),
            ("007\n008\n", D::StringUtf8, 0),
            ("true\nFALSE\n", D::Bool, 0),
            ("true\n1\n", D::StringUtf8, 0),
            ("2024-01-01\n2024-02-29\n", D::DateTimeDay, 0),
            ("2024-01-01\n2024-02-30\n", D::StringUtf8, 0),
            ("2024-01-01\n2024-01-01T10:00\n", D::DateTimeSecond, 0),
            (
                "2024-01-01T10:00:00.5Z\n2024-01-01T10:00:00.0005+01:00\n",
                D::DateTimeMicro,
                0,
            ),
            (
                "0001-01-01T00:00:00.000000001\n2024-01-01\n",
                D::StringUtf8,
                0,
            ),
            ("NA\nx\n\n", D::StringUtf8, 1),
            ("1\n2024-01-01\n", D::StringUtf8, 0),
            ("\n\n", D::StringUtf8, 2),
        ] {
            let profile = csv(text);
            assert_eq!(
                (profile.datatype, profile.nulls),
                (datatype, nulls),
                "{text:?}"
            );
            assert_eq!(profile.first_null.is_some(), nulls > 0, "{text:?}");
        }
    }

    #[test]
    fn bounds_hold_every_value() {
        assert_eq!(csv("3\n-5\n4\n9\n").bounds, Some(Bounds::Integer(-5, 9)));
        assert_eq!(
            csv("3\n-5.5\n1e3\n").bounds,
            Some(Bounds::Real(-5.5, 1000.0))
        );
        assert_eq!(
            csv("1970-01-02\n1969-12-31\n").bounds,
            Some(Bounds::Integer(-1, 1))
        );
    }

    #[test]
    fn json_values_keep_their_kind() {
        use Datatype as D;
        for (values, datatype, cell_val_num) in [
            ("1;2", D::Int64, CellValNum::ONE),
            ("1;2.0", D::Float64, CellValNum::ONE),
            ("\"1\";\"2\"", D::StringUtf8, CellValNum::Var),
            ("\"NA\";1", D::StringUtf8, CellValNum::Var),
            ("true;null", D::Bool, CellValNum::ONE),
            (
                "\"2024-01-01T00:00:00\"",
                D::DateTimeSecond,
                CellValNum::ONE,
            ),
            ("[1,2];[3,4]", D::Int64, CellValNum::Fixed(2)),
            ("[1,2];[3.5]", D::Float64, CellValNum::Var),
            ("[];[1]", D::Int64, CellValNum::Var),
            ("{};[1]", D::StringUtf8, CellValNum::Var),
            ("[true,false];[false, true]", D::Bool, CellValNum::Fixed(2)),
            ("[true];[];[false,true]", D::Bool, CellValNum::Var),
            ("[true];[1]", D::StringUtf8, CellValNum::Var),
            ("[true,0.5]", D::StringUtf8, CellValNum::Var),
            ("[\"a\"]", D::StringUtf8, CellValNum::Var),
        ] {
            let profile = json(values);
            assert_eq!(
                (profile.datatype, profile.cell_val_num),
                (datatype, cell_val_num),
                "{values}"
            );
        }
    }
}

//! Columns of text into columns of an array: one typed loop for each column of a block.

use super::infer::{TextRules, is_null_word, truth};
use super::scalar;
use super::target::Target;
use super::text::{RecordError, Span, SpanKind, TextBlock, shown};
use arrow_buffer::MutableBuffer;
use azulejo::column::{ColumnBuffers, ColumnBuilder, datetime};
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::{CellValNum, Datatype};

/// A value's bytes or number, or that it is missing, or what is wrong with it.
type Parsed<T> = Result<Option<T>, String>;

/// The values of one column of a block as a column of the array.
pub fn column(
    block: &TextBlock,
    column: usize,
    target: &Target,
    rules: &TextRules,
) -> Result<ColumnBuffers, RecordError> {
    let spans = block.columns.get(column).map_or(&[][..], Vec::as_slice);
    let cells = Cells {
        block,
        spans,
        target,
        rules,
    };
    let datatype = target.column.datatype;
    if let Some(labels) = &target.labels {
        return dispatch!(datatype.physical(), T => labelled::<T>(&cells, labels));
    }
    if is_text(datatype) {
        return texts(&cells);
    }
    if is_bytes(datatype) {
        return cells.lumps(|text, _| hexadecimal(text).map(Some));
    }
    if target.column.cell_val_num != CellValNum::ONE {
        return dispatch!(datatype.physical(), T => lists::<T>(&cells));
    }
    if datatype.is_datetime() || datatype.is_time() {
        return cells.numbers(|text| {
            let own = rules.dates.as_ref().and_then(|dates| dates.stamp(text));
            match own.filter(|_| datatype.is_datetime()) {
                Some(stamp) => tick_of(datatype, stamp, text),
                None => tick(datatype, text),
            }
        });
    }
    if datatype == Datatype::Bool {
        return cells.numbers(|text| boolean(text).map(u8::from));
    }
    dispatch!(datatype.physical(), T => numbers::<T>(&cells))
}

/// Whether cells are texts.
pub fn is_text(datatype: Datatype) -> bool {
    matches!(
        datatype,
        Datatype::StringUtf8 | Datatype::StringAscii | Datatype::Char | Datatype::GeomWkt
    )
}

/// Whether cells are opaque bytes, written as hexadecimal digits.
pub fn is_bytes(datatype: Datatype) -> bool {
    !is_text(datatype) && (datatype.is_string() || datatype.is_byte() || datatype == Datatype::Any)
}

/// The values of a column and where they go.
struct Cells<'a> {
    block: &'a TextBlock,
    spans: &'a [Span],
    target: &'a Target,
    rules: &'a TextRules,
}

impl Cells<'_> {
    fn error(&self, row: usize, reason: String) -> RecordError {
        RecordError::value(self.block, row, &self.target.column.name, reason)
    }

    /// The text of a value that is no text by type; `None` if it is missing.
    #[inline]
    fn scalar(&self, span: Span) -> Option<&[u8]> {
        let text = self.block.text(span);
        let missing = self.rules.is_null(text, span.kind)
            || text.is_empty()
            || is_null_word(text) && span.kind != SpanKind::Nested;
        (!missing).then_some(text)
    }

    /// One number a cell.
    fn numbers<T: Native + arrow_buffer::ArrowNativeType>(
        &self,
        parse: impl Fn(&[u8]) -> Result<T, String>,
    ) -> Result<ColumnBuffers, RecordError> {
        let mut data = MutableBuffer::with_capacity(self.spans.len() * T::SIZE);
        let mut validity = self
            .target
            .column
            .nullable
            .then(|| MutableBuffer::with_capacity(self.spans.len()));
        let stand_in = self.target.stand_in().map(|bytes| T::read(&bytes));
        for (row, &span) in self.spans.iter().enumerate() {
            let value = match self.scalar(span) {
                Some(text) => Some(parse(text).map_err(|reason| self.error(row, reason))?),
                None => None,
            };
            match (value, &mut validity, stand_in) {
                (Some(value), None, _) => data.push(value),
                (Some(value), Some(validity), _) => {
                    data.push(value);
                    validity.push(1u8);
                }
                (None, Some(validity), _) => {
                    data.push(T::default());
                    validity.push(0u8);
                }
                (None, None, Some(value)) => data.push(value),
                (None, None, None) => return Err(self.error(row, self.target.missing())),
            }
        }
        Ok(ColumnBuffers {
            column_type: self.target.column.clone(),
            cell_num: self.spans.len(),
            data: data.into(),
            offsets: None,
            validity: validity.map(Into::into),
        })
    }

    /// Cells of bytes that `parse` makes of a text.
    fn lumps(
        &self,
        parse: impl Fn(&[u8], SpanKind) -> Parsed<Vec<u8>>,
    ) -> Result<ColumnBuffers, RecordError> {
        let mut builder = self.builder();
        for (row, &span) in self.spans.iter().enumerate() {
            let text = self.block.text(span);
            let cell = match self.rules.is_null(text, span.kind) {
                true => None,
                false => parse(text, span.kind).map_err(|reason| self.error(row, reason))?,
            };
            self.append(&mut builder, row, cell.as_deref())?;
        }
        Ok(builder.finish())
    }

    fn builder(&self) -> ColumnBuilder {
        let bytes = if self.target.column.is_var() {
            self.block.source_len / 8
        } else {
            0
        };
        ColumnBuilder::with_capacity(self.target.column.clone(), self.spans.len(), bytes)
    }

    fn append(
        &self,
        builder: &mut ColumnBuilder,
        row: usize,
        cell: Option<&[u8]>,
    ) -> Result<(), RecordError> {
        let column = &self.target.column;
        match cell {
            Some(cell) => {
                let size = column.cell_size();
                if !column.is_var() && cell.len() > size {
                    let reason = format!("{} has {} bytes, a cell {size}", shown(cell), cell.len());
                    return Err(self.error(row, reason));
                }
                builder.append_cell(cell, true);
            }
            None if column.nullable => builder.append_cell(&[], false),
            None => {
                let one = self.target.stand_in().filter(|_| !column.is_var());
                let values = column.cell_size() / column.datatype.size();
                let cell = one
                    .ok_or_else(|| self.error(row, self.target.missing()))?
                    .repeat(values);
                builder.append_cell(&cell, true);
            }
        }
        Ok(())
    }
}

/// Texts as they are.
fn texts(cells: &Cells<'_>) -> Result<ColumnBuffers, RecordError> {
    let column = &cells.target.column;
    let utf8 = column.datatype == Datatype::StringUtf8;
    // Marks between values are ASCII: if the whole is UTF-8, so is every value.
    let checked = !utf8 || str::from_utf8(&cells.block.data).is_ok();
    let mut builder = cells.builder();
    for (row, &span) in cells.spans.iter().enumerate() {
        let text = cells.block.text(span);
        if !checked && str::from_utf8(text).is_err() {
            let reason = format!(
                "{} is not UTF-8; --type {}=CHAR keeps its bytes",
                shown(text),
                column.name
            );
            return Err(cells.error(row, reason));
        }
        let cell = (!cells.rules.is_null(text, span.kind)).then_some(text);
        cells.append(&mut builder, row, cell)?;
    }
    Ok(builder.finish())
}

fn numbers<T>(cells: &Cells<'_>) -> Result<ColumnBuffers, RecordError>
where
    T: Native + arrow_buffer::ArrowNativeType + std::str::FromStr,
{
    let datatype = cells.target.column.datatype;
    if datatype.is_real() {
        return cells
            .numbers(|text| scalar::real::<T>(text).ok_or_else(|| no_value(datatype, text)));
    }
    cells.numbers(|text| whole::<T>(text).ok_or_else(|| no_value(datatype, text)))
}

/// An integer that fits `T`; also one written with decimals that are all 0.
fn whole<T: Native + std::str::FromStr>(text: &[u8]) -> Option<T> {
    let text = match memchr::memchr(b'.', text) {
        Some(at) if text[at + 1..].iter().all(|&b| b == b'0') => &text[..at],
        _ => text,
    };
    let integer = scalar::integer(text)?;
    if let Ok(small) = i64::try_from(integer) {
        return narrow(small);
    }
    // Only UINT64 holds what is left.
    str::from_utf8(text).ok()?.parse().ok()
}

/// A 64-bit integer in `T`, if it fits.
fn narrow<T: Native>(value: i64) -> Option<T> {
    let wide = value as f64;
    if T::SIZE < 8 {
        // Narrow types are exact in f64.
        let fits = wide >= T::LOWEST.as_f64() && wide <= T::HIGHEST.as_f64();
        return fits.then(|| T::read(&value.to_le_bytes()));
    }
    let unsigned = T::LOWEST.as_f64() == 0.0;
    (!unsigned || value >= 0).then(|| T::read(&value.to_le_bytes()))
}

fn no_value(datatype: Datatype, text: &[u8]) -> String {
    format!("{} is not a value of {datatype}", shown(text))
}

/// A truth value in letters, 1 or 0.
pub fn boolean(text: &[u8]) -> Result<bool, String> {
    let value = truth(text).or(match text {
        b"1" => Some(true),
        b"0" => Some(false),
        _ => None,
    });
    value.ok_or_else(|| no_value(Datatype::Bool, text))
}

/// A tick of a datetime or time type: ISO 8601, or the tick itself as a number (`@2020` where four
/// digits are a year).
pub fn tick(datatype: Datatype, text: &[u8]) -> Result<i64, String> {
    match scalar::stamp(text).filter(|_| nanos_of(datatype).is_some()) {
        Some(stamp) => tick_of(datatype, stamp, text),
        None => slow_tick(datatype, text),
    }
}

/// Nanoseconds in a tick of the usual types of dates.
fn nanos_of(datatype: Datatype) -> Option<i128> {
    Some(match datatype {
        Datatype::DateTimeDay => scalar::DAY,
        Datatype::DateTimeSecond => 1_000_000_000,
        Datatype::DateTimeMilli => 1_000_000,
        Datatype::DateTimeMicro => 1_000,
        Datatype::DateTimeNano => 1,
        _ => return None,
    })
}

/// The tick of an instant that a text says.
fn tick_of(datatype: Datatype, stamp: scalar::Stamp, text: &[u8]) -> Result<i64, String> {
    let unit = nanos_of(datatype).ok_or_else(|| no_value(datatype, text))?;
    if stamp.nanos.rem_euclid(unit) != 0 {
        return Err(format!("{} is more precise than {datatype}", shown(text)));
    }
    i64::try_from(stamp.nanos.div_euclid(unit))
        .map_err(|_| format!("{} is beyond {datatype}", shown(text)))
}

fn slow_tick(datatype: Datatype, text: &[u8]) -> Result<i64, String> {
    let wrong = || no_value(datatype, text);
    let plain = str::from_utf8(text).map_err(|_| wrong())?;
    let (number, marked) = plain
        .strip_prefix('@')
        .map_or((plain, false), |rest| (rest, true));
    // Of times this fine, which end within months of 1970, four digits are no year.
    let is_fine = matches!(
        datatype,
        Datatype::DateTimePico | Datatype::DateTimeFemto | Datatype::DateTimeAtto
    );
    if (marked || number.len() != 4 || datatype.is_time() || is_fine)
        && let Ok(tick) = number.parse()
    {
        return Ok(tick);
    }
    if datatype.is_time()
        && let Some(nanos) = scalar::duration(text)
    {
        return time_tick(datatype, nanos).ok_or_else(wrong);
    }
    datetime::parse_ticks(plain, datatype)
}

fn time_tick(datatype: Datatype, nanos: i128) -> Option<i64> {
    let unit = match datatype {
        Datatype::TimeHour => 3_600_000_000_000,
        Datatype::TimeMinute => 60_000_000_000,
        Datatype::TimeSecond => 1_000_000_000,
        Datatype::TimeMilli => 1_000_000,
        Datatype::TimeMicro => 1_000,
        Datatype::TimeNano => 1,
        _ => return None,
    };
    (nanos % unit == 0)
        .then(|| i64::try_from(nanos / unit).ok())
        .flatten()
}

fn hexadecimal(text: &[u8]) -> Result<Vec<u8>, String> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    str::from_utf8(digits)
        .ok()
        .and_then(azulejo::json::unhex)
        .ok_or_else(|| format!("{} is not bytes as hexadecimal digits", shown(text)))
}

/// Several numbers a cell, as `[1, 2]`.
fn lists<T>(cells: &Cells<'_>) -> Result<ColumnBuffers, RecordError>
where
    T: Native + std::str::FromStr,
{
    let column = &cells.target.column;
    let datatype = column.datatype;
    let item = |text: &[u8]| -> Result<T, String> {
        let text = text
            .strip_prefix(b"\"")
            .and_then(|t| t.strip_suffix(b"\""))
            .unwrap_or(text);
        if text.is_empty() || is_null_word(text) {
            let fill = datatype.default_fill();
            let has_one = datatype.is_real() || datatype.is_datetime() || datatype.is_time();
            return has_one
                .then(|| T::read(&fill))
                .ok_or_else(|| format!("an item of {datatype} is missing"));
        }
        if datatype.is_datetime() || datatype.is_time() {
            return tick(datatype, text).map(|tick| T::read(&tick.to_le_bytes()));
        }
        if datatype == Datatype::Bool {
            return boolean(text).map(|b| T::read(&[u8::from(b)]));
        }
        let number = if datatype.is_real() {
            scalar::real::<T>(text)
        } else {
            whole::<T>(text)
        };
        number.ok_or_else(|| no_value(datatype, text))
    };
    cells.lumps(|text, kind| {
        if kind != SpanKind::Nested && text.is_empty() {
            return Ok(None);
        }
        let inner = text
            .trim_ascii()
            .strip_prefix(b"[")
            .and_then(|t| t.strip_suffix(b"]"));
        let inner = inner.ok_or_else(|| format!("{} is not a list such as [1, 2]", shown(text)))?;
        let mut bytes = Vec::new();
        if !inner.trim_ascii().is_empty() {
            for text in inner.split(|&b| b == b',') {
                let at = bytes.len();
                bytes.resize(at + T::SIZE, 0);
                item(text.trim_ascii())?.write(&mut bytes[at..]);
            }
        }
        match column.cell_val_num {
            CellValNum::Fixed(n) if bytes.len() != n as usize * T::SIZE => {
                let count = bytes.len() / T::SIZE;
                Err(format!(
                    "{} has {count} values where {n} are expected",
                    shown(text)
                ))
            }
            _ => Ok(Some(bytes)),
        }
    })
}

/// Labels as indices.
fn labelled<T: Native>(
    cells: &Cells<'_>,
    labels: &super::target::LabelIndex,
) -> Result<ColumnBuffers, RecordError> {
    let column = &cells.target.column;
    let values = column
        .enumeration
        .as_ref()
        .map_or(Datatype::StringUtf8, |e| e.datatype);
    let as_text = is_text(values);
    cells.lumps(|text, kind| {
        let parsed;
        let label = if as_text {
            text
        } else if text.is_empty() || (kind == SpanKind::Bare && is_null_word(text)) {
            return Ok(None);
        } else {
            let plain = str::from_utf8(text).map_err(|_| no_value(values, text))?;
            parsed = crate::value::parse(values, plain, crate::value::Bound::Low)?;
            &parsed
        };
        let index = labels
            .get(label)
            .ok_or_else(|| format!("{} is none of the labels", shown(text)))?;
        let mut bytes = vec![0; T::SIZE];
        T::read(&index.to_le_bytes()).write(&mut bytes);
        Ok(Some(bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::csv::Dialect;
    use azulejo::column::ColumnType;
    use azulejo::format::schema::Enumeration;
    use std::sync::Arc;

    fn read(text: &str, column_type: ColumnType) -> Result<Vec<Option<Vec<u8>>>, String> {
        read_target(text, &Target::new(column_type, 0, false))
    }

    fn read_target(text: &str, target: &Target) -> Result<Vec<Option<Vec<u8>>>, String> {
        let dialect = Dialect {
            delimiter: b';',
            quote: b'"',
            comment: None,
        };
        let block = dialect
            .cut(text.as_bytes().to_vec(), &[Some(0)], 1)
            .unwrap();
        let rules = TextRules {
            nulls: vec![b"-".to_vec()],
            quoted_numbers: true,
            dates: None,
        };
        let read = column(&block, 0, target, &rules)
            .map_err(|e| format!("{}: {}", e.lines + 1, e.reason))?;
        read.validate().unwrap();
        Ok(read.cells().map(|cell| cell.map(<[u8]>::to_vec)).collect())
    }

    fn ticks(text: &str, datatype: Datatype) -> Result<Vec<i64>, String> {
        let cells = read(text, ColumnType::new("x", datatype))?;
        Ok(cells
            .iter()
            .map(|c| i64::read(c.as_ref().unwrap()))
            .collect())
    }

    #[test]
    fn numbers_fill_their_type_and_no_more() {
        let one = |text: &str, datatype| {
            read(text, ColumnType::new("x", datatype)).map(|c| c[0].clone().unwrap())
        };
        assert_eq!(one("-128", Datatype::Int8).unwrap(), [0x80]);
        assert_eq!(one("255", Datatype::UInt8).unwrap(), [0xff]);
        assert_eq!(
            one("18446744073709551615", Datatype::UInt64).unwrap(),
            [0xff; 8]
        );
        assert_eq!(
            one("-9223372036854775808", Datatype::Int64).unwrap(),
            i64::MIN.to_le_bytes()
        );
        assert_eq!(one("3.00", Datatype::Int32).unwrap(), 3i32.to_le_bytes());
        assert_eq!(
            one("1e-3", Datatype::Float32).unwrap(),
            1e-3f32.to_le_bytes()
        );
        assert_eq!(
            one("inf", Datatype::Float64).unwrap(),
            f64::INFINITY.to_le_bytes()
        );
        assert_eq!(one("TRUE", Datatype::Bool).unwrap(), [1]);
        for (text, datatype) in [
            ("128", Datatype::Int8),
            ("-1", Datatype::UInt8),
            ("-1", Datatype::UInt64),
            ("9223372036854775808", Datatype::Int64),
            ("18446744073709551616", Datatype::UInt64),
            ("3.5", Datatype::Int32),
            ("x", Datatype::Float64),
            ("2", Datatype::Bool),
        ] {
            let error = one(text, datatype).unwrap_err();
            assert_eq!(error, format!("1: {text:?} is not a value of {datatype}"));
        }
    }

    #[test]
    fn missing_values_are_null_or_stand_ins_or_refused() {
        let nullable = ColumnType::new("x", Datatype::Int32).with_nulls();
        let cells = read("1\n\nNA\n-\n\"\"\n", nullable).unwrap();
        assert_eq!(
            cells.iter().map(Option::is_some).collect::<Vec<_>>(),
            [true, false, false, false, false]
        );
        let error = read("1\n\n", ColumnType::new("x", Datatype::Int32)).unwrap_err();
        assert_eq!(error, "2: it is missing, and the attribute cannot be null");
        let nan = read("\n", ColumnType::new("x", Datatype::Float64)).unwrap();
        assert!(f64::read(nan[0].as_ref().unwrap()).is_nan());
        assert_eq!(ticks("\n", Datatype::DateTimeMilli).unwrap(), [i64::MIN]);
        let dimension = Target::new(ColumnType::new("x", Datatype::Float64), 0, true);
        assert!(
            read_target("\n", &dimension)
                .unwrap_err()
                .contains("coordinates")
        );
        let text = ColumnType::new("x", Datatype::StringUtf8)
            .with_cell_val_num(CellValNum::Var)
            .with_nulls();
        let cells = read("NA\n\n\"\"\n-\n", text).unwrap();
        assert_eq!(cells, [Some(b"NA".to_vec()), None, Some(vec![]), None]);
    }

    #[test]
    fn dates_and_times_in_their_units() {
        assert_eq!(
            ticks("1970-01-03\n@5\n-7", Datatype::DateTimeDay).unwrap(),
            [2, 5, -7]
        );
        assert_eq!(ticks("2024\n@3", Datatype::DateTimeYear).unwrap(), [54, 3]);
        assert_eq!(
            ticks("2024-01-01T00:00:00", Datatype::DateTimeYear).unwrap(),
            [54]
        );
        assert_eq!(
            ticks("1970-03-01T00:00:00", Datatype::DateTimeMonth).unwrap(),
            [2]
        );
        assert_eq!(
            ticks("1969-12-31T23:59:59.999", Datatype::DateTimeMilli).unwrap(),
            [-1]
        );
        assert_eq!(
            ticks("01:00:01\nPT3600S\n7", Datatype::TimeSecond).unwrap(),
            [3601, 3600, 7]
        );
        assert_eq!(ticks("PT7200S", Datatype::TimeHour).unwrap(), [2]);
        assert!(
            ticks("1970-01-01T12:00", Datatype::DateTimeDay)
                .unwrap_err()
                .contains("more precise")
        );
        assert!(
            ticks("2300-01-01", Datatype::DateTimeNano)
                .unwrap_err()
                .contains("beyond")
        );
        assert!(ticks("noon", Datatype::DateTimeSecond).is_err());
    }

    #[test]
    fn texts_bytes_and_lists() {
        let var = |datatype| ColumnType::new("x", datatype).with_cell_val_num(CellValNum::Var);
        let fixed =
            |datatype, n| ColumnType::new("x", datatype).with_cell_val_num(CellValNum::Fixed(n));
        assert_eq!(
            read("00ff\n0x01", var(Datatype::Blob)).unwrap(),
            [Some(vec![0, 255]), Some(vec![1])]
        );
        assert!(read("zz", var(Datatype::Blob)).is_err());
        assert_eq!(
            read("ab", fixed(Datatype::Char, 3)).unwrap(),
            [Some(b"ab\0".to_vec())]
        );
        assert!(
            read("abcd", fixed(Datatype::Char, 3))
                .unwrap_err()
                .contains("4 bytes, a cell 3")
        );
        assert_eq!(
            read("[1, 2]\n[]", var(Datatype::Int8)).unwrap(),
            [Some(vec![1, 2]), Some(vec![])]
        );
        assert_eq!(
            read("[1, -1]", fixed(Datatype::Int8, 2)).unwrap(),
            [Some(vec![1, 255])]
        );
        assert!(
            read("[1]", fixed(Datatype::Int8, 2))
                .unwrap_err()
                .contains("1 values where 2")
        );
        assert!(
            read("1", fixed(Datatype::Int8, 2))
                .unwrap_err()
                .contains("not a list")
        );
    }

    #[test]
    fn labels_become_indices() {
        let labels = Enumeration::of_strings("e", Datatype::StringUtf8, false, ["b", "a"]).unwrap();
        let column_type = ColumnType {
            enumeration: Some(Arc::new(labels)),
            ..ColumnType::new("x", Datatype::UInt16)
        };
        assert_eq!(
            read("a\nb\n", column_type.clone()).unwrap(),
            [Some(vec![1, 0]), Some(vec![0, 0])]
        );
        assert!(
            read("c", column_type)
                .unwrap_err()
                .contains("none of the labels")
        );
        let data = [5i32, 7].iter().flat_map(|v| v.to_le_bytes()).collect();
        let labels =
            Enumeration::of_fixed("e", Datatype::Int32, CellValNum::ONE, false, data).unwrap();
        let column_type = ColumnType {
            enumeration: Some(Arc::new(labels)),
            ..ColumnType::new("x", Datatype::Int8)
        };
        assert_eq!(read("7\n", column_type).unwrap(), [Some(vec![1])]);
    }
}

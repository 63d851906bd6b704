//! CSV: a file cut into blocks of whole records, and blocks into values.
//!
//! Records end at line ends outside quotes. A quote opens a quoted value only at its beginning, two
//! quotes in it are one, and what follows the closing quote belongs to the value: what most readers
//! do. Lines without any text are no records, unless there is only one column.

use super::text::{RecordError, Span, SpanKind, TextBlock};
use memchr::{memchr, memchr_iter};

/// What a file's marks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// Between values.
    pub delimiter: u8,
    /// Around values.
    pub quote: u8,
    /// What lines begin with that are no records.
    pub comment: Option<u8>,
}

/// The most columns that a file can have: the spans of one row must fit memory.
pub const MAX_COLUMNS: usize = 1 << 16;

impl Dialect {
    /// Where the last whole record of `bytes` ends, behind its line end. `bytes` begins with a
    /// record; `None` if it holds no whole one.
    pub fn last_record_end(self, bytes: &[u8]) -> Option<usize> {
        let (mut at, mut end) = (0, None);
        // Where the line that holds `at` begins, as far as it is outside quotes.
        let mut line_start = 0;
        // Quoted values are rare or short: between them the last line end counts.
        loop {
            let Some(found) = memchr(self.quote, &bytes[at..]) else {
                return memchr::memrchr(b'\n', &bytes[at..])
                    .map(|found| at + found + 1)
                    .or(end);
            };
            let quote = at + found;
            if let Some(line) = memchr::memrchr(b'\n', &bytes[at..quote]) {
                line_start = at + line + 1;
                end = Some(line_start);
            }
            if self
                .comment
                .is_some_and(|mark| bytes.get(line_start) == Some(&mark))
            {
                let Some(rest) = memchr(b'\n', &bytes[quote..]) else {
                    return end;
                };
                at = quote + rest + 1;
                (line_start, end) = (at, Some(at));
                continue;
            }
            let opens = quote == 0
                || matches!(bytes[quote - 1], b'\n')
                || bytes[quote - 1] == self.delimiter;
            at = quote + 1;
            if opens {
                match self.close(bytes, at) {
                    Some(closed) => at = closed,
                    None => return end,
                }
            }
        }
    }

    /// Where the first record ends, before its line end: for headers, where lines may end in CR
    /// too.
    pub fn first_record_end(self, bytes: &[u8]) -> usize {
        let mut at = 0;
        loop {
            if bytes.get(at) == Some(&self.quote) {
                let Some(closed) = self.close(bytes, at + 1) else {
                    return bytes.len();
                };
                at = closed;
            }
            let rest = bytes.get(at..).unwrap_or(&[]);
            match rest
                .iter()
                .position(|&b| b == self.delimiter || b == b'\n' || b == b'\r')
            {
                Some(found) if rest[found] == self.delimiter => at += found + 1,
                Some(found) => return at + found,
                None => return bytes.len(),
            }
        }
    }

    /// Behind the quote that ends a quoted value whose text begins at `at`.
    fn close(self, bytes: &[u8], mut at: usize) -> Option<usize> {
        loop {
            let quote = at + memchr(self.quote, bytes.get(at..)?)?;
            if bytes.get(quote + 1) != Some(&self.quote) {
                return Some(quote + 1);
            }
            at = quote + 2;
        }
    }

    /// The values of one record, as text: for header lines.
    pub fn header(self, line: &[u8]) -> Result<Vec<String>, RecordError> {
        let mut texts = Vec::new();
        let mut arena = Vec::new();
        let mut at = 0;
        while at <= line.len() {
            let value = self.value(line, at, &mut arena, 0)?;
            let bytes = match value.unescaped {
                true => arena.get(value.start..value.end),
                false => line.get(value.start..value.end),
            };
            texts.push(String::from_utf8_lossy(bytes.unwrap_or(&[])).into_owned());
            if value.ends_record {
                break;
            }
            at = value.next;
        }
        Ok(texts)
    }

    /// Cuts whole records of `columns` values each. `wanted` says of each column whether and as
    /// which one it comes out.
    pub fn cut(
        self,
        data: Vec<u8>,
        wanted: &[Option<usize>],
        kept: usize,
    ) -> Result<TextBlock, RecordError> {
        let expected = wanted.len();
        let guess = data.len() / (expected * 8 + 8);
        let mut columns: Vec<Vec<Span>> = (0..kept).map(|_| Vec::with_capacity(guess)).collect();
        let mut row_starts = Vec::with_capacity(guess);
        let mut arena = Vec::new();
        let mut at = 0;
        while at < data.len() {
            if self.comment.is_some_and(|mark| data.get(at) == Some(&mark)) {
                at = memchr(b'\n', &data[at..]).map_or(data.len(), |found| at + found + 1);
                continue;
            }
            if expected > 1
                && let Some(next) = blank_line(&data, at)
            {
                at = next;
                continue;
            }
            let (start, row) = (at, row_starts.len());
            row_starts.push(start as u32);
            let error = |reason: String| RecordError {
                row,
                lines: memchr_iter(b'\n', &data[..start]).count() as u64,
                column: None,
                reason,
            };
            let mut column = 0;
            loop {
                let value = self
                    .value(&data, at, &mut arena, data.len())
                    .map_err(|e| error(e.reason))?;
                match wanted.get(column) {
                    Some(&Some(target)) => {
                        let kind = if value.quoted {
                            SpanKind::Quoted
                        } else {
                            SpanKind::Bare
                        };
                        columns[target].push(Span::new(value.start, value.end, kind));
                    }
                    Some(None) => {}
                    None => {
                        let more = self.count(&data, start);
                        return Err(error(format!(
                            "the record has {more} values where {expected} are expected"
                        )));
                    }
                }
                column += 1;
                at = value.next;
                if value.ends_record {
                    break;
                }
            }
            if column < expected {
                return Err(error(format!(
                    "the record has {column} values where {expected} are expected"
                )));
            }
        }
        let source_len = data.len();
        let mut data = data;
        data.extend_from_slice(&arena);
        Ok(TextBlock {
            data,
            source_len,
            rows: row_starts.len(),
            columns,
            row_starts,
        })
    }

    /// The number of values in the record that begins at `at`.
    fn count(self, data: &[u8], mut at: usize) -> usize {
        let mut arena = Vec::new();
        let mut count = 0;
        loop {
            count += 1;
            match self.value(data, at, &mut arena, 0) {
                Ok(value) if !value.ends_record => at = value.next,
                _ => return count,
            }
        }
    }

    /// The value at `at`. Values with doubled quotes go to `arena`, which will lie at
    /// `arena_start`.
    #[inline]
    fn value(
        self,
        data: &[u8],
        at: usize,
        arena: &mut Vec<u8>,
        arena_start: usize,
    ) -> Result<Value, RecordError> {
        if data.get(at) == Some(&self.quote) {
            return self.quoted(data, at + 1, arena, arena_start);
        }
        let end = self.end_of_bare(data, at);
        let (next, ends_record) = after(data, end);
        Ok(Value {
            start: at,
            end: trim_cr(data, at, end),
            next,
            ends_record,
            quoted: false,
            unescaped: false,
        })
    }

    fn end_of_bare(self, data: &[u8], at: usize) -> usize {
        let rest = data.get(at..).unwrap_or(&[]);
        let found = rest.iter().position(|&b| b == self.delimiter || b == b'\n');
        found.map_or(data.len(), |found| at + found)
    }

    fn quoted(
        self,
        data: &[u8],
        start: usize,
        arena: &mut Vec<u8>,
        arena_start: usize,
    ) -> Result<Value, RecordError> {
        let Some(closed) = self.close(data, start) else {
            let reason = "a quoted value has no closing quote".to_owned();
            return Err(RecordError {
                row: 0,
                lines: 0,
                column: None,
                reason,
            });
        };
        let text = &data[start..closed - 1];
        let end = self.end_of_bare(data, closed);
        let tail = &data[closed..trim_cr(data, closed, end)];
        let (next, ends_record) = after(data, end);
        if tail.is_empty() && memchr(self.quote, text).is_none() {
            return Ok(Value {
                start,
                end: closed - 1,
                next,
                ends_record,
                quoted: true,
                unescaped: false,
            });
        }
        let begin = arena.len();
        let mut from = 0;
        while let Some(found) = memchr(self.quote, &text[from..]) {
            arena.extend_from_slice(&text[from..=from + found]);
            from += found + 2;
        }
        arena.extend_from_slice(text.get(from..).unwrap_or(&[]));
        arena.extend_from_slice(tail);
        let (start, end) = (arena_start + begin, arena_start + arena.len());
        Ok(Value {
            start,
            end,
            next,
            ends_record,
            quoted: true,
            unescaped: true,
        })
    }
}

struct Value {
    start: usize,
    end: usize,
    next: usize,
    ends_record: bool,
    quoted: bool,
    unescaped: bool,
}

/// What follows a value that ends at `end`: where, and whether the record ends there.
fn after(data: &[u8], end: usize) -> (usize, bool) {
    (end + 1, data.get(end).is_none_or(|&b| b == b'\n'))
}

/// Without the carriage return of a line that ends in CR LF.
fn trim_cr(data: &[u8], start: usize, end: usize) -> usize {
    let at_line_end = data.get(end).is_none_or(|&b| b == b'\n');
    if at_line_end && end > start && data[end - 1] == b'\r' {
        end - 1
    } else {
        end
    }
}

/// Behind the line at `at` if there is nothing in it.
fn blank_line(data: &[u8], at: usize) -> Option<usize> {
    match data.get(at..)? {
        [b'\n', ..] => Some(at + 1),
        [b'\r', b'\n', ..] | [b'\r'] => Some(at + 2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMA: Dialect = Dialect {
        delimiter: b',',
        quote: b'"',
        comment: None,
    };

    fn rows(text: &str, columns: usize) -> Result<Vec<Vec<String>>, RecordError> {
        let wanted: Vec<Option<usize>> = (0..columns).map(Some).collect();
        let block = COMMA.cut(text.as_bytes().to_vec(), &wanted, columns)?;
        let text = |span: Span| {
            let text = String::from_utf8_lossy(block.text(span)).into_owned();
            if span.kind == SpanKind::Quoted {
                format!("'{text}'")
            } else {
                text
            }
        };
        Ok((0..block.rows)
            .map(|row| block.columns.iter().map(|c| text(c[row])).collect())
            .collect())
    }

    #[test]
    fn values_of_every_shape() {
        let text = "a,\"b,\n\"\"c\"\"\",\r\n,\"\",x\"y\n\n\"p\"q,  r ,\"\"\"\"";
        let expected = [
            ["a", "'b,\n\"c\"'", ""],
            ["", "''", "x\"y"],
            ["'pq'", "  r ", "'\"'"],
        ];
        assert_eq!(rows(text, 3).unwrap(), expected);
        assert_eq!(rows("1\n\n3\n", 1).unwrap(), [["1"], [""], ["3"]]);
        assert_eq!(rows("1,2\r\n\r\n3,4", 2).unwrap(), [["1", "2"], ["3", "4"]]);
        assert_eq!(rows("a,\n", 2).unwrap(), [["a", ""]]);
        assert_eq!(rows("a,", 2).unwrap(), [["a", ""]]);
        assert_eq!(
            COMMA.header(b"a,\"b \"\"c\"\"\",d").unwrap(),
            ["a", "b \"c\"", "d"]
        );
    }

    #[test]
    fn wrong_records_are_told_by_row_and_line() {
        let error = rows("1,\"2\n\"\n3,4,5\n", 2).unwrap_err();
        assert_eq!((error.row, error.lines), (1, 2));
        assert_eq!(error.reason, "the record has 3 values where 2 are expected");
        let error = rows("1,2\n3\n", 2).unwrap_err();
        assert_eq!(error.reason, "the record has 1 values where 2 are expected");
        assert!(
            rows("1,\"2\n3,4\n", 2)
                .unwrap_err()
                .reason
                .contains("no closing quote")
        );
    }

    #[test]
    fn records_end_outside_quotes() {
        let end = |text: &str| COMMA.last_record_end(text.as_bytes());
        assert_eq!(end("a,b\nc,d"), Some(4));
        assert_eq!(end("a,\"b\nc\"\nd"), Some(8));
        assert_eq!(end("a,\"b\nc"), None);
        assert_eq!(end("a\n\"b\"\"\nc"), Some(2));
        assert_eq!(end("5\" tall\n6\" tall\nx"), Some(16));
        assert_eq!(end(""), None);
        assert_eq!(end("\"\"\n"), Some(3));
    }

    fn by_another_reader(text: &str) -> Vec<Vec<String>> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .terminator(csv::Terminator::Any(b'\n'))
            .from_reader(text.as_bytes());
        reader
            .records()
            .map(|r| r.unwrap().iter().map(str::to_owned).collect())
            .collect()
    }

    /// Every text of up to seven marks and letters.
    #[test]
    fn another_reader_agrees() {
        let plain = |rows: Vec<Vec<String>>| -> Vec<Vec<String>> {
            let text = |t: String| match t.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')) {
                Some(inner) => inner.to_owned(),
                None => t,
            };
            rows.into_iter()
                .map(|row| row.into_iter().map(text).collect())
                .collect()
        };
        let mut both = 0;
        for length in 0..=7u32 {
            for code in 0..4usize.pow(length) {
                let text: String = (0..length)
                    .map(|i| ['a', ',', '"', '\n'][code / 4usize.pow(i) % 4])
                    .collect();
                let theirs = by_another_reader(&text);
                match rows(&text, 2) {
                    Ok(ours) => {
                        assert_eq!(plain(ours.clone()), theirs, "{text:?}");
                        // Cut in two between records, the text has the same values.
                        if let Some(end) = COMMA.last_record_end(text.as_bytes()) {
                            let mut parts = rows(&text[..end], 2).unwrap();
                            parts.extend(rows(&text[end..], 2).unwrap());
                            assert_eq!(parts, ours, "{text:?}");
                        }
                        both += 1;
                    }
                    Err(error) => {
                        let uneven = theirs.iter().any(|row| row.len() != 2);
                        assert!(
                            uneven || error.reason.contains("no closing quote"),
                            "{text:?}: {}",
                            error.reason
                        );
                    }
                }
            }
        }
        assert!(both > 1000, "{both}");
    }

    #[test]
    fn columns_not_wanted_are_left_out() {
        let block = COMMA
            .cut(b"1,2,3\n4,5,6\n".to_vec(), &[Some(1), None, Some(0)], 2)
            .unwrap();
        let texts = |c: usize| {
            block.columns[c]
                .iter()
                .map(|&s| block.text(s))
                .collect::<Vec<_>>()
        };
        assert_eq!(texts(0), [b"3", b"6"]);
        assert_eq!(texts(1), [b"1", b"4"]);
    }
}

//! JSON lines: one object a line, a column for each key.

use super::text::{RecordError, Span, SpanKind, TextBlock};
use memchr::{memchr, memrchr};
use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// The most values of a block, missing ones included: objects of ever other keys are no table.
const MOST_SPANS: usize = 1 << 25;

/// The keys that make columns.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    names: Vec<String>,
    index: HashMap<String, usize>,
}

impl Keys {
    /// These, in this order.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let mut keys = Self::default();
        for name in names {
            keys.add(&name);
        }
        keys
    }

    /// The names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The column of a key, a new one if there is none.
    pub fn add(&mut self, name: &str) -> usize {
        if let Some(&at) = self.index.get(name) {
            return at;
        }
        self.names.push(name.to_owned());
        self.index.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    /// The column of a key. Objects mostly have the same keys in the same order: `guess` is tried
    /// first.
    fn find(&self, name: &str, guess: usize) -> Option<usize> {
        match self.names.get(guess) {
            Some(next) if next == name => Some(guess),
            _ => self.index.get(name).copied(),
        }
    }
}

/// Behind the last line end.
pub fn last_record_end(bytes: &[u8]) -> Option<usize> {
    memrchr(b'\n', bytes).map(|at| at + 1)
}

/// Cuts whole lines into values. Of the keys that are not among `keys`, those that `discover` takes
/// are added, others are left out.
pub fn cut(
    data: Vec<u8>,
    keys: &mut Keys,
    discover: impl Fn(&str) -> bool,
) -> Result<TextBlock, RecordError> {
    let mut lines = Lines {
        keys,
        discover: &discover,
        row: 0,
        base: data.as_ptr().addr(),
        columns: Vec::new(),
        arena: Vec::new(),
        arena_start: data.len(),
    };
    let mut row_starts = Vec::new();
    let (mut at, mut line_number) = (0, 0);
    while at < data.len() {
        let end = memchr(b'\n', &data[at..]).map_or(data.len(), |found| at + found);
        let line = &data[at..end];
        if !line.trim_ascii().is_empty() {
            let (row, error) = (row_starts.len(), |reason| RecordError {
                row: row_starts.len(),
                lines: line_number,
                column: None,
                reason,
            });
            lines.row = row;
            lines.read(line).map_err(error)?;
            row_starts.push(at as u32);
        }
        (at, line_number) = (end + 1, line_number + 1);
    }
    let (mut columns, arena) = (lines.columns, lines.arena);
    let rows = row_starts.len();
    columns.resize(keys.names.len().max(columns.len()), Vec::new());
    for column in &mut columns {
        column.resize(rows, Span::MISSING);
    }
    let source_len = data.len();
    let mut data = data;
    data.extend_from_slice(&arena);
    Ok(TextBlock {
        data,
        source_len,
        rows,
        columns,
        row_starts,
    })
}

struct Lines<'k> {
    keys: &'k mut Keys,
    discover: &'k dyn Fn(&str) -> bool,
    row: usize,
    base: usize,
    columns: Vec<Vec<Span>>,
    arena: Vec<u8>,
    arena_start: usize,
}

impl Lines<'_> {
    fn read(&mut self, line: &[u8]) -> Result<(), String> {
        let mut json = serde_json::Deserializer::from_slice(line);
        let mut own_reason = None;
        let object = Object {
            lines: self,
            reason: &mut own_reason,
        };
        let read = json.deserialize_map(object).and_then(|()| json.end());
        read.map_err(|e| {
            if let Some(reason) = own_reason {
                return reason;
            }
            let array = line.trim_ascii_start().first() == Some(&b'[');
            let hint = if array {
                "; a file of one array becomes lines with `jq -c '.[]'`"
            } else {
                ""
            };
            format!("the line is not a JSON object: {}{hint}", message(&e))
        })
    }

    fn take(&mut self, key: &str, guess: usize, raw: &RawValue) -> Result<Option<usize>, String> {
        let column = match self.keys.find(key, guess) {
            Some(column) => column,
            None if (self.discover)(key) => self.keys.add(key),
            None => return Ok(None),
        };
        let span = self.span(raw.get())?;
        if self.columns.len() <= column {
            self.columns.resize(column + 1, Vec::new());
        }
        if self.columns.len().saturating_mul(self.row + 1) > MOST_SPANS {
            let (keys, lines) = (self.columns.len(), self.row + 1);
            return Err(format!(
                "the objects share too few keys to make a table: {keys} keys in {lines} lines"
            ));
        }
        let spans = &mut self.columns[column];
        // Of a key that is there twice the last value counts, as in JavaScript and Python.
        spans.truncate(self.row);
        spans.resize(self.row, Span::MISSING);
        spans.push(span);
        Ok(Some(column))
    }

    fn span(&mut self, raw: &str) -> Result<Span, String> {
        let start = raw.as_ptr().addr() - self.base;
        let end = start + raw.len();
        Ok(match raw.as_bytes() {
            b"null" => Span::MISSING,
            [b'"', ..] if memchr(b'\\', raw.as_bytes()).is_none() => {
                Span::new(start + 1, end - 1, SpanKind::Quoted)
            }
            [b'"', ..] => {
                let text: String = serde_json::from_str(raw)
                    .map_err(|e| format!("the line is not a JSON object: {}", message(&e)))?;
                let begin = self.arena_start + self.arena.len();
                self.arena.extend_from_slice(text.as_bytes());
                Span::new(begin, begin + text.len(), SpanKind::Quoted)
            }
            [b'[' | b'{', ..] => Span::new(start, end, SpanKind::Nested),
            _ => Span::new(start, end, SpanKind::Bare),
        })
    }
}

/// What serde_json says, without the line number: it sees one line at a time.
fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => format!("{reason} (character {})", error.column()),
        None => text,
    }
}

struct Object<'a, 'k> {
    lines: &'a mut Lines<'k>,
    /// Why the line was refused, if not for its form.
    reason: &'a mut Option<String>,
}

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut guess = 0;
        while let Some(key) = map.next_key::<BorrowedText<'de>>()? {
            let raw: &'de RawValue = map.next_value()?;
            let taken = self.lines.take(&key.0, guess, raw).map_err(|reason| {
                *self.reason = Some(reason);
                serde::de::Error::custom("refused")
            })?;
            guess = taken.map_or(guess, |column| column + 1);
        }
        Ok(())
    }
}

/// A key, borrowed where it needs no unescaping.
struct BorrowedText<'de>(Cow<'de, str>);

impl<'de> serde::Deserialize<'de> for BorrowedText<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = BorrowedText<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(BorrowedText(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(BorrowedText(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(block: &TextBlock, column: usize) -> Vec<(SpanKind, String)> {
        let text = |&span: &Span| {
            (
                span.kind,
                String::from_utf8_lossy(block.text(span)).into_owned(),
            )
        };
        block.columns[column].iter().map(text).collect()
    }

    #[test]
    fn keys_become_columns_as_they_appear() {
        let text = "{\"a\":1,\"b\":\"x\\n\\u00e9\"}\n\n{\"b\":null,\"c\":[1, 2]}\r\n{\"a\":-1.5e3,\"a\":true,\"d\\\"\":{}}";
        let mut keys = Keys::default();
        let block = cut(text.as_bytes().to_vec(), &mut keys, |_| true).unwrap();
        assert_eq!(keys.names(), ["a", "b", "c", "d\""]);
        assert_eq!(block.rows, 3);
        let (bare, quoted, nested) = (SpanKind::Bare, SpanKind::Quoted, SpanKind::Nested);
        let missing = (SpanKind::Missing, String::new());
        assert_eq!(
            texts(&block, 0),
            [(bare, "1".into()), missing.clone(), (bare, "true".into())]
        );
        assert_eq!(
            texts(&block, 1),
            [(quoted, "x\né".into()), missing.clone(), missing.clone()]
        );
        assert_eq!(
            texts(&block, 2),
            [missing.clone(), (nested, "[1, 2]".into()), missing.clone()]
        );
        assert_eq!(texts(&block, 3)[2], (nested, "{}".into()));
    }

    #[test]
    fn only_the_keys_wanted() {
        let mut keys = Keys::new(["b".to_owned()]);
        let block = cut(
            b"{\"a\":1,\"b\":2}\n{\"a\":3}\n".to_vec(),
            &mut keys,
            |_| false,
        )
        .unwrap();
        assert_eq!(block.columns.len(), 1);
        assert_eq!(texts(&block, 0)[0].1, "2");
        assert_eq!(block.columns[0][1], Span::MISSING);
    }

    #[test]
    fn objects_without_common_keys_are_no_table() {
        let text: String = (0..8_000).map(|i| format!("{{\"k{i}\":1}}\n")).collect();
        let error = cut(text.into_bytes(), &mut Keys::default(), |_| true).unwrap_err();
        assert!(
            error.reason.starts_with("the objects share too few keys"),
            "{}",
            error.reason
        );
    }

    #[test]
    fn wrong_lines_are_told() {
        let error =
            |text: &str| cut(text.as_bytes().to_vec(), &mut Keys::default(), |_| true).unwrap_err();
        let found = error("{\"a\":1}\n\n{\"a\":}\n");
        assert_eq!((found.row, found.lines), (1, 2));
        assert!(
            found.reason.contains("not a JSON object"),
            "{}",
            found.reason
        );
        assert!(error("[1]\n").reason.contains("jq -c"));
        assert!(error("{\"a\":1} x\n").reason.contains("trailing"));
        assert!(
            error("{\"a\":\"\\ud800\"}\n")
                .reason
                .contains("not a JSON object")
        );
    }
}

//! Blocks of records whose values are text: what CSV and JSON lines have in common.

use super::ImportError;

/// How a value stands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Nothing is there: a JSON object without the key, or `null`.
    Missing,
    /// CSV: without quotes. JSON: a number, `true` or `false`.
    Bare,
    /// CSV: in quotes. JSON: a string.
    Quoted,
    /// JSON: an array or an object, as it is written.
    Nested,
}

/// Where a value's bytes lie in its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    start: u32,
    len: u32,
    /// How it stands there.
    pub kind: SpanKind,
}

impl Span {
    /// No value.
    pub const MISSING: Self = Self {
        start: 0,
        len: 0,
        kind: SpanKind::Missing,
    };

    /// The bytes from `start` up to `end`. Blocks are below 4 GiB: whoever reads them sees to it.
    pub fn new(start: usize, end: usize, kind: SpanKind) -> Self {
        Self {
            start: start as u32,
            len: (end - start) as u32,
            kind,
        }
    }
}

/// Whole records, cut into values, column by column.
#[derive(Debug, Default)]
pub struct TextBlock {
    /// The block's bytes, and behind them the values that had to be unescaped.
    pub data: Vec<u8>,
    /// Bytes of the block itself.
    pub source_len: usize,
    /// Number of records.
    pub rows: usize,
    /// The values of each column wanted.
    pub columns: Vec<Vec<Span>>,
    /// Where each record begins.
    pub row_starts: Vec<u32>,
}

impl TextBlock {
    /// The bytes of a value.
    pub fn text(&self, span: Span) -> &[u8] {
        let start = span.start as usize;
        self.data
            .get(start..start + span.len as usize)
            .unwrap_or(&[])
    }

    /// Line ends before a record.
    pub fn lines_before(&self, row: usize) -> u64 {
        let end = self
            .row_starts
            .get(row)
            .map_or(self.source_len, |&start| start as usize);
        line_ends(self.data.get(..end).unwrap_or(&[]))
    }
}

/// The line ends in some bytes.
pub fn line_ends(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// What is wrong with a value or record of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError {
    /// The record in its block.
    pub row: usize,
    /// Line ends of the block before it.
    pub lines: u64,
    /// The column, if it is about one.
    pub column: Option<String>,
    /// What is wrong.
    pub reason: String,
}

impl RecordError {
    /// An error in a value.
    pub fn value(block: &TextBlock, row: usize, column: &str, reason: String) -> Self {
        Self {
            row,
            lines: block.lines_before(row),
            column: Some(column.to_owned()),
            reason,
        }
    }

    /// The same with its place in the file: lines and rows count from 1.
    pub fn at(self, file: &str, block_line: u64, block_row: u64) -> ImportError {
        ImportError {
            file: file.to_owned(),
            line: Some(block_line + self.lines),
            row: Some(block_row + self.row as u64 + 1),
            column: self.column,
            reason: self.reason,
        }
    }
}

/// A value shortened for a message.
pub fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

//! CSV and JSON lines as files: blocks are cut and read on all threads, and come out in order.

use super::csv::{Dialect, MAX_COLUMNS};
use super::infer::{TextProfile, TextRules};
use super::input::{BlockReader, Input};
use super::joined::{Joined, Part, Starts};
use super::ndjson::{self, Keys};
use super::profile::Profile;
use super::target::Target;
use super::text::{RecordError, TextBlock, line_ends};
use super::{ImportError, Look, parse};
use crate::error::{CliError, Result};
use crate::progress::Progress;
use azulejo::{ColumnSet, Context};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::io::Read;

/// The usual size of a block.
const BLOCK: usize = 4 << 20;
/// The least size of a block, however small the budget.
const LEAST_BLOCK: usize = 64 << 10;
/// A header line is not longer.
const LONGEST_HEADER: usize = 16 << 20;

/// A file of text.
#[derive(Debug)]
pub struct TextFile<'a> {
    input: &'a Input,
    form: Form,
    rules: TextRules,
    /// The files, one behind the other.
    parts: Vec<Part<'a>>,
}

#[derive(Debug, Clone)]
enum Form {
    Csv {
        dialect: Dialect,
        names: Vec<String>,
    },
    Lines {
        keys: Keys,
    },
}

/// How a CSV file is written.
#[derive(Debug, Clone)]
pub struct CsvOptions {
    /// Between values; found out if not given.
    pub delimiter: Option<u8>,
    /// Around values.
    pub quote: u8,
    /// What lines begin with that are no records.
    pub comment: Option<u8>,
    /// Lines before the header that are none.
    pub skip: u64,
    /// Whether the first line holds names.
    pub header: bool,
    /// Names of the columns, instead of those of the header.
    pub names: Option<Vec<String>>,
}

impl<'a> TextFile<'a> {
    /// CSV files, which have the same columns.
    pub fn csv(input: &'a Input, options: &CsvOptions, rules: TextRules) -> Result<Self> {
        let (dialect, names, first) = csv_part(input, options, None)?;
        let mut parts = vec![first];
        for other in &input.rest {
            let (_, found, part) = csv_part(other, options, Some(dialect))?;
            if found != names {
                return Err(other.error(format!(
                    "its columns are {}, those of {} are {}",
                    found.join(", "),
                    input.name,
                    names.join(", ")
                )));
            }
            parts.push(part);
        }
        Ok(Self {
            input,
            form: Form::Csv { dialect, names },
            rules,
            parts,
        })
    }

    /// Files of JSON lines, or of arrays of objects.
    pub fn lines(input: &'a Input, rules: TextRules) -> Result<Self> {
        let part = |input: &'a Input| -> Result<Part<'a>> {
            let (head, bom) = head(input)?;
            let text = head.get(bom..).unwrap_or(&[]);
            Ok(Part {
                input,
                skip: bom as u64,
                lines: 0,
                array: text.trim_ascii_start().first() == Some(&b'['),
            })
        };
        let parts = std::iter::once(input).chain(&input.rest).map(part);
        Ok(Self {
            input,
            form: Form::Lines {
                keys: Keys::default(),
            },
            rules,
            parts: parts.collect::<Result<_>>()?,
        })
    }

    /// Looks at all values of all columns wanted.
    pub fn profile(
        &mut self,
        context: &Context,
        look: &Look,
        progress: &Progress,
    ) -> Result<Vec<Profile>> {
        let names = match &self.form {
            Form::Csv { names, .. } => names.clone(),
            Form::Lines { .. } => Vec::new(),
        };
        let wanted: Vec<Option<usize>> = positions(&names, |name| look.wants(name));
        let kept = wanted.iter().flatten().count();
        let limit = |name: &str| look.label_limit(name);
        let mut keys = Keys::new(names.iter().filter(|n| look.wants(n)).cloned());
        let mut profiles: Vec<TextProfile> = keys
            .names()
            .iter()
            .map(|n| TextProfile::new(limit(n)))
            .collect();
        let mut rows = 0;
        let mut place = self.start(context);
        while let Some(blocks) = place.read(self)? {
            let texts: Vec<bool> = profiles.iter().map(TextProfile::is_text).collect();
            let worked = work(context, blocks, |block| {
                let mut block_keys = keys.clone();
                let block = match &self.form {
                    Form::Csv { dialect, .. } => block.cut(*dialect, &wanted, kept)?,
                    Form::Lines { .. } => {
                        ndjson::cut(block.data, &mut block_keys, |name| look.wants(name))?
                    }
                };
                let columns = block_keys.names().iter().enumerate().map(|(at, name)| {
                    let mut profile = TextProfile::new(limit(name));
                    profile.look(
                        &block,
                        at,
                        &self.rules,
                        texts.get(at).copied().unwrap_or(false),
                    );
                    profile
                });
                let columns: Vec<TextProfile> = columns.collect();
                Ok((block.rows, (block_keys, columns)))
            });
            for worked in worked {
                let lines = worked.lines;
                let (block_rows, (block_keys, columns)) =
                    worked.result.map_err(|e| place.error(self, e))?;
                for (name, found) in block_keys.names().iter().zip(&columns) {
                    let at = keys.add(name);
                    if at == profiles.len() {
                        profiles.push(TextProfile::new(limit(name)));
                        profiles[at].add_missing(rows);
                    }
                    profiles[at].merge(found);
                }
                rows += block_rows as u64;
                for profile in &mut profiles {
                    profile.add_missing(rows - profile.rows());
                }
                place.step(lines, block_rows);
            }
            crate::interrupt::check()?;
            progress.advance(place.reader.bytes, rows, "looking at");
        }
        let found = keys
            .names()
            .iter()
            .zip(&profiles)
            .map(|(name, profile)| {
                let mut found = profile.finish(name);
                // Those of an array that is there may look like numbers, dates or truth values.
                if look.is_label(name) {
                    found.labels = Some(profile.labels());
                }
                if let (None, Some((row, text))) = (&found.note, profile.culprit()) {
                    let at = place.of_row(self, row);
                    let text = String::from_utf8_lossy(text);
                    found.note = Some(format!(
                        "{name:?} becomes text because of {text:?} in {at}; most values around it are numbers, dates or truth values"
                    ));
                }
                found
            })
            .collect();
        if matches!(self.form, Form::Lines { .. }) {
            self.form = Form::Lines { keys };
        }
        Ok(found)
    }

    /// Takes it that JSON lines have these keys.
    pub fn assume_keys(&mut self, names: impl Iterator<Item = String>) {
        if let Form::Lines { keys } = &mut self.form {
            *keys = Keys::new(names);
        }
    }

    /// Takes it that some lines of JSON may have these keys too.
    pub fn add_keys(&mut self, names: Vec<String>) {
        if let Form::Lines { keys } = &mut self.form {
            for name in names {
                keys.add(&name);
            }
        }
    }

    /// The names of the columns, as far as they are known without reading the file.
    pub fn names(&self) -> &[String] {
        match &self.form {
            Form::Csv { names, .. } => names,
            Form::Lines { keys } => keys.names(),
        }
    }

    /// Gives the columns of all records to `take`, some thousands at a time and in order, with the
    /// number of the first one.
    pub fn read(
        &self,
        context: &Context,
        targets: &[Target],
        progress: &Progress,
        take: &mut dyn FnMut(u64, ColumnSet) -> Result<()>,
    ) -> Result<()> {
        // A column may fill two fields, so each target has its own position.
        let names = self.names();
        let mut wanted = vec![None; names.len()];
        let mut position = vec![0; targets.len()];
        let mut kept = Vec::new();
        for (at, target) in targets.iter().enumerate() {
            let slot = &mut wanted[target.source];
            position[at] = *slot.get_or_insert_with(|| {
                kept.push(names[target.source].clone());
                kept.len() - 1
            });
        }
        let keys = Keys::new(kept.iter().cloned());
        let mut place = self.start(context);
        while let Some(blocks) = place.read(self)? {
            let worked = work(context, blocks, |block| {
                let block: TextBlock = match &self.form {
                    Form::Csv { dialect, .. } => block.cut(*dialect, &wanted, kept.len())?,
                    Form::Lines { .. } => ndjson::cut(block.data, &mut keys.clone(), |_| false)?,
                };
                let columns = targets.iter().zip(&position);
                let columns =
                    columns.map(|(target, &at)| parse::column(&block, at, target, &self.rules));
                let columns = columns.collect::<Result<Vec<_>, RecordError>>()?;
                Ok((
                    block.rows,
                    ColumnSet {
                        cell_num: block.rows,
                        columns,
                    },
                ))
            });
            for worked in worked {
                let lines = worked.lines;
                let (rows, set) = worked.result.map_err(|e| place.error(self, e))?;
                take(place.row, set)?;
                place.step(lines, rows);
            }
            crate::interrupt::check()?;
            progress.advance(place.reader.bytes, place.row, "importing");
        }
        Ok(())
    }

    /// The line of a record, counted from 0, where lines have numbers: by looking for it.
    pub fn line_of(&self, context: &Context, wanted: u64) -> Result<String> {
        let mut place = self.start(context);
        while let Some(blocks) = place.read(self)? {
            for block in blocks {
                let lines = line_ends(&block.data);
                let block = match &self.form {
                    Form::Csv { dialect, names } => {
                        block.cut(*dialect, &vec![None; names.len()], 0)
                    }
                    Form::Lines { .. } => ndjson::cut(block.data, &mut Keys::default(), |_| false),
                };
                let block = block.map_err(|e| place.error(self, e))?;
                if wanted < place.row + block.rows as u64 {
                    let row = usize::try_from(wanted - place.row).unwrap_or(usize::MAX);
                    let (part, line) = place.line_in_part(self, block.lines_before(row));
                    return Ok(match (part.array, self.parts.len()) {
                        (true, _) => format!("row {}", wanted + 1),
                        (false, 1) => format!("line {line}"),
                        (false, _) => format!("{}, line {line}", part.input.name),
                    });
                }
                place.step(lines, block.rows);
            }
        }
        Ok(format!("row {}", wanted + 1))
    }

    fn start(&self, context: &Context) -> Place {
        let joined = Joined::new(&self.parts);
        // Cut and read, a block takes about eight times its size; all threads have two.
        let threads = context.install(rayon::current_num_threads);
        let share = usize::try_from(context.config().memory_budget).unwrap_or(usize::MAX)
            / (4 * 8 * 2 * threads);
        let block = share.clamp(LEAST_BLOCK, BLOCK);
        Place {
            starts: joined.starts.clone(),
            reader: BlockReader::new(joined, block),
            byte: 0,
            line: 0,
            row: 0,
            at_once: 2 * threads,
        }
    }
}

/// Whole records, as they were read.
struct Block {
    data: Vec<u8>,
    /// Where in them other files than the first begin.
    seams: Vec<usize>,
}

impl Block {
    /// The values of records of CSV, none of which goes on in the next file.
    fn cut(
        self,
        dialect: Dialect,
        wanted: &[Option<usize>],
        kept: usize,
    ) -> Result<TextBlock, RecordError> {
        let block = dialect.cut(self.data, wanted, kept)?;
        for seam in self.seams {
            let before = block
                .row_starts
                .partition_point(|start| (*start as usize) < seam);
            let Some(row) = before.checked_sub(1) else {
                continue;
            };
            let start = block.row_starts.get(row).map_or(0, |start| *start as usize);
            let text = block.data.get(start..block.source_len).unwrap_or(&[]);
            if start + dialect.first_record_end(text) >= seam {
                return Err(RecordError {
                    row,
                    lines: block.lines_before(row),
                    column: None,
                    reason: "a quoted value has no closing quote".to_owned(),
                });
            }
        }
        Ok(block)
    }
}

/// Where in the files the reading is.
struct Place {
    reader: BlockReader<Joined>,
    /// Where in the whole each file begins.
    starts: Starts,
    /// Bytes before the blocks that are read next.
    byte: u64,
    /// Line ends before the next block, headers left out.
    line: u64,
    /// The record of the next block, from 0.
    row: u64,
    at_once: usize,
}

impl Place {
    fn read(&mut self, file: &TextFile<'_>) -> Result<Option<Vec<Block>>> {
        let mut blocks = Vec::new();
        while blocks.len() < self.at_once {
            let block = self.reader.next(|bytes| match &file.form {
                Form::Csv { dialect, .. } => dialect.last_record_end(bytes),
                Form::Lines { .. } => ndjson::last_record_end(bytes),
            });
            match block.map_err(|e| file.input.io_error(e))? {
                Some(data) => {
                    let seams = self.starts.within(self.byte, data.len());
                    self.byte += data.len() as u64;
                    blocks.push(Block { data, seams });
                }
                None => break,
            }
        }
        Ok((!blocks.is_empty()).then_some(blocks))
    }

    fn step(&mut self, lines: u64, rows: usize) {
        self.line += lines;
        self.row += rows as u64;
    }

    /// The file of a line of the next block, and its number there.
    fn line_in_part<'f, 'a>(&self, file: &'f TextFile<'a>, line: u64) -> (&'f Part<'a>, u64) {
        let line = self.line + line;
        let (at, start) = self.starts.find(line);
        let part = &file.parts[at.min(file.parts.len() - 1)];
        (part, line - start + 1 + part.lines)
    }

    /// Where a record is, once all were read: its line, if each has one.
    fn of_row(&self, file: &TextFile<'_>, row: u64) -> String {
        match file.parts[..] {
            [only] if !only.array && (self.line == self.row || self.line + 1 == self.row) => {
                format!("line {}", 1 + only.lines + row)
            }
            _ => format!("row {}", row + 1),
        }
    }

    fn error(&self, file: &TextFile<'_>, error: RecordError) -> CliError {
        let (part, line) = self.line_in_part(file, error.lines);
        ImportError {
            file: part.input.name.clone(),
            line: (!part.array).then_some(line),
            row: Some(self.row + error.row as u64 + 1),
            column: error.column,
            reason: error.reason,
        }
        .into()
    }
}

/// What came of a block.
struct Worked<R> {
    lines: u64,
    result: Result<(usize, R), RecordError>,
}

/// Works on blocks on all threads; the results are in order.
fn work<R: Send>(
    context: &Context,
    blocks: Vec<Block>,
    work: impl Fn(Block) -> Result<(usize, R), RecordError> + Sync,
) -> Vec<Worked<R>> {
    context.install(|| {
        let worked = blocks.into_par_iter().map(|block| Worked {
            lines: line_ends(&block.data),
            result: work(block),
        });
        worked.collect()
    })
}

/// For each name its position among those wanted.
fn positions(names: &[String], wants: impl Fn(&str) -> bool) -> Vec<Option<usize>> {
    let mut kept = 0;
    let position = |name: &String| {
        wants(name).then(|| {
            kept += 1;
            kept - 1
        })
    };
    names.iter().map(position).collect()
}

/// How a CSV file is written, its columns, and where its records begin.
fn csv_part<'a>(
    input: &'a Input,
    options: &CsvOptions,
    like: Option<Dialect>,
) -> Result<(Dialect, Vec<String>, Part<'a>)> {
    let (head, bom) = head(input)?;
    let text = head.get(bom..).unwrap_or(&[]);
    let skipped = lines_before(text, options);
    let rest = text.get(skipped..).unwrap_or(&[]);
    let guess = Dialect {
        delimiter: b',',
        quote: options.quote,
        comment: options.comment,
    };
    let (line, next) = first_record(rest, guess)
        .ok_or_else(|| input.error("the file is empty: not even a header line is there"))?;
    let delimiter = match (options.delimiter, like) {
        (Some(delimiter), _) => delimiter,
        (None, Some(like)) => like.delimiter,
        (None, None) if input.is_tab_separated() => b'\t',
        (None, None) => likely_delimiter(line, options.quote),
    };
    let dialect = Dialect { delimiter, ..guess };
    let first = dialect
        .header(line)
        .map_err(|e| CliError::from(e.at(&input.name, 1, 0)))?;
    if first.len() > MAX_COLUMNS {
        return Err(input.error(format!(
            "{} columns are more than the {MAX_COLUMNS} supported",
            first.len()
        )));
    }
    let names = match &options.names {
        Some(names) if names.len() != first.len() => {
            let (given, found) = (names.len(), first.len());
            return Err(CliError::usage(format!(
                "--names gives {given} names, the file has {found} columns"
            )));
        }
        Some(names) => match repeated(names) {
            Some(name) => {
                return Err(CliError::usage(format!(
                    "--names gives two columns the name {name:?}"
                )));
            }
            None => names.clone(),
        },
        None if options.header => unique_names(first),
        None => (1..=first.len()).map(|n| format!("column_{n}")).collect(),
    };
    let records = skipped + if options.header { next } else { 0 };
    let part = Part {
        input,
        skip: (bom + records) as u64,
        lines: line_ends(text.get(..records).unwrap_or(&[])),
        array: false,
    };
    Ok((dialect, names, part))
}

/// Bytes of the lines that are left out before the header, comments included.
fn lines_before(text: &[u8], options: &CsvOptions) -> usize {
    let line_end = |at: usize| {
        let rest = text.get(at..).unwrap_or(&[]);
        memchr::memchr(b'\n', rest).map_or(text.len(), |found| at + found + 1)
    };
    let mut at = 0;
    for _ in 0..options.skip {
        if at == text.len() {
            break;
        }
        at = line_end(at);
    }
    while options
        .comment
        .is_some_and(|mark| text.get(at) == Some(&mark))
    {
        at = line_end(at);
    }
    at
}

/// The beginning of the file, and the length of its byte order mark.
fn head(input: &Input) -> Result<(Vec<u8>, usize)> {
    let mut head = Vec::new();
    input
        .reader()?
        .take(LONGEST_HEADER as u64)
        .read_to_end(&mut head)
        .map_err(|e| input.io_error(e))?;
    match &head[..] {
        [0xef, 0xbb, 0xbf, ..] => Ok((head, 3)),
        // With a mark of its order, or without one.
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] => {
            Err(input.error("the text is UTF-16; make it UTF-8, for example with `iconv -f UTF-16 -t UTF-8`"))
        }
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] | [b'P', b'K', 3, 4, ..] => Err(input.error(
            "the file is compressed; unpack it first, or pipe it in: zcat FILE | azulejo import - URI",
        )),
        _ => Ok((head, 0)),
    }
}

/// The first record and where the next one begins. Empty lines before it are skipped.
fn first_record(text: &[u8], dialect: Dialect) -> Option<(&[u8], usize)> {
    let start = text.iter().position(|&b| b != b'\n' && b != b'\r')?;
    let end = start + dialect.first_record_end(&text[start..]);
    let line_end = match text.get(end..).unwrap_or(&[]) {
        [b'\r', b'\n', ..] => 2,
        [_, ..] => 1,
        [] => 0,
    };
    Some((&text[start..end], end + line_end))
}

/// The mark that a header line has most of outside quotes; a comma if it has none.
fn likely_delimiter(line: &[u8], quote: u8) -> u8 {
    let mut quoted = false;
    let mut counts = [(b',', 0), (b'\t', 0), (b';', 0), (b'|', 0)];
    for &byte in line {
        quoted ^= byte == quote;
        for (mark, count) in &mut counts {
            *count += usize::from(!quoted && byte == *mark);
        }
    }
    // Of equals the first counts.
    counts
        .iter()
        .rev()
        .max_by_key(|(_, count)| *count)
        .map_or(b',', |&(mark, _)| mark)
}

/// The first of some names that comes a second time.
fn repeated(names: &[String]) -> Option<&String> {
    let mut seen = std::collections::HashSet::new();
    names.iter().find(|name| !seen.insert(*name))
}

/// Columns without a name get one, and of those with the same name the later ones a number.
fn unique_names(names: Vec<String>) -> Vec<String> {
    let mut unique: Vec<String> = Vec::with_capacity(names.len());
    let mut taken: std::collections::HashSet<String> = names.iter().cloned().collect();
    let mut seen = std::collections::HashSet::new();
    for (at, name) in names.into_iter().enumerate() {
        let name = name.trim().to_owned();
        let base = if name.is_empty() {
            format!("column_{}", at + 1)
        } else {
            name
        };
        let mut name = base.clone();
        let mut number = 1;
        while !seen.insert(name.clone()) {
            number += 1;
            name = format!("{base}_{number}");
            while taken.contains(&name) {
                number += 1;
                name = format!("{base}_{number}");
            }
        }
        taken.insert(name.clone());
        unique.push(name);
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_unique() {
        let names = ["a", "", "a", "a_2", " b ", "a"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(
            unique_names(names),
            ["a", "column_2", "a_3", "a_2", "b", "a_4"]
        );
    }

    #[test]
    fn delimiters_are_found_in_the_header() {
        for (line, mark) in [
            ("a,b", b','),
            ("a;b", b';'),
            ("a\tb c", b'\t'),
            ("a|b|c,d", b'|'),
            ("\"a;b;c\",d", b','),
            ("a", b','),
            ("a;b,c", b','),
        ] {
            assert_eq!(likely_delimiter(line.as_bytes(), b'"'), mark, "{line}");
        }
    }

    #[test]
    fn the_first_record_may_have_several_lines() {
        let dialect = Dialect {
            delimiter: b',',
            quote: b'"',
            comment: None,
        };
        assert_eq!(
            first_record(b"\r\na,\"b\nc\"\r\nd", dialect),
            Some((&b"a,\"b\nc\""[..], 11))
        );
        assert_eq!(first_record(b"a,b", dialect), Some((&b"a,b"[..], 3)));
        assert_eq!(first_record(b"\n\n", dialect), None);
    }
}

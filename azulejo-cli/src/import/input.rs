//! The file to import: what it is, and reading it twice even where it is standard input.

use crate::args::ImportFormat;
use crate::error::{CliError, Result};
use crate::files;
use crate::session::Session;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file to import.
#[derive(Debug)]
pub struct Input {
    /// How messages name it.
    pub name: String,
    path: PathBuf,
    /// Standard input, kept in a file that nobody else sees: types are chosen before cells are
    /// read, so it is read twice.
    spooled: Option<Arc<File>>,
    /// Its size in bytes.
    pub size: u64,
    /// Files whose records follow, of the same kind of text.
    pub rest: Vec<Input>,
}

/// Files that are decompressed and kept, at most: a process can have some hundreds open. Others are
/// decompressed each time that they are read.
const MOST_KEPT: usize = 64;

/// How a file is opened, however often.
#[derive(Debug, Clone)]
pub struct Opener {
    /// How messages name the file.
    pub name: String,
    path: PathBuf,
    spooled: Option<Arc<File>>,
}

impl Opener {
    /// The file from its beginning. One reader at a time.
    pub fn open(&self) -> std::io::Result<File> {
        if let Some(file) = &self.spooled {
            let mut file = file.try_clone()?;
            file.seek(SeekFrom::Start(0))?;
            return Ok(file);
        }
        let file = File::open(&self.path)?;
        match Packed::of(&self.path) {
            None => Ok(file),
            packed => {
                let mut unpacked = tempfile::tempfile()?;
                unpack(packed, file, &mut unpacked)?;
                unpacked.seek(SeekFrom::Start(0))?;
                Ok(unpacked)
            }
        }
    }
}

/// The files that a name stands for.
fn expanded(name: &str) -> Result<Vec<String>> {
    if !name.contains(['*', '?', '[']) || name.contains("://") || Path::new(name).exists() {
        return Ok(vec![name.to_owned()]);
    }
    let found = glob::glob(name).map_err(|e| CliError::usage(format!("{name}: {e}")))?;
    let mut files = Vec::new();
    for file in found {
        let file = file.map_err(|e| CliError::usage(format!("{name}: {e}")))?;
        if file.is_file() {
            files.push(file.to_string_lossy().into_owned());
        }
    }
    match files.is_empty() {
        true => Err(CliError::usage(format!(
            "{name}: no file is called like that"
        ))),
        false => Ok(files),
    }
}

/// How a file is compressed as a whole.
#[derive(Debug, Clone, Copy)]
enum Packed {
    Gzip,
    Zstd,
}

impl Packed {
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "gz" => Some(Self::Gzip),
            "zst" => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Copies a file, decompressed.
fn unpack(packed: Option<Packed>, from: File, to: &mut File) -> std::io::Result<u64> {
    let mut from = std::io::BufReader::new(from);
    match packed {
        None => std::io::copy(&mut from, to),
        Some(Packed::Gzip) => std::io::copy(&mut flate2::bufread::MultiGzDecoder::new(from), to),
        Some(Packed::Zstd) => unpack_zstd(from, to),
    }
}

#[cfg(feature = "c-codecs")]
fn unpack_zstd(from: std::io::BufReader<File>, to: &mut File) -> std::io::Result<u64> {
    std::io::copy(&mut zstd::stream::read::Decoder::with_buffer(from)?, to)
}

#[cfg(not(feature = "c-codecs"))]
fn unpack_zstd(_: std::io::BufReader<File>, _: &mut File) -> std::io::Result<u64> {
    Err(std::io::Error::new(
        std::io::ErrorKind::Unsupported,
        "this program was built without the codecs in C and reads no .zst files: unpack it first",
    ))
}

impl Input {
    /// Opens files: those whose text can be read in one go together, others each for itself. Names
    /// with `*`, `?` or `[` stand for all files that fit, in the order of their names, unless there
    /// is a file of that very name.
    pub fn open_all(
        session: &Session,
        names: &[String],
        format: Option<ImportFormat>,
    ) -> Result<Vec<Self>> {
        let mut inputs: Vec<Self> = Vec::new();
        let mut kept = 0;
        for name in names {
            for file in expanded(name)? {
                let mut input = Self::open(session, &file)?;
                kept += usize::from(input.spooled.is_some());
                if kept > MOST_KEPT && input.opens_again() {
                    input.spooled = None;
                }
                let kind = input.format(format)?;
                let text = matches!(kind, ImportFormat::Csv | ImportFormat::Ndjson);
                let before = inputs.last_mut();
                match before {
                    Some(first) if text && first.format(format)? == kind => {
                        first.size += input.size;
                        first.rest.push(input);
                    }
                    _ => inputs.push(input),
                }
            }
        }
        Ok(inputs)
    }

    /// Opens a file, or takes in standard input for `-`.
    fn open(session: &Session, name: &str) -> Result<Self> {
        let file = Path::new(name);
        if let Some(place) = files::remote(&session.context, name)? {
            let (spooled, size) = files::fetch(&session.context, &place)?;
            let input = Self {
                name: name.to_owned(),
                path: file.to_path_buf(),
                spooled: None,
                size,
                rest: Vec::new(),
            };
            let unpacked = || -> std::io::Result<(File, u64)> {
                let mut to = tempfile::tempfile()?;
                let size = unpack(Packed::of(file), spooled.try_clone()?, &mut to)?;
                Ok((to, size))
            };
            let (spooled, size) = match Packed::of(file) {
                None => (spooled, size),
                Some(_) => unpacked().map_err(|e| input.io_error(e))?,
            };
            return Ok(Self {
                spooled: Some(Arc::new(spooled)),
                size,
                ..input
            });
        }
        if file != Path::new("-") {
            let metadata = std::fs::metadata(file).map_err(|e| CliError::io("read", file, e))?;
            if metadata.is_dir() {
                return Err(CliError::usage(format!(
                    "{} is a folder, not a file",
                    file.display()
                )));
            }
            let input = Self {
                name: file.display().to_string(),
                path: file.to_path_buf(),
                spooled: None,
                size: metadata.len(),
                rest: Vec::new(),
            };
            // A pipe under a name can be read only once, and what is compressed from its beginning.
            return match metadata.is_file() && Packed::of(file).is_none() {
                true => Ok(input),
                false => input.spool(),
            };
        }
        let stdin = Self {
            name: "standard input".to_owned(),
            path: file.to_path_buf(),
            spooled: None,
            size: 0,
            rest: Vec::new(),
        };
        stdin.spool()
    }

    fn spool(self) -> Result<Self> {
        let copy = || -> std::io::Result<(File, u64)> {
            let mut spooled = tempfile::tempfile()?;
            let size = match self.path == Path::new("-") {
                true => std::io::copy(&mut std::io::stdin().lock(), &mut spooled)?,
                false => unpack(
                    Packed::of(&self.path),
                    File::open(&self.path)?,
                    &mut spooled,
                )?,
            };
            Ok((spooled, size))
        };
        let (spooled, size) = copy().map_err(|e| self.io_error(e))?;
        Ok(Self {
            spooled: Some(Arc::new(spooled)),
            size,
            ..self
        })
    }

    /// Whether it is a file of this machine, which can be read as often as need be.
    fn opens_again(&self) -> bool {
        // Standard input is no file of that name.
        self.path != Path::new("-")
            && std::fs::metadata(&self.path).is_ok_and(|metadata| metadata.is_file())
    }

    /// How it is opened.
    pub fn opener(&self) -> Opener {
        Opener {
            name: self.name.clone(),
            path: self.path.clone(),
            spooled: self.spooled.clone(),
        }
    }

    /// The file from its beginning. One reader at a time.
    pub fn reader(&self) -> Result<File> {
        self.opener().open().map_err(|e| self.io_error(e))
    }

    /// An error in reading it.
    pub fn io_error(&self, source: std::io::Error) -> CliError {
        CliError::Io {
            op: "read",
            what: self.name.clone(),
            source,
        }
    }

    /// An error in what it holds.
    pub fn error(&self, reason: impl std::fmt::Display) -> CliError {
        CliError::Format(format!("{}: {reason}", self.name))
    }

    /// The format: what the user says, what the ending says, what the first bytes say.
    pub fn format(&self, asked: Option<ImportFormat>) -> Result<ImportFormat> {
        if let Some(format) = asked {
            return Ok(format);
        }
        let path = match Packed::of(&self.path) {
            Some(_) => self.path.with_extension(""),
            None => self.path.clone(),
        };
        let ending = path
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default()
            .to_ascii_lowercase();
        Ok(match ending.as_str() {
            "csv" | "tsv" | "tab" => ImportFormat::Csv,
            "ndjson" | "jsonl" | "json" => ImportFormat::Ndjson,
            "parquet" | "pq" => ImportFormat::Parquet,
            "arrow" | "feather" | "ipc" | "arrows" => ImportFormat::Arrow,
            "npy" => ImportFormat::Npy,
            _ => {
                let mut head = Vec::new();
                self.reader()?
                    .take(64)
                    .read_to_end(&mut head)
                    .map_err(|e| self.io_error(e))?;
                match &head[..] {
                    [b'P', b'A', b'R', b'1', ..] => ImportFormat::Parquet,
                    [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, ..] => {
                        ImportFormat::Arrow
                    }
                    [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => ImportFormat::Npy,
                    _ if matches!(head.trim_ascii_start().first(), Some(b'{' | b'[')) => {
                        ImportFormat::Ndjson
                    }
                    _ if self.spooled.is_some() || ending == "txt" => ImportFormat::Csv,
                    _ => {
                        return Err(CliError::usage(format!(
                            "{}: neither its ending nor its beginning names a format; give --format csv, ndjson, parquet, \
                             arrow or npy",
                            self.name
                        )));
                    }
                }
            }
        })
    }

    /// Whether values are likely to be separated by tabs.
    pub fn is_tab_separated(&self) -> bool {
        self.path
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("tsv") || e.eq_ignore_ascii_case("tab"))
    }
}

/// A text file in blocks of whole records.
pub struct BlockReader<R> {
    file: R,
    block: usize,
    carry: Vec<u8>,
    done: bool,
    /// Lines that end in carriage returns alone, as they did on old Macs.
    only_cr: Option<bool>,
    /// Bytes read so far.
    pub bytes: u64,
}

/// No record is longer.
const LONGEST_RECORD: usize = 1 << 30;

impl<R: Read> BlockReader<R> {
    /// Reads `file`, about `block` bytes at a time.
    pub fn new(file: R, block: usize) -> Self {
        Self {
            file,
            block,
            carry: Vec::new(),
            done: false,
            only_cr: None,
            bytes: 0,
        }
    }

    /// The next block; `None` at the end. `end_of` finds the end of the last whole record.
    pub fn next(
        &mut self,
        end_of: impl Fn(&[u8]) -> Option<usize>,
    ) -> std::io::Result<Option<Vec<u8>>> {
        let mut data = std::mem::take(&mut self.carry);
        let mut want = self.block;
        while !self.done {
            let start = data.len();
            data.reserve(want);
            let read = (&mut self.file).take(want as u64).read_to_end(&mut data)?;
            self.bytes += read as u64;
            self.done = read < want;
            self.line_feeds(&mut data, start);
            if self.done {
                break;
            }
            if let Some(end) = end_of(&data) {
                self.carry = data.split_off(end);
                return Ok(Some(data));
            }
            if data.len() > LONGEST_RECORD {
                return Err(std::io::Error::other(
                    "a record is longer than 1 GiB; is a quote never closed?",
                ));
            }
            // A long record is looked through again: twice as much each time.
            want = data.len();
        }
        Ok((!data.is_empty()).then_some(data))
    }

    fn line_feeds(&mut self, data: &mut [u8], start: usize) {
        let only_cr = *self.only_cr.get_or_insert_with(|| {
            memchr::memchr(b'\n', data).is_none() && memchr::memchr(b'\r', data).is_some()
        });
        if only_cr {
            for byte in &mut data[start..] {
                if *byte == b'\r' {
                    *byte = b'\n';
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn blocks(text: &[u8], block: usize) -> Vec<String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut reader = BlockReader::new(file, block);
        let mut blocks = Vec::new();
        while let Some(block) = reader
            .next(|bytes| memchr::memrchr(b'\n', bytes).map(|at| at + 1))
            .unwrap()
        {
            blocks.push(String::from_utf8(block).unwrap());
        }
        assert_eq!(reader.bytes, text.len() as u64);
        blocks
    }

    #[test]
    fn blocks_are_whole_records() {
        for size in 1..20 {
            let found = blocks(b"aaa\nb\nccccccccc\nd", size);
            assert_eq!(found.concat(), "aaa\nb\nccccccccc\nd", "{size}");
            assert!(
                found[..found.len() - 1].iter().all(|b| b.ends_with('\n')),
                "{size}: {found:?}"
            );
        }
        assert!(blocks(b"", 4).is_empty());
        assert_eq!(blocks(b"a\rb\r", 100), ["a\nb\n"]);
    }
}

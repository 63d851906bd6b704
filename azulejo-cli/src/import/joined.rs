//! Text of several files, one behind the other.

use super::input::{Input, Opener};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Error, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

/// A file, and what of it comes before its records.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The file.
    pub input: &'a Input,
    /// Bytes before the first record.
    pub skip: u64,
    /// Lines before the first record.
    pub lines: u64,
    /// Whether its records are the items of a JSON array.
    pub array: bool,
}

/// For each file begun the number of line ends and of bytes before it.
#[derive(Debug, Clone, Default)]
pub struct Starts(Arc<Mutex<Vec<(u64, u64)>>>);

impl Starts {
    /// The file in which a line is, and how many line ends of the whole are before that file.
    pub fn find(&self, line: u64) -> (usize, u64) {
        let starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = starts.partition_point(|start| start.0 <= line);
        let at = at.saturating_sub(1);
        (at, starts.get(at).map_or(0, |start| start.0))
    }

    /// Where files begin within so many bytes of the whole from `first` on.
    pub fn within(&self, first: u64, bytes: usize) -> Vec<usize> {
        let starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let inside = starts.iter().filter_map(|start| start.1.checked_sub(first));
        let inside = inside.filter(|at| (1..bytes as u64).contains(at));
        inside.map(|at| at as usize).collect()
    }
}

/// Reads the records of files one behind the other, each file's last line ended.
pub struct Joined {
    /// Opened when they are read: they may be thousands.
    waiting: VecDeque<(Opener, u64, bool)>,
    current: Option<Box<dyn Read + Send>>,
    lines: u64,
    bytes: u64,
    last: u8,
    /// Where each file begins.
    pub starts: Starts,
}

impl Joined {
    /// Of these files.
    pub fn new(parts: &[Part<'_>]) -> Self {
        let opener = |part: &Part<'_>| (part.input.opener(), part.skip, part.array);
        Self {
            waiting: parts.iter().map(opener).collect(),
            current: None,
            lines: 0,
            bytes: 0,
            last: b'\n',
            starts: Starts::default(),
        }
    }
}

/// A file, behind what comes before its records.
fn opened(opener: &Opener, skip: u64) -> std::io::Result<File> {
    let open = || -> std::io::Result<File> {
        let mut file = opener.open()?;
        file.seek(SeekFrom::Current(i64::try_from(skip).unwrap_or(i64::MAX)))?;
        Ok(file)
    };
    open().map_err(|e| Error::new(e.kind(), format!("{}: {e}", opener.name)))
}

impl Read for Joined {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let Some(current) = &mut self.current else {
                let Some((opener, skip, array)) = self.waiting.pop_front() else {
                    return Ok(0);
                };
                if self.last != b'\n' {
                    let Some(first) = buffer.first_mut() else {
                        return Ok(0);
                    };
                    *first = b'\n';
                    (self.last, self.lines) = (b'\n', self.lines + 1);
                    self.bytes += 1;
                    self.waiting.push_front((opener, skip, array));
                    return Ok(1);
                }
                let file = opened(&opener, skip)?;
                let mut starts = self.starts.0.lock().unwrap_or_else(PoisonError::into_inner);
                starts.push((self.lines, self.bytes));
                drop(starts);
                self.current = Some(match array {
                    true => Box::new(Items::new(BufReader::with_capacity(1 << 18, file))),
                    false => Box::new(file),
                });
                continue;
            };
            let read = current.read(buffer)?;
            let Some(last) = buffer[..read].last() else {
                if buffer.is_empty() {
                    return Ok(0);
                }
                self.current = None;
                continue;
            };
            self.last = *last;
            self.lines += super::text::line_ends(&buffer[..read]);
            self.bytes += read as u64;
            return Ok(read);
        }
    }
}

/// The items of a JSON array, a line each.
struct Items<R> {
    from: R,
    depth: u32,
    text: bool,
    escaped: bool,
    ended: bool,
}

impl<R: Read> Items<R> {
    fn new(from: R) -> Self {
        Self {
            from,
            depth: 0,
            text: false,
            escaped: false,
            ended: false,
        }
    }

    /// What stands for a byte.
    fn turn(&mut self, byte: u8) -> u8 {
        if self.text {
            let ends = byte == b'"' && !self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            self.text = !ends;
            return byte;
        }
        match byte {
            // Line ends between tokens mean nothing.
            b'\n' | b'\r' => b' ',
            b'"' => {
                self.text = true;
                byte
            }
            b'[' if self.depth == 0 && !self.ended => {
                self.depth = 1;
                b' '
            }
            b'[' | b'{' => {
                self.depth = self.depth.saturating_add(1);
                byte
            }
            b']' if self.depth == 1 => {
                (self.depth, self.ended) = (0, true);
                b'\n'
            }
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                byte
            }
            b',' if self.depth == 1 => b'\n',
            byte => byte,
        }
    }
}

impl<R: Read> Read for Items<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.from.read(buffer)?;
        for byte in &mut buffer[..read] {
            *byte = self.turn(*byte);
        }
        if read == 0 && !buffer.is_empty() && !self.ended {
            return Err(Error::new(
                std::io::ErrorKind::UnexpectedEof,
                "the array of JSON is not closed: the file ends early",
            ));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_an_array_become_lines() {
        let items = |text: &str| {
            let mut out = String::new();
            Items::new(text.as_bytes())
                .read_to_string(&mut out)
                .map(|_| out)
        };
        let lines = items("[\n {\"a\": [1,2], \"b\": \"x\\\"],[\"},\n{\"a\":\n3}\n]\n").unwrap();
        let lines: Vec<&str> = lines
            .lines()
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .collect();
        assert_eq!(lines, ["{\"a\": [1,2], \"b\": \"x\\\"],[\"}", "{\"a\": 3}"]);
        assert!(items("[{\"a\": 1}").is_err());
        assert_eq!(items("[]").unwrap().trim(), "");
    }
}

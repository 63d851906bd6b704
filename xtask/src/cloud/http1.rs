//! As much of HTTP/1.1 as a proxy and a file server on the loopback need.

use std::io::{self, BufRead, ErrorKind, Read};

/// Bytes of a message's first line and headers, at most.
const MAX_HEAD: u64 = 64 << 10;
/// Bytes of a body, at most: test objects are smaller.
const MAX_BODY: u64 = 256 << 20;

/// A request or an answer.
#[derive(Debug, Clone, Default)]
pub struct Message {
    /// `GET /path HTTP/1.1` or `HTTP/1.1 200 OK`.
    pub first: String,
    /// In their order.
    pub headers: Vec<(String, String)>,
    /// Without chunk headers.
    pub body: Vec<u8>,
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Length(u64),
    Chunks,
    Close,
}

fn bad(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}

impl Message {
    /// Reads the first line and the headers; `None` at the end of the stream.
    pub fn read_head(stream: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut stream = stream.take(MAX_HEAD);
        let mut line = |allow_end: bool| -> io::Result<Option<String>> {
            let mut bytes = Vec::new();
            if stream.read_until(b'\n', &mut bytes)? == 0 && allow_end {
                return Ok(None);
            }
            if bytes.pop() != Some(b'\n') {
                return Err(bad("a header that does not end"));
            }
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
            String::from_utf8(bytes)
                .map(Some)
                .map_err(|_| bad("a header that is not UTF-8"))
        };
        let Some(first) = line(true)? else {
            return Ok(None);
        };
        let mut message = Self {
            first,
            ..Self::default()
        };
        loop {
            let header = line(false)?.unwrap_or_default();
            if header.is_empty() {
                return Ok(Some(message));
            }
            let (name, value) = header
                .split_once(':')
                .ok_or_else(|| bad("a header without a colon"))?;
            message
                .headers
                .push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }

    /// Reads the body of a request.
    pub fn read_request_body(&mut self, stream: &mut impl BufRead) -> io::Result<()> {
        let end = match self.end()? {
            End::Close => End::Length(0),
            end => end,
        };
        self.read_body(stream, end)
    }

    /// Reads the body of the answer to a request with this method. Says whether the connection can
    /// be used again.
    pub fn read_answer_body(
        &mut self,
        stream: &mut impl BufRead,
        method: &str,
    ) -> io::Result<bool> {
        let without = method == "HEAD" || matches!(self.status(), 204 | 304);
        let end = if without { End::Length(0) } else { self.end()? };
        self.read_body(stream, end)?;
        let closes = self
            .header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"));
        Ok(end != End::Close && !closes && self.first.starts_with("HTTP/1.1"))
    }

    /// Bytes of the body that follow the head of an answer with an object's bytes, where it says so
    /// and the connection stays.
    pub fn coming(&self) -> Option<usize> {
        let stays = self.first.starts_with("HTTP/1.1") && self.header("connection").is_none();
        let known = matches!(self.status(), 200 | 206) && stays;
        match self.end() {
            Ok(End::Length(len)) if known => usize::try_from(len).ok(),
            _ => None,
        }
    }

    fn end(&self) -> io::Result<End> {
        if self
            .header("transfer-encoding")
            .is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
        {
            return Ok(End::Chunks);
        }
        match self.header("content-length") {
            None => Ok(End::Close),
            Some(text) => match text.parse() {
                Ok(len) if len <= MAX_BODY => Ok(End::Length(len)),
                _ => Err(bad("a body that is too long")),
            },
        }
    }

    fn read_body(&mut self, stream: &mut impl BufRead, end: End) -> io::Result<()> {
        let mut take = |len: u64, body: &mut Vec<u8>| -> io::Result<()> {
            match stream.take(len).read_to_end(body)? as u64 {
                read if read < len => Err(ErrorKind::UnexpectedEof.into()),
                _ => Ok(()),
            }
        };
        match end {
            End::Length(len) => take(len, &mut self.body)?,
            End::Close => {
                stream.take(MAX_BODY).read_to_end(&mut self.body)?;
            }
            End::Chunks => loop {
                let mut line = String::new();
                stream.take(1024).read_line(&mut line)?;
                let size = line.split(';').next().unwrap_or_default().trim();
                let size =
                    u64::from_str_radix(size, 16).map_err(|_| bad("a chunk without a size"))?;
                if size.saturating_add(self.body.len() as u64) > MAX_BODY {
                    return Err(bad("a body that is too long"));
                }
                stream.take(size).read_to_end(&mut self.body)?;
                let mut line = String::new();
                stream.take(1024).read_line(&mut line)?;
                if size == 0 {
                    // Trailers end with an empty line, too.
                    while !line.trim().is_empty() {
                        line.clear();
                        stream.take(1024).read_line(&mut line)?;
                    }
                    break;
                }
            },
        }
        Ok(())
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Removes a header.
    pub fn remove(&mut self, name: &str) {
        self.headers
            .retain(|(key, _)| !key.eq_ignore_ascii_case(name));
    }

    /// The method of a request.
    pub fn method(&self) -> &str {
        self.first.split(' ').next().unwrap_or_default()
    }

    /// The path and query of a request.
    pub fn target(&self) -> &str {
        self.first.split(' ').nth(1).unwrap_or_default()
    }

    /// The status of an answer, 0 if it has none.
    pub fn status(&self) -> u16 {
        self.first
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0)
    }

    /// An answer with a body.
    pub fn answer(status: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Self {
        let headers = headers
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Self {
            first: format!("HTTP/1.1 {status}"),
            headers: headers.collect(),
            body,
        }
    }

    /// The first line and headers with the empty line behind them. The length is the body's unless
    /// a header gives one (that of a `HEAD` does).
    pub fn head_bytes(&self) -> Vec<u8> {
        let mut head = format!("{}\r\n", self.first);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if self.header("content-length").is_none() && self.status() != 204 {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        head += "\r\n";
        head.into_bytes()
    }
}

/// Undoes `%XX`.
pub fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let hex = bytes
            .get(at + 1..at + 3)
            .and_then(|hex| str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(value) if byte == b'%' => {
                out.push(value);
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

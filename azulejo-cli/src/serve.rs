//! A small web server for one object and one user: on 127.0.0.1, read-only, behind a token.

pub mod files;
pub mod site;
pub mod zarr;

use crate::error::{CliError, Result};
use crate::interrupt;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Connections at a time; further ones wait.
const MOST_CONNECTIONS: usize = 64;
/// Between two looks for new connections, and whether the program is to end.
const GLANCE: Duration = Duration::from_millis(5);
/// How long a peer may take to send its request or to take a piece of the answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a request's head.
const LONGEST_HEAD: usize = 16 << 10;

/// What is asked for: the path behind the token, whose escapes are gone, and the part of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Components of the path; none is empty, `.` or `..`, or has a separator.
    pub path: Vec<String>,
    /// What follows the question mark.
    pub query: String,
    /// First and last byte, as far as they are given; `(None, n)` are the last `n`.
    pub range: Option<(Option<u64>, Option<u64>)>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// What the bytes are.
    pub content_type: &'static str,
    /// Headers more.
    pub headers: Vec<(&'static str, String)>,
    /// The bytes.
    pub body: Vec<u8>,
}

impl Answer {
    /// A whole file.
    pub fn file(content_type: &'static str, body: Vec<u8>) -> Self {
        Self {
            status: 200,
            content_type,
            headers: Vec::new(),
            body,
        }
    }

    /// An error with its reason.
    pub fn error(status: u16, text: &str) -> Self {
        Self {
            status,
            ..Self::file("text/plain; charset=utf-8", text.as_bytes().to_vec())
        }
    }

    /// With a header more.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A token that nobody can guess.
pub fn made_up_token() -> Result<String> {
    let mut random = [0u8; 16];
    getrandom::fill(&mut random)
        .map_err(|e| CliError::usage(format!("no random numbers for a token: {e}")))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A server that is bound to its port. Each connection brings one request: on one machine a new
/// connection costs nothing, and idle ones would have to be kept in mind.
pub struct Bound {
    listener: TcpListener,
    port: u16,
    token: String,
}

impl Bound {
    /// Binds to a port of 127.0.0.1 and makes up a token.
    pub fn new(port: u16) -> Result<Self> {
        let failed = |e: &dyn std::fmt::Display| {
            CliError::usage(format!("cannot listen on 127.0.0.1:{port}: {e}"))
        };
        let listener = TcpListener::bind(("127.0.0.1", port)).map_err(|e| failed(&e))?;
        listener.set_nonblocking(true).map_err(|e| failed(&e))?;
        let port = listener.local_addr().map_err(|e| failed(&e))?.port();
        Ok(Self {
            listener,
            port,
            token: made_up_token()?,
        })
    }

    /// The URL below which everything lies.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}", self.port, self.token)
    }

    /// Answers requests until the program is to end.
    pub fn run(&self, answer: &(dyn Fn(&Asked) -> Answer + Sync)) -> Result<()> {
        let open = &AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while interrupt::check().is_ok() {
                let has_room = open.load(Ordering::Relaxed) < MOST_CONNECTIONS;
                let accepted = has_room.then(|| self.listener.accept());
                let Some(Ok((stream, _))) = accepted else {
                    std::thread::sleep(GLANCE);
                    continue;
                };
                open.fetch_add(1, Ordering::Relaxed);
                scope.spawn(move || {
                    // Whoever went away meanwhile is not told.
                    let _ = self.handle(stream, answer);
                    open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Ok(())
    }

    fn handle(
        &self,
        mut stream: TcpStream,
        answer: &(dyn Fn(&Asked) -> Answer + Sync),
    ) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let head = read_head(&mut stream)?;
        let request = Request::parse(&head);
        let answered = match &request {
            None => Answer::error(400, "this is no request"),
            // Another host's name for this address is another page's trick.
            Some(request) if !self.is_ours(request.header("Host")) => {
                Answer::error(403, "this server answers for 127.0.0.1 only")
            }
            Some(request) => match request.method {
                "GET" | "HEAD" => {
                    match Asked::parse(request.target, &self.token, request.header("Range")) {
                        Some(asked) => answer(&asked),
                        None => Answer::error(404, "there is nothing"),
                    }
                }
                _ => Answer::error(405, "this server is for reading only"),
            },
        };
        let is_head = request.is_some_and(|request| request.method == "HEAD");
        write_answer(&mut stream, &answered, is_head)
    }

    fn is_ours(&self, host: Option<&str>) -> bool {
        let names = ["127.0.0.1", "localhost"];
        host.is_some_and(|host| {
            names
                .iter()
                .any(|name| host == *name || host == format!("{name}:{}", self.port))
        })
    }
}

/// The head of a request.
struct Request<'a> {
    method: &'a str,
    target: &'a str,
    headers: Vec<(&'a str, &'a str)>,
}

impl<'a> Request<'a> {
    fn parse(head: &'a str) -> Option<Self> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if !version.starts_with("HTTP/1.") || words.next().is_some() {
            return None;
        }
        let headers = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name, value.trim()))
        });
        Some(Self {
            method,
            target,
            headers: headers.collect(),
        })
    }

    fn header(&self, name: &str) -> Option<&'a str> {
        let found = self
            .headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value)
    }
}

/// Reads up to the empty line.
fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let (mut head, mut piece) = (Vec::new(), [0; 2048]);
    loop {
        if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            head.truncate(end);
            return String::from_utf8(head).map_err(|_| io::ErrorKind::InvalidData.into());
        }
        let read = stream.read(&mut piece)?;
        if read == 0 || head.len() + read > LONGEST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend(piece.iter().take(read));
    }
}

fn write_answer(stream: &mut TcpStream, answer: &Answer, is_head: bool) -> io::Result<()> {
    let reason = match answer.status {
        200 => "OK",
        206 => "Partial Content",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        416 => "Range Not Satisfiable",
        _ => "Error",
    };
    let mut head = format!(
        "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n",
        answer.status,
        answer.content_type,
        answer.body.len()
    );
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    if !is_head {
        stream.write_all(&answer.body)?;
    }
    stream.flush()
}

impl Asked {
    /// What a URL and a `Range` header ask for, if the token is the right one.
    fn parse(url: &str, token: &str, range: Option<&str>) -> Option<Self> {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let mut parts = path.strip_prefix('/')?.split('/');
        if !is_same(parts.next()?.as_bytes(), token.as_bytes()) {
            return None;
        }
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let path = parts.into_iter().map(component).collect::<Option<_>>()?;
        Some(Self {
            path,
            query: query.to_owned(),
            range: range.and_then(parse_range),
        })
    }
}

/// Compares in a time that does not tell where the first difference is.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// A component of a path without its escapes; `None` for what leads elsewhere.
fn component(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    let name = String::from_utf8(bytes).ok()?;
    let leads_elsewhere = matches!(name.as_str(), "." | "..")
        || name.contains(['/', '\\', '\0'])
        || cfg!(windows) && name.contains(':');
    (!leads_elsewhere).then_some(name)
}

/// `bytes=a-b`, `bytes=a-`, `bytes=-n`; others are passed by, as HTTP wants it.
fn parse_range(text: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (from, to) = text.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| match text {
        "" => Some(None),
        digits => digits.parse().ok().map(Some),
    };
    match (number(from)?, number(to)?) {
        (None, None) => None,
        range => Some(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(url: &str) -> Option<Vec<String>> {
        Asked::parse(url, "secret", None).map(|asked| asked.path)
    }

    #[test]
    fn only_paths_behind_the_token_that_stay_inside() {
        assert_eq!(asked("/secret/data/a%20b?list").unwrap(), ["data", "a b"]);
        assert_eq!(asked("/secret").unwrap(), Vec::<String>::new());
        for url in [
            "/",
            "/data",
            "/secre/data",
            "/secret2/data",
            "/secret/data/../x",
            "/secret/data/%2e%2E/x",
            "/secret/data/a%2fb",
            "/secret/data/a%5cb",
            "/secret/data/%00",
            "/secret/data/%",
            "/secret/data/%ff",
            "secret/data",
        ] {
            assert_eq!(asked(url), None, "{url}");
        }
    }

    #[test]
    fn ranges_are_read_or_passed_by() {
        assert_eq!(parse_range("bytes=3-9"), Some((Some(3), Some(9))));
        assert_eq!(parse_range("bytes=3-"), Some((Some(3), None)));
        assert_eq!(parse_range("bytes=-5"), Some((None, Some(5))));
        for odd in [
            "bytes=-",
            "bytes=a-b",
            "lines=1-2",
            "bytes=1-2,4-5",
            "bytes=-1-2",
        ] {
            assert_eq!(parse_range(odd), None, "{odd}");
        }
    }
}

//! A small web server for one object and one user: on 127.0.0.1, read-only, behind a token.

pub mod files;
pub mod site;
pub mod zarr;

use crate::error::{CliError, Result};
use crate::interrupt;
use std::io::Cursor;
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response, Server, StatusCode};

/// Requests answered side by side.
const THREADS: usize = 8;
/// How often a thread without work looks whether the program is to end.
const GLANCE: Duration = Duration::from_millis(200);

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

/// A server that is bound to its port.
pub struct Bound {
    server: Server,
    port: u16,
    token: String,
}

impl Bound {
    /// Binds to a port of 127.0.0.1 and makes up a token.
    pub fn new(port: u16) -> Result<Self> {
        let failed = |e: &dyn std::fmt::Display| {
            CliError::usage(format!("cannot listen on 127.0.0.1:{port}: {e}"))
        };
        let server = Server::http(("127.0.0.1", port)).map_err(|e| failed(&e))?;
        let bound = server.server_addr().to_ip();
        let port = bound.ok_or_else(|| failed(&"no address"))?.port();
        let mut random = [0u8; 16];
        getrandom::fill(&mut random).map_err(|e| failed(&e))?;
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            server,
            port,
            token,
        })
    }

    /// The URL below which everything lies.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}", self.port, self.token)
    }

    /// Answers requests until the program is to end.
    pub fn run(&self, answer: &(dyn Fn(&Asked) -> Answer + Sync)) -> Result<()> {
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while interrupt::check().is_ok() {
                        if let Ok(Some(request)) = self.server.recv_timeout(GLANCE) {
                            self.handle(request, answer);
                        }
                    }
                });
            }
        });
        Ok(())
    }

    fn handle(&self, request: Request, answer: &(dyn Fn(&Asked) -> Answer + Sync)) {
        let header = |name: &'static str| {
            let found = request.headers().iter().find(|h| h.field.equiv(name));
            found.map(|header| header.value.as_str().to_owned())
        };
        let answer = match request.method() {
            // Another host's name for this address is another page's trick.
            _ if !self.is_ours(header("Host").as_deref()) => {
                Answer::error(403, "this server answers for 127.0.0.1 only")
            }
            Method::Options => Answer::file("text/plain", Vec::new()),
            Method::Get | Method::Head => {
                match Asked::parse(request.url(), &self.token, header("Range").as_deref()) {
                    Some(asked) => answer(&asked),
                    None => Answer::error(404, "there is nothing"),
                }
            }
            _ => Answer::error(405, "this server is for reading only"),
        };
        // Whoever went away meanwhile is not told.
        let _ = request.respond(response(answer));
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

fn response(answer: Answer) -> Response<Cursor<Vec<u8>>> {
    let mut headers = vec![
        ("Content-Type", answer.content_type.to_owned()),
        ("X-Content-Type-Options", "nosniff".to_owned()),
        ("Referrer-Policy", "no-referrer".to_owned()),
        ("Cache-Control", "no-store".to_owned()),
    ];
    headers.extend(answer.headers);
    let headers = headers
        .iter()
        .filter_map(|(name, value)| Header::from_bytes(name.as_bytes(), value.as_bytes()).ok());
    let len = answer.body.len();
    let status = StatusCode(answer.status);
    let body = Cursor::new(answer.body);
    // In one piece: lengths tell readers what is missing.
    Response::new(status, headers.collect(), body, Some(len), None)
        .with_chunked_threshold(usize::MAX)
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

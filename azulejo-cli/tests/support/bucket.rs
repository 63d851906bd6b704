//! A server of one bucket, in this process: as much of S3's protocol as the program speaks.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "helpers of tests are tests too, and each file uses some of them"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The bucket's name.
pub const NAME: &str = "tiles";

/// What lies in the bucket.
#[derive(Default)]
struct Held {
    objects: BTreeMap<String, Vec<u8>>,
    /// Parts of uploads that are not finished, by the upload's number.
    uploads: BTreeMap<u64, BTreeMap<u64, Vec<u8>>>,
    begun: u64,
    /// Changes asked for so far.
    changes: usize,
}

/// A bucket; it is there as long as the process.
pub struct Bucket {
    address: String,
    held: Arc<Mutex<Held>>,
}

struct Request {
    method: String,
    key: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Bucket {
    /// Begins to serve. Each change takes `pause`, so that there is a moment in which to stop it.
    pub fn start(pause: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let held: Arc<Mutex<Held>> = Arc::default();
        let shared = Arc::clone(&held);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let held = Arc::clone(&shared);
                // Clients that go away are what some tests are about.
                std::thread::spawn(move || {
                    let _ = converse(stream, &held, pause);
                });
            }
        });
        Self { address, held }
    }

    /// What the program finds in the environment.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT_URL", format!("http://{}", self.address)),
            ("AWS_ACCESS_KEY_ID", "key".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
            ("AWS_REGION", "here".to_owned()),
            ("AWS_CONFIG_FILE", String::new()),
            ("AWS_SHARED_CREDENTIALS_FILE", String::new()),
        ]
    }

    /// The URI of a place in it.
    pub fn uri(&self, key: &str) -> String {
        format!("s3://{NAME}/{key}")
    }

    /// The names of all objects.
    pub fn keys(&self) -> BTreeSet<String> {
        self.held.lock().unwrap().objects.keys().cloned().collect()
    }

    /// What an object holds.
    pub fn object(&self, key: &str) -> Option<Vec<u8>> {
        self.held.lock().unwrap().objects.get(key).cloned()
    }

    /// Makes an object.
    pub fn put(&self, key: &str, bytes: impl Into<Vec<u8>>) {
        let mut held = self.held.lock().unwrap();
        held.objects.insert(key.to_owned(), bytes.into());
    }

    /// How many uploads in parts were begun and neither finished nor given up.
    pub fn unfinished(&self) -> usize {
        self.held.lock().unwrap().uploads.len()
    }

    /// How many changes were asked for so far.
    pub fn changes(&self) -> usize {
        self.held.lock().unwrap().changes
    }
}

fn converse(stream: TcpStream, held: &Mutex<Held>, pause: Duration) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    while let Some(request) = read(&mut reader)? {
        if request.method != "GET" && request.method != "HEAD" {
            held.lock().unwrap().changes += 1;
            std::thread::sleep(pause);
        }
        let answer = answer(&request, &mut held.lock().unwrap());
        write!(stream, "HTTP/1.1 {} Whatever\r\n", answer.status)?;
        write!(stream, "last-modified: Tue, 01 Jan 2030 00:00:00 GMT\r\n")?;
        write!(stream, "content-length: {}\r\n", answer.body.len())?;
        for (name, value) in &answer.headers {
            write!(stream, "{name}: {value}\r\n")?;
        }
        stream.write_all(b"\r\n")?;
        if request.method != "HEAD" {
            stream.write_all(&answer.body)?;
        }
        stream.flush()?;
    }
    Ok(())
}

fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let (path, query) = words.next().map_or(("", ""), |target| {
        target.split_once('?').unwrap_or((target, ""))
    });
    let key = decoded(path).trim_start_matches('/').to_owned();
    let key = key.strip_prefix(NAME).unwrap_or(&key);
    let key = key.trim_start_matches('/').to_owned();
    let query = query.split('&').filter(|pair| !pair.is_empty());
    let query = query.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let query = query.map(|(name, value)| (decoded(name), decoded(value)));
    let mut request = Request {
        method,
        key,
        query: query.collect(),
        headers: BTreeMap::new(),
        body: Vec::new(),
    };
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim().split_once(':') else {
            break;
        };
        let name = name.to_ascii_lowercase();
        request.headers.insert(name, value.trim().to_owned());
    }
    let length = request.headers.get("content-length");
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    request.body.resize(length, 0);
    reader.read_exact(&mut request.body)?;
    Ok(Some(request))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (*first, after) {
            (b'%', [a, b, after @ ..]) => {
                let digits = [*a, *b];
                let digits = str::from_utf8(&digits).unwrap();
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
                rest = after;
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}

impl Answer {
    fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    fn error(status: u16, code: &str) -> Self {
        Self::new(
            status,
            format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>"),
        )
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn tagged(self) -> Self {
        self.with("etag", "\"tag\"")
    }
}

fn answer(request: &Request, held: &mut Held) -> Answer {
    let upload = request
        .query
        .get("uploadId")
        .and_then(|id| id.parse::<u64>().ok());
    let key = request.key.as_str();
    match (request.method.as_str(), upload) {
        ("GET", None) if key.is_empty() => list(request, held),
        ("GET" | "HEAD", None) => match held.objects.get(key) {
            Some(object) => part_of(request, object),
            None => Answer::error(404, "NoSuchKey"),
        },
        ("PUT", Some(upload)) => {
            let number = request.query["partNumber"].parse().unwrap();
            match held.uploads.get_mut(&upload) {
                Some(parts) => {
                    parts.insert(number, request.body.clone());
                    Answer::new(200, "").tagged()
                }
                None => Answer::error(404, "NoSuchUpload"),
            }
        }
        ("PUT", None) => {
            let copied = request.headers.get("x-amz-copy-source").map(|from| {
                let from = decoded(from).trim_start_matches('/').to_owned();
                from.strip_prefix(NAME)
                    .unwrap_or(&from)
                    .trim_start_matches('/')
                    .to_owned()
            });
            let body = match &copied {
                Some(from) => match held.objects.get(from) {
                    Some(object) => object.clone(),
                    None => return Answer::error(404, "NoSuchKey"),
                },
                None => request.body.clone(),
            };
            held.objects.insert(key.to_owned(), body);
            let said = "<CopyObjectResult><ETag>\"tag\"</ETag></CopyObjectResult>";
            Answer::new(200, if copied.is_some() { said } else { "" }).tagged()
        }
        ("POST", None) if request.query.contains_key("uploads") => {
            held.begun += 1;
            let number = held.begun;
            held.uploads.insert(number, BTreeMap::new());
            Answer::new(
                200,
                format!(
                    "<InitiateMultipartUploadResult><Bucket>{NAME}</Bucket><Key>{}</Key>\
                     <UploadId>{number}</UploadId></InitiateMultipartUploadResult>",
                    escaped(key)
                ),
            )
        }
        ("POST", Some(upload)) => match held.uploads.remove(&upload) {
            Some(parts) => {
                let whole = parts.into_values().flatten().collect();
                held.objects.insert(key.to_owned(), whole);
                let said = "<CompleteMultipartUploadResult><ETag>\"tag\"</ETag></CompleteMultipartUploadResult>";
                Answer::new(200, said)
            }
            None => Answer::error(404, "NoSuchUpload"),
        },
        ("POST", None) => {
            let body = String::from_utf8(request.body.clone()).unwrap();
            let mut said = String::from("<DeleteResult>");
            for part in body.split("<Key>").skip(1) {
                let key = unescaped(part.split("</Key>").next().unwrap_or_default());
                held.objects.remove(&key);
                said += &format!("<Deleted><Key>{}</Key></Deleted>", escaped(&key));
            }
            Answer::new(200, said + "</DeleteResult>")
        }
        ("DELETE", Some(upload)) => match held.uploads.remove(&upload) {
            Some(_) => Answer::new(204, ""),
            None => Answer::error(404, "NoSuchUpload"),
        },
        ("DELETE", None) => {
            held.objects.remove(key);
            Answer::new(204, "")
        }
        _ => Answer::error(405, "MethodNotAllowed"),
    }
}

/// An object, or the part of it that is asked for.
fn part_of(request: &Request, object: &[u8]) -> Answer {
    let Some(range) = request.headers.get("range") else {
        return Answer::new(200, object).tagged();
    };
    let size = object.len();
    let (from, to) = range.trim_start_matches("bytes=").split_once('-').unwrap();
    let (from, to) = match from.parse::<usize>() {
        Ok(from) => (
            from,
            to.parse::<usize>().map_or(size, |to| size.min(to + 1)),
        ),
        Err(_) => (size.saturating_sub(to.parse().unwrap()), size),
    };
    if from >= size {
        return Answer::error(416, "InvalidRange");
    }
    Answer::new(206, &object[from..to])
        .tagged()
        .with("content-range", format!("bytes {from}-{}/{size}", to - 1))
}

fn list(request: &Request, held: &Held) -> Answer {
    let asked = |name: &str| request.query.get(name).map_or("", String::as_str);
    let (prefix, delimiter) = (asked("prefix"), asked("delimiter"));
    let (mut objects, mut folders) = (String::new(), BTreeSet::new());
    for (key, object) in held.objects.range(prefix.to_owned()..) {
        let Some(rest) = key.strip_prefix(prefix) else {
            break;
        };
        match rest.split_once(delimiter).filter(|_| !delimiter.is_empty()) {
            Some((folder, _)) => {
                folders.insert(format!("{prefix}{folder}{delimiter}"));
            }
            None => {
                objects += &format!(
                    "<Contents><Key>{}</Key><LastModified>2030-01-01T00:00:00.000Z</LastModified>\
                     <ETag>\"tag\"</ETag><Size>{}</Size></Contents>",
                    escaped(key),
                    object.len()
                );
            }
        }
    }
    let folders: String = folders
        .iter()
        .map(|folder| {
            format!(
                "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>",
                escaped(folder)
            )
        })
        .collect();
    Answer::new(
        200,
        format!(
            "<ListBucketResult><Name>{NAME}</Name><Prefix>{}</Prefix><IsTruncated>false</IsTruncated>\
             {objects}{folders}</ListBucketResult>",
            escaped(prefix)
        ),
    )
    .with("content-type", "application/xml")
}

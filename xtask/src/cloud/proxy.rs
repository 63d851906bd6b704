//! A proxy before a server: it counts what passes, makes each request take longer, and misbehaves
//! as a plan says.

use super::http1::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// No side keeps the other waiting longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Faults that the same request meets at most, one after the other.
const IN_A_ROW: u32 = 4;

/// A way to misbehave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The answer comes so many milliseconds later, so that answers overtake each other.
    Delay(u64),
    /// The connection is closed and the server never hears of the request.
    CutBefore,
    /// The server does what it is asked; the connection is closed before the answer.
    CutAfter,
    /// Half of the answer's body comes, then the connection is closed.
    Truncate,
    /// The server never hears of the request; this status is the answer, with `Retry-After: 1`
    /// where it is a throttle's.
    Refuse(u16),
}

/// What the proxy does to requests.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Added to each request.
    pub latency: Duration,
    /// How fast bodies pass, if not as fast as they can.
    pub speed: Option<Speed>,
    /// Whether the way of each answer is noted, for [`Proxy::take_passed`].
    pub noted: bool,
    /// What goes wrong, one of them at a time.
    pub faults: Vec<Fault>,
    /// How many of a thousand requests a fault meets. Where it is not all of them, the third is one
    /// of them, and none meets more than a few one after the other: who tries often enough
    /// succeeds, and something is tried, by no chance.
    pub per_mille: u64,
    /// Which ones.
    pub seed: u64,
    /// Only requests of these methods; all if there are none.
    pub methods: Vec<&'static str>,
}

/// Bytes of bodies a second, in either direction.
#[derive(Debug, Clone, Copy)]
pub struct Speed {
    /// Of one connection.
    pub connection: u64,
    /// Of all together.
    pub link: u64,
}

/// Bytes that pass at a time where a speed is set.
const PIECE: usize = 64 * 1024;

/// A connection that was late by no more than this is as fast as it should be in the end.
const LATE: Duration = Duration::from_millis(10);

/// An answer's way, where it is noted.
#[derive(Debug, Clone)]
pub struct Passed {
    /// What was asked for.
    pub request: String,
    /// Bytes of the answer's body.
    pub bytes: usize,
    /// When the request came, when its answer began to leave and when all of it had left.
    pub moments: [Instant; 3],
}

/// A kind of request to an S3 server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    List,
    Get,
    Head,
    Put,
    Multipart,
    Delete,
    Other,
}

impl Kind {
    fn of(request: &Message) -> Self {
        let target = request.target();
        let query = target.split_once('?').map_or("", |(_, query)| query);
        let has = |name: &str| {
            query
                .split('&')
                .any(|part| part.split('=').next() == Some(name))
        };
        let is_bucket = target
            .split('?')
            .next()
            .unwrap_or_default()
            .trim_matches('/')
            .split('/')
            .count()
            < 2;
        match request.method() {
            _ if has("uploads") || has("uploadId") => Self::Multipart,
            "GET" if is_bucket || has("list-type") || has("prefix") => Self::List,
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            "POST" if has("delete") => Self::Delete,
            _ => Self::Other,
        }
    }
}

/// What has passed.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// By kind.
    pub requests: BTreeMap<Kind, u64>,
    /// Bytes of bodies towards the server.
    pub sent: u64,
    /// Bytes of bodies towards the client.
    pub received: u64,
    /// Requests that met a fault.
    pub faults: u64,
}

impl Counts {
    /// Requests of all kinds.
    pub fn total(&self) -> u64 {
        self.requests.values().sum()
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.total())?;
        let kinds: Vec<String> = self
            .requests
            .iter()
            .map(|(kind, n)| format!("{n} {}", format!("{kind:?}").to_lowercase()))
            .collect();
        if kinds.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", kinds.join(", "))
        }
    }
}

#[derive(Debug, Default)]
struct State {
    plan: Plan,
    /// Requests that the plan is about, since it was made.
    meant: u64,
    /// How many faults a request has met since it passed last: by method and target.
    met: BTreeMap<String, u32>,
    counts: Counts,
    /// Uploads whose id has reached a client and that were neither finished nor aborted.
    uploads: BTreeSet<String>,
    /// What the server said when it finished uploads.
    finished: BTreeMap<String, Message>,
    /// Answers whose way is noted.
    passed: Vec<Passed>,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    /// Where the server keeps objects as files.
    objects: PathBuf,
    state: Mutex<State>,
    /// Held while someone asks to be the first to write an object.
    first: Mutex<()>,
    number: AtomicU64,
    stopped: AtomicBool,
    /// When all bytes that were let through so far will have passed the link.
    link: Mutex<Instant>,
}

/// A proxy under way, stopped when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

/// What its threads are called: those of connections take over the name of the one that accepts them.
pub const THREAD: &str = "proxy";

impl Proxy {
    /// Starts a proxy before a server that keeps its objects as files in `objects`.
    pub fn start(upstream: SocketAddr, objects: &Path) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        let shared = Arc::new(Shared {
            upstream,
            objects: objects.to_path_buf(),
            state: Mutex::default(),
            first: Mutex::default(),
            number: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            link: Mutex::new(Instant::now()),
        });
        let for_thread = Arc::clone(&shared);
        let accept = move || {
            for stream in listener.incoming().flatten() {
                if for_thread.stopped.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&for_thread);
                // A client that goes away, or breaks the protocol, ends its connection only.
                std::thread::spawn(move || drop(serve(&shared, &stream)));
            }
        };
        let listening = std::thread::Builder::new().name(THREAD.to_owned());
        listening.spawn(accept).map_err(|e| e.to_string())?;
        Ok(Self { address, shared })
    }

    /// Sets what happens to requests from now on.
    pub fn plan(&self, plan: Plan) {
        let mut state = self.shared.lock();
        state.plan = plan;
        state.meant = 0;
        state.met.clear();
    }

    /// What has passed since this was asked last.
    pub fn take(&self) -> Counts {
        std::mem::take(&mut self.shared.lock().counts)
    }

    /// Answers whose way was noted since this was asked last, in the order of their ends.
    pub fn take_passed(&self) -> Vec<Passed> {
        std::mem::take(&mut self.shared.lock().passed)
    }

    /// Uploads in parts that a client knows of and has left behind.
    pub fn open_uploads(&self) -> usize {
        self.shared.lock().uploads.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

/// What is to be done with one request.
struct Verdict {
    latency: Duration,
    speed: Option<Speed>,
    noted: bool,
    fault: Option<Fault>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn judge(&self, request: &Message) -> Verdict {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        *state.counts.requests.entry(Kind::of(request)).or_default() += 1;
        state.counts.sent += request.body.len() as u64;
        let State {
            plan,
            meant,
            met,
            counts,
            ..
        } = &mut *state;
        let (latency, speed, noted) = (plan.latency, plan.speed, plan.noted);
        let is_meant = plan.methods.is_empty() || plan.methods.contains(&request.method());
        *meant += u64::from(is_meant);
        let mut random = scramble(plan.seed ^ scramble(number));
        let mut hit = is_meant && !plan.faults.is_empty() && random % 1000 < plan.per_mille;
        if is_meant && (1..1000).contains(&plan.per_mille) {
            let met = met
                .entry(format!("{} {}", request.method(), request.target()))
                .or_default();
            hit = (hit || *meant == 3) && *met < IN_A_ROW;
            *met = if hit { *met + 1 } else { 0 };
        }
        random = scramble(random);
        let fault = hit.then(|| plan.faults[random as usize % plan.faults.len()]);
        counts.faults += u64::from(hit);
        Verdict {
            latency,
            speed,
            noted,
            fault,
        }
    }

    /// Waits until so many more bytes have passed the connection, whose bytes before had passed by
    /// `passed`, and the link.
    fn wait_for(&self, speed: Speed, passed: &mut Instant, bytes: usize) {
        let takes = |rate: u64| Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
        // Threads wake late, which is made up for; that the server was late is not.
        let late = Instant::now().checked_sub(LATE);
        *passed = late.map_or(*passed, |late| late.max(*passed)) + takes(speed.connection);
        let linked = {
            let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
            *link = (*link).max(Instant::now()) + takes(speed.link);
            *link
        };
        std::thread::sleep(
            (*passed)
                .max(linked)
                .saturating_duration_since(Instant::now()),
        );
    }

    /// Lets bytes pass as fast as the connection and the link are.
    fn passes(
        &self,
        speed: Option<Speed>,
        bytes: &[u8],
        mut pass: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(speed) = speed else {
            return pass(bytes);
        };
        let mut passed = Instant::now();
        for piece in bytes.chunks(PIECE) {
            self.wait_for(speed, &mut passed, piece.len());
            pass(piece)?;
        }
        Ok(())
    }

    /// The same for bytes that come from the server meanwhile: a link does not wait for all of them.
    fn passes_on(
        &self,
        speed: Speed,
        from: &mut impl Read,
        bytes: usize,
        mut pass: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut passed, mut left) = (Instant::now(), bytes);
        let mut buffer = vec![0; PIECE.min(bytes)];
        while left > 0 {
            let len = left.min(PIECE);
            let piece = buffer.get_mut(..len).unwrap_or_default();
            from.read_exact(piece)?;
            self.wait_for(speed, &mut passed, piece.len());
            pass(piece)?;
            left -= len;
        }
        Ok(())
    }

    /// S3 gives the same answer to those who finish an upload again because they have not heard it;
    /// s3s-fs refuses them.
    fn finish_once(&self, request: &Message, answer: &mut Message) {
        let query = request
            .target()
            .split_once('?')
            .map_or("", |(_, query)| query);
        let id = query
            .split('&')
            .find_map(|part| part.strip_prefix("uploadId="));
        let (Some(id), "POST") = (id, request.method()) else {
            return;
        };
        let finished = &mut self.lock().finished;
        match finished.get(id) {
            Some(before) => *answer = before.clone(),
            None if answer.status() == 200 => drop(finished.insert(id.to_owned(), answer.clone())),
            None => {}
        }
    }

    /// Keeps account of uploads in parts.
    fn note_upload(&self, request: &Message, answer: &Message, delivered: bool) {
        let query = request
            .target()
            .split_once('?')
            .map_or("", |(_, query)| query);
        let id = query
            .split('&')
            .find_map(|part| part.strip_prefix("uploadId="));
        let done = (200..300).contains(&answer.status());
        match (request.method(), id) {
            ("POST", None)
                if query
                    .split('&')
                    .any(|part| part.split('=').next() == Some("uploads")) =>
            {
                let body = String::from_utf8_lossy(&answer.body);
                let id = body
                    .split("<UploadId>")
                    .nth(1)
                    .and_then(|rest| rest.split('<').next());
                if let (Some(id), true, true) = (id, done, delivered) {
                    self.lock().uploads.insert(super::http1::unescape(id));
                }
            }
            ("POST" | "DELETE", Some(id)) if done || answer.status() == 404 => {
                self.lock().uploads.remove(&super::http1::unescape(id));
            }
            _ => {}
        }
    }
}

fn scramble(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn connect(address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(BufReader::new(stream))
}

/// Serves one client's connection.
fn serve(shared: &Shared, client: &TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    client.set_read_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(client.try_clone()?);
    let mut writer = client.try_clone()?;
    let mut upstream: Option<BufReader<TcpStream>> = None;
    while let Some(mut request) = Message::read_head(&mut reader)? {
        if request.header("expect").is_some() {
            request.remove("expect");
            writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let came = Instant::now();
        request.read_request_body(&mut reader)?;
        // The body is whole here; its length is written anew.
        request.remove("transfer-encoding");
        let Verdict {
            latency,
            speed,
            noted,
            fault,
        } = shared.judge(&request);
        std::thread::sleep(latency);
        // A body that was sent is here as a whole: who sent it waits for the answer.
        shared.passes(speed, &request.body, |_| Ok(()))?;
        match fault {
            Some(Fault::CutBefore) => return client.shutdown(Shutdown::Both),
            Some(Fault::Refuse(status)) => {
                let body = b"<Error><Code>SlowDown</Code><Message>fewer requests</Message></Error>"
                    .to_vec();
                let reason = format!("{status} Refused");
                let answer = if matches!(status, 429 | 503) {
                    Message::answer(&reason, &[("Retry-After", "1")], body)
                } else {
                    Message::answer(&reason, &[], body)
                };
                writer.write_all(&answer.head_bytes())?;
                if request.method() != "HEAD" {
                    writer.write_all(&answer.body)?;
                }
                continue;
            }
            _ => {}
        }
        let streams = speed.is_some() && fault.is_none();
        let (mut answer, coming) = {
            // Of several who ask at once S3 lets one be the first; s3s-fs looks, and writes later.
            let asks = request.method() == "PUT" && request.header("if-none-match").is_some();
            let first = || shared.first.lock().unwrap_or_else(PoisonError::into_inner);
            let _turn = asks.then(first);
            forward(shared.upstream, &request, &mut upstream, streams)?
        };
        if answer.status() == 500
            && let Some(mended) = whole_for_suffix(&shared.objects, &request)
                .or_else(|| deleted_all(&shared.objects, &request))
        {
            answer = mended;
        }
        shared.finish_once(&request, &mut answer);
        let delivered = !matches!(fault, Some(Fault::CutAfter | Fault::Truncate));
        shared.note_upload(&request, &answer, delivered);
        match fault {
            Some(Fault::CutAfter) => return client.shutdown(Shutdown::Both),
            Some(Fault::Delay(ms)) => std::thread::sleep(Duration::from_millis(ms)),
            _ => {}
        }
        let whole = answer.body.len();
        answer.remove("transfer-encoding");
        answer.remove("connection");
        if request.method() != "HEAD" && answer.status() != 204 && coming == 0 {
            answer.remove("content-length");
        }
        let head = answer.head_bytes();
        let cut = fault == Some(Fault::Truncate) && whole > 0;
        let sent = if cut { whole / 2 } else { whole };
        shared.lock().counts.received += (sent + coming) as u64;
        let leaves = Instant::now();
        writer.write_all(&head)?;
        let body = answer.body.get(..sent).unwrap_or_default();
        shared.passes(speed, body, |piece| writer.write_all(piece))?;
        if let (Some(speed), Some(from), true) = (speed, &mut upstream, coming > 0) {
            shared.passes_on(speed, from, coming, |piece| writer.write_all(piece))?;
        }
        if noted {
            let range = request.header("range").unwrap_or_default();
            let passed = Passed {
                request: format!("{} {range}", request.first),
                bytes: sent + coming,
                moments: [came, leaves, Instant::now()],
            };
            shared.lock().passed.push(passed);
        }
        if cut {
            return client.shutdown(Shutdown::Both);
        }
    }
    Ok(())
}

/// s3s-fs fails where the last bytes of an object are asked for and it has fewer; S3 answers with
/// all of it.
fn whole_for_suffix(objects: &Path, request: &Message) -> Option<Message> {
    let wanted: usize = request
        .header("range")?
        .strip_prefix("bytes=-")?
        .parse()
        .ok()?;
    let path = super::http1::unescape(request.target().split('?').next()?);
    let body = std::fs::read(objects.join(path.trim_start_matches('/'))).ok()?;
    if body.is_empty() || body.len() >= wanted {
        return None;
    }
    let range = format!("bytes 0-{}/{}", body.len() - 1, body.len());
    let headers = [
        ("Content-Range", range.as_str()),
        ("ETag", "\"whole\""),
        ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"),
    ];
    Some(Message::answer("206 Partial Content", &headers, body))
}

/// s3s-fs fails where a key to be deleted is that of no object and other keys lie below it; S3
/// passes it by.
fn deleted_all(objects: &Path, request: &Message) -> Option<Message> {
    let (bucket, query) = request.target().split_once('?')?;
    if request.method() != "POST"
        || !query
            .split('&')
            .any(|part| part.split('=').next() == Some("delete"))
    {
        return None;
    }
    let bucket = objects.join(bucket.trim_matches('/'));
    let body = String::from_utf8_lossy(&request.body);
    let mut done = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?><DeleteResult>");
    for key in body
        .split("<Key>")
        .skip(1)
        .filter_map(|rest| rest.split("</Key>").next())
    {
        let plain = key
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&amp;", "&");
        if bucket.join(&plain).is_file() {
            std::fs::remove_file(bucket.join(&plain)).ok()?;
        }
        done += &format!("<Deleted><Key>{key}</Key></Deleted>");
    }
    done += "</DeleteResult>";
    Some(Message::answer(
        "200 OK",
        &[("Content-Type", "application/xml")],
        done.into_bytes(),
    ))
}

/// Asks the server; over the connection that is there, or a new one if the server has closed it.
/// If it `streams`, the body of an object's answer is left in the connection: so many bytes.
fn forward(
    address: SocketAddr,
    request: &Message,
    connection: &mut Option<BufReader<TcpStream>>,
    streams: bool,
) -> io::Result<(Message, usize)> {
    let mut request = request.clone();
    request.remove("content-length");
    let bytes = [request.head_bytes(), request.body.clone()].concat();
    let attempt = |stream: &mut BufReader<TcpStream>| -> io::Result<(Message, usize, bool)> {
        stream.get_mut().write_all(&bytes)?;
        // The server sends head and body apart, and the body only when the head was acknowledged,
        // which systems put off.
        #[cfg(target_os = "linux")]
        socket2::SockRef::from(stream.get_ref()).set_tcp_quickack(true)?;
        loop {
            let head = Message::read_head(stream)?;
            let mut answer = head.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
            if answer.status() == 100 {
                continue;
            }
            if streams
                && Kind::of(&request) == Kind::Get
                && let Some(coming) = answer.coming()
            {
                return Ok((answer, coming, true));
            }
            let again = answer.read_answer_body(stream, request.method())?;
            return Ok((answer, 0, again));
        }
    };
    if let Some(mut stream) = connection.take()
        && let Ok((answer, coming, again)) = attempt(&mut stream)
    {
        *connection = again.then_some(stream);
        return Ok((answer, coming));
    }
    let mut stream = connect(address)?;
    let (answer, coming, again) = attempt(&mut stream)?;
    *connection = again.then_some(stream);
    Ok((answer, coming))
}

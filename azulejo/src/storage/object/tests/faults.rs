//! Servers that fail, on this machine.

use super::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// A request as a server sees it.
#[derive(Debug, Clone)]
struct Asked {
    method: String,
    target: String,
    range: Option<String>,
    body: Vec<u8>,
}

/// Holds up who waits, until it is opened. Answers are held by one, not by a clock: a busy machine
/// is slower than any clock.
#[derive(Default)]
struct Barrier {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Barrier {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn wait(&self) {
        drop(
            self.opened
                .wait_while(self.is_open.lock().unwrap(), |open| !*open)
                .unwrap(),
        );
    }
}

/// What a server does.
struct Reply {
    /// 0: it closes the connection.
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// Bytes of the body that are sent before the connection is closed.
    sent: usize,
    /// What it waits for.
    held: Option<Arc<Barrier>>,
}

impl Reply {
    fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self {
            status,
            headers: Vec::new(),
            sent: body.len(),
            body,
            held: None,
        }
    }

    /// A part of an object, as asked for.
    fn range(asked: &Asked, object: &[u8]) -> Self {
        let Some(range) = &asked.range else {
            return Self::new(200, object);
        };
        let (start, end) = range
            .strip_prefix("bytes=")
            .unwrap()
            .split_once('-')
            .unwrap();
        let size = object.len();
        let (start, end) = match start {
            "" => (size.saturating_sub(end.parse().unwrap()), size),
            start => (
                start.parse().unwrap(),
                end.parse::<usize>().map_or(size, |end| size.min(end + 1)),
            ),
        };
        if start >= size {
            return Self::new(416, "");
        }
        let mut reply = Self::new(206, &object[start..end]);
        reply
            .headers
            .push(("content-range", format!("bytes {start}-{}/{size}", end - 1)));
        reply
    }

    fn cut(mut self, sent: usize) -> Self {
        self.sent = sent.min(self.body.len());
        self
    }

    fn behind(mut self, barrier: &Arc<Barrier>) -> Self {
        self.held = Some(Arc::clone(barrier));
        self
    }
}

/// A server for one test; what was asked of it.
struct Server {
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    fn start(answer: impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (log, answer) = (Arc::clone(&asked), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                std::thread::spawn(move || {
                    // A client that goes away is what some tests are about.
                    let _ = serve(stream.unwrap(), &log, &*answer);
                });
            }
        });
        Self { address, asked }
    }

    fn requests(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    fn connect(
        &self,
        scheme: &str,
        settings: &[(&str, &str)],
    ) -> (ObjectStorage, StorePath, IoStats) {
        let (uri, mut given) = match scheme {
            "http" => (
                format!("http://{}/folder", self.address),
                StoreSettings::new(),
            ),
            _ => {
                let mut given = StoreSettings::new();
                given
                    .set("vfs.s3.endpoint_override", &self.address)
                    .unwrap();
                for (name, value) in [
                    ("vfs.s3.scheme", "http"),
                    ("vfs.s3.region", "here"),
                    ("vfs.s3.aws_access_key_id", "KEYKEY"),
                    ("vfs.s3.aws_secret_access_key", "HUSHHUSH"),
                ] {
                    given.set(name, value).unwrap();
                }
                ("s3://bucket/folder".to_owned(), given)
            }
        };
        // Longer than a busy machine takes for anything.
        for name in [
            "vfs.s3.request_timeout_ms",
            "vfs.s3.connect_timeout_ms",
            "vfs.http.request_timeout_ms",
        ] {
            given.set(name, "900000").unwrap();
        }
        settings
            .iter()
            .for_each(|(name, value)| given.set(name, value).unwrap());
        let (root, stats) = (path(&uri), IoStats::new());
        let mut storage = ObjectStorage::connect(&root, &given, &stats).unwrap();
        // What is taken back is seen to be, however busy the machine.
        Arc::get_mut(&mut storage.shared).unwrap().limits.cleaning = Duration::from_secs(600);
        (storage, root, stats)
    }
}

fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<Asked>>,
    answer: &(dyn Fn(usize, &Asked) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Ok(());
    };
    let mut asked = Asked {
        method,
        target,
        range: None,
        body: Vec::new(),
    };
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "range" => asked.range = Some(value.to_owned()),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    asked.body.resize(length, 0);
    reader.read_exact(&mut asked.body)?;
    let number = {
        let mut log = log.lock().unwrap();
        log.push(asked.clone());
        log.len() - 1
    };
    let reply = answer(number, &asked);
    if let Some(barrier) = &reply.held {
        barrier.wait();
    }
    if reply.status == 0 {
        return Ok(());
    }
    write!(
        stream,
        "HTTP/1.1 {} Whatever\r\nconnection: close\r\n",
        reply.status
    )?;
    write!(
        stream,
        "last-modified: Tue, 01 Jan 2030 00:00:00 GMT\r\ncontent-length: {}\r\n",
        reply.body.len()
    )?;
    for (name, value) in &reply.headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    stream.write_all(b"\r\n")?;
    if asked.method != "HEAD" {
        stream.write_all(&reply.body[..reply.sent])?;
    }
    stream.flush()
}

fn object() -> Vec<u8> {
    (0..100_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

fn all(path: &StorePath) -> ReadRequest {
    ReadRequest {
        path: path.clone(),
        range: ReadRange::All,
    }
}

fn some(path: &StorePath, range: std::ops::Range<u64>) -> ReadRequest {
    ReadRequest {
        path: path.clone(),
        range: ReadRange::Bytes(range),
    }
}

#[test]
fn bodies_that_break_off_are_continued() {
    // Each answer breaks off after 30,000 bytes.
    let server = Server::start(|_, asked| Reply::range(asked, &object()).cut(30_000));
    let (storage, root, _) = server.connect("http", &[]);
    let x = root.join("x");
    let read = storage.read(&[some(&x, 10..90_000), all(&x)]).unwrap();
    assert!(read[0] == object()[10..90_000] && read[1] == object());
    let mut out = vec![0; 50_000];
    storage
        .read_into(&mut [ReadInto {
            path: x.clone(),
            offset: 7,
            out: &mut out,
        }])
        .unwrap();
    assert!(out == object()[7..50_007]);
    let tail = storage.read_tails(&[x], 60_000).unwrap().remove(0);
    assert!(tail.object_size == 100_000 && tail.bytes == object()[40_000..]);
    assert!(
        server
            .requests()
            .iter()
            .any(|asked| asked.range.as_deref() == Some("bytes=30010-89999"))
    );
}

#[test]
fn a_body_that_never_goes_on_is_an_error() {
    let server = Server::start(|_, asked| Reply::range(asked, &object()).cut(0));
    let (storage, root, _) = server.connect("http", &[("vfs.http.max_retries", "2")]);
    let error = storage.read(&[some(&root.join("x"), 0..100)]).unwrap_err();
    assert!(
        matches!(error, Error::Storage { op: "read", .. }),
        "{error}"
    );
}

#[test]
fn busy_servers_are_asked_again() {
    let server = Server::start(|number, asked| match number {
        0 => Reply::new(503, "slow down"),
        1 => Reply::new(429, "slow down"),
        2 => Reply::new(500, "oh"),
        _ => Reply::range(asked, &object()),
    });
    let (storage, root, stats) = server.connect("http", &[]);
    assert!(storage.read(&[some(&root.join("x"), 5..9)]).unwrap()[0] == object()[5..9]);
    assert_eq!((server.requests().len(), stats.counts().failures), (4, 3));
    assert_eq!(stats.counts().requests(IoOp::Get), 4);
    assert!(stats.counts().waited > Duration::from_millis(20));
}

#[test]
fn what_is_to_be_deleted_is_asked_for_again_where_connections_break() {
    let done = "<DeleteResult><Deleted><Key>folder/__commits/x</Key></Deleted></DeleteResult>";
    let server = Server::start(move |number, _| match number {
        0..3 => Reply::new(0, ""),
        _ => Reply::new(200, done),
    });
    let (storage, root, _) = server.connect("s3", &[]);
    storage.delete(&[root.join("__commits/x")]).unwrap();
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn copies_go_out_side_by_side() {
    let done = "<CopyObjectResult><ETag>&quot;x&quot;</ETag></CopyObjectResult>";
    let barrier = Arc::new(Barrier::default());
    let held = Arc::clone(&barrier);
    // None is answered before all have come.
    let server = Server::start(move |number, _| {
        if number == 4 {
            held.open();
        }
        Reply::new(200, done).behind(&held)
    });
    let (storage, root, stats) = server.connect("s3", &[]);
    let copies: Vec<_> = (0..5)
        .map(|i| (root.join(&format!("x{i}")), root.join(&format!("y{i}"))))
        .collect();
    assert!(storage.copy_all_here(&copies).unwrap());
    assert_eq!(stats.counts().requests(IoOp::Copy), 5);
    let elsewhere = path("s3://other/y");
    let copies = [copies[0].clone(), (root.join("x"), elsewhere)];
    assert!(!storage.copy_all_here(&copies).unwrap());
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn nothing_is_deleted_that_is_only_promised_to_be_copied() {
    let server = Server::start(move |_, asked| match asked.method.as_str() {
        "GET" => Reply::new(
            200,
            "<ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated></ListBucketResult>",
        ),
        "HEAD" if asked.target.ends_with("/x") => Reply::new(200, "x"),
        "HEAD" => Reply::new(404, ""),
        "PUT" => {
            let mut reply = Reply::new(202, "");
            reply
                .headers
                .push(("x-ms-copy-status", "pending".to_owned()));
            reply
        }
        _ => Reply::new(200, ""),
    });
    let (storage, root, _) = server.connect("s3", &[]);
    let moved = storage.rename(&root.join("x"), &root.join("y"));
    assert!(moved.is_err());
    let asked = server.requests();
    assert!(asked.iter().any(|asked| asked.method == "PUT"), "{asked:?}");
    let deletes = |asked: &Asked| asked.method == "DELETE" || asked.target.contains("?delete");
    assert!(!asked.iter().any(deletes), "{asked:?}");
}

#[test]
fn what_fails_for_good_is_named() {
    for (status, part) in [
        (403, "permission denied"),
        (503, "throttled"),
        (429, "throttled"),
        (404, "not found"),
    ] {
        let server = Server::start(move |_, _| Reply::new(status, "no"));
        for (scheme, retries) in [
            ("http", "vfs.http.max_retries"),
            ("s3", "vfs.s3.connect_max_tries"),
        ] {
            let (storage, root, _) = server.connect(scheme, &[(retries, "1")]);
            let error = storage.read(&[all(&root.join("x"))]).unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains(part) && text.contains("folder/x") && !text.contains("HUSH"),
                "{text}"
            );
            assert_eq!(matches!(error, Error::NotFound { .. }), status == 404);
        }
    }
    let nobody = Server {
        address: "127.0.0.1:9".into(),
        asked: Arc::default(),
    };
    let (storage, root, _) = nobody.connect("http", &[("vfs.http.max_retries", "1")]);
    let text = storage.size(&root.join("x")).unwrap_err().to_string();
    assert!(text.contains("cannot be reached"), "{text}");
}

#[test]
fn silence_ends_after_a_while() {
    let never = Arc::new(Barrier::default());
    let server = Server::start(move |_, _| Reply::new(200, "late").behind(&never));
    let settings = [
        ("vfs.http.request_timeout_ms", "100"),
        ("vfs.http.max_retries", "3"),
    ];
    let (storage, root, _) = server.connect("http", &settings);
    let start = Instant::now();
    let text = storage
        .read(&[all(&root.join("x"))])
        .unwrap_err()
        .to_string();
    assert!(text.contains("in time"), "{text}");
    // As long as four attempts take at least without the setting.
    assert!(
        start.elapsed() < 4 * connect::PATIENCE,
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn servers_without_ranges_serve_too() {
    let server = Server::start(|_, _| Reply::new(200, object()));
    let (storage, root, _) = server.connect("http", &[]);
    let x = root.join("x");
    assert!(
        storage
            .read(&[some(&x, 5..9), some(&x, 90_000..100_000)])
            .unwrap()[1]
            == object()[90_000..]
    );
    let tail = storage
        .read_tails(std::slice::from_ref(&x), 10)
        .unwrap()
        .remove(0);
    assert!(tail.object_size == 100_000 && tail.bytes == object()[99_990..]);
    assert!(storage.read(&[some(&x, 99_999..100_001)]).is_err());
}

#[test]
fn web_servers_are_read_and_not_listed() {
    let server = Server::start(|_, asked| Reply::new(200, asked.target.clone()));
    let (storage, root, _) = server.connect("http", &[]);
    let text = storage.list(&root).unwrap_err().to_string();
    assert!(text.contains("azulejo manifest"), "{text}");
    for error in [
        storage.put(&root.join("x"), Bytes::new()).unwrap_err(),
        storage.upload(&root.join("x")).unwrap_err(),
        storage.delete(&[root.join("x")]).unwrap_err(),
        storage
            .rename(&root.join("x"), &root.join("y"))
            .unwrap_err(),
    ] {
        assert!(error.to_string().contains("reading only"), "{error}");
    }
    let body = storage
        .read(&[all(&root.join("a b%/é"))])
        .unwrap()
        .remove(0);
    assert_eq!(body, "/folder/a%20b%25/%C3%A9");
    assert!(server.requests().iter().all(|asked| asked.method == "GET"));
}

#[test]
fn a_read_that_nobody_waits_for_is_stopped() {
    let never = Arc::new(Barrier::default());
    let server = Server::start(move |_, asked| Reply::range(asked, &object()).behind(&never));
    let (storage, root, _) = server.connect("http", &[("vfs.http.max_parallel_ops", "4")]);
    let requests = (0..50)
        .map(|i| some(&root.join(&i.to_string()), 0..10))
        .collect();
    let pending = storage.start_read(requests);
    let until = |is_so: &dyn Fn() -> bool| {
        (0..60_000).any(|_| {
            is_so() || {
                std::thread::sleep(Duration::from_millis(5));
                false
            }
        })
    };
    assert!(until(&|| !server.requests().is_empty()));
    drop(pending);
    // No request is answered: only who gives up gives the permits back.
    assert!(
        until(&|| storage.shared.gate.available_permits() == 4),
        "requests are waited for"
    );
    assert!(server.requests().len() < 50);
}

#[test]
fn requests_leave_in_the_order_in_which_they_were_asked_for() {
    let first = Arc::new(Barrier::default());
    let held = Arc::clone(&first);
    let server = Server::start(move |_, asked| Reply::range(asked, &object()).behind(&held));
    let (storage, root, _) = server.connect("http", &[("vfs.http.max_parallel_ops", "1")]);
    let named = |n: usize| root.join(&format!("{n:03}"));
    let reads = |from: usize| {
        // Joined ranges of one object among them.
        let pair = |n: usize| [some(&named(n), 0..10), some(&named(n), 20..30)];
        (from..from + 40).flat_map(pair).collect::<Vec<_>>()
    };
    let (a, b) = (storage.start_read(reads(0)), storage.start_read(reads(40)));
    let ends: Vec<StorePath> = (80..120).map(named).collect();
    let c = storage.start_read_tails(ends, 10);
    first.open();
    assert_eq!(a.wait().unwrap().len(), 80);
    assert_eq!(b.wait().unwrap().len(), 80);
    assert_eq!(c.wait().unwrap().len(), 40);
    let asked = server.requests();
    let asked: Vec<&str> = asked.iter().map(|asked| asked.target.as_str()).collect();
    let expected: Vec<String> = (0..120).map(|n| format!("/folder/{n:03}")).collect();
    assert_eq!(asked, expected);
    assert_eq!(storage.shared.gate.available_permits(), 1);
}

#[test]
fn a_folder_that_has_nothing_but_its_mark_is_empty() {
    let server = Server::start(|number, _| {
        let objects = ["folder/", "folder/x"].into_iter().take(number);
        let contents = objects.map(|key| {
            format!(
                "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
                 <ETag>\"1\"</ETag><Size>0</Size></Contents>"
            )
        });
        let contents: String = contents.collect();
        Reply::new(
            200,
            format!(
                "<ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
            ),
        )
    });
    let (storage, root, _) = server.connect("s3", &[]);
    let empty = [(); 3].map(|()| storage.is_empty(&root).unwrap());
    assert_eq!(empty, [true, true, false]);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn an_upload_that_fails_is_taken_back() {
    let first = Barrier::default();
    let server = Server::start(move |_, asked| match asked.method.as_str() {
        "POST" if asked.target.ends_with("?uploads=") || asked.target.ends_with("?uploads") => {
            Reply::new(
                200,
                "<InitiateMultipartUploadResult><UploadId>id-1</UploadId></InitiateMultipartUploadResult>",
            )
        }
        "PUT" if asked.target.contains("partNumber=2") => {
            // Before that nothing of the first may have been sent.
            first.wait();
            Reply::new(403, "<Error><Code>AccessDenied</Code></Error>")
        }
        "PUT" => {
            if asked.target.contains("partNumber=1") {
                first.open();
            }
            let mut reply = Reply::new(200, "");
            reply.headers.push(("etag", "\"x\"".into()));
            reply
        }
        "DELETE" => Reply::new(204, ""),
        _ => Reply::new(400, "?"),
    });
    let (storage, root, stats) = server.connect("s3", &[]);
    let mut upload = storage.upload(&root.join("x")).unwrap();
    let part = vec![1; 6 << 20];
    let written = (0..3)
        .try_for_each(|_| upload.write(&part))
        .and_then(|()| upload.finish());
    let text = written.unwrap_err().to_string();
    assert!(
        text.contains("permission denied") && text.contains("s3://bucket/folder/x"),
        "{text}"
    );
    let requests = server.requests();
    assert!(
        requests
            .iter()
            .any(|asked| asked.method == "DELETE" && asked.target.contains("uploadId=id-1"))
    );
    assert!(
        !requests
            .iter()
            .any(|asked| asked.method == "POST" && asked.target.contains("uploadId")),
        "completed"
    );
    assert!(stats.counts().bytes(IoOp::Multipart) >= 10 << 20);
    // Given up before the end, and with nothing sent yet.
    let mut upload = storage.upload(&root.join("y")).unwrap();
    upload.write(b"little").unwrap();
    drop(upload);
    // Parts of the first may still be noted: the server reads what was on its way when they were
    // given up.
    assert!(
        !server
            .requests()
            .iter()
            .any(|asked| asked.target.contains("folder/y"))
    );
}

/// A store that takes uploads in parts, whose last answer is that of `finish`, for an object of
/// which `HEAD` says that it has `size` bytes.
fn taking_parts(
    size: Option<usize>,
    finish: impl Fn(usize) -> Reply + Send + Sync + 'static,
) -> Server {
    let finished = AtomicUsize::new(0);
    Server::start(move |_, asked| match asked.method.as_str() {
        "POST" if asked.target.contains("uploadId") => {
            finish(finished.fetch_add(1, Ordering::Relaxed))
        }
        "POST" => Reply::new(
            200,
            "<InitiateMultipartUploadResult><UploadId>id-1</UploadId></InitiateMultipartUploadResult>",
        ),
        "PUT" => {
            let mut reply = Reply::new(200, "");
            reply.headers.push(("etag", "\"x\"".into()));
            reply
        }
        "HEAD" => size.map_or_else(
            || Reply::new(404, ""),
            |size| Reply::new(200, vec![0; size]),
        ),
        "DELETE" => Reply::new(204, ""),
        _ => Reply::new(400, "?"),
    })
}

fn gone(_: usize) -> Reply {
    Reply::new(
        404,
        "<Error><Code>NoSuchUpload</Code><Message>it does not exist</Message></Error>",
    )
}

#[test]
fn an_upload_whose_last_answer_was_lost_is_found() {
    let size = 11 << 20;
    let upload = |server: &Server| {
        let (storage, root, _) = server.connect("s3", &[("vfs.s3.connect_max_tries", "2")]);
        let mut upload = storage.upload(&root.join("x")).unwrap();
        upload.write(&vec![1; size]).and_then(|()| upload.finish())
    };
    let aborted = |server: &Server| {
        server
            .requests()
            .iter()
            .any(|asked| asked.method == "DELETE")
    };
    // The server does not know the upload any more, for it has made the object of it.
    let lost = |attempt| {
        if attempt == 0 {
            Reply::new(500, "")
        } else {
            gone(attempt)
        }
    };
    let server = taking_parts(Some(size), lost);
    upload(&server).unwrap();
    assert!(!aborted(&server), "what is there stays");
    // Never an answer.
    let server = taking_parts(Some(size), |_| Reply::new(503, ""));
    upload(&server).unwrap();
    // No object, an older one, one that may not be written.
    for (found, finish) in [
        (None, gone as fn(usize) -> Reply),
        (Some(size - 1), gone),
        (Some(size), |_| {
            Reply::new(403, "<Error><Code>AccessDenied</Code></Error>")
        }),
    ] {
        let server = taking_parts(found, finish);
        let text = upload(&server).unwrap_err().to_string();
        assert!(text.contains("s3://bucket/folder/x"), "{text}");
        assert!(aborted(&server), "{found:?}");
    }
}

/// Cancels `work` on a store as soon as that has heard of a request, which it does not answer; the
/// work ends with [`Error::Cancelled`] soon, and the next is done. Returns what was asked.
fn cancelled<T>(work: impl FnOnce(&ObjectStorage, &StorePath) -> Result<T>) -> Vec<Asked> {
    // Of each work's own: requests of another might arrive late.
    let barrier = Arc::new(Barrier::default());
    let server = slow_store(Arc::clone(&barrier));
    let (storage, root, _) = server.connect("s3", &[]);
    let handle = CancelHandle::default();
    let storage = storage.cancelled_by(&handle);
    let asked = Arc::clone(&server.asked);
    let canceller = std::thread::spawn(move || {
        let is_held = |asked: &Asked| !asked.target.contains("uploads");
        while !asked.lock().unwrap().iter().any(is_held) {
            std::thread::sleep(Duration::from_millis(2));
        }
        handle.cancel();
        Instant::now()
    });
    let outcome = work(&storage, &root);
    let took = canceller.join().unwrap().elapsed();
    assert!(
        matches!(outcome, Err(Error::Cancelled)),
        "{:?}",
        outcome.err()
    );
    assert!(
        took < Duration::from_secs(600),
        "as long as an answer is waited for: {took:?}"
    );
    let requests = server.requests();
    barrier.open();
    assert!(storage.read(&[some(&root.join("x"), 5..9)]).unwrap()[0] == object()[5..9]);
    requests
}

/// A store that answers nothing before the barrier is opened but beginning uploads and taking
/// things back.
fn slow_store(barrier: Arc<Barrier>) -> Server {
    Server::start(move |_, asked| {
        let body = if asked.target.contains("uploads") {
            b"<InitiateMultipartUploadResult><UploadId>id-1</UploadId></InitiateMultipartUploadResult>"
                .to_vec()
        } else if asked.target.contains("list-type") {
            b"<ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated></ListBucketResult>"
                .to_vec()
        } else {
            object()
        };
        let mut reply = Reply::range(asked, &body);
        reply.headers.push(("etag", "\"x\"".into()));
        // Uploads begin at once: their parts do not.
        let at_once = ["uploads", "?delete"]
            .iter()
            .any(|part| asked.target.contains(part));
        if at_once || asked.method == "DELETE" {
            reply
        } else {
            reply.behind(&barrier)
        }
    })
}

#[test]
fn who_waits_is_cancelled_and_can_go_on_later() {
    cancelled(|s, root| s.read(&[some(&root.join("x"), 0..10), all(&root.join("y"))]));
    cancelled(|s, root| s.read_tails(&[root.join("x"), root.join("y")], 10));
    cancelled(|s, root| {
        s.read_into(&mut [ReadInto {
            path: root.join("x"),
            offset: 0,
            out: &mut [0; 9],
        }])
    });
    cancelled(|s, root| s.start_read(vec![some(&root.join("x"), 0..10)]).wait());
    cancelled(|s, root| s.list(root));
    cancelled(|s, root| s.list_all(&[root.clone(), root.join("x")]));
    cancelled(|s, root| s.size(&root.join("x")));
    // An upload in parts, and one at once: both are taken back.
    let asked = cancelled(|s, root| {
        let mut upload = s.upload(&root.join("x"))?;
        upload.write(&vec![1; 40 << 20])?;
        upload.finish()
    });
    let is_abort =
        |asked: &Asked| asked.method == "DELETE" && asked.target.contains("uploadId=id-1");
    assert!(asked.iter().any(is_abort));
    let asked = cancelled(|s, root| {
        let mut upload = s.upload(&root.join("y"))?;
        upload.write(b"little")?;
        upload.finish()
    });
    assert!(asked.iter().any(|asked| asked.target.contains("?delete")));
}

//! A plain web server: files below a folder, with ranges, without listings.

use super::http1::{Message, unescape};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A server under way, stopped when it is dropped.
#[derive(Debug)]
pub struct FileServer {
    /// Where it listens.
    pub address: SocketAddr,
    stopped: Arc<AtomicBool>,
    refused: Arc<AtomicU64>,
}

impl FileServer {
    /// Serves the files below a folder.
    pub fn start(root: &Path) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        let (stopped, refused) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (stop, count, root) = (
            Arc::clone(&stopped),
            Arc::clone(&refused),
            root.to_path_buf(),
        );
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let (root, count) = (root.clone(), Arc::clone(&count));
                std::thread::spawn(move || drop(serve(&root, &stream, &count)));
            }
        });
        Ok(Self {
            address,
            stopped,
            refused,
        })
    }

    /// Requests that no plain web server answers: those for folders and those that would change
    /// something.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(root: &Path, client: &TcpStream, refused: &AtomicU64) -> io::Result<()> {
    client.set_nodelay(true)?;
    client.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut reader = BufReader::new(client.try_clone()?);
    let mut writer = client.try_clone()?;
    while let Some(mut request) = Message::read_head(&mut reader)? {
        request.read_request_body(&mut reader)?;
        let answer = answer(root, &request, refused);
        writer.write_all(&answer.head_bytes())?;
        if request.method() != "HEAD" {
            writer.write_all(&answer.body)?;
        }
    }
    Ok(())
}

fn answer(root: &Path, request: &Message, refused: &AtomicU64) -> Message {
    let refuse = |status: &str| {
        refused.fetch_add(1, Ordering::Relaxed);
        Message::answer(status, &[], b"no".to_vec())
    };
    if !matches!(request.method(), "GET" | "HEAD") {
        return refuse("405 Method Not Allowed");
    }
    let path = unescape(request.target().split('?').next().unwrap_or_default());
    if path.split('/').any(|part| part == "..") {
        return refuse("403 Forbidden");
    }
    let file: PathBuf = root.join(path.trim_start_matches('/'));
    if file.is_dir() {
        return refuse("403 Forbidden");
    }
    let Ok(size) = std::fs::metadata(&file).map(|metadata| metadata.len()) else {
        return Message::answer("404 Not Found", &[], b"no such file".to_vec());
    };
    let (start, end) = match request
        .header("range")
        .map(|range| parse_range(range, size))
    {
        None => (0, size),
        Some(Some(range)) => range,
        Some(None) => {
            let all = format!("bytes */{size}");
            return Message::answer(
                "416 Range Not Satisfiable",
                &[("Content-Range", &all)],
                Vec::new(),
            );
        }
    };
    let mut body = Vec::new();
    let read = std::fs::File::open(&file).and_then(|mut file| {
        file.seek(SeekFrom::Start(start))?;
        file.take(end - start).read_to_end(&mut body)
    });
    if read.is_err() {
        return Message::answer("500 Internal Server Error", &[], Vec::new());
    }
    let range = format!("bytes {start}-{}/{size}", end.saturating_sub(1));
    let headers = [
        ("Accept-Ranges", "bytes"),
        ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"),
    ];
    match request.header("range") {
        None => Message::answer("200 OK", &headers, body),
        Some(_) => Message::answer(
            "206 Partial Content",
            &[headers[0], headers[1], ("Content-Range", &range)],
            body,
        ),
    }
}

/// First byte and the one behind the last; `None` if no byte of the range is there.
fn parse_range(text: &str, size: u64) -> Option<(u64, u64)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        let len: u64 = last.parse().ok()?;
        return (len > 0 && size > 0).then(|| (size.saturating_sub(len), size));
    }
    let start: u64 = first.parse().ok()?;
    let end = if last.is_empty() {
        size
    } else {
        last.parse::<u64>().ok()?.saturating_add(1).min(size)
    };
    (start < end).then_some((start, end))
}

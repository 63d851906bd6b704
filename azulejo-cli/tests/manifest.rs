//! `azulejo manifest`, and arrays that are read by their manifests from a web server, which has no
//! listings.

use assert_cmd::Command;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn azulejo(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("azulejo").expect("the program");
    command.args(args);
    command
}

fn stdout(args: &[&str]) -> String {
    let output = azulejo(args).output().expect("it runs");
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[args, &["--json"]].concat())).expect("JSON")
}

fn import(dir: &Path, uri: &str, rows: &str, more: &[&str]) {
    let file = dir.join("rows.csv");
    std::fs::write(&file, format!("x,s\n{rows}")).expect("a file");
    let file = file.to_str().expect("a path");
    azulejo(&[&["import", file, uri], more].concat())
        .assert()
        .success();
}

/// An array of two fragments in a folder.
fn array(dir: &Path) -> String {
    let uri = dir.join("cells").to_str().expect("a path").to_owned();
    import(dir, &uri, "1,a\n2,b\n", &["--dims", "x", "--sparse"]);
    import(dir, &uri, "5,c\n", &["--append"]);
    uri
}

/// Serves files, whole or in ranges; a folder is not found.
struct Web {
    address: String,
    folders: Arc<AtomicUsize>,
}

impl Web {
    fn start(root: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let folders = Arc::new(AtomicUsize::new(0));
        let (root, count) = (root.to_path_buf(), Arc::clone(&folders));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (root, count) = (root.clone(), Arc::clone(&count));
                // A client that goes away is no concern of the server.
                std::thread::spawn(move || drop(serve(&root, stream, &count)));
            }
        });
        Self { address, folders }
    }
}

fn serve(root: &Path, mut stream: TcpStream, folders: &AtomicUsize) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut words = first.split(' ');
    let (method, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let mut range = None;
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        range = range.or_else(|| line.strip_prefix("range: bytes=").map(str::to_owned));
    }
    let path: PathBuf = root.join(target.trim_start_matches('/'));
    folders.fetch_add(usize::from(path.is_dir()), Ordering::Relaxed);
    let Ok(body) = std::fs::read(&path) else {
        return stream.write_all(
            b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        );
    };
    let modified = "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nConnection: close";
    let (status, body) = match range.as_deref().and_then(|range| range.split_once('-')) {
        Some((start, end)) => {
            let size = body.len();
            let (start, end) = match (start.parse::<usize>(), end.parse::<usize>()) {
                (Ok(start), Ok(end)) => (start, size.min(end + 1)),
                (Ok(start), Err(_)) => (start, size),
                (Err(_), Ok(last)) => (size.saturating_sub(last), size),
                (Err(_), Err(_)) => (0, size),
            };
            let part = body.get(start..end).unwrap_or_default().to_vec();
            (
                format!(
                    "206 Partial Content\r\nContent-Range: bytes {start}-{}/{size}",
                    end.max(1) - 1
                ),
                part,
            )
        }
        None => ("200 OK".to_owned(), body),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{modified}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )?;
    if method == "HEAD" {
        Ok(())
    } else {
        stream.write_all(&body)
    }
}

#[test]
fn a_manifest_is_written_checked_and_renewed() {
    let dir = tempfile::tempdir().expect("a folder");
    let uri = array(dir.path());
    azulejo(&["manifest", &uri, "--check"]).assert().failure();
    let written = json(&["manifest", &uri]);
    assert_eq!(written["written"].as_array().map(Vec::len), Some(1));
    assert!(
        written["written"][0]["files"].as_u64() > Some(8),
        "{written}"
    );
    assert!(Path::new(&uri).join("__azulejo/manifest").is_file());
    assert_eq!(
        json(&["manifest", &uri, "--check"])["changes"],
        Value::Array(vec![])
    );

    import(dir.path(), &uri, "9,d\n", &["--append"]);
    let output = azulejo(&["manifest", &uri, "--check"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1), "stale");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        shown.lines().count() >= 2 && shown.lines().all(|line| line.starts_with("added")),
        "{shown}"
    );
    // Where folders can be listed it hides nothing.
    assert_eq!(stdout(&["cat", &uri, "--format", "csv"]).lines().count(), 5);
    assert!(stdout(&["manifest", &uri]).contains("files as of "));
    azulejo(&["manifest", &uri, "--check"]).assert().success();

    let group = dir
        .path()
        .join("group")
        .to_str()
        .expect("a path")
        .to_owned();
    azulejo(&["group", "create", &group]).assert().success();
    azulejo(&["group", "add", &group, &uri]).assert().success();
    assert_eq!(
        json(&["manifest", &group])["written"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    azulejo(&[
        "manifest",
        dir.path().join("nothing").to_str().expect("a path"),
    ])
    .assert()
    .failure();
}

#[test]
fn a_web_server_without_listings_serves_arrays_that_have_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let uri = array(dir.path());
    let web = Web::start(dir.path());
    let http = format!("http://{}/cells", web.address);
    let output = azulejo(&["cat", &http]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("azulejo manifest"),
        "{said}"
    );

    stdout(&["manifest", &uri]);
    let local = stdout(&["cat", &uri, "--format", "csv"]);
    // A server that has not been asked before: what the one before was asked may be counted late.
    let web = Web::start(dir.path());
    let http = format!("http://{}/cells", web.address);
    assert_eq!(stdout(&["cat", &http, "--format", "csv"]), local);
    assert_eq!(
        web.folders.load(Ordering::Relaxed),
        0,
        "no folder is asked for"
    );
    assert!(
        stdout(&["info", &http]).contains("as of "),
        "it says which moment it shows"
    );
    let copy = dir.path().join("copy").to_str().expect("a path").to_owned();
    azulejo(&["copy", &http, &copy]).assert().success();
    assert_eq!(stdout(&["cat", &copy, "--format", "csv"]), local);

    // What comes later is not in it; what is gone makes it stale.
    import(dir.path(), &uri, "9,d\n", &["--append"]);
    assert_eq!(stdout(&["cat", &http, "--format", "csv"]), local);
    azulejo(&["consolidate", &uri, "--vacuum"])
        .assert()
        .success();
    let output = azulejo(&["cat", &http]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("stale"), "{said}");
    stdout(&["manifest", &uri]);
    assert_eq!(
        stdout(&["cat", &http, "--format", "csv"]).lines().count(),
        5
    );
}

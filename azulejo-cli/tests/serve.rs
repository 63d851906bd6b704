//! `azulejo serve` and `azulejo view`: what is answered, and above all what is not.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use serde_json::{Value as Json, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use support::{Bench, words};

/// A program that serves, ended with the test.
struct Serving {
    child: Child,
    /// What it printed.
    said: Json,
    host: String,
    token: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer: status, headers, body.
struct Found {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Serving {
    fn start(bench: &Bench, line: &str) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("azulejo"))
            .args(words(line))
            .arg("--json")
            .current_dir(bench.path())
            .stdout(Stdio::piped())
            .stderr(File::create(bench.path().join("stderr")).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        while serde_json::from_str::<Json>(&text).is_err() {
            assert!(lines.read_line(&mut text).unwrap() > 0, "{line}: {text}");
        }
        let said: Json = serde_json::from_str(&text).unwrap();
        let url = said["url"]
            .as_str()
            .unwrap()
            .strip_prefix("http://")
            .unwrap();
        let mut parts = url.split('/');
        let [host, token] = [parts.next().unwrap(), parts.next().unwrap()].map(str::to_owned);
        Self {
            child,
            said,
            host,
            token,
        }
    }

    fn raw(&self, method: &str, path: &str, headers: &str) -> Found {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let at = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..at].to_vec()).unwrap();
        Found {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_lowercase(),
            body: answer[at + 4..].to_vec(),
        }
    }

    fn get_with(&self, path: &str, headers: &str) -> Found {
        let headers = format!("Host: {}\r\n{headers}", self.host);
        self.raw("GET", &format!("/{}/{path}", self.token), &headers)
    }

    fn get(&self, path: &str) -> Found {
        self.get_with(path, "")
    }

    fn json(&self, path: &str) -> Json {
        let found = self.get(path);
        assert_eq!(found.status, 200, "{path}");
        serde_json::from_slice(&found.body).unwrap()
    }
}

/// A dense array of five rows and seven columns in tiles of 2 by 4: v = 10 y + x.
fn grid() -> Bench {
    let bench = Bench::new();
    let schema = json!({
        "version": 22, "array_type": "dense", "allows_dups": false,
        "tile_order": "row-major", "cell_order": "row-major", "capacity": 100,
        "coords_filters": {"chunk_size": 65536, "filters": []},
        "offsets_filters": {"chunk_size": 65536, "filters": []},
        "validity_filters": {"chunk_size": 65536, "filters": []},
        "dimensions": [
            {"name": "y", "datatype": "INT32", "cell_val_num": 1, "domain": [-1, 3], "tile_extent": 2,
             "filters": {"chunk_size": 65536, "filters": []}},
            {"name": "x", "datatype": "INT32", "cell_val_num": 1, "domain": [0, 6], "tile_extent": 4,
             "filters": {"chunk_size": 65536, "filters": []}}
        ],
        "attributes": [
            {"name": "v", "datatype": "INT16", "cell_val_num": 1, "nullable": false, "fill_value": -9,
             "fill_validity": false, "order": "unordered", "enumeration": null,
             "filters": {"chunk_size": 65536, "filters": [{"filter": "gzip", "level": 5}]}},
            {"name": "s", "datatype": "STRING_UTF8", "cell_val_num": "var", "nullable": false, "fill_value": "-",
             "fill_validity": false, "order": "unordered", "enumeration": null,
             "filters": {"chunk_size": 65536, "filters": []}}
        ]
    });
    bench.write("schema.json", schema.to_string());
    bench.line("create grid --schema schema.json");
    let mut rows = String::from("y,x,v,s\n");
    for y in -1..=3 {
        for x in 0..=6 {
            rows.push_str(&format!("{y},{x},{},a\n", 10 * y + x));
        }
    }
    bench.write("rows.csv", rows);
    bench.line("import rows.csv grid --append");
    bench.line("meta set grid unit m");
    bench
}

#[test]
fn a_dense_array_is_a_zarr_group() {
    let bench = grid();
    let serving = Serving::start(&bench, "serve --zarr grid");
    assert_eq!(serving.said["arrays"], json!(["v"]));
    let group = serving.json("zarr/zarr.json");
    assert_eq!(group["attributes"], json!({"unit": "m"}));
    let array = serving.json("zarr/v/zarr.json");
    assert_eq!(array["shape"], json!([5, 7]));
    assert_eq!(array["data_type"], "int16");
    assert_eq!(array["fill_value"], -9);
    assert_eq!(
        array["chunk_grid"]["configuration"]["chunk_shape"],
        json!([2, 4])
    );
    assert_eq!(array["attributes"]["tiledb_origin"], json!([-1, 0]));
    let chunk = |key: &str| {
        let found = serving.get(&format!("zarr/v/c/{key}"));
        assert_eq!(found.status, 200, "{key}");
        let cells = found.body.chunks_exact(2);
        cells
            .map(|b| i16::from_le_bytes([b[0], b[1]]))
            .collect::<Vec<_>>()
    };
    assert_eq!(chunk("0/0"), [-10, -9, -8, -7, 0, 1, 2, 3]);
    assert_eq!(chunk("2/1"), [34, 35, 36, -9, -9, -9, -9, -9]);
    for missing in [
        "v/c/3/0",
        "v/c/0",
        "v/c/0/0/0",
        "v/c/-1/0",
        "v/c/a/0",
        "s/zarr.json",
        "w/zarr.json",
        "v",
    ] {
        assert_eq!(
            serving.get(&format!("zarr/{missing}")).status,
            404,
            "{missing}"
        );
    }
    assert!(
        serving
            .get("zarr/zarr.json")
            .head
            .contains("access-control-allow-origin: *")
    );
    // Nothing else is served.
    assert_eq!(serving.get("data/grid/__schema?list").status, 404);
}

/// A value that stands for null is read as null: it is said, once.
#[test]
fn cells_that_are_taken_for_nulls_are_told() {
    let bench = Bench::new();
    bench.write("rows.csv", "v,w\n-9223372036854775808,1\n,\n3,3\n");
    bench.line("import rows.csv cells");
    let serving = Serving::start(&bench, "serve --zarr cells");
    for name in ["v", "w", "v"] {
        assert_eq!(serving.get(&format!("zarr/{name}/c/0")).status, 200);
    }
    let said = std::fs::read_to_string(bench.path().join("stderr")).unwrap();
    assert_eq!(said.matches("read as null").count(), 1, "{said}");
    assert!(said.contains("\"v\""), "{said}");
}

#[test]
fn sparse_arrays_are_no_zarr() {
    let bench = Bench::new();
    bench.write("rows.csv", "x,a\n1,2\n");
    bench.line("import rows.csv cells --dims x --sparse");
    bench.fails("serve --zarr cells", 2, "only dense arrays");
    bench.fails("serve cells", 2, "--zarr");
    bench.fails("view nothing --site .", 3, "nothing");
}

#[test]
fn the_viewer_opens_at_a_named_snapshot() {
    let bench = grid();
    bench.line("snapshot create grid first --at 2024-01-01");
    bench.write("index.html", "<!doctype html>");
    let serving = Serving::start(&bench, "view grid@first --no-browser --site .");
    let page = serving.said["url"].as_str().unwrap();
    assert!(page.ends_with("%2Fdata%2Fgrid&at=1704153599999"), "{page}");
    bench.fails("view grid@other --no-browser --site .", 3, "other");
}

/// What `cargo xtask web` has made lies in the program.
#[test]
#[cfg(feature = "view")]
fn the_viewer_is_in_the_program() {
    let bench = grid();
    let serving = Serving::start(&bench, "view grid --no-browser");
    let page = serving.get("view/index.html");
    assert!(page.body.starts_with(b"<!doctype html>") && page.body.len() > 500);
    let module = serving.get("view/azulejo/azulejo_web_bg.wasm");
    assert_eq!(module.body.get(..4), Some(&b"\0asm"[..]));
    assert!(module.head.contains("content-type: application/wasm"));
    assert_eq!(serving.get("view/nothing.js").status, 404);
}

#[test]
fn the_viewer_reads_the_object_and_nothing_else() {
    let bench = grid();
    bench.write("secret", "not yours");
    std::fs::create_dir(bench.path().join("site")).unwrap();
    bench.write("site/index.html", "<!doctype html>");
    #[cfg(unix)]
    std::os::unix::fs::symlink(bench.path().join("secret"), bench.path().join("grid/link"))
        .unwrap();
    let serving = Serving::start(&bench, "view grid --no-browser --site site");
    assert_eq!(serving.get("view/index.html").body, b"<!doctype html>");

    // Listings and ranges of the array's own files.
    let root = serving.json("data/grid?list");
    let names: Vec<&str> = root
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|e| e["name"].as_str())
        .collect();
    assert!(
        names.contains(&"__schema") && names.contains(&"__fragments"),
        "{names:?}"
    );
    let schemas = serving.json("data/grid/__schema?list");
    let name = schemas[0]["name"].as_str().unwrap();
    let file = format!("data/grid/__schema/{name}");
    let whole = serving.get(&file);
    let size = whole.body.len();
    let part = serving.get_with(&file, "Range: bytes=4-9\r\n");
    assert_eq!((part.status, &part.body[..]), (206, &whole.body[4..10]));
    assert!(
        part.head
            .contains(&format!("content-range: bytes 4-9/{size}")),
        "{}",
        part.head
    );
    let last = serving.get_with(&file, "Range: bytes=-5\r\n");
    assert_eq!(
        (last.status, &last.body[..]),
        (206, &whole.body[size - 5..])
    );
    let beyond = format!("Range: bytes={size}-\r\n");
    assert_eq!(serving.get_with(&file, &beyond).status, 416);

    // Other folders, links, tokens, hosts, methods.
    for path in [
        "data/secret",
        "data/grid/../secret",
        "data/grid/%2e%2e/secret",
        "data/grid/..%2fsecret",
        "data//secret",
        "view/../secret",
        "view/%2e%2e/secret",
        "secret",
        "",
    ] {
        let found = serving.get(path);
        assert_eq!(found.status, 404, "{path}");
        assert!(!found.body.windows(9).any(|w| w == b"not yours"), "{path}");
    }
    if cfg!(unix) {
        assert_eq!(serving.get("data/grid/link").status, 403);
    }
    let (host, token) = (&serving.host, &serving.token);
    let ours = format!("Host: {host}\r\n");
    assert_eq!(serving.raw("GET", "/data/grid?list", &ours).status, 404);
    assert_eq!(
        serving.raw("GET", "/0123/data/grid?list", &ours).status,
        404
    );
    let path = format!("/{token}/data/grid?list");
    assert_eq!(
        serving.raw("GET", &path, "Host: evil.example\r\n").status,
        403
    );
    assert_eq!(serving.raw("GET", &path, &ours).status, 200);
    for method in ["PUT", "POST", "DELETE"] {
        let headers = format!("{ours}Content-Length: 0\r\n");
        assert_eq!(serving.raw(method, &path, &headers).status, 405, "{method}");
    }
}

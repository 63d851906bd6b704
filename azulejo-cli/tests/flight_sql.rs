//! `azulejo serve --flight-sql`: what the program does itself. What clients see is tested in
//! `azulejo-sql`.
#![cfg(feature = "flight-sql")]

mod support;

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use support::{Bench, words};

#[test]
fn it_serves_behind_a_token_and_refuses_what_is_not_safe() {
    let bench = Bench::new();
    bench.write("cells.csv", "x,v\n1,10\n2,20\n");
    bench.line("import cells.csv data/cells --dims x --quiet");
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("azulejo"))
        .args(words("serve --flight-sql data t=data/cells --json"))
        .current_dir(bench.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("output"));
    let (mut text, mut said) = (String::new(), None);
    while said.is_none() && lines.read_line(&mut text).is_ok_and(|read| read > 0) {
        said = serde_json::from_str::<serde_json::Value>(&text).ok();
    }
    let said = said.expect("what it says");
    let address = said["url"]
        .as_str()
        .and_then(|url| url.strip_prefix("grpc://"));
    assert!(TcpStream::connect(address.expect("an address")).is_ok());
    assert_eq!(said["token"].as_str().map(str::len), Some(32));
    child.kill().expect("it ends");
    child.wait().expect("it ends");

    bench.write("token", "two words\n");
    for (line, reason) in [
        (
            "serve --flight-sql data/cells --listen 0.0.0.0:0",
            "--tls-cert",
        ),
        (
            "serve --flight-sql data/cells --token-file token",
            "one line",
        ),
        ("serve --flight-sql data/cells --token-file none", "none"),
        (
            "serve --flight-sql data/cells --tls-cert token",
            "--tls-key",
        ),
        (
            "serve --flight-sql data/cells --tls-cert token --tls-key token",
            "certificate",
        ),
        (
            "serve --flight-sql data/cells --zarr",
            "cannot be used with",
        ),
        (
            "serve --flight-sql data/cells --port 1",
            "cannot be used with",
        ),
        ("serve --flight-sql t=data/cells t=data/cells", "twice"),
        ("serve --flight-sql", "URI"),
        ("serve --zarr data/cells --writable", "cannot be used with"),
    ] {
        let said = bench.run(&words(line));
        assert_ne!(said.code, Some(0), "{line}: {}", said.out);
        assert!(said.err.contains(reason), "{line}: {}", said.err);
    }
}

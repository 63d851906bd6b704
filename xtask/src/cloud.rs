//! `cargo xtask cloud`: arrays on real servers, which this program installs, starts and stops.
//!
//! `cargo test` needs no server; this does. The S3 server comes from crates.io, a second one and an
//! emulator from PyPI, Azurite from npm; the file server and the proxy that counts and misbehaves
//! are ours.

mod bench;
mod cells;
mod conformance;
mod corpus;
mod faults;
mod guard;
mod http1;
mod interop;
mod link;
mod matrix;
mod peer;
mod proxy;
mod requests;
mod servers;
mod sql;
mod static_files;
mod streams;
mod writers;

use crate::Outcome;
use crate::folders::Folder;
use azulejo::{Config, Context};
use proxy::Proxy;
use servers::Server;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The bucket of all tests.
const BUCKET: &str = "bucket-1";
/// A check that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// What passed and what failed.
#[derive(Debug, Default)]
pub struct Tally {
    passed: usize,
    failed: usize,
}

impl Tally {
    /// Counts a check; its failure, or panic, is printed.
    pub fn check(&mut self, name: &str, check: impl FnOnce() -> Outcome) {
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(check))
            .unwrap_or_else(|_| Err("panicked, see above".into()));
        servers::gets_on();
        match outcome {
            Ok(()) => self.passed += 1,
            Err(text) => {
                self.failed += 1;
                println!(
                    "  FAILED {name}: {}",
                    text.chars().take(800).collect::<String>()
                );
            }
        }
    }
}

/// The S3 server with a proxy before it.
pub struct Stage {
    /// Where the server keeps its files: a folder is a bucket.
    pub root: PathBuf,
    /// The proxy that counts and misbehaves.
    pub proxy: Proxy,
    /// Another one, which never misbehaves.
    pub sound: Proxy,
    /// The server itself, for those who want a proxy of their own.
    pub server: Server,
    _folder: Folder,
}

impl Stage {
    fn new() -> Result<Self, String> {
        let folder = servers::folder().join(format!("run-{}", std::process::id()));
        let root = folder.join("s3");
        guard::folder(&folder);
        std::fs::create_dir_all(root.join(BUCKET))
            .map_err(|e| format!("{}: {e}", root.display()))?;
        let server = servers::s3(&root)?;
        let (proxy, sound) = (
            Proxy::start(server.address, &root)?,
            Proxy::start(server.address, &root)?,
        );
        Ok(Self {
            root,
            proxy,
            sound,
            server,
            _folder: Folder(folder),
        })
    }

    /// Where logs and other files of this run lie.
    pub fn logs(&self) -> &Path {
        self.root.parent().unwrap_or(&self.root)
    }

    /// A context that goes through the proxy.
    pub fn context(&self) -> Result<Context, String> {
        s3_context(self.proxy.address, &[])
    }
}

/// The URI of something in the bucket.
pub fn s3_uri(name: &str) -> String {
    format!("s3://{BUCKET}/{name}")
}

/// A context whose `s3://` is a server on this machine.
pub fn s3_context(address: SocketAddr, more: &[(&str, &str)]) -> Result<Context, String> {
    let address = address.to_string();
    let settings = [
        ("vfs.s3.endpoint_override", address.as_str()),
        ("vfs.s3.scheme", "http"),
        ("vfs.s3.use_virtual_addressing", "false"),
        ("vfs.s3.region", "us-east-1"),
        ("vfs.s3.aws_access_key_id", servers::ACCESS_KEY),
        ("vfs.s3.aws_secret_access_key", servers::SECRET_KEY),
    ];
    context_with(settings.iter().chain(&PATIENT_S3).chain(more))
}

/// A busy machine is no outage: nothing here is about a server that says nothing.
const PATIENT_S3: [(&str, &str); 2] = [
    ("vfs.s3.request_timeout_ms", "600000"),
    ("vfs.s3.connect_timeout_ms", "600000"),
];

/// A context with settings.
pub fn context_with<'a>(
    settings: impl IntoIterator<Item = &'a (&'a str, &'a str)>,
) -> Result<Context, String> {
    let mut config = Config::default();
    for (name, value) in settings {
        config.set(name, value).map_err(|e| e.to_string())?;
    }
    Context::new(config, None).map_err(|e| e.to_string())
}

/// Runs the tests, `bench`, `link`, `sql`, `matrix`, or a worker of the tests.
pub fn run(options: &[&str]) -> Outcome {
    if let ["worker", rest @ ..] = options {
        return writers::work(rest);
    }
    servers::watch(LIMIT);
    let mut stage = Stage::new()?;
    if let ["bench", rest @ ..] = options {
        return bench::run(&stage, rest);
    }
    if let ["link", rest @ ..] = options {
        return link::run(&stage, rest);
    }
    if let ["sql", rest @ ..] = options {
        return sql::run(&stage, rest);
    }
    if let ["matrix", rest @ ..] = options {
        return matrix::run(&stage, rest);
    }
    let only = options.first().copied().unwrap_or("");
    let mut tally = Tally::default();
    type Part = (&'static str, fn(&mut Stage, &mut Tally) -> Outcome);
    let parts: [Part; 7] = [
        ("conformance", conformance::run),
        ("corpus", corpus::run),
        ("interop", interop::run),
        ("requests", requests::run),
        ("streams", streams::run),
        ("faults", faults::run),
        ("writers", writers::run),
    ];
    if !only.is_empty() && !parts.iter().any(|(name, _)| *name == only) {
        let names: Vec<_> = parts.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "no part {only:?}; there are {}, bench, link, sql and matrix",
            names.join(", ")
        ));
    }
    for (name, part) in parts
        .into_iter()
        .filter(|(name, _)| only.is_empty() || *name == only)
    {
        let begun = Instant::now();
        let (passed, failed) = (tally.passed, tally.failed);
        println!("cloud {name}");
        stage.proxy.plan(proxy::Plan::default());
        // What stops a whole part is a failure, too.
        if let Err(text) = part(&mut stage, &mut tally) {
            tally.check(name, || Err(text));
        }
        println!(
            "cloud {name}: {} passed, {} failed, {:.0} s",
            tally.passed - passed,
            tally.failed - failed,
            begun.elapsed().as_secs_f64()
        );
    }
    println!("cloud: {} passed, {} failed", tally.passed, tally.failed);
    if tally.failed == 0 {
        Ok(())
    } else {
        Err("arrays on servers do not do as they should".into())
    }
}

//! Real servers: installed where they are missing, started on free ports, stopped whatever happens.

use super::guard;
use crate::cargo::cargo;
use crate::reference;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A server that does not listen after so many looks, with a pause after each, will not.
const START_LIMIT: usize = 2_400;
const START_PAUSE: Duration = Duration::from_millis(50);

/// What servers let in.
pub const ACCESS_KEY: &str = "AZULEJOTESTKEY";
/// And its secret.
pub const SECRET_KEY: &str = "azulejo-test-secret";
/// Azurite's well-known account.
pub const AZURE_ACCOUNT: &str = "devstoreaccount1";
/// The key that its documentation gives.
pub const AZURE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The S3 server from crates.io. Newer ones need a newer Rust.
const S3_SERVER: (&str, &str) = ("s3s-fs", "0.14.1");
/// The server from PyPI.
const PYTHON_PACKAGES: [&str; 1] = ["moto[s3,server]==5.2.5"];
/// The server from npm.
const AZURITE: (&str, &str) = ("azurite", "3.37.0");

/// Process ids of servers under way: who ends this process early ends them first.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// A server's process, ended when this is dropped.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    child: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        guard::stopped(self.child.id());
        let _ = self.child.wait();
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|id| *id != self.child.id());
    }
}

/// Seconds since something was done, and whether something is being installed, which takes what it
/// takes.
static IDLE: AtomicU64 = AtomicU64::new(0);
static INSTALLING: AtomicBool = AtomicBool::new(false);

/// Something was done: who is watched begins anew.
pub fn gets_on() {
    IDLE.store(0, Ordering::Relaxed);
}

/// Ends the process, and servers first, if nothing is done for as long as `limit`. Counted in
/// seconds that this process was not stopped.
pub fn watch(limit: Duration) {
    std::thread::spawn(move || {
        while IDLE.fetch_add(1, Ordering::Relaxed) < limit.as_secs()
            || INSTALLING.load(Ordering::Relaxed)
        {
            std::thread::sleep(Duration::from_secs(1));
        }
        eprintln!("cloud: nothing was done for {} s: stopped", limit.as_secs());
        for id in RUNNING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            let _ = Command::new("kill").arg("-9").arg(id.to_string()).status();
        }
        std::process::exit(1);
    });
}

/// Where servers are installed and keep their data.
pub fn folder() -> PathBuf {
    crate::root().join("target").join("cloud")
}

/// A port that nobody uses, and that nobody is given who asks for any: those are of higher numbers.
fn free_port() -> Result<SocketAddr, String> {
    /// How many were tried: other processes begin elsewhere.
    static TRIED: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 10_240;
    const NUMBER: u32 = 20_000;
    let begin = std::process::id().wrapping_mul(97);
    for _ in 0..NUMBER {
        let port = FIRST + begin.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed)) % NUMBER;
        // Below 65,536.
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port as u16)) {
            return listener.local_addr().map_err(|e| e.to_string());
        }
    }
    Err("no port is free".into())
}

/// Starts a server and waits until it listens, on another port if someone else has taken the first
/// meanwhile. Its output goes to `log`.
fn start(command: impl Fn(SocketAddr) -> Command, log: &Path) -> Result<Server, String> {
    let mut attempt = 1;
    loop {
        let address = free_port()?;
        match start_at(command(address), address, log) {
            Err(text) if attempt < 3 => println!("{text}: again"),
            outcome => return outcome,
        }
        attempt += 1;
    }
}

fn start_at(mut command: Command, address: SocketAddr, log: &Path) -> Result<Server, String> {
    let file = || std::fs::File::create(log).map_err(|e| format!("{}: {e}", log.display()));
    let child = command
        .stdin(Stdio::null())
        .stdout(file()?)
        .stderr(file()?)
        .spawn()
        .map_err(|e| format!("cannot start {command:?}: {e}"))?;
    RUNNING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(child.id());
    guard::started(child.id());
    let mut server = Server { address, child };
    for _ in 0..START_LIMIT {
        let listens = TcpStream::connect(address).is_ok();
        let ended = server
            .child
            .try_wait()
            .map_err(|e| e.to_string())?
            .is_some();
        if listens && !ended {
            return Ok(server);
        }
        if ended {
            break;
        }
        std::thread::sleep(START_PAUSE);
    }
    let said = std::fs::read_to_string(log).unwrap_or_default();
    Err(format!("{command:?} does not listen: {said}"))
}

/// Installs something once: `stamp` says what is there.
fn once(
    dir: &Path,
    stamp: &str,
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let file = dir.join("installed.txt");
    if std::fs::read_to_string(&file).is_ok_and(|text| text == stamp) {
        return Ok(());
    }
    println!("installing {stamp} in {}", dir.display());
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    INSTALLING.store(true, Ordering::Relaxed);
    let installed = install();
    gets_on();
    INSTALLING.store(false, Ordering::Relaxed);
    installed?;
    std::fs::write(&file, stamp).map_err(|e| format!("{}: {e}", file.display()))
}

/// An S3 server that keeps objects as files: below `root`, a folder is a bucket.
pub fn s3(root: &Path) -> Result<Server, String> {
    let (name, version) = S3_SERVER;
    let dir = folder().join("s3");
    once(&dir, &format!("{name} {version}"), || {
        reference::run(
            cargo()
                .args([
                    "install",
                    "--quiet",
                    "--locked",
                    "--debug",
                    "--features",
                    "binary",
                    "--root",
                ])
                .arg(&dir)
                .args([name, "--version", version])
                .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
                .env("CARGO_PROFILE_DEV_DEBUG", "0")
                .env("CARGO_TARGET_DIR", dir.join("target")),
        )?;
        // Half a gigabyte that nobody needs again.
        let _ = std::fs::remove_dir_all(dir.join("target"));
        Ok(())
    })?;
    std::fs::create_dir_all(root).map_err(|e| format!("{}: {e}", root.display()))?;
    let command = |address: SocketAddr| {
        let mut command = Command::new(dir.join("bin").join(name));
        command
            .args(["--host", "127.0.0.1", "--port", &address.port().to_string()])
            .args(["--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY])
            .arg(root)
            .env("RUST_LOG", "error");
        command
    };
    start(command, &root.with_extension("log"))
}

/// The environment of the server from PyPI.
fn python() -> Result<PathBuf, String> {
    let dir = folder().join("python");
    once(&dir, &PYTHON_PACKAGES.join(" "), || {
        reference::run(
            Command::new(reference::system_python())
                .args(["-m", "venv", "--clear"])
                .arg(&dir),
        )?;
        reference::run(
            Command::new(dir.join("bin/python"))
                .args([
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                ])
                .args(PYTHON_PACKAGES),
        )
    })?;
    Ok(dir.join("bin"))
}

/// Another S3 server, in memory: moto. It is slow, and closer to Amazon's in what it answers.
pub fn moto(logs: &Path) -> Result<Server, String> {
    let python = python()?.join("python");
    let script = crate::root().join("xtask/python/cloud_moto.py");
    let command = |address: SocketAddr| {
        let mut command = Command::new(&python);
        command.arg(&script).arg(address.port().to_string());
        command
    };
    start(command, &logs.join("moto.log"))
}

/// Azurite; `None` without npm.
pub fn azurite(logs: &Path) -> Result<Option<Server>, String> {
    let there = Command::new("npm")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !there.is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let (name, version) = AZURITE;
    let dir = folder().join("azurite");
    once(&dir, &format!("{name}@{version}"), || {
        reference::run(
            Command::new("npm")
                .args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"])
                .arg(&dir)
                .arg(format!("{name}@{version}")),
        )
    })?;
    let command = |address: SocketAddr| {
        let mut command = Command::new("node");
        command
            .arg(dir.join("node_modules/azurite/dist/src/blob/main.js"))
            .args([
                "--blobHost",
                "127.0.0.1",
                "--silent",
                "--skipApiVersionCheck",
                "--inMemoryPersistence",
            ])
            .args([
                "--disableTelemetry",
                "--blobPort",
                &address.port().to_string(),
            ]);
        command
    };
    start(command, &logs.join("azurite.log")).map(Some)
}

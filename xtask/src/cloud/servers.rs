//! Real servers: installed where they are missing, started on free ports, stopped whatever happens.

use super::guard;
use crate::reference;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A server that does not listen by then will not.
const START_LIMIT: Duration = Duration::from_secs(60);

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

/// Ends the process, and servers first, if it takes longer than `limit`.
pub fn watch(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        eprintln!("cloud: not done after {} s: stopped", limit.as_secs());
        for id in RUNNING.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = Command::new("kill").arg("-9").arg(id.to_string()).status();
        }
        std::process::exit(1);
    });
}

/// Where servers are installed and keep their data.
pub fn folder() -> PathBuf {
    crate::root().join("target").join("cloud")
}

fn free_port() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    listener.local_addr().map_err(|e| e.to_string())
}

/// Starts a server and waits until it listens. Its output goes to `log`.
fn start(command: &mut Command, address: SocketAddr, log: &Path) -> Result<Server, String> {
    let file = || std::fs::File::create(log).map_err(|e| format!("{}: {e}", log.display()));
    let child = command
        .stdin(Stdio::null())
        .stdout(file()?)
        .stderr(file()?)
        .spawn()
        .map_err(|e| format!("cannot start {command:?}: {e}"))?;
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(child.id());
    guard::started(child.id());
    let mut server = Server { address, child };
    let begun = Instant::now();
    loop {
        if TcpStream::connect(address).is_ok() {
            return Ok(server);
        }
        let ended = server.child.try_wait().map_err(|e| e.to_string())?;
        if ended.is_some() || begun.elapsed() > START_LIMIT {
            let said = std::fs::read_to_string(log).unwrap_or_default();
            return Err(format!("{command:?} does not listen: {said}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Installs something once: `stamp` says what is there.
fn once(dir: &Path, stamp: &str, install: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let file = dir.join("installed.txt");
    if std::fs::read_to_string(&file).is_ok_and(|text| text == stamp) {
        return Ok(());
    }
    println!("installing {stamp} in {}", dir.display());
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    install()?;
    std::fs::write(&file, stamp).map_err(|e| format!("{}: {e}", file.display()))
}

/// An S3 server that keeps objects as files: below `root`, a folder is a bucket.
pub fn s3(root: &Path) -> Result<Server, String> {
    let (name, version) = S3_SERVER;
    let dir = folder().join("s3");
    once(&dir, &format!("{name} {version}"), || {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        reference::run(
            Command::new(cargo)
                .args(["install", "--quiet", "--locked", "--debug", "--features", "binary", "--root"])
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
    let address = free_port()?;
    start(
        Command::new(dir.join("bin").join(name))
            .args(["--host", "127.0.0.1", "--port", &address.port().to_string()])
            .args(["--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY])
            .arg(root)
            .env("RUST_LOG", "error"),
        address,
        &root.with_extension("log"),
    )
}

/// The environment of the server from PyPI.
fn python() -> Result<PathBuf, String> {
    let dir = folder().join("python");
    once(&dir, &PYTHON_PACKAGES.join(" "), || {
        let system = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
        reference::run(Command::new(system).args(["-m", "venv", "--clear"]).arg(&dir))?;
        reference::run(
            Command::new(dir.join("bin/python"))
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(PYTHON_PACKAGES),
        )
    })?;
    Ok(dir.join("bin"))
}

/// Another S3 server, in memory: moto. It is slow, and closer to Amazon's in what it answers.
pub fn moto(logs: &Path) -> Result<Server, String> {
    let python = python()?.join("python");
    let script = crate::root().join("xtask/python/cloud_moto.py");
    let address = free_port()?;
    let mut command = Command::new(python);
    command.arg(script).arg(address.port().to_string());
    start(&mut command, address, &logs.join("moto.log"))
}

/// Azurite; `None` without npm.
pub fn azurite(logs: &Path) -> Result<Option<Server>, String> {
    let there = Command::new("npm").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
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
    let address = free_port()?;
    let mut command = Command::new("node");
    command
        .arg(dir.join("node_modules/azurite/dist/src/blob/main.js"))
        .args(["--blobHost", "127.0.0.1", "--silent", "--skipApiVersionCheck", "--inMemoryPersistence"])
        .args(["--disableTelemetry", "--blobPort", &address.port().to_string()]);
    start(&mut command, address, &logs.join("azurite.log")).map(Some)
}

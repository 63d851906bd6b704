//! `cargo xtask sanitize`: tests under sanitizers, which want a nightly toolchain.

use crate::cargo::{nightly, sysroot};
use crate::fuzz::host;
use crate::{Outcome, reference, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A test that the thread sanitizer cannot run: it starts no threads in a forked child.
const WITHOUT_THREADS: &str = "fork";

/// What ThreadSanitizer need not say: the end of an `Arc` is a fence, of which it knows nothing, in a
/// standard library whose `alloc` was built without it; and what tokio registers with the kernel in one
/// thread comes back from it in another.
const SUPPRESSED: &str = "race:*alloc*sync*Arc*drop_slow*\nrace:*std*thread*SpawnHooks*\n\
                          race:*tokio*scheduled_io*\n";

/// Options: `thread`, with `--sysroot FOLDER` of a standard library that was built with the sanitizer
/// (otherwise it is built, which wants `rust-src`); `address`; or `miri`.
pub fn run(options: &[&str]) -> Outcome {
    let toolchain = Nightly::find()?;
    match options {
        ["thread"] => toolchain.threads(None),
        ["thread", "--sysroot", folder] => toolchain.threads(Some(Path::new(folder))),
        ["address"] => toolchain.address(),
        ["miri"] => toolchain.miri(),
        _ => Err("sanitize thread [--sysroot FOLDER], sanitize address, or sanitize miri".into()),
    }
}

/// The names of the engine's test programs, in their order.
fn engine_tests() -> Result<Vec<String>, String> {
    let folder = root().join("azulejo/tests");
    let wrong = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        if let (true, Some(name)) = (is_source, path.file_stem().and_then(|name| name.to_str())) {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// A nightly toolchain that is installed.
struct Nightly {
    sysroot: PathBuf,
}

impl Nightly {
    fn find() -> Result<Self, String> {
        let sysroot = sysroot(Some("+nightly")).map_err(|_| {
            "no nightly toolchain is installed: rustup toolchain install nightly \
             --component rust-src --component miri"
        })?;
        Ok(Self { sysroot })
    }

    /// Cargo of that toolchain, about to build for this machine by name, so that flags are those of
    /// the program and not of what is built to build it.
    fn cargo(&self, task: &str, words: &[&str]) -> Result<Command, String> {
        let mut command = nightly();
        command
            .current_dir(root())
            .args(words)
            .args(["--locked", "--target", &host()?])
            .arg("--target-dir")
            .arg(root().join("target/sanitize").join(task));
        Ok(command)
    }

    fn threads(&self, sysroot: Option<&Path>) -> Outcome {
        let mut command = self.cargo(
            "thread",
            &[
                "test",
                "--package",
                "azulejo",
                "--features",
                "object-store,stream,testing",
                "--no-fail-fast",
                "--lib",
            ],
        )?;
        for test in engine_tests()?
            .iter()
            .filter(|test| *test != WITHOUT_THREADS)
        {
            command.args(["--test", test]);
        }
        let mut flags = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer".to_owned();
        match sysroot {
            Some(folder) => flags.push_str(&format!(" --sysroot {}", folder.display())),
            None if self.sysroot.join("lib/rustlib/src/rust/library").is_dir() => {
                command.arg("-Zbuild-std");
            }
            None => {
                return Err(
                    "the standard library must know of the sanitizer, or it sees races in every \
                     lock: rustup component add rust-src --toolchain nightly, or --sysroot FOLDER"
                        .into(),
                );
            }
        }
        let suppressed = root().join("target/sanitize/suppressed");
        std::fs::create_dir_all(root().join("target/sanitize")).map_err(|e| e.to_string())?;
        std::fs::write(&suppressed, SUPPRESSED).map_err(|e| e.to_string())?;
        command
            .env("RUSTFLAGS", flags)
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
            .env(
                "TSAN_OPTIONS",
                format!("suppressions={} halt_on_error=1", suppressed.display()),
            );
        reference::run(&mut command)
    }

    /// All that has `unsafe` in it: the format crate, the C API, and the corpora of the fuzz
    /// targets.
    fn address(&self) -> Outcome {
        for (words, manifest) in [
            (
                ["test", "--package", "azulejo-format", "--lib"],
                "Cargo.toml",
            ),
            (
                ["test", "--package", "azulejo-capi", "--tests"],
                "Cargo.toml",
            ),
            (
                ["test", "--features", "calls", "--tests"],
                "fuzz/Cargo.toml",
            ),
        ] {
            let mut command = self.cargo("address", &words)?;
            command
                .arg("--manifest-path")
                .arg(root().join(manifest))
                .env("RUSTFLAGS", "-Zsanitizer=address")
                .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
                .env("ASAN_OPTIONS", "detect_odr_violation=0:detect_leaks=0");
            reference::run(&mut command)?;
        }
        Ok(())
    }

    /// The format crate's code with `unsafe` that no library in C is a part of.
    fn miri(&self) -> Outcome {
        if !self.sysroot.join("bin/cargo-miri").is_file() {
            return Err("rustup component add miri --toolchain nightly".into());
        }
        let mut command = self.cargo(
            "miri",
            &[
                "miri",
                "test",
                "--package",
                "azulejo-format",
                "--no-default-features",
            ],
        )?;
        command.args(["--features", "pure-rust", "--lib"]);
        command.args(["--", "bit_rows", "lanes", "bitshuffle", "byteshuffle"]);
        reference::run(&mut command)
    }
}

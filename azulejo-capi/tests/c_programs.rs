//! Programs in C and C++ compiled against the header and linked to the library. Skipped where there
//! is no compiler.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the library that cargo built for this test.
fn library() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    folder
}

/// Whether the compiler runs; says so if not.
fn has(compiler: &str) -> bool {
    let found = Command::new(compiler)
        .arg("--version")
        .output()
        .is_ok_and(|out| out.status.success());
    if !found {
        eprintln!("SKIPPED: there is no {compiler} here");
    }
    found
}

/// Compiles a program, runs it with a folder of its own, and returns what it prints.
fn run(compiler: &str, options: &[&str], source: &str) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let library = library();
    // Programs look for the soname, as they do for libtiledb.
    std::os::unix::fs::symlink(
        library.join("libazulejo_capi.so"),
        folder.path().join("libtiledb.so"),
    )
    .unwrap();
    std::os::unix::fs::symlink("libtiledb.so", folder.path().join("libtiledb.so.2.30")).unwrap();
    let compiled = Command::new(compiler)
        .args(options)
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .arg(here.join("../include"))
        .arg(here.join("tests/c").join(source))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(folder.path())
        .arg("-ltiledb")
        .output()
        .unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let out = Command::new(&program)
        .arg(folder.path().join("new"))
        .env("LD_LIBRARY_PATH", folder.path())
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{:?}: {}",
        out.status,
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8(out.stdout).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_c_program_writes_and_reads() {
    if has("cc") {
        assert_eq!(
            run("cc", &["-std=c99", "-pedantic"], "smoke.c"),
            "read what was written\n"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_header_is_cxx_too() {
    if has("c++") {
        assert_eq!(
            run("c++", &["-std=c++17", "-x", "c++"], "smoke.c"),
            "read what was written\n"
        );
    }
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn exceptions_of_callbacks_are_errors() {
    if has("c++") {
        assert_eq!(run("c++", &["-std=c++17"], "throwing.cc"), "caught\n");
    }
}

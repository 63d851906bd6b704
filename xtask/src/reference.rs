//! The reference: TileDB's Python package at the pinned version, in a virtual environment of its
//! own.

use std::path::PathBuf;
use std::process::Command;

/// The packages, pinned. `tiledb` 0.36.1 bundles TileDB 2.30.0.
const PACKAGES: [&str; 3] = ["tiledb==0.36.1", "numpy==2.4.6", "packaging"];

/// The interpreter of the environment, which is made on first use.
pub fn python() -> Result<PathBuf, String> {
    let dir = crate::root().join("target").join("reference");
    let python = dir.join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    });
    let stamp = dir.join("installed.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|s| s == PACKAGES.join(" ")) {
        return Ok(python);
    }
    println!("making the reference's environment in {}", dir.display());
    let system = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    run(Command::new(system)
        .args(["-m", "venv", "--clear"])
        .arg(&dir))?;
    run(Command::new(&python)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args(PACKAGES))?;
    std::fs::write(&stamp, PACKAGES.join(" ")).map_err(|e| format!("{}: {e}", stamp.display()))?;
    Ok(python)
}

/// Runs a command to its end; an error says which one failed.
pub fn run(command: &mut Command) -> Result<(), String> {
    let status = command
        .status()
        .map_err(|e| format!("cannot start {command:?}: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?}: {status}"))
    }
}

//! The reference: TileDB's Python package at the pinned version, in a virtual environment of its
//! own.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

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
    run(Command::new(system_python())
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

/// The Python that is there: `PYTHON`, or `python3`.
pub fn system_python() -> String {
    std::env::var("PYTHON").unwrap_or_else(|_| "python3".into())
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

/// A script of `xtask/python` that is told what to do, line by line; ended when this is dropped.
pub struct Told {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Told {
    /// Starts it.
    pub fn start(script: &str, words: &[&str]) -> Result<Self, String> {
        let mut child = Command::new(python()?)
            .arg(crate::root().join("xtask/python").join(script))
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start the reference: {e}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the reference has no pipes".into());
        };
        Ok(Self {
            child,
            input,
            output: BufReader::new(output),
        })
    }

    /// Does one thing; an error is the reference's own.
    pub fn ask(&mut self, command: &Value) -> Result<Value, String> {
        writeln!(self.input, "{command}").map_err(|e| format!("the reference is gone: {e}"))?;
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .map_err(|e| format!("the reference is gone: {e}"))?;
        let answer: Value =
            serde_json::from_str(&line).map_err(|e| format!("the reference said {line:?}: {e}"))?;
        match answer["error"].as_str() {
            Some(error) => Err(format!("the reference: {error}")),
            None => Ok(answer),
        }
    }
}

//! A folder to run the program in.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "helpers of tests are tests too, and each file uses some of them"
)]

pub mod bucket;

use assert_cmd::Command;
use serde_json::Value as Json;
use std::path::Path;
use std::process::{Child, Stdio};
use tempfile::TempDir;

/// A folder to work in.
pub struct Bench(TempDir);

/// What a command said.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Bench {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    pub fn run(&self, words: &[&str]) -> Said {
        self.run_in(&[], words)
    }

    /// Runs with variables in the environment.
    pub fn run_in(&self, variables: &[(&str, &str)], words: &[&str]) -> Said {
        let mut command = Command::cargo_bin("azulejo").unwrap();
        let command = command.args(words).env("NO_COLOR", "1");
        let command = command.envs(variables.iter().copied());
        let output = command.current_dir(self.path()).output().unwrap();
        Said {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a line of words, which must succeed; `'..'` holds words together.
    pub fn line(&self, line: &str) -> Said {
        let said = self.run(&words(line));
        assert_eq!(said.code, Some(0), "{line}: {}{}", said.out, said.err);
        said
    }

    pub fn fails(&self, line: &str, code: i32, says: &str) {
        let said = self.run(&words(line));
        assert_eq!(said.code, Some(code), "{line}: {}{}", said.out, said.err);
        assert!(said.err.contains(says), "{line}: {}", said.err);
    }

    pub fn json(&self, line: &str) -> Json {
        serde_json::from_str(&self.line(&format!("{line} --json")).out).unwrap()
    }

    pub fn count(&self, uri: &str) -> u64 {
        self.line(&format!("agg {uri} count"))
            .out
            .trim()
            .parse()
            .unwrap()
    }

    pub fn start(&self, line: &str) -> Child {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("azulejo"));
        let command = command.args(words(line)).current_dir(self.path());
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }
}

pub fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        match at % 2 {
            1 => words.push(part),
            _ => words.extend(part.split_whitespace()),
        }
    }
    words
}

/// An `.npy` file of float32 in row-major order.
pub fn npy(shape: &[usize], values: impl Iterator<Item = f32>) -> Vec<u8> {
    let shape: String = shape.iter().map(|n| format!("{n},")).collect();
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}");
    let padded = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((padded.len() as u16).to_le_bytes());
    bytes.extend(padded.as_bytes());
    bytes.extend(values.flat_map(f32::to_le_bytes));
    bytes
}

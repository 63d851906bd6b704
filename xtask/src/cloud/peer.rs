//! The reference on a server: a Python process that is told what to do, line by line.

use super::cells::Cells;
use super::{BUCKET, servers};
use crate::{reference, root};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The reference's process, ended when this is dropped.
pub struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Peer {
    /// Starts it; its S3 client talks to `address`.
    pub fn start(address: SocketAddr) -> Result<Self, String> {
        let python = reference::python()?;
        let mut child = Command::new(python)
            .arg(root().join("xtask/python/cloud_reference.py"))
            .args([
                &address.to_string(),
                servers::ACCESS_KEY,
                servers::SECRET_KEY,
                BUCKET,
            ])
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

    /// Reads the cells of an array with all fields.
    pub fn read(&mut self, uri: &str, first: i64, last: i64) -> Result<Cells, String> {
        let answer =
            self.ask(&json!({ "do": "read", "uri": uri, "first": first, "last": last }))?;
        serde_json::from_value::<Vec<(i64, i32, String)>>(answer["cells"].clone())
            .map(|cells| cells.into_iter().map(|(x, a, s)| (x, (a, s))).collect())
            .map_err(|e| e.to_string())
    }
}

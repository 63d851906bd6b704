//! The reference on a server: a Python process that is told what to do, line by line.

use super::cells::Cells;
use super::{BUCKET, servers};
use crate::reference::Told;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// The reference's process, ended when this is dropped.
pub struct Peer(Told);

impl Peer {
    /// Starts it; its S3 client talks to `address`.
    pub fn start(address: SocketAddr) -> Result<Self, String> {
        let address = address.to_string();
        let words = [&address, servers::ACCESS_KEY, servers::SECRET_KEY, BUCKET];
        Told::start("cloud_reference.py", &words).map(Self)
    }

    /// Does one thing; an error is the reference's own.
    pub fn ask(&mut self, command: &Value) -> Result<Value, String> {
        self.0.ask(command)
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

//! The reference as a process of its own: it may crash, and is started anew then.

use crate::support::cells::Cells;
use crate::{reference, root};
use azulejo::format::ArraySchema;
use azulejo::format::CellValNum;
use azulejo::format::schema::FieldIndex;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The reference's writer crashes now and then, on its own arrays too.
pub const WRITE_CRASH: &str = "the reference crashed while it wrote";

/// The reference's process.
pub struct Peer {
    python: PathBuf,
    running: Option<(Child, ChildStdin, BufReader<ChildStdout>)>,
    /// Takes the cells of reads.
    blob: PathBuf,
}

/// Hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// What the reference must know of a field to read or write it.
pub fn field_json(schema: &ArraySchema, name: &str) -> Value {
    let field = schema.field(name);
    let (datatype, num) =
        field
            .and_then(|f| schema.type_of(f))
            .map_or((0, 1), |(datatype, num)| {
                (
                    datatype as u8,
                    match num {
                        CellValNum::Var => 0,
                        CellValNum::Fixed(n) => n,
                    },
                )
            });
    let nullable = field.is_some_and(|f| schema.is_nullable(f));
    json!({"name": name, "datatype": datatype, "num": num, "nullable": nullable})
}

impl Peer {
    /// Prepares to start the process; `dir` is for its files.
    pub fn new(dir: &Path) -> Result<Self, String> {
        Ok(Self {
            python: reference::python()?,
            running: None,
            blob: dir.join("cells.bin"),
        })
    }

    /// Sends a command and waits for its answer. The outer error is a crash, the inner one what the
    /// reference refused.
    pub fn ask(&mut self, command: &Value) -> Result<Result<Value, String>, String> {
        if self.running.is_none() {
            let mut child = Command::new(&self.python)
                .arg(root().join("xtask/python/interop_write.py"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .map_err(|e| format!("cannot start the reference: {e}"))?;
            let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
            let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
                return Err("no pipes".into());
            };
            self.running = Some((child, stdin, BufReader::new(stdout)));
        }
        let Some((child, stdin, stdout)) = &mut self.running else {
            return Err("not running".into());
        };
        let mut line = String::new();
        let sent = writeln!(stdin, "{command}").and_then(|()| stdin.flush());
        let got = sent.and_then(|()| stdout.read_line(&mut line));
        if got.is_err() || line.is_empty() {
            let status = child.wait();
            self.running = None;
            // To be met again: `interop_write.py < crash.json`.
            let _ = std::fs::write(
                self.blob.with_file_name("crash.json"),
                format!("{command}\n"),
            );
            let what = command["cmd"].as_str().unwrap_or_default();
            if matches!(what, "write" | "consolidate") {
                return Err(WRITE_CRASH.into());
            }
            return Err(format!("the reference crashed ({status:?}) at {what}"));
        }
        let answer: Value = serde_json::from_str(&line).map_err(|e| format!("{e}: {line}"))?;
        Ok(match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer),
        })
    }

    /// As [`Self::ask`]; a refusal is an error too.
    pub fn tell(&mut self, command: &Value) -> Result<Value, String> {
        self.ask(command)?
            .map_err(|e| format!("the reference refused {}: {e}", command["cmd"]))
    }

    /// Reads cells. `command` has everything but what is the same for every read.
    pub fn read(
        &mut self,
        schema: &ArraySchema,
        fields: &[String],
        mut command: Value,
    ) -> Result<Vec<Cells>, String> {
        command["cmd"] = "read".into();
        command["out"] = self.blob.to_string_lossy().into();
        command["fields"] = fields.iter().map(|name| field_json(schema, name)).collect();
        // A process whose memory an earlier write has ruined may crash at any time: a crash counts
        // if it comes again.
        let answer = self.ask(&command).or_else(|_| self.ask(&command))?;
        let answer = answer.map_err(|e| format!("the reference refused \"read\": {e}"))?;
        let blob = std::fs::read(&self.blob).map_err(|e| e.to_string())?;
        let n = answer["cells"].as_u64().unwrap_or(0) as usize;
        let mut rest = blob.as_slice();
        let mut out = Vec::new();
        for (name, lengths) in fields
            .iter()
            .zip(answer["columns"].as_array().into_iter().flatten())
        {
            let mut parts = [&[][..]; 3];
            for (part, length) in parts
                .iter_mut()
                .zip(lengths.as_array().into_iter().flatten())
            {
                (*part, rest) = rest.split_at(length.as_u64().unwrap_or(0) as usize);
            }
            let [data, offsets, validity] = parts;
            let field = schema.field(name).ok_or("an unknown field")?;
            let starts: Vec<usize> = if schema.is_var(field) {
                let starts = offsets
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .map(|b| u64::from_le_bytes(*b) as usize);
                starts.chain([data.len()]).collect()
            } else {
                let size = schema.cell_size(field).unwrap_or(0);
                (0..=n).map(|i| i * size).collect()
            };
            let nullable = schema.is_nullable(field);
            let value = |i: usize| {
                (!nullable || validity[i] != 0).then(|| data[starts[i]..starts[i + 1]].to_vec())
            };
            out.push(Cells {
                name: name.clone(),
                values: (0..n).map(value).collect(),
            });
        }
        Ok(out)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some((mut child, stdin, _)) = self.running.take() {
            // The end of its input ends it.
            drop(stdin);
            let _ = child.wait();
        }
    }
}

/// Dimensions, then attributes.
pub fn all_fields(schema: &ArraySchema) -> Vec<String> {
    let dimensions = (0..schema.domain.ndim()).map(FieldIndex::Dimension);
    let attributes = (0..schema.attributes.len()).map(FieldIndex::Attribute);
    dimensions
        .chain(attributes)
        .map(|f| schema.name_of(f).to_owned())
        .collect()
}

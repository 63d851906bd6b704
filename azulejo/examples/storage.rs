//! A storage of one's own under a scheme of one's own: objects in one map, whose requests are
//! printed.
//!
//! ```sh
//! cargo run -p azulejo --example storage
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::error::{Error, Result};
use azulejo::format::{ArraySchema, Datatype};
use azulejo::read::ReadOptions;
use azulejo::storage::{Entry, ReadRequest, Storage, StorePath, Upload};
use azulejo::write::WriteOptions;
use azulejo::{Config, Context};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Objects = BTreeMap<String, Bytes>;

/// All objects, by their paths.
#[derive(Debug, Default, Clone)]
struct Vault {
    objects: Arc<Mutex<Objects>>,
}

fn not_found(path: &StorePath) -> Error {
    Error::NotFound {
        uri: path.to_string(),
        what: "no such object",
    }
}

/// Whether `key` is `path` or lies below it.
fn is_within(key: &str, path: &StorePath) -> bool {
    let rest = key.strip_prefix(path.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Vault {
    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, path: &StorePath) -> Result<Bytes> {
        let found = self.objects().get(path.as_str()).cloned();
        found.ok_or_else(|| not_found(path))
    }
}

impl Storage for Vault {
    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        println!("list   {dir}");
        let prefix = format!("{}/", dir.as_str());
        let mut entries = BTreeMap::new();
        for (key, body) in self.objects().iter() {
            let Some(rest) = key.strip_prefix(&prefix) else {
                continue;
            };
            let (name, is_dir) = match rest.split_once('/') {
                Some((name, _)) => (name, true),
                None => (rest, false),
            };
            let entry = Entry {
                name: name.to_owned(),
                is_dir,
                size: Some(if is_dir { 0 } else { body.len() as u64 }),
            };
            entries.insert(name.to_owned(), entry);
        }
        Ok(entries.into_values().collect())
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        let read = |request: &ReadRequest| {
            println!("read   {} {:?}", request.path, request.range);
            let body = self.get(&request.path)?;
            // An error if the object is shorter.
            let range = request.range.within(&request.path, body.len() as u64)?;
            Ok(body.slice(range.start as usize..range.end as usize))
        };
        requests.iter().map(read).collect()
    }

    fn size(&self, path: &StorePath) -> Result<u64> {
        Ok(self.get(path)?.len() as u64)
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        println!("write  {path} ({} bytes)", body.len());
        self.objects().insert(path.as_str().to_owned(), body);
        Ok(())
    }

    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        Ok(Box::new(VaultUpload {
            vault: self.clone(),
            path: path.clone(),
            body: Vec::new(),
        }))
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        let mut objects = self.objects();
        if objects.keys().any(|key| is_within(key, to)) {
            return Err(Error::AlreadyExists {
                uri: to.to_string(),
            });
        }
        let moved: Vec<String> = objects
            .keys()
            .filter(|key| is_within(key, from))
            .cloned()
            .collect();
        if moved.is_empty() {
            return Err(not_found(from));
        }
        for key in moved {
            if let Some(body) = objects.remove(&key) {
                let rest = key.strip_prefix(from.as_str()).unwrap_or_default();
                objects.insert(format!("{}{rest}", to.as_str()), body);
            }
        }
        Ok(())
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        let gone = |key: &str| paths.iter().any(|path| is_within(key, path));
        self.objects().retain(|key, _| !gone(key));
        Ok(())
    }
}

/// An object that is there once it is finished.
#[derive(Debug)]
struct VaultUpload {
    vault: Vault,
    path: StorePath,
    body: Vec<u8>,
}

impl Upload for VaultUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.vault.put(&self.path, Bytes::from(self.body))
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let context = Context::new(Config::default(), None)?;
    let context = context.with_scheme("vault", Arc::new(Vault::default()))?;

    let new = ArraySchema::dense()
        .dimension("x", 0i32..=5, 6)
        .attribute("a", Datatype::Float64)
        .build()?;
    context.array("vault://numbers").create(new)?;

    let mut writer = context
        .array("vault://numbers")
        .writer(WriteOptions::new())?;
    let values: Vec<f64> = (0..6).map(f64::from).collect();
    writer.write(&ColumnSet::of([ColumnBuffers::of_values("a", values)])?)?;
    writer.finish()?;

    let array = context.array("vault://numbers").open()?;
    let cells = array.read(ReadOptions::new())?.read_all()?;
    let values = cells.column("a").and_then(|a| a.values::<f64>());
    println!("{values:?}");
    Ok(())
}

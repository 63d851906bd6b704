//! The packed fixtures, unfolded into memory: nothing is written to disk.

use azulejo::format::filter::EncryptionKey;
use azulejo::storage::{LocalStorage, MemoryStorage, Storage, StorePath};
use azulejo::{Config, Context};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

/// Path in the pack to bytes: `made/..`, `expected/made/..`, `keys.json`.
#[must_use]
pub fn files() -> BTreeMap<String, Bytes> {
    unpack(include_bytes!("../fixtures/made.tar.zst"))
}

/// The files of a pack.
#[must_use]
pub fn unpack(packed: &[u8]) -> BTreeMap<String, Bytes> {
    let mut tar = tar::Archive::new(zstd::Decoder::new(packed).expect("the pack is zstd"));
    let mut files = BTreeMap::new();
    for entry in tar.entries().expect("the pack is a tar file") {
        let mut entry = entry.expect("an entry");
        if entry.header().entry_type().is_file() {
            let path = entry
                .path()
                .expect("a path")
                .to_string_lossy()
                .replace('\\', "/");
            let path = path.trim_start_matches("./").to_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("whole");
            files.insert(path, bytes.into());
        }
    }
    files
}

/// A memory storage that holds the files below `prefix`.
#[must_use]
pub fn memory(files: &BTreeMap<String, Bytes>, prefix: &str) -> Arc<MemoryStorage> {
    let memory = MemoryStorage::new();
    for (path, bytes) in files.iter().filter(|(p, _)| p.starts_with(prefix)) {
        memory
            .put(&StorePath::memory(path), bytes.clone())
            .expect("memory takes it");
    }
    Arc::new(memory)
}

/// A context whose `mem://` is `memory`.
#[must_use]
pub fn context(config: Config, key: Option<EncryptionKey>, memory: Arc<dyn Storage>) -> Context {
    Context::with_storages(config, key, Arc::new(LocalStorage::new()), memory).expect("a context")
}

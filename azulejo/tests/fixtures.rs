//! Every array of the packed corpus reads exactly as the reference read it: 600 arrays of format versions 1 to 22.
//!
//! The pack is unfolded into memory storage, so nothing is written to disk.

mod support;

use azulejo::storage::{MemoryStorage, Storage, StorePath};
use azulejo::{Config, Context};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use support::{cells, check};

/// The pack: path in it to bytes.
fn unpack() -> BTreeMap<String, bytes::Bytes> {
    let packed = include_bytes!("fixtures/made.tar.zst");
    let mut tar = tar::Archive::new(zstd::Decoder::new(packed.as_slice()).expect("the pack is zstd"));
    let mut files = BTreeMap::new();
    for entry in tar.entries().expect("the pack is a tar file") {
        let mut entry = entry.expect("an entry");
        if entry.header().entry_type().is_file() {
            let path = entry.path().expect("a path").to_string_lossy().replace('\\', "/");
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("whole");
            files.insert(path, bytes.into());
        }
    }
    files
}

#[test]
fn every_packed_array_reads_as_expected() {
    let files = unpack();
    let memory = Arc::new(MemoryStorage::new());
    for (path, bytes) in files.iter().filter(|(p, _)| p.starts_with("made/")) {
        memory.put(&StorePath::memory(path), bytes.clone()).expect("memory takes it");
    }
    let keys: Value = serde_json::from_slice(&files["keys.json"]).expect("keys");
    let local: Arc<dyn Storage> = Arc::new(azulejo::storage::LocalStorage::new());
    let (mut passed, mut failures) = (0, Vec::new());
    for (path, bytes) in &files {
        let Some(name) = path.strip_prefix("expected/").and_then(|p| p.strip_suffix(".json")) else { continue };
        let json: Value = serde_json::from_slice(bytes).expect("JSON");
        let key = check::key_of(name, &keys).expect("a key");
        let context =
            Context::with_storages(Config::default(), key, Arc::clone(&local), Arc::clone(&memory) as Arc<dyn Storage>).expect("a context");
        let want = files.get(&format!("expected/{name}.cells")).map(|bytes| cells::decode(bytes));
        match check::object(&context, &format!("mem://{name}"), &json, want) {
            Ok(()) => passed += 1,
            Err(text) => failures.push(format!("{name}: {}", text.chars().take(300).collect::<String>())),
        }
    }
    assert!(failures.is_empty(), "{} of {} failed:\n{}", failures.len(), failures.len() + passed, failures.join("\n"));
    assert!(passed > 600, "only {passed} objects in the pack");
}

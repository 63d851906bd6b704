//! Fragments that the reference wrote, written again: the same bytes where they are determined, the same cells always.

mod support;

use azulejo::storage::Storage;
use azulejo::{Array, Config};
use serde_json::Value;
use std::sync::Arc;
use support::{check, pack, rewrite};

/// Calls `visit` with every readable array of the pack.
fn every_array(mut visit: impl FnMut(&str, &Array)) {
    let files = pack::files();
    let memory = pack::memory(&files, "made/");
    let keys: Value = serde_json::from_slice(&files["keys.json"]).expect("keys");
    for (path, bytes) in &files {
        let Some(name) = path.strip_prefix("expected/").and_then(|p| p.strip_suffix(".json")) else {
            continue;
        };
        let json: Value = serde_json::from_slice(bytes).expect("JSON");
        if json["kind"] == "group" || json["readable"] == false {
            continue;
        }
        let key = check::key_of(name, &keys).expect("a key");
        let context = pack::context(Config::default(), key, Arc::clone(&memory) as Arc<dyn Storage>);
        visit(name, &Array::open(&context, &format!("mem://{name}")).expect("it opens"));
    }
}

#[test]
fn metadata_files_come_out_as_they_went_in() {
    let (mut same, mut odd, mut failures) = (0, 0, Vec::new());
    every_array(|name, array| {
        for fragment in array.fragments().iter().filter(|f| f.version().has_nullable()) {
            match rewrite::metadata_round_trip(array, fragment) {
                Ok(true) => same += 1,
                Ok(false) => odd += 1,
                Err(text) => failures.push(format!("{name} {}: {text:.600}", fragment.name())),
            }
        }
    });
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), same, failures.join("\n"));
    assert!(same > 500 && odd < 20, "{same} files are the same, {odd} have other bytes between sections");
}

//! Fragments that the reference wrote, written again: the same bytes where they are determined, the same cells always.

mod support;

use azulejo::context::Location;
use azulejo::storage::{Entry, ReadRange, ReadRequest, Storage, StorePath};
use azulejo::{Array, Config};
use serde_json::Value;
use std::sync::Arc;
use support::cells::{self, Cells};
use support::{check, pack, rewrite};

/// Calls `visit` with every readable array of the pack and what is to be read from it.
fn every_array(mut visit: impl FnMut(&str, &Array, &Value, Option<Vec<Cells>>)) {
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
        let want = files.get(&format!("expected/{name}.cells")).map(|bytes| cells::decode(bytes));
        visit(name, &Array::open(&context, &format!("mem://{name}")).expect("it opens"), &json, want);
    }
}

#[test]
fn metadata_files_come_out_as_they_went_in() {
    let (mut same, mut odd, mut failures) = (0, 0, Vec::new());
    every_array(|name, array, _, _| {
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

/// Copies what is not in a fragment's folder: schemas, commits, deletes, metadata.
fn copy_rest(storage: &dyn Storage, from: &StorePath, to: &StorePath) {
    for Entry { name, is_dir, .. } in storage.list(from).expect("a folder") {
        let (from, to) = (from.join(&name), to.join(&name));
        let fragment = azulejo::format::path::fragment_entry(&name).is_some();
        if is_dir && !fragment {
            copy_rest(storage, &from, &to);
        } else if !is_dir && !name.ends_with(".meta") {
            let request = ReadRequest { path: from, range: ReadRange::All };
            storage.put(&to, storage.read(&[request]).expect("a file").remove(0)).expect("memory takes it");
        }
    }
}

#[test]
fn copied_fragments_have_the_references_metadata_files_and_cells() {
    let (mut fragments, mut files, mut failures) = (0, 0, Vec::new());
    every_array(|name, array, json, want| {
        if !array.fragments().iter().all(|f| f.version().is_writable()) {
            return;
        }
        let from = array.location();
        let to = Location { storage: Arc::clone(&from.storage), path: StorePath::memory("copy").join(name) };
        copy_rest(&*from.storage, &from.path, &to.path);
        for (i, fragment) in array.fragments().iter().enumerate() {
            if let Err(text) = rewrite::copy_fragment(array, i, &to, 1 + fragments % 4) {
                return failures.push(format!("{name} {}: {text}", fragment.name()));
            }
            fragments += 1;
        }
        let uri = to.path.to_string();
        if let Err(text) = check::object(array.context(), &uri, json, want) {
            failures.push(format!("{name}: {text:.300}"));
        }
        let copy = match Array::open(array.context(), &uri) {
            Ok(copy) => copy,
            Err(e) => return failures.push(format!("{name}: {e}")),
        };
        for (fragment, copy) in array.fragments().iter().zip(copy.fragments()) {
            let mut note = |text: String| failures.push(format!("{name} {}: {text}", fragment.name()));
            match rewrite::differences(array, fragment, copy) {
                Ok(differences) => differences.into_iter().for_each(&mut note),
                Err(text) => note(text),
            }
            // Encoders of earlier releases left other bytes in their padding.
            if name.contains("/2.30.0/") {
                let (same, different) = rewrite::compare_files(array, fragment, copy);
                files += same;
                different.into_iter().for_each(|file| note(format!("{file} has other bytes")));
            }
        }
    });
    assert!(failures.is_empty(), "{} of {fragments} fragments:\n{}", failures.len(), failures.join("\n"));
    assert!(fragments > 900 && files > 100, "{fragments} fragments, {files} files with the same bytes");
}

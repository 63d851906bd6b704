//! Every array of the packed corpus reads exactly as the reference read it: 600 objects of format
//! versions 1 to 22.

mod support;

use azulejo::Config;
use azulejo::storage::Storage;
use serde_json::Value;
use std::sync::Arc;
use support::{cells, check, pack};

#[test]
fn every_packed_array_reads_as_expected() {
    let files = pack::files();
    let memory = pack::memory(&files, "made/");
    let keys: Value = serde_json::from_slice(&files["keys.json"]).expect("keys");
    let (mut passed, mut failures) = (0, Vec::new());
    for (path, bytes) in &files {
        let Some(name) = path
            .strip_prefix("expected/")
            .and_then(|p| p.strip_suffix(".json"))
        else {
            continue;
        };
        let json: Value = serde_json::from_slice(bytes).expect("JSON");
        let key = check::key_of(name, &keys).expect("a key");
        let context = pack::context(
            Config::default(),
            key,
            Arc::clone(&memory) as Arc<dyn Storage>,
        );
        let want = files
            .get(&format!("expected/{name}.cells"))
            .map(|bytes| cells::decode(bytes));
        match check::object(&context, &format!("mem://{name}"), &json, want) {
            Ok(()) => passed += 1,
            Err(text) => failures.push(format!(
                "{name}: {}",
                text.chars().take(300).collect::<String>()
            )),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} failed:\n{}",
        failures.len(),
        failures.len() + passed,
        failures.join("\n")
    );
    assert!(passed > 600, "only {passed} objects in the pack");
}

//! `cargo xtask interop corpus`: real arrays of every version, each with what the reference reads
//! from it.
//!
//! A corpus is a folder with `made/`, `found/` and `negative/` arrays, `keys.json`, and
//! `expected/<same path>.json` and `.parquet`. An array without expectation is a failure: nothing
//! is passed over in silence.

use crate::support::check;
use crate::{Outcome, expected, root};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Walks the corpus in `dir`, or in the folder beside the project where it usually lies.
pub fn run(dir: Option<&Path>) -> Outcome {
    let beside = root().join("../shared/arrays");
    let Some(dir) = dir
        .map(Path::to_path_buf)
        .or_else(|| beside.is_dir().then_some(beside))
    else {
        println!("no corpus beside the project: the fixtures of `cargo test` stand for it");
        return Ok(());
    };
    let keys: Value = read_json(&dir.join("keys.json")).unwrap_or_default();
    let (mut passed, mut failures) = (0, Vec::new());
    for part in ["made", "found"] {
        let mut objects = Vec::new();
        find_objects(&dir.join(part), &mut objects);
        objects.sort();
        for object in objects {
            let relative = object
                .strip_prefix(&dir)
                .map_err(|e| e.to_string())?
                .to_path_buf();
            match std::panic::catch_unwind(|| check_one(&dir, &relative, &keys)) {
                Ok(Ok(())) => passed += 1,
                Ok(Err(text)) => failures.push((relative, text)),
                Err(_) => failures.push((relative, "panicked".into())),
            }
        }
    }
    for (name, text) in &failures {
        println!(
            "{}: {}",
            name.display(),
            text.chars().take(400).collect::<String>()
        );
    }
    println!("corpus: {passed} passed, {} failed", failures.len());
    if failures.is_empty() {
        Ok(())
    } else {
        Err("the corpus does not read as expected".into())
    }
}

fn read_json(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Arrays and groups below a folder, as the writer of the expectations walked them.
fn find_objects(dir: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    let names: Vec<(String, bool)> = entries
        .flatten()
        .map(|e| {
            (
                e.file_name().to_string_lossy().into_owned(),
                e.path().is_dir(),
            )
        })
        .collect();
    let has = |n: &str| names.iter().any(|(name, _)| name == n);
    let array = has("__array_schema.tdb") || has("__schema");
    if array || has("__group") || has("__tiledb_group.tdb") {
        out.push(dir.to_path_buf());
    }
    let own = [
        "__schema",
        "__fragments",
        "__commits",
        "__meta",
        "__fragment_meta",
        "__group",
    ];
    for (name, is_dir) in &names {
        if *is_dir && !own.contains(&name.as_str()) && !(array && name.starts_with("__1")) {
            find_objects(&dir.join(name), out);
        }
    }
}

fn check_one(dir: &Path, relative: &Path, keys: &Value) -> Outcome {
    let stem = dir.join("expected").join(relative);
    let with = |suffix: &str| PathBuf::from(format!("{}.{suffix}", stem.display()));
    let json = read_json(&with("json")).map_err(|e| format!("no expectation: {e}"))?;
    let name = relative.to_string_lossy();
    let context = check::context(check::key_of(&name, keys)?)?;
    let uri = dir.join(relative).to_string_lossy().into_owned();
    let parquet = with("parquet");
    let parquet = parquet
        .is_file()
        .then(|| std::fs::read(&parquet))
        .transpose()
        .map_err(|e| e.to_string())?;
    let want = parquet
        .map(|bytes| expected::parquet_cells(bytes.into()))
        .transpose()?;
    check::object(&context, &uri, &json, want)
}

//! The packed corpus as files with manifests, for tests that read it over HTTP.

use crate::support::{check, pack};
use azulejo::manifest::{MANIFEST_FILE, Manifest};
use serde_json::Value as Json;
use std::fs;
use std::path::Path;

/// Unfolds the pack into `folder`, unless it is there already, and writes the manifests.
pub fn unfold(folder: &Path) -> Result<(), String> {
    let done = folder.join("done.2");
    if done.exists() {
        return Ok(());
    }
    let failed = |path: &Path, e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|e| failed(folder, &e))?;
    }
    let files = pack::files();
    for (path, bytes) in &files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|e| failed(parent, &e))?;
        fs::write(&path, bytes).map_err(|e| failed(&path, &e))?;
    }
    let context = check::context(None)?;
    let mut manifests = 0;
    for (path, bytes) in &files {
        let name = path.strip_prefix("expected/");
        let Some(name) = name.and_then(|name| name.strip_suffix(".json")) else {
            continue;
        };
        let expected: Json = serde_json::from_slice(bytes).map_err(|e| format!("{path}: {e}"))?;
        let uri = folder.join(name).to_string_lossy().into_owned();
        // Some of the negative ones are no objects at all.
        match context.object(&uri).write_manifests() {
            Ok(written) => manifests += written.written.len(),
            Err(error) if expected["readable"] != false => return Err(error.to_string()),
            Err(_) => {}
        }
    }
    super::demo::write(folder).map_err(|e| e.to_string())?;
    old_manifest(folder)?;
    println!("{manifests} manifests in {}", folder.display());
    fs::write(&done, "").map_err(|e| failed(&done, &e))
}

/// A copy of the demonstration's grid whose manifest is of the first version: listings alone.
fn old_manifest(folder: &Path) -> Result<(), String> {
    let context = check::context(None)?;
    let place = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let grid = context.object(&place("demo/grid"));
    grid.copy_to(&place("old/grid"))
        .map_err(|e| e.to_string())?;
    let old = context.object(&place("old/grid"));
    old.write_manifests().map_err(|e| e.to_string())?;
    let path = folder.join("old/grid").join(MANIFEST_FILE);
    let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let bytes = fs::read(&path).map_err(|e| failed(&e))?;
    let mut manifest = Manifest::decode(&bytes, 1 << 20).map_err(|e| failed(&e))?;
    manifest.contents.clear();
    let bytes = manifest.encode().map_err(|e| failed(&e))?;
    fs::write(&path, bytes).map_err(|e| failed(&e))
}

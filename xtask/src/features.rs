//! Every feature of the published crates compiles without the others.

use crate::Outcome;
use crate::cargo::cargo;
use serde_json::Value as Json;
use std::path::Path;

/// Checks each library without default features but codecs, then with each of its features alone.
pub fn check(root: &Path) -> Outcome {
    let mut failed = Vec::new();
    for (package, features) in packages(root)? {
        for feature in std::iter::once(None).chain(features.iter().map(Some)) {
            let what = feature.map_or_else(|| "none".to_owned(), Clone::clone);
            // One of the two kinds of codecs is needed.
            let needs_codecs = features.iter().any(|name| name == "c-codecs")
                && feature.is_none_or(|name| name != "pure-rust");
            println!("{package}: {what}");
            let mut command = cargo();
            command
                .current_dir(root)
                .args(["clippy", "--quiet", "--locked", "--no-default-features"])
                .args(["--package", &package])
                .args(
                    feature
                        .iter()
                        .flat_map(|name| ["--features", name.as_str()]),
                )
                .args(needs_codecs.then_some("--features=c-codecs"))
                .args(["--", "-D", "warnings"]);
            if !command
                .status()
                .map_err(|e| format!("cargo: {e}"))?
                .success()
            {
                failed.push(format!("{package} with {what}"));
            }
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("do not compile: {}", failed.join(", "))),
    }
}

/// The libraries that are published, and their features but for `default`.
fn packages(root: &Path) -> Result<Vec<(String, Vec<String>)>, String> {
    let output = cargo()
        .current_dir(root)
        .args(["metadata", "--no-deps", "--format-version", "1", "--locked"])
        .output()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    let metadata: Json =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let found: Vec<_> = packages
        .filter_map(|package| {
            let name = package["name"].as_str()?;
            let features = package["features"].as_object()?;
            let own = features.keys().filter(|name| *name != "default");
            matches!(name, "azulejo-format" | "azulejo" | "azulejo-capi")
                .then(|| (name.to_owned(), own.cloned().collect()))
        })
        .collect();
    match found.len() {
        3 => Ok(found),
        n => Err(format!("{n} of the three libraries are in the workspace")),
    }
}

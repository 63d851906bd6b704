//! How much of its decoder each target runs: the lines of the functions that it enters, and of those
//! in its files that decode and that it never enters.

use super::{Build, build, folder, program};
use crate::cargo::sysroot;
use crate::{Outcome, reference, root};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The files of a target's decoder.
const DECODERS: &[(&str, &[&str])] = &[
    (
        "schema",
        &[
            "azulejo-format/src/schema.rs",
            "azulejo-format/src/schema/attribute.rs",
            "azulejo-format/src/schema/dimension.rs",
            "azulejo-format/src/schema/dimension_label.rs",
            "azulejo-format/src/schema/domain.rs",
            "azulejo-format/src/schema/enumeration.rs",
            "azulejo-format/src/schema/current_domain.rs",
            "azulejo-format/src/condition.rs",
            "azulejo-format/src/metadata.rs",
            "azulejo-format/src/filter/options.rs",
        ],
    ),
    (
        "generic_tile",
        &[
            "azulejo-format/src/tile/generic_tile.rs",
            "azulejo-format/src/tile/decoder.rs",
        ],
    ),
    ("fragment_metadata", &["azulejo-format/src/fragment"]),
    (
        "small_files",
        &[
            "azulejo-format/src/commit",
            "azulejo-format/src/group.rs",
            "azulejo-format/src/fragment/consolidated.rs",
            "azulejo-format/src/timestamped_name.rs",
        ],
    ),
    (
        "tile_chunks",
        &[
            "azulejo-format/src/tile/decoder.rs",
            "azulejo-format/src/tile/chunk.rs",
        ],
    ),
    ("filters", &["azulejo-format/src/filter"]),
    ("manifest", &["azulejo/src/manifest/sidecar.rs"]),
    (
        "texts",
        &[
            "azulejo/src/condition/parse.rs",
            "azulejo/src/condition/token.rs",
            "azulejo/src/condition/literal.rs",
            "azulejo/src/condition/like.rs",
            "azulejo/src/condition/bind.rs",
            "azulejo-cli/src/moment.rs",
            "azulejo-cli/src/selection/range_text.rs",
            "azulejo-cli/src/size.rs",
            "azulejo-cli/src/value.rs",
        ],
    ),
];

/// Parts of names of functions that decode, whether they are entered or not.
const DECODING: [&str; 3] = ["decode", "undo", "parse"];

/// Parts of names of functions that targets enter to write what they have read once more: what an
/// encoder refuses, no decoder gives.
const ENCODING: [&str; 3] = ["encode", "write", "RTreeBuilder"];

/// A line of a file.
type Line = (String, u64);

/// Prints, for each target that is a decoder, how much of it the inputs reach: those committed, and
/// those that were found. `llvm` is a folder with LLVM's tools, where the toolchain has none.
pub fn measure(targets: &[String], llvm: Option<&Path>) -> Outcome {
    let path = build(&Build {
        folder: "coverage",
        flags: "--cfg fuzzing -Cinstrument-coverage".to_owned(),
        nightly: false,
    })?;
    let tools = match llvm {
        Some(folder) => folder.to_owned(),
        None => toolchain_tools()?,
    };
    let profiles = folder("coverage", "profiles")?;
    let mut missed = Vec::new();
    println!("target                 lines   reached");
    for (target, files) in DECODERS {
        if !targets.iter().any(|wanted| wanted == target) {
            continue;
        }
        let lines = lines_of(&path, &tools, &profiles, target, files)?;
        let reached = lines.values().filter(|reached| **reached).count();
        println!(
            "{target:<20} {:>7} {:>8.1} %",
            lines.len(),
            100.0 * reached as f64 / lines.len().max(1) as f64
        );
        let left = lines.into_iter().filter(|(_, reached)| !reached);
        missed.push((target, left.map(|(line, _)| line).collect::<BTreeSet<_>>()));
    }
    for (target, lines) in missed {
        println!("{target} does not reach");
        for (file, ranges) in ranges(&lines) {
            println!("  {file}: {}", ranges.join(", "));
        }
    }
    Ok(())
}

/// Runs a target over its inputs; the lines of its decoder, and whether each was run.
fn lines_of(
    path: &Path,
    tools: &Path,
    profiles: &Path,
    target: &str,
    files: &[&str],
) -> Result<BTreeMap<Line, bool>, String> {
    let profile = profiles.join(format!("{target}.profraw"));
    let mut command = program(path, target);
    command
        .arg("-runs=0")
        .arg(root().join("fuzz/corpus").join(target))
        .env("LLVM_PROFILE_FILE", &profile)
        .stderr(Stdio::null());
    let found = root().join("fuzz/target/found").join(target);
    if found.is_dir() {
        command.arg(found);
    }
    reference::run(&mut command)?;
    let merged = profile.with_extension("profdata");
    let mut command = Command::new(tools.join("llvm-profdata"));
    command
        .args(["merge", "-sparse", "-o"])
        .args([&merged, &profile]);
    reference::run(&mut command)?;
    let output = Command::new(tools.join("llvm-cov"))
        .arg("export")
        .arg(format!("--instr-profile={}", merged.display()))
        .arg("--ignore-filename-regex=/(registry|rustc|library)/")
        .arg(path)
        .output()
        .map_err(|e| format!("cannot start llvm-cov: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let said: Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
    let functions = said["data"][0]["functions"].as_array();
    let mut lines = BTreeMap::new();
    for function in functions.ok_or("llvm-cov says nothing of functions")? {
        let file = function["filenames"][0].as_str().unwrap_or_default();
        let Some((_, file)) = file.rsplit_once(&format!("{}/", root().display())) else {
            continue;
        };
        let file = file.replace("fuzz/src/../../", "");
        let name = function["name"].as_str().unwrap_or_default();
        let entered = function["count"].as_u64().unwrap_or(0) > 0;
        let decodes = DECODING.iter().any(|part| name.contains(part));
        let encodes = ENCODING.iter().any(|part| name.contains(part));
        let is_meant = decodes || entered && !encodes;
        if files.iter().any(|of| file.starts_with(of)) && is_meant {
            for (line, reached) in lines_in(&function["regions"]) {
                // One function may be compiled for many types.
                *lines.entry((file.clone(), line)).or_insert(false) |= reached;
            }
        }
    }
    Ok(lines)
}

/// The lines of a function's regions, and whether each was run: by the regions that begin there, or
/// else by the smallest around it.
fn lines_in(regions: &Value) -> BTreeMap<u64, bool> {
    let number = |region: &Value, i: usize| region[i].as_u64().unwrap_or(0);
    let regions = regions.as_array().map(Vec::as_slice).unwrap_or_default();
    // Code of the function's own file, no gaps.
    let code = regions
        .iter()
        .filter(|r| number(r, 5) == 0 && number(r, 7) == 0);
    let code: Vec<(u64, u64, bool)> = code
        .map(|r| (number(r, 0), number(r, 2), number(r, 4) > 0))
        .collect();
    let mut lines = BTreeMap::new();
    let all = code.iter().flat_map(|(from, to, _)| *from..=*to);
    for line in all.collect::<BTreeSet<_>>() {
        let begun = code.iter().filter(|(from, _, _)| *from == line);
        let reached = if begun.clone().count() > 0 {
            begun.clone().any(|(_, _, reached)| *reached)
        } else {
            let around = code
                .iter()
                .filter(|(from, to, _)| *from < line && line <= *to);
            let smallest = around.min_by_key(|(from, to, _)| to - from);
            smallest.is_some_and(|(_, _, reached)| *reached)
        };
        lines.insert(line, reached);
    }
    lines
}

/// Lines by file, those that follow one another as one.
fn ranges(lines: &BTreeSet<Line>) -> BTreeMap<&str, Vec<String>> {
    let mut all: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for (file, line) in lines {
        let ranges = all.entry(file).or_default();
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == *line => *end = *line,
            _ => ranges.push((*line, *line)),
        }
    }
    let text = |(from, to): (u64, u64)| match from == to {
        true => from.to_string(),
        false => format!("{from}-{to}"),
    };
    all.into_iter()
        .map(|(file, ranges)| (file, ranges.into_iter().map(text).collect()))
        .collect()
}

/// Where the toolchain has LLVM's tools (its component `llvm-tools`).
fn toolchain_tools() -> Result<PathBuf, String> {
    let folder = sysroot(None)?.join("lib/rustlib");
    let folder = folder.join(super::host()?).join("bin");
    match folder.join("llvm-cov").is_file() {
        true => Ok(folder),
        false => Err(
            "LLVM's tools are missing: rustup component add llvm-tools, or --llvm FOLDER with \
             llvm-cov and llvm-profdata of the version that rustc -vV names"
                .into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_is_as_the_regions_that_begin_there() {
        // A function of five lines, in which the second holds a branch that was not taken.
        let regions = json!([
            [1, 1, 5, 2, 3, 0, 0, 0],
            [2, 5, 3, 6, 0, 0, 0, 0],
            [4, 1, 4, 9, 2, 0, 0, 0],
            [2, 5, 2, 6, 9, 1, 0, 0],
            [2, 5, 2, 6, 9, 0, 0, 3],
        ]);
        let lines = lines_in(&regions);
        let reached: Vec<bool> = lines.values().copied().collect();
        assert_eq!(reached, [true, false, false, true, true]);
        let missed = BTreeSet::from([2, 3, 7].map(|n| ("a.rs".to_owned(), n)));
        assert_eq!(ranges(&missed)["a.rs"], ["2-3", "7"]);
    }
}

//! `cargo xtask unit-tests`: TileDB's own unit tests and regression programs that need nothing but
//! its public headers, on the reference and on our C library, test case by test case.
//!
//! They come from TileDB's repository at the reference's version, with the test framework from
//! its own, and stay below `target`. A program is compiled once, against the reference; ours then
//! lies in a folder under the reference's file name.

mod build;

use crate::capi::Told;
use crate::{Outcome, root, versus};
use build::{Build, make_folder};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs the programs whose names contain one of the words, or all. Options: `--from DIR` (with
/// checkouts in DIR/TileDB, DIR/Catch2 and DIR/json), `--library FILE` (one that is not built first).
pub fn run(options: &[&str]) -> Outcome {
    let told = Told::parse(options)?;
    let work = root().join("target/unit-tests");
    let from = match told.from.clone() {
        Some(folder) => folder,
        None => build::fetch(&work)?,
    };
    let library = told.library(&root())?;
    let theirs = versus::reference_library()?;
    let build = Build::new(&work, &from, &theirs)?;
    let as_theirs = work.join("ours");
    make_folder(&as_theirs)?;
    std::fs::copy(
        &library,
        as_theirs.join(theirs.file_name().unwrap_or_default()),
    )
    .map_err(|e| format!("{}: {e}", library.display()))?;
    let (mut differ, mut unbuilt, mut table) = (0, 0, String::new());
    for source in sources(&build.tiledb)? {
        let name = source.file_stem().unwrap_or_default().to_string_lossy();
        if !told.names.is_empty() && !told.names.iter().any(|word| name.contains(word)) {
            continue;
        }
        let text = std::fs::read_to_string(&source).map_err(|e| format!("{name}: {e}"))?;
        let internal = internal_headers(&text);
        let line = match internal.first() {
            Some(first) => format!(
                "| `{name}` | | | uses the library's internals: `{first}` and {} more |",
                internal.len() - 1
            ),
            None => match build.program(&source, &name) {
                Err(text) => {
                    unbuilt += 1;
                    format!("| `{name}` | | | cannot be built: {text} |")
                }
                Ok(program) => {
                    let folder = theirs.parent().unwrap_or(Path::new("."));
                    let reference = outcomes(&program, folder, &work)?;
                    let ours = outcomes(&program, &as_theirs, &work)?;
                    let (line, worse) = row(&name, &reference, &ours);
                    differ += worse;
                    line
                }
            },
        };
        println!("{line}");
        table = format!("{table}{line}\n");
    }
    match (differ, unbuilt) {
        _ if table.is_empty() => Err("no program has such a name".into()),
        (0, 0) => Ok(()),
        _ => Err(format!(
            "{differ} test cases pass on the reference alone; {unbuilt} programs cannot be built"
        )),
    }
}

/// A program's line of the table, and how many of its cases pass on the reference alone. One that
/// says that the reference is wrong, and finds it right here, is none of these.
fn row(
    name: &str,
    reference: &BTreeMap<String, String>,
    ours: &BTreeMap<String, String>,
) -> (String, usize) {
    let passed = |all: &BTreeMap<String, String>| {
        let passing = |came: &&String| *came == "passed" || *came == RIGHT;
        all.values().filter(passing).count()
    };
    let (mut worse, mut why) = (0, Vec::new());
    for (case, came) in reference.iter().filter(|(_, came)| *came == "passed") {
        match ours.get(case).map_or("missing", String::as_str) {
            "passed" => {}
            RIGHT => why.push(format!(
                "{case}: wrong on the reference, and marked so; right here"
            )),
            other => {
                worse += 1;
                why.push(format!("{case}: {other} ({came} there)"));
            }
        }
    }
    let line = format!(
        "| `{name}` | {} of {} | {} | {} |",
        passed(reference),
        reference.len(),
        passed(ours),
        why.join("; ")
    );
    (line, worse)
}

/// The unit tests of the C and the C++ API, and the regression programs.
fn sources(tiledb: &Path) -> Result<Vec<PathBuf>, String> {
    let files = |folder: &Path| -> Result<Vec<PathBuf>, String> {
        let entries =
            std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .collect())
    };
    let mut found = files(&tiledb.join("test/src"))?;
    found.extend(files(&tiledb.join("test/regression/targets"))?);
    for part in files(&tiledb.join("tiledb/api/c_api"))? {
        let tests = part.join("test");
        if tests.is_dir() {
            found.extend(files(&tests)?);
        }
    }
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let starts = ["unit-capi-", "unit-cppapi-", "unit_capi_", "sc-"];
        name.ends_with(".cc") && starts.iter().any(|start| name.starts_with(start))
    });
    found.sort();
    Ok(found)
}

/// The headers that a program asks for and that a user of the library does not have.
fn internal_headers(text: &str) -> Vec<&str> {
    let asked = text.lines().filter_map(|line| {
        let rest = line.strip_prefix("#include ")?.trim();
        let (open, rest) = (rest.chars().next()?, rest.get(1..)?);
        rest.split_once(if open == '<' { '>' } else { '"' })
            .map(|(name, _)| name)
    });
    let parts = [
        "_api_external.h",
        "_api_experimental.h",
        "_api_external_experimental.h",
    ];
    let public = |name: &&str| {
        if parts.iter().any(|part| name.ends_with(part)) {
            return true;
        }
        let c = ["tiledb", "tiledb_experimental", "tiledb_serialization"];
        let plain = |rest: &str| c.contains(&rest.strip_suffix(".h").unwrap_or(rest));
        match name.strip_prefix("tiledb/") {
            Some(rest) => {
                rest.strip_prefix("sm/c_api/").is_some_and(plain)
                    || rest.starts_with("sm/cpp_api/")
                    || plain(rest)
            }
            None => {
                *name == "test/support/tdb_catch.h"
                    || !(name.starts_with("test/") || name.starts_with('.'))
            }
        }
    };
    asked.filter(|name| !public(name)).collect()
}

/// What came of a case that should fail, and of which nothing did.
const RIGHT: &str = "right against expectation";

/// Runs each test case of a program in a process of its own, so that one that ends it costs the
/// others nothing. The library is the one in the folder.
fn outcomes(
    program: &Path,
    folder: &Path,
    work: &Path,
) -> Result<BTreeMap<String, String>, String> {
    let cases = |tags: &[&str]| -> Result<Vec<String>, String> {
        let listed = Command::new(program)
            .args(["--list-tests", "--verbosity", "quiet"])
            .args(tags)
            .env("LD_LIBRARY_PATH", folder)
            .output()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Ok(lines.map(str::to_owned).collect())
    };
    // The framework fails these if nothing of them does.
    let inverted = cases(&["[!shouldfail]"])?;
    let mut came = BTreeMap::new();
    for case in cases(&[])? {
        let place = work.join("place");
        let _ = std::fs::remove_dir_all(&place);
        make_folder(&place)?;
        let status = Command::new("timeout")
            .arg("300")
            .arg(program)
            .arg(pattern(&case))
            .current_dir(&place)
            .env("LD_LIBRARY_PATH", folder)
            .env("HOME", &place)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let word = match status.code() {
            Some(0) => "passed",
            // All that ran of it was skipped.
            Some(4) => "skipped",
            Some(124) => "timeout",
            Some(_) if inverted.contains(&case) => RIGHT,
            Some(_) => "failed",
            None => "crashed",
        };
        came.insert(case, word.to_owned());
    }
    Ok(came)
}

/// The pattern by which the framework finds one test case.
fn pattern(case: &str) -> String {
    let mut pattern = String::new();
    for c in case.chars() {
        if matches!(c, ',' | '[' | ']' | '\\' | '*' | '~' | '"') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::{RIGHT, internal_headers, pattern, row};

    #[test]
    fn public_headers_are_told_from_internal_ones() {
        let text = "#include <test/support/tdb_catch.h>\n#include <vector>\n\
                    #include \"tiledb/sm/c_api/tiledb.h\"\n#include <tiledb/tiledb>\n\
                    #include \"tiledb/sm/misc/constants.h\" // sizes\n\
                    #include \"test/support/src/helpers.h\"\n#include \"../x.h\"\n\
                    #include \"../buffer_api_external.h\"\n#include <nlohmann/json.hpp>\n";
        let internal = internal_headers(text);
        assert_eq!(
            internal,
            [
                "tiledb/sm/misc/constants.h",
                "test/support/src/helpers.h",
                "../x.h"
            ]
        );
    }

    #[test]
    fn what_passes_on_the_reference_alone_is_counted() {
        let outcomes = |words: [&str; 3]| {
            let cases = ["a", "b", "c"].map(str::to_owned);
            cases.into_iter().zip(words.map(str::to_owned)).collect()
        };
        let reference = outcomes(["passed", "passed", "failed"]);
        let (line, worse) = row("x", &reference, &outcomes(["crashed", RIGHT, "failed"]));
        assert_eq!(worse, 1);
        assert_eq!(
            line,
            "| `x` | 2 of 3 | 1 | a: crashed (passed there); b: wrong on the reference, and \
             marked so; right here |"
        );
    }

    #[test]
    fn a_test_case_is_found_by_its_very_name() {
        assert_eq!(pattern("C API: a, [b]"), "C API: a\\, \\[b\\]");
    }
}

//! `cargo xtask unit-tests`: TileDB's own unit tests and regression programs that need nothing but
//! its public headers, on the reference and on our C library, test case by test case.
//!
//! They come from TileDB's repository at the reference's version, with the test framework from
//! its own, and stay below `target`. A program is compiled once, against the reference; ours then
//! lies in a folder under the reference's file name.

use crate::{Outcome, capi, peer, reference, root, versus};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the sources are, at which tag.
const SOURCES: [(&str, &str, &str); 2] = [
    ("TileDB", "https://github.com/TileDB-Inc/TileDB", "2.30.0"),
    ("Catch2", "https://github.com/catchorg/Catch2", "v3.7.1"),
];

/// Headers by the names under which programs ask for them, and what is in them.
const HEADERS: [(&str, &str); 10] = [
    ("tiledb/tiledb.h", "#include \"tiledb/sm/c_api/tiledb.h\""),
    (
        "tiledb/tiledb_experimental.h",
        "#include \"tiledb/sm/c_api/tiledb_experimental.h\"",
    ),
    (
        "tiledb/tiledb_serialization.h",
        "#include \"tiledb/sm/c_api/tiledb_serialization.h\"",
    ),
    ("tiledb/tiledb", "#include \"tiledb/sm/cpp_api/tiledb\""),
    (
        "tiledb/tiledb_experimental",
        "#include \"tiledb/sm/cpp_api/tiledb_experimental\"",
    ),
    (
        "tiledb_export.h",
        "#pragma once\n#define TILEDB_EXPORT\n#define TILEDB_NO_EXPORT\n\
         #define TILEDB_DEPRECATED\n#define TILEDB_DEPRECATED_EXPORT",
    ),
    ("catch2/catch_all.hpp", "#include \"catch_amalgamated.hpp\""),
    (
        "catch2/catch_template_test_macros.hpp",
        "#include \"catch_amalgamated.hpp\"",
    ),
    (
        "catch2/reporters/catch_reporter_event_listener.hpp",
        "#include \"catch_amalgamated.hpp\"",
    ),
    (
        "catch2/reporters/catch_reporter_registrars.hpp",
        "#include \"catch_amalgamated.hpp\"",
    ),
];

/// Runs the programs whose names contain one of the words, or all. Options: `--from DIR` (with
/// checkouts in DIR/TileDB and DIR/Catch2), `--library FILE` (one that is not built first).
pub fn run(options: &[&str]) -> Outcome {
    let (mut names, mut from, mut library) = (Vec::new(), None, None);
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match *word {
            "--from" => from = Some(PathBuf::from(words.next().ok_or("--from wants a folder")?)),
            "--library" => library = Some(words.next().ok_or("--library wants a file")?.into()),
            name => names.push(name),
        }
    }
    let work = root().join("target/unit-tests");
    let from = match from {
        Some(folder) => folder,
        None => fetch(&work)?,
    };
    let library: PathBuf = match library {
        Some(file) => file,
        None => capi::build(&root(), false)?,
    };
    let theirs = versus::reference_library()?;
    let build = Build::new(&work, &from, &theirs)?;
    let as_theirs = work.join("ours");
    make_folder(&as_theirs)?;
    std::fs::copy(
        &library,
        as_theirs.join(theirs.file_name().unwrap_or_default()),
    )
    .map_err(|e| format!("{}: {e}", library.display()))?;
    let (mut differ, mut table) = (0, String::new());
    for source in sources(&build.tiledb)? {
        let name = source.file_stem().unwrap_or_default().to_string_lossy();
        if !names.is_empty() && !names.iter().any(|word| name.contains(word)) {
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
                Err(text) => format!("| `{name}` | | | cannot be built: {text} |"),
                Ok(program) => {
                    let folder = theirs.parent().unwrap_or(Path::new("."));
                    let reference = outcomes(&program, folder, &work)?;
                    let ours = outcomes(&program, &as_theirs, &work)?;
                    let counted = peer::count(&reference, &ours, false);
                    differ += counted.failed + counted.missing;
                    let failing = reference
                        .iter()
                        .filter(|(case, came)| *came == "passed" && ours.get(*case) != Some(*came))
                        .map(|(case, _)| format!("{case}; "))
                        .collect::<String>();
                    format!(
                        "| `{name}` | {} of {} | {} | {failing} |",
                        counted.of,
                        reference.len(),
                        ours.values().filter(|came| *came == "passed").count(),
                    )
                }
            },
        };
        println!("{line}");
        table = format!("{table}{line}\n");
    }
    match differ {
        _ if table.is_empty() => Err("no program has such a name".into()),
        0 => Ok(()),
        n => Err(format!("{n} test cases pass on the reference alone")),
    }
}

/// Brings the sources into a folder; what is there already stays.
fn fetch(work: &Path) -> Result<PathBuf, String> {
    let folder = work.join("sources");
    make_folder(&folder)?;
    for (name, url, tag) in SOURCES {
        if !folder.join(name).is_dir() {
            reference::run(
                Command::new("git")
                    .args(["clone", "--quiet", "--depth", "1", "--branch", tag, url])
                    .arg(folder.join(name)),
            )?;
        }
    }
    Ok(folder)
}

/// The unit tests of the C and the C++ API, and the regression programs.
fn sources(tiledb: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for folder in ["test/src", "test/regression/targets"] {
        let folder = tiledb.join(folder);
        let entries =
            std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        found.extend(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())));
    }
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let starts = ["unit-capi-", "unit-cppapi-", "sc-"];
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
    let public = |name: &&str| {
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

/// How programs are compiled.
struct Build {
    tiledb: PathBuf,
    catch: PathBuf,
    work: PathBuf,
    library: PathBuf,
    framework: PathBuf,
}

impl Build {
    /// With the test framework compiled, which takes a minute the first time.
    fn new(work: &Path, from: &Path, library: &Path) -> Result<Self, String> {
        for (name, text) in HEADERS {
            let file = work.join("include").join(name);
            make_folder(file.parent().unwrap_or(work))?;
            std::fs::write(&file, format!("{text}\n"))
                .map_err(|e| format!("{}: {e}", file.display()))?;
        }
        let build = Self {
            tiledb: from.join("TileDB"),
            catch: from.join("Catch2/extras"),
            work: work.to_owned(),
            library: library.to_owned(),
            framework: work.join("framework.o"),
        };
        if !build.framework.exists() {
            let source = build.catch.join("catch_amalgamated.cpp");
            build.compile(&["-c".as_ref(), source.as_ref()], &build.framework)?;
        }
        Ok(build)
    }

    /// Compiles a program, if that was not done.
    fn program(&self, source: &Path, name: &str) -> Result<PathBuf, String> {
        let program = self.work.join("programs").join(name);
        make_folder(&self.work.join("programs"))?;
        if !program.exists() {
            let parts: [&Path; 3] = [source, &self.framework, &self.library];
            self.compile(&parts, &program)?;
        }
        Ok(program)
    }

    fn compile(&self, parts: &[&Path], to: &Path) -> Outcome {
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
        let done = Command::new(compiler)
            .args(["-std=c++20", "-O0", "-w", "-pthread", "-I"])
            .arg(self.work.join("include"))
            .arg("-I")
            .arg(&self.tiledb)
            .arg("-I")
            .arg(self.tiledb.join("tiledb/sm/c_api"))
            .arg("-I")
            .arg(&self.catch)
            .arg(format!(
                "-DTILEDB_TEST_INPUTS_DIR=\"{}\"",
                self.tiledb.join("test/inputs").display()
            ))
            .args(parts)
            .arg("-o")
            .arg(to)
            .output()
            .map_err(|e| format!("the C++ compiler: {e}"))?;
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        let telling = |line: &&str| line.contains("error") || line.contains("undefined");
        match done.status.success() {
            true => Ok(()),
            false => Err((errors.lines().find(telling).unwrap_or("no reason given")).to_owned()),
        }
    }
}

/// Runs each test case of a program in a process of its own, so that one that ends it costs the
/// others nothing. The library is the one in the folder.
fn outcomes(
    program: &Path,
    folder: &Path,
    work: &Path,
) -> Result<BTreeMap<String, String>, String> {
    let listed = Command::new(program)
        .args(["--list-tests", "--verbosity", "quiet"])
        .env("LD_LIBRARY_PATH", folder)
        .output()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut came = BTreeMap::new();
    for case in listed
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let place = work.join("place");
        let _ = std::fs::remove_dir_all(&place);
        make_folder(&place)?;
        let status = Command::new("timeout")
            .arg("300")
            .arg(program)
            .arg(pattern(case))
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
            Some(_) => "failed",
            None => "crashed",
        };
        came.insert(case.to_owned(), word.to_owned());
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

fn make_folder(folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::{internal_headers, pattern};

    #[test]
    fn public_headers_are_told_from_internal_ones() {
        let text = "#include <test/support/tdb_catch.h>\n#include <vector>\n\
                    #include \"tiledb/sm/c_api/tiledb.h\"\n#include <tiledb/tiledb>\n\
                    #include \"tiledb/sm/misc/constants.h\" // sizes\n\
                    #include \"test/support/src/helpers.h\"\n#include \"../x.h\"\n";
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
    fn a_test_case_is_found_by_its_very_name() {
        assert_eq!(pattern("C API: a, [b]"), "C API: a\\, \\[b\\]");
    }
}

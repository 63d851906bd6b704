//! What the programs are made of, and how they are compiled.

use crate::{Outcome, git};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the sources are, at which tag.
const SOURCES: [(&str, &str, &str); 3] = [
    ("TileDB", "https://github.com/TileDB-Inc/TileDB", "2.30.0"),
    ("Catch2", "https://github.com/catchorg/Catch2", "v3.7.1"),
    ("json", "https://github.com/nlohmann/json", "v3.11.3"),
];

/// What the reference was built with, as its own build tells its tests.
const FEATURES: [&str; 4] = [
    "-DHAVE_AZURE",
    "-DHAVE_GCS",
    "-DHAVE_S3",
    "-DTILEDB_SERIALIZATION",
];

/// A function that one program has and another one calls: the reference's build makes one program
/// of all regression tests.
const SHARED: &str = "#include <tiledb/tiledb>
__attribute__((weak)) bool array_exists(tiledb::Context& ctx, const char* uri) {
  return tiledb::Object::object(ctx, uri).type() == tiledb::Object::Type::Array;
}
";

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

/// Brings the sources into a folder; what is there already stays.
pub fn fetch(work: &Path) -> Result<PathBuf, String> {
    let folder = work.join("sources");
    make_folder(&folder)?;
    for (name, url, tag) in SOURCES {
        git::checkout(&folder.join(name), url, tag)?;
    }
    Ok(folder)
}

/// How programs are compiled.
pub struct Build {
    /// TileDB's checkout.
    pub tiledb: PathBuf,
    catch: PathBuf,
    json: PathBuf,
    work: PathBuf,
    library: PathBuf,
    framework: PathBuf,
    shared: PathBuf,
}

impl Build {
    /// With the test framework compiled, which takes a minute the first time.
    pub fn new(work: &Path, from: &Path, library: &Path) -> Result<Self, String> {
        for (name, text) in HEADERS {
            let file = work.join("include").join(name);
            make_folder(file.parent().unwrap_or(work))?;
            std::fs::write(&file, format!("{text}\n"))
                .map_err(|e| format!("{}: {e}", file.display()))?;
        }
        let build = Self {
            tiledb: from.join("TileDB"),
            catch: from.join("Catch2/extras"),
            json: from.join("json/single_include"),
            work: work.to_owned(),
            library: library.to_owned(),
            framework: work.join("framework.o"),
            shared: work.join("shared.o"),
        };
        if !build.framework.exists() {
            let source = build.catch.join("catch_amalgamated.cpp");
            build.compile(&["-c".as_ref(), source.as_ref()], &build.framework)?;
        }
        let source = work.join("shared.cc");
        std::fs::write(&source, SHARED).map_err(|e| format!("{}: {e}", source.display()))?;
        if !build.shared.exists() {
            build.compile(&["-c".as_ref(), source.as_ref()], &build.shared)?;
        }
        Ok(build)
    }

    /// Compiles a program, if that was not done.
    pub fn program(&self, source: &Path, name: &str) -> Result<PathBuf, String> {
        let program = self.work.join("programs").join(name);
        make_folder(&self.work.join("programs"))?;
        if !program.exists() {
            let parts: [&Path; 4] = [source, &self.framework, &self.shared, &self.library];
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
            .arg("-I")
            .arg(&self.json)
            .args(FEATURES)
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

/// Makes a folder and those around it.
pub fn make_folder(folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

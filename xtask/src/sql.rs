//! `cargo xtask sql`: arrays beside other engines on the same rows.

use crate::cargo::{cargo, forget_package, target};
use crate::{Outcome, git, reference, wheel};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What compares, and what makes the rows.
const PACKAGES: [&str; 3] = ["duckdb==2.0.0", "pyarrow==26.0.1", "tpchgen-cli==4.0.0"];

/// What the Python package's tables are tested in: the wheel is built with our DataFusion's version.
const FOREIGN: [&str; 4] = ["datafusion==55.0.0", "numpy", "pyarrow==26.0.1", "pytest"];

/// A client of the Flight SQL server, and what makes its certificates.
const ADBC: [&str; 4] = [
    "adbc-driver-flightsql==1.13.0",
    "adbc-driver-manager==1.13.0",
    "pyarrow==26.0.1",
    "trustme==1.2.1",
];

/// TileDB's storage engine for MariaDB, whose tests judge our SQL.
const MYTILE: &str = "https://github.com/TileDB-Inc/TileDB-MariaDB";
const MYTILE_COMMIT: &str = "91a2c116bd6fce54c3e3bb8669aa570c3f495a9d";

/// Queries over each array of the generator's, which is a test of `azulejo-sql`.
const QUERIES_AN_ARRAY: u64 = 40;

/// All that stands on DataFusion, as in `.ci/run`: another set would build it anew.
const FEATURES: &str =
    "azulejo-sql/distributed,azulejo-sql/flight-sql,azulejo-cli/distributed,azulejo-cli/flight-sql";

/// Builds the program with all that stands on DataFusion, and says where it lies.
///
/// As for tests: what only these need turns on features of what is below DataFusion, which would be
/// compiled anew without them.
pub fn program(root: &Path) -> Result<PathBuf, String> {
    built(root, &["test", "--no-run", "--test", "workers"], "debug")
}

/// As [`program`], optimised.
pub fn release(root: &Path) -> Result<PathBuf, String> {
    built(root, &["build", "--release", "--bins"], "release")
}

fn built(root: &Path, how: &[&str], profile: &str) -> Result<PathBuf, String> {
    reference::run(
        cargo()
            .current_dir(root)
            .args(how)
            .args(["--locked", "--package", "azulejo-cli"])
            .args(["--package", "azulejo-sql", "--features", FEATURES]),
    )?;
    let name = format!("{profile}/azulejo{}", std::env::consts::EXE_SUFFIX);
    Ok(target(root).join(name))
}

/// A Python environment of its own with these packages.
fn environment(root: &Path, folder: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let python = wheel::environment(&root.join(folder))?;
    wheel::pip(&python, packages)?;
    Ok(python)
}

/// TPC-H's queries on arrays and, with DuckDB, on Parquet; what follows goes to the script.
pub fn tpch(root: &Path, rest: &[&str]) -> Outcome {
    let program = program(root)?;
    let python = environment(root, "target/sql-venv", &PACKAGES)?;
    reference::run(
        Command::new(&python)
            .arg(root.join("xtask/python/sql_tpch.py"))
            .arg(program)
            .arg(root.join("target/sql-tpch"))
            .args(rest),
    )
}

/// The Flight SQL server as ADBC's driver of PyPI sees it.
pub fn adbc(root: &Path) -> Outcome {
    let program = program(root)?;
    let python = environment(root, "target/adbc-venv", &ADBC)?;
    reference::run(
        Command::new(&python)
            .arg(root.join("xtask/python/sql_adbc.py"))
            .arg(program),
    )
}

/// The cost of questions on arrays and on Parquet, of one program; what follows goes to the script.
pub fn versus(root: &Path, rest: &[&str]) -> Outcome {
    let program = release(root)?;
    let python = environment(
        root,
        "target/sql-venv",
        &["numpy==2.4.6", "pyarrow==26.0.1"],
    )?;
    reference::run(
        Command::new(&python)
            .arg(root.join("xtask/python/sql_versus.py"))
            .arg(program)
            .arg(target(root).join("sql-versus"))
            .args(rest),
    )
}

/// The Python package with the feature `datafusion`, unoptimised, and what it does in the wheel
/// `datafusion`.
pub fn python(root: &Path) -> Outcome {
    let python = environment(root, "target/datafusion-venv", &FOREIGN)?;
    let folder = target(root).join("datafusion-wheel");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let tools = wheel::tools(root)?;
    reference::run(
        forget_package(&mut Command::new(tools.with_file_name("maturin")))
            .current_dir(root.join("azulejo-python"))
            .args(["build", "--profile", "dev", "--features", "datafusion"])
            .arg("--out")
            .arg(&folder),
    )?;
    let wheel = wheel::made(&folder, ".whl")?.display().to_string();
    wheel::pip(&python, &["--force-reinstall", "--no-deps", &wheel])?;
    reference::run(
        Command::new(root.join(&python))
            // Elsewhere, so that the package is the installed one and not the folder.
            .current_dir(&folder)
            .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"])
            .arg(root.join("azulejo-python/tests/test_datafusion.py"))
            // Without the feature they would be skipped.
            .env("AZULEJO_FOREIGN_TABLES", "1"),
    )
}

/// DataFusion's own SQL tests, which its crate brings along, with every table an array: those of
/// files whose path holds a text, or all.
pub fn logic(root: &Path, rest: &[&str]) -> Outcome {
    let manifest = root.join("sqllogic/Cargo.toml");
    let metadata = cargo()
        .args(["metadata", "--locked", "--format-version", "1"])
        .arg("--manifest-path")
        .arg(&manifest)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let metadata: Value = serde_json::from_slice(&metadata.stdout).map_err(|error| {
        let said = String::from_utf8_lossy(&metadata.stderr);
        format!("cargo metadata: {error}\n{said}")
    })?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let found = packages.find(|package| package["name"] == "datafusion-sqllogictest");
    let tests = found.and_then(|package| package["manifest_path"].as_str());
    let tests = tests.and_then(|path| Path::new(path).parent());
    reference::run(
        cargo()
            .args(["run", "--quiet", "--locked", "--manifest-path"])
            .arg(&manifest)
            .arg("--target-dir")
            .arg(target(root))
            .arg("--")
            .arg(tests.ok_or("datafusion-sqllogictest is not there")?)
            .args(rest),
    )
}

/// MyTile's own test files, in a checkout of its repository (`--from DIR`, or a new one): what they
/// ask and MariaDB answered, where it is standard SQL. What follows goes to the script.
pub fn mytile(root: &Path, rest: &[&str]) -> Outcome {
    let (checkout, rest) = match rest {
        ["--from", folder, rest @ ..] => (PathBuf::from(folder), rest),
        rest => {
            let folder = target(root).join("mytile");
            git::checkout(&folder, MYTILE, MYTILE_COMMIT)?;
            (folder, rest)
        }
    };
    let program = program(root)?;
    reference::run(
        Command::new(reference::system_python())
            .arg(root.join("xtask/python/sql_mytile.py"))
            .arg(program)
            .arg(checkout)
            .arg(target(root).join("sql-mytile"))
            .args(rest),
    )
}

/// Random queries over random arrays, beside DuckDB on the same rows as Parquet: `--seed N` is the
/// first array's, `--queries N` how many queries there are at least.
pub fn random(root: &Path, rest: &[&str]) -> Outcome {
    let (mut seed, mut queries) = (0, 2_000);
    for pair in rest.chunks(2) {
        let (name, value) = match pair {
            ["--seed", value] => (&mut seed, value),
            ["--queries", value] => (&mut queries, value),
            _ => return Err(format!("{} is not known here", pair.join(" "))),
        };
        *name = value
            .parse::<u64>()
            .map_err(|error| format!("{value}: {error}"))?;
    }
    let folder = target(root).join("sql-random");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let arrays = queries.div_ceil(QUERIES_AN_ARRAY).max(1);
    reference::run(
        cargo()
            .current_dir(root)
            .args(["test", "--locked", "--package", "azulejo-cli"])
            .args(["--package", "azulejo-sql", "--features", FEATURES])
            .args(["--test", "sql", "arrays_answer_as_rows_in_memory"])
            .env("AZULEJO_SQL_SEED", seed.to_string())
            .env("AZULEJO_SQL_SEEDS", arrays.to_string())
            .env("AZULEJO_SQL_KEEP", &folder),
    )?;
    let python = environment(root, "target/sql-venv", &PACKAGES)?;
    reference::run(
        Command::new(&python)
            .arg(root.join("xtask/python/sql_random.py"))
            .arg(&folder),
    )
}

//! `cargo xtask sql tpch`: the SQL program beside other engines on the same rows.

use crate::cargo::{cargo, target};
use crate::{Outcome, reference, wheel};
use std::path::Path;
use std::process::Command;

/// What compares, and what makes the rows.
const PACKAGES: [&str; 3] = ["duckdb==2.0.0", "pyarrow==26.0.1", "tpchgen-cli==4.0.0"];

/// All that stands on DataFusion, as in `.ci/run`: another set would build it anew.
const FEATURES: &str =
    "azulejo-sql/distributed,azulejo-sql/flight-sql,azulejo-cli/distributed,azulejo-cli/flight-sql";

/// TPC-H's queries on arrays and, with DuckDB, on Parquet; what follows goes to the script.
pub fn tpch(root: &Path, rest: &[&str]) -> Outcome {
    reference::run(
        cargo()
            .current_dir(root)
            .args(["build", "--locked", "--package", "azulejo-cli"])
            .args(["--package", "azulejo-sql", "--bins"])
            .args(["--features", FEATURES]),
    )?;
    let python = wheel::environment(&root.join("target/sql-venv"))?;
    wheel::pip(&python, &PACKAGES)?;
    let program = format!("azulejo{}", std::env::consts::EXE_SUFFIX);
    reference::run(
        Command::new(&python)
            .arg(root.join("xtask/python/sql_tpch.py"))
            .arg(target(root).join("debug").join(program))
            .arg(root.join("target/sql-tpch"))
            .args(rest),
    )
}

//! `cargo xtask versus python` and `versus parquet`: our Python package beside what others would take.

use crate::{Outcome, reference, wheel};
use std::path::Path;
use std::process::Command;

/// What is beside us: the script that compares, and what it needs from PyPI.
#[derive(Debug)]
pub struct Neighbours {
    name: &'static str,
    packages: &'static [&'static str],
}

/// TileDB-Py, whose 0.36.1 bundles TileDB 2.30.0, and xarray on Zarr.
pub const PYTHON: Neighbours = Neighbours {
    name: "python",
    packages: &[
        "tiledb==0.36.1",
        "numpy==2.4.6",
        "pandas==2.3.3",
        "pyarrow==26.0.1",
        "xarray==2026.9.0",
        "zarr>=3.1,<4",
        "zarrs>=0.2",
    ],
};

/// The same rows as Parquet, through DuckDB and DataFusion.
pub const PARQUET: Neighbours = Neighbours {
    name: "parquet",
    packages: &["numpy==2.4.6", "pyarrow==26.0.1", "duckdb", "datafusion"],
};

/// Builds the wheel, installs it beside the others and runs the script; what follows goes to it.
pub fn run(root: &Path, beside: &Neighbours, rest: &[&str]) -> Outcome {
    let name = beside.name;
    let built = wheel::build(root, &wheel::tools(root)?, false)?;
    let python = wheel::environment(&root.join(format!("target/versus-{name}")))?;
    wheel::pip(&python, beside.packages)?;
    let built = built.display().to_string();
    wheel::pip(&python, &["--force-reinstall", "--no-deps", &built])?;
    reference::run(
        Command::new(&python)
            .arg(root.join(format!("xtask/python/versus_{name}.py")))
            .arg(root.join(format!("target/versus-{name}-arrays")))
            .args(rest),
    )
}

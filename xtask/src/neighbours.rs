//! `cargo xtask versus python` and `versus parquet`: our Python package beside what others would take;
//! `versus zarr`: dense arrays beside Zarr's libraries.

use crate::cargo::cargo;
use crate::{Outcome, capi, reference, wheel};
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

/// Nobody: how our own cost grows with the number of fragments.
pub const MANY: Neighbours = Neighbours {
    name: "many",
    packages: &["numpy==2.4.6"],
};

/// Nobody: the same work with one thread and with two.
pub const THREADS: Neighbours = Neighbours {
    name: "threads",
    packages: &["numpy==2.4.6", "pyarrow==26.0.1"],
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
    reference::run(comparison(root, &python, name).args(rest))
}

/// The script that compares, which has a folder for its arrays.
fn comparison(root: &Path, python: &Path, name: &str) -> Command {
    let mut command = Command::new(python);
    command
        .arg(root.join(format!("xtask/python/versus_{name}.py")))
        .arg(root.join(format!("target/versus-{name}-arrays")));
    command
}

/// Random workloads through TileDB-Py, on its own library and on ours; what follows goes to the
/// script.
pub fn workloads(root: &Path, rest: &[&str]) -> Outcome {
    let library = capi::build(root, false)?;
    let python = wheel::environment(&root.join("target/versus-python"))?;
    wheel::pip(&python, PYTHON.packages)?;
    let mut command = comparison(root, &python, "workloads");
    reference::run(command.arg(library).args(rest))
}

/// What is beside us in Python for Zarr.
const ZARR: [&str; 3] = ["numpy==2.4.6", "tensorstore==0.1.86", "zarr>=3.1,<4"];

/// Builds `bench-neighbours` and runs it, then the same in Python; prints ratios.
pub fn zarr(root: &Path) -> Outcome {
    let python = wheel::environment(&root.join("target/versus-zarr"))?;
    wheel::pip(&python, &ZARR)?;
    let folder = root.join("target/versus-zarr-arrays");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut command = cargo();
    command
        .args(["run", "--release", "--quiet", "--manifest-path"])
        .arg(root.join("bench-neighbours/Cargo.toml"))
        .arg("--target-dir")
        .arg(root.join("target"))
        .arg("--")
        .arg(&folder);
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|e| format!("{command:?}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status));
    }
    let found = folder.join("rust.json");
    std::fs::write(&found, output.stdout).map_err(|e| format!("{}: {e}", found.display()))?;
    let done = reference::run(
        Command::new(&python)
            .arg(root.join("bench-neighbours/run_python.py"))
            .args([&folder, &found]),
    );
    let _ = std::fs::remove_dir_all(&folder);
    done
}

//! `cargo xtask versus python`: our Python package beside TileDB-Py, and beside xarray on Zarr.

use crate::{Outcome, reference, wheel};
use std::path::Path;
use std::process::Command;

/// What the comparison is made with. `tiledb` 0.36.1 bundles TileDB 2.30.0.
const PACKAGES: [&str; 7] = [
    "tiledb==0.36.1",
    "numpy==2.4.6",
    "pandas==2.3.3",
    "pyarrow==26.0.1",
    "xarray==2026.9.0",
    "zarr>=3.1,<4",
    "zarrs>=0.2",
];

/// Builds the wheel, installs it beside the others and runs the script; what follows goes to it.
pub fn run(root: &Path, rest: &[&str]) -> Outcome {
    let built = wheel::build(root, &wheel::tools(root)?, false)?;
    let python = wheel::environment(&root.join("target/versus-python"))?;
    wheel::pip(&python, &PACKAGES)?;
    let built = built.display().to_string();
    wheel::pip(&python, &["--force-reinstall", "--no-deps", &built])?;
    reference::run(
        Command::new(&python)
            .arg(root.join("xtask/python/versus_python.py"))
            .arg(root.join("target/versus-python-arrays"))
            .args(rest),
    )
}

//! The Python package: its wheel, installed into a fresh environment and tested there.

use crate::Outcome;
use crate::cargo::{forget_package, program};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the tests use besides the wheel.
const PACKAGES: [&str; 16] = [
    "pytest",
    "pytest-asyncio",
    "cftime",
    "pandas",
    "pyarrow",
    "polars",
    "xarray",
    "dask",
    "distributed",
    "netCDF4",
    "zarr",
    "rioxarray",
    "matplotlib",
    "mypy",
    "hypothesis",
    "tiledb==0.36.1",
];

/// The last of TileDB-CF-Py and what it can be imported beside.
const TILEDB_CF: [&str; 4] = [
    "tiledb-cf==0.9.1",
    "tiledb==0.32.5",
    "xarray==2024.11.0",
    "numpy==2.2.6",
];

/// Bytes that a wheel may have.
const MOST: u64 = 8_000_000;

/// Builds the wheel, says how large it is, installs it and runs its tests; with `dev`, unoptimised.
pub fn run(root: &Path, dev: bool) -> Outcome {
    let python = tools(root)?;
    pip(&python, &PACKAGES)?;
    let wheel = build(root, &python, dev)?;
    let size = std::fs::metadata(&wheel)
        .map_err(|e| format!("{}: {e}", wheel.display()))?
        .len();
    println!("{}: {:.1} MB", wheel.display(), size as f64 / 1e6);
    if !dev && size > MOST {
        return Err(format!("the wheel has more than {MOST} bytes"));
    }
    let path = wheel.display().to_string();
    pip(&python, &["--force-reinstall", "--no-deps", &path])?;
    // Elsewhere, so that the package is the installed one and not the folder.
    let elsewhere = wheel.parent().unwrap_or(root);
    tell(
        Command::new(&python)
            .current_dir(elsewhere)
            .args(["-m", "mypy.stubtest", "azulejo_db._core", "--concise"])
            .args(["--ignore-unused-allowlist", "--allowlist"])
            .arg(root.join("azulejo-python/tests/stubtest_allow.txt")),
    )?;
    let program = program(root)?;
    let cf = environment(&root.join("target/tiledb-cf-venv"))?;
    pip(&cf, &TILEDB_CF)?;
    tell(
        Command::new(&python)
            .current_dir(elsewhere)
            .env("AZULEJO_TILEDB_CF", &cf)
            .env("AZULEJO_PROGRAM", &program)
            .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"])
            .arg(root.join("azulejo-python/tests")),
    )
}

/// The environment in which wheels are built and tested: its interpreter.
pub fn tools(root: &Path) -> Result<PathBuf, String> {
    let python = environment(&root.join("target/wheel-venv"))?;
    pip(&python, &["maturin>=1.8,<2"])?;
    Ok(python)
}

/// The interpreter of an environment, which is made on first use.
pub fn environment(venv: &Path) -> Result<PathBuf, String> {
    let python = venv.join("bin/python");
    if !python.exists() {
        tell(Command::new("python3").args(["-m", "venv"]).arg(venv))?;
    }
    Ok(python)
}

/// Builds the wheel with the tools of an environment; with `dev`, unoptimised.
pub fn build(root: &Path, python: &Path, dev: bool) -> Result<PathBuf, String> {
    let folder = root.join("target/wheels");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let profile = if dev { "dev" } else { "release" };
    tell(
        forget_package(&mut Command::new(python.with_file_name("maturin")))
            .current_dir(root.join("azulejo-python"))
            .args(["build", "--profile", profile, "--compression-level", "9"])
            .arg("--out")
            .arg(&folder),
    )?;
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| "maturin made no wheel".into())
}

/// Installs packages.
pub fn pip(python: &Path, packages: &[&str]) -> Outcome {
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ];
    tell(Command::new(python).args(install).args(packages))
}

fn tell(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{command:?} failed: {status}")),
    }
}

//! The Python package: its wheels, and the one of this machine installed into a fresh environment and
//! tested there.

mod platforms;

use crate::Outcome;
use crate::cargo::{forget_package, program};
use platforms::Made;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the tests use besides the wheel.
const PACKAGES: [&str; 17] = [
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
    "duckdb",
    "tiledb==0.36.1",
];

/// What tests of a release use besides.
const MORE_PACKAGES: [&str; 1] = ["datafusion"];

/// What the tests of GRIB use. ecCodes brings libraries that do not bear those of rioxarray in one
/// process: an environment of its own, without pyarrow, which shows what can be done without.
const BARE: [&str; 6] = [
    "pytest",
    "pytest-asyncio",
    "pandas",
    "xarray",
    "cfgrib",
    "eccodes",
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

/// Builds the wheel of this machine, unoptimised, and runs its tests.
pub fn run_debug(root: &Path) -> Outcome {
    let python = tools(root)?;
    pip(&python, &PACKAGES)?;
    let wheel = build(root, &python, true)?;
    test(root, &python, &wheel)
}

/// Builds the wheels of all platforms that can be built for here (of one, if it is named), has
/// auditwheel check them, and runs the tests of the one that is for this machine.
pub fn run(root: &Path, only: Option<&str>) -> Outcome {
    let python = tools(root)?;
    pip(&python, &PACKAGES)?;
    pip(&python, &MORE_PACKAGES)?;
    let folder = emptied(root)?;
    let made = platforms::build_all(root, &python, &folder, only)?;
    let fits = |made: &&Made| {
        // Asked of pip, whose errors are no errors here.
        let dry = [
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--no-deps",
            "--force-reinstall",
        ];
        let said = Command::new(&python).args(dry).arg(&made.wheel).output();
        said.is_ok_and(|said| said.status.success())
    };
    let (here, elsewhere): (Vec<&Made>, Vec<&Made>) = made.iter().partition(fits);
    let told = || {
        for Made { wheel, ran } in &elsewhere {
            let name = wheel.file_name().unwrap_or_default().display();
            let how = match ran {
                true => "its tests were NOT RUN, only its library, without Python",
                false => "NOT RUN, only looked at",
            };
            println!(
                "{name}: {how} (see above): it is for another machine or C library than those of this Python"
            );
        }
    };
    let Some(Made { wheel, .. }) = here.first() else {
        told();
        return Ok(());
    };
    test(root, &python, wheel)?;
    let bare = environment(&root.join("target/grib-venv"))?;
    pip(&bare, &BARE)?;
    let path = wheel.display().to_string();
    pip(&bare, &["--force-reinstall", "--no-deps", &path])?;
    tell(
        pytest(root, &bare, &folder)
            .arg(root.join("azulejo-python/tests/test_formats.py"))
            .arg(root.join("azulejo-python/tests/test_without_pyarrow.py")),
    )?;
    println!("{}: tested here", wheel.display());
    told();
    Ok(())
}

/// Installs a wheel and runs the package's tests on it.
fn test(root: &Path, python: &Path, wheel: &Path) -> Outcome {
    let path = wheel.display().to_string();
    pip(python, &["--force-reinstall", "--no-deps", &path])?;
    // Elsewhere, so that the package is the installed one and not the folder.
    let elsewhere = wheel.parent().unwrap_or(root);
    tell(
        Command::new(python)
            .current_dir(elsewhere)
            .args(["-m", "mypy.stubtest", "azulejo_db._core", "--concise"])
            .args(["--ignore-unused-allowlist", "--allowlist"])
            .arg(root.join("azulejo-python/tests/stubtest_allow.txt")),
    )?;
    let program = program(root)?;
    let cf = environment(&root.join("target/tiledb-cf-venv"))?;
    pip(&cf, &TILEDB_CF)?;
    tell(
        pytest(root, python, elsewhere)
            .env("AZULEJO_TILEDB_CF", &cf)
            .env("AZULEJO_PROGRAM", &program)
            .arg(root.join("azulejo-python/tests")),
    )
}

/// pytest, run in a folder.
fn pytest(root: &Path, python: &Path, folder: &Path) -> Command {
    let mut command = Command::new(root.join(python));
    command
        .current_dir(folder)
        .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]);
    command
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

/// The folder of wheels, with nothing in it.
fn emptied(root: &Path) -> Result<PathBuf, String> {
    let folder = root.join("target/wheels");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    Ok(folder)
}

/// Builds the wheel of this machine with its own compiler and libraries, and says how large it is; with
/// `dev`, unoptimised.
pub fn build(root: &Path, python: &Path, dev: bool) -> Result<PathBuf, String> {
    let folder = emptied(root)?;
    let profile = if dev { "dev" } else { "dist" };
    tell(
        forget_package(&mut Command::new(python.with_file_name("maturin")))
            .current_dir(root.join("azulejo-python"))
            .args(["build", "--profile", profile, "--compression-level", "9"])
            .arg("--out")
            .arg(&folder),
    )?;
    let wheel = made(&folder, ".whl")?;
    told_size(&wheel)?;
    Ok(wheel)
}

/// The wheel in a folder whose name ends so.
pub fn made(folder: &Path, ending: &str) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().ends_with(ending))
        .ok_or_else(|| format!("maturin made no wheel {ending}"))
}

/// The bytes of a wheel, which are said.
fn told_size(wheel: &Path) -> Result<u64, String> {
    let failed = |e| format!("{}: {e}", wheel.display());
    let size = std::fs::metadata(wheel).map_err(failed)?.len();
    println!("{}: {:.1} MB", wheel.display(), size as f64 / 1e6);
    Ok(size)
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

//! The Python package: its wheel, installed into a fresh environment and tested there.

use crate::Outcome;
use std::path::Path;
use std::process::Command;

/// What the tests use besides the wheel.
const PACKAGES: [&str; 9] = [
    "pytest",
    "pytest-asyncio",
    "cftime",
    "pandas",
    "pyarrow",
    "polars",
    "xarray",
    "dask",
    "tiledb==0.36.1",
];

/// Builds the wheel, says how large it is, installs it and runs its tests; with `dev`, unoptimised.
pub fn run(root: &Path, dev: bool) -> Outcome {
    let folder = root.join("target/wheels");
    let venv = root.join("target/wheel-venv");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let python = venv.join("bin/python");
    if !python.exists() {
        tell(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    let pip = || {
        let mut pip = Command::new(&python);
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]);
        pip
    };
    tell(pip().args(["maturin>=1.8,<2"]).args(PACKAGES))?;
    let mut maturin = Command::new(venv.join("bin/maturin"));
    maturin
        .current_dir(root.join("azulejo-python"))
        .args(["build", "--out"])
        .arg(&folder);
    tell(maturin.args(if dev {
        ["--profile", "dev"]
    } else {
        ["--profile", "release"]
    }))?;
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let wheel = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or("maturin made no wheel")?;
    let size = std::fs::metadata(&wheel)
        .map_err(|e| format!("{}: {e}", wheel.display()))?
        .len();
    println!("{}: {:.1} MB", wheel.display(), size as f64 / 1e6);
    tell(pip().args(["--force-reinstall", "--no-deps"]).arg(&wheel))?;
    // Elsewhere, so that the package is the installed one and not the folder.
    tell(
        Command::new(&python)
            .current_dir(&folder)
            .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"])
            .arg(root.join("azulejo-python/tests")),
    )
}

fn tell(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{command:?} failed: {status}")),
    }
}

//! Arrays as zarr-python reads them through `azulejo serve --zarr`.

use crate::{Outcome, wheel};
use std::path::Path;
use std::process::Command;

/// Reads arrays of the demonstration in `arrays` through a program.
pub fn test(root: &Path, program: &Path, arrays: &Path) -> Outcome {
    let venv = root.join("target/web/venv");
    let python = venv.join("bin/python");
    if !python.exists() {
        super::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    wheel::pip(&python, &["zarr>=3.1,<4", "fsspec", "aiohttp", "requests"])?;
    super::run(
        Command::new(&python)
            .arg(root.join("azulejo-cli/tests/serve_zarr.py"))
            .args([program, arrays]),
    )
}

//! `cargo xtask peer`: TileDB-Py's own test suite on our library.
//!
//! The suite's runner lies beside the checkout (`../shared/peer`, or where `AZULEJO_PEER` says): it makes an environment of
//! its own, puts the library in the place of the one that the wheel bundles and compares with what the reference gives.

use crate::Outcome;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the library and runs the suite; `rest` goes to the runner (`-k EXPR`, `-n WORKERS`).
pub fn run(root: &Path, rest: &[&str]) -> Outcome {
    let folder = std::env::var_os("AZULEJO_PEER").map_or_else(|| root.join("../shared/peer"), PathBuf::from);
    let runner = folder.join("run-suite");
    if !runner.exists() {
        return Err(format!(
            "{} is not there: set AZULEJO_PEER to the folder of the suite's runner",
            runner.display()
        ));
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    crate::reference::run(Command::new(cargo).current_dir(root).args([
        "build",
        "--release",
        "-p",
        "azulejo-capi",
    ]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let library = target.join("release").join(library_name());
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    crate::reference::run(Command::new(python).arg(&runner).arg(&library).args(rest))
}

fn library_name() -> &'static str {
    if cfg!(target_os = "macos") { "libazulejo_capi.dylib" } else { "libazulejo_capi.so" }
}

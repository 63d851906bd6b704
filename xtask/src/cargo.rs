//! Cargo, called by a program that Cargo runs.

use crate::reference;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Cargo as it would be called by hand.
pub fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    forget_package(&mut command);
    command
}

/// Takes from a command's environment what Cargo says there of this package. Build scripts that look
/// at such variables (`ring`'s does) would run anew, and all that stands on them be compiled again,
/// here and by the next call from elsewhere.
pub fn forget_package(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Where Cargo puts what it builds.
pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Builds the command line as the tests of the workspace do, and says where it lies.
pub fn program(root: &Path) -> Result<PathBuf, String> {
    let build = ["build", "--locked", "--workspace", "--bin", "azulejo"];
    reference::run(cargo().current_dir(root).args(build))?;
    let name = format!("debug/azulejo{}", std::env::consts::EXE_SUFFIX);
    Ok(target(root).join(name))
}

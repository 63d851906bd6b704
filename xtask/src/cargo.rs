//! Cargo, called by a program that Cargo runs.

use crate::{Outcome, reference};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Cargo as it would be called by hand.
pub fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    forget_package(&mut command);
    command
}

/// Cargo of the nightly toolchain: by its name, so that rustup chooses it.
pub fn nightly() -> Command {
    let mut command = Command::new("cargo");
    forget_package(&mut command).env_remove("RUSTUP_TOOLCHAIN");
    command.arg("+nightly");
    command
}

/// Where a toolchain lies: this one, or `+nightly`.
pub fn sysroot(toolchain: Option<&str>) -> Result<PathBuf, String> {
    let mut command = Command::new("rustc");
    if let Some(toolchain) = toolchain {
        command.env_remove("RUSTUP_TOOLCHAIN").arg(toolchain);
    }
    let said = command.args(["--print", "sysroot"]).output();
    let said = said.map_err(|e| format!("cannot start rustc: {e}"))?;
    match said.status.success() {
        true => Ok(PathBuf::from(String::from_utf8_lossy(&said.stdout).trim())),
        false => Err(String::from_utf8_lossy(&said.stderr).into_owned()),
    }
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

/// Cargo's command for the workspace with the features that its tests have, so that nothing is compiled
/// anew for a task; `AZULEJO_FEATURES` names more than the default ones, as `.ci/run` does.
pub fn whole_workspace(root: &Path, command: &str) -> Command {
    let mut build = cargo();
    build
        .current_dir(root)
        .args([command, "--workspace", "--locked"]);
    if let Some(features) = std::env::var_os("AZULEJO_FEATURES") {
        build.arg("--features").arg(features);
    }
    build
}

/// Builds the command line as the tests of the workspace do, and says where it lies.
pub fn program(root: &Path) -> Result<PathBuf, String> {
    reference::run(whole_workspace(root, "build").args(["--bin", "azulejo"]))?;
    let name = format!("debug/azulejo{}", std::env::consts::EXE_SUFFIX);
    Ok(target(root).join(name))
}

/// Sees to it that Rust's standard library for a target is here, if need be by rustup.
pub fn standard_library(target: &str) -> Outcome {
    if has_standard_library(target)? {
        return Ok(());
    }
    let added = Command::new("rustup")
        .args(["target", "add", target])
        .output();
    if added.is_ok_and(|added| added.status.success()) && has_standard_library(target)? {
        return Ok(());
    }
    Err(format!(
        "rustup has no standard library for {target} and cannot get it here"
    ))
}

fn has_standard_library(target: &str) -> Result<bool, String> {
    let said = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .output()
        .map_err(|e| format!("rustc: {e}"))?;
    let folder = PathBuf::from(String::from_utf8_lossy(&said.stdout).trim());
    let Ok(files) = std::fs::read_dir(folder) else {
        return Ok(false);
    };
    let mut names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    Ok(names.any(|name| name.starts_with("libstd-") && name.ends_with(".rlib")))
}

#[cfg(test)]
mod tests {
    use super::has_standard_library;

    #[test]
    fn targets_that_are_none_have_no_standard_library() {
        assert!(!has_standard_library("no-such-target").unwrap());
    }
}

//! The browser: format and engine compile to WebAssembly, without a C compiler.

use crate::Outcome;
use std::path::Path;
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

/// Features of a build for browsers.
const FEATURES: &str = "pure-rust,stream";

/// Builds the engine for the target, which rustup brings where it is missing, and checks that
/// nothing in it is C.
pub fn build(root: &Path) -> Outcome {
    has_target(root)?;
    no_c(root)?;
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(root)
        .args(["build", "--locked", "--package", "azulejo"])
        .args(["--no-default-features", "--features", FEATURES])
        .args(["--target", TARGET])
        // Random numbers come from the browser.
        .env(
            "RUSTFLAGS",
            "-D warnings --cfg getrandom_backend=\"wasm_js\"",
        )
        .env("CARGO_TARGET_DIR", root.join("target/web"));
    run(&mut cargo)?;
    println!("azulejo compiles to {TARGET}");
    Ok(())
}

fn has_target(root: &Path) -> Outcome {
    let installed =
        output(
            Command::new("rustup")
                .current_dir(root)
                .args(["target", "list", "--installed"]),
        )?;
    if installed.lines().any(|line| line == TARGET) {
        return Ok(());
    }
    run(Command::new("rustup")
        .current_dir(root)
        .args(["target", "add", TARGET]))
}

/// Crates that compile C need `cc` to be built.
fn no_c(root: &Path) -> Outcome {
    let tree = output(
        Command::new("cargo")
            .current_dir(root)
            .args(["tree", "--locked", "--package", "azulejo"])
            .args(["--no-default-features", "--features", FEATURES])
            .args(["--target", TARGET, "--edges", "normal,build"])
            .args(["--prefix", "none", "--format", "{p}"]),
    )?;
    let compiles_c = |line: &&str| {
        let name = line.split(' ').next().unwrap_or_default();
        matches!(name, "cc" | "cmake") || name.ends_with("-sys") && name != "js-sys"
    };
    // Translated to Rust, in spite of its name.
    let is_rust = |line: &&str| line.starts_with("libbz2-rs-sys ");
    match tree.lines().find(|line| compiles_c(line) && !is_rust(line)) {
        Some(line) => Err(format!("{line} is in a build without C")),
        None => Ok(()),
    }
}

fn run(command: &mut Command) -> Outcome {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|e| format!("{name}: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{name} failed: {status}"))
    }
}

fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{name}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!(
            "{name} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}

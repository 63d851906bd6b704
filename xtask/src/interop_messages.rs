//! `cargo xtask interop messages`: the reference and Azulejo exchange serialized messages through
//! their C APIs.

use crate::{Outcome, capi, reference, root, versus};
use std::path::PathBuf;
use std::process::Command;

/// Options: `--seed N` (the first of the random cases), `--count N` (how many).
pub fn run(options: &[&str]) -> Outcome {
    let theirs = versus::reference_library()?;
    script("interop_messages", &[theirs], options)
}

/// `cargo xtask interop steps`: incomplete reads and estimated sizes, as the reference gives them.
/// Options as for [`run`].
pub fn steps(options: &[&str]) -> Outcome {
    let theirs = versus::reference_library()?;
    script("interop_steps", &[theirs], options)
}

/// `cargo xtask interop selections`: reads of parts of arrays that the reference wrote, through our
/// C API, against a brute-force model. Options as for [`run`].
pub fn selections(options: &[&str]) -> Outcome {
    script("interop_selections", &[], options)
}

/// Runs a script with libraries, ours the last one, a folder, a seed and a count.
fn script(name: &str, libraries: &[PathBuf], options: &[&str]) -> Outcome {
    let value = |name: &str, default: &str| {
        let at = options.iter().position(|option| *option == name);
        at.and_then(|at| options.get(at + 1).copied())
            .unwrap_or(default)
            .to_owned()
    };
    let root = root();
    let ours = capi::build(&root, true)?;
    reference::run(
        Command::new(reference::python()?)
            .arg(root.join("xtask/python").join(format!("{name}.py")))
            .args(libraries)
            .args([ours, root.join("target").join(name)])
            .args([value("--seed", "1"), value("--count", "100")]),
    )
}

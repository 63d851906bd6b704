//! `cargo xtask interop messages`: the reference and Azulejo exchange serialized messages through
//! their C APIs.

use crate::{Outcome, capi, reference, root, versus};
use std::process::Command;

/// Options: `--seed N` (the first of the random cases), `--count N` (how many).
pub fn run(options: &[&str]) -> Outcome {
    let value = |name: &str, default: &str| {
        let at = options.iter().position(|option| *option == name);
        at.and_then(|at| options.get(at + 1).copied())
            .unwrap_or(default)
            .to_owned()
    };
    let root = root();
    let theirs = versus::reference_library()?;
    let ours = capi::build(&root, true)?;
    reference::run(
        Command::new(reference::python()?)
            .arg(root.join("xtask/python/interop_messages.py"))
            .args([theirs, ours, root.join("target/interop-messages")])
            .args([value("--seed", "1"), value("--count", "100")]),
    )
}

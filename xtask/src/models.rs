//! `cargo xtask models`: what the engine's threads share, with their locks and waits in every order.

use crate::cargo::cargo;
use crate::{Outcome, reference, root};

/// Runs all models; each says how many orders it has tried.
pub fn run() -> Outcome {
    let mut command = cargo();
    command
        .args(["test", "--locked", "--manifest-path"])
        .arg(root().join("models/Cargo.toml"))
        .args(["--", "--nocapture", "--test-threads", "1"]);
    reference::run(&mut command)
}

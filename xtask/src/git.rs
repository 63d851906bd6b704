//! Sources of others, brought by git.

use crate::{Outcome, reference};
use std::path::Path;
use std::process::Command;

/// Brings a repository at one revision, a tag or a commit, into a folder, without what was before; what
/// is there already stays.
pub fn checkout(folder: &Path, url: &str, revision: &str) -> Outcome {
    if folder.is_dir() {
        return Ok(());
    }
    // Under its own name only once it is whole.
    let part = folder.with_extension("part");
    let wrong = |error: std::io::Error| format!("{}: {error}", part.display());
    if part.exists() {
        std::fs::remove_dir_all(&part).map_err(wrong)?;
    }
    std::fs::create_dir_all(&part).map_err(wrong)?;
    let git = |words: &[&str]| reference::run(Command::new("git").arg("-C").arg(&part).args(words));
    git(&["init", "--quiet"])?;
    git(&["fetch", "--quiet", "--depth", "1", url, revision])?;
    git(&["checkout", "--quiet", "FETCH_HEAD"])?;
    std::fs::rename(&part, folder).map_err(wrong)
}

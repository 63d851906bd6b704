//! Arguments of `azulejo maintain`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `azulejo maintain`.
#[derive(Debug, Clone, Args)]
pub struct MaintainArgs {
    /// Path or URI of an array, or with --recursive of a group or folder
    #[arg(required_unless_present = "show_policy")]
    pub uri: Option<String>,
    /// Every array of a group or folder
    #[arg(long, short)]
    pub recursive: bool,
    /// File that says when to do what
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Only say what would be done, and why
    #[arg(long)]
    pub dry_run: bool,
    /// Print the policy, as a file for --policy, and do nothing
    #[arg(long)]
    pub show_policy: bool,
}

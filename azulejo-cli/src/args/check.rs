//! Arguments of `azulejo check`.

use clap::{Args, ValueEnum};

/// Arguments of `azulejo check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// Path or URI of an array, or with --recursive of a group or folder
    pub uri: String,
    /// Every array of a group or folder
    #[arg(long, short, conflicts_with_all = ["repair", "adopt", "discard"])]
    pub recursive: bool,
    /// Decode every cell: checksums, order, boxes and statistics
    #[arg(long)]
    pub deep: bool,
    /// Remove what a crash has left and finish what it has cut short. Nobody may write to the array
    /// meanwhile
    #[arg(long)]
    pub repair: bool,
    /// Make fragments count whose commit was lost, if all of them is there
    #[arg(long, conflicts_with = "repair")]
    pub adopt: bool,
    /// Remove fragments without a commit, those included that are the only copy of their cells
    #[arg(long, conflicts_with_all = ["repair", "adopt"])]
    pub discard: bool,
    /// With --repair, --adopt or --discard: only say what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// What makes the exit code 4
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = FailOn::Error)]
    pub fail_on: FailOn,
}

/// Findings that make a check fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Errors
    Error,
    /// Errors and warnings
    Warning,
}

//! Arguments of `azulejo check`.

use clap::Args;

/// Arguments of `azulejo check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// Path or URI of an array
    pub uri: String,
    /// Decode every cell: checksums, order, boxes and statistics
    #[arg(long)]
    pub deep: bool,
    /// Remove what a crash has left and finish what it has cut short. Nobody may write to the array
    /// meanwhile
    #[arg(long)]
    pub repair: bool,
    /// With --repair: only say what would be done
    #[arg(long, requires = "repair")]
    pub dry_run: bool,
}

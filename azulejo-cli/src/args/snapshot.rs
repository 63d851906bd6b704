//! Arguments of `azulejo snapshot`, `history` and `restore`.

use super::time::When;
use clap::{Args, Subcommand};

/// Arguments of `azulejo snapshot`.
#[derive(Debug, Clone, Args)]
pub struct SnapshotArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SnapshotCommand,
}

/// What to do with names of moments.
#[derive(Debug, Clone, Subcommand)]
pub enum SnapshotCommand {
    /// Give a moment of an array a name; of a group: of all its members too
    Create {
        /// Path or URI of an array or group
        uri: String,
        /// The name: letters, digits, `.`, `_` and `-`, a letter first
        name: String,
        /// The moment [default: now]
        #[arg(long, value_name = "T", allow_hyphen_values = true)]
        at: Option<When>,
    },
    /// The names and their moments
    List {
        /// Path or URI of an array or group
        uri: String,
    },
    /// Remove a name; the next vacuum may remove what it showed
    Remove {
        /// Path or URI of an array or group
        uri: String,
        /// The name
        name: String,
    },
}

/// Arguments of `azulejo history`.
#[derive(Debug, Clone, Args)]
pub struct HistoryArgs {
    /// Path or URI of an array
    pub uri: String,
}

/// Arguments of `azulejo restore`.
#[derive(Debug, Clone, Args)]
pub struct RestoreArgs {
    /// Path or URI of an array
    pub uri: String,
    /// The moment: milliseconds since 1970, a UTC date, -1h, or the name of a snapshot
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    pub at: When,
    /// Only say what would change
    #[arg(long)]
    pub dry_run: bool,
}

//! What `quickstart` takes.

use clap::Args;
use std::path::PathBuf;

/// What `quickstart` takes.
#[derive(Debug, Args)]
pub struct QuickstartArgs {
    /// Keep the sample arrays in this new folder
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
}

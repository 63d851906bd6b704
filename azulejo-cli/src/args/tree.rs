//! What `tree` takes.

use clap::Args;

/// What `tree` takes.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// Path or URI
    #[arg(default_value = ".")]
    pub uri: String,
    /// Levels to go down
    #[arg(long, value_name = "N")]
    pub depth: Option<usize>,
}

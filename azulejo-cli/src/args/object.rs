//! What commands take that look at one object, or at a folder.

use super::TimeArgs;
use clap::Args;

/// An array or group at a time.
#[derive(Debug, Args)]
pub struct ObjectArgs {
    /// Path, file:// URI or mem:// URI
    pub uri: String,
    /// When to look at it.
    #[command(flatten)]
    pub time: TimeArgs,
}

/// A folder, group or array.
#[derive(Debug, Args)]
pub struct PathArgs {
    /// Path or URI
    #[arg(default_value = ".")]
    pub uri: String,
}

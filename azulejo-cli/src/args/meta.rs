//! What `meta` takes.

use super::TimeArgs;
use clap::Args;

/// What `meta` takes.
#[derive(Debug, Args)]
pub struct MetaArgs {
    /// Path or URI of an array or group
    pub uri: String,
    /// Only this key, and its bare value
    pub key: Option<String>,
    /// When to look at it.
    #[command(flatten)]
    pub time: TimeArgs,
}

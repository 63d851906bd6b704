//! What `agg` takes.

use super::{CellArgs, TimeArgs};
use clap::Args;

/// What `agg` takes.
#[derive(Debug, Args)]
pub struct AggArgs {
    /// Path or URI of an array
    pub uri: String,
    /// `count`, or one of sum, mean, min, max, nulls with a field: `sum:a`
    #[arg(required = true, value_name = "WHAT")]
    pub aggregates: Vec<String>,
    /// When to look at it.
    #[command(flatten)]
    pub time: TimeArgs,
    /// Which cells.
    #[command(flatten)]
    pub selection: CellArgs,
}

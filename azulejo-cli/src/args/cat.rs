//! What `cat` takes.

use super::{ColumnArgs, SelectionArgs, TimeArgs};
use clap::{Args, ValueEnum};

/// What `cat` takes.
#[derive(Debug, Args)]
pub struct CatArgs {
    /// Path or URI of an array
    pub uri: String,
    /// When to look at it.
    #[command(flatten)]
    pub time: TimeArgs,
    /// Which cells.
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Which columns.
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// How to write them [default: table on a terminal, csv elsewhere]
    #[arg(long, value_enum)]
    pub format: Option<CatFormat>,
}

/// Formats of `cat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CatFormat {
    /// A table that fits the terminal; 100 rows unless --limit says otherwise
    Table,
    /// Comma-separated values with a header line
    Csv,
    /// One JSON object a line
    Ndjson,
    /// An Arrow IPC stream
    Arrow,
}

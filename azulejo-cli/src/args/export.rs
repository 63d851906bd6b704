//! What `export` takes.

use super::{ColumnArgs, SelectionArgs, TimeArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What `export` takes.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Path or URI of an array
    pub uri: String,
    /// The file to write; its ending names the format
    pub file: PathBuf,
    /// When to look at it.
    #[command(flatten)]
    pub time: TimeArgs,
    /// Which cells.
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Which columns.
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// The format, where the file's ending does not name it
    #[arg(long, value_enum)]
    pub format: Option<ExportFormat>,
    /// Replace the file if it exists
    #[arg(long, short)]
    pub force: bool,
}

/// Formats of `export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Apache Parquet
    Parquet,
    /// Arrow IPC file (Feather 2)
    Arrow,
    /// Comma-separated values with a header line
    Csv,
    /// One JSON object a line
    Ndjson,
    /// NumPy array: one attribute of a dense array
    Npy,
    /// Picture: one attribute of a 2-D dense array
    Png,
}

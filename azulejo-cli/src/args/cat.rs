//! What `cat` takes.

use super::{ColumnArgs, PictureArgs, SelectionArgs, TimeArgs};
use crate::output::drawing::Graphics;
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
    /// Draw the cells instead, as `export` makes a picture of them
    #[arg(
        long = "picture",
        value_name = "HOW",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto",
        conflicts_with = "format"
    )]
    pub graphics: Option<Graphics>,
    /// What pictures look like.
    #[command(flatten)]
    pub picture: PictureArgs,
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

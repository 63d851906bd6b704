//! What `export` takes.

use super::{ColumnArgs, SelectionArgs, TimeArgs};
use crate::output::colour_map::ColourMap;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What `export` takes.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Path or URI of an array
    pub uri: String,
    /// The file to write, whose ending names the format; `-` with --format for standard output
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
    /// What pictures look like.
    #[command(flatten)]
    pub picture: PictureArgs,
    /// Replace the file if it exists
    #[arg(long, short)]
    pub force: bool,
}

/// What pictures look like.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Pictures")]
pub struct PictureArgs {
    /// Colours for numbers [default: grey]
    #[arg(long, value_name = "MAP", value_enum, alias = "colors")]
    pub colours: Option<ColourMap>,
    /// The values that get the first and the last colour [default: the least and the greatest]
    #[arg(long, value_name = "LO:HI", value_parser = parse_scale, allow_hyphen_values = true)]
    pub scale: Option<(f64, f64)>,
}

fn parse_scale(text: &str) -> Result<(f64, f64), String> {
    let (low, high) = text.split_once(':').ok_or("write LO:HI")?;
    let number = |text: &str| {
        let number = text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        number.ok_or_else(|| format!("{text:?} is not a number"))
    };
    let (low, high) = (number(low)?, number(high)?);
    match low < high {
        true => Ok((low, high)),
        false => Err(format!("{low} is not less than {high}")),
    }
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
    /// Picture: one attribute of two dimensions of a dense array
    Png,
}

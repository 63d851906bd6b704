//! Which cells, which columns, in which order.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Which cells.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Selection")]
pub struct CellArgs {
    /// Inclusive range of a dimension or dimension label; LO or HI may be missing, `..` may stand
    /// for the colon, and several ranges of one dimension add up
    #[arg(long, value_name = "DIM=LO:HI")]
    pub range: Vec<String>,
    /// The coordinate whose dimension label is nearest to a value
    #[arg(long, value_name = "LABEL=VALUE", allow_hyphen_values = true)]
    pub nearest: Vec<String>,
    /// Only the cells at the coordinates in this CSV file, or `-` for standard input: a column per
    /// dimension, named in the first line
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["range", "nearest", "step"])]
    pub points: Option<PathBuf>,
    /// Every N-th coordinate of a dimension
    #[arg(long, value_name = "DIM=N")]
    pub step: Vec<String>,
    /// Only cells that meet a condition, such as 'a > 3 and b in ("x", "y") and c is null'. Where a
    /// dense array's cells are shown, the others come out as fill values
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true)]
    pub condition: Option<String>,
}

/// Which cells, which columns, in which order.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Selection")]
pub struct SelectionArgs {
    /// Attributes, separated by commas. Dimensions may be named too: then exactly these columns
    /// come out
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub attrs: Option<Vec<String>>,
    /// Which cells.
    #[command(flatten)]
    pub cells: CellArgs,
    /// Order of the cells [default: row; `export` of a sparse array: global]
    #[arg(long, value_enum)]
    pub order: Option<OrderArg>,
    /// No more than N cells
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

/// What columns to show and how.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Columns")]
pub struct ColumnArgs {
    /// The dimensions as columns before the attributes (sparse arrays have them anyway)
    #[arg(long)]
    pub coords: bool,
    /// The labels of the dimensions too, each behind its dimension
    #[arg(long)]
    pub labels: bool,
    /// Values as stored: ticks for datetimes, indices for enumerations, bytes for ASCII strings
    #[arg(long)]
    pub raw: bool,
}

/// The order of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OrderArg {
    /// The last dimension varies fastest
    #[default]
    Row,
    /// The first dimension varies fastest
    Col,
    /// Tile by tile, as stored
    Global,
    /// Whatever is quickest (sparse arrays)
    Unordered,
}

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
    /// The file to write, whose ending names the format; .gz or .zst behind it compresses it. URIs of
    /// object stores are taken too, and `-` with --format for standard output
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
    /// Leave out cells that are damaged, and say which
    #[arg(long)]
    pub skip_damaged: bool,
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
    /// The values that get the first and the last colour: LO:HI, or `percentile` for those between
    /// the 2nd and 98th percentile (`percentile:5:95` for others); `log`, alone or before either,
    /// for a logarithmic scale [default: the least and the greatest]
    #[arg(long, value_name = "LO:HI", value_parser = parse_scale, allow_hyphen_values = true)]
    pub scale: Option<ScaleArg>,
    /// Values that stand for nothing, and are transparent
    #[arg(
        long,
        value_name = "V,V",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub mask: Vec<f64>,
    /// Below the picture, which colour stands for which value
    #[arg(long)]
    pub bar: bool,
    /// The two dimensions that are shown, down and across [default: those of a dense array of which
    /// more than one coordinate is selected, the first two of a sparse one]
    #[arg(long, value_name = "DOWN,ACROSS", value_delimiter = ',', num_args = 1)]
    pub dims: Option<Vec<String>>,
    /// The first row at the bottom, as on maps
    #[arg(long)]
    pub up: bool,
    /// The most pixels across and down, or along the longer side: cells that fall into one pixel
    /// are shown by their mean [default: a pixel a cell of a dense array, 512 for a sparse one]
    #[arg(long, value_name = "WxH", value_parser = parse_size)]
    pub size: Option<(usize, usize)>,
}

/// How values become colours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScaleArg {
    /// The values of the first and the last colour.
    pub span: Span,
    /// Whether equal ratios look alike.
    pub log: bool,
}

/// The values of the first and the last colour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Span {
    /// The least and the greatest.
    All,
    /// These.
    Between(f64, f64),
    /// These percentiles.
    Percentiles(f64, f64),
}

fn parse_scale(text: &str) -> Result<ScaleArg, String> {
    let (log, rest) = match text.strip_prefix("log") {
        Some("") => {
            return Ok(ScaleArg {
                span: Span::All,
                log: true,
            });
        }
        Some(rest) => (true, rest.strip_prefix(':').ok_or("write log:LO:HI")?),
        None => (false, text),
    };
    let pair = |text: &str| {
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
    };
    let span = match rest.strip_prefix("percentile") {
        Some("") => Span::Percentiles(2.0, 98.0),
        Some(rest) => {
            let (low, high) = pair(rest.strip_prefix(':').unwrap_or(rest))?;
            if low < 0.0 || high > 100.0 {
                return Err("percentiles go from 0 to 100".to_owned());
            }
            Span::Percentiles(low, high)
        }
        None => {
            let (low, high) = pair(rest)?;
            if log && low <= 0.0 {
                return Err("a logarithmic scale begins above 0".to_owned());
            }
            Span::Between(low, high)
        }
    };
    Ok(ScaleArg { span, log })
}

fn parse_size(text: &str) -> Result<(usize, usize), String> {
    let number = |text: &str| {
        let number = text.parse::<usize>().ok();
        number
            .filter(|n| (1..=65_536).contains(n))
            .ok_or_else(|| format!("{text:?} is no number of pixels from 1 to 65536"))
    };
    match text.split_once('x') {
        Some((width, height)) => Ok((number(width)?, number(height)?)),
        None => number(text).map(|side| (side, side)),
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
    /// Tab-separated values with a header line
    Tsv,
    /// One JSON object a line
    Ndjson,
    /// NumPy array: one attribute of a dense array
    Npy,
    /// Picture: one attribute of two dimensions of an array
    Png,
    /// Folder of Zarr, version 3: a dense array, or a group of them
    Zarr,
    /// The same in version 2, for older readers
    Zarr2,
    /// GeoTIFF: a dense array of rows and columns (and bands before them), or the variable of a
    /// group that is one
    #[value(alias = "tiff", alias = "tif")]
    Geotiff,
}

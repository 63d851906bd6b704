//! The command line: what can be asked for, with help and examples.

use crate::error::EXIT_CODES;
use crate::moment;
use crate::size;
use azulejo::TimeRange;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  azulejo quickstart                                a tour of a sample array
  azulejo info my_array                             what it is
  azulejo cat my_array --range x=0:9 --limit 20     some of its cells
  azulejo export my_array cells.parquet             all of its cells
Each command has examples of its own: azulejo cat --help";

/// Looks into TileDB arrays and groups.
#[derive(Debug, Parser)]
#[command(
    name = "azulejo",
    version,
    about = "Looks into any TileDB array",
    long_about = "Looks into any TileDB array or group on disk, whoever wrote it and whenever (format versions 1 to 23).",
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"),
    max_term_width = 110,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Print JSON for programs
    #[arg(long, global = true)]
    pub json: bool,
    /// File with the encryption key: 32 bytes, or 64 hexadecimal digits
    #[arg(long, global = true, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Memory that a read may use, such as 512MB or 2GiB [default: 1GiB]
    #[arg(long, global = true, value_name = "SIZE", value_parser = size::parse)]
    pub memory: Option<u64>,
    /// Threads for decoding [default: one a core]
    #[arg(long, global = true, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub threads: usize,
    /// No progress bars and no notes
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// A tour of a sample array that comes with this program
    Quickstart(QuickstartArgs),
    /// What an array or group is: schema, domain, fragments, sizes, filters, versions
    #[command(after_help = "Examples:
  azulejo info my_array
  azulejo info my_array --at 2024-05-01
  azulejo info my_array --json")]
    Info(ObjectArgs),
    /// The schema; with --json complete, so that an array can be created from it
    #[command(after_help = "Examples:
  azulejo schema my_array
  azulejo schema my_array --json > schema.json")]
    Schema(ObjectArgs),
    /// Arrays and groups in a folder or group
    #[command(after_help = "Examples:
  azulejo ls data/
  azulejo ls my_group --json")]
    Ls(PathArgs),
    /// Arrays and groups below a folder or group, as a tree
    #[command(after_help = "Examples:
  azulejo tree data/
  azulejo tree my_group --depth 2")]
    Tree(TreeArgs),
    /// One row a fragment: time, cells, domain, size, version
    #[command(after_help = "Examples:
  azulejo fragments my_array
  azulejo fragments my_array --from 2024-05-01 --to 2024-05-31")]
    Fragments(ObjectArgs),
    /// Key-value metadata of an array or group
    #[command(after_help = "Examples:
  azulejo meta my_array
  azulejo meta my_array units
  azulejo meta my_group --json")]
    Meta(MetaArgs),
    /// Cells to standard output: a table on a terminal, CSV in a pipe
    #[command(after_help = "Examples:
  azulejo cat my_array
  azulejo cat my_array --range x=-5:5 --range time=2024-05-01:2024-05-31 --attrs temperature
  azulejo cat my_array --where 'quality > 3 and station in (\"x\", \"y\") and note is null'
  azulejo cat my_array --points wanted.csv --format ndjson | jq .
  azulejo cat my_array --at 2024-05-01T12:00 --format arrow > cells.arrow
An upper bound covers the whole period that it names: time=2024-05:2024-05 is all of May.")]
    Cat(CatArgs),
    /// Cells to a file: .parquet .arrow .csv .ndjson .npy .png
    #[command(after_help = "Examples:
  azulejo export my_array cells.parquet
  azulejo export my_array cells.csv --range x=0:99 --coords
  azulejo export my_array grid.npy --attrs temperature --range y=0:511 --range x=0:511
  azulejo export my_array picture.png --attrs temperature --step y=4 --step x=4
.npy takes one attribute of a dense array, .png one attribute of a 2-D dense array.")]
    Export(ExportArgs),
    /// Aggregates: count, sum:A, mean:B, min:C, max:C, nulls:D
    #[command(after_help = "Examples:
  azulejo agg my_array count
  azulejo agg my_array count sum:a mean:b min:b max:b nulls:c --where 'a > 3'
  azulejo agg my_array max:temperature --range time=2024-05 --json")]
    Agg(AggArgs),
}

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

/// What `quickstart` takes.
#[derive(Debug, Args)]
pub struct QuickstartArgs {
    /// Keep the sample arrays in this new folder
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
}

/// Time travel.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Time travel")]
pub struct TimeArgs {
    /// As it was at this time: milliseconds since 1970 or a UTC date (2024-05-01 means the end of that day)
    #[arg(long, value_name = "T", value_parser = parse_last, conflicts_with_all = ["from", "to"])]
    pub at: Option<u64>,
    /// Only what was written at this time or later
    #[arg(long, value_name = "T", value_parser = parse_first)]
    pub from: Option<u64>,
    /// Only what was written up to and including this time
    #[arg(long, value_name = "T", value_parser = parse_last)]
    pub to: Option<u64>,
}

impl TimeArgs {
    /// The time range asked for.
    pub fn range(&self) -> TimeRange {
        TimeRange { start: self.from.unwrap_or(0), end: self.at.or(self.to).unwrap_or(u64::MAX) }
    }
}

fn parse_first(text: &str) -> Result<u64, String> {
    moment::parse_timestamp(text).map(|(first, _)| first)
}

fn parse_last(text: &str) -> Result<u64, String> {
    moment::parse_timestamp(text).map(|(_, last)| last)
}

/// Which cells, which columns, in which order.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Selection")]
pub struct SelectionArgs {
    /// Attributes, separated by commas. Dimensions may be named too: then exactly these columns come out
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub attrs: Option<Vec<String>>,
    /// Inclusive range of a dimension or dimension label; LO or HI may be missing, `..` may stand for the colon, and
    /// several ranges of one dimension add up
    #[arg(long, value_name = "DIM=LO:HI")]
    pub range: Vec<String>,
    /// Only the cells at the coordinates in this CSV file: a column per dimension, named in the first line
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["range", "step"])]
    pub points: Option<PathBuf>,
    /// Every N-th coordinate of a dimension
    #[arg(long, value_name = "DIM=N")]
    pub step: Vec<String>,
    /// Only cells that meet a condition, such as 'a > 3 and b in ("x", "y") and c is null'. Other cells of a dense
    /// array come out as fill values
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<String>,
    /// Order of the cells
    #[arg(long, value_enum, default_value_t = OrderArg::Row)]
    pub order: OrderArg,
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
    pub selection: AggSelectionArgs,
}

/// Which cells to aggregate.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Selection")]
pub struct AggSelectionArgs {
    /// Inclusive range of a dimension or dimension label; LO or HI may be missing, `..` may stand for the colon, and
    /// several ranges of one dimension add up
    #[arg(long, value_name = "DIM=LO:HI")]
    pub range: Vec<String>,
    /// Only the cells at the coordinates in this CSV file: a column per dimension, named in the first line
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["range", "step"])]
    pub points: Option<PathBuf>,
    /// Every N-th coordinate of a dimension
    #[arg(long, value_name = "DIM=N")]
    pub step: Vec<String>,
    /// Only cells that meet a condition
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<String>,
}

impl From<AggSelectionArgs> for SelectionArgs {
    fn from(args: AggSelectionArgs) -> Self {
        let AggSelectionArgs { range, points, step, condition } = args;
        Self { range, points, step, condition, order: OrderArg::Unordered, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_are_read() {
        let cli = Cli::try_parse_from([
            "azulejo",
            "cat",
            "a",
            "--range",
            "x=-5:-1",
            "--range",
            "x=3",
            "--attrs",
            "a,b",
            "--at",
            "2024-05-01",
            "--order",
            "col",
            "--memory",
            "512MB",
            "--where",
            "a > -3",
            "--limit",
            "7",
        ])
        .unwrap();
        assert_eq!(cli.global.memory, Some(512_000_000));
        let Command::Cat(cat) = cli.command else { panic!("not cat") };
        assert_eq!(cat.selection.range, ["x=-5:-1", "x=3"]);
        assert_eq!(cat.selection.attrs.unwrap(), ["a", "b"]);
        assert_eq!(cat.selection.order, OrderArg::Col);
        assert_eq!(cat.time.range(), TimeRange::until(1_714_607_999_999));
    }

    #[test]
    fn contradictions_are_refused() {
        for line in [
            "azulejo cat a --at 1 --to 2",
            "azulejo cat a --points p --range x=1",
            "azulejo agg a",
            "azulejo cat",
            "azulejo cat a --memory lots",
            "azulejo cat a --order diagonal",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}

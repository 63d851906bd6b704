//! What `import` takes.

use super::time::parse_last;
use crate::error::{CliError, Result};
use azulejo::write::optimize::Goal;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What chooses how an array is made: an array that is there, and a schema, say it already.
const CHOICES: [&str; 16] = [
    "dims",
    "dense",
    "sparse",
    "domain",
    "tile",
    "capacity",
    "cell_order",
    "tile_order",
    "unique",
    "types",
    "narrow",
    "filters",
    "optimize",
    "nullable",
    "required",
    "enumerate",
];

/// What `import` takes.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    // One argument for all paths: between two of which the first is a list clap takes no options.
    /// The files, or `-` for standard input: paths, patterns such as 'day*.csv', URIs of object
    /// stores and web servers; behind them the path or URI of the array to make
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Path or URI of the array to make.
    #[arg(skip)]
    pub uri: String,
    /// The format, where neither the file's ending nor its first bytes name it
    #[arg(long, value_enum)]
    pub format: Option<ImportFormat>,
    /// Only these columns
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub columns: Option<Vec<String>>,
    /// Add to an array that exists; labels and the current domain grow as needed
    #[arg(long, conflicts_with_all = CHOICES, conflicts_with_all = ["schema", "label"])]
    pub append: bool,
    /// Which of rows with the same coordinates counts in an array that keeps one cell for each
    /// [default: error]
    #[arg(long, value_enum, value_name = "WHICH")]
    pub on_duplicate: Option<OnDuplicate>,
    /// Store fill values, which count as data, where cells of a dense array have no row, however
    /// many they are
    #[arg(long, conflicts_with = "sparse")]
    pub fill: bool,
    /// How to add to it.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Write as of this time: milliseconds since 1970 or a UTC date
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = parse_last)]
    pub at: Option<u64>,
    /// Only show the schema that the array would have; with --json as a document for --schema
    #[arg(long)]
    pub dry_run: bool,
    /// The array.
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// The fields.
    #[command(flatten)]
    pub fields: FieldArgs,
    /// The text.
    #[command(flatten)]
    pub text: TextArgs,
}

impl ImportArgs {
    /// With the last of the paths as the one of the array.
    ///
    /// # Errors
    /// If there is only one path.
    pub fn with_place(mut self) -> Result<Self> {
        match self.files.pop() {
            Some(uri) if !self.files.is_empty() => Ok(Self { uri, ..self }),
            _ => Err(CliError::usage(
                "say what is to be made of the file: azulejo import FILE.. URI",
            )),
        }
    }

    /// Files without any wishes.
    pub fn of_files(files: Vec<String>) -> Self {
        Self {
            files,
            uri: String::new(),
            format: None,
            columns: None,
            append: false,
            on_duplicate: None,
            fill: false,
            place: PlaceArgs::default(),
            at: None,
            dry_run: false,
            shape: ShapeArgs::default(),
            fields: FieldArgs::default(),
            text: TextArgs {
                quote: b'"',
                ..TextArgs::default()
            },
        }
    }
}

/// How to add to an array.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Adding to an array")]
pub struct PlaceArgs {
    /// The dimension along which an array in a file goes behind what is written [default: the
    /// first]
    #[arg(long, value_name = "DIM", requires = "append")]
    pub append_dim: Option<String>,
    /// Where along a dimension the file begins, instead of behind what is written; it may lie over
    /// cells that are there
    #[arg(
        long,
        value_name = "DIM=N",
        requires = "append",
        allow_hyphen_values = true
    )]
    pub offset: Vec<String>,
    /// Write over cells of a dense array; an array in a file begins where the domain does
    #[arg(long, requires = "append")]
    pub overwrite: bool,
    /// Refuse columns that the array has no field for, and labels that its enumerations lack
    #[arg(long, requires = "append")]
    pub strict: bool,
}

/// Formats of `import`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImportFormat {
    /// Values between delimiters
    Csv,
    /// One JSON object a line
    Ndjson,
    /// Apache Parquet
    Parquet,
    /// Arrow IPC, file or stream
    Arrow,
    /// NumPy array: a dense array with one dimension per axis
    Npy,
    /// A folder of Zarr, version 2 or 3: an array, or a group of them as xarray's datasets lie in
    /// TileDB
    Zarr,
    /// GeoTIFF: a group of the raster's bands, its coordinates and its place on the earth, as
    /// xarray's datasets lie in TileDB
    #[value(alias = "tiff", alias = "tif")]
    Geotiff,
}

/// What the array looks like.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "The array")]
pub struct ShapeArgs {
    /// The columns that become dimensions; for .npy the names of the axes. Without them rows are
    /// numbered along a dense dimension `row`
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub dims: Option<Vec<String>>,
    /// A dense array: each coordinate has one cell [default without --dims]
    #[arg(long, conflicts_with = "sparse")]
    pub dense: bool,
    /// A sparse array: only the rows of the file are cells [default with --dims]
    #[arg(long)]
    pub sparse: bool,
    /// The array's schema, as `azulejo schema --json` or --dry-run --json gives it; nothing is
    /// chosen then
    #[arg(long, value_name = "FILE", conflicts_with_all = CHOICES)]
    pub schema: Option<PathBuf>,
    /// The domain of a dimension: LO:HI, or `data` for just what the file holds
    #[arg(long, value_name = "DIM=LO:HI")]
    pub domain: Vec<String>,
    /// The tile extent of a dimension, or `none`
    #[arg(long, value_name = "DIM=N")]
    pub tile: Vec<String>,
    /// Cells in a tile of a sparse array [default: 10000]
    #[arg(long, value_name = "N")]
    pub capacity: Option<u64>,
    /// Order of the cells in a tile
    #[arg(long, value_enum, value_name = "ORDER")]
    pub cell_order: Option<CellOrderArg>,
    /// Order of the tiles
    #[arg(long, value_enum, value_name = "ORDER")]
    pub tile_order: Option<TileOrderArg>,
    /// Labels of a dense array's dimension: a file with a value for each of its coordinates. The
    /// dimension is the one of that length, unless DIM: names it
    #[arg(long, value_name = "[DIM:]NAME=FILE")]
    pub label: Vec<String>,
    /// A sparse array that keeps one cell for each coordinate: two rows with the same one are an
    /// error
    #[arg(long)]
    pub unique: bool,
}

/// What becomes of rows with the same coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnDuplicate {
    /// The first of them counts
    First,
    /// The last of them counts
    Last,
    /// Nothing is imported
    Error,
}

/// Types and filters of fields.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Fields")]
pub struct FieldArgs {
    /// The type of a column, such as price=FLOAT32 or code=STRING_ASCII
    #[arg(long = "type", value_name = "NAME=TYPE")]
    pub types: Vec<String>,
    /// The narrowest integer types that hold the file's values
    #[arg(long)]
    pub narrow: bool,
    /// Attributes that can be null, whether the file has nulls or not
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub nullable: Vec<String>,
    /// Attributes that cannot be null: missing numbers become NaN, missing dates NaT, others are an
    /// error
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        conflicts_with = "nullable"
    )]
    pub required: Vec<String>,
    /// Text columns whose values become labels of an enumeration, or `none` [default: those with
    /// few different values]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub enumerate: Option<Vec<String>>,
    /// Filters of a field, such as price=byteshuffle,zstd:5 or day=none; @coords, @offsets and
    /// @validity name the array's
    #[arg(long = "filter", value_name = "NAME=F,F")]
    pub filters: Vec<String>,
    /// What filters are chosen for, by what they make of the file's first cells: for the fewest bytes,
    /// for quick reads of what lies in memory, or for both [default: balanced]; those that --filter
    /// names stay
    #[arg(long, value_enum, value_name = "GOAL")]
    pub optimize: Option<OptimizeArg>,
}

impl FieldArgs {
    /// What filters are chosen for.
    pub fn goal(&self) -> Goal {
        self.optimize.map_or(Goal::Balanced, OptimizeArg::goal)
    }
}

/// What filters are chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OptimizeArg {
    /// The fewest bytes; writing takes longer
    Size,
    /// Bytes to bring and time to undo filters, as a good disk has it
    Balanced,
    /// Quick reads of what lies in memory already
    Speed,
}

impl OptimizeArg {
    /// The engine's name of it.
    pub const fn goal(self) -> Goal {
        match self {
            Self::Size => Goal::Size,
            Self::Balanced => Goal::Balanced,
            Self::Speed => Goal::Speed,
        }
    }
}

/// How text is to be read.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Text")]
pub struct TextArgs {
    /// What separates values: a character, or `tab` [default: what the first line has most of]
    #[arg(long, value_name = "C", value_parser = parse_mark)]
    pub delimiter: Option<u8>,
    /// What values with delimiters in them stand in
    #[arg(long, value_name = "C", value_parser = parse_mark, default_value = "\"")]
    pub quote: u8,
    /// What lines begin with that are comments
    #[arg(long, value_name = "C", value_parser = parse_mark)]
    pub comment: Option<u8>,
    /// Lines to leave out before the header
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip: u64,
    /// How dates are written besides ISO 8601, as in '%d/%m/%Y %H:%M'
    #[arg(long, value_name = "FORMAT")]
    pub date_format: Option<String>,
    /// The first line holds values, not names
    #[arg(long)]
    pub no_header: bool,
    /// Names of all columns, instead of those in the file; those with commas stand in double quotes:
    /// 'a,"b,c"'
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub names: Option<Vec<String>>,
    /// Text that means null in every column, besides nothing at all; NA, NULL and the like mean it
    /// in columns of numbers
    #[arg(long = "null", value_name = "TEXT", allow_hyphen_values = true)]
    pub nulls: Vec<String>,
}

/// Orders of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CellOrderArg {
    /// The last dimension varies fastest
    Row,
    /// The first dimension varies fastest
    Col,
    /// Along a Hilbert curve (sparse arrays): near in space is near on disk
    Hilbert,
}

/// Orders of tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TileOrderArg {
    /// The last dimension varies fastest
    Row,
    /// The first dimension varies fastest
    Col,
}

fn parse_mark(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        b"\n" | b"\r" => Err("a line end cannot separate values".to_owned()),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(format!("{text:?} is not one ASCII character")),
    }
}

//! Making arrays of files: CSV, JSON lines, Parquet, Arrow IPC, NumPy, Zarr, GeoTIFF.
//!
//! A file is looked at twice. The first look ([`Profile`](profile::Profile)) finds for each column
//! the type that all its values fit, its bounds, whether anything is missing and, for text, the
//! different values; from that and the options [`plan`] makes the schema. The second turns the
//! values into columns of the array ([`Target`](target::Target)) and [`load`] writes them, in parts
//! that fit the memory budget.

pub mod append;
pub mod arrow;
pub mod arrow_lengths;
pub mod batch;
pub mod boxes;
pub mod csv;
pub mod dataset;
pub mod date_format;
pub mod domain;
pub mod duplicates;
pub mod existing;
pub mod geotiff;
pub mod grid;
pub mod infer;
pub mod input;
pub mod joined;
pub mod labels;
pub mod load;
pub mod ndjson;
pub mod npy_file;
pub mod optimize;
pub mod parse;
pub mod plan;
pub mod profile;
pub mod scalar;
pub mod slab;
pub mod source;
pub mod table_file;
pub mod target;
pub mod text;
pub mod text_file;
pub mod zarr;

use crate::error::CliError;
use azulejo::write::WriteOptions;
use std::fmt;

/// Options of a write at a moment, or now.
pub fn options_at(at: Option<u64>) -> WriteOptions {
    let options = WriteOptions::new();
    match at {
        Some(at) => options.timestamp(at),
        None => options,
    }
}

/// What names of columns begin with that attributes cannot have: such names are the format's own.
pub const RESERVED: &str = "__";

/// The name of the attribute that a column becomes: without underscores at both ends where it is
/// reserved, as pandas' `__index_level_0__` is.
pub fn attribute_name(column: &str) -> &str {
    match column.strip_prefix(RESERVED) {
        Some(rest) if !rest.trim_matches('_').is_empty() => rest.trim_matches('_'),
        _ => column,
    }
}

/// What the first look is to find out.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// Only these columns.
    pub columns: Option<Vec<String>>,
    /// Whether `columns` and `enumerate` are lists cut at their commas, of which several parts may be
    /// one name: that of a column that is looked at to tell.
    pub cut: bool,
    /// Columns that become dimensions: their bounds are needed whatever the format.
    pub dims: Vec<String>,
    /// Columns, or the attributes that they become, whose different values are needed, however many.
    pub enumerate: Vec<String>,
    /// Whether the columns of `enumerate` fill enumerations that are there, for which all their
    /// values are labels.
    pub labelled: bool,
    /// Whether the bounds of all integers are needed.
    pub narrow: bool,
    /// Whether other text columns may become enumerations if they have few values.
    pub may_enumerate: bool,
}

impl Look {
    /// The most labels that an enumeration gets without being asked for.
    pub const FEW_LABELS: usize = 250;
    /// The most labels at all.
    pub const MOST_LABELS: usize = 1 << 20;

    /// Whether a column is to be looked at.
    pub fn wants(&self, name: &str) -> bool {
        self.columns.as_ref().is_none_or(|columns| {
            columns.iter().any(|column| column == name) || self.cut && is_joined(columns, name)
        })
    }

    /// Whether the values of a column are labels of an enumeration that is there.
    pub fn is_label(&self, name: &str) -> bool {
        self.labelled && self.enumerates(name)
    }

    /// Whether all different values of a column are needed.
    pub fn enumerates(&self, name: &str) -> bool {
        let attribute = attribute_name(name);
        let mut asked = self.enumerate.iter();
        // Names of an array that is there are whole.
        let joined = |name| self.cut && !self.labelled && is_joined(&self.enumerate, name);
        asked.any(|asked| asked == name || asked == attribute) || joined(name) || joined(attribute)
    }

    /// How many different texts of a column to remember.
    pub fn label_limit(&self, name: &str) -> usize {
        if self.enumerates(name) {
            Self::MOST_LABELS
        } else if self.may_enumerate && !self.dims.iter().any(|dim| dim == name) {
            Self::FEW_LABELS + 1
        } else {
            0
        }
    }
}

/// Whether a name is made of several parts, one behind the other, of a list that was cut at its commas.
fn is_joined(parts: &[String], name: &str) -> bool {
    let count = name.split(',').count();
    let mut runs = parts.windows(count);
    count > 1 && runs.any(|run| name.split(',').eq(run.iter().map(String::as_str)))
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    /// The file.
    pub file: String,
    /// The line, from 1, where the file has lines.
    pub line: Option<u64>,
    /// The row or record, from 1.
    pub row: Option<u64>,
    /// The column.
    pub column: Option<String>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        } else if let Some(row) = self.row {
            write!(f, ", row {row}")?;
        }
        if let Some(column) = &self.column {
            write!(f, ", column {column:?}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl From<ImportError> for CliError {
    fn from(error: ImportError) -> Self {
        Self::Format(error.to_string())
    }
}

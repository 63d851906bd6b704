//! Arguments of the commands that make and change arrays.

use super::time::{When, parse_first, parse_last};
use clap::Args;
use std::path::PathBuf;

/// Arguments of `azulejo create`.
#[derive(Debug, Clone, Args)]
pub struct CreateArgs {
    /// Path or URI of the array to make
    pub uri: String,
    /// The schema as JSON, as `azulejo schema --json` prints it, or `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub schema: PathBuf,
    /// The schema's time: milliseconds since 1970 or a UTC date
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = parse_last)]
    pub at: Option<u64>,
    /// Only check the schema and show it
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `azulejo evolve`.
#[derive(Debug, Clone, Args)]
pub struct EvolveArgs {
    /// Path or URI of an array
    pub uri: String,
    /// Add an attribute: its name, its type, then any of nullable, var, enum=NAME, filters=F,G; or
    /// as JSON
    #[arg(long, value_name = "ATTRIBUTE")]
    pub add_attr: Vec<String>,
    /// Drop an attribute
    #[arg(long, value_name = "NAME")]
    pub drop_attr: Vec<String>,
    /// Add an enumeration of strings, unordered: NAME=A,B,C; or any as JSON
    #[arg(long, value_name = "ENUMERATION")]
    pub add_enum: Vec<String>,
    /// Add values to the end of an enumeration: NAME=D,E; or NAME=["D","E"]
    #[arg(long, value_name = "NAME=VALUES")]
    pub extend_enum: Vec<String>,
    /// Label a dimension of a dense array with the values of a file, one for each coordinate; the
    /// dimension may be left out where only one has so many
    #[arg(long, value_name = "[DIM:]NAME=FILE")]
    pub add_label: Vec<String>,
    /// Drop an enumeration that no attribute uses
    #[arg(long, value_name = "NAME")]
    pub drop_enum: Vec<String>,
    /// Expand the current domain along a dimension; an open end goes on to the domain's
    #[arg(long, value_name = "DIM=LO:HI", allow_hyphen_values = true)]
    pub expand: Vec<String>,
    /// From this time on: milliseconds since 1970 or a UTC date
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = parse_last)]
    pub at: Option<u64>,
    /// Only show the schema that the array would have
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `azulejo upgrade`.
#[derive(Debug, Clone, Args)]
pub struct UpgradeArgs {
    /// Path or URI of an array, or with --recursive of a group or folder
    pub uri: String,
    /// Every array of a group or folder
    #[arg(long, short)]
    pub recursive: bool,
    /// From this time on: milliseconds since 1970 or a UTC date
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = parse_last)]
    pub at: Option<u64>,
}

/// Arguments of `azulejo delete`.
#[derive(Debug, Clone, Args)]
pub struct DeleteArgs {
    /// Path or URI of an array or group
    pub uri: String,
    /// Delete the cells of a sparse array that meet this; at earlier times they stay
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true, conflicts_with_all = ["from", "to", "fragments", "yes", "recursive"])]
    pub condition: Option<String>,
    /// With --where: only cells written until this time
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = parse_last, requires = "condition")]
    pub at: Option<u64>,
    /// Delete the fragments written at this time or later
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = parse_first, conflicts_with_all = ["yes", "recursive"])]
    pub from: Option<u64>,
    /// Delete the fragments written up to and including this time
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = parse_last, conflicts_with_all = ["yes", "recursive"])]
    pub to: Option<u64>,
    /// Delete this fragment; repeat it for each
    #[arg(long = "fragment", value_name = "NAME", conflicts_with_all = ["from", "to", "yes", "recursive"])]
    pub fragments: Vec<String>,
    /// Delete the whole array or group
    #[arg(long)]
    pub yes: bool,
    /// With a group: its members too, wherever they lie, and theirs
    #[arg(long, short)]
    pub recursive: bool,
    /// Only say what would be deleted
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `azulejo copy`.
#[derive(Debug, Clone, Args)]
pub struct CopyArgs {
    /// From where to where.
    #[command(flatten)]
    pub places: TransferArgs,
    /// An array or group as it was at this time, without its history: milliseconds since 1970, a
    /// UTC date, -1h, or the name of a snapshot
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    pub at: Option<When>,
}

/// Arguments of `azulejo move`, and the places of `azulejo copy`.
#[derive(Debug, Clone, Args)]
pub struct TransferArgs {
    /// Path or URI of an array or group
    pub from: String,
    /// Where it goes; nothing may lie there
    pub to: String,
}
